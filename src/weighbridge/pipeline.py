"""The whole program on one screen: request -> evidence -> model -> jobs -> cards -> prices -> report. No step changes an earlier one."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from weighbridge import assembly, checkpoint, fit, price, reading, sources, speed
from weighbridge.base.errors import CannotTell
from weighbridge.cards import Card, custom_card, find_card, load_cards
from weighbridge.jobs.alternatives import ready
from weighbridge.jobs.estimate import Estimate, estimate
from weighbridge.jobs.job import Job
from weighbridge.model import Model
from weighbridge.report import Report
from weighbridge.request import Request

Progress = Callable[[str], None]


def plan_of(request: Request, *, progress: Progress = lambda _text: None, evidence: sources.Evidence | None = None) -> Report:
    """The report of a checked request, on evidence that was found before or is found now."""
    cards = chosen_cards(request)
    draft = begin(request, progress, evidence)
    for job in request.jobs():
        progress(f"weighing {draft.evidence.title}: {job.method}")
        draft.attempt(job, partial(weigh, draft.model, job, cards, request))
    return draft.finish()


def structure_of(request: Request, *, progress: Progress = lambda _text: None) -> Report:
    """The report of a model's layers, with shapes and FLOPs where a forward pass could be played."""
    draft = begin(request, progress)
    job = next(iter(request.jobs()))
    draft.attempt(job, lambda: assembly.Outcome(job, estimate_of(draft.model, job), (), (), 0))
    return draft.finish()


def begin(request: Request, progress: Progress, evidence: sources.Evidence | None = None) -> assembly.Draft:
    """The model found, read and held against its checkpoint."""
    evidence = evidence or sources.find(request.reference, offline=request.offline, progress=progress)
    progress(f"reading the source of {evidence.title}")
    model = read_model(evidence, request)
    return assembly.Draft(request, evidence, model, checkpoint.compare(model.parameters, model.buffers, evidence))


def read_model(evidence: sources.Evidence, request: Request) -> Model:
    """The model that the evidence describes: from its source, or from a graph that was read before."""
    if evidence.graph is not None:
        return replace(reading.model_from_graph(evidence.graph), title=evidence.title)
    path = str(request.transformers) if request.transformers else None
    return reading.read(evidence, transformers_path=path)


def estimate_of(model: Model, job: Job) -> Estimate:
    """The job played on phantoms; CannotTell for a model that came without its code."""
    if model.root is None:
        raise CannotTell("only the read model is at hand, not its code", hint="give the repository's folder")
    return estimate(model, job)


def weigh(model: Model, job: Job, cards: tuple[Card, ...], request: Request) -> assembly.Outcome:
    """One job: its memory, every card that was asked for, and what the run costs on those that fit."""
    estimate = estimate_of(model, job)
    options = estimate.alternatives if request.asks_yes_or_no else ready(estimate.alternatives)
    fits = fit.fit_cards(estimate.footprint, cards, context_tokens=estimate.context_tokens, alternatives=options)
    roomy = [each.card for each in fits if each.verdict == "fits"]
    quotes = quotes_of(estimate, roomy, request) if job.trains else ()
    return assembly.Outcome(job, estimate, fits, quotes, steps_of(estimate, request) if job.trains else 0)


def chosen_cards(request: Request) -> tuple[Card, ...]:
    """The cards named, or all that are known."""
    named = tuple(find_card(name) for name in request.cards)
    given = (custom_card(request.memory_bytes),) if request.memory_bytes is not None else ()
    return named + given or load_cards()


def steps_of(estimate: Estimate, request: Request) -> int:
    """Optimizer steps of the run that is priced."""
    if request.tokens is not None:
        return price.steps_of_tokens(request.tokens, request.run_batch, estimate.seq_tokens)
    assert request.samples is not None
    assert request.epochs is not None
    return price.steps_of_samples(request.samples, request.epochs, request.run_batch)


def quotes_of(estimate: Estimate, cards: list[Card], request: Request) -> tuple[price.Quote, ...]:
    """What the run costs on each of these cards that somebody rents out."""
    offers = price.read_offers(request.prices) if request.prices else price.load_offers()
    costs = estimate.costs_of(request.run_batch)
    steps = steps_of(estimate, request)
    return price.quotes(cards, offers, lambda card: speed.step_time(costs, card, dtype=estimate.compute_dtype), steps)
