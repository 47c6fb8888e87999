"""The queue's side of a rendezvous under trouble: nodes' writes all the while, every call of its own gone wrong."""

from __future__ import annotations

import json
import threading

import pytest
from faults import (
    Between,
    Disturbed,
    Killed,
    answer_lost,
    conflict,
    killed_after,
    killed_before,
    request_lost,
    throttled,
    trouble_after,
)
from groups_contract import BERT, CONTROL, KEY, ROLE, a_state, of_nodes

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl, row_of_run
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.errors import Throttled, Unavailable, UnreadableRendezvous
from trainmaster.worker.rendezvous.control import read_control
from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore

RUN = BERT
HAPPENED = {answer_lost, trouble_after, killed_after}
"""Faults after which the call has had its effect; after any other it has not."""
ENDS_BY = {throttled: Throttled, killed_before: Killed, killed_after: Killed}
"""Errors of the faults whose outcome the caller knows, or that end the caller."""
FAULTS = (answer_lost, trouble_after, request_lost, throttled, killed_before, killed_after)
VERBS = 8
ONCE = {"mode": "standard", "total_max_attempts": 1}


class Nodes:
    """Nodes that write, each time under the revision of the last write: one that is lost to the queue's shows at once.

    Attributes:
        written: how often they have.
    """

    def __init__(self, engine, run=RUN):
        self._store, self._token, self.written = DynamoStateStore(engine.client, engine.name, of_nodes(run)), None, 0

    def write(self):
        *_, self._token, done = self._store.set_state(a_state(round=self.written + 1).encode(), self._token)
        assert done, "the queue's word has cost a node its write"
        self.written += 1

    def asked(self):
        state, revision = self._store.get_state()
        assert (json.loads(state)["round"], revision) == (self.written, self.written), "the queue has touched the state"
        return self._store.control and read_control(self._store.control).epoch


@pytest.fixture
def nodes(dynoxide_engine):
    return Nodes(dynoxide_engine)


def a_manager(engine, client=None):
    return DynamoRendezvousControl(
        Table(client or engine.client, engine.name, threading.Event().wait), SystemClock(), lambda _: KEY
    )


def control(epoch):
    return type(CONTROL)(epoch=epoch, min_nodes=1, max_nodes=8)


