"""Words: how facts of a report are worded, the same on every page that people read. Every name from outside is made printable here."""

from collections.abc import Iterable
from typing import Final

from weighbridge.base.text import printable
from weighbridge.base.units import count, decimal, duration, gib
from weighbridge.report import Accuracy, Cost, FindingFacts, FitFacts, JobFacts, Layer, Report, RunFacts, Serving, Untold

TITLES: Final = {"full": "full fine-tune", "lora": "LoRA", "qlora": "QLoRA", "serve": "serving"}
SYMBOLS: Final = {"fits": "✓", "unsure": "?", "does not fit": "✗"}
CATEGORIES: Final = ("weights", "gradients", "optimizer", "activations", "loss", "temporaries", "cache", "context")
SOURCES: Final = {
    "hub": "the Hub", "catalogue": "the shipped catalogue", "stdin": "standard input", "gguf": "a GGUF file", "graph": "a graph file",
}  # fmt: skip
FEW_CARDS: Final = 3
"""Cards up to which a page says what would make each fit."""
LEGEND: Final = "✓ fits  ? unsure  ✗ does not fit, at the batch asked; the number is the largest batch (serving: sequences)"


def method_title(job: JobFacts) -> str:
    """The method as a heading says it."""
    return TITLES.get(job.method, printable(job.method))


def both(size_bytes: int) -> str:
    """`16.4 GB (15.3 GiB)`."""
    return f"{decimal(size_bytes)} ({gib(size_bytes)})"


def heading(report: Report) -> str:
    """The name and the revision."""
    revision = f" @ {printable(report.model.revision, 40)}" if report.model.revision else ""
    return printable(report.model.id, 120) + revision


def origin(report: Report) -> str:
    """Class, and where and when it was read."""
    model = report.model
    where = SOURCES.get(model.source, f"a {printable(model.source)}")
    read = f"read from {where}" + (f", {printable(model.read_at)}" if model.read_at else "")
    names = [printable(name) for name in (model.architecture, model.model_type) if name]
    return " · ".join([*names, read])


def code(report: Report) -> str:
    """Whose modelling source was read, and that it was not run."""
    model = report.model
    if model.code_from == "repository":
        version = f"; the rest from transformers {printable(model.transformers)}" if model.transformers else ""
        return f"custom code of the repository, read as text and not run{version}"
    if model.code_from == "transformers":
        return f"modelling source of transformers {printable(model.transformers or '?')}, read as text and not run"
    return "no modelling source was read"


def against_checkpoint(report: Report) -> str:
    """The published count, the difference, and where it was found."""
    parameters = report.parameters
    if parameters.checkpoint is None:
        return "no published count to hold it against"
    dated = f", {printable(parameters.checkpoint.read_at)}" if parameters.checkpoint.read_at else ""
    return f"checkpoint {parameters.checkpoint.total:,} ({printable(parameters.checkpoint.source)}{dated})"


def delta(report: Report) -> str:
    """The difference to the checkpoint: `delta 0`, or a signed count and share."""
    parameters = report.parameters
    if parameters.checkpoint is None:
        return ""
    difference = parameters.total - parameters.checkpoint.total
    return "delta 0" if difference == 0 else f"delta {difference:+,} ({100 * (parameters.delta or 0.0):+.3g} %)"


def explained(report: Report) -> list[str]:
    """Each known reason for the difference."""
    return [f"{each.parameters:+,} in the checkpoint: {printable(each.why)}" for each in report.parameters.explained]


def parameter_facts(report: Report) -> list[str]:
    """Active and trainable counts and types, where they say more than the total."""
    parameters = report.parameters
    facts = [f"{number:,} {printable(name, 40)}" for name, number in parameters.by_dtype.items()]
    if parameters.active is not None and parameters.active != parameters.total:
        facts.append(f"{parameters.active:,} active for one token")
    if parameters.trainable.lora is not None:
        facts.append(f"{parameters.trainable.lora:,} trained by LoRA")
    return facts


def settings(job: JobFacts) -> str:
    """The options that the job's numbers hang on."""
    if job.method == "serve":
        return f"{job.batch} × {job.seq:,} tokens, {job.precision}, {job.attention}"
    parts = [f"batch {job.batch} × {job.seq:,} tokens", job.precision, job.optimizer or "", job.attention]
    parts.append("checkpointing" if job.checkpointing else "no checkpointing")
    if job.lora_rank is not None:
        parts.append(f"rank {job.lora_rank} on {printable(job.lora_targets or '?', 60)}, {job.adapter_dtype} adapters")
    parts += ["padded"] * job.padded + [f"{job.loss} loss"] * (job.loss not in {None, "full"})
    return ", ".join(part for part in parts if part)


