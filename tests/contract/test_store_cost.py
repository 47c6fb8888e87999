"""Cost of the store, in units that the engine reports, and its independence of the queue's depth."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from engines import DynamoEngine
from job_lifecycles import a_life
from meter import Meter

import builders as b
from samples import sample
from trainmaster.adapters.dynamodb.records import records_row
from trainmaster.adapters.dynamodb.rows import job_of, job_text, row_of
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Change, JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records, booked

BY = "arn:aws:sts::111122223333:assumed-role/DataScientist/ada"
NAME = "vision-resnet-50-2026-11-21-09-13-43-123"


def a_request_of_4_kb(name=NAME):
    """As the SageMaker SDK writes them, filled up with hyperparameters."""
    request = b.a_request(
        name,
        priority=100,
        HyperParameters={
            "sagemaker_submit_directory": f'"s3://sagemaker-us-east-1-111122223333/{name}/source/sourcedir.tar.gz"',
            "sagemaker_program": '"train.py"',
            "sagemaker_job_name": f'"{name}"',
            "sagemaker_region": '"us-east-1"',
        },
        InputDataConfig=[
            {
                "ChannelName": channel,
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://datasets/{channel}/v7"}},
            }
            for channel in ("train", "validation")
        ],
        VpcConfig={"SecurityGroupIds": ["sg-0a1b2c3d4e5f60718"], "Subnets": ["subnet-0a1b2c3d4e5f60718"]},
    )
    number = 0
    while len(json.dumps(request)) < 4_096:
        request["HyperParameters"][f"model_parameter_{number}"] = f'"{1 / (number + 7):.6f}"'
        number += 1
    return request


@pytest.fixture
def meter(dynoxide):
    client = dynoxide.client()
    yield Meter(client), DynamoEngine(client).open()
    client.close()


def test_a_jobs_whole_life_costs_at_most_22_write_and_14_read_units(meter):
    meter, store = meter
    remember(store, shares=3, images=4, ends=300)
    history = (Change(b.NOW, None, JobState.PENDING, f"submitted by {BY}"),)
    job = b.a_job(NAME, priority=100, submitted_by=BY, history=history)
    spent = {}

    def measured(step, call):
        with meter.measured() as cost:
            result = call()
        assert result
        spent[step] = (cost.write_units, cost.read_units, cost.calls)
        return result

    def commit(step, before, after, fence=None):
        assert measured(step, lambda: store.transition([(before, after)], fence=fence))
        return after

    measured("submit", lambda: store.submit(job, a_request_of_4_kb()))
    measured("read_snapshot", store.read_snapshot)
    first = measured("pass", store.begin_pass)
    started = commit("start", job, lifecycle.start(job, {b.P5: 1}, (), b.at(3.3)), first.pass_number)
    measured("request", lambda: store.request_of(NAME))
    launched = commit("launched", started, lifecycle.mark_launched(started))
    measured("find", lambda: store.find(NAME))
    running = lifecycle.observe(launched, b.an_observation(launched, secondary="Training"), b.at(200.5))
    commit("running", launched, running)
    measured("pass after start", store.begin_pass)
    measured("find again", lambda: store.find(NAME))
    ended = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(86_000.25))
    commit("ended", running, ended)
    measured("pass after end", store.begin_pass)

    own = {step: units for step, (units, _, _) in spent.items() if "pass" not in step}
    assert own == {
        "submit": 4,  # identity with request, waiting row; twice for being a transaction
        "read_snapshot": 0,
        "start": 6,  # one row deleted, one written, the fence checked; twice
        "request": 0,
        "launched": 1,
        "find": 0,
        "running": 1,
        "find again": 0,
        "ended": 7,  # one row deleted, one written, the records; twice; and once in the index
    }
    assert sum(units for units, _, _ in spent.values()) <= 22
    assert sum(units for _, units, _ in spent.values()) <= 14
    assert sum(calls for _, _, calls in spent.values()) <= 21


def test_every_change_of_an_elastic_job_of_65_instances_costs_two_write_units_at_the_most(meter):
    meter, store = meter
    job = b.a_running_job(NAME, submitted_by=BY, elastic=Elastic(min_instances=1, max_instances=65, hook=Hook.MEMBERS))
    store.submit(job, a_request_of_4_kb())
    grown = resizing.resize(job, 65, Cause.GROW, b.at(10.5), until=b.at(1_000))
    assert store.transition([(job, grown)])
    rng = random.Random(5)
    for member in grown.attempt.members:
        came = b.at(round(rng.uniform(100, 400), 6))
        grown = resizing.mark_member_started(grown, member.training_job_name, came, came)
    shrunk = resizing.resize(grown, 1, Cause.SHRINK, b.at(5_000.5), until=b.at(5_600), freed_for="job9")
    for member in shrunk.attempt.members:
        left = b.at(round(rng.uniform(5_100, 5_400), 6))
        shrunk = resizing.mark_member_left(shrunk, member.training_job_name, left)
    assert grown.state is JobState.RUNNING
    assert len(row_of(grown)["job"]["B"]) < 1_100
    assert len(row_of(shrunk)["job"]["B"]) < 1_700, "every member with all times that it can have"
    store.submit(replace(shrunk, name="other"), a_request_of_4_kb("other"))
    shrunk = store.find("other")
    assert shrunk.attempt.joined == 64
    with meter.measured() as cost:
        assert store.transition(
            [(shrunk, resizing.mark_member_stop_sent(shrunk, shrunk.attempt.members[0].training_job_name))]
        )
    assert (cost.write_units, cost.calls) == (2, 1)


def test_a_job_that_is_preempted_and_resumed_costs_a_fixed_amount_more(meter):
    meter, store = meter
    job = b.a_running_job(NAME, submitted_by=BY)
    store.submit(job, a_request_of_4_kb())
    preempting = lifecycle.preempt(job, "job9", b.at(10))
    preempted = lifecycle.observe(preempting, b.an_observation(preempting, status=Status.STOPPED), b.at(20))
    started = lifecycle.start(preempted, {b.P5: 1}, (), b.at(30))
    with meter.measured() as cost:
        assert store.transition([(job, preempting)], fence=store.begin_pass().pass_number)
        assert store.transition([(preempting, preempted)])
        assert store.transition([(preempted, started)], fence=store.begin_pass().pass_number)
    assert cost.write_units == 20  # 14, a waiting row, in what lane it is now, and the records


def test_held_jobs_cost_what_of_them_is_asked_for(meter):
    meter, store = meter
    for n in range(40):
        timed = lifecycle.hold_if_needed(b.a_job(f"timed{n}", not_before=b.at(n * 60), submitted_by=BY), b.at(-1))
        child = lifecycle.hold_if_needed(b.a_job(f"child{n}", after=(f"timed{n // 4}", "job9"), submitted_by=BY), b.NOW)
        for job in (timed, child):
            store.submit(job, b.a_request(job.name))
    for which, found, most in [
        (Filter(due=b.at(-1)), 0, 1),
        (Filter(due=b.NOW), 1, 1),
        (Filter(due=b.at(300)), 6, 1),
        (Filter(parent="missing"), 0, 1),
        (Filter(parent="timed3"), 4, 1 + 4),
    ]:
        with meter.measured() as cost:
            assert len(store.list_jobs(which, limit=50).jobs) == found
        assert (cost.read_units, cost.write_units) <= (most, 0)
    child = store.find("child0")
    with meter.measured() as cost:
        assert store.transition([(child, lifecycle.apply_parent_end(child, b.an_ended_job("job9"), b.at(1)))])
    assert cost.write_units == 4  # the job in place, and one index row


def fill(engine, count):
    """Waiting jobs, written without the store to save time: their rows are all that a pass reads."""
    rows = [row_of(b.a_job(f"{NAME[:-6]}{n:06d}", entry_time=b.at(n), submitted_by=BY)) for n in range(count)]
    for start in range(0, count, 25):
        writes = [{"PutRequest": {"Item": row}} for row in rows[start : start + 25]]
        engine.client.batch_write_item(RequestItems={engine.name: writes})


def test_a_pass_costs_the_same_however_deep_the_queue(dynoxide):
    costs = []
    client = dynoxide.client()
    meter = Meter(client)
    for depth in (100, 1_000, 5_000):
        engine = DynamoEngine(client)
        fill(engine, depth)
        store = engine.open()
        with meter.measured() as cost:
            snapshot = store.begin_pass()
        assert len(snapshot.waiting) == 32
        costs.append((cost.read_units, cost.write_units, cost.calls))
    client.close()
    assert costs[0] == costs[1] == costs[2]
    assert costs[0][0] <= 8


def test_the_next_pass_reads_each_lane_of_a_free_pool_with_one_query(dynoxide):
    client = dynoxide.client()
    meter, store = Meter(client), DynamoEngine(client).open()
    store.set_settings(pools=[b.a_pool(cap=60)])
    for share in ("a", "b", "c"):
        for number in range(80):
            store.submit(b.a_job(f"{share}{number:02}", share=share, entry_time=b.at(number)), {})
    with meter.measured() as first:
        snapshot = store.begin_pass()
    with meter.measured() as second:
        assert store.begin_pass().waiting == snapshot.waiting
    client.close()
    # 68 of each lane; the pages of the first pass have 33 rows, since it does not know what comes next.
    assert (len(snapshot.waiting), len(snapshot.cut_lanes)) == (3 * 68, 3)
    assert (first.calls, second.calls) == (9, 6)
    assert second.read_units <= first.read_units


def test_a_deep_answer_costs_half_a_unit_for_each_four_kilobytes(dynoxide):
    client = dynoxide.client()
    meter, store = Meter(client), DynamoEngine(client).open()
    store.set_settings(pools=[b.a_pool(cap=1)])
    for number in range(300):
        store.submit(b.a_job(f"a{number:03}", entry_time=b.at(number)), {})
    with meter.measured() as usual:
        assert len(store.read_snapshot().waiting) == 32
    with meter.measured() as deep:
        assert len(store.read_snapshot(depth=280).waiting) == 280
    client.close()
    # Rows of waiting jobs have less than 300 bytes.
    assert deep.read_units - usual.read_units <= (280 - 32) * 300 / 8_192 + 1
    assert deep.calls == usual.calls + 1


def test_a_lane_that_has_got_shorter_costs_no_rows_of_the_next(dynoxide):
    client = dynoxide.client()
    meter, store = Meter(client), DynamoEngine(client).open()
    store.set_settings(pools=[b.a_pool(cap=500)])
    for number in range(60):
        store.submit(b.a_job(f"a{number:03}", share="a", entry_time=b.at(number)), {})
    for number in range(600):
        store.submit(b.a_job(f"b{number:03}", share="b", units={b.G5: 1}, entry_time=b.at(number)), {})
    store.begin_pass()
    with meter.measured() as cost:
        snapshot = store.begin_pass()
    client.close()
    assert len(snapshot.waiting) == 60 + 32
    assert cost.read_units <= 20


def test_going_on_in_a_listing_costs_the_same_however_far_it_has_come(dynoxide):
    client = dynoxide.client()
    meter, engine = Meter(client), DynamoEngine(client)
    fill(engine, 300)
    store, cursor, costs = engine.open(), None, []
    while True:
        with meter.measured() as cost:
            page = store.list_jobs(Filter(), limit=20, cursor=cursor)
        cursor = page.cursor
        if cursor is None:
            break
        costs.append(cost.read_units)
    client.close()
    assert len(costs) == 14
    assert max(costs[1:]) <= min(costs[1:]) + 1 <= 6


def test_nothing_is_ever_scanned(dynoxide):
    client = dynoxide.client()
    engine, used = DynamoEngine(client), set()
    client.meta.events.register("before-call.dynamodb.*", lambda model, **_: used.add(model.name))
    a_life(engine.open())
    client.close()
    assert used <= {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"}


def remember(store, shares, images, ends):
    """As after so many jobs, of which those of one image are alike and run for minutes to days."""
    rng, records = random.Random(7), Records()
    for n in range(ends):
        image = rng.randrange(images)
        job = b.a_running_job(
            f"job{n}",
            share=f"team-{image % shares}",
            container_image=f"111122223333.dkr.ecr.us-east-1.amazonaws.com/training:{image}",
            units={(b.P5, b.G5)[image % 2]: rng.choice([1, 1, 1, 2, 4, 8])},
        )
        end = b.at(rng.lognormvariate(7 + image % 5, 1.0))
        ended = lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), end)
        records = booked(records, job, ended, Policy(), b.pools_of())
    row = records_row(records, 1)
    store._table.put(row)
    return records, sum(len(name) + len(next(iter(value.values()))) for name, value in row.items())


@pytest.mark.parametrize(
    ("shares", "images", "ends", "kinds", "most"),
    sample([(1, 3, 50, 20, 700), (3, 4, 300, 30, 1_024), (5, 100, 3_000, 48, 1_500), (64, 100, 5_000, 48, 2_600)], 3),
)
def test_the_stored_records_are_small(dynoxide_engine, shares, images, ends, kinds, most):  # noqa: PLR0917
    """Up to a kilobyte costs two write units with every end, up to two four; of the reads of a pass it is a part."""
    store = dynoxide_engine.open()
    records, size = remember(store, shares, images, ends)
    assert len(records.history.kinds) <= kinds
    assert size <= most
    assert store.begin_pass().records.usage.accounts.keys() == records.usage.accounts.keys()


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (b.a_job, 600),
        (b.a_held_job, 660),
        (b.a_starting_job, 700),
        (b.a_running_job, 800),
        (b.a_preempted_job, 800),
        (b.an_ended_job, 1_000),
    ],
)
def test_rows_are_small(build, most):
    fields = {
        "container_image": b.IMAGE,
        "checkpointed": True,
        "warm_pool_key": "abcdefgh",
        "submitted_by": BY,
        "priority": 100,
    }
    row = row_of(build(NAME, entry_time=b.at(-0.123456), **fields))
    assert sum(len(name) + len(next(iter(value.values()))) for name, value in row.items()) <= most


def test_the_row_of_a_job_that_has_stepped_aside_four_times_stays_within_a_kilobyte():
    job = b.a_job(NAME, submitted_by=BY, container_image=b.IMAGE, checkpointed=True)
    for turn in range(4):
        started = lifecycle.mark_launched(lifecycle.start(job, {b.P5: 1}, (), b.at(turn * 1_000 + 0.5)))
        running = lifecycle.observe(started, b.an_observation(started, secondary="Training"), b.at(turn * 1_000 + 60))
        leaving = lifecycle.preempt(running, f"urgent-{turn}-{NAME}", b.at(turn * 1_000 + 900))
        job = lifecycle.observe(leaving, b.an_observation(leaving, status=Status.STOPPED), b.at(turn * 1_000 + 930))
    row = row_of(job)
    assert len(job_text(row)) > 2_000
    assert sum(len(name) + len(next(iter(value.values()))) for name, value in row.items()) <= 1_024
    assert job_of(row) == job
