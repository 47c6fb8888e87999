"""The speed of a job whose script does not report it, from the container's first process."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from trainmaster.worker.checkpoints.notices import NodeWorld, Notices
from trainmaster.worker.container import checkpoint_speed
from trainmaster.worker.container.checkpoint_speed import MAX_ENTRIES, TRAINER_STATE, CheckpointSpeed, counter_of
from trainmaster.worker.container.container import Container
from trainmaster.worker.container.run import world_of
from trainmaster.worker.container.speed_watch import HINT_SECONDS, POLL_SECONDS, SpeedWatch
from trainmaster.worker.progress import GlobalBatch, SpeedMeter, SpeedReporter, run_now


class Machine:
    """A container: its clocks, its files, and what was reported. `later` runs between two looks of the watch."""

    def __init__(self, root, notices):
        self.root, self.notices = root, notices
        self.now, self.wall, self.reports = 1_000.0, 1_800_000_000.0, []
        self.world, self.batch = NodeWorld(0, 0, 2), None
        meter = SpeedMeter(lambda: self.now)
        self.reporter = SpeedReporter(lambda: self, meter=meter, start=run_now)

    def __call__(self):
        return self.now

    def write(self, instances, rate):
        self.reports.append((instances, rate))

    def save(self, step, epoch, folder=".", **state):
        path = self.root / folder / f"checkpoint-{step}"
        path.mkdir(parents=True, exist_ok=True)
        (path / TRAINER_STATE).write_text(json.dumps({"global_step": step, "epoch": epoch, **state}))
        os.utime(path / TRAINER_STATE, (self.wall, self.wall))

    def touch(self, name, *, folder=False):
        path = self.root / name
        (path if folder else path.parent).mkdir(parents=True, exist_ok=True)
        if not folder:
            path.write_text("")
        os.utime(path, (self.wall, self.wall))

    def watch(self, seconds, events=lambda second: None):
        looks = iter(range(int(seconds / POLL_SECONDS)))

        class Stop:
            @staticmethod
            def wait(_):
                look = next(looks, None)
                for second in range(int(POLL_SECONDS)) if look is not None else ():
                    self.now, self.wall = self.now + 1, self.wall + 1
                    events(look * int(POLL_SECONDS) + second + 1)
                return look is None

        checkpoints = CheckpointSpeed(self.root, self.batch, lambda: self.now, lambda: self.wall)
        SpeedWatch(self.notices, self.reporter, checkpoints, lambda: self.world).run(Stop())


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "notices").mkdir(mode=0o700)
    (tmp_path / "checkpoints").mkdir()
    return Machine(tmp_path / "checkpoints", Notices(tmp_path / "notices"))


def training_at(machine, *, steps, epochs, every=100, folder="."):
    """Return events of a training that does so many steps and epochs a second, and saves after so many steps."""

    def event(second):
        step = round(second * steps)
        if step % every == 0 and step:
            machine.save(step, second * epochs, folder)

    return event


class TestTrainer:
    def test_the_speed_is_in_epochs_which_mean_the_same_at_every_size(self, machine):
        """At twice the size, the Trainer's global batch is twice as large: the same steps are 1.9 times the work."""
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        at_one = machine.reports[-1]
        machine.reports.clear()
        machine.watch(1_000, training_at(machine, steps=0.95, epochs=0.019, every=95, folder="two"))
        assert (at_one, machine.reports[-1]) == ((2, pytest.approx(0.01)), (2, pytest.approx(0.019)))

    def test_a_folder_below_counts_too(self, machine):
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.5, folder="run-1"))
        assert machine.reports
        assert all(rate == pytest.approx(0.5) for _, rate in machine.reports)

    def test_checkpoints_of_an_earlier_attempt_are_no_progress(self, machine):
        machine.save(6_000, 60.0)
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        assert all(rate == pytest.approx(0.01) for _, rate in machine.reports)

    def test_rotated_checkpoints_count(self, machine):
        train = training_at(machine, steps=1, epochs=0.01)

        def rotate(second):
            train(second)
            shutil.rmtree(machine.root / f"checkpoint-{second - 100}", ignore_errors=True)

        machine.watch(1_000, rotate)
        assert machine.reports

    def test_a_crash_and_a_resume_within_the_container_are_not_taken_for_slow_training(self, machine):
        def events(second):
            if second <= 690 and second % 200 == 0:  # crashes then; back after 300 s from step 600
                machine.save(second, second / 100)
            if second > 990 and (second - 990) % 200 == 0:
                machine.save(600 + second - 990, (600 + second - 990) / 100)

        machine.watch(2_000, events)
        assert len(machine.reports) >= 4
        assert all(rate == pytest.approx(0.01) for _, rate in machine.reports)

    def test_checkpoints_that_are_written_again_begin_another_measurement(self, machine):
        def events(second):
            if second % 200 == 0:
                step = second if second <= 600 else second - 400  # returned to step 200
                machine.save(step, step / 100)

        machine.watch(1_600, events)
        assert all(rate == pytest.approx(0.01) for _, rate in machine.reports)

    def test_a_training_that_has_become_slow_is_reported_as_slow(self, machine):
        def events(second):
            if second % 200 == 0:
                machine.save(second, second / 100 if second <= 600 else 6 + (second - 600) / 1_000)

        machine.watch(1_600, events)
        assert machine.reports[-1] == (2, pytest.approx(0.001))

    @pytest.mark.parametrize("jump", [-50, -5_000, 5_000])
    def test_a_clock_that_is_set_changes_no_speed(self, machine, jump):
        train = training_at(machine, steps=1, epochs=0.01, every=200)

        def events(second):
            if second == 550:
                machine.wall += jump
            train(second)

        machine.watch(1_600, events)
        assert [rate for _, rate in machine.reports] == pytest.approx([0.01] * 7, rel=0.05)

    @pytest.mark.parametrize("state", [{"num_train_epochs": sys.maxsize}, {"epoch": None}, {"epoch": "3"}])
    def test_data_without_a_length_have_no_epochs(self, machine, state, caplog):
        """Their epoch is the step divided by the number of steps, whose work depends on the size."""

        def events(second):
            if second % 200 == 0:
                machine.save(second, **{"epoch": second / 5_000, **state})

        machine.watch(HINT_SECONDS + 100, events)
        assert machine.reports == []
        assert "set TRAINMASTER_GLOBAL_BATCH to fixed or per-instance" in caplog.text

    def test_files_of_any_content_end_nothing(self, machine):
        for step, text in enumerate(["", "[]", "{", '{"epoch": 1e999}', "null"]):
            (machine.root / f"checkpoint-{step}").mkdir()
            (machine.root / f"checkpoint-{step}" / TRAINER_STATE).write_text(text)
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        assert machine.reports

    def test_a_directory_that_does_not_exist_has_none(self, tmp_path):
        assert CheckpointSpeed(tmp_path / "none").measure() is None


