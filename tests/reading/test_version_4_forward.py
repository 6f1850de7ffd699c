"""Custom code of the transformers 4 era run forward: masks, caches and outputs, against torch and against paper."""

from typing import Any

import pytest

from support.reading import read_config
from weighbridge.base.dtypes import INT64
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


def name_of(model: Model, name: str) -> Any:
    return model.runtime.library.get("transformers_repository.m" if False else model.root.cls.module, name)


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
