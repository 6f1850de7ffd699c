"""Strict reading of our own and the user's tables: a missing, unknown or mistyped key is an error that names the file."""

from collections.abc import Mapping
from datetime import date
from typing import Any, TypeVar

from weighbridge.base.errors import BadInput

_T = TypeVar("_T")
_LARGEST = 1e300


class StrictTable:
    """One table of a file, from which keys are taken; `finish` refuses what nobody took."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self.where = where

    def take(self, key: str, kind: type[_T]) -> _T:
        """The value of a required key, which must be exactly of `kind` (a bool is not an int)."""
        if key not in self._values:
            raise BadInput(f"{self.where}: {key} is missing")
        return self._typed(key, kind)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def maybe(self, key: str, kind: type[_T], default: _T) -> _T:
        """The value of an optional key, or `default`."""
        return self._typed(key, kind) if key in self._values else default

    def number(self, key: str) -> float:
        """A finite number of zero or more, written as an integer or a float."""
        value = self._values.pop(key, None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
            raise BadInput(f"{self.where}: {key} must be a number of zero or more, not {value!r}")
        return float(value)

    def positive(self, key: str) -> int:
        """An integer above zero."""
        value = self.take(key, int)
        if value <= 0:
            raise BadInput(f"{self.where}: {key} must be above zero, not {value}")
        return value

    def day(self, key: str) -> date:
        """A date, written as TOML's own type or as ISO text."""
        value = self._values.pop(key, None)
        if type(value) is date:
            return value
        try:
            return date.fromisoformat(value if isinstance(value, str) else "")
        except ValueError:
            raise BadInput(f"{self.where}: {key} must be a date such as 2026-12-01, not {value!r}") from None

    def texts(self, key: str) -> tuple[str, ...]:
        """An optional list of strings."""
        values = self.maybe(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise BadInput(f"{self.where}: {key} must be a list of strings")
        return tuple(values)

    def table(self, key: str) -> "StrictTable":
        """A required table inside this one."""
        return StrictTable(self.take(key, dict), f"{self.where} [{key}]")

    def integers(self) -> tuple[tuple[str, int], ...]:
        """Every key left, each of which must hold an integer above zero."""
        return tuple((key, self.positive(key)) for key in list(self._values))

    def finish(self) -> None:
        """Refuse any key that was not taken."""
        if self._values:
            raise BadInput(f"{self.where}: unknown {', '.join(sorted(self._values))}")

    def _typed(self, key: str, kind: type[_T]) -> _T:
        value = self._values.pop(key)
        if type(value) is not kind:
            raise BadInput(f"{self.where}: {key} must be {kind.__name__}, not {value!r}")
        return value
