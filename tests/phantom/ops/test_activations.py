"""Activations against torch."""

import pytest
from against_torch import T, check

torch = pytest.importorskip("torch")
F = torch.nn.functional
NAMES = [
    "relu", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardswish", "hardsigmoid", "softplus", "gelu",
    "hardshrink", "softshrink", "tanhshrink", "softsign", "glu",
]  # fmt: skip


@pytest.mark.parametrize("order", [None, (0, 2, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_an_activation_keeps_what_torch_keeps(name: str, dtype: str, order) -> None:
    check(name, getattr(F, name), [T(2, 6, 4, dtype=dtype, order=order)], {})


@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "silu", "mish", "hardswish", "hardsigmoid"])
def test_an_activation_in_place_keeps_its_result_or_a_copy_of_its_input(name: str) -> None:
    def real(x):
        return getattr(F, name)(x * 1.0, inplace=True)

    def ours(x):
        from weighbridge.phantom import OPERATIONS

        return OPERATIONS[name](OPERATIONS["mul"](x, 1.0), inplace=True)

    from weighbridge.phantom import OPERATIONS

    OPERATIONS["_in_place_test"] = ours
    try:
        check("_in_place_test", real, [T(3, 4)], {})
    finally:
        del OPERATIONS["_in_place_test"]


def test_logsigmoid_keeps_its_input() -> None:
    check("logsigmoid", F.logsigmoid, [T(3, 4)], {}, kept=False)


def test_prelu_keeps_input_and_slopes() -> None:
    check("prelu", F.prelu, [T(2, 3, 4), T(3)], {})
    check("prelu", F.prelu, [T(2, 3, 4), T(1)], {})
