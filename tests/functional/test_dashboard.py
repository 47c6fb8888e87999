"""The dashboard of the template against what the manager writes: each metric and each field of a query exists."""

from __future__ import annotations

import json
import re

import pytest

from alarms import manager_output
from rendered import core_stack
from world import QUEUE

AWS_METRICS = {
    "AWS/ApiGateway": {"4XXError", "5XXError", "Count", "IntegrationLatency", "Latency"},
    "AWS/Lambda": {"ConcurrentExecutions", "Duration", "Errors", "Invocations", "Throttles"},
    "AWS/SQS": {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible", "NumberOfMessagesSent"},
}
"""Metrics of AWS's services (their developer guides, "metrics")."""
BUILT_IN = {"@timestamp", "@message"}
FUNCTIONS = {"avg", "bin", "ispresent", "latest", "max", "min", "sum"}
WORDS = FUNCTIONS | {"and", "as", "asc", "by", "desc", "fields", "filter", "in", "limit", "or", "sort", "stats"}


def dashboard(pool_metrics="true"):
    stack = core_stack(Dashboard="true", PoolMetrics=pool_metrics, Events="all")
    return json.loads(stack.resources["QueueDashboard"]["Properties"]["DashboardBody"])["widgets"]


def of_type(kind, **options):
    return [widget["properties"] for widget in dashboard(**options) if widget["type"] == kind]


@pytest.fixture(scope="module")
def output():
    return manager_output(pool_metrics=True)


@pytest.fixture(scope="module")
def found(output):
    return output[0]


@pytest.fixture(scope="module")
def lines(output):
    return output[1]


def rows():
    return [row for widget in of_type("metric") for row in widget["metrics"]]


def test_every_metric_of_ours_on_the_board_is_one_that_the_manager_writes(found):
    plain = [row for row in rows() if row[0] == "Trainmaster"]
    assert len(plain) >= 10
    for namespace, name, *dimensions, options in plain:
        pairs = frozenset(zip(dimensions[::2], dimensions[1::2], strict=True))
        assert (namespace, name, pairs) in found
        assert options["stat"] in {"Maximum", "Minimum", "Sum"}


def test_every_search_finds_series_that_the_manager_writes(found):
    searches = [row[0]["expression"] for row in rows() if isinstance(row[0], dict)]
    pattern = re.compile(r"SEARCH\('\{(\w+),([\w,]+)\} MetricName=\"(\w+)\" queue=\"([^\"]+)\"', '(\w+)', (\d+)\)")
    shown = set()
    for text in searches:
        namespace, names, metric, queue, _, _ = pattern.fullmatch(text).groups()
        series = [
            dimensions
            for at, name, dimensions in found
            if (at, name) == (namespace, metric) and {key for key, _ in dimensions} == set(names.split(","))
        ]
        assert len(series) >= 2, "one for each pool or share"
        assert all(("queue", queue) in dimensions for dimensions in series)
        shown.add((metric, frozenset(names.split(","))))
    written = {(name, frozenset(key for key, _ in dimensions)) for _, name, dimensions in found}
    assert shown == {(name, keys) for name, keys in written if "service" not in keys}, "each series that costs is shown"


def test_every_metric_of_aws_on_the_board_is_of_this_queues_resources():
    stack = core_stack(Dashboard="true")
    names = {
        "FunctionName": {stack.reference("ManagerFunction"), stack.reference("ApiFunction")},
        "QueueName": {stack.physical_name("WakeQueue")},
        "ApiName": {stack.resources["QueueApi"]["Properties"]["Name"]},
        "Stage": {"prod"},
    }
    of_aws = [row for row in rows() if isinstance(row[0], str) and row[0].startswith("AWS/")]
    assert of_aws
    for namespace, metric, *dimensions, _ in of_aws:
        assert metric in AWS_METRICS[namespace]
        for key, value in zip(dimensions[::2], dimensions[1::2], strict=True):
            assert value in names[key]


def test_every_query_reads_fields_of_lines_that_the_manager_writes(lines):
    queries = [widget["query"] for widget in of_type("log")]
    assert queries
    for query in queries:
        source, *stages = query.split(" | ")
        assert source == f"SOURCE '/aws/lambda/{QUEUE}-manager'"
        chosen = [line for line in lines if selects(query, line)]
        assert chosen, query
        for field in fields_of(stages):
            values = [value_of(line, field) for line in chosen]
            assert any(value is not None for value in values), (query, field)
            if f"avg({field})" in query or f"sum({field})" in query:
                assert all(type(value) in {int, float} for value in values if value is not None)


def test_the_board_has_no_widget_on_series_that_are_not_written():
    free = of_type("metric", pool_metrics="false")
    assert free
    assert not [row for widget in free for row in widget["metrics"] if isinstance(row[0], dict)]


def test_widgets_do_not_overlap_and_stay_within_the_board():
    cells = [
        (column, row)
        for widget in dashboard()
        for column in range(widget["x"], widget["x"] + widget["width"])
        for row in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) == 23


@pytest.mark.parametrize("events", ["none", "all"])
def test_the_board_shows_every_alarm_of_the_stack(events):
    stack = core_stack(Dashboard="true", Events=events, NotificationTopicArn="")
    body = json.loads(stack.resources["QueueDashboard"]["Properties"]["DashboardBody"])
    (shown,) = [widget["properties"]["alarms"] for widget in body["widgets"] if widget["type"] == "alarm"]
    alarms = [name for name, each in stack.resources.items() if each["Type"] == "AWS::CloudWatch::Alarm"]
    assert sorted(shown) == sorted(stack.attribute(name) for name in alarms)


def test_there_is_no_board_unless_it_is_wanted():
    assert "QueueDashboard" not in core_stack().resources


def fields_of(stages):
    """Return the fields that a query reads, without the names that it gives itself."""
    given = {name for stage in stages for name in re.findall(r"\bas (\w+)", stage)}
    bare = " ".join(re.sub(r"'[^']*'|\bbin\(\w+\)|\bas \w+", " ", stage) for stage in stages)
    words = set(re.findall(r"[@A-Za-z_][\w.]*", bare))
    return words - WORDS - BUILT_IN - given


def value_of(line, field):
    """Return the value of a field; a list has as many fields as members, of which the first stands for all."""
    name, _, index = field.partition(".")
    value = line.get(name)
    if not index:
        return value
    return value[0] if isinstance(value, list) and value else None


def selects(query, line):
    """Return whether the filter of a query selects a line, as far as it compares `message` and `level` with texts."""
    for field, text in re.findall(r"(message|level) = '([^']+)'", query):
        if line.get(field) != text:
            return False
    for field, texts in re.findall(r"(message|level) in \[([^\]]+)\]", query):
        if line.get(field) not in re.findall(r"'([^']+)'", texts):
            return False
    return True
