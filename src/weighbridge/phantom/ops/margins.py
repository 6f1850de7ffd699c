"""Losses of classes by margins, and the loss that joins the last product to cross entropy."""

from collections.abc import Callable
from typing import Any

from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, new, record, single
from weighbridge.phantom.ops.losses import reduction_of
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor


def _margin(name: str) -> Callable[..., Tensor]:
    def loss(input: Tensor, target: Tensor, *_: Any, reduction: str = "mean", **options: Any) -> Tensor:
        x = single(input)
        kept = reduction_of(reduction, options.get("size_average"), options.get("reduce"))
        source = x.shape

        def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
            del saved, needs
            return [new(source, grad.dtype)]

        out = new(x.shape[:-1] if kept == "none" else (), x.dtype)
        extra = [new(target.shape, x.dtype)] if name == "multilabel_margin_loss" else []
        return record(name, out, [x], [x, target, *extra], backward, kind="loss")

    return loss


for _name in ("multi_margin_loss", "multilabel_margin_loss"):
    operation(_name, where=("functional",))(_margin(_name))


@operation("linear_cross_entropy", where=("functional",))
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Any = None, options: Any = None, **named: Any
) -> Tensor:
    """linear, then cross_entropy: the plain two steps, though torch may run it in chunks that need less."""
    current().assume("linear_cross_entropy is taken as a product and a cross entropy, without chunks")
    del options
    named = {key: value for key, value in named.items() if value is not None}
    return apply("cross_entropy", apply("linear", input, linear_weight, linear_bias), target, **named)
