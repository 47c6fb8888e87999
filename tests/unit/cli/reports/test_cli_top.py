"""`trainmaster top`: what the screen shows, what a poll costs, and how it leaves a real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from cli_terminal import NOW, Terminal
from fake_api import FakeApi, a_pool, served
from samples import sample
from trainmaster.cli.reports.top import Feed, screen
from trainmaster.client.api.errors import Unreachable

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "TERM": "xterm-256color",
}
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def feed_of(world: FakeApi, run: Terminal) -> Feed:
    feed = Feed(run.api, lambda: NOW)
    feed.read()
    return feed


def test_the_screen_has_the_pools_and_the_jobs(world: FakeApi, run: Terminal) -> None:
    world.page_length = 100
    world.add("runs", "running", 5)
    world.add("waits", "pending", 1)
    lines = screen(feed_of(world, run), NOW, (100, 24)).splitlines()
    assert lines[0] == f"{NOW:%H:%M:%S}  1 pending, 1 running  (q quits)"
    assert lines[2].split()[:3] == ["Pool", "Cap", "Used"]
    names = [line.split()[0] for line in lines if line]
    assert names.index("runs") < names.index("waits")


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 12), (200, 50)])
def test_the_screen_keeps_to_its_size(world: FakeApi, run: Terminal, width: int, height: int) -> None:
    world.page_length = 100
    world.pools["pools"] = [a_pool(f"ml.x{n}.large", 2) for n in range(9)]
    for number in range(60):
        world.add(f"a-job-with-a-long-name-{number}", "pending", number)
    lines = screen(feed_of(world, run), NOW, (width, height)).splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert lines[-1].endswith("more") or height == 50


def test_a_pause_of_the_manager_is_told_below_the_headline_also_while_no_job_changes(
    world: FakeApi, run: Terminal
) -> None:
    world.tag = 'W/"one"'
    world.add("waits", "pending", 1)
    feed = feed_of(world, run)
    assert "paused" not in screen(feed, NOW, (100, 24))
    world.manager["pause"] = {"reason": "restoring", "by": "role/ops", "at": "2026-11-20T12:00:00Z"}
    feed.read()
    lines = screen(feed, NOW, (160, 12)).splitlines()
    assert lines[1].startswith("The manager is paused since")
    assert "role/ops: restoring." in lines[1]
    assert len(lines) <= 12
    assert any(line.startswith("waits") for line in lines)


def test_an_unchanged_queue_is_polled_with_its_tag_and_two_requests(world: FakeApi, run: Terminal) -> None:
    world.tag = 'W/"one"'
    world.add("runs", "running", 5)
    feed = feed_of(world, run)
    assert [path for _, path, _ in world.calls] == ["/jobs", "/pools", "/manager"]
    feed.read()
    assert [path for _, path, _ in world.calls[3:]] == ["/jobs", "/manager"]
    assert [job["jobName"] for job in feed.jobs] == ["runs"]
    world.tag = 'W/"two"'
    world.add("new", "pending", 1)
    feed.read()
    assert len(world.calls) == 8
    assert [job["jobName"] for job in feed.jobs] == ["runs", "new"]


def test_a_failed_poll_keeps_what_was_read_and_says_so(world: FakeApi, run: Terminal) -> None:
    world.add("runs", "running", 5)
    feed = feed_of(world, run)
    world.outage = [400]
    feed.read()
    shown = screen(feed, NOW + timedelta(seconds=9), (100, 24))
    assert shown.startswith(f"{NOW + timedelta(seconds=9):%H:%M:%S}  Not updated since {NOW:%H:%M:%S}: ")
    assert "runs" in shown
    feed.read()
    assert feed.problem is None


def test_it_refuses_a_pipe_and_names_what_to_use(world: FakeApi, run: Terminal) -> None:
    result = run("top")
    assert result.exit_code == 2
    assert "trainmaster ls" in result.stderr
    assert world.calls == []


@contextmanager
def on_a_terminal(world: FakeApi) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """The program on a pseudo-terminal, which stays open: the process, and both ends of the terminal."""
    master, slave = pty.openpty()
    program = [sys.executable, "-m", "trainmaster"]
    with served(world) as url:
        process = subprocess.Popen(
            [*program, "--api-url", url, "top", "-n", "1"],
            env=os.environ | ENVIRONMENT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        try:
            yield process, master, slave
        finally:
            process.kill()
            process.wait()
            os.close(master)
            os.close(slave)


def read_until(terminal: int, text: bytes, seconds: float = 30.0) -> bytes:
    """Return what is written to the terminal until this text; fails after so many seconds."""
    written, ends = b"", time.monotonic() + seconds
    while text not in written and time.monotonic() < ends:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        written += os.read(terminal, 65_536) if ready else b""
    assert text in written, written
    return written


@pytest.mark.parametrize("ending", sample(["q", signal.SIGINT, signal.SIGTERM], 2))
def test_every_end_restores_the_terminal(world: FakeApi, ending: str | signal.Signals) -> None:
    world.add("runs", "running", 5)
    with on_a_terminal(world) as (process, master, slave):
        before = termios.tcgetattr(slave)
        written = read_until(master, b"runs")
        assert ENTER in written
        assert termios.tcgetattr(slave) != before
        world.add("later", "pending", 1)
        read_until(master, b"later")
        if isinstance(ending, str):
            os.write(master, ending.encode())
        else:
            process.send_signal(ending)
        assert LEAVE in read_until(master, LEAVE)
        assert process.wait(timeout=30) == 0
        assert termios.tcgetattr(slave) == before


def test_hostile_texts_of_the_api_are_shown_without_effect(world: FakeApi, run: Terminal) -> None:
    hostile = "\x1b[2J\x9b1m\r\n[bold]\u202eme"
    world.page_length = 100
    world.add("held", "held", 5)
    world.jobs["held"] |= {"jobName": hostile, "submittedBy": hostile, "share": hostile}
    feed = feed_of(world, run)
    feed.pools[0]["pool"] = hostile
    shown = screen(feed, NOW, (200, 24))
    feed.problem = Unreachable(hostile)
    shown += screen(feed, NOW, (200, 24))
    assert all(character.isprintable() for character in shown.replace("\n", ""))
    assert "[bold]" in shown
