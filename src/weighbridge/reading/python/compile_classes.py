"""`def` and `class` statements, without their decorators."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weighbridge.reading.python.code import Block, Expression, FunctionCode
from weighbridge.reading.python.compile_expressions import expression, function_maker, sequence_builder
from weighbridge.reading.python.functions import run_block
from weighbridge.reading.python.scopes import Scope
from weighbridge.reading.python.values import Cell, Frame


def compile_function(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Expression:
    """A closure that makes the function."""
    return function_maker(FunctionCode(node, scope), scope)


def compile_class(node: ast.ClassDef, scope: Scope, compile_block: Callable[[list[ast.stmt], Scope], Block]) -> Expression:
    """A closure that runs the class body and makes the class."""
    bases = sequence_builder(node.bases, scope)
    keywords = [(keyword.arg, expression(keyword.value, scope)) for keyword in node.keywords if keyword.arg is not None]
    inner = scope.children[node]
    block = compile_block(node.body, inner)
    body_line, name = node.lineno, node.name
    doc = ast.get_docstring(node, clean=False)

    def make(frame: Frame) -> Any:
        machine = frame.machine
        base_values = bases(frame)
        options = {key: value(frame) for key, value in keywords}
        body = Frame(machine, frame.module, frame.function)
        body.line = body_line
        body.cells = {**frame.cells, "__class__": Cell()}
        body.annotations = {}
        body.vars.update(__module__=frame.module.name, __qualname__=name)
        if doc is not None:
            body.vars["__doc__"] = doc
        previous, machine.frame = machine.frame, body
        try:
            run_block(block, body)
        finally:
            machine.frame = previous
        return machine.finish_class(name, base_values, body, options, (frame.module.path, body_line))

    return make
