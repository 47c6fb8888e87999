"""Parameters of paths and queries: their checks, and their descriptions in the OpenAPI document."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.infeasible import INFEASIBLE
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.requests.fields import did_you_mean, shown
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.domain.times import YEARS
from trainmaster.service.explain.usage import MAX_JOBS, By

NAME_PATTERN = r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$"
"""SageMaker's pattern of a training job's name (CreateTrainingJob, `TrainingJobName`)."""
MAX_LIMIT = 100
LISTED = 50
MAX_BARS = 1_000
BARS = 500
_MAX_CURSOR_LENGTH = 2_100
_MAX_WORD_LENGTH = 256
# The same names as NAME_PATTERN's, without its nested repetition.
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?")


def _name(text: str) -> str:
    name = unquote(text)
    if not is_name(name):
        raise wrong_name(name)
    return name


def is_name(text: str) -> bool:
    """Return whether a job can have this name."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def wrong_name(name: str) -> InvalidRequest:
    """Return the error for a name that no job can have."""
    return InvalidRequest(
        f"{shown(name)} is not a valid job name.",
        field="name",
        hint=f"Names have letters, digits and inner hyphens, at most {MAX_NAME} characters.",
    )


def _states(value: Any) -> list[str]:
    """States from `running,pending`, from repeated parameters, or both."""
    words = [word.strip() for text in (value if isinstance(value, list) else [value]) for word in str(text).split(",")]
    return [_state(word) for word in words if word]


def _state(word: str) -> str:
    known = [*(state.value for state in JobState), INFEASIBLE]
    if word not in known:
        meant = did_you_mean(word, known)
        guess = f"Did you mean '{meant}'? " if meant else ""
        hint = f"{guess}The states are: {', '.join(known)}."
        raise InvalidRequest(f"There is no state {shown(word)}.", field="state", hint=hint)
    return word if word == INFEASIBLE else JobState(word)


def _moment(time: datetime) -> datetime:
    """Return the time if the queue can store it; sums with others overflow otherwise."""
    if time.year not in YEARS:
        raise ValueError(f"should be in the years {YEARS[0]} to {YEARS[-1]}")
    return time


Moment = Annotated[AwareDatetime, AfterValidator(_moment)]
"""A time with its zone, in a year that the queue stores."""

JobName = Annotated[
    str,
    AfterValidator(_name),
    Path(description="The job's name.", json_schema_extra={"pattern": NAME_PATTERN, "maxLength": MAX_NAME}),
]
Pool = Annotated[str, AfterValidator(unquote), Path(description="The pool's name.")]
History = Annotated[bool, Query(description="Whether to include the recent changes of managed pools.")]
Force = Annotated[
    bool,
    Query(
        description=(
            "Whether to remove the pool even if jobs hold it (they continue) or can run nowhere else (they keep "
            "waiting)."
        )
    ),
]
Purge = Annotated[
    bool, Query(alias="purge", description="Whether to delete a job that has ended; other jobs are refused.")
]
CancelReason = Annotated[
    str | None,
    Query(
        alias="reason",
        description="Reason of the cancellation, for the job's history.",
        max_length=MAX_REASON_LENGTH,
    ),
]
SettingsVersion = Annotated[
    int | None,
    Query(ge=0, alias="version", description="Expected version in force; otherwise the request is rejected (409)."),
]
States = Annotated[
    list[JobState | Literal["infeasible"]],
    BeforeValidator(_states),
    Query(
        description="Only jobs in these states; separated by commas, or with the parameter repeated. "
        "`infeasible` are waiting jobs that no pool could hold, even when empty."
    ),
]
Share = Annotated[str | None, Query(description="Only jobs of this share.", max_length=_MAX_WORD_LENGTH)]
Why = Annotated[
    bool,
    Query(description="Whether to include what blocks a waiting job and what would help; takes longer."),
]
JobKind = Annotated[str | None, Query(alias="kind", description="Only jobs of this kind.", max_length=_MAX_WORD_LENGTH)]
Prefix = Annotated[str, Query(alias="prefix", description="Only jobs whose names begin so.", max_length=MAX_NAME)]
PoolName = Annotated[str | None, Query(description="Only jobs that can run in this pool.", max_length=_MAX_WORD_LENGTH)]
Mine = Annotated[
    bool, Query(description="Whether to list only jobs that you submitted: your role or user, in any of its sessions.")
]
EnteredSince = Annotated[
    Moment | None,
    Query(alias="since", description="Only jobs that entered the queue from this time on (ISO 8601 with its zone)."),
]
Since = Annotated[Moment | None, Query(description="Only entries from this time on (ISO 8601 with its zone).")]
Until = Annotated[Moment | None, Query(description="Only entries before this time.")]
PeriodStart = Annotated[
    Moment | None,
    Query(alias="from", description="Beginning of the period (ISO 8601 with its zone); by default a day ago."),
]
PeriodEnd = Annotated[Moment | None, Query(alias="to", description="End of the period; by default in two days.")]
OnlyPool = Annotated[str | None, Query(alias="pool", description="Only this pool.", max_length=_MAX_WORD_LENGTH)]
IntervalLimit = Annotated[
    int,
    Query(alias="limit", description="Maximum number of intervals of a pool; it may have fewer.", ge=1, le=MAX_BARS),
]
UsageStart = Annotated[
    Moment | None,
    Query(alias="from", description="Beginning of the period (ISO 8601 with its zone); by default a week before."),
]
UsageEnd = Annotated[Moment | None, Query(alias="to", description="End of the period; by default now.")]
GroupedBy = Annotated[By, Query(alias="by", description="What to group the numbers by.")]
JobsRead = Annotated[
    int, Query(alias="limit", description="Maximum number of jobs to read for the part.", ge=1, le=MAX_JOBS)
]
OfJob = Annotated[str | None, Query(description="Only changes of this job.", max_length=MAX_NAME)]
Who = Annotated[
    str | None,
    Query(description="Only callers whose principal or ARN contains this text.", max_length=_MAX_WORD_LENGTH),
]
OfAction = Annotated[AuditAction | None, Query(description="Only this action.")]
EntryLimit = Annotated[
    int, Query(alias="limit", description="Maximum number of entries; it may have fewer.", ge=1, le=MAX_LIMIT)
]
Limit = Annotated[int, Query(description="Maximum number of jobs on the page; it may have fewer.", ge=1, le=MAX_LIMIT)]
Cursor = Annotated[
    str | None, Query(description="The `nextCursor` of the previous page, unchanged.", max_length=_MAX_CURSOR_LENGTH)
]


def known_parameters_only(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response[Any]:
    """Refuse a query parameter that the route does not have: a misspelt filter would list everything."""
    event = app.current_event
    known = [each.alias for each in app.context["_route"].dependant.query_params]
    for name in {**event.query_string_parameters, **event.multi_value_query_string_parameters}:
        # A request signed in its query carries the signature there.
        if name not in known and not name.casefold().startswith("x-amz-"):
            raise _unknown(name, known)
    return next_middleware(app)


def _unknown(name: str, known: list[str]) -> InvalidRequest:
    meant = did_you_mean(name, known)
    listed = f"The parameters are: {', '.join(known)}." if known else "This route has no parameters."
    hint = f"Did you mean '{meant}'? {listed}" if meant else listed
    return InvalidRequest(f"There is no parameter {shown(name)}.", field=name, hint=hint)
