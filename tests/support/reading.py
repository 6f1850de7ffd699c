"""What the reading tests share: a read from a config, and the same class on torch's meta device."""

from functools import cache
from typing import Any

from weighbridge.model import Model
from weighbridge.reading.python import Limits
from weighbridge.reading.reader import Request, read_request

QUICK = Limits(steps=3_000_000, seconds=20.0)


def read_config(config: dict[str, Any], files: dict[str, str] | None = None, architecture: str | None = None) -> Model:
    return read_request(Request("test", config, files or {}, None, architecture, QUICK))


@cache
def torch_modules() -> tuple[Any, Any]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    return torch, transformers


def torch_parameters(model_type: str, class_name: str, values: dict[str, Any]) -> tuple[dict[str, tuple[int, ...]], int]:
    """Names, shapes and the unique total of the real class on the meta device."""
    torch, transformers = torch_modules()
    config = transformers.CONFIG_MAPPING[model_type](**values)
    with torch.device("meta"):
        model = getattr(transformers, class_name)(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters(remove_duplicate=False)}
    return shapes, sum(parameter.numel() for parameter in model.parameters())
