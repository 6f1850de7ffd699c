"""Finished reports on disk: the same question is answered from there, another question or a damaged file is not."""

import dataclasses
import pickle

import pytest

from weighbridge import answers, sources
from weighbridge.base.cache import Cache, default_folder
from weighbridge.request import make_request

SILENT = {"progress": lambda _text: None}


@pytest.fixture
def request_(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIGH_CACHE", str(tmp_path))
    return make_request("openai-community/gpt2", method="serve", context=64, offline=True)


@pytest.fixture
def played(monkeypatch):
    """How often a plan was really made."""
    count = []
    pipeline = answers.import_module("weighbridge.pipeline")
    plan_of = pipeline.plan_of
    monkeypatch.setattr(pipeline, "plan_of", lambda *args, **kwargs: count.append(1) or plan_of(*args, **kwargs))
    return count


def test_the_second_time_the_answer_comes_from_disk(request_, played):
    first, second = (answers.answered(request_, **SILENT) for _ in range(2))
    assert first == second
    assert len(played) == 1


def test_another_question_is_another_answer(request_, played):
    answers.answered(request_, **SILENT)
    answers.answered(dataclasses.replace(request_, job=request_.job.but(context=32)), **SILENT)
    assert len(played) == 2


def test_a_damaged_answer_is_asked_again(request_, played):
    answers.answered(request_, **SILENT)
    for path in default_folder().glob("report-*"):
        path.write_bytes(path.read_bytes()[:-3])
    answers.answered(request_, **SILENT)
    assert len(played) == 2


class Escape:
    """What a foreign pickle would like to run."""

    def __reduce__(self):
        return (print, ("escaped",))


def test_a_report_is_made_of_nothing_but_the_reports_own_classes(request_, capsys):
    evidence = sources.find(request_.reference, offline=True)
    Cache.default().store_bytes(answers.KIND, pickle.dumps(Escape()), *answers._key(request_, evidence))
    assert answers.load(request_, evidence) is None
    assert capsys.readouterr().out == ""


def test_a_price_list_of_ones_own_is_read_every_time(request_, tmp_path):
    mine = dataclasses.replace(request_, prices=tmp_path / "prices.toml")
    assert answers.load(mine, sources.find(mine.reference, offline=True)) is None
