"""Alarms of templates, and the metrics that handlers really write: names, dimensions, units and values."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from dataclasses import replace
from datetime import timedelta

from builders import G5, P5
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.policy.settings import Budget, Policy, Share
from trainmaster.handlers import manager
from trainmaster.local.memory.store import MemoryStore
from world import QUEUE, World, a_request


class Context:
    """The Lambda context that handlers look at."""

    function_name = "sagemaker-queue-function"

    def get_remaining_time_in_millis(self):
        return 60_000


def alarms_of(template):
    """The alarms of a template that watch metrics of ours, by name."""
    return {
        name: each["Properties"]
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::CloudWatch::Alarm" and not str(each["Properties"].get("Namespace")).startswith("AWS/")
    }


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
    """Return the metrics in a log as CloudWatch reads them: (namespace, metric, dimensions) to (unit, values)."""
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


def lines_of(text):
    """The log lines of the manager as Logs Insights reads them: JSON objects that are no metrics."""
    parsed = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [line for line in parsed if "_aws" not in line]


@contextlib.contextmanager
def _captured():
    """Capture what the manager prints and logs as in Lambda, even where another test has silenced it."""
    output = io.StringIO()
    stream = manager.logger.registered_handler.setStream(output)
    level, disabled = manager.logger.level, logging.root.manager.disable
    manager.logger.setLevel(logging.INFO)
    logging.disable(logging.NOTSET)
    try:
        with contextlib.redirect_stdout(output):
            yield output
    finally:
        manager.logger.registered_handler.setStream(stream)
        manager.logger.setLevel(level)
        logging.disable(disabled)


def manager_output(*, pool_metrics=False, idle=False):
    """Run the shipped manager on a day with everything that it has metrics for; return its metrics and log lines.

    With `idle` nothing was ever submitted, and there are neither shares nor events.
    """
    with _captured() as output:
        if idle:
            _tick(World(pools=f"{P5}=2"), pool_metrics)
        else:
            _eventful_day(pool_metrics)
    text = output.getvalue()
    return written(text), lines_of(text)


def _tick(world, pool_metrics, *records):
    application = world.application()
    application.settings = replace(application.settings, pool_metrics=pool_metrics)
    bodies = [*records, json.dumps({"kind": "tick", "time": "now"})]
    run(manager, application, {"Records": [{"messageId": str(n), "body": body} for n, body in enumerate(bodies)]})


class _Unavailable(MemoryStore):
    def begin_pass(self):
        raise Unavailable("the table does not answer")


def _eventful_day(pool_metrics):
    budget = Budget(gpu_hours=100, period=timedelta(days=30))
    shares = {"vision": Share(name="vision", nominal={P5: 1}, budget=budget)}
    policy = Policy(shares=shares, reservation_timeout=timedelta(minutes=20))
    world = World(pools=f"{P5}=2,{G5}=1", policy=policy, published="all")
    world.bus.rejects = lambda _number: True
    world.submit("one", training_seconds=9_000)
    world.run(120)
    world.submit("two", count=2)
    world.submit("three", kind=G5)
    tags = {"trainmaster:queue": QUEUE, "trainmaster:job": "orphan", "trainmaster:attempt": "1"}
    orphan = {**a_request("orphan", kind=G5), "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    world.simulator.call("CreateTrainingJob", **orphan)
    world.simulator.advance(30)
    _tick(world, pool_metrics, "neither JSON nor a message")
    world.simulator.advance(30)
    world.submit("urgent", count=2, priority=9)
    _tick(world, pool_metrics)
    world.stores = (_Unavailable, world.stores[1])
    _tick(world, pool_metrics)
