"""Hostile values and edits that the fuzzer's cases are drawn from: JSON values, bytes, texts and lines of Python."""

import json
import random
import string
from typing import Any, Final


def words(text: str) -> tuple[str, ...]:
    """A text's words."""
    return tuple(text.split())


NUMBERS: Final = (
    0, 1, -1, 2, 3, 7, 64, 127, 255, 65_536, -(2**31), 2**31, 2**32 + 1, 2**62, 2**63, 10**12, 10**30, -(10**30), 0.0, -0.0, 0.5, 1.5,
    -2.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 1e18,
)  # fmt: skip
TEXTS: Final = (
    "", " ", "0", "-1", "4096", "1e999", "None", "null", "true", "NaN", "llama", "bert", "LlamaForCausalLM", "__class__", "__init__",
    "../../../etc/hostname", "file:///etc/hostname", "https://127.0.0.1:9/x", "a/b--m.M", "..m.M", "m.", ".M", "os.system", "\0", "\r\n",
    "\x1b[31mred\x1b[0m", "\u202eevil", "\ud800", "\U0001f4a3", "<script>alert(1)</script>", "[x](javascript:alert(1))", "|a|b|", "`",
    "{0.__class__}", "%s%n%999999d", "float32", "bfloat16", "torch.float16", "int8", "a" * 3000, "(a+)+$", "gelu", "eager", "sdpa", "yarn",
)  # fmt: skip
WORDS: Final = tuple(string.ascii_lowercase)


def value(draw: random.Random, depth: int = 0) -> Any:
    """Any JSON value, with a taste for the edges."""
    kind = draw.random()
    if kind < 0.45:
        return draw.choice(NUMBERS)
    if kind < 0.65:
        return draw.choice(TEXTS)
    if kind < 0.8 or depth > 3:
        return draw.choice((None, True, False, [], {}))
    if kind < 0.84:
        return nested(draw.randrange(1, 200), as_list=draw.random() < 0.5)
    if kind < 0.86:
        return [draw.choice(NUMBERS)] * draw.choice((100, 5_000))
    if kind < 0.93:
        return [value(draw, depth + 1) for _ in range(draw.randrange(5))]
    return {draw.choice(TEXTS + WORDS): value(draw, depth + 1) for _ in range(draw.randrange(5))}


