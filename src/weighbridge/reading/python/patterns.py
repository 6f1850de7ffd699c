"""Patterns of match statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import comparisons, protocols
from weighbridge.reading.python.compile_expressions import expression
from weighbridge.reading.python.compile_names import Store, store_name
from weighbridge.reading.python.objects import Instance
from weighbridge.reading.python.scopes import Scope
from weighbridge.reading.python.values import Frame, TypeObject, Unknown

Matcher = Callable[[Frame, Any], bool]
ITSELF = frozenset(["bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"])


def compile_pattern(node: ast.pattern, scope: Scope) -> Matcher:
    """A closure that tells whether a value matches, binding names on the way."""
    return TABLE[type(node)](node, scope)


def _decided(frame: Frame, result: Any) -> bool:
    return protocols.truth(frame.machine, result)


def _match_value(node: ast.MatchValue, scope: Scope) -> Matcher:
    value = expression(node.value, scope)
    return lambda frame, subject: _decided(frame, comparisons.equal(frame.machine, subject, value(frame)))


def _match_singleton(node: ast.MatchSingleton, _scope: Scope) -> Matcher:
    return lambda frame, subject: _decided(frame, comparisons.identical(frame.machine, subject, node.value))


def _match_as(node: ast.MatchAs, scope: Scope) -> Matcher:
    inner = compile_pattern(node.pattern, scope) if node.pattern is not None else None
    store = store_name(node.name, scope) if node.name is not None else None

    def matched(frame: Frame, subject: Any) -> bool:
        if inner is not None and not inner(frame, subject):
            return False
        if store is not None:
            store(frame, subject)
        return True

    return matched


def _match_or(node: ast.MatchOr, scope: Scope) -> Matcher:
    patterns = [compile_pattern(pattern, scope) for pattern in node.patterns]
    return lambda frame, subject: any(pattern(frame, subject) for pattern in patterns)


def _match_sequence(node: ast.MatchSequence, scope: Scope) -> Matcher:
    star = next((index for index, part in enumerate(node.patterns) if isinstance(part, ast.MatchStar)), None)
    patterns = [None if isinstance(part, ast.MatchStar) else compile_pattern(part, scope) for part in node.patterns]
    rest: Store | None = None
    if star is not None:
        name = node.patterns[star].name  # type: ignore[attr-defined]  # a MatchStar
        rest = store_name(name, scope) if name else None

    def matched(frame: Frame, subject: Any) -> bool:
        if type(subject) is Unknown:
            raise protocols.cannot(frame.machine, "a match on", subject)
        value = subject.payload if isinstance(subject, Instance) else subject
        if type(value) not in {list, tuple, range}:
            return False
        count = len(patterns)
        if len(value) != count if star is None else len(value) < count - 1:
            return False
        items = list(value)
        if star is not None:
            stop = len(items) - count + star + 1
            if rest is not None:
                rest(frame, items[star:stop])
            items[star:stop] = [None]
        return all(pattern is None or pattern(frame, item) for pattern, item in zip(patterns, items, strict=True))

    return matched


def _match_mapping(node: ast.MatchMapping, scope: Scope) -> Matcher:
    parts = [(expression(key, scope), compile_pattern(pattern, scope)) for key, pattern in zip(node.keys, node.patterns, strict=True)]
    rest = store_name(node.rest, scope) if node.rest else None

    def matched(frame: Frame, subject: Any) -> bool:
        value = subject.payload if isinstance(subject, Instance) else subject
        if not isinstance(value, dict):
            return False
        left = dict(value)
        for key, pattern in parts:
            name = protocols.dict_key(frame.machine, key(frame))
            if name not in value or not pattern(frame, value[name]):
                return False
            left.pop(name, None)
        if rest is not None:
            rest(frame, left)
        return True

    return matched


def _match_class(node: ast.MatchClass, scope: Scope) -> Matcher:
    cls = expression(node.cls, scope)
    positional = [compile_pattern(pattern, scope) for pattern in node.patterns]
    named = [(name, compile_pattern(pattern, scope)) for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True)]

    def matched(frame: Frame, subject: Any) -> bool:
        machine, kind = frame.machine, cls(frame)
        if not _decided(frame, machine.isinstance(subject, kind)):
            return False
        names: Any = ()
        if positional:
            if isinstance(kind, TypeObject) and kind.name in ITSELF:
                return positional[0](frame, subject)
            names = machine.getattr(kind, "__match_args__")
        for name, pattern in [*zip(names, positional, strict=False), *named]:
            value = machine.getattr(subject, name, MISSING_ATTRIBUTE)
            if value is MISSING_ATTRIBUTE or not pattern(frame, value):
                return False
        return True

    return matched


MISSING_ATTRIBUTE = Unknown("no such attribute")


def _match_star(node: ast.MatchStar, _scope: Scope) -> Matcher:
    raise CannotTell("a starred pattern outside a sequence", "the source is malformed", line=node.lineno)


TABLE: dict[type[ast.pattern], Callable[[Any, Scope], Matcher]] = {
    ast.MatchValue: _match_value,
    ast.MatchSingleton: _match_singleton,
    ast.MatchAs: _match_as,
    ast.MatchOr: _match_or,
    ast.MatchSequence: _match_sequence,
    ast.MatchMapping: _match_mapping,
    ast.MatchClass: _match_class,
    ast.MatchStar: _match_star,
}
