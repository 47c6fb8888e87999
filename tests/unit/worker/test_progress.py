"""Reports of a job's speed: measured rarely, written in the background, and never in the way of the training."""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.worker import training
from trainmaster.worker.batch import DIVIDED, part_of
from trainmaster.worker.checkpoints.notices import DIRECTORY_VARIABLE, Notices
from trainmaster.worker.progress import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    STEPS_HINT,
    WARM_UP_SECONDS,
    GlobalBatch,
    SpeedMeter,
    SpeedReporter,
    global_batch,
    instances_of,
    reports_here,
    run_now,
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


class Device:
    """A tensor whose value cannot be read, as torch's on its device `meta`."""

    def __float__(self):
        raise RuntimeError("no data")


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

    @pytest.mark.parametrize("epoch", [3, 30, 55, 80, 115, 300, 2_000])
    def test_a_count_that_starts_again_each_epoch_tells_the_speed(self, epoch):
        clock = Clock()
        meter, found = SpeedMeter(clock), []
        for call in range(40_000):
            found.append(meter.count(call % (10 * epoch)))
            clock.now += 0.1
        rates = [rate for rate in found if rate is not None]
        assert rates == pytest.approx([10.0] * 5)

    def test_evaluations_between_epochs_are_part_of_the_time(self):
        clock = Clock()
        meter, found = SpeedMeter(clock), []
        for _ in range(100):
            for step in range(80):
                clock.now += 1
                found.append(meter.count(step))
            clock.now += 20
        assert [rate for rate in found if rate] == pytest.approx([0.8] * 8, rel=0.1)

    def test_a_return_to_a_checkpoint_loses_no_speed(self):
        clock = Clock()
        meter, found, step = SpeedMeter(clock), [], 0
        for second in range(2_000):
            step = step - 280 if second == 900 else step + 1
            found.append(meter.count(step))
            clock.now += 1
        assert [rate for rate in found if rate] == pytest.approx([1.0] * 4)

    def test_a_pause_makes_a_measurement_longer(self):
        """At a true 20 steps a second, a minute of evaluation in a first window of two read as 10."""
        clock = Clock()
        meter, found, step = SpeedMeter(clock), [], 0
        while not found:
            step, clock.now = step + 1, clock.now + 0.05 + (60 if step == 1_300 else 0)
            rate = meter.count(step)
            found = [] if rate is None else [rate]
        assert found == [pytest.approx(18.0, rel=0.01)]

    def test_evaluations_hardly_ever_make_a_faster_size_look_slower(self):
        """Evaluates on one rank alone, which no size shortens; the first report of twice the size is compared."""
        chance = random.Random(1)

        def first(rate, every, evaluation):
            clock = Clock()
            meter, step, found = SpeedMeter(clock), chance.randrange(every), None
            while found is None:
                step, clock.now = step + 1, clock.now + 1 / rate
                found = meter.count(step)
                clock.now += evaluation if step % every == 0 else 0
            return found

        mean = 1 / (1 / 2.0 + 60 / 600)  # of the small size, with its evaluations
        slower = sum(first(3.0, 600, 60) < 0.95 * mean for _ in range(100))
        assert slower <= 5

    def test_a_pause_in_which_the_same_count_is_told_again_is_one(self):
        clock = Clock()
        meter, found, step = SpeedMeter(clock), [], 0
        for second in range(1_200):
            step += 0 if 100 <= second < 200 else 10
            found.append(meter.count(step))
            clock.now += 1
        assert next(rate for rate in found if rate) == pytest.approx(9.0, rel=0.02)

    @pytest.mark.parametrize("part", [1, 10, 100_150])
    def test_a_number_that_was_read_in_part_is_no_work(self, part):
        clock = Clock()
        meter, found = SpeedMeter(clock), []
        for second in range(0, 700, 10):
            found.append(meter.count(part if second == 150 else 1_000_000 + 10 * second))
            clock.now += 10
        assert [rate for rate in found if rate] == pytest.approx([10.0] * 3)

    def test_epochs_of_two_steps_tell_the_speed_from_either_of_them(self):
        for first in (0, 1):
            clock = Clock()
            meter, found = SpeedMeter(clock), []
            for second in range(700):
                found.append(meter.count((first + second) % 2))
                clock.now += 1
            assert [rate for rate in found if rate] == pytest.approx([1.0] * 3)

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
        reporter = SpeedReporter(lambda: written, meter=SpeedMeter(clock), start=run_now)
        for _ in range(400):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert written == [(4, pytest.approx(1.0))] * 2

    def test_training_never_waits_and_one_report_is_under_way(self):
        clock, written, pending = Clock(), Written(), []
        reporter = SpeedReporter(lambda: written, meter=SpeedMeter(clock), start=pending.append)
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
        reporter = SpeedReporter(lambda: written, meter=SpeedMeter(clock), start=run_now)
        for wrong in (None, Device(), "many", 10**400, [], "x" * 10_000):
            reporter.count(wrong, 4)
        assert len(caplog.records) == 1
        assert len(caplog.text) < 300
        for _ in range(200):
            reporter.count(2.0 * clock.now, 4)
            clock.now += 1
        assert written == [(4, pytest.approx(2.0))]

    def test_another_size_begins_again(self):
        clock, written = Clock(), Written()
        reporter = SpeedReporter(lambda: written, meter=SpeedMeter(clock), start=run_now)
        for second in range(500):
            size = 1 if second < 240 else 2
            reporter.count(clock.now * size, size)
            clock.now += 1
        assert written == [(1, pytest.approx(1.0)), (2, pytest.approx(2.0))]

    @pytest.mark.parametrize(("batch", "factor"), [("fixed", 1), ("per-instance", 2)])
    def test_checkpoints_tell_the_speed_of_a_script_that_does_not_count(self, batch, factor):
        clock, written = Clock(), Written()
        meters = {"meter": SpeedMeter(clock), "checkpoints": SpeedMeter(clock, 0, 1)}
        reporter = SpeedReporter(lambda: written, lambda: 2, **meters, start=run_now)
        for step in (100, 400, 460, 1_000):
            clock.now += 300
            reporter.count_checkpoint(step, GlobalBatch(batch))
        assert written == [(2, 1.0 * factor), (2, 0.2 * factor), (2, 1.8 * factor)]
        reporter.count(5.0)
        for step in (2_000, 3_000, 4_000):
            clock.now += 900
            reporter.count_checkpoint(step, GlobalBatch(batch))
        assert len(written) == 3, "the script counts in another unit"

    def test_by_default_it_writes_in_a_thread(self):
        clock, done = Clock(), threading.Event()

        class Noting:
            def write(self, instances, rate):
                done.set()

        reporter = SpeedReporter(Noting, meter=SpeedMeter(clock))
        for _ in range(200):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert done.wait(10)

    def test_a_thread_that_does_not_start_ends_no_later_report(self, caplog):
        clock, written = Clock(), Written()
        fails = [RuntimeError("can't start new thread")]

        def start(function):
            if fails:
                raise fails.pop()
            function()

        reporter = SpeedReporter(lambda: written, meter=SpeedMeter(clock), start=start)
        for _ in range(400):
            reporter.count(clock.now, 4)
            clock.now += 1
        assert written == [(4, pytest.approx(1.0))]
        assert "speed could not be reported: RuntimeError: can't start new thread" in caplog.text

    def test_a_report_that_fails_is_logged_once_and_the_next_is_tried(self, caplog):
        fails = [OSError("no network"), RuntimeError("denied")]
        written = Written()

        def make():
            if fails:
                raise fails.pop()
            return written

        reporter = SpeedReporter(make)
        for rate in (1.0, 2.0, 3.0):
            reporter.report(rate, 4)
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


