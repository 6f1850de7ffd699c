"""Making stand-in modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weighbridge.reading.python.values import MISSING, Namespace, Native, Unknown


def native(function: Callable[..., Any], name: str) -> Native:
    """A native that takes the machine and sees unknown arguments."""
    return Native(function, name, lazy=True, wants_machine=True)


def strict(name: str, entries: dict[str, Any]) -> Namespace:
    """A module with these names; others are unknown."""
    return Namespace(name, entries, lambda attribute: MISSING if attribute.startswith("__") else Unknown(f"{name}.{attribute}", "lib"))


def stub(name: str, entries: dict[str, Any] | None = None) -> Namespace:
    """A module whose names are inert."""
    return Namespace(
        name, entries or {}, lambda attribute: MISSING if attribute.startswith("__") else Unknown(f"{name}.{attribute}", "stub")
    )
