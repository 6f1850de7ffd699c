"""torch at forward time: autograd.Function, what autocast answers, checkpointing of functions, vmap of mask functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.base.dtypes import FLOAT64
from weighbridge.base.errors import CannotTell
from weighbridge.phantom import OPERATIONS, Tensor, current, record
from weighbridge.phantom.autograd import alias
from weighbridge.phantom.operations import to_dtype
from weighbridge.reading.python import MISSING, Class, ClassMethod, Instance, Machine, Native, Property, StaticMethod

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

SAVED = "?saved"


def install(runtime: "Runtime") -> None:
    """Put the forward-time functions of torch in their places."""
    entries = runtime.torch.torch.entries
    entries["is_autocast_enabled"] = Native(lambda *_: current().autocast is not None, "is_autocast_enabled", lazy=True)
    entries["vmap"] = Native(vectorized, "vmap", lazy=True)
    amp = runtime.torch.modules["torch.amp.autocast_mode"]
    amp.entries["_cast"] = Native(cast_arguments, "_cast", lazy=True)
    amp.entries.setdefault("autocast_mode", amp)
    function = runtime.torch.classes["Function"]
    context = _context_class()
    function.namespace["apply"] = ClassMethod(
        Native(
            lambda machine, cls, *args, **kwargs: apply_function(machine, context, cls, args, kwargs),
            "apply",
            lazy=True,
            wants_machine=True,
        )
    )


def cast_arguments(values: Any, _device: Any, dtype: Any) -> Any:
    """Autocast's cast of a call's arguments: floating point tensors, but float64, inside tuples too."""
    if isinstance(values, Tensor):
        castable = values.dtype.kind == 2 and values.dtype is not FLOAT64
        return to_dtype(values, dtype) if castable else values
    return tuple(cast_arguments(value, _device, dtype) for value in values) if isinstance(values, tuple | list) else values


class Vectorized:
    """torch.vmap of a function, possibly of another such: played once, over arguments that broadcast against each other."""

    def __init__(self, function: Any, in_dims: Any) -> None:
        self.function, self.in_dims = function, in_dims

    def __call__(self, machine: Machine, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """Play the function within once."""
        levels, function = [self], self.function
        while isinstance(function, Native) and isinstance(function.fn, Vectorized):
            levels.append(function.fn)
            function = function.fn.function
        values, sizes = list(args), []
        args.clear()
        for level, mapped in enumerate(levels):
            dims = mapped.in_dims if isinstance(mapped.in_dims, tuple) else (mapped.in_dims,) * len(values)
            places = [place for place, dim in enumerate(dims) if dim is not None]
            if len(places) != 1 or len(values[places[0]].shape) != 1:
                raise CannotTell("torch.vmap", "it maps more than one dimension of one argument at a time")
            tensor = values[places[0]]
            sizes.append(tensor.shape[0])
            shape = [1] * len(levels)
            shape[level] = tensor.shape[0]
            values[places[0]] = OPERATIONS["reshape"](tensor, tuple(shape))
        result = machine.call(function, values, kwargs)
        return OPERATIONS["expand"](result, tuple(sizes)) if isinstance(result, Tensor) else result


def vectorized(function: Any, in_dims: Any = 0, *_: Any, **__: Any) -> Native:
    """torch.vmap."""
    return Native(Vectorized(function, in_dims), "vmap", lazy=True, raw=True)


def _context_class() -> Class:
    """What forward and backward of a Function share as `ctx`."""
    cls = Class("FunctionCtx", module="torch.autograd.function")
    for name in ("save_for_backward", "save_for_forward"):
        cls.namespace[name] = Native(lambda ctx, *tensors: ctx.fields.__setitem__(SAVED, list(tensors)), name, lazy=True)
    for name in ("mark_dirty", "mark_non_differentiable", "set_materialize_grads"):
        cls.namespace[name] = Native(lambda *_: None, name, lazy=True)
    cls.namespace["saved_tensors"] = Property(Native(lambda ctx: tuple(ctx.fields.get(SAVED, ())), "saved_tensors", lazy=True))
    return cls


def _static(cls: Class, name: str) -> Any:
    found = cls.find(name)
    if found is MISSING:
        raise CannotTell(f"{cls.name}.{name}", "a custom autograd function without it")
    return found.fn if isinstance(found, StaticMethod) else found


def apply_function(machine: Machine, context: Class, cls: Class, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """cls.apply(...): forward off the tape, then one node whose backward runs the class's own."""
    ctx = Instance(context)
    session = current()
    inputs = [argument if isinstance(argument, Tensor) else None for argument in args]
    ctx.fields["needs_input_grad"] = tuple(tensor is not None and tensor.requires_grad for tensor in inputs)
    with session.without_grad():
        result = machine.call(_static(cls, "forward"), [ctx, *args], kwargs or None)
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    del result
    outputs = [alias(out) if isinstance(out, Tensor) and any(out is tensor for tensor in inputs) else out for out in outputs]
    saved = ctx.fields.pop(SAVED, [])
    kept = [tensor if isinstance(tensor, Tensor) else None for tensor in saved]
    others = [None if isinstance(value, Tensor) else value for value in saved]
    del saved
    backward = _FunctionBackward(machine, _static(cls, "backward"), ctx, others)
    tensors = [out for out in outputs if isinstance(out, Tensor)]
    record(cls.name, tensors[0] if len(tensors) == 1 else tensors, inputs, kept, backward, flops=1)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _FunctionBackward:
    """The backward of a custom Function, interpreted."""

    def __init__(self, machine: Machine, function: Any, ctx: Instance, others: list[Any]) -> None:
        self.machine, self.function, self.ctx, self.others = machine, function, ctx, others

    def __call__(self, saved: Sequence[Tensor | None], grads: Any, needs: Sequence[bool]) -> list[Tensor | None]:
        self.ctx.fields[SAVED] = [other if tensor is None else tensor for tensor, other in zip(saved, self.others, strict=True)]
        given = [grads] if isinstance(grads, Tensor) else list(grads)
        result = self.machine.call(self.function, [self.ctx, *given])
        self.ctx.fields.pop(SAVED, None)
        found = list(result) if isinstance(result, tuple | list) else [result]
        del needs
        return [tensor if isinstance(tensor, Tensor) else None for tensor in found]
