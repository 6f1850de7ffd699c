"""Matrix products: how each of torch's spellings comes down to mm, addmm, bmm or baddbmm, and what those keep.

A product keeps a factor only if the other one needs a gradient (torchgen's derivatives.yaml: mm, addmm, bmm, baddbmm).
One multiply-add counts as two FLOPs.
"""

from collections.abc import Sequence
from typing import Any

from weighbridge.base.dtypes import promote
from weighbridge.phantom.operations import broadcast_shapes, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, add_in_place, apply, lowered, new, record, scratch, spend
from weighbridge.phantom.tensor import Storage, Tensor, is_contiguous, numel


def _blas_ready(tensor: Tensor) -> bool:
    """Whether cuBLAS reads the last two dimensions where they lie (else torch makes a contiguous copy for the call)."""
    rows, columns = tensor.shape[-2:]
    row_step, column_step = tensor.stride[-2:]
    return (column_step == 1 and row_step >= max(1, columns)) or (row_step == 1 and column_step >= max(1, rows))


def _blas_copies(*tensors: Tensor) -> list[Storage]:
    """The contiguous copies cuBLAS needs for the time of one call."""
    return scratch(*(numel(t.shape) * t.dtype.itemsize for t in tensors if not _blas_ready(t)))


def _column_major(tensor: Tensor) -> bool:
    return tensor.stride[-2] == 1 and tensor.stride[-1] == tensor.shape[-2]


def _gradient_stride(shape: tuple[int, ...], column_major: bool) -> tuple[int, ...] | None:
    """Torch gives the gradient of a column-major factor in the same layout (FunctionsManual: mm_mat1_grad)."""
    return (1, shape[0]) if column_major else None


def matrix_product(left: Tensor, right: Tensor, bias: Tensor | None = None, *, bias_scaled: bool = False) -> Tensor:
    """mm, or addmm if a bias is given: (m, k) by (k, n)."""
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left.shape} and {right.shape})")
    rows, inner, columns = *left.shape, right.shape[1]
    if bias is not None:
        broadcast_shapes(bias.shape, (rows, columns))
    copies = _blas_copies(left, right)
    out = new((rows, columns), promote(left.dtype, right.dtype))
    del copies
    flops = 2 * rows * inner * columns
    strides = _gradient_stride(left.shape, _column_major(left)), _gradient_stride(right.shape, _column_major(right))
    shapes = left.shape, right.shape
    first = 0 if bias is None else 1

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        sides: Gradients = [None, None]
        for side in (0, 1) if first else (1, 0):  # in the order of the formulas' names: mat1, mat2; mat2, self
            if needs[first + side]:
                spend("matmul", grad, flops)
                sides[side] = new(shapes[side], grad.dtype, strides[side])
        if not first:
            return sides
        scaled = bias_scaled and needs[0]
        return [apply("mul", grad, 1.0) if scaled else grad if needs[0] else None, *sides]

    kept = [left if right.requires_grad else None, right if left.requires_grad else None]
    inputs = [left, right] if bias is None else [bias, left, right]
    return record("mm" if bias is None else "addmm", out, inputs, kept, backward, flops=flops, kind="matmul")


def batched_product(left: Tensor, right: Tensor, added: Tensor | None = None) -> Tensor:
    """bmm, or baddbmm if something is added: (b, m, k) by (b, k, n)."""
    if len(left.shape) != 3 or len(right.shape) != 3 or left.shape[2] != right.shape[1] or left.shape[0] != right.shape[0]:
        raise RuntimeError(f"batch1 and batch2 shapes cannot be multiplied ({left.shape} and {right.shape})")
    batch, rows, inner, columns = *left.shape, right.shape[2]
    copies = _blas_copies(left, right)
    out = new((batch, rows, columns), promote(left.dtype, right.dtype))
    del copies
    flops = 2 * batch * rows * inner * columns
    shapes = left.shape, right.shape
    first = 0 if added is None else 1

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        sides: Gradients = [None, None]
        for side in (0, 1) if first else (1, 0):  # batch1, batch2; mat2, self
            if needs[first + side]:
                spend("matmul", grad, flops)
                sides[side] = new(shapes[side], grad.dtype)
        return [grad if needs[0] else None, *sides] if first else sides

    kept = [left if right.requires_grad else None, right if left.requires_grad else None]
    inputs = [left, right] if added is None else [added, left, right]
    return record("bmm" if added is None else "baddbmm", out, inputs, kept, backward, flops=flops, kind="matmul")


