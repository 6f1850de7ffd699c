"""Import statements: only what the machine's resolver knows can be imported, and nothing is ever loaded into Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.compile_names import store_name
from weighbridge.reading.python.scopes import Scope
from weighbridge.reading.python.values import MISSING, Frame, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

Statement = Callable[[Frame], Any]


def missing_module(frame: Frame, name: str, trying: bool) -> Unknown:
    """An absent package: ImportError under `try` and inside the importing package, else unknown until it is used."""
    machine = frame.machine
    own = frame.module.package.split(".")[0]
    if (trying and not machine.optional_present) or (own and name.split(".", maxsplit=1)[0] == own):
        raise ModuleNotFoundError(f"No module named '{name}'")
    return machine.unknown(f"module {name}", "lib")


def compile_import(node: ast.Import, scope: Scope) -> Statement:
    """Import a.b [as c]."""
    trying = scope.host.trying > 0
    stores = [(alias, store_name(alias.asname or alias.name.split(".")[0], scope)) for alias in node.names]

    def run(frame: Frame) -> None:
        for alias, store in stores:
            module = frame.machine.module(alias.name)
            if module is None:
                module = missing_module(frame, alias.name, trying)
            top = alias.name.split(".")[0]
            if not alias.asname and top != alias.name:
                outer = frame.machine.module(top)
                module = outer if outer is not None else frame.machine.unknown(f"module {top}", "lib")
            store(frame, module)

    return run


def compile_import_from(node: ast.ImportFrom, scope: Scope) -> Statement:
    """From [.]a import b [as c]; a star is looked through when a name is not found elsewhere."""
    trying = scope.host.trying > 0
    stores = [(alias, store_name(alias.asname or alias.name, scope)) for alias in node.names if alias.name != "*"]
    star = any(alias.name == "*" for alias in node.names)

    def run(frame: Frame) -> None:
        base = absolute_name(node, frame.module.package)
        module = frame.machine.module(base)
        if star:
            frame.module.stars.append(module)
        for alias, store in stores:
            source = module if module is not None else missing_module(frame, base, trying)
            store(frame, imported_name(frame, source, base, alias.name, trying))

    return run


def imported_name(frame: Frame, module: Any, base: str, name: str, trying: bool) -> Any:
    """A name of a module, or a submodule. A name that another package no longer has is unknown, outside of `try`."""
    machine = frame.machine
    if type(module) is Unknown:
        return machine.unknown(f"{module.why.removeprefix('module ')}.{name}", module.kind)
    value = machine.getattr(module, name, MISSING_NAME)
    if value is not MISSING_NAME:
        return value
    submodule = machine.module(f"{base}.{name}")
    if submodule is not None:
        return submodule
    if trying or base.split(".", maxsplit=1)[0] == frame.module.package.split(".")[0]:
        raise ImportError(f"cannot import name '{name}' from '{base}'")
    return machine.unknown(f"{base}.{name}", "lib")


MISSING_NAME = Unknown("no such name")


def absolute_name(node: ast.ImportFrom, package: str) -> str:
    """The module that a relative import names; ImportError beyond the top package."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    if node.level > len(parts):
        raise ImportError("attempted relative import beyond top-level package")
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, node.module] if node.module else parts)


def load(machine: Machine, name: str) -> Any:
    """The module of a dotted name, or None."""
    module = machine.modules.get(name, MISSING)
    if module is MISSING:
        module = machine.stdlib(name)
        if module is not None:
            machine.modules[name] = module
        elif machine.resolve is not None:
            module = machine.resolve(machine, name)
        else:
            module = None
    return module
