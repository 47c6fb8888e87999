"""Workers that fork from a process which has imported their modules: they are as workers that were started alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import alive
from trainmaster.worker.warm import start
from trainmaster.worker.warm.server import start_server
from trainmaster.worker.warm.start import PRELOAD, SOCKET

AGENT = """
import os, subprocess, sys
from trainmaster.worker.warm.server import start_server
start_server(os.environ)
print(os.environ.get("TRAINMASTER_WARM_SOCKET", ""), flush=True)
sys.stdin.read()
"""
HEAVY = "import os\nIMPORTED_BY = os.getpid()\n"
TELL = """
import json, os, sys
import heavy, beside
print(json.dumps({
    "warm": heavy.IMPORTED_BY != os.getpid(), "argv": sys.argv, "first": sys.path[0], "cwd": os.getcwd(),
    "name": __name__, "file": __file__, "round": os.environ.get("ROUND"), "only": "GONE" in os.environ,
    "main": sys.modules["__main__"].__dict__ is globals(), "pid": os.getpid(), "session": os.getsid(0),
    "stdin": sys.stdin.read(), "open": sorted(os.listdir("/proc/self/fd"))}))
sys.stderr.write("said to stderr\\n")
"""


class Agent:
    """A process with a server.

    Args:
        home: with the modules and scripts.
        preload: what the server imports.
    """

    def __init__(self, home: Path, preload: str):
        self.home = home
        path = f"{home}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        self.environ = {**os.environ, PRELOAD: preload, "PYTHONPATH": path, "TMPDIR": str(home), "GONE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT],
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.socket = self.process.stdout.readline().strip()
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start a worker as torch's agent does."""
        environ = {name: value for name, value in self.environ.items() if name != "GONE"}
        process = subprocess.Popen(
            [sys.executable, "-u", start.__file__, *arguments],
            env=environ | {SOCKET: self.socket} | more,
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def close(self):
        """End it, and all that it has started."""
        for process in (self.process, *self.started):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "heavy.py").write_text(HEAVY)
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "beside.py").touch()
    (scripts / "tell.py").write_text(TELL)
    return tmp_path


@pytest.fixture
def agent(home):
    opened = Agent(home, "heavy")
    yield opened
    opened.close()


def script(home, text):
    (home / "script.py").write_text(text)
    return "script.py"


def told(process, given=""):
    output, errors = process.communicate(given, timeout=60)
    assert process.returncode == 0, errors
    return json.loads(output), errors


def eventually(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_has_what_the_server_has_imported_and_all_else_of_its_command(agent, home):
    found, errors = told(agent.start("scripts/tell.py", "--lr", "0.1", ROUND="7"), "given")
    assert found.pop("warm")
    pid = found.pop("pid")
    assert found.pop("session") == pid
    assert found.pop("open") == ["0", "1", "2", "3"], "none but its streams, and the folder that is listed"
    assert found == {
        "argv": ["scripts/tell.py", "--lr", "0.1"],
        "first": str(home / "scripts"),
        "cwd": str(home),
        "name": "__main__",
        "file": str(home / "scripts" / "tell.py"),
        "round": "7",
        "only": False,
        "main": True,
        "stdin": "given",
    }
    assert errors == "said to stderr\n"


def test_without_a_server_it_is_the_same_and_only_cold(agent, home):
    warm, _ = told(agent.start("scripts/tell.py", "a", ROUND="7"))
    cold, _ = told(agent.start("scripts/tell.py", "a", ROUND="7", **{SOCKET: str(home / "absent")}))
    assert (warm.pop("warm"), cold.pop("warm")) == (True, False)
    for each in (warm, cold):
        assert each.pop("pid") == each.pop("session")
        del each["open"]
    assert warm == cold


def test_a_module_runs_as_one(agent, home):
    (home / "package").mkdir()
    (home / "package" / "__main__.py").write_text(
        "import sys, json\nprint(json.dumps([__name__, __package__, *sys.argv]))"
    )
    found, _ = told(agent.start("-m", "package", "a", "b"))
    assert found == ["__main__", "package", str(home / "package" / "__main__.py"), "a", "b"]


@pytest.mark.parametrize("preload", ["absent", "heavy,broken", "exits"])
def test_modules_that_cannot_be_imported_change_nothing_but_the_speed(home, preload):
    (home / "broken.py").write_text("1 / 0")
    (home / "exits.py").write_text("raise SystemExit(3)")
    agent = Agent(home, preload)
    found, _ = told(agent.start("scripts/tell.py"))
    assert not found["warm"]
    agent.close()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit(0)", 0),
        ("import os; os._exit(5)", 5),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("not Python", 1),
    ],
)
def test_a_command_ends_as_its_worker_ends(agent, home, text, code):
    process = agent.start(script(home, text))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert ("ZeroDivisionError" in errors) == (text == "1 / 0")


def test_what_runs_at_exit_runs(agent, home):
    process = agent.start(
        script(home, "import atexit\natexit.register(lambda: print('last'))\nprint('first', end=' ')")
    )
    assert process.communicate(timeout=60)[0] == "first last\n"


WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), os._exit(4)))
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.write(1, f"{os.getpid()}\\n".encode())
time.sleep(600)
"""


def pids(process):
    return [int(process.stdout.readline()) for _ in range(2)]


def test_a_signal_reaches_the_worker_and_its_own_processes(agent, home):
    process = agent.start(script(home, WAITS))
    started = pids(process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(60) == 4
    assert process.stdout.read() == "saved\n"
    eventually(lambda: not any(map(alive, started)))


def test_a_command_that_is_killed_takes_its_worker_with_it(agent, home):
    process = agent.start(script(home, WAITS))
    started = pids(process)
    process.kill()
    eventually(lambda: not any(map(alive, started)))
    found, _ = told(agent.start("scripts/tell.py"))
    assert found["warm"], "the server goes on"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_agent_ends_server_and_workers(agent, home, number):
    process = agent.start(script(home, WAITS))
    started = pids(process)
    agent.process.send_signal(number)
    assert process.wait(60) == 1
    eventually(lambda: not any(map(alive, started)))
    eventually(lambda: not Path(agent.socket).parent.exists())


def test_many_workers_start_at_once_and_draw_different_numbers(home):
    agent = Agent(home, "numpy.random" if importable("numpy") else "random")
    text = "import random, sys\nmodule = sys.modules.get('numpy.random', random)\nprint(module.random())"
    same = script(home, text)  # written once: a worker may read it while it is written again
    processes = [agent.start(same) for _ in range(8)]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 8
    agent.close()


def importable(name):
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def test_no_server_starts_unless_it_is_asked_for():
    for environ in ({}, {PRELOAD: ""}, {PRELOAD: "heavy", SOCKET: "there"}):
        before = dict(environ)
        start_server(environ)
        assert environ == before
