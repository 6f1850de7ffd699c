"""What is unknown is told, with its place; it never makes a smaller number."""

from typing import Any

import pytest

from support.reading import read_config
from weighbridge.base.errors import BadConfig, CannotTell, WeighError

HEAD = """
import torch
from torch import nn
from transformers import PreTrainedModel, PretrainedConfig
{imports}

class C(PretrainedConfig):
    model_type = "probe"

class M(PreTrainedModel):
    config_class = C

    def __init__(self, config):
        super().__init__(config)
        self.known = nn.Linear(3, 5)
"""
CONFIG: dict[str, Any] = {"model_type": "probe", "auto_map": {"AutoConfig": "m.C", "AutoModel": "m.M"}}


def probe(body: str, imports: str = "", config: dict[str, Any] | None = None) -> Any:
    text = HEAD.format(imports=imports) + "".join(f"        {line}\n" for line in body.splitlines())
    return read_config({**CONFIG, **(config or {})}, {"m.py": text})


@pytest.mark.parametrize(
    ("imports", "body"),
    [
        ("import mystery", "self.layer = mystery.Layer(8)"),
        ("import mystery", "self.layers = nn.ModuleList([mystery.Layer(8)])"),
        ("import mystery", "self.layers = nn.Sequential(nn.Linear(2, 2), mystery.Layer(8))"),
        ("import mystery", "self.add_module('layer', mystery.Layer(8))"),
        ("import mystery", "self.layer = mystery.wrap(nn.Linear(2, 2))"),
        ("from transformers.utils import something_new", "self.layer = something_new(config)"),
        ("from transformers.modeling_utils import something_new", "self.layer = something_new(nn.Linear)"),
        ("import mystery", "self.layer = mystery.Layer(8) if config.hidden else nn.Linear(2, 2)"),
    ],
)
def test_a_part_from_unknown_code_makes_the_total_unknown(imports: str, body: str) -> None:
    with pytest.raises(CannotTell) as caught:
        _ = probe(body, imports, {"hidden": 1}).total
    assert caught.value.file == "m.py"
    assert caught.value.line > 10


def test_an_unknown_shape_is_told_with_its_place() -> None:
    with pytest.raises(CannotTell, match=r"m\.py:\d+"):
        _ = probe("self.w = nn.Parameter(torch.empty(mystery.SIZE, 2))", "import mystery").total


def test_an_unknown_value_that_decides_nothing_does_no_harm() -> None:
    assert probe("self.scale = mystery.SCALE\nself.rate = mystery.SCALE * 2", "import mystery").total == 20


def test_an_optional_package_is_absent_under_try() -> None:
    imports = "try:\n    from mystery import Layer\nexcept ImportError:\n    Layer = None"
    assert probe("self.layer = nn.Linear(2, 2) if Layer is None else Layer(8)", imports).total == 26


def test_a_package_the_code_insists_on_is_taken_as_present() -> None:
    imports = "try:\n    from mystery import attention\nexcept ImportError:\n    attention = None"
    model = probe("assert attention is not None\nself.layer = nn.Linear(2, 2)", imports)
    assert model.total == 26
    assert any("optional packages" in note for note in model.notes)


def test_a_pretrained_part_is_asked_for_by_name() -> None:
    with pytest.raises(CannotTell, match="google/siglip-base"):
        probe("self.tower = AutoModel.from_pretrained('google/siglip-base')", "from transformers import AutoModel")


def test_a_part_from_a_config_is_built() -> None:
    sizes = "hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=4"
    body = f"inner = AutoConfig.for_model('llama', {sizes})\n"
    body += "self.tower = AutoModel.from_config(inner, torch_dtype='bfloat16')"
    assert probe(body, "from transformers import AutoConfig, AutoModel").total == 20 + 4 * 8 + 4 * 64 + 3 * 64 + 3 * 8


def test_a_config_the_class_refuses_is_a_bad_config() -> None:
    config = {"model_type": "llama", "hidden_size": 10, "num_attention_heads": 3}
    with pytest.raises(BadConfig):
        read_config(config)


def test_an_unknown_model_type_is_told() -> None:
    with pytest.raises(CannotTell, match="no_such_type"):
        read_config({"model_type": "no_such_type"})


@pytest.mark.parametrize(
    "body",
    [
        "open('x', 'w')",
        "eval('1')",
        "import os\nos.system('true')\nself.l = nn.Linear(len(os.listdir('.')), 2)",
        "x = ().__class__.__bases__[0].__subclasses__()\nself.l = nn.Linear(len(x), 2)",
        "while True: pass",
        "self.l = nn.ModuleList([nn.Linear(1, 1) for _ in range(10 ** 9)])",
        "self.l = nn.LSTM(2, 2, num_layers=10 ** 10)",
        "x = [0] * (10 ** 12)",
        "x = 'a' * (10 ** 11)",
        "import numpy as np\nx = np.zeros((10 ** 6, 10 ** 6))",
        "import numpy as np\nx = np.arange(10 ** 13)",
        "x = torch.arange(10 ** 13).tolist()",
        "self._tied_weights_keys = {'(a+)+$': 'known'}\nconfig.tie_word_embeddings = True\nself.get_expanded_tied_weights_keys()",
    ],
)
def test_hostile_code_is_refused_by_one_of_our_errors(body: str) -> None:
    with pytest.raises(WeighError):
        _ = probe(body).total
