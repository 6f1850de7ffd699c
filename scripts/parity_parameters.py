"""`parity parameters`: names, shapes and unique totals as we read them, against torch's meta device or published configs."""

import argparse
import csv
import gc
import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.base.errors import WeighError
from weighbridge.reading.reader import Request, read_request, transformers_folder

OUTCOMES = ("exact", "wrong", "cannot tell", "torch fails too", "torch fails, we answer")
SCRIPT = Path(__file__).with_name("reference_parameters.py")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One comparison."""

    outcome: str
    subject: str
    detail: str
    seconds: float


def reference(folder: Path, path: str | None, quick: bool) -> Path:
    """The torch side's records, made once for each script and transformers version."""
    root = transformers_folder(path)
    version = hashlib.sha256(SCRIPT.read_bytes() + str(root).encode() + (root / "__init__.py").read_bytes()).hexdigest()[:12]
    target = folder / f"parameters-{version}{'-quick' if quick else ''}.jsonl.gz"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}.part")
        environment = {**os.environ, "PYTHONPATH": str(root.parent)}
        command = [sys.executable, str(SCRIPT), str(partial), *(["--quick"] if quick else [])]
        subprocess.run(command, check=True, env=environment)
        partial.replace(target)
    return target


def records(path: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """The records whose type or class contains the pattern."""
    with gzip.open(path, "rt") as file:
        for line in file:
            record = json.loads(line)
            if pattern in record["model_type"] or pattern in record["class"]:
                yield record


def compare(record: dict[str, Any], path: str | None) -> Verdict:
    """Read one class and judge it."""
    subject = f"{record['class']}{' ' + json.dumps(record['change'])[:120] if record['change'] else ''}"
    started = time.perf_counter()
    request = Request(subject, {**record["change"], "model_type": record["model_type"]}, {}, path, record["class"])
    try:
        model = read_request(request)
        total = model.total
    except WeighError as error:
        outcome = "torch fails too" if "error" in record else "cannot tell"
        return Verdict(outcome, subject, f"{error} | {record.get('error', '')}", time.perf_counter() - started)
    seconds = time.perf_counter() - started
    if "error" in record:
        return Verdict("torch fails, we answer", subject, record["error"], seconds)
    ours = {parameter.name: parameter.shape for parameter in model.parameters}
    theirs = {name: tuple(shape) for name, shape, _ in record["parameters"]}
    if ours == theirs and total == record["total"]:
        return Verdict("exact", subject, "", seconds)
    return Verdict("wrong", subject, difference(ours, theirs, total, record["total"]), seconds)


def difference(ours: dict[str, Any], theirs: dict[str, Any], total: int, expected: int) -> str:
    """What differs, shortly."""
    extra, missing = [name for name in ours if name not in theirs][:3], [name for name in theirs if name not in ours][:3]
    changed = [(name, ours[name], theirs[name]) for name in ours if name in theirs and ours[name] != theirs[name]][:2]
    return f"{total} for {expected}; extra {extra}; missing {missing}; other shapes {changed}"


def compare_real(folder: Path, pattern: str) -> Iterator[Verdict]:
    """Published configs against the totals that torch's meta device gave for them."""
    with (folder / "totals.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        repository, _, part = row["repo_id"].partition(":")
        inner = folder / repository.replace("/", "__") / part if part else folder / row["folder"]
        config = inner / "config.json"
        if pattern not in row["repo_id"] or not row["meta_unique_params"] or not config.is_file():
            continue
        sources = {path.name: path.read_text(encoding="utf-8") for path in config.parent.glob("*.py")}
        request = Request(row["repo_id"], json.loads(config.read_text(encoding="utf-8")), sources, None, row["meta_class"] or None)
        started = time.perf_counter()
        try:
            total = read_request(request).total
        except WeighError as error:
            yield Verdict("cannot tell", row["repo_id"], str(error), time.perf_counter() - started)
            continue
        same = total == int(row["meta_unique_params"])
        detail = "" if same else f"{row['meta_class']}: {total} for {row['meta_unique_params']}"
        yield Verdict("exact" if same else "wrong", row["repo_id"], detail, time.perf_counter() - started)


def report(verdicts: list[Verdict], verbose: bool) -> int:
    """Print the table and what is not exact; 1 if anything is wrong."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    shown = {"wrong", "cannot tell"} | ({"torch fails too", "torch fails, we answer"} if verbose else set())
    for verdict in verdicts:
        if verdict.outcome in shown:
            print(f"{verdict.outcome}: {verdict.subject}: {verdict.detail[:400]}")
    times = sorted(verdict.seconds for verdict in verdicts) or [0.0]
    print(" | ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES))
    middle, late = times[len(times) // 2], times[len(times) * 9 // 10]
    print(f"{len(verdicts)} comparisons, seconds each: median {middle:.3f}, p90 {late:.3f}, worst {times[-1]:.3f}")
    built = counts["exact"] + counts["wrong"] + counts["cannot tell"]
    print(f"exact in {100 * counts['exact'] / built:.2f} % of what torch can build" if built else "nothing to compare")
    return 1 if counts["wrong"] else 0


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="parity parameters", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--quick", action="store_true", help="a twelfth of the model types, default configs only")
    parser.add_argument("--transformers", help="another unpacked transformers package")
    parser.add_argument("--reference", help="folder of the torch side's records (default: the user's cache)")
    parser.add_argument("--real", help="folder of published configs with a totals.csv")
    parser.add_argument("--verbose", action="store_true", help="list what torch itself cannot build as well")
    options = parser.parse_args(arguments)
    if options.real:
        return report(list(compare_real(Path(options.real), options.pattern)), options.verbose)
    folder = Path(options.reference or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "weighbridge-parity")
    verdicts = []
    for number, record in enumerate(records(reference(folder, options.transformers, options.quick), options.pattern)):
        verdicts.append(compare(record, options.transformers))
        if number % 50 == 0:
            gc.collect()
    return report(verdicts, options.verbose)
