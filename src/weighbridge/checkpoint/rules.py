"""Why a checkpoint's total may differ from our count: one function a reason, each size following from our own parameters."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from weighbridge.checkpoint import quantized
from weighbridge.checkpoint.inventory import EMBEDDING, LAYER, Inventory, Shape, size_of
from weighbridge.checkpoint.search import Choice, Group

HEADS: Final = re.compile(
    r"(?:^|\.)(lm_head|embed_out|score|classifier|qa_outputs|pooler|cls|pre_classifier|generator_lm_head|vocab_projector|proj_out|head|output_projection)\."
)
MASKS: Final = re.compile(r"(?:^|\.)(?:attn|attention|self_attn|self_attention)\.(?:bias|causal_mask)$")
BIAS: Final = "correction_bias"
"""The buffer that a router adds to its scores."""
ROTARY: Final = re.compile(r"(?<!original_)inv_freq$")


def groups(ours: Inventory, names: Iterable[str], element_bytes: int | None) -> list[Group]:
    """Every reason that can hold for this model; an index's tensor names rule out what they do not show."""
    listed = tuple(names)
    found: list[Group] = []
    for rule, trace in RULES:
        if listed and trace is not None and not any(trace.search(name) for name in listed):
            continue
        found += rule(ours)
    return found + _buffers_in_bytes(ours, element_bytes)


def _tied_copies(ours: Inventory) -> Iterator[Group]:
    """Each tied tensor may be stored a second time."""
    sizes: dict[int, list[str]] = {}
    for name, shape in ours.tied.items():
        sizes.setdefault(math.prod(shape), []).append(name)
    for size, tied in sorted(sizes.items(), reverse=True)[:4]:
        why = "the tied head's own copy" if any(HEADS.search(name) for name in tied) else "copies of tied tensors"
        yield [Choice(why, size * number) for number in range(1, min(len(tied), 8) + 1)]


def _missing_heads(ours: Inventory) -> Iterator[Group]:
    """A checkpoint saved from the base model has no head."""
    heads: dict[str, int] = {}
    for name, shape in ours.own.items():
        match = HEADS.search(name)
        if match and not any(part.isdigit() for part in name[: match.start()].split(".")):
            heads[match[1]] = heads.get(match[1], 0) + math.prod(shape)
    for head, size in heads.items():
        yield [Choice(f"{head} is not in the checkpoint", -size)]


def _extra_heads(ours: Inventory) -> Iterator[Group]:
    """Heads of the class that was saved, where the config names another: a pooler, next-sentence and masked-word heads."""
    width, words = ours.hidden, ours.vocabulary
    if not width or not words or ours.setting("num_key_value_heads"):
        return
    dense = width * width + width
    yield [Choice("a pooler that this class doesn't have", dense)]
    yield [Choice("a next-sentence head that this class doesn't have", 2 * width + 2)]
    yield [Choice("a masked-word head that this class doesn't have", dense + 2 * width + words)]


def _prediction_layers(ours: Inventory) -> Iterator[Group]:
    """Layers that predict further tokens: a decoder layer, a joint projection, norms, and perhaps the embedding and head again."""
    number = ours.setting("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers", "num_mtp_modules")
    if not 0 < number <= 8 or not ours.main:
        return
    width, table = ours.hidden, math.prod(ours.embedding)
    choices = []
    joint, beside = _joint_scales(ours), _beside_layers(ours)
    for layer, scales, bias in _layer_kinds(ours):
        for norms in (3, 2, 4):
            for copies in (2, 1, 0):
                body = size_of(layer) + 2 * width * width + norms * width
                for extra in {0, bias, bias + beside}:
                    choices.append(Choice("layers that predict further tokens", number * (body + copies * table + extra)))
                    for more in {scales, scales + joint} if scales else ():
                        stored = body + copies * table + extra + more
                        choices.append(Choice("layers that predict further tokens, with their scales", number * stored))
    yield list(dict.fromkeys(choices))


def _beside_layers(ours: Inventory) -> int:
    """Parameters of the language model that stand in no layer and are no embedding, head or norm; a prediction layer repeats them."""
    stem = ours.main_name.rpartition(".")[0]
    names = [name for name in ours.own if name.startswith(f"{stem}.") and not LAYER.match(name) and not HEADS.search(f"{name}.")]
    return size_of(ours.own[name] for name in names if not EMBEDDING.search(name) and ours.own[name] != (ours.hidden,)) if stem else 0


def _joint_scales(ours: Inventory) -> int:
    block = quantized.block_of(ours.quantization)
    return 0 if block is None else quantized.Linear("joint", ours.hidden, 2 * ours.hidden).blocks(block)


def _layer_kinds(ours: Inventory) -> Iterator[tuple[tuple[Shape, ...], int, int]]:
    """Distinct layers of the main stack, last first: shapes, FP8 scales, elements of their own buffers."""
    block = quantized.block_of(ours.quantization)
    seen: set[tuple[Shape, ...]] = set()
    bias = max((math.prod(shape) for name, shape in ours.buffers.items() if name.endswith(BIAS)), default=0)
    for index in sorted(ours.main, reverse=True):
        layer = ours.main[index]
        shapes = tuple(sorted(layer.values()))
        if shapes in seen or len(seen) >= 4:
            continue
        seen.add(shapes)
        scales = 0
        if block is not None:
            named = {f"layer.{name}": shape for name, shape in layer.items()}
            scales = sum(linear.blocks(block) for linear in quantized.linears(named, ours.hidden))
        yield shapes, scales, bias


