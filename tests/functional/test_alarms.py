"""The alarms of template.yaml against what the handlers really write: names, dimensions, units and values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cfnlint.decode import decode

from image_runs_world import ImageRunsWorld
from image_world import Context, ImageWorld, a_record, an_image_request
from trainmaster.domain.errors import Unavailable
from trainmaster.handlers import intake, manager
from world import QUEUE

TEMPLATE, _ = decode(str(Path(__file__).parents[2] / "template.yaml"))
ALARMS = {
    name: each["Properties"]
    for name, each in TEMPLATE["Resources"].items()
    if each["Type"] == "AWS::CloudWatch::Alarm" and not str(each["Properties"].get("Namespace")).startswith("AWS/")
}
"""Those that watch metrics of ours."""

pytestmark = pytest.mark.usefixtures("quiet")


def run(module, application, event):
    """A handler's whole run, as Lambda calls it, but for how it comes to its application."""

    @module.metrics.log_metrics
    def handler(event, context):
        return module.consume(application, event, context)

    try:
        return handler(event, Context())
    finally:
        module.metrics.clear_metrics()


def written(text):
    """What CloudWatch makes of a log: (namespace, metric, its dimensions) to (unit, values)."""
    found = {}
    for line in text.splitlines():
        blob = json.loads(line) if line.startswith('{"_aws"') else {"_aws": {"CloudWatchMetrics": []}}
        for part in blob["_aws"]["CloudWatchMetrics"]:
            for names in part["Dimensions"]:
                dimensions = frozenset((name, blob[name]) for name in names)
                for metric in part["Metrics"]:
                    value = blob[metric["Name"]]
                    key = part["Namespace"], metric["Name"], dimensions
                    found.setdefault(key, (metric["Unit"], []))[1].extend(value if isinstance(value, list) else [value])
    return found


def watched(alarm):
    """The metrics that an alarm watches, as CloudWatch knows them; `QueueName` is the queue of these tests."""
    for each in alarm.get("Metrics", [{"MetricStat": {"Metric": alarm}}]):
        if "MetricStat" in each:
            metric = each["MetricStat"]["Metric"]
            dimensions = frozenset(
                (each["Name"], QUEUE if each["Value"] == {"Ref": "QueueName"} else each["Value"])
                for each in metric["Dimensions"]
            )
            yield metric["Namespace"], metric["MetricName"], dimensions


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
    """What a tick of the manager and a batch of the intake write."""
    tick = {"messageId": "1", "body": json.dumps({"kind": "tick", "time": "now"})}
    run(manager, world.application(), {"Records": [tick]})
    run(intake, ImageWorld(), {"Records": [a_record(1, an_image_request())]})
    return written(capsys.readouterr().out)


def test_every_alarm_on_metrics_of_ours_watches_what_the_handlers_write(told):
    assert {"ManagerSilentAlarm", "ImageThrottlesAlarm", "ImageErrorsAlarm", "ImageDurationAlarm"} <= ALARMS.keys()
    for name, alarm in ALARMS.items():
        for metric in watched(alarm):
            assert metric in told, name


def test_what_the_alarms_set_against_each_other_is_of_the_same_passes(told):
    """Shares are percent of passes; a duration's threshold of 2,000 is two seconds only in milliseconds."""
    (duration,) = (told[metric] for metric in watched(ALARMS["ImageDurationAlarm"]))
    assert duration[0] == "Milliseconds"
    throttles, passes = (sum(told[metric][1]) for metric in watched(ALARMS["ImageThrottlesAlarm"]))
    errors, again = (sum(told[metric][1]) for metric in watched(ALARMS["ImageErrorsAlarm"]))
    assert (throttles, errors, passes, again) == (1, 1, 1, 1)
