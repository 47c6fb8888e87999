"""Notices between the processes of a container, with real processes at the other end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.worker.checkpoints.notices import (
    DIRECTORY_VARIABLE,
    NodeWorld,
    Notice,
    Notices,
    Reason,
    process_start_time,
)

WORKER = """
import os, signal, sys
from trainmaster.worker.checkpoints.notices import Notices
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
me = Notices.from_environment(os.environ).register(os.getpid())
print("registered", flush=True)
while True:
    signal.sigwait({signal.SIGUSR1})
    me.answer(me.pending().number)
    print("saved", flush=True)
"""


@pytest.fixture
def notices(tmp_path):
    directory = tmp_path / "notices"
    directory.mkdir(mode=0o700)
    return Notices(directory)


@pytest.fixture
def worker(notices):
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env={**os.environ, DIRECTORY_VARIABLE: str(notices.directory)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "registered\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_notice_reaches_a_worker_by_signal_and_is_settled_once_it_has_saved(notices, worker):
    number = notices.request_checkpoint(Reason.RESIZE)
    assert worker.stdout.readline() == "saved\n"
    assert notices.is_answered(number)
    assert notices.last() == Notice(1, Reason.RESIZE)


def test_without_registered_workers_a_request_is_answered_at_once(notices):
    assert notices.is_answered(notices.request_checkpoint(Reason.DRAIN))


def test_a_worker_that_has_not_saved_yet_is_waited_for(notices, worker):
    os.kill(worker.pid, signal.SIGSTOP)
    assert not notices.is_answered(notices.request_checkpoint(Reason.STOP))


def test_a_dead_worker_is_waited_for_no_longer_even_before_it_is_reaped(notices, worker):
    os.kill(worker.pid, signal.SIGSTOP)
    number = notices.request_checkpoint(Reason.STOP)
    worker.kill()
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert notices.is_answered(number)


def test_a_request_that_is_unanswered_stands_for_the_next_one(notices):
    me = notices.register(os.getpid())
    (notices.directory / "notice.json").write_text('{"number": 1, "reason": "resize"}')
    assert notices.request_checkpoint(Reason.STOP) == 1
    me.answer(1)
    assert notices.is_answered(1)


def test_a_newcomer_owes_nothing_for_requests_from_before(notices):
    number = notices.request_checkpoint(Reason.RESIZE)
    me = notices.register(os.getpid())
    assert me.pending() is None
    assert notices.is_answered(number)


def test_a_process_id_that_is_used_again_is_not_signalled(notices):
    (notices.directory / "workers" / "1.json").write_text(f'{{"pid": {os.getpid()}, "born": 1, "saved": 0}}')
    assert notices.worker_pids() == ()
    assert notices.is_answered(notices.request_checkpoint(Reason.DRAIN))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"pid": "1", "born": 2, "saved": 0}', '{"pid": 1, "born": 2}'])
def test_an_invalid_entry_is_ignored(notices, text):
    (notices.directory / "workers" / "7.json").write_text(text)
    assert notices.is_answered(notices.request_checkpoint(Reason.DRAIN))


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="cannot be trusted"):
        Notices(tmp_path)


def test_a_new_directory_is_private(tmp_path):
    made = Notices.create(tmp_path)
    assert made.directory.stat().st_mode & 0o077 == 0
    assert Notices.from_environment({DIRECTORY_VARIABLE: str(made.directory)}).directory == made.directory
    assert Notices.from_environment({}) is None


def test_a_worker_that_was_left_behind_sees_it(tmp_path):
    make = "import sys, pathlib; from trainmaster.worker.checkpoints.notices import Notices; "
    make += "print(Notices.create(pathlib.Path(sys.argv[1])).directory)"
    made = subprocess.run([sys.executable, "-c", make, str(tmp_path)], capture_output=True, text=True, check=True)
    assert Notices(Path(made.stdout.strip())).owner_has_died()
    assert not Notices.create(tmp_path).owner_has_died()
    worker = "from trainmaster.worker import training; training.requests()"
    left = {**os.environ, DIRECTORY_VARIABLE: made.stdout.strip()}
    ended = subprocess.run([sys.executable, "-c", worker], env=left, capture_output=True, text=True, check=False)
    assert "trainmaster-run has died" in ended.stderr


def test_the_container_says_by_when_its_node_must_have_left(notices):
    assert notices.leave_deadline() is None
    notices.announce_leave(until=12.5)
    assert notices.leave_deadline() == 12.5


def test_a_node_says_in_which_world_it_is(notices):
    assert notices.world() is None
    for world in (NodeWorld(round=3, rank=1, size=4), None, NodeWorld(4, 0, 2)):
        notices.announce_world(world)
        assert notices.world() == world


def test_a_world_that_cannot_be_announced_ends_no_node(notices):
    shutil.rmtree(notices.directory)
    notices.announce_world(NodeWorld(3, 1, 4))
    assert notices.world() is None


def test_the_first_word_about_the_end_stays(notices):
    assert notices.job_failure() is None
    notices.fail_job("trainmaster: restart budget spent")
    notices.fail_job("something later")
    assert notices.job_failure() == "trainmaster: restart budget spent"


def test_a_process_that_is_gone_has_no_birth():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert process_start_time(child.pid) is None
    assert process_start_time(os.getpid()) > 0
