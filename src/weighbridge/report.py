"""Report: the finished facts about a model and its jobs, nothing left to compute. The only thing a format ever sees.

The fields are the document `weighbridge.plan/1`, word for word and in its order; formats/schema holds its JSON Schema, which is
made from these classes. Bytes are integers; a number nobody could tell is None, never a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

SCHEMA = "weighbridge.plan/1"

Verdict = Literal["fits", "unsure", "does not fit"]
Bound = Literal["compute", "memory", "communication"]
Severity = Literal["block", "warn", "info"]


class Document:
    """A part of the document; the strings under its fields become the schema's descriptions."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"use_attribute_docstrings": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts(Document):
    """Which model was read, from where and when."""

    id: str
    """The name it was asked for by, without the revision."""
    revision: str | None
    """The commit that was read, where the source has one."""
    source: str
    """hub, catalogue, folder, file, stdin, gguf, trace or graph."""
    read_at: str | None
    """The day the source was read."""
    model_type: str | None
    architecture: str | None
    """The class that was built."""
    custom_code: bool
    """True where the repository brings its own modelling code, which is read as text and never run."""
    code_from: str | None
    """repository or transformers: whose modelling source was read."""
    transformers: str | None
    """The version of transformers whose source was read."""
    context: int | None
    """The longest sequence the config allows, in tokens."""
    files_read: tuple[str, ...] = ()
    """Every source file that was read, by its short name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainable(Document):
    """Parameters that get a gradient, by method."""

    full: int | None
    lora: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Document):
    """The publisher's own count of parameters."""

    total: int
    source: str
    """Where the count stands: a safetensors header, an index, the Hub's page."""
    read_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Document):
    """A known reason for a difference to the checkpoint."""

    why: str
    parameters: int
    """What the checkpoint has more (positive) or less (negative) than the built model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts(Document):
    """One parameter."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    tied_to: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters(Document):
    """Parameters of the built model, tied ones counted once."""

    total: int
    active: int | None
    """Parameters one token touches; fewer than total where experts are routed."""
    trainable: Trainable
    by_dtype: Mapping[str, int]
    """Parameters by the type they are published in."""
    checkpoint: Checkpoint | None
    delta: float | None
    """(ours - checkpoint) / checkpoint, after nothing was explained away."""
    explained: tuple[Explained, ...] = ()
    tensors: tuple[TensorFacts, ...] = ()
    """Filled with --tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(Document):
    """One row of the structure; repeated blocks are one row."""

    index: str
    """The position in the tree: 0.3.1 is the second inside the fourth inside the first."""
    name: str
    type: str
    output_shape: tuple[int, ...] | None
    parameters: int
    """Of one of the repeats, with everything inside it."""
    flops: int | None
    """Of one forward pass of one of the repeats at the page's batch and length."""
    repeat: int
    depth: int = 0
    """How deep the row sits under the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(Document):
    """The moment of most memory in a step."""

    allocated_bytes: int
    """What tensors hold."""
    reserved_bytes: int
    """What the caching allocator has taken from the driver for them."""
    device_bytes: int
    """What the driver reports: reserved, and the CUDA context."""
    low_bytes: int
    high_bytes: int
    phase: str
    """forward, backward, recompute, optimizer ..."""
    module: str
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown(Document):
    """What holds the device's memory at the peak; sums to device_bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    loss: int
    temporaries: int
    cache: int
    context: int
    """The CUDA context, workspaces and what the allocator holds beside the tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy(Document):
    """A single change that makes the job fit."""

    option: str
    saves_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFacts(Document):
    """One job on one card."""

    card: str
    """The card's id, as --card takes it."""
    name: str
    capacity_bytes: int
    """What its driver reports, not its label."""
    gpus: int
    verdict: Verdict
    spare_bytes: int
    """Capacity minus the estimate; negative where it does not fit."""
    largest_batch: int
    """At the length asked; 0 where not even one fits."""
    longest_seq: int
    """At the batch asked; 0 where none fits."""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Document):
    """What the run takes on one card."""

    card: str
    gpus: int
    hours: float
    usd: float
    low_usd: float
    high_usd: float
    usd_per_hour: float
    price_source: str
    price_read_at: str
    bound: Bound
    """What limits the step's speed."""
    mfu: float
    """The share of the card's dense peak that is model work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts(Document):
    """The run that hours and dollars are for."""

    samples: int | None
    epochs: float | None
    tokens: int | None
    batch: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts(Document):
    """One method: its options, its memory, the cards it fits and its cost."""

    method: str
    batch: int
    seq: int
    """Tokens of a sample; for serving the context."""
    precision: str
    optimizer: str | None
    checkpointing: bool
    attention: str
    layout: str | None
    gpus: int
    loop: str | None
    loss: str | None
    padded: bool
    lora_rank: int | None
    lora_targets: str | None
    adapter_dtype: str | None
    peak: Peak
    breakdown: Breakdown
    per_token_saved_bytes: float | None
    """What one more token of the batch keeps for the backward pass."""
    flops_per_step: int | None
    timeline: tuple[tuple[int, int], ...] = ()
    """(event index, allocated bytes), filled with --timeline."""
    fits: tuple[FitFacts, ...] = ()
    run: RunFacts | None = None
    cost: Cost | None = None
    """The cheapest of `costs`."""
    fastest: Cost | None = None
    """The one of `costs` with the fewest hours."""
    costs: tuple[Cost, ...] = ()
    """One for each card that fits and has a price, the cheapest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFacts(Document):
    """What one group of like layers keeps of the past."""

    layers: int
    kind: str
    """full, sliding, chunked, latent, cross, fixed state; with a plus where a layer keeps more than one."""
    bytes_per_token: int
    """Of all these layers together, while the window is not full."""
    window: int | None
    """Tokens after which it stops growing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Document):
    """Weights and cache for generating text."""

    weights_bytes: int
    kv_bytes_per_token: int | None
    """The next token's growth of the cache, all layers."""
    kv_bytes: int | None
    """Of all sequences at the whole context."""
    context: int
    sequences: int
    cache: tuple[CacheFacts, ...] = ()
    fits: tuple[FitFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFacts(Document):
    """What a rule of the verifier has to say."""

    rule: str
    severity: Severity
    place: str
    message: str
    fix: str | None
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold(Document):
    """A question without an answer, and why."""

    what: str
    where: str
    """file:line of the model's source, or empty."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy(Document):
    """How wrong such estimates have been on measured runs."""

    ledger_runs: int
    median_error: float
    false_fit_rate: float
    false_refusal_rate: float
    held_out_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation(Document):
    """How a number on the page came about; shown with --explain."""

    what: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Document):
    """The plan document."""

    schema: str = SCHEMA
    model: ModelFacts
    parameters: Parameters
    structure: tuple[Layer, ...] = ()
    runs: bool | None
    """Whether a forward pass goes through; None where it could not be tried."""
    does_not_run_because: str | None
    jobs: tuple[JobFacts, ...] = ()
    """One for each method asked; a method that could not be told is in cannot_tell instead."""
    serving: Serving | None = None
    findings: tuple[FindingFacts, ...] = ()
    assumptions: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    """Config keys that were missing and filled by the class."""
    unread: tuple[str, ...] = ()
    """Config keys that nothing looked at."""
    cannot_tell: tuple[Untold, ...] = ()
    accuracy: Accuracy | None = None
    derivations: tuple[Derivation, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the reader should know about the sources: an unreachable Hub, a skipped file."""
    weighbridge: str
