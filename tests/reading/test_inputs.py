"""The inputs of a call, from facts alone."""

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.base.dtypes import BY_NAME
from weighbridge.reading.input_facts import InputFacts, InputSpec, Literal, parse
from weighbridge.reading.inputs import candidate_inputs, default_inputs

CAUSAL = InputFacts(
    {"vocab_size": 32000, "pad_token_id": 5}, "llama", "LlamaForCausalLM", "input_ids", ("input_ids", "labels", "use_cache")
)
VISION = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
LLAVA = InputFacts(
    {"image_token_index": 32000, "vision_feature_select_strategy": "default", "vision_config": VISION, "text_config": {}},
    "llava",
    "LlavaForConditionalGeneration",
    "input_ids",
    ("input_ids", "pixel_values", "labels", "use_cache"),
)


def test_a_causal_model_gets_tokens_and_as_many_labels_and_no_mask():
    made = default_inputs(CAUSAL, 2, 8, labels=True)
    assert {name: value.shape for name, value in made.items() if isinstance(value, InputSpec)} == {"input_ids": (2, 8), "labels": (2, 8)}
    assert made["use_cache"] == Literal(False, "a Trainer keeps no cache")


def test_ordinary_tokens_are_no_special_tokens():
    assert (default_inputs(CAUSAL, 1, 4, labels=False)["input_ids"].array() == 6).all()


def test_a_picture_takes_one_placeholder_for_each_patch():
    made = default_inputs(LLAVA, 2, 1024, labels=True)
    assert made["pixel_values"].shape == (2, 3, 336, 336)
    assert made["input_ids"].shape == (2, 1024)
    assert ((made["input_ids"].array() == 32000).sum(axis=1) == 576).all()
    assert ((made["labels"].array() == -100).sum(axis=1) == 576).all()


def test_a_sequence_too_short_for_its_picture_is_made_longer():
    assert default_inputs(LLAVA, 1, 64, labels=False)["input_ids"].shape == (1, 576 + 16)


def test_one_candidate_feeds_text_alone():
    assert ["input_ids"] in [list(call) for call in candidate_inputs(LLAVA, 1, 64)]


def test_a_decoder_gets_its_own_tokens_when_there_are_no_labels():
    facts = InputFacts({"is_encoder_decoder": True}, "t5", "T5Model", "input_ids", ("input_ids", "decoder_input_ids"))
    assert default_inputs(facts, 2, 16, labels=False)["decoder_input_ids"].shape == (2, 16)


def test_a_flattened_picture_has_its_grid_beside_it():
    config = {"image_token_id": 9, "vision_config": {"patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2, "in_channels": 3}}
    facts = InputFacts(config, "qwen2_vl", "Qwen2VLModel", "input_ids", ("input_ids", "pixel_values", "image_grid_thw"))
    made = default_inputs(facts, 2, 512, labels=False)
    assert made["image_grid_thw"].array().tolist() == [[1, 32, 32]] * 2
    assert made["pixel_values"].shape == (2 * 32 * 32, 3 * 2 * 14 * 14)
    assert ((made["input_ids"].array() == 9).sum(axis=1) == 32 * 32 // 4).all()


@given(batch=st.integers(1, 4), seq_tokens=st.integers(1, 2000), labels=st.booleans())
def test_every_argument_survives_its_row(batch, seq_tokens, labels):
    for facts in (CAUSAL, LLAVA):
        for value in default_inputs(facts, batch, seq_tokens, labels=labels).values():
            again = parse(value.as_json(), BY_NAME)
            assert again.as_json() == value.as_json()
            if isinstance(again, InputSpec) and again.runs is not None:
                assert again.array().shape == again.shape
