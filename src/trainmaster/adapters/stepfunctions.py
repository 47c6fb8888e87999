"""Step Functions: tasks that wait for jobs as `ports.Executions`, and the role that such a task acts for.

Sources: Step Functions API (SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat, GetExecutionHistory), "Wait for a
Callback with the Task Token" in its developer guide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.adapters.executions import caller_of, translated
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import AccessDenied, ExecutionGone, Unavailable
from trainmaster.ports.callbacks import Description

MAX_OUTPUT, MAX_CAUSE = 262_144, 32_768
"""Bytes of an output, and characters of a cause."""
MAX_PAGES = 10
"""Pages of a history that are searched, newest first: the task has just been scheduled."""
_PAGE = 100
_TRIES = 4
_FIRST_PAUSE = 0.5
"""Seconds before a history is read again that does not have the task yet."""
_GONE = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
"""The token's task has ended, or the token never was one."""
_UNKNOWN = frozenset({"ExecutionDoesNotExist", "InvalidArn"})
"""There is no such execution."""
_KEPT = frozenset({
    "FailureReason", "ModelArtifacts", "SecondaryStatus", "TrainingJobArn", "TrainingJobName", "TrainingJobStatus",
})  # fmt: skip
"""Members of a description that stay in a text that is too long; SageMaker bounds each of them."""
_MAX_SESSION = 64


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits for its token.

    Attributes:
        caller: the role of its state machine, in a session named after the execution.
        heartbeat: `HeartbeatSeconds` of the task; None without.
    """

    caller: Caller
    heartbeat: int | None


class StepFunctions:
    """Tasks of Step Functions (`states:SendTask*`); see `ports.Executions`.

    Args:
        new_client: makes a boto3 Step Functions client; called for each verb.
        sleep: waits that many seconds.
    """

    def __init__(self, new_client: Callable[[], Any], sleep: Callable[[float], None]) -> None:
        self._new_client, self._sleep = new_client, sleep

    def succeed(self, token: str, description: Description) -> None:
        """End the task with the description as its output; see `ports.Executions.succeed`."""
        client = self._new_client()
        with translated(_GONE):
            client.send_task_success(taskToken=token, output=_cut(description, MAX_OUTPUT))

    def fail(self, token: str, error: str, description: Description) -> None:
        """Fail the task with the description as its cause; see `ports.Executions.fail`."""
        client = self._new_client()
        with translated(_GONE):
            client.send_task_failure(taskToken=token, error=error, cause=_cut(description, MAX_CAUSE))

    def heartbeat(self, token: str) -> None:
        """Send the task a heartbeat; see `ports.Executions.heartbeat`."""
        client = self._new_client()
        with translated(_GONE):
            client.send_task_heartbeat(taskToken=token)

    def waiting_task(self, execution: str, payload: Mapping[str, Any]) -> WaitingTask:
        """Return the task that has sent this payload, as the history of its execution proves.

        Everyone who may invoke the function can name any execution. Only the execution itself has a task with these
        very parameters, its token among them.

        Raises `AccessDenied` if the execution has no such task, and `Throttled`, `Unavailable`, `NotPermitted`.
        """
        client = self._new_client()
        try:
            with translated(_UNKNOWN):
                role = client.describe_state_machine_for_execution(executionArn=execution)["roleArn"]
                details = self._scheduled(client, execution, payload)
        except ExecutionGone:
            details = None
        if details is None:
            raise _stranger(execution)
        return WaitingTask(_caller(role, execution), details.get("heartbeatInSeconds"))

    def _scheduled(self, client: Any, execution: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the details of the event that scheduled the task; None if it does not show within a few seconds."""
        for number in range(_TRIES):
            for event in _newest_events(client, execution):
                details: Mapping[str, Any] = event.get("taskScheduledEventDetails", {})
                if _payload_in(details) == payload:
                    return details
            if number + 1 < _TRIES:
                self._sleep(_FIRST_PAUSE * 2**number)
        return None


def _newest_events(client: Any, execution: str) -> Iterator[Mapping[str, Any]]:
    """Yield the events of an execution, the newest first, up to some pages."""
    more: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        answer = client.get_execution_history(
            executionArn=execution, reverseOrder=True, maxResults=_PAGE, includeExecutionData=True, **more
        )
        yield from answer["events"]
        if not answer.get("nextToken"):
            return
        more = {"nextToken": answer["nextToken"]}


def _payload_in(details: Mapping[str, Any]) -> Any:
    """Return the payload for the function in the parameters of a scheduled task; None if there is none."""
    try:
        parameters = json.loads(details.get("parameters", ""))
    except ValueError:
        return None
    return parameters.get("Payload") if isinstance(parameters, dict) else None


def _caller(role: str, execution: str) -> Caller:
    """Return the caller that a role is in a session that is named after an execution. Raises `Unavailable`."""
    session = re.sub(r"[^A-Za-z0-9_=,.@-]", "-", execution.rpartition(":")[2])[:_MAX_SESSION]
    caller = caller_of(role, session)
    if caller is None:
        raise Unavailable(f"Step Functions names {role} as the role of {execution}")
    return caller


def _stranger(execution: str) -> AccessDenied:
    return AccessDenied(
        f"The execution {execution} has no task that waits with this payload.",
        field="Execution",
        hint='Write "Execution.$": "$$.Execution.Id" and "TaskToken.$": "$$.Task.Token" into the Payload of the task.',
    )


def _cut(description: Description, limit: int) -> str:
    """Return the description as ASCII JSON of at most `limit` characters, without its largest members if needed."""
    members = dict(description)
    while len(text := _text(members)) > limit:
        del members[max(members.keys() - _KEPT, key=lambda name: len(_text(members[name])))]
    return text


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
