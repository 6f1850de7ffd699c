"""One step of a Trainer on fake CUDA: optimizer state present, forward, backward, clip, step."""

import contextlib
import gc
import inspect
import os
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from weighbridge.base.dtypes import BY_NAME
from weighbridge.reading.input_facts import InputFacts, InputSpec, parse
from weighbridge.reading.inputs import default_inputs
from weighbridge.simulate import fakecuda
from weighbridge.simulate.attention import CudaAttention
from weighbridge.simulate.job import Simulation, StepJob
from weighbridge.simulate.kernels import CUBLAS_WORKSPACE
from weighbridge.simulate.models import OPTIMIZERS, build, model_class, trainable
from weighbridge.simulate.patches import as_on_a_gpu
from weighbridge.simulate.tracker import Allocation, Tracker, module_names

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers has no annotation here


def run(name: str, config_kwargs: Mapping[str, Any], job: StepJob, *, events: bool = False) -> Simulation:
    """Build the class and do a step. Whatever the model's own code raises passes through."""
    started = time.process_time()
    fakecuda.install()
    tracker, attention = Tracker(), CudaAttention()
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True), tracker, as_on_a_gpu(attention):
        warnings.simplefilter("ignore")
        workspace = tracker.allocate(CUBLAS_WORKSPACE, "cuBLAS workspace of the main thread", role="workspace")
        model, config = build(name, config_kwargs, job)
        gc.collect()
        step = _Step(model, job, tracker)
        described = job.inputs if job.inputs is not None else describe_inputs(name, config, job)
        inputs = {key: place(row, tracker) for key, row in described.items()}
        step.warm_up()
        tracker.start_measuring()
        with module_names(model, tracker):
            held = step.run(inputs)
        counts = sum(p.numel() for p in model.parameters()), sum(p.numel() for p in trainable(model))
        del workspace
        found = _report(tracker, attention, counts, held, described)
        found.attention = config._attn_implementation  # noqa: SLF001  # where transformers keeps it
        found.cpu_seconds = round(time.process_time() - started, 2)
        found.events = tracker.events if events else []
    return found


def facts_of(name: str, config: Any) -> InputFacts:
    """The class's side of its inputs, as the rules want it."""
    kind = model_class(name)
    signature = inspect.signature(kind.forward).parameters
    required = [key for key, p in signature.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and key != "self"]
    main = kind.main_input_name if isinstance(kind.main_input_name, str) else "input_ids"
    return InputFacts(config.to_dict(), config.model_type, name, main, tuple(key for key in signature if key != "self"), tuple(required))


def describe_inputs(name: str, config: Any, job: StepJob) -> dict[str, Any]:
    """The step's inputs as data; with `padded`, the last token of the first row is padding."""
    made = default_inputs(facts_of(name, config), job.batch, job.seq_tokens, labels=True, floating=BY_NAME[job.floating])
    rows = {key: value.as_json() for key, value in made.items()}
    ids = made.get("input_ids")
    if job.padded and isinstance(ids, InputSpec):
        batch, length = ids.shape
        rest = [[1, (batch - 1) * length]] if batch > 1 else []
        rows["attention_mask"] = {"shape": [batch, length], "dtype": "int64", "runs": [[1, length - 1], [0, 1], *rest]}
    return rows


def place(row: Mapping[str, Any], tracker: Tracker) -> Any:
    """A fake tensor on the device with the values that the row states, or the literal."""
    spec = parse(row, BY_NAME)
    if not isinstance(spec, InputSpec):
        return spec.value
    tensor = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype.name), device="cuda")
    tracker.label(tensor, "inputs")
    values = spec.array()
    if values is not None:
        with _disable_current_modes():
            tracker.values.give(tensor, torch.tensor(values.copy(), dtype=tensor.dtype))
    return tensor


