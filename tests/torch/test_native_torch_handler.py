"""Torch's own engine on our backend: what its integration tests ask, in our words, with handlers in threads."""

from __future__ import annotations

import pickle
import threading
import time

import pytest
from torch.distributed import HashStore
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousGracefulExitError,
    RendezvousParameters,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.torch.backend import DynamoDBRendezvousBackend

PATIENCE = 60


class Joining(threading.Thread):
    """One handler's wait for its world."""

    def __init__(self, handler):
        super().__init__(daemon=True)
        self.handler, self.info, self.error = handler, None, None
        self.start()

    def run(self):
        try:
            self.info = self.handler.next_rendezvous()
        except Exception as error:  # noqa: BLE001  # `world` shows whatever it was
            self.error = error

    def world(self):
        """Rank and size."""
        self.join(PATIENCE)
        assert self.info is not None, self.error
        return self.info.rank, self.info.world_size


@pytest.fixture
def handlers(client, table):
    """A maker of torch's handlers, each as if in a container of its own; all are shut down in the end."""
    store, made = HashStore(), []

    def make(number, min_nodes, max_nodes, *, losing=False, **settings):
        backend = DynamoDBRendezvousBackend(DynamoStateStore(client, table, Run("bert", "secret")))
        # Few attempts where a node is to be lost; elsewhere a busy machine may be late with several heartbeats.
        quick = {"last_call_timeout": 1, "keep_alive_interval": 1, "keep_alive_max_attempt": 3 if losing else 60}
        quick["cas_backoff_max_seconds"] = 0.05  # torch 2.15 pauses so after a write that another came before
        address, conf = f"127.0.0.{number}", quick | settings
        parameters = RendezvousParameters("dynamodb", table, "bert", min_nodes, max_nodes, address, **conf)
        made.append(create_handler(store, backend, parameters))
        return made[-1]

    yield make
    for each in made:
        each._stop_heartbeats()  # on a busy machine, so many of them leave no gap in which one can close
    for each in made:
        each.shutdown()


def lists(handler):
    """Return the addresses of the participants, of those that wait, and of the redundant ones, as stored."""
    data, _ = handler._state_holder._backend.get_state()
    state = pickle.loads(data)  # as torch's own engine reads it
    return tuple(
        sorted(node.addr for node in each) for each in (state.participants, state.wait_list, state.redundancy_list)
    )


def eventually(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_all_nodes_join_one_world_and_close_it_for_good(handlers):
    joining = [Joining(handlers(number, 2, 3)) for number in (1, 2, 3)]
    assert sorted(each.world() for each in joining) == [(0, 3), (1, 3), (2, 3)]
    for each in joining[1:]:
        each.handler._stop_heartbeats()
    assert joining[0].handler.shutdown()
    eventually(joining[1].handler.is_closed)
    with pytest.raises(RendezvousClosedError):
        handlers(4, 2, 3).next_rendezvous()


def test_a_node_without_room_is_spare_and_joins_once_a_node_is_lost(handlers, monkeypatch):
    # With the shared store torch 2.13 publishes its address under the first round's prefix alone: later nodes wait
    # for it forever. Our own handler has no such trouble.
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    first, second = (Joining(handlers(number, 1, 2, losing=True)) for number in (1, 2))
    assert {first.world(), second.world()} == {(0, 2), (1, 2)}
    spare = Joining(handlers(3, 1, 2, losing=True))
    eventually(lambda: lists(first.handler) == (["127.0.0.1", "127.0.0.2"], [], ["127.0.0.3"]))
    assert spare.is_alive()
    assert first.handler.num_nodes_waiting() == 0, "a spare must not disturb the world"
    second.handler._stop_heartbeats()
    eventually(lambda: first.handler.num_nodes_waiting() == 1)
    assert lists(first.handler) == (["127.0.0.1"], ["127.0.0.3"], [])
    again = Joining(first.handler)
    assert {again.world(), spare.world()} == {(0, 2), (1, 2)}
    assert again.handler.num_nodes_waiting() == 0


def test_a_node_with_room_is_waiting_and_a_spare_gives_up_no_place_to_it(handlers, monkeypatch):
    """Upstream's lists: who could join the next round waits, who could not is redundant."""
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    first = Joining(handlers(1, 1, 2))
    assert first.world() == (0, 1)
    assert first.handler.num_nodes_waiting() == 0
    second = Joining(handlers(2, 1, 2))
    eventually(lambda: first.handler.num_nodes_waiting() == 1)
    assert lists(first.handler) == (["127.0.0.1"], ["127.0.0.2"], [])
    again = Joining(first.handler)
    assert {again.world(), second.world()} == {(0, 2), (1, 2)}
    Joining(handlers(3, 1, 2))
    eventually(lambda: lists(first.handler) == (["127.0.0.1", "127.0.0.2"], [], ["127.0.0.3"]))
    assert [each.handler.num_nodes_waiting() for each in (first, second)] == [0, 0]


def test_nodes_without_room_are_spares_for_longer_than_a_join_may_take(handlers, monkeypatch):
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    first, second = Joining(handlers(1, 2, 2)), Joining(handlers(2, 2, 2))
    assert {first.world(), second.world()} == {(0, 2), (1, 2)}
    spares = [Joining(handlers(number, 2, 2, join_timeout=2)) for number in (3, 4)]
    eventually(lambda: lists(first.handler)[2] == ["127.0.0.3", "127.0.0.4"])
    time.sleep(2.5)
    assert [spare.error for spare in spares] == [None, None]
    assert first.handler.num_nodes_waiting() == 0
    first.handler._close()
    for spare in spares:
        spare.join(PATIENCE)
        assert isinstance(spare.error, RendezvousGracefulExitError)


@pytest.mark.parametrize(("opted_out", "shared"), [("0", True), ("1", False)])
def test_the_agents_store_is_shared_unless_the_environment_says_otherwise(handlers, monkeypatch, opted_out, shared):
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", opted_out)
    assert handlers(1, 1, 1).use_agent_store is shared
