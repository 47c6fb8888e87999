"""The context of every command: API client, clocks and environment. Tests pass their own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from trainmaster.client.api.config import ID_VARIABLE, STACK_VARIABLE, URL_VARIABLE
from trainmaster.client.api.errors import NotConfigured
from trainmaster.client.views.moments import LOCAL
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.api.core_session import CoreSession
    from trainmaster.client.logs import LogReader

ARGUMENTS: Final = "trainmaster.arguments"
"""Key of click's `meta` with the arguments of the call."""


@dataclass(frozen=True, slots=True)
class ApiTarget:
    """The API to call and the AWS identity to use: the global options, None if not set."""

    api_url: str | None = None
    api_id: str | None = None
    stack: str | None = None
    region: str | None = None
    profile: str | None = None


def open_session(target: ApiTarget) -> CoreSession:
    """Return a session for the options. Raises NotConfigured."""
    from botocore.exceptions import ProfileNotFound

    from trainmaster.client.api.core_session import CoreSession

    try:
        return CoreSession(region_name=target.region, profile_name=target.profile)
    except ProfileNotFound as error:
        raise NotConfigured(f"{error}.", hint="`aws configure list-profiles` lists them.") from error


def connect(target: ApiTarget, environ: Mapping[str, str]) -> ApiClient:
    """Return a client for the API that the options or the environment select. Raises NotConfigured."""
    from trainmaster.client.api.client import ApiClient

    return ApiClient(
        target.api_url,
        api_id=target.api_id,
        session=open_session(target),
        environ=_environ(target, environ),
        on_wait=_tell_of_wait,
    )


def _tell_of_wait(host: str) -> None:
    typer.echo(f"Still waiting for {one_line(host)}; Ctrl-C gives up.", err=True)


def connect_s3(target: ApiTarget) -> Any:
    """Return a client for S3 with the identity that the options select. Raises NotConfigured."""
    return open_session(target).client("s3")


def aws_client(api: ApiClient, service: str) -> Any:
    """Return a client of an AWS service with the API client's identity, in the queue's Region."""
    session: Any = api.session
    return session.client(service, region_name=api.region)


def log_reader(api: ApiClient, since: int | None) -> LogReader:
    """Return a reader of CloudWatch Logs with the client's identity; `since` is in milliseconds since 1970."""
    from trainmaster.client.logs import LogReader

    return LogReader(api.session.client("logs", region_name=api.region), since)


def exec_program(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
    """Replace this process with another program, so that each signal reaches it exactly once. Raises OSError."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and a program that it becomes would inherit that
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execvpe(arguments[0], list(arguments), dict(os.environ if environ is None else environ))  # noqa: S606 - no shell


def start_beside(start: Callable[[], Mapping[str, str]], level: int) -> Mapping[str, str]:
    """Start a server in another process, which ends with this one and prints messages from a level of logging on.

    Raises NotConfigured where there is no fork.
    """
    if not hasattr(os, "fork"):
        raise NotConfigured("exec needs Linux or macOS.", hint="On Windows, use the Windows Subsystem for Linux.")
    from trainmaster.proxy.process import start_beside

    return start_beside(start, level)


@dataclass(frozen=True, slots=True)
class CliContext:
    """Dependencies of commands, passed in the typer context's `obj`.

    Attributes:
        connect: creates the API client.
        connect_s3: creates the S3 client.
        log_reader: creates a reader of logs.
        session: opens a session of the AWS identity.
        aws_client: creates the client of an AWS service with the API client's identity.
        environ: environment variables.
        now: the time of day, in the zone in which commands show times.
        clock: seconds, for waiting.
        sleep: waits for so many seconds.
        exec_program: replaces this process, given a program's arguments, and its environment if it is another.
        start_beside: starts a server in a process that ends with this one.
        find_program: finds a program in the folders of PATH.
        has_keyboard: whether a person can answer questions.
        is_installed: whether a module of this name is installed.
        target: the API to call.
    """

    connect: Callable[[ApiTarget, Mapping[str, str]], ApiClient] = connect
    connect_s3: Callable[[ApiTarget], Any] = connect_s3
    log_reader: Callable[[ApiClient, int | None], LogReader] = log_reader
    session: Callable[[ApiTarget], CoreSession] = open_session
    aws_client: Callable[[ApiClient, str], Any] = aws_client
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], datetime] = lambda: datetime.now(LOCAL)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    exec_program: Callable[..., None] = exec_program
    start_beside: Callable[[Callable[[], Mapping[str, str]], int], Mapping[str, str]] = start_beside
    find_program: Callable[[str, str | None], str | None] = lambda name, path: shutil.which(name, path=path)
    is_installed: Callable[[str], bool] = lambda module: find_spec(module) is not None
    has_keyboard: Callable[[], bool] = lambda: bool(sys.stdin) and sys.stdin.isatty()
    target: ApiTarget = ApiTarget()

    def api(self) -> ApiClient:
        """Return a client of the queue's API; close it after use."""
        return self.connect(self.target, self.environ)

    def is_terminal(self, stream: TextIO) -> bool:
        """Return whether the stream is a terminal that can move its cursor."""
        return stream.isatty() and self.environ.get("TERM") != "dumb"

    def has_colors(self, stream: TextIO) -> bool:
        """Return whether to use colors on the stream (https://no-color.org)."""
        return self.is_terminal(stream) and not self.environ.get("NO_COLOR")


def cli_context(context: typer.Context) -> CliContext:
    """Return the CliContext of a command."""
    cli = context.find_object(CliContext)
    if cli is None:
        raise RuntimeError("the command was called outside the program")
    return cli


def _environ(target: ApiTarget, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment; a stack on the command line takes precedence over an address in it."""
    if target.stack is None:
        return environ
    others = {key: value for key, value in environ.items() if key not in (URL_VARIABLE, ID_VARIABLE)}
    return others | {STACK_VARIABLE: target.stack}
