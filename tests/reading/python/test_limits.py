"""Every way to take too much ends in a refusal that names its limit, soon."""

# ruff: noqa: E501 - snippets of source in one line each

import time

import pytest

from weighbridge.base.errors import BadInput, CannotTell, LimitExceeded, WeighError
from weighbridge.reading.python import Limits, Machine

SMALL = Limits(steps=300_000, depth=200, cells=200_000, int_bits=4_096, text_chars=100_000, source_bytes=200_000, seconds=5)


def run(body: str, limits: Limits = SMALL, top: str = "") -> object:
    text = f"{top}\ndef main():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    machine = Machine(limits)
    module = machine.source_module("m", text, "m.py", "m")
    return machine.run(lambda: machine.call(machine.getattr(module, "main"), []))


ATTACKS = {
    "an endless loop": ("while True:\n    pass", "steps"),
    "a swallowed refusal": ("try:\n    while True:\n        pass\nexcept BaseException:\n    pass\nreturn 1", "steps"),
    "a refusal and finally": ("try:\n    while True:\n        pass\nfinally:\n    return 1", "steps"),
    "a refusal and with": (
        "from contextlib import suppress\nwith suppress(BaseException):\n    while True:\n        pass\nreturn 1",
        "steps",
    ),
    "raising for ever": ("while True:\n    try:\n        raise ValueError('x')\n    except Exception:\n        pass", "steps"),
    "endless recursion": ("def f():\n    return f()\nf()", "depth"),
    "endless recursion caught": ("def f():\n    try:\n        return f()\n    except RecursionError:\n        return 1\nf()", "depth"),
    "recursion through __getattr__": ("class A:\n    def __getattr__(self, n):\n        return self.x\nA().y", "depth"),
    "recursion through repr": ("class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())", "depth"),
    "recursion through sort": ("def f(x):\n    return sorted([1, 2], key=f)\nf(1)", "depth"),
    "recursion through a generator": ("def g():\n    yield from g()\nnext(g())", "depth"),
    "an endless generator": ("def g():\n    while True:\n        yield 1\nlist(g())", ("steps", "cells")),
    "sum over an endless generator": ("def g():\n    while True:\n        yield 1\nsum(g())", "steps"),
    "a nested list": ("x = []\nfor i in range(100000):\n    x = [x]\nrepr(x)", ("depth", "steps", "cells")),
    "comparing nested lists": ("x = []\ny = []\nfor i in range(10000):\n    x = [x]\n    y = [y]\nx == y", "depth"),
    "a nested tuple as key": ("x = ()\nfor i in range(10000):\n    x = (x,)\n{x: 1}", "depth"),
    "a doubling tuple as key": ("x = (1,)\nfor i in range(40):\n    x = (x, x)\n{x: 1}", "steps"),
    "a list that holds itself": ("x = []\nx.append(x)\nrepr(x)", "depth"),
    "a list that equals itself": ("x = []\nx.append(x)\ny = []\ny.append(y)\nx == y", "depth"),
    "a huge list": ("x = [0] * (10 ** 12)", "cells"),
    "a huge list from a range": ("x = list(range(10 ** 12))", "cells"),
    "a range beyond the machine": ("x = list(range(10 ** 30))", "cells"),
    "nested comprehensions": ("x = [[0 for _ in range(10 ** 6)] for _ in range(10 ** 6)]", ("steps", "cells")),
    "a huge power": ("x = 10 ** (10 ** 9)", "int_bits"),
    "a tower of squares": ("x = 3\nfor i in range(100):\n    x = x * x", "int_bits"),
    "a tower of in-place squares": ("x = 3\nfor i in range(100):\n    x **= 2", "int_bits"),
    "a huge shift": ("x = 1 << (10 ** 12)", "int_bits"),
    "a huge factorial": ("import math\nmath.factorial(10 ** 9)", "int_bits"),
    "a huge text": ("x = 'a' * (10 ** 11)", "text_chars"),
    "doubling text": ("x = 'a'\nfor i in range(60):\n    x = x + x", "text_chars"),
    "doubling text in a format": ("x = 'a'\nfor i in range(60):\n    x = f'{x}{x}'", "text_chars"),
    "doubling text by join": ("x = 'a'\nfor i in range(60):\n    x = x.join([x, x, x])", "text_chars"),
    "doubling text by %": ("x = 'a'\nfor i in range(60):\n    x = '%s%s' % (x, x)", "text_chars"),
    "doubling text by format()": ("x = 'a'\nfor i in range(60):\n    x = '{0}{0}'.format(x)", "text_chars"),
    "doubling text by encoding": ("x = b'a'\nfor i in range(60):\n    x = x + x", "text_chars"),
    "a replacement bomb": ("x = 'a' * 10000\nx = x.replace('a', x)", "text_chars"),
    "a replacement bomb by re": ("import re\nx = 'a' * 10000\nx = re.sub('a', x, x)", "text_chars"),
    "a padding bomb": ("x = 'a'.ljust(10 ** 11)", "text_chars"),
    "doubling lists": ("x = [1]\nfor i in range(60):\n    x = x + x", "cells"),
    "a list extended by itself": ("x = [1]\nfor i in range(60):\n    x.extend(x)", "cells"),
    "a list added to itself in place": ("x = [1]\nfor i in range(60):\n    x += x", "cells"),
    "a slice stored in itself": ("x = [1]\nfor i in range(60):\n    x[:0] = x", "cells"),
    "keys from a huge range": ("x = dict.fromkeys(range(10 ** 12))", "cells"),
    "a set from a huge range": ("x = set(range(10 ** 12))", "cells"),
    "a wide field": ("x = f'{1:>999999999999}'", "text_chars"),
    "a precise field": ("x = f'{1.0:.999999999999f}'", "text_chars"),
    "a wide %": ("x = '%999999999999d' % 1", "text_chars"),
    "a wide format()": ("x = '{:>999999999}'.format(1)", "text_chars"),
    "a wide nested field": ("x = '{:{}}'.format(1, 10 ** 11)", "text_chars"),
    "a copy that doubles": (
        "import copy\nx = [1]\nfor i in range(60):\n    x = [x, x]\ncopy.deepcopy(list(map(list, [x, x])))\nrepr(x)",
        ("steps", "cells", "text_chars"),
    ),
    "sorting a huge range": ("x = sorted(range(10 ** 12), key=lambda v: -v)", "cells"),
    "summing a huge range": ("x = sum(range(10 ** 12))", "steps"),
    "the largest of a huge range": ("x = max(range(10 ** 12))", "steps"),
    "any of a huge range": ("any(0 for _ in range(10 ** 12))", "steps"),
    "a product": ("import itertools\nx = list(itertools.product(range(1000), repeat=20))", ("steps", "cells")),
    "a wide product": ("import itertools\nx = itertools.product([1], repeat=10 ** 9)", ("cells", "depth")),
    "an endless count": ("import itertools\nfor i in itertools.count():\n    pass", "steps"),
    "an endless repeat": ("import itertools\nx = list(itertools.repeat(1))", ("steps", "cells")),
    "an endless cycle": ("import itertools\nx = list(itertools.cycle([1]))", ("steps", "cells")),
    "an endless zip": ("import itertools\nx = list(zip(itertools.count(), itertools.count()))", ("steps", "cells")),
    "reading a long number": ("x = int('9' * 100000)", ("int_bits", "text_chars")),
    "an equality bomb": ("class K:\n    def __eq__(self, o):\n        return [0] * (10 ** 12)\nx = K() == K()", "cells"),
    "an object that iterates for ever": (
        "class K:\n    def __iter__(self):\n        return self\n    def __next__(self):\n        return 1\nx = list(K())",
        ("steps", "cells"),
    ),
    "an object with endless items": ("class K:\n    def __getitem__(self, i):\n        return i\nx = list(K())", ("steps", "cells")),
    "objects without end": ("class K:\n    pass\nx = [K() for _ in range(10 ** 9)]", ("steps", "cells")),
    "classes without end": ("while True:\n    type('A', (), {})", ("steps", "cells")),
    "json without end": ("import json\njson.loads('[' * 50000)", "depth"),
    "deep inheritance": ("A = object\nfor i in range(10 ** 5):\n    A = type('A', (A,), {})", "depth"),
    "lambdas calling lambdas": ("f = lambda: 1\nfor i in range(1000):\n    f = (lambda g: lambda: g())(f)\nf()", "depth"),
    "partials of partials": (
        "from functools import partial\nf = partial(len, '')\nfor i in range(100000):\n    f = partial(f)\nf()",
        ("depth", "steps"),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_in_a_named_limit(name: str) -> None:
    body, limits = ATTACKS[name]
    began = time.process_time()
    with pytest.raises(LimitExceeded) as caught:
        run(body)
    assert caught.value.limit in ((limits,) if isinstance(limits, str) else limits)
    assert time.process_time() - began < 4


def test_the_clock_stops_a_run() -> None:
    with pytest.raises(LimitExceeded) as caught:
        run("while True:\n    pass", Limits(steps=10**12, seconds=0.2))
    assert caught.value.limit == "seconds"


def test_a_float_is_looked_up_in_a_huge_range_at_once() -> None:
    assert run("return 0.5 in range(10 ** 12), 3.0 in range(10 ** 12), 'x' in range(10 ** 12), len(range(10 ** 12))") == (
        False,
        True,
        False,
        10**12,
    )


def test_four_hundred_nested_calls_fit() -> None:
    body = "def f(n):\n    for i in [1]:\n        if n:\n            with_n = [f(n - 1) + 1 for _ in [0]]\n            return with_n[0]\n        return 0\nreturn f(390)"
    assert run(body, Limits()) == 390
    deep = "def f(n):\n    try:\n        return max([n], key=lambda x: f(x - 1) if x else 0)\n    finally:\n        pass\nreturn f(150)"
    assert run(deep, Limits()) == 150


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 5000 + "1" + ")" * 5000,
        "x = " + "-" * 50000 + "1",
        "x = " + "+".join(["1"] * 50000),
        "x = a" + ".b" * 50000,
        "x = 1\0",
        "x = " + "9" * 100000,
        "x = " + "[" * 150 + "]" * 150,
        "def f(:",
        "x = '" + "a" * 300000 + "'",
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_malformed_and_monstrous_sources_are_refused_or_read(text: str, inside: bool) -> None:
    machine = Machine(SMALL)

    def read() -> object:
        module = machine.source_module("m", text, "m.py", "m")
        return machine.getattr(module, "x")

    try:
        machine.run(read) if inside else read()
    except (BadInput, LimitExceeded, CannotTell, NameError):
        return
    assert text.startswith("x = [[")


def test_a_refusal_names_its_place() -> None:
    with pytest.raises(LimitExceeded, match=r"m\.py:4"):
        run("x = 1\nwhile True: pass")


@pytest.mark.parametrize("name", ["open", "exec", "eval", "compile", "__import__", "globals", "locals", "input", "breakpoint"])
def test_doors_to_the_outside_are_shut(name: str) -> None:
    with pytest.raises(CannotTell, match=rf"m\.py:3: a call of {name}\(\)"):
        run(f"try:\n    {name}('x')\nexcept BaseException:\n    return 1".replace("try:\n    ", "", 1).split("\nexcept")[0])
    with pytest.raises(WeighError):
        run(f"try:\n    {name}('x')\nexcept BaseException:\n    return 1")