def _rotary_tables(ours: Inventory) -> Iterator[Group]:
    """Old checkpoints store each layer's table of rotary frequencies."""
    sizes = {math.prod(shape) for name, shape in ours.buffers.items() if ROTARY.search(name)}
    heads = ours.setting("num_attention_heads", "n_head")
    if not sizes and heads and ours.hidden % (2 * heads) == 0:
        sizes = {ours.hidden // heads // 2}
    yield [Choice("rotary frequencies of each layer", ours.depth * size) for size in sorted(sizes)]


def _causal_masks(ours: Inventory) -> Iterator[Group]:
    """Old checkpoints store each layer's causal mask and the value that fills it."""
    context = ours.setting("n_positions", "n_ctx", "max_position_embeddings")
    if 0 < context <= 1 << 16:
        yield [Choice("causal masks of each layer", ours.depth * context * context)]
    yield [Choice("fill values of the masks", ours.depth)]


def _position_ids(ours: Inventory) -> Iterator[Group]:
    sizes = {math.prod(shape) for name, shape in ours.buffers.items() if name.endswith("position_ids")}
    sizes.add(ours.setting("max_position_embeddings"))
    yield [Choice("position ids", size) for size in sorted(sizes)]


def _own_buffers(ours: Inventory) -> Iterator[Group]:
    """Buffers that our class has too, by their last name; those of one size share a group."""
    sizes: dict[str, int] = {}
    for name, shape in ours.buffers.items():
        last = name.rpartition(".")[2]
        if not ROTARY.search(name) and last != "position_ids" and "original_" not in last and not MASKS.search(name):
            sizes[last] = sizes.get(last, 0) + math.prod(shape)
    by_size: dict[int, list[str]] = {}
    for last, size in sizes.items():
        by_size.setdefault(size, []).append(last)
    for size, lasts in sorted(by_size.items(), reverse=True)[:8]:
        yield [Choice(f"stored buffers: {', '.join(lasts[:number])}", size * number) for number in range(1, min(len(lasts), 4) + 1)]


def _shared_cache_layers(ours: Inventory) -> Iterator[Group]:
    """Layers that use another layer's keys and values: their own projections are stored, but not built."""
    shared = ours.setting("num_kv_shared_layers")
    parts = (ours.config, ours.config.get("text_config") or {})
    types: list[str] = next((part["layer_types"] for part in parts if isinstance(part.get("layer_types"), list)), [])
    built = ours.depth - shared
    if not 0 < shared < ours.depth or len(types) < ours.depth:
        return
    sizes = {types[index]: _cache_projections(ours.main[index]) for index in sorted(ours.main)[:built]}
    missing = [types[index] for index in sorted(ours.main)[built:] if not _cache_projections(ours.main[index])]
    yield [Choice("key and value projections of layers that share another's cache", sum(sizes.get(kind, 0) for kind in missing))]


def _cache_projections(layer: dict[str, Shape]) -> int:
    return size_of(shape for name, shape in layer.items() if re.search(r"\.(?:k_proj|v_proj|k_norm)\.", name))


def _padded_vocabulary(ours: Inventory) -> Iterator[Group]:
    """Rows added to the embedding and the head, up to the next multiples of 64."""
    words = ours.vocabulary
    row = sum(math.prod(shape[1:]) for shape in ours.own.values() if words and shape and shape[0] == words)
    targets = sorted({-(-words // step) * step for step in (64, 128, 256, 512, 1024, 2048, 4096)} - {words}) if row else []
    yield [Choice(f"a vocabulary padded from {words:,} to {target:,}", row * (target - words)) for target in targets]


def _buffers_in_bytes(ours: Inventory, element_bytes: int | None) -> list[Group]:
    """An index's bytes divided by the element size: what is stored in another type counts as more or fewer elements.

    Boolean masks were written into `total_size` at an eighth of a byte each (transformers' dtype_byte_size).
    """
    if element_bytes is None:
        return []
    context = ours.setting("n_positions", "n_ctx", "max_position_embeddings")
    mask = context * context // 8 // element_bytes if 0 < context <= 1 << 16 else 0
    tables = {math.prod(shape) for name, shape in ours.buffers.items() if ROTARY.search(name)}
    wide = [Choice("rotary frequencies of each layer, in fp32", ours.depth * size * 4 // element_bytes) for size in sorted(tables)]
    return [[Choice("causal masks of each layer, at an eighth of a byte", ours.depth * mask)], wide]


Rule = Callable[[Inventory], Iterable[Group]]

RULES: Final[tuple[tuple[Rule, re.Pattern[str] | None], ...]] = (
    (_tied_copies, None),
    (_missing_heads, None),
    (_prediction_layers, None),
    (quantized.groups, None),
    (_rotary_tables, re.compile(r"inv_freq$")),
    (_causal_masks, re.compile(r"(?:attn|attention)\.(?:masked_)?bias$")),
    (_position_ids, re.compile(r"position_ids$")),
    (_own_buffers, None),
    (_extra_heads, None),
    (_shared_cache_layers, None),
    (_padded_vocabulary, None),
)
"""Each reason, and the trace that it leaves in a list of tensor names (None where it leaves no certain one)."""
