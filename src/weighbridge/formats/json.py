"""JSON: the document itself, in the order of report.py; and back, for a document that an earlier command wrote."""

import json
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from weighbridge.base.errors import BadInput
from weighbridge.report import SCHEMA, Document, Report

MOST_CHARACTERS = 50_000_000


def render(report: Document, _view: object = None, *, indent: int | None = 2) -> str:
    """The report as JSON text without a final newline; nothing but ASCII leaves here."""
    return json.dumps(document(report), indent=indent, allow_nan=False)


def document(part: Any) -> Any:
    """A part of a report as dicts, lists and plain values, its fields in their order."""
    if is_dataclass(part):
        return {field.name: document(getattr(part, field.name)) for field in fields(part)}
    if isinstance(part, tuple):
        return [document(each) for each in part]
    if isinstance(part, dict):
        return {key: document(value) for key, value in part.items()}
    return part


def parse(text: str) -> Report:
    """A plan document -> Report; keys that this version does not know are ignored. BadInput where it is none."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"a plan of {len(text):,} characters is too long to be one")
    try:
        report = _adapter().validate_json(text)
    except ValueError as error:
        raise BadInput(f"not a {SCHEMA} document: {_first_line(error)}", "write one with weigh plan MODEL --json") from error
    if not isinstance(report, Report) or report.schema != SCHEMA:
        raise BadInput(f"not a {SCHEMA} document", "write one with weigh plan MODEL --json")
    return report


def schema() -> dict[str, Any]:
    """The published JSON Schema, as it is shipped."""
    text = files("weighbridge.formats").joinpath("schema", "weighbridge.plan-1.schema.json").read_text("utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped


def make_schema() -> dict[str, Any]:
    """The JSON Schema that the classes of report.py imply; scripts/write_schema ships it."""
    made: dict[str, Any] = _untitled(_adapter().json_schema(mode="serialization"))
    made["properties"]["schema"] = {"const": SCHEMA}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **made}


def _untitled(part: Any) -> Any:
    """Without the titles that only repeat a key."""
    if isinstance(part, list):
        return [_untitled(each) for each in part]
    if isinstance(part, dict):
        return {key: _untitled(value) for key, value in part.items() if not (key == "title" and isinstance(value, str))}
    return part


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415  only reading a document back and making the schema need it; a plan does not

    return TypeAdapter(Report)


def _first_line(error: ValueError) -> str:
    lines = str(error).splitlines()
    return " ".join(line.strip() for line in lines[1:3]) or "unreadable"
