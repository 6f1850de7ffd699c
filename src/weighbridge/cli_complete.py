"""What a shell offers after a part of a name."""

from importlib import import_module
from typing import Final

import click

MOST: Final = 200


def complete_cards(_ctx: click.Context, _param: click.Parameter, start: str) -> list[str]:
    """Ids of cards; the tables are read only here, when a shell asks."""
    cards = import_module("weighbridge.cards").load_cards()
    return [card.id for card in cards if card.id.startswith(start.lower())]


def complete_models(_ctx: click.Context, _param: click.Parameter, start: str) -> list[str]:
    """Ids of the catalogue."""
    names = import_module("weighbridge.sources.catalogue").names()
    return [name for name in names if name.lower().startswith(start.lower())][:MOST]
