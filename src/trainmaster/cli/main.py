"""The program `trainmaster`: its global options, its commands, and how errors end it.

It must not know what a command does. Commands are functions of one file each.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from trainmaster import __version__
from trainmaster.cli.common.context import Tools, Where
from trainmaster.cli.common.exit_codes import MEANINGS, Code, code_of, expected, line_of
from trainmaster.cli.demo import demo
from trainmaster.cli.jobs.cancel import cancel
from trainmaster.cli.jobs.hold import hold
from trainmaster.cli.jobs.ls import ls
from trainmaster.cli.jobs.plan import plan
from trainmaster.cli.jobs.priority import priority
from trainmaster.cli.jobs.release import release
from trainmaster.cli.jobs.resized import resized
from trainmaster.cli.jobs.show import show
from trainmaster.cli.jobs.submit import submit
from trainmaster.cli.jobs.wait import wait
from trainmaster.cli.jobs.why import why
from trainmaster.cli.output.render import complain
from trainmaster.cli.queue import pools, settings
from trainmaster.cli.replay import replay

NAME = "trainmaster"
_GLOBAL: Final = ("--api-url", "--api-id", "--stack", "--region", "--profile")
# Without this, click takes `-5` for an option; the number's own check still refuses what is none.
_NEGATIVE: Final[Mapping[str, Any]] = {"ignore_unknown_options": True}
_FORWARD: Final[Mapping[str, Any]] = {"ignore_unknown_options": True, "allow_extra_args": True}
_EXITS = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"\b\nThese options may also stand behind the command.\n\n\b\nExit codes:\n{_EXITS}"


class Commands(TyperGroup):
    """The commands, with the global options taken from wherever they stand, and errors turned into exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click does, with the global options brought to the front."""
        return super().parse_args(ctx, globals_first(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error that can be expected becomes a line and a code, any other goes on as it is."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(Code.INTERRUPTED) from None
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(Code.BROKEN_PIPE) from None
        except Exception as error:
            known = expected(error)
            if known is None:
                raise
            complain(line_of(known))
            raise typer.Exit(code_of(known)) from error


def globals_first(arguments: list[str]) -> list[str]:
    """The arguments with the global options before the command, wherever they stood.

    People are used to that from the AWS CLI. What follows `--` or the command `demo` belongs to others.
    """
    front: list[str] = []
    rest: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--" or (word == "demo" and not rest):
            rest += [word, *left]
            break
        if word in _GLOBAL and left:
            front += [word, left.pop(0)]
        else:
            (front if word.startswith(tuple(f"{name}=" for name in _GLOBAL)) else rest).append(word)
    return front + rest


def build() -> typer.Typer:
    """The program. It takes its `Tools` as the context's `obj`, the real ones where none is given."""
    app = typer.Typer(
        name=NAME,
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        epilog=_EPILOG,
    )
    app.callback()(trainmaster)
    for command in (submit, ls, show, why, wait, cancel, hold, release, resized):
        app.command()(command)
    app.command(context_settings=dict(_NEGATIVE))(priority)
    app.add_typer(pools.app, name="pools")
    app.add_typer(settings.app, name="settings")
    app.command()(plan)
    app.command()(replay)
    app.command(context_settings=dict(_FORWARD))(demo)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


def trainmaster(  # noqa: PLR0913 - an option each
    context: typer.Context,
    *,
    api_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The API's address with its stage  [env: TRAINMASTER_API_URL]")
    ] = None,
    api_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The API's id, behind a VPC endpoint  [env: TRAINMASTER_API_ID]"),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The deployed stack whose outputs tell the address  [env: TRAINMASTER_STACK; default: trainmaster]",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="The AWS Region  [env: AWS_DEFAULT_REGION]")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="The AWS profile  [env: AWS_PROFILE]")] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """A priority queue for Amazon SageMaker training jobs."""
    del version  # its callback has answered
    tools = context.obj if isinstance(context.obj, Tools) else Tools()
    where = Where(api_url=api_url, api_id=api_id, stack=stack, region=region, profile=profile)
    context.obj = replace(tools, where=where)


def main() -> None:
    """Run the program; an error of its own ends it with a traceback and a code that no job's failure has."""
    try:
        build()(prog_name=NAME)
    except Exception:  # noqa: BLE001 - the last one to see it
        traceback.print_exc()
        sys.exit(Code.BUG)


def _forget_stdout() -> None:
    """Nobody reads any more: keep Python from failing again when it flushes at the end (Python's library, signal)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
