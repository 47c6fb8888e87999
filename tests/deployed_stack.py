"""Access of tests to the deployed local stack."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from trainmaster import ApiClient
from trainmaster.local.stack import StackAddress
from trainmaster.local.stack.address import clean_environment
from trainmaster.local.stack.signed import client

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
SOON = 60.0
"""Seconds after which something that should have happened has not; a loaded machine is slow."""


@dataclass(frozen=True)
class Deployed:
    """The stack with what tests do to it."""

    address: StackAddress
    api: ApiClient

    def aws(self, service):
        """A client of one of the stack's services."""
        return client(service, self.address.endpoint_of(service))

    def state(self, name, *states, seconds=SOON):
        """The job, once it is in one of these states."""

        def there():
            job = self.api.job(name)
            return job if job["jobState"] in states else None

        return eventually(there, seconds)

    def lines(self, training_job):
        """Lines that the training script of an attempt has printed so far."""
        logs = self.aws("logs")
        try:
            streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{training_job}/")
        except logs.exceptions.ResourceNotFoundException:
            return []
        return [
            event["message"]
            for stream in streams["logStreams"]
            for event in logs.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]

    def run(self, *command, env=None):
        """Run a program that finds the stack in its environment; returns what came of it."""
        return subprocess.run(
            [str(part) for part in command],
            env={**clean_environment(os.environ), **self.address.environment(), **(env or {})},
            capture_output=True,
            text=True,
            timeout=3 * SOON,
            check=False,
        )


def eventually(question, seconds=SOON):
    """The answer, once it is true."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"not so within {seconds} seconds"
        time.sleep(0.2)
    return answer


@pytest.fixture
def trainmaster(deployed):
    """The command line as a process, as the queue's user has it."""

    def run(*arguments):
        done = deployed.run(sys.executable, "-m", "trainmaster", *arguments)
        assert "Traceback" not in done.stderr
        return done

    return run
