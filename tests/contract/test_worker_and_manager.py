"""Nodes and the queue share no code, yet each reads what the other writes."""

from __future__ import annotations

import random
import threading
import time
import zlib
from dataclasses import asdict

import pytest

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl
from trainmaster.adapters.dynamodb.rendezvous.run_keys import RunKeys
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.elastic import rendezvous as domain
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.domain.jobs import attempt
from trainmaster.domain.requests.elastic import bounds as elastic
from trainmaster.worker.container import restart_budget
from trainmaster.worker.progress import TableWriter, instances_of
from trainmaster.worker.rendezvous import state
from trainmaster.worker.rendezvous.control import read_control
from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Corrupt, Drained
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.world import Identity

NAME, ROLE = "bert-qstamp-1", "arn:aws:iam::111122223333:role/training"
RUN = domain.Run(NAME, ROLE)
CONTROLS = [
    domain.Control(epoch=1, min_nodes=1, max_nodes=8),
    domain.Control(
        epoch=7, min_nodes=2, max_nodes=8, sizes=(2, 4, 8), drain=("bert-qstamp-1-m1", "bert-qstamp-1-m2"), grace=90.5
    ),
]


@pytest.fixture
def groups(dynoxide_engine):
    table = Table(dynoxide_engine.client, dynoxide_engine.name, threading.Event().wait)
    return DynamoRendezvousControl(table, SystemClock(), RunKeys(table, lambda: b"s" * 32))


@pytest.fixture
def store(dynoxide_engine, groups):
    return DynamoStateStore(dynoxide_engine.client, dynoxide_engine.name, Run(NAME, groups.key(RUN), ROLE))


def as_json(control):
    """The fields of a control under their names in the row."""
    return asdict(control)


def a_node(store, job, **settings):
    me = Identity(training_job_name=job, host="algo-1", incarnation="a1b2", addr="10.0.0.1", slots=8)
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=random.Random(job))
    quick = Settings(**({"min_nodes": 1, "max_nodes": 2, "last_call_timeout": 0.0, "poll_interval": 0.05} | settings))
    return Engine(Executor(store, me, quick, clocks), time.sleep)


def test_the_queue_reads_the_speed_that_a_node_reports(dynoxide_engine, groups):
    run = Run(NAME, groups.key(RUN), ROLE)
    writer = TableWriter(dynoxide_engine.client, dynoxide_engine.name, run, now=lambda: 1_795_862_400.5)
    writer.write(4, 12.345_678_9)
    assert groups.speed(RUN) == domain.SpeedReport(4, 12.3457, 1_795_862_400.0)
    writer.write(8, 1e-9)
    assert groups.speed(RUN) == domain.SpeedReport(8, 1e-9, 1_795_862_400.0)
    assert groups.get(RUN) is None


def test_without_torchrun_the_size_of_a_speed_is_that_of_the_world(dynoxide_engine, groups, store, monkeypatch):
    """A process of JAX has the round of its world, and not the number of nodes."""
    client = dynoxide_engine.client
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", client.meta.endpoint_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    environ = {
        "TRAINMASTER_HOOK": "members",
        "TRAINMASTER_RUN": NAME,
        "TRAINMASTER_RENDEZVOUS_TABLE": f"{client.meta.region_name}/{dynoxide_engine.name}",
        "TRAINMASTER_RENDEZVOUS_KEY": groups.key(RUN),
        "TRAINMASTER_RENDEZVOUS_ROLE": ROLE,
    }
    assert instances_of({**environ, "TRAINMASTER_ROUND": "1"}) is None
    a_node(store, NAME).join()
    assert instances_of({**environ, "TRAINMASTER_ROUND": "1"}) == 1
    assert instances_of({**environ, "TRAINMASTER_ROUND": "2"}) is None
    assert instances_of(environ) is None


def test_both_know_the_same_roles():
    assert [*domain.Role] == [*state.Role]


def test_both_read_states_of_the_same_size():
    assert state.MAX_STATE_BYTES == domain.MAX_STATE_BYTES
    with pytest.raises(Corrupt, match="at most"):
        state.decode(zlib.compress(b" " * (state.MAX_STATE_BYTES + 1)))
    with pytest.raises(UnreadableRendezvous):
        domain.group_of(zlib.compress(b" " * (state.MAX_STATE_BYTES + 1)))


def test_a_full_restart_is_asked_for_in_words_that_the_queue_knows():
    assert restart_budget.FULL_RESTART_PREFIX == attempt.FULL_RESTART


def test_nodes_remember_as_many_restarts_as_a_bound_can_be_on():
    assert state.MAX_RECORDS > elastic.MAX_COUNTED


@pytest.mark.parametrize("control", CONTROLS)
def test_the_control_reaches_the_nodes_unchanged(groups, store, control):
    groups.set(RUN, control)
    assert store.get_state() is None
    assert as_json(read_control(store.control)) == asdict(control)


def test_a_lost_write_tells_a_node_what_is_asked_as_well(groups, store):
    store.set_state(b"one")
    groups.set(RUN, CONTROLS[0])
    assert store.set_state(b"two", 7) == (b"one", 1, False)
    assert as_json(read_control(store.control)) == asdict(CONTROLS[0])


def test_the_world_that_nodes_form_is_the_group_that_the_queue_sees(groups, store, dynoxide_engine):
    base, member = a_node(store, NAME), a_node(store, f"{NAME}-m1")
    base.join()
    group = groups.get(RUN)
    (node,) = group.nodes
    assert (node.training_job_name, node.host, node.role, node.rank) == (NAME, "algo-1", domain.Role.MEMBER, 0)
    assert (group.round, group.complete, group.closed, group.restarts) == (1, True, False, 0)
    waiting = member.joining()
    while len(groups.get(RUN).nodes) < 2:
        next(waiting)
    assert groups.get(RUN).nodes[1].role in (domain.Role.WAITING, domain.Role.SPARE)
    base.close("enough" * 1_000)
    assert (groups.get(RUN).closed, groups.get(RUN).reason) == (True, ("enough" * 1_000)[: state.MAX_REASON_LENGTH])


def test_a_node_that_is_asked_to_leave_is_no_longer_held(groups, store):
    node = a_node(store, NAME)
    node.join()
    assert groups.get(RUN).holds(NAME)
    groups.set(RUN, domain.Control(epoch=1, min_nodes=1, max_nodes=2, drain=(NAME,)))
    with pytest.raises(Drained):
        node.join()
    assert not groups.get(RUN).holds(NAME)


def test_every_state_that_nodes_can_write_is_read():
    nodes = {
        f"bert/algo-{number}#x{number}": state.Node(addr="10.0.0.1", slots=1, role=role, rank=None, since=number)
        for number, role in enumerate(state.Role)
    }
    written = state.State(
        round=9,
        closed=True,
        reason="over",
        nodes=nodes,
        restarts=(state.RoundRecord(round=8, why=state.RoundReason.LOSS, charged=True, at=1),),
        charged=3,
    )
    group = domain.group_of(state.encode(written))
    assert {node.role for node in group.nodes} == set(domain.Role)
    assert (group.round, group.closed, group.reason, group.restarts) == (9, True, "over", 3)
