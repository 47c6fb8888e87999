"""Jobs as rows of the table, and back: where a job's row is, and what is in it.

Being in a state is a row: a job has one live row, in the place that its state gives it. The small attributes carry
the article's names; the rest is one JSON text (`codec`), because botocore parses nested attributes slowly.
It must not talk to DynamoDB.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypedDict

from trainmaster.adapters.dynamodb.codec import STATES, packed, packed_lines, unpacked, unpacked_lines
from trainmaster.domain.capacity.units import Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import InvalidRequest, TooLarge
from trainmaster.domain.jobs.job import ACTIVE, ENDED, PRIORITY_LIMIT, Change, Job, JobState
from trainmaster.domain.jobs.listing import EndedPlace, HeldPlace, QueuePlace, ended_place, held_place
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.times import NEVER

Row: TypeAlias = dict[str, Any]
"""Attributes by name, each as DynamoDB writes it: `{"S": ...}`, `{"N": ...}`, `{"B": ...}`."""
Key: TypeAlias = tuple[str, str]
"""`pk` and `sk`."""

WAIT, HELD, STATE = "WAIT", "HELD", "STATE"
AFTER = "AFTER#"
"""Beginning of the partition of those that run after a job."""
CONTROL: Key = (STATE, "control")
ACTIVE_ROWS, FOREIGN_ROWS, HISTORY_ROWS, REQUEST_ROWS = "active#", "foreign#", "history#", "request#"
WARM_ROWS = "warm#"
PLACE = "place"
FINISHED_INDEX, FINISHED = "finished", "ended"
"""The index of ended jobs, and its one hash key: ended jobs come at the rate at which SageMaker starts them."""

_READABLE = 700
"""Bytes of a job's text that leave its row, with the longest name, within a kilobyte, which is what is charged for."""
_MAX_LANE_LENGTH = 700
"""Bytes: a sort key may have 1,024, and priority, time and name follow the lane."""


def job_key(name: str) -> Key:
    """The row that makes a name taken, for ever."""
    return (f"JOB#{name}", "job")


def place(job: Job) -> Key:
    """Where the job's one live row is, by its state."""
    if job.state in ACTIVE:
        return (STATE, ACTIVE_ROWS + job.name)
    if job.state in ENDED:
        return (f"JOB#{job.name}", "ended")
    if job.state is JobState.HELD:
        return (HELD, held_key(held_place(job)))
    return (WAIT, waiting_key(lane_key(job.lane), job.order))


def lane_key(lane: str) -> str:
    """A lane's name as the first part of sort keys: what separates the parts does not occur in it.

    Raises `TooLarge`.
    """
    key = lane.replace("%", "%25").replace("#", "%23")
    if len(key.encode()) > _MAX_LANE_LENGTH:
        kinds = (kind for kind in Work.kinds().values() if f"/{kind.pool_prefix}" in lane)
        field = next((kind.request_field for kind in kinds), "ResourceConfig")
        raise TooLarge("The names of the job's share and pools are too long.", field=field)
    return key


def lane_of(row: Row) -> str:
    """The `lane_key` of a waiting row."""
    sort_key: str = row["sk"]["S"]
    return sort_key.partition("#")[0]


def lane_end(lane: str) -> str:
    """More than every sort key of the lane, less than those of lanes after it: `$` follows `#`."""
    return lane + "$"


def waiting_key(lane: str, order: QueuePlace) -> str:
    """Sort key that puts a lane's rows in the order of `Job.order`. Raises `InvalidRequest` beyond the limit."""
    rank, entry_time, name = order
    if abs(rank) > PRIORITY_LIMIT:
        raise InvalidRequest(f"Priorities are within plus and minus {PRIORITY_LIMIT}.", field="priority")
    return f"{lane}#{PRIORITY_LIMIT + rank:07d}#{moment(entry_time)}#{name}"


def held_key(place: HeldPlace) -> str:
    """Sort key of a held job: those that only a time holds come first, by that time; no name begins with `#`."""
    due, name = place
    return name if due == NEVER else f"{due_end(due)[:-1]}#{name}"


def due_end(due: datetime) -> str:
    """More than the sort keys of all held jobs that fall due until then, less than those of others: `$` follows `#`."""
    return f"#{moment(due)}$"


def after_rows(job: Job) -> set[Key]:
    """The rows by which a held job is found from each of those that it runs after."""
    return {(AFTER + parent, job.name) for parent in job.after} if job.state is JobState.HELD else set()


class Span(TypedDict):
    """A range of sort keys, its ends not in it."""

    after: str
    until: str


def span(prefix: str) -> Span:
    """The range of all sort keys that begin with one of our prefixes: each ends with `#`, and `$` follows it."""
    return {"after": prefix, "until": prefix[:-1] + "$"}


def moment(time: datetime) -> str:
    """UTC with microseconds, always 27 characters, so that text order is time order."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def finished_at(ended: EndedPlace) -> str:
    """Range key of the index of ended jobs."""
    return f"{moment(ended[0])}#{ended[1]}"


def identity_row(job: Job, **details: Any) -> Row:
    """The row that makes the job's name taken and tells where it waits; `details` hold its request."""
    return keyed(job_key(job.name), jobName=job.name, **whereabouts(job), **details)


