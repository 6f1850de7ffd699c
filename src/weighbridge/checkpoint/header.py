"""Every stored tensor put down to its reason, from a whole checkpoint header."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from weighbridge.checkpoint.inventory import LAYER, Inventory
from weighbridge.checkpoint.quantized import PREFIX
from weighbridge.checkpoint.rules import HEADS, MASKS
from weighbridge.checkpoint.search import Choice
from weighbridge.sources.headers import CheckpointHeader, StoredTensor

SCALES: Final = re.compile(
    r"(?:\.|_)(?:weight_scale(?:_inv|_2)?|scale_inv|input_scale(?:_ub)?|output_scale|activation_scale|[kvq]_scale|scales|qzeros|g_idx|"
    r"weight_(?:zero_point|shape|g_idx|global_scale)|input_(?:zero_point|global_scale)|absmax|quant_map|nested_absmax|nested_quant_map|"
    r"quant_state\.\w+|SCB|weight_format|biases)$"
)
BUFFERS: Final = re.compile(
    r"(?:^|\.)(?:inv_freq|rotary_pos_emb|masked_bias|position_ids|e_score_correction_bias|layer_scalar|num_batches_tracked|running_mean|running_var|token_type_ids)$"
)
PREDICTION: Final = re.compile(r"(?:^|\.)mtp(?:_\w+)?\.|(?:^|\.)(?:nextn|eh_proj)\.")
PACKED: Final = re.compile(r"(?:\.qweight|\.weight_packed|_blocks)$")

MISSING, EXTRA, TIED = "heads that are not in the checkpoint", "heads that this class doesn't have", "the tied head's own copy"
WHY_SCALES, WHY_PACKED, WHY_BUFFERS = "quantization scales and zero points", "packed weights, several to a stored word", "stored buffers"
WHY_PREDICTION, WHY_MASKS = "layers that predict further tokens", "causal masks of each layer"


def explain(ours: Inventory, header: CheckpointHeader) -> list[Choice]:
    """Reasons with the elements that each accounts for, in the order of their size."""
    own, tied = _plain(ours.own), _plain(ours.tied)
    found: dict[str, int] = {}
    for name, tensor in header.tensors.items():
        why, elements = _reason(name, tensor, header.tensors, ours, own, tied)
        if why:
            found[why] = found.get(why, 0) + elements
    stored = _plain(header.tensors)
    missing = [name for name in own if HEADS.search(name) and name not in stored and not LAYER.match(name)]
    if missing and not any(HEADS.search(name) and name not in own for name in stored):
        found[MISSING] = -sum(math.prod(own[name]) for name in missing)
    return [Choice(why, size) for why, size in sorted(found.items(), key=lambda item: -abs(item[1])) if size]


def _reason(
    name: str,
    tensor: StoredTensor,
    stored: Mapping[str, StoredTensor],
    ours: Inventory,
    own: Mapping[str, tuple[int, ...]],
    tied: Mapping[str, tuple[int, ...]],
) -> tuple[str, int]:
    """Why a stored tensor is not one element for one of our parameters, and how many elements that makes."""
    plain, unpacked = PREFIX.sub("", name), unpacked_elements(name, tensor, stored, ours)
    match = LAYER.match(name)
    if PREDICTION.search(name) or (match and _is_main(match["stack"], ours) and int(match["index"]) >= ours.depth > 0):
        return WHY_PREDICTION, tensor.numel
    if plain in own:
        return (WHY_PACKED, tensor.numel - unpacked) if unpacked != tensor.numel else ("", 0)
    if SCALES.search(name):
        return WHY_SCALES, tensor.numel
    if unpacked != tensor.numel:
        return WHY_PACKED, tensor.numel - unpacked
    if plain in tied:
        return TIED, tensor.numel
    if MASKS.search(name) and len(tensor.shape) >= 2:
        return WHY_MASKS, tensor.numel
    if BUFFERS.search(name) or name in ours.buffers:
        return WHY_BUFFERS, tensor.numel
    if HEADS.search(plain) and not match and not _same_head(plain, own, tensor):
        return EXTRA, tensor.numel
    return "", 0


def unpacked_elements(name: str, tensor: StoredTensor, stored: Mapping[str, StoredTensor], ours: Inventory) -> int:
    """Weights that a stored tensor holds: more than its elements where they are packed into words."""
    stem = name.removesuffix(".weight")
    bits = ours.quantization.get("bits") or ours.quantization.get("w_bit") or 4
    width = bits if type(bits) is int and 0 < bits <= 8 else 4
    if name.endswith((".qweight", ".weight_packed")) and tensor.dtype == "I32":
        return tensor.numel * 32 // width
    if tensor.dtype == "U8" and (PACKED.search(name) or f"{stem}.weight_scale_2" in stored or f"{name}.absmax" in stored):
        return tensor.numel * 2
    if tensor.dtype == "U32" and f"{stem}.scales" in stored:
        return tensor.numel * 32 // width
    return tensor.numel


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {PREFIX.sub("", name): value for name, value in table.items()}


def _is_main(stack: str, ours: Inventory) -> bool:
    return PREFIX.sub("", stack) == PREFIX.sub("", ours.main_name)


def _same_head(name: str, own: Mapping[str, tuple[int, ...]], tensor: StoredTensor) -> bool:
    """True where ours has this head under another name."""
    last = name.rpartition(".")[2]
    return any(HEADS.search(ours) and ours.endswith(last) and shape == tensor.shape for ours, shape in own.items())
