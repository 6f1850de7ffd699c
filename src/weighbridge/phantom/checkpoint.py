"""Activation checkpointing as transformers uses it: non-reentrant, recomputed at the first unpack, stopped early.

Facts of torch/utils/checkpoint.py (use_reentrant=False): what the region saves is replaced by handles; the first handle that
backward opens runs the region again, with the autocast state of its first run, until every handle has its tensor.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

Call = Callable[[Any, list[Any], dict[str, Any]], Any]


class StopRecomputation(BaseException):
    """Every tensor that backward needs has been computed again."""


class Handle:
    """Stands on the tape for a tensor that will be computed again."""

    __slots__ = ("index", "region")

    def __init__(self, region: "Region", index: int) -> None:
        self.region = region
        self.index = index


class Region:
    """One checkpointed call."""

    __slots__ = ("arguments", "autocast", "call", "function", "kept", "keywords", "recomputed", "recomputing")

    def __init__(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], call: Call) -> None:
        self.function = function
        self.arguments = list(arguments)
        self.keywords = dict(keywords)
        self.call = call
        self.autocast = current().autocast
        self.kept = 0
        self.recomputed: list[Tensor | None] | None = None
        self.recomputing = False

    def pack(self, saved: list[Any]) -> list[Any]:
        """Replace what one operation saved by handles; while recomputing, hand the tensors over instead."""
        packed: list[Any] = []
        for tensor in saved:
            if tensor is None:
                packed.append(None)
            elif self.recomputing:
                assert self.recomputed is not None
                self.recomputed.append(tensor)
                packed.append(None)
            else:
                packed.append(Handle(self, self.kept))
                self.kept += 1
        saved.clear()
        if self.recomputing and self.recomputed is not None and len(self.recomputed) >= self.kept:
            raise StopRecomputation
        return packed

    def recompute(self) -> None:
        """Run the region again until all it kept is there."""
        session = current()
        self.recomputed = []
        before = session.grad_enabled, session.autocast, session.cast_cache, session.regions, session.phase
        session.grad_enabled, session.autocast, session.cast_cache, session.regions = True, self.autocast, {}, [self]
        session.phase = "recompute"
        self.recomputing = True
        try:
            self.call(self.function, list(self.arguments), dict(self.keywords))
        except StopRecomputation as stop:
            stop.__traceback__ = None
        finally:
            self.recomputing = False
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


def checkpoint(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], call: Call) -> Any:
    """Call `function` without keeping what its operations save. Inside another region it is an ordinary call."""
    session = current()
    if not session.grad_enabled or (session.regions and session.regions[-1] is not None):
        return call(function, list(arguments), dict(keywords))
    session.regions.append(Region(function, arguments, keywords, call))
    try:
        return call(function, list(arguments), dict(keywords))
    finally:
        session.regions.pop()
