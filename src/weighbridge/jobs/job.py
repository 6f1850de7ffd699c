"""Job: what is asked of a model, with the defaults of the page, and what its options may be."""

from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from weighbridge.base.errors import UsageError

DEFAULT_SEQ_TOKENS: Final = 2048
DEFAULT_CONTEXT_TOKENS: Final = 4096

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "method": ("full", "lora", "serve"),
    "precision": ("bf16-amp", "fp16-amp", "bf16", "fp32"),
    "optimizer": ("adamw-fused", "adamw-foreach", "sgd"),
    "loop": ("trainer", "plain"),
    "attention": ("sdpa", "flash", "eager"),
    "loss": ("full",),
}
"""Options with a fixed set of values, and the values that are priced."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Types of a job: of trained weights, of a frozen base under adapters, and of autocast (None: off)."""

    weights: DType
    frozen: DType
    autocast: DType | None


PRECISIONS: Final[dict[str, Precision]] = {
    "bf16-amp": Precision(FLOAT32, BFLOAT16, BFLOAT16),
    "fp16-amp": Precision(FLOAT32, FLOAT16, FLOAT16),
    "bf16": Precision(BFLOAT16, BFLOAT16, None),
    "fp32": Precision(FLOAT32, FLOAT32, None),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `seq_tokens` and `context` of None mean: the default or the model's context when that is shorter."""

    method: str = "full"
    batch: int = 1
    seq_tokens: int | None = None
    precision: str = "bf16-amp"
    optimizer: str = "adamw-fused"
    loop: str = "trainer"
    checkpointing: bool = False
    attention: str = "sdpa"
    loss: str = "full"
    lora_rank: int = 16
    lora_targets: str = "all-linear"
    adapter_dtype: str | None = None
    padded: bool = False
    context: int | None = None
    sequences: int = 1
    kv_dtype: str | None = None

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            value = getattr(self, option)
            if value not in choices:
                flag = option.replace("_", "-")
                raise UsageError(f"--{flag} {str(value)[:40]!r} is not priced", f"choose one of {', '.join(choices)}")
        for option in ("batch", "lora_rank", "sequences", "seq_tokens", "context"):
            value = getattr(self, option)
            if value is not None and not 1 <= value <= 1 << 31:
                raise UsageError(f"--{option.replace('_', '-')} must be at least 1, not {value}", "give a whole number")

    @property
    def types(self) -> Precision:
        """The dtypes that `precision` stands for."""
        return PRECISIONS[self.precision]

    @property
    def trains(self) -> bool:
        """Whether the job runs backward and an optimizer."""
        return self.method != "serve"

    def but(self, **changes: Any) -> "Job":
        """The same job with other options."""
        return replace(self, **changes)
