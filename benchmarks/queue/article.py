"""The article's queue as a baseline: one item a job with the whole request, and a Scan for every question.

Written from the article's description ("Priority scheduler", the sections on the queue, the manager and the function).
Paging is added, because a Scan returns one megabyte at a time; the same for ListTrainingJobs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

TABLE = "article-queue"
STAMP = "-qstamp-"
ENDED = ("Completed", "Failed", "Stopped")


def make_table(client: Any) -> None:
    """Create a table with the job's name as its only key."""
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "jobName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "jobName", "AttributeType": "S"}],
    )


def item_of(request: dict[str, Any], entry_time: datetime, state: str = "pending") -> dict[str, Any]:
    """Return the item of a job."""
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
    return {
        "jobName": {"S": request["TrainingJobName"]},
        "entryTime": {"S": entry_time.strftime("%Y-%m-%dT%H:%M:%S")},
        "jobState": {"S": state},
        "priority": {"N": tags.get("priority", "0")},
        "jobDetails": {"S": json.dumps(request)},
    }


@dataclass
class ArticleQueue:
    """The article's function: each submission, and each event of an ended job, runs its manager once.

    Args:
        dynamodb: a client with the table in it.
        sagemaker: a client.
        now: the time.
        capacity: the most training jobs at once, whatever their instances.
    """

    dynamodb: Any
    sagemaker: Any
    now: Callable[[], datetime]
    capacity: int

    def submit(self, request: dict[str, Any]) -> None:
        """Store a request and run the manager, as the article's API does."""
        self.dynamodb.put_item(TableName=TABLE, Item=item_of(request, self.now()))
        self.manage()

    def on_event(self, event: dict[str, Any]) -> None:
        """Process the end of a training job, as the article's function does."""
        detail = event["detail"]
        if detail["TrainingJobStatus"] not in ENDED:
            return
        name = detail["TrainingJobName"].split(STAMP)[0]
        stepped_aside = detail["TrainingJobStatus"] == "Stopped" and self._get(name, "jobState") == "preempted"
        if not stepped_aside:
            self.dynamodb.delete_item(TableName=TABLE, Key={"jobName": {"S": name}})
        self.manage()

    def manage(self) -> None:
        """Start the jobs for which there is room, in order; then preempt for those with a higher priority."""
        waiting = self._waiting()[: self.capacity]
        if not waiting:
            return
        running, stopping = self._at_sagemaker("InProgress"), self._at_sagemaker("Stopping")
        room = max(0, self.capacity - len(running) - len(stopping))
        for _, _, name in waiting[:room]:
            self._start(name)
        blocked = waiting[room:]
        if len(blocked) > len(stopping):
            self._preempt(blocked[len(stopping) :], running)

    def _start(self, name: str) -> None:
        request = json.loads(self._get(name, "jobDetails"))
        request["TrainingJobName"] = f"{name}{STAMP}{self.now():%d%H%M}"
        self.sagemaker.create_training_job(**request)
        self._set_state(name, "running")

    def _preempt(self, blocked: list[tuple[int, str, str]], running: list[str]) -> None:
        priorities = {
            item["jobName"]["S"]: int(item["priority"]["N"]) for item in self._scan("jobState = :s", "running")
        }
        by_priority = sorted((priorities[name.split(STAMP)[0]], name) for name in running)
        for (rank, _, _), (priority, victim) in zip(blocked, by_priority, strict=False):
            if -rank <= priority:
                return
            self.sagemaker.stop_training_job(TrainingJobName=victim)
            self._set_state(victim.split(STAMP)[0], "preempted")

    def _waiting(self) -> list[tuple[int, str, str]]:
        """Return the jobs that are not running, by priority and age; the table has no order."""
        items = self._scan("jobState <> :s", "running")
        return sorted((-int(item["priority"]["N"]), item["entryTime"]["S"], item["jobName"]["S"]) for item in items)

    def _scan(self, condition: str, state: str) -> Iterator[dict[str, Any]]:
        pages = self.dynamodb.get_paginator("scan").paginate(
            TableName=TABLE,
            ProjectionExpression="jobName, priority, entryTime",
            FilterExpression=condition,
            ExpressionAttributeValues={":s": {"S": state}},
        )
        return (item for page in pages for item in page["Items"])

    def _get(self, name: str, attribute: str) -> str:
        answer = self.dynamodb.get_item(TableName=TABLE, Key={"jobName": {"S": name}}, ProjectionExpression=attribute)
        value: str = answer.get("Item", {}).get(attribute, {}).get("S", "")
        return value

    def _set_state(self, name: str, state: str) -> None:
        self.dynamodb.update_item(
            TableName=TABLE,
            Key={"jobName": {"S": name}},
            UpdateExpression="SET jobState = :s",
            ExpressionAttributeValues={":s": {"S": state}},
        )

    def _at_sagemaker(self, status: str) -> list[str]:
        pages = self.sagemaker.get_paginator("list_training_jobs").paginate(StatusEquals=status, MaxResults=100)
        return [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
