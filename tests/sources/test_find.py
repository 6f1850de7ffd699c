"""References to local things and names, and what a hostile folder or text can't do."""

import io
import json
import sys
from pathlib import Path

import pytest

from support.loopback_hub import safetensors_bytes
from weighbridge.base.errors import BadHeader, BadInput, NetworkError, NotFound, UsageError
from weighbridge.sources import catalogue, find, parse_id
from weighbridge.sources.text import load_object

CONFIG = {"model_type": "llama", "hidden_size": 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(CONFIG))
    return place


def test_a_folder_a_config_and_standard_input_give_the_same_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(CONFIG).encode())))
    found = [find(str(folder)), find(str(folder / "config.json")), find("-")]
    assert [(one.source, one.config) for one in found] == [("folder", CONFIG), ("file", CONFIG), ("stdin", CONFIG)]
    assert found[0].title == "model"


def test_an_existing_folder_wins_over_a_name_of_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent.parent)
    assert find(f"{folder.parent.name}/model").source == "folder"


def test_code_is_read_as_text_and_its_absence_told(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | {"auto_map": {"AutoModel": "modeling_x.X", "AutoConfig": "configuration_x.C"}}))
    (folder / "modeling_x.py").write_text("from .layers import L\nraise SystemExit\n")
    (folder / "layers.py").write_text("import helper\n")
    (folder / "helper.py").write_text("")
    found = find(str(folder))
    assert set(found.files) == {"modeling_x.py", "layers.py", "helper.py"}
    assert any("configuration_x.py" in warning for warning in found.warnings)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json", "modeling_x.py"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    outside = folder.parent / "secret"
    outside.write_text(json.dumps(CONFIG | {"auto_map": {"AutoModel": "modeling_x.X"}}))
    if name == "modeling_x.py":
        (folder / "config.json").write_text(outside.read_text())
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(BadInput, match="link out of its folder"):
        find(str(folder))


def test_links_of_the_hubs_cache_into_its_own_blobs_are_followed(tmp_path: Path) -> None:
    model = tmp_path / "models--acme--tiny"
    snapshot = model / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    (model / "blobs" / "1234").write_text(json.dumps(CONFIG))
    (snapshot / "config.json").symlink_to("../../blobs/1234")
    assert find(str(snapshot)).config == CONFIG
    (tmp_path / "other").mkdir()
    (snapshot / "generation_config.json").symlink_to(tmp_path / "other")
    with pytest.raises(BadInput):
        find(str(snapshot))


def test_a_shard_named_with_a_parent_path_is_refused(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    with pytest.raises(BadInput, match="out of its folder"):
        find(str(folder))


def test_shards_that_are_not_here_leave_an_incomplete_header(folder: Path) -> None:
    (folder / "one.safetensors").write_bytes(safetensors_bytes({"a": ("F32", [2])}))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    found = find(str(folder))
    assert found.tensors is not None
    assert not found.tensors.complete
    assert any("1 of 2 files" in warning for warning in found.warnings)


def test_a_truncated_checkpoint_is_an_error_and_a_git_lfs_pointer_a_warning(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(safetensors_bytes({"a": ("F32", [20])})[:-4])
    with pytest.raises(BadHeader, match="truncated"):
        find(str(folder))
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert any("Git LFS" in warning for warning in find(str(folder)).warnings)


def test_a_pickle_is_never_opened_but_its_index_may_be_read(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {"total_size": 10.0}, "weight_map": {"a": "x.bin"}}))
    found = find(str(folder))
    assert found.tensors is None
    assert found.facts.index is not None
    assert (found.facts.index.names, found.facts.index.total_bytes) == (("a",), 10)
    with pytest.raises(UsageError, match="pickle"):
        find(str(folder / "pytorch_model.bin"))


def test_an_adapter_names_its_base_and_a_pipeline_its_parts(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "acme/base"}')
    with pytest.raises(NotFound, match="adapter") as caught:
        find(str(tmp_path))
    assert "acme/base" in caught.value.hint


