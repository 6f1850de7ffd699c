"""Soft maxima: they keep their result alone."""

from typing import Any

from weighbridge.base.dtypes import FLOAT16, FLOAT32, DType
from weighbridge.phantom.operations import OPERATIONS, dimension, operation, to_dtype
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, like, new, opt_dtype, record, scratch
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor, is_contiguous


def _backward_to(dtype: DType) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        held = scratch(0 if is_contiguous(grad) else grad.nbytes)
        found = new(grad.shape, dtype)
        del held
        return [found]

    return backward


def soft(name: str, input: Tensor, dim: Any, dtype: Any) -> Tensor:
    """One kernel over `dim`. float16 to float32 is fused; any other asked-for dtype is a cast before (SoftMax.cpp)."""
    wanted = opt_dtype(input, dtype)
    tensor = input
    if wanted is not None and wanted is not input.dtype and not (input.dtype is FLOAT16 and wanted is FLOAT32):
        tensor = to_dtype(input, wanted)
    if tensor.dtype.kind < 2:
        raise RuntimeError(f'"{name}" not implemented for {tensor.dtype.name}')
    dimension(tensor, _implicit(input) if dim is None else dim)
    held = scratch(0 if is_contiguous(tensor) else tensor.nbytes)
    out = new(tensor.shape, wanted or tensor.dtype)
    del held
    return record(name, out, [tensor], [out], _backward_to(tensor.dtype))


def _implicit(tensor: Tensor) -> int:
    return 0 if len(tensor.shape) in {0, 1, 3} else 1


@operation("softmax", "_softmax", "special_softmax")
def softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exp over its sum."""
    return soft("_softmax", input, dim, _asked(_stacklevel, dtype))


@operation("log_softmax", "_log_softmax", "special_log_softmax")
def log_softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of a softmax in one kernel."""
    return soft("_log_softmax", input, dim, _asked(_stacklevel, dtype))


def _asked(third: Any, dtype: Any) -> Any:
    """torch.softmax takes the dtype third, F.softmax a stack level."""
    return third if isinstance(third, DType) else dtype


@operation("softmin", where=("functional",))
def softmin(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Softmax of the negative."""
    return softmax(apply("neg", input), dim, _stacklevel, dtype)


@operation("_safe_softmax", where=("torch",))
def safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """softmax, with rows that are all minus infinity set to zero; like softmax it keeps its result alone."""
    with current().without_grad():
        out = softmax(input, dim, 3, dtype)
        masked = apply("eq", input, float("-inf"))
        whole = apply("all", masked, dim, True)
        del masked
        found = apply("where", whole, new((), out.dtype), out)
    return record("_safe_softmax", found, [input], [found], _backward_to(input.dtype))


@operation("gumbel_softmax", where=("functional",))
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A softmax of logits with noise; hard gives its one-hot with the soft one's gradient."""
    del eps
    noise = apply("neg", apply("log", like(logits)))
    soft_sample = softmax(apply("div", apply("add", logits, noise), tau), dim)
    if not hard:
        return soft_sample
    OPERATIONS["max"](soft_sample, dim, True)
    one_hot = like(soft_sample)
    return apply("add", apply("sub", one_hot, apply("detach", soft_sample)), soft_sample)
