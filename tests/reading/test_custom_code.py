"""Repositories with their own modelling files, written here as text with counts worked out by hand."""

from typing import Any

import pytest

from support.reading import read_config
from weighbridge.base.errors import CannotTell

CONFIG_FILE = """
from typing import List
from transformers import PretrainedConfig
from transformers.utils import logging

logger = logging.get_logger(__name__)


class SeriesConfig(PretrainedConfig):
    model_type = "series_moe"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, input_size: int = 1, hidden_size: int = 8, intermediate_size: int = 16, horizons: List[int] = None,
                 num_hidden_layers: int = 2, num_attention_heads: int = 2, num_experts: int = 4, num_experts_per_tok: int = 2,
                 tie_word_embeddings: bool = False, **kwargs):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.horizons = [1] if horizons is None else horizons
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_experts = num_experts
        self.num_experts_per_tok = num_experts_per_tok
        assert self.hidden_size % self.num_attention_heads == 0, "heads"
        kwargs.pop("tie_word_embeddings", None)
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)
"""
MODEL_FILE = """
import math
import warnings
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel, Cache, DynamicCache
from transformers.activations import ACT2FN
from transformers.modeling_outputs import MoeModelOutputWithPast
from transformers.utils import logging, is_flash_attn_2_available

from .configuration_series import SeriesConfig

logger = logging.get_logger(__name__)

try:
    from flash_attn import flash_attn_func
except:
    pass


class InputEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.emb_layer = nn.Linear(config.input_size, config.hidden_size, bias=False)
        self.gate_layer = nn.Linear(config.input_size, config.hidden_size, bias=False)
        self.act_fn = ACT2FN["silu"]


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, max_position_embeddings=64, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self._set_cos_sin_cache(max_position_embeddings, torch.get_default_dtype())

    def _set_cos_sin_cache(self, length, dtype):
        t = torch.arange(length, dtype=torch.int64).type_as(self.inv_freq)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos_cached", emb.cos().to(dtype), persistent=False)


class RMSNorm(torch.nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))


class Expert(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)


class SparseExperts(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.intermediate_size // config.num_experts_per_tok
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(config.hidden_size, inner) for _ in range(config.num_experts)])
        self.shared_expert = Expert(config.hidden_size, config.intermediate_size)
        self.shared_expert_gate = torch.nn.Linear(config.hidden_size, 1, bias=False)


class Attention(nn.Module):
    def __init__(self, config, layer_idx: Optional[int] = None):
        super().__init__()
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=True)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.rotary_emb = RotaryEmbedding(config.hidden_size // config.num_attention_heads)


class FlashAttention(Attention):
    pass


ATTENTION = {"eager": Attention, "flash_attention_2": FlashAttention}


class DecoderLayer(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.self_attn = ATTENTION[config._attn_implementation](config, layer_idx)
        self.ffn_layer = SparseExperts(config)
        self.input_layernorm = RMSNorm(config.hidden_size)


class SeriesPreTrainedModel(PreTrainedModel):
    config_class = SeriesConfig
    base_model_prefix = "model"

    def _init_weights(self, module):
        raise RuntimeError("never run")


class SeriesModel(SeriesPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed_layer = InputEmbedding(config)
        self.layers = nn.ModuleList([DecoderLayer(config, i) for i in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size)
        self.post_init()


class SeriesForPrediction(SeriesPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = SeriesModel(config)
        self.lm_heads = nn.ModuleList([nn.Linear(config.hidden_size, config.input_size * h, bias=False) for h in config.horizons])
        self.loss_function = torch.nn.HuberLoss(reduction="none", delta=2.0)
        self.post_init()
"""
FILES = {"configuration_series.py": CONFIG_FILE, "modeling_series.py": MODEL_FILE}
CONFIG: dict[str, Any] = {
    "model_type": "series_moe", "architectures": ["SeriesForPrediction"], "horizons": [1, 8], "num_hidden_layers": 3, "novel_key": 7,
    "auto_map": {"AutoConfig": "configuration_series.SeriesConfig", "AutoModelForCausalLM": "modeling_series.SeriesForPrediction"},
}  # fmt: skip

EXPERT = 3 * 8 * 8
SHARED = 3 * 8 * 16
LAYER = (8 * 8 + 8 + 8 * 8) + (8 * 4 + 4 * EXPERT + SHARED + 8) + 8
TOTAL = 2 * 8 + 3 * LAYER + 8 + 8 * 1 + 8 * 8


def test_a_mixture_of_experts_from_its_own_files_has_the_count_worked_out_by_hand() -> None:
    model = read_config(CONFIG, FILES)
    assert model.total == TOTAL
    assert model.custom_code
    assert model.architecture == "SeriesForPrediction"
    assert set(FILES) <= set(model.files_read)


def test_a_token_passes_the_experts_it_is_routed_to() -> None:
    assert read_config(CONFIG, FILES).active == TOTAL - 3 * 4 * EXPERT + 3 * 2 * EXPERT


def test_buffers_outside_the_checkpoint_are_told_apart() -> None:
    model = read_config(CONFIG, FILES)
    assert {buffer.name.rpartition(".")[2] for buffer in model.buffers} == {"inv_freq", "cos_cached"}
    assert not any(buffer.persistent for buffer in model.buffers)


def test_keys_that_nothing_read_and_defaults_that_were_used_are_listed() -> None:
    model = read_config(CONFIG, FILES)
    assert model.unread == ("novel_key",)
    assert {"hidden_size", "num_experts"} <= set(model.defaulted)
    assert "horizons" not in model.defaulted


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CannotTell, match=r"modeling_series\.py"):
        read_config(CONFIG, {"configuration_series.py": CONFIG_FILE})


