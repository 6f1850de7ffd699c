"""What a model's cache keeps after a call, layer by layer: the bytes that its tensors show, whatever storage lies behind them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge.base.dtypes import BY_NAME
from weighbridge.base.errors import CannotTell
from weighbridge.phantom import Tensor
from weighbridge.reading.python import Instance

TOKEN_AXES: Final[Mapping[str, int]] = {"keys": -2, "values": -2, "indexer_keys": 1}
"""Where a layer of transformers' caches counts tokens, by the field's name."""
HALVES: Final = (("self_attention_cache", ""), ("cross_attention_cache", "cross"))
"""An encoder-decoder's two caches."""
NESTING: Final = 3
CONFIG_PARTS: Final = ("text_config", "llm_config", "decoder", "thinker_config")


@dataclass(frozen=True, slots=True)
class Kept:
    """What one layer keeps of all sequences. `token_bytes` is what one token of one sequence adds; None where shapes don't say."""

    kind: str
    nbytes: int
    fixed_bytes: int
    token_bytes: int | None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a config says of its cache: the width of latent attention and the length of chunks."""

    latent: frozenset[int] = frozenset()
    chunk: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Facts":
        """From the config and its language part."""
        places = [config, *[inner for part in CONFIG_PARTS if isinstance(inner := config.get(part), Mapping)]]
        latent: set[int] = set()
        chunk = None
        for place in places:
            rank, rope = place.get("kv_lora_rank"), place.get("qk_rope_head_dim")
            if isinstance(rank, int) and isinstance(rope, int):
                latent |= {rank, rank + rope}
            size = place.get("attention_chunk_size")
            chunk = size if isinstance(size, int) else chunk
        return cls(frozenset(latent), chunk)


def kept_layers(cache: Any, facts: Facts, kv_dtype: str | None = None) -> tuple[Kept, ...]:
    """The layers that keep anything: of a cache object, of an encoder-decoder's pair of them, or of version 4's tuples."""
    return tuple(layer for layer in _layers(cache, facts, kv_dtype) if layer.nbytes)


def _layers(cache: Any, facts: Facts, kv_dtype: str | None) -> Iterator[Kept]:
    if isinstance(cache, Instance):
        halves = [(cache.fields[name], kind) for name, kind in HALVES if isinstance(cache.fields.get(name), Instance)]
        if halves:
            for half, kind in halves:
                yield from (replace(layer, kind=kind or layer.kind) for layer in _layers(half, facts, kv_dtype))
            return
        layers = cache.fields.get("layers")
        for layer in layers if isinstance(layers, list | tuple) else [cache]:
            yield _layer(layer, facts, kv_dtype)
    elif isinstance(cache, list | tuple):
        for layer in cache:
            yield _layer(layer, facts, kv_dtype)
    else:
        raise CannotTell("the cache", "it is of a kind that is not known")


def _layer(layer: Any, facts: Facts, kv_dtype: str | None) -> Kept:
    tensors = list(held_tensors(layer))
    nbytes = sum(_bytes(tensor, kv_dtype) for tensor in tensors)
    fields = layer.fields if isinstance(layer, Instance) else {}
    named = [(name, tensor) for name in TOKEN_AXES if isinstance(tensor := fields.get(name), Tensor) and tensor.nbytes]
    if not named:
        fixed = "conv_states" in fields or "recurrent_states" in fields
        return Kept("fixed state" if fixed else "full", nbytes, nbytes if fixed else 0, 0 if fixed else None)
    per_token = sum(_bytes(tensor, kv_dtype) // (tensor.shape[0] * tensor.shape[TOKEN_AXES[name]]) for name, tensor in named)
    fixed_bytes = nbytes - sum(_bytes(tensor, kv_dtype) for _, tensor in named)
    window = fields.get("sliding_window")
    window = window if isinstance(window, int) and not isinstance(window, bool) else None
    return Kept(_kind(fields, facts, window, fixed_bytes), nbytes, fixed_bytes, per_token, window)


def _kind(fields: Mapping[str, Any], facts: Facts, window: int | None, fixed_bytes: int) -> str:
    keys = fields["keys"]
    kind = "full"
    if isinstance(keys, Tensor) and keys.shape[1] == 1 and keys.shape[-1] in facts.latent:
        kind = "latent"
    elif window is not None:
        kind = "chunked" if window == facts.chunk else "sliding"
    indexed = isinstance(fields.get("indexer_keys"), Tensor)
    return kind + (" + indexer" if indexed else "") + (" + fixed state" if fixed_bytes else "")


def _bytes(tensor: Tensor, kv_dtype: str | None) -> int:
    if kv_dtype is not None and tensor.dtype.kind == 2:
        return tensor.nbytes // tensor.dtype.itemsize * BY_NAME[kv_dtype].itemsize
    return tensor.nbytes


def held_tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """The tensors with a shape in nested objects, sequences and mappings."""
    if isinstance(value, Tensor):
        if value.shape:
            yield value
        return
    parts: Sequence[Any] = ()
    if depth <= NESTING:
        if isinstance(value, Instance):
            parts = list(value.fields.values())
        elif isinstance(value, list | tuple):
            parts = value
        elif isinstance(value, dict):
            parts = list(value.values())
    for part in parts:
        yield from held_tensors(part, depth + 1)


def groups(now: Sequence[Kept], then: Sequence[Kept] | None, tokens_apart: int, sequences: int) -> list[tuple[int, str, int, int | None]]:
    """Like layers together: how many, their kind, bytes a token of them all, and the window.

    Where a layer's shapes don't say what a token adds, the same layer at a shorter context (`then`) does.
    """
    found: dict[tuple[str, int, int | None], int] = {}
    for index, layer in enumerate(now):
        kind, each = layer.kind, layer.token_bytes
        if each is None:
            before = then[index].nbytes if then is not None and index < len(then) else layer.nbytes
            each = max(0, layer.nbytes - before) // max(1, tokens_apart * sequences)
            kind = kind if each else "fixed state"
        key = (kind, each, layer.window)
        found[key] = found.get(key, 0) + 1
    return [(layers, kind, each * layers, window) for (kind, each, window), layers in found.items()]
