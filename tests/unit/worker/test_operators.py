"""Actions that each operator names in each situation: the tables of the article, and the rows that ours add."""

from __future__ import annotations

from dataclasses import replace

import pytest
from views import LEAVING, SPARE, WAITING, forming, presence, view, working

from trainmaster.worker.rendezvous.actions import Action, Payload
from trainmaster.worker.rendezvous.operators import (
    AwaitEndpointOp,
    CloseOp,
    DrainOp,
    ExitOp,
    JoinOp,
    KeepAliveOp,
    PublishEndpointOp,
)
from trainmaster.worker.rendezvous.state import Endpoint, RoundReason
from trainmaster.worker.rendezvous.watching.presence import Want

NOW = 100.0


def join(look, *, after=0, started=NOW, timeout=600.0):
    return JoinOp(after=after, started=started, timeout=timeout)(look)


def closed(state):
    return replace(state, closed=True, reason="done")


class TestKeepAlive:
    def test_it_gives_up_in_time(self):
        dead = {"dead_nodes": "b"}
        assert KeepAliveOp(deadline=NOW - 1)(view(working("a", "b"), **dead)) is Action.ERROR_TIMEOUT
        assert KeepAliveOp(deadline=NOW - 1)(view(working("a", "b"))) is Action.FINISH

    def test_who_takes_no_part_acts_for_nobody(self):
        assert KeepAliveOp(deadline=NOW)(view(working("b", "c"), dead_nodes="c")) is Action.FINISH

    def test_a_closed_rendezvous_needs_no_watchers(self):
        assert KeepAliveOp(deadline=NOW)(view(closed(working("a", "b")), dead_nodes="b")) is Action.FINISH

    def test_who_does_not_lead_leaves_the_group_to_others(self):
        state = working("a", "b", "c", shards=1)
        later = {"leads": False, "growth": 60.0}
        assert KeepAliveOp(deadline=NOW)(view(state, dead_nodes="c", **later)) is Action.FINISH
        assert KeepAliveOp(deadline=NOW)(view(state, drain=("c",), **later)) is Action.FINISH
        assert join(view(forming("abcd", shards=1), dead_nodes="b", **later)) is Action.SYNC
        assert join(view(working("b", "c", others={"a": WAITING}), **later)) is Action.SYNC

    def test_what_followers_ask_for_comes_after_the_dead(self):
        asks = {"requests": (presence("c", Want.JOIN),)}
        assert KeepAliveOp(deadline=NOW)(view(working("a", "b"), **asks)) is Action.ABSORB
        assert KeepAliveOp(deadline=NOW)(view(working("a", "b"), dead_nodes="b", **asks)) is Action.EVICT
        assert join(view(forming("ab"), **asks)) is Action.ABSORB

    def test_a_watcher_completes_the_world_of_a_large_group_whose_nodes_cannot(self):
        come = forming("bcd", missing="a", ranks={"a": 0, "b": 1, "c": 2, "d": 3}, shards=1)
        assert KeepAliveOp(deadline=NOW)(view(come, forming=59.0)) is Action.FINISH
        assert KeepAliveOp(deadline=NOW)(view(come, forming=60.0)) is Action.MARK_RENDEZVOUS_COMPLETE
        assert KeepAliveOp(deadline=NOW)(view(replace(come, shards=0), forming=60.0)) is Action.FINISH

    def test_the_dead_go_before_anything_else(self):
        assert KeepAliveOp(deadline=NOW)(view(working("a", "b", "c"), dead_nodes="c")) is Action.EVICT

    def test_a_drain_is_announced_at_once(self):
        assert KeepAliveOp(deadline=NOW)(view(working("a", "b", "c"), drain=("c",))) is Action.OPEN_ROUND

    def test_a_world_that_is_too_large_by_now_is_announced_at_once(self):
        assert KeepAliveOp(deadline=NOW)(view(working("a", "b", "c"), max_nodes=2)) is Action.OPEN_ROUND

    @pytest.mark.parametrize(("waited", "action"), [(2.9, Action.FINISH), (3.0, Action.OPEN_ROUND)])
    def test_a_newcomer_waits_a_little_for_others(self, waited, action):
        state = working("a", "b", others={"c": WAITING})
        assert KeepAliveOp(deadline=NOW)(view(state, growth=waited)) is action

    def test_new_nodes_stop_waiting_once_all_expected_nodes_are_there(self):
        state = working("a", "b", others={"c": WAITING})
        assert KeepAliveOp(deadline=NOW)(view(state, max_nodes=3)) is Action.OPEN_ROUND

    def test_a_spare_that_fits_no_legal_size_changes_nothing(self):
        state = working("a", "b", others={"c": SPARE})
        assert KeepAliveOp(deadline=NOW)(view(state, sizes=(2, 4), growth=60.0)) is Action.FINISH

    def test_a_spare_is_taken_in_once_the_bounds_allow(self):
        state = working("a", "b", others={"c": SPARE})
        assert view(state, max_nodes=2).due_resize is None
        assert view(state, max_nodes=3).due_resize is RoundReason.GROW
        assert KeepAliveOp(deadline=NOW)(view(state, max_nodes=3)) is Action.OPEN_ROUND


