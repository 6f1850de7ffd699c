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
from weighbridge.phantom.session import Recorder, Where, current
from weighbridge.phantom.tensor import Shape, Tensor, is_contiguous, is_dense, numel

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


def _kept(tensor: Tensor | None) -> Tensor | None:
    """What the tape holds of a tensor: another one over its storage, or a copy where an operation in place overwrites it."""
    if tensor is None:
        return None
    if tensor is current().original:
        return Tensor(tensor.shape, tensor.dtype, None, tensor.stride if is_dense(tensor) else None)
    return alias(tensor)


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
    kept: list[Any] = [_kept(tensor) for tensor in saved]
    region = session.regions[-1] if session.regions else None
    try:
        node.saved = kept if region is None else region.pack(kept)
    except StopRecomputation:
        _unmake(outputs, saved)
        raise
    for index, output in enumerate(outputs):
        if output is not None and output.dtype.kind >= 2:
            output.requires_grad, output.node, output.output_index, output.is_leaf = True, node, index, False


def _unmake(outputs: Sequence[Tensor | None], saved: Sequence[Tensor | None]) -> None:
    """A recomputation stops when the last input is saved, which is before the kernel allocates its output: take that back."""
    recorder = current().recorder
    made = {output.storage.id: output.storage for output in outputs if output is not None}
    if any(tensor is not None and tensor.storage.id in made for tensor in saved):
        return
    while recorder.events and recorder.events[-1][1] > 0 and recorder.events[-1][0] in made:
        storage = made[recorder.events.pop()[0]]
        storage.recorder = Recorder()
        storage.recorder.open = False


def run_backward(loss: Tensor | Sequence[Tensor], gradient: Tensor | Sequence[Tensor | None] | None = None) -> None:
    """Play the tape from `loss` (or several outputs) back to the leaves, whose `grad` it fills.

    The first gradients live until the end, as Tensor.backward() holds them.
    """
    session = current()
    outputs = [loss] if isinstance(loss, Tensor) else list(loss)
    given = [gradient] if gradient is None or isinstance(gradient, Tensor) else gradient
    roots = []
    for output in outputs:
        root = edge_of(output)
        if root is None:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        roots.append(root)
    before = session.grad_enabled, session.autocast, session.recorder.where
    session.grad_enabled, session.autocast = False, None
    try:
        firsts = [Tensor(out.shape, out.dtype) if one is None else one for out, one in zip(outputs, given, strict=True)]
        del outputs
        engine = _Engine([root[0] for root in roots])
        engine.start(roots, list(firsts))
        engine.run()
    finally:
        session.grad_enabled, session.autocast, session.recorder.where = before


class _Engine:
    """One backward pass."""

    def __init__(self, roots: list[Node | Accumulator]) -> None:
        self.roots = roots
        self.waiting: dict[Node | Accumulator, int] = {}
        self.buffers: dict[Node | Accumulator, list[Tensor | None]] = {}
        self.ready: list[tuple[int, int, Node | Accumulator]] = []
        self.pushed = 0
        self._count_dependencies()

    def _count_dependencies(self) -> None:
        stack = list(dict.fromkeys(self.roots))
        seen = set(stack)
        self.roots = []
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

    def start(self, roots: list[tuple[Node | Accumulator, int]], firsts: list[Tensor]) -> None:
        """Put the first gradients in, and queue the outputs that no other leads to."""
        for position, (node, index) in enumerate(roots):
            if node not in self.buffers:
                self.buffers[node] = [None] * getattr(node, "outputs", 1)
            _add_into(self.buffers[node], index, firsts, position)
        firsts.clear()
        for node in dict.fromkeys(node for node, _ in roots):
            if self.waiting.get(node, 0) == 0:
                self._push(node)
        roots.clear()

    def run(self) -> None:
        """Run nodes until none is ready."""
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            gradients = self.buffers.pop(node)
            if isinstance(node, Accumulator):
                accumulate(node.leaf, gradients)
                del gradients, node
                continue
            results = _apply(node, gradients)
            edges = node.edges
            node.edges = []
            del gradients, node
            self._distribute(edges, results)
            del edges, results

    def _push(self, node: Node | Accumulator) -> None:
        self.pushed += 1
        heapq.heappush(self.ready, (-node.sequence, self.pushed, node))

    def _distribute(self, edges: list[Any], results: list[Tensor | None]) -> None:
        for index, edge in enumerate(edges):
            if edge is None:
                continue
            target, output = edge
            self.waiting[target] -= 1
            buffer = self.buffers.get(target)
            if buffer is None:
                buffer = self.buffers[target] = [None] * getattr(target, "outputs", 1)
            if index < len(results) and results[index] is not None:
                _add_into(buffer, output, results, index)
            del buffer
            if self.waiting[target] == 0:
                self._push(target)


