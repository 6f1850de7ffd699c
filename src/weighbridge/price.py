"""Price: dated offers with their sources, the length of a run, and what it costs on each card that fits."""

import csv
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from weighbridge.base.errors import BadInput, NotFound, UsageError, WeighError
from weighbridge.base.strict import StrictTable
from weighbridge.cards import TABLES, Card, find_card
from weighbridge.speed import Bound, StepTime

#: The largest machine or cluster that one offer may be.
MOST_GPUS: Final = 100_000
_HINT: Final = "an offer has provider, card, gpus, usd_per_hour, read_at and source; spot and region are optional"


@dataclass(frozen=True, slots=True)
class Offer:
    """A machine for rent. `usd_per_hour` is for all its `gpus` together; `read_at` is when the price was read at `source`."""

    provider: str
    card: str
    gpus: int
    spot: bool
    usd_per_hour: float
    read_at: date
    source: str
    region: str = ""

    @property
    def usd_per_gpu_hour(self) -> float:
        """For comparing machines of different sizes."""
        return self.usd_per_hour / self.gpus

    def machines(self, gpus: int) -> int:
        """How many of it a job on `gpus` cards rents."""
        return -(-gpus // self.gpus)


@dataclass(frozen=True, slots=True)
class Quote:
    """What a run costs on one offer. `low_usd` and `high_usd` follow the step's range; the price itself is as read."""

    card: Card
    gpus: int
    hours: float
    usd: float
    low_usd: float
    high_usd: float
    usd_per_hour: float
    price_source: str
    price_read_at: date
    bound: Bound
    mfu: float


def steps_of_samples(samples: int, epochs: float, batch: int) -> int:
    """Optimizer steps of `epochs` passes over `samples` at `batch` samples a step; the last step of an epoch may be short."""
    _positive(samples=samples, epochs=epochs, batch=batch)
    return math.ceil(-(-samples // batch) * epochs)


def steps_of_tokens(tokens: int, batch: int, seq_tokens: int) -> int:
    """Optimizer steps to see `tokens` tokens."""
    _positive(tokens=tokens, batch=batch, seq=seq_tokens)
    return -(-tokens // (batch * seq_tokens))


@cache
def load_offers() -> tuple[Offer, ...]:
    """The shipped offers, in the order of their files."""
    return tuple(offer for path in sorted((TABLES / "prices").glob("*.toml")) for offer in _from_toml(path.read_text("utf-8"), path.name))


def read_offers(path: Path) -> tuple[Offer, ...]:
    """The offers of a user's file (.toml, .json or .csv), which replace the shipped ones."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path.name}: prices are read from .toml, .json or .csv", _HINT)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise NotFound(f"{path.name}: {error.strerror or error}", "check the path of --prices") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name} is not UTF-8 text", _HINT) from error
    offers = reader(text, path.name)
    if not offers:
        raise BadInput(f"{path.name} holds no offer", _HINT)
    return offers


def cheapest_offer(offers: Iterable[Offer], card: Card, gpus: int = 1, *, spot: bool = False) -> Offer | None:
    """The offer on which `gpus` of this card cost least an hour, whole machines paid; spot ones only if asked for."""
    fitting = (offer for offer in offers if offer.card == card.id and (spot or not offer.spot))
    return min(fitting, key=lambda offer: (offer.machines(gpus) * offer.usd_per_hour, offer.provider), default=None)


def quote(offer: Offer, card: Card, step: StepTime, steps: int, gpus: int = 1) -> Quote:
    """What `steps` steps cost on this offer."""
    usd_per_hour = offer.machines(gpus) * offer.usd_per_hour
    low, likely, high = (seconds * steps / 3600 for seconds in (step.low_seconds, step.likely_seconds, step.high_seconds))
    return Quote(
        card=card,
        gpus=gpus,
        hours=likely,
        usd=likely * usd_per_hour,
        low_usd=low * usd_per_hour,
        high_usd=high * usd_per_hour,
        usd_per_hour=usd_per_hour,
        price_source=f"{offer.provider}, {offer.source}",
        price_read_at=offer.read_at,
        bound=step.bound,
        mfu=step.mfu,
    )


def quotes(
    cards: Iterable[Card], offers: Sequence[Offer], time_of: Callable[[Card], StepTime], steps: int, *, gpus: int = 1, spot: bool = False
) -> tuple[Quote, ...]:
    """The cheapest quote on each card that somebody offers, the smallest total first; `time_of` says a step's time on a card."""
    found = []
    for card in cards:
        offer = cheapest_offer(offers, card, gpus, spot=spot)
        if offer is not None and card.has_known_speed:
            found.append(quote(offer, card, time_of(card), steps, gpus))
    return tuple(sorted(found, key=_total))


def cheapest(quotes: Sequence[Quote]) -> Quote | None:
    """The quote with the smallest total, the faster one where two cost the same."""
    return min(quotes, key=_total, default=None)


def _total(each: Quote) -> tuple[float, float, str]:
    return each.usd, each.hours, each.card.id


def _from_toml(text: str, where: str) -> tuple[Offer, ...]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not TOML: {error}", _HINT) from error
    return _sheets(document, where)


def _from_json(text: str, where: str) -> tuple[Offer, ...]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {error}", _HINT) from error
    return _sheets({"offers": document} if isinstance(document, list) else document, where)


def _from_csv(text: str, where: str) -> tuple[Offer, ...]:
    rows = csv.DictReader(StringIO(text), strict=True)
    try:
        return tuple(_offer(_typed_row(row, f"{where} line {rows.line_num}"), f"{where} line {rows.line_num}") for row in rows)
    except csv.Error as error:
        raise BadInput(f"{where} line {rows.line_num}: {error}", _HINT) from error


def _sheets(document: Any, where: str) -> tuple[Offer, ...]:
    """A document's `offers`; `provider`, `read_at` and `source` at the top are the defaults of each."""
    if not isinstance(document, dict) or not isinstance(document.get("offers"), list):
        raise BadInput(f"{where} has no list of offers", _HINT)
    shared = {key: document[key] for key in ("provider", "read_at", "source") if key in document}
    unknown = sorted(set(document) - set(shared) - {"offers"})
    if unknown:
        raise BadInput(f"{where}: unknown {', '.join(unknown)}", _HINT)
    return tuple(_offer(shared | _dict(row, where), f"{where} offer {index}") for index, row in enumerate(document["offers"], 1))


def _dict(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise BadInput(f"{where}: an offer is a table, not {row!r}", _HINT)
    return row


def _offer(row: dict[str, Any], where: str) -> Offer:
    table = StrictTable(row, where)
    try:
        offer = Offer(
            provider=table.take("provider", str),
            card=find_card(table.take("card", str)).id,
            gpus=table.positive("gpus"),
            spot=table.maybe("spot", bool, False),
            usd_per_hour=table.number("usd_per_hour"),
            read_at=table.day("read_at"),
            source=table.take("source", str),
            region=table.maybe("region", str, ""),
        )
        table.finish()
        if offer.gpus > MOST_GPUS:
            raise BadInput(f"gpus must be at most {MOST_GPUS:,}")
    except WeighError as error:
        message = error.message if error.message.startswith(where) else f"{where}: {error.message}"
        raise BadInput(message, _HINT if isinstance(error, BadInput) else error.hint) from error
    return offer


def _typed_row(row: dict[Any, Any], where: str) -> dict[str, Any]:
    """A CSV line with its numbers and its yes/no read; empty cells are absent."""
    if None in row:
        raise BadInput(f"{where}: more cells than the header names", _HINT)
    typed: dict[str, Any] = {key.strip(): value.strip() for key, value in row.items() if value and value.strip()}
    try:
        for key, kind in (("gpus", int), ("usd_per_hour", float)):
            typed |= {key: kind(typed[key])} if key in typed else {}
    except ValueError as error:
        raise BadInput(f"{where}: {error}", _HINT) from error
    spot = typed.pop("spot", "false").lower()
    if spot not in _YES | _NO:
        raise BadInput(f"{where}: spot must be true or false, not {spot!r}", _HINT)
    return typed | {"spot": spot in _YES}


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise UsageError(f"{name} must be above zero, not {value}", f"give --{name} a number above zero")


_YES: Final = frozenset({"true", "yes", "1", "spot"})
_NO: Final = frozenset({"false", "no", "0", "on-demand"})
_READERS: Final = {".toml": _from_toml, ".json": _from_json, ".csv": _from_csv}
