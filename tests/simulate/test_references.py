"""The stored references: whole, parseable without torch, and broad enough to mean something."""

import csv
import gzip
import io
import json
from pathlib import Path

from weighbridge.base.dtypes import BY_NAME
from weighbridge.reading.input_facts import InputSpec, parse

GOLDEN = Path(__file__).parent.parent / "golden"


def lines(name):
    return [json.loads(line) for line in gzip.decompress((GOLDEN / name).read_bytes()).decode().splitlines()]


def test_the_grid_names_a_config_for_each_of_its_524_points():
    models = json.loads((GOLDEN / "memory" / "grid_models.json").read_text())
    rows = list(csv.DictReader(io.StringIO(gzip.decompress((GOLDEN / "memory" / "grid.csv.gz").read_bytes()).decode())))
    assert len(rows) == 524
    assert {row["model"] for row in rows} == set(models)


def test_every_wide_point_ran_and_says_what_it_was_fed():
    rows = lines("memory/wide.jsonl.gz")
    assert len(rows) >= 100
    assert len({row["class"] for row in rows}) >= 25
    for row in rows:
        assert "error" not in row
        assert row["result"]["peak_reserved_bytes"] >= row["result"]["peak_allocated_bytes"] >= row["result"]["peak_requested_bytes"]
        tensors = [value for value in (parse(row, BY_NAME) for row in row["inputs"].values()) if isinstance(value, InputSpec)]
        assert tensors
        assert all(tensor.shape[0] >= 1 for tensor in tensors)


def test_every_forward_row_has_outputs_or_a_reason():
    rows = lines("forward.jsonl.gz")
    assert len({row["model_type"] for row in rows}) == len(rows) > 600
    assert all(("outputs" in row) != bool(row.get("failure")) for row in rows)
    assert sum("outputs" in row for row in rows) / len(rows) > 0.75
