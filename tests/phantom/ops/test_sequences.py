"""Embeddings, sorting, recurrence, randomness, experts and Fourier transforms."""

import pytest
from against_torch import T, check, phantom_layout

from weighbridge.base.dtypes import BOOL
from weighbridge.base.errors import DataDependent
from weighbridge.phantom import OPERATIONS, Session, run_backward

torch = pytest.importorskip("torch")
F = torch.nn.functional


def test_an_embedding_keeps_its_indices() -> None:
    check("embedding", F.embedding, [T(2, 3, dtype="int64"), T(10, 4)], {})


@pytest.mark.parametrize(("tokens", "scratch"), [(3072, []), (3073, [3073 * 8, 3073 * 8, 3073 * 24, (307 + 100) * 8 * 4])])
def test_the_embedding_backward_sorts_above_3072_tokens(tokens, scratch) -> None:
    session = Session()
    with session.activate():
        weight = T(100, 8).phantom()
        out = OPERATIONS["embedding"](T(tokens, dtype="int64").phantom(), weight)
        start = len(session.recorder.events)
        run_backward(out, T(tokens, 8, grad=False).phantom())
    made = [size for _, size, _ in session.recorder.events[start:] if size > 0]
    assert made == [tokens * 8 * 4, *scratch, 100 * 8 * 4]


def test_one_hot_needs_to_know_how_many_classes() -> None:
    check("one_hot", F.one_hot, [T(2, 3, dtype="int64"), 5], {})
    with pytest.raises(DataDependent):
        phantom_layout("one_hot", [T(2, 3, dtype="int64")], {})


@pytest.mark.parametrize("name", ["topk", "sort", "argsort", "kthvalue"])
def test_order_has_torchs_layout(name: str) -> None:
    arguments = [T(3, 6)] if "sort" in name else [T(3, 6), 2]
    check(name, getattr(torch, name), arguments, {}, kept=name != "argsort")
    check(name, getattr(torch, name), [T(6, 3, order=(1, 0)), *arguments[1:]], {}, kept=name != "argsort")


def test_unique_of_unknown_values_is_data_dependent() -> None:
    with pytest.raises(DataDependent):
        phantom_layout("unique", [T(5, dtype="int64")], {})


def test_dropout_keeps_one_byte_an_element_on_cuda_and_nothing_at_zero() -> None:
    with Session().activate():
        x = T(3, 4, dtype="bfloat16").phantom()
        out = OPERATIONS["dropout"](x, 0.1, True)
        assert [t.dtype for t in out.node.saved] == [BOOL]
        assert OPERATIONS["dropout"](x, 0.0, True) is x
        assert OPERATIONS["dropout"](x, 0.5, False) is x


def test_grouped_products_keep_rows_experts_and_offsets() -> None:
    with Session().activate():
        rows, experts, offs = T(10, 8, dtype="bfloat16").phantom(), T(4, 8, 6, dtype="bfloat16").phantom(), T(4, dtype="int32").phantom()
        out = OPERATIONS["_grouped_mm"](rows, experts, offs=offs)
        assert out.shape == (10, 6)
        assert sum(t.nbytes for t in out.node.saved) == 2 * (80 + 192) + 16


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_gives_torchs_shapes(kind: str, batch_first: bool, bidirectional: bool) -> None:
    layer = getattr(torch.nn, kind)(4, 6, 2, batch_first=batch_first, bidirectional=bidirectional)
    expected, hidden = layer(torch.zeros(5, 3, 4))
    ends = list(hidden) if kind == "LSTM" else [hidden]
    with Session().activate():
        weights = [T(*w.shape).phantom() for w in layer._flat_weights]
        states = [T(*h.shape, grad=False).phantom() for h in ends]
        name = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind]
        got = OPERATIONS[name](
            T(5, 3, 4).phantom(), states if kind == "LSTM" else states[0], weights, True, 2, 0.0, True, bidirectional, batch_first
        )
        assert [t.shape for t in got] == [tuple(t.shape) for t in (expected, *ends)]
        run_backward(OPERATIONS["sum"](got[0]))
        assert all(w.grad is not None and w.grad.shape == w.shape for w in weights)


@pytest.mark.parametrize("kind", ["lstm_cell", "gru_cell", "rnn_tanh_cell"])
def test_a_cell_gives_torchs_shapes_and_gradients(kind: str) -> None:
    gates = {"lstm_cell": 4, "gru_cell": 3, "rnn_tanh_cell": 1}[kind]
    state = T(2, 6)
    arguments = [T(2, 4), [state, T(2, 6)] if kind == "lstm_cell" else state, T(gates * 6, 4), T(gates * 6, 6), T(gates * 6), T(gates * 6)]
    check(kind, getattr(torch, kind), arguments, {}, kept=False)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("fft", []), ("rfft", []), ("irfft", []), ("fft", [7]), ("rfft2", []), ("irfft2", []), ("fftn", []), ("ifft2", [])],
)
def test_a_fourier_transform_has_torchs_shape_and_dtype(name: str, arguments) -> None:
    real, _ = [T(2, 4, 6)], None
    expected = getattr(torch.fft, name)(torch.zeros(2, 4, 6), *arguments)
    found, _ = phantom_layout(f"fft_{name}", [*real, *arguments], {})
    assert (found[0][0], found[0][2]) == (tuple(expected.shape), str(expected.dtype)[6:])


def test_a_short_time_transform_has_torchs_shape() -> None:
    expected = torch.stft(torch.zeros(2, 100), 16, window=torch.hann_window(16), return_complex=True)
    found, _ = phantom_layout("stft", [T(2, 100), 16], {"window": T(16, grad=False), "return_complex": True})
    assert found[0][0] == tuple(expected.shape)
