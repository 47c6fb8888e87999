"""Jobs as rows of the table, and back: the key of a job's row, and its attributes.

A job has one live row, in the place of its state. Small attributes carry names from the article; the rest is one JSON
text (`codec`), compressed, because a pass reads the rows of all active jobs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypedDict

from trainmaster.adapters.dynamodb.codec import ROW, STATES, decode_history, decode_job, encode_history, encode_job
from trainmaster.adapters.dynamodb.encoding.compression import compress, inflate
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import InvalidRequest, TooLarge
from trainmaster.domain.jobs.job import ACTIVE, ENDED, Change, Job, JobState
from trainmaster.domain.jobs.listing import EndedPlace, HeldPlace, QueuePlace, ended_place, held_place
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.times import NEVER

Row: TypeAlias = dict[str, Any]
"""Attributes by name, each as DynamoDB writes it: `{"S": ...}`, `{"N": ...}`, `{"B": ...}`."""
Key: TypeAlias = tuple[str, str]
"""`pk` and `sk`."""

WAIT, HELD, STATE = "WAIT", "HELD", "STATE"
AFTER = "AFTER#"
"""Prefix of the partition of the jobs that run after a job."""
CONTROL: Key = (STATE, "control")
ACTIVE_ROWS, EXTERNAL_ROWS, HISTORY_ROWS, REQUEST_ROWS = "active#", "external#", "history#", "request#"
WARM_ROWS = "warm#"
PLACE = "place"
FINISHED_INDEX, FINISHED = "finished", "ended"
"""The index of ended jobs, and its one hash key: jobs end no faster than SageMaker starts them."""

JOB_ATTRIBUTES = frozenset(
    [
        "pk",
        "sk",
        "schema",
        "jobName",
        "entryTime",
        "jobState",
        "priority",
        "version",
        "job",
        "apart",
        "finishedIn",
        "finishedAt",
    ]
)
"""Attributes of a job's live row; any others are a newer release's, and kept."""
_WARM_MEMBERS = frozenset(["units", "warmPoolKey", "until", "priority", "usedBy", "unusedSince", "endingSince"])
MAX_TEXT_BYTES = 2_000_000
"""Bytes of a decompressed text: a job with 50 attempts and a long history has a tenth."""
_MAX_LANE_LENGTH = 700
"""Bytes of a lane's key: a sort key may have 1,024, and priority, time and name follow the lane."""


def job_key(name: str) -> Key:
    """Return the key of the row that reserves a name permanently."""
    return (f"JOB#{name}", "job")


def place(job: Job) -> Key:
    """Return the key of the job's one live row, by its state."""
    if job.state in ACTIVE:
        return (STATE, ACTIVE_ROWS + job.name)
    if job.state in ENDED:
        return (f"JOB#{job.name}", "ended")
    if job.state is JobState.HELD:
        return (HELD, held_key(held_place(job)))
    return (WAIT, waiting_key(lane_key(job.lane), job.order))


def lane_key(lane: str) -> str:
    """Return a lane's name as the first part of sort keys, without the characters that separate the parts.

    Raises `TooLarge`.
    """
    key = lane.replace("%", "%25").replace("#", "%23")
    if len(key.encode()) > _MAX_LANE_LENGTH:
        kinds = (kind for kind in Work.kinds().values() if f"/{kind.pool_prefix}" in lane)
        field = next((kind.request_field for kind in kinds), "ResourceConfig")
        raise TooLarge("The names of the job's share and pools are too long together.", field=field)
    return key


def lane_of(row: Row) -> str:
    """Return the `lane_key` of a waiting row."""
    sort_key: str = row["sk"]["S"]
    return sort_key.partition("#")[0]


def lane_end(lane: str) -> str:
    """Return a key after every sort key of the lane and before those of later lanes: `$` follows `#`."""
    return lane + "$"


