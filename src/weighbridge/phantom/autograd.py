"""Autograd: the tape's nodes and the engine that plays it backwards, in torch's order and with torch's accumulation.

Lifetimes follow CPython's reference counts, as torch's own follow its intrusive pointers; the engine therefore drops every
reference as soon as torch does. Facts of torch/csrc/autograd/{engine,input_buffer,accumulate_grad}: the node with the highest
sequence number runs first, a second gradient is added in place when nobody else holds the first, and a leaf takes over a
gradient that nobody else holds.
"""

import heapq
import sys
import weakref
from collections.abc import Sequence
from typing import Any

from weighbridge.base.dtypes import DType
from weighbridge.phantom.checkpoint import Handle, StopRecomputation, unpack
from weighbridge.phantom.session import Where, current
from weighbridge.phantom.tensor import Shape, Tensor, is_dense, numel

_LEAF_SEQUENCE = 1 << 60


class Node:
    """One recorded operation: what it saved, how to go back, and where its inputs came from."""

    __slots__ = ("__weakref__", "backward", "edges", "inputs", "name", "outputs", "saved", "sequence", "where")

    def __init__(self, name: str, backward: Any, outputs: int) -> None:
        self.name = name
        self.backward = backward
        self.outputs = outputs
        self.edges: list[tuple[Node | Accumulator, int] | None] = []
        self.inputs: list[tuple[Shape, DType] | None] = []
        self.saved: list[Any] = []
        self.sequence = 0
        self.where = Where("", "", "")


class Accumulator:
    """The end of an edge at a leaf: adds what arrives to the leaf's grad."""

    __slots__ = ("__weakref__", "leaf", "sequence")

    def __init__(self, leaf: Tensor) -> None:
        self.leaf = leaf
        self.sequence = _LEAF_SEQUENCE


def edge_of(tensor: Tensor) -> tuple[Node | Accumulator, int] | None:
    """Where a gradient of `tensor` goes: the node that made it, or the accumulator of a leaf."""
    if not tensor.requires_grad:
        return None
    if tensor.node is not None:
        return tensor.node, tensor.output_index
    known = tensor.accumulator() if tensor.accumulator is not None else None
    if known is None:
        known = Accumulator(tensor)
        tensor.accumulator = weakref.ref(known)
    return known, 0


def alias(tensor: Tensor) -> Tensor:
    """Another tensor over the same storage, outside the tape."""
    return Tensor(tensor.shape, tensor.dtype, tensor.storage, tensor.stride, tensor.value)


def attach(name: str, outputs: Sequence[Tensor | None], inputs: Sequence[Any], saved: Sequence[Tensor | None], backward: Any) -> None:
    """Put one operation on the tape and make its floating point outputs part of the graph."""
    session = current()
    node = Node(name, backward, len(outputs))
    for tensor in inputs:
        wanted = isinstance(tensor, Tensor) and tensor.requires_grad
        node.edges.append(edge_of(tensor) if wanted else None)
        node.inputs.append((tensor.shape, tensor.dtype) if wanted else None)
    session.sequence += 1
    node.sequence = session.sequence
    node.where = session.recorder.where
    kept: list[Any] = [alias(tensor) if tensor is not None else None for tensor in saved]
    region = session.regions[-1] if session.regions else None
    node.saved = kept if region is None else region.pack(kept)
    for index, output in enumerate(outputs):
        if output is not None and output.dtype.kind >= 2:
            output.requires_grad, output.node, output.output_index, output.is_leaf = True, node, index, False


def run_backward(loss: Tensor, gradient: Tensor | None = None) -> None:
    """Play the tape from `loss` back to the leaves, whose `grad` it fills."""
    session = current()
    root = edge_of(loss)
    if root is None:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    grad_before, autocast_before = session.grad_enabled, session.autocast
    session.grad_enabled, session.autocast = False, None
    try:
        first = Tensor(loss.shape, loss.dtype) if gradient is None else gradient
        gradient = None
        _Engine(root).run(first)
    finally:
        session.grad_enabled, session.autocast = grad_before, autocast_before


