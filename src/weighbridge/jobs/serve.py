"""Serving: weights, the cache that the model's own code keeps at a context, and the peak of prefill and of one more token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base.dtypes import BY_NAME, INT64, DType
from weighbridge.base.errors import UsageError, WeighError
from weighbridge.jobs.adapters import applied
from weighbridge.jobs.alternatives import JobFootprint, changes
from weighbridge.jobs.caches import Facts, Kept, groups, kept_layers
from weighbridge.jobs.job import DEFAULT_CONTEXT_TOKENS, Job
from weighbridge.jobs.prepare import call_arguments, input_facts, made, place_weights, set_training
from weighbridge.jobs.step import CUBLAS_WORKSPACE_BYTES
from weighbridge.model import Model
from weighbridge.phantom import Session, Storage, Tensor
from weighbridge.reading.glue.folding import Folding, NotAlike
from weighbridge.reading.input_facts import constant
from weighbridge.reading.inputs import Argument, InputSpec, candidate_inputs
from weighbridge.reading.python import Instance
from weighbridge.timeline import Growth, Peak, Run, Timeline

CACHE_NAMES: Final = ("cache", "past_key_values", "cache_params", "past_buckets_states", "state")
"""Under what an output gives its cache back, and forward takes it."""
FLOATING: Final = 2
CACHES: Final = "transformers.cache_utils"
TEXT: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids", "decoder_input_ids", "decoder_attention_mask"})
"""What a prompt of text alone consists of."""


@dataclass(frozen=True, slots=True)
class Served:
    """One prefill (and one more token, where there is a cache) played."""

    session: Session
    start: int
    layers: tuple[Kept, ...]
    cache_bytes: int
    decode_flops: int
    prefill_flops: int
    costs: Mapping[tuple[str, str, int, int], int]


def estimate(model: Model, job: Job, context_limit: int) -> Any:
    """What serving needs at the job's context."""
    from weighbridge.jobs.estimate import CacheGroup, Estimate, rows_with_shapes  # noqa: PLC0415 - the two stand beside each other

    context = job.context or min(DEFAULT_CONTEXT_TOKENS, context_limit)
    serving = Serving(model, job, context_limit)
    calls = model.runtime.calls
    calls.watching, calls.outputs = True, {}
    try:
        run = serving.growth.run(job.sequences, context)
    finally:
        calls.watching = False
    served = serving.served[job.sequences, context]
    groups = serving.groups(context, served)
    timeline = run.timeline
    breakdown = with_cache(timeline.breakdown(), served.cache_bytes, run.allocated_bytes)
    footprint = JobFootprint("serve", job.sequences, context, serving.growth)
    return Estimate(
        footprint=footprint,
        alternatives=tuple(changes(model, job, footprint, breakdown, lambda changed, other, _attention: Serving(changed, other).growth)),
        timeline=timeline,
        peak=Peak(run.allocated_bytes, timeline.peak.index, timeline.peak.where),
        reserved_bytes=run.reserved_bytes,
        breakdown=breakdown,
        seq_tokens=context,
        context_tokens=context_limit,
        trainable=0,
        saved_bytes_per_token=None,
        flops=served.decode_flops or served.prefill_flops,
        weights_bytes=timeline.breakdown(served.start)["weights"],
        compute_dtype=serving.dtype.name,
        cache=tuple(CacheGroup(layers, kind, per_token, window) for layers, kind, per_token, window in groups),
        cache_bytes=served.cache_bytes if served.layers else None,
        rows=rows_with_shapes(model, calls.outputs),
        assumptions=tuple(served.session.assumptions),
        derivations=serving.derivations(served, context),
        costs=lambda batch: served.costs,  # noqa: ARG005 - serving is not priced by the step
    )


def with_cache(breakdown: dict[str, int], cache_bytes: int, allocated_bytes: int) -> dict[str, int]:
    """The cache named: it was made in forward, among what lives there."""
    breakdown["cache"] += min(cache_bytes, breakdown["activations"] + breakdown["temporaries"])
    for name in ("activations", "temporaries"):
        breakdown[name] -= min(breakdown[name], max(0, sum(breakdown.values()) - allocated_bytes))
    return breakdown


