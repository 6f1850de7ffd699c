"""torch.nn.modules.padding."""

import torch.nn.functional as F
from torch.nn import Module


class ConstantPad1d(Module):
    def __init__(self, padding, value):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 2
        self.padding = padding
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)


class ZeroPad1d(ConstantPad1d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class ReflectionPad1d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 2
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "reflect")


class ReplicationPad1d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 2
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "replicate")


class CircularPad1d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 2
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "circular")


class ConstantPad2d(Module):
    def __init__(self, padding, value):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 4
        self.padding = padding
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)


class ZeroPad2d(ConstantPad2d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class ReflectionPad2d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 4
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "reflect")


class ReplicationPad2d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 4
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "replicate")


class CircularPad2d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 4
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "circular")


class ConstantPad3d(Module):
    def __init__(self, padding, value):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 6
        self.padding = padding
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)


class ZeroPad3d(ConstantPad3d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class ReflectionPad3d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 6
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "reflect")


class ReplicationPad3d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 6
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "replicate")


class CircularPad3d(Module):
    def __init__(self, padding):
        super().__init__()
        padding = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,) * 6
        self.padding = padding

    def forward(self, input):
        return F.pad(input, self.padding, "circular")
