"""What a cache keeps, held against arithmetic on paper: models of a few layers, every size in its config."""

from typing import Any

import pytest

from weighbridge.jobs.caches import Kept, groups
from weighbridge.jobs.estimate import Estimate, estimate
from weighbridge.jobs.job import Job
from weighbridge.reading.reader import Request, read_request

BF16 = 2
SMALL = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 8}


def served(architecture: str, config: dict[str, Any], **job: Any) -> Estimate:
    """Serving a model of that class."""
    model = read_request(Request("paper", {"architectures": [architecture], **config}, {}, None, architecture))
    return estimate(model, Job(method="serve", **job))


def kinds(found: Estimate) -> dict[str, tuple[int, int, int | None]]:
    """kind -> (layers, bytes a token of them all, window)."""
    return {group.kind: (group.layers, group.bytes_per_token, group.window) for group in found.cache}


def test_grouped_heads_are_counted_with_the_head_size_that_the_config_names() -> None:
    """4 layers x keys and values x 2 heads x 24 (not 64 / 8) x 2 bytes = 768 a token; three sequences of 50 tokens."""
    config = {"model_type": "qwen3", **SMALL, "num_key_value_heads": 2, "head_dim": 24}
    found = served("Qwen3ForCausalLM", config, context=50, sequences=3)
    assert kinds(found) == {"full": (4, 768, None)}
    assert found.cache_bytes == 768 * 50 * 3


def test_a_sliding_layer_keeps_its_window_less_one_token_whatever_storage_lies_behind() -> None:
    """2 of 4 layers slide over 16 tokens: 2 x 2 x 8 heads x 8 x 2 bytes = 512 a token of a group; 100 tokens and 15."""
    layers = ["sliding_attention", "full_attention"] * 2
    config = {"model_type": "qwen3", **SMALL, "num_key_value_heads": 8, "head_dim": 8}
    config |= {"layer_types": layers, "sliding_window": 16, "use_sliding_window": True}
    found = served("Qwen3ForCausalLM", config, context=100)
    assert kinds(found) == {"full": (2, 512, None), "sliding": (2, 512, 16)}
    assert found.cache_bytes == 512 * 100 + 512 * 15


def test_a_window_that_is_not_full_yet_grows_as_full_attention_does() -> None:
    """All 4 layers: 4 x 2 x 8 x 8 x 2 = 1,024 bytes a token."""
    config = {"model_type": "mistral", **SMALL, "num_key_value_heads": 8, "head_dim": 8, "sliding_window": 4096}
    found = served("MistralForCausalLM", config, context=64)
    assert kinds(found) == {"sliding": (4, 1024, 4096)}
    assert found.cache_bytes == 1024 * 64


def test_latent_attention_keeps_the_latent_and_the_rotary_part() -> None:
    """4 layers x (32 + 8) x 2 bytes = 320 a token, whatever the heads are."""
    config = {"model_type": "deepseek_v3", **SMALL, "num_key_value_heads": 8, "kv_lora_rank": 32, "qk_rope_head_dim": 8}
    config |= {"q_lora_rank": 24, "qk_nope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1}
    config |= {"topk_group": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_shared_experts": 1}
    found = served("DeepseekV3ForCausalLM", config, context=40)
    assert kinds(found) == {"latent": (4, 320, None)}
    assert found.cache_bytes == 320 * 40


def test_a_linear_layer_keeps_a_state_of_fixed_size() -> None:
    """One attention layer of 2 x 2 heads x 16 x 2 bytes = 128 a token; three states of 4 x 8 x 8 floats and 4 convolved inputs."""
    config = {"model_type": "qwen3_next", **SMALL, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2}
    config |= {"layer_types": ["linear_attention"] * 3 + ["full_attention"], "linear_num_value_heads": 4, "linear_num_key_heads": 2}
    config |= {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "moe_intermediate_size": 32}
    found = served("Qwen3NextForCausalLM", config | {"shared_expert_intermediate_size": 32}, context=80)
    state = 4 * 8 * 8 * 4 + (2 * 2 * 8 + 4 * 8) * 4 * BF16
    assert kinds(found) == {"fixed state": (3, 0, None), "full": (1, 128, None)}
    assert found.cache_bytes == 128 * 80 + 3 * state


def test_an_encoder_decoder_keeps_its_own_tokens_and_the_encoders() -> None:
    """2 layers x keys and values x 4 heads x 16 x 2 bytes = 512 a token in each of the two caches."""
    config = {"model_type": "t5", "vocab_size": 128, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4}
    config |= {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    found = served("T5ForConditionalGeneration", config, context=30)
    assert kinds(found) == {"full": (2, 512, None), "cross": (2, 512, None)}


def test_an_encoder_keeps_nothing() -> None:
    config = {"model_type": "bert", **SMALL, "max_position_embeddings": 128}
    found = served("BertForMaskedLM", config, context=64)
    assert found.cache_bytes is None
    assert not found.cache


@pytest.mark.parametrize(("kv_dtype", "itemsize"), [("float8_e4m3fn", 1), ("bfloat16", 2), ("float32", 4)])
def test_another_type_of_cache_changes_its_bytes_in_proportion(kv_dtype: str, itemsize: int) -> None:
    config = {"model_type": "llama", **SMALL, "num_key_value_heads": 2}
    found = served("LlamaForCausalLM", config, context=32, kv_dtype=kv_dtype)
    assert found.cache_bytes == 4 * 2 * 2 * 8 * itemsize * 32


def test_where_shapes_do_not_say_what_a_token_adds_two_contexts_do() -> None:
    now = [Kept("full", 1000, 0, None), Kept("full", 64, 0, None)]
    then = [Kept("full", 600, 0, None), Kept("full", 64, 0, None)]
    assert groups(now, then, tokens_apart=20, sequences=2) == [(1, "full", 10, None), (1, "fixed state", 0, None)]
