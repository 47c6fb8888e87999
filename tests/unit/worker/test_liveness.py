"""Detection of dead nodes, by one reader's own clock and reads."""

from __future__ import annotations

from views import node

from trainmaster.worker.rendezvous.liveness import LivenessMonitor, Timer, interval_factor

INTERVAL, EXPIRY = 2.0, 8.0


def watching(reads):
    """A watch after these reads: seconds, and beats by name."""
    watch = LivenessMonitor(interval=INTERVAL, timeout=EXPIRY)
    for now, beats in reads:
        watch.observe({name: node(beat=beat) for name, beat in beats.items()}, now)
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


def test_who_went_and_came_again_is_a_newcomer():
    assert not watching([*still(0, 2, 4, 6), (7, {}), *still(8, 10)]).dead_nodes()


def test_quiet_is_counted_from_the_last_change_that_was_seen():
    watch = watching([(0, {"x": 1}), (3, {"x": 2}), (5, {"x": 2})])
    assert watch.seconds_since_heartbeat("x", 6.0) == 3.0
    assert watch.seconds_since_heartbeat("unknown", 6.0) == 0.0


class TestLargeGroups:
    def reads(self, *times, others=True):
        beside = [f"n{number}" for number in range(63)] if others else []
        return [(now, {"x": 7} | dict.fromkeys(beside, now)) for now in times]

    def test_they_beat_less_often(self):
        assert [interval_factor(nodes) for nodes in (1, 8, 16, 64)] == [1.0, 1.0, 2.0, 8.0]

    def test_and_are_given_more_time(self):
        assert not watching(self.reads(*range(0, 64, 2))).dead_nodes()
        assert watching(self.reads(*range(0, 66, 2))).dead_nodes() == {"x"}

    def test_the_rest_of_one_is_not_dead_at_once(self):
        large = self.reads(*range(0, 48, 2))
        assert not watching([*large, *self.reads(48, others=False)]).dead_nodes()
        assert watching([*large, *self.reads(*range(48, 116, 2), others=False)]).dead_nodes() == {"x"}


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
