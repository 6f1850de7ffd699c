"""Assembly: the steps' results are copied into the report, and its parts add up."""

from types import SimpleNamespace

import jsonschema
import pytest

from weighbridge import assembly
from weighbridge.base.dtypes import BFLOAT16
from weighbridge.base.errors import BadConfig, CannotTell
from weighbridge.cards import custom_card, find_card
from weighbridge.checkpoint import CheckpointComparison
from weighbridge.fit import fit_cards
from weighbridge.formats import FORMATS, View, json, render
from weighbridge.jobs.job import Job
from weighbridge.model import Model, Module, Parameter
from weighbridge.phantom.session import Where
from weighbridge.request import make_request
from weighbridge.sources import Evidence
from weighbridge.timeline import Peak, Timeline

GB = 10**9


class Footprint:
    """Twelve gigabytes of weights and two a sample, with half of one outside the allocator."""

    method, batch, seq_tokens = "full", 1, 2048

    def device_bytes(self, batch, seq_tokens, card):
        return 12 * GB + 2 * GB * batch * seq_tokens // 2048 + GB // 2


def estimate(**changes):
    facts = {
        "footprint": Footprint(),
        "timeline": Timeline([(0, 12 * GB, Where("weights", "", "")), (1, 2 * GB, Where("forward", "model", "mm"))]),
        "peak": Peak(14 * GB, 1, Where("forward", "model", "mm")),
        "reserved_bytes": 14 * GB + 1,
        "breakdown": {"weights": 12 * GB, "activations": 2 * GB},
        "seq_tokens": 2048,
        "context_tokens": 4096,
        "trainable": 6,
        "saved_bytes_per_token": 10.0,
        "flops": 1000,
        "weights_bytes": 12 * GB,
        "cache": (SimpleNamespace(layers=2, kind="full", bytes_per_token=8, window=None),),
        "cache_bytes": 8 * 4096,
        "compute_dtype": "bfloat16",
        "rows": (),
        "alternatives": (("--checkpointing", Footprint()),),
        "assumptions": ("tokens are routed evenly",),
        "derivations": (("weights", "6 x 2 bytes"),),
    }
    return SimpleNamespace(**facts | changes)


def outcome(method="full", cards=("t4", "h200")):
    found = estimate()
    fits = fit_cards(found.footprint, [find_card(name) for name in cards], context_tokens=4096, alternatives=found.alternatives)
    return assembly.Outcome(Job(method=method), found, fits, (), 15_630)


def draft(**options):
    model = Model(
        title="org/name",
        model_type="toy",
        architecture="ToyForCausalLM",
        parameters=(Parameter("w", (2, 3), BFLOAT16), Parameter("head", (2, 3), BFLOAT16, tied_to="w")),
        buffers=(),
        modules=(Module("", "ToyForCausalLM", 6, 6),),
        transformers_version="5.24.0",
        defaulted=("rope_theta",),
        unread=("foo",),
        notes=("a note",),
    )
    evidence = Evidence(title="org/name", source="folder", read_at="2026-12-01", config={}, warnings=("a warning",))
    compared = CheckpointComparison(8, "exact", "header", "2026-12-01", -0.25, (("a second head", 1),), 1)
    return assembly.Draft(make_request("org/name", **options), evidence, model, compared)


def test_a_whole_report_is_valid_and_renders_in_every_format():
    page = draft(tensors=True, timeline=True)
    page.add(outcome("full"))
    page.add(outcome("serve"))
    report = page.finish()
    jsonschema.Draft202012Validator(json.schema()).validate(json.document(report))
    for name in FORMATS:
        assert "org/name" in render(report, name, View(width=100, explain=True))


def test_what_the_allocator_holds_unused_is_temporary_and_the_card_has_its_context():
    page = draft()
    page.add(outcome())
    job = page.finish().jobs[0]
    assert job.peak.device_bytes == 14 * GB + GB // 2
    assert job.breakdown.context == custom_card(80 << 30).context_bytes
    parts = job.breakdown.weights + job.breakdown.activations + job.breakdown.temporaries + job.breakdown.context
    assert parts == job.peak.device_bytes


def test_tied_parameters_are_counted_once_and_listed_twice():
    report = draft(tensors=True).finish()
    assert report.parameters.by_dtype == {"bfloat16": 6}
    assert [(tensor.name, tensor.tied_to) for tensor in report.parameters.tensors] == [("w", None), ("head", "w")]


def test_what_no_reason_explains_is_said():
    explained = draft().finish().parameters.explained
    assert [(each.why, each.parameters) for each in explained] == [("a second head", 1), ("no reason was found", 1)]


def test_lists_that_an_option_fills_are_empty_without_it():
    page = draft()
    page.add(outcome())
    report = page.finish()
    assert report.parameters.tensors == ()
    assert report.jobs[0].timeline == ()


def test_the_timeline_is_the_curve_of_allocated_bytes():
    page = draft(timeline=True)
    page.add(outcome())
    timeline = page.finish().jobs[0].timeline
    assert [index for index, _ in timeline] == [0, 1]
    assert timeline[1][1] - timeline[0][1] == pytest.approx(2 * GB, abs=512)


def test_a_method_that_cannot_be_told_does_not_take_the_page_with_it():
    page = draft()
    page.add(outcome("full"))
    page.cannot(Job(method="lora"), CannotTell("a branch", "its value is unknown", file="modeling_x.py", line=7))
    report = page.finish()
    assert [job.method for job in report.jobs] == ["full"]
    assert report.runs is True
    assert [(each.what, each.where, each.why) for each in report.cannot_tell] == [
        ("memory of lora", "modeling_x.py:7", "a branch: its value is unknown"),
    ]


def test_methods_without_an_answer_for_one_reason_share_a_line():
    page = draft()
    for method in ("full", "lora"):
        page.cannot(Job(method=method), CannotTell("an operation", "nobody wrote it"))
    assert [each.what for each in page.finish().cannot_tell] == ["memory of full, lora"]


def test_a_model_whose_own_code_refuses_does_not_run():
    page = draft()
    page.cannot(Job(), BadConfig("shapes (2, 3) and (4, 5) do not match"))
    report = page.finish()
    assert report.runs is False
    assert "do not match" in report.does_not_run_because


def test_nothing_told_is_neither_yes_nor_no():
    page = draft()
    page.cannot(Job(), CannotTell("an operation", "nobody wrote it"))
    assert page.finish().runs is None


def test_assumptions_stand_once():
    page = draft()
    page.add(outcome("full"))
    page.add(outcome("lora"))
    assert page.finish().assumptions == ("tokens are routed evenly", "a note")
