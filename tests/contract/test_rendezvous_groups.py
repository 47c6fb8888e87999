from __future__ import annotations

import json
import threading

import pytest
from groups_contract import BERT, CONTROL, KEY, OTHER, GroupsContract, SpeedsContract, a_state, of_nodes

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import ROW_LIFETIME, SPEED, DynamoRendezvousControl, row_of_run
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.document import value_of
from trainmaster.domain.elastic.rendezvous import Control
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl


class TestMemoryGroups(GroupsContract):
    @pytest.fixture
    def groups(self):
        return MemoryRendezvousControl()

    @pytest.fixture
    def written(self, groups):
        return lambda run, text: groups.set_state(run.name, text)

    @pytest.fixture
    def asked(self, groups):
        return lambda run: groups.controls.get(run.name)


class TestDynamoGroups(GroupsContract):
    @pytest.fixture
    def table(self, dynoxide_engine):
        return Table(dynoxide_engine.client, dynoxide_engine.name, threading.Event().wait)

    @pytest.fixture
    def groups(self, table):
        return DynamoRendezvousControl(table, SystemClock(), lambda _: KEY)

    @pytest.fixture
    def written(self, table):
        """Any node's write; `test_worker_and_manager.py` has the real ones write."""

        def write(run, text):
            row = table.get(row_of_run(run)) or {}
            revision = int(row.get("rev", {"N": "0"})["N"]) + 1
            mac = of_nodes(run).sign_state(text.encode(), revision)
            table.set(row_of_run(run), st=text.encode(), rev=revision, mac=mac)

        return write

    @pytest.fixture
    def asked(self, table):
        def read(run):
            row = table.get(row_of_run(run))
            return row and value_of(Control, json.loads(row["control"]["S"]))

        return read

    def test_the_queue_touches_neither_the_state_nor_its_revision(self, groups, written, table):
        written(BERT, a_state())
        before = table.get(row_of_run(BERT))
        groups.set(BERT, CONTROL)
        after = table.get(row_of_run(BERT))
        assert {name: after[name] for name in before} == before
        assert after.keys() - before.keys() == {"control", "controlMac", "expires"}

    def test_an_abandoned_row_expires(self, groups, table):
        groups.set(BERT, CONTROL)
        left = int(table.get(row_of_run(BERT))["expires"]["N"]) - SystemClock().now().timestamp()
        assert 0 <= ROW_LIFETIME.total_seconds() - left < 60

    def test_a_state_of_another_type_is_told_as_such(self, groups, table):
        table.set(row_of_run(BERT), st="text", rev=1)
        with pytest.raises(UnreadableRendezvous):
            groups.get(BERT)


class TestMemorySpeeds(SpeedsContract):
    @pytest.fixture
    def groups(self):
        return MemoryRendezvousControl()

    @pytest.fixture
    def reported(self, groups):
        return lambda run, text: groups.speeds.update({run.name: text})


class TestDynamoSpeeds(SpeedsContract):
    @pytest.fixture
    def table(self, dynoxide_engine):
        return Table(dynoxide_engine.client, dynoxide_engine.name, threading.Event().wait)

    @pytest.fixture
    def groups(self, table):
        return DynamoRendezvousControl(table, SystemClock(), lambda _: KEY)

    @pytest.fixture
    def reported(self, table):
        def write(run, text):
            table.set((row_of_run(run)[0], SPEED), speed=text, mac=of_nodes(run).sign_speed(text))

        return write

    @pytest.mark.parametrize(
        "row",
        [
            {"speed": '{"instances":4,"perSecond":9}'},
            {"speed": '{"instances":4,"perSecond":9}', "mac": b"forged"},
            {"speed": 4, "mac": b"m"},
            {"mac": b"m"},
        ],
    )
    def test_a_speed_that_no_node_of_the_run_has_signed_is_refused(self, groups, table, row):
        table.set((row_of_run(BERT)[0], SPEED), **row)
        with pytest.raises(UnreadableRendezvous):
            groups.speed(BERT)

    def test_the_speed_of_another_run_is_refused(self, groups, table):
        text = '{"instances":4,"perSecond":9}'
        table.set((row_of_run(BERT)[0], SPEED), speed=text, mac=of_nodes(OTHER).sign_speed(text))
        with pytest.raises(UnreadableRendezvous):
            groups.speed(BERT)
