"""What a quantized checkpoint stores beside and instead of our weights: scales, and 4-bit values two to a byte.

Only from the quantization's own description in the config; names that it excludes are excluded here.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.checkpoint.inventory import Inventory, Shape
from weighbridge.checkpoint.search import Choice, Group

NOT_LINEAR: Final = re.compile(
    r"(?:^|[._])(?:embed\w*|wte|wpe|norm\w*|\w*norm|lm_head|embed_out|conv\w*|patch_embed\w*|pos_embed\w*|router|gate|shared_expert_gate|weights_proj|bias)(?:\.weight)?$"
)
PREFIX: Final = re.compile(r"^(?:model\.|language_model\.)+")
FEED_FORWARD: Final = re.compile(r"(?:^|\.)(?:ffn|block_sparse_moe|feed_forward|moe)\.")
PARTS: Final = {"": re.compile(""), " of the experts": re.compile(r"\.experts\."), " of the feed-forward layers": re.compile(r"\.mlp\.")}
WORD_BITS: Final = {"gptq": 32, "awq": 32, "compressed-tensors": 32, "mxfp4": 8, "bitsandbytes": 8}
WIDTHS, GROUPS = ("bits", "w_bit", "num_bits"), ("group_size", "q_group_size")
FIXED: Final = {"mxfp4": (4, 32), "bitsandbytes": (4, 64), "gptq": (4, 128), "awq": (4, 128)}
"""Width and group where the format, or its library's default, settles them."""
PACKED_ALGORITHMS: Final = ("NVFP4", "W4A16_NVFP4")


