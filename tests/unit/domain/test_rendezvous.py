from __future__ import annotations

import json
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.elastic.rendezvous import (
    MAX_COUNT,
    MAX_NODE_NAME_LENGTH,
    MAX_NODES,
    Node,
    RendezvousState,
    Role,
    group_of,
)
from trainmaster.domain.errors import UnreadableRendezvous

NODE = {"addr": "10.0.0.1", "slots": 8, "role": "member", "rank": 0, "since": 1}
STATE = {"v": 1, "round": 2, "complete": True, "closed": False, "reason": "", "nodes": {}, "charged": 0}


def read(**members):
    return group_of(json.dumps(STATE | members))


def test_nodes_come_in_the_order_of_their_ranks_and_those_without_one_by_name():
    ranks = {"c/algo-1#1": None, "b/algo-2#1": 1, "d/algo-1#1": 0, "a/algo-1#1": None}
    group = read(nodes={name: NODE | {"rank": rank} for name, rank in ranks.items()})
    assert [node.training_job_name for node in group.nodes] == ["d", "b", "a", "c"]


def test_unknown_members_of_a_newer_node_are_kept():
    group = read(nodes={"bert/algo-1#1": NODE | {"zone": "b"}}, epoch=3, v=2)
    assert group.nodes == (Node(training_job_name="bert", host="algo-1", role=Role.MEMBER, rank=0),)


def test_a_role_of_a_newer_node_counts_as_waiting():
    assert read(nodes={"bert/algo-1#1": NODE | {"role": "observer", "rank": None}}).nodes[0].role is Role.WAITING


@pytest.mark.parametrize(
    "members",
    [
        {"nodes": []},
        {"nodes": {"bert/algo-1#1": None}},
        {"nodes": {"bert/algo-1#1": {"rank": 0}}},
        {"nodes": {"bert/algo-1#1": NODE | {"rank": "first"}}},
        {"round": None},
        {"round": float("inf")},
        {"charged": []},
    ],
)
def test_malformed_state_is_an_error_of_its_own(members):
    with pytest.raises(UnreadableRendezvous):
        read(**members)


def test_a_text_nested_too_deeply_is_one_as_well():
    with pytest.raises(UnreadableRendezvous):
        group_of("[" * 100_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    members=st.dictionaries(st.sampled_from([*STATE]), JSON),
    node=st.dictionaries(st.sampled_from([*NODE]), JSON),
    name=st.text(max_size=8),
)
def test_whatever_a_container_writes_there_is_a_group_or_that_error(members, node, name):
    state = STATE | {"nodes": {name: NODE | node}} | members
    try:
        group = group_of(json.dumps(state))
    except UnreadableRendezvous:
        return
    assert isinstance(group, RendezvousState)


@given(st.binary(max_size=30))
def test_bytes_that_are_no_json_are_that_error(text):
    try:
        group_of(text)
    except UnreadableRendezvous:
        return
    raise AssertionError("no bytes of this length are a state")


def many(count, name="m"):
    return {f"{name}{number}/algo-1#1": NODE | {"rank": None} for number in range(count)}


@pytest.mark.parametrize(
    "members",
    [
        {"nodes": many(MAX_NODES + 1)},
        {"nodes": many(1, "n" * MAX_NODE_NAME_LENGTH)},
        {"round": MAX_COUNT + 1},
        {"round": -1},
        {"round": True},
        {"round": 1.5},
        {"charged": "3"},
        {"reason": ["done"]},
        {"nodes": {"bert/algo-1#1": NODE | {"role": 7}}},
        {"nodes": {"bert/algo-1#1": NODE | {"rank": -1}}},
    ],
)
def test_values_beyond_their_bounds_are_malformed(members):
    with pytest.raises(UnreadableRendezvous):
        read(**members)


def test_as_many_nodes_as_there_may_be_are_read():
    assert len(read(nodes=many(MAX_NODES)).nodes) == MAX_NODES


def test_a_long_reason_is_cut():
    assert read(reason="x" * 5_000).reason == "x" * 1_024


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * 99_000 + b"{}]",
        b'{"nodes":{' + b",".join(b'"%d":{}' % number for number in range(25_000)) + b"}}",
        json.dumps(STATE | {"why": [[]] * 90_000}).encode(),
        b" " * 10_000_000 + json.dumps(STATE).encode(),
    ],
    ids=["objects", "nodes", "unknown members", "spaces"],
)
def test_no_text_takes_much_memory(text):
    """A row of 400 KB once took 646 MB."""
    tracemalloc.start()
    try:
        group_of(text)
    except UnreadableRendezvous:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 40_000_000


def test_a_compressed_state_is_read_within_the_same_bounds():
    text = json.dumps(STATE)
    assert group_of(zlib.compress(text.encode())) == group_of(text)
    with pytest.raises(UnreadableRendezvous):
        group_of(zlib.compress(b" " * 10**7))
    with pytest.raises(UnreadableRendezvous):
        group_of(b"x" + zlib.compress(text.encode()))
