"""Modules of interpreted source, whose top-level statements run when a name they bind is first asked for."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import BadInput, CannotTell, LimitExceeded, WeighError
from weighbridge.reading.python.attributes import read_attribute
from weighbridge.reading.python.compile_expressions import expression
from weighbridge.reading.python.compile_statements import compile_statement
from weighbridge.reading.python.functions import mark
from weighbridge.reading.python.objects import Annotation
from weighbridge.reading.python.scopes import MODULE, Scope, scope_of_statement
from weighbridge.reading.python.values import MISSING, Frame, Namespace, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

PARSER_FRAMES = 1_000


def parse(machine: Machine, source: str, path: str) -> ast.Module:
    """The syntax tree of a source text, bounded in size and nesting.

    Python's parser takes its bound on nesting from the recursion limit, which a running machine has raised: it is lowered for the parser.
    """
    if len(source) > machine.limits.source_bytes or len(source.encode("utf-8", "surrogatepass")) > machine.limits.source_bytes:
        raise LimitExceeded("source_bytes", f"more than {machine.limits.source_bytes:,} bytes of source", file=path)
    frame, used = sys._getframe(), 0  # noqa: SLF001 - the only way to learn how deep Python's stack is
    while frame is not None:
        frame, used = frame.f_back, used + 1  # type: ignore[assignment]  # ends with None
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(min(before, used + PARSER_FRAMES))
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno or 0}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise LimitExceeded("depth", "source nested too deeply", file=path) from None
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None
    finally:
        sys.setrecursionlimit(before)


def target_names(node: ast.AST, names: list[str]) -> None:
    """The names an assignment binds, or whose object it changes."""
    if isinstance(node, ast.Name):
        names.append(node.id)
    elif isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            target_names(element, names)
    elif isinstance(node, ast.Starred):
        target_names(node.value, names)
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        target_names(node, names)


def bound_names(node: ast.AST, names: list[str]) -> None:
    """The names a top-level statement binds or changes."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        names.append(node.name)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names.extend(alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name) for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.Delete)):
        for target in node.targets:
            target_names(target, names)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        target_names(node.target, names)
    elif isinstance(node, ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            target_names(call.func.value, names)
    elif isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
        if isinstance(node, ast.For):
            target_names(node.target, names)
        for item in node.items if isinstance(node, ast.With) else []:
            if item.optional_vars is not None:
                target_names(item.optional_vars, names)
        for part in [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]:
            bound_names(part, names)
        for handler in getattr(node, "handlers", []):
            for part in handler.body:
                bound_names(part, names)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            for part in case.body:
                bound_names(part, names)
    for part in ast.walk(node) if isinstance(node, (ast.Expr, ast.Assign, ast.If, ast.While)) else ():
        if isinstance(part, ast.NamedExpr):
            names += [part.target.id]


class SourceModule:
    """One module; `namespace` holds what has been bound so far."""

    def __init__(self, name: str, tree: ast.Module, path: str, package: str) -> None:
        self.name, self.tree, self.path, self.package = name, tree, path, package
        self.namespace: dict[str, Any] = {"__name__": name, "__file__": path, "__package__": package, "__doc__": None}
        self.stars: list[Any] = []
        self.done: set[int] = set()
        self.index: dict[str, list[int]] = {}
        self.scope = Scope(MODULE, None)
        for position, node in enumerate(tree.body):
            names: list[str] = []
            bound_names(node, names)
            for bound in dict.fromkeys(names):
                self.index.setdefault(bound, []).append(position)
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.registrations = [
            position  # calls of the module's own functions fill registries: they run once, before the first name is given
            for position, node in enumerate(tree.body)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id in functions
        ]

    def __repr__(self) -> str:
        return f"<module '{self.name}'>"

    def get(self, machine: Machine, name: str) -> Any:
        """A name of the module, running what binds it; MISSING where nothing does."""
        if self.registrations:
            waiting, self.registrations = self.registrations, []
            for position in waiting:
                self.try_statement(machine, position)
        value = self.namespace.get(name, MISSING)
        if value is not MISSING:
            return value
        for position in self.index.get(name, ()):
            if name in self.namespace:  # a later statement that rebinds or changes it
                self.try_statement(machine, position)
            else:
                self.run_statement(machine, position)
        value = self.namespace.get(name, MISSING)
        return value if value is not MISSING else self.from_stars(machine, name)

    def from_stars(self, machine: Machine, name: str) -> Any:
        """A name that a star import brought."""
        for position in self.index.get("*", ()):
            self.run_statement(machine, position)
        for module in self.stars:
            if module is None or (isinstance(module, Namespace) and name in machine.builtins):
                continue
            if isinstance(module, SourceModule) and name in machine.builtins:  # only what the text itself binds hides a builtin
                value = module.get(machine, name)
            else:
                value = read_attribute(machine, module, name, NOT_THERE)
            if value is not NOT_THERE and value is not MISSING:
                self.namespace[name] = value
                return value
        return MISSING

    def submodule(self, machine: Machine, name: str) -> Any:
        """A submodule, for packages."""
        if self.package != self.name or name.startswith("__"):
            return MISSING
        module = machine.module(f"{self.name}.{name}")
        return MISSING if module is None else module

    def try_statement(self, machine: Machine, position: int) -> None:
        """Run a statement whose failure only leaves its effect out."""
        try:
            self.run_statement(machine, position)
        except LimitExceeded:
            raise
        except Exception as error:
            error.__traceback__ = None
            node = self.tree.body[position]
            machine.note(f"the statement at {self.path}:{node.lineno} is left out: {error}")
            self.done.add(position)

    def run_statement(self, machine: Machine, position: int) -> None:
        """Run a top-level statement, once."""
        if position in self.done:
            return
        if machine.depth >= machine.limits.depth:
            raise machine.exceeded("depth", "imports nested too deeply")
        self.done.add(position)
        node = self.tree.body[position]
        frame = Frame(machine, self)
        frame.vars, frame.line = self.namespace, node.lineno
        previous, machine.frame = machine.frame, frame
        machine.depth += 1
        try:
            statement = node.__dict__.get("weighbridge_closure")
            if statement is None:
                statement = node.__dict__["weighbridge_closure"] = compile_statement(node, scope_of_statement(node, self.scope))
            machine.tick(1)
            statement(frame)
        except WeighError as error:
            self.done.discard(position)
            if isinstance(error, CannotTell):
                error.at(self.path, error.line or frame.line)
            raise
        except Exception as error:
            self.done.discard(position)
            mark(error, frame)
            raise
        finally:
            machine.depth -= 1
            machine.frame = previous

    def lookup(self, machine: Machine, name: str) -> Any:
        """A global name: the module's, then the builtins'."""
        value = self.get(machine, name)
        if value is not MISSING:
            return value
        value = machine.builtins.get(name, MISSING)
        if value is not MISSING:
            return value
        if name in self.index:
            return machine.unknown(f"{name} (not bound on the path taken)")
        raise NameError(f"name '{name}' is not defined")

    def assign(self, machine: Machine, name: str, value: Any) -> None:
        """Bind a global name from inside a function."""
        self.namespace[name] = value
        machine.mutations += 1


NOT_THERE = Unknown("no such name")


def evaluate(machine: Machine, annotation: Annotation) -> Any:
    """What an annotation means in the frame it was written in; a quoted one is parsed first."""
    node = annotation.node
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        tree = parse(machine, node.value, annotation.frame.module.path)
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
            return machine.unknown("an annotation")
        node = tree.body[0].value
    return machine.run(lambda: expression(node, annotation.scope)(annotation.frame))
