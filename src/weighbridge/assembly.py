"""Assembly: the results of each step -> the parts of a report. Everything is copied or named here, nothing is estimated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge import __version__, report
from weighbridge.base.dtypes import BY_SAFETENSORS
from weighbridge.base.errors import BadInput, CannotTell, LimitExceeded, WeighError
from weighbridge.cards import Card, custom_card
from weighbridge.checkpoint import CheckpointComparison
from weighbridge.fit import DEFAULT_MARGIN, Fit
from weighbridge.jobs import adapters
from weighbridge.jobs.estimate import Estimate
from weighbridge.jobs.job import Job
from weighbridge.model import Model, Parameter, Row
from weighbridge.price import Quote
from weighbridge.request import Request
from weighbridge.sources import Evidence
from weighbridge.timeline import CATEGORIES

AMPERE_BYTES: Final = 80 << 30
"""The page's own numbers are those of a common card; each card's verdict uses its own context."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One job, done."""

    job: Job
    estimate: Estimate
    fits: tuple[Fit, ...]
    quotes: tuple[Quote, ...]
    steps: int


@dataclass(slots=True)
class Draft:
    """A report in the making."""

    request: Request
    evidence: Evidence
    model: Model
    compared: CheckpointComparison | None
    outcomes: list[Outcome] = field(default_factory=list)
    untold: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(where, why) -> the methods without an answer for that reason."""
    refused: str | None = None

    def attempt(self, job: Job, weigh: Callable[[], Outcome]) -> None:
        """One more job, or why it has no answer: it doesn't take the page with it."""
        try:
            self.add(weigh())
        except (CannotTell, LimitExceeded, BadInput) as error:
            self.cannot(job, error)

    def add(self, outcome: Outcome) -> None:
        """One more job."""
        self.outcomes.append(outcome)

    def cannot(self, job: Job, error: WeighError) -> None:
        """A job that has no answer, and why; a model whose own code refuses is one that does not run."""
        where = error.where if isinstance(error, CannotTell) else ""
        why = ": ".join(part for part in (error.what, error.why) if part) if isinstance(error, CannotTell) else str(error)
        self.untold.setdefault((where, why), []).append(job.method)
        if isinstance(error, BadInput):
            self.refused = self.refused or str(error)

    def finish(self) -> report.Report:
        """The finished page."""
        first = self.outcomes[0].estimate if self.outcomes else None
        holes = [report.Untold(what=hole.what, where=f"{hole.file}:{hole.line}", why=hole.why) for hole in self.model.holes]
        jobless = [
            report.Untold(what=f"memory of {', '.join(methods)}", where=where, why=why) for (where, why), methods in self.untold.items()
        ]
        assumed = [text for outcome in self.outcomes for text in outcome.estimate.assumptions]
        return report.Report(
            model=_model(self.evidence, self.model, first),
            parameters=self._parameters(),
            structure=tuple(_layer(row) for row in (first.rows if first and first.rows else self.model.structure())),
            runs=True if self.outcomes else False if self.refused else None,
            does_not_run_because=None if self.outcomes else self.refused,
            jobs=tuple(_job(outcome, self.request) for outcome in self.outcomes),
            serving=next((_serving(outcome) for outcome in self.outcomes if not outcome.job.trains), None),
            assumptions=tuple(dict.fromkeys([*assumed, *self.model.notes])),
            defaulted=self.model.defaulted,
            unread=self.model.unread,
            cannot_tell=tuple(holes + jobless),
            derivations=_derivations(self.outcomes),
            warnings=tuple(self.evidence.warnings),
            weighbridge=__version__,
        )

    def _dtype(self, parameter: Parameter) -> str:
        """The type it is stored in: the header's, else the config's for floating point, else the one it was built in."""
        stored = self.evidence.tensors.tensors.get(parameter.name) if self.evidence.tensors else None
        if stored is not None and stored.dtype in BY_SAFETENSORS:
            return BY_SAFETENSORS[stored.dtype].name
        if self.model.config_dtype is not None and parameter.dtype.is_floating_point:
            return self.model.config_dtype.name
        return parameter.dtype.name

    def _parameters(self) -> report.Parameters:
        model, compared = self.model, self.compared
        trained = {outcome.job.method: outcome.estimate.trainable for outcome in self.outcomes}
        tensors = tuple(
            report.TensorFacts(name=each.name, shape=each.shape, dtype=self._dtype(each), tied_to=each.tied_to) for each in model.parameters
        )
        by_dtype: dict[str, int] = {}
        for tensor, parameter in zip(tensors, model.parameters, strict=True):
            if parameter.tied_to is None:
                by_dtype[tensor.dtype] = by_dtype.get(tensor.dtype, 0) + parameter.numel
        return report.Parameters(
            total=model.total,
            active=model.active,
            trainable=report.Trainable(full=model.trainable, lora=trained.get("lora")),
            by_dtype=by_dtype,
            checkpoint=report.Checkpoint(total=compared.total, source=compared.source, read_at=compared.read_at) if compared else None,
            delta=compared.delta if compared else None,
            explained=tuple(report.Explained(why=why, parameters=count) for why, count in _reasons(compared)),
            tensors=tensors if self.request.tensors else (),
        )


def _model(evidence: Evidence, model: Model, estimate: Estimate | None) -> report.ModelFacts:
    return report.ModelFacts(
        id=evidence.title,
        revision=evidence.revision,
        source=evidence.source,
        read_at=evidence.read_at,
        model_type=model.model_type or None,
        architecture=model.architecture or None,
        custom_code=model.custom_code,
        code_from="repository" if model.custom_code else "transformers",
        transformers=model.transformers_version or None,
        context=estimate.context_tokens if estimate else None,
        files_read=model.files_read,
    )


