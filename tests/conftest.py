"""What every test shares: the golden reports, and no environment of the developer's own."""

import json
from pathlib import Path

import pytest

from weighbridge.formats.json import parse
from weighbridge.report import Report

GOLDEN = Path(__file__).parent / "golden" / "reports"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))


@pytest.fixture(params=NAMES)
def golden_name(request) -> str:
    return request.param


@pytest.fixture
def golden_text(golden_name) -> str:
    return (GOLDEN / f"{golden_name}.json").read_text("utf-8")


@pytest.fixture
def golden_document(golden_text) -> dict:
    return json.loads(golden_text)


@pytest.fixture
def golden(golden_text) -> Report:
    return parse(golden_text)


@pytest.fixture(scope="session")
def golden_reports() -> dict[str, Report]:
    return {name: parse((GOLDEN / f"{name}.json").read_text("utf-8")) for name in NAMES}


@pytest.fixture
def qwen(golden_reports) -> Report:
    return golden_reports["qwen3_8b"]


@pytest.fixture
def hostile(golden_reports) -> Report:
    return golden_reports["hostile"]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
