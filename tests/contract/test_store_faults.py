"""Trouble at DynamoDB: whatever one request meets, the outcome is the undisturbed one, or an honest error."""

from __future__ import annotations

import pytest
from engines import DynamoEngine
from faults import (
    A_FEW,
    AT_EVERY_CALL,
    Disturbed,
    answer_lost,
    conflict,
    request_lost,
    throttled,
    trouble_after,
)
from job_lifecycles import a_life

import builders as b
from samples import sample
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.errors import Throttled, TrainmasterError, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import ALL

THE_OTHERS = range(2, 1_000, 2)
"""A conflict spares reads, after which the other requests are the first of their calls."""


@pytest.mark.parametrize(
    ("fault", "numbers"),
    sample([*AT_EVERY_CALL, (conflict, THE_OTHERS)], 2),
)
def test_whatever_each_request_meets_the_outcome_is_the_same(dynoxide, dynoxide_client, fault, numbers):
    expected = a_life(DynamoEngine(dynoxide_client).open())
    client = dynoxide.client()
    engine = DynamoEngine(client)
    disturbed = Disturbed(client, fault, set(numbers))
    assert a_life(engine.open()) == expected
    assert disturbed.met >= len(A_FEW)
    client.close()


@pytest.mark.parametrize("fault", [answer_lost, trouble_after])
def test_where_botocore_gives_up_it_may_have_happened_and_the_error_says_so(dynoxide, dynoxide_engine, fault):
    client = dynoxide.client(retries={"mode": "standard", "total_max_attempts": 2})
    disturbed = Disturbed(client, fault, {1, 2})
    store, job = dynoxide_engine.open(client=client), b.a_job("job1")
    with pytest.raises(Unavailable) as trouble:
        store.submit(job, b.a_request("job1"))
    assert trouble.value.__cause__ is not None
    assert store.submit(b.a_job("job1"), b.a_request("job1")) == job
    started = lifecycle.start(job, {b.P5: 1}, (), b.at(1))
    disturbed._numbers = {disturbed.sent + 1, disturbed.sent + 2}
    with pytest.raises(Unavailable):
        store.transition([(job, started)])
    assert store.find("job1") == started
    client.close()


@pytest.mark.parametrize("fault", [answer_lost, trouble_after])
@pytest.mark.parametrize("lost", [{2}, {2, 3}, {1, 2, 3}])
def test_an_end_whose_answer_was_lost_is_booked_once_however_often_it_is_told_again(
    dynoxide, dynoxide_engine, fault, lost
):
    """The first request reads the records, the second is the commit, the third botocore's own second try of it."""
    client = dynoxide.client(retries={"mode": "standard", "total_max_attempts": 2})
    store, running = dynoxide_engine.open(), b.a_running_job("job1")
    store.submit(running, b.a_request("job1"))
    store.set_settings(policy=b.a_metered_policy("default"))
    ended = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(3_600))
    disturbed = Disturbed(client, fault, lost)
    told = [_whether_won(dynoxide_engine.open(client=client), running, ended) for _ in range(4)]
    assert disturbed.met == len(lost)
    assert told.count(True) <= 1
    assert told[-1] is False
    assert store.find("job1") == ended
    records = store.begin_pass().records
    assert records.history.kinds[ALL].total == 1.0
    assert records.usage.accounts["default"].gpu_seconds == 8 * 3_600
    client.close()


def _whether_won(store, before, after):
    """Answer to a repeated transition; None if it may have happened."""
    try:
        return store.transition([(before, after)])
    except Unavailable:
        return None


@pytest.mark.parametrize("fault", [throttled, conflict])
def test_where_it_goes_on_nothing_has_happened_and_the_error_says_so(dynoxide, dynoxide_engine, fault):
    client = dynoxide.client(retries={"mode": "standard", "total_max_attempts": 2})
    disturbed = Disturbed(client, fault, set(range(1, 50)))
    store, job = dynoxide_engine.open(client=client), b.a_job("job1")
    with pytest.raises(Throttled) as trouble:
        store.submit(job, b.a_request("job1"))
    assert trouble.value.__cause__ is not None
    disturbed._numbers = set()
    assert store.find("job1") is None
    running = b.a_running_job("job1")
    store.submit(running, b.a_request("job1"))
    disturbed._numbers = set(range(disturbed.sent, disturbed.sent + 50))
    with pytest.raises(Throttled):
        store.transition([(running, lifecycle.request_stop(running, b.at(1), "ada"))])
    client.close()


def test_every_verb_raises_errors_of_the_domain_only(dynoxide, dynoxide_engine):
    client = dynoxide.client(retries={"mode": "standard", "total_max_attempts": 1})
    dynoxide_engine.open().submit(b.a_job("job1"), b.a_request("job1"))
    Disturbed(client, request_lost, set(range(1, 1_000)))
    store, job = dynoxide_engine.open(client=client), b.a_running_job("job1")
    after = lifecycle.request_stop(job, b.at(1), "ada")
    calls = [
        lambda: store.submit(b.a_job("job2"), {}),
        store.begin_pass,
        store.read_snapshot,
        store.current_pass,
        lambda: store.transition([(job, after)]),
        lambda: store.transition([(job, after)], fence=1),
        lambda: store.find("job1"),
        lambda: store.request_of("job1"),
        lambda: store.list_jobs(Filter(), limit=1),
        store.settings,
        lambda: store.set_settings(pools=[]),
        lambda: store.update_external_jobs({"other": ExternalJob({b.P5: 1})}),
    ]
    for call in calls:
        with pytest.raises(TrainmasterError):
            call()
    client.close()
