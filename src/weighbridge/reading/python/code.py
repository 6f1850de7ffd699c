"""A function's compiled form, shared by every machine that reads the same parsed source."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weighbridge.reading.python.scopes import CLASS, FunctionNode, Scope, binds_yield, scope_of_function
from weighbridge.reading.python.values import Frame

Expression = Callable[[Frame], Any]
Block = list[tuple[int, Callable[[Frame], Any]]]


class FunctionCode:
    """Parameters and, once first called, the body as closures."""

    def __init__(self, node: FunctionNode, parent: Scope) -> None:
        self.node, self.parent = node, parent
        self.name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        arguments = node.args
        self.positional_only = len(arguments.posonlyargs)
        self.positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        self.keyword_only = [argument.arg for argument in arguments.kwonlyargs]
        self.variable = arguments.vararg.arg if arguments.vararg else None
        self.keywords = arguments.kwarg.arg if arguments.kwarg else None
        self.simple = not (self.keyword_only or self.variable or self.keywords)
        self.accepts = frozenset(self.positional[self.positional_only :]) | frozenset(self.keyword_only)
        self.is_async = isinstance(node, ast.AsyncFunctionDef)
        self.scope: Scope | None = parent.children.get(node)
        self.ready = False
        self.is_generator = False
        self.expression: Expression | None = None
        self.block: Block = []
        self.generator: Callable[[Frame], Any] | None = None
        self.cells: tuple[str, ...] = ()
        self.recursive = False

    @property
    def free(self) -> set[str]:
        """Names the function takes from the functions (or the class) around it."""
        if self.scope is not None:
            return self.scope.free
        return {"__class__"} if self.parent.host.kind == CLASS else set()

    def prepare(self, compile_body: Callable[[FunctionCode], None]) -> None:
        """Analyse and compile the body."""
        if self.scope is None:
            self.scope = scope_of_function(self.node, self.parent)
        self.cells = tuple(self.scope.cells)
        body = [self.node.body] if isinstance(self.node, ast.Lambda) else self.node.body
        self.is_generator = binds_yield(body)
        defined = {child.name for child in self.scope.children if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self.recursive = bool(defined & self.scope.cells)
        compile_body(self)
        self.ready = True
