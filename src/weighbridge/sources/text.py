"""Untrusted bytes -> text and JSON, with bounds, and one of our errors for everything that can be wrong with them."""

import json
from collections.abc import Iterable
from typing import Any, Final

from weighbridge.base.errors import BadInput

CONFIG_BYTES: Final = 4 << 20
INDEX_BYTES: Final = 64 << 20
GRAPH_BYTES: Final = 256 << 20
DEPTH: Final = 64
DIGITS: Final = 64
"""Longer than any number a config holds (tokenizers write 1000000000000000019884624838656)."""


def decode(raw: bytes, where: str, limit: int = CONFIG_BYTES) -> str:
    """Bytes of a file -> text; a byte order mark is dropped."""
    if len(raw) > limit:
        raise BadInput(f"{where} is {len(raw):,} bytes, more than the {limit:,} that are read", "give the config.json itself")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} is not UTF-8 text (byte {error.start})", "save the file as UTF-8") from None


def load_object(raw: bytes | str, where: str, limit: int = CONFIG_BYTES) -> dict[str, Any]:
    """One JSON object, read strictly: BadInput names `where` and what is wrong.

    Infinity is let through because transformers itself writes it (`time_step_limit`); NaN, a key given twice with
    two values, numbers of more than 64 digits and nesting past 64 levels are refused.
    """
    text = decode(raw, where, limit) if isinstance(raw, bytes) else raw
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_int=_integer, parse_float=_number)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where} is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise BadInput(f"{where} is nested too deeply") from None
    except _Refused as error:
        raise BadInput(f"{where}: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{where} holds a JSON {_kind(value)}, not an object", "a config.json is one {...} object")
    _check_depth(value, where)
    return value


def printable(text: str, limit: int = 200) -> str:
    """A name from outside, safe to print: control characters out, cut at `limit`."""
    clean = "".join(character if character.isprintable() else "?" for character in text[:limit])
    return clean + ("…" if len(text) > limit else "")


class _Refused(Exception):  # noqa: N818  carries a reason up to load_object, never further
    """A value that JSON allows and a config must not hold."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _Refused(f"key {printable(key, 40)!r} is given twice with different values")
        found[key] = value
    return found


def _constant(name: str) -> float:
    if name == "NaN":
        raise _Refused("NaN is not a value a config can hold")
    return float(name)


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise _Refused(f"a number of {len(text)} digits")
    return int(text)


def _number(text: str) -> float:
    if len(text) > DIGITS * 8:
        raise _Refused(f"a number of {len(text)} digits")
    return float(text)


def _kind(value: object) -> str:
    return {list: "list", str: "string", int: "number", float: "number", bool: "boolean"}.get(type(value), "null")


def _check_depth(value: object, where: str) -> None:
    level: list[object] = [value]
    for _ in range(DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise BadInput(f"{where} is nested more than {DEPTH} levels deep")


def _children(item: object) -> Iterable[object]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
