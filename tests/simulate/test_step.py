"""Torch's own fake tensors against the stored grid and against arithmetic on paper."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from weighbridge.simulate import simulate

GOLDEN = Path(__file__).parent.parent / "golden" / "memory"
TINY = {"model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
PICKED = [("gpt2", "full", "512", "1", "false"), ("vit-b16", "lora", "197", "2", "true"), ("llama-3.2-1b", "lora", "512", "1", "true")]


def grid_row(model, method, seq_tokens, batch, checkpointing):
    text = gzip.decompress((GOLDEN / "grid.csv.gz").read_bytes()).decode()
    wanted = {
        "model": model,
        "method": method,
        "seq_tokens": seq_tokens,
        "batch": batch,
        "checkpointing": checkpointing,
        "precision": "amp",
    }
    return next(row for row in csv.DictReader(io.StringIO(text)) if wanted.items() <= row.items())


@pytest.mark.parametrize("picked", PICKED, ids=" ".join)
def test_a_stored_grid_point_is_reproduced_to_the_byte(picked):
    row = grid_row(*picked)
    model = json.loads((GOLDEN / "grid_models.json").read_text())[row["model"]]
    found = simulate(
        model["cls"],
        model["config"],
        method=row["method"],
        precision=row["precision"],
        attention=row["attention"],
        batch=int(row["batch"]),
        seq_tokens=int(row["seq_tokens"]),
        checkpointing=row["checkpointing"] == "true",
    )
    ours = found.peak_requested_bytes, found.peak_allocated_bytes, found.peak_reserved_bytes, found.held_after_forward_bytes
    names = "peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "held_after_forward_bytes"
    assert ours == tuple(int(row[name]) for name in names)
    assert found.peak_operation == row["peak_operation"]


def test_weights_and_adam_states_are_twelve_bytes_a_parameter_under_mixed_precision():
    found = simulate("LlamaForCausalLM", TINY, batch=1, seq_tokens=32)
    assert found.live_at_peak["weights"] == 4 * found.parameters
    assert found.live_at_peak["optimizer"] == 8 * found.parameters + 4 * 21  # and a step counter for each of the 21 parameters
    assert found.unknown_values == []


def test_events_add_up_to_the_peak():
    found = simulate("LlamaForCausalLM", TINY, batch=1, seq_tokens=32, events=True)
    held = peak = 0
    for event in found.events:
        held += event.delta_bytes
        peak = max(peak, held)
    before_the_step = found.peak_requested_bytes - peak
    assert before_the_step >= 12 * found.parameters
    assert held < 0.01 * peak + 2 * 8_519_680  # all but the workspaces is given back


@pytest.mark.parametrize("precision", ["amp", "fp16", "bf16", "fp32"])
def test_checkpointing_never_needs_more_than_keeping_everything(precision):
    full = simulate("LlamaForCausalLM", TINY, batch=8, seq_tokens=256, precision=precision)
    ckpt = simulate("LlamaForCausalLM", TINY, batch=8, seq_tokens=256, precision=precision, checkpointing=True)
    assert ckpt.held_after_forward_bytes < full.held_after_forward_bytes


def test_padding_turns_flash_into_the_efficient_kernel():
    assert simulate("LlamaForCausalLM", TINY, batch=2, seq_tokens=64).attention_kernels == {"flash": 2}
    assert simulate("LlamaForCausalLM", TINY, batch=2, seq_tokens=64, padded=True).attention_kernels == {"efficient": 2}


def test_adapters_train_a_small_part_of_the_parameters():
    found = simulate("LlamaForCausalLM", TINY, method="lora", batch=1, seq_tokens=32, lora_rank=4)
    # q, o: 64 x 64; k, v: 64 x 32; gate, up, down: 64 x 128; rank 4, two layers
    assert found.trainable == 2 * 4 * (2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 128))


def test_sgd_keeps_no_state():
    found = simulate("LlamaForCausalLM", TINY, batch=1, seq_tokens=32, optimizer="sgd")
    assert "optimizer" not in found.live_at_peak