class TestClose:
    @pytest.mark.parametrize(
        ("state", "deadline", "action"),
        [
            (closed(working("a", "b")), NOW - 1, Action.FINISH),
            (working("a", "b"), NOW - 1, Action.ERROR_TIMEOUT),
            (working("a", "b"), NOW, Action.MARK_RENDEZVOUS_CLOSED),
            (forming("a"), NOW, Action.MARK_RENDEZVOUS_CLOSED),
        ],
    )
    def test_it_is_closed_once(self, state, deadline, action):
        assert CloseOp(deadline=deadline, payload=Payload(reason="done"))(view(state)) is action


class TestExit:
    @pytest.mark.parametrize(
        ("state", "deadline", "action"),
        [
            (working("a", "b"), NOW, Action.REMOVE_FROM_PARTICIPANTS),
            (working("a", "b"), NOW - 1, Action.ERROR_TIMEOUT),
            (forming("ab"), NOW, Action.REMOVE_FROM_PARTICIPANTS),
            (working("b", "c", others={"a": WAITING}), NOW, Action.REMOVE_FROM_WAIT_LIST),
            (working("b", "c", others={"a": SPARE}), NOW, Action.REMOVE_FROM_WAIT_LIST),
            (working("b", "c", others={"a": LEAVING}), NOW, Action.REMOVE_FROM_WAIT_LIST),
            (working("b", "c"), NOW - 1, Action.FINISH),
        ],
    )
    def test_a_node_goes_whatever_it_is(self, state, deadline, action):
        assert ExitOp(deadline=deadline)(view(state)) is action


class TestDrain:
    @pytest.mark.parametrize(
        ("state", "drain", "deadline", "action"),
        [
            (working("a", "b", "c"), ("a",), NOW, Action.MARK_LEAVING),
            (working("a", "b", "c"), ("a",), NOW - 1, Action.ERROR_TIMEOUT),
            (working("a", "b", "c"), ("b",), NOW, Action.FINISH),
            (working("b", "c", others={"a": LEAVING}), ("a",), NOW, Action.FINISH),
            (working("b", "c"), ("a",), NOW, Action.FINISH),
            (closed(working("a", "b", "c")), ("a",), NOW, Action.FINISH),
        ],
    )
    def test_who_is_asked_to_leave_says_so_once(self, state, drain, deadline, action):
        assert DrainOp(deadline=deadline)(view(state, drain=drain)) is action

    def test_the_watchers_mark_a_follower(self):
        state = working("a", "b", "c", shards=1)
        assert DrainOp(deadline=NOW)(view(state, drain=("a",), leads=False, follows=True)) is Action.FINISH


