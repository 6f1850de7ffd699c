"""Terminal and Markdown: the same facts as the JSON, on every width, and no name from outside can steer the page."""

import json
import re
import unicodedata
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from weighbridge.base.errors import UsageError
from weighbridge.formats import FORMATS, View, render
from weighbridge.formats.markdown import escape
from weighbridge.formats.terminal import bar

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (60, 80, 100, 120, 140, 200)


def cells(text):
    return sum(0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def main_numbers(report):
    """How the main points read, worded here a second time."""
    yield f"{report.parameters.total:,}"
    if report.parameters.checkpoint:
        yield f"{report.parameters.checkpoint.total:,}"
    for job in report.jobs:
        for scale, unit in ((1e9, "GB"), (1 << 30, "GiB")):
            value = job.peak.device_bytes / scale
            yield f"{value:,.{4 - len(str(int(value)))}f} {unit}"
        for fit in job.fits:
            batch = f"{fit.largest_batch:,}" if fit.largest_batch else "–"
            yield f"{ {'fits': '✓', 'unsure': '?', 'does not fit': '✗'}[fit.verdict] } {batch}"
        for cost in (job.cost, job.fastest):
            if cost:
                yield from (f"${cost.usd:,.2f}", f"${cost.usd_per_hour:,.2f}", cost.card)
    if report.serving:
        yield f"{report.serving.kv_bytes_per_token:,}"


def plain(markdown):
    return markdown.replace("\\", "").replace("**", "")


def test_every_main_number_of_the_json_is_on_both_pages(golden, golden_document):
    assert json.loads(render(golden, "json")) == golden_document
    terminal, markdown = render(golden, "terminal", View(width=200)), plain(render(golden, "markdown"))
    for number in main_numbers(golden):
        assert number in terminal
        assert number in markdown


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(golden, width):
    for line in render(golden, "terminal", View(width=width, explain=True)).splitlines():
        assert cells(line) <= width


@pytest.mark.parametrize("width", [each for each in WIDTHS if each >= 80])
def test_no_number_is_cut_on_a_usual_terminal(qwen, width):
    text = render(qwen, "terminal", View(width=width))
    assert not re.search(r"[0-9.,$]…", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_golden_page_has_no_line_of_one_word_fragments(qwen, width):
    lines = render(qwen, "terminal", View(width=width)).splitlines()
    assert len(lines) < 100


def test_without_colours_the_page_is_plain_text(golden):
    assert "\x1b" not in render(golden, "terminal", View(colours=None))


def test_with_colours_it_is_the_same_text(golden):
    coloured = render(golden, "terminal", View(colours="truecolor"))
    assert "\x1b[" in coloured
    stripped = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).splitlines())
    assert stripped == render(golden, "terminal", View(colours=None))


def test_verdicts_differ_by_symbol_and_not_by_colour_alone(qwen):
    text = render(qwen, "terminal", View(width=80))
    assert "✓ " in text
    assert "✗ " in text


def test_explain_says_how_numbers_came_about_and_only_then(qwen):
    how = qwen.derivations[0].how
    for name in ("terminal", "markdown"):
        assert how not in plain(render(qwen, name, View(width=200)))
        assert how in plain(render(qwen, name, View(width=200, explain=True)))


def test_what_cannot_be_told_is_said_with_its_place(golden_reports):
    report = golden_reports["cannot_tell"]
    for name in ("terminal", "markdown"):
        text = plain(render(report, name, View(width=200)))
        assert "Cannot be told" in text
        assert "modeling_time_moe.py:312" in text
        assert "read as text and not run" in text


def test_an_explained_difference_is_on_the_page(golden_reports):
    report = golden_reports["encoder"]
    for name in ("terminal", "markdown"):
        text = plain(render(report, name, View(width=200)))
        assert "-592,130" in text
        assert "+590,592 in the checkpoint: pooler" in text


def test_structure_alone_leaves_the_jobs_out(qwen):
    for name in ("terminal", "markdown"):
        text = plain(render(qwen, name, View(width=120, only="structure")))
        assert "Qwen3DecoderLayer" in text
        assert "Largest batch" not in text


@pytest.mark.parametrize("name", ["terminal", "markdown"])
def test_a_hostile_name_brings_no_control_or_invisible_characters(hostile, name):
    text = render(hostile, name, View(width=100, explain=True))
    bad = {f"U+{ord(each):04X}" for each in text if each != "\n" and not each.isprintable()}
    assert not bad


def test_a_hostile_name_brings_no_markup_to_the_terminal(hostile):
    text = render(hostile, "terminal", View(width=200))
    assert "[bold]" in text  # shown, not obeyed


def test_a_hostile_name_brings_no_html_link_code_or_heading_to_markdown(hostile):
    markdown = render(hostile, "markdown", View(explain=True))
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)
    tags = set(re.findall(r"<\s*([a-zA-Z0-9]+)", html))
    assert tags <= {"h2", "h3", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "sub", "br"}
    assert html.count("<h2>") == 1


def test_a_hostile_name_does_not_break_a_table(hostile):
    lines = [line for line in render(hostile, "markdown").splitlines() if line.startswith("|")]
    for before, line in pairwise(lines):
        if set(line) <= set("| -"):
            assert line.count("|") == len(re.findall(r"(?<!\\)\|", before))


@given(st.text(st.characters() | st.sampled_from("\\`*_{}[]()<>#+-.!|~$@:/^= &;w1a")))
def test_escaped_text_reads_as_it_was_written(text):
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(f"x {escape(shown)} x").replace("<!-- -->", "")
    unescaped = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    assert unescaped == f"<p>x {shown} x</p>\n" or not shown


@pytest.mark.parametrize(
    "name", ["https://evil.example", "www.evil.example", "@somebody", "a@b.example", "![x](y)", "<img src=x>", "# x", "1. x"]
)
def test_a_name_becomes_no_link_mention_picture_or_list(name):
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(escape(name))
    assert set(re.findall(r"<(\w+)", html)) == {"p"}
    assert "https://" not in escape(name)
    assert "www." not in escape(name)
    assert not re.search(r"@\w", escape(name))


@given(st.integers(0, 10**15), st.integers(1, 10**15), st.integers(1, 60))
def test_a_bar_is_never_longer_than_its_place_and_shows_what_is_there(part, whole, width):
    drawn = bar(part, whole, width)
    assert len(drawn) <= width
    assert bool(drawn) == (part > 0)


def test_a_full_bar_fills_its_place():
    assert bar(7, 7, 10) == "█" * 10
    assert bar(1, 2, 3) == "█▌"


def test_an_unknown_format_is_a_usage_error_that_lists_the_known_ones(qwen):
    with pytest.raises(UsageError) as refused:
        render(qwen, "sculpture")
    assert all(name in refused.value.hint for name in FORMATS)


def test_many_cards_stand_in_two_blocks_on_a_wide_terminal(qwen):
    wide, usual = (render(qwen, "terminal", View(width=width)) for width in (200, 100))
    assert len(wide.splitlines()) < len(usual.splitlines())


def test_remedies_are_shown_where_few_cards_are_asked(qwen):
    job = qwen.jobs[0]
    report = replace(qwen, jobs=(replace(job, fits=job.fits[:1]),))
    for name in ("terminal", "markdown"):
        assert "would fit with --checkpointing" in plain(render(report, name, View(width=200)))
