"""What transformers 4 gave to a model's forward and version 5 no longer has. Interpreted text, never imported; custom code alone sees it.

Masks are additive, of shape (batch, 1, queries, keys): 0 where a key may be seen, the type's lowest number where not. A cache kept what
it was first given as it was, joined later states to it, and could be made of, and turned into, a tuple of pairs.
"""

import dataclasses

import torch


# ---------------------------------------------------------------- masks
def lowest(dtype):
    return torch.finfo(dtype).min


class AttentionMaskConverter:
    def __init__(self, is_causal, sliding_window=None):
        if sliding_window is not None and sliding_window <= 0:
            raise ValueError(f"a sliding window of {sliding_window}")
        self.is_causal = is_causal
        self.sliding_window = sliding_window

    def to_causal_4d(self, batch_size, query_length, key_value_length, dtype, device="cpu"):
        if not self.is_causal:
            raise ValueError("a causal mask of a converter that is not causal")
        if query_length <= 1 and self.sliding_window is None:
            return None
        past = key_value_length - query_length
        return self._make_causal_mask((batch_size, query_length), dtype, device, past, self.sliding_window)

    def to_4d(self, attention_mask_2d, query_length, dtype, key_value_length=None):
        causal = None
        if self.is_causal and (query_length > 1 or self.sliding_window is not None):
            if key_value_length is None:
                raise ValueError("a causal mask needs the number of keys")
            shape = (attention_mask_2d.shape[0], query_length)
            past = key_value_length - query_length
            causal = self._make_causal_mask(shape, dtype, attention_mask_2d.device, past, self.sliding_window)
        elif self.sliding_window is not None:
            raise NotImplementedError("a sliding window without causal masking")
        padding = self._expand_mask(attention_mask_2d, dtype, query_length).to(attention_mask_2d.device)
        return padding if causal is None else causal.masked_fill(padding.bool(), lowest(dtype))

    @staticmethod
    def _make_causal_mask(input_ids_shape, dtype, device, past_key_values_length=0, sliding_window=None):
        batch, queries = input_ids_shape
        mask = torch.full((queries, queries), lowest(dtype), device=device)
        places = torch.arange(queries, device=device)
        mask.masked_fill_(places < (places + 1).view(queries, 1), 0)
        mask = mask.to(dtype)
        if past_key_values_length > 0:
            mask = torch.cat([torch.zeros(queries, past_key_values_length, dtype=dtype, device=device), mask], dim=-1)
        if sliding_window is not None:
            left = torch.tril(torch.ones_like(mask, dtype=torch.bool), diagonal=past_key_values_length - sliding_window - 1)
            mask.masked_fill_(left, lowest(dtype))
        return mask[None, None, :, :].expand(batch, 1, queries, queries + past_key_values_length)

    @staticmethod
    def _expand_mask(mask, dtype, tgt_len=None):
        batch, keys = mask.shape
        seen = mask[:, None, None, :].expand(batch, 1, keys if tgt_len is None else tgt_len, keys).to(dtype)
        hidden = 1.0 - seen
        return hidden.masked_fill(hidden.to(torch.bool), lowest(dtype))

    @staticmethod
    def _unmask_unattended(expanded_mask, min_dtype):
        if expanded_mask.dtype == torch.bool:
            raise ValueError("only an additive mask can be unmasked")
        return expanded_mask.mul(~torch.all(expanded_mask == min_dtype, dim=-1, keepdim=True))

    @staticmethod
    def _ignore_causal_mask_sdpa(attention_mask, inputs_embeds, past_key_values_length, sliding_window=None, is_training=False):
        queries = inputs_embeds.shape[1]
        keys = queries + past_key_values_length
        by_itself = queries == 1 or keys == queries
        if attention_mask is None:
            return by_itself
        if (sliding_window is not None and keys >= sliding_window) or len(attention_mask.shape) == 4:
            return False
        return by_itself and bool(torch.all(attention_mask == 1))