def nested(depth: int, *, as_list: bool) -> Any:
    """A list or an object so deep."""
    found: Any = 1
    for _ in range(depth):
        found = [found] if as_list else {"a": found}
    return found


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a JSON document but the root."""
    found: list[tuple[Any, ...]] = []
    pairs = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, inner in pairs:
        found.append((*path, key))
        found.extend(places(inner, (*path, key)))
    return found


def mutate(draw: random.Random, document: dict[str, Any], edits: int) -> list[str]:
    """Edit a document in place; the paths that were changed."""
    changed = []
    for _ in range(edits):
        paths = places(document)
        if not paths:
            break
        path = draw.choice(paths)
        owner: Any = document
        for key in path[:-1]:
            owner = owner[key]
        kind = draw.random()
        if kind < 0.15:
            del owner[path[-1]]
        elif kind < 0.25:
            other = document
            for key in draw.choice(paths):
                other = other[key]
            owner[path[-1]] = json.loads(json.dumps(other)) if len(places(other)) < 100 else None
        elif kind < 0.3 and isinstance(owner, dict):
            owner[draw.choice(TEXTS + WORDS)] = value(draw)
        elif kind < 0.45 and isinstance(owner[path[-1]], int | float):
            owner[path[-1]] = draw.choice((-owner[path[-1]], str(owner[path[-1]]), float(owner[path[-1]]), [owner[path[-1]]]))
        else:
            owner[path[-1]] = value(draw)
        changed.append(".".join(map(str, path)))
    return changed


def dump(document: Any) -> bytes:
    """A document as bytes, whatever is in it."""
    return json.dumps(document).encode("utf-8", "surrogatepass")


def damage(draw: random.Random, raw: bytes, edits: int) -> bytes:
    """Bytes with pieces cut, doubled, swapped or overwritten."""
    data = bytearray(raw)
    for _ in range(edits):
        if not data:
            data += bytes(draw.randrange(256) for _ in range(8))
        start = draw.randrange(len(data))
        end = min(len(data), start + draw.choice((1, 1, 2, 4, 8, 64)))
        kind = draw.randrange(5)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end] * draw.choice((1, 2, 100))
        elif kind == 2:
            data[start] = draw.randrange(256)
        elif kind == 3:
            data[start:end] = draw.choice(
                (b"null", b"-1", b"1e999", b"[", b"}", b'"', b"\xff", b"NaN", b"9" * 30, b"{}", b"[]", b"\\u0000")
            )
        else:
            del data[start:]
    return bytes(data)


# ---------------------------------------------------------------- Python
BUILTINS: Final = words(
    "abs all any bin bool bytearray bytes callable chr complex dict dir divmod enumerate filter float format frozenset "
    "getattr hasattr hash hex id int isinstance issubclass iter len list map max min next object oct ord pow print property "
    "range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip eval exec open compile "
    "__import__ globals locals input memoryview delattr"
)
MODULES: Final = words(
    "math itertools functools collections re copy json operator dataclasses enum typing contextlib inspect types abc string "
    "random os sys warnings logging importlib numbers time uuid pathlib textwrap weakref threading"
)
METHODS: Final = tuple(
    sorted({name for kind in (str, bytes, list, dict, set, tuple, int, float, type, property) for name in dir(kind)} - {"__doc__"})
)
OPERATORS: Final = (*words("+ - * / // % ** << >> & | ^ @ == != < <= > >= in is and or"), "not in", "is not")
LITERALS: Final = (
    "0", "1", "-1", "2", "3", "10", "255", "10**6", "10**12", "2**63", "-(2**63)", "10**30", "0.0", "-0.5", "1e308", "float('inf')",
    "float('nan')", "True", "False", "None", "...", "NotImplemented", "''", "'a'", "'abc'", "'{0.__class__}'", "'%s'", "'%*d'", "'1'",
    "'a' * 1000", "b''", "b'ab'", "()", "(1, 2)", "[]", "[1, 2, 3]", "[[]]", "{}", "{'a': 1}", "{1: 2}", "set()", "{1, 2}", "range(3)",
    "range(10**12)", "1j", "slice(None)", "object()", "lambda: 0", "lambda *a, **k: (a, k)", "lambda x: x", "x", "y", "z", "main", "A",
    "A()", "int", "str", "list", "dict", "type", "Exception", "ValueError('v')", "'(a+)+$'", "'<999999999'", "'.99999f'",
)  # fmt: skip


def expression(draw: random.Random, depth: int = 0) -> str:
    """A random expression."""
    if depth > 3 or draw.random() < 0.25:
        return draw.choice(LITERALS)

    def inner() -> str:
        return expression(draw, depth + 1)

    def arguments(most: int = 3) -> str:
        parts = [draw.choice(("", "", "", "", "*")) + inner() for _ in range(draw.randrange(most + 1))]
        named = draw.choice(("", "", "", "", f"key={inner()}", f"**{inner()}"))
        return ", ".join([*parts, named] if named else parts)

    forms = (
        lambda: f"({inner()} {draw.choice(OPERATORS)} {inner()})",
        lambda: f"{draw.choice(BUILTINS)}({arguments()})",
        lambda: f"({inner()}).{draw.choice(METHODS)}",
        lambda: f"({inner()}).{draw.choice(METHODS)}({arguments()})",
        lambda: f"({inner()}).{draw.choice(METHODS)}({arguments()})",
        lambda: f"({inner()})[{inner()}]",
        lambda: f"({inner()})[{inner()}:{inner()}:{inner()}]",
        lambda: f"({inner()})({arguments()})",
        lambda: f"({inner()} if {inner()} else {inner()})",
        lambda: f"[{inner()} for x in {inner()} if {inner()}]",
        lambda: f"{{{inner()}: {inner()} for x, y in {inner()}}}",
        lambda: f"({inner()} for x in {inner()} for y in {inner()})",
        lambda: f"(lambda x={inner()}, *y, **z: {inner()})",
        lambda: f"{draw.choice(MODULES)}.{module_name(draw)}({arguments()})",
        lambda: f"{draw.choice(MODULES)}.{module_name(draw)}",
        lambda: f"'{draw.choice(('{}', '{:>{}}', '{0}{0}', '{!r}', '{a}', '{0[0]}', '{0.x}'))}'.format({arguments()})",
        lambda: f"({draw.choice(('%s', '%d', '%r', '%5.2f', '%(a)s', '%*d', '%c', '%x'))!r} % {inner()})",
        lambda: f"-({inner()})",
        lambda: f"(not {inner()})",
        lambda: f"~({inner()})",
        lambda: f"[*{inner()}, {inner()}]",
        lambda: f"{{**{inner()}}}",
        lambda: f"(x := {inner()})",
    )
    return draw.choice(forms)()


def module_name(draw: random.Random) -> str:
    """A name to ask a module for."""
    return draw.choice(
        words(
            "sqrt floor prod gcd comb factorial isclose inf nan chain product count cycle repeat islice accumulate groupby "
            "permutations tee zip_longest partial reduce wraps lru_cache cache cached_property total_ordering OrderedDict defaultdict "
            "Counter namedtuple deque ChainMap match search sub findall split compile escape copy deepcopy loads dumps itemgetter "
            "attrgetter methodcaller dataclass field fields asdict replace Enum auto IntEnum Any Optional Union Generic TypeVar "
            "NamedTuple get_type_hints contextmanager nullcontext suppress ExitStack signature getsource isfunction SimpleNamespace "
            "MethodType FunctionType ABC abstractmethod Template choice random system environ path modules exit warn getLogger "
            "import_module time uuid4 Path dedent ref Lock __dict__ __name__ __loader__"
        )
    )


def statement(draw: random.Random, depth: int = 0) -> list[str]:
    """A random statement, as lines."""

    def inner() -> str:
        return expression(draw, 1)

    def block() -> list[str]:
        return ["    " + line for line in statement(draw, depth + 1)] if depth < 3 else ["    pass"]

    name = draw.choice(("x", "y", "z", "x[0]", "A.a", "x.y", "(x, y)", "(x, *y)"))
    simple = (
        lambda: [inner()],
        lambda: [f"{name} = {inner()}"],
        lambda: [f"{draw.choice('xyz')} {draw.choice(('+', '-', '*', '//', '%', '**', '<<', '|', '&', '@'))}= {inner()}"],
        lambda: [f"del {draw.choice(('x', 'x[0]', 'A.a', 'y'))}"],
        lambda: [f"raise {inner()}"],
        lambda: [f"assert {inner()}, {inner()}"],
        lambda: [f"return {inner()}"],
        lambda: [f"yield {inner()}"],
        lambda: [f"global {draw.choice('xyz')}"],
        lambda: [draw.choice(("break", "continue", "pass", "import os", "from math import *", "from . import x", "import a.b.c"))],
    )
    compound = (
        lambda: [f"if {inner()}:", *block(), "else:", *block()],
        lambda: [
            f"for {draw.choice(('x', 'x, y', '(x, *y)'))} in {inner()}:",
            *block(),
            *(["else:", *block()] if draw.random() < 0.3 else []),
        ],
        lambda: [f"while {inner()}:", *block()],
        lambda: ["try:", *block(), f"except {draw.choice(('Exception', 'BaseException', '(ValueError, TypeError)', inner()))}:", *block()],
        lambda: ["try:", *block(), "finally:", *block()],
        lambda: [f"with {inner()} as x:", *block()],
        lambda: [f"def {draw.choice('xyz')}(x={inner()}, *y, **z):", *block()],
        lambda: [f"class A({draw.choice(('', 'A', 'dict', 'list', 'str', 'int', 'Exception', 'type', inner()))}):", *block()],
        lambda: [
            "class A:",
            f"    def {draw.choice(HOOKS)}(self, *x, **y):",
            *("    " + line for line in block()),
        ],
        lambda: [f"match {inner()}:", f"    case {draw.choice(CASES)}:", *("    " + line for line in block())],
    )
    return draw.choice(compound if depth < 3 and draw.random() < 0.4 else simple)()


CASES: Final = ("[x, *y]", "{'a': x}", "A(a=x)", "1 | 2", "x", "str()")
HOOKS: Final = words(
    "__init__ __new__ __call__ __getattr__ __getattribute__ __setattr__ __delattr__ __getitem__ __setitem__ __len__ __bool__ "
    "__iter__ __next__ __eq__ __lt__ __hash__ __repr__ __str__ __format__ __add__ __radd__ __iadd__ __mul__ __contains__ "
    "__enter__ __exit__ __get__ __set__ __set_name__ __init_subclass__ __class_getitem__ __index__ __int__ __float__ "
    "__missing__ __del__ __reduce__ __copy__ __deepcopy__ __instancecheck__"
)


def guarded(draw: random.Random, lines: list[str]) -> list[str]:
    """Lines whose error mostly doesn't end the program."""
    return lines if draw.random() < 0.2 else ["try:", *("    " + line for line in lines), "except Exception as error:", "    z = error"]


