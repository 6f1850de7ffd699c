"""What is kept on disk: parsed sources, small tables and finished reports, under the user's cache folder.

Nothing in it is trusted to be ours: the folder must belong to this user and be closed to others, a file carries the digest of its
payload, and a parsed source is unpickled with nothing but the classes of `ast` in reach. Whatever does not fit is a miss.
Two processes may write at once: a file is written beside its place and moved there.
"""

import ast
import contextlib
import io
import json
import os
import pickle
import stat
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from weighbridge import __version__

MAGIC: Final = b"weighbridge-cache-1\n"
DIGEST_BYTES: Final = 32
FOLDER_MODE: Final = 0o700
VARIABLE: Final = "WEIGH_CACHE"
OFF: Final = frozenset({"", "0", "off", "none"})


class _Nodes(pickle.Unpickler):
    """An unpickler that can make syntax tree nodes and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module in {"ast", "_ast"}:
            node = getattr(ast, name, None)
            if isinstance(node, type) and issubclass(node, ast.AST):
                return node
        if (module, name) == ("builtins", "Ellipsis"):
            return ...
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a syntax tree")


def default_folder() -> Path | None:
    """The cache folder, or None where WEIGH_CACHE turns it off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in OFF else Path(chosen) / "reading"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weighbridge" / "reading"


class Cache:
    """One cache folder; with `folder=None` a cache that never hits."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder if folder is not None and _private(folder) else None

    @classmethod
    def default(cls) -> "Cache":
        """The cache of this user."""
        return cls(default_folder())

    def load_tree(self, text: str) -> ast.Module | None:
        """The parsed form of a source text, if it is here."""
        payload = self._load(self._path("tree", text))
        if payload is None:
            return None
        try:
            tree = _Nodes(io.BytesIO(payload)).load()
        except Exception:
            return None
        return tree if isinstance(tree, ast.Module) else None

    def store_tree(self, text: str, tree: ast.Module) -> None:
        """Keep the parsed form of a source text."""
        if self.folder is not None:
            self._store(self._path("tree", text), pickle.dumps(tree, protocol=5))

    def load_json(self, kind: str, *texts: str) -> Any:
        """A plain value derived from texts, if it is here."""
        payload = self._load(self._path(kind, *texts))
        if payload is None:
            return None
        try:
            return json.loads(payload)
        except ValueError:
            return None

    def store_json(self, kind: str, value: str, *texts: str) -> None:
        """Keep a plain value, already as JSON, derived from texts."""
        self._store(self._path(kind, *texts), value.encode())

    def load_bytes(self, kind: str, *texts: str) -> bytes | None:
        """A payload derived from texts, if it is here. Who unpickles one says what it may be made of."""
        return self._load(self._path(kind, *texts))

    def store_bytes(self, kind: str, payload: bytes, *texts: str) -> None:
        """Keep a payload derived from texts."""
        self._store(self._path(kind, *texts), payload)

    def _path(self, kind: str, *texts: str) -> Path | None:
        if self.folder is None:
            return None
        digest = sha256(f"{__version__} {sys.version_info[:3]}".encode())
        for text in texts:
            digest.update(sha256(text.encode("utf-8", "surrogatepass")).digest())
        return self.folder / f"{kind}-{digest.hexdigest()}"

    @staticmethod
    def _load(path: Path | None) -> bytes | None:
        if path is None:
            return None
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            data = file.read()
        start = len(MAGIC) + DIGEST_BYTES
        payload = data[start:]
        return payload if data[:start] == MAGIC + sha256(payload).digest() else None

    def _store(self, path: Path | None, payload: bytes) -> None:
        if path is None or self.folder is None:
            return
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(MAGIC + sha256(payload).digest() + payload)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink()


def _private(folder: Path) -> bool:
    """Whether the folder is, or could be made, ours alone."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & 0o077