def waiting_key(lane: str, order: QueuePlace) -> str:
    """Return the sort key that orders a lane's rows by `Job.order`. Raises `InvalidRequest` beyond the limit."""
    rank, entry_time, name = order
    if abs(rank) > MAX_PRIORITY:
        raise InvalidRequest(f"Specify a priority from -{MAX_PRIORITY} to {MAX_PRIORITY}.", field="priority")
    return f"{lane}#{MAX_PRIORITY + rank:07d}#{moment(entry_time)}#{name}"


def held_key(place: HeldPlace) -> str:
    """Return the sort key of a held job: jobs held only until a time come first, by that time; no name has a `#`."""
    due, name = place
    return name if due == NEVER else f"{due_end(due)[:-1]}#{name}"


def due_end(due: datetime) -> str:
    """Return a key after those of all held jobs due until then, and before the others: `$` follows `#`."""
    return f"#{moment(due)}$"


def after_rows(job: Job) -> set[Key]:
    """Return the keys of the rows that lead from each parent to a held job."""
    return {(AFTER + parent, job.name) for parent in job.after} if job.state is JobState.HELD else set()


class Span(TypedDict):
    """A range of sort keys, without its ends."""

    after: str
    until: str


def span(prefix: str) -> Span:
    """Return the range of all sort keys with a prefix of this module: each ends with `#`, and `$` follows it."""
    return {"after": prefix, "until": prefix[:-1] + "$"}


def moment(time: datetime) -> str:
    """Return UTC with microseconds, always 27 characters, so that text order is time order."""
    here = time if time.tzinfo is UTC else time.astimezone(UTC)
    return here.isoformat(timespec="microseconds")[:26] + "Z"


def finished_at(ended: EndedPlace) -> str:
    """Return the range key in the index of ended jobs."""
    return f"{moment(ended[0])}#{ended[1]}"


def identity_row(job: Job, **details: Any) -> Row:
    """Return the row that reserves the job's name and tells where it waits; `details` hold its request."""
    return keyed(job_key(job.name), jobName=job.name, **waiting_place(job), **details)


def waiting_place_row(job: Job) -> Row:
    """Return the row of the place where the job waits or is held, if the identity row no longer has it.

    A lane depends on the job's usage, an entry time on the job's release into the queue. The row is small, because the
    identity row is as large as its request.
    """
    return keyed((job_key(job.name)[0], PLACE), jobName=job.name, **waiting_place(job))


def waiting_place(job: Job) -> dict[str, str | int]:
    """Return the values that determine the places in which a job may wait or be held."""
    due = {} if job.not_before is None else {"notBefore": moment(job.not_before)}
    return {"entryTime": moment(job.entry_time), "priority": job.priority, "lane": lane_key(job.lane), **due}


def inactive_keys(row: Row) -> list[Key]:
    """Return the keys where the job may wait or be held, from its row of whereabouts or its identity row."""
    name = row["jobName"]["S"]
    order = (-int(row["priority"]["N"]), datetime.fromisoformat(row["entryTime"]["S"]), name)
    held = [(NEVER, name)]
    if "notBefore" in row:
        held.append((datetime.fromisoformat(row["notBefore"]["S"]), name))
    return [(WAIT, waiting_key(row["lane"]["S"], order)), *((HELD, held_key(place)) for place in held)]


def keyed(key: Key, **values: str | int | bytes) -> Row:
    """Return a row with this key and these attributes."""
    return {name: _attribute(value) for name, value in (("pk", key[0]), ("sk", key[1]), *values.items())}


def row_of(job: Job, history: Sequence[Change] | None = None, archived: int = 0) -> Row:
    """Return the live row with these history lines (default: all); `archived` counts older lines in other rows."""
    lines = job.history if history is None else history
    row = keyed(
        place(job),
        jobName=job.name,
        entryTime=moment(job.entry_time),
        jobState=job.state.value,
        priority=job.priority,
        version=job.version,
        job=compress(encode_job(job, lines).encode()),
    )
    row = {**job.unknown.get(ROW, {}), **row}
    if archived:
        row["apart"] = _attribute(archived)
    if job.state in ENDED:
        row["finishedIn"], row["finishedAt"] = _attribute(FINISHED), _attribute(finished_at(ended_place(job)))
    return row


