"""Requests in the table: canonical JSON, compressed, in the identity row of their job or in rows of their own.

A row may have 400 KB, and the largest request that SageMaker accepts is larger if its text does not compress. A small
one costs least inside the identity row, which stays within the 4 KB of one read unit.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from trainmaster.adapters.dynamodb.access.purging import is_purged
from trainmaster.adapters.dynamodb.encoding.compression import compress, inflate
from trainmaster.adapters.dynamodb.reading import read, readable
from trainmaster.adapters.dynamodb.rows import REQUEST_ROWS, Row, identity_row, job_key, keyed, span
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.errors import JobNotFound, Unavailable
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.store_limits import check_request
from trainmaster.ports.store import Request

_INSIDE = 3_400
"""Bytes of a request that fits into the identity row; the rest of that row has at most 600."""
_MAX_TEXT_BYTES = 16_000_000
"""Bytes of a request; API Gateway accepts 10 MB."""
_PIECE = 390_000
"""Bytes of a request in a row of its own; the row may have 409,600 in all."""


def request_rows(job: Job, request: Request) -> list[Row]:
    """Return the job's identity row, then the rows of a request too large for it. Raises `TooLarge`."""
    compressed = _compress(request)
    check_request(request, len(compressed))
    if len(compressed) <= _INSIDE:
        return [identity_row(job, jobDetails=compressed)]
    pieces = [compressed[start : start + _PIECE] for start in range(0, len(compressed), _PIECE)]
    partition = job_key(job.name)[0]
    return [
        identity_row(job, pieces=len(pieces)),
        *(keyed((partition, f"{REQUEST_ROWS}{n:02d}"), jobDetails=piece) for n, piece in enumerate(pieces)),
    ]


def read_request(table: Table, name: str) -> Request:
    """Return the request as submitted. Raises `JobNotFound`, and `UnreadableRow` for a damaged one.

    A request is written once, so a row that was read is the right one, however late the read is. Only if rows are
    missing are they read again, strongly consistent.
    """
    try:
        return _read_request(table, name, consistent=False)
    except (JobNotFound, Unavailable):
        return _read_request(table, name, consistent=True)


def _read_request(table: Table, name: str, *, consistent: bool) -> Request:
    identity = table.get(job_key(name), consistent=consistent)
    if identity is None or is_purged(identity):
        raise JobNotFound(f"There is no job named {name}.", field="jobName")
    if "jobDetails" in identity:
        return read(identity, lambda row: _decompress([row]))
    rows = list(table.all_rows(job_key(name)[0], **span(REQUEST_ROWS), consistent=consistent))
    if len(rows) != read(identity, lambda row: int(row["pieces"]["N"])):
        raise Unavailable(f"DynamoDB returned only part of the request of {name}")
    return read(identity, lambda _: _decompress(rows))


def read_requests(table: Table, names: Collection[str]) -> dict[str, Request]:
    """Return the requests in the identity rows of these jobs; those in other rows, damaged or not seen are left out."""
    rows = table.batch_get([job_key(name) for name in names], consistent=False) if names else []
    inside = (row for row in rows if "jobDetails" in row and not is_purged(row))
    return dict(readable(inside, lambda row: (row["jobName"]["S"], _decompress([row]))))


def _compress(request: Request) -> bytes:
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # JSON may contain half of a surrogate pair, which must survive the round trip.
    return compress(text.encode("utf-8", "surrogatepass"))


def _decompress(rows: Sequence[Row]) -> Request:
    compressed = b"".join(bytes(row["jobDetails"]["B"]) for row in rows)
    request: Request = json.loads(inflate(compressed, _MAX_TEXT_BYTES).decode("utf-8", "surrogatepass"))
    if not isinstance(request, dict):
        raise TypeError("the request is not an object")
    return request
