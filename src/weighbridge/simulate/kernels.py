"""Device memory that CUDA kernels allocate inside themselves, which no dispatched operation shows."""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
CUBLAS_WORKSPACE = 8_519_680  # 8.125 MiB for each thread that multiplies (sm80); forward and backward are two
EMBEDDING_SORT_TOKENS = 3072  # above this embedding's backward sorts the indices


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _flash_backward(args: tuple[Any, ...]) -> list[int]:
    query, key = args[1], args[2]
    batch, heads, length, width = query.shape
    rows = _round_up(length, 128)
    temporaries = [batch * heads * rows * 4, batch * heads * rows * _round_up(width, 32 if width <= 128 else 64) * 4]
    if key.shape[1] != heads:  # grouped queries: gradients of keys and values for every query head first
        temporaries += [batch * key.shape[2] * heads * width * query.element_size()] * 2
    return temporaries


def _efficient_backward(args: tuple[Any, ...]) -> list[int]:
    query, key = args[1], args[2]
    batch, heads, length, width = query.shape
    temporaries = [batch * heads * length * 4]
    if query.dtype != torch.float32:
        temporaries.append(batch * heads * _round_up(length, 64) * _round_up(width, 32) * 4)
        if width > 128:
            temporaries.append(2 * batch * heads * _round_up(key.shape[2], 64) * _round_up(width, 32) * 4)
    return temporaries


def _embedding_backward(args: tuple[Any, ...]) -> list[int]:
    grad, indices, rows = args[0], args[1], args[2]
    tokens = indices.numel()
    if tokens <= EMBEDDING_SORT_TOKENS:
        return []
    partial_sums = tokens // 10 + min(tokens, rows)
    return [tokens * 8, tokens * 8, tokens * 24, partial_sums * grad.shape[-1] * 4]


TEMPORARIES: dict[Any, Callable[[tuple[Any, ...]], list[int]]] = {
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,  # noqa: SLF001  # torch's own name
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,  # noqa: SLF001  # torch's own name
    aten.embedding_dense_backward.default: _embedding_backward,
}


def _ctc_forward(log_probs: Any, targets: Any, *_rest: Any, **_options: Any) -> tuple[Any, Any]:
    """The loss of each sample and the log-alpha table over all states of the longest target."""
    length, batch, _ = log_probs.shape
    longest = targets.shape[-1] if targets.dim() == 2 else targets.numel() // batch
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, length, 2 * longest + 1))


# Operations that torch cannot run on fake CUDA tensors at all.
MISSING: dict[Any, Callable[..., Any]] = {
    aten._use_cudnn_ctc_loss.Tensor: lambda *_args: False,  # noqa: SLF001  # torch's own name
    aten._use_cudnn_ctc_loss.default: lambda *_args: False,  # noqa: SLF001  # torch's own name
    aten._use_miopen_ctc_loss.Tensor: lambda *_args: False,  # noqa: SLF001  # torch's own name
    aten._ctc_loss.Tensor: _ctc_forward,  # noqa: SLF001  # torch's own name
    aten._ctc_loss.default: _ctc_forward,  # noqa: SLF001  # torch's own name
    aten._ctc_loss_backward.Tensor: lambda _grad, log_probs, *_rest: torch.empty_like(log_probs),  # noqa: SLF001  # torch's own name
    aten._ctc_loss_backward.default: lambda _grad, log_probs, *_rest: torch.empty_like(log_probs),  # noqa: SLF001  # torch's own name
}
