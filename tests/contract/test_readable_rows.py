"""Rows of jobs that the queue writes are all readable: also of attempts that hold nothing of a pool for a moment."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import builders as b
from trainmaster.adapters.dynamodb.reading import read_job, readable_jobs
from trainmaster.adapters.dynamodb.rows import job_text, row_of
from trainmaster.domain import value_types
from trainmaster.domain.errors import UnreadableRow
from trainmaster.domain.value_types import check_fields


def test_an_attempt_that_holds_none_of_its_pool_can_be_read():
    job = b.a_running_job("job1")
    nothing = replace(job, attempt=replace(job.attempt, units={b.P5: 0}))
    assert read_job(row_of(nothing)) == nothing


WRONG = [None, True, 1.5, "1", [], {}, [None], {"a": "b"}]
MEMBERS_OF = {
    "job": ["digest", "share", "keepAlive", "submittedBy", "capacityFailures", "retries", "group", "heldBy"],
    "attempt": ["number", "trainingJobName", "units", "launched", "refused", "interruptions", "reason", "served"],
}


@pytest.mark.parametrize(("part", "name"), [(part, name) for part, names in MEMBERS_OF.items() for name in names])
def test_a_member_of_another_type_is_found_as_the_row_is_read(part, name):
    row = row_of(b.a_running_job("job1"))
    for wrong in WRONG:
        text = json.loads(job_text(row))
        (text if part == "job" else text["attempt"])[name] = wrong
        try:
            job = read_job(row | {"job": {"S": json.dumps(text)}})
        except UnreadableRow:
            continue
        check_fields(job)


@pytest.mark.parametrize(
    "line", [[0, None, "pending", 1], [0, None, "pending", "x", "1"], [0, None, "pending", "x", 1, 1.5]]
)
def test_a_line_of_the_history_with_a_part_of_another_type_is_found(line):
    row = row_of(b.a_job("job1"))
    text = json.loads(job_text(row)) | {"history": [line]}
    with pytest.raises(UnreadableRow):
        read_job(row | {"job": {"S": json.dumps(text)}})


def test_values_are_checked_once_for_each_row_and_without_reflection(monkeypatch):
    rows = [row_of(b.a_running_job(f"job{number}")) for number in range(20)]
    assert len(list(readable_jobs(rows))) == 20
    # The checks are made by now: reading calls nothing that looks into types.
    for name in ("fields", "get_type_hints", "get_origin", "get_args"):
        monkeypatch.delattr(value_types, name)
    assert len(list(readable_jobs(rows))) == 20
