"""Expressions of the syntax tree to Python closures over a frame."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import comparisons, operators, protocols
from weighbridge.reading.python.attributes import read_attribute
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.code import Expression, FunctionCode
from weighbridge.reading.python.compile_names import load_name, store_name
from weighbridge.reading.python.formatting import convert, format_value
from weighbridge.reading.python.functions import make_function
from weighbridge.reading.python.scopes import COMPREHENSION, FUNCTION, Scope
from weighbridge.reading.python.undecided import choice_kind
from weighbridge.reading.python.values import Frame, Super, Unknown

HEAVY = 256  # parts of one expression from which on it is charged for itself


def expression(node: ast.expr, scope: Scope) -> Expression:
    """The closure that evaluates an expression."""
    compiler = EXPRESSIONS.get(type(node))
    if compiler is None:
        raise CannotTell(f"the expression {type(node).__name__}", "the interpreter has no such expression")
    before = scope.weight
    compiled = compiler(node, scope)
    scope.weight += 1
    if scope.weight - before < HEAVY:
        return compiled
    weight, scope.weight = scope.weight - before, before + 1
    return charged(compiled, weight)


def charged(compiled: Expression, weight: int) -> Expression:
    """An expression of so many parts that evaluating it counts as steps of its own."""

    def evaluate(frame: Frame) -> Any:
        frame.machine.tick(weight >> 4)
        return compiled(frame)

    return evaluate


def _compile_constant(node: ast.Constant, _scope: Scope) -> Expression:
    value = node.value
    return lambda _frame: value


def _compile_name(node: ast.Name, scope: Scope) -> Expression:
    return load_name(node.id, scope)


def _compile_attribute(node: ast.Attribute, scope: Scope) -> Expression:
    owner, name = expression(node.value, scope), node.attr
    return lambda frame: read_attribute(frame.machine, owner(frame), name)


def _compile_subscript(node: ast.Subscript, scope: Scope) -> Expression:
    owner, key = expression(node.value, scope), expression(node.slice, scope)
    return lambda frame: protocols.get_item(frame.machine, owner(frame), key(frame))


def _compile_slice(node: ast.Slice, scope: Scope) -> Expression:
    parts = [expression(part, scope) if part is not None else None for part in (node.lower, node.upper, node.step)]

    def make_slice(frame: Frame) -> Any:
        values = [part(frame) if part is not None else None for part in parts]
        for value in values:
            if type(value) is Unknown:
                return value
        return slice(*values)

    return make_slice


def compile_super(scope: Scope) -> Expression:
    """Zero-argument super(): the class the method stands in, and the method's first argument."""
    method: Scope | None = scope
    while method is not None and (method.kind != FUNCTION or method.first_argument in {".0", None}):
        method = method.parent
    if method is None or method.first_argument is None:

        def refuse(_frame: Frame) -> Any:
            raise RuntimeError("super(): no arguments")

        return refuse
    load_class, load_self = load_name("__class__", scope), load_name(method.first_argument, scope)
    return lambda frame: Super(load_class(frame), load_self(frame))


def _compile_call(node: ast.Call, scope: Scope) -> Expression:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and "super" not in scope.host.bound:
        return compile_super(scope)
    callee, line = expression(node.func, scope), node.lineno
    positional = sequence_builder(node.args, scope)
    if not node.keywords:
        if not any(isinstance(argument, ast.Starred) for argument in node.args):
            plain = [expression(argument, scope) for argument in node.args]

            def call_plain(frame: Frame) -> Any:
                function = callee(frame)
                args = [argument(frame) for argument in plain]
                frame.line = line
                return call(frame.machine, function, args, None)

            return call_plain

        def call_positional(frame: Frame) -> Any:
            function, args = callee(frame), positional(frame)
            frame.line = line
            return call(frame.machine, function, args, None)

        return call_positional
    keywords = [(keyword.arg, expression(keyword.value, scope)) for keyword in node.keywords]

    def call_keywords(frame: Frame) -> Any:
        function, args = callee(frame), positional(frame)
        kwargs: dict[str, Any] = {}
        for name, value in keywords:
            if name is not None:
                if name in kwargs:
                    raise TypeError(f"got multiple values for keyword argument '{name}'")
                kwargs[name] = value(frame)
            else:
                spread_keywords(frame, kwargs, value(frame))
        frame.line = line
        return call(frame.machine, function, args, kwargs)

    return call_keywords


