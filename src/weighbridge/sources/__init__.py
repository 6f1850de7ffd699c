"""A reference to a model -> Evidence: from a path, the Hub, its local cache or the shipped catalogue.

Nothing here understands a model: what was found is handed on word for word, with where and when it was found.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

from weighbridge.base.errors import AccessDenied, NetworkError, NotFound, UsageError, WeighError
from weighbridge.sources import catalogue, folder, graph
from weighbridge.sources.evidence import Evidence, Facts, Published, TensorIndex
from weighbridge.sources.headers import CheckpointHeader, StoredTensor
from weighbridge.sources.text import CONFIG_BYTES, GRAPH_BYTES, load_object, printable

Progress = Callable[[str], None]

_ID: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.\-]{0,95}(?:/[A-Za-z0-9_][\w.\-]{0,95})?)(?::(?P<part>[A-Za-z0-9][\w.\-]{0,63}))?(?:@(?P<revision>[\w][\w.\-/]{0,199}))?",
    re.ASCII,
)
_FILES: Final = (".json", ".safetensors", ".gguf")
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def find(reference: str, *, offline: bool = False, revision: str | None = None, progress: Progress | None = None) -> Evidence:
    """What a MODEL reference names.

    `org/name[:part][@revision]`, a page's address, a folder, a config.json, a .safetensors, a .gguf, a .weigh.json, or `-`.
    An existing path wins over the Hub; then the Hub, its local cache and the catalogue are asked in this order.
    """
    reference = reference.strip()
    if not reference or "\0" in reference or len(reference) > 4096:
        raise UsageError("no model was named", "give org/name, a folder, a config.json or -")
    if reference == "-":
        return _standard_input()
    path = _local_path(reference)
    if path is not None:
        return _from_path(path)
    name, part, stated = parse_id(reference)
    if revision and stated and revision != stated:
        raise UsageError(f"two revisions were named: {printable(stated)} and {printable(revision)}")
    return _by_name(name, part, revision or stated, offline=offline, progress=progress or _silent)


def parse_id(reference: str) -> tuple[str, str, str | None]:
    """`org/name[:part][@revision]` or the address of a model's page -> name, part, revision."""
    text = reference
    if "://" in text:
        address = urlsplit(text)
        pieces = address.path.strip("/").split("/")
        text = "/".join(pieces[:2])
        if len(pieces) > 3 and pieces[2] in {"tree", "blob", "resolve", "raw"}:
            text += "@" + pieces[3]
    match = _ID.fullmatch(text)
    if match is None or ".." in text:
        raise UsageError(f"{printable(reference, 100)!r} names no model", "give org/name[@revision], a folder, a config.json or -")
    return match["name"], match["part"] or "", match["revision"]


def _local_path(reference: str) -> Path | None:
    """The path a reference means, or None for a name: it must look like a path, or be a folder with a config.json."""
    if "://" in reference:
        return None
    path = Path(reference).expanduser()
    if reference.startswith((".", "/", "~", "\\")) or reference.lower().endswith(_FILES + _PICKLES) or reference[1:3] in {":\\", ":/"}:
        return path
    try:
        exists = (path / "config.json").is_file() or (path.is_dir() and reference.endswith("/"))
    except OSError:
        return None
    return path if exists else None


def _from_path(path: Path) -> Evidence:
    name = path.name.lower()
    if name.endswith(_PICKLES):
        raise UsageError(f"{printable(path.name)} is a pickle, which is never opened", "give the folder or the config.json beside it")
    if name.endswith(".weigh.json"):
        return graph.read_graph_file(path)
    if name.endswith(".gguf"):
        from weighbridge.sources import gguf  # noqa: PLC0415  an optional extra's reader, at its single use

        return gguf.read_gguf(path)
    if path.is_dir():
        return folder.read_folder(path, title=path.resolve().name)
    if not path.exists():
        raise NotFound(f"there is no file or folder {printable(str(path))}")
    if name.endswith(".json"):
        found = graph.from_document(path)
        return found if found is not None else folder.read_file(path)
    if name.endswith(".safetensors"):
        return folder.read_file(path)
    raise UsageError(f"{printable(path.name)} is no config.json, .safetensors, .gguf or .weigh.json")


def _standard_input() -> Evidence:
    raw = sys.stdin.buffer.read(GRAPH_BYTES + 1)
    document = load_object(raw, "standard input", GRAPH_BYTES)
    if graph.is_graph(document):
        return graph.evidence(document, "standard input")
    if len(raw) > CONFIG_BYTES:
        raise UsageError(f"standard input holds {len(raw):,} bytes, too many for a config")
    title = printable(str(document.get("_name_or_path") or "standard input"), 100)
    return Evidence(title=title, source="stdin", read_at=graph.today(), config=document)


def _by_name(name: str, part: str, revision: str | None, *, offline: bool, progress: Progress) -> Evidence:
    from weighbridge.sources import hub  # noqa: PLC0415  the Hub's client is asked for only where a name must be looked up

    failure: WeighError
    if offline or hub.told_offline():
        failure = NetworkError(
            f"{printable(name)} is in neither the local cache nor the catalogue", "leave out --offline, or give a folder"
        )
    else:
        try:
            return hub.fetch(name, part=part, revision=revision, progress=progress)
        except (NetworkError, AccessDenied, NotFound) as error:
            failure = error
    local = _without_network(name, part, revision)
    if local is None:
        _give_up(name, failure)
    if offline:
        return local
    return replace(local, warnings=(f"{failure.message}; answered from the {_place(local)}", *local.warnings))


def _without_network(name: str, part: str, revision: str | None) -> Evidence | None:
    from weighbridge.sources import hub  # noqa: PLC0415  as above

    cached = hub.cached(name, part=part, revision=revision)
    if cached is not None:
        return cached
    spelled = catalogue.resolve(f"{name}:{part}" if part else name)
    if spelled is None:
        return None
    known = catalogue.get(spelled)
    return known if revision in {None, "main", known.revision} else None


def _place(evidence: Evidence) -> str:
    return f"catalogue of {evidence.read_at}" if evidence.source == "catalogue" else f"local cache of {evidence.read_at}"


def _give_up(name: str, failure: WeighError) -> NoReturn:
    near = catalogue.suggestions(name) if not isinstance(failure, AccessDenied) else []
    if near:
        failure.hint = f"did you mean {', '.join(near)}? Otherwise {failure.hint}"
    raise failure


def _silent(_text: str) -> None:
    """Progress that nobody asked for."""


__all__ = [
    "CheckpointHeader",
    "Evidence",
    "Facts",
    "Progress",
    "Published",
    "StoredTensor",
    "TensorIndex",
    "find",
    "parse_id",
]
