"""Reports of a job's speed: measured rarely, written in the background, and never in the way of the training."""

from __future__ import annotations

import json
import math
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.worker import training
from trainmaster.worker.checkpoints.checkpoints import MANIFEST, CheckpointId
from trainmaster.worker.checkpoints.notices import DIRECTORY_VARIABLE, Notices
from trainmaster.worker.container.checkpoint_speed import TRAINER_STATE, CheckpointSpeed, watch
from trainmaster.worker.progress import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    WARM_UP_SECONDS,
    CheckpointReports,
    SafeWriter,
    SpeedMeter,
    SpeedReporter,
    instances_of,
    reports_here,
)

JOB = {
    "TRAINMASTER_HOOK": "restart",
    "TRAINMASTER_RUN": "bert",
    "TRAINMASTER_RENDEZVOUS_TABLE": "eu-west-1/table",
    "TRAINMASTER_RENDEZVOUS_KEY": "k",
    "TRAINMASTER_RENDEZVOUS_ROLE": "role",
}


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class Written(list):
    def write(self, instances, rate):
        self.append((instances, rate))


def counted(meter, clock, seconds, *, per_second=2.0, every=1.0, start=0.0):
    """Count for this long; return the rates and when they came."""
    began, found = clock.now, []
    while clock.now - began <= seconds:
        rate = meter.count(start + (clock.now - began) * per_second)
        if rate is not None:
            found.append((clock.now - began, rate))
        clock.now += every
    return found


class TestMeter:
    def test_it_measures_rarely_and_not_the_first_steps(self):
        clock = Clock()
        found = counted(SpeedMeter(clock), clock, 6 * 3_600)
        first = WARM_UP_SECONDS + FIRST_SECONDS
        assert found[0] == (first, pytest.approx(2.0))
        assert [at for at, _ in found[:4]] == [180, 300, 600, 1_350]
        assert all(rate == pytest.approx(2.0) for _, rate in found)
        assert len(found) <= 4 + 6 * 3_600 / LONGEST_SECONDS

    def test_long_steps_give_a_rate_too(self):
        clock = Clock()
        found = counted(SpeedMeter(clock), clock, 4_000, per_second=0.001, every=900.0)
        assert found
        assert all(rate == pytest.approx(0.001) for _, rate in found)

    def test_a_count_that_goes_back_begins_again(self):
        clock = Clock()
        meter = SpeedMeter(clock)
        counted(meter, clock, 170)
        assert meter.count(0.0) is None
        clock.now += 200
        assert meter.count(20.0) == pytest.approx(0.1)

    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
    def test_a_count_that_is_no_number_begins_again(self, wrong):
        clock = Clock()
        meter = SpeedMeter(clock)
        counted(meter, clock, 200, start=10_000)
        assert meter.count(wrong) is None
        assert all(rate == pytest.approx(2.0) for _, rate in counted(meter, clock, 2_000, start=20_000))

    def test_a_count_that_stands_still_is_no_speed(self):
        clock = Clock()
        assert counted(SpeedMeter(clock), clock, 4_000, per_second=0.0) == []

    @given(st.lists(st.tuples(st.floats(0, 4_000), st.floats(allow_nan=True, allow_infinity=True)), max_size=40))
    def test_any_counts_give_finite_positive_rates_or_none(self, steps):
        clock = Clock()
        meter = SpeedMeter(clock)
        for passed, done in steps:
            clock.now += passed
            rate = meter.count(done)
            assert rate is None or 0 < rate < math.inf


