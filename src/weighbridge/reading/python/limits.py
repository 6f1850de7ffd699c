"""How much work reading may do before it is refused by name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one machine's whole life; each refusal is a LimitExceeded naming the field it went past."""

    steps: int = 20_000_000
    depth: int = 400
    cells: int = 20_000_000
    int_bits: int = 65_536
    text_chars: int = 10_000_000
    source_bytes: int = 3_000_000
    seconds: float = 60.0