def _apply(node: Node, gradients: list[Tensor | None]) -> list[Tensor | None]:
    """Run one node's backward, make each result fit the input it belongs to, and free what it saved.

    What was recomputed is freed when the backward returns; what the node itself saved, and its gradients, when all fits. A node
    that no gradient reached passes none on.
    """
    if all(gradient is None for gradient in gradients):
        node.saved, node.backward = [], None
        return []
    session = current()
    session.recorder.where = Where("backward", node.where.module, node.name)
    needs = [edge is not None for edge in node.edges]
    saved = node.saved
    node.saved = []
    handles = [type(item) is Handle for item in saved]
    if any(handles):
        saved = [unpack(item) for item in saved]
        session.recorder.where = Where("backward", node.where.module, node.name)
    function = node.backward
    opened = list(saved)
    saved = [item for item, kept in zip(saved, handles, strict=True) if not kept]
    found = function(opened, gradients[0] if node.outputs == 1 else gradients, needs)
    opened.clear()
    results: list[Tensor | None] = [found] if found is None or isinstance(found, Tensor) else list(found)
    del found
    for index, expected in enumerate(node.inputs[: len(results)]):
        result = results[index]
        results[index] = None if expected is None or result is None else _fitted(result, *expected)
        del result
    node.backward = None
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


def _add_into(buffer: list[Tensor | None], output: int, results: Any, index: int) -> None:
    """input_buffer.cpp: the first gradient is kept as it is, a later one is added, in place where that is safe."""
    if buffer[output] is None:
        buffer[output] = results[index]
        results[index] = None
        return
    kept = buffer[output]
    assert kept is not None
    current().spend("elementwise", kept.dtype.name, numel(kept.shape), 3 * kept.nbytes)
    held = sys.getrefcount(kept) <= 3 and sys.getrefcount(kept.storage) <= 2 and is_dense(kept)
    if not held:
        from weighbridge.phantom.operations import elementwise_output  # noqa: PLC0415 - operations record on the tape: a cycle

        other = results[index]
        total = elementwise_output([kept, other], kept.dtype)
        del kept, other
        buffer[output] = total
    results[index] = None


def accumulate(leaf: Tensor, gradients: list[Tensor | None]) -> None:
    """accumulate_grad.h: a gradient that nobody else holds and that lies as the leaf does is taken over, else copied.

    Later ones are added in place.
    """
    gradient = gradients.pop()
    if gradient is None:
        return
    if leaf.grad is not None:
        current().spend("elementwise", leaf.dtype.name, numel(leaf.shape), 3 * leaf.nbytes)
    elif sys.getrefcount(gradient) <= 2 and _lies_like(gradient, leaf):
        leaf.grad = gradient
    else:
        current().spend("copy", leaf.dtype.name, 0, 2 * leaf.nbytes)
        leaf.grad = Tensor(leaf.shape, leaf.dtype, None, leaf.stride if is_dense(leaf) else None)


def _lies_like(gradient: Tensor, leaf: Tensor) -> bool:
    """The gradient layout contract: the leaf's own strides where these are dense, else contiguous."""
    if not is_dense(leaf):
        return is_contiguous(gradient)
    pairs = zip(gradient.shape, gradient.stride, leaf.stride, strict=True)
    return all(step != 0 if size == 1 else step == wanted for size, step, wanted in pairs)
