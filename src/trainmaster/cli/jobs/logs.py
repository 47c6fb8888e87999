"""`trainmaster logs`: prints the logs of a job's attempts, and follows them until the job ends."""

from __future__ import annotations

import heapq
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.options import Name
from trainmaster.cli.output.times import job_sentence
from trainmaster.client.kinds import is_training_job
from trainmaster.client.views.moments import parse_timestamp
from trainmaster.client.views.states import ENDED, WAITING
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.logs import LogLine, LogReader
    from trainmaster.client.views.types import AttemptView, JobDetailView

_INTERVAL_SECONDS = 2.0
_SETTLE_SECONDS = 6.0
"""Time without new lines after a job's end: CloudWatch shows the last ones some seconds late."""
_MAX_TAIL = 10_000
_FOLLOWED = 2
"""Attempts at the end whose streams are followed."""
_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class _Source:
    """An attempt and the training jobs whose streams are its logs."""

    attempt: AttemptView
    training_jobs: tuple[str, ...]

    @property
    def number(self) -> int:
        """The attempt's number."""
        return self.attempt["number"]

    def label(self, stream: str) -> str:
        """Return the stream's host in brackets, with its training job if that is a member; empty for a single host."""
        from trainmaster.client.logs import host_of

        name = stream.partition("/")[0]
        if name != self.attempt["trainingJobName"]:
            return f"[{name}/{host_of(stream)}] "
        return f"[{host_of(stream)}] " if sum(self.attempt["units"].values()) > 1 or self.training_jobs[1:] else ""


def logs(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    name: Name,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on through preemptions and restarts until the job ends.")
    ] = False,
    attempt: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this attempt.")] = None,
    tail: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=_MAX_TAIL, help="Begin with the last N lines.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help=f"Only lines from this time on: {WHEN}.")] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print the time of each line.")] = False,
) -> None:
    """Print the logs of a job, attempt by attempt, from CloudWatch Logs.

    A line names each attempt. Lines of several hosts are in order of time, each with its host. Your identity needs
    logs:DescribeLogStreams and logs:GetLogEvents.
    """
    cli = cli_context(context)
    moment = moment_option(since, cli.now())
    with cli.api() as api:
        job = api.job(name)
        _check(job, attempt)
        reader = cli.log_reader(api, None if moment is None else round(parse_timestamp(moment).timestamp() * 1000))
        session = _Session(cli, api, reader, attempt, timestamps)
        session.begin(job, tail)
        if follow:
            try:
                session.follow(job)
            except KeyboardInterrupt:
                typer.echo("Stopped following; the job continues.", err=True)
                raise typer.Exit(ExitCode.INTERRUPTED) from None


def _check(job: JobDetailView, attempt: int | None) -> None:
    """Raise `BadParameter` for a job that has no logs of training jobs, or not this attempt."""
    if not is_training_job(job):
        raise typer.BadParameter(f"{job['jobName']} is of kind {one_line(job['kind'])}; only training jobs have logs")
    numbers = [each["number"] for each in job["attempts"]]
    if attempt is not None and attempt not in numbers:
        known = f"its attempts are {', '.join(map(str, numbers))}" if numbers else "it has not started yet"
        raise typer.BadParameter(f"{job['jobName']} has no attempt {attempt}; {known}", param_hint="'--attempt'")