class _Step:
    """The Trainer's loop body over one model."""

    def __init__(self, model: nn.Module, job: StepJob, tracker: Tracker) -> None:
        self.model, self.job, self.tracker = model, job, tracker
        self.parameters = trainable(model)
        self.optimizer = OPTIMIZERS[job.optimizer](self.parameters)
        self.scaler = torch.amp.GradScaler("cuda") if job.precision == "fp16" else None
        for parameter in model.parameters():
            tracker.label(parameter, "weights")
        for buffer in model.buffers():
            tracker.label(buffer, "buffers")
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(lambda p: tracker.label(p.grad, "gradients"))  # type: ignore[no-untyped-call]  # torch has no annotation here

    def warm_up(self) -> None:
        """Make the optimizer's state, as a step before this one would have."""
        self.tracker.phase = "warm up"
        for parameter in self.parameters:
            parameter.grad = torch.empty_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for state in self.optimizer.state.values():
            for value in state.values():
                self.tracker.label(value, "optimizer")
        gc.collect()
        self.tracker.allocator.empty_cache()

    def run(self, inputs: dict[str, Any]) -> tuple[int, int]:
        """Bytes allocated before and after the forward pass."""
        tracker, allocator = self.tracker, self.tracker.allocator
        tracker.phase = "forward"
        before = allocator.allocated
        loss, kept = self._forward(inputs)
        after = allocator.allocated
        for allocation in tracker.live.values():
            if not allocation.role and allocation.phase == "forward":
                allocation.role = "saved"
        tracker.allocate(CUBLAS_WORKSPACE, "cuBLAS workspace of the autograd thread", role="workspace")
        tracker.phase = "backward"
        (self.scaler.scale(loss) if self.scaler else loss).backward()  # type: ignore[no-untyped-call]  # torch has no annotation here
        loss = loss.detach()
        tracker.phase = "optimizer"
        self._update()
        del kept
        return before, after

    def _forward(self, inputs: dict[str, Any]) -> tuple[Tensor, Any]:
        precision = self.job.autocast
        cast = torch.autocast("cuda", dtype=getattr(torch, precision)) if precision else contextlib.nullcontext()
        with cast:
            out = self.model(**inputs)
        loss = out["loss"] if isinstance(out, dict) else out[0]
        if precision and getattr(out, "logits", None) is not None:  # accelerate turns a mixed-precision model's outputs to float32
            out = {key: out[key].float() if out[key].is_floating_point() else out[key] for key in ("loss", "logits")}
            loss = out["loss"]
        return loss, out if self.job.outputs_kept else None

    def _update(self) -> None:
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        if self.job.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.job.clip)
        if self.scaler:
            self.scaler.step(self.optimizer)
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def _report(
    tracker: Tracker, attention: CudaAttention, counts: tuple[int, int], held: tuple[int, int], inputs: dict[str, Any]
) -> Simulation:
    moment = tracker.peak[1]
    live = [a for a in tracker.allocations if a.born <= moment and (a.freed is None or a.freed > moment)]
    last = max(live, key=lambda a: a.born)
    bytes_by_role: Counter[str] = Counter()
    for allocation in live:
        bytes_by_role[role_of(allocation)] += allocation.nbytes
    allocator = tracker.allocator
    return Simulation(
        parameters=counts[0],
        trainable=counts[1],
        peak_requested_bytes=allocator.peak_requested,
        peak_allocated_bytes=allocator.peak_allocated,
        peak_reserved_bytes=allocator.peak_reserved,
        held_before_forward_bytes=held[0],
        held_after_forward_bytes=held[1],
        peak_phase=last.phase,
        peak_module=last.module,
        peak_operation=last.operation,
        peak_node=last.node,
        live_at_peak=dict(bytes_by_role),
        attention="",
        attention_kernels=dict(attention.chosen),
        unknown_values=tracker.values.asked,
        operations=tracker.operations,
        cpu_seconds=0.0,
        inputs=inputs,
    )


def role_of(allocation: Allocation) -> str:
    """What a storage was at the peak, for the page."""
    return allocation.role or f"{allocation.phase} temporaries"
