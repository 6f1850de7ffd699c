"""Terminal: the page for people. Colours help and never carry a meaning alone; names from outside are plain text, never markup."""

from collections.abc import Callable, Iterator
from io import StringIO
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from weighbridge.base.text import printable
from weighbridge.base.units import count, decimal, gib
from weighbridge.formats import View, words
from weighbridge.report import Cost, FitFacts, JobFacts, Report

COLOURS: Final = {
    "weights": "blue", "gradients": "magenta", "optimizer": "cyan", "activations": "green",
    "loss": "yellow", "temporaries": "red", "cache": "bright_blue", "context": "bright_black",
}  # fmt: skip
VERDICTS: Final = {"fits": "green", "unsure": "yellow", "does not fit": "red"}
EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
LABEL: Final = 12
WIDE: Final = 128
"""Columns from which cards stand in two blocks."""
MANY_CARDS: Final = 12
"""Cards from which those with no room at all share a line."""
NARROW: Final = 76
"""Columns below which tables leave things out."""


def render(report: Report, view: View) -> str:
    """The page as text, with ANSI colours where the view allows them."""
    out = StringIO()
    console = Console(
        file=out, width=max(40, view.width), height=50, color_system=view.colours, no_color=view.colours is None,
        force_terminal=view.colours is not None, force_jupyter=False, legacy_windows=False,
        markup=False, emoji=False, highlight=False, _environ={},
    )  # fmt: skip
    console.print(page(report, view))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def page(report: Report, view: View) -> RenderableType:
    """The page as one rich renderable, for a console or a picture."""
    sections = STRUCTURE_ONLY if view.only == "structure" else SECTIONS
    parts: list[RenderableType] = []
    for section in sections:
        found = list(section(report, view))
        if found and parts:
            parts.append(Text())
        parts.extend(found)
    return Group(*parts)


def _title(report: Report, _view: View) -> Iterator[RenderableType]:
    yield Text(words.heading(report), style="bold")
    yield Text(words.origin(report), style="dim")
    for warning in report.warnings:
        yield _note(printable(warning), style="yellow")


def _parameters(report: Report, _view: View) -> Iterator[RenderableType]:
    exact = report.parameters.checkpoint is not None and report.parameters.total == report.parameters.checkpoint.total
    line = Text(f"{report.parameters.total:,} parameters", style="bold")
    line.append(f"  {words.against_checkpoint(report)}", style="not bold")
    if words.delta(report):
        line.append(", ", style="not bold").append(words.delta(report), style="green" if exact else "yellow")
    yield line
    for text in words.explained(report):
        yield _note(text)
    facts = words.parameter_facts(report)
    if facts:
        yield _note(" · ".join(facts))
    refused = words.runs(report)
    if refused:
        yield _note(refused, style="red")


