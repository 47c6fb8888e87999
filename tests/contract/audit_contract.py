"""Audit entries: stored with their change or not at all, never replaced, and listed newest first."""

from __future__ import annotations

import random
import string
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders as b
from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.access.audit_listing import AuditFilter, cursor_text
from trainmaster.domain.capacity.pool_history import PoolAction, PoolEvent
from trainmaster.domain.errors import Fenced, InvalidRequest, JobNotFound, NameTaken, VersionConflict
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Change, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.policy.settings import Policy

ADA = "arn:aws:sts::111122223333:assumed-role/DataScientist"
ALL = AuditFilter(since=b.NOW - timedelta(days=400), until=b.NOW + timedelta(days=400))
ENTRY = AuditEntry(
    at=b.NOW,
    action=AuditAction.PRIORITY,
    principal=ADA,
    arn=f"{ADA}/ada",
    source_ip="198.51.100.7",
    user_agent="trainmaster/0.2.0",
    request_id="c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
    job="job1",
    before={"priority": 1, "note": None},
    after={"priority": 9, "note": "é \U0001f682", "on": True, "weight": 0.5},
    expires=b.NOW + timedelta(days=400),
)


_SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""The store is shared by all examples, and the test by all engines."""


def listed(store, which=ALL, limit=50):
    """All matching entries, page by page."""
    page = store.list_audit(which, limit=limit)
    found = list(page.entries)
    while page.cursor is not None:
        page = store.list_audit(which, limit=limit, cursor=page.cursor)
        assert len(page.entries) <= limit
        found += page.entries
    return found


def record(store, *entries):
    """Store entries without another change."""
    for entry in entries:
        store.set_settings(audit=[entry])


class AuditContract:
    def test_a_submission_is_stored_with_its_entry(self, store, other_store):
        job = b.a_job("job1")
        assert store.submit(job, b.a_request("job1"), audit=ENTRY) is job
        assert listed(other_store) == [ENTRY]

    def test_a_repeated_submission_adds_no_entry(self, store):
        store.submit(b.a_job("job1"), b.a_request("job1"), audit=ENTRY)
        store.submit(b.a_job("job1"), b.a_request("job1"), audit=replace(ENTRY, at=b.at(1)))
        assert listed(store) == [ENTRY]

    @pytest.mark.parametrize("change", [lifecycle.hold, lambda job, at, who: lifecycle.reprioritize(job, 9, at, who)])
    def test_a_change_of_a_job_is_stored_with_its_entries(self, store, change):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        second = replace(ENTRY, action=AuditAction.HOLD)
        assert store.transition([(job, change(job, b.at(1), ADA))], audit=[ENTRY, second])
        assert sorted(entry.action for entry in listed(store)) == [AuditAction.HOLD, AuditAction.PRIORITY]

    def test_a_change_that_another_one_preceded_adds_no_entry(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        assert store.transition([(job, lifecycle.reprioritize(job, 9, b.at(1), ADA))])
        assert not store.transition([(job, lifecycle.hold(job, b.at(2), ADA))], audit=[ENTRY])
        assert listed(store) == []

    def test_a_fenced_change_adds_no_entry(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        fence = store.begin_pass().pass_number
        store.begin_pass()
        with pytest.raises(Fenced):
            store.transition([(job, lifecycle.hold(job, b.at(2), ADA))], fence=fence, audit=[ENTRY])
        assert listed(store) == []

    @pytest.mark.parametrize("events", [(), (PoolEvent(b.NOW, PoolAction.EXPAND, "p5", b.P5, 1, 2),)])
    def test_settings_are_stored_with_their_entry(self, store, events):
        changed = store.set_settings(policy=Policy(reservations=3), events=events, audit=[ENTRY])
        assert (changed.policy.reservations, listed(store)) == (3, [ENTRY])
        assert store.settings(history=True).history == tuple(events)

    def test_settings_of_another_version_add_no_entry(self, store):
        version = store.set_settings(policy=Policy(reservations=3)).version
        with pytest.raises(VersionConflict):
            store.set_settings(policy=Policy(), version=version - 1, audit=[ENTRY])
        assert listed(store) == []

    def test_equal_entries_are_all_kept(self, store):
        record(store, ENTRY, ENTRY, ENTRY)
        assert listed(store, limit=1) == [ENTRY] * 3

    def test_entries_are_listed_newest_first_across_months(self, store):
        times = [b.NOW + timedelta(days=days, microseconds=days) for days in (-70, -31, -1, 0, 1, 45)]
        record(store, *(replace(ENTRY, at=at) for at in (times[3], times[0], times[5], times[1], times[4], times[2])))
        for limit in (1, 2, 50):
            assert [entry.at for entry in listed(store, limit=limit)] == times[::-1]

    def test_adoptions_are_listed_among_the_others(self, store):
        times = [b.NOW + timedelta(days=days) for days in (-31, -30, -1, 0, 1)]
        actions = (AuditAction.HOLD, AuditAction.ADOPT, AuditAction.HOLD, AuditAction.ADOPT, AuditAction.ADOPT)
        given = [replace(ENTRY, at=at, action=action) for at, action in zip(times, actions, strict=True)]
        record(store, *given)
        for limit in (1, 2, 50):
            assert listed(store, limit=limit) == given[::-1]

    def test_a_time_span_includes_its_beginning_and_not_its_end(self, store):
        times = [b.at(minute) for minute in range(5)]
        record(store, *(replace(ENTRY, at=at) for at in times))
        found = listed(store, AuditFilter(since=times[1], until=times[3]), limit=1)
        assert [entry.at for entry in found] == [times[2], times[1]]

    @pytest.mark.parametrize(
        "which",
        [{"job": "job1"}, {"who": "Scientist"}, {"who": f"{ADA}/ada"}, {"action": AuditAction.PRIORITY}],
        ids=str,
    )
    def test_a_filter_finds_entries_between_many_others(self, store, which):
        other = AuditEntry(at=b.NOW, action=AuditAction.SETTINGS)
        record(store, replace(ENTRY, at=b.at(1)), *[other] * 5, replace(ENTRY, at=b.at(-1)))
        assert [entry.at for entry in listed(store, replace(ALL, **which), limit=1)] == [b.at(1), b.at(-1)]

    def test_an_entry_without_details_comes_back(self, store):
        bare = AuditEntry(at=b.NOW, action=AuditAction.SETTINGS)
        record(store, bare)
        assert listed(store) == [bare]

    @pytest.mark.parametrize("limit", [0, 1_001])
    def test_an_invalid_page_length_is_refused(self, store, limit):
        with pytest.raises(InvalidRequest):
            store.list_audit(ALL, limit=limit)

    def test_an_empty_time_span_is_refused(self, store):
        with pytest.raises(InvalidRequest):
            store.list_audit(AuditFilter(since=b.NOW, until=b.NOW), limit=1)

    def test_a_cursor_from_outside_the_time_span_lists_only_within_it(self, store):
        record(store, ENTRY)
        span = AuditFilter(since=b.at(-5), until=b.at(5))
        after, before = cursor_text((b.at(500), "~")), cursor_text((b.at(-500), "~"))
        assert store.list_audit(span, limit=5, cursor=after).entries == (ENTRY,)
        assert store.list_audit(span, limit=5, cursor=before).entries == ()

    @settings(max_examples=20, deadline=None, suppress_health_check=_SHARED)
    @given(cursor=st.one_of(st.text(max_size=60), st.builds(cursor_text, st.tuples(st.datetimes(), st.text()))))
    def test_a_forged_cursor_is_refused_or_lists(self, store, cursor):
        with suppress(InvalidRequest):
            assert store.list_audit(ALL, limit=5, cursor=cursor).entries == ()


def an_ended(store, name="job1", lines=3, **members):
    """A stored job that has ended, with a history of so many lines."""
    job = b.a_job(name)
    store.submit(job, b.a_request(name, **members))
    for line in range(lines):
        history = (*job.history, Change(b.at(line), JobState.PENDING, JobState.PENDING, f"line {line}"))
        changed = replace(job, history=history, version=job.version + 1)
        assert store.transition([(job, changed)])
        job = changed
    ended = lifecycle.cancel(job, b.at(lines), ADA)
    assert store.transition([(job, ended)])
    return ended


class PurgeContract:
    @pytest.mark.parametrize("lines", [0, 3, 60])
    def test_nothing_of_a_purged_job_is_found(self, store, other_store, lines):
        job = an_ended(store, lines=lines, HyperParameters={"a": "hush"})
        assert store.purge(job, audit=[ENTRY])
        assert other_store.find("job1") is None
        with pytest.raises(JobNotFound):
            other_store.request_of("job1")
        assert other_store.list_jobs(Filter(), limit=10).jobs == ()
        assert listed(other_store) == [ENTRY]

    def test_a_large_request_is_deleted_too(self, engine, store):
        noise = "".join(random.Random(7).choices(string.ascii_letters, k=600_000))
        assert store.purge(an_ended(store, Environment={"NOISE": noise}))
        rows = getattr(engine, "rows", list)()
        assert [row["sk"]["S"] for row in rows if row["pk"]["S"] == "JOB#job1"] in ([], ["job"])

    def test_the_name_of_a_purged_job_stays_reserved(self, store):
        store.purge(an_ended(store))
        with pytest.raises(NameTaken) as refused:
            store.submit(b.a_job("job1"), b.a_request("job1"), audit=ENTRY)
        assert refused.value.field == "TrainingJobName"
        assert (store.find("job1"), listed(store)) == (None, [])

    def test_a_job_is_purged_once(self, store):
        job = an_ended(store)
        assert store.purge(job)
        assert not store.purge(job, audit=[ENTRY])
        assert listed(store) == []

    def test_a_job_of_another_version_is_not_purged(self, store):
        job = an_ended(store)
        assert not store.purge(replace(job, version=job.version + 1), audit=[ENTRY])
        assert (store.find("job1"), listed(store)) == (job, [])

    @pytest.mark.parametrize("state", [b.a_job, b.a_running_job, b.a_held_job])
    def test_a_job_that_has_not_ended_cannot_be_purged(self, store, state):
        job = state("job1")
        store.submit(job, b.a_request("job1"))
        with pytest.raises(ValueError, match="only ended jobs"):
            store.purge(job)
        assert store.find("job1") == job

    def test_other_jobs_stay_when_one_is_purged(self, store):
        job, other = an_ended(store), an_ended(store, "job10")
        store.submit(b.a_job("job2"), b.a_request("job2"))
        assert store.purge(job)
        assert [each.name for each in store.list_jobs(Filter(), limit=10).jobs] == ["job2", "job10"]
        assert store.request_of("job10") == b.a_request("job10")
        assert store.find("job10") == other

    def test_the_jobs_that_ended_first_are_found_first(self, store):
        for name, minutes in (("job1", 3), ("job2", 1), ("job3", 2), ("job4", 9)):
            an_ended(store, name, lines=minutes)
        store.submit(b.a_job("job5"), b.a_request("job5"))
        assert [job.name for job in store.ended_before(b.at(9), limit=10)] == ["job2", "job3", "job1"]
        assert [job.name for job in store.ended_before(b.at(9), limit=1)] == ["job2"]
        assert store.ended_before(b.at(1), limit=10) == ()
