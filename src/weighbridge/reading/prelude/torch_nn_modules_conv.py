"""torch.nn.modules.conv: convolutions and their transposes."""

import torch
import torch.nn.functional as F
from torch.nn import Module, Parameter


def _spread(x, n):
    return tuple(x) if isinstance(x, (list, tuple)) else (x,) * n


class _ConvNd(Module):
    spatial = 0
    transposed = False

    def _build(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype):
        n = self.spatial
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError("Invalid padding string " + padding)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError("invalid padding_mode " + str(padding_mode))
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _spread(kernel_size, n)
        self.stride = _spread(stride, n)
        self.padding = padding if isinstance(padding, str) else _spread(padding, n)
        self.dilation = _spread(dilation, n)
        self.output_padding = _spread(output_padding, n)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            amounts = []
            for k, d in zip(reversed(self.kernel_size), reversed(self.dilation)):
                total = d * (k - 1) if padding == "same" else 0
                amounts += [total // 2, total - total // 2]
            self._reversed_padding_repeated_twice = amounts
        else:
            self._reversed_padding_repeated_twice = [p for p in reversed(self.padding) for _ in range(2)]
        ends = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*ends, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)

    def reset_parameters(self):
        pass

    def _convolve(self, function, input, weight, bias):
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


class _Conv(_ConvNd):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
        device=None, dtype=None,
    ):
        super().__init__()
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    spatial = 1

    def _conv_forward(self, input, weight, bias):
        return self._convolve(F.conv1d, input, weight, bias)


class Conv2d(_Conv):
    spatial = 2

    def _conv_forward(self, input, weight, bias):
        return self._convolve(F.conv2d, input, weight, bias)


class Conv3d(_Conv):
    spatial = 3

    def _conv_forward(self, input, weight, bias):
        return self._convolve(F.conv3d, input, weight, bias)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError("Only 'zeros' padding mode is supported for transposed convolutions")
        self._build(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype,
        )

    def _output_padding(self, input, output_size):
        if output_size is None:
            return self.output_padding
        wanted = list(output_size)[-self.spatial:]
        result = []
        for d in range(self.spatial):
            least = (input.size(d - self.spatial) - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            result.append(wanted[d] - least)
        return result

    def _transpose(self, function, input, output_size):
        padding = self._output_padding(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    spatial = 1

    def forward(self, input, output_size=None):
        return self._transpose(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    spatial = 2

    def forward(self, input, output_size=None):
        return self._transpose(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    spatial = 3

    def forward(self, input, output_size=None):
        return self._transpose(F.conv_transpose3d, input, output_size)
