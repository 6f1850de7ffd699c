"""Cards: what a GPU can hold and how fast it is, one TOML file a card, every number with its source and date."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from weighbridge.base.errors import BadInput, UsageError
from weighbridge.base.strict import StrictTable
from weighbridge.base.units import GIB, gib

TABLES: Final = Path(__file__).with_name("tables")

#: torch's dtype names -> the column of the data sheet that a matrix multiplication in it runs at.
SHEET_COLUMN: Final[Mapping[str, str]] = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float4_e2m1fn_x2": "fp4",
}  # fmt: skip
#: A card without the column runs the next one; fp32 is on every sheet.
WIDER: Final[Mapping[str, str]] = {
    "fp4": "fp8",
    "fp8": "bf16",
    "int8": "fp16",
    "bf16": "fp32",
    "fp16": "fp32",
    "tf32": "fp32",
    "fp64": "fp32",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a number was read: `figure` is the field it backs, `title` the document and section."""

    figure: str
    title: str
    read_at: date


@dataclass(frozen=True, slots=True)
class Link:
    """How a card talks to the next one: `bytes_per_second` is each way."""

    kind: str
    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class Generation:
    """What all cards of one generation share: the context of a process and cuBLAS's workspace for one thread."""

    id: str
    context_bytes: int
    cublas_workspace_bytes: int
    estimate: bool
    source: Source


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator as software sees it.

    `memory_bytes` is what a process can allocate (torch.cuda.get_device_properties().total_memory), not the label;
    `memory_estimate` marks a capacity derived from the label because no report was found. `context_bytes` is what a
    process takes outside torch's allocator; `cublas_workspace_bytes` is one thread's, taken inside it.
    `dense_flops` are multiply-and-add operations a second counted as two, without sparsity, by data sheet column.
    """

    id: str
    name: str
    vendor: str
    generation: str
    capability: tuple[int, int]
    memory_bytes: int
    label_gb: int
    memory_estimate: bool
    ecc: bool
    bandwidth_bytes_per_second: int
    dense_flops: tuple[tuple[str, int], ...]
    sparse_flops: tuple[tuple[str, int], ...]
    link: Link
    context_bytes: int
    cublas_workspace_bytes: int
    tdp_watts: int = 0
    aliases: tuple[str, ...] = ()
    notes: str = ""
    sources: tuple[Source, ...] = ()

    def peak_flops(self, dtype: str) -> int:
        """Dense FLOP/s of a matrix multiplication in torch's `dtype` (`bfloat16`) or a sheet's column (`tf32`).

        A type the card does not have runs at the next wider type's rate, as torch computes it; an unlisted one at fp32's.
        """
        rates = dict(self.dense_flops)
        column = SHEET_COLUMN.get(dtype, dtype)
        while column not in rates and column in WIDER:
            column = WIDER[column]
        return rates.get(column, rates.get("fp32", 0))

    @property
    def has_known_speed(self) -> bool:
        """False for a card that is only an amount of memory."""
        return bool(self.dense_flops)


@cache
def load_cards() -> tuple[Card, ...]:
    """Every shipped card, smallest memory first."""
    shared = load_generations()
    cards = [read_card(path, shared) for path in sorted((TABLES / "cards").glob("*.toml"))]
    return tuple(sorted(cards, key=lambda card: (card.memory_bytes, card.id)))


@cache
def load_generations() -> Mapping[str, Generation]:
    """What cards of a generation share, by its name."""
    path = TABLES / "generations.toml"
    return {name: _generation(name, StrictTable(values, f"{path.name} [{name}]")) for name, values in _toml(path).items()}


def find_card(name: str) -> Card:
    """The card of that id, name or alias, whatever its case, spaces and dashes; UsageError names the nearest ones."""
    names = _names()
    key = _plain(name)
    if key in names:
        return names[key]
    near = difflib.get_close_matches(key, names, n=6, cutoff=0.5)
    ids = ", ".join(dict.fromkeys(names[match].id for match in near)) or "see weigh cards"
    raise UsageError(f"no card is called {name[:60]!r}", f"did you mean {ids}? Or give its memory: --memory 22GiB")


def custom_card(memory_bytes: int) -> Card:
    """An anonymous card of which only the memory is known; context and workspace are those of the common CUDA generation."""
    if memory_bytes <= 0:
        raise UsageError("a card's memory must be above zero", "write --memory 22GiB")
    shared = load_generations()["ampere"]
    return Card(
        id=f"memory-{memory_bytes}", name=f"{gib(memory_bytes)} of memory", vendor="any", generation="any", capability=(8, 0),
        memory_bytes=memory_bytes, label_gb=memory_bytes // GIB, memory_estimate=False, ecc=False, bandwidth_bytes_per_second=0,
        dense_flops=(), sparse_flops=(), link=Link("none", 0), context_bytes=shared.context_bytes,
        cublas_workspace_bytes=shared.cublas_workspace_bytes, notes="the memory was given by hand; no speed is known",
    )  # fmt: skip


def read_card(path: Path, generations: Mapping[str, Generation]) -> Card:
    """One card's file; BadInput where a key is unknown, missing or impossible."""
    table = StrictTable(_toml(path), path.name)
    memory, bandwidth, dense, link = (table.table(key) for key in ("memory", "bandwidth", "dense_flops", "link"))
    sparse = table.table("sparse_flops") if "sparse_flops" in table else None
    sources = [
        _source(part, figure) for figure, part in (("memory", memory), ("bandwidth", bandwidth), ("dense_flops", dense), ("link", link))
    ]
    generation = generations.get(table.take("generation", str))
    if generation is None:
        raise BadInput(f"{path.name}: its generation is not in generations.toml")
    estimate = memory.maybe("estimate", bool, False)
    if estimate and not memory.maybe("reason", str, ""):
        raise BadInput(f"{path.name}: an estimated capacity needs its reason")
    card = Card(
        id=table.take("id", str),
        name=table.take("name", str),
        vendor=table.take("vendor", str),
        generation=generation.id,
        capability=_capability(table),
        memory_bytes=memory.positive("bytes"),
        label_gb=memory.positive("label_gb"),
        memory_estimate=estimate,
        ecc=memory.take("ecc", bool),
        bandwidth_bytes_per_second=bandwidth.positive("bytes_per_second"),
        dense_flops=dense.integers(),
        sparse_flops=sparse.integers() if sparse else (),
        link=Link(link.take("kind", str), link.positive("bytes_per_second")),
        context_bytes=generation.context_bytes,
        cublas_workspace_bytes=generation.cublas_workspace_bytes,
        tdp_watts=table.maybe("tdp_watts", int, 0),
        aliases=table.texts("aliases"),
        notes=table.maybe("notes", str, ""),
        sources=(*sources, generation.source),
    )
    for part in (table, memory, bandwidth, link):
        part.finish()
    return _checked(card, path)


