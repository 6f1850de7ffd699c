"""A model's own arithmetic and its folded structure."""

import pytest

from weighbridge.base.dtypes import FLOAT32
from weighbridge.base.errors import CannotTell
from weighbridge.model import Hole, Model, Module, Parameter
from weighbridge.reading.plain import model_from_plain, model_to_plain

LAYERS = tuple(module for i in range(3) for module in (Module(f"layers.{i}", "Block", 0, 6), Module(f"layers.{i}.fc", "Linear", 6, 6)))
MODEL = Model(
    title="t",
    model_type="x",
    architecture="Net",
    parameters=(
        Parameter("embed.weight", (4, 2), FLOAT32),
        *(Parameter(f"layers.{i}.fc.weight", (2, 3), FLOAT32, trainable=i > 0) for i in range(3)),
        Parameter("head.weight", (4, 2), FLOAT32, tied_to="embed.weight"),
    ),
    buffers=(),
    modules=(
        Module("", "Net", 0, 26),
        Module("embed", "Embedding", 8, 8),
        Module("layers", "ModuleList", 0, 18),
        *LAYERS,
        Module("head", "Linear", 0, 0),
    ),
)


def test_a_tied_parameter_counts_once() -> None:
    assert MODEL.total == 8 + 3 * 6
    assert MODEL.trainable == 8 + 2 * 6
    assert MODEL.active == MODEL.total


def test_a_hole_makes_the_total_unknown_and_keeps_the_lower_bound() -> None:
    model = model_from_plain({**model_to_plain(MODEL), "holes": [{"what": "Net.x", "why": "made elsewhere", "file": "m.py", "line": 3}]})
    assert model.holes == (Hole("Net.x", "made elsewhere", "m.py", 3),)
    assert model.seen == 26
    with pytest.raises(CannotTell, match=r"m\.py:3"):
        _ = model.total


def test_alike_layers_share_one_row() -> None:
    rows = MODEL.structure()
    assert [(row.index, row.name, row.type, row.parameters, row.repeat) for row in rows] == [
        ("0", "", "Net", 26, 1),
        ("0", "embed", "Embedding", 8, 1),
        ("1", "layers", "ModuleList", 18, 1),
        ("1.0", "0-2", "Block", 6, 3),
        ("1.0.0", "fc", "Linear", 6, 1),
        ("2", "head", "Linear", 0, 1),
    ]
    assert len(MODEL.structure(max_depth=1)) == 4


def test_a_model_survives_the_way_through_json() -> None:
    assert model_from_plain(model_to_plain(MODEL)) == MODEL
