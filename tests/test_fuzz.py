"""A quick slice of scripts/fuzz, and proof that it finds what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "fuzz"), "--processes", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "WEIGH_CACHE": "off"})


def test_fifteen_hundred_hostile_cases_end_in_an_answer_or_a_named_error():
    done = fuzz("--cases", "1500", "--seed", "20261201")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "1,500 cases, 0 findings" in done.stdout


def test_a_case_is_decided_by_its_seed_and_number(scripts):
    import fuzz_cases

    for number in range(60):
        assert json.dumps(fuzz_cases.draw_case(7, number)) == json.dumps(fuzz_cases.draw_case(7, number))


def test_an_answer_that_cannot_be_is_a_finding(scripts):
    import fuzz_cases
    from weighbridge.base.dtypes import FLOAT32
    from weighbridge.model import Model, Parameter

    def model(*shape):
        return Model("t", "t", "T", (Parameter("weight", shape, FLOAT32),), (), ())

    fuzz_cases.check_model(model(2, 3), {"hidden_size": 3})
    no_config = [((-2, 3), {}), ((2.5, 3), {}), ((1 << 63,), {})]
    for shape, config in (*no_config, ((2, 3), {"hidden_size": -3}), ((2,), {"vocab_size": float("nan")})):
        with pytest.raises(fuzz_cases.Nonsense):
            fuzz_cases.check_model(model(*shape), config)


def test_a_finding_is_made_smaller_without_losing_it(scripts):
    from fuzz_shrink import shrink

    assert shrink("a\nbad\nc", lambda text: "bad" in text) == "bad"
    assert shrink({"x": [1, 2, {"bad": 3}], "y": 1}, lambda data: "bad" in json.dumps(data)) == {"x": [{"bad": 3}]}
