"""What is not known stays unknown, is named with its place, and never decides anything."""

# ruff: noqa: E501 - snippets of source in one line each

from typing import Any

import pytest

from weighbridge.base.errors import BadConfig, CannotTell
from weighbridge.reading.python import MISSING, Class, Foreign, Instance, Machine, Namespace, Native, Unknown


def machine_with(text: str, **names: Any) -> tuple[Machine, Any]:
    machine = Machine()
    machine.builtins.update(names)
    return machine, machine.source_module("m", text, "m.py", "m")


def run(body: str, **names: Any) -> Any:
    machine, module = machine_with("def main(u=None):\n" + "".join(f"    {line}\n" for line in body.splitlines()), **names)
    return machine.run(lambda: machine.call(machine.getattr(module, "main"), [Unknown("the thing")]))


@pytest.mark.parametrize(
    "text",
    [
        "u + 1",
        "1 + u",
        "-u",
        "not u",
        "u < 3",
        "u == 3",
        "u[0]",
        "u.x.y",
        "[1, 2][u]",
        "len(u)",
        "f'{u}'",
        "str(u)",
        "u in [1]",
        "int(u)",
        "isinstance(u, int)",
        "1 if u else 2",
        "u is None",
        "abs(u)",
        "max(1, u)",
        "sum([u, 1])",
        "'a'.replace('a', u)",
        "hasattr(u, 'x')",
        "u and 1",
        "{'a': 1}.get(u)",
    ],
)
def test_an_expression_with_something_unknown_is_unknown(text: str) -> None:
    assert isinstance(run(f"return {text}"), Unknown)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0 and u", 0),
        ("u and 0", 0),
        ("1 or u", 1),
        ("u or 1", 1),
        ("1 if u else 1", 1),
        ("any([u, 1])", True),
        ("all([u, 0])", False),
        ("1 in [u, 1]", True),
        ("u is u", True),
    ],
)
def test_what_is_decided_all_the_same_is_known(text: str, value: object) -> None:
    assert run(f"return {text}") == value


@pytest.mark.parametrize(
    "text",
    [
        "if u:\n    f = g()",
        "while u:\n    pass",
        "for x in u:\n    pass",
        "[x for x in u]",
        "print(*u)",
        "print(**u)",
        "{u: 1}",
        "sorted([u, 1])",
        "x = [1]; x[u] = 2",
    ],
)
def test_a_decision_on_something_unknown_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(CannotTell, match=r"m\.py:2: .*the thing"):
        run(text)


def test_blocks_that_only_complain_are_left_out() -> None:
    assert run("if u:\n    raise ValueError('no')\nreturn 1") == 1
    assert run("x = 1\nif u:\n    x = 1\nelse:\n    x = 1\nreturn x") == 1
    assert isinstance(run("x = 1\nif u:\n    x = 2\nreturn x"), Unknown)
    assert run("if u:\n    import logging\n    x = 1\nreturn 2" if False else "assert u\nreturn 2") == 2


def test_kinds_follow_the_value() -> None:
    assert run("return lib.a.b", lib=Namespace("lib")).kind == "lib"
    assert run("return lib.a(1)", lib=Namespace("lib")).kind == "libcall"
    assert run("return stub.a(1)", stub=Unknown("stub", "stub")).kind == "stub"
    assert run("return stub.a is None", stub=Unknown("stub", "stub")) is False
    assert run("import surely_absent\nreturn surely_absent.x").kind == "lib"


def test_a_stub_that_is_handed_something_to_hide_is_no_longer_inert() -> None:
    machine, module = machine_with("def main(): return stub(3)", stub=Unknown("stub", "stub"))
    machine.hides = lambda value: value == 3
    assert machine.call(machine.getattr(module, "main"), []).kind == "libcall"


def test_an_unknown_decorator_leaves_the_function() -> None:
    machine, module = machine_with("import absent\n@absent.deco(1)\ndef main(): return 5")
    assert machine.call(machine.getattr(module, "main"), []) == 5


def test_an_unknown_base_is_remembered() -> None:
    machine, module = machine_with("import absent\nclass A(absent.Base):\n    x = 1\ndef main(): return A().x, A().zzz")
    known, unknown = machine.call(machine.getattr(module, "main"), [])
    assert known == 1
    assert "absent.Base" in unknown.why


def test_statements_run_only_when_asked_for() -> None:
    seen: list[str] = []
    text = "mark('a')\nx = mark('x')\ny = mark('y')\nz = x\ny = [y]\ny.append(1)\nboom = 1 / 0\n"
    machine, module = machine_with(text, mark=Native(lambda name: seen.append(name) or name, "mark", lazy=True))
    assert seen == []
    assert machine.getattr(module, "z") == "x"
    assert machine.getattr(module, "y") == ["y", 1]
    assert seen == ["x", "y"]
    with pytest.raises(ZeroDivisionError) as caught:
        machine.getattr(module, "boom")
    assert "m.py:7" in str(machine.explain(caught.value))
    assert machine.getattr(module, "absent", 4) == 4


