"""Convolutions, pooling, resampling and padding against torch."""

import pytest
from against_torch import T, check
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
F = torch.nn.functional
LAST = T(2, 8, 8, 4, order=(0, 3, 1, 2))
CASES = [
    ("conv1d", [T(2, 4, 9), T(6, 4, 3), T(6)], {"padding": 1}),
    ("conv1d", [T(2, 4, 9), T(6, 4, 4)], {"padding": "same"}),
    ("conv1d", [T(4, 9), T(6, 4, 3), T(6)], {"stride": 2}),
    ("conv2d", [T(2, 4, 8, 8), T(6, 2, 3, 3), T(6)], {"groups": 2, "stride": 2, "padding": (1, 0)}),
    ("conv2d", [LAST, T(6, 4, 3, 3), T(6)], {}),
    ("conv2d", [T(2, 4, 8, 8), T(4, 1, 3, 3)], {"groups": 4, "padding": "same", "dilation": 2}),
    ("conv3d", [T(2, 3, 4, 8, 8), T(6, 3, 2, 3, 3)], {}),
    ("conv_transpose1d", [T(2, 4, 9), T(4, 6, 3), T(6)], {"stride": 2, "output_padding": 1}),
    ("conv_transpose2d", [T(2, 4, 8, 8), T(4, 3, 3, 3)], {"groups": 2}),
    ("max_pool1d", [T(2, 4, 9), 2], {}),
    ("max_pool2d", [T(2, 4, 8, 8), 3], {"stride": 2, "padding": 1}),
    ("max_pool2d", [T(2, 4, 7, 7), 2], {"ceil_mode": True}),
    ("max_pool2d", [LAST, 2], {}),
    ("max_pool3d", [T(2, 4, 4, 8, 8), 2], {}),
    ("avg_pool1d", [T(2, 4, 9), 3], {"stride": 2, "padding": 1}),
    ("avg_pool2d", [T(2, 4, 8, 8), (2, 3)], {}),
    ("avg_pool2d", [LAST, 2], {"ceil_mode": True}),
    ("adaptive_avg_pool1d", [T(2, 4, 9), 3], {}),
    ("adaptive_avg_pool2d", [T(2, 4, 8, 8), 1], {}),
    ("adaptive_avg_pool2d", [T(2, 4, 8, 8), (None, 3)], {}),
    ("adaptive_max_pool2d", [T(2, 4, 8, 8), 2], {}),
    ("interpolate", [T(2, 4, 8, 8)], {"scale_factor": 2}),
    ("interpolate", [LAST], {"size": (5, 6), "mode": "bilinear", "align_corners": False}),
    ("interpolate", [T(2, 4, 8)], {"scale_factor": 1.5, "mode": "linear"}),
    ("interpolate", [T(2, 4, 8, 8)], {"size": 4, "mode": "area"}),
    ("interpolate", [T(2, 4, 8, 8)], {"size": (4, 4), "mode": "bicubic"}),
    ("grid_sample", [T(2, 4, 8, 8), T(2, 5, 6, 2)], {"align_corners": False}),
    ("pixel_shuffle", [T(2, 8, 3, 4), 2], {}),
    ("pixel_unshuffle", [T(2, 2, 6, 4), 2], {}),
    ("functional.unfold", [T(2, 4, 8, 8), 3], {"padding": 1, "stride": 2}),
    ("fold", [T(2, 36, 36), (8, 8), 3], {}),
    ("pad", [T(2, 4, 5), (1, 2)], {}),
    ("pad", [T(2, 4, 5), (1, 2, 0, -1)], {}),
    ("pad", [T(2, 4, 5), (1, 2)], {"mode": "reflect"}),
    ("pad", [T(2, 4, 5, 5), (1, 2, 1, 1)], {"mode": "replicate"}),
    ("pad", [T(2, 4, 5), (1, 2)], {"mode": "circular"}),
]


def kept_alike(name: str, args, kwargs) -> bool:
    """max_pool1d's own CPU kernel keeps what CUDA's does not; adaptive maxima and odd paddings likewise are checked by shape."""
    return name not in {"max_pool1d", "adaptive_max_pool2d"} and kwargs.get("padding") != "same" and args[0] is not LAST


@pytest.mark.filterwarnings("ignore:Using padding")
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1][0].shape}-{c[2]}")
def test_a_layer_over_space_has_torchs_layout_and_keeps_torchs_bytes(case) -> None:
    name, args, kwargs = case
    check(name, getattr(F, name.removeprefix("functional.")), args, kwargs, kept=kept_alike(name, args, kwargs))


@settings(max_examples=30, deadline=None)
@given(st.integers(5, 12), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_a_drawn_convolution_has_torchs_size(size, kernel, stride, padding, dilation) -> None:
    if dilation * (kernel - 1) >= size + 2 * padding:
        return
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    check("conv1d", F.conv1d, [T(2, 3, size), T(4, 3, kernel), T(4)], options)


@settings(max_examples=30, deadline=None)
@given(st.integers(5, 12), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_a_drawn_pool_has_torchs_size(size, kernel, stride, ceil_mode) -> None:
    check("max_pool2d", F.max_pool2d, [T(1, 2, size, size), kernel], {"stride": stride, "ceil_mode": ceil_mode}, kept=False)
