"""Jobs whose rows have not changed since the last read are not read again."""

from __future__ import annotations

from builders import a_job, a_running_job
from trainmaster.adapters.dynamodb.reading import KEPT_READS, KnownJobs
from trainmaster.adapters.dynamodb.rows import row_of


def read(known, *rows):
    reported: list[str] = []
    return list(known.reader(reported.append)(rows)), reported


def test_the_job_of_an_unchanged_row_is_the_same_object():
    known, jobs = KnownJobs(), [a_job("waiting"), a_running_job("running")]
    first, _ = read(known, *map(row_of, jobs))
    again, _ = read(known, *map(row_of, jobs))
    assert first == jobs
    assert list(map(id, again)) == list(map(id, first))


def test_a_changed_row_is_read_again():
    known, job = KnownJobs(), a_job("job")
    read(known, row_of(job))
    for changed in (job.changed(version=2), job.changed(digest="other")):
        assert read(known, row_of(changed)) == ([changed], [])


def test_a_job_that_no_row_has_is_forgotten_after_a_few_reads():
    known, job = KnownJobs(), a_job("job")
    ((first,), _) = read(known, row_of(job))
    for _ in range(KEPT_READS - 1):
        read(known)
    ((kept,), _) = read(known, row_of(job))
    assert kept is first
    for _ in range(KEPT_READS):
        read(known)
    ((again,), _) = read(known, row_of(job))
    assert again == first
    assert again is not first


def test_a_row_that_cannot_be_read_is_reported_by_every_read():
    known, row = KnownJobs(), row_of(a_job("job"))
    row["job"] = {"B": b"damaged"}
    for _ in range(2):
        found, reported = read(known, row)
        assert (found, len(reported)) == ([], 1)