def test_imports_go_through_the_resolver() -> None:
    machine = Machine()
    texts = {
        "pkg": "from .a import *\n",
        "pkg.a": "from . import b\nfrom .b import f as g\nimport pkg.b as again\nv = g()\n",
        "pkg.b": "def f(): return 7\n_hidden = 1\n",
    }
    cache: dict[str, Any] = {}

    def resolve(machine: Machine, name: str) -> Any:
        if name in texts and name not in cache:
            cache[name] = machine.source_module(name, texts[name], name.replace(".", "/") + ".py", "pkg")
        return cache.get(name)

    machine.resolve = resolve
    main = machine.source_module(
        "main", "import pkg.a\nfrom pkg import v\nfrom pkg.a import nothing\nfrom missing import x\nw = pkg.a.v\n", "main.py", "main"
    )
    assert machine.getattr(main, "v") == 7
    assert machine.getattr(main, "w") == 7
    assert machine.getattr(main, "nothing").kind == "lib"
    assert machine.getattr(main, "x").kind == "lib"


def test_explain_names_the_line_of_a_refusal_by_the_model() -> None:
    machine, module = machine_with(
        "class Bad(ValueError): pass\ndef check(n):\n    if n > 1:\n        raise Bad('too many')\ndef main():\n    check(2)\n"
    )
    with pytest.raises(Exception, match="Bad: too many") as caught:
        machine.call(machine.getattr(module, "main"), [])
    explained = machine.explain(caught.value)
    assert isinstance(explained, BadConfig)
    assert str(explained) == "m.py:4: Bad: too many"


class Box:
    def __init__(self, value: int) -> None:
        self.value = value


class BoxForeign(Foreign):
    name = "Box"

    def __init__(self) -> None:
        self.log: list[str] = []

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        return value.value if name == "value" else super().getattr(machine, value, name, default)

    def binop(self, machine: Machine, op_name: str, value: Any, other: Any, reflected: bool) -> Any:
        return f"{op_name} {other} {reflected}" if isinstance(other, int) else NotImplemented

    def inplace(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:
        value.value += other
        return value

    def unary(self, machine: Machine, op_name: str, value: Any) -> Any:
        return op_name

    def compare(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:
        return op_name

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:
        return value.value == other

    def enter(self, machine: Machine, value: Any) -> Any:
        self.log.append("enter")
        return value.value

    def exit(self, machine: Machine, value: Any) -> None:
        self.log.append("exit")


def test_foreign_values_answer_through_their_adapter_only() -> None:
    machine, module = machine_with(
        "def main(b):\n    before = b.value\n    c = b\n    c += 5\n    with b as n: pass\n"
        "    return before, b + 1, 2 * b, -b, abs(b), b < 3, 3 < b, b == 6, b != 6, c is b, n, hasattr(b, '__dict__'), hasattr(b, 'real')\n"
    )
    adapter = BoxForeign()
    machine.add_foreign(Box, adapter)
    result = machine.call(machine.getattr(module, "main"), [Box(1)])
    assert result == (1, "Add 1 False", "Mult 2 True", "USub", "Abs", "Lt", "Gt", True, False, True, 6, False, False)
    assert adapter.log == ["enter", "exit"]


class Shouting(Instance):
    __slots__ = ()

    def assign(self, machine: Machine, name: str, value: Any) -> None:
        super().assign(machine, name.upper(), value)


def test_stand_in_classes_hand_down_their_instances_hooks_and_constructors() -> None:
    base = Class("Base", [], {"kind": 1}, instance_type=Shouting)
    made: list[str] = []
    base.hook = lambda _machine, cls, keywords: made.append(f"{cls.name} {keywords}")
    machine, module = machine_with(
        "class A(Base, tag=1):\n    n: int = 3\n    def __init__(self): self.x = 1\ndef main(): return A().X, A.kind\n", Base=base
    )
    assert machine.call(machine.getattr(module, "main"), []) == (1, 1)
    assert made == ["A {'tag': 1}"]
    cls = machine.getattr(module, "A")
    assert cls.annotations["n"].text == "int"
    assert machine.evaluate_annotation(cls.annotations["n"]) is machine.builtins["int"]


def test_writes_are_counted() -> None:
    machine, module = machine_with(
        "class A: pass\na = A()\nd = {}\ndef pure(): return [i for i in range(3)]\ndef write(): a.x = 1\ndef item(): d['k'] = 1\ndef main(): return a, d, pure, write, item"
    )
    _, _, pure, write, item = machine.call(machine.getattr(module, "main"), [])
    before = machine.mutations
    machine.call(pure, [])
    assert machine.mutations == before
    machine.call(write, [])
    assert machine.mutations == before + 1
    machine.call(item, [])
    assert machine.mutations == before + 2


def test_compiled_source_serves_several_machines() -> None:
    import ast

    tree = ast.parse("n = []\ndef main():\n    n.append(1)\n    return len(n)\n")
    for _ in range(2):
        machine = Machine()
        module = machine.source_module("m", tree, "m.py", "m")
        assert machine.call(machine.getattr(module, "main"), []) == 1
        assert machine.call(machine.getattr(module, "main"), []) == 2
