"""The report: its fields are the published interface, in its order, and its parts add up."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from weighbridge import report
from weighbridge.formats.words import CATEGORIES

# The keys of the published plan document, in order; further keys may stand between them.
INTERFACE = {
    report.Report: "schema model parameters structure runs does_not_run_because jobs serving findings "
    "assumptions defaulted unread cannot_tell accuracy weighbridge",
    report.ModelFacts: "id revision source read_at model_type architecture custom_code code_from transformers",
    report.Parameters: "total active trainable by_dtype checkpoint delta explained tensors",
    report.Trainable: "full lora",
    report.Checkpoint: "total source read_at",
    report.Explained: "why parameters",
    report.TensorFacts: "name shape dtype tied_to",
    report.Layer: "index name type output_shape parameters flops repeat",
    report.JobFacts: "method batch seq precision optimizer checkpointing attention layout gpus peak breakdown "
    "per_token_saved_bytes flops_per_step timeline fits cost",
    report.Peak: "allocated_bytes reserved_bytes device_bytes low_bytes high_bytes phase module operation",
    report.Breakdown: "weights gradients optimizer activations loss temporaries cache context",
    report.FitFacts: "card capacity_bytes gpus verdict spare_bytes largest_batch longest_seq remedies",
    report.Remedy: "option saves_bytes",
    report.Cost: "card gpus hours usd low_usd high_usd usd_per_hour price_source price_read_at bound mfu",
    report.Serving: "weights_bytes kv_bytes_per_token kv_bytes context cache fits",
    report.CacheFacts: "layers kind bytes_per_token window",
    report.FindingFacts: "rule severity place message fix url",
    report.Untold: "what where why",
    report.Accuracy: "ledger_runs median_error false_fit_rate false_refusal_rate held_out_by",
}  # fmt: skip


@pytest.mark.parametrize("part", INTERFACE, ids=lambda part: part.__name__)
def test_a_part_has_the_published_keys_in_their_order(part):
    names = [field.name for field in fields(part)]
    published = INTERFACE[part].split()
    assert [name for name in names if name in published] == published


def test_every_part_is_frozen_and_slotted():
    for part in INTERFACE:
        assert "__slots__" in vars(part), part
        assert part.__dataclass_params__.frozen, part


def test_a_finished_fact_cannot_be_changed(qwen):
    with pytest.raises(FrozenInstanceError):
        qwen.parameters.total = 0


def test_the_breakdown_sums_to_what_the_device_holds(golden):
    for job in golden.jobs:
        assert sum(getattr(job.breakdown, name) for name in CATEGORIES) == job.peak.device_bytes


def test_the_range_holds_the_estimate(golden):
    for job in golden.jobs:
        assert job.peak.low_bytes <= job.peak.device_bytes <= job.peak.high_bytes


def test_reports_compare_by_their_facts(qwen):
    assert replace(qwen) == qwen
    assert replace(qwen, unread=("other",)) != qwen