def spread_keywords(frame: Frame, kwargs: dict[str, Any], value: Any) -> None:
    """`f(**value)`."""
    mapping = protocols.as_mapping(frame.machine, value, "**")
    for key in mapping:
        if type(key) is not str:
            raise TypeError("keywords must be strings")
        if key in kwargs:
            raise TypeError(f"got multiple values for keyword argument '{key}'")
    frame.machine.charge(len(mapping))
    kwargs.update(mapping)


def sequence_builder(nodes: list[ast.expr], scope: Scope) -> Callable[[Frame], list[Any]]:
    """A closure that evaluates elements, starred ones included, into a new list."""
    if not any(isinstance(node, ast.Starred) for node in nodes):
        plain = [expression(node, scope) for node in nodes]
        return lambda frame: [element(frame) for element in plain]
    parts = [(isinstance(n, ast.Starred), expression(n.value if isinstance(n, ast.Starred) else n, scope)) for n in nodes]

    def build(frame: Frame) -> list[Any]:
        out: list[Any] = []
        for starred, element in parts:
            if starred:
                items = protocols.as_list(frame.machine, element(frame))
                frame.machine.charge(len(items))
                out.extend(items)
            else:
                out.append(element(frame))
        return out

    return build


def _compile_list(node: ast.List, scope: Scope) -> Expression:
    return sequence_builder(node.elts, scope)


def _compile_tuple(node: ast.Tuple, scope: Scope) -> Expression:
    build = sequence_builder(node.elts, scope)
    return lambda frame: tuple(build(frame))


def _compile_set(node: ast.Set, scope: Scope) -> Expression:
    build = sequence_builder(node.elts, scope)
    return lambda frame: protocols.make_set(frame.machine, build(frame))