class _Engine:
    """One backward pass."""

    def __init__(self, root: tuple[Node | Accumulator, int]) -> None:
        self.root = root
        self.waiting: dict[Node | Accumulator, int] = {}
        self.buffers: dict[Node | Accumulator, list[Tensor | None]] = {}
        self.ready: list[tuple[int, int, Node | Accumulator]] = []
        self.pushed = 0
        self._count_dependencies()

    def _count_dependencies(self) -> None:
        stack = [self.root[0]]
        seen = {self.root[0]}
        while stack:
            node = stack.pop()
            for edge in getattr(node, "edges", ()):
                if edge is None:
                    continue
                target = edge[0]
                self.waiting[target] = self.waiting.get(target, 0) + 1
                if target not in seen:
                    seen.add(target)
                    stack.append(target)

    def run(self, first: Tensor) -> None:
        node, index = self.root
        buffer: list[Tensor | None] = [None] * getattr(node, "outputs", 1)
        buffer[index] = first
        del first
        self.buffers[node] = buffer
        del buffer
        self._push(node)
        del node
        while self.ready:
            _, _, node = heapq.heappop(self.ready)
            gradients = self.buffers.pop(node)
            if isinstance(node, Accumulator):
                accumulate(node.leaf, gradients)
            else:
                edges = node.edges
                results = _apply(node, gradients)
                del gradients, node
                self._distribute(edges, results)
                continue
            del gradients, node

    def _push(self, node: Node | Accumulator) -> None:
        self.pushed += 1
        heapq.heappush(self.ready, (-node.sequence, self.pushed, node))

    def _distribute(self, edges: list[Any], results: list[Tensor | None]) -> None:
        for index, edge in enumerate(edges):
            if edge is None:
                continue
            target, output = edge
            self.waiting[target] -= 1
            if index < len(results) and results[index] is not None:
                buffer = self.buffers.get(target)
                if buffer is None:
                    buffer = self.buffers[target] = [None] * getattr(target, "outputs", 1)
                _add_into(buffer, output, results, index)
                del buffer
            if self.waiting[target] == 0 and target in self.buffers:
                self._push(target)


def _apply(node: Node, gradients: list[Tensor | None]) -> list[Tensor | None]:
    """Run one node's backward, free what it saved, and make each result fit the input it belongs to."""
    session = current()
    session.recorder.where = Where("backward", node.where.module, node.name)
    needs = [edge is not None for edge in node.edges]
    saved = node.saved
    node.saved = []
    if any(type(item) is Handle for item in saved):
        saved = [unpack(item) for item in saved]
        session.recorder.where = Where("backward", node.where.module, node.name)
    function = node.backward
    if node.outputs == 1:
        gradient = gradients.pop()
        found = function(saved, gradient, needs)
        del gradient
    else:
        found = function(saved, gradients, needs)
        gradients.clear()
    node.backward = None
    saved.clear()
    results: list[Tensor | None] = [found] if found is None or isinstance(found, Tensor) else list(found)
    del found
    for index, expected in enumerate(node.inputs[: len(results)]):
        result = results[index]
        results[index] = None if expected is None or result is None else _fitted(result, *expected)
        del result
    return results


def _fitted(gradient: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """A gradient reduced to its input's shape and cast to its dtype (engine.cpp: validate_outputs)."""
    from weighbridge.phantom.operations import OPERATIONS, sum_to_shape  # noqa: PLC0415 - operations record on the tape: a cycle

    if gradient.shape != shape:
        same = numel(gradient.shape) == numel(shape)
        gradient = OPERATIONS["reshape"](gradient, shape) if same else sum_to_shape(gradient, shape)
    if gradient.dtype is not dtype:
        gradient = OPERATIONS["to"](gradient, dtype)
    return gradient


def _add_into(buffer: list[Tensor | None], output: int, results: list[Tensor | None], index: int) -> None:
    """input_buffer.cpp: the first gradient is kept as it is, a later one is added, in place where that is safe."""
    if buffer[output] is None:
        buffer[output] = results[index]
        results[index] = None
        return
    kept = buffer[output]
    assert kept is not None
    held = sys.getrefcount(kept) <= 3 and sys.getrefcount(kept.storage) <= 2 and is_dense(kept)
    if not held:
        other = results[index]
        assert other is not None
        current().spend("elementwise", kept.dtype.name, numel(kept.shape), 3 * kept.nbytes)
        total = Tensor(kept.shape, kept.dtype, None, kept.stride if is_dense(kept) else other.stride if is_dense(other) else None)
        del kept, other
        buffer[output] = total
    results[index] = None


def accumulate(leaf: Tensor, gradients: list[Tensor | None]) -> None:
    """accumulate_grad.h: a gradient nobody else holds and that lies as the leaf does is taken over, else copied; later ones add in place."""
    gradient = gradients.pop()
    assert gradient is not None
    if leaf.grad is None:
        free = sys.getrefcount(gradient.storage) <= 2
        if free and gradient.stride == leaf.stride and gradient.dtype is leaf.dtype:
            leaf.grad = gradient
        else:
            leaf.grad = Tensor(leaf.shape, leaf.dtype, None, leaf.stride)
    else:
        current().spend("elementwise", leaf.dtype.name, numel(leaf.shape), 3 * leaf.nbytes)
