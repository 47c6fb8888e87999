"""The alarms of the template against what the manager really writes: names, dimensions, units and values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from alarms import alarms_of, manager_output, watched
from permissions import template

TEMPLATE = template()
ALARMS = alarms_of(TEMPLATE)
ROOT = Path(__file__).parents[2]
COST = (ROOT / "docs" / "explanation" / "cost.md").read_text()
GUIDE = (ROOT / "docs" / "how-to" / "operate.md").read_text()
NUMBERS = {6: "six", 11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen"}


@pytest.fixture(scope="module")
def found():
    return manager_output()[0]


@pytest.mark.parametrize("name", ALARMS)
def test_every_alarm_on_metrics_of_ours_watches_what_the_manager_writes(name, found):
    for metric in watched(ALARMS[name]):
        assert metric in found


def test_what_alarms_watch_has_the_unit_of_their_thresholds(found):
    units = {name: unit for (_, name, dimensions), (unit, _) in found.items() if ("service", "manager") in dimensions}
    named = {"OldestWaitAlarmSeconds": "Seconds", "BudgetAlarmPercent": "Percent"}
    thresholds = {
        alarm["Threshold"]["Ref"]: units[alarm["MetricName"]]
        for alarm in ALARMS.values()
        if isinstance(alarm["Threshold"], dict)
    }
    assert thresholds == named


def test_the_alarm_on_idle_units_needs_every_pass_of_its_minutes_to_leave_some_idle():
    alarm = ALARMS["IdleUnitsAlarm"]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == (
        "Minimum", 60, {"Ref": "IdleUnitsAlarmMinutes"},
    )  # fmt: skip
    assert alarm["Period"] * TEMPLATE["Parameters"]["IdleUnitsAlarmMinutes"]["MaxValue"] <= 86_400, "CloudWatch's limit"


def test_the_page_on_costs_counts_the_alarms_and_the_metrics_of_an_idle_queue():
    always = [
        each
        for each in TEMPLATE["Resources"].values()
        if each["Type"] == "AWS::CloudWatch::Alarm" and "Condition" not in each
    ]
    metrics, lines = manager_output(idle=True)
    for what, count, price in (("alarms", len(always), 0.10), ("custom metrics", len(metrics), 0.30)):
        assert f"| {NUMBERS[count]} {what} | ${count * price:.2f} |" in COST
    assert {line["message"] for line in lines} >= {"pass", "pool", "share"}


def test_the_page_on_costs_has_the_price_of_the_series_by_pool_and_by_share():
    metrics, _ = manager_output(pool_metrics=True)
    for dimension, value in (("pool", "ml.p5.48xlarge"), ("share", "vision")):
        series = [name for _, name, dimensions in metrics if (dimension, value) in dimensions]
        (price,) = re.findall(rf"\$([0-9.]+) for each {dimension}\b", COST)
        assert float(price) == pytest.approx(0.30 * len(series))
        (price,) = re.findall(
            rf"([0-9.]+) dollars(?: a month)? for each\s{dimension}\b",
            TEMPLATE["Parameters"]["PoolMetrics"]["Description"],
        )
        assert float(price) == pytest.approx(0.30 * len(series))


def test_the_operators_guide_has_a_section_for_each_alarm_with_what_to_do():
    alarms = {name for name, each in TEMPLATE["Resources"].items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    sections = re.findall(r"^### `(\w+Alarm)`\n(.*?)(?=^##|\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in sections) == sorted(alarms)
    for name, text in sections:
        parts = re.findall(r"^- \*\*(.+?)\*\*: (\S.*)$", text, re.MULTILINE)
        assert [part for part, _ in parts] == ["Meaning", "Look at", "Do"], name


def test_messages_that_the_operators_guide_quotes_are_those_of_the_manager():
    quoted = re.findall(r"`(?!trainmaster )([a-z]+(?: [a-z]+){2,})`", GUIDE)
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "trainmaster").rglob("*.py"))
    assert len(quoted) >= 5
    for text in quoted:
        assert f'"{text}' in source, text


def test_series_by_pool_and_by_share_are_written_only_if_they_are_wanted():
    dimensions = {name for _, _, named in manager_output()[0] for name, _ in named}
    assert dimensions == {"queue", "service"}
