"""Many threads at one table: on a real engine, and in memory. (moto's tables are not made for threads.)"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import builders as b
from trainmaster.domain.capacity.units import total
from trainmaster.domain.errors import Fenced, VersionConflict
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import ALL
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.store import Store


def at_once(count: int, work: Callable[[int], object]) -> list:
    """The results of `count` threads that begin together."""
    gate = threading.Barrier(count)

    def run(number: int) -> object:
        gate.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


@pytest.fixture(params=["memory", "dynoxide"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


def test_one_of_sixteen_concurrent_submissions_of_a_name_wins(engine):
    store = engine.open()
    jobs = [b.a_job("job1", digest=f"{n:064x}", priority=n) for n in range(16)]
    answers = at_once(16, lambda n: store.submit(jobs[n], b.a_request("job1", priority=n)))
    winners = [job for job, answer in zip(jobs, answers, strict=True) if answer is job]
    assert len(winners) == 1
    assert all(answer == winners[0] for answer in answers)
    assert store.request_of("job1") == b.a_request("job1", priority=winners[0].priority)
    assert store.begin_pass().waiting == (winners[0],)


def test_submissions_do_not_disturb_each_other(engine):
    store = engine.open()
    at_once(8, lambda n: [store.submit(b.a_job(f"job{n}-{i}"), b.a_request(f"job{n}-{i}")) for i in range(10)])
    assert len(store.list_jobs(Filter(), limit=100).jobs) == 80


def test_pass_numbers_are_never_given_out_twice(engine):
    store = engine.open()
    numbers = [
        number for some in at_once(8, lambda _: [store.begin_pass().pass_number for _ in range(10)]) for number in some
    ]
    assert sorted(numbers) == list(range(1, 81))


def test_of_many_changes_of_one_job_one_wins(engine):
    store = engine.open()
    job = b.a_job("job1")
    store.submit(job, b.a_request("job1"))
    for turn in range(10):
        before = store.find("job1")
        afters = [lifecycle.reprioritize(before, 10 * turn + n, b.at(turn), f"user{n}") for n in range(8)]
        won = at_once(8, lambda n, before=before, afters=afters: store.transition([(before, afters[n])]))
        assert won.count(True) == 1
        assert store.find("job1") == afters[won.index(True)]


def test_of_many_changes_in_place_one_wins(engine):
    store = engine.open()
    before = b.a_running_job("job1")
    store.submit(before, b.a_request("job1"))
    afters = [lifecycle.request_stop(before, b.at(n), f"user{n}") for n in range(8)]
    won = at_once(8, lambda n: store.transition([(before, afters[n])]))
    assert won.count(True) == 1
    assert store.find("job1") == afters[won.index(True)]


def test_managers_at_once_never_give_a_pool_out_twice(engine):
    """Eight managers start whatever fits into eight units; jobs end meanwhile, so that there is always room again."""
    cap, jobs = 8, 48
    store = engine.open(pools=[b.a_pool(cap=cap)], parameter="eight")
    for n in range(jobs):
        store.submit(b.a_job(f"job{n:02d}", units={b.P5: 1 + n % 3}), b.a_request(f"job{n:02d}"))
    used: list[int] = []
    overtaken: list[int] = []
    done = threading.Event()

    def one_pass(manager: Store, number: int) -> None:
        snapshot = manager.begin_pass()
        used.append(total(job.units for job in snapshot.active).get(b.P5, 0))
        if not snapshot.waiting and not snapshot.active:
            done.set()
        free = cap - used[-1]
        done.wait(0.01)  # A pass plans: here the others get their chance to overtake it.
        for job in snapshot.waiting:
            units = job.demand.alternatives[0]
            after = lifecycle.start(job, units, (), b.at(number))
            if units[b.P5] <= free and manager.transition([(job, after)], fence=snapshot.pass_number):
                free -= units[b.P5]
        for job in snapshot.active[number::8]:
            manager.transition([(job, lifecycle.fail(job, b.at(number), "done"))])

    def manage(number: int) -> None:
        manager, rng = engine.open(pools=[b.a_pool(cap=cap)], parameter="eight"), random.Random(number)
        while not done.is_set():
            try:
                one_pass(manager, number)
            except Fenced:
                overtaken.append(number)
            # Without a pause they would overtake each other forever, and none would get to act.
            done.wait(rng.uniform(0, 0.3))

    timer = threading.Timer(50, done.set)
    timer.start()
    at_once(8, manage)
    timer.cancel()
    assert max(used) <= cap
    assert overtaken, "they never met, so this has shown nothing"
    ended = store.list_jobs(Filter(states=frozenset({JobState.FAILED})), limit=100).jobs
    assert len(ended) == jobs
    assert all(len(job.attempts) == 1 for job in ended)


def test_a_moving_job_is_always_found(engine):
    store, mover = engine.open(), engine.open()
    job = b.a_job("job1")
    store.submit(job, b.a_request("job1"))
    done, looked = threading.Event(), threading.Event()

    def move() -> None:
        now: Job = job
        for turn in range(40):
            looked.wait(timeout=10)
            looked.clear()
            for step in (
                lambda j: lifecycle.start(j, {b.P5: 1}, (), b.at(turn)),  # noqa: B023 -- called in this round
                lambda j: lifecycle.requeue_unlaunched(j, b.at(turn), "no room"),  # noqa: B023
                lambda j: lifecycle.hold(j, b.at(turn), "ada"),  # noqa: B023
                lambda j: lifecycle.reprioritize(j, turn, b.at(turn), "ada"),  # noqa: B023
                lambda j: lifecycle.release(j, b.at(turn), "ada"),  # noqa: B023
            ):
                after = step(now)
                assert mover.transition([(now, after)])
                now = after
        done.set()

    def look() -> int:
        version = 0
        while not done.is_set():
            found = store.find("job1")
            assert found is not None
            assert found.version >= version, "a later look must not see an earlier job"
            assert len(found.history) == found.version
            version = found.version
            looked.set()
        return version

    def work(number: int) -> int | None:
        try:
            return move() if number == 0 else look()
        finally:
            done.set()

    assert max(version for version in at_once(3, work)[1:]) > 1


def test_of_many_changes_of_the_pools_one_wins_each_time(engine):
    store = engine.open()
    seen = store.settings().version

    def change(number: int) -> bool:
        try:
            store.set_settings(pools=[b.a_pool(cap=number)], version=seen)
        except VersionConflict:
            return False
        return True

    won = at_once(8, change)
    assert won.count(True) == 1
    assert store.settings().pools[b.P5].cap == won.index(True)


def test_of_changes_of_the_pools_without_a_version_none_is_lost(engine):
    store = engine.open()
    versions = at_once(8, lambda number: store.set_settings(pools=[b.a_pool(cap=number)]).version)
    assert sorted(versions) == list(range(1, 9))


def test_ends_told_at_once_are_all_booked_and_each_once(engine):
    """A wave of jobs whose run times are all different; every end is told by two threads."""
    jobs = [b.a_running_job(f"job{n}", share=f"share{n % 4}") for n in range(16)]
    engine.open().set_settings(policy=b.a_metered_policy("share0", "share1", "share2", "share3"))
    for job in jobs:
        engine.open().submit(job, b.a_request(job.name))

    def tell(number):
        job = jobs[number % 16]
        seen = b.an_observation(job, status=Status.COMPLETED)
        return engine.open().transition([(job, lifecycle.observe(job, seen, b.at(1_000 + number % 16)))])

    won = [told for wave in range(4) for told in at_once(8, lambda n, wave=wave: tell(wave * 4 + n % 4))]
    assert won.count(True) == 16
    records = engine.open().begin_pass().records
    assert records.history.kinds[ALL].total == 16
    spent = {share: account.gpu_seconds for share, account in records.usage.accounts.items()}
    assert spent == {f"share{n}": 8 * sum(1_000 + m for m in range(n, 16, 4)) for n in range(4)}


def test_pools_and_policy_set_at_once_are_both_set(engine):
    store = engine.open()

    def set_one(number):
        if number % 2:
            return store.set_settings(policy=Policy(reservations=number)).version
        return store.set_settings(pools=[b.a_pool(cap=100 + number)]).version

    versions = at_once(8, set_one)
    assert len(set(versions)) == 8
    now = store.settings()
    assert now.version == max(versions)
    assert now.pools[b.P5].cap in {100, 102, 104, 106}
    assert now.policy.reservations in {1, 3, 5, 7}
