"""torch.nn.init: a phantom has no values, so initialising one leaves it as it is."""

import math


def calculate_gain(nonlinearity, param=None):
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    return gains.get(nonlinearity, 1.0)


def _calculate_fan_in_and_fan_out(tensor):
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    area = 1
    for size in shape[2:]:
        area *= size
    return shape[1] * area, shape[0] * area


def _calculate_correct_fan(tensor, mode):
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode.lower() == "fan_in" else fan_out


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    return tensor


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    return tensor


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    return tensor


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    return tensor


def constant_(tensor, val):
    return tensor


def ones_(tensor):
    return tensor


def zeros_(tensor):
    return tensor


def eye_(tensor):
    return tensor


def dirac_(tensor, groups=1):
    return tensor


def xavier_uniform_(tensor, gain=1.0, generator=None):
    return tensor


def xavier_normal_(tensor, gain=1.0, generator=None):
    return tensor


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    return tensor


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    return tensor


def orthogonal_(tensor, gain=1, generator=None):
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    return tensor


uniform = uniform_
normal = normal_
constant = constant_
eye = eye_
dirac = dirac_
xavier_uniform = xavier_uniform_
xavier_normal = xavier_normal_
kaiming_uniform = kaiming_uniform_
kaiming_normal = kaiming_normal_
orthogonal = orthogonal_
sparse = sparse_
