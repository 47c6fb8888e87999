"""The program `trainmaster`: its global options, its commands, and errors as exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from trainmaster import __version__
from trainmaster.cli.commands import Commands
from trainmaster.cli.common.context import ARGUMENTS, ApiTarget, CliContext
from trainmaster.cli.common.exit_codes import (
    MEANINGS,
    ExitCode,
    as_api_error,
    error_line,
    exit_code_of,
    file_error_line,
)
from trainmaster.cli.common.usage import UsageError, usage_lines
from trainmaster.cli.output.render import PRINT_YAML, print_error, print_usage_error
from trainmaster.client.api.errors import ApiError
from trainmaster.domain.compat import UTC

NAME = "trainmaster"
_GLOBAL_OPTIONS: Final = ("--api-url", "--api-id", "--stack", "--region", "--profile")
_GLOBAL_FLAGS: Final = ("--utc",)
_FORM: Final = re.compile(r"\0(?:-o|--output)[\0=]?(json|yaml)(?=\0|$)")
_EXITS = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"\b\nGlobal options are also accepted after the command.\n\n\b\nExit codes:\n{_EXITS}"


class CommandGroup(TyperGroup):
    """The commands. Global options may follow the command, and errors become exit codes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._lazy = Commands(self.commands)
        self.commands = self._lazy

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the first line of their help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(self._lazy.rows())

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Make the context as click does, for which the command is imported; Ctrl-C ends the program with a line."""
        try:
            return super().make_context(*arguments, **extra)
        except KeyboardInterrupt:
            raise _interrupted("Interrupted.") from None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as click does, with the global options moved to the front, and `-o json` as `--json`."""
        ordered = self._without_form(globals_first(args))
        ctx.meta[ARGUMENTS] = ordered
        try:
            return super().parse_args(ctx, list(ordered))
        except UsageError as error:
            raise _usage_exit(error, ordered, self.commands) from error

    def _without_form(self, arguments: list[str]) -> list[str]:
        """Replace `-o json` and `-o yaml` by `--json`, for commands without an option `--output` of their own."""
        PRINT_YAML.set(False)
        command: Any = self
        for word in arguments:
            command = getattr(command, "commands", {}).get(word, command)
        options = {option for param in command.params for option in param.opts}
        if "--json" not in options or "--output" in options:
            return arguments
        text = "\0".join(arguments)
        before, dashes, behind = text.partition("\0--\0")
        form = _FORM.search(before)
        if form is None:
            return arguments
        PRINT_YAML.set(form[1] == "yaml")
        return (_FORM.sub("\0--json", before, count=1) + dashes + behind).split("\0")

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print an expected error in one line and exit with its code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _interrupted("Interrupted; a change that was sent may still take effect.") from None
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except UsageError as error:
            raise _usage_exit(error, ctx.meta[ARGUMENTS], self.commands) from error
        except Exception as error:
            api_error = as_api_error(error, getattr(ctx.obj, "target", ApiTarget()).profile)
            if api_error is None:
                raise
            print_error(error_line(api_error, _job_meant(ctx.obj, api_error)))
            raise typer.Exit(exit_code_of(api_error)) from error


def globals_first(arguments: list[str]) -> list[str]:
    """Move global options before the command, wherever they are.

    The AWS CLI also accepts them after the command. What follows `--` or the command `demo` is left alone.
    """
    front: list[str] = []
    others: list[str] = []
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--" or (word == "demo" and not others):
            others += [word, *remaining]
            break
        if word in _GLOBAL_OPTIONS and remaining:
            front += [word, remaining.pop(0)]
        elif word in _GLOBAL_FLAGS:
            front.append(word)
        else:
            (front if word.startswith(tuple(f"{name}=" for name in _GLOBAL_OPTIONS)) else others).append(word)
    return front + others


def build() -> typer.Typer:
    """Build the program. It takes its `CliContext` from the context's `obj`, and the default one if there is none."""
    app = typer.Typer(
        name=NAME,
        cls=CommandGroup,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        epilog=_EPILOG,
    )
    app.callback()(trainmaster)
    return app


def _version(context: typer.Context, requested: bool) -> None:
    if not requested:
        return
    from trainmaster.cli.queue.versions import quick_lines

    given = {name: context.params.get(name) for name in ("api_url", "api_id", "stack", "region", "profile")}
    cli = context.obj if isinstance(context.obj, CliContext) else CliContext()
    typer.echo("\n".join([f"{NAME} {__version__}", *quick_lines(replace(cli, target=ApiTarget(**given)))]))
    raise typer.Exit


def trainmaster(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    api_url: Annotated[
        str | None,
        typer.Option(metavar="URL", is_eager=True, help="URL of the API with its stage  [env: TRAINMASTER_API_URL]"),
    ] = None,
    api_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", is_eager=True, help="ID of the API, behind a VPC endpoint  [env: TRAINMASTER_API_ID]"
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            is_eager=True,
            help="Deployed stack whose outputs have the address  [env: TRAINMASTER_STACK; default: trainmaster]",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", is_eager=True, help="AWS Region  [env: AWS_DEFAULT_REGION]")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", is_eager=True, help="AWS profile  [env: AWS_PROFILE]")
    ] = None,
    utc: Annotated[bool, typer.Option("--utc", help="Show times in UTC, not in the local zone (TZ).")] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, and that of the service if one answers.",
            is_eager=True,
            callback=_version,
        ),
    ] = False,
) -> None:
    """Manage a priority queue for Amazon SageMaker training jobs."""
    del show_version  # its callback has printed it
    cli = context.obj if isinstance(context.obj, CliContext) else CliContext()
    target = ApiTarget(api_url=api_url, api_id=api_id, stack=stack, region=region, profile=profile)
    now = (lambda: cli.now().astimezone(UTC)) if utc else cli.now
    context.obj = replace(cli, target=target, now=now)


def run() -> None:
    """Run the program; a full disk ends it with one line, an internal error with a traceback."""
    try:
        build()(prog_name=NAME)
    except Exception as error:  # noqa: BLE001 - the last handler
        if isinstance(error, OSError) and (line := file_error_line(error)) is not None:
            print_error(line)
            sys.exit(ExitCode.NOT_WRITTEN)
        traceback.print_exc()
        sys.exit(ExitCode.BUG)


def _usage_exit(error: Any, arguments: list[str], commands: Collection[str]) -> Exception:
    """Print a usage error and return the exit; what click shows as help instead of an error is returned itself."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error  # type: ignore[no-any-return]
    print_usage_error(usage_lines(error, arguments, commands))
    return typer.Exit(ExitCode.INVALID)


def _job_meant(cli: Any, error: ApiError) -> str | None:
    """Return the job that is meant by an unknown name."""
    if error.type != "JobNotFound" or not isinstance(cli, CliContext):
        return None
    from trainmaster.cli.common.names import nearest_job

    with cli.api() as api:
        return nearest_job(api, error)


def _interrupted(line: str) -> Exception:
    """Print a line and return the exit."""
    typer.echo(line, err=True)
    return typer.Exit(ExitCode.INTERRUPTED)


def _discard_stdout() -> None:
    """Redirect stdout to null: its reader has gone, and the flush at exit would fail (Python's library, signal)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
