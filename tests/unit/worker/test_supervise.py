"""The first process of a container, as a real process with real children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
from collections import UserDict
from trainmaster.worker.checkpoints.notices import DIRECTORY_VARIABLE, Notices
from trainmaster.worker.container.supervise import StopTimeouts, Supervisor
notices = Notices.create()
total, sigterm_margin, leave_timeout = (float(seconds) for seconds in sys.argv[1:4])
timeouts = StopTimeouts(
    total=total, sigterm_margin=sigterm_margin, sigkill_margin=0.2, leave_timeout=leave_timeout
)
environ = {**os.environ, DIRECTORY_VARIABLE: str(notices.directory)}
class StoppedOnTheWay(UserDict):
    def __iter__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().__iter__()
environ = StoppedOnTheWay(environ) if sys.argv[5] == "True" else environ
result = Supervisor([sys.executable, "-c", sys.argv[4]], environ, notices, timeouts).run()
print(result.returncode, result.stopped, flush=True)
"""
WORKER = """
import os, signal, sys, time
from trainmaster.worker.checkpoints.notices import Notices
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
signal.signal(signal.SIGTERM, lambda *_: (print("terminated", flush=True), os._exit(3)))
notices = Notices.from_environment(os.environ)
me = notices.register(os.getpid())
print("ready", flush=True)
while not asked:
    time.sleep(0.01)
print("asked", notices.last().reason, flush=True)
"""


class Container:
    def __init__(self, script, temporary, *, total=30.0, sigterm_margin=1.0, leave_timeout=0.0, stopped_early=False):
        arguments = [str(total), str(sigterm_margin), str(leave_timeout), textwrap.dedent(script), str(stopped_early)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)

    def rest(self):
        lines = self.process.stdout.read().splitlines()
        assert self.process.wait(60) == 0
        return lines


@pytest.fixture
def container(tmp_path):
    made = []

    def make(script, **timeouts):
        made.append(Container(script, tmp_path, **timeouts))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()


def gone(pid, within=30.0):
    until = time.monotonic() + within
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_the_exit_code_of_the_command_is_passed_on(container):
    assert container("raise SystemExit(7)").rest() == ["7 False"]


def test_a_signal_that_killed_the_command_is_told(container):
    assert container("import os; os.kill(os.getpid(), 9)").rest() == ["-9 False"]


def test_sigterm_reaches_a_script_that_knows_no_notices_at_once(container):
    one = container("""
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: (print("told", flush=True), exit(0)))
        print("ready", flush=True)
        time.sleep(60)
    """)
    assert one.line() == "ready"
    began = time.monotonic()
    one.stop()
    assert one.line() == "told"
    assert time.monotonic() - began < 15, "not only when the time is up"
    assert one.rest() == ["0 True"]


def test_sigterm_before_the_command_has_started_is_kept_for_it(container):
    """It comes while the command's environment is read: after the supervisor listens, before there is a command."""
    assert container("import time; time.sleep(60)", stopped_early=True).rest() == ["-15 True"]


def test_a_script_that_ignores_sigterm_is_killed_before_the_time_is_up(container):
    one = container(
        """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(60)
        """,
        total=1.0,
    )
    assert one.line() == "ready"
    began = time.monotonic()
    one.stop()
    assert one.rest() == ["-9 True"]
    assert 0.7 < time.monotonic() - began < 20


def test_a_script_that_answers_notices_is_asked_first_and_terminated_when_it_has_saved(container):
    one = container(WORKER + "me.answer(1)\nprint('saved', flush=True)\ntime.sleep(60)")
    assert one.line() == "ready"
    one.stop()
    assert one.rest() == ["asked stop", "saved", "terminated", "3 True"]


def test_a_script_that_never_saves_gets_sigterm_before_the_time_is_up(container):
    one = container(WORKER + "time.sleep(60)", total=40.0, sigterm_margin=39.0)
    assert one.line() == "ready"
    began = time.monotonic()
    one.stop()
    assert one.rest() == ["asked stop", "terminated", "3 True"]
    assert 0.9 < time.monotonic() - began < 20


def test_a_node_has_time_to_leave_by_itself_once_its_workers_have_saved(container):
    leaver = "me.answer(1)\nwhile notices.leave_deadline() is None: time.sleep(0.01)\ntime.sleep(0.3)\nexit(0)"
    one = container(WORKER + leaver, leave_timeout=10.0)
    assert one.line() == "ready"
    one.stop()
    assert one.rest() == ["asked stop", "0 True"]


def test_a_second_sigterm_does_not_wait_for_the_checkpoint(container):
    one = container(WORKER + "time.sleep(60)")
    assert one.line() == "ready"
    one.stop()
    assert one.line() == "asked stop"
    one.stop()
    assert one.rest() == ["terminated", "3 True"]


def test_sigusr1_from_outside_asks_for_a_checkpoint_and_stops_nothing(container):
    one = container(WORKER + "exit(0)")
    assert one.line() == "ready"
    one.process.send_signal(signal.SIGUSR1)
    assert one.rest() == ["asked resize", "0 False"]


def test_sigusr1_hurts_no_script_that_does_not_know_notices(container):
    one = container("import time; print('ready', flush=True); time.sleep(0.3)")
    assert one.line() == "ready"
    one.process.send_signal(signal.SIGUSR1)
    assert one.rest() == ["0 False"]


def test_orphans_are_reaped_while_the_script_runs(container):
    one = container("""
        import os, time
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.1)
                os._exit(0)
            os._exit(0)
        os.wait()
        print("ready", flush=True)
        time.sleep(0.5)
        states = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[1]) == os.getppid():
                    states.append(fields[0])
        print("zombies:", states.count("Z"), flush=True)
    """)
    assert one.rest() == ["ready", "zombies: 0", "0 False"]


def test_nothing_is_left_behind_when_the_script_ends(container):
    one = container("""
        import os, signal, time
        pid = os.fork()
        if pid == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        print(pid, flush=True)
    """)
    left = int(one.line())
    assert one.rest() == ["0 False"]
    assert gone(left)


def test_the_script_does_not_outlive_a_first_process_that_is_killed(container):
    one = container("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    script = int(one.line())
    one.process.kill()
    assert gone(script)


def test_a_terminal_or_simulator_that_signals_the_group_does_not_reach_the_script_past_us(container):
    one = container(WORKER + "me.answer(1)\ntime.sleep(60)")
    assert one.line() == "ready"
    os.killpg(one.process.pid, signal.SIGTERM)
    assert one.rest() == ["asked stop", "terminated", "3 True"]


def test_a_request_that_cannot_be_made_leaves_the_command_all_of_the_time(container):
    script = """
    import os, shutil, signal
    signal.signal(signal.SIGTERM, lambda *_: (print("terminated", flush=True), os._exit(3)))
    shutil.rmtree(os.environ["TRAINMASTER_NOTICES"])
    print("ready", flush=True)
    while True:
        signal.pause()
    """
    running = container(script)
    assert running.line() == "ready"
    running.process.send_signal(signal.SIGUSR1)
    running.stop()
    assert running.rest() == ["terminated", "3 True"]
