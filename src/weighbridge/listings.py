"""Listings: the cards, prices and models that are known, as a table or as JSON."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import date
from io import StringIO
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weighbridge import cards, price
from weighbridge.base.text import printable
from weighbridge.base.units import TB, gib
from weighbridge.formats import Colours
from weighbridge.sources import catalogue

Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The heading and the lines."""


def render(name: str, *, as_json: bool, width: int, colours: Colours | None) -> str:
    """The listing of that name, without a final newline."""
    listing = LISTINGS[name]
    if as_json:
        return json.dumps(listing.documents(), indent=2, default=_plain)
    return _table(listing.rows(), width, colours)


class Listing:
    """One listing: what it holds as documents, and what of it a table shows."""

    def __init__(self, documents: Callable[[], list[Any]], rows: Callable[[], Rows]) -> None:
        self.documents = documents
        self.rows = rows


def _card_rows() -> Rows:
    lines: list[tuple[str, ...]] = [
        (
            card.id,
            card.name,
            gib(card.memory_bytes) + (" (from its label)" if card.memory_estimate else ""),
            f"{card.bandwidth_bytes_per_second / TB:.2f} TB/s",
            f"{card.peak_flops('bfloat16') / 1e12:,.0f} TFLOP/s",
        )
        for card in cards.load_cards()
    ]
    return ("card", "name", "memory", "bandwidth", "dense bf16"), lines


def _price_rows() -> Rows:
    offers = sorted(price.load_offers(), key=lambda offer: (offer.card, offer.usd_per_gpu_hour))
    lines: list[tuple[str, ...]] = [
        (
            offer.card,
            f"{offer.gpus}",
            f"${offer.usd_per_hour:,.2f}",
            f"${offer.usd_per_gpu_hour:,.2f}",
            "spot" if offer.spot else "",
            offer.provider,
            offer.read_at.isoformat(),
        )
        for offer in offers
    ]
    return ("card", "gpus", "an hour", "a card", "", "provider", "read"), lines


def _models() -> list[Any]:
    return list(catalogue.names())


LISTINGS: Final = {
    "cards": Listing(lambda: [asdict(card) for card in cards.load_cards()], _card_rows),
    "prices": Listing(lambda: [asdict(offer) for offer in price.load_offers()], _price_rows),
    "models": Listing(_models, lambda: ((), [(name,) for name in _models()])),
}


def _table(rows: Rows, width: int, colours: Colours | None) -> str:
    heading, lines = rows
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in heading or lines[:1]:
        table.add_column(no_wrap=True, overflow="ellipsis")
    for line in [heading] if heading else []:
        table.add_row(*(Text(cell, style="bold") for cell in line))
    for line in lines:
        table.add_row(*_texts(line))
    out = StringIO()
    coloured = colours is not None
    console = Console(file=out, width=width, color_system=colours, no_color=not coloured, force_terminal=coloured, _environ={})
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _texts(cells: Iterable[str]) -> Iterable[Text]:
    return (Text(printable(cell)) for cell in cells)


def _plain(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in a listing")
