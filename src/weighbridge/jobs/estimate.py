"""Job + model -> Estimate: simulated steps, their peak, and how it grows; the one entry that a plan calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.jobs import adapters, serve
from weighbridge.jobs.alternatives import JobFootprint, changes
from weighbridge.jobs.job import DEFAULT_CONTEXT_TOKENS, DEFAULT_SEQ_TOKENS, Job
from weighbridge.jobs.prepare import Origin, call_arguments, choose_attention, set_training
from weighbridge.jobs.step import StepResult, train_step
from weighbridge.model import Model, Row
from weighbridge.phantom.allocator import CachingAllocator
from weighbridge.phantom.ops.embedding import TableEndError
from weighbridge.reading.glue.folding import Folding
from weighbridge.reading.inputs import Literal
from weighbridge.timeline import Growth, Peak, Run, Timeline

Costs = Mapping[tuple[str, str, int, int], int]


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """What one group of like layers keeps of the past: bytes for each token (0 for a fixed state)."""

    layers: int
    kind: str
    bytes_per_token: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a job needs, in bytes, tokens and FLOPs."""

    footprint: JobFootprint
    timeline: Timeline
    peak: Peak
    reserved_bytes: int
    breakdown: Mapping[str, int]
    seq_tokens: int
    context_tokens: int
    trainable: int
    saved_bytes_per_token: float | None
    flops: int | None
    weights_bytes: int
    compute_dtype: str
    cache: Sequence[CacheGroup] = ()
    cache_bytes: int | None = None
    rows: Sequence[Row] = ()
    alternatives: Sequence[tuple[str, Any]] = ()
    """Single changes and their footprints; see jobs/alternatives.py."""
    assumptions: Sequence[str] = ()
    derivations: Sequence[tuple[str, str]] = ()
    costs: Any = field(default=None, repr=False)

    def costs_of(self, batch: int) -> Costs:
        """What the operations of one step cost at that batch."""
        return self.costs(batch) if self.costs is not None else {}


def estimate(model: Model, job: Job, inputs: Mapping[str, Any] | None = None) -> Estimate:
    """What a job on a model needs. Raises CannotTell where the source leaves it open, BadConfig where the model's own code refuses.

    A length that nobody asked for is shortened where the model's table of positions turns out to end before its context.
    """
    context = context_tokens(model)
    try:
        return _at_most(model, job, context, inputs)
    except CannotTell as error:
        asked = job.seq_tokens if job.trains else job.context
        excess = _excess(error.__cause__, model)
        if asked is not None or inputs is not None or not 0 < excess < context:
            raise
    return _at_most(model, job, context - excess, None)


def _excess(error: BaseException | None, model: Model) -> int:
    """How many positions too many a table was asked for: as it says, or those that fairseq's models keep for padding; else 0."""
    if isinstance(error, TableEndError):
        return error.excess
    padding = model.config_values.get("pad_token_id")
    return padding + 1 if isinstance(error, IndexError) and isinstance(padding, int) else 0


def _at_most(model: Model, job: Job, context: int, inputs: Mapping[str, Any] | None) -> Estimate:
    attention = choose_attention(model, job.attention)
    if not job.trains:
        served: Estimate = serve.estimate(model, job, context)
        return served
    seq_tokens = job.seq_tokens or min(DEFAULT_SEQ_TOKENS, context)
    return Training(model, job, attention, longest=context).estimate(seq_tokens, context, inputs)


def context_tokens(model: Model) -> int:
    """The longest input that the model's position embeddings or its config allow."""
    values = dict(model.config_values)
    for part in ("text_config", "llm_config", "thinker_config"):
        inner = values.get(part)
        if isinstance(inner, Mapping):
            values = {**values, **inner}
    for key in ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "model_max_length", "n_ctx"):
        value = values.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            return value
    return DEFAULT_CONTEXT_TOKENS


def folding_of(model: Model, job: Job) -> Folding:
    """Which layers are alike, worked out once for a model as a job has it."""
    key = ("folding", job.method == "lora" and (job.lora_rank, job.lora_targets, job.adapter_dtype))
    kept: dict[Any, Any] = model.runtime.kept
    if key not in kept:
        kept[key] = Folding(model.root)
    return kept[key]  # type: ignore[no-any-return] # the runtime keeps what jobs give it


