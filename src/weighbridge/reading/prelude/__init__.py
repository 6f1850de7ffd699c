"""Our own Python text that the interpreter reads and nobody imports: module `a.b.c` stands in `a_b_c.py`."""

from importlib.resources import files


def source(dotted: str) -> tuple[str, str] | None:
    """The text and the file name that stand for a module, or None where the prelude has none."""
    name = f"{dotted.replace('.', '_')}.py"
    path = files(__name__).joinpath(name)
    return (path.read_text(encoding="utf-8"), f"prelude/{name}") if path.is_file() else None
