"""Runs Airflow's operators, triggers and sensors as its workers and its triggerer do."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.module_loading import import_string
from airflow.triggers.base import BaseTrigger
from client_world import request_for


def connect(monkeypatch: pytest.MonkeyPatch, conn_id: str = "aws_default", **members: Any) -> None:
    """Define a connection; `extra` replaces its Extra, other members those of the connection."""
    connection = {"conn_type": "aws", "extra": {"region_name": "us-east-1"}} | members
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))


def queue_of_the_stage(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the queue's address out of the environment, and give it."""
    url = os.environ["TRAINMASTER_API_URL"]
    monkeypatch.delenv("TRAINMASTER_API_URL")
    return url


def training(name: str = "job1", task_id: str = "train", **arguments: Any) -> SageMakerTrainingOperator:
    """An operator that polls often, and reads no logs: with logs, it describes a job each 30 seconds at most."""
    config = arguments.pop("config", request_for(name))
    defaults = {"check_interval": 0.05, "print_log": False}
    return SageMakerTrainingOperator(task_id=task_id, config=config, **defaults | arguments)


def run(operator: Any) -> Any:
    """Run an operator to its end, as a worker and a triggerer do: gives its XCom."""
    try:
        return operator.execute({})
    except TaskDeferred as deferral:
        return resume(operator, deferral, event_of(deferral.trigger))


def resume(operator: Any, deferral: TaskDeferred, event: dict[str, Any]) -> Any:
    return getattr(operator, deferral.method_name)(context={}, event=event, **(deferral.kwargs or {}))


def sent(trigger: BaseTrigger) -> BaseTrigger:
    """The trigger as it arrives in the triggerer."""
    path, arguments = trigger.serialize()
    return import_string(path)(**json.loads(json.dumps(arguments)))


def event_of(trigger: BaseTrigger) -> dict[str, Any]:
    """The payload of the trigger's first event."""

    async def first() -> dict[str, Any]:
        async for event in sent(trigger).run():
            return event.payload
        raise AssertionError("the trigger has ended without an event")

    return asyncio.run(first())
