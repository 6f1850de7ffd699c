"""Losses against torch."""

import pytest
from against_torch import T, check

from weighbridge.base.dtypes import BFLOAT16, FLOAT32
from weighbridge.phantom import OPERATIONS, Session

torch = pytest.importorskip("torch")
F = torch.nn.functional
CLASSES = T(4, dtype="int64")
PAIRS = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"]

CASES = [
    ("cross_entropy", [T(4, 5), CLASSES], {}),
    ("cross_entropy", [T(4, 5), CLASSES], {"reduction": "none"}),
    ("cross_entropy", [T(4, 5), CLASSES, T(5, grad=False)], {}),
    ("cross_entropy", [T(2, 5, 3), T(2, 3, dtype="int64")], {}),
    ("cross_entropy", [T(2, 5, 3, 3), T(2, 3, 3, dtype="int64")], {}),
    ("cross_entropy", [T(5), T(dtype="int64")], {}),
    ("cross_entropy", [T(4, 5), T(4, 5, grad=False)], {}),
    ("nll_loss", [T(4, 5), CLASSES], {"reduction": "sum"}),
    *[(name, [T(3, 4), T(3, 4, grad=False)], {"reduction": how}) for name in PAIRS for how in ("mean", "sum", "none")],
    ("mse_loss", [T(3, 4), T(3, 4)], {}),
    ("cosine_similarity", [T(3, 4), T(3, 4)], {}),
    ("triplet_margin_loss", [T(3, 4), T(3, 4), T(3, 4)], {}),
    ("pairwise_distance", [T(3, 4), T(3, 4)], {}),
]


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1][0].shape}-{c[2]}")
def test_a_loss_has_torchs_shape_and_keeps_torchs_bytes(case) -> None:
    name, args, kwargs = case
    check(name, getattr(F, name), args, kwargs)


def test_label_smoothing_gives_one_number() -> None:
    check("cross_entropy", F.cross_entropy, [T(4, 5), CLASSES], {"label_smoothing": 0.1}, kept=False)


def test_autocast_takes_log_softmax_in_the_logits_dtype_and_the_loss_in_float32() -> None:
    with Session(autocast=BFLOAT16).activate():
        loss = OPERATIONS["cross_entropy"](T(4, 5, dtype="bfloat16").phantom(), T(4, dtype="int64").phantom())
        assert loss.dtype is FLOAT32


def test_ctc_keeps_log_alpha_of_time_by_twice_the_target_and_one() -> None:
    with Session().activate():
        out = OPERATIONS["ctc_loss"](T(6, 2, 5).phantom(), T(2, 3, dtype="int64").phantom(), [6, 6], [3, 2], reduction="none")
        assert out.node.saved[3].shape == (2, 6, 7)
