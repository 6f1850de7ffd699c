"""Finished reports kept on disk: the same question about the same evidence has the same answer.

The key is made of the request, of everything that was found about the model, and of what answers: our own code, by its files' times,
and the version of transformers. What is loaded can only be made of the report's own classes.
"""

import io
import json
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from weighbridge import report as documents
from weighbridge.base.cache import Cache
from weighbridge.report import Document, Report
from weighbridge.request import Request
from weighbridge.sources import Evidence, find

KIND = "report"


class _Facts(pickle.Unpickler):
    """An unpickler that can make the parts of a report and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(documents, name, None) if module == documents.__name__ else None
        if isinstance(found, type) and issubclass(found, Document):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a report")


def answered(request: Request, *, progress: Callable[[str], None]) -> Report:
    """The report of a plan: from the cache, or made now and kept. What could not be told is asked again the next time."""
    evidence = find(request.reference, offline=request.offline, progress=progress)
    kept = load(request, evidence)
    if kept is not None:
        return kept
    made: Report = import_module("weighbridge.pipeline").plan_of(request, progress=progress, evidence=evidence)
    if not made.cannot_tell:
        store(request, evidence, made)
    return made


def load(request: Request, evidence: Evidence) -> Report | None:
    """The report that this question got before, or None."""
    payload = Cache.default().load_bytes(KIND, *_key(request, evidence)) if _keeps(request) else None
    if payload is None:
        return None
    try:
        found = _Facts(io.BytesIO(payload)).load()
    except Exception:
        return None  # damaged, or of other classes: asked again
    return found if isinstance(found, Report) else None


def store(request: Request, evidence: Evidence, report: Report) -> None:
    """Keep a report."""
    if _keeps(request):
        Cache.default().store_bytes(KIND, pickle.dumps(report, protocol=5), *_key(request, evidence))


def _keeps(request: Request) -> bool:
    """Files that a user named may change under their names."""
    return request.prices is None and request.transformers is None


def _key(request: Request, evidence: Evidence) -> tuple[str, ...]:
    facts = {each.name: getattr(evidence, each.name) for each in fields(evidence)}
    files = facts.pop("files", {})
    told = json.dumps({name: _plain(value) for name, value in facts.items()}, sort_keys=True)
    texts = [f"{name}\0{text}" for name, text in sorted(files.items())]
    return repr(replace(request, offline=False)), told, *texts, _answerer()


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | dict | list) or value is None else repr(value)


def _answerer() -> str:
    try:
        reader = version("transformers")
    except PackageNotFoundError:
        reader = "absent"
    package = Path(__file__).parent
    stamps = sum(path.stat().st_mtime_ns for pattern in ("*.py", "*.toml", "*.zip") for path in package.rglob(pattern))
    return f"{reader} {stamps}"