def job_of(row: Row) -> Job:
    """Return the job of a live row, with the history lines in that row."""
    name = row["jobName"]["S"]
    entry = datetime.fromisoformat(row["entryTime"]["S"])
    values = decode_job(job_text(row), name, entry)
    if not JOB_ATTRIBUTES.issuperset(row):
        unknown = row.keys() - JOB_ATTRIBUTES
        values["unknown"] = {**values.get("unknown", {}), ROW: {key: row[key] for key in unknown}}
    return Job(
        name=name,
        entry_time=entry,
        priority=int(row["priority"]["N"]),
        state=STATES[row["jobState"]["S"]],
        version=int(row["version"]["N"]),
        **values,
    )


def job_text(row: Row) -> str:
    """Return the JSON text of a live row."""
    value = row["job"]
    return value["S"] if "S" in value else inflate(value["B"], MAX_TEXT_BYTES).decode()


def archived_count(row: Row) -> int:
    """Return the number of the job's history lines outside this row."""
    return int(row["apart"]["N"]) if "apart" in row else 0


def history_row(job: Job, first: int, lines: Sequence[Change]) -> Row:
    """Return the row of a part of a long history; `first` is the number of its first line, from 0."""
    key = (job_key(job.name)[0], f"{HISTORY_ROWS}{first:07d}")
    return keyed(key, entryTime=moment(job.entry_time), lines=encode_history(lines, job.entry_time))


def history_of(row: Row, entry: datetime) -> tuple[Change, ...]:
    """Return the lines of such a row; times count from the entry time in the row, or else from `entry`."""
    stored = row.get("entryTime")
    return decode_history(row["lines"]["S"], datetime.fromisoformat(stored["S"]) if stored else entry)


def external_row(name: str, job: ExternalJob) -> Row:
    """Return the row of an external training job, or of an orphan."""
    origin = {} if job.origin is Origin.OUTSIDE else {"origin": job.origin.value}
    return keyed((STATE, EXTERNAL_ROWS + name), units=json.dumps(dict(job.units)), **origin)


def warm_row(pool: WarmPool) -> Row:
    """Return the row of a warm pool that an ended attempt left."""
    values = {
        "units": dict(pool.units),
        "warmPoolKey": pool.warm_pool_key,
        "until": moment(pool.until),
        "priority": pool.priority,
        "usedBy": pool.used_by,
        "unusedSince": None if pool.unused_since is None else moment(pool.unused_since),
        "endingSince": None if pool.ending_since is None else moment(pool.ending_since),
    }
    present = {**pool.unknown, **{key: value for key, value in values.items() if value not in (None, "", 0)}}
    return keyed(warm_key(pool.training_job_name), warm=json.dumps(present, separators=(",", ":")))


def warm_key(training_job_name: str) -> Key:
    """Return the key of the warm pool that an attempt left."""
    return (STATE, WARM_ROWS + training_job_name)


def warm_of(row: Row) -> WarmPool:
    """Return the warm pool of such a row."""
    values = json.loads(row["warm"]["S"])
    return WarmPool(
        training_job_name=row["sk"]["S"].removeprefix(WARM_ROWS),
        units=values["units"],
        warm_pool_key=values.get("warmPoolKey", ""),
        until=datetime.fromisoformat(values["until"]),
        priority=values.get("priority", 0),
        used_by=values.get("usedBy"),
        unused_since=_moment_or_none(values.get("unusedSince")),
        ending_since=_moment_or_none(values.get("endingSince")),
        unknown={key: values[key] for key in values.keys() - _WARM_MEMBERS},
    )


def _moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def external_of(row: Row) -> tuple[str, ExternalJob]:
    """Return the training job of such a row, after its name."""
    return row["sk"]["S"].removeprefix(EXTERNAL_ROWS), _external_job(row)


def _external_job(row: Row) -> ExternalJob:
    stored = row.get("origin")
    return ExternalJob(json.loads(row["units"]["S"]), Origin.OUTSIDE if stored is None else Origin(stored["S"]))


def _attribute(value: str | int | bytes) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    return {"B": value} if isinstance(value, bytes) else {"N": str(value)}
