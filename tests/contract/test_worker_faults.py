"""A node's side of a rendezvous under trouble at DynamoDB: nothing that it does happens twice, and nothing is lost."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from itertools import count

import pytest
from engines import DynamoEngine
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

from samples import sample
from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Unreachable
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import decode
from trainmaster.worker.rendezvous.watching.presence import WATCHERS_SHARD
from trainmaster.worker.rendezvous.world import Identity

RUN = Run("bert", "secret")
FAULTS = (answer_lost, trouble_after, request_lost, throttled, conflict)
HAPPENED = (answer_lost, trouble_after)
"""Faults after which a request has had its effect."""
TWICE = {"mode": "standard", "total_max_attempts": 2}
"""As `worker.rendezvous.dynamodb.CLIENT_CONFIG` has it."""
ONCE = {"mode": "standard", "total_max_attempts": 1}


def a_node(client, table, number, run=RUN, **settings):
    me = Identity(training_job_name=f"bert-m{number}", host="algo-1", incarnation="a1", addr=f"10.0.0.{number}")
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=random.Random(number))
    # Nodes that take turns are never silent for long; no node must look dead here.
    waits = {
        "keep_alive_interval": 60.0,
        "last_call_timeout": 0.0,
        "scale_up_delay": 0.0,
        "poll_interval": 0.01,
        "join_poll_interval": 0.01,
        "max_backoff": 0.02,
    }
    quick = Settings(min_nodes=1, max_nodes=3, **(waits | settings))
    return Engine(Executor(DynamoStateStore(client, table, run), me, quick, clocks), time.sleep)


def together(*steps):
    """Drive these by turns until all have ended; what each came to."""
    ended = {}
    for turn in count():
        assert turn < 2_000, "it does not come to an end"
        for number, each in enumerate(steps):
            if number not in ended:
                try:
                    time.sleep(min(next(each), 0.01))
                except StopIteration as end:
                    ended[number] = end.value
        if len(ended) == len(steps):
            return [ended[number] for number in range(len(steps))]
    return None


def a_life(client, calm, table):
    """A world of one node, one of two, a failure, a word of the first rank, a departure; what is stored after each."""
    one, two, stored = a_node(client, table, 1), a_node(calm, table, 2), []
    reader = DynamoStateStore(calm, table, RUN)

    def note(*worlds):
        state = decode(reader.get_state()[0])
        nodes = {name: (node.role, node.rank, node.since) for name, node in state.nodes.items()}
        records = [(record.round, record.why, record.charged) for record in state.restarts]
        reader.announcements(WATCHERS_SHARD)
        shape = (state.round, state.complete, state.closed, state.arrivals, state.charged, reader.endpoint)
        stored.append((*shape, nodes, records, [(world.round, world.rank, world.size) for world in worlds]))

    note(*together(one.joining()))
    joins = two.joining()
    while not one.status().rejoin:
        next(joins)
    note(*together(one.joining(), joins))
    first = one.joining()  # its part has failed
    while not two.status().rejoin:
        time.sleep(next(first))
    note(*together(first, two.joining()))
    together(one.publishing("10.0.0.1", 29500))
    note()
    assert together(two.awaiting_endpoint()) == [("10.0.0.1", 29500)]
    together(one.sending_heartbeat())
    together(one.leaving())
    note()
    together(two.closing("done"))
    note()
    return stored


@pytest.fixture(scope="module")
def quiet_life(dynoxide_client):
    return a_life(dynoxide_client, dynoxide_client, DynamoEngine(dynoxide_client).name)


@pytest.mark.parametrize("fault", sample(FAULTS))
@pytest.mark.parametrize("way", [(ONCE, 1, 5), (ONCE, 2, 5), (TWICE, 1, 2)], ids=["reads", "others", "botocore"])
def test_whatever_many_requests_of_a_node_meet_all_goes_as_without(dynoxide, dynoxide_client, quiet_life, fault, way):
    """Without botocore's tries every fifth request: three in a row make a change; with them each first try."""
    retries, first, every = way if fault is not conflict else (*way[:2], 5)  # botocore leaves that to its caller
    client = dynoxide.client(retries=retries)
    # botocore waits half a second after each that is throttled, the engine does not.
    few = {1, 5} if fault is throttled and retries is TWICE else None
    disturbed = Disturbed(client, fault, few or set(range(first, 9_999, every)))
    assert a_life(client, dynoxide_client, DynamoEngine(dynoxide_client).name) == quiet_life
    assert disturbed.met >= 2
    client.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_is_told_as_it_is(dynoxide, dynoxide_engine, fault):
    """Once botocore has asked again: as won where it had not happened, else as lost to the very same write."""
    client = dynoxide.client(retries=TWICE)
    store = DynamoStateStore(client, dynoxide_engine.name, RUN)
    for number in (1, 2, 3):
        disturbed = Disturbed(client, fault, {1})
        token, state = number - 1 or None, b"state %d" % number
        if fault is conflict:
            with pytest.raises(Unreachable, match="TransactionConflict"):
                store.set_state(state, token)
        assert store.set_state(state, token) == (state, number, fault not in HAPPENED)
        assert disturbed.met == 1
    assert store.get_state() == (b"state 3", 3)
    client.close()


@pytest.mark.parametrize("fault", HAPPENED)
def test_a_write_whose_answer_was_lost_is_not_repeated_over_what_others_wrote_meanwhile(
    dynoxide, dynoxide_engine, fault
):
    client, calm = dynoxide.client(retries=TWICE), DynamoStateStore(dynoxide_engine.client, dynoxide_engine.name, RUN)
    between, store = Between(client), DynamoStateStore(client, dynoxide_engine.name, RUN)
    Disturbed(client, fault, {1})
    between.acts = {2: lambda: calm.set_state(b"others'", 1)}
    assert store.set_state(b"mine") == (b"others'", 2, False)
    assert calm.get_state() == (b"others'", 2)
    client.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_is_asked_again_or_out_of_reach_and_nothing_else(dynoxide, dynoxide_engine, fault):
    client = dynoxide.client(retries=ONCE)
    store = DynamoStateStore(client, dynoxide_engine.name, RUN)
    store.set_state(b"one")
    Disturbed(client, fault, {1})
    if fault is not conflict:  # reads never meet one
        with pytest.raises(Unreachable):
            store.get_state()
    assert store.get_state() == (b"one", 1)
    client.close()


@pytest.mark.parametrize("fault", [killed_before, killed_after])
def test_a_node_that_dies_at_any_request_leaves_a_row_that_others_go_on_from(dynoxide, dynoxide_engine, fault):
    """Another node may be in a world with the dead one, until that has been silent for long enough; then it goes on."""
    for number in range(1, 7):
        client, run = dynoxide.client(retries=TWICE), Run(f"bert-{number}", "secret")
        Disturbed(client, fault, {number})
        first = a_node(client, dynoxide_engine.name, 1, run, keep_alive_interval=0.1)
        with suppress(Killed):
            first.join()
            first.leave()
        second = a_node(dynoxide_engine.client, dynoxide_engine.name, 2, run, keep_alive_interval=0.1)
        while (world := second.join()).size > 1:
            while not second.status().rejoin:
                time.sleep(0.02)
        assert world.rank == 0
        assert [*second.state.members()] == ["bert-m2/algo-1#a1"]
        client.close()
