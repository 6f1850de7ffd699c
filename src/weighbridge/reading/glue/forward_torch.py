"""torch at forward time: autograd.Function, what autocast answers, checkpointing of functions, vmap of mask functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell
from weighbridge.phantom import Tensor, current, record
from weighbridge.phantom.autograd import alias
from weighbridge.reading.python import MISSING, Class, ClassMethod, Instance, Machine, Native, Property, StaticMethod

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

SAVED = "?saved"


def install(runtime: "Runtime") -> None:
    """Put the forward-time functions of torch in their places."""
    entries = runtime.torch.torch.entries
    entries["is_autocast_enabled"] = Native(lambda *_: current().autocast is not None, "is_autocast_enabled", lazy=True)
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
