"""Activation checkpointing: non-reentrant as transformers uses it, stopped early; and reentrant.

Facts of torch/utils/checkpoint.py. use_reentrant=False: what the region saves is replaced by handles; the first handle that
backward opens runs the region again, with the autocast state of its first run, until every handle has its tensor.
use_reentrant=True: the region runs off the tape as one node; its backward runs it again on the tape, whole, and then backwards.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

Call = Callable[[Any, list[Any], dict[str, Any]], Any]


class StopRecomputation(Exception):  # noqa: N818 - a signal, as torch has it
    """Every tensor that backward needs has been computed again. Code in between may clean up, as Python's own would."""


class Handle:
    """Stands on the tape for a tensor that will be computed again."""

    __slots__ = ("__weakref__", "index", "region")

    def __init__(self, region: "Region", index: int) -> None:
        self.region = region
        self.index = index


class Region:
    """One checkpointed call."""

    __slots__ = ("arguments", "autocast", "call", "function", "handles", "keywords", "recomputed", "recomputing")

    def __init__(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], call: Call) -> None:
        self.function = function
        self.arguments = list(arguments)
        self.keywords = dict(keywords)
        self.call = call
        self.autocast = current().autocast
        self.handles: list[weakref.ref[Handle]] = []
        self.recomputed: list[Tensor | None] | None = None
        self.recomputing = False

    def pack(self, saved: list[Any]) -> list[Any]:
        """Replace what one operation saved by handles; while recomputing, hand over those tensors that are still wanted."""
        packed: list[Any] = []
        for tensor in saved:
            if tensor is None:
                packed.append(None)
            elif self.recomputing:
                packed.append(tensor)
                self._hand_over(tensor)
            else:
                handle = Handle(self, len(self.handles))
                self.handles.append(weakref.ref(handle))
                packed.append(handle)
        saved.clear()
        return packed

    def _hand_over(self, tensor: Tensor) -> None:
        assert self.recomputed is not None
        place = len(self.recomputed)
        wanted = place < len(self.handles) and self.handles[place]() is not None
        self.recomputed.append(tensor if wanted else None)
        if place + 1 == len(self.handles):
            raise StopRecomputation

    def recompute(self) -> None:
        """Run the region again until all it kept is there."""
        self.recomputed = []
        self.recomputing = True
        try:
            with again(self.autocast, [self]):
                self.call(self.function, [unpack(argument) for argument in self.arguments], dict(self.keywords))
        except StopRecomputation as stop:
            stop.__traceback__ = None
        finally:
            self.recomputing = False


@contextmanager
def again(autocast: Any, regions: list[Any]) -> Iterator[None]:
    """The modes of a recomputation: on the tape, under the autocast of the first run with a cache of its own."""
    session = current()
    before = session.grad_enabled, session.autocast, session.cast_cache, session.regions, session.phase
    session.grad_enabled, session.autocast, session.cast_cache, session.regions = True, autocast, {}, regions
    session.phase = "recompute"
    try:
        yield
    finally:
        session.grad_enabled, session.autocast, session.cast_cache, session.regions, session.phase = before


def unpack(saved: Any) -> Tensor | None:
    """The tensor behind a handle, recomputed where it is not there yet; anything else is itself."""
    if type(saved) is not Handle:
        return saved  # type: ignore[no-any-return] # tensors and None are kept as they are
    region = saved.region
    if region.recomputed is None:
        region.recompute()
    assert region.recomputed is not None
    tensor = region.recomputed[saved.index]
    region.recomputed[saved.index] = None
    return tensor


def checkpoint(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], call: Call, *, use_reentrant: bool = False) -> Any:
    """Call `function` without keeping what its operations save.

    Inside another region the arguments are what that region keeps of it: they are computed again with the outer region, then this one.
    """
    session = current()
    if not session.grad_enabled:
        return call(function, list(arguments), dict(keywords))
    outer = session.regions[-1] if session.regions else None
    if use_reentrant:
        return call(function, list(arguments), dict(keywords)) if outer is not None else _reentrant(function, arguments, keywords, call)
    kept = arguments if outer is None else [outer.pack([item])[0] if isinstance(item, Tensor) else item for item in arguments]
    session.regions.append(Region(function, kept, keywords, call))
    del kept
    try:
        return call(function, list(arguments), dict(keywords))
    finally:
        session.regions.pop()


def _reentrant(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], call: Call) -> Any:
    """CheckpointFunction: one node, which saves the arguments that are tensors."""
    from weighbridge.phantom.autograd import attach  # noqa: PLC0415 - the tape opens handles: a cycle

    session = current()
    with session.without_grad():
        outputs = call(function, list(arguments), dict(keywords))
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    single = isinstance(outputs, Tensor)
    results = [outputs] if single else list(outputs)
    if any(tensor.requires_grad for tensor in tensors):
        plain = [None if isinstance(argument, Tensor) else argument for argument in arguments]
        places = [place for place, argument in enumerate(arguments) if isinstance(argument, Tensor)]
        wanted = [tensor.requires_grad for tensor in tensors]
        backward = _Rerun(function, plain, places, wanted, dict(keywords), call, session.autocast)
        tracked = [output if isinstance(output, Tensor) else None for output in results]
        attach("CheckpointFunction", tracked, tensors, tensors, backward)
    return outputs


class _Rerun:
    """The backward of a reentrant region: run again on detached arguments, then backwards from the outputs."""

    def __init__(
        self, function: Any, plain: list[Any], places: list[int], wanted: list[bool], keywords: Any, call: Call, autocast: Any
    ) -> None:
        self.function, self.plain, self.places, self.wanted = function, plain, places, wanted
        self.keywords, self.call, self.autocast = keywords, call, autocast

    def __call__(self, saved: Sequence[Tensor | None], grads: Any, needs: Sequence[bool]) -> list[Tensor | None]:
        from weighbridge.phantom.autograd import alias, run_backward  # noqa: PLC0415 - the tape opens handles: a cycle

        del needs
        inputs = [alias(tensor) for tensor in saved if tensor is not None]
        for tensor, wanted in zip(inputs, self.wanted, strict=True):
            tensor.requires_grad = wanted
        arguments = list(self.plain)
        for place, tensor in zip(self.places, inputs, strict=True):
            arguments[place] = tensor
        with again(self.autocast, []):
            outputs = self.call(self.function, arguments, self.keywords)
        del arguments
        results = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        del outputs
        given = [grads] if isinstance(grads, Tensor) else list(grads)
        pairs = [(out, grad) for out, grad in zip(results, given, strict=True) if isinstance(out, Tensor) and out.requires_grad]
        run_backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return [tensor.grad for tensor in inputs]
