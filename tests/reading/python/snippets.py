"""Snippets that CPython and the interpreter must answer alike: each defines `main()`."""

# ruff: noqa: E501 - a snippet asks many things in one expression

SNIPPETS: dict[str, str] = {}


def snippet(name: str, text: str) -> None:
    SNIPPETS[name] = text


snippet(
    "arithmetic",
    """
def main():
    a, b = 17, -5
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** 3, a & b, a | b, a ^ b, a << 3, a >> 1, -a, +a, ~a, abs(b), divmod(a, b), round(2.567, 2), pow(3, 4, 5)
""",
)
snippet(
    "chained comparison",
    """
def main():
    x = 5
    return 1 < x < 10, 1 < x > 7, x == 5 != 6, (1, 2) < (1, 3), [1, 2] == [1, 2], "a" in "abc", 3 not in [1, 2], None is None, "x" < "y" <= "y"
""",
)
snippet(
    "boolean operators",
    """
def main():
    return 0 or "x", 1 and [], not [], None or 0 or {}, 1 and 2 and 3, (1 if 0 else 2), bool(""), bool([0])
""",
)
snippet(
    "slices",
    """
def main():
    x = list(range(10))
    y = x[2:8:2], x[::-1], x[-3:], x[:0], "hello"[1:3], (1, 2, 3)[1:]
    x[2:5] = [7]
    del x[0]
    return y, x, x[slice(1, 3)]
""",
)
snippet(
    "unpacking",
    """
def main():
    a, *b, c = range(6)
    (d, e), f = (1, 2), 3
    *g, h = "xyz"
    i = j = [1]
    return a, b, c, d, e, f, g, h, i is j, [*b, *g], {**{"p": 1}, "q": 2}, (*b,)
""",
)
snippet(
    "too few values",
    """
def main():
    a, b = [1]
""",
)
snippet(
    "augmented assignment",
    """
class A:
    pass
def main():
    x = [1]; y = x; y += (2,)
    a = A(); a.n = 1; a.n += 2
    d = {"k": 1}; d["k"] *= 5
    s = {1}; s |= {2}
    t = (1,); u = t; t += (2,)
    return x, a.n, d, s, t, u
""",
)
snippet(
    "closures",
    """
def counter():
    n = 0
    def up(by=1):
        nonlocal n
        n += by
        return n
    return up, lambda: n
def main():
    up, get = counter()
    up(); up(5)
    fs = [lambda i=i: i for i in range(3)]
    gs = [lambda: i for i in range(3)]
    return get(), [f() for f in fs], [g() for g in gs]
""",
)
snippet(
    "global variables",
    """
n = 1
def bump():
    global n
    n += 1
    return n
def main():
    bump(); bump()
    return n
""",
)
snippet(
    "unbound local",
    """
def main():
    try:
        return x
    except UnboundLocalError:
        return "unbound"
    x = 1
""",
)
snippet(
    "comprehensions",
    """
def main():
    i = "kept"
    a = [i * j for i in range(3) for j in range(i) if j % 2 == 0]
    b = {k: v for k, v in [("a", 1), ("b", 2)]}
    c = {x % 3 for x in range(10)}
    d = [[y for y in range(x)] for x in range(3)]
    e = sum(x for x in range(5))
    f = [(lambda q: q + z)(1) for z in range(3)]
    return a, b, sorted(c), d, e, f, i
""",
)
snippet(
    "walrus",
    """
def main():
    if (n := len("abc")) > 2:
        r = [m for x in range(4) if (m := x * 2) > 2]
    return n, r, m
""",
)
snippet(
    "default arguments",
    """
def f(a, b=2, /, c=3, *args, d, e=5, **kw):
    return a, b, c, args, d, e, kw
def main():
    return f(1, d=4), f(1, 2, 3, 4, 5, d=6, z=7), f(*[1, 2], **{"d": 3, "e": 4, "y": 9})
""",
)
for index, call in enumerate(["f()", "f(1)", "f(1, 2, 3, 4)", "f(1, a=2, d=1)", "f(1, d=1, d2=2)", "g(1, 2)", "g(b=1)", "g(1, c=2)"]):
    snippet(
        f"argument error {index}",
        f"""
def f(a, b=1, c=2, *, d):
    return a, b, c, d
def g(b, /):
    return b
def main():
    return {call}
""",
    )
