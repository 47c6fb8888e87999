"""A container whose agent was killed removes its own node, and no other container's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from views import identity, key, working

from trainmaster.worker.container.container import Container
from trainmaster.worker.container.departure import remove_nodes
from trainmaster.worker.rendezvous.errors import Corrupt
from trainmaster.worker.rendezvous.state import Role, decode, encode

ENVIRON = {"TRAINMASTER_MIN": "1", "TRAINMASTER_MAX": "4"}


class OneRow:
    """A store of one state in memory."""

    control = endpoint = None

    def __init__(self, state):
        self.data, self.revision = None if state is None else encode(state), 1

    def announcements(self, shard):
        return {}

    def get_state(self, *, consistent=True):
        return None if self.data is None else (self.data, self.revision)

    def set_state(self, state, token=None):
        if token != self.revision:
            return self.data, self.revision, False
        self.data, self.revision = state, self.revision + 1
        return self.data, self.revision, True


def container(job):
    me = identity(job)
    return Container(
        base=Path("/opt/ml"), training_job_name=me.training_job_name, host=me.host, hosts=(me.host,), address=me.addr
    )


def test_only_the_nodes_of_this_container_leave():
    store = OneRow(working("a", "b", "c"))
    assert remove_nodes(store, container("b"), ENVIRON, lambda _: None) == (key("b"),)
    after = decode(store.data)
    assert key("b") not in {name for name, node in after.nodes.items() if node.role is Role.MEMBER}
    assert {key("a"), key("c")} <= set(after.nodes)
    assert not after.closed


@pytest.mark.parametrize(
    "state", [None, working("a"), dataclasses.replace(working("a", "b"), closed=True, reason="done")]
)
def test_where_there_is_nothing_to_leave_nothing_is_written(state):
    store = OneRow(state)
    assert remove_nodes(store, container("b"), ENVIRON, lambda _: None) == ()
    assert store.revision == 1


def test_a_row_that_is_none_of_ours_is_not_touched():
    store = OneRow(None)
    store.data = b"\x80\x04pickle"
    with pytest.raises(Corrupt):
        remove_nodes(store, container("b"), ENVIRON, lambda _: None)
    assert store.revision == 1
