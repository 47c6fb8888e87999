from __future__ import annotations

import shutil

import pytest

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.checkpoints.stop_grace import StopGrace


class Workers(Notices):
    """Notices whose workers answer when the test says so."""

    saved = 0

    def is_answered(self, number):
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
def stop_grace(notices, clock):
    return StopGrace(notices, clock)


def test_workers_are_asked_once_and_waited_for(stop_grace, notices):
    assert [stop_grace.expired(Reason.RESIZE, 60.0) for _ in range(3)] == [False] * 3
    assert notices.last().number == 1
    notices.saved = 1
    assert stop_grace.expired(Reason.RESIZE, 60.0)


def test_the_grace_counts_from_the_first_request(stop_grace, clock):
    assert not stop_grace.expired(Reason.DRAIN, 60.0)
    clock.now += 59.0
    assert not stop_grace.expired(Reason.DRAIN, 999.0)
    clock.now += 1.0
    assert stop_grace.expired(Reason.DRAIN, 999.0)


def test_after_a_reset_the_next_resize_makes_a_new_request(stop_grace, notices):
    stop_grace.expired(Reason.RESIZE, 60.0)
    notices.saved = 1
    stop_grace.reset()
    assert not stop_grace.expired(Reason.RESIZE, 60.0)
    assert notices.last().number == 2


def test_without_notices_the_grace_has_expired_at_once(clock):
    stop_grace = StopGrace(None, clock)
    assert stop_grace.expired(Reason.RESIZE, 60.0)
    assert stop_grace.container_stop_expired() is None
    stop_grace.fail_job("unread")


def test_a_container_that_is_stopped_goes_once_its_workers_have_saved(stop_grace, notices, clock):
    assert stop_grace.container_stop_expired() is None
    notices.request_checkpoint(Reason.STOP)
    notices.announce_leave(until=150.0)
    assert stop_grace.container_stop_expired() is False
    notices.saved = 1
    assert stop_grace.container_stop_expired() is True


def test_it_goes_at_its_time_at_the_latest(stop_grace, notices, clock):
    notices.request_checkpoint(Reason.STOP)
    notices.announce_leave(until=150.0)
    clock.now = 150.0
    assert stop_grace.container_stop_expired() is True


def test_why_the_job_ends_is_left_for_the_container(stop_grace, notices):
    stop_grace.fail_job("trainmaster: full restart: three")
    assert notices.job_failure() == "trainmaster: full restart: three"


def test_workers_that_cannot_be_asked_are_not_waited_for(stop_grace, tmp_path, caplog):
    shutil.rmtree(tmp_path)
    assert stop_grace.expired(Reason.RESIZE, 60.0)
    assert "could not be asked for a checkpoint" in caplog.text
    stop_grace.fail_job("the disk is full")
