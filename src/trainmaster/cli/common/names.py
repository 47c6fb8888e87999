"""Checks names of pools and shares, and suggests the name that is meant by an unknown one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from trainmaster.cli.common.usage import nearest
from trainmaster.client.api.errors import ApiError, NotFound

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

_UNKNOWN: Final = re.compile(r"There is no job (\S+?)\.?")
_MAX_LISTED: Final = 100


def nearest_job(api: ApiClient, error: ApiError) -> str | None:
    """Return the name nearest to that of an unknown job in the first page of jobs, which one call reads.

    None for an error about anything else, if no name is near, and if the jobs cannot be listed.
    """
    unknown = _UNKNOWN.fullmatch(error.message) if error.type == "JobNotFound" else None
    if unknown is None:
        return None
    try:
        listed = api.jobs(limit=_MAX_LISTED)["jobs"]
    except ApiError:
        return None
    return nearest(unknown[1], [job["jobName"] for job in listed])


def check_pool(api: ApiClient, pool: str | None) -> None:
    """Raise NotFound for a pool that does not exist."""
    if pool is not None:
        check_name("pool", pool, {each["name"] for each in api.pools()["pools"]})


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise NotFound for a name that is not known, with the names that are."""
    if name in known:
        return
    meant = nearest(name, known)
    guess = f"Did you mean '{meant}'? " if meant else ""
    listed = f"The {kind}s are: {', '.join(sorted(known))}."
    raise NotFound(f"There is no {kind} {name or repr(name)}.", type=f"Unknown{kind.title()}", hint=guess + listed)
