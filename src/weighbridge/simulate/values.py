"""Values for small fake tensors, so that code which asks for them (grids, masks, lengths) gets the true answer.

A fake tensor has no data. Beside it we keep a plain CPU tensor wherever all of an operation's inputs are known: the same
operation run on those gives the values of its outputs, views and in-place writes included, because the plain tensors alias
each other as the fake ones do.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

aten = torch.ops.aten
LARGEST_WHOLE = 1 << 22  # elements of an integer or boolean tensor whose values are kept
LARGEST_REAL = 1 << 20
ATTRIBUTE = "_weighbridge_value"


class Known:
    """A holder of values that a deep copy of its tensor does not take along: the copy is unknown."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor | None) -> None:
        self.value = value

    def __deepcopy__(self, _memo: Any) -> "Known":
        return Known(None)


class KnownValues:
    """Follows the values of small tensors through dispatched operations; `asked` lists what was asked for in vain."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._spoiled: set[int] = set()
        self._kept: list[Tensor] = []  # spoiled storages stay alive so that their addresses are not used again

    def of(self, tensor: Any) -> Tensor | None:
        """The values, None if unknown."""
        known: Known | None = getattr(tensor, ATTRIBUTE, None)
        value = known.value if known else None
        return None if value is None or value.untyped_storage()._cdata in self._spoiled else value  # noqa: SLF001  # a storage has no other name

    def give(self, tensor: Tensor, value: Tensor) -> None:
        """State the values of a fake tensor."""
        setattr(tensor, ATTRIBUTE, Known(value))

    def spoil(self, tensor: Any) -> None:
        """Something unknown was written into this tensor."""
        value = self.of(tensor)
        if value is not None:
            self._spoiled.add(value.untyped_storage()._cdata)  # noqa: SLF001  # as above
            self._kept.append(value)

    def follow(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Work out the values of `out`, if all inputs are known; forget what was overwritten, if they are not."""
        outputs = [x for x in tree_flatten(out)[0] if isinstance(x, Tensor)]
        if not outputs or func in RANDOM or not all(_small(x) for x in outputs):
            return self._forget(func, args, kwargs)
        inputs = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        if any(self.of(x) is None and not _plain(x) for x in inputs) or (not inputs and func not in FACTORIES):
            return self._forget(func, args, kwargs)
        try:
            with _disable_current_modes(), torch.no_grad():
                known = func(
                    *tree_map(self._plain_of, args), **{key: _on_cpu(key, tree_map(self._plain_of, x)) for key, x in kwargs.items()}
                )
        except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
            return self._forget(func, args, kwargs)
        for fake, value in zip(outputs, [x for x in tree_flatten(known)[0] if isinstance(x, Tensor)], strict=False):
            if tuple(fake.shape) == tuple(value.shape):
                self.give(fake, value)
        return None

    def answer(self, tensor: Tensor, place: str) -> bool | float | int:
        """What `.item()` says: the value, or a stand-in (True, 1) that is written down in `asked`."""
        value = self.of(tensor)
        if value is not None:
            with _disable_current_modes():
                return value.item()
        self.asked.append(f"{place}: {tensor.dtype} {tuple(tensor.shape)}")
        return True if tensor.dtype == torch.bool else 1.0 if tensor.dtype.is_floating_point else 1

    def _plain_of(self, x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device("cpu")
        return x if not isinstance(x, Tensor) or _plain(x) else self.of(x)

    def _forget(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        for position, argument in enumerate(func._schema.arguments):  # noqa: SLF001  # an operation has no other description
            if argument.alias_info is not None and argument.alias_info.is_write:
                written = args[position] if position < len(args) else kwargs.get(argument.name)
                for x in tree_flatten(written)[0]:
                    self.spoil(x)


def _plain(x: Tensor) -> bool:
    return type(x) is Tensor and x.device.type == "cpu"


def _small(x: Tensor) -> bool:
    limit = LARGEST_REAL if x.dtype.is_floating_point else LARGEST_WHOLE
    return not x.requires_grad and x.layout is torch.strided and math.prod(x.shape) <= limit


def _on_cpu(key: str, value: Any) -> Any:
    return torch.device("cpu") if key == "device" and value is not None else False if key == "pin_memory" else value


def _overloads(*names: str) -> set[Any]:
    return {
        getattr(packet, overload) for name in names if (packet := getattr(aten, name, None)) is not None for overload in packet.overloads()
    }


RANDOM = _overloads(
    "rand",
    "randn",
    "randint",
    "randperm",
    "bernoulli",
    "bernoulli_",
    "uniform_",
    "normal_",
    "multinomial",
    "exponential_",
    "native_dropout",
    "rand_like",
    "randn_like",
    "random_",
)
FACTORIES = _overloads("zeros", "ones", "full", "arange", "scalar_tensor", "linspace", "tril_indices", "triu_indices", "eye")


def _computed(values: KnownValues, func: Any) -> Callable[..., Any]:
    """An operation done on the values themselves."""

    def run(*args: Any, **kwargs: Any) -> Any:
        known = [values.of(x) if isinstance(x, Tensor) else x for x in args]
        if any(x is None and isinstance(arg, Tensor) for x, arg in zip(known, args, strict=True)):
            return None
        with _disable_current_modes():
            found = func(*known, **kwargs)
        made = [torch.empty(x.shape, dtype=x.dtype, device=args[0].device) for x in tree_flatten(found)[0]]
        for fake, value in zip(made, tree_flatten(found)[0], strict=True):
            values.give(fake, value)
        return tuple(made) if isinstance(found, tuple) else made[0]

    return run


def _repeated(values: KnownValues) -> Callable[..., Any]:
    """repeat_interleave by known counts."""

    def repeat(repeats: Tensor, output_size: int | None = None) -> Tensor | None:
        value = values.of(repeats)
        if value is None or output_size is not None:
            return None
        with _disable_current_modes():
            rows = torch.repeat_interleave(value)
        out = torch.empty(rows.shape, dtype=torch.int64, device=repeats.device)
        values.give(out, rows)
        return out

    return repeat


def known_shapes(values: KnownValues) -> dict[Any, Callable[..., Any]]:
    """Operations whose output's shape hangs on values: how to run them on fake tensors once the values are known. None means unknown."""

    def nonzero(x: Tensor) -> Tensor | None:
        value = values.of(x)
        if value is None and x.dim() == 1 and x.dtype == torch.bool:  # which pictures are there: all of them
            values.asked.append(f"nonzero of {tuple(x.shape)}, taken as all true")
            with _disable_current_modes():
                value = torch.ones(x.shape, dtype=torch.bool)
        if value is None:
            return None
        with _disable_current_modes():
            found = torch.nonzero(value)
        out = torch.empty(found.shape, dtype=torch.int64, device=x.device)
        values.give(out, found)
        return out

    def select(x: Tensor, mask: Tensor) -> Tensor | None:
        value = values.of(mask)
        if value is None:
            return None
        with _disable_current_modes():
            shape = torch.broadcast_shapes(value.shape, x.shape)  # type: ignore[no-untyped-call]  # torch has no annotation here
            count = int(torch.broadcast_to(value, shape).sum())
        return torch.empty((count,), dtype=x.dtype, device=x.device)

    counted = (aten.unique_consecutive.default, aten._unique2.default, aten.unique_dim.default, aten.bincount.default)  # noqa: SLF001  # torch's own name
    return {func: _computed(values, func) for func in counted} | {
        aten.nonzero.default: nonzero,
        aten.masked_select.default: select,
        aten.repeat_interleave.Tensor: _repeated(values),
    }