class TestJoin:
    def test_a_closed_rendezvous_admits_no_node(self):
        assert join(view(closed(working("b", "c")))) is Action.ERROR_CLOSED

    def test_a_member_of_a_new_world_has_what_it_wants(self):
        assert join(view(working("a", "b", round_=4)), after=3) is Action.FINISH

    def test_a_member_that_asks_again_while_its_world_works_opens_the_next_round(self):
        assert join(view(working("a", "b", round_=3)), after=3) is Action.OPEN_ROUND

    @pytest.mark.parametrize("others", [{"c": WAITING}, {"c": SPARE}])
    def test_who_waits_beside_a_world_never_runs_out_of_time(self, others):
        state = working("a", "b", others=others)
        assert join(view(state, "c", max_nodes=2, now=1e6)) is Action.SYNC

    def test_who_has_waited_too_long_for_a_world_goes_and_then_gives_up(self):
        late = {"now": NOW + 601.0, "forming": 700.0}
        assert join(view(forming("a"), **late)) is Action.REMOVE_FROM_PARTICIPANTS
        assert join(view(forming("b"), **late)) is Action.ERROR_TIMEOUT

    def test_the_timeout_restarts_when_the_working_world_ends(self):
        assert join(view(forming("a"), now=NOW + 10_000.0, forming=599.0)) is Action.SYNC

    @pytest.mark.parametrize(
        ("most", "sizes", "action"),
        [(3, (), Action.ADD_TO_WAIT_LIST), (2, (), Action.ADD_TO_SPARES), (4, (2, 4), Action.ADD_TO_SPARES)],
    )
    def test_a_newcomer_beside_a_world_waits_for_the_next_or_is_spare(self, most, sizes, action):
        assert join(view(working("b", "c"), max_nodes=most, sizes=sizes)) is action

    def test_a_node_that_was_evicted_is_a_newcomer(self):
        assert join(view(working("b", "c", round_=5)), after=4) is Action.ADD_TO_WAIT_LIST

    def test_a_node_with_a_cancelled_drain_joins_again(self):
        assert join(view(working("b", "c", others={"a": LEAVING}))) is Action.ADD_TO_WAIT_LIST

    @pytest.mark.parametrize("state", [forming("b"), forming("b", missing="a"), forming()])
    def test_a_node_that_has_not_arrived_for_the_round_arrives(self, state):
        assert join(view(state), after=3) is Action.ADD_TO_PARTICIPANTS

    def test_a_drained_node_goes_and_then_ends(self):
        drained = {"drain": ("a",)}
        assert join(view(forming("ab"), **drained)) is Action.REMOVE_FROM_PARTICIPANTS
        assert join(view(working("b", "c", others={"a": SPARE}), **drained)) is Action.REMOVE_FROM_WAIT_LIST
        assert join(view(working("b", "c"), **drained)) is Action.ERROR_DRAINED

    def test_the_dead_go_first(self):
        assert join(view(forming("ab"), dead_nodes="b")) is Action.EVICT

    def test_a_newcomer_announces_itself_when_it_is_time(self):
        state = working("b", "c", others={"a": WAITING})
        assert join(view(state, growth=3.0)) is Action.OPEN_ROUND
        assert join(view(state, growth=2.9)) is Action.SYNC


