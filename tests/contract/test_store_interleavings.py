"""Writes of others between two requests of one call: the answer must have been true at some moment of the call."""

from __future__ import annotations

import pytest
from faults import Between

import builders as b
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import ALL


@pytest.fixture
def between(dynoxide):
    client = dynoxide.client()
    yield Between(client)
    client.close()


def reads_of(operation, params):
    """The reads of one request; each says whether it is strongly consistent."""
    if operation == "BatchGetItem":
        return list(params["RequestItems"].values())
    return [params] if operation in {"Query", "GetItem"} else []


def life_of(store, name):
    """A job's moves one by one; each call makes the next one, and returns the job."""
    job = b.a_job(name)
    store.submit(job, b.a_request(name))
    yield job
    for turn in range(1, 100):
        for step in (
            lambda j: lifecycle.start(j, {b.P5: 1}, (), b.at(1)),
            lambda j: lifecycle.requeue_unlaunched(j, b.at(2), "no room"),
            lambda j, turn=turn: lifecycle.reprioritize(j, turn, b.at(3), "ada"),
            lambda j: lifecycle.hold(j, b.at(4), "ada"),
            lambda j: lifecycle.release(j, b.at(5), "ada"),
        ):
            before, job = job, step(job)
            assert store.transition([(before, job)])
            yield job


@pytest.mark.parametrize("moved_before", range(1, 6))
@pytest.mark.parametrize("moves_made", range(5))
def test_a_job_that_moves_between_two_reads_is_found(dynoxide_engine, between, moves_made, moved_before):
    life = life_of(dynoxide_engine.open(), "job1")
    states = [next(life) for _ in range(moves_made + 1)]
    between.acts = {number: lambda: states.append(next(life)) for number in range(moved_before, moved_before + 3)}
    found = dynoxide_engine.open(client=between.client).find("job1")
    assert found in states[moves_made:]


def test_a_job_is_seen_once_though_it_stops_between_two_reads(dynoxide_engine, between):
    other = dynoxide_engine.open()
    job = b.a_preempting_job("job1")
    other.submit(job, b.a_request("job1"))
    stopped = lifecycle.observe(job, b.an_observation(job, status=Status.STOPPED), b.at(9))
    # Counting up, reading the state, then the lanes: here.
    between.acts = {3: lambda: other.transition([(job, stopped)])}
    snapshot = dynoxide_engine.open(client=between.client).begin_pass()
    assert not between.acts
    assert (snapshot.active, snapshot.waiting) == ((), (stopped,))


def test_a_history_that_is_put_apart_between_two_reads_is_found_whole(dynoxide_engine, between):
    other = dynoxide_engine.open()
    now = b.a_running_job("job1")
    other.submit(now, b.a_request("job1"))

    def write(count):
        nonlocal now
        for n in range(count):
            before, now = now, lifecycle.reprioritize(now, n, b.at(n), "ada")
            assert other.transition([(before, now)])

    write(60)
    # The live row is read first: what is written after that is not in it, but may put more lines apart.
    between.acts = {2: lambda: write(30)}
    found = dynoxide_engine.open(client=between.client).find("job1")
    assert len(found.history) == found.version - 1  # being launched writes no line
    assert found.history == now.history[: len(found.history)]


@pytest.mark.parametrize("verb", ["begin_pass", "settings", "find"])
def test_inputs_of_decisions_are_read_with_strong_consistency(dynoxide_engine, between, verb):
    store = dynoxide_engine.open(client=between.client)
    store.submit(b.a_job("job1"), b.a_request("job1"))
    between.asked.clear()
    getattr(store, verb)(*(["job1"] if verb == "find" else []))
    reads = [read for name, params in between.asked for read in reads_of(name, params)]
    assert reads
    assert all(read["ConsistentRead"] for read in reads)


def test_a_survey_reads_the_pass_number_last_and_with_strong_consistency(dynoxide_engine, between):
    other = dynoxide_engine.open()
    other.submit(b.a_job("job1"), b.a_request("job1"))
    other.begin_pass()
    between.acts = {3: other.begin_pass}
    assert dynoxide_engine.open(client=between.client).read_snapshot().pass_number == 2
    *queries, (last, params) = between.asked
    assert (last, params["ConsistentRead"]) == ("GetItem", True)
    assert [(name, params["ConsistentRead"]) for name, params in queries] == [("Query", False), ("Query", False)]


@pytest.mark.parametrize("others", [1, 3])
def test_an_end_that_others_book_before_is_booked_on_top_of_theirs(dynoxide_engine, between, others):
    """Each try reads the records, then commits; another job's end comes in between."""
    store, rival = dynoxide_engine.open(client=between.client), dynoxide_engine.open()
    running, ended = an_end(store, "job1")
    rivals = [an_end(rival, f"other{n}") for n in range(others)]
    for n, end in enumerate(rivals):
        between.acts[between.sent + 2 * (n + 1)] = lambda end=end: rival.transition([end])
    assert store.transition([(running, ended)])
    assert not between.acts
    records = rival.begin_pass().records
    assert records.usage.accounts["default"].gpu_seconds == 8 * 3_600 * (others + 1)
    assert records.history.kinds[ALL].total == pytest.approx(others + 1, abs=0.1)


def test_an_end_that_others_always_come_before_is_given_up_and_not_told(dynoxide_engine, between):
    store, rival = dynoxide_engine.open(client=between.client), dynoxide_engine.open()
    running, ended = an_end(store, "job1")
    rivals = [an_end(rival, f"other{n}") for n in range(10)]
    for n, end in enumerate(rivals):
        between.acts[between.sent + 2 * (n + 1)] = lambda end=end: rival.transition([end])
    with pytest.raises(Throttled):
        store.transition([(running, ended)])
    assert store.find("job1") == running
    assert rival.begin_pass().records.usage.accounts["default"].gpu_seconds == 8 * 3_600 * 10


@pytest.mark.parametrize("fenced", [False, True])
def test_a_job_that_moves_while_its_end_is_booked_again_loses_and_is_not_booked(dynoxide_engine, between, fenced):
    store, rival = dynoxide_engine.open(client=between.client), dynoxide_engine.open()
    running, ended = an_end(store, "job1")
    fence = store.begin_pass().pass_number if fenced else None
    end = an_end(rival, "other")
    between.acts[between.sent + 2] = lambda: rival.transition([end])
    between.acts[between.sent + 4] = lambda: rival.transition([(running, lifecycle.fail(running, b.at(9), "broke"))])
    assert not store.transition([(running, ended)], fence=fence)
    assert rival.begin_pass().records.usage.accounts["default"].gpu_seconds == 8 * (3_600 + 9)


def an_end(store, name):
    """A running job that is stored, and as it stands an hour later."""
    running = b.a_running_job(name)
    store.submit(running, b.a_request(name))
    store.set_settings(policy=b.a_metered_policy("default"))
    return running, lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(3_600))