def test_where_torchrun_ranks_the_hosts_the_first_rank_reports(container):
    """Its ranks follow addresses, so rank 0 may be on any host."""
    hosts = ("algo-1", "algo-2")
    assert reports_here(container("algo-2", *hosts, RANK="0", GROUP_WORLD_SIZE="2"))
    assert not reports_here(container("algo-1", *hosts, RANK="8", GROUP_WORLD_SIZE="2"))


@pytest.fixture
def inside(container, tmp_path, monkeypatch):
    """Return a function that makes this process one of a container's, and returns the directory of notices."""

    def enter(current="algo-1", **environ):
        directory = tmp_path / "notices"
        directory.mkdir(mode=0o700)
        monkeypatch.delenv("RANK", raising=False)
        for name, text in container(current, "algo-1", "algo-2", **{DIRECTORY_VARIABLE: str(directory)}).items():
            monkeypatch.setenv(name, text)
        for name, text in environ.items():
            monkeypatch.setenv(name, text)
        return directory

    clear_caches()
    yield enter
    clear_caches()


def clear_caches():
    training.speed_reporter.cache_clear()
    training.stated_batch.cache_clear()
    training.log_steps_hint.cache_clear()
    DIVIDED.clear()


def test_one_call_in_the_training_loop_counts(inside):
    directory = inside()
    training.progress(1)
    training.progress(2, instances=3)
    assert training.speed_reporter() is not None
    assert Notices(directory).counts_progress


@pytest.mark.parametrize(("host", "rank"), [("algo-2", "0"), ("algo-1", "3")])
def test_each_rank_says_that_the_script_counts(inside, host, rank):
    """Else `trainmaster-run` on another host reports its checkpoints, in another unit."""
    directory = inside(host, RANK=rank)
    training.progress(1)
    assert training.speed_reporter() is None
    assert Notices(directory).counts_progress


def test_without_a_rank_in_the_environment_torch_tells_it(inside, monkeypatch):
    class Dist:
        is_available = is_initialized = staticmethod(lambda: True)
        get_rank = staticmethod(lambda: 2)

    inside()
    monkeypatch.setitem(sys.modules, "torch.distributed", Dist)
    training.progress(1)
    assert training.speed_reporter() is None


