"""Bytes, counts and times as people read them, and sizes as people write them."""

import re

from weighbridge.base.errors import UsageError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

_SCALES = {
    "b": 1, "kb": KB, "mb": MB, "gb": GB, "tb": TB,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": 1 << 40,
    "k": KIB, "m": MIB, "g": GIB, "t": 1 << 40,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(text: str) -> int:
    """`22GiB`, `80 GB`, `512MiB` or a plain number of bytes -> bytes."""
    match = _SIZE.fullmatch(text) if len(text) < 64 else None
    scale = _SCALES.get((match[2] or "b").lower()) if match else None
    if match is None or scale is None:
        raise UsageError(f"{text[:40]!r} is not a size in memory", "write 22GiB, 80GB or a number of bytes")
    return int(float(match[1]) * scale)


def decimal(size_bytes: float, digits: int = 3) -> str:
    """Bytes in decimal units with `digits` significant digits: 14300000000 -> `14.3 GB`."""
    for scale, unit in ((TB, "TB"), (GB, "GB"), (MB, "MB"), (KB, "kB")):
        if abs(size_bytes) >= scale:
            return f"{_significant(size_bytes / scale, digits)} {unit}"
    return f"{int(size_bytes)} B"


def gib(size_bytes: float, digits: int = 3) -> str:
    """Bytes in GiB with `digits` significant digits: 16106127360 -> `15.0 GiB`."""
    return f"{_significant(size_bytes / GIB, digits)} GiB"


def count(number: float, digits: int = 3) -> str:
    """A count as `8.03B`, `113M`, `1.2k`."""
    for scale, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if abs(number) >= scale:
            return f"{_significant(number / scale, digits)}{unit}"
    return str(int(number))


def duration(hours: float) -> str:
    """Hours as `3.2 h`, `12 min`, `40 s` or `5.1 days`."""
    if hours >= 72:
        return f"{_significant(hours / 24, 3)} days"
    if hours >= 1:
        return f"{_significant(hours, 3)} h"
    minutes = hours * 60
    return f"{_significant(minutes, 2)} min" if minutes >= 1 else f"{_significant(minutes * 60, 2)} s"


def _significant(value: float, digits: int) -> str:
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    return f"{value:,.{max(0, digits - whole)}f}"
