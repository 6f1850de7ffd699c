"""itertools: lazily, a step for each value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import comparisons, operators, protocols
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.values import MISSING, Namespace, Native

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def _chain(machine: Machine, *iterables: Any) -> Iterator[Any]:
    for iterable in iterables:
        yield from protocols.counted(machine, iterable)


def _chain_from(machine: Machine, iterables: Any) -> Iterator[Any]:
    for iterable in protocols.counted(machine, iterables):
        yield from protocols.counted(machine, iterable)


def _repeat_value(machine: Machine, value: Any, times: Any = None) -> Iterator[Any]:
    done = 0
    while times is None or done < times:
        machine.tick(1)
        done += 1
        yield value


def _count(machine: Machine, start: Any = 0, step: Any = 1) -> Iterator[Any]:
    while True:
        machine.tick(1)
        yield start
        start = operators.binary(machine, ast.Add, start, step)


def _cycle(machine: Machine, items: Any) -> Iterator[Any]:
    kept = list(protocols.as_list(machine, items))
    while kept:
        yield from protocols.counted(machine, kept)


def _product(machine: Machine, *iterables: Any, repeat: int = 1) -> Iterator[Any]:
    machine.charge(len(iterables) * max(0, repeat))
    pools = [list(protocols.as_list(machine, iterable)) for iterable in iterables] * repeat

    def walk(index: int, chosen: tuple[Any, ...]) -> Iterator[Any]:
        if index == len(pools):
            machine.charge(len(chosen))
            yield chosen
            return
        for item in pools[index]:
            machine.tick(1)
            yield from walk(index + 1, (*chosen, item))

    if len(pools) > 64:
        raise machine.exceeded("depth", "a product of more than 64 iterables")
    return walk(0, ())


def _combinations(machine: Machine, items: Any, size: Any) -> Iterator[Any]:
    pool = list(protocols.as_list(machine, items))

    def walk(start: int, chosen: tuple[Any, ...]) -> Iterator[Any]:
        if len(chosen) == size:
            machine.charge(len(chosen))
            yield chosen
            return
        for index in range(start, len(pool)):
            machine.tick(1)
            yield from walk(index + 1, (*chosen, pool[index]))

    if size > 64:
        raise machine.exceeded("depth", "combinations of more than 64 elements")
    return walk(0, ())


def _permutations(machine: Machine, items: Any, size: Any = None) -> Iterator[Any]:
    pool = list(protocols.as_list(machine, items))
    length = len(pool) if size is None else size

    def walk(left: list[Any], chosen: tuple[Any, ...]) -> Iterator[Any]:
        if len(chosen) == length:
            machine.charge(len(chosen))
            yield chosen
            return
        for index, item in enumerate(left):
            machine.tick(1 + len(left))
            yield from walk(left[:index] + left[index + 1 :], (*chosen, item))

    if length > 64:
        raise machine.exceeded("depth", "permutations of more than 64 elements")
    return walk(pool, ())


def _accumulate(machine: Machine, items: Any, function: Any = None, *, initial: Any = None) -> Iterator[Any]:
    total: Any = MISSING
    if initial is not None:
        total = initial
        yield total
    for item in protocols.counted(machine, items):
        if total is MISSING:
            total = item
        elif function is None:
            total = operators.binary(machine, ast.Add, total, item)
        else:
            total = call(machine, function, [total, item])
        yield total


def _slice_items(machine: Machine, items: Any, *bounds: Any) -> Iterator[Any]:
    start, stop, step = 0, bounds[0], 1
    if len(bounds) > 1:
        start, stop, step = bounds[0] or 0, bounds[1], (bounds[2] if len(bounds) > 2 else 1) or 1
    wanted = start
    if stop is not None and stop <= start:
        return
    for index, item in enumerate(protocols.counted(machine, items)):
        if index == wanted:
            yield item
            wanted += step
        if stop is not None and index + 1 >= stop:
            return


def _zip_longest(machine: Machine, *iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    lists = [protocols.as_list(machine, iterable) for iterable in iterables]
    for index in range(max(map(len, lists), default=0)):
        machine.tick(1)
        yield tuple(items[index] if index < len(items) else fillvalue for items in lists)


def _star_map(machine: Machine, function: Any, items: Any) -> Iterator[Any]:
    for args in protocols.counted(machine, items):
        yield call(machine, function, list(protocols.as_list(machine, args)))


def _take_while(machine: Machine, function: Any, items: Any) -> Iterator[Any]:
    for item in protocols.counted(machine, items):
        if not protocols.truth(machine, call(machine, function, [item])):
            return
        yield item


def _drop_while(machine: Machine, function: Any, items: Any) -> Iterator[Any]:
    dropping = True
    for item in protocols.counted(machine, items):
        if dropping and protocols.truth(machine, call(machine, function, [item])):
            continue
        dropping = False
        yield item


def _group_by(machine: Machine, items: Any, key: Any = None) -> Iterator[Any]:
    group: list[Any] = []
    last: Any = MISSING
    for item in protocols.counted(machine, items):
        rank = item if key is None else call(machine, key, [item])
        if last is not MISSING and not protocols.truth(machine, comparisons.equal(machine, rank, last)):
            yield (last, iter(group))
            group = []
        last = rank
        group.append(item)
    if last is not MISSING:
        yield (last, iter(group))


def _pairwise(machine: Machine, items: Any) -> Iterator[Any]:
    last: Any = MISSING
    for item in protocols.counted(machine, items):
        if last is not MISSING:
            yield (last, item)
        last = item


def _compress(machine: Machine, items: Any, selectors: Any) -> Iterator[Any]:
    for item, chosen in zip(protocols.counted(machine, items), protocols.counted(machine, selectors), strict=False):
        if protocols.truth(machine, chosen):
            yield item


def _filter_false(machine: Machine, function: Any, items: Any) -> Iterator[Any]:
    for item in protocols.counted(machine, items):
        if not protocols.truth(machine, item if function is None else call(machine, function, [item])):
            yield item


def _tee(machine: Machine, items: Any, copies: int = 2) -> tuple[Any, ...]:
    kept = list(protocols.as_list(machine, items))
    machine.charge(copies)
    return tuple(iter(kept) for _ in range(copies))


def _itertools_module(_machine: Machine) -> Namespace:
    chained: Native = native(_chain, "chain")
    chained.attributes = {"from_iterable": native(_chain_from, "from_iterable")}
    functions: dict[str, Callable[..., Any]] = {
        "repeat": _repeat_value,
        "count": _count,
        "cycle": _cycle,
        "product": _product,
        "combinations": _combinations,
        "permutations": _permutations,
        "accumulate": _accumulate,
        "islice": _slice_items,
        "zip_longest": _zip_longest,
        "starmap": _star_map,
        "takewhile": _take_while,
        "dropwhile": _drop_while,
        "groupby": _group_by,
        "pairwise": _pairwise,
        "compress": _compress,
        "filterfalse": _filter_false,
        "tee": _tee,
    }
    return strict("itertools", {"chain": chained, **{name: native(function, name) for name, function in functions.items()}})


MODULES = {"itertools": _itertools_module}
