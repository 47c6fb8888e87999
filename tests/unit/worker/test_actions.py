"""Effect of each action on the state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from views import LEAVING, MEMBER, SPARE, WAITING, forming, key, node, presence, view, working

from trainmaster.worker.rendezvous.actions import CHANGES, Action, Payload, apply
from trainmaster.worker.rendezvous.state import MAX_RECORDS, RoundReason, RoundRecord, State, decode, encode
from trainmaster.worker.rendezvous.watching.presence import Want


def done(action, look, **payload):
    return apply(action, look, Payload(**payload))


def roles(state):
    return {name[0]: each.role for name, each in state.nodes.items()}


def ranks(state):
    return {name[0]: each.rank for name, each in state.members().items()}


def completed(look):
    return done(Action.MARK_RENDEZVOUS_COMPLETE, look)


def test_the_others_change_nothing():
    ends = {action for action in Action if action.name.startswith("ERROR")} | {Action.SYNC, Action.FINISH}
    ends |= {Action.PUBLISH_ENDPOINT}
    assert set(Action) == set(CHANGES) | ends


class TestComing:
    def test_a_newcomer_takes_part_without_a_rank(self):
        after = done(Action.ADD_TO_PARTICIPANTS, view(State()))
        mine = after.nodes[key("a")]
        assert (mine.role, mine.rank, mine.since, mine.addr) == (WAITING, None, 1, "10.0.0.a")
        assert (after.arrivals, after.round, after.complete) == (1, 1, False)

    def test_who_comes_again_keeps_its_rank_and_its_place_in_the_queue(self):
        after = done(Action.ADD_TO_PARTICIPANTS, view(forming(missing="ba")))
        mine = after.nodes[key("a")]
        assert (mine.role, mine.rank, mine.since) == (WAITING, 1, 2)
        assert after.arrivals == 20

    @pytest.mark.parametrize(("action", "role"), [(Action.ADD_TO_WAIT_LIST, WAITING), (Action.ADD_TO_SPARES, SPARE)])
    def test_beside_a_world_it_waits_or_is_spare_and_the_world_goes_on(self, action, role):
        after = done(action, view(working("b", "c")))
        assert roles(after) == {"a": role, "b": MEMBER, "c": MEMBER}
        assert (after.round, after.complete) == (3, True)

    def test_rounds_go_on_where_the_row_was_deleted(self):
        assert done(Action.ADD_TO_PARTICIPANTS, view(State(), seen=7)).round == 8
        assert done(Action.ADD_TO_PARTICIPANTS, view(forming("b", round_=7), seen=7)).round == 7


class TestGoing:
    def test_a_member_that_goes_ends_the_world_in_the_same_write(self):
        after = done(Action.REMOVE_FROM_PARTICIPANTS, view(working("a", "b", "c")))
        assert roles(after) == {"b": MEMBER, "c": MEMBER}
        assert (after.round, after.complete, after.why) == (4, False, (RoundReason.DEPARTURE,))

    def test_one_that_was_asked_to_is_no_loss(self):
        after = done(Action.REMOVE_FROM_PARTICIPANTS, view(working("a", "b", "c"), drain=("a",)))
        assert after.why == (RoundReason.DRAIN,)

    def test_one_of_a_round_that_is_being_formed_only_goes(self):
        after = done(Action.REMOVE_FROM_PARTICIPANTS, view(forming("ab", why=(RoundReason.FAILURE,))))
        assert (roles(after), after.round, after.why) == ({"b": WAITING}, 4, (RoundReason.FAILURE,))

    def test_unless_it_was_of_the_world_before(self):
        state = forming("ab", ranks={"a": 0, "b": 1}, why=(RoundReason.FAILURE,))
        assert done(Action.REMOVE_FROM_PARTICIPANTS, view(state)).why == (RoundReason.FAILURE, RoundReason.DEPARTURE)

    def test_who_waits_or_is_spare_goes_and_the_world_goes_on(self):
        after = done(Action.REMOVE_FROM_WAIT_LIST, view(working("b", "c", others={"a": SPARE})))
        assert (roles(after), after.round, after.complete) == ({"b": MEMBER, "c": MEMBER}, 3, True)

    def test_no_round_opens_after_the_end(self):
        state = working("a", "b", closed=True, reason="done")
        after = done(Action.REMOVE_FROM_PARTICIPANTS, view(state))
        assert (after.round, after.complete) == (3, True)

    def test_a_drained_member_says_so_and_the_next_round_begins(self):
        after = done(Action.MARK_LEAVING, view(working("a", "b", "c"), drain=("a",)))
        assert roles(after)["a"] is LEAVING
        assert (after.round, after.complete, after.why) == (4, False, (RoundReason.DRAIN,))

    def test_in_a_round_that_is_being_formed_it_only_says_so(self):
        after = done(Action.MARK_LEAVING, view(forming("b", missing="a", why=(RoundReason.DRAIN,)), drain=("a",)))
        assert (roles(after)["a"], after.round) == (LEAVING, 4)


class TestEviction:
    @pytest.mark.parametrize(
        ("state", "dead", "drain", "why", "round_"),
        [
            (working("a", "b", "c"), "c", (), (RoundReason.LOSS,), 4),
            (working("a", "b", "c"), "bc", ("c",), (RoundReason.LOSS, RoundReason.DRAIN), 4),
            (working("a", "b", "c"), "c", ("c",), (RoundReason.DRAIN,), 4),
            (working("a", "b", others={"c": SPARE}), "c", (), (RoundReason.START,), 3),
            (
                forming("a", missing="b", why=(RoundReason.FAILURE,)),
                "b",
                (),
                (RoundReason.FAILURE, RoundReason.LOSS),
                4,
            ),
            (forming("ab", why=(RoundReason.FAILURE,)), "b", (), (RoundReason.FAILURE,), 4),
            (working("b", "c", others={"a": WAITING}), "c", (), (RoundReason.LOSS,), 4),
        ],
    )
    def test_dead_nodes_are_evicted_and_a_dead_member_is_a_loss(self, state, dead, drain, why, round_):
        after = done(Action.EVICT, view(state, dead_nodes=dead, drain=drain))
        assert not {key(job) for job in dead} & set(after.nodes)
        assert (after.why, after.round, after.complete) == (why, round_, round_ == 3)

    def test_a_world_of_an_illegal_size_is_no_shrink_but_a_loss(self):
        after = done(Action.EVICT, view(working("a", "b", "c", "d"), sizes=(2, 4), dead_nodes="d"))
        assert after.why == (RoundReason.LOSS,)


class TestTheNextRound:
    @pytest.mark.parametrize(
        ("state", "asks", "why"),
        [
            (working("a", "b"), {}, RoundReason.FAILURE),
            (working("a", "b", "c"), {"drain": ("b",)}, RoundReason.DRAIN),
            (working("a", "b", "c"), {"max_nodes": 2}, RoundReason.SHRINK),
            (working("a", "b", others={"c": WAITING}), {}, RoundReason.NEWCOMER),
            (working("a", "b", others={"c": SPARE}), {}, RoundReason.GROW),
        ],
    )
    def test_it_begins_for_the_resize_that_is_due_else_for_a_failure(self, state, asks, why):
        after = done(Action.OPEN_ROUND, view(state, **asks))
        assert (after.round, after.complete, after.why) == (4, False, (why,))
        assert after.nodes == state.nodes

    def test_it_is_above_all_that_this_node_has_seen(self):
        assert done(Action.OPEN_ROUND, view(working("a", "b"), seen=9)).round == 10


class TestTheWorld:
    def test_the_first_has_ranks_in_order_of_arrival(self):
        after = completed(view(forming("cab", round_=1)))
        assert (ranks(after), after.size, after.complete) == ({"c": 0, "a": 1, "b": 2}, 3, True)

    @pytest.mark.parametrize(
        ("before", "come", "most", "expected"),
        [
            ("abc", "abc", 4, "abc"),  # no node changes
            ("abc", "abcd", 4, "abcd"),  # a newcomer is last
            ("abcd", "bcd", 4, "bcd"),  # the first rank is gone: order stays
            ("abcd", "acd", 4, "acd"),
            ("abcd", "acde", 4, "aecd"),  # a newcomer takes the place that is free, the others keep theirs
            ("abcd", "bcde", 4, "ebcd"),  # even the first
            ("abcd", "abcd", 2, "ab"),  # those of the highest ranks have no room
            ("abcd", "ade", 4, "aed"),
        ],
    )
    def test_who_stays_keeps_its_order_and_where_it_can_its_rank(self, before, come, most, expected):
        state = forming(come, ranks={job: rank for rank, job in enumerate(before)}, size=len(before))
        after = completed(view(state, me=come[0], max_nodes=most))
        assert "".join(ranks(after)) == expected
        assert list(ranks(after).values()) == list(range(len(expected)))

    def test_nodes_without_room_are_spare(self):
        after = completed(view(forming("abc"), max_nodes=2))
        assert roles(after) == {"a": MEMBER, "b": MEMBER, "c": SPARE}
        assert after.nodes[key("c")].rank is None

    def test_a_spare_takes_the_place_of_a_lost_node(self):
        state = forming("ab", ranks={"a": 0, "b": 2}, size=3, why=(RoundReason.LOSS,))
        state = State(**{**fields_of(state), "nodes": {**state.nodes, key("s"): node(SPARE, since=9)}})
        assert ranks(completed(view(state, max_nodes=3))) == {"a": 0, "s": 1, "b": 2}

    def test_those_that_leave_and_those_that_never_came_are_not_in_it(self):
        state = forming("ab", missing="cd", ranks={"a": 0, "b": 1, "c": 2, "d": 3}, size=4)
        after = completed(view(state, drain=("d",)))
        assert roles(after) == {"a": MEMBER, "b": MEMBER, "d": LEAVING}
        assert after.nodes[key("d")].rank is None

    @pytest.mark.parametrize(
        ("why", "told", "charged"),
        [
            ((RoundReason.START,), RoundReason.START, False),
            ((RoundReason.FAILURE,), RoundReason.FAILURE, True),
            ((RoundReason.LOSS,), RoundReason.LOSS, True),
            ((RoundReason.DEPARTURE,), RoundReason.DEPARTURE, True),
            ((RoundReason.FAILURE, RoundReason.LOSS), RoundReason.LOSS, True),
            ((RoundReason.DRAIN,), RoundReason.DRAIN, False),
            ((RoundReason.NEWCOMER, RoundReason.LOSS), RoundReason.NEWCOMER, False),
            ((RoundReason.LOSS, RoundReason.SHRINK), RoundReason.SHRINK, False),
            ((RoundReason.GROW, RoundReason.FAILURE), RoundReason.GROW, False),
        ],
    )
    def test_a_round_with_a_resize_in_it_is_never_charged(self, why, told, charged):
        after = completed(view(forming("ab", why=why, charged=5)))
        assert after.restarts == (RoundRecord(round=4, why=told, charged=charged, at=1_800_000_000),)
        assert after.charged == 5 + charged

    def test_the_record_is_bounded_and_the_total_is_not(self):
        old = tuple(RoundRecord(round=1, why=RoundReason.FAILURE, charged=True, at=1) for _ in range(MAX_RECORDS))
        after = completed(view(forming("ab", why=(RoundReason.FAILURE,), restarts=old, charged=70)))
        assert (len(after.restarts), after.restarts[-1].round, after.charged) == (MAX_RECORDS, 4, 71)

    def test_restarts_are_remembered_longer_than_resizes(self):
        """So that a job that is resized often has no more restarts than it may."""
        kinds = [RoundReason.FAILURE, RoundReason.GROW, RoundReason.SHRINK] * MAX_RECORDS
        state = forming("ab", restarts=())
        for number, why in enumerate(kinds):
            old = forming("ab", why=(why,), restarts=state.restarts)
            state = completed(view(replace(old, round=number + 1)))
        assert len(state.restarts) == MAX_RECORDS
        assert [record.round for record in state.restarts] == sorted(record.round for record in state.restarts)
        assert sum(record.charged for record in state.restarts) == MAX_RECORDS - 1
        assert state.restarts[-1].round == len(kinds)


def test_closing_records_the_reason_and_keeps_the_nodes():
    after = done(Action.MARK_RENDEZVOUS_CLOSED, view(working("a", "b")), reason="budget spent")
    assert (after.closed, after.reason, set(after.nodes)) == (True, "budget spent", {key("a"), key("b")})


class TestAbsorbing:
    """Requests of followers are met as if each did it by itself, all in one change."""

    def absorbed(self, state, *requests, **values):
        return done(Action.ABSORB, view(state, requests=requests, **values))

    def test_newcomers_take_part_in_the_order_of_their_announcements(self):
        after = self.absorbed(forming("a"), presence("c", Want.JOIN), presence("b", Want.JOIN))
        assert roles(after) == {"a": WAITING, "b": WAITING, "c": WAITING}
        assert (after.nodes[key("c")].since, after.nodes[key("b")].since, after.arrivals) == (21, 22, 22)
        assert after.nodes[key("c")].addr == "10.0.0.c"

    @pytest.mark.parametrize(("most", "role"), [(4, WAITING), (2, SPARE)])
    def test_beside_a_world_they_wait_or_are_spare(self, most, role):
        after = self.absorbed(working("a", "b"), presence("c", Want.JOIN), presence("d", Want.JOIN), max_nodes=most)
        assert roles(after) == {"a": MEMBER, "b": MEMBER, "c": role, "d": role}
        assert (after.round, after.complete) == (3, True)

    def test_nodes_of_the_previous_world_arrive(self):
        after = self.absorbed(forming("a", missing="bc"), presence("c", Want.JOIN, after=3))
        assert roles(after) == {"a": WAITING, "b": MEMBER, "c": WAITING}

    def test_a_member_that_asks_for_a_world_has_failed_and_all_such_open_one_round(self):
        failed = presence("b", Want.JOIN, after=3), presence("c", Want.JOIN, after=3)
        after = self.absorbed(working("a", "b", "c"), *failed)
        assert (after.round, after.complete, after.why) == (4, False, (RoundReason.FAILURE,))
        assert roles(after) == {"a": MEMBER, "b": WAITING, "c": WAITING}

    def test_who_leaves_is_removed_and_who_has_closed_closes_for_all(self):
        after = self.absorbed(working("a", "b", "c"), presence("b", Want.LEAVE), presence("c", closing="done"))
        assert (after.round, after.why, set(after.nodes)) == (4, (RoundReason.DEPARTURE,), {key("a"), key("c")})
        assert (after.closed, after.reason) == (True, "done")

    def test_a_round_is_above_all_that_the_newcomer_has_seen(self):
        assert self.absorbed(forming("a"), presence("b", Want.JOIN, after=8)).round == 9


@pytest.mark.parametrize(("others", "shards"), [(0, 0), (4, 0), (5, 1), (300, 2)])
def test_a_group_that_is_larger_than_its_watchers_has_partitions_for_followers(others, shards):
    state = working(*(f"n{number}" for number in range(others)))
    assert done(Action.ADD_TO_WAIT_LIST, view(state, max_nodes=200)).shards == shards
    assert done(Action.ADD_TO_WAIT_LIST, view(replace(state, shards=9), max_nodes=200)).shards == 9


@pytest.mark.parametrize("action", CHANGES)
def test_every_change_can_be_stored_and_read_again(action):
    state = working("a", "b")
    if action.name.startswith("ADD"):
        state = working("b", "c")
    if action is Action.MARK_RENDEZVOUS_COMPLETE:
        state = forming("ab")
    after = done(action, view(state, drain=("a",) if action is Action.MARK_LEAVING else ()), reason="x")
    assert decode(encode(after)) == after


def fields_of(state):
    return {name: getattr(state, name) for name in state.__dataclass_fields__}