def whereabouts_row(job: Job) -> Row:
    """Where the job waits or is held, once that is elsewhere than its identity row says.

    A lane depends on what the job has received, an entry time on when it was let into the queue. Small, because the
    identity row is as large as its request.
    """
    return keyed((job_key(job.name)[0], PLACE), jobName=job.name, **whereabouts(job))


def whereabouts(job: Job) -> dict[str, str | int]:
    """What tells all the places in which a job may wait or be held."""
    due = {} if job.not_before is None else {"notBefore": moment(job.not_before)}
    return {"entryTime": moment(job.entry_time), "priority": job.priority, "lane": lane_key(job.lane), **due}


def inactive_places(told: Row) -> list[Key]:
    """Where the job may be while it waits or is held, as its row of whereabouts tells, or else its identity."""
    name = told["jobName"]["S"]
    order = (-int(told["priority"]["N"]), datetime.fromisoformat(told["entryTime"]["S"]), name)
    held = [(NEVER, name)]
    if "notBefore" in told:
        held.append((datetime.fromisoformat(told["notBefore"]["S"]), name))
    return [(WAIT, waiting_key(told["lane"]["S"], order)), *((HELD, held_key(place)) for place in held)]


def keyed(key: Key, **values: str | int | bytes) -> Row:
    """A row at this place."""
    return {name: _attribute(value) for name, value in (("pk", key[0]), ("sk", key[1]), *values.items())}


def row_of(job: Job, history: Sequence[Change] | None = None, apart: int = 0) -> Row:
    """The job's live row; `history` are the lines kept in it, `apart` how many older ones are kept elsewhere."""
    lines = job.history if history is None else history
    row = keyed(
        place(job),
        jobName=job.name,
        entryTime=moment(job.entry_time),
        jobState=job.state.value,
        priority=job.priority,
        version=job.version,
        job=_short(packed(job, lines)),
    )
    if apart:
        row["apart"] = _attribute(apart)
    if job.state in ENDED:
        row["finishedIn"], row["finishedAt"] = _attribute(FINISHED), _attribute(finished_at(ended_place(job)))
    return row


def job_of(row: Row) -> Job:
    """The job of a live row, with the history lines that are kept in it."""
    name = row["jobName"]["S"]
    entry = datetime.fromisoformat(row["entryTime"]["S"])
    return Job(
        name=name,
        entry_time=entry,
        priority=int(row["priority"]["N"]),
        state=STATES[row["jobState"]["S"]],
        version=int(row["version"]["N"]),
        **unpacked(job_text(row), name, entry),
    )


def job_text(row: Row) -> str:
    """The JSON text of a live row."""
    value = row["job"]
    return value["S"] if "S" in value else zlib.decompress(bytes(value["B"])).decode()


def _short(text: str) -> str | bytes:
    """The text, compressed where its row could have more than a kilobyte: as of jobs that have stepped aside."""
    return text if len(text) <= _READABLE else zlib.compress(text.encode(), level=9)


def apart_of(row: Row) -> int:
    """How many lines of the job's history are not in this row."""
    return int(row["apart"]["N"]) if "apart" in row else 0


def history_row(job: Job, first: int, lines: Sequence[Change]) -> Row:
    """A part of a long history; `first` is the number of its first line, from 0."""
    key = (job_key(job.name)[0], f"{HISTORY_ROWS}{first:07d}")
    return keyed(key, entryTime=moment(job.entry_time), lines=packed_lines(lines, job.entry_time))


def history_of(row: Row, entry: datetime) -> tuple[Change, ...]:
    """The lines of such a part; their times count from the job's entry as it was then, in rows that tell it."""
    told = row.get("entryTime")
    return unpacked_lines(row["lines"]["S"], datetime.fromisoformat(told["S"]) if told else entry)


def foreign_row(name: str, units: Units) -> Row:
    """A training job that did not come from the queue."""
    return keyed((STATE, FOREIGN_ROWS + name), units=json.dumps(dict(units)))


def warm_row(pool: WarmPool) -> Row:
    """A warm pool that an ended attempt has left."""
    values = {
        "units": dict(pool.units),
        "fit": pool.warm_pool_key,
        "until": moment(pool.until),
        "priority": pool.priority,
        "usedBy": pool.used_by,
        "endingSince": None if pool.ending_since is None else moment(pool.ending_since),
    }
    told = {key: value for key, value in values.items() if value not in (None, "", 0)}
    return keyed(warm_key(pool.training_job_name), warm=json.dumps(told, separators=(",", ":")))


def warm_key(training_job_name: str) -> Key:
    """Where the warm pool is that an attempt has left."""
    return (STATE, WARM_ROWS + training_job_name)


def warm_of(row: Row) -> WarmPool:
    """The warm pool of such a row."""
    values = json.loads(row["warm"]["S"])
    ending = values.get("endingSince")
    return WarmPool(
        training_job_name=row["sk"]["S"].removeprefix(WARM_ROWS),
        units=values["units"],
        warm_pool_key=values.get("fit", ""),
        until=datetime.fromisoformat(values["until"]),
        priority=values.get("priority", 0),
        used_by=values.get("usedBy"),
        ending_since=None if ending is None else datetime.fromisoformat(ending),
    )


def foreign_of(rows: Sequence[Row]) -> dict[str, Units]:
    """Units by training job name."""
    return {row["sk"]["S"].removeprefix(FOREIGN_ROWS): json.loads(row["units"]["S"]) for row in rows}


def _attribute(value: str | int | bytes) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    return {"B": value} if isinstance(value, bytes) else {"N": str(value)}
