"""The request: the same words from every door, checked before anything is read."""

from pathlib import Path

import pytest

from weighbridge.base.errors import UsageError
from weighbridge.request import make_request


def test_methods_and_cards_are_one_name_or_several():
    assert make_request("x", method="lora").methods == ("lora",)
    assert make_request("x", method=["full", "serve", "full"]).methods == ("full", "serve")
    assert make_request("x", card="h200").cards == ("h200",)
    assert make_request("x", card=("h200", "t4")).cards == ("h200", "t4")


def test_none_means_not_given():
    assert make_request("x", batch=None, memory=None) == make_request("x")


def test_memory_is_a_size_or_bytes():
    assert make_request("x", memory="1GiB").memory_bytes == make_request("x", memory=1 << 30).memory_bytes == 1 << 30


def test_paths_are_paths():
    request = make_request("x", prices="offers.toml", transformers=Path("somewhere"))
    assert (request.prices, request.transformers) == (Path("offers.toml"), Path("somewhere"))


def test_a_card_named_makes_it_a_question_of_yes_or_no():
    assert not make_request("x").asks_yes_or_no
    assert make_request("x", card="t4").asks_yes_or_no
    assert make_request("x", memory="1GiB").asks_yes_or_no


def test_the_run_is_at_the_pages_batch_or_a_larger_one_that_was_asked():
    assert make_request("x", batch=4).run_batch == 32
    assert make_request("x", batch=64).run_batch == 64


def test_each_method_gets_the_same_job():
    jobs = list(make_request("x", batch=3).jobs())
    assert [job.method for job in jobs] == ["full", "lora", "serve"]
    assert {job.batch for job in jobs} == {3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bacth": 1}, "bacth"),
        ({"method": "qlora"}, "not yet priced"),
        ({"gpus": 2}, "not yet priced"),
        ({"samples": 0}, "above zero"),
        ({"tokens": 5, "samples": 5}, "how long the run is"),
        ({"precision": "fp4"}, "precision"),
    ],
    ids=str,
)
def test_a_wrong_request_is_refused_with_a_hint(options, message):
    with pytest.raises(UsageError, match=message) as refused:
        make_request("x", **options)
    assert refused.value.hint
