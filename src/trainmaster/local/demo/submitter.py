"""Submits jobs as a user does: with `examples/submit_jobs.py` and SageMaker SDK v2 in a process of its own.

The process reads the jobs from its standard input, and ends when this process closes it or dies.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from trainmaster.local.demo.scenario import Submission
from trainmaster.local.stack import Checkout, StackAddress, StartFailed
from trainmaster.local.stack.address import clean_environment
from trainmaster.local.stack.processes import last_lines

if TYPE_CHECKING:
    from typing_extensions import Self


_PATIENCE_SECONDS = 5.0


class Submitter:
    """A process with a QueueSession that waits for jobs to submit."""

    def __init__(self, checkout: Checkout, address: StackAddress, logs: Path) -> None:
        self._log = logs / "submit.log"
        self._began = time.monotonic()
        environment = {**clean_environment(os.environ), **address.environment()}
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [checkout.sdk2_python, checkout.root / "examples" / "submit_jobs.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                # Ctrl-C goes to the demo only, which then closes the script's input.
                start_new_session=True,
                text=True,
            )

    def wait_until_ready(self) -> float:
        """Return the seconds from the start of the script to its session. Raises StartFailed if the script fails."""
        self._wait_for("ready", "importing the SageMaker SDK")
        return time.monotonic() - self._began

    def submit(self, job: Submission) -> None:
        """Submit a job, and return when the queue has accepted it. Raises StartFailed if the script fails."""
        if self._process.stdin is None:
            raise StartFailed("the submitting script has no input")
        self._process.stdin.write(f"{job.name} {job.priority} {job.steps}\n")
        self._process.stdin.flush()
        self._wait_for(f"submitted {job.name}", f"submitting {job.name}")

    def _wait_for(self, line: str, doing: str) -> None:
        if line not in (printed.rstrip("\n") for printed in self._process.stdout or ()):
            raise StartFailed(f"{doing} failed:\n{last_lines(self._log)}")

    def __enter__(self) -> Self:
        """Return the submitter, whose script runs already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the script's input, and wait for its end."""
        if kind is not None:
            self._process.kill()
        try:
            self._process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
