"""Adapters as PEFT computes them. Interpreted text, never imported: `torch` and `nn` are phantoms here.

Facts of peft 0.21 (tuners/lora/layer.py): the input is cast to the adapter's dtype, the update is added to the base layer's
output, and the sum is cast back; a fused expert parameter is folded with its update in one baddbmm before the layer runs.
"""

import torch
from torch import nn


class LoraLinear(nn.Module):
    def __init__(self, base_layer, in_features, out_features, rank, scaling, dtype):
        super().__init__()
        self.base_layer = base_layer
        self.scaling = scaling
        self.lora_A = nn.ModuleDict({"default": nn.Linear(in_features, rank, bias=False, dtype=dtype)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, out_features, bias=False, dtype=dtype)})

    @property
    def weight(self):
        return self.base_layer.weight

    @property
    def bias(self):
        return self.base_layer.bias

    @property
    def in_features(self):
        return self.base_layer.in_features

    @property
    def out_features(self):
        return self.base_layer.out_features

    def forward(self, x, *args, **kwargs):
        result = self.base_layer(x, *args, **kwargs)
        dtype = result.dtype
        down = self.lora_A["default"]
        if x.dtype != down.weight.dtype:
            x = x.to(dtype=down.weight.dtype)
        result = result + self.lora_B["default"](down(x)) * self.scaling
        return result.to(dtype)


class LoraParameter(nn.Module):
    """One 3-D expert parameter (experts, a, b) of `base_layer` with an update of rank `rank` for each expert."""

    def __init__(self, base_layer, owner, parameter_name, in_features, out_features, rank, scaling, swapped, dtype):
        super().__init__()
        self.base_layer = base_layer
        self.parameter_name = parameter_name
        self.scaling = scaling
        self.swapped = swapped
        self.experts = getattr(owner, parameter_name).shape[0]
        object.__setattr__(self, "owner", owner)
        self.lora_A = nn.ModuleDict({"default": nn.Linear(in_features, rank * self.experts, bias=False, dtype=dtype)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank * self.experts, out_features, bias=False, dtype=dtype)})

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base_layer, name)

    def folded(self, weight):
        down = self.lora_A["default"].weight
        up = self.lora_B["default"].weight
        down = down.reshape(self.experts, -1, down.shape[-1])
        up = up.reshape(up.shape[0], -1, self.experts).permute(2, 0, 1)
        if self.swapped:
            left, right = up, down
        else:
            left, right = down.transpose(-2, -1), up.transpose(-2, -1)
        left, right = left.to(weight.dtype), right.to(weight.dtype)
        with torch.autocast(device_type="cuda", enabled=False):
            return torch.baddbmm(weight, left, right, alpha=self.scaling)

    def forward(self, *args, **kwargs):
        weight = getattr(self.owner, self.parameter_name)
        del self.owner._parameters[self.parameter_name]
        self.owner.__dict__[self.parameter_name] = self.folded(weight)
        try:
            return self.base_layer(*args, **kwargs)
        finally:
            del self.owner.__dict__[self.parameter_name]
            self.owner._parameters[self.parameter_name] = weight
