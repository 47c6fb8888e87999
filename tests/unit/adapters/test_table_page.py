"""docs/reference/table.md describes every attribute and member that the DynamoDB adapter stores."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace

import pytest

import builders as b
from doc_pages import DOCS, section
from trainmaster.adapters.dynamodb.access.audit import AUDIT, audit_row
from trainmaster.adapters.dynamodb.access.purging import tombstone
from trainmaster.adapters.dynamodb.catalogue import catalogue_row, cursors_row
from trainmaster.adapters.dynamodb.codec import ATTEMPT_FIELDS, JOB_FIELDS
from trainmaster.adapters.dynamodb.events.outbox import OUTBOX
from trainmaster.adapters.dynamodb.records import records_row
from trainmaster.adapters.dynamodb.rendezvous.run_keys import SECRET
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    AFTER,
    CONTROL,
    EXTERNAL_ROWS,
    HELD,
    HISTORY_ROWS,
    PLACE,
    REQUEST_ROWS,
    WAIT,
    WARM_ROWS,
    external_row,
    history_row,
    identity_row,
    row_of,
    waiting_place_row,
    warm_row,
)
from trainmaster.adapters.dynamodb.settings import EVENTS, SETTINGS, Deployed
from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.capacity.pool_history import PoolAction, PoolEvent
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.document import document
from trainmaster.domain.elastic.scaling import KindCurve
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, RestartBudget
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records

PAGE = DOCS / "reference" / "table.md"
OF_THE_DEMAND = {"queueSelectsPool", "resources"}
"""Members of a job that the codec writes for parts of its demand."""
NAMES = {"number", "trainingJobName", "run"}
"""Members of an attempt that the codec writes for its number and its name."""
FROM_ELSEWHERE = {"pass", "rev", "expires", "secret"}
"""Attributes of rows that no function of the adapter builds: updates write them, or other modules."""
WARM = WarmPool("job1", {b.P5: 1}, "key", b.NOW, priority=5, used_by="job2", ending_since=b.NOW)
ENDED = b.an_ended_job("job1")
ENTRY = AuditEntry(at=b.NOW, action=AuditAction.CANCEL, expires=b.NOW)
RECORDS = Records(history=History(pauses={"restart": 5.0}, curves={"*": KindCurve()}), released={b.P5: b.NOW})


def words(text: str) -> set[str]:
    """Return the names in code marks."""
    return {word for mark in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", mark)}


def first_column(text: str) -> set[str]:
    return {word for line in text.splitlines() if line.startswith("| `") for word in words(line.split("|")[1])}


def attempt_part(text: str) -> str:
    return text.partition("\nAn attempt has")[2]


def written_attributes() -> set[str]:
    """Return the attributes of every kind of row of the core."""
    rows = (
        row_of(ENDED, archived=3),
        identity_row(replace(ENDED, not_before=b.NOW), jobDetails=b"", pieces=2),
        waiting_place_row(ENDED),
        history_row(ENDED, 0, ENDED.history),
        external_row("job9", ExternalJob({b.P5: 1}, Origin.ORPHAN)),
        warm_row(WARM),
        records_row(RECORDS, 1),
        catalogue_row(Catalogue()),
        cursors_row(Cursors()),
        Deployed(b.pools_of(), "parameter", Policy())._changed(None, (), Policy(), 1),
        {"events": {}},
        audit_row(ENTRY, "id"),
        tombstone(ENDED),
    )
    return {name for row in rows for name in row} - {"pk", "sk"} | FROM_ELSEWHERE


def test_every_attribute_has_its_line():
    assert written_attributes() - first_column(section(PAGE, "Attributes")) == set()


def test_every_row_has_its_line():
    keys = (
        WAIT,
        HELD,
        AFTER,
        CONTROL[1],
        SETTINGS[1],
        *EVENTS,
        AUDIT,
        OUTBOX,
        PLACE,
        "records",
        "catalogue",
        "cursors",
        *SECRET,
    )
    prefixes = (ACTIVE_ROWS, EXTERNAL_ROWS, WARM_ROWS, HISTORY_ROWS, REQUEST_ROWS)
    text = section(PAGE, "Rows")
    assert [key for key in (*keys, *prefixes) if f"`{key}" not in text] == []


def test_the_members_of_a_job_are_those_of_the_codec():
    jobs, _, _ = section(PAGE, "`job`").partition("\nAn attempt has")
    assert first_column(jobs) == {stored.key for stored in JOB_FIELDS} | OF_THE_DEMAND


def test_the_members_of_an_attempt_are_those_of_the_codec():
    attempts = attempt_part(section(PAGE, "`job`"))
    assert first_column(attempts) == {stored.key for stored in ATTEMPT_FIELDS} | NAMES
    assert {outcome.value for outcome in Outcome if outcome is not Outcome.ACTIVE} <= words(attempts)


@pytest.mark.parametrize(
    "value", [AttemptTotals(), Elastic(min_instances=1, max_instances=2), RestartBudget(), Resources()]
)
def test_members_of_documents_in_a_job_are_named(value):
    assert document(value).keys() - words(section(PAGE, "`job`")) == set()


@pytest.mark.parametrize(
    "values",
    [
        json.loads(warm_row(WARM)["warm"]["S"]),
        json.loads(zlib.decompress(catalogue_row(Catalogue())["catalogue"]["B"])),
        document(Cursors()),
        document(PoolEvent(b.NOW, PoolAction.EXPAND, b.P5, b.P5, 0, 1)),
        document(ENTRY),
    ],
    ids=["warm", "catalogue", "cursors", "event", "entry"],
)
def test_members_of_other_attributes_are_named(values):
    assert values.keys() - words(section(PAGE, "Attributes")) == set()


def test_the_members_of_the_records_are_those_of_the_row():
    values = json.loads(zlib.decompress(records_row(RECORDS, 1)["records"]["B"]))
    optional = {"halved", "pauses", "curves", "released", "freed", "told"}
    assert first_column(section(PAGE, "`records`")) == values.keys() | optional


def test_rows_of_elastic_jobs_have_the_stated_sizes():
    sizes = re.findall(r"([\d.]+) KB", attempt_part(section(PAGE, "`job`")))
    grown = [elastic_job(members) for members in (0, 31, 64)]
    left = resizing.resize(grown[-1], 1, Cause.SHRINK, b.at(5_000.5), until=b.at(5_600), freed_for="job9")
    for number, member in enumerate(left.attempt.members):
        left = resizing.mark_member_left(left, member.training_job_name, b.at(5_100 + number * 4.123456))
    measured = [row_size(job) / 1024 for job in (*grown, left)]
    assert measured == pytest.approx([float(size) for size in sizes], abs=0.1)
    assert max(row_size(elastic_job(members)) for members in range(0, 65, 8)) <= 1_024


def elastic_job(members: int):
    """A running job that has grown by so many members, with the fields that most requests lead to."""
    job = b.a_running_job(
        "pytorch-training-2026-11-21-12-00-00-000-000001",
        submitted_by="arn:aws:sts::111122223333:assumed-role/DataScientist/alice@example.com",
        container_image=b.IMAGE,
        checkpointed=True,
        warm_pool_key="abcdefgh",
        elastic=Elastic(min_instances=1, max_instances=65, hook=Hook.MEMBERS),
    )
    grown = resizing.resize(job, members + 1, Cause.GROW, b.at(10.5), until=b.at(1_000)) if members else job
    for number, member in enumerate(grown.attempt.members):
        started = b.at(100 + number * 4.123456)
        grown = resizing.mark_member_started(grown, member.training_job_name, started, started)
    return grown


def row_size(job) -> int:
    return sum(len(name) + len(next(iter(value.values()))) for name, value in row_of(job).items())