@dataclass(frozen=True, slots=True)
class Linear:
    """One stored matrix of a linear layer, `count` times (experts that our class keeps in one tensor are apart on disk)."""

    module: str
    rows: int
    columns: int
    count: int = 1

    @property
    def numel(self) -> int:
        """Weights of all copies."""
        return self.rows * self.columns * self.count

    def blocks(self, block: tuple[int, int]) -> int:
        """Scales of all copies where each block of this size has one."""
        return -(-self.rows // block[0]) * -(-self.columns // block[1]) * self.count


def linears(shapes: Mapping[str, Shape], hidden: int) -> Iterator[Linear]:
    """The matrices of linear layers among our parameters, as a checkpoint holds them."""
    for name, shape in shapes.items():
        if len(shape) == 2 and name.endswith(".weight") and not NOT_LINEAR.search(name):
            yield Linear(name.removesuffix(".weight"), *shape)
        elif len(shape) == 3 and "expert" in name and not name.endswith("bias"):
            experts, rows, columns = shape
            fused = "gate_up" in name
            if (rows == hidden) if fused else (columns == hidden and rows != hidden):
                rows, columns = columns, rows
            yield Linear(name, rows // 2 if fused else rows, columns, experts * (2 if fused else 1))


class Excluded:
    """Modules that a quantization leaves alone: exact names, name parts and patterns of the config's list."""

    def __init__(self, quantization: Mapping[str, Any]) -> None:
        patterns = [
            pattern
            for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
            for pattern in (quantization.get(key) or ())
            if isinstance(pattern, str) and len(pattern) < 300
        ][:5000]
        plain = [_canonical(pattern) for pattern in patterns if not re.search(r"[*?\[\\^$]|^re:", pattern)]
        self.names = frozenset(plain)
        globs = [_canonical(pattern.removeprefix("re:").strip("^$").replace("\\.", ".").replace(".*", "*")) for pattern in patterns]
        self.starts = tuple({glob[:-1] for glob in globs if glob.endswith("*") and "*" not in glob[:-1]})
        self.globs = [glob for glob in set(globs) if "*" in glob[:-1]][:200]

    def covers(self, module: str) -> bool:
        """True where the module or something it stands in is excluded."""
        name = _canonical(module)
        parts = name.split(".")
        if any(".".join(parts[:end]) in self.names for end in range(1, len(parts) + 1)) or parts[-1] in self.names:
            return True
        if self.starts and name.startswith(self.starts):
            return True
        spelled = [name, *(name.replace(".experts.gate_up_proj", f".experts.0.{half}_proj") for half in ("gate", "up"))]
        return any(fnmatch.fnmatchcase(one, glob) or fnmatch.fnmatchcase(one, glob + ".*") for glob in self.globs for one in spelled)


def quantized(ours: Inventory) -> list[Linear]:
    """The linear layers that the config's quantization converts."""
    excluded = Excluded(ours.quantization)
    return [linear for linear in linears(ours.own, ours.hidden) if not excluded.covers(linear.module)]


def groups(ours: Inventory) -> list[Group]:
    """Choices for the quantization that the config describes; none where it describes none."""
    quantization = ours.quantization
    if not quantization:
        return []
    every = quantized(ours)
    algorithm = str(quantization.get("quant_algo") or "")
    method = f"{quantization.get('quant_method') or ''} {algorithm}".lower()
    if algorithm in PACKED_ALGORITHMS or "quantized_layers" in quantization:
        return [_nvfp4(ours, every), *_cache_scales(ours)]
    choices: list[Choice] = []
    for which, part in PARTS.items():
        layers = [linear for linear in every if part.search(_canonical(linear.module))]
        choices += _scales(layers, quantization, method, which) + _words(layers, quantization, method, which)
    return [choices, *_cache_scales(ours)]


def block_of(quantization: Mapping[str, Any]) -> tuple[int, int] | None:
    """`weight_block_size`, where the config states one."""
    block = quantization.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2 and all(type(side) is int and side > 0 for side in block):
        return block[0], block[1]
    return None


def _scales(layers: list[Linear], quantization: Mapping[str, Any], method: str, which: str) -> list[Choice]:
    block = block_of(quantization)
    if block is not None:
        number = sum(linear.blocks(block) for linear in layers)
        whole = sum(linear.rows // block[0] * (linear.columns // block[1]) * linear.count for linear in layers)
        return [
            Choice(f"FP8 scales{which}, one a {block[0]}x{block[1]} block", number),
            Choice(f"FP8 scales{which} of partial blocks", number - whole),  # a count that takes off the whole blocks' scales
        ]
    if "fp8" not in method and "compressed-tensors" not in method:
        return []
    tensors = sum(linear.count for linear in layers)
    return [
        Choice(f"scales{which}, one an output channel", sum(linear.rows * linear.count for linear in layers)),
        Choice(f"scales{which}, one a matrix", tensors),
        Choice(f"scales{which}, of weights and activations", 2 * tensors),
    ]


def _words(layers: list[Linear], quantization: Mapping[str, Any], method: str, which: str) -> list[Choice]:
    """Integer weights packed into words, where the count takes a word for one: alone, with scales, and with zero points."""
    word = next((bits for name, bits in WORD_BITS.items() if name in method), 0)
    bits, group = _width_and_group(quantization, method)
    if not word or not bits or not group:
        return []
    weights = sum(linear.numel for linear in layers)
    words = weights * bits // word - weights
    scales = sum(linear.rows * -(-linear.columns // group) * linear.count for linear in layers)
    zeros, order = scales * bits // word, sum(linear.columns * linear.count for linear in layers)
    matrices = sum(linear.count for linear in layers)
    why = f"{bits}-bit weights{which} packed into words"
    return [
        Choice(why, words),
        Choice(f"{why}, with scales", words + scales),
        Choice(f"{why}, with scales and shapes", words + scales + 2 * matrices),
        Choice(f"{why}, with scales and zero points", words + scales + zeros),
        Choice(f"{why}, with scales, zero points and order", words + scales + zeros + order),
        Choice(f"scales{which} of {bits}-bit weights", scales),
    ]


def _width_and_group(quantization: Mapping[str, Any], method: str) -> tuple[int, int]:
    """Bits of a weight and weights of a scale; a group of -1 is a whole row."""
    stated = quantization.get("config_groups")
    entries = stated.values() if isinstance(stated, dict) else ()
    weights = [entry.get("weights") for entry in entries if isinstance(entry, dict)]
    parts = [quantization, *(part for part in weights if isinstance(part, dict))]
    found = [next((part[key] for part in parts for key in keys if type(part.get(key)) is int), 0) for keys in (WIDTHS, GROUPS)]
    fixed = FIXED.get(next((name for name in FIXED if name in method), ""), (0, 0))
    bits, group = (found[0] or fixed[0], found[1] or fixed[1])
    return (bits if 0 < bits < 8 else 0), (group if group > 0 else 1 << 62)


def _nvfp4(ours: Inventory, every: list[Linear]) -> Group:
    """4-bit values two to a byte, a scale a group, and one or two scalars a matrix."""
    quantization = ours.quantization
    layers = quantization.get("quantized_layers")
    stated = (
        {_canonical(str(name)): dict(entry) for name, entry in layers.items() if isinstance(entry, dict)}
        if isinstance(layers, dict)
        else {}
    )
    sized = quantization.get("group_size") or 16
    group = sized if type(sized) is int and sized > 0 else 16
    packed: list[Linear] = []
    other = 0
    for linear in every if not stated else _matrices(ours):
        algorithm = _stated_algorithm(linear.module, stated) if stated else "NVFP4"
        if algorithm in PACKED_ALGORITHMS:
            packed.append(linear)
        elif algorithm:
            other += linear.count
    values = -sum(linear.numel - linear.numel // 2 for linear in packed)
    matrices = sum(linear.count for linear in packed)
    scales = sum(linear.numel // group for linear in packed)
    alone = [Choice("4-bit weights packed two to a byte", values)]
    return alone + [
        Choice("4-bit weights packed two to a byte, with their scales", values + scales + scalars * matrices + others * other)
        for scalars in (2, 1, 3, 0)
        for others in ((2, 1, 0) if other else (0,))
    ]


def _matrices(ours: Inventory) -> list[Linear]:
    """Every matrix that a config may name as quantized, the head included."""
    named = [
        Linear(name.removesuffix(".weight"), *shape) for name, shape in ours.own.items() if len(shape) == 2 and name.endswith(".weight")
    ]
    return named + [linear for linear in linears(ours.own, ours.hidden) if linear.count > 1]


def _stated_algorithm(module: str, stated: Mapping[str, Mapping[str, Any]]) -> str:
    parts = _canonical(module).split(".")
    for end in range(len(parts), 0, -1):
        entry = stated.get(".".join(parts[:end]))
        if entry is not None:
            return str(entry.get("quant_algo", ""))
    return ""


def _cache_scales(ours: Inventory) -> list[Group]:
    quantization = ours.quantization
    if not (quantization.get("kv_cache_quant_algo") or quantization.get("kv_cache_scheme")):
        return []
    attention = sum(1 for layer in ours.main.values() if any("k_proj" in name for name in layer))
    return [[Choice("scales of the quantized cache", 2 * attention), Choice("scales of the quantized cache", attention)]]


def _canonical(name: str) -> str:
    """A module's name without what families spell differently."""
    return FEED_FORWARD.sub(".mlp.", PREFIX.sub("", name))
