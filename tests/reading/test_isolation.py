"""Reading in a child process: the same facts, the same errors, and bounds."""

from typing import Any

import pytest
from test_custom_code import CONFIG, FILES, TOTAL

from weighbridge.base.errors import CannotTell, LimitExceeded
from weighbridge.reading import read
from weighbridge.reading.isolation import ProcessLimits, run_isolated
from weighbridge.sources.evidence import Evidence


def evidence(config: dict[str, Any], files: dict[str, str]) -> Evidence:
    return Evidence(title="t", source="folder", read_at="2026-01-01", config=config, files=files)


def test_an_isolated_reading_finds_the_same_model() -> None:
    alone = read(evidence(CONFIG, FILES), isolated=True)
    assert alone.total == TOTAL
    assert alone.root is None
    assert alone == read(evidence(CONFIG, FILES))


def test_a_refusal_comes_back_with_its_place() -> None:
    broken = {**FILES, "modeling_series.py": FILES["modeling_series.py"].replace("self.norm = RMSNorm(config.hidden_size)", "open('x')")}
    with pytest.raises(CannotTell) as caught:
        read(evidence(CONFIG, broken), isolated=True)
    assert caught.value.file == "modeling_series.py"


def test_time_and_memory_are_bounded_by_the_system() -> None:
    with pytest.raises(LimitExceeded):
        run_isolated("time:sleep", 30, ProcessLimits(wall_seconds=1.0))
    with pytest.raises(LimitExceeded):
        run_isolated("builtins:bytearray", 2**40, ProcessLimits(memory_bytes=2**30))


def test_the_child_has_no_network() -> None:
    with pytest.raises(LimitExceeded):
        run_isolated("socket:create_connection", ["127.0.0.1", 9])
