"""Applies a change to several jobs or pools; an error for one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer

from trainmaster.cli.common.exit_codes import ExitCode, error_line, exit_code_of
from trainmaster.cli.common.names import nearest_job
from trainmaster.cli.output.render import as_json, print_error
from trainmaster.cli.output.times import job_sentence
from trainmaster.client.api.errors import ApiError, Forbidden, NotConfigured, Unreachable
from trainmaster.client.views.states import ENDED
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobView

T = TypeVar("T")
# Errors that affect all jobs, not only the one being changed; but a caller may lack the role for one job only.
_FATAL = (Forbidden, NotConfigured, Unreachable)


def change_jobs(
    api: ApiClient,
    names: Sequence[str],
    change: Callable[[str], JobView],
    describe: Callable[[JobView], str],
    *,
    json: bool,
) -> None:
    """Change each job and print the result; exits with the code of the first error, if any."""
    jobs, code = apply_to_each(api, names, change, None if json else lambda _, job: describe(job))
    if json:
        typer.echo(as_json(jobs))
    raise typer.Exit(code)


def apply_to_each(
    api: ApiClient, names: Sequence[str], change: Callable[[str], T], describe: Callable[[str, T], str] | None
) -> tuple[list[T], ExitCode]:
    """Apply the change to each name and print the results; the code is that of the first error, if any."""
    changed, code = [], ExitCode.OK
    for name in dict.fromkeys(names):
        try:
            changed.append(change(name))
        except ApiError as error:
            if isinstance(error, _FATAL) and error.type != "AccessDenied":
                raise
            print_error(error_line(error, nearest_job(api, error)))
            code = code or exit_code_of(error)
        else:
            if describe is not None:
                typer.echo(describe(name, sanitize(changed[-1])))
    return changed, code


def state_line(job: JobView, now: datetime) -> str:
    """Return the job's name and state in one line."""
    return f"{job['jobName']}: {job_sentence(job, now)}"


def cancelled_line(job: JobView, now: datetime) -> str:
    """Return the job's name and state in one line, after it was cancelled: it may still stop."""
    return state_line(job, now) if job["jobState"] in ENDED else f"{job['jobName']}: Stopping; it will not be resumed."
