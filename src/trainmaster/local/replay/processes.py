"""Runs a function for several names in processes of their own, and adds up their progress."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
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
            results = [pool.submit(_played, play, name, number) for number, name in enumerate(names)]
            _watch(results, lambda: on_progress(sum(counts)))
            return [result.result() for result in results]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def _watch(results: Sequence[Future[Any]], tell: Callable[[], None]) -> None:
    """Tell the progress until all have ended, or one has failed."""
    left: set[Future[Any]] = set(results)
    while left:
        done, left = wait(left, timeout=_POLL_SECONDS)
        tell()
        if any(result.exception() is not None for result in done):
            return


def _begin(counts: Any) -> None:
    """Prepare a process of the pool; Ctrl-C ends it at once, without a traceback."""
    global _counts  # noqa: PLW0603 -- a process's initializer can hand it over in no other way
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _counts = counts


def _played(play: Play[_T_co], name: str, number: int) -> _T_co:
    return play(name, on_progress=lambda done: _counts.__setitem__(number, done))