snippet(
    "mutable default is shared",
    """
def f(x=[]):
    x.append(1)
    return len(x)
def main():
    return f(), f(), f([])
""",
)
snippet(
    "inheritance and super",
    """
class A:
    def who(self): return ["A"]
class B(A):
    def who(self): return ["B"] + super().who()
class C(A):
    def who(self): return ["C"] + super().who()
class D(B, C):
    def who(self): return ["D"] + super(D, self).who()
def main():
    return D().who(), [c.__name__ for c in D.__mro__], isinstance(D(), A), issubclass(D, C), D.__bases__ == (B, C)
""",
)
snippet(
    "inconsistent bases",
    """
class A: pass
class B(A): pass
def main():
    class C(A, B): pass
""",
)
snippet(
    "class features",
    """
class Meta: pass
class A:
    count = 0
    names: list = []
    def __new__(cls, *args):
        cls.count += 1
        return super().__new__(cls)
    def __init__(self, x): self._x = x
    @property
    def x(self): return self._x
    @x.setter
    def x(self, v): self._x = v * 2
    @x.deleter
    def x(self): self._x = None
    @staticmethod
    def s(a): return a + 1
    @classmethod
    def make(cls, v): return cls(v)
    def __getattr__(self, name): return "dynamic " + name
    def __len__(self): return 3
    def __bool__(self): return False
    def __call__(self, *a): return sum(a)
    def __getitem__(self, k): return k * 2
    def __contains__(self, k): return k == 7
    def __iter__(self): return iter([1, 2])
    def __eq__(self, o): return isinstance(o, A) and self._x == o._x
    def __add__(self, o): return ("add", o)
    def __radd__(self, o): return ("radd", o)
    def __repr__(self): return f"A({self._x})"
    def __hash__(self): return 1
def main():
    a = A.make(3); a.x = 5
    before = a.x
    del a.x
    return A.count, before, a.x, A.s(1), a.s(2), a.zzz, len(a), bool(a), a(1, 2), a[4], 7 in a, 8 in a, list(a), a == A(None), a + 1, 1 + a, repr(a), str(a), f"{a!r}"
""",
)
snippet(
    "class body scope",
    """
x = "module"
def outer():
    x = "outer"
    class A:
        y = x
        x = "class"
        def f(self): return x
        z = [x for _ in range(1)] if False else x
    return A.y if hasattr(A, "y") else None, A().f(), A.x, A.z
def main():
    try:
        return outer()
    except NameError:
        return "NameError"
""",
)
snippet(
    "init subclass and set name",
    """
class D:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, obj, cls=None): return self.name if obj is None else obj.store.get(self.name)
    def __set__(self, obj, v): obj.store[self.name] = v
class Base:
    seen = []
    def __init_subclass__(cls, /, tag=None, **kw):
        super().__init_subclass__(**kw)
        Base.seen.append((cls.__name__, tag))
class A(Base, tag="t"):
    f = D()
    def __init__(self): self.store = {}
class B(A): pass
def main():
    a = A(); a.f = 4; B()
    return Base.seen, a.f, A.f, a.store
""",
)
snippet(
    "attribute functions",
    """
class A:
    y = 2
def main():
    a = A(); setattr(a, "x", 1)
    r = [getattr(a, "x"), getattr(a, "q", 9), hasattr(a, "y"), hasattr(a, "no"), sorted(vars(a)), a.__class__ is A, type(a) is A, type(a).__name__, a.__dict__]
    delattr(a, "x")
    return r, hasattr(a, "x"), "y" in dir(a), callable(A), callable(3)
""",
)
snippet(
    "missing attribute",
    """
class A: pass
def main():
    A().nothing
""",
)
snippet(
    "read only property",
    """
class A:
    @property
    def x(self): return 1
def main():
    A().x = 2
""",
)
snippet(
    "exceptions",
    """
class Mine(ValueError):
    def __init__(self, code, **kw):
        super().__init__(f"code {code}")
        self.code = code
def main():
    log = []
    try:
        try:
            raise Mine(3)
        except KeyError:
            log.append("no")
        except (TypeError, ValueError) as e:
            log += [str(e), e.code, type(e).__name__, e.args]
            raise RuntimeError("second") from e
        else:
            log.append("no")
        finally:
            log.append("finally")
    except RuntimeError as e:
        log.append(str(e))
    try:
        e
    except NameError:
        log.append("unbound")
    try:
        {}["k"]
    except LookupError as e:
        log.append(repr(e))
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            raise
    except ArithmeticError as e:
        log.append(type(e).__name__)
    return log
""",
)
snippet(
    "return in finally",
    """
def f():
    try:
        return 1
    finally:
        return 2
def g():
    for i in range(3):
        try:
            continue
        finally:
            if i == 1:
                break
    return i
def h():
    try:
        raise ValueError
    finally:
        return "swallowed"
def main():
    return f(), g(), h()
""",
)
snippet(
    "try else",
    """
def f(x):
    try:
        y = 1 / x
    except ZeroDivisionError:
        return "zero"
    else:
        return y
def main():
    return f(0), f(2)
""",
)
snippet(
    "uncaught",
    """
def main():
    raise KeyError("gone")
""",
)
snippet(
    "raise something else",
    """
def main():
    raise 3
""",
)
snippet(
    "with",
    """
from contextlib import contextmanager, suppress, nullcontext, ExitStack
log = []
class M:
    def __init__(self, n, eat=False): self.n, self.eat = n, eat
    def __enter__(self): log.append(("in", self.n)); return self.n
    def __exit__(self, kind, value, trace): log.append(("out", self.n, kind.__name__ if kind else None)); return self.eat
@contextmanager
def cm(x):
    log.append("before")
    try:
        yield x
    except ValueError as e:
        log.append(str(e))
    finally:
        log.append("after")
def main():
    with M(1) as a, M(2) as b:
        log.append(a + b)
    with M(3, True):
        raise TypeError("eaten")
    with cm(5) as c:
        log.append(c)
    with cm(6):
        raise ValueError("inside")
    with suppress(KeyError):
        {}[1]
    with nullcontext(4) as n:
        log.append(n)
    with ExitStack() as stack:
        log.append(stack.enter_context(M(7)))
    def early():
        with M(8):
            return "early"
    log.append(early())
    try:
        with cm(9):
            raise KeyError("through")
    except KeyError as e:
        log.append("through")
    return log
""",
)
snippet(
    "generators",
    """
log = []
def g(n):
    log.append("start")
    try:
        for i in range(n):
            x = yield i
            if x: log.append(x)
    finally:
        log.append("end")
    return "value"
def h():
    r = yield from g(2)
    log.append(r)
    yield "last"
def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
def main():
    it = g(3)
    first = next(it)
    sent = it.send("hello")
    from itertools import islice
    r = [first, sent, list(it), list(h()), list(islice(fib(), 10)), next(iter([]), "none")]
    ge = (log.append(i) or i for i in range(3))
    r.append(next(ge))
    return r, log
""",
)
snippet(
    "generator control flow",
    """
def walk(tree):
    if isinstance(tree, list):
        for t in tree:
            yield from walk(t)
    elif tree is None:
        return
    else:
        yield tree
def g():
    i = 0
    while i < 5:
        i += 1
        if i == 2: continue
        if i == 4: break
        with_try = None
        try:
            yield i
            raise ValueError(i)
        except ValueError as e:
            yield str(e)
    else:
        yield "no"
    for x in [1]:
        pass
    else:
        yield "else"
def pair():
    return (yield 1), (yield 2)
def main():
    p = pair()
    return list(walk([1, [2, [None, 3]], 4])), list(g()), [next(p), p.send("a")]
""",
)
snippet(
    "generator stop",
    """
def g():
    yield 1
def main():
    it = g(); next(it); next(it)
""",
)
snippet(
    "loops",
    """
def main():
    log = []
    for i in range(5):
        if i == 1: continue
        if i == 3: break
        log.append(i)
    else:
        log.append("no")
    for i in []: pass
    else: log.append("else")
    n = 3
    while n:
        n -= 1
    else:
        log.append("done")
    for i, (a, b) in enumerate(zip("xy", [1, 2]), 1):
        log.append((i, a, b))
    return log, i
""",
)
snippet(
    "decorators",
    """
import functools
def tag(label):
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k): return label, f(*a, **k)
        return inner
    return deco
def cls_deco(c):
    c.extra = 1
    return c
@cls_deco
class A:
    @tag("m")
    def f(self, x): return x
@tag("a")
@tag("b")
def g(x, y=2): return x + y
def main():
    return g(1), g.__name__, A().f(3), A.extra, g.__wrapped__(5)[0]
""",
)
snippet(
    "functools",
    """
from functools import partial, reduce, lru_cache, cached_property, cache
calls = []
@lru_cache(maxsize=None)
def slow(x):
    calls.append(x); return x * 2
class A:
    n = 0
    @cached_property
    def v(self):
        self.n += 1
        return self.n
def main():
    p = partial(pow, 2)
    q = partial(lambda a, b, c=0: (a, b, c), 1, c=3)
    a = A()
    return p(5), q(2), q(2, c=9), reduce(lambda x, y: x + y, [1, 2, 3], 10), slow(2), slow(2), calls, a.v, a.v, p.func is pow, q.keywords
""",
)
snippet(
    "dataclasses",
    """
from dataclasses import dataclass, field, fields, asdict, replace, is_dataclass, InitVar
from typing import ClassVar, Optional
@dataclass
class A:
    x: int
    y: list = field(default_factory=list)
    k: ClassVar[int] = 3
@dataclass
class B(A):
    z: Optional[str] = None
    w: int = field(default=5, kw_only=True)
    def __post_init__(self): self.x += 1
@dataclass(frozen=True, order=True)
class F:
    a: int
    b: int = 2
@dataclass
class I:
    a: int
    b: InitVar[int] = 3
    def __post_init__(self, b): self.c = self.a + b
def main():
    b = B(1, z="s", w=9)
    try:
        F(1).a = 3
        frozen = False
    except AttributeError:
        frozen = True
    try:
        A()
        missing = False
    except TypeError:
        missing = True
    return repr(A(1)), A(1) == A(1), A(1) == A(2), b.x, b.y, b.z, b.w, [f.name for f in fields(b)], asdict(b), replace(A(1), x=4).x, is_dataclass(A), frozen, missing, F(1) < F(2), {F(1): "v"}[F(1)], A.k, I(1).c, I(1, 9).c, A(1).y is not A(1).y
""",
)
snippet(
    "enums",
    """
from enum import Enum, IntEnum, auto
class Color(Enum):
    RED = 1
    GREEN = 2
    ROUGE = 1
    def describe(self): return self.name.lower()
class Kind(str, Enum):
    A = "a"
    B = "b"
    @classmethod
    def _missing_(cls, value): return cls.A if value == "x" else None
class N(IntEnum):
    ONE = auto()
    TWO = auto()
def main():
    try:
        Color(9)
        bad = False
    except ValueError:
        bad = True
    return Color.RED.name, Color.RED.value, Color(2) is Color.GREEN, Color["RED"] is Color.ROUGE, [c.name for c in Color], Color.RED.describe(), Kind.A == "a", Kind("b") is Kind.B, Kind("x").value, N.TWO + 1, N.ONE < N.TWO, bad, len(Color), Color.RED in Color, Color.RED == Color.GREEN, {Kind.A: 1}["a"], repr(Color.RED), str(Color.RED), isinstance(Kind.A, str), "a" in [Kind.A], Kind.A.upper()
""",
)
snippet(
    "named tuples",
    """
from collections import namedtuple
from typing import NamedTuple
P = namedtuple("P", "x y")
class Q(NamedTuple):
    a: int
    b: str = "d"
    def both(self): return self.a, self.b
def main():
    p = P(1, y=2); q = Q(3)
    x, y = p
    return p.x, p[1], x + y, len(p), p._replace(x=9).x, p._asdict(), q.both(), q == (3, "d"), repr(q), isinstance(p, tuple), P._fields, list(q), p + (1,)
""",
)
snippet(
    "collections",
    """
from collections import OrderedDict, defaultdict, Counter, deque
def main():
    d = defaultdict(list); d["a"].append(1); d["b"]
    o = OrderedDict([("x", 1), ("y", 2)]); o.move_to_end("x")
    c = Counter("abca"); c["z"] += 1
    q = deque([1, 2]); q.appendleft(0); q.append(3)
    return dict(d), list(o.items()), c["a"], c["q"], q.popleft(), list(q), o == {"x": 1, "y": 2}
""",
)
snippet(
    "itertools",
    """
import itertools as it
def main():
    return (list(it.chain([1], "ab")), list(it.chain.from_iterable([[1], [2]])), list(it.product([1, 2], "ab")), list(it.accumulate([1, 2, 3])), list(it.islice(it.count(3), 4)),
            list(it.repeat(7, 2)), list(it.zip_longest([1, 2], [3])), [(k, list(g)) for k, g in it.groupby("aab")], list(it.combinations([1, 2, 3], 2)), list(it.permutations([1, 2, 3], 2)),
            list(it.takewhile(lambda x: x < 2, [1, 2, 1])), list(it.pairwise([1, 2, 3])), list(it.starmap(pow, [(2, 3)])), list(it.islice(it.cycle("ab"), 5)), list(it.islice(range(10), 2, 8, 3)))
""",
)
snippet(
    "match",
    """
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int
def f(v):
    match v:
        case 0 | 1: return "small"
        case int(n) if n > 100: return ("big", n)
        case "text": return "str"
        case [a, b]: return ("pair", a, b)
        case [a, *rest]: return ("list", a, rest)
        case {"k": k, **others}: return ("map", k, others)
        case P(x=0, y=y): return ("on axis", y)
        case P(x, y): return ("point", x, y)
        case None: return "none"
        case _: return "other"
def main():
    return [f(v) for v in (1, 500, 50, "text", [1, 2], (1, 2, 3), {"k": 1, "z": 2}, P(0, 5), P(1, 2), None, 2.5)]
""",
)
snippet(
    "text methods",
    """
def main():
    s = "Hello, World"
    return (s.lower(), s.upper(), s.split(", "), s.replace("l", "L", 2), s.find("o"), s.startswith(("He", "x")), s.endswith("d"), "-".join(["a", "b"]), " x ".strip(), "a.b.c".rsplit(".", 1), "k=v".partition("="), "abc".center(7, "*"),
            "7".zfill(3), "x".ljust(3) + "|", "ab".title(), s.count("l"), "12".isdigit(), "a\\nb".splitlines(), s.removeprefix("Hello"), "%s is %d and %.2f %5s|%-4d|%%" % ("pi", 3, 3.14159, "r", 7), "%(a)s" % {"a": 1}, s[0], s * 2, "é".encode("utf-8").decode("utf-8"))
""",
)
snippet(
    "formats",
    """
class A:
    def __format__(self, spec): return "A:" + spec
    z = [1, 2]
def main():
    n, w, x = 42, 8, 3.14159
    return f"{n:>{w}}|{x:.2f}|{n:,}|{n:#x}|{x!r}|{'s':^5}|{n=}", "{} {} {0}".replace("{0}", "").format(1, "b"), "{0}{1}{0}".format("a", "b"), "{a.z[1]} {b[k]:>3}".format(a=A(), b={"k": 5}), f"{A():q}", "{{}}".format(), "{:{}}".format(5, 4), format(0.5, "%"), f"{[1, 'a', (1,)]}", f"{None} {True} {1e10}", str({"a": 1, "b": [None]}), repr("it's"), f"{3:05d}"
""",
)
snippet(
    "list methods",
    """
def main():
    x = [3, 1, 2]; x.append(5); x.extend([4]); x.insert(0, 9); p = x.pop(); q = x.pop(0); x.remove(1); x.sort(reverse=True); y = x.copy(); x.reverse(); i = y.index(5); x.clear()
    return x, y, p, q, i, [1, 1].count(1), sorted([(1, "b"), (1, "a")]), sorted("bca", key=lambda c: -ord(c)), min(3, 1), max([1, 5], key=lambda v: -v), max([], default=0), sum([[1], [2]], []), list(reversed([1, 2])), list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1])), any([]), all([]), list(enumerate("ab")), [1, 2] * 2, [[0] * 2 for _ in range(2)]
""",
)
snippet(
    "dict methods",
    """
def main():
    d = {"a": 1, "b": 2}; d.update(c=3); d.update([("d", 4)]); d.setdefault("e", []).append(1); p = d.pop("a"); q = d.pop("zz", None)
    return d, p, q, d.get("b"), d.get("no", 7), list(d), list(d.values()), sorted(d.items(), key=str), dict.fromkeys("ab", 0), {**d} == d, d | {"b": 9}, "b" in d, len(d), dict(zip("ab", [1, 2])), d.keys() & {"b", "zz"}, {v: k for k, v in {"x": 1}.items()}, dict(a=1), d.copy() is d, list(reversed(list(d)))
""",
)
snippet(
    "set methods",
    """
def main():
    s = {1, 2}; s.add(3); s.discard(9); t = frozenset([2, 3])
    return sorted(s & t), sorted(s | {7}), sorted(s - t), sorted(s ^ t), s.issuperset(t), sorted(s.union([5])), 2 in s, len(s), {1, 2} == {2, 1}, s.isdisjoint({9}), set() == set([])
""",
)
snippet(
    "unhashable",
    """
def main():
    return {[1]: 2}
""",
)
snippet(
    "conversions",
    """
class I:
    def __int__(self): return 4
    def __float__(self): return 4.5
def main():
    return int("12"), int(3.9), int("ff", 16), float("1e3"), str(1.5), bool("x"), list("ab"), tuple([1]), set([1, 1]), dict([(1, 2)]), int(True), float(3), int(I()), float(I()), hex(255), bin(5), oct(8), chr(97), ord("a"), complex(1, 2), type(1) is int, type("") == str, isinstance(True, int), isinstance(1, (str, int)), isinstance(1, int | str), isinstance(None, type(None)), repr(int)
""",
)
snippet(
    "bad conversion",
    """
def main():
    return int("x")
""",
)
snippet(
    "builtin subclasses",
    """
class D(dict):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.extra = 1
    def __getitem__(self, k): return super().__getitem__(k) * 2
    def __missing__(self, k): return -1
class L(list):
    def total(self): return sum(self)
class S(str):
    def shout(self): return self.upper() + "!"
def main():
    d = D({"a": 1}, b=2); d["c"] = 3
    l = L([1, 2]); l.append(3)
    s = S("x")
    return d["a"], len(d), sorted(d), d.extra, "a" in d, isinstance(d, dict), l.total(), l[0], len(l), s.shout(), s + "y", s == "x", {"x": 5}[s], l == [1, 2, 3], dict(d)["b"], [*l], {**d}["c"] if False else 3
""",
)
snippet(
    "iterator protocol",
    """
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
class Seq:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * 10
def main():
    return list(It(3)), [x for x in Seq()], next(It(1)), sum(It(4)), max(It(3)), tuple(zip(It(2), Seq())), 10 in Seq()
""",
)
snippet(
    "copy",
    """
import copy
class A:
    def __init__(self): self.x = [1]
class B:
    def __deepcopy__(self, memo): return "copied"
def main():
    a = A(); b = copy.copy(a); c = copy.deepcopy(a)
    shared = [1]; t = copy.deepcopy([shared, shared])
    return b.x is a.x, c.x is a.x, c.x, t[0] is t[1], copy.deepcopy({"k": (1, [2])}), copy.deepcopy(B()), copy.copy([1, 2])
""",
)
snippet(
    "abstract and protocols",
    """
from abc import ABC, abstractmethod
from typing import Protocol, Generic, TypeVar, List, Optional, Union, TypedDict
T = TypeVar("T")
class Base(ABC, Generic[T]):
    @abstractmethod
    def f(self): ...
    @property
    @abstractmethod
    def p(self): ...
class Impl(Base[int]):
    def f(self) -> "Optional[List[int]]": return 1
    @property
    def p(self): return 2
class TD(TypedDict, total=False):
    a: int
def main():
    i = Impl()
    return i.f(), i.p, isinstance(i, Base), TD(a=1)
""",
)
snippet(
    "collections abc",
    """
from collections.abc import Iterable, Mapping, Sequence, Callable
def main():
    return isinstance([], Iterable), isinstance(3, Iterable), isinstance({}, Mapping), isinstance("", Sequence), isinstance(len, Callable), isinstance((1,), Sequence), isinstance({1}, Sequence)
""",
)
snippet(
    "signature",
    """
import inspect
def f(a, b=1, *c, d, **e): pass
class A:
    def __init__(self, x, y=2): pass
    def m(self, q): pass
def main():
    return list(inspect.signature(f).parameters), list(inspect.signature(A).parameters), list(inspect.signature(A(1).m).parameters), inspect.signature(f).parameters["b"].default, inspect.signature(f).parameters["a"].default is inspect.Parameter.empty, inspect.isfunction(f), inspect.isclass(A)
""",
)
snippet(
    "regular expressions",
    """
import re
def main():
    m = re.match(r"(\\w+)-(\\d+)", "layer-12")
    return m.group(1), m.groups(), re.sub(r"\\d", "#", "a1b2"), re.split(r"[,;]", "a,b;c"), re.findall(r"\\d+", "1 22"), re.search("z", "abc"), bool(re.compile("^a").match("ab")), re.sub("a", lambda m: m.group(0) * 2, "ba")
""",
)
snippet(
    "json and operator",
    """
import json, operator, math, string
def main():
    return json.loads('{"a": [1, null]}'), json.dumps({"b": 1, "c": [True, None]}), operator.itemgetter(1)([5, 6]), operator.mul(3, 4), math.floor(2.5), math.prod([2, 3]), math.isclose(1, 1), math.inf > 1, string.digits, math.ceil(7 / 2), math.log2(8)
""",
)
snippet(
    "conditional imports",
    """
try:
    import surely_not_there
except ImportError:
    surely_not_there = None
try:
    from surely_not_there.x import y
    found = True
except (ImportError, AttributeError):
    found = False
import os.path
def main():
    return surely_not_there, found, os.environ.get("SURELY_NOT_SET_ANYWHERE", "d")
""",
)
snippet(
    "lambda and star calls",
    """
def f(*a, **k): return a, k
def main():
    g = lambda x, *y, z=1, **w: (x, y, z, w)
    return g(1, 2, z=3, q=4), f(*[1], *(2,), **{"a": 1}, b=2), (lambda: (yield_ := 3))()
""",
)
snippet(
    "duplicate keyword",
    """
def f(**k): return k
def main():
    return f(**{"a": 1}, **{"a": 2})
""",
)
snippet(
    "assert",
    """
def main():
    assert 1
    try:
        assert 0, "why"
    except AssertionError as e:
        return str(e)
""",
)
snippet(
    "del",
    """
def main():
    x = [1, 2, 3]; d = {"a": 1}
    del x[1], d["a"]
    y = 1
    del y
    try:
        y
    except NameError:
        return x, d
""",
)
snippet(
    "nested functions recursing",
    """
def main():
    def even(n): return True if n == 0 else odd(n - 1)
    def odd(n): return False if n == 0 else even(n - 1)
    return even(10), odd(7)
""",
)
snippet(
    "class variables and instances",
    """
class A:
    items = []
    n = 0
    def add(self, x): self.items.append(x); self.n += 1
def main():
    a, b = A(), A()
    a.add(1); b.add(2)
    return A.items, a.n, b.n, A.n, "n" in a.__dict__, "items" in a.__dict__
""",
)
snippet(
    "class cell",
    """
class A:
    def f(self): return __class__.__name__
    def g(self): return [__class__ is not None for _ in range(1)]
    @classmethod
    def h(cls): return cls.__name__, __class__ is A
class B(A): pass
def main():
    return B().f(), B().g(), B.h()
""",
)
snippet(
    "dynamic class",
    """
def main():
    C = type("C", (), {"x": 1, "f": lambda self: self.x + 1})
    return C().f(), C.__name__
""",
)
snippet(
    "getattribute and setattr",
    """
class A:
    def __init__(self): object.__setattr__(self, "log", [])
    def __setattr__(self, n, v):
        self.log.append(n)
        super().__setattr__(n, v)
    def __getattribute__(self, n):
        if n == "magic": return 42
        return super().__getattribute__(n)
    def __delattr__(self, n):
        object.__delattr__(self, n)
def main():
    a = A(); a.x = 1; a.y = 2
    del a.y
    return a.log, a.x, a.magic, hasattr(a, "y"), hasattr(a, "zz")
""",
)
snippet(
    "reflected and inplace",
    """
class V:
    def __init__(self, x): self.x = x
    def __mul__(self, o): return NotImplemented if isinstance(o, str) else V(self.x * o)
    __rmul__ = __mul__
    def __iadd__(self, o): self.x += o; return self
    def __neg__(self): return V(-self.x)
    def __lt__(self, o): return self.x < o.x
    def __matmul__(self, o): return "mm"
    def __getitem__(self, k): return k
    def __setitem__(self, k, v): self.x = (k, v)
    def __delitem__(self, k): self.x = "deleted"
def main():
    v = V(2); w = v; w += 5
    r = [(v * 2).x, (3 * v).x, v is w, (-v).x, v < V(100), v > V(1), v @ v, v[1:2, ...], sorted([V(3), V(1)])[0].x]
    v[1] = 2; r.append(v.x)
    del v[0]; r.append(v.x)
    try:
        v * "s"
    except TypeError:
        r.append("TypeError")
    return r
""",
)
snippet(
    "stars in subscripts and returns",
    """
def main():
    x = [1, 2]
    return *x, 3
""",
)
snippet(
    "total ordering",
    """
from functools import total_ordering
@total_ordering
class A:
    def __init__(self, x): self.x = x
    def __eq__(self, o): return self.x == o.x
    def __lt__(self, o): return self.x < o.x
def main():
    return A(1) <= A(2), A(3) > A(1), A(1) >= A(1), A(1) != A(1)
""",
)
snippet(
    "string building",
    """
def main():
    out = ""
    for i in range(5):
        out += str(i) + ("," if i < 4 else "")
    return out, "a" "b", r"\\d", '''x
y''', "\\u00e9", b"ab"[0], "abc" > "abd"
""",
)
snippet(
    "ellipsis and complex constants",
    """
def main():
    return ... is Ellipsis, 1_000, 0xff, 1e-3, 2j * 2j, not None
""",
)
snippet(
    "exception attributes",
    """
class E(Exception): pass
class F(E):
    def __str__(self): return "shown"
def main():
    out = []
    for make in (lambda: E(1, 2), lambda: F("x"), lambda: ValueError(), lambda: KeyError("k")):
        try:
            raise make()
        except Exception as e:
            out.append((str(e), e.args, isinstance(e, E)))
    try:
        raise E
    except E as e:
        out.append(e.args)
    return out
""",
)
snippet(
    "star args are copies",
    """
def f(*a, **k):
    k["x"] = 1
    return a
def main():
    k = {"y": 2}; a = [1]
    f(*a, **k)
    return k, a
""",
)
snippet(
    "range arithmetic",
    """
def main():
    r = range(10, 0, -3)
    return list(r), len(r), r[1], r[-1], 4 in r, 5 in r, 4.0 in r, list(r[1:]), r.start, r.index(4), range(0), bool(range(0)), range(3) == range(0, 3)
""",
)
snippet(
    "sorted is stable",
    """
def main():
    x = [("b", 2), ("a", 1), ("c", 1), ("d", 2)]
    return sorted(x, key=lambda p: p[1]), sorted(x, key=lambda p: p[1], reverse=True), sorted([3, 1.5, True]), sorted([[2], [1, 5], [1]])
""",
)
snippet(
    "unorderable",
    """
def main():
    return sorted([1, "a"])
""",
)
snippet(
    "numbers unpacked in loops",
    """
def main():
    total = 0
    for a, *b in [(1, 2, 3), (4,)]:
        total += a + sum(b)
    return total
""",
)
snippet(
    "super in comprehension free method",
    """
class A:
    def __init__(self, n): self.n = n
    def f(self, k): return self.n * k
class B(A):
    def f(self, k):
        g = super().f
        return [g(i) for i in range(k)]
def main():
    return B(3).f(3)
""",
)
snippet(
    "async is tolerated",
    """
class A:
    async def f(self):
        async with self as x:
            await x
        async for y in x:
            pass
    def g(self): return 1
def main():
    return A().g()
""",
)
