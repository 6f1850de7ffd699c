"""The pipeline: from a name to a report, without a network."""

import json

import pytest

from weighbridge import answers, pipeline, reading
from weighbridge.base.errors import BadInput, NetworkError, UsageError
from weighbridge.request import make_request


def test_the_readmes_model_has_the_published_count():
    report = answers.plan("Qwen/Qwen3-8B", offline=True)
    # The Hub's own count of the published checkpoint.
    assert report.parameters.total == 8_190_735_360
    assert report.parameters.delta == 0
    assert report.parameters.by_dtype == {"bfloat16": 8_190_735_360}
    assert report.model.source == "catalogue"
    assert report.model.custom_code is False
    assert [(layer.type, layer.repeat) for layer in report.structure if layer.repeat > 1] == [("Qwen3DecoderLayer", 36)]


def test_a_model_with_code_of_its_own_is_read_and_not_run():
    report = answers.plan("Maple728/TimeMoE-50M", offline=True)
    assert report.parameters.total == 113_352_192
    assert report.parameters.delta == 0
    assert report.model.custom_code is True
    assert report.model.code_from == "repository"


def test_the_structure_has_no_jobs_on_its_page():
    report = pipeline.structure_of(make_request("Qwen/Qwen3-8B", offline=True))
    assert report.structure[0].parameters == 8_190_735_360
    assert not any(job.fits for job in report.jobs)


def test_a_graph_file_gives_the_model_again(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    config = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "num_hidden_layers": 1,
        "hidden_size": 8,
        "num_attention_heads": 2,
    }
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 16, "vocab_size": 11, "max_position_embeddings": 7}))
    first = answers.plan(str(folder))
    model = reading.read(pipeline.sources.find(str(folder)))
    (tmp_path / "tiny.weigh.json").write_text(json.dumps(reading.model_to_graph(model)))
    again = answers.plan(str(tmp_path / "tiny.weigh.json"))
    assert again.parameters.total == first.parameters.total
    assert [layer.type for layer in again.structure] == [layer.type for layer in first.structure]


def test_a_graph_file_without_a_model_is_bad_input(tmp_path):
    (tmp_path / "empty.weigh.json").write_text('{"schema": "weighbridge.graph/1"}')
    with pytest.raises(BadInput):
        answers.plan(str(tmp_path / "empty.weigh.json"))


def test_an_unknown_model_offline_is_a_network_error_with_a_hint():
    with pytest.raises(NetworkError) as refused:
        answers.plan("nobody/nothing-like-this", offline=True)
    assert refused.value.hint


def test_an_unknown_card_is_refused_before_anything_is_weighed():
    with pytest.raises(UsageError, match="h1000"):
        answers.plan("Qwen/Qwen3-8B", offline=True, card="h1000")
