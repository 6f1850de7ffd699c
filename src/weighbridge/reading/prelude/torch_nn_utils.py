"""torch.nn.utils: helpers around layers, among them the older weight norm and spectral norm."""

import torch
import torch.nn.functional as F
from torch.nn import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Parameter


def skip_init(module_cls, *args, **kwargs):
    kwargs.pop("device", None)
    return module_cls(*args, **kwargs)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    return torch.zeros(())


def clip_grad_value_(parameters, clip_value, foreach=None):
    return None


def parameters_to_vector(parameters):
    return torch.cat([parameter.view(-1) for parameter in parameters])


def weight_norm(module, name="weight", dim=0):
    weight = getattr(module, name)
    axis = -1 if dim is None else dim
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(torch.norm_except_dim(weight, 2, axis).data))
    module.register_parameter(name + "_v", Parameter(weight.data))

    def compute(module, inputs):
        setattr(module, name, torch._weight_norm(getattr(module, name + "_v"), getattr(module, name + "_g"), axis))

    compute(module, ())
    module.register_forward_pre_hook(compute)
    return module


def remove_weight_norm(module, name="weight"):
    return module


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    height = weight.shape[dim]
    module.register_buffer(name + "_u", weight.new_empty(height))
    module.register_buffer(name + "_v", weight.new_empty(weight.numel() // height))

    def compute(module, inputs):
        original = getattr(module, name + "_orig")
        matrix = original
        if dim != 0:
            matrix = matrix.permute(dim, *[d for d in range(matrix.dim()) if d != dim])
        matrix = matrix.reshape(height, -1)
        u, v = getattr(module, name + "_u"), getattr(module, name + "_v")
        if module.training:
            with torch.no_grad():
                for _ in range(n_power_iterations):
                    v = F.normalize(torch.mv(matrix.t(), u), dim=0, eps=eps)
                    u = F.normalize(torch.mv(matrix, v), dim=0, eps=eps)
                u, v = u.clone(), v.clone()
        setattr(module, name, original / torch.dot(u, torch.mv(matrix, v)))

    module.register_forward_pre_hook(compute)
    return module


def remove_spectral_norm(module, name="weight"):
    return module
