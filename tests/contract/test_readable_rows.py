"""Rows of jobs that the queue writes are all readable: also of attempts that hold nothing of a pool for a moment."""

from __future__ import annotations

from dataclasses import replace

import builders as b
from trainmaster.adapters.dynamodb.reading import read_job
from trainmaster.adapters.dynamodb.rows import row_of


def test_an_attempt_that_holds_none_of_its_pool_can_be_read():
    job = b.a_running_job("job1")
    nothing = replace(job, attempt=replace(job.attempt, units={b.P5: 0}))
    assert read_job(row_of(nothing)) == nothing
