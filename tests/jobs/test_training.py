"""Training jobs against torch's fake tensors (stored peaks), and the laws that make a page's other numbers follow from few steps."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from weighbridge.base.errors import CannotTell
from weighbridge.jobs.estimate import Training, choose_attention, estimate
from weighbridge.jobs.job import Job
from weighbridge.reading.reader import Request, read_request

GOLDEN = Path(__file__).parent.parent / "golden" / "memory"
SMALL = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


def small_llama(layers: int = 4, **changes):
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": layers, **SMALL, **changes}
    return read_request(Request("small", config, {}))


@pytest.fixture(scope="module")
def llama():
    return small_llama()


def requested(run) -> int:
    """The most bytes that were asked for: what the reference recorded."""
    total = most = 0
    for index, (_, size, _) in enumerate(run.timeline.events):
        total += size
        if index >= run.timeline.start:
            most = max(most, total)
    return most


def wide_rows():
    with gzip.open(GOLDEN / "wide.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def grid_rows():
    with gzip.open(GOLDEN / "grid.csv.gz", "rt") as file:
        return list(csv.DictReader(io.StringIO(file.read())))


def test_the_published_grid_and_the_wide_set_are_there():
    assert len(grid_rows()) == 524
    assert len(wide_rows()) > 100
    assert len({row["model"] for row in wide_rows()}) >= 25


POINTS = [
    row
    for row in grid_rows()
    if row["model"] in {"gpt2", "bert-base", "llama-3.2-1b"}
    and row["batch"] == "2"
    and row["seq_tokens"] == "512"
    and row["precision"] == "amp"
]


@pytest.mark.parametrize("row", POINTS, ids=lambda row: f"{row['model']}-{row['method']}-{row['checkpointing']}")
def test_a_step_peaks_at_torchs_byte_count(row: dict):
    facts = json.loads((GOLDEN / "grid_models.json").read_text())[row["model"]]
    model = read_request(Request(row["model"], facts["config"], {}, None, facts["cls"]))
    job = Job(method=row["method"], batch=2, seq_tokens=512, checkpointing=row["checkpointing"] == "true", attention=row["attention"])
    training = Training(model, job, choose_attention(model, job.attention))
    assert requested(training.simulate(2, 512)) == pytest.approx(int(row["peak_requested_bytes"]), rel=1e-4)


def test_full_training_keeps_weights_and_two_moments_of_every_parameter(llama):
    found = estimate(llama, Job(seq_tokens=64))
    parameters = llama.total
    assert found.trainable == parameters
    assert 4 * parameters <= found.breakdown["weights"] < 4.2 * parameters
    assert 8 * parameters <= found.breakdown["optimizer"] < 8.8 * parameters


def test_lora_trains_rank_times_inputs_and_outputs_of_every_linear_layer_but_the_head(llama):
    rank, hidden, kv, inner, layers = 8, 64, 32, 128, 4
    widths = [(hidden, hidden), (hidden, kv), (hidden, kv), (hidden, hidden), (hidden, inner), (hidden, inner), (inner, hidden)]
    assert estimate(llama, Job(method="lora", lora_rank=rank, seq_tokens=64)).trainable == layers * rank * sum(a + b for a, b in widths)


def test_lora_wraps_only_the_layers_that_were_named(llama):
    found = estimate(llama, Job(method="lora", lora_rank=4, lora_targets="q_proj,v_proj", seq_tokens=64))
    assert found.trainable == 4 * 4 * ((64 + 64) + (64 + 32))


def test_a_model_is_as_it_was_after_lora(llama):
    before = estimate(llama, Job(seq_tokens=64)).peak.allocated_bytes
    estimate(llama, Job(method="lora", seq_tokens=64))
    assert estimate(llama, Job(seq_tokens=64)).peak.allocated_bytes == before


def test_checkpointing_keeps_less_for_backward_and_does_the_forward_twice(llama):
    plain, saving = (estimate(llama, Job(batch=4, seq_tokens=256, checkpointing=each)) for each in (False, True))
    assert saving.saved_bytes_per_token < plain.saved_bytes_per_token / 2
    assert plain.flops < saving.flops < 1.5 * plain.flops


def test_a_step_costs_six_flops_for_each_parameter_and_token():
    model = small_llama(hidden_size=256, intermediate_size=1024, num_attention_heads=4, num_key_value_heads=4, head_dim=64)
    tokens = 32
    linear = model.total - 512 * 256  # the embedding is a look-up
    assert estimate(model, Job(seq_tokens=tokens)).flops == pytest.approx(6 * linear * tokens, rel=0.1)


@pytest.mark.parametrize(
    "options", [{}, {"checkpointing": True}, {"method": "lora"}, {"precision": "bf16"}, {"optimizer": "adamw-foreach"}]
)
def test_alike_layers_played_once_take_the_bytes_of_all_of_them(options: dict):
    model = small_llama(layers=20)
    job = Job(seq_tokens=128, **options)
    folded, whole = (Training(model, job, "sdpa", fold=fold) for fold in (True, False))
    assert requested(folded.simulate(2, 128)) == pytest.approx(requested(whole.simulate(2, 128)), rel=1e-3)
    assert folded.folding is not None
    assert folded.folding.stacks[0].passed > 10
    assert folded.steps[2, 128].session.flops == pytest.approx(whole.steps[2, 128].session.flops, rel=1e-3)


@pytest.mark.parametrize(("batch", "seq_tokens"), [(5, 128), (40, 128), (1, 512), (3, 64)])
def test_another_batch_or_length_is_told_without_playing_it(llama, batch: int, seq_tokens: int):
    training = Training(llama, Job(seq_tokens=128), "sdpa")
    training.growth.run(1, 128)
    told = training.growth.allocated_bytes(batch, seq_tokens)
    assert told == pytest.approx(training.simulate(batch, seq_tokens).timeline.peak.allocated_bytes, rel=0.02)


def test_more_of_anything_never_takes_less(llama):
    growth = Training(llama, Job(), "sdpa").growth
    growth.run(1, 128)
    by_batch = [growth.allocated_bytes(batch, 128) for batch in (1, 2, 3, 4, 8, 16, 64)]
    by_length = [growth.allocated_bytes(1, length) for length in (64, 128, 256, 512)]
    assert by_batch == sorted(by_batch)
    assert by_length == sorted(by_length)


def test_eager_attention_keeps_the_square_of_the_length(llama):
    eager, fused = (estimate(llama, Job(seq_tokens=512, attention=each)) for each in ("eager", "sdpa"))
    heads, layers, tokens = 4, 4, 512
    assert eager.saved_bytes_per_token - fused.saved_bytes_per_token > layers * heads * tokens * 4


def test_the_parts_of_a_breakdown_are_what_is_allocated_at_the_peak(llama):
    found = estimate(llama, Job(seq_tokens=128))
    assert sum(found.breakdown.values()) == found.timeline.peak.allocated_bytes


def test_positions_that_a_model_does_not_have_are_refused():
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": 32,
        "n_embd": 32,
        "n_layer": 1,
        "n_head": 2,
        "vocab_size": 64,
    }
    model = read_request(Request("tiny", config, {}))
    with pytest.raises(CannotTell, match="out of range"):
        estimate(model, Job(seq_tokens=64))
