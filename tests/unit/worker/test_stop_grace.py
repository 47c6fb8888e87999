from __future__ import annotations

import pytest

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.checkpoints.stop_grace import StopGrace


class Workers(Notices):
    """Notices whose workers answer when the test says so."""

    saved = 0

    def settled(self, number):
        return number <= self.saved


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def notices(tmp_path):
    tmp_path.chmod(0o700)
    return Workers(tmp_path)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reprieve(notices, clock):
    return StopGrace(notices, clock)


def test_workers_are_asked_once_and_waited_for(reprieve, notices):
    assert [reprieve.over(Reason.RESIZE, 60.0) for _ in range(3)] == [False] * 3
    assert notices.last().number == 1
    notices.saved = 1
    assert reprieve.over(Reason.RESIZE, 60.0)


def test_the_grace_counts_from_the_first_request(reprieve, clock):
    assert not reprieve.over(Reason.DRAIN, 60.0)
    clock.now += 59.0
    assert not reprieve.over(Reason.DRAIN, 999.0)
    clock.now += 1.0
    assert reprieve.over(Reason.DRAIN, 999.0)


def test_after_a_reset_the_next_resize_asks_anew(reprieve, notices):
    reprieve.over(Reason.RESIZE, 60.0)
    notices.saved = 1
    reprieve.reset()
    assert not reprieve.over(Reason.RESIZE, 60.0)
    assert notices.last().number == 2


def test_nobody_is_waited_for_where_nobody_would_answer(clock):
    reprieve = StopGrace(None, clock)
    assert reprieve.over(Reason.RESIZE, 60.0)
    assert reprieve.stopped() is None
    reprieve.end("for nobody")


def test_a_container_that_is_stopped_goes_once_its_workers_have_saved(reprieve, notices, clock):
    assert reprieve.stopped() is None
    notices.ask(Reason.STOP)
    notices.leave(until=150.0)
    assert reprieve.stopped() is False
    notices.saved = 1
    assert reprieve.stopped() is True


def test_it_goes_at_its_time_at_the_latest(reprieve, notices, clock):
    notices.ask(Reason.STOP)
    notices.leave(until=150.0)
    clock.now = 150.0
    assert reprieve.stopped() is True


def test_why_the_job_ends_is_left_for_the_container(reprieve, notices):
    reprieve.end("trainmaster: full restart: three")
    assert notices.ended() == "trainmaster: full restart: three"
