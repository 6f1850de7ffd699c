"""Serving: weights, the cache that the model's own code keeps at a context, and the peak of prefill and of one more token."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base.dtypes import BY_NAME, INT64, DType
from weighbridge.base.errors import CannotTell, UsageError, WeighError
from weighbridge.jobs.adapters import applied
from weighbridge.jobs.job import DEFAULT_CONTEXT_TOKENS, Job
from weighbridge.jobs.prepare import call_arguments, input_facts, made, place_weights, set_training
from weighbridge.jobs.step import CUBLAS_WORKSPACE_BYTES
from weighbridge.model import Model
from weighbridge.phantom import Session, Storage, Tensor
from weighbridge.reading.python import Instance
from weighbridge.timeline import Growth, Peak, Run, Timeline

CACHE_NAMES: Final = ("cache", "past_key_values", "cache_params", "past_buckets_states", "state")
"""Under what an output gives its cache back, and forward takes it."""
STEPS_APART: Final = 256
"""Two contexts so far apart show what one more token costs."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one layer's cache keeps: its tensors' bytes, and how many tokens they reach back."""

    kind: str
    tensors: int
    nbytes: int


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
    from weighbridge.jobs.estimate import CacheGroup, Estimate, JobFootprint, rows_with_shapes  # noqa: PLC0415 - the two stand beside each other

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
    breakdown = timeline.breakdown()
    breakdown["cache"] += min(served.cache_bytes, breakdown["activations"] + breakdown["temporaries"])
    for name in ("activations", "temporaries"):
        moved = min(breakdown[name], max(0, sum(breakdown.values()) - run.allocated_bytes))
        breakdown[name] -= moved
    return Estimate(
        footprint=JobFootprint("serve", job.sequences, context, serving.growth),
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


class Serving:
    """Prefills of one model, kept by (sequences, context)."""

    def __init__(self, model: Model, job: Job, longest: int = 1 << 20) -> None:
        self.model, self.job = model, job
        self.served: dict[tuple[int, int], Served] = {}
        self.growth = Growth(self.simulate, longest)
        self.dtype: DType = job.types.frozen
        if job.kv_dtype is not None and job.kv_dtype not in BY_NAME:
            raise UsageError(f"--kv-dtype {job.kv_dtype[:30]!r} is not a dtype", "bfloat16, float16, float32 or float8_e4m3fn")

    def simulate(self, sequences: int, context: int) -> Run:
        """Prefill of `context` - 1 tokens, then one more."""
        from weighbridge.jobs.estimate import played  # noqa: PLC0415 - the two stand beside each other

        served = self.served[sequences, context] = self._serve(sequences, context)
        timeline = Timeline(served.session.recorder.events, served.start)
        allocated, reserved = played(timeline, served.start)
        return Run(sequences, context, timeline, allocated, reserved)

    def _serve(self, sequences: int, context: int) -> Served:
        model, session = self.model, Session(training=False)
        with applied(model, self.job.but(method="full")) as kept, session.activate():
            set_training(model.root, training=False)
            session.grad_enabled = False
            session.phase = "workspace"
            held = Storage(CUBLAS_WORKSPACE_BYTES)
            session.phase = "weights"
            place_weights(kept, self.dtype)
            session.phase = "inputs"
            call = made(call_arguments(model, self.job, sequences, max(1, context - 1), labels=False, floating=self.dtype))
            start = len(session.recorder.events)
            output = self._call(session, call, cached=True)
            prefill = session.flops
            cache = self._cache_of(output)
            layers: tuple[Kept, ...] = ()
            decode = 0
            costs = dict(session.costs)
            place = next((name for name in CACHE_NAMES if name in input_facts(model).parameters), None)
            if cache is not None and place is not None and "input_ids" in call:
                del output
                session.costs.clear()
                output = self._call(session, {"input_ids": Tensor((sequences, 1), INT64), place: cache}, cached=True)
                decode = session.flops - prefill
                costs = dict(session.costs)
            if cache is not None:
                layers = tuple(kept_layers(cache, self.job.kv_dtype))
            del output, cache, held
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
        except WeighError:
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
        """Like layers together: how many, their kind, bytes a token, and how far back they reach."""
        if not served.layers:
            return []
        sequences = self.job.sequences
        shorter = max(2, min(context - 1, context // 2))
        if (sequences, shorter) not in self.served:
            self.growth.run(sequences, shorter)
        before = self.served[sequences, shorter].layers
        found: dict[tuple[str, int, int | None], int] = {}
        for now, then in zip(served.layers, before, strict=False):
            grown = (now.nbytes - then.nbytes) // max(1, (context - shorter) * sequences)
            each = now.nbytes // sequences
            if grown > 0 and grown * context >= each * 0.999:
                key = (now.kind, grown, None)
            elif grown > 0 or (now.tensors and each):
                key = self._bounded(now, each, context)
            else:
                continue
            found[key] = found.get(key, 0) + 1
        return [(layers, kind, per_token, window) for (kind, per_token, window), layers in found.items()]

    def _bounded(self, layer: Kept, each: int, context: int) -> tuple[str, int, int | None]:
        """A layer whose cache stopped growing: a window, or a state of fixed size."""
        window = next((value for value in self._windows() if value < context), None)
        if window is not None and "sliding" in layer.kind:
            return layer.kind, each // max(1, window), window
        return layer.kind, 0, None

    def _windows(self) -> Iterator[int]:
        values = dict(self.model.config_values)
        inner = values.get("text_config")
        for place in (values, inner if isinstance(inner, Mapping) else {}):
            for key in ("sliding_window", "attention_chunk_size"):
                if isinstance(place.get(key), int):
                    yield place[key]

    def derivations(self, served: Served, context: int) -> tuple[tuple[str, str], ...]:
        """How the numbers came about."""
        return (
            ("cache", f"{served.cache_bytes:,} bytes in {len(served.layers)} layers after {context:,} tokens of {self.job.sequences} sequences: "
                      "the tensors that the model's own cache holds"),
            ("FLOPs", f"{served.prefill_flops:,} for the prompt, {served.decode_flops:,} for one more token"),
        )  # fmt: skip


def kept_layers(cache: Any, kv_dtype: str | None) -> Iterator[Kept]:
    """The layers of a cache object, or of version 4's tuples, with the bytes that their tensors show."""
    layers = cache.fields.get("layers") if isinstance(cache, Instance) else list(cache) if isinstance(cache, tuple | list) else None
    if layers is None and isinstance(cache, Instance):
        for name in ("self_attention_cache", "cross_attention_cache"):
            if isinstance(cache.fields.get(name), Instance):
                yield from kept_layers(cache.fields[name], kv_dtype)
        if "self_attention_cache" in cache.fields:
            return
        layers = [cache]
    if layers is None:
        raise CannotTell("the cache", "it is of a kind that is not known")
    for layer in layers:
        tensors = list(_tensors(layer, 0))
        kind = _kind(layer)
        yield Kept(kind, len(tensors), sum(_bytes(tensor, kv_dtype) for tensor in tensors))


def _kind(layer: Any) -> str:
    name = layer.cls.name if isinstance(layer, Instance) else "attention"
    lowered = name.lower()
    for word in ("sliding", "chunked", "linear", "mamba"):
        if word in lowered:
            return {"sliding": "sliding window", "chunked": "sliding window (chunks)", "linear": "fixed state", "mamba": "fixed state"}[word]
    return "attention"


def _bytes(tensor: Tensor, kv_dtype: str | None) -> int:
    if kv_dtype is not None and tensor.dtype.kind == 2:
        return tensor.nbytes // tensor.dtype.itemsize * BY_NAME[kv_dtype].itemsize
    return tensor.nbytes


def _tensors(value: Any, depth: int) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.shape:
            yield value
    elif depth > 3:
        return
    elif isinstance(value, Instance):
        for part in value.fields.values():
            yield from _tensors(part, depth + 1)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part, depth + 1)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part, depth + 1)
