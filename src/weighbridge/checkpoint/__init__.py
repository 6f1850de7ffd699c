"""Our parameter count held against the published checkpoint, and the difference explained piece by piece.

A checkpoint holds what was saved: buffers, a tied head's second copy, scales, packed words, prediction layers that the
class doesn't build. Where a header is at hand each stored tensor is put down to its reason; where only a total is
known, reasons whose sizes follow from our own parameters are combined until they give the difference exactly, or not
at all: what is left is `unexplained`, never spread over reasons.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weighbridge.checkpoint import header, rules
from weighbridge.checkpoint.inventory import Held, Inventory
from weighbridge.checkpoint.search import Choice, combine
from weighbridge.sources.evidence import Evidence, Published

BYTES_OF: Final = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
ROUNDED_WITHIN: Final = 0.1
"""A figure such as `30B` in a model's name is taken for a rounding up to this share."""


@dataclass(frozen=True, slots=True)
class CheckpointComparison:
    """The checkpoint's total and why ours differs: `ours - total == -(sum of explained + unexplained)`."""

    total: int
    kind: str
    source: str
    read_at: str | None
    delta: float
    """(ours - checkpoint) / checkpoint."""
    explained: tuple[tuple[str, int], ...]
    """(why, parameters that the checkpoint has more than we count; negative where it has fewer)."""
    unexplained: int


def compare(parameters: Iterable[Held], buffers: Iterable[Held], evidence: Evidence) -> CheckpointComparison | None:
    """Hold parameters and buffers against the evidence's checkpoint; None where nothing is published."""
    ours = Inventory.of(parameters, buffers, evidence)
    stated = published(evidence)
    if stated is None:
        return None
    surplus = stated.total - ours.total
    choices = _explain(ours, evidence, stated, surplus) if surplus else []
    return CheckpointComparison(
        total=stated.total,
        kind=stated.kind,
        source=stated.source,
        read_at=stated.read_at,
        delta=-surplus / stated.total,
        explained=tuple((choice.why, choice.parameters) for choice in choices),
        unexplained=surplus - sum(choice.parameters for choice in choices),
    )


def published(evidence: Evidence) -> Published | None:
    """The best total that the evidence holds: a whole header, a published figure, an index's figure or bytes."""
    facts, index = evidence.facts, evidence.facts.index
    if evidence.tensors is not None and evidence.tensors.complete:
        return Published(evidence.tensors.total_parameters, "exact", f"header of {evidence.tensors.source}", evidence.read_at)
    if facts.published is not None and facts.published.kind == "exact":
        return facts.published
    if index is not None and index.total_parameters:
        return Published(index.total_parameters, "exact", index.source, evidence.read_at)
    if facts.published is not None and facts.published.kind == "from bytes":
        return facts.published
    size = element_bytes(evidence)
    if index is not None and index.total_bytes and size and not evidence.config.get("quantization_config"):
        return Published(index.total_bytes // size, "from bytes", f"{index.source}, {size} bytes an element", evidence.read_at)
    return facts.published


def element_bytes(evidence: Evidence) -> int | None:
    """Bytes of one element by the config's dtype; None where it names none."""
    stated = evidence.config.get("dtype") or evidence.config.get("torch_dtype")
    return BYTES_OF.get(str(stated).removeprefix("torch."))


def _explain(ours: Inventory, evidence: Evidence, stated: Published, surplus: int) -> list[Choice]:
    if evidence.tensors is not None and evidence.tensors.complete:
        return header.explain(ours, evidence.tensors)
    if stated.kind == "rounded":
        close = abs(surplus) <= ROUNDED_WITHIN * stated.total
        return [Choice("the published figure is rounded", surplus)] if close else []
    size = element_bytes(evidence) if stated.kind == "from bytes" else None
    names = evidence.facts.index.names if evidence.facts.index is not None else ()
    shown = combine(surplus, rules.groups(ours, names, size))
    return shown or combine(surplus, rules.groups(ours, (), size)) or []  # an index may be older than the figure
