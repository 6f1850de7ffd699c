"""Statements of the syntax tree to Python closures over a frame; a closure gives a signal (return, break, continue) or None."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import exceptions, imports, operators, protocols
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.code import Block, FunctionCode
from weighbridge.reading.python.compile_classes import compile_class, compile_function
from weighbridge.reading.python.compile_expressions import EXPRESSIONS, expression
from weighbridge.reading.python.compile_generators import compile_generator
from weighbridge.reading.python.compile_names import compile_delete, compile_target, delete_name, store_name
from weighbridge.reading.python.comprehensions import COMPREHENSIONS
from weighbridge.reading.python.functions import BREAK, CONTINUE, RETURN, run_block
from weighbridge.reading.python.objects import Annotation
from weighbridge.reading.python.patterns import compile_pattern
from weighbridge.reading.python.scopes import Scope
from weighbridge.reading.python.undecided import decide_if
from weighbridge.reading.python.values import Frame, Unknown

Statement = Callable[[Frame], Any]
EXPRESSIONS.update(COMPREHENSIONS)


def compile_statement(node: ast.stmt, scope: Scope) -> Statement:
    """The closure that runs a statement."""
    compiler = TABLE.get(type(node))
    if compiler is None:
        raise CannotTell(f"the statement {type(node).__name__}", "the interpreter has no such statement", line=node.lineno)
    return compiler(node, scope)


def compile_block(nodes: list[ast.stmt], scope: Scope) -> Block:
    """Closures with their lines; docstrings and `pass` are left out."""
    return [
        (node.lineno, compile_statement(node, scope))
        for node in nodes
        if not isinstance(node, ast.Pass) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]


def compile_body(code: FunctionCode) -> None:
    """Fill in a function's compiled body."""
    assert code.scope is not None
    if isinstance(code.node, ast.Lambda):
        if code.is_generator:
            raise CannotTell("a lambda that yields", "the interpreter has no such function")
        code.expression = expression(code.node.body, code.scope)
    elif code.is_generator:
        code.generator = compile_generator(code.node.body, code.scope, compile_statement)
    else:
        code.block = compile_block(code.node.body, code.scope)


def _run_expression(node: ast.Expr, scope: Scope) -> Statement:
    value = expression(node.value, scope)

    def run(frame: Frame) -> None:
        value(frame)

    return run


def _run_assign(node: ast.Assign, scope: Scope) -> Statement:
    value = expression(node.value, scope)
    stores = [compile_target(target, scope, expression) for target in node.targets]
    if len(stores) == 1:
        store = stores[0]
        return lambda frame: store(frame, value(frame))

    def run(frame: Frame) -> None:
        result = value(frame)
        for each in stores:
            each(frame, result)

    return run


def _run_augmented(node: ast.AugAssign, scope: Scope) -> Statement:
    value, operation = expression(node.value, scope), type(node.op)
    inplace = operators.inplace
    if isinstance(node.target, ast.Name):
        load, store = expression(ast.Name(node.target.id, ast.Load()), scope), store_name(node.target.id, scope)
        return lambda frame: store(frame, inplace(frame.machine, operation, load(frame), value(frame)))
    owner = expression(node.target.value, scope)
    if isinstance(node.target, ast.Attribute):
        name = node.target.attr

        def run_attribute(frame: Frame) -> None:
            machine, target = frame.machine, owner(frame)
            machine.setattr(target, name, inplace(machine, operation, machine.getattr(target, name), value(frame)))

        return run_attribute
    key = expression(node.target.slice, scope)

    def run_item(frame: Frame) -> None:
        machine, target, index = frame.machine, owner(frame), key(frame)
        machine.setitem(target, index, inplace(machine, operation, machine.getitem(target, index), value(frame)))

    return run_item


def _run_annotated(node: ast.AnnAssign, scope: Scope) -> Statement:
    store = compile_target(node.target, scope, expression)
    value = expression(node.value, scope) if node.value is not None else None
    name = node.target.id if isinstance(node.target, ast.Name) else None

    def run(frame: Frame) -> None:
        if value is not None:
            store(frame, value(frame))
        if name is not None and frame.annotations is not None:
            frame.annotations[name] = Annotation(node.annotation, scope, frame)

    return run


