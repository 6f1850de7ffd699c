"""`parity custom FOLDER`: models whose code is their own, read and set against what their publishers say.

FOLDER holds one folder a model: config.json, its *.py, and what is known of it: an index file (names, bytes) or
expected.json {"total": ..., "names": [...], "architecture": ..., "source": "..."}.
"""

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from weighbridge.base.errors import NotFound, WeighError
from weighbridge.model import Model
from weighbridge.reading.reader import Request, read_request

OUTCOMES = ("exact", "wrong", "cannot tell", "files missing", "unverified")
MISSING = (
    "No module named 'repository",
    "was not found",
    "part from another repository",
    "lies in another repository",
    "does not define it",
)
OLD_BUFFERS = re.compile(r".*(rotary_emb\.inv_freq|attn\.(masked_)?bias|position_ids)")
OLD_BUFFER_BYTES = 4096
"""Buffers that older code stored in checkpoints, and how large each may be."""
SHOWN = 3
BITS_16 = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """One model judged."""

    outcome: str
    subject: str
    detail: str
    seconds: float


def expectation(place: Path) -> dict[str, Any]:
    """What is known from outside: expected.json first, then the index file's names and bytes."""
    stated = place / "expected.json"
    found: dict[str, Any] = json.loads(stated.read_text("utf-8")) if stated.is_file() else {}
    for path in sorted(place.glob("*.index.json")):
        document = json.loads(path.read_text("utf-8"))
        found.setdefault("names", sorted(document.get("weight_map", ())))
        found.setdefault("bytes", document.get("metadata", {}).get("total_size"))
    return found


def stored_names(model: Model) -> set[str]:
    """Names that a checkpoint may hold: parameters, tied ones and persistent buffers."""
    return {parameter.name for parameter in model.parameters} | {buffer.name for buffer in model.buffers}


def persistent_elements(model: Model, names: set[str]) -> int:
    """Elements of the buffers that the index names."""
    return sum(prod(buffer.shape) for buffer in model.buffers if buffer.name in names and buffer.shape is not None)


def byte_sizes(parameters: list[Any]) -> set[int]:
    """What these parameters may take on disk: two bytes each, four, or each in the type that it was built in."""
    elements = sum(parameter.numel for parameter in parameters)
    return {2 * elements, 4 * elements, sum(parameter.numel * (2 if parameter.dtype.bits == BITS_16 else 4) for parameter in parameters)}


def judge(model: Model, known: dict[str, Any]) -> tuple[str, str]:
    """Exact if every outside fact agrees; persistent buffers and tied copies on disk are allowed for, and nothing else."""
    theirs = set(known.get("names") or ())
    buffers = persistent_elements(model, theirs or {buffer.name for buffer in model.buffers if buffer.persistent})
    total, size = known.get("total"), known.get("bytes")
    differences: list[str] = []
    missing: list[str] = []
    if theirs:
        extra = sorted({parameter.name for parameter in model.parameters if parameter.tied_to is None} - theirs)
        missing = sorted(theirs - stored_names(model))
        if extra or (missing and total is not None):
            differences.append(f"only in the index {missing[:SHOWN]} ({len(missing)}), only ours {extra[:SHOWN]} ({len(extra)})")
    every = sum(parameter.numel for parameter in model.parameters)
    if total is not None and total not in {model.total, model.total + buffers, every, every + buffers}:
        differences.append(f"{model.total:,} (+{buffers:,} in buffers) for {total:,}")
    if total is None and size:
        stored = [parameter for parameter in model.parameters if parameter.name in theirs]
        room = 4 * buffers + OLD_BUFFER_BYTES * sum(OLD_BUFFERS.fullmatch(name) is not None for name in missing)
        if not any(0 <= size - ours <= room for ours in byte_sizes(stored)):
            differences.append(f"{sorted(byte_sizes(stored))} bytes for {size:,}; {buffers:,} elements in buffers")
    if total is None and not theirs:
        return "unverified", f"{model.total:,}"
    return ("wrong", "; ".join(differences)) if differences else ("exact", f"{model.total:,}")


def weigh(place: Path) -> Verdict:
    """Read one folder."""
    known = expectation(place)
    config = json.loads((place / "config.json").read_text("utf-8"))
    files = {str(path.relative_to(place)): path.read_text("utf-8", "replace") for path in sorted(place.rglob("*.py"))}
    started = time.perf_counter()
    try:
        model = read_request(Request(place.name, config, files, None, known.get("architecture")))
        outcome, detail = judge(model, known)
    except WeighError as error:
        gone = isinstance(error, NotFound) or any(mark in str(error) for mark in MISSING)
        outcome, detail = "files missing" if gone else "cannot tell", str(error)
    return Verdict(outcome, place.name, detail, time.perf_counter() - started)


def main(arguments: list[str]) -> int:
    """The command; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="parity custom", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args(arguments)
    places = sorted(path.parent for path in options.folder.glob("*/config.json") if options.pattern in path.parent.name)
    verdicts = [weigh(place) for place in places]
    for verdict in verdicts:
        print(f"{verdict.outcome:13} {verdict.subject:34} {verdict.seconds:6.2f}s  {verdict.detail[:500]}")
    counts = Counter(verdict.outcome for verdict in verdicts)
    print(" | ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES))
    complete = counts["exact"] + counts["wrong"] + counts["cannot tell"]
    print(f"exact in {100 * counts['exact'] / complete:.1f} % of those whose files are all there" if complete else "nothing to compare")
    return 1 if counts["wrong"] else 0