def _prepare_4d_causal_attention_mask(attention_mask, input_shape, inputs_embeds, past_key_values_length, sliding_window=None):
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    batch, queries = input_shape[0], input_shape[-1]
    keys, dtype = queries + past_key_values_length, inputs_embeds.dtype
    if attention_mask is None:
        return converter.to_causal_4d(batch, queries, keys, dtype=dtype, device=inputs_embeds.device)
    if len(attention_mask.shape) == 2:
        return converter.to_4d(attention_mask, queries, key_value_length=keys, dtype=dtype)
    if tuple(attention_mask.shape) != (batch, 1, queries, keys):
        raise ValueError(f"a mask of shape {tuple(attention_mask.shape)} for {(batch, 1, queries, keys)}")
    hidden = 1.0 - attention_mask
    return hidden.masked_fill(hidden.to(torch.bool), lowest(dtype))


def _prepare_4d_causal_attention_mask_for_sdpa(attention_mask, input_shape, inputs_embeds, past_key_values_length, sliding_window=None):
    if AttentionMaskConverter._ignore_causal_mask_sdpa(attention_mask, inputs_embeds, past_key_values_length, sliding_window):
        return None
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    batch, queries = input_shape[0], input_shape[-1]
    keys, dtype = queries + past_key_values_length, inputs_embeds.dtype
    if attention_mask is None:
        return converter.to_causal_4d(batch, queries, keys, dtype=dtype, device=inputs_embeds.device)
    if len(attention_mask.shape) == 4:
        mask = attention_mask
    else:
        mask = converter.to_4d(attention_mask, queries, dtype=dtype, key_value_length=keys)
    return AttentionMaskConverter._unmask_unattended(mask, min_dtype=lowest(dtype))


def _prepare_4d_attention_mask(mask, dtype, tgt_len=None):
    return AttentionMaskConverter._expand_mask(mask=mask, dtype=dtype, tgt_len=tgt_len)


def _prepare_4d_attention_mask_for_sdpa(mask, dtype, tgt_len=None):
    if torch.all(mask == 1):
        return None
    return AttentionMaskConverter._expand_mask(mask=mask, dtype=dtype, tgt_len=tgt_len)


def _create_4d_causal_attention_mask(input_shape, dtype, device, past_key_values_length=0, sliding_window=None):
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    batch, queries = input_shape[0], input_shape[-1]
    return converter.to_causal_4d(batch, queries, past_key_values_length + queries, dtype=dtype, device=device)


# ---------------------------------------------------------------- caches
def get_usable_length(self, new_seq_length, layer_idx=0):
    longest, before = self.get_max_length(), self.get_seq_length(layer_idx)
    return before if longest is None or before + new_seq_length <= longest else longest - new_seq_length


def get_max_length(self, layer_idx=None):
    lengths = [layer.get_max_length() for layer in self.layers]
    return max(lengths) if lengths and min(lengths) >= 0 else None


def seen_tokens(self):
    return self.get_seq_length()


def key_cache(self):
    return [layer.keys for layer in self.layers if layer.keys is not None]


def value_cache(self):
    return [layer.values for layer in self.layers if layer.values is not None]


def get_item(self, layer_idx):
    if layer_idx >= len(self.layers):
        raise KeyError(f"layer {layer_idx} of a cache of {len(self.layers)}")
    layer = self.layers[layer_idx]
    return layer.keys, layer.values


def iterate(self):
    for layer in self.layers:
        yield layer.keys, layer.values


def to_legacy_cache(self):
    return tuple((layer.keys, layer.values) for layer in self.layers)


def from_legacy_cache(cls, past_key_values=None):
    cache = cls()
    for index, states in enumerate(past_key_values or ()):
        cache.update(states[0], states[1], index)
    return cache


