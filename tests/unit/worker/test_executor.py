"""The executor: sync, ask, apply, mark dirty, sync again; and a table that fails in between."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from views import SETTINGS, Row, Ticking, executor, key, presence, working

from trainmaster.worker.rendezvous.actions import Action, Payload
from trainmaster.worker.rendezvous.errors import Closed, Corrupt, Drained, TimedOut, Unreachable
from trainmaster.worker.rendezvous.operators import CloseOp, ExitOp, JoinOp, KeepAliveOp
from trainmaster.worker.rendezvous.state import State, decode, encode
from trainmaster.worker.rendezvous.watching.presence import Want, encode_presence

LOST = Unreachable("no answer")
WATCH = KeepAliveOp(deadline=1e9)


def join(clock, timeout=600.0, after=0):
    return JoinOp(after=after, started=clock.now, timeout=timeout)


def drive(steps, clock):
    """Run a generator of pauses to its end; its value."""
    while True:
        try:
            clock.sleep(next(steps))
        except StopIteration as end:
            return end.value


@pytest.fixture
def row():
    return Row()


@pytest.fixture
def clock():
    return Ticking()


def test_a_change_is_written_by_the_next_step(row, clock):
    node = executor(row, clock)
    assert node.step(join(clock)).action is Action.ADD_TO_PARTICIPANTS
    assert (row.calls, row.data) == (["get"], None)
    assert node.step(join(clock)).action is Action.SYNC
    assert row.calls == ["get", "set"]
    assert key("a") in decode(row.data).nodes


def test_two_nodes_meet(row, clock):
    one, two = executor(row, clock, "a"), executor(row, clock, "b")
    for _ in range(2):
        one.step(join(clock))
    for _ in range(2):
        two.step(join(clock))
    clock.sleep(SETTINGS.last_call_timeout)
    last = two.step(join(clock))
    assert last.action is Action.MARK_RENDEZVOUS_COMPLETE
    assert two.step(join(clock)).action is Action.FINISH
    assert one.step(join(clock)).action is Action.FINISH


def test_the_last_call_ends_on_time_however_far_apart_looks_are(row, clock):
    one, two = executor(row, clock, "a"), executor(row, clock, "b")
    for node in (one, one, two):
        node.step(join(clock))
    began = clock.now
    while (step := two.step(join(clock))).action is Action.SYNC:
        clock.sleep(step.pause)
    assert step.action is Action.MARK_RENDEZVOUS_COMPLETE
    assert clock.now - began == pytest.approx(SETTINGS.last_call_timeout, abs=0.02)
    assert SETTINGS.last_call_timeout % SETTINGS.join_poll_interval > 0.1, "else looks would be on time anyway"


def test_a_conflicting_write_is_decided_again_on_the_stored_state(row, clock):
    one, two = executor(row, clock, "a"), executor(row, clock, "b")
    one.step(join(clock))
    two.step(join(clock))
    one.step(join(clock))  # writes
    assert two.step(join(clock)).action is Action.ADD_TO_PARTICIPANTS  # loses, and sees `a`
    two.step(join(clock))
    assert set(decode(row.data).nodes) == {key("a"), key("b")}


def test_who_loses_twice_in_a_row_steps_back_and_reads_again(row, clock):
    node, other = executor(row, clock, "a"), executor(row, clock, "b")
    node.step(join(clock))
    for _ in range(2):
        other.step(join(clock))
    assert node.step(join(clock)).pause == 0.0
    row.token += 1  # another writer again
    back = node.step(join(clock))
    assert back.action is Action.SYNC
    assert 0.0 < back.pause <= 0.2
    assert node.step(join(clock)).action is Action.ADD_TO_PARTICIPANTS
    assert node.step(join(clock)).action is Action.SYNC
    assert key("a") in decode(row.data).nodes


@pytest.mark.parametrize("limit", [0.0, 0.001])
def test_the_pause_after_lost_writes_is_at_most_the_one_that_is_set(row, clock, limit):
    node = executor(row, clock, "a", replace(SETTINGS, cas_backoff_max_seconds=limit))
    row.conflicts, pauses = True, []
    for _ in range(40):
        step = node.step(join(clock))
        pauses += [step.pause] if step.action is Action.SYNC else []
    assert pauses, "it never stepped back"
    assert max(pauses) <= limit


class TestATableThatDoesNotAnswer:
    def test_a_step_says_when_to_try_again_and_waits_longer_each_time(self, row, clock):
        row.errors = [LOST] * 8
        node = executor(row, clock)
        steps = [node.step(join(clock)) for _ in range(8)]
        assert all(step.action is None and step.error is LOST for step in steps)
        assert steps[0].pause <= 0.4
        assert all(step.pause <= SETTINGS.max_backoff for step in steps)
        assert steps[-1].pause >= SETTINGS.max_backoff / 2

    def test_a_write_whose_answer_was_lost_is_not_made_twice(self, row, clock):
        node = executor(row, clock)
        node.step(join(clock))
        once = row.set_state

        def lost(state, token=None):
            once(state, token)
            row.set_state = once
            raise LOST

        row.set_state = lost
        assert node.step(join(clock)).action is None
        assert node.step(join(clock)).action is Action.SYNC
        assert row.calls == ["get", "set", "get"]
        assert decode(row.data).arrivals == 1

    def test_a_run_gives_up_when_its_patience_is_at_an_end(self, row, clock):
        row.errors = [LOST] * 1000
        began = clock.now
        with pytest.raises(Unreachable):
            drive(executor(row, clock).run(join(clock), timeout=30.0), clock)
        assert 25.0 < clock.now - began <= 30.0

    def test_an_answer_in_between_makes_it_patient_again(self, row, clock):
        node = executor(row, clock)
        row.errors = [LOST] * 6 + [None] + [LOST] * 6 + [None] * 1000
        with pytest.raises(TimedOut):
            drive(node.run(join(clock, timeout=60.0), timeout=12.0), clock)


class TestReading:
    @pytest.mark.parametrize(("shards", "seconds"), [(0, 0.5), (1, 1.0)])
    def test_a_cached_step_reads_twice_in_an_interval_in_a_large_group_once(self, row, clock, shards, seconds):
        row.data, row.token = encode(working("a", "b", shards=shards)), 1
        node = executor(row, clock)
        for _ in range(5):
            node.step(WATCH, cached=True)
            clock.sleep(0.09)
        assert row.calls == ["get"]
        clock.sleep(seconds * SETTINGS.poll_interval - 5 * 0.09)
        node.step(WATCH, cached=True)
        assert row.calls == ["get", "get"]

    def test_a_node_announces_itself_before_it_reads_so_that_simultaneous_ones_see_each_other(self, row, clock):
        row.data, row.token = encode(working("a", "b")), 1
        node, seen = executor(row, clock), []
        node.declare(Want.WORK, 3)
        row.answering = lambda: seen.append(row.beats().get(key("a")))
        for _ in range(3):
            node.step(WATCH)
            clock.sleep(SETTINGS.keep_alive_interval)
        assert seen == [None, 2, 3]

    def test_a_silent_node_is_read_again_when_it_can_be_found_dead(self, row, clock):
        row.data, row.token = encode(working("a", "b")), 1
        row.announce(0, key("b"), encode_presence(presence("b")))
        node, began = executor(row, clock), clock.now
        node.step(WATCH)
        clock.sleep(0.3 * SETTINGS.poll_interval)
        node.step(WATCH)
        while node.step(WATCH, cached=True).action is Action.FINISH:
            clock.sleep(node.next_read_at - clock.now)
        assert clock.now - began == pytest.approx(SETTINGS.keep_alive_timeout, abs=1e-6)

    def test_what_is_no_state_is_refused(self, row, clock):
        row.data, row.token = b"\x80\x04.", 1
        with pytest.raises(Corrupt):
            executor(row, clock).step(join(clock))

    def test_what_the_scheduler_asks_is_read_with_the_state(self, row, clock):
        node = executor(row, clock)
        assert node.step(WATCH).view.control == SETTINGS.default_control()
        row.control = json.dumps({"epoch": 1, "minNodes": 1, "maxNodes": 9})
        assert node.step(WATCH).view.control.max_nodes == 9

    def test_a_deleted_row_does_not_start_rounds_from_the_beginning(self, row, clock):
        row.data, row.token = encode(working("a", "b", round_=7)), 1
        node = executor(row, clock)
        node.step(WATCH)
        row.data, row.token = None, 0
        assert node.step(WATCH).view.state == State(round=8)


class TestEnds:
    @pytest.mark.parametrize(
        ("state", "drain", "error"),
        [(working("b", "c", closed=True, reason="spent"), [], Closed), (working("b", "c"), ["a"], Drained)],
    )
    def test_they_are_typed(self, row, clock, state, drain, error):
        row.data, row.token = encode(state), 1
        row.control = json.dumps({"epoch": 1, "minNodes": 1, "maxNodes": 4, "drain": drain})
        with pytest.raises(error) as raised:
            drive(executor(row, clock).run(join(clock), timeout=1.0), clock)
        assert getattr(raised.value, "reason", "spent") == "spent"

    def test_too_few_nodes_run_out_of_time_and_leave_nothing_behind(self, row, clock):
        with pytest.raises(TimedOut):
            drive(executor(row, clock).run(join(clock, timeout=20.0), timeout=60.0), clock)
        assert not decode(row.data).nodes

    def test_leaving_closing_and_beating_end_by_themselves(self, row, clock):
        row.data, row.token = encode(working("a", "b")), 1
        node = executor(row, clock)
        node.declare(Want.WORK, 3)
        drive(node.run(WATCH, timeout=1.0), clock)
        clock.sleep(SETTINGS.keep_alive_interval)
        drive(node.run(WATCH, timeout=1.0), clock)
        assert row.beats() == {key("a"): 2}
        drive(node.run(ExitOp(deadline=clock.now + 1.0), timeout=1.0), clock)
        assert key("a") not in decode(row.data).nodes
        drive(node.run(CloseOp(deadline=clock.now + 1.0, payload=Payload(reason="done")), timeout=1.0), clock)
        assert decode(row.data).reason == "done"
