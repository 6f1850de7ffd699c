"""Optimizers and clipping as torch runs them on a GPU: the state they keep, and the memory that a step takes while it runs.

Facts of torch/optim and torch/nn/utils/clip_grad.py: state has the parameter's dtype and layout and is made in the first step that
sees a gradient; the fused AdamW keeps its step counters on the device and needs no memory to run, the foreach one keeps them on
the host and makes a list of square roots as large as the parameters.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from weighbridge.base.dtypes import FLOAT32, DType
from weighbridge.phantom.operations import temporary
from weighbridge.phantom.ops.kernels import like
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor, numel

NORM_CHUNK: Final = 65536
"""Elements of one block of the multi-tensor kernels (ForeachReduceOp.cu)."""


class Optimizer:
    """What torch.optim's optimizers share: the parameters that have gradients, and the state made for them."""

    passes = 0
    """Tensors of the parameter's size that a step reads or writes."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.state: dict[int, list[Tensor]] = {}

    def step(self) -> None:
        """Update the parameters that have gradients."""
        ready = [parameter for parameter in self.parameters if parameter.grad is not None]
        session = current()
        session.operate("optimizer step")
        for parameter in ready:
            if id(parameter) not in self.state:
                self.state[id(parameter)] = self._initial(parameter)
        self._run(ready)
        for parameter in ready:
            session.spend("optimizer", parameter.dtype.name, self.passes * numel(parameter.shape), self.passes * parameter.nbytes)

    def warm_up(self) -> None:
        """Make the state that an earlier step would have left."""
        for parameter in self.parameters:
            if id(parameter) not in self.state:
                self.state[id(parameter)] = self._initial(parameter)

    def zero_grad(self) -> None:
        """Drop the gradients (set_to_none)."""
        for parameter in self.parameters:
            parameter.grad = None

    def _initial(self, parameter: Tensor) -> list[Tensor]:
        del parameter
        return []

    def _run(self, parameters: Sequence[Tensor]) -> None:
        del parameters


class FusedAdamW(Optimizer):
    """AdamW(fused=True): one kernel. The step counter lies on the device."""

    passes = 7

    def _initial(self, parameter: Tensor) -> list[Tensor]:
        return [Tensor((), FLOAT32), like(parameter), like(parameter)]


class ForeachAdamW(Optimizer):
    """AdamW(foreach=True): lists of tensors; the square roots of the second moments are a list of their own."""

    passes = 21

    def _initial(self, parameter: Tensor) -> list[Tensor]:
        return [like(parameter), like(parameter)]

    def _run(self, parameters: Sequence[Tensor]) -> None:
        roots: list[Tensor] = []
        for group in by_dtype(parameters):
            roots = [like(self.state[id(parameter)][1]) for parameter in group]
        del roots


class SGD(Optimizer):
    """SGD(foreach=True), without weight decay: no memory to run."""

    passes = 3

    def __init__(self, parameters: Iterable[Tensor], *, weight_decay: float = 0.0) -> None:
        super().__init__(parameters)
        self.weight_decay = weight_decay

    def _run(self, parameters: Sequence[Tensor]) -> None:
        decayed: list[Tensor] = []
        for group in by_dtype(parameters) if self.weight_decay else ():
            decayed = [like(parameter.grad) for parameter in group if parameter.grad is not None]
        del decayed


class MomentumSGD(SGD):
    """SGD with momentum: one buffer a parameter, a copy of the first gradient."""

    passes = 6

    def _initial(self, parameter: Tensor) -> list[Tensor]:
        return [like(parameter if parameter.grad is None else parameter.grad)]


OPTIMIZERS: Final[dict[str, Callable[[Iterable[Tensor]], Optimizer]]] = {
    "adamw-fused": FusedAdamW, "adamw-foreach": ForeachAdamW, "sgd": SGD, "sgd-momentum": MomentumSGD,
}  # fmt: skip


def by_dtype(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Groups of one dtype, in order of first sight."""
    groups: dict[DType, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dtype, []).append(tensor)
    return list(groups.values())


def clip_grad_norm_(parameters: Iterable[Tensor]) -> Tensor | None:
    """Scale all gradients by their norm: one number for each tensor, and a few for the total. None where there is no gradient."""
    session = current()
    session.operate("clip_grad_norm_")
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return None
    norms = [norm for group in by_dtype(gradients) for norm in _norms(group)]
    stacked = Tensor((len(norms),), norms[0].dtype)
    total = Tensor((), norms[0].dtype)
    del stacked, norms
    shifted = Tensor((), total.dtype)
    inverse = Tensor((), total.dtype)
    coefficient = Tensor((), total.dtype)
    del inverse, shifted
    clamped = Tensor((), total.dtype)
    for gradient in gradients:
        session.spend("elementwise", gradient.dtype.name, numel(gradient.shape), 2 * gradient.nbytes)
    del coefficient, clamped
    return total


def _norms(gradients: Sequence[Tensor]) -> list[Tensor]:
    """_foreach_norm: partial sums of chunks, then one number a tensor."""
    session = current()
    chunks = max(-(-numel(gradient.shape) // NORM_CHUNK) for gradient in gradients)
    norms = [Tensor((), gradient.dtype) for gradient in gradients]
    with temporary(len(gradients) * chunks * FLOAT32.itemsize):
        for gradient in gradients:
            session.spend("reduction", gradient.dtype.name, 2 * numel(gradient.shape), gradient.nbytes)
    return norms