NAMES = {
    "{}.orbax-checkpoint-tmp-7": None,
    "ckpt.pt": None,
    "checkpoint.pth.tar": None,
    "last.ckpt": None,
    "events.out.tfevents.{}": None,
    "epoch_{}_samples.png": None,
    "latest-rank0.pt": None,
    "a0001-r000003-s{}": None,
    "epoch={}-step=300.ckpt": "epoch",
    "epoch={}-loss=0.06-v1.ckpt": "epoch",
    "ep{}-ba300-rank0.pt": "epoch",
    "epoch_{}.pth": "epoch",
    "epoch_{}/": "epoch",
    "{}/": "step",
    "step_{}/": "step",
    "step-{}/": "step",
    "global_step{}/": "step",
    "iter_000{}/": "step",
    "iter_{}.pth": "step",
    "checkpoint_{}/": "step",
    "checkpoint-{}/": "step",
    "gpt--val_loss=5.10-step=4-consumed_samples={}.0-last.ckpt": "samples",
}
"""Names of Lightning, Composer, mmengine, torchtune, Orbax, Accelerate, torchtitan, DeepSpeed, Megatron, Flax, NeMo."""


@pytest.mark.parametrize(("name", "unit"), NAMES.items())
def test_the_names_of_frameworks_tell_their_counters(name, unit):
    counter = counter_of(name.format(12).rstrip("/"), is_folder=name.endswith("/"))
    assert (counter is None) == (unit is None)
    if unit is not None:
        assert getattr(counter, unit) == 12


