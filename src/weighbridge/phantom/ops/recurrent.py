"""Recurrent layers by cuDNN, and the fused cells of torch.

cuDNN's reserve space isn't published; it is taken as RESERVE hidden sizes for every step, layer and direction, and said so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from weighbridge.base.dtypes import UINT8
from weighbridge.phantom import operations
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, like, low, new, spend
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
RESERVE = {"lstm": 6, "gru": 5, "rnn_tanh": 2, "rnn_relu": 2}
_ASSUMED = "cuDNN's reserve for recurrent layers is taken as {} hidden sizes a step, layer and direction"


def _flops(steps: int, weights: Sequence[Tensor]) -> int:
    return sum(2 * steps * w.shape[0] * w.shape[1] for w in weights if len(w.shape) == 2)


def _backward(flops: int) -> Any:
    def backward(saved: Saved, grads: Sequence[Tensor | None], needs: Needs) -> Gradients:
        first = next(grad for grad in grads if grad is not None)
        spend("matmul", first, 2 * flops)
        return [like(s, first.dtype) if s is not None and need else None for s, need in zip(saved, needs, strict=False)]

    return backward


def _layer(
    kind: str, x: Tensor, states: list[Tensor], weights: list[Tensor], layers: int, both: bool, batch_first: bool, trained: bool
) -> Any:
    """Run `layers` layers over (time, batch, features), or (steps, features) of a packed sequence."""
    packed = len(x.shape) == 2
    directions = 2 if both else 1
    width = states[0].shape[-1]
    hidden = weights[1].shape[0] // GATES[kind]
    x, *rest = (low(t) for t in (x, *states, *weights))
    states, weights = rest[: len(states)], rest[len(states) :]
    time_first = apply("transpose", x, 0, 1) if batch_first and not packed else x
    steps = time_first.shape[0] if packed else time_first.shape[0] * time_first.shape[1]
    out = new((*time_first.shape[:-1], width * directions), x.dtype)
    ends = [like(state) for state in states]
    kept = RESERVE[kind] * steps * layers * directions * hidden * x.dtype.itemsize if trained else 0
    reserve = new((kept,), UINT8)
    if kept:
        current().assume(_ASSUMED.format(RESERVE[kind]))
    flops = _flops(steps, weights)
    inputs = [time_first, *states, *weights]
    operations.record(f"cudnn_{kind}", [out, *ends], inputs, [*inputs, out, reserve], _backward(flops), flops=flops, kind="matmul")
    return apply("transpose", out, 0, 1) if batch_first and not packed else out, *ends


def _recurrent(kind: str) -> Callable[..., Any]:
    def run(input: Tensor, *arguments: Any, **keywords: Any) -> Any:
        del keywords
        packed = isinstance(arguments[0], Tensor) and len(input.shape) == 2
        states, weights, _, layers, _, trained, both, *rest = arguments[1:] if packed else arguments
        listed = list(states) if isinstance(states, list | tuple) else [states]
        return _layer(kind, input, listed, list(weights), layers, both, bool(rest and rest[0]), bool(trained))

    return run


for _kind in GATES:
    operation(_kind, where=("torch",))(_recurrent(_kind))


def _gates(input: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor) -> tuple[Tensor, Tensor]:
    return apply("linear", input, w_ih), apply("linear", hidden, w_hh)


@operation("lstm_cell", where=("torch",))
def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step; keeps both gate inputs, the old and new cell, and the gates' values."""
    hidden, cell = hx
    from_input, from_hidden = _gates(input, hidden, w_ih, w_hh)
    cell, *biases = (low(t) for t in (cell, b_ih, b_hh))
    new_hidden, new_cell, workspace = like(cell), like(cell), new(from_input.shape, from_input.dtype)
    gate_count = from_input.shape[-1]

    def backward(saved: Saved, grads: Sequence[Tensor | None], needs: Needs) -> Gradients:
        old_cell = saved[2]
        assert old_cell is not None
        gates = new((*old_cell.shape[:-1], gate_count), old_cell.dtype)
        bias = new((gate_count,), old_cell.dtype) if len(needs) > 3 and needs[3] else None
        del grads
        return [gates, gates, like(old_cell) if needs[2] else None, bias, bias]

    inputs = [from_input, from_hidden, cell, *biases]
    operations.record("_thnn_fused_lstm_cell", [new_hidden, new_cell], inputs, [*inputs, new_cell, workspace], backward)
    return new_hidden, new_cell


@operation("gru_cell", where=("torch",))
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step; keeps both gate inputs, the old state and five hidden sizes of workspace."""
    from_input, from_hidden = _gates(input, hx, w_ih, w_hh)
    state, *biases = (low(t) for t in (hx, b_ih, b_hh))
    out = like(state)
    workspace = new((*state.shape[:-1], 5 * state.shape[-1]), state.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        return [like(s, grad.dtype) if s is not None and need else None for s, need in zip(saved, needs, strict=False)]

    inputs = [from_input, from_hidden, state, *biases]
    operations.record("_thnn_fused_gru_cell", out, inputs, [*inputs, workspace], backward)
    return out


def _plain_cell(activation: str) -> Callable[..., Tensor]:
    def cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
        return apply(activation, apply("add", apply("linear", hx, w_hh, b_hh), apply("linear", input, w_ih, b_ih)))

    return cell


operation("rnn_tanh_cell", where=("torch",))(_plain_cell("tanh"))
operation("rnn_relu_cell", where=("torch",))(_plain_cell("relu"))
