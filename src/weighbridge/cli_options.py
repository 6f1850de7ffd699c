"""The command's options, in tables; click builds the parser, the help page and the completion from them."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from weighbridge.cli_complete import complete_cards, complete_models

REPEATED: Final[dict[str, Any]] = {"multiple": True, "metavar": "NAME"}
Groups = Iterable[tuple[str, tuple[click.Option, ...]]]
"""Headings, and the options under each."""


def option(*flags: str, help: str, **settings: Any) -> click.Option:
    """One option that is None where it was not given."""
    settings.setdefault("default", None)
    return click.Option(flags, help=help, **settings)


def flag(*flags: str, help: str) -> click.Option:
    """A switch that is off where it was not given."""
    return option(*flags, help=help, is_flag=True, default=False)


JOB: Final = (
    option("--method", help="full, lora or serve; repeatable. Default: all three.", **REPEATED),
    option("--batch", help="Samples of a step. Default: 1.", type=int),
    option("--seq", help="Tokens of a sample. Default: 2048, or the model's context when shorter.", type=int),
    option("--precision", help="bf16-amp, fp16-amp, bf16 or fp32. Default: bf16-amp.", metavar="NAME"),
    option("--optimizer", help="adamw-fused, adamw-foreach or sgd. Default: adamw-fused.", metavar="NAME"),
    option("--loop", help="trainer frees the outputs before backward and clips gradients; plain does neither.", metavar="NAME"),
    option("--checkpointing/--no-checkpointing", help="Recompute each block in backward. Default: no."),
    option("--attention", help="sdpa, flash or eager. Default: sdpa.", metavar="NAME"),
    option("--loss", help="full, chunked or fused. Default: full.", metavar="NAME"),
    option("--lora-rank", help="Rank of the adapters. Default: 16.", type=int),
    option("--lora-targets", help="all-linear, or names with commas. Default: all-linear.", metavar="NAMES"),
    option("--adapter-dtype", help="Type of the adapters.", metavar="DTYPE"),
    option("--padded/--not-padded", help="A batch with padding. Default: no."),
    option("--gpus", help="Cards that share the job.", type=int),
    option("--layout", help="How they share it: ddp, fsdp, zero1 to zero3, pipeline, tensor.", metavar="NAME"),
    option("--offload/--no-offload", help="Keep optimizer state on the host."),
    option("--context", help="Serving: tokens of a sequence. Default: 4096, or the model's context when shorter.", type=int),
    option("--sequences", help="Serving: sequences at once. Default: 1.", type=int),
    option("--kv-dtype", help="Serving: type of the cache.", metavar="DTYPE"),
    option("--engine", help="Serving: transformers.", metavar="NAME"),
)

CARDS: Final = (
    option(
        "--card",
        help="Hold it against this card only; repeatable. Exit 1 where it does not fit.",
        **REPEATED,
        shell_complete=complete_cards,
    ),
    option("--memory", help="Hold it against a card with so much memory: 22GiB.", metavar="SIZE"),
    option("--samples", help="Samples of the run that is priced. Default: 50000.", type=int),
    option("--epochs", help="Passes over them. Default: 10.", type=float),
    option("--tokens", help="Tokens of the run, instead of samples and epochs.", type=int),
    option("--prices", help="Offers of your own: a .toml, .json or .csv.", metavar="FILE"),
)

READING: Final = (
    flag("--offline", help="Ask no network: the local cache and the shipped catalogue answer."),
    option("--transformers", help="Read modelling source from this folder of transformers, not the installed one.", metavar="PATH"),
)

OUTPUT: Final = (
    flag("--json", help="The plan document, weighbridge.plan/1."),
    flag("--markdown", help="The same facts for an issue or a model card."),
    flag("--tensors", help="With --json: every parameter by name."),
    flag("--timeline", help="With --json: memory after every event of the step."),
    flag("--explain", help="How the numbers came about."),
    flag("--quiet", help="No progress and no notes on standard error."),
    flag("--debug", help="Show the traceback of an error."),
)

GROUPS: Final = (("The job", JOB), ("Cards, run and prices", CARDS), ("Reading", READING), ("Output", OUTPUT))
"""Headings of the help page of `weigh plan`."""

MODEL: Final = click.Argument(["model"], metavar="MODEL", shell_complete=complete_models)


class GroupedCommand(click.Command):
    """A command whose help page shows its options under headings."""

    def __init__(self, *, groups: Groups, arguments: Iterable[click.Argument], **settings: Any) -> None:
        self.groups = tuple(groups)
        super().__init__(params=[*arguments, *(each for _, options in self.groups for each in options)], **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The tables, each under its heading."""
        for heading, options in self.groups:
            with formatter.section(heading):
                formatter.write_dl([record for each in options if (record := each.get_help_record(ctx))])


def command(name: str, callback: Callable[..., Any], *, groups: Groups, model: bool) -> GroupedCommand:
    """One subcommand; its help is the callback's docstring."""
    return GroupedCommand(
        name=name,
        callback=callback,
        help=callback.__doc__,
        groups=groups,
        arguments=(MODEL,) if model else (),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
