"""Runs a function for several names in processes of their own, and adds up their progress."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

_T_co = TypeVar("_T_co", covariant=True)
_POLL_SECONDS = 0.2
_counts: Any = None
"""In a process of the pool, the shared counts, one for each name."""


class Play(Protocol[_T_co]):
    """A function of a name that tells its progress; it can be pickled."""

    def __call__(self, name: str, /, *, on_progress: Callable[[int], None]) -> _T_co:
        """Return the result."""
        ...


def in_processes(
    play: Play[_T_co], names: Sequence[str], workers: int, on_progress: Callable[[int], None]
) -> list[_T_co]:
    """Return the function's results for the names, in their order.

    Args:
        play: the function.
        names: its arguments.
        workers: number of processes.
        on_progress: called from time to time with the sum of what the calls have told.

    Raises what the function raises; the other processes are ended then, and by Ctrl-C.
    """
    # A new process for each worker, since a fork copies threads' locks as they are.
    context = multiprocessing.get_context("spawn")
    counts = context.Array("q", len(names), lock=False)
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(counts,)) as pool:
        try:
            with _blocked_interrupts():
                results = [pool.submit(_played, play, name, number) for number, name in enumerate(names)]
            _watch(results, lambda: on_progress(sum(counts)))
            return [result.result() for result in results]
        except BaseException:
            with _ignored_interrupts():
                _end(pool, set(multiprocessing.active_children()) - others)
            raise


def _watch(results: Sequence[Future[Any]], tell: Callable[[], None]) -> None:
    """Tell the progress until all have ended. Raises the error of the first that fails."""
    left: set[Future[Any]] = set(results)
    while left:
        done, left = wait(left, timeout=_POLL_SECONDS)
        tell()
        for result in done:
            result.result()


def _end(pool: ProcessPoolExecutor, processes: Iterable[BaseProcess]) -> None:
    """End the processes of the pool."""
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block Ctrl-C and the loss of the terminal; processes that start meanwhile never receive them.

    The parent does, at the end, and ends its processes. Windows cannot block signals.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin(counts: Any) -> None:
    """Prepare a process of the pool: the parent ends it on Ctrl-C, and it ends itself if the parent is killed."""
    global _counts  # noqa: PLW0603 -- a process's initializer can hand it over in no other way
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _counts = counts


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _played(play: Play[_T_co], name: str, number: int) -> _T_co:
    return play(name, on_progress=lambda done: _counts.__setitem__(number, done))