@dataclass
class _Session:
    """Prints lines of a job's attempts, each once, with a header where the attempt changes."""

    cli: CliContext
    api: ApiClient
    reader: LogReader
    only: int | None
    timestamps: bool
    shown: int = 0
    """Number of the attempt whose header was printed last; 0 before the first."""
    told: str = ""

    def begin(self, job: JobDetailView, tail: int | None) -> None:
        """Print all lines that there are, or the last ones; a job that waits or has none says so."""
        sources = self._sources(job)
        parts = [(source, self._unread(source)) for source in sources] if tail is None else self._tail(sources, tail)
        for source, lines in parts:
            self._print(source, lines)
        if job["jobState"] in WAITING or not self.shown:
            self._tell(job)
        if sources and not self.shown:
            typer.echo("CloudWatch Logs has no lines of it; the first appear some seconds after its start.", err=True)

    def follow(self, job: JobDetailView) -> None:
        """Print new lines until the job, or the one attempt that is wanted, has ended and no more lines come."""
        quiet_since = self.cli.clock()
        while True:
            # Lines of an attempt may come after the next one has begun.
            printed = [self._print(source, self._unread(source)) for source in self._sources(job)[-_FOLLOWED:]]
            self._tell(job)
            if any(printed) or not self._is_over(job):
                quiet_since = self.cli.clock()
            elif self.cli.clock() - quiet_since >= _SETTLE_SECONDS:
                return
            self.cli.sleep(_INTERVAL_SECONDS)
            if job["jobState"] not in ENDED:
                job = self.api.job(job["jobName"])

    def _is_over(self, job: JobDetailView) -> bool:
        wanted = [each for each in job["attempts"] if each["number"] == self.only]
        return job["jobState"] in ENDED or any(each["endedAt"] for each in wanted)

    def _sources(self, job: JobDetailView) -> list[_Source]:
        newest = job["attempts"][-1:]
        wanted = [attempt for attempt in job["attempts"] if self.only in (None, attempt["number"])]
        return [_Source(attempt, _training_jobs(job, attempt, newest=attempt in newest)) for attempt in wanted]

    def _streams(self, source: _Source) -> list[str]:
        return [stream for name in source.training_jobs for stream in self.reader.streams(name)]

    def _unread(self, source: _Source) -> Iterator[LogLine]:
        """Return the unread lines of an attempt in order of time."""
        streams = [self.reader.unread(stream) for stream in self._streams(source)]
        return heapq.merge(*streams, key=lambda line: line.at)

    def _tail(self, sources: Sequence[_Source], count: int) -> list[tuple[_Source, list[LogLine]]]:
        """Return the last lines of all attempts together, by attempt."""
        found: list[tuple[_Source, list[LogLine]]] = []
        for source in reversed(sources):
            if count == 0 and len(found) >= _FOLLOWED:
                break
            lines = [line for stream in self._streams(source) for line in self.reader.last(stream, max(count, 1))]
            lines = sorted(lines, key=lambda line: line.at)[-count:] if count else []
            found.insert(0, (source, lines))
            count -= len(lines)
        return found

    def _print(self, source: _Source, lines: Iterable[LogLine]) -> bool:
        """Print the lines, below a header unless the attempt was shown last; return whether there were any."""
        any_lines = False
        for line in lines:
            if self.shown != source.number:
                self.shown = source.number
                typer.echo(_header(source.attempt))
            typer.echo(self._text(source, line))
            any_lines = True
        return any_lines

    def _text(self, source: _Source, line: LogLine) -> str:
        time = ""
        if self.timestamps:
            zone = self.cli.now().tzinfo
            time = f"{datetime.fromtimestamp(line.at / 1000, zone):%Y-%m-%d %H:%M:%S} "
        text = _COLORS.sub("", line.text.rstrip()).expandtabs()
        return one_line(f"{time}{source.label(line.stream)}{text}")

    def _tell(self, job: JobDetailView) -> None:
        """Print the job's state on standard error, if it has changed."""
        state = f"{job['jobState']} {len(job['attempts'])}"
        if state != self.told:
            self.told = state
            sys.stdout.flush()
            typer.echo(f"{one_line(job['jobName'])}: {job_sentence(job, self.cli.now())}", err=True)


def _training_jobs(job: JobDetailView, attempt: AttemptView, *, newest: bool) -> tuple[str, ...]:
    """Return the training jobs of an attempt: its own, and of the newest also a new base and the members."""
    elastic, own = job.get("elastic"), attempt["trainingJobName"]
    members = [member["trainingJobName"] for member in elastic["members"]] if elastic else []
    more = [job["trainingJobName"] or own, *members] if newest else []
    return tuple(dict.fromkeys([own, *more]))


def _header(attempt: AttemptView) -> str:
    return one_line(f"==> attempt {attempt['number']}: {attempt['trainingJobName']} ({attempt['outcome']}) <==")
