"""Identical layers are read once: in a stack of alike blocks only the first three periods and the last are played.

The loop over the blocks is interpreted as it stands; a block in the middle that is called exactly as the one a period before it is
passed over, and what it would have kept is put down as one storage, measured between the ends of the second and the third period.
In backward the storage goes and the skipped parameters get their gradients. Within the skipped part memory is affine in the depth, so
its peak lies at one of the ends, which are played. Whatever is not exactly so raises NotAlike, and the step is played in full.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.base.dtypes import UINT8
from weighbridge.phantom import Session, Storage, Tensor, current, record
from weighbridge.phantom.autograd import alias
from weighbridge.phantom.ops.kernels import like
from weighbridge.reading.glue.module_instance import ModuleInstance, named_parameters, walk

LEAST_BLOCKS: Final = 16
LONGEST_PERIOD: Final = 8
DEEPEST: Final = 6

Play = Callable[[], Any]


class NotAlike(Exception):  # noqa: N818 - a signal to play everything, not an error that anyone sees
    """A block that stood for others was not called or did not answer as they do."""


@dataclass(slots=True)
class Stack:
    """Blocks of one list: the period of their kinds, and the range that is passed over."""

    blocks: list[ModuleInstance]
    period: int
    start: int
    low: int
    high: int
    signatures: dict[int, Any] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)
    first: "Snapshot | None" = None
    second: "Snapshot | None" = None
    passed: int = 0
    held: list[Storage] | None = None

    @property
    def times(self) -> int:
        """How many periods are passed over."""
        return (self.high - self.low) // self.period

    def reset(self) -> None:
        """Forget the last pass; what it keeps without a tape (a cache) stays until the next one keeps it anew."""
        self.signatures.clear()
        self.answers.clear()
        self.first = self.second = None
        self.passed = 0

    def like(self, index: int) -> int:
        """The played block that a skipped one is like."""
        return self.low - self.period + (index - self.low) % self.period


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a session stood: events so far, costs so far, weights cast so far."""

    events: int
    costs: dict[tuple[str, str, int, int], int]
    casts: frozenset[int]


def snapshot(session: Session) -> Snapshot:
    """The session now."""
    return Snapshot(len(session.recorder.events), dict(session.costs), frozenset(session.cast_cache))


def kept_between(session: Session, first: Snapshot, second: Snapshot, *, renewed: bool) -> dict[int, int]:
    """Storages that one period left behind: id -> bytes. What it freed of the period before is set off against its own like.

    `renewed`: it may also have freed what an earlier pass kept (a cache that grew by a token is a new tensor).
    """
    alive: dict[int, int] = {}
    freed: list[int] = []
    for identity, size, _ in session.recorder.events[first.events : second.events]:
        if size > 0:
            alive[identity] = size
        elif size < 0 and alive.pop(identity, None) is None:
            freed.append(-size)
    for size in freed:
        like_it = next((identity for identity, kept in alive.items() if kept == size), None)
        if like_it is not None:
            del alive[like_it]
        elif not renewed:
            raise NotAlike
    return alive


