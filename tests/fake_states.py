"""Step Functions as far as the queue meets it, after its API reference: tasks that wait for their tokens.

A task ends once: by an answer, by the end of its execution, or without heartbeats. Its token is void from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from botocore.exceptions import ClientError

ACCOUNT = "111122223333"
STATES = f"arn:aws:states:us-east-1:{ACCOUNT}"
ROLE_OF_STATES = f"arn:aws:iam::{ACCOUNT}:role/service-role/nightly-states"


class Around(Protocol):
    """The faults of a world, around each call."""

    def around(self, name: str, act: Callable[[], Any]) -> Any: ...


@dataclass
class Task:
    """One attempt of a state that waits for its token; `outcome` is its end, such as ("Success", output)."""

    token: str
    execution: str
    payload: dict[str, Any]
    heartbeat: int | None
    beaten_at: datetime
    outcome: tuple[str, Any] | None = None
    beats: int = 0


@dataclass
class FakeStates:
    """A Step Functions client, and what state machines do beside it."""

    faults: Around
    now: Callable[[], datetime]
    role: str = ROLE_OF_STATES
    tasks: dict[str, Task] = field(default_factory=dict)
    hidden: int = 0
    """Reads of a history that do not have the newest event yet."""

    def start(self, execution: str, heartbeat: int | None = None, **payload: Any) -> Task:
        """Begin a task of an execution, or its next attempt; the payload gets the token and the execution."""
        token = f"AAAAKgAAAAIAAAAA+/{len(self.tasks):06d}=="
        arn = f"{STATES}:execution:nightly:{execution}"
        task = Task(token, arn, {"TaskToken": token, "Execution": arn, **payload}, heartbeat, self.now())
        self.tasks[token] = task
        return task

    def stop(self, execution: str) -> None:
        """StopExecution: what waits in it waits no longer."""
        for task in self.tasks.values():
            if task.execution.endswith(f":{execution}") and task.outcome is None:
                task.outcome = ("Aborted", None)

    def expire(self) -> None:
        """Time out the tasks that had no heartbeat for too long."""
        for task in self.tasks.values():
            late = task.heartbeat is not None and self.now() - task.beaten_at > timedelta(seconds=task.heartbeat)
            if late and task.outcome is None:
                task.outcome = ("HeartbeatTimeout", None)

    # -- the client ---------------------------------------------------------------------------------------------------
    def send_task_success(self, *, taskToken: str, output: str) -> None:  # noqa: N803 -- as boto3 names it
        assert len(output.encode()) <= 262_144
        answer = ("Success", json.loads(output))
        answered(self.faults, "SendTaskSuccess", lambda: self._end(taskToken, answer))

    def send_task_failure(self, *, taskToken: str, error: str, cause: str) -> None:  # noqa: N803
        assert len(error) <= 256
        assert len(cause) <= 32_768
        answer = (error, json.loads(cause))
        answered(self.faults, "SendTaskFailure", lambda: self._end(taskToken, answer))

    def send_task_heartbeat(self, *, taskToken: str) -> None:  # noqa: N803
        answered(self.faults, "SendTaskHeartbeat", lambda: self._beat(taskToken))

    def describe_state_machine_for_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        if not any(task.execution == executionArn for task in self.tasks.values()):
            raise refusal("ExecutionDoesNotExist")
        return self.faults.around("DescribeStateMachineForExecution", lambda: {"roleArn": self.role})

    def get_execution_history(
        self,
        *,
        executionArn: str,  # noqa: N803
        reverseOrder: bool,  # noqa: N803
        maxResults: int,  # noqa: N803
        includeExecutionData: bool,  # noqa: N803
        nextToken: str = "0",  # noqa: N803
    ) -> dict[str, Any]:
        assert reverseOrder
        assert includeExecutionData
        events = [_scheduled(task) for task in self.tasks.values() if task.execution == executionArn][::-1]
        if self.hidden:
            self.hidden -= 1
            events = events[1:]
        first = int(nextToken)
        page = {"events": events[first : first + maxResults]}
        more = {"nextToken": str(first + maxResults)} if len(events) > first + maxResults else {}
        return self.faults.around("GetExecutionHistory", lambda: {**page, **more})

    def _end(self, token: str, outcome: tuple[str, Any]) -> None:
        self._open(token).outcome = outcome

    def _beat(self, token: str) -> None:
        task = self._open(token)
        task.beaten_at, task.beats = self.now(), task.beats + 1

    def _open(self, token: str) -> Task:
        if token not in self.tasks:
            raise refusal("InvalidToken")
        if self.tasks[token].outcome is not None:
            raise refusal("TaskTimedOut")
        return self.tasks[token]


def answered(faults: Around, name: str, act: Callable[[], Any]) -> None:
    """Make a call that the service may refuse: a caller can die after a refusal, too."""

    def tried() -> ClientError | None:
        try:
            act()
        except ClientError as error:
            return error
        return None

    refused = faults.around(name, tried)
    if refused is not None:
        raise refused


def _scheduled(task: Task) -> Mapping[str, Any]:
    parameters = {"FunctionName": "sagemaker-queue-tasks", "Payload": task.payload}
    details = {"resourceType": "lambda", "resource": "invoke.waitForTaskToken", "parameters": json.dumps(parameters)}
    heartbeat = {} if task.heartbeat is None else {"heartbeatInSeconds": task.heartbeat}
    return {"type": "TaskScheduled", "taskScheduledEventDetails": {**details, **heartbeat}}


def refusal(code: str) -> ClientError:
    """Return an error of the service."""
    return ClientError({"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "Send")
