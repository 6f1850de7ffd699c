"""What no config and no model can be: sizes below zero or without end, and tensors past torch's own bounds."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from weighbridge.base.errors import BadConfig
from weighbridge.model import Model

LARGEST: Final = 1 << 63
"""No size and no element count of torch reaches this."""
SIZES: Final = re.compile(
    r"(\w+_)?(hidden|intermediate|vocab|embedding|embed|ffn|inner|mlp|state|expert|qk_head|v_head)_(size|dims?)"
    r"|(num|n)_(\w+_)?(layers?|heads?|experts)|(head|hidden)_dim|d_(model|ff|kv|inner)|n_(embd|layer|head|positions)|max_position_embeddings"
)
"""Keys that hold a size whatever the model: those a class turns into shapes or counts of layers."""
DEEPEST: Final = 8


def check_sizes(config: Mapping[str, Any]) -> None:
    """Refuse a size that is negative or not finite, by its key: torch would fail on it, or silently build no layer at all."""
    for key, value in _sizes(config, "", 0):
        if value < 0 or not math.isfinite(value):
            raise BadConfig(f"config.json: {key} is {str(value)[:40]}, which is no size", "compare the config with the published one")


def _sizes(config: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, int | float]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            if depth < DEEPEST and key != "quantization_config":
                yield from _sizes(value, f"{prefix}{key}.", depth + 1)
        elif isinstance(value, int | float) and isinstance(key, str) and SIZES.fullmatch(key):
            yield prefix + key, value


def checked(model: Model) -> Model:
    """The model, whose every parameter has a shape that a tensor can have."""
    for parameter in model.parameters:
        shape = parameter.shape
        if not all(type(size) is int and 0 <= size < LARGEST for size in shape) or parameter.numel >= LARGEST:
            shown = " x ".join(str(size)[:24] for size in shape[:8])
            raise BadConfig(f"{parameter.name} would be {shown}, which no tensor can be", "compare the config with the published one")
    return model