class TestNames:
    """Counters in the names of checkpoints, which any framework writes."""

    DEEP = "lightning_logs/version_0/checkpoints/"

    @pytest.mark.parametrize("name", [DEEP + "epoch={0}-step={1}.ckpt", "run/ep{0}-ba{1}-rank0.pt", "epoch_{0}.pth"])
    def test_epochs_count_that_are_saved_one_by_one(self, machine, name):
        def events(second):
            if second % 200 == 0:
                machine.touch(name.format(second // 200, second))

        machine.watch(2_000, events)
        assert machine.reports == [(2, pytest.approx(1 / 200))] * 8

    def test_every_fifth_epoch_counts_too(self, machine):
        machine.watch(2_000, lambda second: second % 300 or machine.touch(f"epoch={second // 60}-step=1.ckpt"))
        assert machine.reports
        assert all(rate == pytest.approx(1 / 60) for _, rate in machine.reports)

    def test_epochs_that_are_saved_in_between_tell_nothing(self, machine, caplog):
        """The share of the epoch that is done is not known, and the number of its steps depends on the size."""
        names = [f"epoch={second // 500}-step={second}.ckpt" for second in range(3_000)]
        machine.watch(2_990, lambda second: second % 150 or machine.touch(names[second]))
        assert machine.reports == []
        assert "nothing tells this job's speed" in caplog.text

    def test_files_of_several_ranks_are_one_checkpoint(self, machine):
        def events(second):
            if second % 200 < 40 and second % 20 == 0 and second >= 200:
                machine.touch(f"ep{second // 200}-ba{second // 200}-rank{second % 200}.pt")

        machine.watch(2_000, events)
        assert machine.reports == [(2, pytest.approx(1 / 200))] * 8

    def test_samples_mean_the_same_at_every_size(self, machine):
        name = "gpt--step={0}-consumed_samples={0}.0-last.ckpt"
        machine.watch(1_000, lambda second: second % 200 or machine.touch(name.format(8 * second)))
        assert machine.reports == [(2, pytest.approx(8.0))] * 4

    @pytest.mark.parametrize("name", ["global_step{}", "iter_{:07}", "{}", "run/step_{}"])
    @pytest.mark.parametrize(("batch", "rate"), [("fixed", 3.0), ("per-instance", 6.0)])
    def test_steps_count_if_it_is_known_what_a_step_is(self, machine, name, batch, rate):
        machine.batch = GlobalBatch(batch)
        machine.watch(1_000, lambda second: second % 200 or machine.touch(name.format(3 * second), folder=True))
        assert machine.reports == [(2, pytest.approx(rate))] * 4

    def test_else_the_log_says_what_to_set(self, machine, caplog):
        machine.watch(2_000, lambda second: second % 200 or machine.touch(f"global_step{second}", folder=True))
        assert machine.reports == []
        assert "set TRAINMASTER_GLOBAL_BATCH to fixed or per-instance" in caplog.text

    def test_a_trainers_epochs_go_before_the_steps_in_its_names(self, machine):
        """A look may find a folder whose state is not written yet."""
        machine.batch = GlobalBatch.PER_INSTANCE

        def events(second):
            if second % 200 == 190:
                machine.touch(f"checkpoint-{second + 10}", folder=True)
            if second % 200 == 0:
                machine.save(second, second / 100)

        machine.watch(1_600, events)
        assert machine.reports
        assert all(rate == pytest.approx(0.01) for _, rate in machine.reports)

    def test_a_directory_of_very_many_files_is_read_in_part(self, machine):
        for number in range(MAX_ENTRIES + 100):
            (machine.root / f"image-{number}.png").touch()
        machine.watch(30)


class TestWorlds:
    """With the hook `members`, all containers see the same checkpoints, and the rendezvous tells their size."""

    @pytest.mark.parametrize(
        ("hook", "world"),
        [
            ("restart", NodeWorld(0, 1, 3)),
            ("members", NodeWorld(3, 0, 5)),
            ("custom", None),
        ],
    )
    def test_the_hook_says_where_a_containers_world_is_known_from(self, machine, hook, world):
        hosts = ("algo-1", "algo-2", "algo-3")
        container = Container(
            base=machine.root, training_job_name="bert", host=hosts[1], hosts=hosts, address="127.0.0.1"
        )
        machine.notices.announce_world(NodeWorld(3, 0, 5))
        assert world_of(container, machine.notices, {"TRAINMASTER_HOOK": hook}) == world

    def test_only_the_first_node_of_a_world_reports(self, machine):
        for world in (NodeWorld(3, 1, 2), None):
            machine.world = world
            machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        assert machine.reports == []
        machine.world = NodeWorld(3, 0, 4)
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        assert machine.reports == [(4, pytest.approx(0.01))] * len(machine.reports) != []

    def test_no_measurement_is_of_two_worlds(self, machine):
        """At 1,000 s the world grows; the workers resume from the checkpoint at 900 s, and train twice as fast."""

        def events(second):
            if second == 1_000:
                machine.world = NodeWorld(4, 0, 4)
            if second < 1_000 and second % 150 == 0:
                machine.save(second, second / 1_000)
            elif second > 1_060 and (second - 1_060) % 150 == 0:
                machine.save(900 + second - 1_060, 0.9 + (second - 1_060) / 500)

        machine.watch(2_000, events)
        small, large = machine.reports[:5], machine.reports[5:]
        assert (small, large) == ([(2, pytest.approx(0.001))] * 5, [(4, pytest.approx(0.002))] * 5)

    def test_another_node_that_becomes_the_first_reports_only_what_it_has_seen_as_such(self, machine):
        machine.world = NodeWorld(3, 1, 3)
        train = training_at(machine, steps=1, epochs=0.01, every=200)

        def events(second):
            if second == 1_100:
                machine.world = NodeWorld(4, 0, 2)
            train(second)

        machine.watch(1_700, events)
        assert machine.reports == [(2, pytest.approx(0.01))] * 2

    def test_a_count_needs_no_size_where_the_world_tells_it(self, machine):
        path = machine.notices.directory / "count"
        machine.world = NodeWorld(3, 0, 5)
        machine.watch(400, lambda second: second % 10 or path.write_text(f"{second * 64}\n"))
        assert machine.reports == [(5, pytest.approx(64.0))] * 2
        machine.world = None  # as with a custom hook
        machine.watch(400, lambda second: second % 10 or path.write_text(f"{second * 64}\n"))
        assert len(machine.reports) == 2


class TestWatch:
    def test_without_any_source_the_log_says_so_once(self, machine, caplog):
        (machine.root / "ckpt.pt").write_text("")
        machine.watch(3 * HINT_SECONDS)
        assert len(caplog.records) == 1
        assert f"no checkpoint in {machine.root} tells how many epochs are done" in caplog.text

    def test_it_ends_as_soon_as_a_worker_counts(self, machine, caplog):
        machine.notices.announce_progress()
        machine.watch(2 * HINT_SECONDS, training_at(machine, steps=1, epochs=0.01))
        assert (machine.reports, caplog.records) == ([], [])

    def test_it_ends_if_the_directory_of_notices_is_gone(self, machine):
        """Then no worker can tell that it counts, in a unit of its own."""
        shutil.rmtree(machine.notices.directory)
        machine.watch(1_000, training_at(machine, steps=1, epochs=0.01))
        assert machine.reports == []

    @pytest.mark.parametrize(("form", "size"), [("{}\n", 2), ("{} 4", 4)])
    def test_a_program_in_any_language_counts_in_a_file(self, machine, form, size):
        path = machine.notices.directory / "count"
        machine.watch(1_000, lambda second: path.write_text(form.format(second * 64)))
        assert machine.reports == [(size, pytest.approx(64.0))] * 3

    def test_an_evaluation_makes_a_measurement_longer(self, machine):
        path, done = machine.notices.directory / "count", [0]

        def events(second):
            done[0] += 0 if second % 600 >= 500 else 10
            if second % 5 == 0:
                path.write_text(str(done[0]))

        for offset in (0, 150, 300, 450):
            machine.reports.clear()
            machine.reporter = SpeedReporter(lambda: machine, meter=SpeedMeter(machine), start=run_now)
            machine.watch(1_500, lambda second, offset=offset: events(second + offset))
            assert all(8.3 * 0.9 < rate <= 10.1 for _, rate in machine.reports), offset
            assert machine.reports

    @pytest.mark.parametrize("every", [7, 11, 15, 60])
    def test_a_count_that_is_written_rarely_tells_the_speed(self, machine, every):
        path = machine.notices.directory / "count"
        machine.watch(1_800, lambda second: path.write_text(str(second // every * every * 10)))
        assert [rate for _, rate in machine.reports] == pytest.approx([10.0] * len(machine.reports), rel=0.1)
        assert len(machine.reports) >= 2

    def test_a_file_that_is_read_while_it_is_written_tells_no_other_speed(self, machine):
        path, train = machine.notices.directory / "count", training_at(machine, steps=1, epochs=0.01, every=150)

        def events(second):
            train(second)
            number = str(1_000_000 + 10 * second)
            path.write_text({200: "", 250: number[:1], 600: "", 800: number[:-1]}.get(second, number))

        machine.watch(1_000, events)
        assert machine.reports == [(2, pytest.approx(10.0))] * 3

    @pytest.mark.parametrize("text", ["many", "", " \n", "5 many"])
    def test_a_count_that_is_none_is_logged_at_most_once(self, machine, text, caplog):
        (machine.notices.directory / "count").write_text(text)
        machine.watch(1_000)
        assert len(caplog.records) <= 1
        assert machine.reports == []

    def test_the_default_clocks_are_those_of_the_machine(self, tmp_path):
        speed, time = CheckpointSpeed(tmp_path), checkpoint_speed.time
        assert (speed.clock(), speed.wall()) <= (time.monotonic(), time.time())