def verbs(nodes, run=RUN):
    """Calls of a manager while nodes write; every call checks its own effect."""
    for epoch in range(1, VERBS // 2 + 1):

        def direct(groups, epoch=epoch):
            groups.set(run, control(epoch))
            assert nodes.asked() == epoch

        def look(groups):
            assert groups.get(run).round == nodes.written

        yield from (direct, look)


@pytest.mark.parametrize(
    ("fault", "numbers"),
    [
        (answer_lost, range(1, 99, 2)),
        (trouble_after, range(1, 99, 2)),
        (request_lost, range(1, 99, 2)),
        (throttled, {1, 4}),  # botocore waits half a second after each
        (conflict, range(1, 99, 2)),
        (conflict, range(2, 99, 2)),
    ],
)
def test_whatever_each_request_of_the_queue_meets_it_is_carried_out_and_no_node_notices(
    dynoxide, dynoxide_engine, nodes, fault, numbers
):
    client = dynoxide.client()
    disturbed = Disturbed(client, fault, set(numbers))
    for verb in verbs(nodes):
        nodes.write()
        verb(a_manager(dynoxide_engine, client))
    assert disturbed.met >= 2
    client.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pass_that_ends_at_any_request_leaves_the_row_to_the_next_one(dynoxide, dynoxide_engine, fault):
    for number in range(1, VERBS + 1):
        client, run = dynoxide.client(retries=ONCE), Run(f"bert-{number}", ROLE)
        disturbed, nodes = Disturbed(client, fault, {number}), Nodes(dynoxide_engine, run)
        for turn, verb in enumerate(verbs(nodes, run), 1):
            nodes.write()
            if turn == number:
                before = nodes.asked() or 0
                with pytest.raises(ENDS_BY.get(fault, Unavailable)):
                    verb(a_manager(dynoxide_engine, client))
                spoke = turn % 2 and fault in HAPPENED
                assert (nodes.asked() or 0) == before + bool(spoke)
                nodes.write()
            verb(a_manager(dynoxide_engine, client))
        assert disturbed.met == 1
        client.close()


@pytest.mark.parametrize("fault", [answer_lost, trouble_after, request_lost])
def test_nodes_that_write_between_the_tries_of_one_word_are_not_undone(dynoxide, dynoxide_engine, nodes, fault):
    client = dynoxide.client()
    between = Between(client)
    Disturbed(client, fault, {1, 2})
    nodes.write()
    between.acts = dict.fromkeys((1, 2, 3), nodes.write)
    a_manager(dynoxide_engine, client).set(RUN, control(5))
    assert (between.acts, nodes.written, nodes.asked()) == ({}, 4, 5)
    client.close()


def test_a_node_writes_under_what_it_has_read_though_the_queue_spoke_in_between(dynoxide, dynoxide_engine):
    """Also where its answer is lost: what it is told then is its own write, with the queue's newest word."""
    client, groups = dynoxide.client(), a_manager(dynoxide_engine)
    between, store = Between(client), DynamoStateStore(client, dynoxide_engine.name, of_nodes(RUN))
    for number in (1, 2, 3):
        between.acts[number] = lambda number=number: groups.set(RUN, control(number))
    assert store.set_state(b"one") == (b"one", 1, True)
    Disturbed(client, answer_lost, {1})
    assert store.set_state(b"two", 1) == (b"two", 2, False)
    assert (between.acts, read_control(store.control).epoch) == ({}, 3)
    client.close()


def test_the_queue_names_neither_the_state_nor_its_revision_and_reads_consistently(dynoxide, dynoxide_engine, nodes):
    client = dynoxide.client()
    between = Between(client)
    for verb in verbs(nodes):
        nodes.write()
        verb(a_manager(dynoxide_engine, client))
    assert len(between.asked) == VERBS
    for name, asked in between.asked:
        assert asked["Key"] == {"pk": {"S": f"{ROLE}#bert"}, "sk": {"S": "state"}}
        if name == "GetItem":
            assert asked["ConsistentRead"] is True
        else:
            assert (name, "ConditionExpression" in asked) == ("UpdateItem", False)
            assert {*asked["ExpressionAttributeNames"].values()} == {"control", "controlMac", "expires"}
    client.close()


GARBAGE = [
    {"st": {"S": a_state()}},
    {"st": {"N": "1"}},
    {"st": {"NULL": True}},
    {"st": {"L": [{"B": a_state().encode()}]}},
    {"st": {"BS": [a_state().encode()]}},
    {"st": {"B": b""}},
    {"st": {"B": b"\x80\x04\x95\x1e\x00cposix\nsystem\n"}},
    {"st": {"B": b"[" * 100_000}},
    {"st": {"B": b"\xff" * 300_000}},
    {"st": {"B": a_state(round=None).encode()}},
    {"st": {"B": a_state(charged="1e999").encode()}},
    {"st": {"B": b'{"round": ' + b"9" * 5_000 + b"}"}},
]


@pytest.mark.parametrize("attributes", GARBAGE, ids=range(len(GARBAGE)))
def test_a_row_of_others_is_told_as_such_and_what_is_asked_is_said_beside_it(dynoxide_engine, attributes):
    groups, key = a_manager(dynoxide_engine), {"pk": {"S": f"{ROLE}#bert"}, "sk": {"S": "state"}}
    unreadable = {**key, **attributes, "rev": {"S": "first"}, "control": {"N": "1"}, "expires": {"S": "never"}}
    dynoxide_engine.client.put_item(TableName=dynoxide_engine.name, Item=unreadable)
    for _ in range(2):
        with pytest.raises(UnreadableRendezvous):
            groups.get(RUN)
        groups.set(RUN, CONTROL)
    row = groups.table.get(row_of_run(RUN))
    assert {name: row[name] for name in (*attributes, "rev")} == {**attributes, "rev": unreadable["rev"]}
    assert json.loads(row["control"]["S"])["epoch"] == CONTROL.epoch


def test_a_row_that_is_deleted_while_the_queue_looks_is_no_group(dynoxide, dynoxide_engine, nodes):
    nodes.write()
    client, groups = dynoxide.client(), a_manager(dynoxide_engine)
    between = Between(client)
    between.acts = {1: lambda: groups.table.delete(row_of_run(RUN))}
    assert a_manager(dynoxide_engine, client).get(RUN) is None
    groups.set(RUN, CONTROL)
    assert groups.get(RUN) is None
    client.close()
