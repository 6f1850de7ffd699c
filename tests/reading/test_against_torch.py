"""Names, shapes and totals of small models, against the real classes on torch's meta device."""

from typing import Any

import pytest

from support.reading import read_config, torch_parameters

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
}
ENCODER: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 128}
VISION: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("llama", "LlamaForCausalLM", SMALL),
    ("llama", "LlamaForSequenceClassification", {**SMALL, "num_labels": 5}),
    ("qwen3", "Qwen3ForCausalLM", {**SMALL, "head_dim": 32, "tie_word_embeddings": True}),
    (
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        {**SMALL, "num_experts": 6, "moe_intermediate_size": 32, "decoder_sparse_step": 2, "mlp_only_layers": [0]},
    ),
    ("mistral", "MistralForCausalLM", SMALL),
    ("mixtral", "MixtralForCausalLM", {**SMALL, "num_local_experts": 3}),
    ("gemma2", "Gemma2ForCausalLM", {**SMALL, "head_dim": 16}),
    ("gemma3_text", "Gemma3ForCausalLM", {**SMALL, "head_dim": 16}),
    ("gpt2", "GPT2LMHeadModel", {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 128, "n_positions": 32}),
    (
        "gpt_neo",
        "GPTNeoForCausalLM",
        {"hidden_size": 64, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4, "vocab_size": 99},
    ),
    ("falcon", "FalconForCausalLM", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 96}),
    (
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        {
            **SMALL,
            "num_key_value_heads": 4,
            "n_routed_experts": 4,
            "moe_intermediate_size": 16,
            "q_lora_rank": 24,
            "kv_lora_rank": 16,
            "first_k_dense_replace": 1,
            "n_group": 2,
            "topk_group": 1,
        },
    ),
    ("gpt_oss", "GptOssForCausalLM", {**SMALL, "head_dim": 16, "num_local_experts": 4}),
    ("mamba", "MambaForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100}),
    (
        "mamba2",
        "Mamba2ForCausalLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "head_dim": 16, "num_heads": 4, "n_groups": 2},
    ),
    ("bert", "BertForMaskedLM", ENCODER),
    ("bert", "BertModel", ENCODER),
    ("roberta", "RobertaForSequenceClassification", {**ENCODER, "num_labels": 3}),
    ("modernbert", "ModernBertForMaskedLM", {**ENCODER, "pad_token_id": 0}),
    (
        "t5",
        "T5ForConditionalGeneration",
        {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4, "vocab_size": 128},
    ),
    (
        "bart",
        "BartForConditionalGeneration",
        {
            "d_model": 64,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 96,
            "decoder_ffn_dim": 96,
            "vocab_size": 128,
        },
    ),
    (
        "whisper",
        "WhisperForConditionalGeneration",
        {
            "d_model": 64,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 96,
            "decoder_ffn_dim": 96,
            "vocab_size": 51865,
        },
    ),
    ("vit", "ViTForImageClassification", {**VISION, "num_labels": 7}),
    ("clip", "CLIPModel", {"projection_dim": 32}),
    (
        "wav2vec2",
        "Wav2Vec2ForCTC",
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 40},
    ),
    (
        "detr",
        "DetrForObjectDetection",
        {
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
            "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]},
        },
    ),
    ("qwen2_vl", "Qwen2VLForConditionalGeneration", {"text_config": {"model_type": "qwen2_vl_text", **SMALL}}),
]


@pytest.mark.parametrize(("model_type", "class_name", "values"), CASES, ids=[name for _, name, _ in CASES])
def test_names_shapes_and_total_equal_those_of_the_real_class(model_type: str, class_name: str, values: dict[str, Any]) -> None:
    shapes, total = torch_parameters(model_type, class_name, values)
    model = read_config({**values, "model_type": model_type}, architecture=class_name)
    assert {parameter.name: parameter.shape for parameter in model.parameters} == shapes
    assert model.total == total


def test_a_config_without_architectures_gives_the_main_head() -> None:
    assert read_config({**SMALL, "model_type": "qwen3"}).architecture == "Qwen3ForCausalLM"


def test_the_first_known_architecture_is_built() -> None:
    config = {**ENCODER, "model_type": "bert", "architectures": ["NoSuchBert", "BertForTokenClassification", "BertModel"]}
    assert read_config(config).architecture == "BertForTokenClassification"


def test_llama_3_1_8b_has_its_published_total() -> None:
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "rope_theta": 500000.0,
        "max_position_embeddings": 131072,
        "rope_scaling": {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
    }
    model = read_config(config)
    assert model.total == 8_030_261_248
    assert model.config_dtype is not None
    assert model.config_dtype.name == "bfloat16"
    assert model.holes == ()
