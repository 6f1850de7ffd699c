"""Storages, sessions, promotion, layouts, values, costs and optimizers."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.base.dtypes import BFLOAT16, BOOL, BY_NAME, FLOAT16, FLOAT32, INT64
from weighbridge.base.errors import DataDependent
from weighbridge.phantom import OPERATIONS, Session, Tensor, current
from weighbridge.phantom.operations import elementwise_strides, item, propagate, result_type, sum_to_shape
from weighbridge.phantom.optimizers import OPTIMIZERS, clip_grad_norm_
from weighbridge.phantom.tensor import contiguous_strides
from weighbridge.reading.glue.operations import load_operations

torch = pytest.importorskip("torch")
load_operations()
KINDS = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def test_a_storage_is_an_event_when_it_is_made_and_when_it_is_dropped() -> None:
    with Session().activate() as session:
        session.phase = "forward"
        tensor = Tensor((3, 5), FLOAT32)
        view = OPERATIONS["reshape"](tensor, 15)
        del tensor
        assert [size for _, size, _ in session.recorder.events] == [60]
        del view
        assert [size for _, size, _ in session.recorder.events] == [60, -60]


def test_an_event_says_phase_module_and_operation() -> None:
    with Session().activate() as session:
        session.phase = "forward"
        session.enter_module("layers.0.mlp")
        OPERATIONS["exp"](Tensor((4,), FLOAT32))
        session.leave_module()
        assert session.recorder.events[-1][2][:2] == ("forward", "layers.0.mlp")
        assert session.recorder.events[-1][2].operation == "exp"
        assert session.module_path == ""


def test_a_closed_session_records_no_late_frees() -> None:
    session = Session()
    with session.activate():
        tensor = Tensor((4,), FLOAT32)
    session.close()
    with Session().activate() as other:
        del tensor
        gc.collect()
        assert other.recorder.events == []
    assert len(session.recorder.events) == 1


def test_a_free_goes_to_the_session_that_allocated() -> None:
    session = Session()
    with session.activate():
        tensor = Tensor((4,), FLOAT32)
    with Session().activate() as other:
        del tensor
        assert other.recorder.events == []
    assert [size for _, size, _ in session.recorder.events] == [16, -16]


def operand(kind: str, rank: int) -> Tensor:
    return Tensor((2,) * rank, BY_NAME[kind])


OPERANDS = st.one_of(st.tuples(st.sampled_from(KINDS), st.integers(0, 2)), st.sampled_from([True, 3, 2.5]))


@given(OPERANDS, OPERANDS)
@settings(max_examples=300, deadline=None)
def test_two_operands_promote_as_in_torch(first: object, second: object) -> None:
    def real(value: object) -> object:
        return torch.empty((2,) * value[1], dtype=getattr(torch, value[0])) if isinstance(value, tuple) else value

    def ours(value: object) -> object:
        return operand(*value) if isinstance(value, tuple) else value

    if not isinstance(first, tuple) and not isinstance(second, tuple):
        return
    with Session().activate():
        assert result_type(ours(first), ours(second)).name == str(torch.result_type(real(first), real(second)))[6:]


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(SHAPES, st.data())
@settings(max_examples=300, deadline=None)
def test_element_wise_results_are_laid_out_as_by_torch(shape: list[int], data: st.DataObject) -> None:
    """Permuted, sliced and broadcast operands in any combination."""
    operands = []
    for _ in range(data.draw(st.integers(1, 3))):
        own = [data.draw(st.sampled_from([size, 1])) for size in shape]
        order = data.draw(st.permutations(range(len(own))))
        step = data.draw(st.sampled_from([1, 2]))
        base = torch.empty([own[index] * (step if index == order[0] else 1) for index in order])
        operands.append(base[::step].permute([order.index(index) for index in range(len(own))]) if step > 1 or order else base)
    operands = [x for x in operands if len(x.shape) == len(shape)]
    total = operands[0]
    for other in operands[1:]:
        total = total + other
    two = operands[:2]
    expected = (two[0] + two[1]) if len(two) == 2 else two[0] * 2
    with Session().activate():
        ours = [Tensor(tuple(x.shape), FLOAT32, None, x.stride()) for x in two]
        found, stride = elementwise_strides(ours)
    assert found == tuple(expected.shape)
    assert significant(found, stride or contiguous_strides(found)) == significant(tuple(expected.shape), expected.stride())


def significant(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[int]:
    return [step for size, step in zip(shape, stride, strict=True) if size > 1]


@given(SHAPES, st.data())
@settings(max_examples=200, deadline=None)
def test_reshape_is_a_view_exactly_where_it_is_one_in_torch(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    total = math.prod(shape)
    parts = data.draw(st.sampled_from([[total], [1, total], [total, 1], shape, list(reversed(shape)), [shape[0], total // shape[0]]]))
    real = torch.empty(shape).permute(order)
    with Session().activate() as session:
        ours = OPERATIONS["permute"](Tensor(tuple(shape), FLOAT32), *order)
        session.recorder.events.clear()
        reshaped = OPERATIONS["reshape"](ours, parts)
        assert (reshaped.storage is ours.storage) == (real.reshape(parts).untyped_storage().data_ptr() == real.untyped_storage().data_ptr())
        assert significant(reshaped.shape, reshaped.stride) == significant(tuple(parts), real.reshape(parts).stride())


BOUND = st.one_of(st.none(), st.integers(-6, 6))
KEY = st.lists(
    st.one_of(st.builds(slice, BOUND, BOUND, st.sampled_from([None, 1, 2])), st.integers(-2, 1), st.none(), st.just([0, 1])), max_size=4
)


@given(KEY)
@settings(max_examples=300, deadline=None)
def test_any_key_gives_torchs_shape_strides_and_values(key: list[object]) -> None:
    values = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    real = torch.from_numpy(values.copy())
    with Session().activate():
        ours = Tensor((2, 3, 4), INT64, None, None, values)
        try:
            expected = real[tuple(key)]
        except (IndexError, ValueError):
            with pytest.raises((IndexError, ValueError)):
                OPERATIONS["__getitem__"](ours, tuple(key))
            return
        found = OPERATIONS["__getitem__"](ours, tuple(key))
    assert found.shape == tuple(expected.shape)
    assert significant(found.shape, found.stride) == significant(tuple(expected.shape), expected.stride()) or 0 in found.shape
    assert found.value is None or np.array_equal(found.value, expected.numpy())


def test_a_constant_of_any_size_keeps_its_value_without_its_elements() -> None:
    with Session().activate():
        ones = OPERATIONS["ones"](1 << 20, 1 << 10, dtype=INT64)
        total = OPERATIONS["add"](ones, 1)
        assert total.value is not None
        assert total.value.strides == (0, 0)
        assert item(OPERATIONS["select"](OPERATIONS["select"](total, 0, 5), 0, 7)) == 2


def test_a_value_too_large_to_keep_is_forgotten_not_guessed() -> None:
    with Session().activate():
        line = OPERATIONS["arange"](1 << 12)
        square = OPERATIONS["mul"](OPERATIONS["unsqueeze"](line, 0), OPERATIONS["unsqueeze"](line, 1))
        assert square.value is None
        with pytest.raises(DataDependent):
            item(OPERATIONS["amax"](square))


def test_a_numpy_function_with_another_shape_gives_no_value() -> None:
    with Session().activate():
        out = Tensor((2,), INT64)
        assert propagate(out, np.sum, Tensor((2,), INT64, None, None, np.arange(2))).value is None


def test_where_masks_hold_is_known_assumed_or_even() -> None:
    with Session().activate() as session:
        known = Tensor((4,), BOOL, None, None, np.array([True, False, True, True]))
        assert OPERATIONS["nonzero"](known).shape == (3, 1)
        assert session.assumptions == []
        routed = OPERATIONS["one_hot"](Tensor((64, 2), INT64), 8)
        expert = OPERATIONS["__getitem__"](OPERATIONS["permute"](routed, 2, 1, 0), 3)
        assert OPERATIONS["where"](expert)[0].shape == (16,)  # 128 choices among 8
        assert session.assumptions == ["tokens are routed evenly to experts"]
        assert OPERATIONS["__getitem__"](Tensor((5, 7), FLOAT32), Tensor((5,), BOOL)).shape == (5, 7)
        assert len(session.assumptions) == 2


def test_activations_are_assumed_to_be_finite_aloud() -> None:
    with Session().activate() as session:
        bad = OPERATIONS["any"](OPERATIONS["isinf"](Tensor((1 << 12, 1 << 12), FLOAT16)))
        assert item(bad) is False
        assert session.assumptions == ["activations are finite"]


def test_writing_keeps_small_values_up_to_date() -> None:
    with Session().activate():
        table = OPERATIONS["zeros"](2, 3, dtype=INT64)
        OPERATIONS["__setitem__"](table, (0, slice(1, None)), 7)
        assert table.value is not None
        assert table.value.tolist() == [[0, 7, 7], [0, 0, 0]]
        OPERATIONS["add_"](table, 1)
        assert table.value.tolist() == [[1, 8, 8], [1, 1, 1]]
        OPERATIONS["__setitem__"](table, 0, Tensor((3,), INT64))
        assert table.value is None


def test_costs_are_the_bytes_read_and_written() -> None:
    with Session().activate() as session:
        OPERATIONS["add"](Tensor((8, 4), FLOAT32), Tensor((4,), FLOAT32))
        assert session.costs == {("elementwise", "float32", 32, 4 * (32 + 32 + 4)): 1}


def test_summing_to_a_shape_undoes_broadcasting() -> None:
    with Session().activate():
        assert sum_to_shape(Tensor((5, 4, 3), FLOAT32), (4, 1)).shape == (4, 1)
        assert sum_to_shape(Tensor((5, 1, 3), FLOAT32), (1, 3)).shape == (1, 3)


def test_a_session_of_its_own_records_nothing_where_none_is_active() -> None:
    assert not current().recorder.open or current().recorder.events is not None


def parameters(session: Session, kind: str = "float32") -> list[Tensor]:
    del session
    made = [Tensor((1024, 256), BY_NAME[kind]), Tensor((256,), BY_NAME[kind])]
    for parameter in made:
        parameter.requires_grad = True
        parameter.grad = Tensor(parameter.shape, parameter.dtype)
    return made


def step_of(name: str, kind: str = "float32") -> tuple[int, int]:
    """Bytes that a first and a second step take at most above what is there before, and state left by the first."""
    with Session().activate() as session:
        optimizer = OPTIMIZERS[name](parameters(session, kind))
        session.recorder.events.clear()
        optimizer.step()
        state = sum(size for _, size, _ in session.recorder.events)
        session.recorder.events.clear()
        optimizer.step()
        return state, peak([size for _, size, _ in session.recorder.events])


def peak(sizes: list[int]) -> int:
    return max((sum(sizes[: index + 1]) for index in range(len(sizes))), default=0)


ELEMENTS = 1024 * 256 + 256


@pytest.mark.parametrize(
    ("name", "state", "temporary"),
    [
        ("adamw-fused", 2 * 4 * ELEMENTS + 2 * 4, 0),
        ("adamw-foreach", 2 * 4 * ELEMENTS, 4 * ELEMENTS),
        ("sgd", 0, 0),
        ("sgd-momentum", 4 * ELEMENTS, 0),
    ],
)
def test_an_optimizer_keeps_and_takes_what_torchs_does(name: str, state: int, temporary: int) -> None:
    """State by torch.optim's _init_group; the step counter lies on the device for fused=True only."""
    assert step_of(name) == (state, temporary)


def test_state_has_the_parameters_type() -> None:
    assert step_of("adamw-foreach", "bfloat16") == (2 * 2 * ELEMENTS, 2 * ELEMENTS)


def test_a_warm_optimizer_has_the_state_of_a_step_before() -> None:
    with Session().activate() as session:
        optimizer = OPTIMIZERS["adamw-fused"](parameters(session))
        optimizer.warm_up()
        session.recorder.events.clear()
        optimizer.step()
        assert session.recorder.events == []
        optimizer.zero_grad()
        assert sum(size for _, size, _ in session.recorder.events) == -4 * ELEMENTS


def test_clipping_takes_one_number_a_tensor_and_leaves_one() -> None:
    with Session().activate() as session:
        made = parameters(session)
        session.recorder.events.clear()
        total = clip_grad_norm_(made)
        assert total is not None
        assert sum(size for _, size, _ in session.recorder.events) == 4
        assert peak([size for _, size, _ in session.recorder.events]) < 4096
        assert clip_grad_norm_([Tensor((3,), BFLOAT16)]) is None
