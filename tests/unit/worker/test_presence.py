"""Announcements of single nodes, and who watches."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from views import LEAVING, forming, key, presence, working

from trainmaster.worker.rendezvous.errors import Corrupt
from trainmaster.worker.rendezvous.state import Endpoint, Node, Role, RoundReason
from trainmaster.worker.rendezvous.watching.presence import (
    MAX_ANNOUNCEMENT_BYTES,
    WATCHERS,
    Want,
    decode_endpoint,
    decode_presence,
    encode_endpoint,
    encode_presence,
    newest_summary,
    projected,
    shard_of,
    shards_for,
    summary_of,
    tag,
    watchers_of,
)

SEEN = summary_of(working("a", "b", shards=1), 7, 3)
FULL = presence("a", Want.JOIN, after=4, closing="done", sees=SEEN)


def changed(**values):
    return json.dumps(json.loads(encode_presence(FULL)) | values)


class TestTexts:
    @pytest.mark.parametrize("value", [FULL, presence("a")])
    def test_what_is_announced_is_read(self, value):
        assert decode_presence(value.name, encode_presence(value)) == value

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            "[" * 3_000,
            changed(want="whim"),
            changed(beat=-1),
            changed(beat="1"),
            changed(after=True),
            changed(addr=7),
            changed(extra=1),
            changed(sees={"round": 1}),
            changed(sees=json.loads(changed())["sees"] | {"epoch": -1}),
            changed(closing="x" * MAX_ANNOUNCEMENT_BYTES),
        ],
    )
    def test_anything_else_is_refused(self, text):
        with pytest.raises(Corrupt):
            decode_presence(key("a"), text)

    def test_the_endpoint_is_read_as_written_or_refused(self):
        where = Endpoint(round=3, host="10.0.0.1", port=29500)
        assert decode_endpoint(encode_endpoint(where)) == where
        for text in ("", "7", '{"round": 1}', '{"round": 1, "host": 2, "port": 3}'):
            with pytest.raises(Corrupt):
                decode_endpoint(text)


class TestWatchers:
    def group(self, jobs):
        """A group of nodes that came in this order, by training job."""
        nodes = {
            f"{job}/algo-{number}#x": Node(addr="10.0.0.1", slots=1, role=Role.MEMBER, rank=number, since=number + 1)
            for number, job in enumerate(jobs)
        }
        return replace(working(), nodes=nodes, size=len(jobs))

    def test_all_nodes_of_a_small_group_watch(self):
        state = self.group("aab")
        assert set(watchers_of(state)) == set(state.nodes)

    def test_they_are_of_different_training_jobs_where_possible_because_those_end_as_a_whole(self):
        state = self.group("aaaaaabcd")
        assert [name[0] for name in watchers_of(state)] == ["a", "b", "c", "d", "a"]
        assert len(watchers_of(self.group("a" * 9))) == WATCHERS

    def test_the_dead_are_followed_by_the_next(self):
        state = self.group("abcdefgh")
        dead = {tag(name) for name in list(state.nodes)[:5]}
        assert [name[0] for name in watchers_of(state, without=dead)] == ["f", "g", "h"]

    def test_those_that_leave_come_last(self):
        state = working("a", "b", "c", "d", "e", others={"f": LEAVING})
        state = replace(state, nodes=state.nodes | {key("a"): replace(state.nodes[key("a")], role=LEAVING)})
        assert key("a") not in watchers_of(replace(state, nodes={**state.nodes, **working("g").nodes}))


def test_followers_are_spread_over_partitions_each_within_its_limit():
    shards = shards_for(1_024, 1_024)
    counts = [0] * (shards + 1)
    for number in range(1_024):
        counts[shard_of(f"job-m{number}/algo-1#x", shards)] += 1
    assert counts[0] == 0
    assert max(counts) * 2 < 1_000, "each joins with two writes a second"
    assert (shards_for(WATCHERS, 1_024), shards_for(WATCHERS + 1, 8), shards_for(9, 10**9)) == (0, 1, 16)


class TestWhatFollowersKnow:
    def test_the_newest_summary_counts_also_after_the_row_was_deleted(self):
        older, newer = SEEN, replace(SEEN, round=SEEN.round + 1, revision=1)
        assert newest_summary([None, newer, older]) == newer
        assert newest_summary([None]) is None

    def test_a_world_that_was_not_read_yet_counts_as_forming(self):
        state = working("a", "b")
        assert projected(state, summary_of(state, 7, 3)) is state
        later = projected(state, summary_of(replace(state, round=4), 8, 3))
        assert (later.round, later.complete, dict(later.nodes)) == (4, False, dict(state.nodes))

    @pytest.mark.parametrize(("why", "resize"), [(RoundReason.DRAIN, True), (RoundReason.LOSS, False)])
    def test_they_know_whether_there_is_time_for_a_checkpoint(self, why, resize):
        later = projected(working("a", "b"), summary_of(forming("a", why=(why,)), 8, 3))
        assert [reason.is_resize for reason in later.why] == [resize]
