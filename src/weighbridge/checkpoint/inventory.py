"""What we count, arranged for asking: own and tied parameters, buffers, layers, and the config's own figures."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from weighbridge.sources.evidence import Evidence

Shape = tuple[int, ...]

LAYER: Final = re.compile(r"^(?P<stack>.*?(?:^|\.)(?:layers|layer|h|blocks|block))\.(?P<index>\d+)\.(?P<rest>.+)$")
EMBEDDING: Final = re.compile(r"(?:^|\.)(?:embed_tokens|embed_in|word_embeddings|tok_embeddings|wte|shared|embedding|embed)\.weight$")
SUBCONFIGS: Final = ("text_config", "llm_config", "language_config", "thinker_config", "decoder", "talker_config")


class Held(Protocol):
    """A parameter or a buffer of a read model."""

    @property
    def name(self) -> str:
        """Dotted name."""

    @property
    def shape(self) -> Any:
        """Sizes."""


@dataclass(frozen=True)
class Inventory:
    """Shapes by name; `total` counts each own parameter once."""

    own: Mapping[str, Shape]
    tied: Mapping[str, Shape]
    buffers: Mapping[str, Shape]
    config: Mapping[str, Any]
    quantization: Mapping[str, Any]

    @staticmethod
    def of(parameters: Iterable[Held], buffers: Iterable[Held], evidence: Evidence) -> "Inventory":
        """Arrange a model's parameters and buffers."""
        own: dict[str, Shape] = {}
        tied: dict[str, Shape] = {}
        for parameter in parameters:
            (tied if getattr(parameter, "tied_to", None) else own)[parameter.name] = tuple(parameter.shape)
        facts = evidence.facts.quantization
        nested = facts.get("quantization")
        stated = evidence.config.get("quantization_config")
        quantization = stated if isinstance(stated, dict) else nested if isinstance(nested, dict) else facts
        return Inventory(
            own, tied, {held.name: tuple(held.shape) for held in buffers if held.shape is not None}, evidence.config, quantization
        )

    @cached_property
    def total(self) -> int:
        """Our parameter count."""
        return size_of(self.own.values())

    @cached_property
    def stacks(self) -> dict[str, dict[int, dict[str, Shape]]]:
        """Stack name -> layer index -> parameter name within the layer -> shape."""
        found: dict[str, dict[int, dict[str, Shape]]] = {}
        for name, shape in self.own.items():
            match = LAYER.match(name)
            if match:
                found.setdefault(match["stack"], {}).setdefault(int(match["index"]), {})[match["rest"]] = shape
        return found

    @cached_property
    def main(self) -> dict[int, dict[str, Shape]]:
        """The layers of the largest stack: the language model's where there are several."""
        return max(self.stacks.values(), key=lambda layers: sum(size_of(layer.values()) for layer in layers.values()), default={})

    @cached_property
    def main_name(self) -> str:
        """The largest stack's name, such as `model.layers`."""
        return next((name for name, layers in self.stacks.items() if layers is self.main), "")

    @property
    def depth(self) -> int:
        """Layers of the largest stack."""
        return len(self.main)

    @cached_property
    def embedding(self) -> Shape:
        """The token embedding's shape: the largest matrix with an embedding's name."""
        matrices = [shape for name, shape in self.own.items() if EMBEDDING.search(name) and len(shape) == 2]
        stated = self.setting("vocab_size")
        known = [shape for shape in matrices if shape[0] == stated]
        return max(known or matrices, key=math.prod, default=(0, 0))

    @property
    def vocabulary(self) -> int:
        """Rows of the token embedding."""
        return self.embedding[0]

    @property
    def hidden(self) -> int:
        """The model's width, by the config or by the token embedding."""
        stated = self.setting("hidden_size", "d_model", "n_embd", "dim")
        return stated if stated > 0 else self.embedding[1]

    def setting(self, *names: str) -> int:
        """The first of these integers that the config, or one of its language parts, states; 0 where none does."""
        pending: list[Mapping[str, Any]] = [self.config]
        for part in pending:
            for name in names:
                if type(part.get(name)) is int:
                    return int(part[name])
            pending.extend(part[key] for key in SUBCONFIGS if isinstance(part.get(key), dict) and len(pending) < 8)
        return 0


def size_of(shapes: Iterable[Shape]) -> int:
    """Elements of all the shapes."""
    return sum(math.prod(shape) for shape in shapes)
