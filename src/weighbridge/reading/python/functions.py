"""Making and running interpreted functions: binding of arguments, frames, depth."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell, LimitExceeded
from weighbridge.reading.python.code import FunctionCode
from weighbridge.reading.python.values import MISSING, Cell, Frame, Function

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

RETURN, BREAK, CONTINUE = object(), object(), object()


def make_function(frame: Frame, code: FunctionCode) -> Function:
    """The function value a `def` or `lambda` evaluates to, without its defaults."""
    cells = frame.cells
    closure = {name: cells[name] for name in code.free if name in cells}
    function = Function(code, frame.module, closure)
    if frame.function is not None:
        function.qualname = f"{frame.function.qualname}.<locals>.{code.name}"
    return function


def bind_arguments(frame: Frame, function: Function, args: list[Any], kwargs: dict[str, Any] | None) -> None:
    """Move the arguments into the frame's variables; both containers are left empty, so that the callee holds the only reference."""
    code = function.code
    names = code.positional
    count = len(args)
    if count == len(names) and not kwargs and code.simple:
        frame.vars = dict(zip(names, args, strict=True))
        args.clear()
        return
    variables = frame.vars
    variables.update(zip(names, args, strict=False))
    if count > len(names):
        if code.variable is None:
            raise TypeError(f"{function.name}() takes {len(names)} positional arguments but {count} were given")
        variables[code.variable] = tuple(args[len(names) :])
    elif code.variable is not None:
        variables[code.variable] = ()
    args.clear()
    extra: dict[str, Any] = {}
    if kwargs:
        bind_keywords(variables, function, kwargs, extra)
        kwargs.clear()
    if code.keywords is not None:
        variables[code.keywords] = extra
    fill_defaults(variables, function)


def bind_keywords(variables: dict[str, Any], function: Function, kwargs: dict[str, Any], extra: dict[str, Any]) -> None:
    """Keyword arguments to parameters; what is left goes to `extra`."""
    code = function.code
    for name, value in kwargs.items():
        if name in code.accepts:
            if name in variables:
                raise TypeError(f"{function.name}() got multiple values for argument '{name}'")
            variables[name] = value
        elif code.keywords is not None:
            extra[name] = value
        elif name in code.positional:
            raise TypeError(f"{function.name}() got some positional-only arguments passed as keyword arguments: '{name}'")
        else:
            raise TypeError(f"{function.name}() got an unexpected keyword argument '{name}'")


def fill_defaults(variables: dict[str, Any], function: Function) -> None:
    """Defaults for parameters that were not given; TypeError where there is none."""
    code = function.code
    first_default = len(code.positional) - len(function.defaults)
    for index, name in enumerate(code.positional):
        if name not in variables:
            if index < first_default:
                raise TypeError(f"{function.name}() missing required positional argument: '{name}'")
            variables[name] = function.defaults[index - first_default]
    for name in code.keyword_only:
        if name not in variables:
            value = function.keyword_defaults.get(name, MISSING)
            if value is MISSING:
                raise TypeError(f"{function.name}() missing required keyword-only argument: '{name}'")
            variables[name] = value


def enter(machine: Machine, function: Function, args: list[Any], kwargs: dict[str, Any] | None) -> Frame:
    """A frame with its arguments and cells in place."""
    code = function.code
    if not code.ready:
        code.prepare(machine.compile_body)
    frame = Frame(machine, function.module, function)
    frame.line = code.node.lineno
    bind_arguments(frame, function, args, kwargs)
    if code.cells:
        frame.cells = dict(function.closure)
        variables = frame.vars
        for name in code.cells:
            frame.cells[name] = Cell(variables.pop(name, MISSING))
    else:
        frame.cells = function.closure
    return frame


def call_function(machine: Machine, function: Function, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    """Run an interpreted function."""
    frame = enter(machine, function, args, kwargs)
    code = function.code
    if code.is_generator:
        return machine.make_generator(frame, code)
    if code.is_async:
        return machine.unknown(f"the coroutine {function.name}")
    if machine.depth >= machine.limits.depth:
        raise LimitExceeded("depth", f"recursion deeper than {machine.limits.depth} calls", file=frame.module.path, line=frame.line)
    previous = machine.frame
    machine.depth += 1
    machine.frame = frame
    machine.steps += 1
    if machine.steps > machine.checkpoint:
        machine.tick(0)
    try:
        if code.expression is not None:
            return code.expression(frame)
        for line, step in code.block:
            machine.steps += 1
            if machine.steps > machine.checkpoint:
                machine.tick(0)
            frame.line = line
            if step(frame) is not None:
                return frame.result
    except CannotTell as error:
        error.at(frame.module.path, frame.line)
        raise
    except Exception as error:
        mark(error, frame)
        raise
    finally:
        machine.depth -= 1
        machine.frame = previous
        if code.recursive:
            break_cycles(frame)
    return None


def mark(error: BaseException, frame: Frame) -> None:
    """Note where an exception was raised (the innermost frame comes first) and the calls that led there."""
    try:
        trace = error.__dict__.setdefault("weighbridge_trace", [])
    except AttributeError:
        return
    if len(trace) < 12:
        trace.append((frame.module.path, frame.line, frame.function.name if frame.function is not None else "<module>"))


def break_cycles(frame: Frame) -> None:
    """A nested function that calls itself holds itself through its cell: let go of it when nobody else holds it."""
    code = frame.function.code if frame.function is not None else None
    for name in code.cells if code is not None else ():
        cell = frame.cells[name]
        value = cell.value
        if type(value) is Function and value.closure.get(name) is cell and getrefcount(value) <= 3:
            cell.value = MISSING


def run_block(block: list[tuple[int, Callable[[Frame], Any]]], frame: Frame) -> Any:
    """Run statements until one returns, breaks or continues; gives that signal, or None."""
    machine = frame.machine
    for line, step in block:
        machine.steps += 1
        if machine.steps > machine.checkpoint:
            machine.tick(0)
        frame.line = line
        signal = step(frame)
        if signal is not None:
            return signal
    return None
