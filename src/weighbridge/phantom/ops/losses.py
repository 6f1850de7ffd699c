"""Losses: the fused kernels, and the composites that torch writes in other operations. Nearly all run in float32 under autocast."""

from collections.abc import Callable
from typing import Any

from weighbridge.base.dtypes import INT64
from weighbridge.phantom.operations import broadcast_shapes, elementwise_output, operation, result_type
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, new, record, scratch, single
from weighbridge.phantom.tensor import Tensor, numel

LOSS = ("functional",)


def reduction_of(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction, from its retired spelling where that is used."""
    if size_average is not None or reduce is not None:
        return "none" if reduce is False else "sum" if size_average is False else "mean"
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """apply_loss_reduction."""
    return loss if reduction == "none" else apply("mean" if reduction == "mean" else "sum", loss)


@operation("nll_loss", where=LOSS)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood; keeps log-probabilities, target and total weight, and its gradient is as large as the input."""
    del ignore_index
    reduction = reduction_of(reduction, size_average, reduce)
    x, scale = single(input), single(weight)
    if len(x.shape) == 3 or len(x.shape) > 4:
        x = apply("reshape", apply("contiguous", x), (x.shape[0], x.shape[1], 1, -1))
        flat = apply("reshape", apply("contiguous", target), (x.shape[0], 1, -1))
        loss = _nll(x, flat, scale, reduction)
        return loss if reduction != "none" else apply("view", loss, target.shape)
    expected = x.shape[:1] + x.shape[2:] if len(x.shape) > 1 else ()
    if target.shape != expected:
        raise ValueError(f"Expected input batch_size to match target batch_size, got {x.shape} and {target.shape}")
    return _nll(x, target, scale, reduction)


def _nll(x: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    out = new(target.shape if reduction == "none" else (), x.dtype)
    total = new((), x.dtype)
    source = x.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    return record("nll_loss", out, [x], [x, target, weight, total], backward, kind="loss")


@operation("cross_entropy", "cross_entropy_loss", where=("functional", "torch"))
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """log_softmax in the input's own dtype, then nll_loss; with soft targets a product and a sum."""
    reduction = reduction_of(reduction, size_average, reduce)
    classes = 1 if len(input.shape) > 1 else 0
    log_probabilities = apply("log_softmax", input, classes, dtype=input.dtype)
    if target.shape == input.shape and target.dtype.kind == 2:
        return _soft_targets(log_probabilities, target, weight, classes, reduction, label_smoothing)
    loss = nll_loss(log_probabilities, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return loss
    scored = log_probabilities if weight is None else apply("mul", log_probabilities, weight)
    smooth = apply("neg", apply("sum", scored, classes))
    ignored = apply("eq", target, ignore_index)
    smooth = apply("masked_fill", smooth, ignored, 0.0)
    if reduction != "none":
        smooth = apply("sum", smooth)
        if reduction == "mean":
            smooth = apply("div", smooth, new((), INT64))
    kept = apply("mul", loss, 1 - label_smoothing)
    return apply("add", kept, apply("mul", smooth, label_smoothing / input.shape[classes]))


def _soft_targets(
    log_probabilities: Tensor, target: Tensor, weight: Tensor | None, classes: int, reduction: str, label_smoothing: float
) -> Tensor:
    if label_smoothing:
        target = apply("add", apply("mul", target, 1 - label_smoothing), label_smoothing / log_probabilities.shape[classes])
    terms = apply("mul", log_probabilities, target)
    if weight is not None:
        terms = apply("mul", terms, weight)
    if reduction == "none":
        return apply("neg", apply("sum", terms, classes))
    total = apply("neg", apply("sum", terms))
    return total if reduction == "sum" else apply("div", total, numel(terms.shape) // terms.shape[classes])


def _two_gradients(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
    return [
        elementwise_output([source, grad], source.dtype) if source is not None and need else None
        for source, need in zip(saved, needs, strict=False)
    ]


def _pair_loss(name: str) -> Callable[..., Tensor]:
    """A fused loss of two tensors: the unreduced loss is a temporary."""

    def loss(input: Tensor, target: Tensor, *arguments: Any, reduction: str = "mean", **options: Any) -> Tensor:
        named = [argument for argument in arguments if isinstance(argument, str)]
        reduction = reduction_of(named[0] if named else reduction, options.get("size_average"), options.get("reduce"))
        x, y = single(input), single(target)
        dtype = result_type(x, y)
        shape = broadcast_shapes(x.shape, y.shape)
        x, y = (t if t.shape == shape else apply("expand", t, shape) for t in (x, y))
        each = elementwise_output([x, y], dtype)
        out = each
        if reduction != "none":
            out = new((), dtype)
        del each
        return record(name, out, [x, y], [x, y], _two_gradients, flops=3 * numel(shape), kind="loss")

    return loss


for _name in ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"):
    operation(_name, where=LOSS)(_pair_loss(_name))


@operation("l1_loss", where=LOSS)
def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Tensor:
    """The mean of |x - y|, in three operations."""
    del weight
    gap = apply("abs", apply("sub", single(input), single(target)))
    return reduced(gap, reduction_of(reduction, size_average, reduce))


@operation("binary_cross_entropy", where=LOSS)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Of probabilities; keeps input, target and weight."""
    each = elementwise_output([input], input.dtype)
    out = each if reduction_of(reduction, size_average, reduce) == "none" else new((), input.dtype)
    del each
    return record(
        "binary_cross_entropy", out, [input, target], [input, target, weight], _two_gradients, flops=6 * numel(input.shape), kind="loss"
    )


@operation("binary_cross_entropy_with_logits", where=("functional", "torch"))
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Of logits; keeps input, target and weights, and makes two temporaries of the input's size."""
    x, y, scale, positive = single(input), single(target), single(weight), single(pos_weight)
    if x.shape != y.shape:
        raise ValueError(f"Target size ({y.shape}) must be the same as input size ({x.shape})")
    size = elementwise_output([x], x.dtype)
    held = scratch(size.nbytes)
    out = size if reduction_of(reduction, size_average, reduce) == "none" else new((), x.dtype)
    del held, size
    saved = [x, y, scale, positive]
    return record("binary_cross_entropy_with_logits", out, [x, y], saved, _two_gradients, flops=8 * numel(x.shape), kind="loss")


@operation("kl_div", where=("functional", "torch"))
def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from a target, in other operations."""
    reduction = reduction_of(reduction, size_average, reduce)
    x, y = single(input), single(target)
    known = log_target
    each = apply("mul", apply("exp", y), apply("sub", y, x)) if known else apply("sub", apply("xlogy", y, y), apply("mul", y, x))
    if reduction == "batchmean":
        return apply("div", apply("sum", each), x.shape[0] if x.shape else 1)
    return reduced(each, reduction)


@operation("ctc_loss", where=("functional", "torch"))
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification by torch's own kernel; keeps log_alpha (batch, time, 2 targets + 1).

    The longest target is taken as long as the padded targets are; without padding, as all of them together.
    """
    del input_lengths, blank, zero_infinity
    time, batch = log_probs.shape[0], log_probs.shape[1] if len(log_probs.shape) == 3 else 1
    longest = targets.shape[-1] if len(targets.shape) == 2 else _longest(target_lengths, targets.shape[0])
    losses = new((batch,) if len(log_probs.shape) == 3 else (), log_probs.dtype)
    log_alpha = new((batch, time, 2 * longest + 1), log_probs.dtype)
    alpha_bytes, source = log_alpha.nbytes, log_probs.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        log_beta = scratch(alpha_bytes)
        found = new(source, grad.dtype)
        del log_beta
        return [found]

    saved = [log_probs, targets, losses, log_alpha]
    losses = record("ctc_loss", losses, [log_probs], saved, backward, flops=6 * numel(log_alpha.shape), kind="loss")
    if reduction == "mean":
        lengths = new(losses.shape, losses.dtype)
        return apply("mean", apply("div", losses, lengths))
    return reduced(losses, reduction)


def _longest(lengths: Any, total: int) -> int:
    if isinstance(lengths, Tensor):
        return int(lengths.value.max()) if lengths.value is not None and lengths.value.size else total
    return max(lengths) if isinstance(lengths, list | tuple) and lengths else total


@operation("cosine_similarity", where=("functional", "torch"))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The sum of a product of two normalised tensors."""
    del eps
    sides = []
    for side in (single(x1), single(x2)):
        length = apply("clone", apply("norm", side, 2, dim, True))
        sides.append(apply("div", side, length))
    return apply("sum", apply("mul", *sides), dim)


@operation("pairwise_distance", where=("functional", "torch"))
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of a difference over the last dimension."""
    return apply("norm", apply("add", apply("sub", x1, x2), eps), p, -1, keepdim)


@operation("cosine_embedding_loss", where=LOSS)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """1 - cos for pairs, and what is above the margin for strangers."""
    x, y = single(input1), single(input2)
    dim = 1 if len(x.shape) > 1 else 0
    product = apply("sum", apply("mul", x, y), dim)
    squares = [apply("add", apply("sum", apply("mul", side, side), dim), 1e-8) for side in (x, y)]
    cosine = apply("div", product, apply("sqrt", apply("mul", *squares)))
    zeros = new(cosine.shape, cosine.dtype)
    pairs = apply("where", apply("eq", target, 1), apply("rsub", cosine, 1), zeros)
    strangers = apply("where", apply("eq", target, -1), apply("clamp_min", apply("sub", cosine, margin), 0), zeros)
    return reduced(apply("add", pairs, strangers), reduction_of(reduction, size_average, reduce))


@operation("margin_ranking_loss", where=LOSS)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """What is above the margin of an ordered difference."""
    gap = apply("mul", apply("neg", target), apply("sub", single(input1), single(input2)))
    return reduced(apply("clamp_min", apply("add", gap, margin), 0), reduction_of(reduction, size_average, reduce))


@operation("hinge_embedding_loss", where=LOSS)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The input for pairs, what is left to the margin for strangers."""
    x = single(input)
    zeros = new(x.shape, x.dtype)
    strangers = apply("where", apply("ne", target, 1), apply("clamp_min", apply("rsub", x, margin), 0), zeros)
    pairs = apply("where", apply("ne", target, -1), x, zeros)
    return reduced(apply("add", strangers, pairs), reduction_of(reduction, size_average, reduce))


@operation("triplet_margin_loss", where=LOSS)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """How much nearer the positive is than the negative."""
    a, near_side, far_side = single(anchor), single(positive), single(negative)
    near, far = pairwise_distance(a, near_side, p, eps), pairwise_distance(a, far_side, p, eps)
    if swap:
        far = apply("minimum", far, pairwise_distance(near_side, far_side, p, eps))
    gap = apply("clamp_min", apply("sub", apply("add", near, margin), far), 0)
    return reduced(gap, reduction_of(reduction, size_average, reduce))


@operation("gaussian_nll_loss", where=LOSS)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """The negative log likelihood of a normal distribution."""
    del full, eps
    gap = apply("pow", apply("sub", input, target), 2)
    each = apply("mul", apply("add", apply("log", apply("clone", var)), apply("div", gap, var)), 0.5)
    return reduced(each, reduction)


@operation("poisson_nll_loss", where=LOSS)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, *_: Any, reduction: str = "mean", **__: Any
) -> Tensor:
    """The negative log likelihood of a Poisson distribution."""
    del full
    x, y = single(input), single(target)
    each = apply("sub", apply("exp", x), apply("mul", y, x)) if log_input else apply("sub", x, apply("mul", y, apply("log", x)))
    return reduced(each, reduction)


@operation("multilabel_soft_margin_loss", where=LOSS)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *_: Any, reduction: str = "mean", **__: Any
) -> Tensor:
    """A binary cross entropy for each class, averaged over classes."""
    hit = apply("mul", target, apply("logsigmoid", input))
    miss = apply("mul", apply("rsub", target, 1), apply("logsigmoid", apply("neg", input)))
    each = apply("neg", apply("add", hit, miss))
    if weight is not None:
        each = apply("mul", each, weight)
    return reduced(apply("mean", each, -1), reduction)
