"""The guide's figures of image jobs: what they count, and how CloudWatch gets them."""

from __future__ import annotations

import json
import random

import pytest

import builders as b
from image_builders import a_running_image, an_endpoint_pool, an_image_job
from image_runs_world import ImageRunsWorld
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.plan import Plan
from trainmaster.images.handlers.metrics import NAMESPACE, tell_errors, tell_figures
from trainmaster.images.service.metrics import ImageJobMetrics, Meter, utilization
from trainmaster.planner.schedule import schedule


@pytest.fixture
def told(capsys):
    """Read CloudWatch's metrics: the values of each (name, dimensions)."""

    def read():
        found = {}
        for line in capsys.readouterr().out.splitlines():
            blob = json.loads(line)
            for part in blob["_aws"]["CloudWatchMetrics"]:
                if part["Namespace"] != NAMESPACE:
                    continue
                (names,) = part["Dimensions"]
                for metric in part["Metrics"]:
                    key = (metric["Name"], metric["Unit"], *(f"{name}={blob[name]}" for name in sorted(names)))
                    values = blob[metric["Name"]]
                    found.setdefault(key, []).extend(values if isinstance(values, list) else [values])
        return found

    return read


OPERATION = "Operation=Scheduling"


def test_each_figure_is_written_for_the_guides_alarms_and_for_each_endpoint(told, monkeypatch):
    """The guide's alarms ask for `Operation` alone, and CloudWatch adds nothing up."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    tell_figures(
        ImageJobMetrics(
            throttles={"ships": 3},
            requests=5,
            utilization={"ships": 100.0, "cars": 25.0},
            buffered=9,
            visible=4,
            milliseconds=120.5,
        )
    )
    assert told() == {
        ("Invocations", "Count", OPERATION): [1],
        ("Duration", "Milliseconds", OPERATION): [120.5],
        ("ApproximateNumberOfRequestsBuffered", "Count", OPERATION): [9],
        ("ApproximateNumberOfRequestsVisible", "Count", OPERATION): [4],
        ("Throttles", "Count", OPERATION): [3],
        ("Requests", "Count", OPERATION): [5],
        ("Throttles", "Count", "ModelName=ships", OPERATION): [3],
        ("Throttles", "Count", "ModelName=cars", OPERATION): [0],
        ("Utilization", "Percent", OPERATION): [100, 25],
        ("Utilization", "Percent", "ModelName=ships", OPERATION): [100],
        ("Utilization", "Percent", "ModelName=cars", OPERATION): [25],
    }


def test_errors_are_written_also_where_there_are_none(told):
    tell_errors([])
    assert told() == {("Errors", "Count", OPERATION): [0]}
    tell_errors(["ships"])
    assert told() == {("Errors", "Count", OPERATION): [1], ("Errors", "Count", "ModelName=ships", OPERATION): [1]}


def a_pass(meter, snapshot, seconds=0):
    now = b.at(seconds)
    plan = schedule(snapshot, now, random.Random(1))
    return meter.figures(snapshot, plan, now, milliseconds=1)


def a_snapshot(active=(), waiting=(), cap=8):
    pool = an_endpoint_pool(cap)
    return b.a_snapshot(active=active, waiting=waiting, pools=[b.a_pool(), pool])


def test_a_job_that_waits_for_capacity_is_throttled_once_however_many_passes_meet_it():
    meter = Meter()
    running = a_running_image("running", 8)
    first = an_image_job("first", 8)
    assert a_pass(meter, a_snapshot([running])).throttles == {}
    assert a_pass(meter, a_snapshot([running], [first])).throttles == {"ships": 1}
    assert a_pass(meter, a_snapshot([running], [first]), 60).throttles == {}
    second = an_image_job("second", 8, entry_time=b.at(70))
    assert a_pass(meter, a_snapshot([running], [first, second]), 80).throttles == {"ships": 1}


def test_another_process_does_not_count_long_waits_again():
    running, waiting = a_running_image("running", 8), an_image_job("waiting", 8)
    assert a_pass(Meter(), a_snapshot([running], [waiting]), 60).throttles == {"ships": 1}
    assert a_pass(Meter(), a_snapshot([running], [waiting]), 120).throttles == {}


def test_throttles_are_a_share_of_the_jobs_that_start_at_once_or_begin_to_wait():
    meter = Meter()
    running, waiting = a_running_image("running", 8), an_image_job("waiting", 8)
    assert a_pass(meter, a_snapshot([running], [waiting])).requests == 1
    assert a_pass(meter, a_snapshot([running], [waiting]), 10).requests == 0
    fresh = an_image_job("fresh", 8, entry_time=b.at(20))
    # The first has room by now: its wait was counted; the other one starts at once.
    figures = a_pass(meter, a_snapshot(waiting=[waiting, fresh], cap=16), 20)
    assert (figures.requests, figures.throttles, figures.visible) == (1, {}, 0)
    assert a_pass(Meter(), a_snapshot(waiting=[waiting]), 200).requests == 0


def test_a_starting_job_counts_as_running_and_not_as_throttled():
    figures = a_pass(Meter(), a_snapshot(waiting=[an_image_job("one", 8)], cap=16))
    assert (figures.throttles, figures.buffered, figures.visible) == ({}, 1, 0)
    assert figures.utilization == {"ships": 50.0}


def test_utilization_is_at_most_a_hundred():
    snapshot = a_snapshot([a_running_image("running", 16)], cap=8)
    assert utilization(snapshot, Plan()) == {"ships": 100.0}


def test_a_pass_without_image_jobs_tells_nothing():
    assert a_pass(Meter(), b.a_snapshot(waiting=[b.a_job()])) is None


def test_the_manager_tells_its_figures_and_its_errors(told):
    world = ImageRunsWorld(takes=4, seconds=200)
    world.endpoints.trouble = Unavailable("down")
    world.enter("one")
    world.run(5)
    world.enter("two")
    world.run(400)
    found = told()
    assert found["Throttles", "Count", OPERATION].count(1) >= 1
    assert max(found["Utilization", "Percent", "ModelName=ships", OPERATION]) == 100
    assert 1 in found["Errors", "Count", "ModelName=ships", OPERATION]
    assert found["Invocations", "Count", OPERATION]
    assert max(found["Duration", "Milliseconds", OPERATION]) < 2_000


def test_a_message_about_an_unknown_run_is_ignored_and_one_without_a_run_is_set_aside():
    world = ImageRunsWorld()
    world.queue.send(json.dumps({"kind": "image", "run": "image:missing"}))
    world.queue.send(json.dumps({"kind": "image", "run": "training-job"}))
    world.queue.send(json.dumps({"kind": "image"}))
    world.settle()
    assert [json.loads(body).get("run") for body, _ in world.queue.aside] == ["training-job", None]
