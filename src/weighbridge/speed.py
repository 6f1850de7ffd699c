"""Speed: the time of a step from what its operations cost, with efficiencies fitted to published runs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final, Literal

from weighbridge.base.errors import BadInput, UsageError
from weighbridge.base.strict import StrictTable
from weighbridge.cards import TABLES, Card

Bound = Literal["compute", "memory", "communication"]
#: (kind, torch dtype, FLOPs, bytes moved) -> how many times, as a phantom session counts them.
Costs = Mapping[tuple[str, str, int, int], int]

#: Kinds that run on the matrix units; all others are limited by memory whatever their FLOPs.
MATRIX_KINDS: Final = frozenset({"matmul", "conv", "attention"})
#: The least time of a kernel on the device: a launch and an empty kernel take 2 to 4 microseconds on every CUDA card.
KERNEL_SECONDS: Final = 3e-6
#: How much of the host's time per operation is left where the step is compiled or captured in a CUDA graph.
COMPILED_HOST_SHARE: Final = 0.2
_LARGEST_SHARE: Final = {"matrix_share": 1.0, "attention_share": 2.0, "memory_share": 1.0}


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How much of a card's data sheet one generation reaches.

    A matrix multiplication of n FLOPs runs at `matrix_share * n / (n + matrix_half_flops)` of the dense peak, fused attention at
    `attention_share` of it (which may pass 1: FLOPs are those of the whole square, of which a causal kernel skips half), everything
    else at `memory_share` of the bandwidth; the host needs `host_seconds` an operation and runs ahead of the device.

    `low` and `high` are the tenth and ninetieth percentiles of measured over predicted time on runs that the fit had not seen, by
    architecture.
    """

    generation: str
    matrix_share: float
    matrix_half_flops: float
    attention_share: float
    memory_share: float
    host_seconds: float
    low: float
    high: float
    rows: int
    architectures: int
    median_error: float
    p95_error: float
    borrowed_from: str
    source: str
    read_at: date


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one optimizer step: the middle and the ends of the range; what limits it; the share of the peak that is model work."""

    low_seconds: float
    likely_seconds: float
    high_seconds: float
    bound: Bound
    mfu: float


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Where the time goes: seconds limited by the matrix units, by memory, and the host's seconds that run beside them."""

    compute_seconds: float
    memory_seconds: float
    host_seconds: float

    @property
    def seconds(self) -> float:
        """The host runs ahead of the device: the longer of the two decides."""
        return max(self.compute_seconds + self.memory_seconds, self.host_seconds)


@cache
def load_efficiencies() -> Mapping[str, Efficiency]:
    """The fitted table, by generation."""
    path = TABLES / "efficiency" / "training.toml"
    return {
        name: _efficiency(name, StrictTable(values, f"{path.name} [{name}]"))
        for name, values in tomllib.loads(path.read_text("utf-8")).items()
    }


def step_time(costs: Costs, card: Card, *, model_flops: int = 0, dtype: str = "bfloat16", compiled: bool = False) -> StepTime:
    """The time of one step on one card.

    `model_flops` are the FLOPs of the model alone, without recomputation (three times the forward pass); where it is 0, all
    matrix FLOPs of the step stand for it. `dtype` is the type whose peak mfu is measured against.
    """
    if not card.has_known_speed:
        raise UsageError(f"{card.name}: only its memory is known, so no time can be said", "name a card: --card h100-sxm")
    efficiency = load_efficiencies()[card.generation]
    device = device_time(costs, card, efficiency, compiled=compiled)
    work = model_flops or sum(flops * count for (kind, _, flops, _), count in costs.items() if kind in MATRIX_KINDS)
    seconds = device.seconds
    return StepTime(
        low_seconds=seconds * efficiency.low,
        likely_seconds=seconds,
        high_seconds=seconds * efficiency.high,
        bound="compute" if device.compute_seconds > device.memory_seconds and seconds > device.host_seconds else "memory",
        mfu=work / seconds / card.peak_flops(dtype) if seconds else 0.0,
    )


def device_time(costs: Costs, card: Card, efficiency: Efficiency, *, compiled: bool = False) -> DeviceTime:
    """Each operation takes the longest of its arithmetic, its traffic and an empty kernel's time."""
    compute = memory = 0.0
    operations = 0
    bandwidth = card.bandwidth_bytes_per_second * efficiency.memory_share
    for (kind, dtype, flops, moved), count in costs.items():
        moving = max(moved / bandwidth, KERNEL_SECONDS)
        computing = flops / (card.peak_flops(dtype) * matrix_share(kind, flops, efficiency)) if flops and kind in MATRIX_KINDS else 0.0
        operations += count
        if computing > moving:
            compute += computing * count
        else:
            memory += moving * count
    host = operations * efficiency.host_seconds * (COMPILED_HOST_SHARE if compiled else 1.0)
    return DeviceTime(compute, memory, host)


def matrix_share(kind: str, flops: int, efficiency: Efficiency) -> float:
    """The share of the dense peak that one operation of so many FLOPs reaches."""
    if kind == "attention":
        return efficiency.attention_share
    return efficiency.matrix_share * flops / (flops + efficiency.matrix_half_flops)


def _efficiency(name: str, table: StrictTable) -> Efficiency:
    shares = {key: table.number(key) for key in _LARGEST_SHARE}
    if not all(0 < share <= _LARGEST_SHARE[key] for key, share in shares.items()):
        raise BadInput(f"{table.where}: a share is above 0 and at most 1, attention's at most 2")
    efficiency = Efficiency(
        generation=name,
        **shares,
        matrix_half_flops=table.number("matrix_half_flops"),
        host_seconds=table.number("host_seconds"),
        low=table.number("low"),
        high=table.number("high"),
        rows=table.take("rows", int),
        architectures=table.take("architectures", int),
        median_error=table.number("median_error"),
        p95_error=table.number("p95_error"),
        borrowed_from=table.maybe("borrowed_from", str, ""),
        source=table.take("source", str),
        read_at=table.day("read_at"),
    )
    table.finish()
    return efficiency
