"""Point-wise activations: what each keeps, out of place and in place (torchgen's derivatives.yaml).

In place, an activation whose derivative is written in its input keeps a copy of that input.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weighbridge.phantom.operations import charge, dimension, elementwise_output, operation, propagate
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, like, low, new, record, single
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Activation:
    """What is kept out of place and in place (`input` or `output`), FLOPs an element, autocast's fp32 list."""

    keeps: str = "input"
    keeps_in_place: str = "input"
    flops: int = 4
    fp32: bool = False
    function: Callable[..., Any] | None = None


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation("output", "output", 1, function=lambda x: np.maximum(x, 0)),
    "relu6": Activation("input", "output", 2, function=lambda x: np.clip(x, 0, 6)),
    "hardtanh": Activation("input", "output", 2),
    "leaky_relu": Activation("input", "output", 2),
    "elu": Activation("input", "output"), "selu": Activation("input", "output"), "celu": Activation("input", "output"),
    "threshold": Activation(flops=1), "silu": Activation(), "mish": Activation(flops=6), "hardswish": Activation(),
    "hardsigmoid": Activation(), "softplus": Activation(fp32=True), "gelu": Activation(flops=8), "hardshrink": Activation(flops=1),
    "softshrink": Activation(flops=1), "logsigmoid": Activation(),
}  # fmt: skip


def _one_gradient(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
    del needs
    return [elementwise_output([grad, saved[0]], grad.dtype)]


def _activation(name: str, rule: Activation) -> Callable[..., Tensor]:
    def run(tensor: Tensor) -> Tensor:
        x = single(tensor) if rule.fp32 else tensor
        out = elementwise_output([x], x.dtype)
        if rule.function is not None:
            propagate(out, rule.function, x)
        if x.dtype.kind < 2:
            charge("elementwise", [out], [x])
            return out
        kept = x if rule.keeps == "input" else out
        flops = rule.flops * (out.nbytes // out.dtype.itemsize)
        return record(name, out, [x], [kept], _one_gradient, flops=flops)

    def in_place(tensor: Tensor) -> Tensor:
        tensor.value = None
        if not (tensor.requires_grad and current().grad_enabled):
            charge("elementwise", [tensor], [tensor])
            return tensor
        kept = tensor
        if rule.keeps_in_place == "input":
            kept = like(tensor)
            charge("copy", [kept], [tensor])
        return record(f"{name}_", tensor, [tensor], [kept], _one_gradient)

    def function(input: Tensor, *parameters: Any, inplace: bool = False, **_: Any) -> Tensor:
        placed = inplace or (bool(parameters) and parameters[-1] is True)
        return in_place(input) if placed else run(input)

    operation(f"{name}_")(lambda tensor, *_, **__: in_place(tensor))
    return function


for _name, _rule in ACTIVATIONS.items():
    operation(_name)(_activation(_name, _rule))


@operation("log_sigmoid", where=("functional",))
def log_sigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    return apply("logsigmoid", input)


@operation("tanhshrink", where=("functional",))
def tanhshrink(input: Tensor) -> Tensor:
    """X - tanh(x)."""
    return apply("sub", input, apply("tanh", input))


@operation("softsign", where=("functional",))
def softsign(input: Tensor) -> Tensor:
    """X / (1 + |x|)."""
    return apply("div", input, apply("add", apply("abs", input), 1))


@operation("glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other; keeps the whole input."""
    place = dimension(input, dim)
    if input.shape[place] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {place} is size {input.shape[place]}")
    shape = tuple(size // 2 if index == place else size for index, size in enumerate(input.shape))
    source = input.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    half = Tensor(shape, input.dtype, input.storage, input.stride)
    return record("glu", elementwise_output([half], input.dtype), [input], [input], backward)


@operation("prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """A leaky relu whose slope is trained: its backward makes a slope gradient of the input's size before summing it."""
    x, slope = low(input), low(weight)
    channels = slope.shape[0] if slope.shape else 1
    if len(slope.shape) == 1 and channels > 1:
        slope = apply("view", slope, tuple(channels if index == 1 else 1 for index in range(max(len(x.shape), 2)))[: len(x.shape)])
    out = elementwise_output([x], x.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [like(grad) if need else None for need in needs]

    return record("prelu", out, [x, slope], [x, slope], backward)


@operation("rrelu", where=("torch", "functional"))
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """A leaky relu with random slopes in training; keeps the slopes and its input."""
    del lower, upper
    if not training:
        return apply("leaky_relu", input, inplace=inplace)
    noise = like(input)
    out = elementwise_output([input], input.dtype)
    return record("rrelu", out, [input], [input, noise], _one_gradient)