def _run_return(node: ast.Return, scope: Scope) -> Statement:
    if node.value is None:
        return lambda _frame: RETURN
    value = expression(node.value, scope)

    def run(frame: Frame) -> Any:
        frame.result = value(frame)
        return RETURN

    return run


def _run_if(node: ast.If, scope: Scope) -> Statement:
    test, body, orelse = expression(node.test, scope), compile_block(node.body, scope), compile_block(node.orelse, scope)
    truth = protocols.truth
    undecided = decide_if(node, body, orelse, scope)

    def run(frame: Frame) -> Any:
        value = test(frame)
        if value is True:
            return run_block(body, frame)
        if value is False:
            return run_block(orelse, frame) if orelse else None
        if type(value) is Unknown:
            return undecided(frame, value)
        return run_block(body if truth(frame.machine, value) else orelse, frame)

    return run


def _run_for(node: ast.For | ast.AsyncFor, scope: Scope) -> Statement:
    iterable, store = expression(node.iter, scope), compile_target(node.target, scope, expression)
    body, orelse = compile_block(node.body, scope), compile_block(node.orelse, scope)

    def run(frame: Frame) -> Any:
        machine = frame.machine
        iterator = protocols.iterate(machine, iterable(frame))
        for item in iterator:
            machine.steps += 1
            if machine.steps > machine.checkpoint:
                machine.tick(0)
            store(frame, item)
            item = None  # noqa: PLW2901 - only the loop variable may hold it
            signal = run_block(body, frame)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is RETURN:
                    return signal
        return run_block(orelse, frame)

    return run


def _run_while(node: ast.While, scope: Scope) -> Statement:
    test, body, orelse = expression(node.test, scope), compile_block(node.body, scope), compile_block(node.orelse, scope)
    truth = protocols.truth

    def run(frame: Frame) -> Any:
        machine = frame.machine
        while truth(machine, test(frame)):
            machine.tick(1)
            signal = run_block(body, frame)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is RETURN:
                    return signal
        return run_block(orelse, frame)

    return run


def compile_handlers(node: ast.Try, scope: Scope) -> list[tuple[Any, Any, Any, Statement]]:
    """The `except` clauses: type, how its name is bound and unbound, body."""
    return [
        (
            expression(handler.type, scope) if handler.type is not None else None,
            store_name(handler.name, scope) if handler.name else None,
            partial(exceptions.forget, delete_name(handler.name, scope)) if handler.name else None,
            partial(run_block, compile_block(handler.body, scope)),
        )
        for handler in node.handlers
    ]


def _run_try(node: ast.Try, scope: Scope) -> Statement:
    scope.host.trying += 1
    body = partial(run_block, compile_block(node.body, scope))
    scope.host.trying -= 1
    inner: Statement = body
    if node.handlers:
        orelse = partial(run_block, compile_block(node.orelse, scope))
        handlers = compile_handlers(node, scope)
        inner = lambda frame: exceptions.guarded(frame, body, handlers, orelse)  # noqa: E731 - one of two forms of the same closure
    if not node.finalbody:
        return inner
    final = partial(run_block, compile_block(node.finalbody, scope))
    return lambda frame: exceptions.finish(frame, inner, final)


def _run_raise(node: ast.Raise, scope: Scope) -> Statement:
    value = expression(node.exc, scope) if node.exc is not None else None
    cause = expression(node.cause, scope) if node.cause is not None else None

    def run(frame: Frame) -> None:
        machine = frame.machine
        if value is None:
            if not machine.handled:
                raise RuntimeError("No active exception to reraise")
            raise machine.handled[-1]
        error = exceptions.to_exception(machine, value(frame))
        if cause is not None:
            cause(frame)
        try:
            raise error
        finally:
            del error

    return run


def _run_with(node: ast.With | ast.AsyncWith, scope: Scope) -> Statement:
    block = compile_block(node.body, scope)

    def innermost(frame: Frame, _value: Any = None) -> Any:
        return run_block(block, frame)

    body: Callable[[Frame, Any], Any] = innermost
    for item in reversed(node.items):
        body = with_item(item, scope, body)
    return partial(enter_with, body)


def enter_with(body: Callable[[Frame, Any], Any], frame: Frame) -> Any:
    """Run a with statement."""
    return body(frame, None)


