"""An attacker with the victim's own execution role: it may write any row of the table, but knows no secret of a run.

Nodes that leave end with exit code 0, which SageMaker reports as a completed job: so only the queue and the nodes
of a run may have them do so, and only they may tell the queue that they have.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from dataclasses import replace

import pytest

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl, row_of_run
from trainmaster.adapters.dynamodb.rendezvous.run_keys import SECRET, RunKeys
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.elastic.rendezvous import Control, Run
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.worker.rendezvous import run as worker
from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Drained, Unreachable, Unverified
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import State, decode, encode
from trainmaster.worker.rendezvous.watching.presence import Presence, Want, encode_presence, summary_of
from trainmaster.worker.rendezvous.world import Identity

ROLE = "arn:aws:iam::111122223333:role/training"
RUN, MINE = Run("bert", ROLE), Run("attacker", ROLE)
DRAIN = Control(epoch=10**9, min_nodes=1, max_nodes=2, drain=("bert",), grace=0.0)
KEEP = Control(epoch=2, min_nodes=1, max_nodes=2)
STEP = 0.002
"""Seconds between two looks at the clock."""


@pytest.fixture
def table(dynoxide_engine):
    return Table(dynoxide_engine.client, dynoxide_engine.name, threading.Event().wait)


@pytest.fixture
def groups(table):
    """The queue, which for once keeps its secret in the same table: the attacker of this file does not read it."""
    return DynamoRendezvousControl(table, SystemClock(), RunKeys(table))


@pytest.fixture
def node(table, groups):
    """The victim's one node, at work."""
    return a_node(table, groups.key(RUN))


def a_node(table, key):
    store = DynamoStateStore(table.client, table.name, worker.Run(RUN.name, key, RUN.role))
    me = Identity(training_job_name="bert", host="algo-1", incarnation="a1b2", addr="10.0.0.1", slots=8)
    quick = Settings(min_nodes=1, max_nodes=2, last_call_timeout=0.0, poll_interval=STEP / 2, close_timeout=0.1)
    made = an_engine(store, me, quick)
    made.join()
    return made


def an_engine(store, me, settings):
    """Return an engine whose clock moves by a step with each look, so that each status is read from the table."""
    looks = (number * STEP for number in itertools.count())
    clocks = Clocks(monotonic=lambda: next(looks), wall=time.time, rng=random.Random(1))
    return Engine(Executor(store, me, settings, clocks), lambda seconds: None)


def forged_closed(row):
    """The victim's state as if its job were done."""
    state = decode(bytes(row["st"]["B"]))
    return encode(replace(state, closed=True, reason="done"))


def works_on(node):
    """Return True if a node sees no reason to leave in three reads."""
    for _ in range(3):
        status = node.status()
        if status.drain or status.rejoin or status.closed is not None:
            return False
    return True


def test_a_forged_drain_makes_no_node_leave(table, groups, node):
    own = DynamoRendezvousControl(table, SystemClock(), lambda _: "guessed")
    own.set(RUN, DRAIN)
    assert works_on(node)
    table.set(row_of_run(RUN), controlMac=b"")
    assert works_on(node)
    groups.set(RUN, Control(epoch=3, min_nodes=1, max_nodes=2, drain=("bert",)))
    assert not works_on(node), "the queue itself is believed"
    with pytest.raises(Drained):
        node.join()


def test_a_forged_end_makes_no_node_leave_and_the_queue_does_not_believe_it(table, groups, node):
    row = table.get(row_of_run(RUN))
    table.set(row_of_run(RUN), st=forged_closed(row), rev=int(row["rev"]["N"]) + 1)
    assert works_on(node)
    with pytest.raises(Unverified):
        node.fenced()
    with pytest.raises(UnreadableRendezvous):
        groups.get(RUN)


def test_a_state_that_was_signed_for_another_run_or_revision_is_none_of_this_one(table, groups, node):
    row, own = table.get(row_of_run(RUN)), worker.Run(MINE.name, groups.key(MINE), ROLE)
    closed, revision = forged_closed(row), int(row["rev"]["N"]) + 1
    table.set(row_of_run(RUN), st=closed, rev=revision, mac=own.sign_state(closed, revision))
    assert works_on(node)
    table.set(row_of_run(RUN), st=row["st"]["B"], rev=revision, mac=row["mac"]["B"])
    with pytest.raises(Unverified):
        node.fenced()
    with pytest.raises(UnreadableRendezvous):
        groups.get(RUN)


