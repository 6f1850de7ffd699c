"""Which variable a name means: decided once per function, as Python's own compiler does."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

MODULE, CLASS, FUNCTION, COMPREHENSION = "module", "class", "function", "comprehension"
LOCAL, CELL, FREE, GLOBAL, IN_MODULE, IN_CLASS = "local", "cell", "free", "global", "in module", "in class"
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
INLINED: Final = (ast.ListComp, ast.SetComp, ast.DictComp)


class Scope:
    """A module, class, function or comprehension and the names it binds.

    List, set and dict comprehensions run inside the frame around them; their variables have names no source can spell.
    """

    def __init__(self, kind: str, parent: Scope | None) -> None:
        self.kind, self.parent = kind, parent
        self.bound: dict[str, str] = {}
        self.used: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.cells: set[str] = set()
        self.free: set[str] = set()
        self.children: dict[ast.AST, Scope] = {}
        self.first_argument: str | None = None
        self.counter = 0
        self.trying = 0
        self.weight = 0  # parts of the expression being compiled

    @property
    def host(self) -> Scope:
        """The scope whose frame this one runs in."""
        scope = self
        while scope.kind == COMPREHENSION:
            assert scope.parent is not None
            scope = scope.parent
        return scope

    def bind(self, name: str) -> None:
        """Note that the scope assigns the name."""
        self.bound.setdefault(name, name)

    def resolve(self, name: str) -> tuple[str, str]:
        """The kind of variable and the name it is stored under."""
        scope: Scope = self
        host = self.host
        while scope.kind == COMPREHENSION:
            if name in scope.bound:
                stored = scope.bound[name]
                return (CELL if stored in host.cells else LOCAL), stored
            assert scope.parent is not None
            scope = scope.parent
        if name in host.globals:
            return GLOBAL, name
        if name in host.bound and name not in host.nonlocals:
            if host.kind == FUNCTION:
                return (CELL if name in host.cells else LOCAL), name
            return (IN_MODULE if host.kind == MODULE else IN_CLASS), name
        owner, stored = host.owner_outside(name)
        if owner is not None:
            return FREE, stored
        return (IN_MODULE if host.kind == MODULE else GLOBAL), name

    def owner_outside(self, name: str) -> tuple[Scope | None, str]:
        """The enclosing frame scope that holds the name for this one, and the stored name."""
        outer = self.parent
        while outer is not None:
            if outer.kind == COMPREHENSION and name in outer.bound:
                return outer.host, outer.bound[name]
            if outer.kind == FUNCTION:
                if name in outer.globals:
                    return None, name
                if name in outer.bound and name not in outer.nonlocals:
                    return outer, name
            if outer.kind == CLASS and name == "__class__":
                return outer, name
            outer = outer.parent
        return None, name

    def capture(self, name: str) -> None:
        """Mark a name used here as captured, in its owner and in every frame scope between."""
        host = self.host
        scope: Scope = self
        while scope.kind == COMPREHENSION:
            if name in scope.bound:
                return
            assert scope.parent is not None
            scope = scope.parent
        if name in host.globals or (name in host.bound and name not in host.nonlocals and host.kind != CLASS):
            return
        owner, stored = host.owner_outside(name)
        if owner is None:
            return
        owner.cells.add(stored)
        between: Scope | None = host
        while between is not None and between is not owner:
            if between.kind != COMPREHENSION:
                between.free.add(stored)
            between = between.parent


class _Collector(ast.NodeVisitor):
    """Fills a scope (and those inside it) with the names bound and used."""

    def __init__(self, scope: Scope, lazy: bool) -> None:
        self.scope = scope
        self.lazy = lazy
        self.every: list[Scope] = [scope]

    def inside(self, kind: str, node: ast.AST) -> Scope:
        scope = Scope(kind, self.scope)
        self.scope.children[node] = scope
        self.every.append(scope)
        return scope

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def within(self, scope: Scope, nodes: Iterable[ast.AST | None]) -> None:
        outer, self.scope = self.scope, scope
        self.visit_all(nodes)
        self.scope = outer

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.scope.used.add(node.id)
            if node.id == "super":
                self.scope.used.add("__class__")
        elif self.scope.kind == COMPREHENSION:
            if node.id not in self.scope.bound:
                host = self.scope.host
                host.counter += 1
                self.scope.bound[node.id] = f"{node.id}.{host.counter}"
        else:
            self.scope.bind(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self.scope
        while scope.kind == COMPREHENSION or scope.first_argument == ".0":
            assert scope.parent is not None
            scope = scope.parent
        scope.bind(node.target.id)
        if scope is not self.scope:
            self.scope.used.add(node.target.id)
            if self.scope.host is not scope:
                self.scope.host.nonlocals.add(node.target.id)
        self.visit(node.value)

    def function(self, node: FunctionNode) -> None:
        arguments = node.args
        self.visit_all([*arguments.defaults, *arguments.kw_defaults])
        if not (self.lazy and self.scope.host.kind in {MODULE, CLASS} and not isinstance(node, ast.Lambda)):
            fill_function(self, node, self.inside(FUNCTION, node))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.bind(node.name)
        self.visit_all(node.decorator_list)
        self.function(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name ast.NodeVisitor looks for

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name)
        self.visit_all([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
        scope = self.inside(CLASS, node)
        self.within(scope, node.body)

    def comprehension(self, node: ComprehensionNode, scope: Scope) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        self.within(scope, (generator.target for generator in node.generators))
        self.within(scope, (condition for generator in node.generators for condition in generator.ifs))
        self.within(scope, (generator.iter for generator in node.generators[1:]))
        self.within(scope, [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> None:
        self.comprehension(node, self.inside(COMPREHENSION, node))

    visit_SetComp = visit_ListComp  # noqa: N815 - the name ast.NodeVisitor looks for
    visit_DictComp = visit_ListComp  # noqa: N815 - the name ast.NodeVisitor looks for

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        scope = self.inside(FUNCTION, node)
        scope.first_argument = ".0"
        self.comprehension(node, scope)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.nonlocals.update(node.names)
        self.scope.used.update(node.names)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.scope.bind(alias.asname or alias.name.split(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815 - the name ast.NodeVisitor looks for

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs  # noqa: N815 - the name ast.NodeVisitor looks for

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.scope.bind(node.rest)
        self.generic_visit(node)


def fill_function(collector: _Collector, node: FunctionNode, scope: Scope) -> None:
    """Collect a function's parameters and body into its scope."""
    arguments = node.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    names += [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    for name in names:
        scope.bind(name)
    positional = arguments.posonlyargs or arguments.args
    scope.first_argument = positional[0].arg if positional else None
    collector.within(scope, [node.body] if isinstance(node, ast.Lambda) else node.body)


def settle(scopes: list[Scope]) -> None:
    """Decide what is captured, once every scope of a function is filled."""
    for scope in scopes:
        for name in scope.used:
            scope.capture(name)
        if "__class__" in scope.used:  # zero-argument super() also needs the method's first argument
            method = scope
            while method.parent is not None and (method.kind == COMPREHENSION or method.first_argument in {".0", None}):
                method = method.parent
            if method is not scope and method.first_argument is not None and method.kind == FUNCTION:
                scope.capture(method.first_argument)


def scope_of_function(node: FunctionNode, parent: Scope) -> Scope:
    """Analyse a function that stands directly in a module or class (others are analysed with the function around them)."""
    scope = Scope(FUNCTION, parent)
    collector = _Collector(scope, lazy=False)
    fill_function(collector, node, scope)
    settle(collector.every)
    return scope


def scope_of_statement(node: ast.stmt, module_scope: Scope) -> Scope:
    """Analyse one top-level statement; the functions in it wait until they are called."""
    scope = Scope(MODULE, None)
    scope.counter = module_scope.counter
    collector = _Collector(scope, lazy=True)
    collector.visit(node)
    settle(collector.every)
    module_scope.counter = scope.counter
    return scope


def binds_yield(nodes: Iterable[Any]) -> bool:
    """Whether statements or expressions yield in their own function."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return False