def with_item(item: ast.withitem, scope: Scope, body: Callable[[Frame, Any], Any]) -> Callable[[Frame, Any], Any]:
    """One context manager around the rest."""
    manager = expression(item.context_expr, scope)
    store = compile_target(item.optional_vars, scope, expression) if item.optional_vars is not None else None

    def inside(frame: Frame, entered: list[Any]) -> Any:
        if store is not None:
            store(frame, entered.pop())
        return body(frame, None)

    return lambda frame, _value: exceptions.within(frame, manager(frame), inside)


def _run_assert(node: ast.Assert, scope: Scope) -> Statement:
    test = expression(node.test, scope)
    message = expression(node.msg, scope) if node.msg is not None else None

    def run(frame: Frame) -> None:
        value = test(frame)
        if type(value) is not Unknown and not protocols.truth(frame.machine, value):
            raise AssertionError(message(frame)) if message is not None else AssertionError()

    return run


def _run_delete(node: ast.Delete, scope: Scope) -> Statement:
    steps = [step for target in node.targets for step in compile_delete(target, scope, expression)]

    def run(frame: Frame) -> None:
        for step in steps:
            step(frame)

    return run


def _run_match(node: ast.Match, scope: Scope) -> Statement:
    subject = expression(node.subject, scope)
    cases = [
        (
            compile_pattern(case.pattern, scope),
            expression(case.guard, scope) if case.guard is not None else None,
            compile_block(case.body, scope),
        )
        for case in node.cases
    ]

    def run(frame: Frame) -> Any:
        value = subject(frame)
        for matched, guard, body in cases:
            frame.machine.tick(1)
            if matched(frame, value) and (guard is None or protocols.truth(frame.machine, guard(frame))):
                del value
                return run_block(body, frame)
        return None

    return run


def decorate(machine: Any, decorators: list[Any], value: Any) -> Any:
    """Apply decorators, innermost first; an unknown one leaves what it decorates as it is."""
    for decorator in reversed(decorators):
        if type(decorator) is not Unknown:
            result = call(machine, decorator, [value])
            value = value if type(result) is Unknown else result
    return value


def _run_function(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Statement:
    make = compile_function(node, scope)
    decorators = [expression(decorator, scope) for decorator in node.decorator_list]
    store = store_name(node.name, scope)

    def run(frame: Frame) -> None:
        found = [decorator(frame) for decorator in decorators]
        store(frame, decorate(frame.machine, found, make(frame)))

    return run


def _run_class(node: ast.ClassDef, scope: Scope) -> Statement:
    make = compile_class(node, scope, compile_block)
    decorators = [expression(decorator, scope) for decorator in node.decorator_list]
    store = store_name(node.name, scope)

    def run(frame: Frame) -> None:
        found = [decorator(frame) for decorator in decorators]
        store(frame, decorate(frame.machine, found, make(frame)))

    return run


def _run_nothing(_node: ast.stmt, _scope: Scope) -> Statement:
    return lambda _frame: None


TABLE: dict[type[ast.stmt], Callable[[Any, Scope], Statement]] = {
    ast.Expr: _run_expression,
    ast.Assign: _run_assign,
    ast.AugAssign: _run_augmented,
    ast.AnnAssign: _run_annotated,
    ast.Return: _run_return,
    ast.If: _run_if,
    ast.For: _run_for,
    ast.AsyncFor: _run_for,
    ast.While: _run_while,
    ast.Try: _run_try,
    ast.Raise: _run_raise,
    ast.With: _run_with,
    ast.AsyncWith: _run_with,
    ast.Assert: _run_assert,
    ast.Delete: _run_delete,
    ast.Match: _run_match,
    ast.FunctionDef: _run_function,
    ast.AsyncFunctionDef: _run_function,
    ast.ClassDef: _run_class,
    ast.Import: imports.compile_import,
    ast.ImportFrom: imports.compile_import_from,
    ast.Break: lambda _node, _scope: lambda _frame: BREAK,
    ast.Continue: lambda _node, _scope: lambda _frame: CONTINUE,
    ast.Pass: _run_nothing,
    ast.Global: _run_nothing,
    ast.Nonlocal: _run_nothing,
}
