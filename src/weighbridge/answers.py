"""Finished reports kept on disk: the same question about the same evidence has the same answer.

The key is made of the request, of everything that was found about the model, and of what answers: our own code, by its files' times,
and the version of transformers. What is loaded can only be made of the report's own classes.
"""

import base64
import io
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

from weighbridge import report as documents
from weighbridge.base.cache import Cache
from weighbridge.report import Document, Report
from weighbridge.request import Options, Request, make_request
from weighbridge.sources import Evidence, find

KIND = "report"


class _Facts(pickle.Unpickler):
    """An unpickler that can make the parts of a report and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(documents, name, None) if module == documents.__name__ else None
        if isinstance(found, type) and issubclass(found, Document):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a report")


class _Plain(pickle.Pickler):
    """A pickler that writes read-only mappings as dictionaries."""

    def reducer_override(self, value: Any) -> Any:
        return (dict, (dict(value),)) if isinstance(value, MappingProxyType) else NotImplemented


def plan(reference: str, **options: Unpack[Options]) -> Report:
    """What a model weighs: parameters, and for each method its memory, the cards it fits, hours and dollars.

    `reference` and the options are those of `weigh plan`. A method that cannot be told is in the report's `cannot_tell`;
    a model that cannot be found or read raises one of base/errors.py.
    """
    return answered(make_request(reference, **options), progress=lambda _text: None)


def answered(request: Request, *, progress: Callable[[str], None]) -> Report:
    """The report of a plan: from the cache, or made now and kept. What could not be told is asked again the next time."""
    evidence = find(request.reference, offline=request.offline, progress=progress)
    kept = load(request, evidence)
    if kept is not None:
        return kept
    untrusted = bool(evidence.custom_code and evidence.files)
    made = _in_a_child(request, evidence) if untrusted else _made(request, evidence, progress)
    if not made.cannot_tell:
        store(request, evidence, made)
    return made


def _made(request: Request, evidence: Evidence, progress: Callable[[str], None] = lambda _text: None) -> Report:
    report: Report = import_module("weighbridge.pipeline").plan_of(request, progress=progress, evidence=evidence)
    return report


def _in_a_child(request: Request, evidence: Evidence) -> Report:
    """A plan of code that came with a repository: played in a process whose time and memory the system bounds, without network."""
    isolation = import_module("weighbridge.reading.isolation")
    asked = io.BytesIO()
    _Plain(asked, protocol=5).dump((request, evidence))
    answer = isolation.run_isolated(f"{__name__}:plan_in_child", base64.b64encode(asked.getvalue()).decode())
    report = _Facts(io.BytesIO(base64.b64decode(answer))).load()
    assert isinstance(report, Report)
    return report


def plan_in_child(asked: str) -> str:
    """The child's side: both ways the parts of a plan, pickled. What comes in is its parent's own."""
    request, evidence = pickle.loads(base64.b64decode(asked))  # noqa: S301 - written by the parent process
    return base64.b64encode(pickle.dumps(_made(request, evidence))).decode()


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
    """What answers, by the times of its files: ours, and the transformers that would be read."""
    found = find_spec("transformers")
    reader = "absent" if found is None or found.origin is None else f"{found.origin} {Path(found.origin).stat().st_mtime_ns}"
    stamps = 0
    for folder, _, names in os.walk(Path(__file__).parent):
        stamps += sum(Path(folder, name).stat().st_mtime_ns for name in names if name.endswith((".py", ".toml", ".zip")))
    return f"{reader} {stamps}"
