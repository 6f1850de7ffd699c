"""Drawn expressions have the value CPython gives them."""

# ruff: noqa: E501 - snippets of source in one line each

import warnings
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.reading.python import Machine

INTEGERS = st.integers(-1000, 1000).map(str)
FLOATS = st.floats(-100, 100, allow_nan=False).map(repr)
TEXTS = st.text("ab c1é", max_size=5).map(repr)
LEAVES = st.one_of(
    INTEGERS, FLOATS, TEXTS, st.sampled_from(["True", "False", "None", "[]", "(1, 2)", "[1, 'a']", "{'a': 1}", "{1, 2}", "range(5)"])
)
OPERATORS = st.sampled_from(
    ["+", "-", "*", "//", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
)
FUNCTIONS = st.sampled_from(
    [
        "len({})",
        "str({})",
        "list({})",
        "bool({})",
        "int({})",
        "sorted({})",
        "sum({})",
        "tuple({})",
        "repr({})",
        "-{}",
        "not {}",
        "abs({})",
        "({})[0]",
        "({})[1:]",
        "({})[::-1]",
        "[x for x in {}]",
        "max({})",
        "round({})",
        "set({})",
        "({} if {} else 0)",
        "({}).upper()",
        "({}).index(1)",
        "hash({}) == hash(1)",
        "'%s' % ({},)",
    ]
)


def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda a, op, b: f"({a} {op} {b})", inner, OPERATORS, inner),
        st.builds(lambda form, a: f"({form.replace('{}', a)})", FUNCTIONS, inner),
        st.builds(lambda a, b: f"[{a}, {b}]", inner, inner),
    )


EXPRESSIONS = st.recursive(LEAVES, nest, max_leaves=8)


def outcome(action: Any) -> Any:
    try:
        value = action()
    except Exception as error:
        return f"raises {type(error).__name__}"
    return f"{type(value).__name__} {sorted(value, key=repr) if isinstance(value, set) else value!r}"


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
def test_an_expression_has_its_value(text: str) -> None:
    machine = Machine()
    module = machine.source_module("m", f"def main():\n    return {text}\n", "m.py", "m")
    with warnings.catch_warnings(action="ignore"):
        expected = outcome(lambda: eval(text, {}))
    got = outcome(lambda: machine.run(lambda: machine.call(machine.getattr(module, "main"), [])))
    assert (
        got == expected
        or "LimitExceeded" in got
        or {got, expected} <= {"raises ValueError", "raises TypeError", "raises AttributeError", "raises OverflowError"}
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "insert0", "pop", "reverse", "sort", "extend", "remove", "del", "slice"]), st.integers(-3, 5)),
        max_size=12,
    )
)
def test_a_list_goes_through_the_same_states(steps: list[tuple[str, int]]) -> None:
    forms = {
        "append": "x.append({})",
        "insert0": "x.insert(0, {})",
        "pop": "x.pop()",
        "reverse": "x.reverse()",
        "sort": "x.sort()",
        "extend": "x.extend([{}, 1])",
        "remove": "x.remove({})",
        "del": "del x[{}]",
        "slice": "x[{}:2] = [9]",
    }
    lines = "".join(
        f"    try:\n        {forms[name].format(value)}\n    except (IndexError, ValueError) as e:\n        x.append(type(e).__name__ == 'IndexError')\n    log.append(list(x))\n"
        for name, value in steps
    )
    text = f"def main():\n    x, log = [2, 1], []\n{lines}    return log\n"
    machine = Machine()
    module = machine.source_module("m", text, "m.py", "m")
    space: dict[str, Any] = {}
    exec(text, space)
    assert machine.call(machine.getattr(module, "main"), []) == space["main"]()


@settings(max_examples=150, deadline=None)
@given(
    st.text("abc {}%", max_size=6),
    st.integers(-99, 99),
    st.floats(-99, 99),
    st.sampled_from(["", "d", "5", "<4", "^7", "+d", "05d", ",", "x", ".2f", "e", "g", "%", "*>6", "s"]),
)
def test_formatting_agrees(text: str, number: int, real: float, spec: str) -> None:
    body = f"def main():\n    return [f'{{v:{spec}}}' for v in [{number!r}]], f'{{{real!r}:{spec}}}', '{{:{spec}}}'.format({text!r})\n"
    machine = Machine()
    module = machine.source_module("m", body, "m.py", "m")
    space: dict[str, Any] = {}
    exec(body, space)
    assert outcome(lambda: machine.call(machine.getattr(module, "main"), [])) == outcome(space["main"])
