"""Markdown: the same facts for an issue, a pull request or a model card. Every name from outside is escaped."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weighbridge.base.text import printable
from weighbridge.base.units import decimal, gib
from weighbridge.formats import View, words
from weighbridge.report import Cost, JobFacts, Report

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$@:^=])")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;<!-- -->"}
"""The comment after an @ keeps forges from taking what follows for somebody's name."""
_QUIET: Final = frozenset("-.:()=+")
"""Harmless inside a line; escaped only where a line starts with them."""


def render(report: Report, view: View) -> str:
    """The page as GitHub-flavoured Markdown without a final newline."""
    sections = STRUCTURE_ONLY if view.only == "structure" else SECTIONS
    blocks = [list(section(report, view)) for section in sections]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def escape(text: str) -> str:
    """Text from outside as Markdown that shows it letter for letter: no markup, HTML, link, mention, cell or line of its own."""
    return _SPECIAL.sub(_escaped, text.replace("&", _ENTITIES["&"]))


def _escaped(match: re.Match[str]) -> str:
    character = match[1]
    if character in _ENTITIES:
        return _ENTITIES[character]
    if character in _QUIET and match.start() > 0 and not _starts_something(match):
        return character
    return f"\\{character}"


def _starts_something(match: re.Match[str]) -> bool:
    """True for the colon of a bare https:// and the dot of a bare www., which would become links, and for a list's `1.` or `1)`."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    if match[1] in ".)" and before.isdigit():
        return True
    return (match[1] == ":" and after.startswith("//")) or (match[1] == "." and before.lower().endswith("www"))


def _title(report: Report, _view: View) -> Iterator[str]:
    yield f"## {escape(words.heading(report))}"
    yield ""
    yield escape(words.origin(report))
    for warning in report.warnings:
        yield ""
        yield f"> {escape(printable(warning))}"


def _parameters(report: Report, _view: View) -> Iterator[str]:
    held = ", ".join(filter(None, (words.against_checkpoint(report), words.delta(report))))
    yield f"**{report.parameters.total:,} parameters**, {escape(held)}"
    facts = [*words.explained(report), *words.parameter_facts(report)]
    refused = words.runs(report)
    if facts or refused:
        yield ""
        yield from _list([*facts, *([refused] if refused else [])])


def _memory(report: Report, _view: View) -> Iterator[str]:
    if not report.jobs:
        return
    yield "### Memory on one card"
    yield ""
    rows = [
        ["**peak**", *(f"**{decimal(job.peak.device_bytes, 4)}** ({gib(job.peak.device_bytes, 4)})" for job in report.jobs)],
        ["range", *(words.peak_range(job) for job in report.jobs)],
    ]
    for category in words.CATEGORIES:
        sizes = [getattr(job.breakdown, category) for job in report.jobs]
        if any(sizes):
            rows.append([category, *(decimal(size) if size else "–" for size in sizes)])
    yield from _table(["", *(escape(words.method_title(job)) for job in report.jobs)], rows)
    yield ""
    yield from _list(f"{words.method_title(job)}: peak in {words.peak_place(job)}; {words.settings(job)}" for job in report.jobs)


def _cards(report: Report, _view: View) -> Iterator[str]:
    by_job = [{fit.card: fit for fit in job.fits} for job in report.jobs]
    cards = {fit.card: fit for job in report.jobs for fit in job.fits}
    if not cards:
        return
    yield "### Largest batch on every card"
    yield ""
    rows = []
    for card, any_fit in cards.items():
        count = f"{any_fit.gpus} × " if any_fit.gpus > 1 else ""
        verdicts = [words.fit_cell(found[card]) if card in found else "–" for found in by_job]
        rows.append([count + escape(printable(any_fit.name, 60)), words.both(any_fit.capacity_bytes), *verdicts])
    yield from _table(["card", "capacity", *(escape(words.method_title(job)) for job in report.jobs)], rows)
    yield ""
    yield words.LEGEND
    help_lines = words.help_lines(report)
    if help_lines:
        yield ""
        yield from _list(help_lines)


def _costs(report: Report, _view: View) -> Iterator[str]:
    priced = [job for job in report.jobs if job.cost is not None]
    if not priced:
        return
    yield "### Hours and dollars of a run"
    yield ""
    labels = (("cheapest", "cost"), ("fastest", "fastest"))
    rows = [_cost_row(job, label, getattr(job, name)) for job in priced for label, name in labels if getattr(job, name) is not None]
    yield from _table(["method", "", "card", "time", "cost", "price and speed", "price read"], rows)
    runs = [f"{words.method_title(job)}: {words.run(job.run)}" for job in priced if job.run]
    if runs:
        yield ""
        yield from _list(runs)


def _cost_row(job: JobFacts, label: str, cost: Cost) -> list[str]:
    facts = (words.cards, words.hours, words.dollars, words.rate, words.price_source)
    return [escape(cell) for cell in (words.method_title(job), label, *(fact(cost) for fact in facts))]


def _serving(report: Report, _view: View) -> Iterator[str]:
    if report.serving is not None:
        yield "### Serving"
        yield ""
        yield from _list(words.serving(report.serving))


def _structure(report: Report, _view: View) -> Iterator[str]:
    if not report.structure:
        return
    yield "### Structure"
    yield ""
    rows = []
    for layer in report.structure:
        name = "&emsp;" * layer.depth + escape(printable(layer.name or layer.type, 80))
        name += f" × {layer.repeat}" if layer.repeat > 1 else ""
        kind = escape(printable(layer.type, 60))
        rows.append([name, kind, f"{layer.parameters:,}", words.shape(layer), words.layer_flops(layer)])
    yield from _table(["layer", "type", "parameters", "output", "FLOPs"], rows)


def _unknown(report: Report, _view: View) -> Iterator[str]:
    if report.cannot_tell:
        yield "### Cannot be told"
        yield ""
        yield from _list(words.untold(each) for each in report.cannot_tell)


def _findings(report: Report, _view: View) -> Iterator[str]:
    if report.findings:
        yield "### Findings"
        yield ""
        yield from _list(words.finding(each) for each in report.findings)


def _assumptions(report: Report, view: View) -> Iterator[str]:
    lines = [printable(assumption, 300) for assumption in report.assumptions]
    if report.defaulted:
        lines.append(f"filled from the class's defaults: {words.listed(report.defaulted)}")
    if report.unread:
        lines.append(f"config keys that nothing looked at: {words.listed(report.unread)}")
    if lines:
        yield "### Assumed"
        yield ""
        yield from _list(lines)
    if view.explain and report.derivations:
        yield ""
        yield "### How the numbers came about"
        yield ""
        yield from _list(f"{printable(each.what)}: {printable(each.how, 600)}" for each in report.derivations)


def _accuracy(report: Report, _view: View) -> Iterator[str]:
    if report.accuracy is not None:
        yield escape(words.accuracy(report.accuracy))


def _provenance(report: Report, _view: View) -> Iterator[str]:
    yield f"<sub>{escape(words.provenance(report))}</sub>"


def _list(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {escape(line)}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are Markdown already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


SECTIONS: Final = (
    _title, _parameters, _memory, _cards, _costs, _serving, _structure, _unknown, _findings, _assumptions, _accuracy, _provenance,
)  # fmt: skip
STRUCTURE_ONLY: Final = (_title, _parameters, _structure, _unknown, _provenance)