class Folding:
    """The stacks of one model, by block."""

    def __init__(self, root: ModuleInstance) -> None:
        self.stacks: list[Stack] = []
        self.roles: dict[int, tuple[Stack, int]] = {}
        for _, module in walk(root, seen=set()):
            blocks = [child for child in module.modules.values() if child is not None]
            if len(blocks) >= LEAST_BLOCKS and len(blocks) == len(module.modules) and all(name.isdigit() for name in module.modules):
                stack = stack_of(blocks)
                if stack is not None:
                    self.stacks.append(stack)
                    self.roles.update({id(block): (stack, index) for index, block in enumerate(blocks)})

    def reset(self) -> None:
        """Before a step."""
        for stack in self.stacks:
            stack.reset()
        self.release()

    def release(self) -> None:
        """After a step: let go of what a pass without a tape keeps for the next one."""
        for stack in self.stacks:
            stack.held = None

    def check(self) -> None:
        """After a step: every stack was passed whole."""
        if any(stack.passed % (stack.high - stack.low) for stack in self.stacks):
            raise NotAlike

    def call(self, module: ModuleInstance, args: list[Any], kwargs: dict[str, Any] | None, play: Play) -> Any:
        """One block's call."""
        stack, index = self.roles[id(module)]
        session = current()
        if session.regions or session.phase == "recompute" or index < stack.start:
            return play()
        if index == stack.start:
            stack.reset()
        if stack.low <= index < stack.high:
            return self._pass_over(session, stack, index, args, kwargs)
        watched = stack.low - stack.period <= index < stack.low
        if watched:
            stack.signatures[index] = signature((args, kwargs or {}))
            given = signature(_first_tensor(args, kwargs))
        result = play()
        if watched:
            stack.answers[index] = _answer(result, given)
        if index == stack.low - stack.period - 1:
            stack.first = snapshot(session)
            return _replaced(result, marked(session, stack, _first(result)))
        if index == stack.low - 1:
            stack.second = snapshot(session)
        return result

    def _pass_over(self, session: Session, stack: Stack, index: int, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        same = stack.like(index)
        if stack.signatures.get(same) != signature((args, kwargs or {})):
            raise NotAlike
        hidden = _first_tensor(args, kwargs)
        args.clear()
        stack.passed += 1
        if index == stack.low:
            hidden = _stand_in(session, stack, hidden)
        return hidden if stack.answers[same] is None else (hidden, *stack.answers[same])


def _first_tensor(args: list[Any], kwargs: dict[str, Any] | None) -> Tensor:
    for value in (*args, *(kwargs or {}).values()):
        if isinstance(value, Tensor):
            return value
    raise NotAlike


def _first(result: Any) -> Tensor:
    found = result[0] if isinstance(result, tuple) and result else result
    if not isinstance(found, Tensor):
        raise NotAlike
    return found


def _replaced(result: Any, tensor: Tensor) -> Any:
    return (tensor, *result[1:]) if isinstance(result, tuple) else tensor


def _answer(result: Any, given: Any) -> Any:
    """None for a lone tensor like the input, the rest of a tuple if that holds no tensor; anything else is not foldable."""
    if signature(_first(result)) != given:
        raise NotAlike
    if not isinstance(result, tuple):
        return None
    rest = result[1:]
    if any(not (value is None or isinstance(value, bool | int | float | str)) for value in rest):
        raise NotAlike
    return rest


def _stand_in(session: Session, stack: Stack, hidden: Tensor) -> Tensor:
    """Put down what the skipped blocks keep, and the node that takes it up again in backward."""
    first, second = stack.first, stack.second
    if first is None or second is None:
        raise NotAlike
    taped = session.grad_enabled and hidden.requires_grad
    kept = kept_between(session, first, second, renewed=not taped and stack.held is not None)
    if not taped:
        stack.held = None
    casts = [cast for key, (_, cast) in session.cast_cache.items() if key in second.casts and key not in first.casts]
    passing = [cast.storage.id for cast in casts if sys.getrefcount(cast.storage) <= 2]
    dying = [kept.pop(identity) for identity in passing if identity in kept]
    del casts
    for key, count in second.costs.items():
        more = count - first.costs.get(key, 0)
        if more:
            session.costs[key] += more * stack.times
    session.flops += _flops(second.costs, first.costs) * stack.times
    held = [Storage(size) for _ in range(stack.times) for size in kept.values()]
    for number, size in enumerate(dying * stack.times):
        weights = Tensor((size,), UINT8)
        session.cast_cache[-id(stack) - number] = (weights, weights)
    if not taped:
        stack.held = held
        return hidden
    skipped = [parameter for block in stack.blocks[stack.low : stack.high] for _, parameter in named_parameters(block)]
    backward = _TakeUp(held, skipped, stack)
    del held
    return record("folded", alias(hidden), [hidden], [], backward, flops=0, kind="fold")  # type: ignore[no-any-return] # record returns its outputs


def _flops(after: dict[tuple[str, str, int, int], int], before: dict[tuple[str, str, int, int], int]) -> int:
    return sum(key[2] * (count - before.get(key, 0)) for key, count in after.items())


class _TakeUp:
    """Backward through the skipped blocks."""

    def __init__(self, held: list[Storage], parameters: list[Tensor], stack: Stack) -> None:
        self.held: list[Storage] | None = held
        self.parameters, self.stack = parameters, stack

    def __call__(self, saved: Any, grad: Tensor, needs: Any) -> list[Tensor | None]:
        del saved, needs
        self.held = None
        for parameter in self.parameters:
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = like(parameter)
        self.stack.second = snapshot(current())
        return [grad]


def marked(session: Session, stack: Stack, tensor: Tensor) -> Tensor:
    """A node at the end of the first period: in backward the second period is done there, and its cost is known."""
    if not (session.grad_enabled and tensor.requires_grad):
        return tensor

    def backward(saved: Any, grad: Tensor, needs: Any) -> list[Tensor | None]:
        del saved, needs
        session = current()
        before = stack.second
        if before is not None:
            for key, count in list(session.costs.items()):
                more = count - before.costs.get(key, 0)
                if more:
                    session.costs[key] += more * stack.times
            session.flops += _flops(session.costs, before.costs) * stack.times // (stack.times + 1)
        return [grad]

    return record("folded", alias(tensor), [tensor], [], backward, flops=0, kind="fold")  # type: ignore[no-any-return] # record returns its outputs


# ---- what makes blocks alike


def stack_of(blocks: list[ModuleInstance]) -> Stack | None:
    """The longest foldable run at the end of a list of blocks."""
    kinds = _kinds(blocks)
    total = len(kinds)
    best: Stack | None = None
    for period in range(1, min(LONGEST_PERIOD, total // 4) + 1):
        start = total - period
        while start > 0 and kinds[start - 1] == kinds[start - 1 + period]:
            start -= 1
        low = start + 3 * period  # the first two are not yet like the others: what they are given is kept elsewhere too
        passed = (total - period - low) // period * period
        if passed > 0 and (best is None or passed > best.high - best.low):
            best = Stack(blocks, period, start, low, low + passed)
    return best


def _kinds(blocks: list[ModuleInstance]) -> list[Any]:
    """One comparable value for each block. A number that counts the blocks tells nothing of its kind and is left out."""
    leaves = [list(_leaves(block, 0)) for block in blocks]
    if len({len(found) for found in leaves}) == 1:
        for place, first in enumerate(leaves[0]):
            if type(first) is int and all(
                type(found[place]) is int and found[place] - index == first for index, found in enumerate(leaves)
            ):
                for found in leaves:
                    found[place] = "index"
    return [tuple(found) for found in leaves]


def _leaves(module: ModuleInstance, depth: int) -> Iterator[Any]:
    if depth > DEEPEST:
        raise NotAlike
    yield module.cls.name, id(module.cls)
    for name, value in module.fields.items():
        yield name
        yield signature(value)
    for table in (module.parameters, module.buffers):
        for name, tensor in table.items():
            yield name, signature(tensor)
    for name, child in module.modules.items():
        yield name
        if child is not None:
            yield from _leaves(child, depth + 1)


def signature(value: Any) -> Any:
    """What decides how a block is played: shapes, strides, dtypes and plain values; objects by identity."""
    if isinstance(value, Tensor):
        return value.shape, value.stride, value.dtype.name, value.requires_grad
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(signature(part) for part in value)
    if isinstance(value, dict):
        return tuple((key, signature(part)) for key, part in value.items())
    return id(value)
