"""Listings: parts in order, filters, pages, and cursors that come back from outside."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

import builders as b
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status


def cursor_of(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


GARBAGE = [
    "",
    "x",
    "%%%",
    "é",
    "A" * 5_000,
    cursor_of(b"\xff\xfe"),
    cursor_of(b"[" * 1_000),
    cursor_of({"pk": "STATE"}),
    cursor_of([]),
    cursor_of(["nowhere"]),
    cursor_of([["active"]]),
    cursor_of(["active", "0", "2026-11-21T12:00:00+00:00", "job1"]),
    cursor_of(["waiting", True, "2026-11-21T12:00:00+00:00", "job1"]),
    cursor_of(["waiting", 10**9, "2026-11-21T12:00:00+00:00", "job1"]),
    cursor_of(["waiting", 0, "2026-11-21T12:00:00", "job1"]),
    cursor_of(["waiting", 0, "0001-01-01T00:00:00+23:59", "job1"]),
    cursor_of(["waiting", 0, "tomorrow", "job1"]),
    cursor_of(["waiting", 0, 0, "job1"]),
    cursor_of(["waiting", 0, "2026-11-21T12:00:00+00:00", ""]),
    cursor_of(["waiting", 0, "2026-11-21T12:00:00+00:00", "j" * 64]),
    cursor_of(["waiting", 0, "2026-11-21T12:00:00+00:00", "job1", "more"]),
    cursor_of(["held", 7]),
    cursor_of(["held", "\ud83d"]),
    cursor_of(["held", "job1", "job2"]),
    cursor_of(["ended", "job1"]),
    cursor_of(["ended", "2026-11-21T12:00:00+00:00", None]),
]

ADA = "arn:aws:iam::111122223333:user/ada"
FILTERS = [
    Filter(states=ACTIVE),
    Filter(prefix="job1"),
    Filter(prefix="w", states=WAITING),
    Filter(prefix="nothing-"),
    Filter(kind="training"),
    Filter(kind="training", states=WAITING, share="research"),
    Filter(kind="another"),
    Filter(states=WAITING),
    Filter(states=ENDED),
    *[Filter(states=frozenset({state})) for state in JobState],
    Filter(states=frozenset({JobState.RUNNING, JobState.HELD, JobState.FAILED})),
    Filter(share="research"),
    Filter(share="default"),
    Filter(share="missing"),
    Filter(pool=b.P5),
    Filter(pool=b.G5),
    Filter(pool="ml.none"),
    Filter(states=WAITING, share="research", pool=b.P5),
    Filter(submitted_by=ADA),
    Filter(submitted_by="nobody"),
    *[Filter(since=b.at(seconds)) for seconds in (-9, -2, 0, 1, 15, 25)],
    Filter(since=b.at(-1), states=WAITING),
    *[Filter(ended_since=b.at(seconds)) for seconds in (-9, 15, 25, 28, 90)],
    Filter(ended_since=b.at(15), states=ENDED, share="vision"),
]


def walk(store, which, limit):
    """All pages of a listing."""
    cursor, pages = None, []
    while True:
        page = store.list_jobs(which, limit=limit, cursor=cursor)
        assert len(page.jobs) <= limit
        pages.append(page.jobs)
        cursor = page.cursor
        if cursor is None:
            return pages
        assert len(pages) < 200, "the pages have no end"


def everything(store, which=None, limit=1_000):
    return [job for page in walk(store, which or Filter(), limit) for job in page]


def a_full_queue(store):
    """A few jobs in every part of a listing, in the order in which it shows them."""
    active = [
        b.a_running_job("run2", priority=5, submitted_by=ADA),
        b.a_starting_job("run1", priority=1, units={b.G5: 1}),
        b.a_preempting_job("run3", share="research"),
    ]
    waiting = [
        b.a_job("wait4", priority=9, units={b.G5: 2}),
        b.a_preempted_job("wait1", priority=1, entry_time=b.at(-3)),
        b.a_job("wait3", priority=1, entry_time=b.at(-2), share="research", submitted_by=ADA),
        b.a_job("wait2", priority=1, entry_time=b.at(-1), demand=b.a_demand({b.P5: 1}, {b.G5: 4})),
        b.a_job("wait5", priority=1),
        b.a_job("wait0", priority=-1),
    ]
    held = [b.a_held_job("held1"), b.a_held_job("held2", priority=7, share="research")]
    ended = [
        b.an_ended_job("end1", now=b.at(30)),
        b.a_cancelled_job("end3", now=b.at(20), entry_time=b.at(15), submitted_by=ADA),
        b.an_ended_job("end2", now=b.at(20), status=Status.FAILED, share="research"),
        b.an_ended_job("end4", now=b.at(10), status=Status.STOPPED, units={b.G5: 1}),
    ]
    jobs = [*active, *waiting, *held, *ended]
    for job in reversed(jobs):
        store.submit(job, b.a_request(job.name))
    return jobs


class ListingContract:
    def test_an_empty_queue_lists_nothing(self, store):
        page = store.list_jobs(Filter(), limit=10)
        assert (page.jobs, page.cursor) == ((), None)

    def test_active_waiting_held_then_the_newest_ended(self, store):
        jobs = a_full_queue(store)
        page = store.list_jobs(Filter(), limit=100)
        assert [job.name for job in page.jobs] == [job.name for job in jobs]
        assert page.jobs == tuple(jobs)
        assert page.cursor is None

    def test_pages_together_are_the_whole(self, store):
        jobs = a_full_queue(store)
        for limit in (1, 2, 3, 4, 7, 14, 15, 16):
            pages = walk(store, Filter(), limit)
            assert [job.name for page in pages for job in page] == [job.name for job in jobs], limit

    @pytest.mark.parametrize("limit", [2, 100])
    def test_filters_show_what_matches_and_nothing_else(self, store, limit):
        jobs = a_full_queue(store)
        for which in FILTERS:
            assert everything(store, which, limit) == [job for job in jobs if which.matches(job)], which

    def test_jobs_by_resources_are_listed_by_what_the_pools_instances_have_and_not_by_past_pools(self, store):
        asked = Demand(
            ({"listed": 1}, {"old": 1}), queue_selects_pool=True, resources=Resources(vcpus=8), instances=1, listed=1
        )
        # One lane; the first of it has seen other pools than the second.
        for n, demand in enumerate([asked, replace(asked, alternatives=asked.alternatives[:1])]):
            store.submit(b.a_job(f"job{n}", demand=demand, entry_time=b.at(n)), b.a_request(f"job{n}"))
        large, small = (InstanceType(name="x", vcpus=vcpus) for vcpus in (8, 4))
        both = ["job0", "job1"]
        listed = [
            (Filter(pool="listed"), both),
            (Filter(pool="old"), []),
            (Filter(pool="new", offers=large), both),
            (Filter(pool="new", offers=small), []),
        ]
        for which, names in listed:
            assert [job.name for job in everything(store, which, 10)] == names, which

    def test_a_listing_goes_on_behind_its_cursor_whatever_has_moved(self, store):
        jobs = a_full_queue(store)
        first = store.list_jobs(Filter(states=WAITING), limit=2)
        assert [job.name for job in first.jobs] == ["wait4", "wait1"]
        gone, following = jobs[4], jobs[5]
        store.transition([(gone, lifecycle.cancel(gone, b.at(50), "ada"))])
        store.transition([(following, lifecycle.cancel(following, b.at(50), "ada"))])
        store.submit(b.a_job("wait2b", priority=1, entry_time=b.at(-1)), b.a_request("wait2b"))
        store.submit(b.a_job("behind", priority=100), b.a_request("behind"))
        rest = store.list_jobs(Filter(states=WAITING), limit=10, cursor=first.cursor)
        assert [job.name for job in rest.jobs] == ["wait2", "wait2b", "wait5", "wait0"]

    @pytest.mark.parametrize("part", [ACTIVE, WAITING, frozenset({JobState.HELD}), ENDED], ids=lambda p: min(p).value)
    def test_a_long_part_is_walked_page_by_page(self, store, part):
        state = min(part)
        for n in range(45):
            job = b.a_job(f"job{n:02d}", priority=n % 3, entry_time=b.at(n % 5), share=f"share{n % 4}", state=state)
            job = replace(job, ended_at=b.at(n % 7) if part is ENDED else None, attempt=b.an_attempt())
            store.submit(job, b.a_request(job.name))
        names = [job.name for job in everything(store, limit=4)]
        assert sorted(names) == [f"job{n:02d}" for n in range(45)]
        assert names == [job.name for job in store.list_jobs(Filter(), limit=100).jobs]

    def test_ended_jobs_are_read_only_as_far_back_as_they_may_match(self, store):
        for n in range(30):
            ended = b.an_ended_job(f"end{n:02d}", entry_time=b.at(n), now=b.at(n + 0.5))
            store.submit(ended, b.a_request(ended.name))
        page = store.list_jobs(Filter(states=ENDED, since=b.at(28)), limit=2)
        assert ([job.name for job in page.jobs], page.cursor) == (["end29", "end28"], None)

    @pytest.mark.parametrize("cursor", GARBAGE, ids=range(len(GARBAGE)))
    def test_a_cursor_that_is_not_ours_is_refused(self, store, cursor):
        with pytest.raises(InvalidRequest) as refusal:
            store.list_jobs(Filter(), limit=10, cursor=cursor)
        assert refusal.value.field == "cursor"

    def test_a_forged_cursor_only_says_where_to_go_on(self, store):
        a_full_queue(store)
        forged = cursor_of(["held", "active#run1"])
        assert next(job.name for job in store.list_jobs(Filter(), limit=10, cursor=forged).jobs) == "held1"

    @pytest.mark.parametrize("limit", [0, -1, 1_001])
    def test_a_page_of_no_length_is_refused(self, store, limit):
        with pytest.raises(InvalidRequest) as refusal:
            store.list_jobs(Filter(), limit=limit)
        assert refusal.value.field == "limit"
