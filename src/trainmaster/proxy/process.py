"""Runs a server beside a command: in a process of its own that is no child of the command, and ends with it.

The command replaces the process that the user started. So signals, job control, standard streams and the exit status
are the command's own, and nothing needs to be handed on.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Final, NoReturn

from trainmaster.client.api.errors import ApiError

_POLL_SECONDS: Final = 0.5
_MAX_DESCRIPTOR: Final = 65_536
Environment = Mapping[str, str]


class NotStarted(Exception):
    """The process beside the command has ended before it was ready; it has printed why."""


def start_beside(start: Callable[[], Environment], level: int) -> Environment:
    """Start a server in another process, which ends when this one or the program that replaces it does.

    It prints messages from a level of logging on, on standard error.

    `start` begins to serve and returns the environment of the command, which this returns. Raises what it raises, if
    that is an ApiError; NotStarted for other errors.
    """
    reader, writer = os.pipe()
    command = os.getpid()
    child = os.fork()
    if child == 0:
        _detach(start, writer, command, level)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as stream:
        told = stream.read()
    if not told:
        raise NotStarted
    found: Environment | ApiError = pickle.loads(told)  # noqa: S301 - of the own process, by a pipe that no other has
    if isinstance(found, ApiError):
        raise found
    return found


def _detach(start: Callable[[], Environment], writer: int, command: int, level: int) -> NoReturn:
    """Continue as a process without a terminal that is no child of the command, which may wait for its children."""
    try:
        os.setsid()  # Ctrl-C is for the command, which may still stop its jobs
        if os.fork() == 0:
            _leave_streams(writer)
            _print_messages(level)
            _serve(start, writer, command)
    finally:
        os._exit(0)


def _leave_streams(writer: int) -> None:
    """Hold none of the command's streams but standard error, for messages: a reader waits for their last holder."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.closerange(3, writer)
    os.closerange(writer + 1, _MAX_DESCRIPTOR)


def _print_messages(level: int) -> None:
    logging.basicConfig(format="trainmaster: %(message)s", level=logging.WARNING)
    logging.getLogger("trainmaster").setLevel(level)
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def _serve(start: Callable[[], Environment], writer: int, command: int) -> None:
    watch = Thread(target=_end_with, args=(command,), daemon=True)
    watch.start()
    try:
        found: Environment | ApiError = start()
    except ApiError as error:
        found = error
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
        return
    with suppress(BrokenPipeError), os.fdopen(writer, "wb") as stream:
        stream.write(pickle.dumps(found))
    if not isinstance(found, ApiError):
        watch.join()


def _end_with(command: int) -> None:
    """End this process with another one, even while it still waits for the queue's first answer."""
    wait_for_end(command)
    os._exit(0)


def wait_for_end(process: int) -> None:
    """Return when a process has ended, which need not be a child."""
    if sys.platform == "linux":
        with suppress(OSError):  # from Linux 5.3 on
            descriptor = os.pidfd_open(process)
            select.select([descriptor], [], [])
            return
    while True:
        try:
            os.kill(process, 0)
        except OSError:
            return
        time.sleep(_POLL_SECONDS)
