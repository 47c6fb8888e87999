"""The roles of both templates against the requests to AWS under them: no permission is missing.

Each function is the shipped one, with an application and a session of its own, over DynamoDB, SQS, S3 and SageMaker of
moto. What a session's clients are asked for has to be permitted to the function's role: the table's rows by their
partition keys, queues by name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from types import SimpleNamespace

import pytest

from api_world import CONTEXT, read, rest_event
from aws_clients import aws_session
from builders import a_request, at
from image_world import a_record, an_image_request
from permissions import Call, RecordedCalls, listed, permits, statements
from spots import geotiff, picture, scattered
from trainmaster.bootstrap import Application, Settings
from trainmaster.handlers import manager
from trainmaster.handlers.api.app import build_app
from trainmaster.images.domain.work import MERGE
from trainmaster.images.handlers import intake, regions
from trainmaster.images.kind import image_parts
from world import QUEUE, make_table

TABLE = "permitted-queue"
QUEUES = {
    "WakeQueue": "wake.fifo",
    "WakeDeadLetterQueue": "wake-dlq.fifo",
    "ImageQueue": "images",
    "ImageDeadLetterQueue": "images-dlq",
    "RegionQueue": "regions",
    "ProgressQueue": "progress.fifo",
}
POLLING = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
"""Actions of Lambda itself under the functions' roles."""
SIZE = (300, 200)
LAMBDA = SimpleNamespace(aws_request_id="request-1", get_remaining_time_in_millis=lambda: 900_000)


class Impatient:
    """Makes what the shipped workshop makes, with models that are asked again at once."""

    def __init__(self, imaging):
        self._imaging = imaging

    def __getattr__(self, name):
        return getattr(self._imaging, name)

    def model(self, task, wait):
        return self._imaging.model(task, lambda _: wait(0))


class Functions:
    """The four functions, each under its role.

    Attributes:
        asked: what has been asked for, by role.
    """

    def __init__(self, web, urls, sqs):
        self._sqs, self._progress = sqs, urls["ProgressQueue"]
        self.asked, self.applications, self.web = {}, {}, web
        settings = Settings(
            queue=QUEUE,
            table=TABLE,
            pools="ml.p5.48xlarge=2",
            allowed_roles=("*",),
            admins=("*",),
            wake_queue_url=urls["WakeQueue"],
            dead_letter_queue_url=urls["WakeDeadLetterQueue"],
            job_kinds={
                "image": {
                    "IMAGE_QUEUE_URL": urls["ImageQueue"],
                    "IMAGE_DEAD_LETTER_QUEUE_URL": urls["ImageDeadLetterQueue"],
                    "REGION_QUEUE_URL": urls["RegionQueue"],
                    "REGION_SIZE": "(200, 200)",
                    "REGION_ATTEMPTS": "1",
                    "SCHEDULER_THROTTLING_ENABLED": "False",
                }
            },
        )
        for role in ("ApiRole", "ManagerRole", "IntakeRole", "RegionRole"):
            session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
            self.asked[role] = RecordedCalls(session, {url: name for name, url in urls.items()})
            wake = urls["ProgressQueue" if role in ("IntakeRole", "RegionRole") else "WakeQueue"]
            self.applications[role] = Application(replace(settings, wake_queue_url=wake), session)
        for role in ("IntakeRole", "RegionRole"):
            self.applications[role] = image_parts(self.applications[role])
        working = self.applications["RegionRole"]
        self._imaging = working.imaging
        working.__dict__["imaging"] = Impatient(self._imaging)

    def close(self):
        self._imaging.close()
        self.applications["IntakeRole"].imaging.close()

    def api(self, method, path, body=None, **query):
        app = build_app(self.applications["ApiRole"])
        return read(app.resolve(rest_event(method, path, body, query), CONTEXT))

    def take_in(self, *bodies):
        records = [a_record(number, body) for number, body in enumerate(bodies)]
        answer = self._run(intake, "IntakeRole", records)
        assert answer == {"batchItemFailures": []}
        self.manage(*self._reports())

    def _reports(self):
        """Messages of the image functions to the manager, which Lambda delivers in order."""
        url, found = self._progress, []
        while got := self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(each["Body"]) for each in got]
            for each in got:
                self._sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return found

    def manage(self, *bodies):
        if not bodies:
            return
        records = [{"messageId": f"m{number}", "body": json.dumps(body)} for number, body in enumerate(bodies)]
        answer = self._run(manager, "ManagerRole", records)
        assert answer == {"batchItemFailures": []}

    def work(self, job, *numbers):
        bodies = [{"job": job, "attempt": 1, "region": number} for number in numbers]
        records = [{"messageId": f"m{number}", "body": json.dumps(body)} for number, body in enumerate(bodies)]
        answer = self._run(regions, "RegionRole", records)
        assert answer == {"batchItemFailures": []}
        self.manage(*self._reports())

    def state(self, job):
        return self.api("GET", f"/jobs/{job}").body["jobState"]

    def _run(self, handlers, role, records):
        try:
            return handlers.consume(self.applications[role], {"Records": records}, LAMBDA)
        finally:
            handlers.metrics.clear_metrics()


