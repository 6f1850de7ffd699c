"""Reads hostile repositories while an audit hook watches; run in a process of its own by tests/reading/test_nothing_is_run.py.

Standard input holds {name: {path: text}}; standard output gets the outcomes, or the first name with what it made happen.
"""

import json
import os
import sys
from pathlib import Path

import weighbridge
from weighbridge.base.errors import WeighError
from weighbridge.reading.python import Limits
from weighbridge.reading.reader import Request, read_request, transformers_folder

CONFIG = {"model_type": "probe", "auto_map": {"AutoConfig": "m.C", "AutoModel": "m.M"}}
LIMITS = Limits(steps=50_000, cells=50_000, seconds=5.0)
READABLE = tuple(os.path.realpath(folder) + os.sep for folder in (transformers_folder(), Path(weighbridge.__file__).parent))
OPENINGS = frozenset({"open", "os.listdir", "os.scandir"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT
HARMLESS = ("object.__getattr__", "sys._getframe", "sys.unraisablehook", "gc.", "builtins.id", "code.__new__")


class Watch:
    """The audit events that happened while it was on, but for reading transformers' and our own text."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[tuple[str, str]] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, args: tuple) -> None:
        if self.on and not event.startswith(HARMLESS) and not self.allowed(event, args):
            self.events.append((event, repr(args)[:200]))

    @staticmethod
    def allowed(event: str, args: tuple) -> bool:
        if event == "compile":
            return sys._getframe(2).f_code.co_filename.endswith("ast.py")  # ast.parse makes a tree, and no code
        if event == "open" and args[0] == "<unknown>":
            return True  # Python's parser looks for the faulty line of a text by its name, which is this
        if event not in OPENINGS or not isinstance(args[0], str | bytes | os.PathLike):
            return False
        writes = event == "open" and isinstance(args[2], int) and args[2] & WRITING
        return not writes and (os.path.realpath(os.fsdecode(args[0])) + os.sep).startswith(READABLE)


def outcome(files: dict[str, str]) -> str:
    try:
        _ = read_request(Request("t", CONFIG, files, None, None, LIMITS)).total
    except WeighError:
        return "refused"
    return "answered"


def main() -> None:
    repositories = json.load(sys.stdin)
    outcomes = {"answered": 0, "refused": 0}
    outcomes[outcome(repositories.pop("warm up"))] += 1
    watch, modules = Watch(), set(sys.modules)
    for name, files in repositories.items():
        watch.on = True
        outcomes[outcome(files)] += 1
        watch.on = False
        imported = sorted(set(sys.modules) - modules)
        if watch.events or imported:
            sys.exit(f"{name}: {watch.events} {imported}")
    sys.stdout.write(json.dumps(outcomes))


def prove() -> None:
    """Do what must be seen."""
    watch = Watch()
    watch.on = True
    list(Path().iterdir())
    Path("x").write_text("x")
    eval("1")
    os.system("true")
    watch.on = False
    sys.stdout.write(" ".join(sorted({event for event, _ in watch.events})))


if __name__ == "__main__":
    prove() if "--prove" in sys.argv else main()