def peak_place(job: JobFacts) -> str:
    """Where in the step the peak is."""
    peak = job.peak
    named = [printable(part, 80) for part in (peak.phase, peak.module, peak.operation) if part]
    return " › ".join(named) or "unknown"


def peak_range(job: JobFacts) -> str:
    """Low to high."""
    return f"{decimal(job.peak.low_bytes)} to {decimal(job.peak.high_bytes)}"


def fit_cell(fit: FitFacts) -> str:
    """Symbol and largest batch: `✓ 12`."""
    return f"{SYMBOLS[fit.verdict]} {fit.largest_batch:,}" if fit.largest_batch else f"{SYMBOLS[fit.verdict]} –"


def remedies(fit: FitFacts) -> str:
    """The single changes that make it fit."""
    return ", ".join(f"{printable(each.option, 40)} (saves {decimal(each.saves_bytes)})" for each in fit.remedies)


def help_lines(report: Report) -> list[str]:
    """What would make each card fit, where only a few were asked."""
    if len({fit.card for job in report.jobs for fit in job.fits}) > FEW_CARDS:
        return []
    wanted = [(job, fit) for job in report.jobs for fit in job.fits if fit.remedies]
    return [f"{printable(fit.name, 40)}, {method_title(job)}: would fit with {remedies(fit)}" for job, fit in wanted]


def run(facts: RunFacts) -> str:
    """What the hours are for."""
    data = f"{facts.tokens:,} tokens" if facts.tokens is not None else f"{facts.epochs or 0:g} epochs over {facts.samples or 0:,} samples"
    return f"{data} at batch {facts.batch}: {facts.steps:,} steps"


def dollars(cost: Cost) -> str:
    """The amount and its range."""
    return f"${cost.usd:,.2f} (${cost.low_usd:,.2f} to ${cost.high_usd:,.2f})"


def rate(cost: Cost) -> str:
    """Price and speed behind it."""
    return f"${cost.usd_per_hour:,.2f} an hour, {cost.bound} bound, {cost.mfu:.0%} of peak"


def price_source(cost: Cost) -> str:
    """Who asked that price, and when it was read."""
    return f"{printable(cost.price_source)}, {printable(cost.price_read_at)}"


def hours(cost: Cost) -> str:
    """`41.2 h`."""
    return duration(cost.hours)


def cards(cost: Cost) -> str:
    """`2 x h100-sxm`, or the card alone."""
    name = printable(cost.card, 40)
    return f"{cost.gpus} × {name}" if cost.gpus > 1 else name


def shape(layer: Layer) -> str:
    """The output's sizes in a row."""
    return "×".join(str(size) for size in layer.output_shape) if layer.output_shape is not None else ""


def layer_flops(layer: Layer) -> str:
    """FLOPs of one pass, short."""
    return count(layer.flops) if layer.flops else ""


def serving(facts: Serving) -> list[str]:
    """Weights and cache, a line each."""
    lines = [f"weights {both(facts.weights_bytes)}"]
    if facts.kv_bytes_per_token is not None:
        lines.append(f"cache {facts.kv_bytes_per_token:,} bytes a token")
    if facts.kv_bytes is not None:
        lines.append(f"cache at {facts.sequences} × {facts.context:,} tokens {both(facts.kv_bytes)}")
    for group in facts.cache:
        window = f", window {group.window:,} tokens" if group.window is not None else ""
        lines.append(f"{group.layers} {printable(group.kind, 40)} layers: {group.bytes_per_token:,} bytes a token{window}")
    return lines


def untold(each: Untold) -> str:
    """What cannot be told, where and why."""
    place = f" ({printable(each.where, 120)})" if each.where else ""
    return f"{printable(each.what)}: {printable(each.why)}{place}"


def listed(names: Iterable[str]) -> str:
    """Names in a row."""
    return ", ".join(printable(name, 60) for name in names)


def runs(report: Report) -> str | None:
    """Why a forward pass does not go through, where it does not."""
    if report.runs is False:
        return f"it does not run: {printable(report.does_not_run_because or 'no reason was found')}"
    return None


def finding(each: FindingFacts) -> str:
    """What a rule says, where, and what to do."""
    fix = f" ({printable(each.fix)})" if each.fix else ""
    return f"{each.severity}: {printable(each.place)}: {printable(each.message)}{fix}"


def accuracy(facts: Accuracy) -> str:
    """How wrong such pages have been."""
    return (
        f"{facts.ledger_runs} measured runs: median error {facts.median_error:.2%}, said to fit and did not {facts.false_fit_rate:.1%}, "
        f"refused and would have fit {facts.false_refusal_rate:.1%}, held out by {printable(facts.held_out_by)}"
    )


def provenance(report: Report) -> str:
    """Who says all this, from what."""
    read = f" · {len(report.model.files_read)} source files read" if report.model.files_read else ""
    return f"weighbridge {printable(report.weighbridge)} · {code(report)}{read}"
