"""Suggests the name that is meant by that of an unknown job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainmaster.cli.common.usage import nearest
from trainmaster.client.api.errors import ApiError

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
