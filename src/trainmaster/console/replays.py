"""Replays of a draft of the settings for the page: one at a time, in a child process of the console."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from http import HTTPStatus
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

from trainmaster.client.api.errors import ApiError
from trainmaster.client.replay.period import Period
from trainmaster.client.replay.process import ReplayProcess
from trainmaster.console.forward import error_body
from trainmaster.console.loopback import Refusal
from trainmaster.domain.compat import UTC

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayStatus:
    """The newest replay, as the page shows it.

    Attributes:
        state: what it does; `none` before the first, and after a cancellation.
        done, total: jobs that have been read, and all; 0 before their number is known.
        progress: the finished part of the replay itself, from 0 to 1.
        draft: the draft that it replays.
        report: its result.
        error: the reason of its failure, in the API's own shape.
    """

    state: Literal["none", "reading", "replaying", "done", "failed"] = "none"
    done: int = 0
    total: int = 0
    progress: float = 0.0
    draft: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def runs(self) -> bool:
        """True until it has ended."""
        return self.state in ("reading", "replaying")

    def view(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return asdict(self)


class _CancelledError(Exception):
    """The page has cancelled the replay."""


class Replays:
    """Runs one replay at a time. It only reads the API, so it serves also a console that must not change anything.

    Args:
        api: the client of the API, with the user's own credentials.
        now: the time.
        process: makes the child process of a replay.
    """

    def __init__(
        self,
        api: ApiClient,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        process: Callable[[], ReplayProcess] = ReplayProcess,
    ) -> None:
        self._api, self._now, self._make_process = api, now, process
        self._lock, self._status = Lock(), ReplayStatus()
        self._process: ReplayProcess | None = None

    @property
    def status(self) -> ReplayStatus:
        """The newest replay."""
        with self._lock:
            return self._status

    def start(self, draft: Mapping[str, Any]) -> ReplayStatus:
        """Start a replay of the draft. Raises Refusal while another one runs."""
        with self._lock:
            if self._status.runs:
                raise Refusal(HTTPStatus.CONFLICT, "A replay runs already. Wait for its end, or cancel it.")
            self._status = started = ReplayStatus("reading", draft=draft)
            self._process = process = self._make_process()
        Thread(target=self._run, args=(process, draft), name="console-replay", daemon=True).start()
        return started

    def cancel(self) -> ReplayStatus:
        """End the replay at once, and forget the result of the one before."""
        with self._lock:
            process, self._process, self._status = self._process, None, ReplayStatus()
        if process is not None:
            process.close()
        return self.status

    def _run(self, process: ReplayProcess, draft: Mapping[str, Any]) -> None:
        try:
            period = Period(self._api, self._now())
            document = period.document(
                draft, lambda done, total: self._update(process, state="reading", done=done, total=total)
            )
            self._update(process, state="replaying")
            report = process.run(document, lambda part: self._update(process, progress=part))
            self._update(process, state="done", progress=1.0, report=report)
        except _CancelledError:
            return
        except ApiError as error:
            self._fail(process, error_body(error))
        except Exception as error:
            log.exception("A replay failed")
            self._fail(process, {"type": type(error).__name__, "message": str(error), "field": None, "hint": None})

    def _fail(self, process: ReplayProcess, error: Mapping[str, Any]) -> None:
        with self._lock:
            if self._process is process:
                self._status = replace(self._status, state="failed", error=error)

    def _update(self, process: ReplayProcess, **changes: Any) -> None:
        """Change the status. Raises _CancelledError if this replay is no longer the newest."""
        with self._lock:
            if self._process is not process:
                raise _CancelledError
            self._status = replace(self._status, **changes)
