"""Soft maxima against torch."""

import pytest
from against_torch import T, check

from weighbridge.base.dtypes import BFLOAT16, FLOAT32
from weighbridge.phantom import OPERATIONS, Session

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_a_soft_maximum_keeps_its_result_alone(name: str, dtype: str) -> None:
    check(name, getattr(F, name), [T(2, 3, 4, dtype=dtype)], {"dim": -1})
    check(name, getattr(F, name), [T(2, 3, 4, dtype=dtype)], {"dim": 1})
    check(name, getattr(F, name), [T(2, 4, 3, dtype=dtype, order=(0, 2, 1))], {"dim": -1})


def test_a_softmax_asked_for_float32_gives_float32() -> None:
    with Session().activate():
        assert OPERATIONS["softmax"](T(2, 3, dtype="bfloat16").phantom(), -1, dtype=FLOAT32).dtype is FLOAT32


def test_autocast_runs_a_softmax_in_float32() -> None:
    with Session(autocast=BFLOAT16).activate():
        assert OPERATIONS["softmax"](T(2, 3, dtype="bfloat16").phantom(), -1).dtype is FLOAT32