def test_a_graph_file_is_evidence_and_a_finished_plan_is_not(tmp_path: Path) -> None:
    graph = {"schema": "weighbridge.graph/1", "model": {"id": "acme/tiny", "revision": "abc", "config": CONFIG}}
    (tmp_path / "tiny.weigh.json").write_text(json.dumps(graph))
    found = find(str(tmp_path / "tiny.weigh.json"))
    assert (found.source, found.title, found.revision, found.config, found.graph) == ("graph", "acme/tiny", "abc", CONFIG, graph)
    (tmp_path / "plan.json").write_text('{"schema": "weighbridge.plan/1"}')
    with pytest.raises(BadInput, match="finished plan"):
        find(str(tmp_path / "plan.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"), ("[]", "list"), ('{"a": NaN}', "NaN"), ('{"a": 1, "a": 2}', "twice"), ('{"a": ' + "9" * 65 + "}", "65 digits"),
        ('{"a": ' * 70 + "1" + "}" * 70, "levels deep"), ('{"a": ' * 100_000 + "1" + "}" * 100_000, "nested"),
    ],
)  # fmt: skip
def test_json_that_a_config_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_object(text, "config.json")


def test_what_transformers_writes_itself_is_let_through() -> None:
    text = '\ufeff{"time_step_limit": [0.0, Infinity], "model_max_length": 1000000000000000019884624838656, "a": 1, "a": 1}'
    assert load_object(text.encode(), "config.json")["time_step_limit"][1] == float("inf")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("acme/tiny", ("acme/tiny", "", None)), ("acme/tiny@v1.0", ("acme/tiny", "", "v1.0")), ("gpt2", ("gpt2", "", None)),
        ("acme/pipe:unet@refs/pr/3", ("acme/pipe", "unet", "refs/pr/3")),
        ("https://huggingface.co/acme/tiny", ("acme/tiny", "", None)),
        ("https://huggingface.co/acme/tiny/tree/v2", ("acme/tiny", "", "v2")),
    ],
)  # fmt: skip
def test_names_are_taken_apart(reference: str, expected: tuple[str, str, str | None]) -> None:
    assert parse_id(reference) == expected


@pytest.mark.parametrize("reference", ["", "a b", "-x", "a/b/c", "acme/..", "acme/tiny@", "https://huggingface.co/", "a\0b", "x" * 5000])
def test_what_names_nothing_is_a_usage_error(reference: str) -> None:
    with pytest.raises(UsageError):
        find(reference)


def test_two_revisions_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="two revisions"):
        find("acme/tiny@a", revision="b")


def test_the_catalogue_answers_offline_in_any_case_and_by_a_bare_name() -> None:
    assert find("QWEN/qwen3-1.7b", offline=True).title == "Qwen/Qwen3-1.7B"
    assert find("gpt2", offline=True).title == "openai-community/gpt2"
    published = find("Qwen/Qwen3-1.7B", offline=True).facts.published
    assert published is not None
    assert published.total == 2_031_739_904


def test_a_mistyped_name_gets_near_misses() -> None:
    with pytest.raises(NotFound) as caught:
        catalogue.get("Qwen/Qwen3-1.8B")
    assert "Qwen/Qwen3-1.7B" in caught.value.hint
    with pytest.raises(NetworkError) as offline:
        find("Qwen/Qwen3-1.8B", offline=True)
    assert "Qwen/Qwen3-1.7B" in offline.value.hint


def test_a_copy_that_is_not_the_published_config_is_marked() -> None:
    assert any("rewritten" in warning for warning in find("MiniMaxAI/MiniMax-M3", offline=True).warnings)


def test_the_catalogue_does_not_answer_for_a_revision_that_it_does_not_hold() -> None:
    with pytest.raises(NetworkError):
        find("Qwen/Qwen3-1.7B@abc", offline=True)


def test_every_entry_of_the_catalogue_can_be_read_and_holds_no_machine_path() -> None:
    names = catalogue.names()
    assert len(names) > 300
    for name in names:
        found = catalogue.get(name)
        assert found.title == name
        assert found.config
        assert not any(isinstance(value, str) and value.startswith(("/", "~", "C:\\")) for value in found.config.values())
