"""Carries out the same change on several jobs or pools: one that cannot be changed does not keep the others from it.

It must not know what the change is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer

from trainmaster.cli.common.exit_codes import Code, code_of, line_of
from trainmaster.cli.output.render import as_json, complain
from trainmaster.client.api.errors import ApiError, Forbidden, NotConfigured, Unreachable
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    from trainmaster.client.views.jobs import JobView

T = TypeVar("T")
# What stands in the way of one job's change stands in the way of all.
_OF_ALL = (Forbidden, NotConfigured, Unreachable)


def change_each(
    names: Sequence[str], change: Callable[[str], JobView], tell: Callable[[JobView], str], *, json: bool
) -> None:
    """Change each job and print what came of it; exits with the code of the first error, if there was one."""
    jobs, code = changed_each(names, change, None if json else lambda _, job: tell(job))
    if json:
        typer.echo(as_json(jobs))
    raise typer.Exit(code)


def changed_each(
    names: Sequence[str], change: Callable[[str], T], tell: Callable[[str, T], str] | None
) -> tuple[list[T], Code]:
    """Change each and say what came of it, where that is wanted; the code is of the first error, if there was one."""
    changed, code = [], Code.OK
    for name in dict.fromkeys(names):
        try:
            changed.append(change(name))
        except _OF_ALL:
            raise
        except ApiError as error:
            complain(line_of(error))
            code = code or code_of(error)
        else:
            if tell is not None:
                typer.echo(tell(name, changed[-1]))
    return changed, code


def state_of(job: JobView) -> str:
    """The job's name and state in one line."""
    return f"{job['jobName']}: {sentence_of(job)}"
