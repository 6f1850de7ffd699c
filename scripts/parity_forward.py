"""`parity forward [--quick] [--torch] [PATTERN]`: which model types' forward calls run here with torch's output shapes.

The torch side is stored in tests/golden/forward.jsonl.gz; `--torch` makes it anew in a process of its own and keeps it in the user's cache.
"""

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.base.dtypes import BY_NAME, FLOAT32
from weighbridge.base.errors import WeighError
from weighbridge.jobs.prepare import choose_attention, made, origins, place_weights, set_training
from weighbridge.model import Model
from weighbridge.phantom import Session, Tensor
from weighbridge.reading.input_facts import Argument, parse
from weighbridge.reading.python import Instance
from weighbridge.reading.reader import Request, read_request

HERE = Path(__file__).resolve().parent
STORED = HERE.parent / "tests" / "golden" / "forward.jsonl.gz"
SCRIPT = HERE / "reference_forward.py"
OUTCOMES = ("same shapes", "other shapes", "cannot tell", "torch fails too", "torch fails, we answer")
QUICK_STEP = 12


@dataclass(frozen=True, slots=True)
class Verdict:
    """One comparison."""

    outcome: str
    model_type: str
    detail: str
    seconds: float


def run_forward(model: Model, inputs: Mapping[str, Argument]) -> dict[str, Any]:
    """Output field -> nested shapes, as we find them. The one place that knows how a forward call is made here."""
    machine, session = model.machine, Session(training=True)
    choose_attention(model, "sdpa")
    set_training(model.root, True)
    with session.activate():
        place_weights(origins(model), FLOAT32)
        session.grad_enabled = False
        arguments = made(inputs)
        try:
            output = machine.run(lambda: machine.call(model.root, [], arguments))
        except WeighError:
            raise
        except Exception as error:
            raise machine.explain(error) from error
        return {str(name): found for name, value in fields(output) if (found := shapes(value)) is not None}


def fields(output: Any) -> Iterable[tuple[Any, Any]]:
    """The named parts of an output, or its numbered ones."""
    if isinstance(output, Instance):
        return [(name, value) for name, value in (output.payload or output.fields).items() if not name.startswith("_")]
    return output.items() if isinstance(output, dict) else enumerate(output if isinstance(output, tuple | list) else [output])


def shapes(value: Any) -> Any:
    """Nested shapes: a list of numbers for a tensor, None for what has none."""
    if isinstance(value, Tensor):
        return list(value.shape)
    return [shapes(item) for item in value] if isinstance(value, tuple | list) else None


def fresh_reference() -> Path:
    """The torch side made anew, once for each version of the script that makes it."""
    version = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:12]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weighbridge" / "parity"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"forward-{version}.jsonl.gz"
    if not target.exists():
        partial = folder / f"forward-{version}.{os.getpid()}.jsonl.gz"
        subprocess.run([sys.executable, str(SCRIPT), str(partial)], check=True)
        partial.replace(target)
    return target


def meaningful(shapes: Any) -> Any:
    """Shapes without the places that hold no tensor, so that an absent field and an empty one are alike."""
    if isinstance(shapes, Mapping):
        return {key: found for key, value in shapes.items() if (found := meaningful(value)) not in (None, [])}
    if isinstance(shapes, list | tuple):
        return [meaningful(item) for item in shapes]
    return shapes


def compare(row: Mapping[str, Any], transformers_path: str | None) -> Verdict:
    """Read the class, call it with what torch's class accepted, and judge the shapes."""
    started = time.perf_counter()
    inputs = {name: parse(value, BY_NAME) for name, value in row.get("inputs", {}).items()}
    try:
        model = read_request(
            Request(row["model_type"], row.get("config", {"model_type": row["model_type"]}), {}, transformers_path, row["class"])
        )
        if "failure" in row:  # torch accepted no inputs, so there is nothing to hold ours against
            return Verdict("torch fails too", row["model_type"], row["failure"], time.perf_counter() - started)
        ours = meaningful(run_forward(model, inputs))
    except WeighError as error:
        outcome = "torch fails too" if "failure" in row else "cannot tell"
        return Verdict(outcome, row["model_type"], str(error), time.perf_counter() - started)
    theirs = meaningful(row["outputs"])
    seconds = time.perf_counter() - started
    if ours == theirs:
        return Verdict("same shapes", row["model_type"], "", seconds)
    differing = {key: (ours.get(key), theirs.get(key)) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)}
    return Verdict("other shapes", row["model_type"], str(differing)[:300], seconds)


def page(told: list[str], counts: Mapping[str, int]) -> str:
    """The result as a page of the documentation."""
    tried = sum(counts[outcome] for outcome in OUTCOMES[:3])
    head = [
        "# Forward passes beside torch's", "",
        "Written by `scripts/parity forward --write docs/forward.md`: every model type of transformers, its default configuration and main",
        "class, with the inputs that torch's own class accepted under fake tensors, and the shapes of all outputs.", "",
        (f"Of {sum(counts.values())} types torch runs {tried}; ours gives the same shapes for {counts['same shapes']} of these "
        f"({counts['same shapes'] / max(1, tried):.1%}). The others, with the reason:"), "",
    ]  # fmt: skip
    rows = []
    for line in told:
        outcome, names, detail = line.split(": ", 2)
        reason = detail.replace("`", "'").replace("|", "/").replace("<", "&lt;")
        rows.append(f"| {outcome} | {names} | {reason} |")
    return "\n".join([*head, "| outcome | types | reason |", "|---|---|---|", *rows, ""])


def main(arguments: list[str]) -> int:
    """Print the comparison; 1 if a shape is wrong."""
    parser = argparse.ArgumentParser(prog="parity forward", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pattern", nargs="?", default="", help="only model types that contain it")
    parser.add_argument("--quick", action="store_true", help=f"every {QUICK_STEP}th type")
    parser.add_argument("--torch", action="store_true", help="make the torch side anew")
    parser.add_argument("--transformers", help="the folder of a transformers package")
    parser.add_argument("--write", type=Path, help="a page of the result, as docs/forward.md")
    options = parser.parse_args(arguments)
    lines = gzip.decompress((fresh_reference() if options.torch else STORED).read_bytes()).decode().splitlines()
    rows = [row for row in map(json.loads, lines) if options.pattern in row["model_type"]]
    verdicts = [compare(row, options.transformers) for row in (rows[::QUICK_STEP] if options.quick else rows)]
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome != "same shapes":
            reasons[verdict.outcome, verdict.detail].append(verdict.model_type)
    told = [
        f"{outcome}: {', '.join(names)}: {detail[:240]}"
        for (outcome, detail), names in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1])))
    ]
    print(*told, sep="\n")
    counts = Counter(verdict.outcome for verdict in verdicts)
    if options.write:
        options.write.write_text(page(told, counts))
    print("", *(f"{counts[outcome]:5} {outcome}" for outcome in OUTCOMES), sep="\n")
    print(f"{sum(v.seconds for v in verdicts):.1f} s")
    return 1 if counts["other shapes"] else 0
