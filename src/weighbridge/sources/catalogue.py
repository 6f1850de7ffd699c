"""The shipped catalogue: configs and published totals of known models, for work without a network.

One zip member an entry, so that a look-up reads the directory and one small member. `scripts/build_catalogue` writes it.
"""

import difflib
import io
import json
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from weighbridge.base.errors import NotFound
from weighbridge.sources.evidence import NOTHING, Evidence, Facts, Published, TensorIndex
from weighbridge.sources.text import printable

ARCHIVE: Final = "catalogue.zip"
ENTRY, INDEX, GRAPH = ".json", ".index.txt", ".weigh.json"

FIDELITY: Final[Mapping[str, str]] = {
    "trimmed/rewritten": "the catalogue's copy of this config is trimmed or rewritten; compare it with the published one",
    "verbatim copy": "this config is a copy found elsewhere, not read from the model's own page",
    "content": "this config has the published content, but not its exact bytes",
}


def names() -> tuple[str, ...]:
    """Every model id of the catalogue, sorted."""
    return tuple(sorted(_directory().values(), key=str.lower))


def resolve(name: str) -> str | None:
    """The catalogue's spelling of a name: any case, and a bare name where only one owner has it."""
    directory = _directory()
    wanted = name.lower()
    if wanted in directory:
        return directory[wanted]
    if "/" in wanted:
        return None
    owners = [spelled for key, spelled in directory.items() if key.rpartition("/")[2] == wanted]
    return owners[0] if len(owners) == 1 else None


def suggestions(name: str, limit: int = 3) -> list[str]:
    """Ids of the catalogue that a mistyped name may have meant."""
    directory = _directory()
    wanted = name.lower()
    close = difflib.get_close_matches(wanted, directory, n=limit, cutoff=0.75)
    if not close:
        tails = {key.rpartition("/")[2]: key for key in directory}
        close = [tails[tail] for tail in difflib.get_close_matches(wanted.rpartition("/")[2], tails, n=limit, cutoff=0.8)]
    return [directory[key] for key in close]


def get(name: str) -> Evidence:
    """The evidence of one model; NotFound suggests near misses."""
    spelled = resolve(name)
    if spelled is None:
        near = suggestions(name)
        hint = f"did you mean {', '.join(near)}?" if near else "see weigh models, or give a folder or a config.json"
        raise NotFound(f"{printable(name)} is not in the catalogue", hint)
    with _archive() as archive:
        members = archive.NameToInfo
        entry = json.loads(archive.read(spelled + ENTRY))
        index = archive.read(spelled + INDEX).decode() if spelled + INDEX in members else None
        graph = json.loads(archive.read(spelled + GRAPH)) if spelled + GRAPH in members else None
    return _evidence(entry, index, graph)


def _evidence(entry: dict[str, Any], index: str | None, graph: dict[str, Any] | None) -> Evidence:
    published = entry.get("published")
    warnings = [FIDELITY.get(entry["fidelity"], f"this config is {entry['fidelity']}")] if entry.get("fidelity") else []
    if entry["config"].get("auto_map") and graph is None:
        warnings.append("the catalogue holds this model's config, but not its code")
    return Evidence(
        title=entry["id"],
        source="catalogue",
        read_at=entry["read_at"],
        config=entry["config"],
        revision=entry.get("revision"),
        facts=Facts(
            published=Published(**published) if published else None,
            index=_index(entry["index"], index) if index is not None else None,
            quantization=entry.get("quantization", NOTHING),
            generation=entry.get("generation", NOTHING),
            pipeline=entry.get("pipeline", NOTHING),
        ),
        warnings=tuple(warnings),
        graph=graph,
    )


def _index(stated: dict[str, Any], names_text: str) -> TensorIndex:
    return TensorIndex(tuple(names_text.split("\n")), stated["total_bytes"], stated["source"], stated["total_parameters"])


def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(_packed()))


@cache
def _packed() -> bytes:
    return resources.files("weighbridge.tables.catalogue").joinpath(ARCHIVE).read_bytes()


@cache
def _directory() -> dict[str, str]:
    """Lower-case id -> id."""
    with _archive() as archive:
        ids = [name.removesuffix(ENTRY) for name in archive.namelist() if name.endswith(ENTRY) and not name.endswith(GRAPH)]
    return {name.lower(): name for name in ids}
