"""Single changes: nothing is played before a card asks, and a refusal never fits."""

from types import SimpleNamespace
from typing import Any

from weighbridge.base.errors import CannotTell
from weighbridge.cards import custom_card
from weighbridge.jobs.alternatives import Changed, JobFootprint, changes, ready
from weighbridge.jobs.job import Job
from weighbridge.jobs.split import NEVER, SPLIT, Halves, shares
from weighbridge.model import Model
from weighbridge.reading.reader import Request, read_request

GIB = 1 << 30
PARTS = {"weights": 600, "gradients": 0, "optimizer": 0, "activations": 400, "loss": 50, "cache": 0, "temporaries": 10, "context": 5}


def small(**changed: Any) -> Model:
    """Two blocks, an embedding of 128 x 64 and a head that is tied to it or not."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, **changed}
    return read_request(Request("small", config, {}, None, "LlamaForCausalLM"))


def fixed(nbytes: int) -> SimpleNamespace:
    return SimpleNamespace(reserved_bytes=lambda _batch, _seq: nbytes)


def test_changes_that_need_a_simulation_wait_for_a_card_and_are_played_once() -> None:
    begun: list[Job] = []

    def begin(_model: Model, job: Job, _attention: str) -> Any:
        begun.append(job)
        return fixed(GIB)

    job = Job(batch=2)
    found = tuple(changes(small(), job, JobFootprint("full", 2, 2048, fixed(4 * GIB)), PARTS, begin))
    assert [option for option, _ in found] == ["--batch 1", "--seq 1024", SPLIT, "--checkpointing", "--method lora", "--precision bf16"]
    assert [option for option, _ in ready(found)] == ["--batch 1", "--seq 1024", SPLIT]
    assert not begun
    card = custom_card(80 * GIB)
    lora = dict(found)["--method lora"]
    assert lora.device_bytes(1, 2048, card) == lora.device_bytes(2, 2048, card) == GIB + card.context_bytes
    assert [each.method for each in begun] == ["lora"]


def test_a_change_that_the_model_refuses_never_fits_and_leaves_the_attention_as_it_was() -> None:
    def begin(_model: Model, _job: Job, _attention: str) -> Any:
        raise CannotTell("the step", "it is not told")

    model = small()
    changed = Changed(model, Job(attention="eager"), 128, begin, Job())
    assert changed.device_bytes(1, 128, custom_card(GIB)) == NEVER
    assert model.config.fields["_attn_implementation_internal"] == "sdpa"


def test_a_served_model_is_changed_in_sequences_and_context() -> None:
    found = changes(small(), Job(method="serve", sequences=4), JobFootprint("serve", 4, 4096, fixed(GIB)), PARTS, lambda *_: fixed(1))
    assert [option for option, _ in found] == ["--sequences 1", "--context 2048", SPLIT]


def test_shares_count_the_embedding_the_blocks_and_the_head() -> None:
    """A block: 4 x 64 x 64 of attention, 3 x 64 x 96 of the MLP, two norms of 64; then a norm and the head."""
    block = 4 * 64 * 64 + 3 * 64 * 96 + 2 * 64
    assert shares(small()) == (128 * 64, [block, block], 64 + 128 * 64)
    assert shares(small(tie_word_embeddings=True)) == (128 * 64, [block, block], 64 + 128 * 64)


def test_the_worse_half_holds_half_of_what_is_cut_and_all_that_is_shared() -> None:
    """Two equal halves: states 300 and activations 200 each, the loss with the second, 15 and the card's context with both."""
    card = custom_card(GIB)
    halves = Halves(small(), JobFootprint("full", 1, 128, fixed(600 + 400 + 50 + 15)), PARTS)
    worst = halves.device_bytes(1, 128, card) - card.context_bytes
    assert abs(worst - (300 + 200 + 50 + 15)) < 3
