"""Differences to published totals, with figures from the models' own pages and arithmetic on paper."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.checkpoint import CheckpointComparison, compare
from weighbridge.checkpoint.search import Choice, combine
from weighbridge.sources import CheckpointHeader, Evidence, Facts, Published, StoredTensor, TensorIndex


@dataclass(frozen=True)
class Held:
    name: str
    shape: tuple[int, ...]
    tied_to: str | None = None


def llama(layers: int, hidden: int, words: int, inner: int, tied: bool = False) -> list[Held]:
    """The parameters of a decoder without grouped heads, written out by hand."""
    held = [Held("model.embed_tokens.weight", (words, hidden)), Held("model.norm.weight", (hidden,))]
    for index in range(layers):
        stem = f"model.layers.{index}"
        held += [Held(f"{stem}.self_attn.{name}_proj.weight", (hidden, hidden)) for name in "qkvo"]
        held += [Held(f"{stem}.mlp.{name}_proj.weight", (inner, hidden)) for name in ("gate", "up")]
        held += [Held(f"{stem}.mlp.down_proj.weight", (hidden, inner))]
        held += [Held(f"{stem}.{name}_layernorm.weight", (hidden,)) for name in ("input", "post_attention")]
    return [*held, Held("lm_head.weight", (words, hidden), "model.embed_tokens.weight" if tied else None)]


SEVEN = llama(32, 4096, 32000, 11008)


def judged(held: list[Held], total: int, config: dict[str, Any], buffers: list[Held] | None = None, **facts: Any) -> CheckpointComparison:
    evidence = Evidence("m", "hub", "2026-01-01", config, facts=Facts(published=Published(total, "exact", "page"), **facts))
    found = compare(held, buffers or [], evidence)
    assert found is not None
    return found


def test_llama_2_7b_stores_64_rotary_frequencies_in_each_of_32_layers() -> None:
    found = judged(SEVEN, 6_738_417_664, {"hidden_size": 4096, "num_attention_heads": 32})
    assert found.explained == (("rotary frequencies of each layer", 32 * 64),)
    assert found.unexplained == 0
    assert found.delta == pytest.approx(-2048 / 6_738_417_664)


def test_an_equal_total_needs_no_reason() -> None:
    found = judged(SEVEN, 6_738_415_616, {})
    assert (found.delta, found.explained, found.unexplained) == (0, (), 0)


def test_a_tied_head_may_be_stored_twice() -> None:
    held = llama(2, 64, 1000, 128, tied=True)
    found = judged(held, sum(prod(one.shape) for one in held), {"hidden_size": 64})
    assert found.explained == (("the tied head's own copy", 64_000),)


def test_a_base_model_has_no_head() -> None:
    held = llama(2, 64, 1000, 128)
    found = judged(held, sum(prod(one.shape) for one in held) - 64_000, {"hidden_size": 64})
    assert found.explained == (("lm_head is not in the checkpoint", -64_000),)


def test_fp8_blocks_have_a_scale_each_and_partial_blocks_too() -> None:
    held = llama(2, 256, 1000, 320)
    per_layer = 4 * (2 * 2) + 2 * (3 * 2) + 2 * 3
    quantization = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    found = judged(held, sum(prod(one.shape) for one in held) + 2 * per_layer, {"hidden_size": 256, "quantization_config": quantization})
    assert found.explained == (("FP8 scales, one a 128x128 block", 2 * per_layer),)


def test_a_total_in_words_counts_eight_4_bit_weights_as_one_with_scales_and_zero_points() -> None:
    held = llama(2, 256, 1000, 512)
    matrices = [(256, 256)] * 4 + [(512, 256)] * 2 + [(256, 512)]
    stored_more = sum(
        rows * columns // 8 - rows * columns + rows * columns // 128 + rows * columns // 128 // 8 for rows, columns in matrices
    )
    quantization = {"quant_method": "awq", "bits": 4, "group_size": 128}
    found = judged(held, sum(prod(one.shape) for one in held) + 2 * stored_more, {"hidden_size": 256, "quantization_config": quantization})
    assert found.explained == (("4-bit weights packed into words, with scales and zero points", 2 * stored_more),)


def test_a_prediction_layer_is_a_layer_a_joint_projection_norms_and_copies() -> None:
    held = llama(2, 64, 1000, 128)
    layer = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64
    more = layer + 2 * 64 * 64 + 3 * 64 + 2 * 64_000
    found = judged(held, sum(prod(one.shape) for one in held) + more, {"hidden_size": 64, "num_nextn_predict_layers": 1})
    assert found.explained == (("layers that predict further tokens", more),)


def test_a_padded_vocabulary_adds_rows_to_embedding_and_head() -> None:
    held = llama(2, 64, 1000, 128)
    found = judged(held, sum(prod(one.shape) for one in held) + 24 * 2 * 64, {"hidden_size": 64})
    assert found.explained == (("a vocabulary padded from 1,000 to 1,024", 3072),)


def test_what_no_reason_gives_exactly_stays_unexplained() -> None:
    found = judged(SEVEN, 6_738_415_616 + 12_345_677, {"hidden_size": 4096, "num_attention_heads": 32})
    assert found.explained == ()
    assert found.unexplained == 12_345_677


def test_a_rounded_figure_is_said_to_be_rounded() -> None:
    evidence = Evidence("m", "hub", "2026-01-01", {}, facts=Facts(published=Published(7_000_000_000, "rounded", "page")))
    found = compare(SEVEN, [], evidence)
    assert found is not None
    assert found.explained == (("the published figure is rounded", 7_000_000_000 - 6_738_415_616),)


def test_nothing_published_is_nothing_compared() -> None:
    assert compare(SEVEN, [], Evidence("m", "file", "2026-01-01", {})) is None


def test_an_indexs_bytes_give_a_total_by_the_configs_dtype() -> None:
    index = TensorIndex((), 2 * (6_738_415_616 + 2048), "model.safetensors.index.json")
    config = {"torch_dtype": "float16", "hidden_size": 4096, "num_attention_heads": 32}
    found = compare(SEVEN, [], Evidence("m", "folder", "2026-01-01", config, facts=Facts(index=index)))
    assert found is not None
    assert (found.kind, found.unexplained) == ("from bytes", 0)


def stored(held: list[Held]) -> dict[str, StoredTensor]:
    return {one.name: StoredTensor("BF16", one.shape) for one in held}


def by_header(held: list[Held], tensors: dict[str, StoredTensor], config: dict[str, Any] | None = None) -> CheckpointComparison:
    evidence = Evidence("m", "folder", "2026-01-01", config or {}, tensors=CheckpointHeader(tensors, ("m",), "m"))
    found = compare(held, [], evidence)
    assert found is not None
    return found


def test_a_header_shows_each_reason_by_name() -> None:
    held = llama(2, 64, 1000, 128, tied=True)
    tensors = stored(held) | {
        "model.layers.0.self_attn.rotary_emb.inv_freq": StoredTensor("F32", (16,)),
        "model.layers.2.mlp.down_proj.weight": StoredTensor("BF16", (64, 128)),
        "model.layers.0.mlp.down_proj.weight_scale_inv": StoredTensor("F32", (1, 1)),
        "score.weight": StoredTensor("BF16", (2, 64)),
    }  # fmt: skip
    found = by_header(held, tensors)
    assert dict(found.explained) == {
        "the tied head's own copy": 64_000,
        "layers that predict further tokens": 64 * 128,
        "heads that this class doesn't have": 128,
        "stored buffers": 16,
        "quantization scales and zero points": 1,
    }
    assert found.unexplained == 0


def test_packed_words_count_as_the_weights_that_they_hold() -> None:
    held = llama(1, 64, 1000, 128)
    tensors = stored(held)
    del tensors["model.layers.0.mlp.down_proj.weight"]
    tensors |= {
        "model.layers.0.mlp.down_proj.qweight": StoredTensor("I32", (128 // 8, 64)),
        "model.layers.0.mlp.down_proj.scales": StoredTensor("F16", (1, 64)),
        "model.layers.0.mlp.down_proj.qzeros": StoredTensor("I32", (1, 8)),
        "model.layers.0.mlp.down_proj.g_idx": StoredTensor("I32", (128,)),
    }
    found = by_header(held, tensors, {"quantization_config": {"quant_method": "gptq", "bits": 4}})
    assert dict(found.explained) == {
        "packed weights, several to a stored word": 128 * 8 - 128 * 64,
        "quantization scales and zero points": 64 + 8 + 128,
    }
    assert found.unexplained == 0


def test_an_incomplete_header_is_no_total() -> None:
    header = CheckpointHeader(stored(SEVEN), ("m",), "m", complete=False)
    evidence = Evidence("m", "folder", "2026-01-01", {}, tensors=header)
    assert compare(SEVEN, [], evidence) is None
    assert compare(SEVEN, [], replace(evidence, tensors=replace(header, complete=True))) is not None


@given(st.lists(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_a_combination_sums_exactly_and_is_found_where_three_reasons_make_one(sizes: list[list[int]], data: st.DataObject) -> None:
    groups = [[Choice(f"{place}", size) for size in group] for place, group in enumerate(sizes)]
    taken = data.draw(st.lists(st.sampled_from(range(len(groups))), unique=True, min_size=1, max_size=3))
    surplus = sum(data.draw(st.sampled_from(sizes[place])) for place in taken)
    found = combine(surplus, groups)
    if surplus:
        assert found is not None
        assert sum(choice.parameters for choice in found) == surplus
        assert len({choice.why for choice in found}) == len(found) <= len(taken)
