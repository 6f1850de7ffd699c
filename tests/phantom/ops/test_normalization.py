"""Norms against torch (in float32, where the CPU's statistics have CUDA's dtype)."""

import pytest
from against_torch import T, check

from weighbridge.base.dtypes import BFLOAT16, FLOAT32
from weighbridge.phantom import OPERATIONS, Session

torch = pytest.importorskip("torch")
F = torch.nn.functional

CASES = [
    ("layer_norm", F.layer_norm, [T(2, 3, 4), (4,), T(4), T(4)], {}, True),
    ("layer_norm", F.layer_norm, [T(2, 3, 4), (3, 4), T(3, 4)], {}, True),
    ("layer_norm", F.layer_norm, [T(2, 3, 4), (4,)], {}, True),
    ("layer_norm", F.layer_norm, [T(2, 4, 3, order=(0, 2, 1)), (4,), T(4), T(4)], {}, True),
    ("group_norm", F.group_norm, [T(2, 6, 5), 3, T(6), T(6)], {}, True),
    ("group_norm", F.group_norm, [T(2, 6, 5, 5), 2], {}, True),
    ("batch_norm", F.batch_norm, [T(4, 3, 5), T(3, grad=False), T(3, grad=False), T(3), T(3), True], {}, True),
    ("batch_norm", F.batch_norm, [T(4, 3, 5, 5), T(3, grad=False), T(3, grad=False), T(3), T(3), False], {}, True),
    ("batch_norm", F.batch_norm, [T(4, 3), T(3, grad=False), T(3, grad=False), T(3), T(3), True], {}, True),
    ("batch_norm", F.batch_norm, [T(4, 5, 5, 3, order=(0, 3, 1, 2)), T(3, grad=False), T(3, grad=False), T(3), T(3), True], {}, True),
    ("instance_norm", F.instance_norm, [T(2, 3, 5, 5), None, None, T(3), T(3)], {}, False),
    ("normalize", F.normalize, [T(2, 3)], {}, True),
    ("normalize", F.normalize, [T(2, 3, 4)], {"dim": -1}, True),
    ("local_response_norm", F.local_response_norm, [T(2, 4, 5, 5), 2], {}, False),
    ("rms_norm", F.rms_norm, [T(2, 3, 4), (4,), T(4)], {}, False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[2][0].shape}")
def test_a_norm_has_torchs_layout_and_keeps_torchs_bytes(case) -> None:
    check(*case[:4], kept=case[4])


def test_layer_norm_runs_in_float32_under_autocast() -> None:
    with Session(autocast=BFLOAT16).activate():
        out = OPERATIONS["layer_norm"](T(2, 4, dtype="bfloat16").phantom(), (4,), T(4).phantom(), T(4).phantom())
        assert out.dtype is FLOAT32


def test_the_statistics_of_a_bfloat16_layer_norm_are_float32() -> None:
    with Session().activate():
        out = OPERATIONS["layer_norm"](T(2, 4, dtype="bfloat16").phantom(), (4,), T(4, dtype="bfloat16").phantom())
        assert [s.dtype for s in out.node.saved[3:]] == [FLOAT32, FLOAT32]


def test_weight_norm_gives_the_weights_own_shape() -> None:
    check("_weight_norm", torch._weight_norm, [T(4, 3, 2), T(4, 1, 1)], {}, kept=False)
