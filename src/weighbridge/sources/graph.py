"""A graph file that an earlier command wrote: evidence that needs no further reading."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weighbridge.base.errors import BadInput
from weighbridge.sources.evidence import Evidence
from weighbridge.sources.folder import read_bytes
from weighbridge.sources.text import GRAPH_BYTES, load_object, printable

SCHEMA: Final = "weighbridge.graph/"


def is_graph(document: Mapping[str, Any]) -> bool:
    """True for our own graph files and for the component graphs that we read too."""
    if str(document.get("schema", "")).startswith(SCHEMA):
        return True
    return isinstance(document.get("components"), list) and isinstance(document.get("connections"), list)


def read_graph_file(path: Path) -> Evidence:
    """A `.weigh.json` -> evidence with `graph` set."""
    document = load_object(read_bytes(path, GRAPH_BYTES), printable(path.name), GRAPH_BYTES)
    if not is_graph(document):
        raise BadInput(f"{printable(path.name)} is no graph file", "write one with weigh trace or --graph FILE")
    return evidence(document, path.name)


def from_document(path: Path) -> Evidence | None:
    """The evidence of a `.json` file that turns out to be a graph; None for any other document.

    A finished plan is refused: it has no model in it to plan from again.
    """
    document = load_object(read_bytes(path, GRAPH_BYTES), printable(path.name), GRAPH_BYTES)
    if str(document.get("schema", "")).startswith("weighbridge.plan/"):
        raise BadInput(f"{printable(path.name)} is a finished plan, not a model", "give the model that it was made from")
    return evidence(document, path.name) if is_graph(document) else None


def evidence(document: Mapping[str, Any], where: str) -> Evidence:
    """Evidence around a graph; its config, if it carries one, comes along."""
    model = document.get("model")
    facts = model if isinstance(model, dict) else document
    config = facts.get("config", document.get("config"))
    title = facts.get("id") or facts.get("title") or document.get("name") or Path(where).name.removesuffix(".weigh.json")
    revision = facts.get("revision")
    return Evidence(
        title=printable(str(title)),
        source="graph",
        read_at=today(),
        config=config if isinstance(config, dict) else {},
        revision=revision if isinstance(revision, str) else None,
        graph=document,
    )


def today() -> str:
    """Today's date, as ISO text in UTC."""
    return dt.datetime.now(tz=dt.UTC).date().isoformat()
