"""One training step on phantoms, as transformers' Trainer runs it, once the optimizer's state exists.

The order of events is the Trainer's (transformers/trainer.py, accelerate's ConvertOutputsToFp32): forward under autocast, outputs
turned to float32 and dropped before backward, gradients clipped at 1.0, optimizer step, gradients set to None.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base.dtypes import FLOAT32
from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.jobs.job import Job
from weighbridge.jobs.prepare import Origin, call_arguments, made, place_weights
from weighbridge.model import Model
from weighbridge.phantom import Session, Storage, Tensor, run_backward
from weighbridge.phantom.operations import to_dtype
from weighbridge.phantom.optimizers import OPTIMIZERS, Optimizer, clip_grad_norm_
from weighbridge.reading.glue.folding import NotAlike
from weighbridge.reading.glue.module_instance import named_parameters
from weighbridge.reading.python import Instance

CUBLAS_WORKSPACE_BYTES: Final = 8_519_680
"""One handle's workspace before Hopper: 4096 KiB x 2 + 16 KiB x 8 (torch: CUDABlas parseChosenWorkspaceSize)."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step did. `start` is the first event of the step itself; before it lie weights, state and inputs."""

    session: Session
    start: int
    saved_bytes: int
    trainable: int
    forward_flops: int
    empty_cache_at: int


def train_step(model: Model, kept: tuple[Origin, ...], job: Job, batch: int, seq_tokens: int, arguments: Any = None) -> StepResult:
    """Play one step; raises CannotTell or BadConfig where the model's own source stops it."""
    session = Session(training=True)
    types = job.types
    weights = types.weights if job.method == "full" else types.frozen
    with _quiet(), session.activate():
        session.autocast_dtype = types.autocast or session.autocast_dtype
        keep = [_workspace(session)]
        session.phase = "weights"
        adapters = frozenset(id(origin.tensor) for origin in kept if origin.trainable) if job.method == "lora" else frozenset[int]()
        place_weights(kept, weights, adapters)
        parameters = [tensor for _, tensor in named_parameters(model.root)]
        for origin in kept:
            origin.tensor.requires_grad = origin.trainable and origin.dtype.kind == 2 and origin.tensor.is_parameter
        optimizer = OPTIMIZERS[job.optimizer](parameters)
        session.phase = "inputs"
        call = made(arguments or call_arguments(model, job, batch, seq_tokens, labels=True, floating=_input_type(job)))
        emptied = _warm_up(session, optimizer)
        start = len(session.recorder.events)
        session.costs.clear()
        session.flops = 0
        loss, forward_flops = _forward(model, session, job, call)
        saved = _live_bytes(session, start)
        session.phase = "workspace"
        keep.append(_workspace(session))
        session.phase = "backward"
        run_backward(loss)
        del loss
        session.phase = "optimizer"
        clip_grad_norm_(parameters)
        optimizer.step()
        optimizer.zero_grad()
        trainable = sum(parameter.nbytes // parameter.dtype.itemsize for parameter in parameters if parameter.requires_grad)
    session.close()
    return StepResult(session, start, saved, trainable, forward_flops, emptied)


def _input_type(job: Job) -> Any:
    """Pixels and sounds come in float32 and are cast by autocast; without autocast they come in the weights' type."""
    types = job.types
    return FLOAT32 if types.autocast is not None else types.weights


def _workspace(session: Session) -> Storage:
    session.phase = "workspace"
    return Storage(CUBLAS_WORKSPACE_BYTES)


def _warm_up(session: Session, optimizer: Optimizer) -> int:
    """The state that the first step leaves: gradients appear, state is made, gradients go."""
    session.phase = "warm-up"
    gradients = [Storage(parameter.nbytes) for parameter in optimizer.parameters]
    session.phase = "state"
    optimizer.warm_up()
    session.phase = "warm-up"
    del gradients
    return len(session.recorder.events)


def _forward(model: Model, session: Session, job: Job, call: dict[str, Any]) -> tuple[Tensor, int]:
    machine = model.machine
    session.phase = "forward"
    session.grad_enabled = True
    try:
        with session.under_autocast(job.types.autocast):
            output = machine.run(lambda: machine.call(model.root, [], call))
    except (WeighError, NotAlike):
        raise
    except Exception as error:
        raise machine.explain(error) from error
    flops = session.flops
    loss = loss_of(machine, output)
    if job.loop == "trainer" and job.types.autocast is not None:
        converted = [to_dtype(tensor, FLOAT32) for tensor in _floating(machine, output)]
        del converted
    if job.loop == "plain":
        call["?outputs"] = output
    del output
    return loss, flops


def loss_of(machine: Any, output: Any) -> Tensor:
    """The loss among a model's outputs, or the sum of its first floating point output where the class computes none."""
    found = machine.getattr(output, "loss", None) if isinstance(output, Instance) else None
    if found is None and isinstance(output, tuple | list) and output and isinstance(output[0], Tensor) and not output[0].shape:
        found = output[0]
    if isinstance(found, Tensor) and found.requires_grad:
        return found
    for tensor in _floating(machine, output):
        if tensor.requires_grad:
            from weighbridge.phantom import OPERATIONS, current  # noqa: PLC0415 - used where a class has no loss

            current().assume("the class computes no loss of its own: the sum of its first output stands for one")
            return OPERATIONS["sum"](to_dtype(tensor, FLOAT32))  # type: ignore[no-any-return] # the registry is untyped
    raise CannotTell("the loss", "no output of the model depends on a trained parameter")


def _floating(machine: Any, output: Any) -> Iterator[Tensor]:
    """The floating point tensors among the outputs (`logits` alone under the Trainer where there are any)."""
    if isinstance(output, Instance):
        logits = machine.getattr(output, "logits", None)
        if isinstance(logits, Tensor):
            yield logits
            return
        values = list(output.fields.values())
    else:
        values = list(output) if isinstance(output, tuple | list) else [output]
    for value in values:
        if isinstance(value, Tensor) and value.dtype.kind == 2 and value.shape:
            yield value


def _live_bytes(session: Session, start: int) -> int:
    """Bytes that the events since `start` left allocated."""
    return sum(size for _, size, _ in session.recorder.events[start:])


@contextmanager
def _quiet() -> Iterator[None]:
    """No cyclic collection while lifetimes are recorded: they follow reference counts, as torch's do."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