@operation("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Input @ weight.T + bias: addmm when the input can be flattened in place, else a product and an addition in place."""
    x, weight, bias = lowered(input, weight, bias)
    if x.shape[-1] != weight.shape[-1]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({x.shape} and {weight.shape} transposed)")
    if bias is not None and len(weight.shape) == 2 and len(x.shape) >= 2 and (len(x.shape) == 2 or is_contiguous(x)):
        if len(x.shape) == 2:
            return matrix_product(x, apply("t", weight), bias)
        flat = apply("reshape", x, (numel(x.shape[:-1]), x.shape[-1]))
        return apply("view", matrix_product(flat, apply("t", weight), bias), (*x.shape[:-1], weight.shape[0]))
    out = matmul(x, apply("t", weight) if len(weight.shape) == 2 else weight)
    return out if bias is None else add_in_place(out, bias)


def _folds(left: Tensor, right: Tensor) -> bool:
    """Whether matmul flattens the larger side into one mm instead of expanding the smaller into a bmm (LinearAlgebra.cpp)."""
    left_larger = len(left.shape) >= len(right.shape)
    large, small = (left, right) if left_larger else (right, left)
    if len(large.shape) < 3 or len(small.shape) > 2:
        return False
    if small.requires_grad:
        return True
    if not left_larger and len(small.shape) == 2:
        return False
    if numel(large.shape) == 0:
        return True
    shape, stride = large.shape, large.stride
    if not left_larger:
        shape, stride = (*shape[:-2], shape[-1], shape[-2]), (*stride[:-2], stride[-1], stride[-2])
    return all(stride[i] == stride[i + 1] * shape[i + 1] for i in range(len(shape) - 2))


def _folded(left: Tensor, right: Tensor) -> Tensor:
    swapped = len(left.shape) < len(right.shape)
    if swapped:
        large = apply("transpose", right, -2, -1)
        small = apply("t", left) if len(left.shape) == 2 else left
    else:
        large, small = left, right
    flat = apply("reshape", large, (numel(large.shape[:-1]), large.shape[-1]))
    if len(small.shape) == 1:
        return apply("view", mv(flat, small), large.shape[:-1])
    out = apply("view", matrix_product(flat, small), (*large.shape[:-1], small.shape[1]))
    return apply("contiguous", apply("transpose", out, -2, -1)) if swapped else out


def _expanded(left: Tensor, right: Tensor) -> Tensor:
    left_vector, right_vector = len(left.shape) == 1, len(right.shape) == 1
    first = apply("unsqueeze", left, 0) if left_vector else left
    second = apply("unsqueeze", right, 1) if right_vector else right
    batch = broadcast_shapes(first.shape[:-2], second.shape[:-2])
    if first.shape[-1] != second.shape[-2]:
        raise RuntimeError(f"matmul: {left.shape} by {right.shape}")
    sides = []
    for side in (first, second):
        wide = side if side.shape[:-2] == batch else apply("expand", side, (*batch, *side.shape[-2:]))
        sides.append(wide if len(wide.shape) == 3 else apply("reshape", wide, (numel(batch), *wide.shape[-2:])))
    out = batched_product(sides[0], sides[1])
    shape = batch + (() if left_vector else (first.shape[-2],)) + (() if right_vector else (second.shape[-1],))
    return out if out.shape == shape else apply("view", out, shape)


@operation("matmul", "linalg_matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of any two ranks, lowered as torch does it."""
    left, right = lowered(input, other)
    ranks = len(left.shape), len(right.shape)
    if 0 in ranks:
        raise RuntimeError("both arguments to matmul need to be at least 1D")
    if ranks == (1, 1):
        return dot(left, right)
    if ranks == (2, 1):
        return mv(left, right)
    if ranks == (1, 2):
        return apply("squeeze", matrix_product(apply("unsqueeze", left, 0), right), 0)
    if ranks == (2, 2):
        return matrix_product(left, right)
    return _folded(left, right) if _folds(left, right) else _expanded(left, right)


@operation("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """A product of two matrices."""
    return matrix_product(*lowered(input, mat2))


@operation("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A product of two batches of matrices."""
    return batched_product(*lowered(input, mat2))


@operation("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Beta times input plus alpha times a product."""
    del alpha
    added, left, right = lowered(input, mat1, mat2)
    return matrix_product(left, right, added, bias_scaled=beta != 1)


@operation("baddbmm")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Beta times input plus alpha times a batch of products."""
    del beta, alpha
    added, left, right = lowered(input, batch1, batch2)
    return batched_product(left, right, added)


@operation("addbmm")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Input plus the sum of a batch of products, one addmm after another."""
    del beta, alpha
    added, left, right = lowered(input, batch1, batch2)
    shapes, flops = (left.shape, right.shape), 2 * numel(left.shape) * right.shape[2]

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        found = [new(shape, grad.dtype) if need else None for shape, need in zip(shapes, needs[1:], strict=True)]
        spend("matmul", grad, flops * sum(needs[1:]))
        return [grad if needs[0] else None, *found]

    out = new((left.shape[1], right.shape[2]), promote(left.dtype, right.dtype))
    kept = [left if right.requires_grad else None, right if left.requires_grad else None]
    return record("addbmm", out, [added, left, right], kept, backward, flops=flops, kind="matmul")


@operation("addmv")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Input plus a matrix by a vector."""
    del beta, alpha
    added, matrix, vector = lowered(input, mat, vec)
    return apply("add", mv(matrix, vector), added)


@operation("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix by a vector."""
    matrix, vector = lowered(input, vec)
    if len(matrix.shape) != 2 or matrix.shape[1:] != vector.shape:
        raise RuntimeError(f"mv: {matrix.shape} by {vector.shape}")
    flops, shape = 2 * numel(matrix.shape), matrix.shape
    out = new(shape[:1], promote(matrix.dtype, vector.dtype))

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [new(shape, grad.dtype) if needs[0] else None, new(shape[1:], grad.dtype) if needs[1] else None]

    kept = [matrix if vector.requires_grad else None, vector if matrix.requires_grad else None]
    return record("mv", out, [matrix, vector], kept, backward, flops=flops, kind="matmul")


@operation("dot", "vdot", "linalg_vecdot")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors."""
    out = new((), promote(input.dtype, tensor.dtype))
    shape = input.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [new(shape, grad.dtype) if need else None for need in needs]

    kept = [input if tensor.requires_grad else None, tensor if input.requires_grad else None]
    return record("dot", out, [input, tensor], kept, backward, flops=2 * numel(shape), kind="matmul")


@operation("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every product of two vectors' elements."""
    return apply("mul", apply("unsqueeze", input, 1), vec2)


@operation("inner")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products over the last dimension of both."""
    if not input.shape or not other.shape:
        return apply("mul", input, other)
    return tensordot(input, other, ([-1], [-1]))


@operation("chain_matmul", "linalg_multi_dot")
def multi_dot(*matrices: Any) -> Tensor:
    """A chain of matrices, multiplied from the left."""
    chain: list[Tensor] = [m for given in matrices for m in (given if isinstance(given, list | tuple) else [given])]
    out = chain[0]
    for matrix in chain[1:]:
        out = matmul(out, matrix)
    return out


@operation("tensordot")
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """A product over several dimensions, as one mm of permuted copies."""
    if isinstance(dims, int):
        over_a, over_b = list(range(len(a.shape) - dims, len(a.shape))), list(range(dims))
    else:
        over_a, over_b = ([d % len(t.shape) for d in listed] for t, listed in ((a, dims[0]), (b, dims[1])))
    free_a = [d for d in range(len(a.shape)) if d not in over_a]
    free_b = [d for d in range(len(b.shape)) if d not in over_b]
    shape = tuple(a.shape[d] for d in free_a) + tuple(b.shape[d] for d in free_b)
    inner_size = numel(tuple(a.shape[d] for d in over_a))
    left = apply("reshape", apply("permute", a, tuple(free_a + over_a)), (-1, inner_size))
    right = apply("reshape", apply("permute", b, tuple(over_b + free_b)), (inner_size, -1))
    return apply("reshape", mm(left, right), shape)


@operation("kron")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product."""
    rank = max(len(input.shape), len(other.shape))
    first = (1,) * (rank - len(input.shape)) + input.shape
    second = (1,) * (rank - len(other.shape)) + other.shape
    left = apply("reshape", input, tuple(n for size in first for n in (size, 1)))
    right = apply("reshape", other, tuple(n for size in second for n in (1, size)))
    return apply("reshape", apply("mul", left, right), tuple(x * y for x, y in zip(first, second, strict=True)))


@operation("bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 W x2, one product of three tensors (torch's _trilinear keeps all three)."""
    out = new((*input1.shape[:-1], weight.shape[0]), promote(input1.dtype, weight.dtype))
    shapes, flops = (input1.shape, input2.shape, weight.shape), 2 * numel(input1.shape[:-1]) * numel(weight.shape)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [new(shape, grad.dtype) if need else None for shape, need in zip(shapes, needs, strict=True)]

    tensors = [input1, input2, weight]
    out = record("_trilinear", out, tensors, list(tensors), backward, flops=flops, kind="matmul")
    return out if bias is None else add_in_place(out, bias)
