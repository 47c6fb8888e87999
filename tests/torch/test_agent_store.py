"""The store that torch's agent gets: it answers from the first rank's host, and does not wait for one that is lost."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import timedelta

import pytest
from torch.distributed import DistError, TCPStore
from torch.distributed.elastic.utils import store as store_util

from trainmaster.worker.rendezvous.errors import RoundLost
from trainmaster.worker.rendezvous.world import Peer, World
from trainmaster.worker.torch.agent_store import AgentStore

ROLE = "torchelastic/role_info/"
RANKS = "torchelastic/assigned_ranks/"


def world(rank, size=2):
    peers = tuple(Peer(name=f"m{n}", rank=n, addr="127.0.0.1", slots=1) for n in range(size))
    return World(round=1, rank=rank, size=size, nodes=peers)


def role(rank, workers=4):
    return json.dumps({"role": "default", "rank": rank, "local_world_size": workers})


class Ending:
    """The end of a world, when the test says so."""

    def __init__(self):
        self.error = None

    def __call__(self):
        return self.error


@pytest.fixture
def ending():
    return Ending()


@pytest.fixture
def server():
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def connected(server, ending, rank=1, size=2):
    port = server.port
    return AgentStore(
        world(rank, size), ending, lambda: TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    )


def test_it_stores_as_torchs_own(server, ending):
    store = connected(server, ending)
    store.set("one", "1")
    store.multi_set(["two", "three"], ["2", "3"])
    assert store.multi_get(["one", "two", "three"]) == [b"1", b"2", b"3"]
    assert (store.add("count", 2), store.add("count", 1)) == (2, 3)
    assert (store.check(["one"]), store.check(["four"])) == (True, False)
    assert store.compare_set("one", "1", "one") == b"one"
    assert store.delete_key("one")
    assert not store.check(["one"])
    assert server.get("two") == b"2"
    assert store.port == server.port


def test_all_ranks_wait_equally_long_for_a_value(server, ending):
    host = AgentStore(world(0), ending, lambda: server)
    other = connected(server, ending)
    assert host.timeout == other.timeout == timedelta(seconds=300)
    with store_util.store_timeout(other, 0.2), pytest.raises(DistError):
        other.get("absent")
    assert other.timeout == timedelta(seconds=300)
    with pytest.raises(DistError):
        other.wait(["absent"], timedelta(seconds=0.2))


def test_real_ranks_are_those_of_the_first_rank(server, ending):
    host, other = AgentStore(world(0), ending, lambda: server), connected(server, ending)
    other.set(f"{ROLE}1", role(1))
    host.set(f"{ROLE}0", role(0))
    assert host.multi_get([f"{ROLE}0", f"{ROLE}1"]) == [role(0).encode(), role(1).encode()]
    host.multi_set([f"{RANKS}0", f"{RANKS}1"], ["[0, 8, 0, 8]", "[4, 8, 4, 8]"])
    assert other.get(f"{RANKS}1") == b"[4, 8, 4, 8]"
    assert not other.is_broken


def test_once_the_host_is_gone_the_ranks_are_provisional_and_complete_no_world(ending):
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store = connected(server, ending)
    store.set(f"{ROLE}1", role(1))
    del server
    assert json.loads(store.get(f"{RANKS}1")) == [4, 8, 4, 8]
    assert store.is_broken
    with pytest.raises(DistError):
        store.get("anything else")


def test_the_first_rank_does_not_wait_for_an_agent_that_is_gone(server, ending):
    store = AgentStore(world(0), ending, lambda: server)
    store.set(f"{ROLE}0", role(0))
    threading.Timer(0.3, lambda: setattr(ending, "error", RoundLost("over"))).start()
    assert [json.loads(each)["rank"] for each in store.multi_get([f"{ROLE}0", f"{ROLE}1"])] == [0, 1]
    store.multi_set([f"{RANKS}0", f"{RANKS}1"], ["[0, 8, 0, 8]", "[4, 8, 4, 8]"])
    assert json.loads(store.get(f"{RANKS}0")) == [0, 8, 0, 8]
    assert store.is_broken


def test_a_host_that_says_nothing_is_waited_for_no_longer_than_its_world(ending):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        threading.Timer(0.5, lambda: setattr(ending, "error", RoundLost("over"))).start()
        began = time.monotonic()
        with pytest.raises(RoundLost):
            AgentStore(world(1), ending, lambda: TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False))
        assert time.monotonic() - began < 5


def test_an_agent_has_finished_once_it_is_at_torchs_exit_barrier(server, ending):
    stores = [connected(server, ending, rank) for rank in (0, 1)]
    assert not stores[0].has_finished
    barriers = [
        threading.Thread(target=store_util.barrier, args=(store, 2, "torchelastic/agent/terminal_state", 20))
        for store in stores
    ]
    for barrier in barriers:
        barrier.start()
    for barrier in barriers:
        barrier.join(20)
    assert [store.has_finished for store in stores] == [True, True]
