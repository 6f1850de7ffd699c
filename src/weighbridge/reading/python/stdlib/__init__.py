"""Stand-ins for the standard library: a table of module name -> function that makes the module for one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weighbridge.reading.python.stdlib import (
    containers,
    contexts,
    copying,
    dataclass,
    inert,
    iteration,
    mathematics,
    records,
    tools,
    types_and_abc,
)

STDLIB: dict[str, Callable[[Any], Any]] = {
    **mathematics.MODULES,
    **containers.MODULES,
    **contexts.MODULES,
    **copying.MODULES,
    **dataclass.MODULES,
    **inert.MODULES,
    **iteration.MODULES,
    **records.MODULES,
    **tools.MODULES,
    **types_and_abc.MODULES,
}
