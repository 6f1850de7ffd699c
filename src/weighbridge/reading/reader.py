"""The reading itself: a machine, its library, the configuration, the class, and the model that comes of them."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from weighbridge.base.cache import Cache
from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.model import Model
from weighbridge.phantom import Session
from weighbridge.reading import checks, configs, plain
from weighbridge.reading.auto_classes import AutoTables
from weighbridge.reading.glue.library import Parsed
from weighbridge.reading.glue.module_instance import ModuleInstance
from weighbridge.reading.glue.runtime import Runtime
from weighbridge.reading.isolation import ProcessLimits, run_isolated
from weighbridge.reading.names import describe
from weighbridge.reading.python import Limits
from weighbridge.reading.source_set import SourceSet, TransformersSource
from weighbridge.sources.evidence import Evidence

SECOND_CHANCE = (ImportError, AssertionError, NameError, RuntimeError)
"""What code raises that insists on an optional package."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to read, and how."""

    title: str
    config: Mapping[str, Any]
    files: Mapping[str, str]
    transformers_path: str | None = None
    architecture: str | None = None
    limits: Limits | None = None


@lru_cache(maxsize=4)
def _transformers(path: str | None) -> tuple[TransformersSource, AutoTables]:
    source = TransformersSource.find(path)
    return source, AutoTables.read(source, Cache.default())


@lru_cache(maxsize=1)
def _parsed() -> Parsed:
    """Sources parsed before in this process."""
    return Parsed()


def read(
    evidence: Evidence,
    *,
    transformers_path: str | None = None,
    architecture: str | None = None,
    limits: Limits | None = None,
    isolated: bool = False,
) -> Model:
    """Build the model that the evidence describes.

    With `isolated`, code that came with the repository is read in a bounded child process: the model that comes back is plain facts,
    without a live root. Raises CannotTell where a shape or a branch hangs on something unknown, BadConfig where the model's own classes
    refuse.
    """
    request = Request(evidence.title, evidence.config, evidence.files, transformers_path, architecture, limits)
    if isolated and evidence.custom_code:
        return plain.model_from_plain(
            run_isolated("weighbridge.reading.reader:read_plain", plain.request_to_plain(request), ProcessLimits())
        )
    return read_request(request)


def read_plain(payload: dict[str, Any]) -> dict[str, Any]:
    """The same from and to JSON values: the child's side of an isolated reading."""
    return plain.model_to_plain(read_request(Request(**payload)))


def read_request(request: Request) -> Model:
    """Read once as though optional packages were absent, and if the code insists on one, once more as though they were there."""
    configs.check_is_mapping(request.config)
    checks.check_sizes(request.config)
    try:
        return _read_once(request, optional_present=False)
    except WeighError as error:
        if not isinstance(error.__cause__, SECOND_CHANCE) or not request.files:
            raise
        first = error
    try:
        model = _read_once(request, optional_present=True)
    except CannotTell:
        raise first from None
    return replace(model, notes=(*model.notes, f"read as though optional packages were installed: {first}"))


def _read_once(request: Request, *, optional_present: bool) -> Model:
    transformers, tables = _transformers(request.transformers_path)
    sources = SourceSet(transformers, request.files)
    entries = configs.custom_map(request.config, sources)
    runtime = Runtime(sources, tables, Cache.default(), _parsed(), limits=request.limits, custom=bool(entries))
    runtime.machine.optional_present = optional_present
    try:
        with runtime.session.activate(), collector_paused():
            return runtime.machine.run(lambda: _build(request, runtime, entries))
    except WeighError:
        raise
    except Exception as error:
        raise runtime.machine.explain(error) from error


@contextmanager
def collector_paused() -> Iterator[None]:
    """Building makes many objects and almost no cycles: looking for cycles meanwhile costs more than the building."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _build(request: Request, runtime: Runtime, entries: Mapping[str, str]) -> Model:
    config = plain.fresh(request.config)
    if entries:
        chosen = configs.choose_custom(runtime.library, config, entries, request.architecture)
    else:
        chosen = configs.choose_builtin(runtime.library, runtime.auto, config, request.architecture)
    root = runtime.machine.call(chosen.cls, [chosen.config])
    if not isinstance(root, ModuleInstance):
        raise CannotTell(f"what {chosen.cls.name} builds", "it is not a torch module")
    runtime.finish(root)
    return checks.checked(describe(request, runtime, chosen, root))


def transformers_folder(path: str | None = None) -> Path:
    """The folder of transformers that would be read."""
    return _transformers(path)[0].root


__all__ = ["Request", "Session", "read", "read_plain", "read_request", "transformers_folder"]
