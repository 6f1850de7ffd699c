"""Make a case smaller while its problem stays: drop lines, keys, elements and characters."""

import json
from collections.abc import Callable, Iterator
from typing import Any


def shrink(data: Any, still: Callable[[Any], bool]) -> Any:
    """The smallest form found by greedy cuts; `still` tells whether a form has the problem."""
    found = True
    while found:
        found = False
        for smaller in candidates(data):
            if size(smaller) < size(data) and still(smaller):
                data, found = smaller, True
                break
    return data


def size(data: Any) -> int:
    """How large a form is."""
    return len(data) if isinstance(data, str) else len(json.dumps(data))


def candidates(data: Any) -> Iterator[Any]:
    """Smaller forms, the greatest cuts first."""
    if isinstance(data, str):
        parts = data.split("\n") if "\n" in data else list(data)
        glue = "\n" if "\n" in data else ""
        for cut in cuts(len(parts)):
            yield glue.join(parts[: cut.start] + parts[cut.stop :])
    elif isinstance(data, dict):
        keys = list(data)
        for cut in cuts(len(keys)):
            yield {key: data[key] for key in keys[: cut.start] + keys[cut.stop :]}
        for key in keys:
            for smaller in candidates(data[key]):
                yield data | {key: smaller}
    elif isinstance(data, list):
        for cut in cuts(len(data)):
            yield data[: cut.start] + data[cut.stop :]
        for place, item in enumerate(data):
            for smaller in candidates(item):
                yield [*data[:place], smaller, *data[place + 1 :]]


def cuts(length: int) -> Iterator[range]:
    """Spans to cut out of a sequence, halves first."""
    width = length
    while width:
        for start in range(0, length, width):
            yield range(start, min(length, start + width))
        width //= 2
