"""What one training step does, and what was found: plain data, no torch."""

from dataclasses import asdict, dataclass, field
from typing import Any

# precision -> (weights of full training, frozen weights under adapters, autocast type)
PRECISIONS: dict[str, tuple[str, str, str | None]] = {
    "amp": ("float32", "bfloat16", "bfloat16"),
    "fp16": ("float32", "float16", "float16"),
    "bf16": ("bfloat16", "bfloat16", None),
    "fp32": ("float32", "float32", None),
}


@dataclass(frozen=True, slots=True)
class StepJob:
    """A step of a Trainer.

    `attention` None is the class's own default. `inputs` (name -> {shape, dtype, runs} or {literal}) overrides those made from the config.
    """

    method: str = "full"
    precision: str = "amp"
    optimizer: str = "adamw-fused"
    batch: int = 1
    seq_tokens: int = 512
    checkpointing: bool = False
    attention: str | None = None
    padded: bool = False
    lora_rank: int = 16
    lora_targets: str = "all-linear"
    clip: float | None = 1.0
    outputs_kept: bool = False
    inputs: dict[str, Any] | None = None

    @property
    def weights(self) -> str:
        """The type the base model's weights have."""
        full, frozen, _ = PRECISIONS[self.precision]
        return frozen if self.method == "lora" else full

    @property
    def autocast(self) -> str | None:
        """The type operations are cast to, None without autocast."""
        return PRECISIONS[self.precision][2]

    @property
    def floating(self) -> str:
        """The type of pixels and sounds: they come as float32 unless the whole model is narrower."""
        return "bfloat16" if self.precision == "bf16" else "float32"


@dataclass(slots=True)
class Simulation:
    """What a simulated step took. Bytes requested by tensors, allocated in whole blocks, reserved in whole segments."""

    parameters: int
    trainable: int
    peak_requested_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    held_before_forward_bytes: int
    held_after_forward_bytes: int
    peak_phase: str
    peak_module: str
    peak_operation: str
    peak_node: str
    live_at_peak: dict[str, int]
    attention: str
    attention_kernels: dict[str, int]
    unknown_values: list[str]
    operations: int
    cpu_seconds: float
    inputs: dict[str, Any]
    events: list[Any] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All but the events."""
        return {key: value for key, value in asdict(self).items() if key != "events"}
