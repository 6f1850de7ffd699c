"""`parity memory [--quick] [PATTERN]`: our training peaks beside torch's fake tensors, over the stored reference points.

The references lie in tests/golden/memory: grid.csv.gz (12 published models, 524 points) and wide.jsonl.gz (other
architectures, a few layers each). Neither needs torch. Fails when the median error is above 0.1 %, or fewer than 95 % of the
points lie within 1 %, or any lies beyond 3 %, or more than 5 % of the architectures cannot be told.
"""

import argparse
import csv
import gzip
import io
import itertools
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.base.dtypes import BY_NAME
from weighbridge.base.errors import WeighError
from weighbridge.jobs.job import Job
from weighbridge.model import Model
from weighbridge.reading.input_facts import Argument, parse
from weighbridge.reading.reader import Request, read_request

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "memory"
PRECISIONS = {"amp": "bf16-amp", "fp16": "fp16-amp", "bf16": "bf16", "fp32": "fp32"}
QUICK_STEP = 12  # every so many-th point


@dataclass(frozen=True, slots=True)
class Point:
    """One reference point: the class, its config, the job, the inputs (None: the default ones) and torch's peak."""

    model: str
    architecture: str
    config: Mapping[str, Any]
    job: Mapping[str, Any]
    inputs: Mapping[str, Argument] | None
    expected_bytes: int
    guessed: bool

    def __str__(self) -> str:
        job = self.job
        words = [
            self.model,
            job["method"],
            job["precision"],
            f"{job['batch']}x{job['seq_tokens']}",
            "checkpointing" if job["checkpointing"] else "",
        ]
        return " ".join(word for word in (*words, "padded" if job.get("padded") else "", job.get("optimizer", "")) if word)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Our peak, or why there is none."""

    point: Point
    peak_bytes: int | None
    reason: str
    seconds: float

    @property
    def error(self) -> float:
        """Relative, with its sign."""
        return (self.peak_bytes or 0) / self.point.expected_bytes - 1


def our_peak(model: Model, job: Job, inputs: Mapping[str, Argument] | None) -> int:
    """Requested bytes at the peak of a step, as we estimate it. The one place that knows how an estimate is asked for."""
    from weighbridge.jobs.estimate import estimate  # noqa: PLC0415  # so that the references can be listed before there is an estimate

    timeline = estimate(model, job, inputs=inputs).timeline
    held = list(itertools.accumulate(event[1] for event in timeline.events))
    return max(held[timeline.start :])


def grid_points() -> Iterator[Point]:
    """The 12 published models; what a Trainer feeds follows from the config."""
    models = json.loads((GOLDEN / "grid_models.json").read_text())
    for row in csv.DictReader(io.StringIO(gzip.decompress((GOLDEN / "grid.csv.gz").read_bytes()).decode())):
        model = models[row["model"]]
        numbers = {"batch": int(row["batch"]), "seq_tokens": int(row["seq_tokens"]), "checkpointing": row["checkpointing"] == "true"}
        job = {key: row[key] for key in ("method", "precision", "attention")} | numbers
        yield Point(row["model"], model["cls"], model["config"], job, None, int(row["peak_requested_bytes"]), False)


def wide_points() -> Iterator[Point]:
    """The other architectures; each row says exactly what it was fed."""
    for line in gzip.decompress((GOLDEN / "wide.jsonl.gz").read_bytes()).decode().splitlines():
        row = json.loads(line)
        if "error" in row:
            continue
        inputs = {name: parse(value, BY_NAME) for name, value in row["inputs"].items()}
        result = row["result"]
        job = row["job"] | {"attention": result["attention"]}
        yield Point(row["model"], row["class"], row["config"], job, inputs, result["peak_requested_bytes"], bool(result["unknown_values"]))


def job_of(point: Point) -> Job:
    """The reference's words in ours."""
    job = dict(point.job)
    return Job(**(job | {"precision": PRECISIONS[job["precision"]]}))


