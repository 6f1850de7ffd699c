"""What a forward call is given: pure data, made by the rules in `input_rules` and read by torch and by our own reader alike."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weighbridge.base.dtypes import FLOAT32, INT64, DType

TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")
VISION_PARTS = ("vision_config", "vision_encoder_config", "image_encoder_config", "encoder", "backbone_config")
AUDIO_PARTS = ("audio_config", "audio_encoder_config", "encoder_config", "speech_encoder", "encoder", "acoustic_tokenizer_config")


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A tensor argument. `runs` are its values in row-major order as (value, count) pairs, None where the values decide nothing."""

    shape: tuple[int, ...]
    dtype: DType = INT64
    runs: tuple[tuple[float, int], ...] | None = None
    why: str = ""

    def array(self) -> NDArray[Any] | None:
        """The values, None if they are not given; a constant takes no memory."""
        if self.runs is None:
            return None
        kind = np.bool_ if self.dtype.kind == 0 else np.int64 if self.dtype.kind == 1 else np.float32
        if len(self.runs) == 1:
            return np.broadcast_to(kind(self.runs[0][0]), self.shape)
        values, counts = zip(*self.runs, strict=True)
        return np.repeat(np.array(values, dtype=kind), counts).reshape(self.shape)

    def as_json(self) -> dict[str, Any]:
        """A reference row's form: shape, dtype and, where given, runs."""
        row: dict[str, Any] = {"shape": list(self.shape), "dtype": self.dtype.name}
        return row if self.runs is None else row | {"runs": [list(run) for run in self.runs]}


@dataclass(frozen=True, slots=True)
class Literal:
    """A plain argument: a flag or a number."""

    value: bool | int | float
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """A reference row's form."""
        return {"literal": self.value}


Argument = InputSpec | Literal


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What decides a model's inputs. `config` is plain data (nested mappings), `parameters` are the names in forward's signature."""

    config: Mapping[str, Any]
    model_type: str
    architecture: str
    main_input_name: str = "input_ids"
    parameters: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    task: str = ""

    def get(self, *names: str, parts: Iterable[str] = (), default: Any = None) -> Any:
        """The first of `names` that is set, looked up in the named sub-configs first and then in the config itself."""
        places = [self.config[part] for part in parts if isinstance(self.config.get(part), Mapping)]
        for place in [*places, self.config]:
            for name in names:
                if place.get(name) is not None:
                    return place[name]
        return default

    def number(self, *names: str, parts: Iterable[str] = (), default: int = 0) -> int:
        """As `get`, for one whole number (the first of a list)."""
        value = self.get(*names, parts=parts, default=default)
        while isinstance(value, list | tuple) and value:
            value = value[0]
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def takes(self, *names: str) -> bool:
        """Whether forward has all these parameters."""
        return all(name in self.parameters for name in names)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything: the job's side of the inputs. `modalities` are those beside text that are fed."""

    batch: int
    seq_tokens: int
    labels: bool = False
    floating: DType = FLOAT32
    modalities: frozenset[str] = field(default_factory=lambda: frozenset({"image", "audio"}))


def constant(shape: tuple[int, ...], value: float, dtype: DType = INT64, why: str = "") -> InputSpec:
    """A tensor of one value."""
    return InputSpec(shape, dtype, ((value, math.prod(shape)),), why)


def rows(
    batch: int, row: Iterable[tuple[float, int]], dtype: DType = INT64, why: str = "", inner: tuple[int, ...] | None = None
) -> InputSpec:
    """`batch` equal rows, each of (value, count) runs; `inner` is the shape of a row if it has more than one dimension."""
    runs = tuple(run for run in row if run[1] > 0)
    length = sum(count for _, count in runs)
    shape = (batch, *(inner if inner is not None else (length,)))
    return InputSpec(shape, dtype, runs if batch == 1 else (runs * batch if len(runs) > 1 else ((runs[0][0], length * batch),)), why)


def parse(row: Mapping[str, Any], by_name: Mapping[str, DType]) -> Argument:
    """The reverse of `as_json`."""
    if "literal" in row:
        return Literal(row["literal"])
    runs = row.get("runs")
    return InputSpec(tuple(row["shape"]), by_name[row["dtype"]], None if runs is None else tuple((value, count) for value, count in runs))