class Training:
    """The training jobs: full, or adapters over a frozen base."""

    def __init__(self, model: Model, job: Job, attention: str, *, fold: bool = True, longest: int | None = None) -> None:
        self.model, self.job, self.attention = model, job, attention
        self.steps: dict[tuple[int, int], StepResult] = {}
        self.arguments: Mapping[str, Any] | None = None
        self.growth = Growth(self.simulate, longest or context_tokens(model))
        with adapters.applied(model, job):
            self.folding: Folding | None = folding_of(model, job) if fold else None

    def simulate(self, batch: int, seq_tokens: int) -> Run:
        """One step, kept."""
        with adapters.applied(self.model, self.job) as kept:
            self._modes()
            try:
                result = self.steps[batch, seq_tokens] = self._step(kept, batch, seq_tokens)
            finally:
                self.model.runtime.calls.disable_checkpointing(self.model.root)
        timeline = Timeline(result.session.recorder.events, result.start)
        return Run(batch, seq_tokens, timeline, lambda own: played(own, result.empty_cache_at))

    def _step(self, kept: tuple[Origin, ...], batch: int, seq_tokens: int) -> StepResult:
        """With alike layers played once, or in full where they turn out not to be."""

        def play() -> StepResult:
            return train_step(self.model, kept, self.job, batch, seq_tokens, self.arguments)

        if self.folding is not None and self.folding.stacks:
            result: StepResult | None = self.model.runtime.calls.folded(self.folding, play)
            if result is not None:
                return result
            self.folding = None
        return play()

    def _modes(self) -> None:
        set_training(self.model.root, True)
        if self.job.checkpointing:
            self.model.runtime.calls.enable_checkpointing(self.model.root, inputs_need_grad=self.job.method != "full")

    def estimate(self, seq_tokens: int, context: int, arguments: Mapping[str, Any] | None) -> Estimate:
        """The job at its own batch and length."""
        job, model = self.job, self.model
        self.arguments = arguments
        calls = model.runtime.calls
        calls.watching, calls.outputs = True, {}
        try:
            run = self.growth.run(job.batch, seq_tokens)
        finally:
            calls.watching = False
        self.arguments = None
        step = self.steps[job.batch, seq_tokens]
        timeline = run.timeline
        tokens = job.batch * seq_tokens
        breakdown = timeline.breakdown()
        footprint = JobFootprint(job.method, job.batch, seq_tokens, self.growth)
        return Estimate(
            footprint=footprint,
            alternatives=tuple(changes(model, job, footprint, breakdown, lambda *changed: Training(*changed).growth)),
            timeline=timeline,
            peak=Peak(run.allocated_bytes, timeline.peak.index, timeline.peak.where),
            reserved_bytes=run.reserved_bytes,
            breakdown=breakdown,
            seq_tokens=seq_tokens,
            context_tokens=context,
            trainable=step.trainable,
            saved_bytes_per_token=step.saved_bytes / tokens,
            flops=step.session.flops,
            weights_bytes=breakdown["weights"],
            compute_dtype=(job.types.autocast or job.types.weights).name,
            rows=rows_with_shapes(model, calls.outputs),
            assumptions=self._assumptions(step, seq_tokens, arguments),
            derivations=self._derivations(run, step, timeline),
            costs=lambda batch: self._costs(batch, seq_tokens),
        )

    def _costs(self, batch: int, seq_tokens: int) -> Costs:
        """Costs at a batch: measured at the job's own, or scaled from it operation by operation."""
        own = self.steps[self.job.batch, seq_tokens].session.costs
        factor = batch / self.job.batch
        scaled: dict[tuple[str, str, int, int], int] = {}
        for (kind, dtype, flops, moved), count in own.items():
            fixed = kind == "optimizer"
            key = (kind, dtype, flops if fixed else int(flops * factor), moved if fixed else int(moved * factor))
            scaled[key] = scaled.get(key, 0) + count
        return scaled

    def _assumptions(self, step: StepResult, seq_tokens: int, arguments: Mapping[str, Any] | None) -> tuple[str, ...]:
        job = self.job
        inputs = arguments or call_arguments(self.model, job, job.batch, seq_tokens, labels=True, floating=job.types.weights)
        shown = ", ".join(
            f"{name}={argument.value}" if isinstance(argument, Literal) else f"{name} {list(argument.shape)} {argument.dtype.name}"
            for name, argument in inputs.items()
        )
        lines = [f"inputs of a step: {shown}"]
        lines += [f"{name}: {argument.why}" for name, argument in inputs.items() if getattr(argument, "why", "")]
        if self.attention != job.attention:
            lines.append(f"attention runs as {self.attention}: the class does not support {job.attention}")
        return (*lines, *step.session.assumptions)

    def _derivations(self, run: Run, step: StepResult, timeline: Timeline) -> tuple[tuple[str, str], ...]:
        where = timeline.peak.where
        place = f"{where.phase} of {where.module or 'the model itself'}, {where.operation}"
        return (
            ("peak", f"{run.allocated_bytes:,} bytes at event {timeline.peak.index:,} of {len(timeline.events):,}: {place}"),
            ("kept for backward", f"{step.saved_bytes:,} bytes live between forward and backward"),
            ("FLOPs", f"{step.session.flops:,} in a step, {step.forward_flops:,} of them forward; a multiply-add counts as two"),
        )  # fmt: skip


def played(timeline: Timeline, empty_cache_at: int) -> tuple[int, int]:
    """Peak allocated and reserved bytes of a timeline through the caching allocator, its cache emptied once before the step."""
    usage = CachingAllocator().play(timeline.events, empty_cache_at, empty_cache=True)
    return usage.peak_allocated, usage.peak_reserved


def rows_with_shapes(model: Model, outputs: Mapping[str, tuple[tuple[int, ...], int]]) -> tuple[Row, ...]:
    """The structure with the output shape and FLOPs that a forward pass showed."""
    return model.structure(outputs=outputs)


__all__ = ["CacheGroup", "Estimate", "JobFootprint", "Training", "context_tokens", "estimate"]
