"""Detection of dead nodes, by one reader's own clock and reads."""

from __future__ import annotations

from math import inf

from trainmaster.worker.rendezvous.watching.liveness import LivenessMonitor, Timer

INTERVAL, EXPIRY = 2.0, 8.0


def watching(reads):
    """A watch after these reads: seconds, and beats by name."""
    watch = LivenessMonitor(interval=INTERVAL, timeout=EXPIRY)
    for now, beats in reads:
        watch.observe(beats, now)
    return watch


def still(*times, beat=7):
    return [(now, {"x": beat}) for now in times]


def test_who_beats_lives_however_slowly_its_clock_goes():
    assert not watching([(now, {"x": now}) for now in range(0, 100, 5)]).dead_nodes()


def test_a_node_with_an_unchanged_count_for_the_timeout_is_dead():
    assert not watching(still(0, 2, 4, 6)).dead_nodes()
    assert watching(still(0, 2, 4, 6, 8)).dead_nodes() == {"x"}


def test_a_newcomer_to_the_reader_has_the_whole_time_whatever_its_count():
    watch = watching([*still(0, 2, 4, 6, 8), (10, {"x": 8, "y": 3})])
    assert not watch.dead_nodes()


def test_after_an_outage_or_a_pause_of_the_reader_no_node_is_dead():
    assert not watching(still(0, 1, 600)).dead_nodes()
    assert not watching(still(0, 1, 600, 602, 604)).dead_nodes()
    assert watching(still(0, 1, 600, 602, 604, 606)).dead_nodes() == {"x"}


def test_a_clock_that_jumps_back_makes_no_node_dead():
    assert not watching(still(1000, 1002, 5, 7)).dead_nodes()


def test_the_next_death_is_that_of_the_node_that_has_been_silent_longest():
    watch = watching([(0, {"x": 7, "y": 1, "z": 3}), (2, {"x": 7, "y": 2, "z": 4}), (4, {"x": 7, "y": 2, "z": 5})])
    assert watch.seconds_to_next_death(own="z") == EXPIRY - 4
    assert watch.seconds_to_next_death(own="x") == EXPIRY - 2
    watch.observe({"x": 7, "y": 2}, 6)
    watch.observe({"x": 7, "y": 2}, 8)
    assert watch.dead_nodes() == {"x"}
    assert watch.seconds_to_next_death(own="z") == 2.0, "x is dead already"
    assert watch.seconds_to_next_death(own="y") == inf


def test_who_went_and_came_again_is_a_newcomer():
    assert not watching([*still(0, 2, 4, 6), (7, {}), *still(8, 10)]).dead_nodes()


def test_a_lower_count_is_an_old_row_that_was_put_back():
    watch = watching([(0, {"x": 7}), (2, {"x": 8}), (4, {"x": 7}), (6, {"x": 6}), (8, {"x": 5}), (10, {"x": 8})])
    assert watch.dead_nodes() == {"x"}


def test_a_row_that_appears_is_no_sign_of_life_but_its_next_change_is():
    assert watching([(0, {"x": -1}), (2, {"x": -1}), (4, {"x": 7}), (6, {"x": 7}), (8, {"x": 7})]).dead_nodes() == {"x"}
    assert not watching([(0, {"x": -1}), (4, {"x": 7}), (6, {"x": 8}), (8, {"x": 8})]).dead_nodes()


def test_only_a_change_that_was_seen_shows_that_a_row_has_not_outlived_its_node():
    watch = watching([(0, {"x": 1, "y": 4}), (3, {"x": 2, "y": 4})])
    assert [watch.has_beaten(name, 0) for name in ("x", "y", "unknown")] == [True, False, False]


def test_what_the_first_read_in_a_round_shows_may_be_older_than_the_round():
    watch = watching([(0, {"x": 1, "y": 1})])
    watch.elapsed(5, {}, 1.0)
    watch.observe({"x": 2, "y": 2}, 2)
    assert not watch.has_beaten("x", 5)
    watch.observe({"x": 3, "y": 2}, 4)
    assert [watch.has_beaten(name, 5) for name in ("x", "y")] == [True, False]
    assert not watch.has_beaten("x", 6), "it does not know of that round yet"


class TestMarks:
    def test_they_count_while_they_hold(self):
        watch = watching([])
        assert watch.elapsed(1, {Timer.LEGAL: True}, 10.0)[Timer.LEGAL] == 0.0
        assert watch.elapsed(1, {Timer.LEGAL: True}, 14.0)[Timer.LEGAL] == 4.0
        assert watch.elapsed(1, {Timer.LEGAL: False}, 15.0)[Timer.LEGAL] == 0.0
        assert watch.elapsed(1, {Timer.LEGAL: True}, 16.0)[Timer.LEGAL] == 0.0

    def test_they_restart_with_every_round(self):
        watch = watching([])
        watch.elapsed(1, {Timer.FORMING: True}, 10.0)
        assert watch.elapsed(2, {Timer.FORMING: True}, 14.0)[Timer.FORMING] == 0.0
