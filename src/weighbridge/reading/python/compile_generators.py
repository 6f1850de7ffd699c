"""Bodies of generator functions: statements that yield become Python generators over a frame, the rest stay plain closures."""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Generator as PythonGenerator
from typing import Any

from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.reading.python import exceptions, protocols
from weighbridge.reading.python.compile_expressions import expression
from weighbridge.reading.python.compile_names import compile_target, delete_name, store_name
from weighbridge.reading.python.functions import BREAK, RETURN
from weighbridge.reading.python.generators import Generator
from weighbridge.reading.python.scopes import Scope, binds_yield
from weighbridge.reading.python.values import Frame

Run = PythonGenerator[Any, Any, Any]
Statement = Callable[[Frame], Any]
Steps = Callable[[Frame], Run]
Compile = Callable[[ast.stmt, Scope], Statement]


def compile_generator(nodes: list[ast.stmt], scope: Scope, compile_statement: Compile) -> Steps:
    """The body of a generator function; the Python generator's value is the signal that ended it."""
    return Body(scope, compile_statement).block(nodes)


def except_steps(body: Steps, handlers: list[Any], orelse: Steps) -> Steps:
    """A `try` with its handlers, and its `else`."""

    def steps(frame: Frame) -> Run:
        caught: BaseException | None = None
        signal = None
        try:
            signal = yield from body(frame)
        except Exception as error:
            caught = exceptions.catchable(frame.machine, error)
        if caught is None:
            return (yield from orelse(frame)) if signal is None else signal
        kinds = (each for each in handlers if each[0] is None or exceptions.matches(frame.machine, caught, each[0](frame)))
        handler = next(kinds, None)
        del kinds
        try:
            if handler is None:
                raise caught
            return (yield from handle(frame, [caught], *handler[1:]))
        finally:
            caught = None

    return steps


def finally_steps(inner: Steps, final: Steps) -> Steps:
    """What runs after it, however it ended."""

    def steps(frame: Frame) -> Run:
        caught: BaseException | None = None
        signal = None
        try:
            signal = yield from inner(frame)
        except Exception as error:
            caught = exceptions.catchable(frame.machine, error)
        result = frame.result
        last = yield from final(frame)
        if last is not None:
            return last
        frame.result = result
        try:
            if caught is not None:
                raise caught
        finally:
            caught = None
        return signal

    return steps


