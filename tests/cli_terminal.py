"""Runs commands in this process with a given API client, and a clock that only waiting advances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from typer.testing import CliRunner, Result

from fake_account import FakeAccount
from trainmaster.cli.common.context import CliContext, log_reader
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient
from trainmaster.client.logs import LogReader

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)


@dataclass
class Terminal:
    """Runs commands on an API; its clock moves only when a command sleeps, and then `meanwhile` happens."""

    api: ApiClient
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    started: list[list[str]] = field(default_factory=list)
    started_with: Mapping[str, str] | None = None
    missing: set[str] = field(default_factory=set)
    seconds: float = 0.0
    zone: tzinfo = UTC
    log_reader: Callable[[ApiClient, int | None], LogReader] = log_reader
    aws: FakeAccount = field(default_factory=lambda: FakeAccount(NOW))
    services: dict[str, Any] = field(default_factory=dict)
    s3: dict[str, dict[str, Any]] = field(default_factory=dict)
    s3_error: Exception | None = None

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result:
        cli = CliContext(
            connect=lambda target, environ: self.api,
            connect_s3=lambda target: self,
            log_reader=self.log_reader,
            session=self._session,
            aws_client=lambda api, service: self.services[service],
            environ=self.environ,
            now=lambda: (NOW + timedelta(seconds=self.seconds)).astimezone(self.zone),
            clock=lambda: self.seconds,
            sleep=self._sleep,
            exec_program=self._exec_program,
            start_beside=lambda start, _: start(),
            find_program=lambda name, _: None if name in self.missing else name,
            is_installed=lambda module: module not in self.missing,
        )
        result = CliRunner().invoke(build(), list(arguments), input=stdin, obj=cli, prog_name="trainmaster")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def _exec_program(self, arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self.started.append(list(arguments))
        self.started_with = environ

    def put_object(self, **arguments: Any) -> None:
        """Be the S3 client: keep the arguments by the name of the file."""
        if self.s3_error is not None:
            raise self.s3_error
        self.s3[arguments["Key"].rpartition("/")[2]] = arguments

    def _session(self, _: object) -> Any:
        return self.aws

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if not self.meanwhile:
            raise AssertionError("the command waits for something that the test does not foresee")
        self.meanwhile.pop(0)()
