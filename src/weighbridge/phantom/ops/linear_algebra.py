"""Distances and factorisations: shapes, what is kept, and gradients of their inputs' sizes. Kernel workspaces aren't modelled."""

from collections.abc import Callable
from typing import Any

from weighbridge.base.dtypes import INT32
from weighbridge.phantom import operations
from weighbridge.phantom.operations import broadcast_shapes, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, new, record, single
from weighbridge.phantom.tensor import Tensor, contiguous_strides, numel

MODULE = ("torch",)


def _filled(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
    return [new(s.shape, grad.dtype) if s is not None and need else None for s, need in zip(saved, needs, strict=False)]


@operation("cdist", where=MODULE)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Distances of all pairs of rows; float32 under autocast."""
    del p, compute_mode
    a, b = single(x1), single(x2)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError("X1 and X2 must have the same number of columns")
    out = new((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2]), a.dtype)
    return record("cdist", out, [a, b], [a, b, out], _filled, flops=3 * numel(out.shape) * a.shape[-1], kind="matmul")


def _column_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*strides[:-2], strides[-1], strides[-2])


def _square(name: str) -> Callable[..., Tensor]:
    def function(A: Tensor, *_: Any, **__: Any) -> Tensor:  # noqa: N803 - torch's own name
        if len(A.shape) < 2 or A.shape[-1] != A.shape[-2]:
            raise RuntimeError(f"linalg.{name}: A must be batches of square matrices")
        size = A.shape[-1]
        out = new(A.shape, A.dtype, _column_major(A.shape))

        def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
            del needs, saved
            return [new(grad.shape, grad.dtype)]

        return record(name, out, [A], [out], backward, flops=2 * numel(A.shape) * size, kind="matmul")

    return function


operation("inverse", "linalg_inv", "linalg_inv_ex")(_square("inv"))
operation("cholesky", "linalg_cholesky")(_square("cholesky"))
operation("matrix_exp", "linalg_matrix_exp")(_square("matrix_exp"))


@operation("linalg_solve", where=MODULE)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803 - torch's own names
    """The solution of A X = B; keeps A's factors, pivots and the result."""
    del left
    vector = len(B.shape) == 1 or (len(B.shape) == len(A.shape) - 1 and B.shape == A.shape[:-1])
    shape = B.shape if vector else broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[-2:]
    factors, pivots = new(A.shape, A.dtype), new(A.shape[:-1], INT32)
    out = new(shape, B.dtype, None if vector else _column_major(shape))
    return record("solve", out, [A, B], [A, B, factors, pivots, out], _filled, flops=numel(A.shape) * A.shape[-1], kind="matmul")


@operation("linalg_solve_triangular", where=MODULE)
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:  # noqa: N803 - torch's own names
    """The solution of a triangular system; keeps A and the result."""
    del upper, left, unitriangular
    shape = broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[-2:]
    out = new(shape, B.dtype, _column_major(shape))
    sizes = (A.shape, B.shape)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [new(size, grad.dtype) if need else None for size, need in zip(sizes, needs, strict=True)]

    return record("solve_triangular", out, [A, B], [A, out], backward, flops=numel(A.shape) * B.shape[-1], kind="matmul")


@operation("triangular_solve", where=("torch", "method"))
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:  # noqa: N803 - torch's own name
    """The retired spelling of solve_triangular."""
    return solve_triangular(A, input, upper=upper), apply("clone", A)


def _factors(name: str, shapes: Callable[[tuple[int, ...]], list[tuple[int, ...]]]) -> Callable[..., tuple[Tensor, ...]]:
    """A factorisation into several tensors, all of which it keeps."""

    def function(A: Tensor, *_: Any, **__: Any) -> tuple[Tensor, ...]:  # noqa: N803 - torch's own name
        outputs = [new(shape, A.dtype) for shape in shapes(A.shape)]
        source = A.shape

        def backward(saved: Saved, grads: Any, needs: Needs) -> Gradients:
            del needs
            first = next(grad for grad in [*grads, *saved] if grad is not None)
            return [new(source, first.dtype)]

        flops = 4 * numel(A.shape) * min(A.shape[-2:])
        operations.record(name, outputs, [A], [A, *outputs], backward, flops=flops, kind="matmul")
        return tuple(outputs)

    return function


def _least(shape: tuple[int, ...]) -> int:
    return min(shape[-2:])


operation("svd", "linalg_svd")(_factors("svd", lambda s: [(*s[:-1], _least(s)), (*s[:-2], _least(s)), (*s[:-2], _least(s), s[-1])]))
operation("qr", "linalg_qr")(_factors("qr", lambda s: [(*s[:-1], _least(s)), (*s[:-2], _least(s), s[-1])]))
operation("linalg_eigh")(_factors("eigh", lambda s: [s[:-1], s]))
operation("slogdet", "linalg_slogdet")(_factors("slogdet", lambda s: [s[:-2], s[:-2]]))


@operation("det", "linalg_det", "logdet")
def determinant(A: Tensor) -> Tensor:  # noqa: N803 - torch's own name
    """The determinant, by a factorisation that is kept."""
    out, factors = new(A.shape[:-2], A.dtype), new(A.shape, A.dtype)
    source = A.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    return record("det", out, [A], [A, out, factors], backward, flops=numel(A.shape) * A.shape[-1], kind="matmul")


@operation("pinverse", "linalg_pinv")
def pseudo_inverse(A: Tensor, *_: Any, **__: Any) -> Tensor:  # noqa: N803 - torch's own name
    """The pseudo-inverse; keeps itself and its input."""
    out = new((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    source = A.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    return record("pinv", out, [A], [A, out], backward, flops=8 * numel(A.shape) * min(A.shape[-2:]), kind="matmul")
