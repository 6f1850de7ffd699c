"""Objects die when CPython would let them die: what a tensor's memory follows."""

import gc
from typing import Any

import pytest

from weighbridge.reading.python import Foreign, Machine, Native

SNIPPETS = {
    "rebinding in the callee frees the argument": """
def f(x):
    x = None
    mark("inside")
def main():
    f(make("a"))
    mark("after")
""",
    "rebinding in the callee of a method frees the argument": """
class A:
    def f(self, x, *, y=None):
        x = y = None
        mark("inside")
def main():
    A().f(make("a"), y=make("b"))
    mark("after")
""",
    "the caller's variable keeps it": """
def f(x):
    del x
    mark("inside")
def main():
    t = make("a")
    f(t)
    mark("after call")
    t = make("b")
    mark("rebound")
    del t
    mark("deleted")
""",
    "locals die on return": """
def f():
    t = make("a")
    u = [make("b")]
    return 1
def main():
    f()
    mark("after")
""",
    "a returned object lives on": """
def f():
    t = make("a")
    return t
def main():
    x = f()
    mark("held")
    x = None
    mark("gone")
""",
    "temporaries of an expression": """
def main():
    n = size(make("a")) + size(make("b"))
    mark("after")
    return n
""",
    "loop variables": """
def main():
    for t in (make(str(i)) for i in range(3)):
        mark("body")
    mark("after")
    t = None
    mark("gone")
""",
    "a loop variable rebound in the body": """
def main():
    for t in (make(str(i)) for i in range(2)):
        t = None
        mark("body")
""",
    "comprehension variables": """
def main():
    x = [size(t) for t in [make("a"), make("b")]]
    mark("after")
""",
    "recursive nested function": """
def main():
    def outer():
        t = make("a")
        def walk(n):
            return size(t) if n == 0 else walk(n - 1)
        return walk(3)
    outer()
    collect()
    mark("after")
""",
    "closures keep only what they capture": """
def main():
    def build():
        t = make("captured")
        u = make("not captured")
        return lambda: t
    f = build()
    mark("built")
    f = None
    mark("gone")
""",
    "a caught exception keeps nothing": """
def f():
    t = make("a")
    raise ValueError("x")
def main():
    try:
        f()
    except ValueError:
        pass
    mark("after")
""",
    "unpacking": """
def f():
    return make("a"), make("b")
def main():
    x, y = f()
    x = None
    mark("x gone")
    y = None
    mark("y gone")
""",
    "attributes and items": """
class A: pass
def main():
    a = A()
    a.t = make("a")
    a.t = make("b")
    mark("replaced")
    d = {"k": make("c")}
    d["k"] = None
    mark("item replaced")
    d = [make("d")]
    d.pop()
    mark("popped")
    a = None
    mark("owner gone")
""",
    "chained calls": """
def step(x):
    y = make("next")
    x = None
    mark("step")
    return y
def main():
    x = step(step(make("first")))
    mark("after")
    x = None
""",
    "star arguments": """
def f(*xs, **ks):
    xs = ks = None
    mark("inside")
def main():
    f(make("a"), k=make("b"))
    mark("after")
""",
    "with statement": """
class M:
    def __enter__(self): return make("a")
    def __exit__(self, *a): mark("exit")
def main():
    with M() as t:
        t = None
        mark("body")
    mark("after")
""",
    "return inside try finally": """
def f():
    t = make("a")
    try:
        return size(t)
    finally:
        mark("finally")
def main():
    f()
    mark("after")
""",
    "generator locals": """
def g():
    t = make("a")
    yield 1
    t = None
    yield 2
def main():
    it = g()
    next(it)
    mark("first")
    next(it)
    mark("second")
    it = None
    mark("after")
""",
    "deleting a half-run generator": """
def g():
    t = make("a")
    yield 1
    yield 2
def main():
    it = g()
    next(it)
    it = None
    mark("after")
""",
    "sequential module style": """
class Layer:
    def __init__(self, name): self.name = name
    def __call__(self, x):
        h = self.inner(x)
        x = None
        mark("in " + self.name)
        return h
    def inner(self, x): return make(self.name)
def main():
    x = make("input")
    for layer in [Layer("1"), Layer("2")]:
        x = layer(x)
        mark("looped")
    x = None
    mark("after")
""",
    "augmented assignment": """
def main():
    x = [make("a")]
    x += [make("b")]
    x = None
    mark("after")
""",
    "conditional expressions": """
def main():
    x = make("a") if True else make("b")
    x = size(x) and None
    mark("after")
""",
    "lambda default": """
def main():
    f = lambda t=make("a"): None
    f()
    mark("kept")
    f = None
    mark("gone")
""",
}


class Thing:
    """Says in the log when it dies."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log
        log.append(f"+{name}")

    def __del__(self) -> None:
        self.log.append(f"-{self.name}")


class ThingForeign(Foreign):
    name = "Thing"


def helpers(log: list[str]) -> dict[str, Any]:
    return {
        "make": lambda name: Thing(name, log),
        "mark": log.append,
        "size": lambda thing: len(thing.name),
        "collect": lambda: gc.collect() and None,
    }


def by_cpython(text: str) -> list[str]:
    log: list[str] = []
    space: dict[str, Any] = helpers(log)
    exec(compile(text, "snippet", "exec"), space)
    space["main"]()
    return list(log)


def by_machine(text: str) -> list[str]:
    log: list[str] = []
    machine = Machine()
    machine.add_foreign(Thing, ThingForeign())
    machine.builtins.update({name: Native(function, name, lazy=True) for name, function in helpers(log).items()})
    module = machine.source_module("snippet", text, "snippet", "snippet")
    machine.call(machine.getattr(module, "main"), [])
    return list(log)


@pytest.mark.parametrize("name", SNIPPETS)
def test_objects_die_in_the_order_of_cpython(name: str) -> None:
    gc.disable()
    try:
        assert by_machine(SNIPPETS[name]) == by_cpython(SNIPPETS[name])
    finally:
        gc.enable()


def test_nothing_outlives_a_run_that_failed() -> None:
    log: list[str] = []
    machine = Machine()
    machine.add_foreign(Thing, ThingForeign())
    machine.builtins["make"] = Native(lambda name: Thing(name, log), "make", lazy=True)
    module = machine.source_module("m", "def main():\n    t = make('a')\n    raise ValueError('x')\n", "m", "m")
    with pytest.raises(ValueError, match="x") as caught:
        machine.call(machine.getattr(module, "main"), [])
    caught.value.__traceback__ = None
    del caught
    gc.collect()
    assert log == ["+a", "-a"]
