"""Which Python files of a repository a config's `auto_map` needs: the named ones and what they import from beside them.

The text is searched for import statements with one expression; nothing is imported.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from weighbridge.base.errors import BadInput
from weighbridge.sources.text import decode, printable

FILES: Final = 64
FILE_BYTES: Final = 3_000_000
ALL_BYTES: Final = 12_000_000

_SAFE_PATH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
_RELATIVE: Final = re.compile(
    r"^[ \t]*from[ \t]+(\.{1,8})[ \t]*((?:\w[\w.]{0,200})?)[ \t]+import[ \t]+(\([^()]{0,20000}\)|[^\n#]{1,2000})",
    re.MULTILINE,
)
_ABSOLUTE: Final = re.compile(r"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MODELS: Final = re.compile(r"AutoConfig|AutoModel\w*|TFAutoModel\w*|\w*Model\w*|\w*ForCausalLM")


def safe_path(path: str) -> bool:
    """True for a plain relative path: no empty, hidden, absolute or parent part."""
    return len(path) < 300 and _SAFE_PATH.fullmatch(path) is not None and ".." not in path.split("/")


def entry_points(config: Mapping[str, Any]) -> dict[str, str]:
    """`auto_map` as python file path -> the other repository it stands in, or an empty string for this one."""
    found: dict[str, str] = {}
    table = config.get("auto_map")
    for auto_class, target in table.items() if isinstance(table, dict) else ():
        if not _MODELS.fullmatch(str(auto_class)):
            continue
        for reference in target if isinstance(target, list) else [target]:
            if isinstance(reference, str) and "." in reference:
                repository, _, dotted = reference.rpartition("--")
                path = dotted.rpartition(".")[0].replace(".", "/") + ".py"
                if safe_path(path):
                    found.setdefault(path, repository)
    return found


def collect(wanted: Collection[str], fetch: Callable[[str], bytes | None], listing: Collection[str] = ()) -> dict[str, str]:
    """The wanted files and everything they import relatively, as path -> text; `fetch` answers None for what is not there.

    `listing` names the files known to exist: with it, `import helper` finds a `helper.py` beside the file too.
    """
    files: dict[str, str] = {}
    missing: set[str] = set()
    queue, total = list(wanted), 0
    while queue:
        path = queue.pop(0)
        if path in files or path in missing or not safe_path(path):
            continue
        raw = fetch(path) if not listing or path in listing else None
        if raw is None:
            missing.add(path)
            continue
        total += len(raw)
        if len(files) >= FILES or total > ALL_BYTES:
            raise BadInput(f"the model's code is more than {FILES} files or {ALL_BYTES:,} bytes", "give a folder with only its files")
        files[path] = decode(raw, printable(path), FILE_BYTES)
        queue.extend(imports(path, files[path], listing))
    return files


def imports(path: str, text: str, listing: Collection[str] = ()) -> Iterator[str]:
    """The paths that a file's imports may mean, most likely first; not all of them need to exist."""
    folder = posixpath.dirname(path)
    for dots, dotted, names in _RELATIVE.findall(text):
        base = folder
        for _ in dots[1:]:
            base = posixpath.dirname(base)
        if dotted:
            yield from _module(base, dotted)
        stem = posixpath.join(base, dotted.replace(".", "/")) if dotted else base
        for name in _NAME.findall(names)[:200] if not dotted or not listing or f"{stem}/__init__.py" in listing else ():
            yield from _module(stem, name)
    for name in _ABSOLUTE.findall(text) if listing else ():
        candidate = posixpath.join(folder, name + ".py")
        if candidate in listing:
            yield candidate


def _module(base: str, dotted: str) -> Iterator[str]:
    stem = posixpath.join(base, dotted.replace(".", "/"))
    yield stem + ".py"
    yield stem + "/__init__.py"
