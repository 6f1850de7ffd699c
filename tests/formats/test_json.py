"""JSON: valid by the published schema, the same after a round trip, and honest about what it cannot read."""

import json
from dataclasses import replace

import jsonschema
import pytest

from weighbridge.base.errors import BadInput
from weighbridge.formats import json as format_json


def test_the_shipped_schema_is_the_one_that_the_classes_imply():
    assert format_json.schema() == json.loads(json.dumps(format_json.make_schema())), "run scripts/write_schema"


def test_the_schema_itself_is_valid():
    jsonschema.Draft202012Validator.check_schema(format_json.schema())


def test_a_golden_report_is_valid_by_the_schema(golden_document):
    jsonschema.Draft202012Validator(format_json.schema()).validate(golden_document)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "weighbridge.plan/2"},
        {"weighbridge": 1},
        {"runs": "yes"},
        {"jobs": {}},
        {"parameters": {"total": 1.5}},
    ],
    ids=str,
)
def test_the_schema_refuses_a_broken_document(qwen, change):
    broken = format_json.document(qwen) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(format_json.schema()).validate(broken)


def test_a_report_survives_the_round_trip(golden, golden_document):
    assert format_json.parse(format_json.render(golden)) == golden
    assert json.loads(format_json.render(golden)) == golden_document


def test_keys_come_in_the_order_of_the_interface(qwen):
    keys = list(json.loads(format_json.render(qwen)))
    assert keys[:3] == ["schema", "model", "parameters"]
    assert keys[-1] == "weighbridge"


def test_nothing_but_ascii_leaves(hostile):
    text = format_json.render(hostile)
    assert text.isascii()
    assert "\x1b" not in text


def test_bytes_are_integers_and_unknown_is_null(qwen):
    document = json.loads(format_json.render(replace(qwen, runs=None)))
    assert document["runs"] is None
    peak = document["jobs"][0]["peak"]
    assert all(isinstance(value, int) for name, value in peak.items() if name.endswith("_bytes"))


def test_keys_of_a_later_version_are_ignored(qwen):
    document = format_json.document(qwen) | {"later": 1}
    assert format_json.parse(json.dumps(document)) == qwen


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other/1"}', "null"])
def test_what_is_no_plan_is_refused_with_a_hint(text):
    with pytest.raises(BadInput) as refused:
        format_json.parse(text)
    assert "weigh plan" in refused.value.hint