def test_code_of_another_repository_is_asked_for_by_name() -> None:
    config = {**CONFIG, "auto_map": {"AutoConfig": "someone/base--configuration_series.SeriesConfig",
                                     "AutoModelForCausalLM": "someone/base--modeling_series.SeriesForPrediction"}}  # fmt: skip
    with pytest.raises(CannotTell, match="someone/base"):
        read_config(config, {"other.py": ""})
    given = {f"someone/base--{name}": text for name, text in FILES.items()}
    assert read_config(config, given).total == TOTAL


TIED = """
from torch import nn
from transformers import PreTrainedModel, PretrainedConfig


class TinyConfig(PretrainedConfig):
    model_type = "tiny_tied"

    def __init__(self, vocab_size=10, width=4, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.width = vocab_size, width


class TinyForCausalLM(PreTrainedModel):
    config_class = TinyConfig
    _tied_weights_keys = ["lm_head.weight"]

    def __init__(self, config):
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.width)
        self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.wte

    def get_output_embeddings(self):
        return self.lm_head
"""
TIED_CONFIG: dict[str, Any] = {
    "model_type": "tiny_tied",
    "auto_map": {"AutoConfig": "m.TinyConfig", "AutoModelForCausalLM": "m.TinyForCausalLM"},
}


def test_version_4_ties_the_output_embeddings_unless_told_not_to() -> None:
    tied = read_config(TIED_CONFIG, {"m.py": TIED})
    assert tied.total == 40
    assert [parameter.tied_to for parameter in tied.parameters] == [None, "wte.weight"]
    assert read_config({**TIED_CONFIG, "tie_word_embeddings": False}, {"m.py": TIED}).total == 80


OLD_STYLE = """
import numpy as np
import torch
from addict import Dict
from torch import nn
from torch.nn.modules.activation import *
from transformers import AutoTokenizer, CLIPVisionConfig, CLIPVisionModel, PreTrainedModel
from transformers.configuration_utils import PretrainedConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


class OldConfig(PretrainedConfig):
    model_type = "old_style"

    def __init__(self, hidden_size=8, num_attention_heads=2, rope_theta=100.0, rope_scaling=None, grid=3, **kwargs):
        self.hidden_size, self.num_attention_heads, self.rope_theta = hidden_size, num_attention_heads, rope_theta
        self.rope_scaling, self.grid = rope_scaling, grid
        super().__init__(**kwargs)


def positions(width, size):
    rates = np.arange(width // 2, dtype=np.float32)
    rates /= width / 2.0
    angles = np.einsum("m,d->md", np.arange(size, dtype=np.float32).reshape(-1), 1.0 / 100**rates)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


class OldForCausalLM(PreTrainedModel):
    config_class = OldConfig

    def __init__(self, config):
        super().__init__(config)
        size = config.grid if isinstance(config.grid, int) else config.grid[0]
        self.pos_embed = nn.Parameter(torch.from_numpy(positions(config.hidden_size, size)).float())
        self.rope_type = "default" if config.rope_scaling is None else config.rope_scaling["type"]
        inv_freq, _ = ROPE_INIT_FUNCTIONS[self.rope_type](config, None)
        self.register_buffer("inv_freq", inv_freq)
        self.tower = CLIPVisionModel(CLIPVisionConfig(hidden_size=4, intermediate_size=6, num_hidden_layers=1, num_attention_heads=2,
                                                      image_size=4, patch_size=2))
        parts = Dict(kind="linear", sizes={"out": 5})
        self.head = nn.Linear(self.tower.vision_model.config.hidden_size, parts.sizes.out) if parts.kind == "linear" else nn.Identity()
        self.tokenizer = AutoTokenizer.from_pretrained("someone/words")
"""
OLD_CONFIG: dict[str, Any] = {
    "model_type": "old_style",
    "rope_scaling": None,
    "auto_map": {"AutoConfig": "m.OldConfig", "AutoModelForCausalLM": "m.OldForCausalLM"},
}
CLIP_LAYER = 4 * (4 * 4 + 4) + (4 * 6 + 6) + (6 * 4 + 4) + 2 * 8
CLIP_TOWER = 4 + 3 * 2 * 2 * 4 + 5 * 4 + 2 * 8 + CLIP_LAYER


def test_code_of_version_4_finds_its_configuration_its_rates_and_its_towers() -> None:
    model = read_config(OLD_CONFIG, {"m.py": OLD_STYLE})
    assert model.total == 3 * 8 + CLIP_TOWER + 4 * 5 + 5
    shapes = {parameter.name: parameter.shape for parameter in model.parameters}
    assert shapes["pos_embed"] == (3, 8)
    assert shapes["tower.vision_model.embeddings.class_embedding"] == (4,)
    assert {buffer.name: buffer.shape for buffer in model.buffers}["inv_freq"] == (2,)


def test_a_module_that_an_unknown_package_makes_is_not_counted_as_nothing() -> None:
    text = OLD_STYLE.replace("from addict import Dict", "import unheard_of\nfrom addict import Dict").replace(
        'self.tokenizer = AutoTokenizer.from_pretrained("someone/words")', 'self.part = unheard_of.make("tower")'
    )
    with pytest.raises(CannotTell, match="part"):
        _ = read_config(OLD_CONFIG, {"m.py": text}).total