def program(draw: random.Random) -> str:
    """A module with a function main()."""
    lines = [f"import {', '.join(MODULES)}", "x = [1]", "y = {'a': 1}", "z = 'z'", "class A:", "    a = 1"]
    lines += ["def main(*args):"]
    for _ in range(draw.randrange(1, 8)):
        lines += ["    " + line for line in guarded(draw, statement(draw))]
    return "\n".join(lines) + "\n"


def splice(draw: random.Random, text: str, other: str) -> str:
    """A text of lines edited: numbers made hostile, lines doubled, dropped, or taken from another text."""
    lines = text.split("\n")
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(lines))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        kind = draw.randrange(5)
        if kind == 0:
            lines[at] = _hostile_number(draw, lines[at])
        elif kind == 1:
            lines.insert(at, indent + draw.choice(other.split("\n")).lstrip())
        elif kind == 2 and len(lines) > 1:
            del lines[at]
        elif kind == 3:
            lines.insert(at, indent + draw.choice("xyz") + " = " + expression(draw, 2))
        else:
            lines[at] = lines[at].replace(
                draw.choice(("(", ")", ":", "=", "self", "config", "range", " ")), draw.choice(("", "((", "x", " ")), 1
            )
    return "\n".join(lines)


def _hostile_number(draw: random.Random, line: str) -> str:
    digits = [index for index, character in enumerate(line) if character.isdigit()]
    if not digits:
        return line
    at = draw.choice(digits)
    return line[:at] + draw.choice(("0", "9999999999", "1.5", "(-3)", "None", "'a'", "[1]", "float('nan')", "10 ** 40")) + line[at + 1 :]
