"""What an `if` does when its condition is unknown: go on only where both ways provably agree."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.errors import WeighError
from weighbridge.reading.python.code import Block
from weighbridge.reading.python.comparisons import same_plain
from weighbridge.reading.python.functions import run_block
from weighbridge.reading.python.protocols import cannot
from weighbridge.reading.python.scopes import LOCAL, Scope
from weighbridge.reading.python.values import MISSING, Frame, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

INERT_CALLS: Final = frozenset(
    ["warn", "warning", "warning_once", "info", "debug", "error", "log", "print", "deprecate", "info_once"],
)


def is_inert(nodes: list[ast.stmt]) -> bool:
    """Whether a block only raises, warns or does nothing, so that leaving it out cannot change the model."""
    for node in nodes:
        if isinstance(node, (ast.Raise, ast.Pass, ast.Assert)):
            continue
        if isinstance(node, ast.Expr) and (
            isinstance(node.value, ast.Constant) or (isinstance(node.value, ast.Call) and is_message(node.value))
        ):
            continue
        if isinstance(node, ast.If) and is_inert(node.body) and is_inert(node.orelse):
            continue
        return False
    return True


def is_message(node: ast.Call) -> bool:
    """Whether a call only tells the user something."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in INERT_CALLS


def only_assigns(nodes: list[ast.stmt], scope: Scope) -> list[str] | None:
    """The local names assigned, if a block does nothing else."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Pass):
            continue
        if not isinstance(node, ast.Assign) or not all(isinstance(target, ast.Name) for target in node.targets):
            return None
        names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names if all(scope.resolve(name)[0] == LOCAL for name in names) else None


def decide_if(node: ast.If, body: Block, orelse: Block, scope: Scope) -> Callable[[Frame, Unknown], Any]:
    """The closure run when the condition is unknown."""
    body_inert, orelse_inert = is_inert(node.body), is_inert(node.orelse) and bool(node.orelse)
    body_names, orelse_names = only_assigns(node.body, scope), only_assigns(node.orelse, scope)

    def run(frame: Frame, value: Unknown) -> Any:
        if body_inert:
            return run_block(orelse, frame)
        if orelse_inert:
            return run_block(body, frame)
        if body_names is None or orelse_names is None:
            raise cannot(frame.machine, "a branch on", value)
        before, line = dict(frame.vars), frame.line
        try:
            run_block(body, frame)
            after_body, frame.vars = frame.vars, before
            run_block(orelse, frame)
        except WeighError:
            raise
        except Exception as error:
            frame.line = line
            raise cannot(frame.machine, f"a branch that may raise {type(error).__name__}, on", value) from None
        for name in body_names + orelse_names:
            one, other = after_body.get(name, MISSING), frame.vars.get(name, MISSING)
            if not same_plain(frame.machine, one, other):
                kind = choice_kind(frame.machine, one, other)
                frame.vars[name] = frame.machine.unknown(f"{name} (chosen by {value.why})", kind)
        return None

    return run


def choice_kind(machine: Machine, one: Any, other: Any) -> str:
    """The kind of a value that is one of two: "choice" where that may be, or hide, something with parameters."""
    for value in (one, other):
        if machine.may_hide(value) or (type(value) is Unknown and value.kind in {"libcall", "choice"}):
            return "choice"
    return "value"