class TestReporter:
    def test_a_report_has_the_size_of_the_moment(self):
        clock, written = Clock(), Written()
        reporter = SpeedReporter(lambda: written, SpeedMeter(clock), lambda function: function())
        for _ in range(400):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert written == [(4, pytest.approx(1.0))] * 2

    def test_training_never_waits_and_one_report_is_under_way(self):
        clock, written, pending = Clock(), Written(), []
        reporter = SpeedReporter(lambda: written, SpeedMeter(clock), pending.append)
        for _ in range(2_000):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert (len(pending), written) == (1, [])
        pending.pop()()
        assert len(written) == 1
        reporter.count(clock.now + 1_000_000, 4)
        clock.now += LONGEST_SECONDS
        reporter.count(clock.now + 2_000_000, 4)
        assert len(pending) == 1

    def test_a_count_that_is_no_number_is_logged_once_and_stops_no_training(self, caplog):
        clock, written = Clock(), Written()
        reporter = SpeedReporter(lambda: written, SpeedMeter(clock), lambda function: function())
        for wrong in (None, "many", 10**400, [], "x" * 10_000):
            reporter.count(wrong, 4)
        assert len(caplog.records) == 1
        assert len(caplog.text) < 300
        for _ in range(200):
            reporter.count(2.0 * clock.now, 4)
            clock.now += 1
        assert written == [(4, pytest.approx(2.0))]

    def test_by_default_it_writes_in_a_thread(self):
        clock, done = Clock(), threading.Event()

        class Noting:
            def write(self, instances, rate):
                done.set()

        reporter = SpeedReporter(Noting, SpeedMeter(clock))
        for _ in range(200):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert done.wait(10)

    def test_a_report_that_fails_is_logged_once_and_the_next_is_tried(self, caplog):
        fails = [OSError("no network"), RuntimeError("denied")]
        written = Written()

        def make():
            if fails:
                raise fails.pop()
            return written

        writer = SafeWriter(make)
        for rate in (1.0, 2.0, 3.0):
            writer.write(4, rate)
        assert written == [(4, 3.0)]
        assert len(caplog.records) == 1


@pytest.fixture
def container(tmp_path):
    def make(current, *hosts, **environ):
        config = tmp_path / "input" / "config"
        config.mkdir(parents=True, exist_ok=True)
        named = {"current_host": current, "hosts": hosts, "network_interface_name": "eth0"}
        (config / "resourceconfig.json").write_text(json.dumps(named))
        return {**JOB, "SM_BASE_DIR": str(tmp_path), **environ}

    return make


def test_the_first_process_of_the_first_host_reports(container):
    hosts = ("algo-1", "algo-2")
    assert reports_here(container("algo-1", *hosts))
    assert reports_here(container("algo-1", *hosts, RANK="0"))
    assert not reports_here(container("algo-1", *hosts, RANK="3"))
    assert not reports_here(container("algo-2", *hosts, RANK="0"))
    assert instances_of(container("algo-1", *hosts)) == 2


def test_of_members_the_first_rank_of_the_world_reports(container):
    members = {"TRAINMASTER_HOOK": "members", "GROUP_WORLD_SIZE": "5"}
    assert reports_here(container("algo-1", "algo-1", RANK="0", **members))
    assert not reports_here(container("algo-1", "algo-1", RANK="8", **members))
    assert instances_of(container("algo-1", "algo-1", **members)) == 5
    assert instances_of(container("algo-1", "algo-1", TRAINMASTER_HOOK="members")) is None


def test_a_custom_hook_resizes_in_a_way_of_its_own_so_the_size_is_not_known(container):
    custom = {"TRAINMASTER_HOOK": "custom", "GROUP_WORLD_SIZE": "4"}
    assert instances_of(container("algo-1", "algo-1", "algo-2", **custom)) is None


@pytest.mark.parametrize("missing", ["TRAINMASTER_RUN", "TRAINMASTER_RENDEZVOUS_TABLE", "TRAINMASTER_RENDEZVOUS_KEY"])
def test_outside_of_an_elastic_job_nothing_reports(missing):
    assert not reports_here({name: text for name, text in JOB.items() if name != missing})


def test_one_call_in_the_training_loop_counts(container, tmp_path, monkeypatch):
    directory = tmp_path / "notices"
    directory.mkdir(mode=0o700)
    for name, text in container("algo-1", "algo-1", **{DIRECTORY_VARIABLE: str(directory)}).items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("RANK", raising=False)
    training.speed_reporter.cache_clear()
    try:
        training.progress(1)
        training.progress(2, instances=3)
        assert training.speed_reporter() is not None
        assert Notices(directory).counts_progress
    finally:
        training.speed_reporter.cache_clear()


def test_started_by_hand_the_call_does_nothing(monkeypatch):
    for name in JOB:
        monkeypatch.delenv(name, raising=False)
    training.speed_reporter.cache_clear()
    try:
        training.progress(1)
        assert training.speed_reporter() is None
    finally:
        training.speed_reporter.cache_clear()


