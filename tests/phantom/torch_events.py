"""One computation twice: in torch on fake tensors of a simulated GPU, and on phantoms; the bytes each allocates and frees, in order."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from weighbridge.base.dtypes import BY_NAME
from weighbridge.phantom import OPERATIONS, Session, Tensor, run_backward
from weighbridge.reading.glue.operations import load_operations
from weighbridge.simulate import fakecuda
from weighbridge.simulate.tracker import Tracker

load_operations()


@dataclass(frozen=True)
class Given:
    """One argument: shape, dtype, whether it is trained, and a permutation of its dimensions."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    grad: bool = True
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Trace:
    """Layout of the result, and byte events of the forward and the backward pass."""

    layout: tuple[tuple[int, ...], tuple[int, ...], str]
    forward: list[int]
    backward: list[int]

    @property
    def peak(self) -> int:
        level = highest = 0
        for size in self.forward + self.backward:
            level += size
            highest = max(highest, level)
        return highest

    @property
    def steps(self) -> tuple[Any, list[int], list[int]]:
        """The trace with neighbouring frees taken as one: C++ and Python let locals go in different orders."""
        return self.layout, merged(self.forward), merged(self.backward)


def merged(events: Iterable[int]) -> list[int]:
    steps: list[int] = []
    for size in events:
        if size < 0 and steps and steps[-1] < 0:
            steps[-1] += size
        else:
            steps.append(size)
    return steps


def in_torch(function: Callable[..., Any], given: Sequence[Given], autocast: str | None = None) -> Trace:
    fakecuda.install()
    tracker = Tracker()
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True), tracker:
        warnings.simplefilter("ignore")
        leaves = [
            torch.empty(g.shape, dtype=getattr(torch, g.dtype), device="cuda", requires_grad=g.grad and "float" in g.dtype) for g in given
        ]
        tensors = [leaf.permute(g.order) if g.order else leaf for leaf, g in zip(leaves, given, strict=True)]
        tracker.phase = "forward"
        tracker.events.clear()
        with torch.autocast("cuda", dtype=getattr(torch, autocast or "bfloat16"), enabled=autocast is not None):
            result = function(*tensors)
        out = result[0] if isinstance(result, tuple | list) else result
        forward = [event.delta_bytes for event in tracker.events if event.delta_bytes]
        tracker.events.clear()
        tracker.phase = "backward"
        if out.requires_grad:
            gradient = torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device="cuda")
            out.backward(gradient)
        backward = [event.delta_bytes for event in tracker.events if event.delta_bytes]
        return Trace((tuple(out.shape), out.stride(), str(out.dtype)[6:]), forward, backward)


def in_phantoms(function: Callable[..., Any], given: Sequence[Given], autocast: str | None = None) -> Trace:
    session = Session()
    with session.activate():
        leaves = [Tensor(g.shape, BY_NAME[g.dtype]) for g in given]
        for leaf, g in zip(leaves, given, strict=True):
            leaf.requires_grad = g.grad and "float" in g.dtype
        tensors = [OPERATIONS["permute"](leaf, g.order) if g.order else leaf for leaf, g in zip(leaves, given, strict=True)]
        events = session.recorder.events
        events.clear()
        with session.under_autocast(BY_NAME[autocast] if autocast else None):
            result = function(*tensors)
        out = result if isinstance(result, Tensor) else result[0]
        forward = [event[1] for event in events if event[1]]
        events.clear()
        if out.requires_grad:
            gradient = Tensor(out.shape, out.dtype, None, out.stride)
            run_backward(out, gradient)
        return Trace((out.shape, out.stride, out.dtype.name), forward, [event[1] for event in events if event[1]])