class _Hoist(ast.NodeTransformer):
    """Takes the yields out of a statement's expressions, in order."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.taken: list[tuple[str, ast.Yield | ast.YieldFrom]] = []

    def take(self, node: ast.Yield | ast.YieldFrom) -> ast.Name:
        self.generic_visit(node)
        self.scope.counter += 1
        name = f"yield.{self.scope.counter}"
        self.scope.bind(name)
        self.taken.append((name, node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    visit_Yield = visit_YieldFrom = take  # noqa: N815 - the names ast.NodeTransformer looks for

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        """Leave the lambda: its yields are its own."""
        return node


class Body:
    """Compiles the statements of one generator function."""

    def __init__(self, scope: Scope, compile_statement: Compile) -> None:
        self.scope, self.compile_statement = scope, compile_statement
        self.compilers: dict[type[ast.stmt], Callable[[Any], Steps]] = {
            ast.If: self.branch,
            ast.For: self.loop,
            ast.AsyncFor: self.loop,
            ast.While: self.loop_while,
            ast.Try: self.guard,
            ast.With: self.within,
            ast.AsyncWith: self.within,
        }

    def block(self, nodes: list[ast.stmt]) -> Steps:
        """Statements one after the other."""
        parts = [(node.lineno, binds_yield([node]), self.statement(node)) for node in nodes]

        def steps(frame: Frame) -> Run:
            machine = frame.machine
            for line, yields, run in parts:
                machine.tick(1)
                frame.line = line
                signal = (yield from run(frame)) if yields else run(frame)
                if signal is not None:
                    return signal
            return None

        return steps

    def statement(self, node: ast.stmt) -> Any:
        """A closure, or generator closure for a statement that yields."""
        if not binds_yield([node]):
            return self.compile_statement(node, self.scope)
        compiler = self.compilers.get(type(node))
        return self.simple(node) if compiler is None else compiler(node)

    def simple(self, node: ast.stmt) -> Steps:
        """A statement without a block: its yields run first, then the rest with their results."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and not (node.value.value and binds_yield([node.value.value])):
            value = expression(node.value.value, self.scope) if node.value.value is not None else None

            def plain(frame: Frame) -> Run:
                yield value(frame) if value is not None else None

            return plain
        hoist = _Hoist(self.scope)
        rest_node = hoist.visit(node)
        yields = [self.one_yield(name, taken) for name, taken in hoist.taken]
        rest = self.compile_statement(rest_node, self.scope)
        names = [name for name, _ in hoist.taken]

        def steps(frame: Frame) -> Run:
            for each in yields:
                yield from each(frame)
            try:
                return rest(frame)
            finally:
                for name in names:
                    frame.vars.pop(name, None)

        return steps

    def one_yield(self, name: str, node: ast.Yield | ast.YieldFrom) -> Steps:
        """`name = yield value` or `name = yield from value`."""
        value = expression(node.value, self.scope) if node.value is not None else None
        if isinstance(node, ast.Yield):

            def steps(frame: Frame) -> Run:
                frame.vars[name] = yield (value(frame) if value is not None else None)

            return steps

        def delegate(frame: Frame) -> Run:
            assert value is not None
            iterator = protocols.iterate(frame.machine, value(frame))
            for item in iterator:
                frame.machine.tick(1)
                yield item
            frame.vars[name] = iterator.result if isinstance(iterator, Generator) else None

        return delegate

    def check(self, node: ast.expr) -> None:
        """Refuse a yield in the head of a block."""
        if binds_yield([node]):
            raise CannotTell("a yield in the head of a block", "the interpreter has no such statement", line=node.lineno)

    def branch(self, node: ast.If) -> Steps:
        """An `if` that yields."""
        self.check(node.test)
        test, body, orelse = expression(node.test, self.scope), self.block(node.body), self.block(node.orelse)

        def steps(frame: Frame) -> Run:
            return (yield from (body if protocols.truth(frame.machine, test(frame)) else orelse)(frame))

        return steps

    def loop(self, node: ast.For | ast.AsyncFor) -> Steps:
        """A `for` that yields."""
        self.check(node.iter)
        iterable, store = expression(node.iter, self.scope), compile_target(node.target, self.scope, expression)
        body, orelse = self.block(node.body), self.block(node.orelse)

        def steps(frame: Frame) -> Run:
            for item in protocols.iterate(frame.machine, iterable(frame)):
                frame.machine.tick(1)
                store(frame, item)
                item = None  # noqa: PLW2901 - only the loop variable may hold it
                signal = yield from body(frame)
                if signal is BREAK:
                    return None
                if signal is RETURN:
                    return signal
            return (yield from orelse(frame))

        return steps

    def loop_while(self, node: ast.While) -> Steps:
        """A `while` that yields."""
        self.check(node.test)
        test, body, orelse = expression(node.test, self.scope), self.block(node.body), self.block(node.orelse)

        def steps(frame: Frame) -> Run:
            while protocols.truth(frame.machine, test(frame)):
                frame.machine.tick(1)
                signal = yield from body(frame)
                if signal is BREAK:
                    return None
                if signal is RETURN:
                    return signal
            return (yield from orelse(frame))

        return steps

    def guard(self, node: ast.Try) -> Steps:
        """A `try` that yields."""
        body, orelse, final = self.block(node.body), self.block(node.orelse), self.block(node.finalbody)
        handlers = [
            (
                expression(handler.type, self.scope) if handler.type is not None else None,
                store_name(handler.name, self.scope) if handler.name else None,
                delete_name(handler.name, self.scope) if handler.name else None,
                self.block(handler.body),
            )
            for handler in node.handlers
        ]

        return finally_steps(except_steps(body, handlers, orelse), final)

    def within(self, node: ast.With | ast.AsyncWith) -> Steps:
        """A `with` that yields."""
        body = self.block(node.body)
        for item in reversed(node.items):
            body = self.with_item(item, body)
        return body

    def with_item(self, item: ast.withitem, body: Steps) -> Steps:
        """One context manager around statements that yield."""
        self.check(item.context_expr)
        manager_of = expression(item.context_expr, self.scope)
        store = compile_target(item.optional_vars, self.scope, expression) if item.optional_vars is not None else None

        def steps(frame: Frame) -> Run:
            machine, manager = frame.machine, manager_of(frame)
            value = exceptions.enter(machine, manager)
            if store is not None:
                store(frame, value)
            value = None
            try:
                signal = yield from body(frame)
            except WeighError as error:
                exceptions.leave(machine, manager, error)
                raise
            except Exception as error:
                if exceptions.leave(machine, manager, exceptions.catchable(machine, error)):
                    return None
                raise
            exceptions.leave(machine, manager, None)
            return signal

        return steps


def handle(frame: Frame, caught: list[BaseException], store: Any, forget: Any, block: Steps) -> Run:
    """Run the body of an `except`; it takes the exception out of the list, so that nothing else holds it."""
    error = caught.pop()
    frame.machine.handled.append(error)
    if store is not None:
        store(frame, exceptions.shown(error))
    del error
    try:
        return (yield from block(frame))
    finally:
        del frame.machine.handled[-1:]
        if forget is not None:
            exceptions.forget(forget, frame)