class TestWhenAWorldIsComplete:
    @pytest.mark.parametrize(("waited", "action"), [(4.9, Action.SYNC), (5.0, Action.MARK_RENDEZVOUS_COMPLETE)])
    def test_the_first_world_waits_for_the_last_call(self, waited, action):
        assert join(view(forming("abc"), legal=waited)) is action

    def test_not_once_all_expected_have_come(self):
        assert join(view(forming("abcd"))) is Action.MARK_RENDEZVOUS_COMPLETE
        assert join(view(forming("abc"), max_nodes=3)) is Action.MARK_RENDEZVOUS_COMPLETE
        assert join(view(forming("ab"), max_nodes=3, sizes=(2, 4))) is Action.MARK_RENDEZVOUS_COMPLETE

    def test_too_few_wait_for_more_however_long_it_takes(self):
        assert join(view(forming("a"), legal=500.0, forming=500.0)) is Action.SYNC

    def test_nodes_of_the_world_before_are_waited_for(self):
        state = forming("ab", missing="c", ranks={"a": 0, "b": 1, "c": 2}, size=3, why=(RoundReason.FAILURE,))
        assert join(view(state, forming=59.0, legal=59.0)) is Action.SYNC
        assert join(view(state, forming=60.0)) is Action.MARK_RENDEZVOUS_COMPLETE

    def test_those_that_are_to_leave_are_not(self):
        state = forming("ab", missing="c", ranks={"a": 0, "b": 1, "c": 2}, size=3, why=(RoundReason.DRAIN,))
        assert join(view(state, drain=("c",))) is Action.MARK_RENDEZVOUS_COMPLETE

    def test_a_round_completes_once_all_remaining_nodes_are_back(self):
        state = forming("ab", ranks={"a": 0, "b": 1}, size=2, why=(RoundReason.FAILURE,))
        assert join(view(state)) is Action.MARK_RENDEZVOUS_COMPLETE

    @pytest.mark.parametrize("why", [RoundReason.LOSS, RoundReason.DEPARTURE])
    def test_after_a_loss_a_replacement_is_waited_for(self, why):
        state = forming("ab", ranks={"a": 0, "b": 1}, size=3, why=(why,))
        assert join(view(state, lost=29.0)) is Action.SYNC
        assert join(view(state, lost=30.0)) is Action.MARK_RENDEZVOUS_COMPLETE

    def test_not_once_it_has_come_nor_where_the_scheduler_expects_none(self):
        state = forming("abd", ranks={"a": 0, "b": 1}, size=3, why=(RoundReason.LOSS,))
        assert join(view(state)) is Action.MARK_RENDEZVOUS_COMPLETE
        state = forming("ab", ranks={"a": 0, "b": 1}, size=3, why=(RoundReason.LOSS,))
        assert join(view(state, max_nodes=2)) is Action.MARK_RENDEZVOUS_COMPLETE

    def test_a_new_group_in_place_of_one_that_is_all_lost_has_its_last_call(self):
        state = forming("de", round_=9, size=2, why=(RoundReason.LOSS,))
        assert join(view(state, "d", legal=4.0)) is Action.SYNC
        assert join(view(state, "d", legal=5.0)) is Action.MARK_RENDEZVOUS_COMPLETE


class TestEndpoint:
    HERE = Endpoint(round=3, host="10.0.0.1", port=29500)

    def test_the_first_rank_says_where_it_listens(self):
        assert PublishEndpointOp(endpoint=self.HERE)(view(working("a", "b"))) is Action.PUBLISH_ENDPOINT
        assert PublishEndpointOp(endpoint=self.HERE)(view(working("a", "b"), endpoint=self.HERE)) is Action.FINISH

    def test_the_others_wait_for_it(self):
        wait = AwaitEndpointOp(round=3, deadline=NOW)
        assert wait(view(working("b", "a"))) is Action.SYNC
        assert wait(view(working("b", "a"), dead_nodes="b")) is Action.EVICT
        assert wait(view(working("b", "a"), endpoint=self.HERE)) is Action.FINISH
        assert wait(view(working("b", "a"), now=NOW + 1)) is Action.ERROR_TIMEOUT

    def test_one_of_an_earlier_round_is_none(self):
        old = replace(self.HERE, round=2)
        assert AwaitEndpointOp(round=3, deadline=NOW)(view(working("b", "a"), endpoint=old)) is Action.SYNC

    @pytest.mark.parametrize(
        ("state", "action"),
        [
            (forming("ab"), Action.ERROR_LOST),
            (working("a", "b", round_=4), Action.ERROR_LOST),
            (working("b", "c"), Action.ERROR_LOST),
            (closed(working("a", "b")), Action.ERROR_CLOSED),
        ],
    )
    def test_neither_goes_on_in_a_world_that_is_over(self, state, action):
        assert PublishEndpointOp(endpoint=self.HERE)(view(state)) is action
        assert AwaitEndpointOp(round=3, deadline=NOW)(view(state)) is action
