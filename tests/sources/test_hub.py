"""The real huggingface_hub client against a Hub on the loopback interface."""

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from support.loopback_hub import Hub, Repository, safetensors_bytes
from weighbridge.base.errors import AccessDenied, BadHeader, BadInput, NetworkError, NotFound, UsageError, WeighError
from weighbridge.sources import find

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "vocab_size": 10}
TENSORS = {"model.embed_tokens.weight": ("BF16", [10, 8]), "lm_head.weight": ("BF16", [10, 8]), "step": ("I64", [])}


def tiny(**more: bytes) -> Repository:
    files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors_bytes(TENSORS), "README.md": b"# tiny"}
    return Repository(files | {name.replace("__", "."): content for name, content in more.items()}, total=161)


def fetched(hub: Hub) -> list[str]:
    return [path.rpartition("/")[2] for method, path, _ in hub.requests if method == "GET" and "/resolve/" in path]


def test_a_model_comes_with_its_config_commit_header_and_published_total(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    found = find("acme/tiny")
    assert (found.title, found.source, found.config) == ("acme/tiny", "hub", CONFIG)
    assert found.revision == hub.models["acme/tiny"].sha
    assert found.tensors is not None
    assert found.tensors.total_parameters == 10 * 8 + 10 * 8 + 1
    assert found.tensors.bytes_by_dtype == {"BF16": 320, "I64": 8}
    assert found.facts.published is not None
    assert (found.facts.published.total, found.facts.published.kind) == (161, "exact")


def test_of_the_weights_only_a_range_is_asked_for(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    find("acme/tiny")
    asked = [
        {key.lower(): value for key, value in headers.items()}.get("range")
        for _, path, headers in hub.requests
        if path.endswith(".safetensors")
    ]
    assert asked
    assert all(header and header.startswith("bytes=") for header in asked)
    assert "README.md" not in fetched(hub)


def test_a_header_longer_than_the_first_range_is_read_whole(hub: Hub) -> None:
    many = {f"model.layers.{i}.mlp.experts.{j}.down_proj.weight": ("BF16", [2, 2]) for i in range(40) for j in range(40)}
    hub.models["acme/wide"] = Repository({"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors_bytes(many)})
    found = find("acme/wide")
    assert found.tensors is not None
    assert found.tensors.total_parameters == 1600 * 4


def test_shards_are_joined_and_held_against_the_index(hub: Hub) -> None:
    one, two = safetensors_bytes({"a": ("F32", [4])}), safetensors_bytes({"b": ("F32", [6])})
    index = {"metadata": {"total_size": 44}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    files = {
        "config.json": b"{}",
        "model-1.safetensors": one,
        "model-2.safetensors": two,
        "model.safetensors.index.json": json.dumps(index).encode(),
    }
    hub.models["acme/shards"] = Repository(files)
    found = find("acme/shards")
    assert found.tensors is not None
    assert found.tensors.total_parameters == 10
    assert found.facts.index is not None
    assert found.facts.index.names == ("a", "b")
    assert any("44" in warning and "40" in warning for warning in found.warnings)


def test_code_is_followed_from_auto_map_through_relative_imports_only(hub: Hub) -> None:
    config = CONFIG | {"auto_map": {"AutoModelForCausalLM": "modeling_x.XModel", "AutoTokenizer": ["tokenization_x.T", None]}}
    hub.models["acme/custom"] = Repository({
        "config.json": json.dumps(config).encode(),
        "modeling_x.py": b"import os\nfrom .configuration_x import X\nfrom .ops import (\n  fused,\n)\nfrom . import helper\n",
        "configuration_x.py": b"class X: pass\n", "ops.py": b"", "helper.py": b"", "tokenization_x.py": b"", "train.py": b"",
    })  # fmt: skip
    found = find("acme/custom")
    assert set(found.files) == {"modeling_x.py", "configuration_x.py", "ops.py", "helper.py"}
    assert found.custom_code


def test_code_in_another_repository_is_fetched_and_said(hub: Hub) -> None:
    config = CONFIG | {"auto_map": {"AutoModel": "acme/code--modeling_x.X"}}
    hub.models["acme/user"] = Repository({"config.json": json.dumps(config).encode()})
    hub.models["acme/code"] = Repository({"modeling_x.py": b"class X: pass\n", "config.json": b"{}"})
    found = find("acme/user")
    assert found.files == {"modeling_x.py": "class X: pass\n"}
    assert any("acme/code" in warning for warning in found.warnings)


def test_a_renamed_model_is_found_and_the_new_name_told(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    hub.models["acme/old"] = Repository({}, renamed_to="acme/tiny")
    found = find("acme/old")
    assert found.title == "acme/tiny"
    assert any("acme/tiny" in warning for warning in found.warnings)


def test_a_part_of_a_pipeline_is_named_with_a_colon(hub: Hub) -> None:
    hub.models["acme/pipe"] = Repository({"model_index.json": b"{}", "unet/config.json": b'{"_class_name": "UNet"}'})
    assert find("acme/pipe:unet").config == {"_class_name": "UNet"}
    with pytest.raises(NotFound, match="several models") as caught:
        find("acme/pipe")
    assert "acme/pipe:unet" in caught.value.hint


def test_the_token_of_the_environment_opens_a_gated_model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models["acme/gated"] = tiny()
    hub.models["acme/gated"].gated = True
    with pytest.raises(AccessDenied, match="gated"):
        find("acme/gated")
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert find("acme/gated").config == CONFIG


@pytest.mark.parametrize(
    ("prepare", "error", "message"),
    [
        (lambda hub: hub.models.clear(), NotFound, "no model acme/tiny on the Hub"),
        (lambda hub: hub.models.update({"acme/tiny": Repository({"README.md": b""})}), NotFound, "no config.json"),
        (
            lambda hub: hub.models.update({"acme/tiny": Repository({"adapter_config.json": b'{"base_model_name_or_path": "a/b"}'})}),
            NotFound,
            "adapter",
        ),
        (lambda hub: hub.models.update({"acme/tiny": Repository({"config.json": b"[1]"})}), BadInput, "not an object"),
        (lambda hub: hub.models.update({"acme/tiny": Repository({"config.json": b"\xff\xfe"})}), BadInput, "UTF-8"),
        (lambda hub: hub.models.update({"acme/tiny": Repository({"config.json": b" " * (5 << 20)})}), BadInput, "bytes"),
        (lambda hub: setattr(hub, "failure", (429, {"Retry-After": "7"}, "")), NetworkError, "429"),
        (lambda hub: setattr(hub, "failure", (500, {}, "oops")), NetworkError, "500"),
        (lambda hub: setattr(hub, "failure", (503, {}, "")), NetworkError, "503"),
        (lambda hub: setattr(hub, "failure", (403, {"X-Error-Message": "no"}, "")), AccessDenied, "may not read"),
        (
            lambda hub: setattr(hub, "failure", (401, {"X-Error-Message": "Invalid credentials in Authorization header"}, "")),
            AccessDenied,
            "token",
        ),
        (
            lambda hub: setattr(hub, "failure", (403, {"X-Error-Message": "Access to this resource is disabled."}, "")),
            AccessDenied,
            "disabled",
        ),
        (lambda hub: setattr(hub, "failure", (200, {}, "<html>login</html>")), NetworkError, "not the Hub"),
        (lambda hub: setattr(hub, "failure", (302, {"Location": "/api/models/acme/tiny"}, "")), NetworkError, "circles"),
    ],
)
def test_each_failure_is_one_line_with_a_hint(hub: Hub, prepare: Callable[[Hub], None], error: type[WeighError], message: str) -> None:
    prepare(hub)
    with pytest.raises(error, match=message) as caught:
        find("acme/tiny")
    assert "\n" not in caught.value.message + caught.value.hint
    assert caught.value.hint


def test_the_wait_that_the_hub_asks_for_is_in_the_hint(hub: Hub) -> None:
    hub.failure = (429, {"Retry-After": "7"}, "")
    with pytest.raises(NetworkError) as caught:
        find("acme/tiny")
    assert "7 s" in caught.value.hint


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_on_a_file_after_the_first_answer_is_told_too(hub: Hub, status: int) -> None:
    hub.models["acme/tiny"] = tiny()
    hub.failure, hub.fail_only = (status, {}, ""), "/resolve/"
    started = monotonic()
    with pytest.raises(NetworkError, match=str(status)):
        find("acme/tiny")
    assert monotonic() - started < 5


def test_a_missing_revision_is_named(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    with pytest.raises(NotFound, match="no revision nightly"):
        find("acme/tiny@nightly")
    assert find(f"acme/tiny@{hub.models['acme/tiny'].sha}").revision == hub.models["acme/tiny"].sha


@pytest.mark.parametrize("cut", [4, 30])
def test_a_truncated_header_is_a_bad_header(hub: Hub, cut: int) -> None:
    hub.models["acme/tiny"] = tiny(model__safetensors=safetensors_bytes(TENSORS)[:cut])
    with pytest.raises(BadHeader):
        find("acme/tiny")


def test_a_header_that_promises_more_than_the_file_holds_is_a_bad_header(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny(model__safetensors=safetensors_bytes(TENSORS, data=False))
    with pytest.raises(BadHeader):
        find("acme/tiny")


def test_offline_answers_from_the_cache_that_an_earlier_call_filled(hub: Hub, own_cache: Path) -> None:
    hub.models["acme/tiny"] = tiny()
    online = find("acme/tiny")
    assert list(own_cache.glob("models--acme--tiny/snapshots/*/config.json"))
    hub.requests.clear()
    again = find("acme/tiny", offline=True)
    assert not hub.requests
    assert (again.config, again.revision, again.source) == (online.config, online.revision, "hub")


def test_when_the_hub_fails_the_cache_answers_and_says_so(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    find("acme/tiny")
    hub.failure = (503, {}, "")
    found = find("acme/tiny")
    assert found.config == CONFIG
    assert any("503" in warning and "local cache" in warning for warning in found.warnings)


def test_a_second_call_downloads_no_file_again(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    find("acme/tiny")
    hub.requests.clear()
    find("acme/tiny")
    assert "config.json" not in fetched(hub)


@pytest.mark.parametrize("switch", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_the_hubs_own_offline_switches_are_honoured(hub: Hub, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    hub.models["acme/tiny"] = tiny()
    monkeypatch.setenv(switch, "1")
    with pytest.raises(NetworkError):
        find("acme/tiny")
    assert not hub.requests


def test_a_refused_connection_is_decided_at_once() -> None:
    started = monotonic()
    with pytest.raises(NetworkError, match="refused"):
        find("acme/tiny")
    assert monotonic() - started < 1.5


def test_a_hub_that_accepts_and_never_answers_is_given_up(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighbridge.sources.hub.ANSWER_SECONDS", 0.3)
    hub.silent = True
    with pytest.raises(NetworkError, match="in time"):
        find("acme/tiny")


def test_an_unreachable_hub_leaves_the_catalogue_which_says_from_when() -> None:
    found = find("google-bert/bert-base-uncased")
    assert found.source == "catalogue"
    assert found.config["model_type"] == "bert"
    assert any("refused" in warning and found.read_at in warning for warning in found.warnings)


def test_an_endpoint_that_is_no_address_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "not an address")
    with pytest.raises(UsageError, match="HF_ENDPOINT"):
        find("acme/tiny")


def test_progress_names_what_is_being_read(hub: Hub) -> None:
    hub.models["acme/tiny"] = tiny()
    said: list[str] = []
    find("acme/tiny", progress=said.append)
    assert any("acme/tiny" in line for line in said)
    assert any("config.json" in line for line in said)


def test_names_in_the_repository_that_leave_it_are_never_asked_for(hub: Hub) -> None:
    config = CONFIG | {"auto_map": {"AutoModel": "..secrets.X", "AutoModelForCausalLM": "../../etc/passwd.X"}}
    hub.models["acme/evil"] = Repository({"config.json": json.dumps(config).encode()})
    assert find("acme/evil").files == {}
    assert fetched(hub) == ["config.json"]
