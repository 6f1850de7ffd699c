"""List, set and dict comprehensions, and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import protocols
from weighbridge.reading.python.code import Expression
from weighbridge.reading.python.compile_expressions import expression
from weighbridge.reading.python.compile_names import Store, compile_target
from weighbridge.reading.python.scopes import ComprehensionNode, Scope
from weighbridge.reading.python.values import Cell, Frame

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

LONG = 2048  # a pure table of numbers longer than this keeps its length and forgets most values
KEPT = 32
PURE = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.Attribute,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.Load,
)
PURE_MODULES = frozenset(["math", "np", "numpy"])
PURE_FUNCTIONS = frozenset(["int", "float", "min", "max", "abs", "round"])
Clause = tuple[Store, Expression, list[Expression]]


def is_pure(node: ast.expr) -> bool:
    """Whether an expression is arithmetic on names, so that leaving it out has no effect."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            function = part.func
            from_module = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in PURE_MODULES
            if not from_module and not (isinstance(function, ast.Name) and function.id in PURE_FUNCTIONS):
                return False
        elif not isinstance(part, PURE):
            return False
    return True


def compile_clauses(node: ComprehensionNode, outer: Scope, inner: Scope) -> list[Clause]:
    """(target, iterable, conditions) of each `for`; the first iterable belongs to the scope outside."""
    return [
        (
            compile_target(generator.target, inner, expression),
            expression(generator.iter, inner if index else outer),
            [expression(condition, inner) for condition in generator.ifs],
        )
        for index, generator in enumerate(node.generators)
    ]


def walk(frame: Frame, clauses: list[Clause], index: int, iterator: Iterator[Any], emit: Callable[[Frame], None]) -> None:
    """Run the nested loops of a comprehension."""
    store, _, conditions = clauses[index]
    machine = frame.machine
    last = index + 1 == len(clauses)
    for item in iterator:
        machine.steps += 1
        if machine.steps > machine.checkpoint:
            machine.tick(0)
        store(frame, item)
        item = None  # noqa: PLW2901 - only the loop variable may hold it
        for condition in conditions:
            if not protocols.truth(machine, condition(frame)):
                break
        else:
            if last:
                machine.charge(1)
                emit(frame)
            else:
                walk(frame, clauses, index + 1, protocols.iterate(machine, clauses[index + 1][1](frame)), emit)


def excess(source: Any) -> int:
    """How many numbers a long range has beyond those that are looked at."""
    count = protocols.range_length(source) if type(source) is range else 0
    return count - KEPT if count > LONG else 0


def emitter(machine: Machine, out: Any, key: Expression | None, value: Expression) -> Callable[[Frame], None]:
    """What puts one more element into a list or a dict."""

    def emit(frame: Frame) -> None:
        if key is not None:
            name = key(frame)
            out[protocols.dict_key(machine, name)] = value(frame)
        else:
            out.append(value(frame))

    return emit


def compile_inlined(node: ast.ListComp | ast.SetComp | ast.DictComp, scope: Scope) -> Expression:
    """A comprehension that runs in the frame around it, with variables of its own."""
    inner = scope.children[node]
    clauses = compile_clauses(node, scope, inner)
    host = inner.host
    names = list(inner.bound.values())
    captured = [name for name in names if name in host.cells]
    first = clauses[0][1]
    long_table = isinstance(node, ast.ListComp) and len(clauses) == 1 and not clauses[0][2] and is_pure(node.elt)
    key = expression(node.key, inner) if isinstance(node, ast.DictComp) else None
    value = expression(node.value if isinstance(node, ast.DictComp) else node.elt, inner)

    def build(frame: Frame) -> Any:
        machine = frame.machine
        source = first(frame)
        shortened = excess(source) if long_table else 0
        if shortened:
            machine.charge(shortened)
            source = source[:KEPT]
        if captured:
            frame.cells = frame.cells | {name: Cell() for name in captured}
        out: Any = {} if isinstance(node, ast.DictComp) else []
        emit = emitter(machine, out, key, value)
        iterator = protocols.iterate(machine, source)
        del source
        try:
            walk(frame, clauses, 0, iterator, emit)
        finally:
            for name in names:
                frame.vars.pop(name, None)
        if shortened:
            out.extend([machine.unknown("an element of a long table of numbers")] * shortened)
        return protocols.make_set(machine, out) if isinstance(node, ast.SetComp) else out

    return build


def compile_generator_expression(node: ast.GeneratorExp, scope: Scope) -> Expression:
    """A generator expression, run as its values are asked for."""
    inner = scope.children[node]
    clauses = compile_clauses(node, scope, inner)
    value, first = expression(node.elt, inner), clauses[0][1]

    def items(frame: Frame, index: int, iterator: Iterator[Any]) -> Iterator[Any]:
        store, _, conditions = clauses[index]
        machine = frame.machine
        for item in iterator:
            machine.tick(1)
            store(frame, item)
            item = None  # noqa: PLW2901 - only the loop variable may hold it
            if all(protocols.truth(machine, condition(frame)) for condition in conditions):
                if index + 1 == len(clauses):
                    yield value(frame)
                else:
                    yield from items(frame, index + 1, protocols.iterate(machine, clauses[index + 1][1](frame)))

    def build(outer: Frame) -> Any:
        frame = Frame(outer.machine, outer.module, outer.function)
        frame.line = node.lineno
        frame.cells = {name: outer.cells[name] for name in inner.free if name in outer.cells} | {name: Cell() for name in inner.cells}
        return outer.machine.make_iterator(frame, items(frame, 0, protocols.iterate(outer.machine, first(outer))))

    return build


COMPREHENSIONS: dict[type[ast.expr], Callable[[Any, Scope], Expression]] = {
    ast.ListComp: compile_inlined,
    ast.SetComp: compile_inlined,
    ast.DictComp: compile_inlined,
    ast.GeneratorExp: compile_generator_expression,
}
