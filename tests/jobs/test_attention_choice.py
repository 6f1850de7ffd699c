"""Which attention a model gets when a job asks for SDPA."""

from weighbridge.jobs.prepare import choose_attention
from weighbridge.reading.reader import Request, read_request


def test_a_model_without_sdpa_stays_eager_although_its_layers_keep_the_same_config():
    model = read_request(Request("gemma", {"model_type": "gemma2", "num_hidden_layers": 2}, {}, None, "Gemma2ForCausalLM"))
    assert choose_attention(model, "sdpa") == "eager"
    assert model.config.fields["_attn_implementation_internal"] == "eager"
