"""What was found about a model, word for word: its config, its code, its checkpoint's header, and from where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from weighbridge.sources.headers import CheckpointHeader

Source = Literal["hub", "catalogue", "folder", "file", "stdin", "gguf", "trace", "graph"]
TotalKind = Literal["exact", "from bytes", "rounded"]

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Published:
    """The parameter total that the publisher or the Hub states, and how far it can be trusted.

    `exact` counts every stored element; `from bytes` is an index's byte total divided by an element size.
    """

    total: int
    kind: TotalKind
    source: str
    read_at: str | None = None


@dataclass(frozen=True, slots=True)
class TensorIndex:
    """An index file beside a sharded checkpoint: tensor names and, where stated, the bytes of all of them."""

    names: tuple[str, ...]
    total_bytes: int | None
    source: str
    total_parameters: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands beside the config: every field is what a file said, or empty where there was no file."""

    published: Published | None = None
    index: TensorIndex | None = None
    quantization: Mapping[str, Any] = field(default_factory=dict)
    """hf_quant_config.json or quantize_config.json."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    """model_index.json of a diffusers pipeline."""
    gguf: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known about one model before anything is read into it.

    `files` holds the repository's Python sources by relative path; `graph` a graph file that an earlier command wrote.
    """

    title: str
    source: Source
    read_at: str
    config: dict[str, Any]
    revision: str | None = None
    config_path: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    tensors: CheckpointHeader | None = None
    facts: Facts = field(default_factory=Facts)
    warnings: tuple[str, ...] = ()
    graph: Mapping[str, Any] | None = None

    @property
    def custom_code(self) -> bool:
        """True where the config names classes in the repository's own Python files."""
        return bool(self.config.get("auto_map"))