@pytest.fixture
def functions(session, s3, web):
    client, sqs = session.client("dynamodb"), session.client("sqs")
    make_table(client, TABLE)
    urls = {
        name: sqs.create_queue(QueueName=called, Attributes={"FifoQueue": "true"} if "fifo" in called else {})[
            "QueueUrl"
        ]
        for name, called in QUEUES.items()
    }
    web.files["a.tif"] = geotiff(picture(*SIZE, scattered(*SIZE, 8)))
    made = Functions(web, urls, sqs)
    yield made
    made.close()
    client.delete_table(TableName=TABLE)
    for url in urls.values():
        sqs.delete_queue(QueueUrl=url)


def an_image(name, url, **members):
    """A request for an image of two regions, behind HTTP as its model."""
    usual = {
        "imageUrls": [f"{url}/a.tif"],
        "imageProcessor": {"name": f"{url}/model", "type": "HTTP_ENDPOINT"},
        "imageProcessorTileSize": 100,
        "imageProcessorTileOverlap": 20,
        "imageProcessorTileFormat": "PNG",
    }
    return an_image_request(name, **(usual | members))


TICK = {"kind": "tick", "time": at(0).isoformat()}


STATES = {"badly": "running", "job3": "held", "stopped": "stopped", "well": "completed"}


def live(functions):
    """Jobs that end well and badly, are refused, throttled and stopped, and what people ask and change meanwhile."""
    url = functions.web.url
    assert functions.api("POST", "/image-jobs", an_image("well", url)).status == 202
    functions.take_in(an_image("well", url), an_image("badly", url), an_image("stopped", url), "not JSON")
    functions.take_in(an_image("well", url), an_image("odd", url, imageUrls=[f"{url}/none.tif"]))
    functions.take_in(an_image("nowhere", url, imageProcessor={"name": "no-such-endpoint", "type": "SM_ENDPOINT"}))
    for name in ("job1", "job2", "job3"):
        assert functions.api("POST", "/add-job", a_request(name)).status == 202
    assert functions.api("PATCH", "/jobs/job2", {"priority": 5}).status == 200
    assert functions.api("PATCH", "/jobs/job3", {"hold": True}).status == 200
    functions.manage(TICK)
    functions.work("well", 0, 1, MERGE)
    functions.web.trouble = lambda number: 429
    functions.work("badly", 0)
    functions.web.trouble = lambda number: 400
    functions.work("badly", 0, 1)
    assert functions.api("DELETE", "/jobs/stopped").status == 202
    functions.manage(TICK)
    functions.work("stopped", 0)
    functions.manage(TICK, {"kind": "unknown"})
    for path in ("/jobs", "/queue", "/pools", "/settings"):
        assert functions.api("GET", path).status == 200
    assert functions.api("GET", "/jobs", state="completed").status == 200
    assert {name: functions.state(name) for name in STATES} == STATES, "the story is not what it is said to be"


ELSEWHERE = {"AUDIT#adopted#*"}
"""Keys that only a restore writes, which is not in this story (tests/functional/test_restore.py)."""


def unused(role, calls):
    """Actions on the table and on queues that a role may do and has not done, with the keys that limit them."""
    found = []
    for each in (each for each in statements(role, images=True) if each["Effect"] == "Allow"):
        keys = each.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", ["*"])
        for action in set(listed(each["Action"])) - POLLING:
            if action.startswith(("dynamodb:", "sqs:")):
                done = [call.key or "" for call in calls if call.action == action]
                found += [
                    (action, key) for key in {*keys} - ELSEWHERE if not any(fnmatchcase(one, key) for one in done)
                ]
    return found


def test_each_function_may_do_all_that_it_does_and_nothing_besides_with_the_table_and_with_queues(functions):
    live(functions)
    for role, asked in functions.asked.items():
        assert len(asked.calls) > 10
        assert [call for call in asked.calls if not permits(role, call)] == [], role
        assert unused(role, asked.calls) == [], role


@pytest.mark.parametrize("key", ["STATE", "WAIT", "HELD", "AFTER#job1", "JOB#job1", "rendezvous"])
def test_image_functions_cannot_change_jobs_or_settings(key):
    write = Call("dynamodb:PutItem", "QueueTable", key)
    assert permits("ManagerRole", write)
    assert not permits("RegionRole", write)
    assert not permits("IntakeRole", write)
    assert not permits("IntakeRole", Call("dynamodb:DeleteItem", "QueueTable", key))