class Serving:
    """Prefills of one model, kept by (sequences, context)."""

    def __init__(self, model: Model, job: Job, longest: int = 1 << 20) -> None:
        self.model, self.job = model, job
        self.served: dict[tuple[int, int], Served] = {}
        self.growth = Growth(self.simulate, longest, trains=False)
        self.folding: Folding | None = Folding(model.root)
        self.dtype: DType = job.types.frozen
        self.text = True
        if job.kv_dtype is not None and job.kv_dtype not in BY_NAME:
            raise UsageError(f"--kv-dtype {job.kv_dtype[:30]!r} is not a dtype", "bfloat16, float16, float32 or float8_e4m3fn")

    def simulate(self, sequences: int, context: int) -> Run:
        """Prefill of `context` - 1 tokens, then one more."""
        from weighbridge.jobs.estimate import played  # noqa: PLC0415 - the two stand beside each other

        served = self.served[sequences, context] = self._serve(sequences, context)
        timeline = Timeline(served.session.recorder.events, served.start)
        return Run(sequences, context, timeline, lambda own: played(own, served.start))

    def _serve(self, sequences: int, context: int) -> Served:
        """Text alone where the model takes it so, else with its media."""
        if self.text:
            try:
                return self._folded(sequences, context)
            except WeighError:
                if set(self._prompt(sequences, context)) == set(self._prompt(sequences, context, media=True)):
                    raise
                self.text = False
        return self._folded(sequences, context)

    def _folded(self, sequences: int, context: int) -> Served:
        """With alike layers played once, or in full where they turn out not to be."""
        if self.folding is not None and len(self.folding.stacks) == 1:
            served: Served | None = self.model.runtime.calls.folded(self.folding, lambda: self._played(sequences, context))
            if served is not None:
                return served
            self.folding = None
        return self._played(sequences, context)

    def _filled(self, layers: tuple[Kept, ...]) -> tuple[Kept, ...]:
        """The cache of layers that were passed over is that of the layer each is like."""
        folding = self.model.runtime.calls.folding
        if folding is None or not layers:
            return layers
        stack = folding.stacks[0]
        skipped = range(stack.low, stack.high)
        if len(layers) + len(skipped) != len(stack.blocks):
            raise NotAlike
        return (*layers[: stack.low], *(layers[stack.like(index)] for index in skipped), *layers[stack.low :])

    def _prompt(self, sequences: int, tokens: int, *, media: bool = False) -> Mapping[str, Argument]:
        usual = call_arguments(self.model, self.job, sequences, tokens, labels=False, floating=self.dtype)
        if media or not self.text or "input_ids" not in usual or set(usual) <= TEXT:
            return usual
        calls = candidate_inputs(input_facts(self.model), sequences, tokens, floating=self.dtype)
        return next((call for call in calls if _is_text(call)), usual)

    def _empty_cache(self) -> dict[str, Any]:
        """The cache that generate() hands to code of version 4 that takes one; other code makes its own."""
        model, machine = self.model, self.model.machine
        takes = machine.getattr(model.root, "_supports_cache_class", None) is True and "past_key_values" in input_facts(model).parameters
        if not model.runtime.custom or not takes:
            return {}
        return {"past_key_values": machine.run(lambda: machine.call(model.runtime.library.get(CACHES, "DynamicCache"), []))}

    def _next_token(self, sequences: int, call: Mapping[str, Any], output: Any) -> dict[str, Any]:
        """What generate() calls with after the prompt, beside the cache; nothing where there is no such call."""
        token = Tensor((sequences, 1), INT64)
        if "decoder_input_ids" in input_facts(self.model).parameters and isinstance(output, Instance):
            hidden = self.model.machine.getattr(output, "encoder_last_hidden_state", None)
            return {"decoder_input_ids": token, "encoder_outputs": (hidden,)} if hidden is not None else {}
        prompt = call.get("input_ids")
        if isinstance(prompt, Tensor) and prompt.dtype.kind == FLOATING:  # a series: the next step's numbers
            token = Tensor((sequences, 1, *prompt.shape[2:]), prompt.dtype)
        if not isinstance(prompt, Tensor):
            return {}
        mask: dict[str, Any] = {}
        if self.model.runtime.custom and "attention_mask" in input_facts(self.model).parameters:
            mask = made({"attention_mask": constant((sequences, prompt.shape[1] + 1), 1, why="no padding")})
        return {"input_ids": token, **mask}

    def _played(self, sequences: int, context: int) -> Served:
        model, session = self.model, Session(training=False)
        with applied(model, self.job.but(method="full")) as kept, session.activate():
            set_training(model.root, training=False)
            session.grad_enabled = False
            session.phase = "workspace"
            held = Storage(CUBLAS_WORKSPACE_BYTES)
            session.phase = "weights"
            place_weights(kept, self.dtype)
            session.phase = "inputs"
            call = {**made(self._prompt(sequences, max(1, context - 1))), **self._empty_cache()}
            start = len(session.recorder.events)
            output = self._call(session, call, cached=True)
            prefill = session.flops
            cache = self._cache_of(output)
            layers: tuple[Kept, ...] = ()
            decode = 0
            costs = dict(session.costs)
            place = next((name for name in CACHE_NAMES if name in input_facts(model).parameters), None)
            following = self._next_token(sequences, call, output)
            if cache is not None and place is not None and following:
                del output
                session.costs.clear()
                output = self._call(session, {**following, place: cache}, cached=True)
                cache = self._cache_of(output) or cache  # version 4's tuples are new ones
                decode = session.flops - prefill
                costs = dict(session.costs)
            if cache is not None:
                layers = self._filled(tuple(kept_layers(cache, Facts.of(model.config_values), self.job.kv_dtype)))
            del output, cache, following, held
        session.close()
        return Served(session, start, layers, sum(layer.nbytes for layer in layers), decode, prefill, costs)

    def _call(self, session: Session, call: dict[str, Any], *, cached: bool) -> Any:
        machine = self.model.machine
        session.phase = "forward"
        arguments = dict(call)
        if cached and "use_cache" in input_facts(self.model).parameters:
            arguments["use_cache"] = True
        if "logits_to_keep" in input_facts(self.model).parameters:
            arguments["logits_to_keep"] = 1  # as generate() calls it
        try:
            return machine.run(lambda: machine.call(self.model.root, [], arguments))
        except (WeighError, NotAlike):
            raise
        except Exception as error:
            raise machine.explain(error) from error

    def _cache_of(self, output: Any) -> Any:
        if not isinstance(output, Instance):
            return None
        for name in CACHE_NAMES:
            found = self.model.machine.getattr(output, name, None)
            if found is not None:
                return found
        return None

    def groups(self, context: int, served: Served) -> list[tuple[int, str, int, int | None]]:
        """Like layers together; a shorter context is served too where a layer's shapes don't say what a token adds."""
        sequences, shorter = self.job.sequences, max(2, context // 2)
        unsaid = any(layer.token_bytes is None for layer in served.layers) and shorter < context
        if unsaid and (sequences, shorter) not in self.served:
            self.growth.point(sequences, shorter)
        then = self.served[sequences, shorter].layers if unsaid else None
        return groups(served.layers, then, context - shorter, sequences)

    def derivations(self, served: Served, context: int) -> tuple[tuple[str, str], ...]:
        """How the numbers came about."""
        fixed_bytes = sum(layer.fixed_bytes for layer in served.layers)
        fixed = f"; {fixed_bytes:,} of them do not grow with the context" if fixed_bytes else ""
        held = f"{served.cache_bytes:,} bytes in {len(served.layers)} layers after {context:,} tokens of {self.job.sequences} sequences"
        return (
            ("cache", f"{held}: the tensors that the model's own cache holds{fixed}"),
            ("FLOPs", f"{served.prefill_flops:,} for the prompt, {served.decode_flops:,} for one more token"),
        )


def _is_text(call: Mapping[str, Argument]) -> bool:
    """Whether a call feeds one run of ordinary tokens and nothing else."""
    ids = call.get("input_ids")
    return isinstance(ids, InputSpec) and set(call) <= TEXT and len(ids.runs or ()) == 1
