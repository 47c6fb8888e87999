"""Training jobs with the queue's tag that no job has as an attempt are stopped, and count until they have ended."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from builders import ADA, P5
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import JobState
from trainmaster.handlers.manager import consume, metrics
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.service.capacity.external import MAX_IDENTIFIED
from trainmaster.service.capacity.pools import set_pools
from world import EPOCH, QUEUE, Context, World, a_request

OPEN = ("InProgress", "Stopping")
LONG = 90_000


def no_events(_number, _event):
    return []


def tags_of(job, attempt=1, queue=QUEUE):
    named = {"trainmaster:queue": queue, "trainmaster:job": job, "trainmaster:attempt": str(attempt)}
    return [{"Key": key, "Value": value} for key, value in named.items()]


def create(world, name, tags=(), **request):
    """Create a training job past the queue."""
    keep_alive = request.pop("keep_alive", None)
    made = {**a_request(name, training_seconds=LONG, **request), "Tags": list(tags)}
    if keep_alive:
        made["ResourceConfig"]["KeepAlivePeriodInSeconds"] = keep_alive
    world.simulator.call("CreateTrainingJob", **made)


def status(world, name):
    return world.simulator.call("DescribeTrainingJob", TrainingJobName=name)["TrainingJobStatus"]


def known(world):
    return world.memory.external


def counting(world, cap=2):
    set_pools(world.api_context, ADA, [Pool(P5, cap, count_external=True)])


def a_world(**options):
    """An ended job, a running one and a waiting one, in pools that do not count external jobs."""
    world = World(pools=f"{P5}=2", **options)
    world.submit("ended", training_seconds=30)
    world.run_until_ended("ended")
    world.submit("running", count=2, training_seconds=LONG)
    world.run(120)
    world.submit("waiting", count=2, training_seconds=LONG)
    world.run(70)
    assert world.states("running", "waiting") == {"running": "running", "waiting": "pending"}
    return world


ORPHANS = [
    ("ended-qstamp-2", "ended", 2),
    ("unknown", "unknown", 1),
    ("waiting-qstamp-3", "waiting", 3),
    ("running-qstamp-1", "running", 1),
    ("ended-0a1b2c3d-qstamp-2", "ended", 2),
]


@pytest.mark.parametrize(("name", "job", "attempt"), ORPHANS)
def test_an_orphan_is_stopped_after_its_event(name, job, attempt):
    world = a_world()
    world.next_tick = EPOCH + timedelta(days=10)
    create(world, name, tags_of(job, attempt), starting_seconds=90)
    world.run(30)
    assert (status(world, name), known(world)[name].origin) == ("InProgress", Origin.ORPHAN)
    world.run(90)
    assert status(world, name) == "Stopped"
    assert world.job("running").state is JobState.RUNNING
    assert world.job("waiting").state is JobState.PENDING


@pytest.mark.parametrize(("name", "job", "attempt"), ORPHANS)
def test_an_orphan_whose_events_are_lost_is_stopped_by_a_tick(name, job, attempt):
    world = a_world()
    world.delivery = no_events
    create(world, name, tags_of(job, attempt))
    world.run(150)
    assert status(world, name) == "Stopped"
    world.run(60)
    assert known(world) == {}
    assert world.job("running").state is JobState.RUNNING
    assert world.job("waiting").state is JobState.PENDING


@pytest.mark.parametrize("events", [None, no_events])
def test_an_orphan_counts_until_it_has_ended_although_its_pool_counts_no_external_jobs(events):
    world = World(pools=f"{P5}=2", events=events, hostility=Hostility(stuck_stops=1, stuck_seconds=300))
    create(world, "unknown", tags_of("unknown"))
    world.run(70)
    world.submit("job1", count=2, training_seconds=30)
    world.run(120)
    assert (world.job("job1").state, status(world, "unknown")) == (JobState.PENDING, "Stopping")
    assert world.api_context.store.read_snapshot().external == {P5: 1}
    world.run_until_ended("job1")
    assert world.peaks == {P5: 2}
    assert known(world) == {}


def test_an_orphan_that_the_list_does_not_show_yet_counts_too():
    world = World(pools=f"{P5}=2", hostility=Hostility(list_lag=3600, stuck_stops=1, stuck_seconds=900))
    create(world, "unknown", tags_of("unknown"), starting_seconds=90)
    world.run(200)
    assert status(world, "unknown") == "Stopping"
    world.submit("job1", count=2, training_seconds=30)
    world.run(300)
    assert world.api_context.store.read_snapshot().external == {P5: 1}
    world.run_until_ended("job1")
    assert (world.peaks, known(world)) == ({P5: 2}, {})


def test_a_stopped_orphan_is_logged_counted_and_costs_no_further_stop(caplog):
    world = World(pools=f"{P5}=2", events=no_events, hostility=Hostility(stuck_stops=1, stuck_seconds=600))
    world.next_tick = EPOCH + timedelta(days=10)
    create(world, "unknown", tags_of("unknown"))
    world.run(90)
    world.faults.armed = True
    tick = {"Records": [{"messageId": "tick", "body": json.dumps({"kind": "tick"})}]}
    consume(world.application(), tick, Context())
    assert metrics.metric_set["OrphansStopped"]["Value"] == [1.0]
    metrics.clear_metrics()
    assert [record.trainingJob for record in caplog.records if "stopped an orphan" in record.message] == ["unknown"]
    for _ in range(3):
        world.simulator.advance(60)
        consume(world.application(), tick, Context())
    assert "OrphansStopped" not in metrics.metric_set
    metrics.clear_metrics()
    assert world.faults.calls.count("StopTrainingJob") == 1


def test_an_orphans_warm_pool_ends_with_it():
    world = World(pools=f"{P5}=2")
    create(world, "unknown", tags_of("unknown"), keep_alive=3000)
    world.run(200)
    answer = world.simulator.call("DescribeTrainingJob", TrainingJobName="unknown")
    assert answer["TrainingJobStatus"] == "Stopped"
    assert answer.get("WarmPoolStatus", {}).get("Status") != "Available"
    assert "UpdateTrainingJob" in world.faults.calls


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalFailure", "AccessDeniedException"])
def test_a_stop_that_fails_is_repeated_and_the_orphan_counts_meanwhile(code):
    world = World(pools=f"{P5}=1")
    world.simulator.faults.inject("StopTrainingJob", code, times=9)
    create(world, "unknown", tags_of("unknown"))
    world.run(130)
    assert known(world)["unknown"].origin is Origin.ORPHAN
    world.submit("job1", training_seconds=30)
    world.run_until_ended("job1", limit=2000)
    assert (status(world, "unknown"), world.peaks) == ("Stopped", {P5: 1})


def test_an_orphan_whose_tags_are_visible_late_is_stopped_then():
    world = World(pools=f"{P5}=2", hostility=Hostility(tags_lag=400))
    counting(world)
    create(world, "unknown", tags_of("unknown"))
    world.run(70)
    assert known(world)["unknown"].origin in (Origin.UNKNOWN, Origin.ORPHAN)
    world.submit("job1", count=2, training_seconds=30)
    world.run_until_ended("job1", limit=2000)
    assert (status(world, "unknown"), world.peaks) == ("Stopped", {P5: 2})


def test_attempts_whose_tags_are_visible_late_are_neither_external_nor_orphans():
    world = World(pools=f"{P5}=2", hostility=Hostility(tags_lag=400, list_lag=60, describe_lag=5))
    counting(world)
    world.submit("job1", training_seconds=900)
    world.run(300)
    assert known(world) == {}
    world.submit("job2", priority=5, count=2, training_seconds=100)
    world.run_until_ended("job1", "job2")
    assert [str(attempt.outcome) for attempt in world.job("job1").attempts] == ["preempted", "completed"]
    assert world.peaks == {P5: 2}


@pytest.mark.parametrize("tags", [(), tags_of("job1", 2, queue="another")])
@pytest.mark.parametrize("lag", [0, 400])
def test_a_later_attempt_of_another_queue_counts(tags, lag):
    world = World(pools=f"{P5}=2", hostility=Hostility(tags_lag=lag))
    counting(world)
    create(world, "job1-qstamp-2", tags)
    world.run(70)
    world.submit("job2", count=2, training_seconds=30)
    world.run(300)
    assert world.job("job2").state is JobState.PENDING
    world.run(600)
    assert known(world) == {"job1-qstamp-2": ExternalJob({P5: 1})}
    assert (status(world, "job1-qstamp-2"), world.peaks) == ("InProgress", {P5: 1})


@pytest.mark.parametrize("tags", [(), tags_of("theirs", queue="another"), [{"Key": "team", "Value": "vision"}]])
def test_a_forged_event_stops_no_training_job_of_others(tags):
    world = World(pools=f"{P5}=2")
    create(world, "theirs", tags)
    world.run(90)
    forged = {each["Key"]: each["Value"] for each in tags_of("theirs")}
    detail = {"TrainingJobName": "theirs", "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training"}
    event = {"detail-type": "SageMaker Training Job State Change", "detail": {**detail, "Tags": forged}}
    world.queue.send(json.dumps(event))
    world.run(900)
    assert status(world, "theirs") == "InProgress"
    assert world.faults.calls.count("StopTrainingJob") == 0


def test_a_job_that_another_manager_starts_after_the_snapshot_is_no_orphan():
    world = World(pools=f"{P5}=2", rates={"ListTrainingJobs": None})
    counting(world)
    seen = []

    def start_another(operation, phase):
        if (operation, phase) == ("ListTrainingJobs", "before") and not seen:
            seen.append(operation)
            world.submit("job1", training_seconds=300)
            world.second_manager()

    world.simulator.on_call = start_another
    world.run(60)
    assert (world.opened, world.overtaken, known(world)) == (["job1"], 1, {})
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED


def test_each_training_job_is_identified_once():
    world = World(pools=f"{P5}=500")
    counting(world, 500)
    count = 2 * MAX_IDENTIFIED + 5
    for index in range(count):
        create(world, f"theirs-{index}", tags_of(f"theirs-{index}", queue="another"))
    world.faults.calls.clear()
    world.run(60, step=60)
    assert world.faults.calls.count("ListTags") == MAX_IDENTIFIED
    assert world.faults.calls.count("DescribeTrainingJob") == MAX_IDENTIFIED
    world.run(120, step=60)
    assert world.faults.calls.count("ListTags") == world.faults.calls.count("DescribeTrainingJob") == count
    world.faults.calls.clear()
    world.run(600, step=60)
    assert set(world.faults.calls) == {"ListTrainingJobs"}
    assert world.faults.calls.count("ListTrainingJobs") == 20
    assert world.api_context.store.read_snapshot().external == {P5: count}


def test_throttling_keeps_what_was_identified_before():
    world = World(pools=f"{P5}=500", hostility=Hostility(rates={"DescribeTrainingJob": 10}))
    counting(world, 500)
    for index in range(30):
        create(world, f"theirs-{index}", tags_of(f"theirs-{index}", queue="another"))
    world.run(240, step=60)
    assert world.api_context.store.read_snapshot().external == {P5: 30}


def test_without_the_permission_to_list_events_still_lead_to_orphans(caplog):
    world = World(pools=f"{P5}=1")
    counting(world, 1)
    world.simulator.faults.inject("ListTrainingJobs", "AccessDeniedException", times=None)
    create(world, "unknown", tags_of("unknown"))
    world.submit("job1", training_seconds=30)
    caplog.clear()
    world.run(61, step=61)
    assert sum("may not list" in record.message for record in caplog.records) == 1
    world.run_until_ended("job1", limit=1000)
    assert (status(world, "unknown"), known(world)) == ("Stopped", {})


def test_training_jobs_that_may_not_be_described_do_not_hide_others():
    world = World(pools=f"{P5}=500")
    counting(world, 500)
    create(world, "theirs", tags_of("theirs", queue="another"))
    world.simulator.advance(1)
    for index in range(MAX_IDENTIFIED):
        create(world, f"secret-{index}")
    world.simulator.faults.inject("DescribeTrainingJob", "AccessDeniedException", times=MAX_IDENTIFIED)
    world.run(60, step=60)
    assert known(world) == {f"secret-{index}": ExternalJob({}, Origin.UNKNOWN) for index in range(MAX_IDENTIFIED)}
    world.run(60, step=60)
    assert known(world)["theirs"] == ExternalJob({P5: 1})


def test_an_attempt_that_still_seems_open_after_its_end_is_no_orphan():
    world = World(pools=f"{P5}=8")
    names = [f"job{index}" for index in range(8)]
    for index, name in enumerate(names):
        world.submit(name, training_seconds=200 + 5 * index)
    world.run(150)
    world.simulator.hostility = Hostility(describe_lag=90, list_lag=90)
    world.run(300)
    assert set(world.states(*names).values()) == {"completed"}
    assert (world.faults.calls.count("StopTrainingJob"), known(world)) == (0, {})
