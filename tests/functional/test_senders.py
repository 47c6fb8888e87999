"""Senders to the manager: the role that SQS names decides, never the contents of a message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from trainmaster.handlers.manager import consume
from world import Context, World

API, TICK, REPORTER, STRANGER = "AROAAPI", "AROATICK", "AROAREPORTER", "AROASTRANGER"
WAKE_QUEUE = "arn:aws:sqs:us-east-1:111122223333:q-wake.fifo"
REPORTS = "arn:aws:sqs:us-east-1:111122223333:q-reports.fifo"


class Echo:
    """A kind of jobs that has nothing to observe."""

    runs = None
    reporters = (REPORTER,)
    recipients: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []

    def observe(self, message: Mapping[str, Any]) -> None:
        self.heard.append(message)

    def discover(self) -> Any:
        return SimpleNamespace(of=lambda jobs: {})

    def after_pass(self, *_: Any) -> None: ...

    def on_tick(self, *_: Any) -> None: ...


class Guarded(World):
    """A world whose manager is told the senders, and has a further kind of jobs."""

    def __init__(self, senders: tuple[str, ...] = (API, TICK)) -> None:
        super().__init__()
        self.echo, self.senders = Echo(), senders

    def application(self) -> Any:
        application = super().application()
        url = "https://sqs.us-east-1.amazonaws.com/111122223333/q-wake.fifo"
        application.settings = replace(application.settings, senders=self.senders, wake_queue_url=url)
        application.__dict__["kinds"] = {"echo": self.echo}
        return application

    def deliver(self, message: object, sender: str | None, queue: str = WAKE_QUEUE) -> None:
        attributes = {} if sender is None else {"SenderId": sender}
        record = {"messageId": "m", "body": json.dumps(message), "attributes": attributes, "eventSourceARN": queue}
        assert consume(self.application(), {"Records": [record]}, Context()) == {"batchItemFailures": []}

    @property
    def passes(self) -> int:
        return self.api_context.store.read_snapshot().pass_number


WAKE, TICKS, REPORT = {"kind": "wake", "follows": 0}, {"kind": "tick", "time": "now"}, {"kind": "echo", "run": "r"}


@pytest.mark.parametrize(("message", "sender"), [(WAKE, API), (WAKE, TICK), (TICKS, TICK), (WAKE, f"{API}:session")])
def test_the_queues_own_roles_are_obeyed(message: object, sender: str) -> None:
    world = Guarded()
    world.deliver(message, sender)
    assert (world.passes, world.queue.aside) == (1, [])


@pytest.mark.parametrize("sender", [STRANGER, f"{STRANGER}:{API}", "AIDAANN", API[:-1], f"{API}X", "", None])
@pytest.mark.parametrize("message", [WAKE, TICKS, REPORT])
def test_a_message_of_another_sender_is_set_aside_with_a_note_and_not_obeyed(message: object, sender: str) -> None:
    world = Guarded()
    world.deliver(message, sender)
    ((body, reason),) = world.queue.aside
    assert (json.loads(body), world.passes, world.echo.heard) == (message, 0, [])
    assert "may not send this message" in reason


@pytest.mark.parametrize(("message", "sender"), [(TICKS, REPORTER), (REPORT, API), ({"kind": "other"}, API)])
def test_a_role_sends_only_its_own_kind_of_messages(message: object, sender: str) -> None:
    world = Guarded()
    world.deliver(message, sender, REPORTS)
    assert len(world.queue.aside) == 1
    assert (world.passes, world.queue.messages, world.echo.heard) == (0, [], [])


def test_a_report_is_heard_and_a_pass_that_it_calls_for_runs_from_the_wake_queue() -> None:
    world = Guarded()
    world.deliver(REPORT, REPORTER, REPORTS)
    assert (world.echo.heard, world.queue.messages) == ([REPORT], [])
    world.deliver(WAKE, REPORTER, REPORTS)
    assert world.passes == 0
    assert [json.loads(body)["kind"] for _, body in world.queue.messages] == ["wake"]


def test_where_senders_are_not_told_none_is_checked() -> None:
    world = Guarded(senders=())
    world.deliver(WAKE, None)
    assert world.passes == 1


def test_an_event_is_a_hint_whose_sender_aws_does_not_document() -> None:
    world = Guarded()
    world.submit("job1", training_seconds=1000)
    world.deliver(WAKE, API)
    (name,) = world.opened
    detail = {"TrainingJobName": name, "TrainingJobStatus": "Failed", "FailureReason": "forged"}
    event = {"detail-type": "SageMaker Training Job State Change", "source": "aws.sagemaker", "detail": detail}
    world.deliver(event, STRANGER)
    assert world.states("job1") == {"job1": "starting"}
