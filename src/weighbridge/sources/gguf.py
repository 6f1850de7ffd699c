"""The header facts of a .gguf file, through the optional `gguf` package; its tensors' data stays closed."""

import contextlib
import importlib
from pathlib import Path
from typing import Any

from weighbridge.base.errors import BadHeader, NotFound, UsageError, WeighError
from weighbridge.sources.evidence import Evidence, Facts
from weighbridge.sources.graph import today
from weighbridge.sources.text import printable


def read_gguf(path: Path) -> Evidence:
    """Key-value facts, tensor names, quantization types and shapes of one file."""
    if not path.is_file():
        raise NotFound(f"there is no file {printable(str(path))}")
    try:
        gguf = importlib.import_module("gguf")
    except ImportError:
        raise UsageError("reading .gguf needs the gguf package", "pip install gguf, or name the model it was made from") from None
    try:
        reader = gguf.GGUFReader(path)
        facts = {name: _plain(field) for name, field in reader.fields.items()}
        tensors = {tensor.name: (tensor.tensor_type.name, tuple(int(size) for size in tensor.shape)) for tensor in reader.tensors}
    except WeighError:
        raise
    except Exception as error:
        raise BadHeader(f"{printable(path.name)} has no readable GGUF header ({type(error).__name__})") from error
    return Evidence(
        title=printable(str(facts.get("general.name") or path.stem)),
        source="gguf",
        read_at=today(),
        config={},
        config_path=str(path),
        facts=Facts(gguf={"fields": facts, "tensors": tensors}),
        warnings=("a .gguf states sizes, but not the model's code: plan the model that it was made from",),
    )


def _plain(field: Any) -> Any:
    with contextlib.suppress(Exception):
        value = field.contents()
        return value if not isinstance(value, list) or len(value) <= 64 else f"{len(value)} values"
    return None