class TestCheckpoints:
    @staticmethod
    def publish(root, step, at, round_=1, attempt=2):
        path = root / CheckpointId(attempt, round_, step).name
        path.mkdir()
        (path / MANIFEST).write_text("{}")
        os.utime(path / MANIFEST, (at, at))

    def test_the_steps_between_two_checkpoints_are_a_speed(self, tmp_path):
        self.publish(tmp_path, 100, 1_000)
        speed = CheckpointSpeed(tmp_path, 2)
        self.publish(tmp_path, 200, 2_000)
        assert speed.measure() is None, "the start of the first measurement is before this container's"
        self.publish(tmp_path, 500, 2_600)
        assert speed.measure() == (CheckpointId(2, 1, 500), 0.5)
        assert speed.measure() is None
        self.publish(tmp_path, 560, 2_660)
        assert speed.measure() is None, "too soon to measure"
        self.publish(tmp_path, 900, 3_000)
        assert speed.measure() == (CheckpointId(2, 1, 900), 1.0)

    def test_another_world_begins_another_measurement(self, tmp_path):
        speed = CheckpointSpeed(tmp_path, 2)
        self.publish(tmp_path, 200, 2_000)
        speed.measure()
        self.publish(tmp_path, 500, 2_600, round_=2)
        assert speed.measure() is None
        self.publish(tmp_path, 800, 2_900, round_=2)
        assert speed.measure() == (CheckpointId(2, 2, 800), 1.0)

    def test_checkpoints_of_other_attempts_and_other_files_do_not_count(self, tmp_path):
        speed = CheckpointSpeed(tmp_path, 2)
        (tmp_path / "a-r-s").mkdir()
        (tmp_path / CheckpointId(2, 1, 5).name).mkdir()
        self.publish(tmp_path, 200, 2_000, attempt=1)
        self.publish(tmp_path, 500, 3_000, attempt=1)
        assert speed.measure() is None

    def test_the_steps_of_the_trainer_of_hugging_face_count_where_an_attempt_has_one_world(self, tmp_path):
        def publish(step, at):
            path = tmp_path / f"checkpoint-{step}"
            path.mkdir()
            (path / TRAINER_STATE).write_text("{}")
            os.utime(path / TRAINER_STATE, (at, at))

        publish(100, 500)  # of an earlier attempt, copied here before the command started
        speed, members = CheckpointSpeed(tmp_path, 2, one_world=True), CheckpointSpeed(tmp_path, 2)
        for name in ("checkpoint-", "checkpoint-x", "checkpoint-9" * 4, "checkpoint-150"):
            (tmp_path / name).mkdir()
        publish(200, 1_000)
        assert speed.measure() is None
        publish(500, 1_600)
        assert speed.measure() == (CheckpointId(2, 0, 500), 0.5)
        assert members.measure() is None

    def test_a_directory_that_does_not_exist_has_none(self, tmp_path):
        assert CheckpointSpeed(tmp_path / "none", 1).measure() is None

    def test_the_watch_ends_as_soon_as_a_worker_counts(self, tmp_path):
        directory = tmp_path / "notices"
        directory.mkdir(mode=0o700)
        notices = Notices(directory)
        notices.announce_progress()

        class Stop:
            waits = 0

            def wait(self, seconds):
                self.waits += 1
                return False

        stop = Stop()
        watch(CheckpointSpeed(tmp_path, 1), notices, lambda *_: pytest.fail("reported"), stop)
        assert stop.waits == 1

    def test_the_watch_reports_until_it_is_stopped(self, tmp_path):
        directory = tmp_path / "notices"
        directory.mkdir(mode=0o700)
        times = iter([lambda: self.publish(tmp_path, 10, 1_000), lambda: self.publish(tmp_path, 310, 1_300)])

        class Stop:
            def wait(self, seconds):
                step = next(times, None)
                if step is not None:
                    step()
                return step is None

        found = []
        watch(CheckpointSpeed(tmp_path, 2), Notices(directory), lambda *report: found.append(report), Stop())
        assert found == [(CheckpointId(2, 1, 310), 1.0)]

    def test_a_speed_is_reported_with_the_hosts_of_the_training_job(self, container):
        written = Written()
        environ = container("algo-1", "algo-1", "algo-2", "algo-3")
        CheckpointReports(environ, lambda: written).report(CheckpointId(1, 0, 5), 2.5)
        assert written == [(3, 2.5)]
