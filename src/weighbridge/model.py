"""A read model: what it is made of, by name and shape, and what reading it took for granted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from weighbridge.base.dtypes import DType
from weighbridge.base.errors import CannotTell


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter under one of its names; `tied_to` is the first name of the tensor it shares."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    tied_to: str | None = None
    trainable: bool = True

    @property
    def numel(self) -> int:
        """Elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer; a checkpoint holds it where it is persistent. An unknown one has no shape."""

    name: str
    shape: tuple[int, ...] | None
    dtype: DType | None
    persistent: bool


@dataclass(frozen=True, slots=True)
class Module:
    """One module: its path, its class, and the parameters it holds itself."""

    path: str
    class_name: str
    parameters: int
    total: int
    """Unique parameters here and below."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the structure; `repeat` alike neighbours share one line. Shapes and FLOPs come from a forward run."""

    index: str
    name: str
    type: str
    parameters: int
    repeat: int = 1
    depth: int = 0
    output_shape: tuple[int, ...] | None = None
    flops: int | None = None


@dataclass(frozen=True, slots=True)
class Hole:
    """Something unknown inside the model that may hide parameters."""

    what: str
    why: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model as its source builds it from its configuration.

    `root`, `config` and `machine` are live (the interpreter's own values) and None in a model that came back from another process.
    """

    title: str
    model_type: str
    architecture: str
    parameters: tuple[Parameter, ...]
    buffers: tuple[Buffer, ...]
    modules: tuple[Module, ...]
    config_values: Mapping[str, Any] = field(default_factory=dict)
    config_dtype: DType | None = None
    files_read: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    holes: tuple[Hole, ...] = ()
    custom_code: bool = False
    transformers_version: str = ""
    config: Any = field(default=None, compare=False, repr=False)
    root: Any = field(default=None, compare=False, repr=False)
    machine: Any = field(default=None, compare=False, repr=False)
    runtime: Any = field(default=None, compare=False, repr=False)

    @property
    def total(self) -> int:
        """Parameters, each counted once; CannotTell where something unknown may hide more."""
        if self.holes:
            hole = self.holes[0]
            raise CannotTell(hole.what, hole.why, file=hole.file, line=hole.line)
        return self.seen

    @property
    def seen(self) -> int:
        """Parameters found, each counted once: a lower bound where there are holes."""
        return sum(parameter.numel for parameter in self.parameters if parameter.tied_to is None)

    @property
    def trainable(self) -> int:
        """Parameters that would get a gradient in full training."""
        return sum(parameter.numel for parameter in self.parameters if parameter.tied_to is None and parameter.trainable)

    @property
    def active(self) -> int | None:
        """Parameters that one token passes: all but the experts it is not routed to; None where the routing is not told."""
        experts = self._expert_parameters()
        if not experts:
            return self.total
        routed, chosen = self._routing()
        if not routed or not chosen:
            return None
        return self.total - experts + experts * chosen // routed

    def _routing(self) -> tuple[int | None, int | None]:
        values = dict(self.config_values)
        inner = values.get("text_config")
        if isinstance(inner, Mapping):
            values = {**inner, **{key: value for key, value in values.items() if key in ROUTED_KEYS + CHOSEN_KEYS}}
        return _first(values, ROUTED_KEYS), _first(values, CHOSEN_KEYS)

    def _expert_parameters(self) -> int:
        unique = (parameter for parameter in self.parameters if parameter.tied_to is None)
        return sum(parameter.numel for parameter in unique if is_routed(parameter.name))

    def structure(self, max_depth: int | None = None, outputs: Mapping[str, tuple[tuple[int, ...], int]] | None = None) -> tuple[Row, ...]:
        """The module tree, depth first, with alike neighbours folded into one row; `outputs` are (shape, FLOPs) by path, if known."""
        children: dict[str, list[Module]] = {}
        by_path = {module.path: module for module in self.modules}
        for module in self.modules:
            if module.path:
                children.setdefault(_parent(module.path, by_path), []).append(module)
        return tuple(_rows(by_path[""], children, "", 0, max_depth, outputs or {})) if "" in by_path else ()


ROUTED_KEYS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_moe_experts")
CHOSEN_KEYS = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "num_selected_experts",
    "experts_per_token",
    "top_k_experts",
)


def _first(values: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    return next((values[key] for key in keys if isinstance(values.get(key), int) and values[key] > 0), None)


def is_routed(name: str) -> bool:
    """Whether a parameter belongs to routed experts, by the name every MoE gives their container."""
    parts = name.split(".")
    return "experts" in parts and not any(part.startswith("shared_expert") for part in parts)


def _parent(path: str, by_path: Mapping[str, Module]) -> str:
    parent = path.rpartition(".")[0]
    while parent and parent not in by_path:
        parent = parent.rpartition(".")[0]
    return parent


def _shape(module: Module, children: Mapping[str, list[Module]]) -> tuple[Any, ...]:
    """What makes two modules alike: class, size and the same below, names of siblings aside."""
    below = tuple((child.path.rpartition(".")[2], _shape(child, children)) for child in children.get(module.path, ()))
    return module.class_name, module.parameters, module.total, below


Outputs = Mapping[str, tuple[tuple[int, ...], int]]


def _rows(
    module: Module, children: Mapping[str, list[Module]], index: str, depth: int, max_depth: int | None, outputs: Outputs
) -> Iterator[Row]:
    shape, flops = outputs.get(module.path, (None, None))
    name = module.path.rpartition(".")[2]
    yield Row(index or "0", name, module.class_name, module.total, depth=depth, output_shape=shape or None, flops=flops)
    if max_depth is not None and depth >= max_depth:
        return
    number, inner = 0, children.get(module.path, [])
    while number < len(inner):
        first, end = _shape(inner[number], children), number + 1
        while end < len(inner) and inner[end].path.rpartition(".")[2].isdigit() and _shape(inner[end], children) == first:
            end += 1
        own_index = f"{index}.{number}" if index else str(number)
        rows = list(_rows(inner[number], children, own_index, depth + 1, max_depth, outputs))
        name = rows[0].name if end == number + 1 else f"{rows[0].name}-{inner[end - 1].path.rpartition('.')[2]}"
        yield replace(rows[0], index=own_index, name=name, repeat=end - number, depth=depth + 1)
        yield from rows[1:]
        number = end