def _reasons(compared: CheckpointComparison | None) -> list[tuple[str, int]]:
    if compared is None:
        return []
    unexplained = [("no reason was found", compared.unexplained)] if compared.unexplained else []
    return [*compared.explained, *unexplained]


def _layer(row: Row) -> report.Layer:
    return report.Layer(
        index=row.index,
        name=row.name,
        type=row.type,
        output_shape=row.output_shape,
        parameters=row.parameters,
        flops=row.flops,
        repeat=row.repeat,
        depth=row.depth,
    )


def _job(outcome: Outcome, request: Request) -> report.JobFacts:
    job, estimate = outcome.job, outcome.estimate
    adapts = job.method == "lora"
    costs = tuple(_cost(quote) for quote in outcome.quotes)
    return report.JobFacts(
        method=job.method,
        batch=job.batch if job.trains else job.sequences,
        seq=estimate.seq_tokens,
        precision=job.precision,
        optimizer=job.optimizer if job.trains else None,
        checkpointing=job.checkpointing and job.trains,
        attention=job.attention,
        layout=None,
        gpus=1,
        loop=job.loop if job.trains else None,
        loss=job.loss if job.trains else None,
        padded=job.padded,
        lora_rank=job.lora_rank if adapts else None,
        lora_targets=job.lora_targets if adapts else None,
        adapter_dtype=adapters.dtype_of(job).name if adapts else None,
        **_memory(estimate, _page_card(request)),
        per_token_saved_bytes=estimate.saved_bytes_per_token,
        flops_per_step=estimate.flops,
        timeline=tuple(enumerate(map(int, estimate.timeline.curve))) if request.timeline else (),
        fits=tuple(_fit(fit) for fit in outcome.fits),
        run=_run(outcome, request) if job.trains else None,
        cost=min(costs, key=lambda cost: (cost.usd, cost.hours), default=None),
        fastest=min(costs, key=lambda cost: (cost.hours, cost.usd), default=None),
        costs=costs,
    )


def _page_card(request: Request) -> Card:
    """The card whose context the page's own numbers include: any card's is that of its generation."""
    return custom_card(request.memory_bytes or AMPERE_BYTES)


def _memory(estimate: Estimate, card: Card) -> dict[str, Any]:
    """Peak and breakdown: context has the card's own beside the workspaces, temporaries what the allocator holds unused."""
    footprint, peak = estimate.footprint, estimate.peak
    device = footprint.device_bytes(footprint.batch, footprint.seq_tokens, card)
    parts = {name: int(estimate.breakdown.get(name, 0)) for name in CATEGORIES}
    parts["temporaries"] += device - card.context_bytes - sum(parts.values())
    parts["context"] += card.context_bytes
    facts = report.Peak(
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=estimate.reserved_bytes,
        device_bytes=device,
        low_bytes=int(device * DEFAULT_MARGIN.low),
        high_bytes=int(device * DEFAULT_MARGIN.high),
        phase=peak.where.phase,
        module=peak.where.module,
        operation=peak.where.operation,
    )
    return {"peak": facts, "breakdown": report.Breakdown(**parts)}


def _fit(fit: Fit) -> report.FitFacts:
    return report.FitFacts(
        card=fit.card.id,
        name=fit.card.name,
        capacity_bytes=fit.card.memory_bytes,
        gpus=fit.count,
        verdict=fit.verdict,
        spare_bytes=fit.spare_bytes,
        largest_batch=fit.largest_batch,
        longest_seq=fit.longest_seq,
        remedies=tuple(report.Remedy(option=each.option, saves_bytes=each.saves_bytes) for each in fit.remedies),
    )


def _cost(quote: Quote) -> report.Cost:
    return report.Cost(
        card=quote.card.id,
        gpus=quote.gpus,
        hours=quote.hours,
        usd=quote.usd,
        low_usd=quote.low_usd,
        high_usd=quote.high_usd,
        usd_per_hour=quote.usd_per_hour,
        price_source=quote.price_source,
        price_read_at=quote.price_read_at.isoformat(),
        bound=quote.bound,
        mfu=quote.mfu,
    )


def _run(outcome: Outcome, request: Request) -> report.RunFacts:
    return report.RunFacts(
        samples=request.samples, epochs=request.epochs, tokens=request.tokens, batch=request.run_batch, steps=outcome.steps
    )


def _serving(outcome: Outcome) -> report.Serving:
    estimate = outcome.estimate
    groups = tuple(
        report.CacheFacts(layers=group.layers, kind=group.kind, bytes_per_token=group.bytes_per_token, window=group.window)
        for group in estimate.cache
    )
    growing = [group for group in groups if group.window is None or group.window > estimate.seq_tokens]
    return report.Serving(
        weights_bytes=estimate.weights_bytes,
        kv_bytes_per_token=sum(group.bytes_per_token for group in growing) if groups else None,
        kv_bytes=estimate.cache_bytes,
        context=estimate.seq_tokens,
        sequences=outcome.job.sequences,
        cache=groups,
        fits=tuple(_fit(fit) for fit in outcome.fits),
    )


def _derivations(outcomes: Sequence[Outcome]) -> tuple[report.Derivation, ...]:
    found = [(f"{outcome.job.method}: {what}", how) for outcome in outcomes for what, how in outcome.estimate.derivations]
    if outcomes:
        found.append(("temporaries", "with what the allocator reserves and does not use at the peak"))
        found.append(("context", "the card's CUDA context and the cuBLAS workspaces"))
        found.append(("low and high", f"{DEFAULT_MARGIN.low} and {DEFAULT_MARGIN.high} times the estimate: {DEFAULT_MARGIN.reason}"))
    return tuple(report.Derivation(what=what, how=how) for what, how in found)
