"""Alarms of templates, and the metrics that handlers really write: names, dimensions, units and values."""

from __future__ import annotations

import json

from world import QUEUE


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
