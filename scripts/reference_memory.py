"""Write tests/golden/memory/wide.jsonl.gz: what torch's fake tensors say of the models and jobs in wide_models.json.

    python scripts/reference_memory.py [PATTERN]

Rows that are there already for the same model, config and job are kept. A model that torch itself cannot run is recorded with its failure.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import peft
import torch
import transformers

from weighbridge.simulate import simulate

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "memory"
WIDE = GOLDEN / "wide.jsonl.gz"
VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
KEPT = (
    "parameters",
    "trainable",
    "peak_requested_bytes",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "held_before_forward_bytes",
    "held_after_forward_bytes",
    "peak_phase",
    "peak_module",
    "peak_operation",
    "peak_node",
    "attention",
    "attention_kernels",
    "unknown_values",
)


def point(name: str, model: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """One reference row, or one that says why torch has none."""
    row = {"model": name, "class": model["cls"], "config": model["config"], "job": job, "versions": VERSIONS}
    try:
        found = simulate(model["cls"], model["config"], **job)
    except Exception as error:  # whatever a model's own code raises is the answer
        return row | {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"}
    result = {key: getattr(found, key) for key in KEPT}
    result["unknown_values"] = sorted(set(found.unknown_values))[:8]
    return row | {"inputs": found.inputs, "result": result}


def key_of(row: dict[str, Any]) -> str:
    """What makes two rows the same point."""
    return json.dumps([row["model"], row["class"], row["config"], row["job"]], sort_keys=True)


def read_rows() -> dict[str, dict[str, Any]]:
    """The rows written so far."""
    if not WIDE.exists():
        return {}
    with gzip.open(WIDE, "rt") as file:
        return {key_of(row): row for row in map(json.loads, file)}


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Write them all; the file's time stamp is left out, so that equal rows make equal files."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    WIDE.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(pattern: str = "") -> None:
    """Add what is missing, and say how it went."""
    models, known, rows = json.loads((GOLDEN / "wide_models.json").read_text()), read_rows(), []
    for name, model in models.items():
        for job in model["points"]:
            old = known.get(key_of({"model": name, "class": model["cls"], "config": model["config"], "job": job}))
            wanted = pattern in name
            row = old if old is not None and (not wanted or "error" not in old) else point(name, model, job) if wanted else None
            if row is None:
                continue
            rows.append(row)
            if row is not old:
                says = row.get("error") or f"{row['result']['peak_requested_bytes'] / 2**30:.3f} GiB {row['result']['unknown_values'][:2]}"
                print(f"{name:16} {job['method']:5} {job['precision']} {job['batch']} x {job['seq_tokens']}: {says}", flush=True)
                write_rows(rows + [r for k, r in known.items() if k not in {key_of(done) for done in rows}])
    write_rows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