def _checked(card: Card, path: Path) -> Card:
    dense = dict(card.dense_flops)
    if card.id != path.stem:
        raise BadInput(f"{path.name}: its id is {card.id!r}, not the file's name")
    if card.memory_bytes > card.label_gb * GIB:
        raise BadInput(f"{path.name}: more memory than its label says")
    if "fp32" not in dense:
        raise BadInput(f"{path.name}: every card has a dense fp32 rate")
    for column, sparse in card.sparse_flops:
        if dense.get(column, 0) > sparse:
            raise BadInput(f"{path.name}: dense {column} is above sparse {column}: the sheet's sparse figure was copied")
    return card


def _capability(table: StrictTable) -> tuple[int, int]:
    values = table.maybe("capability", list, [0, 0])
    if len(values) != 2 or not all(type(value) is int for value in values):
        raise BadInput(f"{table.where}: capability must be two integers such as [8, 0]")
    return values[0], values[1]


def _source(table: StrictTable, figure: str) -> Source:
    return Source(figure, table.take("source", str), table.day("read_at"))


def _generation(name: str, table: StrictTable) -> Generation:
    generation = Generation(
        name,
        table.take("context_bytes", int),
        table.take("cublas_workspace_bytes", int),
        table.maybe("estimate", bool, False),
        _source(table, "context"),
    )
    table.finish()
    return generation


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path.name} is not TOML: {error}") from error


@cache
def _names() -> Mapping[str, Card]:
    names: dict[str, Card] = {}
    for card in load_cards():
        for name in (card.id, card.name, *card.aliases):
            other = names.setdefault(_plain(name), card)
            if other is not card:
                raise BadInput(f"{name!r} names both {other.id} and {card.id}")
    return names


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]|nvidia|amd|intel|apple|geforce|tesla|instinct", "", name.lower())