def test_a_control_that_was_for_another_run_is_none_of_this_one(table, groups, node):
    groups.set(MINE, DRAIN)
    stolen = table.get(row_of_run(MINE))
    table.set(row_of_run(RUN), control=stolen["control"]["S"], controlMac=stolen["controlMac"]["B"])
    assert works_on(node)


def test_an_old_control_that_is_put_back_has_no_effect_on_those_who_have_seen_a_newer_one(table, groups, node):
    groups.set(RUN, Control(epoch=1, min_nodes=1, max_nodes=2, drain=("bert",)))
    old = table.get(row_of_run(RUN))
    groups.set(RUN, KEEP)
    assert works_on(node)
    table.set(row_of_run(RUN), control=old["control"]["S"], controlMac=old["controlMac"]["B"])
    assert works_on(node)


@pytest.mark.parametrize(
    "attributes", [{"st": "text"}, {"mac": "text"}, {"rev": "text"}, {"st": b"\0" * 300_000}, {"control": 7}]
)
def test_garbage_in_the_row_ends_no_node_that_works(table, groups, node, attributes):
    table.set(row_of_run(RUN), **attributes)
    assert works_on(node)
    if attributes.keys() & {"st", "mac", "rev"}:
        with pytest.raises(UnreadableRendezvous):
            groups.get(RUN)


@pytest.mark.parametrize("name", ["bert/algo-1#a1b2", "bert-m1/algo-1#c3d4", "endpoint"])
@pytest.mark.parametrize("key", ["guessed", "of another run"])
def test_forged_announcements_end_no_node_that_works(table, groups, node, name, key):
    """They ask to leave and to close, and tell of a later round that others watch."""
    seen = summary_of(State(round=99, shards=1), 99, 99)
    closes = Presence(name=name, addr="10.0.0.9", slots=1, beat=10**6, want=Want.LEAVE, after=9, closing="x", sees=seen)
    forger = worker.Run(RUN.name, groups.key(MINE) if key == "of another run" else key, ROLE)
    DynamoStateStore(table.client, table.name, forger).announce(0, name, encode_presence(closes))
    DynamoStateStore(table.client, table.name, forger).announce(1, name, encode_presence(closes))
    assert works_on(node)
    assert not groups.get(RUN).closed


def test_an_announcement_that_is_copied_to_another_node_is_none(table, groups, node):
    store = DynamoStateStore(table.client, table.name, worker.Run(RUN.name, groups.key(RUN), ROLE))
    (name, text), *_ = store.announcements(0).items()
    other = DynamoStateStore(table.client, table.name, worker.Run(RUN.name, groups.key(RUN), ROLE))
    row = table.client.get_item(
        TableName=table.name, Key={"pk": {"S": f"{ROLE}#{RUN.name}#live#0"}, "sk": {"S": name}}
    )["Item"]
    table.client.put_item(TableName=table.name, Item=row | {"sk": {"S": "bert-m2/algo-1#zz"}})
    assert other.announcements(0) == {name: text}


def test_a_node_that_comes_to_a_row_of_others_reports_that_it_cannot_join(table, groups):
    table.set(row_of_run(RUN), st=b"{}", rev=1, mac=b"forged")
    store = DynamoStateStore(table.client, table.name, worker.Run(RUN.name, groups.key(RUN), ROLE))
    me = Identity(training_job_name="bert", host="algo-1", incarnation="a1b2", addr="10.0.0.1")
    quick = Settings(min_nodes=1, max_nodes=2, join_timeout=0.05, max_backoff=0.01)
    with pytest.raises(Unreachable, match="not signed with the secret of this run"):
        an_engine(store, me, quick).join()


def test_the_secret_is_made_once_and_differs_by_run_and_role(table):
    made = iter([b"1" * 32, b"2" * 32])
    first, second = (RunKeys(table, lambda: next(made)) for _ in range(2))
    assert first(RUN) == second(RUN) == first(RUN)
    assert len({first(RUN), first(MINE), first(Run("bert", f"{ROLE}2"))}) == 3
    assert first(RUN) not in str(worker.Run("bert", first(RUN)))


def test_of_two_functions_that_make_the_secret_one_wins(table):
    late = RunKeys(table, lambda: (early(RUN), b"2" * 32)[1])
    early = RunKeys(table, lambda: b"1" * 32)
    assert late(RUN) == early(RUN)


@pytest.mark.parametrize("secret", ["text", b"", b"short", 7])
def test_a_secret_that_cannot_be_read_is_reported_and_not_used(table, secret):
    table.set(SECRET, secret=secret)
    with pytest.raises(UnreadableRendezvous, match="secret"):
        RunKeys(table)(RUN)