def extend_caches(Cache, DynamicCache, DynamicLayer):
    if hasattr(Cache, "get_usable_length"):
        return
    installed = DynamicCache.__init__

    class WholeLayer(DynamicLayer):
        def lazy_initialization(self, key_states, value_states):
            self.device = key_states.device
            self.keys, self.values = key_states, value_states
            self.is_initialized = True

        def update(self, key_states, value_states, *args, **kwargs):
            if self.is_initialized and self.keys is not None:
                self.keys = torch.cat([self.keys, key_states], dim=-2)
                self.values = torch.cat([self.values, value_states], dim=-2)
            else:
                self.lazy_initialization(key_states, value_states)
            return self.keys, self.values

    def initialize(self, *args, **kwargs):
        installed(self, *args, **kwargs)
        if self.layer_class_to_replicate is DynamicLayer:
            self.layer_class_to_replicate = WholeLayer

    DynamicCache.__init__ = initialize
    DynamicCache.__iter__ = iterate
    DynamicCache.from_legacy_cache = classmethod(from_legacy_cache)
    Cache.__getitem__ = get_item
    Cache.get_usable_length = get_usable_length
    Cache.get_max_length = Cache.get_max_cache_shape = get_max_length
    Cache.seen_tokens = Cache._seen_tokens = property(seen_tokens)
    Cache.key_cache = property(key_cache)
    Cache.value_cache = property(value_cache)
    Cache.to_legacy_cache = to_legacy_cache


# ---------------------------------------------------------------- outputs
FORMER_CACHE_NAMES = ("past_key_values", "cache_params")


def dataclass(cls):
    cls = dataclasses.dataclass(cls)
    if not hasattr(cls, "cache"):
        return cls
    installed = cls.__init__

    def initialize(self, *args, **kwargs):
        for former in FORMER_CACHE_NAMES:
            if former in kwargs:
                kwargs["cache"] = kwargs.pop(former)
        installed(self, *args, **kwargs)

    cls.__init__ = initialize
    for former in FORMER_CACHE_NAMES:
        if not hasattr(cls, former):
            setattr(cls, former, property(given_cache))
    return cls


def given_cache(self):
    return self.cache


# ---------------------------------------------------------------- masks of newer code, under their former argument names
def with_former_names(create):
    def create_mask(*args, **kwargs):
        if "input_embeds" in kwargs:
            kwargs["inputs_embeds"] = kwargs.pop("input_embeds")
        kwargs.pop("cache_position", None)
        return create(*args, **kwargs)

    return create_mask


# ---------------------------------------------------------------- methods of the base model
def invert_attention_mask(self, encoder_attention_mask):
    rows = encoder_attention_mask[:, None, :, :] if encoder_attention_mask.dim() == 3 else encoder_attention_mask[:, None, None, :]
    return (1.0 - rows.to(dtype=self.dtype)) * lowest(self.dtype)


def get_extended_attention_mask(self, attention_mask, input_shape, device=None, dtype=None):
    dtype = self.dtype if dtype is None else dtype
    if attention_mask.dim() == 3:
        rows = attention_mask[:, None, :, :]
    elif attention_mask.dim() == 2 and getattr(self.config, "is_decoder", False):
        places = torch.arange(input_shape[1], device=attention_mask.device)
        seen = places[None, None, :].repeat(input_shape[0], input_shape[1], 1) <= places[None, :, None]
        rows = seen.to(attention_mask.dtype)[:, None, :, :] * attention_mask[:, None, None, :]
    elif attention_mask.dim() == 2:
        rows = attention_mask[:, None, None, :]
    else:
        raise ValueError(f"an attention mask of shape {tuple(attention_mask.shape)}")
    return (1.0 - rows.to(dtype=dtype)) * lowest(dtype)


def extend_models(PreTrainedModel):
    PreTrainedModel.invert_attention_mask = invert_attention_mask
    PreTrainedModel.get_extended_attention_mask = get_extended_attention_mask
