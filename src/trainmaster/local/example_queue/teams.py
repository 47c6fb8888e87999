"""The teams of the example queue: each submits under a role of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from botocore.credentials import Credentials

from trainmaster.local.example_queue.player import Submission
from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.sdk import session_of_role
from trainmaster.local.stack.signed import send


class Teams:
    """Sends requests to the queue's API as members of the teams. Creates the roles."""

    def __init__(self, address: StackAddress, teams: Iterable[str]) -> None:
        self._url = address.api_url
        self._keys: Mapping[str, Credentials] = {
            team: session_of_role(address.aws_endpoint, f"{team}-team", "example") for team in teams
        }

    def submit(self, submission: Submission) -> None:
        """Submit a job, and hold it if it shall be held. Raises httpx.HTTPError."""
        self._send(submission, "POST", submission.path, submission.body)
        if submission.hold:
            self._send(submission, "PATCH", f"/jobs/{submission.name}", {"hold": True})

    def _send(self, submission: Submission, method: str, path: str, body: Mapping[str, object]) -> None:
        send(method, self._url + path, body, self._keys[submission.team]).raise_for_status()
