"""The dashboard of image jobs against what the functions write: each metric and each field of a query exists."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import StringIO

import pytest
from scripts.render_template import beside, document_of

from alarms import run, written
from image_runs_world import ImageRunsWorld
from image_world import ImageWorld, a_record, an_image_request
from rendered import core_stack
from trainmaster.domain.errors import Unavailable
from trainmaster.handlers import manager
from trainmaster.images.handlers import intake, regions

TICK = {"Records": [{"messageId": "1", "body": json.dumps({"kind": "tick", "time": "now"})}]}
AWS_METRICS = {
    "AWS/Lambda": {"ConcurrentExecutions", "Duration", "Errors", "Throttles"},
    "AWS/SQS": {
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesVisible",
    },
    "AWS/SageMaker": {"Invocation4XXErrors", "Invocation5XXErrors", "Invocations", "ModelLatency"},
}
"""Metrics of AWS's services (their developer guides, "metrics")."""
SEARCH = re.compile(r"SEARCH\('\{([\w/]+),([\w,]+)\} MetricName=\"(\w+)\"( Operation=\"Scheduling\")?', '(\w+)', 300\)")

pytestmark = pytest.mark.usefixtures("quiet")


def stack(**parameters):
    return beside(core_stack(), document_of("images/template.yaml"), **({"Dashboard": "true"} | parameters))


def dashboard(**parameters):
    return json.loads(stack(**parameters).resources["ImageDashboard"]["Properties"]["DashboardBody"])["widgets"]


def rows():
    return [row for widget in dashboard() if widget["type"] == "metric" for row in widget["properties"]["metrics"]]


@pytest.fixture(scope="module")
def found():
    """Return the metrics of a day on which a job waits, an endpoint cannot be described, and a request comes in."""
    world = ImageRunsWorld(takes=4)
    for name in ("one", "two"):
        world.enter(name)
    world.endpoints.trouble = Unavailable("SageMaker is down")
    with redirect_stdout(StringIO()) as output:
        run(manager, world.application(), TICK)
        world.run(400)
        run(manager, world.application(), TICK)
        run(intake, ImageWorld(), {"Records": [a_record(1, an_image_request())]})
    return written(output.getvalue())


def test_every_metric_of_ours_on_the_board_is_one_that_the_functions_write(found):
    written_ = {(namespace, name, dimensions) for namespace, name, dimensions in found}
    counted = {("Trainmaster", name, "regions") for name in regions._METRICS.values()}
    plain = [row for row in rows() if isinstance(row[0], str) and not row[0].startswith("AWS/")]
    assert len(plain) >= 9
    for namespace, name, *dimensions, options in plain:
        pairs = dict(zip(dimensions[::2], dimensions[1::2], strict=True))
        by_regions = (namespace, name, pairs.get("service")) in counted and set(pairs) == {"queue", "service"}
        assert by_regions or (namespace, name, frozenset(pairs.items())) in written_, name
        assert options["stat"] in {"Maximum", "Sum", "p99"}


def test_every_search_finds_series_that_are_written(found):
    ours = {(namespace, name, frozenset(key for key, _ in dimensions)) for namespace, name, dimensions in found}
    searches = [SEARCH.fullmatch(row[0]["expression"]).groups() for row in rows() if isinstance(row[0], dict)]
    assert {metric for _, _, metric, _, _ in searches} >= {"Utilization", "Throttles", "Errors", "ModelLatency"}
    for namespace, names, metric, _, _ in searches:
        of_aws = metric in AWS_METRICS.get(namespace, ())
        assert of_aws or (namespace, metric, frozenset(names.split(","))) in ours, metric


def test_every_metric_of_aws_on_the_board_is_of_this_stacks_resources():
    here = stack()
    names = {
        "FunctionName": {here.reference("RegionFunction"), here.reference("IntakeFunction")},
        "QueueName": {here.physical_name(each) for each in ("ImageQueue", "ImageDeadLetterQueue", "RegionQueue")},
    }
    of_aws = [row for row in rows() if isinstance(row[0], str) and row[0].startswith("AWS/")]
    assert of_aws
    for namespace, metric, key, value, _ in of_aws:
        assert metric in AWS_METRICS[namespace]
        assert value in names[key]


def test_widgets_do_not_overlap_and_stay_within_the_board():
    cells = [
        (column, row)
        for widget in dashboard()
        for column in range(widget["x"], widget["x"] + widget["width"])
        for row in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) == 23


@pytest.mark.parametrize("source", ["aws.sagemaker", "simulator"])
def test_the_board_shows_every_alarm_of_the_stack(source):
    here = stack(EventSource=source)
    (shown,) = [each["properties"]["alarms"] for each in dashboard(EventSource=source) if each["type"] == "alarm"]
    alarms = [name for name, each in here.resources.items() if each["Type"] == "AWS::CloudWatch::Alarm"]
    assert sorted(shown) == sorted(here.attribute(name) for name in alarms)


def test_the_query_reads_the_logs_of_both_functions():
    (log,) = [each["properties"] for each in dashboard() if each["type"] == "log"]
    for function in ("image-intake", "image-regions"):
        assert f"SOURCE '/aws/lambda/sagemaker-queue-{function}'" in log["query"]


def test_there_is_no_board_unless_it_is_wanted():
    assert "ImageDashboard" not in stack(Dashboard="false").resources
