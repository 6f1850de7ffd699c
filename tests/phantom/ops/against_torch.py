"""Runs one operation twice: on phantoms, and on torch's CPU tensors; compares layouts and what autograd keeps."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import torch

import weighbridge.phantom.ops
from weighbridge.base.dtypes import BY_NAME
from weighbridge.phantom import OPERATIONS, Session, Tensor

Argument = Any

for _family in pkgutil.iter_modules(weighbridge.phantom.ops.__path__):
    importlib.import_module(f"weighbridge.phantom.ops.{_family.name}")


class T:
    """A tensor argument: shape, dtype, whether it is trained, and a permutation that is applied to it."""

    def __init__(self, *shape: int, dtype: str = "float32", grad: bool = True, order: tuple[int, ...] | None = None, high: int = 2) -> None:
        self.shape, self.dtype, self.order, self.high = shape, dtype, order, high
        self.grad = grad and "float" in dtype

    def real(self) -> torch.Tensor:
        shape = self.shape
        kind = getattr(torch, self.dtype)
        base = torch.rand(shape).to(kind) if kind.is_floating_point else torch.randint(0, self.high, shape).to(kind)
        if self.grad:
            base.requires_grad_()
        return base.permute(self.order) if self.order else base

    def phantom(self) -> Tensor:
        base = Tensor(self.shape, BY_NAME[self.dtype])
        base.requires_grad = self.grad
        return OPERATIONS["permute"](base, self.order) if self.order else base


def tensors_in(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple | list) or (hasattr(value, "__iter__") and not isinstance(value, str)):
        for item in value:
            yield from tensors_in(item, kind)


def check(name: str, function: Callable[..., Any], args: list[Argument], kwargs: dict[str, Any], *, kept: bool = True) -> None:
    """Same layouts and (unless the CPU kernel keeps something else) the same bytes kept as torch; the backward fits its inputs."""
    layouts, nbytes = torch_layout(function, args, kwargs)
    ours, ours_bytes = phantom_layout(name, args, kwargs)
    assert ours == layouts
    if kept:
        assert ours_bytes == nbytes
    gradients_fit(name, args, kwargs)


def build(arguments: Any, real: bool) -> Any:
    if isinstance(arguments, T):
        return arguments.real() if real else arguments.phantom()
    if isinstance(arguments, list | tuple):
        return type(arguments)(build(item, real) for item in arguments)
    return arguments


def torch_layout(function: Callable[..., Any], args: list[Argument], kwargs: dict[str, Any]) -> tuple[list[Any], int]:
    """Layouts of the results, and bytes of the storages that autograd newly keeps alive."""
    torch.manual_seed(0)
    inputs, named = build(args, True), {k: build(v, True) for k, v in kwargs.items()}
    own = {t.untyped_storage().data_ptr() for t in tensors_in([inputs, list(named.values())], torch.Tensor)}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        held.append(tensor)
        return tensor

    held: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = function(*inputs, **named)
    found = [(tuple(o.shape), o.stride() if o.numel() else None, str(o.dtype)[6:]) for o in tensors_in(outputs, torch.Tensor)]
    return found, sum(kept.values())


def phantom_layout(name: str, args: list[Argument], kwargs: dict[str, Any]) -> tuple[list[Any], int]:
    """The same of a phantom operation."""
    with Session().activate():
        inputs, named = build(args, False), {k: build(v, False) for k, v in kwargs.items()}
        own = {t.storage.id for t in tensors_in([inputs, list(named.values())], Tensor)}
        outputs = OPERATIONS[name](*inputs, **named)
        results = list(tensors_in(outputs, Tensor))
        found = [(o.shape, o.stride if 0 not in o.shape else None, o.dtype.name) for o in results]
        return found, sum(size for key, size in saved_storages(results).items() if key not in own)


def saved_storages(results: list[Tensor]) -> dict[int, int]:
    """Storages that the tape behind these results holds, by id."""
    kept: dict[int, int] = {}
    stack, seen = [r.node for r in results if r.node is not None], set()
    while stack:
        node = stack.pop()
        if id(node) in seen or not hasattr(node, "saved"):
            continue
        seen.add(id(node))
        kept.update({s.storage.id: s.storage.nbytes for s in node.saved if isinstance(s, Tensor)})
        stack += [edge[0] for edge in node.edges if edge is not None]
    return kept


def gradients_fit(name: str, args: list[Argument], kwargs: dict[str, Any]) -> None:
    """Play the backward pass and check that every trained input has a gradient of its shape and dtype."""
    from weighbridge.phantom import run_backward

    with Session().activate():
        inputs, named = build(args, False), {k: build(v, False) for k, v in kwargs.items()}
        leaves = [t for t in tensors_in([inputs, list(named.values())], Tensor) if t.is_leaf and t.requires_grad]
        outputs = [o for o in tensors_in(OPERATIONS[name](*inputs, **named), Tensor) if o.requires_grad]
        if not outputs:
            return
        run_backward(outputs[0], Tensor(outputs[0].shape, outputs[0].dtype))
        for leaf in leaves:
            assert leaf.grad is None or (leaf.grad.shape, leaf.grad.dtype) == (leaf.shape, leaf.dtype)