def _compile_dict(node: ast.Dict, scope: Scope) -> Expression:
    items = [
        (expression(key, scope) if key is not None else None, expression(value, scope))
        for key, value in zip(node.keys, node.values, strict=True)
    ]

    def build(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key, value in items:
            if key is None:
                mapping = protocols.as_mapping(frame.machine, value(frame), "**")
                frame.machine.charge(len(mapping))
                out.update(mapping)
            else:
                name = key(frame)
                out[name if type(name) is str else protocols.dict_key(frame.machine, name)] = value(frame)
        return out

    return build


def _compile_binary(node: ast.BinOp, scope: Scope) -> Expression:
    left, right, operation = expression(node.left, scope), expression(node.right, scope), type(node.op)
    binary = operators.binary
    quick = operators.QUICK.get(operation)
    if quick is None:
        return lambda frame: binary(frame.machine, operation, left(frame), right(frame))

    def compute(frame: Frame) -> Any:
        a, b = left(frame), right(frame)
        if (type(a) is int or type(a) is float) and (type(b) is int or type(b) is float):
            return quick(a, b)
        return binary(frame.machine, operation, a, b)

    return compute


def _compile_unary(node: ast.UnaryOp, scope: Scope) -> Expression:
    operand = expression(node.operand, scope)
    if isinstance(node.op, ast.Not):

        def negate(frame: Frame) -> Any:
            value = operand(frame)
            if type(value) is bool:
                return not value
            return value if type(value) is Unknown else not protocols.truth(frame.machine, value)

        return negate
    operation = type(node.op).__name__
    return lambda frame: operators.unary(frame.machine, operation, operand(frame))


def compile_boolean(node: ast.BoolOp, scope: Scope) -> Expression:
    """`and` / `or`: after an Unknown, a later known value may still decide."""
    values, is_and = [expression(value, scope) for value in node.values], isinstance(node.op, ast.And)
    truth = protocols.truth

    def decide(frame: Frame) -> Any:
        unknown = value = None
        for operand in values:
            value = operand(frame)
            if type(value) is Unknown:
                unknown = unknown or value if unknown is not None else value
            elif truth(frame.machine, value) is not is_and:
                return value
        return value if unknown is None else unknown

    return decide


def _compile_compare(node: ast.Compare, scope: Scope) -> Expression:
    left = expression(node.left, scope)
    rest = [(type(op), expression(right, scope)) for op, right in zip(node.ops, node.comparators, strict=True)]
    compare = comparisons.compare
    if len(rest) == 1:
        operation, right = rest[0]
        return lambda frame: compare(frame.machine, operation, left(frame), right(frame))

    def chain(frame: Frame) -> Any:
        a: Any = left(frame)
        result: Any = True
        for operation, right in rest:
            b = right(frame)
            result = compare(frame.machine, operation, a, b)
            if type(result) is Unknown or not protocols.truth(frame.machine, result):
                return result
            a = b
        return result

    return chain


def _compile_choice(node: ast.IfExp, scope: Scope) -> Expression:
    test, body, orelse = expression(node.test, scope), expression(node.body, scope), expression(node.orelse, scope)

    def choose(frame: Frame) -> Any:
        value = test(frame)
        if type(value) is Unknown:  # equal plain values on both sides need no decision
            a, b = body(frame), orelse(frame)
            if comparisons.same_plain(frame.machine, a, b):
                return a
            return frame.machine.unknown(f"choice on {value.why}", choice_kind(frame.machine, a, b))
        return body(frame) if protocols.truth(frame.machine, value) else orelse(frame)

    return choose


def _compile_fstring(node: ast.JoinedStr, scope: Scope) -> Expression:
    parts: list[tuple[Any, str, Expression | None]] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            spec = expression(value.format_spec, scope) if value.format_spec is not None else None
            parts.append((expression(value.value, scope), chr(value.conversion) if value.conversion > 0 else "", spec))
        elif isinstance(value, ast.Constant):
            parts.append((value.value, "text", None))

    def build(frame: Frame) -> Any:
        out: list[str] = []
        for part, conversion, spec in parts:
            if conversion == "text":
                out.append(part)
                continue
            value = part(frame)
            if type(value) is Unknown:
                return frame.machine.unknown(f"f-string with {value.why}")
            if conversion:
                value = convert(frame.machine, value, conversion)
            text = format_value(frame.machine, value, spec(frame) if spec is not None else "")
            if type(text) is Unknown:
                return text
            out.append(text)
        frame.machine.charge_text(sum(map(len, out)))
        return "".join(out)

    return build


def _compile_lambda(node: ast.Lambda, scope: Scope) -> Expression:
    code = FunctionCode(node, scope)
    return function_maker(code, scope)


def function_maker(code: FunctionCode, scope: Scope) -> Expression:
    """A closure that makes the function, evaluating its defaults."""
    arguments = code.node.args
    defaults = [expression(default, scope) for default in arguments.defaults]
    keyword_defaults = [
        (argument.arg, expression(default, scope))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]

    def make(frame: Frame) -> Any:
        function = make_function(frame, code)
        function.defaults = [default(frame) for default in defaults]
        function.keyword_defaults = {name: default(frame) for name, default in keyword_defaults}
        return function

    return make


def _compile_walrus(node: ast.NamedExpr, scope: Scope) -> Expression:
    host = scope
    while host.kind == COMPREHENSION:
        assert host.parent is not None
        host = host.parent
    value, store = expression(node.value, scope), store_name(node.target.id, host)

    def assign(frame: Frame) -> Any:
        result = value(frame)
        store(frame, result)
        return result

    return assign


def _compile_await(node: ast.Await, scope: Scope) -> Expression:
    value = expression(node.value, scope)

    def wait(frame: Frame) -> Any:
        value(frame)
        return frame.machine.unknown("an awaited value")

    return wait


def _compile_misplaced_yield(_node: ast.expr, _scope: Scope) -> Expression:
    raise CannotTell("a yield inside a larger expression", "only `yield` statements and assignments are read")


def _compile_starred(node: ast.Starred, scope: Scope) -> Expression:
    return expression(node.value, scope)


EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Scope], Expression]] = {
    ast.Constant: _compile_constant,
    ast.Name: _compile_name,
    ast.Attribute: _compile_attribute,
    ast.Subscript: _compile_subscript,
    ast.Slice: _compile_slice,
    ast.Call: _compile_call,
    ast.BinOp: _compile_binary,
    ast.UnaryOp: _compile_unary,
    ast.BoolOp: compile_boolean,
    ast.Compare: _compile_compare,
    ast.IfExp: _compile_choice,
    ast.List: _compile_list,
    ast.Tuple: _compile_tuple,
    ast.Set: _compile_set,
    ast.Dict: _compile_dict,
    ast.JoinedStr: _compile_fstring,
    ast.Lambda: _compile_lambda,
    ast.NamedExpr: _compile_walrus,
    ast.Yield: _compile_misplaced_yield,
    ast.YieldFrom: _compile_misplaced_yield,
    ast.Await: _compile_await,
    ast.Starred: _compile_starred,
}
