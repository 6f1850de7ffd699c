"""Formats: a finished report -> text. A format is one module with `render(report, view)`, found by its name here; it computes nothing."""

from dataclasses import dataclass
from importlib import import_module
from typing import Final, Literal

from weighbridge.base.errors import UsageError
from weighbridge.report import Report

Colours = Literal["standard", "256", "truecolor"]

FORMATS: Final = {
    "terminal": "weighbridge.formats.terminal",
    "markdown": "weighbridge.formats.markdown",
    "json": "weighbridge.formats.json",
}
"""Name -> module, imported only when it is asked for."""


@dataclass(frozen=True, slots=True)
class View:
    """How a page is to look; a format takes from it what it can use. `colours` of None means none."""

    width: int = 80
    colours: Colours | None = None
    explain: bool = False
    only: Literal["plan", "structure"] = "plan"


def render(report: Report, name: str, view: View | None = None) -> str:
    """The report in the format of that name, without a final newline."""
    module = FORMATS.get(name)
    if module is None:
        raise UsageError(f"no format is called {name[:40]!r}", f"choose one of {', '.join(FORMATS)}")
    text: str = import_module(module).render(report, view or View())
    return text
