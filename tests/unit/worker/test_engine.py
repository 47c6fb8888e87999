"""A node as handlers and programs use it, on a table that answers at once and time that is set by hand."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest
from views import SETTINGS, Row, Ticking, executor, key

from trainmaster.worker.checkpoints.notices import NodeWorld
from trainmaster.worker.container.restart_budget import BUDGET_SPENT_PREFIX, RestartBudget
from trainmaster.worker.rendezvous.engine import Engine, RareLog
from trainmaster.worker.rendezvous.errors import (
    Closed,
    Corrupt,
    Drained,
    RoundLost,
    TableMissing,
    TimedOut,
    Unreachable,
)
from trainmaster.worker.rendezvous.rendezvous import Rendezvous, free_port
from trainmaster.worker.rendezvous.state import DONE, Role, RoundReason, decode

LOST = Unreachable("no answer")


@pytest.fixture
def row():
    return Row()


@pytest.fixture
def clock():
    return Ticking()


def asks(row, max_nodes=4, **values):
    epoch = json.loads(row.control)["epoch"] + 1 if row.control else 1
    row.control = json.dumps({"epoch": epoch, "minNodes": 1, "maxNodes": max_nodes, **values})


def engine(row, clock, job):
    return Engine(executor(row, clock, job), clock.sleep)


def together(clock, *programs):
    """Run generators of pauses side by side until all have ended; their values, or what they raised."""
    results = {}
    running = dict.fromkeys(programs, clock.now)
    while running:
        program = min(running, key=running.get)
        clock.now = max(clock.now, running[program])
        try:
            running[program] = clock.now + next(program) + 0.001
        except StopIteration as end:
            results[program] = end.value
            del running[program]
        except (Closed, Drained, RoundLost, TimedOut) as error:
            results[program] = error
            del running[program]
    return [results[program] for program in programs]


def meet(clock, *engines):
    return together(clock, *(each.joining() for each in engines))


@pytest.fixture
def pair(row, clock):
    asks(row, max_nodes=2)
    nodes = engine(row, clock, "a"), engine(row, clock, "b")
    meet(clock, *nodes)
    return nodes


def later(clock):
    clock.sleep(SETTINGS.poll_interval + 0.1)


def test_a_world_lists_its_nodes(row, clock):
    worlds = meet(clock, *(engine(row, clock, job) for job in "abc"))
    assert {world.size for world in worlds} == {3}
    assert [world.rank for world in worlds] == [0, 1, 2]
    assert [peer.addr for peer in worlds[0].nodes] == ["10.0.0.a", "10.0.0.b", "10.0.0.c"]


def test_nothing_is_asked_while_nothing_changes(pair, clock):
    for node in pair:
        later(clock)
        asked = node.status()
        assert (asked.rejoin, asked.drain, asked.closed, asked.waiting) == (False, False, None, 0)


def test_asking_reads_the_table_once_a_second(pair, row, clock):
    later(clock)
    row.calls.clear()
    for _ in range(10):
        pair[0].status()
        clock.sleep(0.05)
    assert row.calls.count("get") == 1


def test_a_silent_table_changes_no_answer(pair, row, clock):
    row.errors = [LOST] * 100
    for _ in range(20):
        later(clock)
        assert not pair[0].status().rejoin


def test_a_worker_that_fails_here_begins_a_round_that_is_charged_once(pair, row, clock):
    assert [world.round for world in meet(clock, pair[0], pair[1])] == [2, 2]
    state = decode(row.data)
    assert (state.charged, state.restarts[-1].why) == (1, RoundReason.FAILURE)


def test_a_drain_is_announced_before_anyone_stops_and_not_charged(pair, row, clock):
    first, second = pair
    asks(row, max_nodes=1, drain=["a"])
    later(clock)
    assert (second.status().rejoin, second.status().resize) == (True, True)
    later(clock)
    asked = first.status()
    assert (asked.drain, asked.grace) == (True, 600.0)
    together(clock, first.sending_heartbeat())
    assert decode(row.data).nodes[key("a")].role is Role.LEAVING
    world, _ = together(clock, second.joining(), first.leaving())
    assert (world.rank, world.size, world.round) == (0, 1, 2)
    state = decode(row.data)
    assert (state.charged, state.closed, list(state.nodes)) == (0, False, [key("b")])


def test_a_drained_node_that_asks_for_a_world_is_told_to_end(pair, row, clock):
    asks(row, drain=["a"])
    assert isinstance(meet(clock, pair[0])[0], Drained)
    assert key("a") not in decode(row.data).nodes


def test_a_node_that_was_evicted_rejoins(pair, row, clock):
    first, second = pair
    for _ in range(8):  # `a` is silent, `b` sees it
        clock.sleep(2.0)
        together(clock, second.sending_heartbeat())
    meet(clock, second)
    assert first.fenced()
    assert not second.fenced()
    later(clock)
    assert first.status().rejoin
    first_world, second_world = meet(clock, first, second)
    assert (second_world.rank, first_world.rank, first_world.round) == (0, 1, 3)
    assert not first.fenced()
    assert decode(row.data).charged == 1


def test_an_evicted_node_stops_at_once_even_if_a_resize_is_under_way(pair, row, clock):
    first, second = pair
    for _ in range(8):  # `a` is suspended, `b` sees it
        clock.sleep(2.0)
        together(clock, second.sending_heartbeat())
    meet(clock, second)
    newcomer = engine(row, clock, "c").joining()
    for _ in range(2):  # it reads, then writes
        next(newcomer)
    for _ in range(4):
        later(clock)
        together(clock, second.sending_heartbeat())
    assert decode(row.data).why == (RoundReason.NEWCOMER,)
    later(clock)
    asked = first.status()
    assert (asked.rejoin, asked.resize, asked.grace) == (True, False, 0.0), "there is nothing to save any more"


def test_a_node_that_was_suspended_during_a_read_reads_again_at_once(pair, row, clock):
    first, second = pair
    later(clock)
    row.answering = lambda: clock.sleep(3.0)  # it is suspended between its request and the response
    assert not first.status().rejoin
    row.answering = lambda: None
    second.leave()
    assert first.status().rejoin


def test_a_corrupt_row_is_read_once_a_second(pair, row, clock):
    later(clock)
    row.data = b"nonsense"
    row.calls.clear()
    with pytest.raises(Corrupt):
        pair[0].status()
    for _ in range(9):
        assert not pair[0].status().rejoin
        clock.sleep(0.05)
    assert row.calls.count("get") == 1


def test_a_missing_table_ends_the_first_join_at_once_and_no_later_wait(pair, row, clock):
    row.errors = [TableMissing("no such table")] * 1000
    began = clock.now
    with pytest.raises(TableMissing):
        engine(row, clock, "c").join()
    assert clock.now == began
    with pytest.raises(TableMissing):
        pair[0].join(timeout=20.0)
    assert clock.now >= began + 19.0


@pytest.mark.parametrize("silent_after", [0.0, 0.9 * SETTINGS.close_timeout, 2 * SETTINGS.close_timeout])
def test_closing_keeps_to_its_time_limit_whatever_the_table_answers(pair, row, clock, silent_after):
    began = clock.now

    def answer():
        if clock.now - began > silent_after:
            raise LOST

    row.conflicts, row.answering = True, answer
    with pytest.raises((Unreachable, TimedOut)):
        pair[0].close(DONE)
    assert clock.now - began <= SETTINGS.close_timeout + SETTINGS.max_backoff


def test_the_log_says_what_a_node_waits_for_ever_more_rarely(row, clock, caplog):
    asks(row, max_nodes=8, minNodes=3, sizes=[2, 4, 8])
    told = together(clock, *(engine(row, clock, job).joining(100.0) for job in "ab"))
    needed = "nodes: a world needs 4, others here: 1; see the logs of the other instances"
    assert f"trainmaster: has waited for 10 s, for {needed}" in caplog.messages
    assert len(caplog.messages) == 8, "after 10, 20, 40 and 80 seconds, from each of the two"
    assert all(isinstance(error, TimedOut) for error in told)
    assert "timed out in round 1, waiting for nodes: a world needs 4" in str(told[0])


def test_the_log_says_that_the_table_does_not_respond(row, clock, caplog):
    row.errors = [LOST] * 100
    meet(clock, engine(row, clock, "a"))
    assert caplog.messages[0].startswith("trainmaster: has waited for 10 s, for the rendezvous: no answer")


def test_a_spare_says_that_it_waits_for_a_place(pair, row, clock, caplog):
    spare = engine(row, clock, "c").joining()
    for _ in range(60):
        clock.now += next(spare)
        together(clock, *(node.sending_heartbeat() for node in pair))
    assert [text.partition(" s, ")[2] for text in caplog.messages][:1] == ["for a place in the world of 2 nodes"]


def test_failed_heartbeats_are_logged_ever_more_rarely(caplog):
    clock = Ticking()
    log = RareLog(clock, 0.0)
    for _ in range(200):
        log("for {:.0f} s".format)
        clock.sleep(1.0)
    assert caplog.messages == [f"trainmaster: for {seconds} s" for seconds in (0, 20, 40, 80, 160)]


def test_the_thread_of_heartbeats_survives_errors_and_says_that_work_goes_on(row, caplog):
    asks(row, max_nodes=1)
    quick = replace(SETTINGS, keep_alive_interval=0.01, poll_interval=0.01)
    node = Engine(executor(row, time.monotonic, "a", settings=quick), time.sleep)
    node.join()
    row.errors = [Corrupt("no state")] * 3
    node.start_keep_alive()
    until = time.monotonic() + 20
    while row.errors and time.monotonic() < until:
        time.sleep(0.01)
    node.stop_keep_alive()
    assert row.errors == []
    assert caplog.messages == ["trainmaster: heartbeats fail, for 0 s now, and the work goes on: Corrupt: no state"]


def test_whether_it_is_closed_is_read_each_time(pair, row, clock):
    assert not pair[0].is_closed()
    pair[1].close(DONE)
    assert pair[0].is_closed()
    row.errors = [LOST]
    with pytest.raises(Unreachable):
        pair[0].is_closed()


def test_an_unknown_fence_raises(pair, row):
    row.errors = [LOST]
    with pytest.raises(Unreachable):
        pair[0].fenced()


def test_a_node_that_leaves_is_seen_to_leave_at_once(pair, row, clock):
    pair[1].leave()
    later(clock)
    assert pair[0].status().rejoin
    assert decode(row.data).why == (RoundReason.DEPARTURE,)


def test_a_node_that_cannot_leave_gives_up(pair, row, clock):
    row.errors = [LOST] * 1000
    pair[1].leave()
    assert clock.slept


def test_closing_does_not_stop_members_and_ends_all_waits(pair, row, clock):
    spare = engine(row, clock, "s")
    waits = spare.joining()
    for _ in range(4):
        clock.sleep(next(waits))
    assert decode(row.data).nodes[key("s")].role is Role.SPARE
    pair[0].close(DONE)
    later(clock)
    asked = pair[1].status()
    assert (asked.rejoin, asked.closed, pair[1].status().rejoin) == (False, DONE, False)
    assert together(clock, waits)[0].reason == DONE


def test_the_first_rank_says_where_it_listens(pair, clock):
    asked, _ = together(clock, pair[1].awaiting_endpoint(), pair[0].publishing("10.0.0.a", 4321))
    assert asked == ("10.0.0.a", 4321)


def test_waiting_for_the_endpoint_ends_with_its_world(pair, clock):
    waits = pair[1].awaiting_endpoint()
    next(waits)
    pair[0].leave()
    assert isinstance(together(clock, waits)[0], RoundLost)


QUICK = replace(
    # No node dies here: on a busy machine a thread may not run for a while.
    SETTINGS,
    keep_alive_interval=0.05,
    keep_alive_max_attempt=200,
    poll_interval=0.02,
    last_call_timeout=0.1,
    scale_up_delay=0.05,
    max_backoff=0.05,
    faulty_scale_down_timeout=0.0,
)


class Locked(Row):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def get_state(self, *, consistent=True):
        with self.lock:
            return super().get_state()

    def set_state(self, state, token=None):
        with self.lock:
            return super().set_state(state, token)


def program(row, job, **given):
    return Rendezvous(Engine(executor(row, time.monotonic, job, QUICK), time.sleep), "127.0.0.1", **given)


def threads(*calls):
    results = [None] * len(calls)

    def run(place, call):
        results[place] = call()

    running = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(calls)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(20.0)
    return results


def test_programs_meet_in_real_time_and_have_one_coordinator():
    row = Locked()
    programs = [program(row, job) for job in "abc"]
    worlds = threads(*(each.next for each in programs))
    assert {world.coordinator for world in worlds} == {worlds[0].coordinator}
    assert sorted(world.rank for world in worlds) == [0, 1, 2]
    beats = row.beats()
    until = time.monotonic() + 20.0
    while not all(beat > beats[name] + 2 for name, beat in row.beats().items()):
        assert time.monotonic() < until, "the keep-alive threads do nothing"
        time.sleep(QUICK.keep_alive_interval)
    assert not any(each.changed() for each in programs)
    programs[0].leave()
    time.sleep(QUICK.poll_interval * 2)
    assert programs[1].changed()
    worlds = threads(programs[1].next, programs[2].next)
    assert sorted(world.rank for world in worlds) == [0, 1]
    programs[1].close()
    time.sleep(QUICK.poll_interval * 2)
    assert programs[2].status().closed == DONE
    with pytest.raises(Closed):
        programs[2].next()
    programs[2].leave()


def test_a_program_announces_its_worlds_and_that_it_is_in_none_meanwhile():
    row, said = Locked(), ([], [], [])
    one, two, three = (program(row, job, announce_world=each.append) for job, each in zip("abc", said, strict=True))
    worlds = threads(one.next, two.next, three.next)
    three.leave()
    time.sleep(QUICK.poll_interval * 2)
    worlds += threads(one.next, two.next)
    seen = [NodeWorld(world.round, world.rank, world.size) for world in worlds]
    assert said == ([None, seen[0], None, seen[3]], [None, seen[1], None, seen[4]], [None, seen[2]])
    assert [world.size for world in seen] == [3, 3, 3, 2, 2]


def test_a_program_hears_that_another_has_ended_it_because_the_job_cannot_go_on():
    row = Locked()
    one, two = program(row, "a"), program(row, "b")
    threads(one.next, two.next)
    one.close("the data is gone")
    time.sleep(QUICK.poll_interval * 2)
    assert two.changed()
    with pytest.raises(Closed, match="the data is gone"):
        two.next()


def test_a_program_with_a_spent_restart_budget_closes_the_rendezvous_with_the_reason():
    row, said = Locked(), []
    budget = RestartBudget(max_restarts=0)
    one, two = (program(row, job, budget=budget, report_failure=said.append) for job in "ab")
    threads(one.next, two.next)
    # A program that joins while its world works has failed.
    ended = threads(lambda: refusal(one), lambda: refusal(two))
    assert decode(row.data).closed
    assert all(reason.startswith(BUDGET_SPENT_PREFIX) for reason in [*ended, *said])
    assert len(said) == 2


def refusal(rendezvous):
    try:
        return rendezvous.next()
    except Closed as closed:
        return closed.reason


def test_a_program_that_ends_in_an_error_leaves_and_closes_nothing():
    row = Locked()
    asks(row, max_nodes=1)

    def fails():
        with program(row, "a") as rendezvous:
            return 1 // (rendezvous.next().size - 1)

    with pytest.raises(ZeroDivisionError):
        fails()
    state = decode(row.data)
    assert (state.closed, dict(state.nodes)) == (False, {})


def test_a_container_finds_its_rendezvous_in_its_environment(tmp_path):
    config = tmp_path / "input" / "config" / "resourceconfig.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "eth0"}))
    environ = {
        "SM_BASE_DIR": str(tmp_path),
        "TRAINING_JOB_NAME": "job-qstamp-1-m2",
        "TRAINMASTER_LOCAL_ADDR": "127.0.0.1",
        "TRAINMASTER_MIN": "1",
        "TRAINMASTER_MAX": "1",
    }
    row = Locked()
    with Rendezvous.from_environment(environ, store=row, slots=4) as rendezvous:
        world = rendezvous.next()
        assert (world.size, world.nodes[0].slots, world.coordinator[0]) == (1, 4, "127.0.0.1")
        assert world.nodes[0].name.startswith("job-qstamp-1-m2/algo-1#")
        assert not rendezvous.fenced()


def test_a_free_port_is_free():
    assert 0 < free_port("127.0.0.1") < 65536
