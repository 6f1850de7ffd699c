"""Products of many experts at once, and in eight bits. Neither is on autocast's lists: experts run in their own dtype."""

from typing import Any

from weighbridge.base.dtypes import BFLOAT16
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, new, record, spend
from weighbridge.phantom.tensor import Tensor, numel


@operation("_grouped_mm", "grouped_mm", where=("torch", "functional"))
def grouped_mm(input: Tensor, mat2: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """Rows in groups, each group by its own expert's matrix (2-D by 3-D, 3-D by 3-D, or the 2-D by 2-D of its backward)."""
    ranks = len(input.shape), len(mat2.shape)
    if ranks == (2, 2):
        groups = offs.shape[0] if offs is not None else 1
        shape: tuple[int, ...] = (groups, input.shape[0], mat2.shape[1])
    elif ranks == (3, 3):
        shape = (*input.shape[:2], mat2.shape[2])
    else:
        shape = (input.shape[-2], mat2.shape[-1])
    if input.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match, got {input.shape} and {mat2.shape}")
    out = new(shape, out_dtype or input.dtype)
    flops = 2 * numel(input.shape) * mat2.shape[-1]
    shapes, strides = (input.shape, mat2.shape), (input.stride, mat2.stride)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        found: Gradients = []
        for shape_of, stride, need in zip(shapes, strides, needs, strict=True):
            if need:
                spend("matmul", grad, flops)
            found.append(new(shape_of, grad.dtype, stride) if need else None)
        return found

    kept = [input if mat2.requires_grad else None, mat2 if input.requires_grad else None, offs]
    out = record("_grouped_mm", out, [input, mat2], kept, backward, flops=flops, kind="matmul")
    return out if bias is None else apply("add", out, bias)


@operation("_scaled_mm", "scaled_mm", where=("torch",))
def scaled_mm(input: Tensor, mat2: Tensor, scale_a: Any = None, scale_b: Any = None, *_: Any, out_dtype: Any = None, **__: Any) -> Tensor:
    """A product of eight-bit matrices with scales; it has no gradient."""
    del scale_a, scale_b
    out = new((input.shape[0], mat2.shape[1]), out_dtype or BFLOAT16)
    flops = 2 * numel(input.shape) * mat2.shape[1]

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, grad
        return [None for _ in needs]

    return record("_scaled_mm", out, [input, mat2], [], backward, flops=flops, kind="matmul")
