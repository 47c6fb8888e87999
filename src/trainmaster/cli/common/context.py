"""What every command works with: the way to the API, the clocks, the environment; tests hand in their own.

It must not connect before a command asks: importing boto3 and httpx takes longer than all the rest.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

import typer

from trainmaster.client.api.config import ID_VARIABLE, STACK_VARIABLE, URL_VARIABLE
from trainmaster.client.api.errors import NotConfigured

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api.client import ApiClient


@dataclass(frozen=True, slots=True)
class Where:
    """Which API to speak to and as whom: the global options, None where not given."""

    api_url: str | None = None
    api_id: str | None = None
    stack: str | None = None
    region: str | None = None
    profile: str | None = None


def connect(where: Where, environ: Mapping[str, str]) -> ApiClient:
    """The client of the API that the options or the environment name. Raises NotConfigured."""
    from trainmaster.client.api.client import ApiClient

    return ApiClient(where.api_url, api_id=where.api_id, session=_session(where), environ=_environ(where, environ))


def become(arguments: Sequence[str]) -> None:
    """Run another program in the place of this one, so that each signal reaches it exactly once."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(arguments[0], list(arguments))  # noqa: S606 - our own interpreter, and no shell is wanted


@dataclass(frozen=True, slots=True)
class Tools:
    """Handed to every command in the context's `obj`.

    `clock` counts seconds for waiting, `now` tells the time of day; `become` takes a program's arguments,
    `installed` a module's name.
    """

    connect: Callable[[Where, Mapping[str, str]], ApiClient] = connect
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    become: Callable[[Sequence[str]], None] = become
    installed: Callable[[str], bool] = lambda module: find_spec(module) is not None
    where: Where = Where()

    def api(self) -> ApiClient:
        """A client of the queue's API, to be closed after use."""
        return self.connect(self.where, self.environ)

    def is_terminal(self, stream: TextIO) -> bool:
        """Whether a person looks at it on a terminal that can move its cursor."""
        return stream.isatty() and self.environ.get("TERM") != "dumb"

    def colours(self, stream: TextIO) -> bool:
        """Whether colours are wanted there (https://no-color.org)."""
        return self.is_terminal(stream) and not self.environ.get("NO_COLOR")


def tools_of(context: typer.Context) -> Tools:
    """The tools of a command."""
    tools = context.find_object(Tools)
    if tools is None:
        raise RuntimeError("a command was called without the program around it")
    return tools


def _session(where: Where) -> boto3.session.Session | None:
    """A boto3 session where the options ask for a special one; otherwise the client makes the default one."""
    if where.region is None and where.profile is None:
        return None
    import boto3
    from botocore.exceptions import ProfileNotFound

    try:
        return boto3.session.Session(region_name=where.region, profile_name=where.profile)
    except ProfileNotFound as error:
        raise NotConfigured(f"{error}.", hint="`aws configure list-profiles` lists them.") from error


def _environ(where: Where, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment, in which an address yields to a stack that was named on the command line."""
    if where.stack is None:
        return environ
    others = {key: value for key, value in environ.items() if key not in (URL_VARIABLE, ID_VARIABLE)}
    return others | {STACK_VARIABLE: where.stack}
