"""Custom code of the transformers 4 era run forward: masks, caches and outputs, against torch and against paper."""

import runpy
from importlib import resources
from typing import Any

import pytest

from support.reading import read_config, torch_modules
from weighbridge.base.dtypes import FLOAT32, INT64
from weighbridge.model import Model
from weighbridge.phantom import Session, Tensor

CONFIG: dict[str, Any] = {
    "model_type": "old_style",
    "vocab_size": 10,
    "hidden_size": 8,
    "num_heads": 2,
    "num_experts": 4,
    "auto_map": {"AutoConfig": "m.OldConfig", "AutoModelForCausalLM": "m.OldForCausalLM"},
}
TEXT = """
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn
from transformers import Cache, DynamicCache, PretrainedConfig, PreTrainedModel
from transformers.modeling_attn_mask_utils import (
    AttentionMaskConverter, _create_4d_causal_attention_mask, _prepare_4d_attention_mask, _prepare_4d_attention_mask_for_sdpa,
    _prepare_4d_causal_attention_mask, _prepare_4d_causal_attention_mask_for_sdpa,
)
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils import logging

logger = logging.get_logger(__name__)


class OldConfig(PretrainedConfig):
    model_type = "old_style"


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList([nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.num_experts)])

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.gate(flat), dim=1), 2, dim=-1)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for index, expert in enumerate(self.experts):
            slot, rows = torch.where(mask[index])
            out.index_add_(0, rows, expert(flat[rows]) * weights[rows, slot, None])
        return out.view(x.shape)


class OldForCausalLM(PreTrainedModel):
    config_class = OldConfig

    def __init__(self, config):
        super().__init__(config)
        self.heads = config.num_heads
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=False)
        self.mlp = Experts(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, use_cache=None, sdpa=False):
        logger.warning_once("old")
        legacy = not isinstance(past_key_values, Cache)
        cache = DynamicCache.from_legacy_cache(past_key_values) if legacy else past_key_values
        x = self.embed(input_ids)
        past = cache.get_usable_length(x.shape[1])
        prepare = _prepare_4d_causal_attention_mask_for_sdpa if sdpa else _prepare_4d_causal_attention_mask
        mask = prepare(attention_mask, x.shape[:2], x, past)
        query, key, value = rearrange(self.qkv(x), "b s (three h d) -> three b h s d", three=3, h=self.heads)
        key, value = cache.update(key, value, 0)
        x = x + rearrange(F.scaled_dot_product_attention(query, key, value, mask), "b h s d -> b s (h d)")
        logits = self.lm_head(x + self.mlp(x))
        return CausalLMOutputWithPast(logits=logits, past_key_values=cache.to_legacy_cache() if legacy else cache, attentions=(mask,))


def new_cache():
    return DynamicCache()
"""


@pytest.fixture(scope="module")
def old() -> Model:
    return read_config(CONFIG, {"m.py": TEXT})


def call(model: Model, function: Any, *args: Any, **kwargs: Any) -> Any:
    return model.machine.run(lambda: model.machine.call(function, list(args), kwargs))


def run(model: Model, tokens: int, **kwargs: Any) -> Any:
    return call(model, model.root, Tensor((2, tokens), INT64), **kwargs)


def test_a_prompt_and_its_next_token_run_with_version_4s_tuples(old: Model) -> None:
    with Session(training=False).activate():
        first = run(old, 6)
        cache = old.machine.getattr(first, "past_key_values")
        second = run(old, 1, past_key_values=cache)
        ((key, value),) = old.machine.getattr(second, "past_key_values")
        (mask,) = old.machine.getattr(first, "attentions")
    assert old.machine.getattr(first, "logits").shape == (2, 6, 10)
    assert mask.shape == (2, 1, 6, 6)
    assert key.shape == value.shape == (2, 2, 7, 4)


