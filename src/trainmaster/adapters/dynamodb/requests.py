"""Requests in the table: canonical JSON, compressed, beside the identity of their job or in rows of their own.

A row may have 400 KB, and a request as large as SageMaker accepts has more when its text does not compress; a small
one costs least inside the identity row, which stays within the 4 KB of one read unit. It must not know states.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from trainmaster.adapters.dynamodb.rows import REQUEST_ROWS, Row, identity_row, job_key, keyed, span
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.errors import JobNotFound, Unavailable
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.store_limits import check_request
from trainmaster.ports.store import Request

_INSIDE = 3_400
"""Bytes of a request that is kept in the identity row; the rest of that row has at most 600."""
_PIECE = 390_000
"""Bytes of a request in a row of its own; the row may have 409,600 in all."""


def request_rows(job: Job, request: Request) -> list[Row]:
    """The job's identity row, then the rows of its request where it is too large for that one. Raises `TooLarge`."""
    packed = _packed(request)
    check_request(request, len(packed))
    if len(packed) <= _INSIDE:
        return [identity_row(job, jobDetails=packed)]
    pieces = [packed[start : start + _PIECE] for start in range(0, len(packed), _PIECE)]
    partition = job_key(job.name)[0]
    return [
        identity_row(job, pieces=len(pieces)),
        *(keyed((partition, f"{REQUEST_ROWS}{n:02d}"), jobDetails=piece) for n, piece in enumerate(pieces)),
    ]


def read_request(table: Table, name: str) -> Request:
    """The request as submitted. Raises `JobNotFound`."""
    identity = table.get(job_key(name))
    if identity is None:
        raise JobNotFound(f"The queue knows no job named {name}.", field="jobName")
    if "jobDetails" in identity:
        return _unpacked([identity])
    rows = list(table.every(job_key(name)[0], **span(REQUEST_ROWS)))
    if len(rows) != int(identity["pieces"]["N"]):
        raise Unavailable(f"DynamoDB gave only part of the request of {name}")
    return _unpacked(rows)


def _packed(request: Request) -> bytes:
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # JSON may hold half of a surrogate pair; it must come back as it was.
    return zlib.compress(text.encode("utf-8", "surrogatepass"), level=9)


def _unpacked(rows: Sequence[Row]) -> Request:
    packed = b"".join(bytes(row["jobDetails"]["B"]) for row in rows)
    request: Request = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
    return request