class OldJax:
    """A JAX from before 2025, whose `jax.distributed` does not tell whether it is initialized."""

    distributed = SimpleNamespace()

    def __init__(self, process, processes):
        client = object() if processes > 1 else None
        self.private = SimpleNamespace(global_state=SimpleNamespace(client=client))
        self.process_index = lambda: process


@pytest.mark.parametrize(("process", "processes", "reports"), [(0, 1, True), (0, 2, True), (1, 2, False)])
def test_an_old_jax_tells_the_rank(inside, monkeypatch, process, processes, reports):
    directory, jax = inside(), OldJax(process, processes)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.distributed", jax.private)
    training.progress(1)
    assert (training.speed_reporter() is not None) == reports
    assert Notices(directory).counts_progress


def test_an_old_jax_that_is_not_initialized_trains_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", OldJax(0, 1))
    assert isinstance(training.process_group(), training.SingleProcess)


class TestNothingEndsTheTraining:
    def test_a_rank_that_is_not_known_leaves_the_report_to_others(self, inside, monkeypatch, caplog):
        def unknown():
            raise RuntimeError("backend is gone")

        directory = inside()
        jax = SimpleNamespace(distributed=SimpleNamespace(is_initialized=lambda: True), process_index=unknown)
        monkeypatch.setitem(sys.modules, "jax", jax)
        training.progress(1)
        assert "speed is not reported: RuntimeError: backend is gone" in caplog.text
        assert not Notices(directory).counts_progress

    def test_a_script_that_clears_the_directory_for_temporary_files(self, inside):
        directory = inside()
        shutil.rmtree(directory)
        training.progress(1)
        assert training.speed_reporter() is not None

    def test_a_directory_that_belongs_to_another_user(self, inside, caplog):
        inside().chmod(0o755)
        for step in range(3):
            training.progress(step)
        assert len(caplog.records) == 1
        assert "speed is not reported: PermissionError" in caplog.text

    def test_hosts_of_another_form(self, inside, tmp_path, caplog):
        inside()
        config = {"current_host": "algo-1", "hosts": 5, "network_interface_name": "lo"}
        (tmp_path / "input" / "config" / "resourceconfig.json").write_text(json.dumps(config))
        training.progress(1)
        assert len(caplog.records) == 1

    def test_a_size_that_is_no_number(self, inside, caplog):
        inside()
        for _ in range(3):
            training.progress(1, instances="two")
        assert len(caplog.records) == 1


def test_a_call_reads_no_file(inside, tmp_path):
    inside()
    training.progress(1)
    (tmp_path / "input" / "config" / "resourceconfig.json").unlink()
    training.progress(2)
    assert training.speed_reporter() is not None


def test_checkpoints_in_any_directory_are_counted(inside, tmp_path):
    notices = Notices(inside(TRAINMASTER_GLOBAL_BATCH="fixed"))
    with training.checkpoints(tmp_path / "shared" / "run-1").writing(40) as directory:
        assert not notices.counts_progress
        (directory / "state").write_text("x")
    assert notices.counts_progress


def test_steps_of_checkpoints_tell_nothing_unless_it_is_known_what_a_step_is(inside, tmp_path, caplog):
    """In most scripts a step is more work on more instances: a job that scales would look as if it gained nothing."""
    notices = Notices(inside())
    for step in (40, 80):
        with training.checkpoints(tmp_path / "run-1").writing(step) as directory:
            (directory / "state").write_text("x")
    assert not notices.counts_progress, "other sources may tell"
    assert [record.message for record in caplog.records] == [STEPS_HINT]


def test_steps_of_a_script_that_divides_one_batch_count_by_themselves(inside, tmp_path, caplog):
    notices = Notices(inside())
    part_of(64, world=2, rank=0)
    with training.checkpoints(tmp_path / "run-1").writing(40) as directory:
        (directory / "state").write_text("x")
    assert notices.counts_progress
    assert caplog.records == []


def test_a_script_that_counts_its_progress_hears_nothing_of_steps(inside, tmp_path, caplog):
    inside()
    training.progress(1)
    with training.checkpoints(tmp_path / "run-1").writing(1) as directory:
        (directory / "state").write_text("x")
    assert caplog.records == []


@pytest.mark.parametrize(("text", "batch"), [("", None), ("fixed", "fixed"), ("per-instance", "per-instance")])
def test_the_environment_says_what_a_step_is(text, batch, caplog):
    assert global_batch({"TRAINMASTER_GLOBAL_BATCH": text}) == batch
    assert caplog.records == []


def test_another_word_says_nothing_and_is_logged(caplog):
    assert global_batch({"TRAINMASTER_GLOBAL_BATCH": "Fixed"}) is None
    assert "TRAINMASTER_GLOBAL_BATCH is 'Fixed', not one of: fixed, per-instance" in caplog.text


def test_started_by_hand_the_call_does_nothing(monkeypatch):
    for name in JOB:
        monkeypatch.delenv(name, raising=False)
    training.speed_reporter.cache_clear()
    try:
        training.progress(1)
        assert training.speed_reporter() is None
    finally:
        training.speed_reporter.cache_clear()
