"""A spinner on standard error for what takes longer than a moment; silent where nobody watches."""

import sys
import threading
from contextlib import AbstractContextManager
from itertools import cycle
from types import TracebackType
from typing import Final, Self

from weighbridge.base.text import printable

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PATIENCE_SECONDS: Final = 0.3
FRAME_SECONDS: Final = 0.1


class Progress(AbstractContextManager["Progress"]):
    """Says what is being done, from 0.3 seconds on, on a terminal only."""

    def __init__(self, text: str, *, quiet: bool = False) -> None:
        self._text = text
        self._done = threading.Event()
        watched = sys.stderr.isatty() and not quiet
        self._thread = threading.Thread(target=self._spin, daemon=True) if watched else None

    def say(self, text: str) -> None:
        """What is being done now."""
        self._text = text

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _spin(self) -> None:
        if self._done.wait(PATIENCE_SECONDS):
            return
        for frame in cycle(FRAMES):
            sys.stderr.write(f"\r\x1b[2K{frame} {printable(self._text, 70)}")
            sys.stderr.flush()
            if self._done.wait(FRAME_SECONDS):
                break
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