def judge(point: Point, transformers_path: str | None) -> Verdict:
    """Read the model and estimate the step."""
    started = time.perf_counter()
    try:
        model = read_request(Request(point.model, dict(point.config), {}, transformers_path, point.architecture))
        peak = our_peak(model, job_of(point), point.inputs)
    except WeighError as error:
        return Verdict(point, None, str(error), time.perf_counter() - started)
    return Verdict(point, peak, "", time.perf_counter() - started)


def summary(verdicts: list[Verdict]) -> list[str]:
    """The figures of the whole run."""
    errors = sorted(abs(v.error) for v in verdicts if v.peak_bytes is not None)
    if not errors:
        return ["nothing could be told"]
    shares = ", ".join(f"{sum(e <= limit for e in errors) / len(errors):.1%} within {limit:.1%}" for limit in (0.001, 0.01, 0.03))
    p95 = errors[min(len(errors) - 1, int(0.95 * len(errors)))]
    seconds = statistics.median(v.seconds for v in verdicts)
    middle, worst = statistics.median(errors), errors[-1]
    told = f"{len(verdicts)} points, {len(errors)} told: median error {middle:.4%}, p95 {p95:.3%}, max {worst:.2%}; {shares}"
    return [told, f"median {seconds:.2f} s a point"]


def by_model(verdicts: list[Verdict]) -> Iterator[str]:
    """One line a model, worst first."""
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.point.model].append(verdict)
    lines = []
    for name, group in groups.items():
        errors = [abs(v.error) for v in group if v.peak_bytes is not None]
        worst = max(errors, default=0.0)
        lines.append(
            (worst, f"{name:16} {len(errors):3}/{len(group):<3} median {statistics.median(errors or [0]):9.4%} worst {worst:9.3%}")
        )
    return (line for _, line in sorted(lines, reverse=True))


def passes(verdicts: list[Verdict]) -> bool:
    """The bar of this comparison."""
    errors = [abs(v.error) for v in verdicts if v.peak_bytes is not None]
    if not errors:
        return False
    architectures = {v.point.architecture for v in verdicts}
    untold = {v.point.architecture for v in verdicts if v.peak_bytes is None}
    close = sum(error <= 0.01 for error in errors) / len(errors)
    return statistics.median(errors) <= 0.001 and close >= 0.95 and max(errors) <= 0.03 and len(untold) <= 0.05 * len(architectures)


def main(arguments: list[str]) -> int:
    """Print the comparison; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(prog="parity memory", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pattern", nargs="?", default="", help="only models whose name or class contains it")
    parser.add_argument("--quick", action="store_true", help=f"every {QUICK_STEP}th point")
    parser.add_argument("--only", choices=("grid", "wide"), help="one of the two references")
    parser.add_argument("--worst", type=int, default=12, help="how many of the worst points to list")
    parser.add_argument("--transformers", help="the folder of a transformers package")
    options = parser.parse_args(arguments)
    points = [*(grid_points() if options.only != "wide" else ()), *(wide_points() if options.only != "grid" else ())]
    points = [point for point in points if options.pattern in point.model or options.pattern in point.architecture]
    verdicts = [judge(point, options.transformers) for point in (points[::QUICK_STEP] if options.quick else points)]
    told = sorted((v for v in verdicts if v.peak_bytes is not None), key=lambda v: -abs(v.error))
    print("\n".join(by_model(verdicts)), "", sep="\n")
    for verdict in told[: options.worst]:
        note = "  (torch guessed a value here)" if verdict.point.guessed else ""
        print(f"{verdict.error:+9.3%} {verdict.point}: {verdict.peak_bytes} for {verdict.point.expected_bytes}{note}")
    for reason, names in sorted(untold(verdicts).items(), key=lambda item: -len(item[1])):
        print(f"cannot tell {len(names)}: {', '.join(sorted(set(names)))}: {reason[:200]}")
    print("", *summary(verdicts), sep="\n")
    return 0 if passes(verdicts) else 1


def untold(verdicts: list[Verdict]) -> dict[str, list[str]]:
    """Reasons, and the models that met them."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.peak_bytes is None:
            reasons[verdict.reason].append(verdict.point.model)
    return reasons
