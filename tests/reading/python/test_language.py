"""The interpreter answers as CPython does."""

from typing import Any

import pytest
from snippets import SNIPPETS

from weighbridge.reading.python import Class, DefaultDict, Instance, Machine, Raised, TypeObject, Unknown


def run(text: str) -> Any:
    machine = Machine()
    module = machine.source_module("snippet", text, "snippet.py", "snippet")
    return machine.run(lambda: machine.call(machine.getattr(module, "main"), []))


def plain(value: Any) -> Any:
    """A value as CPython and the interpreter can be compared by."""
    if isinstance(value, Unknown):
        return f"unknown: {value.why}"
    if isinstance(value, Instance):
        return plain(value.payload) if value.payload is not None else value.cls.name
    if isinstance(value, (Class, TypeObject, type)):
        return getattr(value, "name", None) or getattr(value, "__name__", None)
    if isinstance(value, (list, tuple)):
        return type(value).__name__ if False else [plain(part) for part in value]
    if isinstance(value, (dict, DefaultDict)):
        return {str(plain(key)): plain(part) for key, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, map(plain, value)))
    return value if type(value) in {int, float, bool, str, bytes, complex, type(None), range} else type(value).__name__


def outcome(action: Any) -> Any:
    try:
        return plain(action())
    except Raised as error:
        return f"raises {error.value.cls.name}"
    except Exception as error:
        return f"raises {type(error).__name__}"


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_gives_what_cpython_gives(name: str) -> None:
    space: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(SNIPPETS[name], "snippet.py", "exec"), space)
    expected = outcome(space["main"])
    assert outcome(lambda: run(SNIPPETS[name])) == expected