def test_tokens_that_go_to_experts_are_counted_evenly_and_said_to_be(old: Model) -> None:
    session = Session(training=False)
    with session.activate():
        run(old, 6)
    assert any("evenly" in said for said in session.assumptions)


def helpers() -> dict[str, Any]:
    """Our text as Python itself runs it, on real tensors."""
    torch_modules()
    return runpy.run_path(str(resources.files("weighbridge.reading.prelude").joinpath("transformers_v4_runtime.py")))


def interpreted(model: Model, name: str) -> Any:
    return model.runtime.library.prelude("transformers_v4_runtime").lookup(model.machine, name)


@pytest.mark.parametrize(("queries", "past", "window"), [(5, 0, None), (5, 3, None), (1, 4, None), (6, 0, 2), (4, 2, 3)])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["_prepare_4d_causal_attention_mask", "_prepare_4d_causal_attention_mask_for_sdpa"])
def test_a_causal_mask_shows_the_past_that_is_no_padding(
    old: Model, name: str, queries: int, past: int, window: int | None, padded: bool
) -> None:
    torch, _ = torch_modules()
    keys = queries + past
    rows = torch.ones(2, keys, dtype=torch.int64)
    rows[0, 0] = 0 if padded else 1
    real = helpers()[name](rows, (2, queries), torch.zeros(2, queries, 8), past, window)
    with Session(training=False).activate():
        mask, embeddings = Tensor(tuple(rows.shape), INT64, value=rows.numpy()), Tensor((2, queries, 8), FLOAT32)
        ours = call(old, interpreted(old, name), mask, (2, queries), embeddings, past, window)
    assert (None if ours is None else (ours.shape, ours.dtype)) == (None if real is None else (tuple(real.shape), FLOAT32))
    if real is None:
        assert not padded
        assert queries in {1, keys}
        return
    for sample in range(2):
        for query in range(queries):
            place = query + past
            seen = [key <= place and (window is None or key >= place - window) and bool(rows[sample, key]) for key in range(keys)]
            if any(seen) or "sdpa" not in name:  # SDPA wants no row without anything to see
                assert (real[sample, 0, query] == 0).tolist() == seen
            else:
                assert (real[sample, 0, query] == 0).all()


def test_a_two_sided_mask_hides_padding_alone(old: Model) -> None:
    torch, _ = torch_modules()
    rows = torch.tensor([[1, 1, 0], [1, 1, 1]])
    real = helpers()["_prepare_4d_attention_mask"](rows, torch.float32, tgt_len=2)
    assert tuple(real.shape) == (2, 1, 2, 3)
    assert (real[:, 0, 1] == 0).tolist() == [[True, True, False], [True, True, True]]
    with Session(training=False).activate():
        ours = call(old, interpreted(old, "_prepare_4d_attention_mask"), Tensor((2, 3), INT64), FLOAT32, tgt_len=2)
    assert (ours.shape, ours.dtype) == ((2, 1, 2, 3), FLOAT32)


def test_a_cache_of_version_4_keeps_what_it_is_given_without_a_copy(old: Model) -> None:
    machine = old.machine
    with Session(training=False).activate():
        cache = call(old, old.runtime.library.get("transformers.cache_utils", "DynamicCache"))
        key, value = Tensor((2, 2, 6, 4), FLOAT32), Tensor((2, 2, 6, 4), FLOAT32)
        kept, _ = call(old, machine.getattr(cache, "update"), key, value, 0)
        assert kept is key
        longer, _ = call(old, machine.getattr(cache, "update"), Tensor((2, 2, 1, 4), FLOAT32), Tensor((2, 2, 1, 4), FLOAT32), 0)
    assert longer.shape == (2, 2, 7, 4)
    assert call(old, machine.getattr(cache, "get_usable_length"), 1) == machine.getattr(cache, "seen_tokens") == 7
    assert call(old, machine.getattr(cache, "get_max_length")) is None
    assert [tensor.shape for tensor in machine.getattr(cache, "key_cache")] == [(2, 2, 7, 4)]
