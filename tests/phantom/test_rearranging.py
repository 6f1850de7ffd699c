"""einops' patterns on phantoms: shapes and strides worked out on paper."""

import pytest

from weighbridge.base.dtypes import FLOAT32
from weighbridge.phantom import Session, Tensor
from weighbridge.phantom.ops.rearranging import rearrange, repeat

CASES = [
    ((2, 3, 24), "b s (three h d) -> three b h s d", {"three": 3, "h": 2}, (3, 2, 2, 3, 4), (8, 72, 4, 24, 1)),
    ((2, 3, 4, 6), "... (j d) -> ... j d", {"j": 2}, (2, 3, 4, 2, 3), (72, 24, 6, 3, 1)),
    ((5, 4), "n d -> 1 n 1 d", {}, (1, 5, 1, 4), (20, 4, 4, 1)),
    ((2, 2, 3, 4), "b h s d -> b s (h d)", {}, (2, 3, 8), (24, 8, 1)),
]


@pytest.mark.parametrize(("shape", "pattern", "lengths", "expected", "strides"), CASES)
def test_axes_are_taken_apart_and_put_together(
    shape: tuple[int, ...], pattern: str, lengths: dict[str, int], expected: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    with Session().activate():
        out = rearrange(Tensor(shape, FLOAT32), pattern, **lengths)
    assert (out.shape, out.stride) == (expected, strides)


def test_rearranging_without_a_new_order_shares_the_storage() -> None:
    with Session().activate():
        source = Tensor((2, 3, 24), FLOAT32)
        assert rearrange(source, "b s (h d) -> b s h d", h=6).storage is source.storage


def test_repeat_adds_axes() -> None:
    with Session().activate():
        assert repeat(Tensor((2, 5, 3, 4), FLOAT32), "b s h d -> b s (h g) d", g=2).shape == (2, 5, 6, 4)
        assert repeat(Tensor((7, 4), FLOAT32), "... d -> ... 1 (2 d)").shape == (7, 1, 8)


def test_a_pattern_that_does_not_fit_is_refused() -> None:
    with Session().activate(), pytest.raises(ValueError, match="einops"):
        rearrange(Tensor((2, 5), FLOAT32), "b (h d) -> b h d", h=2)
