"""The command line: argv -> a request, a report -> standard output, an error -> one line and an exit code. No rule, number or formula."""

import gc
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Literal, NoReturn, TextIO

import click

from weighbridge import __version__
from weighbridge.base.errors import AccessDenied, BadInput, CannotTell, LimitExceeded, NetworkError, NotFound, UsageError, WeighError
from weighbridge.base.text import printable
from weighbridge.cli_options import GROUPS, JOB, OUTPUT, READING, command, flag
from weighbridge.cli_progress import Progress
from weighbridge.formats import Colours, View, render
from weighbridge.report import Report

DONE, NO, USAGE, UNREADABLE, NETWORK, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
EXIT_CODES: Final[dict[type[WeighError], int]] = {
    UsageError: USAGE, NotFound: UNREADABLE, AccessDenied: UNREADABLE, BadInput: UNREADABLE, CannotTell: UNREADABLE,
    LimitExceeded: UNREADABLE, NetworkError: NETWORK,
}  # fmt: skip
PIPE_WIDTH: Final = 100
DOORS: Final = {"plan": ("weighbridge.answers", "answered"), "structure": ("weighbridge.pipeline", "structure_of")}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit code. A short-lived process has little to gain from looking for cycles."""
    gc.set_threshold(100_000, 50, 100)
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command; errors become one line on standard error."""
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return int(weigh.main(args=arguments, prog_name="weigh", standalone_mode=False) or DONE)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "weigh"
        return _fail(error.format_message(), f"see {path} --help", USAGE, debug=debug)
    except WeighError as error:
        code = next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
        return _fail(str(error), error.hint, code, debug=debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", "", INTERRUPTED, debug=False)
    except Exception as error:
        fault = f"a fault of weighbridge: {type(error).__name__}: {error}"
        return _fail(fault, "run again with --debug and report it", BROKEN, debug=debug)


def _fail(message: str, hint: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    line = f"weigh: {printable(message, 500)}" + (f" - {printable(hint, 500)}" if hint else "")
    click.echo(line, err=True)
    return code


def _plan(model: str, **options: Any) -> int:
    """What MODEL weighs: parameters, memory, cards, hours and dollars.

    MODEL is org/name[@revision], a folder, a config.json, a .gguf, a .safetensors, a .weigh.json, or - for JSON on standard input.
    """
    output = {name: options.pop(name) for name in ("json", "markdown", "explain", "quiet", "debug")}
    report = _report(model, options, quiet=output["quiet"])
    _print(report, output, only="plan")
    if not (options["card"] or options["memory"]):
        return DONE
    return NO if any(fit.verdict == "does not fit" for job in report.jobs for fit in job.fits) else DONE


def _structure(model: str, **options: Any) -> int:
    """The layers of MODEL with shapes, parameters and FLOPs; repeated blocks are folded."""
    output = {name: options.pop(name) for name in ("json", "markdown", "quiet", "debug")}
    report = _report(model, options | {"method": ()}, quiet=output["quiet"], function="structure")
    _print(report, output | {"explain": False}, only="structure")
    return DONE


def _report(model: str, options: dict[str, Any], *, quiet: bool, function: str = "plan") -> Report:
    given = {name: value for name, value in options.items() if value not in {None, ()}}
    request = import_module("weighbridge.request").make_request(model, **given)
    with Progress(f"reading {model}", quiet=quiet) as progress:
        home, name = DOORS[function]
        report: Report = getattr(import_module(home), name)(request, progress=progress.say)
    return report


def _print(report: Report, output: dict[str, Any], *, only: Literal["plan", "structure"]) -> None:
    if output["json"] and output["markdown"]:
        raise UsageError("--json and --markdown are two formats", "give one of them")
    name = "json" if output["json"] else "markdown" if output["markdown"] else "terminal"
    view = View(width=_width(sys.stdout), colours=_colours(sys.stdout), explain=output["explain"], only=only)
    click.echo(render(report, name, view), color=True)


def _width(stream: TextIO) -> int:
    return shutil.get_terminal_size((80 if stream.isatty() else PIPE_WIDTH, 24)).columns


def _colours(stream: TextIO) -> Colours | None:
    """What the terminal can show; nothing in a pipe, or where NO_COLOR asks for it."""
    term = os.environ.get("TERM", "")
    if os.environ.get("NO_COLOR") or not stream.isatty() or term == "dumb":
        return None
    if os.environ.get("COLORTERM") in {"truecolor", "24bit"}:
        return "truecolor"
    return "256" if "256" in term else "standard"


def _listing(name: str) -> Any:
    def show(*, json: bool, debug: bool, **_quiet: bool) -> int:
        del debug
        listings = import_module("weighbridge.listings")
        click.echo(listings.render(name, as_json=json, width=_width(sys.stdout), colours=_colours(sys.stdout)), color=True)
        return DONE

    return show


def _commands() -> dict[str, click.Command]:
    list_options = (("Output", (flag("--json", help="As JSON."), flag("--debug", help="Show the traceback of an error."))),)
    shape_output = tuple(each for each in OUTPUT if each.name in {"json", "markdown", "quiet", "debug"})
    shape_job = tuple(each for each in JOB if each.name in {"batch", "seq"})
    shape_groups = (("The input", shape_job), ("Reading", READING), ("Output", shape_output))
    commands: dict[str, click.Command] = {
        "plan": command("plan", _plan, groups=GROUPS, model=True),
        "structure": command("structure", _structure, groups=shape_groups, model=True),
    }
    for name, about in LISTS.items():
        callback = _listing(name)
        callback.__doc__ = about
        commands[name] = command(name, callback, groups=list_options, model=False)
    return commands


LISTS: Final = {
    "cards": "The cards that are known: memory as their drivers report it, bandwidth, speed.",
    "prices": "The offers that are known, with their sources and dates.",
    "models": "The models of the shipped catalogue, which answer without a network.",
}


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"weigh {__version__}")
        ctx.exit()


weigh: Final = click.Group(
    "weigh",
    commands=_commands(),
    help="What a model weighs, read from its source without running it.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, help="Show the version and leave.",
            callback=_show_version,
        )
    ],
)  # fmt: skip


if __name__ == "__main__":
    main()
