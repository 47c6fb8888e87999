"""The alarms of the template against what the manager really writes: names, dimensions, units and values."""

from __future__ import annotations

import json

import pytest

from alarms import alarms_of, run, watched, written
from permissions import template
from trainmaster.handlers import manager
from world import World

ALARMS = alarms_of(template())

pytestmark = pytest.mark.usefixtures("quiet")


def test_every_alarm_on_metrics_of_ours_watches_what_the_manager_writes(capsys):
    world = World()
    world.submit("one", training_seconds=300)
    world.run(5)
    world.submit("two", count=2)
    tick = {"messageId": "1", "body": json.dumps({"kind": "tick", "time": "now"})}
    run(manager, world.application(), {"Records": [tick]})
    found = written(capsys.readouterr().out)
    assert ALARMS.keys() >= {"ManagerSilentAlarm", "ManagerFaultsAlarm"}
    for name, alarm in ALARMS.items():
        for metric in watched(alarm):
            assert metric in found, name
