"""The command line: exit codes, one line an error, results on standard output, colours only where they help."""

import io
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import weighbridge
from weighbridge import cli
from weighbridge.base import errors
from weighbridge.cli import EXIT_CODES, run

DOORS = ["plan", "structure", "cards", "prices", "models"]


@pytest.fixture
def planned(monkeypatch, qwen):
    """The pipeline with the golden report as its only answer; the requests that reached it are kept."""
    requests = []

    def plan_of(request, *, progress):
        progress("reading")
        requests.append(request)
        return qwen

    behind_the_door(monkeypatch, plan_of)
    return requests


def behind_the_door(monkeypatch, plan_of):
    """The command line loads the pipeline by name when it is needed: here is one that answers at once."""
    monkeypatch.setitem(sys.modules, "weighbridge.answers", SimpleNamespace(answered=plan_of))
    monkeypatch.setitem(sys.modules, "weighbridge.pipeline", SimpleNamespace(structure_of=plan_of))


def failing(monkeypatch, error):
    def plan_of(_request, *, progress):
        raise error

    behind_the_door(monkeypatch, plan_of)


def test_a_plan_prints_the_page_and_nothing_else(planned, capsys):
    assert run(["plan", "Qwen/Qwen3-8B"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Qwen/Qwen3-8B @ ")
    assert "8,190,735,360 parameters" in printed.out
    assert printed.err == ""
    assert "\x1b" not in printed.out


def test_json_and_markdown_give_the_other_formats(planned, capsys, qwen):
    assert run(["plan", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == qwen.parameters.total
    assert run(["plan", "x", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("## Qwen/Qwen3-8B")
    assert run(["plan", "x", "--markdown", "--json"]) == 2


def test_options_reach_the_request(planned):
    flags = "--method lora --batch 4 --seq 512 --precision bf16 --optimizer sgd --checkpointing --lora-rank 8 --lora-targets q_proj,v_proj"
    assert run(["plan", "x", *flags.split(), "--offline", "--tokens", "1000000", "--timeline"]) == 0
    request = planned[0]
    assert request.reference == "x"
    assert request.methods == ("lora",)
    assert (request.job.batch, request.job.seq_tokens, request.job.precision, request.job.optimizer) == (4, 512, "bf16", "sgd")
    assert (request.job.checkpointing, request.job.lora_rank, request.job.lora_targets) == (True, 8, "q_proj,v_proj")
    assert (request.offline, request.tokens, request.samples, request.timeline, request.tensors) == (True, 1_000_000, None, True, False)


def test_without_options_the_job_is_the_one_of_the_interface(planned):
    run(["plan", "x"])
    request = planned[0]
    assert request.methods == ("full", "lora", "serve")
    assert (request.samples, request.epochs, request.run_batch) == (50_000, 10, 32)
    job = request.job
    assert (job.batch, job.seq_tokens, job.context, job.lora_rank, job.lora_targets) == (1, None, None, 16, "all-linear")
    assert (job.precision, job.optimizer, job.loop, job.attention) == ("bf16-amp", "adamw-fused", "trainer", "sdpa")
    assert job.checkpointing is False


def test_a_card_that_does_not_fit_is_an_answer_of_no(planned):
    assert run(["plan", "x", "--card", "t4"]) == 1
    assert run(["plan", "x", "--memory", "22GiB"]) == 1
    assert planned[1].memory_bytes == 22 << 30


def test_a_card_that_fits_is_an_answer_of_yes(monkeypatch, qwen):
    jobs = tuple(replace(job, fits=tuple(fit for fit in job.fits if fit.verdict == "fits")) for job in qwen.jobs)
    behind_the_door(monkeypatch, lambda _request, **_progress: replace(qwen, jobs=jobs))
    assert run(["plan", "x", "--card", "b200"]) == 0


# The published table: 2 wrong usage; 3 could not be found or read; 4 the network failed.
PUBLISHED = {
    errors.UsageError("m"): 2,
    errors.NotFound("m"): 3,
    errors.AccessDenied("m"): 3,
    errors.BadConfig("m"): 3,
    errors.BadHeader("m"): 3,
    errors.CannotTell("m", "why", file="modeling_x.py", line=7): 3,
    errors.DataDependent("m"): 3,
    errors.LimitExceeded("steps", "m"): 3,
    errors.NetworkError("m"): 4,
}


@pytest.mark.parametrize("error", PUBLISHED, ids=lambda error: type(error).__name__)
def test_an_error_is_one_line_with_what_to_do_and_its_exit_code(monkeypatch, capsys, error):
    failing(monkeypatch, error)
    assert run(["plan", "x"]) == PUBLISHED[error]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("weigh: ")
    assert error.hint in printed.err


def test_every_error_of_the_tree_has_an_exit_code():
    def below(kind):
        yield kind
        for each in kind.__subclasses__():
            yield from below(each)

    for kind in errors.WeighError.__subclasses__():
        for each in below(kind):
            assert any(parent in EXIT_CODES for parent in each.__mro__), each


def test_debug_shows_the_traceback(monkeypatch, capsys):
    failing(monkeypatch, errors.NotFound("no such model"))
    assert run(["plan", "x", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_of_ours_is_not_an_answer(monkeypatch, capsys):
    failing(monkeypatch, ZeroDivisionError("oops"))
    assert run(["plan", "x"]) not in {0, 1, 2, 3, 4}
    printed = capsys.readouterr()
    assert "a fault of weighbridge" in printed.err
    assert "Traceback" not in printed.err


def test_an_error_with_a_hostile_name_stays_one_harmless_line(monkeypatch, capsys):
    failing(monkeypatch, errors.NotFound("evil\x1b[31m\nname\u202e"))
    run(["plan", "x"])
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "x", "y"],
        ["plan", "x", "--batch", "many"],
        ["plan", "x", "--batch", "0"],
        ["plan", "x", "--nonsense"],
        ["plan", "x", "--precision", "fp7"],
        ["plan", "x", "--method", "prayer"],
        ["plan", "x", "--memory", "big"],
        ["plan", "x", "--tokens", "5", "--epochs", "1"],
        ["plan", "x", "--epochs", "-1"],
        ["weight", "x"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2_and_says_where_to_look(arguments, capsys):
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


@pytest.mark.parametrize(
    ("arguments", "available"),
    [
        (["--method", "qlora"], "lora"),
        (["--optimizer", "adamw-8bit"], "adamw-fused"),
        (["--optimizer", "lion"], "adamw-fused"),
        (["--loss", "chunked"], "full"),
        (["--layout", "fsdp"], ""),
        (["--gpus", "8"], "one card"),
        (["--offload"], ""),
        (["--engine", "vllm"], "transformers"),
    ],
    ids=str,
)
def test_what_has_no_number_yet_is_refused_with_what_has_one(arguments, available, capsys):
    assert run(["plan", "x", *arguments]) == 2
    text = capsys.readouterr().err
    assert "not yet priced" in text
    assert available in text


@pytest.mark.parametrize("command", DOORS)
def test_every_command_has_a_help_page(command, capsys):
    assert run([command, "--help"]) == 0
    assert "Usage: weigh" in capsys.readouterr().out


def test_no_command_is_a_stub(capsys):
    run(["--help"])
    listed = capsys.readouterr().out.partition("Commands:")[2].split("\n")
    assert sorted(line.split()[0] for line in listed if line.startswith("  ") and line[2] != " ") == sorted(DOORS)


def test_the_version_is_the_packages(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"weigh {weighbridge.__version__}\n"


@pytest.mark.parametrize("name", ["cards", "prices", "models"])
def test_a_listing_is_a_table_or_json(name, capsys):
    assert run([name]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 20
    assert run([name, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 20


def test_structure_shows_the_layers_alone(planned, capsys):
    assert run(["structure", "x"]) == 0
    text = capsys.readouterr().out
    assert "Qwen3DecoderLayer" in text
    assert "Largest batch" not in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_colours_follow_the_terminal_and_no_color(monkeypatch, planned, environment, coloured):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run(["plan", "x"]) == 0
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_json_is_never_coloured(monkeypatch, planned):
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    run(["plan", "x", "--json"])
    assert "\x1b" not in terminal.getvalue()


def test_long_work_shows_progress_on_the_terminals_error_stream(monkeypatch, capsys):
    from weighbridge import cli_progress

    monkeypatch.setattr(cli_progress, "PATIENCE_SECONDS", 0.0)
    errors_shown = Terminal()
    monkeypatch.setattr(sys, "stderr", errors_shown)
    with cli_progress.Progress("reading") as progress:
        progress.say("weighing")
        progress._done.wait(0.15)
    assert "weighing" in errors_shown.getvalue()
    assert errors_shown.getvalue().endswith("\r\x1b[2K")
    assert capsys.readouterr().out == ""


def test_progress_is_silent_in_a_pipe_and_when_quiet(monkeypatch):
    from weighbridge import cli_progress

    assert cli_progress.Progress("x")._thread is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert cli_progress.Progress("x", quiet=True)._thread is None
    assert cli_progress.Progress("x")._thread is not None


def test_the_shell_is_offered_cards_and_models():
    from weighbridge.cli_complete import complete_cards, complete_models

    assert "h100-sxm" in complete_cards(None, None, "h1")
    assert "Qwen/Qwen3-8B" in complete_models(None, None, "qwen/qwen3-8")


def test_the_entry_point_leaves_with_the_exit_code(planned):
    with pytest.raises(SystemExit) as leaving:
        cli.main(["plan", "x", "--card", "t4"])
    assert leaving.value.code == 1