def _memory(report: Report, view: View) -> Iterator[RenderableType]:
    if not report.jobs:
        return
    yield _header("Memory on one card")
    share = max(14, min(44, (view.width - LABEL - 1) // len(report.jobs) - 2))
    table = _table()
    table.add_column(width=LABEL, no_wrap=True)
    for _ in report.jobs:
        table.add_column(width=share, no_wrap=True)
    table.add_row("", *(Text(words.method_title(job), style="bold") for job in report.jobs))
    for label, cell in PEAK_ROWS:
        table.add_row(Text(label, style="bold" if label == "peak" else "dim"), *(Text(cell(job)) for job in report.jobs))
    for category in words.CATEGORIES:
        if any(getattr(job.breakdown, category) for job in report.jobs):
            table.add_row(Text(category), *(_amount(job, category, share) for job in report.jobs))
    yield table
    for job in report.jobs:
        line = Text(f"{words.method_title(job)}: ", style="bold")
        line.append(f"peak in {words.peak_place(job)}; {words.settings(job)}", style="not bold dim")
        yield _hang(line)


PEAK_ROWS: Final[tuple[tuple[str, Callable[[JobFacts], str]], ...]] = (
    ("peak", lambda job: decimal(job.peak.device_bytes, 4)),
    ("", lambda job: gib(job.peak.device_bytes, 4)),
    ("low", lambda job: decimal(job.peak.low_bytes)),
    ("high", lambda job: decimal(job.peak.high_bytes)),
)


def _amount(job: JobFacts, category: str, width: int) -> Text:
    """A category's bytes and its bar, a full bar being the whole peak."""
    size = getattr(job.breakdown, category)
    cell = Text(f"{decimal(size):>8} " if size else f"{'–':>8} ", style="" if size else "dim")
    cell.append(bar(size, job.peak.device_bytes, max(4, width - 9)), style=COLOURS[category])
    return cell


def bar(part: int, whole: int, width: int) -> str:
    """A bar of eighths of a cell; anything above zero shows."""
    eighths = min(8 * width, max(1, round(8 * width * part / whole))) if part > 0 and whole > 0 else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _cards(report: Report, view: View) -> Iterator[RenderableType]:
    rows = _card_rows(report)
    if not rows:
        return
    yield _header("Largest batch on every card")
    hopeless = [row for row in rows if len(rows) > MANY_CARDS and all(fit is None or _has_no_room(fit) for fit in row[1])]
    rows = [row for row in rows if row not in hopeless]
    blocks = 2 if view.width >= WIDE and len(rows) > 8 else 1
    height = max(1, -(-len(rows) // blocks))
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(blocks):
        grid.add_column()
    compact = view.width < NARROW or blocks > 1
    grid.add_row(*(_card_table(report, rows[start : start + height], compact=compact) for start in range(0, len(rows), height)))
    if rows:
        yield grid
    if hopeless:
        yield _hang(Text(f"✗ not even a batch of 1 on {', '.join(_card_name(card) for card, _fits in hopeless)}", style="red"))
    yield _hang(Text(words.LEGEND, style="dim"))
    for line in words.help_lines(report):
        yield _note(line)


def _has_no_room(fit: FitFacts) -> bool:
    return fit.verdict == "does not fit" and not fit.largest_batch


def _card_name(card: FitFacts) -> str:
    """The card's name, without a maker that the model number already tells."""
    name = printable(card.name, 60).removeprefix("NVIDIA ").removeprefix("GeForce ")
    return f"{card.gpus} × {name}" if card.gpus > 1 else name


CardRow = tuple[FitFacts, tuple[FitFacts | None, ...]]


def _card_rows(report: Report) -> list[CardRow]:
    """A card and its fit for each job, in the order of the jobs."""
    by_job = [{fit.card: fit for fit in job.fits} for job in report.jobs]
    cards = {fit.card: fit for job in reversed(report.jobs) for fit in job.fits}
    return [(fit, tuple(found.get(card) for found in by_job)) for card, fit in cards.items()]


def _card_table(report: Report, rows: list[CardRow], *, compact: bool) -> Table:
    table = _table()
    table.add_column(width=20 if compact else 30, no_wrap=True, overflow="ellipsis")
    table.add_column(width=8 if compact else 18, no_wrap=True, justify="right")
    for _ in report.jobs:
        table.add_column(width=8 if compact else 9, no_wrap=True)
    titles = [Text("full" if job.method == "full" else words.method_title(job), style="bold") for job in report.jobs]
    table.add_row(Text(), Text("capacity", style="dim"), *titles)
    for card, fits in rows:
        size = gib(card.capacity_bytes) if compact else f"{decimal(card.capacity_bytes)} {gib(card.capacity_bytes):>9}"
        table.add_row(Text(_card_name(card)), Text(size, style="dim"), *(_verdict(fit) for fit in fits))
    return table


def _verdict(fit: FitFacts | None) -> Text:
    return Text(words.fit_cell(fit), style=VERDICTS[fit.verdict]) if fit else Text("–", style="dim")


def _costs(report: Report, view: View) -> Iterator[RenderableType]:
    priced = [job for job in report.jobs if job.cost is not None]
    if not priced:
        return
    yield _header("Hours and dollars of a run")
    for job in priced:
        line = Text(words.method_title(job), style="bold")
        line.append(f"  {words.run(job.run)}" if job.run else "", style="not bold dim")
        yield line
        if view.width >= NARROW:
            yield _cost_table(job, view)
        else:
            for label, cost in _quotes(job):
                yield _note(f"{label}: {words.cards(cost)}, {words.hours(cost)}, {words.dollars(cost)}, {words.rate(cost)}")
    sources = dict.fromkeys(words.price_source(cost) for job in priced for _label, cost in _quotes(job))
    yield _hang(Text(f"prices: {'; '.join(sources)}", style="dim"))


def _cost_table(job: JobFacts, view: View) -> RenderableType:
    one_line = view.width >= 112
    table = _table()
    for width in (8, 14, 9, 26):
        table.add_column(min_width=width, no_wrap=True)
    if one_line:
        table.add_column(no_wrap=True, style="dim")
    for label, cost in _quotes(job):
        rate = Text(words.rate(cost), style="dim")
        cells = [Text(label), Text(words.cards(cost)), Text(words.hours(cost)), Text(words.dollars(cost), style="bold")]
        table.add_row(*cells, *([rate] if one_line else []))
        if not one_line:
            table.add_row("", "", "", rate)
    return Padding(table, (0, 0, 0, 2))


def _quotes(job: JobFacts) -> list[tuple[str, Cost]]:
    """The cheapest, and the fastest where that is another one."""
    quotes = [("cheapest", job.cost)] + ([("fastest", job.fastest)] if job.fastest != job.cost else [])
    return [(label, cost) for label, cost in quotes if cost is not None]


def _serving(report: Report, _view: View) -> Iterator[RenderableType]:
    if report.serving is None:
        return
    yield _header("Serving")
    for line in words.serving(report.serving):
        yield _note(line)


def _structure(report: Report, view: View) -> Iterator[RenderableType]:
    if not report.structure:
        return
    yield _header("Structure")
    narrow = view.width < NARROW
    table = _table()
    table.add_column(overflow="ellipsis", no_wrap=True, max_width=max(24, view.width - (36 if narrow else 62)))
    table.add_column(no_wrap=True, max_width=24, overflow="ellipsis", style="dim")
    table.add_column(justify="right", no_wrap=True)
    if not narrow:
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
        table.add_column(justify="right", no_wrap=True, style="dim")
        table.add_row(*(Text(name, style="dim") for name in ("layer", "type", "parameters", "output", "FLOPs")))
    for layer, shown in zip(report.structure, _short_names(report), strict=True):
        name = Text("  " * layer.depth + shown)
        name.append(f" × {layer.repeat}" if layer.repeat > 1 else "", style="bold cyan")
        cells = [name, Text(printable(layer.type, 60)), Text(count(layer.parameters) if narrow else f"{layer.parameters:,}")]
        extra = [] if narrow else [Text(words.shape(layer)), Text(words.layer_flops(layer))]
        table.add_row(*cells, *extra)
    yield table


def _short_names(report: Report) -> Iterator[str]:
    """Each layer's name without its parent's, which stands above it."""
    above: list[str] = []
    for layer in report.structure:
        del above[layer.depth :]
        parent = next((name for name in reversed(above) if name), "")
        inside = parent and layer.name.startswith(f"{parent}.")
        yield printable(layer.name.removeprefix(f"{parent}.") if inside else layer.name or layer.type, 80)
        above += [""] * (layer.depth - len(above)) + [layer.name]


def _unknown(report: Report, _view: View) -> Iterator[RenderableType]:
    if report.cannot_tell:
        yield _header("Cannot be told", style="bold yellow")
        for each in report.cannot_tell:
            yield _note(words.untold(each))


def _findings(report: Report, _view: View) -> Iterator[RenderableType]:
    if report.findings:
        yield _header("Findings")
        for each in report.findings:
            yield _note(words.finding(each))


def _assumptions(report: Report, view: View) -> Iterator[RenderableType]:
    if report.assumptions or report.defaulted or report.unread:
        yield _header("Assumed")
    for assumption in report.assumptions:
        yield _note(printable(assumption, 300))
    if report.defaulted:
        yield _note(f"filled from the class's defaults: {words.listed(report.defaulted)}")
    if report.unread:
        yield _note(f"config keys that nothing looked at: {words.listed(report.unread)}")
    if view.explain and report.derivations:
        yield Text()
        yield _header("How the numbers came about")
        for each in report.derivations:
            yield _note(f"{printable(each.what)}: {printable(each.how, 600)}")


def _accuracy(report: Report, _view: View) -> Iterator[RenderableType]:
    if report.accuracy is not None:
        yield _hang(Text(words.accuracy(report.accuracy), style="dim"))


def _provenance(report: Report, view: View) -> Iterator[RenderableType]:
    yield _hang(Text(words.provenance(report), style="dim"))
    if view.explain:
        for name in report.model.files_read:
            yield _note(printable(name), style="dim")


def _header(text: str, style: str = "bold") -> Text:
    return Text(text, style=f"{style} underline")


def _note(text: str, style: str = "") -> RenderableType:
    return _hang(Text(text, style=style), 2)


def _hang(text: Text, indent: int = 0) -> RenderableType:
    """Text that wraps at words, all its lines at the indent."""
    text.overflow = "fold"
    return Padding(text, (0, 0, 0, indent))


def _table() -> Table:
    return Table.grid(padding=(0, 2, 0, 0))


Section = Callable[[Report, View], Iterator[RenderableType]]

SECTIONS: Final[tuple[Section, ...]] = (
    _title, _parameters, _memory, _cards, _costs, _serving, _structure, _unknown, _findings, _assumptions, _accuracy, _provenance,
)  # fmt: skip
STRUCTURE_ONLY: Final[tuple[Section, ...]] = (_title, _parameters, _structure, _unknown, _provenance)
