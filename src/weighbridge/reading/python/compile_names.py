"""Loading, storing and deleting what a name, attribute, item or pattern of names stands for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import protocols
from weighbridge.reading.python.attribute_stores import delete_attribute, write_attribute
from weighbridge.reading.python.code import Expression
from weighbridge.reading.python.scopes import CELL, FREE, IN_CLASS, IN_MODULE, LOCAL, Scope
from weighbridge.reading.python.values import MISSING, Frame, Unknown

Store = Callable[[Frame, Any], None]


def load_name(name: str, scope: Scope) -> Expression:
    """A closure that reads a variable."""
    kind, stored = scope.resolve(name)
    if kind == LOCAL:

        def load_local(frame: Frame) -> Any:
            try:
                return frame.vars[stored]
            except KeyError:
                raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value") from None

        return load_local
    if kind in {CELL, FREE}:

        def load_cell(frame: Frame) -> Any:
            value = frame.cells[stored].value
            if value is MISSING:
                raise NameError(f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope")
            return value

        return load_cell
    if kind == IN_CLASS:

        def load_class(frame: Frame) -> Any:
            value = frame.vars.get(name, MISSING)
            return value if value is not MISSING else frame.module.lookup(frame.machine, name)

        return load_class

    def load_global(frame: Frame) -> Any:
        value = frame.module.namespace.get(name, MISSING)
        return value if value is not MISSING else frame.module.lookup(frame.machine, name)

    return load_global


def store_name(name: str, scope: Scope) -> Store:
    """A closure that binds a variable."""
    kind, stored = scope.resolve(name)
    if kind in {LOCAL, IN_CLASS}:

        def store_local(frame: Frame, value: Any) -> None:
            frame.vars[stored] = value

        return store_local
    if kind in {CELL, FREE}:

        def store_cell(frame: Frame, value: Any) -> None:
            frame.cells[stored].value = value

        return store_cell
    if kind == IN_MODULE:

        def store_module(frame: Frame, value: Any) -> None:
            frame.module.namespace[name] = value

        return store_module

    def store_global(frame: Frame, value: Any) -> None:
        frame.module.assign(frame.machine, name, value)

    return store_global


def delete_name(name: str, scope: Scope) -> Callable[[Frame], None]:
    """A closure that unbinds a variable."""
    kind, stored = scope.resolve(name)

    def delete(frame: Frame) -> None:
        if kind in {CELL, FREE}:
            present = frame.cells[stored].value is not MISSING
            frame.cells[stored].value = MISSING
        elif kind in {LOCAL, IN_CLASS}:
            present = frame.vars.pop(stored, MISSING) is not MISSING
        else:
            present = frame.module.namespace.pop(name, MISSING) is not MISSING
        if not present:
            raise NameError(f"name '{name}' is not defined")

    return delete


def compile_target(node: ast.expr, scope: Scope, expression: Callable[[ast.expr, Scope], Expression]) -> Store:
    """A closure that assigns a value to what stands left of `=`."""
    if isinstance(node, ast.Name):
        return store_name(node.id, scope)
    if isinstance(node, ast.Attribute):
        owner, name = expression(node.value, scope), node.attr
        return lambda frame, value: write_attribute(frame.machine, owner(frame), name, value)
    if isinstance(node, ast.Subscript):
        owner, key = expression(node.value, scope), expression(node.slice, scope)
        return lambda frame, value: protocols.set_item(frame.machine, owner(frame), key(frame), value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return compile_unpacking(node, scope, expression)
    raise CannotTell(f"assignment to {type(node).__name__}", "the interpreter has no such target")


def compile_unpacking(node: ast.Tuple | ast.List, scope: Scope, expression: Callable[[ast.expr, Scope], Expression]) -> Store:
    """`a, *b = value`."""
    starred = next((index for index, element in enumerate(node.elts) if isinstance(element, ast.Starred)), None)
    targets = [compile_target(e.value if isinstance(e, ast.Starred) else e, scope, expression) for e in node.elts]
    count = len(targets)

    def unpack(frame: Frame, value: Any) -> None:
        if type(value) is Unknown:
            parts: Any = [frame.machine.unknown(f"part of {value.why}", value.kind) for _ in targets]
        else:
            parts = protocols.as_list(frame.machine, value)
            if starred is not None:
                if len(parts) < count - 1:
                    raise ValueError(f"not enough values to unpack (expected at least {count - 1}, got {len(parts)})")
                stop = len(parts) - count + starred + 1
                parts = [*parts[:starred], list(parts[starred:stop]), *parts[stop:]]
            elif len(parts) != count:
                few = "not enough" if len(parts) < count else "too many"
                raise ValueError(f"{few} values to unpack (expected {count}, got {len(parts)})")
        del value
        for store, part in zip(targets, parts, strict=True):
            store(frame, part)

    return unpack


def compile_delete(node: ast.expr, scope: Scope, expression: Callable[[ast.expr, Scope], Expression]) -> list[Callable[[Frame], None]]:
    """What `del` does to each of its targets."""
    if isinstance(node, ast.Name):
        return [delete_name(node.id, scope)]
    if isinstance(node, ast.Attribute):
        owner, name = expression(node.value, scope), node.attr
        return [lambda frame: delete_attribute(frame.machine, owner(frame), name)]
    if isinstance(node, ast.Subscript):
        owner, key = expression(node.value, scope), expression(node.slice, scope)
        return [lambda frame: protocols.delete_item(frame.machine, owner(frame), key(frame))]
    assert isinstance(node, (ast.Tuple, ast.List))
    return [step for element in node.elts for step in compile_delete(element, scope, expression)]
