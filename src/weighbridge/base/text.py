"""Names from outside, made safe to show: whatever a repository calls itself, it cannot steer a terminal or a reader's eye."""

from typing import Final

REPLACEMENT: Final = "�"


def printable(text: str, limit: int = 200) -> str:
    """One line without control, escape, bidirectional, zero-width and unassigned characters, cut at `limit`.

    Line ends and tabs become spaces; everything else that str.isprintable refuses becomes a replacement mark.
    """
    flat = " ".join(text[: 4 * limit].split())
    clean = "".join(character if character.isprintable() else REPLACEMENT for character in flat)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
