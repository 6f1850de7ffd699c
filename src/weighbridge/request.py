"""Request: what one user wants to know, checked and complete. Every door says it with the same words."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from weighbridge.base.errors import UsageError
from weighbridge.base.text import printable
from weighbridge.base.units import parse_bytes
from weighbridge.jobs.job import CHOICES, Job

METHODS: Final = ("full", "lora", "serve")
SAMPLES, EPOCHS, RUN_BATCH = 50_000, 10.0, 32
"""The run that hours and dollars are for, where nothing else was said."""

LATER: Final[dict[str, tuple[str, ...]]] = {
    "method": ("qlora",),
    "optimizer": ("adamw-8bit", "paged-adamw-8bit", "adafactor", "lion", "muon"),
    "loss": ("chunked", "fused"),
    "layout": ("ddp", "fsdp", "zero1", "zero2", "zero3", "pipeline", "tensor"),
    "engine": ("vllm", "sglang", "llama.cpp"),
}
"""Values that are known and not yet priced."""

ONLY: Final[dict[str, tuple[object, ...]]] = {"gpus": (1,), "layout": (None,), "offload": (False, None), "engine": ("transformers",)}
"""Options outside a Job, and what is priced of them."""


class Options(TypedDict, total=False):
    """The options of a plan, as keywords; the command's flags with underscores."""

    method: str | Iterable[str]
    batch: int
    seq: int
    precision: str
    optimizer: str
    loop: str
    checkpointing: bool
    attention: str
    loss: str
    lora_rank: int
    lora_targets: str
    adapter_dtype: str
    padded: bool
    gpus: int
    layout: str
    offload: bool
    context: int
    sequences: int
    kv_dtype: str
    engine: str
    card: str | Iterable[str]
    memory: str | int
    samples: int
    epochs: float
    tokens: int
    prices: str | Path
    offline: bool
    transformers: str | Path
    tensors: bool
    timeline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model, the methods, the job they share, and what to hold it against."""

    reference: str
    methods: tuple[str, ...] = METHODS
    job: Job = field(default_factory=Job)
    cards: tuple[str, ...] = ()
    """Names of cards; empty for all that are known."""
    memory_bytes: int | None = None
    samples: int | None = SAMPLES
    epochs: float | None = EPOCHS
    tokens: int | None = None
    run_batch: int = RUN_BATCH
    prices: Path | None = None
    offline: bool = False
    transformers: Path | None = None
    tensors: bool = False
    timeline: bool = False

    @property
    def asks_yes_or_no(self) -> bool:
        """True where a card was named, so that not fitting is an answer of no."""
        return bool(self.cards) or self.memory_bytes is not None

    def jobs(self) -> Iterable[Job]:
        """The job, once for each method."""
        return (self.job.but(method=method) for method in self.methods)


def make_request(reference: str, **options: Unpack[Options]) -> Request:
    """A checked request from a door's words; options of None count as not given. UsageError says what may be asked."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    _known_names(given)
    methods = _texts(given.pop("method", ())) or METHODS
    for method in methods:
        _priced("method", method)
        Job(method=method)
    for name in ("optimizer", "loss", "layout", "engine"):
        _priced(name, given.get(name))
    for name, allowed in ONLY.items():
        value = given.pop(name, allowed[0])
        if value not in allowed:
            raise UsageError(f"--{name} {value} is not yet priced", f"available: one card with everything on it; leave out --{name}")
    job_options = {_JOB_NAMES.get(name, name): given.pop(name) for name in list(given) if _JOB_NAMES.get(name, name) in _JOB_FIELDS}
    return Request(
        reference=reference,
        methods=tuple(dict.fromkeys(methods)),
        job=Job(**job_options),
        cards=_texts(given.pop("card", ())),
        memory_bytes=_size(given.pop("memory", None)),
        run_batch=max(RUN_BATCH, job_options.get("batch", 1)),
        **_run(given),
        **_paths(given),
        **given,
    )


_JOB_NAMES: Final = {"seq": "seq_tokens"}
_JOB_FIELDS: Final = frozenset(each.name for each in fields(Job)) - {"method"}


def _known_names(given: dict[str, Any]) -> None:
    for name in given:
        if name not in Options.__annotations__:
            near = difflib.get_close_matches(name, Options.__annotations__, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see weigh plan --help"
            raise UsageError(f"there is no option {printable(name, 40)!r}", hint)


def _priced(name: str, value: object) -> None:
    """Refuse what is known but has no number yet, naming what has one."""
    if value in LATER[name]:
        available = ", ".join(CHOICES.get(name, ())) or ", ".join(str(each) for each in ONLY[name] if each) or "nothing else yet"
        raise UsageError(f"--{name} {value} is not yet priced", f"available: {available}")


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _size(value: str | int | None) -> int | None:
    return parse_bytes(value) if isinstance(value, str) else value


def _run(given: dict[str, Any]) -> dict[str, Any]:
    """Tokens, or samples and epochs: not both."""
    tokens, samples, epochs = (given.pop(name, None) for name in ("tokens", "samples", "epochs"))
    for name, value in (("tokens", tokens), ("samples", samples), ("epochs", epochs)):
        if value is not None and not 0 < value < 1 << 60:
            raise UsageError(f"--{name} must be above zero, not {value}", "give a number above zero")
    if tokens is None:
        return {"samples": samples or SAMPLES, "epochs": epochs or EPOCHS}
    if samples is not None or epochs is not None:
        raise UsageError("--tokens says how long the run is, and so do --samples and --epochs", "give one of the two")
    return {"tokens": tokens, "samples": None, "epochs": None}


def _paths(given: dict[str, Any]) -> dict[str, Any]:
    return {name: Path(given.pop(name)) for name in ("prices", "transformers") if name in given}
