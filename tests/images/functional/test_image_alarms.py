"""The alarms of the stack of image jobs against what the handlers really write: names, dimensions, units and values."""

from __future__ import annotations

import json
import re

import pytest

from alarms import alarms_of, run, watched, written
from image_runs_world import ImageRunsWorld
from image_world import ImageWorld, a_record, an_image_request
from permissions import images_template
from trainmaster.domain.errors import Unavailable
from trainmaster.handlers import manager
from trainmaster.images.handlers import intake

ALARMS = alarms_of(images_template())
TICK = {"Records": [{"messageId": "1", "body": json.dumps({"kind": "tick", "time": "now"})}]}

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(scope="module")
def world():
    """A job that runs, one that waits for room, and an endpoint of which SageMaker says nothing."""
    world = ImageRunsWorld(takes=4)
    world.enter("one")
    world.run(5)
    world.enter("two")
    world.endpoints.trouble = Unavailable("SageMaker is down")
    return world


@pytest.fixture
def told(world, capsys):
    """Return the log of a tick of the manager and of a batch of the intake."""
    run(manager, world.application(), TICK)
    run(intake, ImageWorld(), {"Records": [a_record(1, an_image_request())]})
    return written(capsys.readouterr().out)


def test_every_alarm_on_metrics_of_ours_watches_what_the_handlers_write(told):
    assert {
        "ImageThrottlesAlarm",
        "ImageErrorsAlarm",
        "ImageDurationAlarm",
    } <= ALARMS.keys()
    for name, alarm in ALARMS.items():
        for metric in watched(alarm):
            assert metric in told, name


def test_what_the_alarms_set_against_each_other_is_of_the_same_decisions(told):
    """A pass and a request that was looked at are two decisions; a duration's threshold is in milliseconds."""
    (duration,) = (told[metric] for metric in watched(ALARMS["ImageDurationAlarm"]))
    assert duration[0] == "Milliseconds"
    throttles, requests = (sum(told[metric][1]) for metric in watched(ALARMS["ImageThrottlesAlarm"]))
    errors, decisions = (sum(told[metric][1]) for metric in watched(ALARMS["ImageErrorsAlarm"]))
    assert (throttles, requests, errors, decisions) == (1, 1, 1, 2)


def value(alarm, told):
    """Return the value of an alarm's expression for one period's figures; None if one of them is missing."""
    ids = [each["Id"] for each in alarm["Metrics"] if "MetricStat" in each]
    sums = {name: sum(told[key][1]) for name, key in zip(ids, watched(alarm), strict=True) if key in told}
    (expression,) = (each["Expression"] for each in alarm["Metrics"] if "Expression" in each)
    if sums.keys() < set(ids):
        return None
    found = re.fullmatch(r"IF\((\w+) > 0, 100 \* (\w+) / (\w+), 0\)", expression)
    over, some, all_ = (sums[name] for name in found.groups())
    return 100 * some / all_ if over > 0 else 0


def test_the_alarm_on_errors_sees_that_every_image_fails_though_no_pass_meets_any(capsys):
    world = ImageWorld()
    world.images.headers.clear()
    run(intake, world, {"Records": [a_record(n, an_image_request(f"job{n}")) for n in range(10)]})
    alarm = ALARMS["ImageErrorsAlarm"]
    assert value(alarm, written(capsys.readouterr().out)) == 100 > alarm["Threshold"]


def test_the_alarm_on_errors_is_silent_while_all_goes_well(capsys):
    run(intake, ImageWorld(), {"Records": [a_record(1, an_image_request())]})
    assert value(ALARMS["ImageErrorsAlarm"], written(capsys.readouterr().out)) == 0


def test_the_alarm_on_throttles_tells_the_share_of_the_requests_that_wait_however_many_passes_there_are(capsys):
    """The guide's words: more than half of total requests. Idle passes made a share of them ever smaller."""
    world = ImageRunsWorld(takes=4)
    application = world.application()
    for name in ("one", "two", "three"):
        world.enter(name)
        for _ in range(3):
            run(manager, application, TICK)
    alarm = ALARMS["ImageThrottlesAlarm"]
    assert value(alarm, written(capsys.readouterr().out)) == pytest.approx(200 / 3)
    assert alarm["Threshold"] == 50
