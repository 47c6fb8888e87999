"""Image jobs in the API: requests are checked and sent on, jobs are shown, changed and cancelled like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import pytest

from api_world import ALICE, ApiWorld
from builders import NOW, at
from image_api_world import ImageApiWorld
from image_poison import POISON
from image_world import API_ROLE, ImageWorld, a_record, an_image_request
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.images.domain.refusal import Refusal

POOL = "endpoint/ships/AllTraffic"


def with_a_job(*names: str, **members):
    """An API over a store that has taken in image jobs."""
    world, images = ImageApiWorld(), ImageWorld()
    images.intake = replace(images.intake, store=world.memory, known=world.memory)
    images.store = world.memory
    for name in names or ("harbour-7",):
        images.deliver(an_image_request(name, **members))
    return world


def test_a_request_is_sent_to_the_image_queue_as_it_is_with_its_caller():
    world = ImageApiWorld()
    body = an_image_request(jobName="no matter", color="red", trainmaster={"priority": 3})
    reply = world.post("/image-jobs", body)
    assert (reply.status, reply.body) == (
        202,
        {
            "jobName": "harbour-7",
            "state": "received",
            "warnings": ["color has no effect here and is ignored."],
        },
    )
    ((text, caller),) = world.image_queue.sent
    assert (json.loads(text), caller) == (body, ALICE)
    assert world.memory.find("harbour-7") is None


def test_a_request_without_outputs_is_received_with_a_word_that_nothing_is_kept():
    world = ImageApiWorld()
    for number, outputs in enumerate(([], None)):
        reply = world.post("/image-jobs", an_image_request(f"harbour-{number}", outputs=outputs))
        (warning,) = reply.body["warnings"]
        assert (reply.status, "names no outputs" in warning) == (202, True)


@pytest.mark.parametrize(("members", "field"), POISON.values(), ids=POISON)
def test_w1_what_the_intake_would_set_aside_for_its_form_is_refused_with_the_field(members, field):
    world = ImageApiWorld()
    reply = world.post("/image-jobs", an_image_request(**members))
    assert reply.kind == (400, "InvalidRequest", field)
    assert world.image_queue.sent == []


def test_the_intake_accepts_requests_of_the_api_with_their_caller():
    world, images = ImageApiWorld(), ImageWorld()
    world.post("/image-jobs", an_image_request())
    ((text, caller),) = world.image_queue.sent
    images.deliver(a_record(0, text, f"{API_ROLE}:sagemaker-queue-api", Caller=caller))
    assert images.store.find("harbour-7").submitted_by == Caller(ALICE).principal


def test_w3_the_same_request_again_tells_how_its_job_stands_and_is_not_sent_again():
    world = with_a_job()
    reply = world.post("/image-jobs", an_image_request())
    assert (reply.status, reply.body["state"]) == (200, "pending")
    assert world.image_queue.sent == []


def test_w3_another_request_under_a_name_that_is_taken_is_refused():
    world = with_a_job()
    reply = world.post("/image-jobs", an_image_request(imageProcessorTileSize=512))
    assert reply.kind == (409, "NameTaken", "jobId")
    world.submit("train-1")
    assert world.post("/image-jobs", an_image_request("train-1")).kind == (409, "NameTaken", "jobId")


def test_where_image_jobs_are_off_a_request_is_refused_with_what_to_do():
    world = ApiWorld()
    reply = world.post("/image-jobs", an_image_request())
    assert reply.kind == (409, "NotOffered", None)
    assert "JobKindSettings" in reply.error["hint"]


PRIVATE = [
    "169.254.169.254",
    "127.0.0.1:9001",
    "2130706433",
    "[::1]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "localhost",
    "a.localhost.",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_model_at_an_address_of_the_machine_itself_is_refused_even_if_it_is_listed(host):
    world = ImageApiWorld()
    body = an_image_request(imageProcessor={"name": f"https://{host}/model", "type": "HTTP_ENDPOINT"})
    for path, members in (("/image-jobs", {}), ("/plan", {"imageSize": [1_024, 1_024]})):
        reply = world.post(path, body | members)
        assert reply.kind == (400, "InvalidRequest", "imageProcessor.name")
        assert "public address" in reply.error["message"]
    assert world.image_queue.sent == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://10.1.2.4/model", "does not call models at 10.1.2.4:443"),
        ("https://8.8.8.8:8443/model", "does not call models at 8.8.8.8:8443"),
        ("https://user:s3cr3t@models.example.org/model", "does not call models at models.example.org:443"),
        ("http://8.8.8.8/model", "not encrypted"),
    ],
)
def test_a_model_that_is_not_on_a_listed_host_is_refused_with_the_field(url, told):
    world = ImageApiWorld()
    body = an_image_request(imageProcessor={"name": url})
    for path, members in (("/image-jobs", {}), ("/plan", {"imageSize": [1_024, 1_024]})):
        reply = world.post(path, body | members)
        assert reply.kind == (400, "InvalidRequest", "imageProcessor.name")
        assert told in reply.error["message"]
        assert "s3cr3t" not in reply.error["message"]
    assert world.image_queue.sent == []


@pytest.mark.parametrize("host", ["8.8.8.8", "[2a00:1450:4001::1]", "10.1.2.3", "no.such.host.invalid"])
def test_a_model_on_a_listed_host_is_taken_and_names_are_asked_after_by_the_intake(host):
    world = ImageApiWorld()
    body = an_image_request(imageProcessor={"name": f"https://{host}/model"})
    assert world.post("/image-jobs", body).status == 202
    assert world.post("/plan", body | {"imageSize": [1_024, 1_024]}).status == 200


def test_a_local_stack_has_its_models_on_this_machine(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    world = ImageApiWorld()
    body = an_image_request(imageProcessor={"name": "http://127.0.0.1:9001/model"})
    assert world.post("/image-jobs", body).status == 202
    assert world.post("/plan", body | {"imageSize": [1_024, 1_024]}).status == 200


def test_a_model_that_was_taken_before_is_not_looked_at_again():
    world = with_a_job(imageProcessor={"name": "http://127.0.0.1/model"})
    reply = world.post("/image-jobs", an_image_request(imageProcessor={"name": "http://127.0.0.1/model"}))
    assert (reply.status, reply.body["state"]) == (200, "pending")


def test_a_share_that_does_not_exist_is_refused_at_once():
    world = ImageApiWorld()
    world.put("/settings", {"shares": {"vision": {}}})
    reply = world.post("/image-jobs", an_image_request(trainmaster={"share": "vison"}))
    assert reply.kind == (400, "InvalidRequest", "trainmaster.share")


def test_a_waiting_image_job_is_shown_with_its_endpoint_its_load_and_its_regions():
    world = with_a_job()
    job = world.get("/jobs/harbour-7").body
    assert (job["kind"], job["jobState"], job["demand"], job["pools"]) == ("image", "pending", [{POOL: 4}], [POOL])
    assert job["details"] == {
        "endpoint": "ships",
        "variant": "AllTraffic",
        "load": 4,
        "loadLeft": 4,
        "tiles": 9,
        "regions": {"total": 1, "done": 0, "failed": 0},
        "expectedEnd": None,
    }
    assert job["jobDetails"] == an_image_request()
    assert (job["position"], job["entryTime"]) == (1, "2026-11-21T12:00:00Z")


def test_image_jobs_and_training_jobs_are_in_one_list_and_one_queue():
    world = with_a_job("harbour-7", "harbour-8")
    world.submit("train-1")
    listed = {job["jobName"]: job["kind"] for job in world.get("/jobs").body["jobs"]}
    assert listed == {"harbour-7": "image", "harbour-8": "image", "train-1": "training"}
    queued = world.get("/queue").body["jobs"]
    assert [job["jobName"] for job in queued] == ["harbour-7", "harbour-8", "train-1"]
    (found,) = {job["jobName"] for job in world.get("/jobs", pool="ml.p5.48xlarge").body["jobs"]}
    assert found == "train-1"


@pytest.mark.parametrize(("kind", "expected"), [("image", ["harbour-7", "harbour-8"]), ("training", ["train-1"])])
@pytest.mark.parametrize("limit", ["1", "50"])
def test_jobs_are_listed_by_kind(kind, expected, limit):
    world, found, cursor = with_a_job("harbour-7", "harbour-8"), [], {}
    world.submit("train-1")
    while cursor is not None:
        page = world.get("/jobs", kind=kind, state="pending", limit=limit, **cursor).body
        found += [job["jobName"] for job in page["jobs"]]
        cursor = {"cursor": page["nextCursor"]} if page["nextCursor"] else None
    assert found == expected


def test_a_running_job_shows_its_progress():
    world = with_a_job()
    job = world.memory.find("harbour-7")
    started = lifecycle.start(job, {job.work.pool: 4}, (), NOW)
    started = replace(started, work=replace(started.work, done=1, left=0))
    assert world.memory.transition([(job, started)])
    shown = world.get("/jobs/harbour-7").body
    assert (shown["details"]["regions"]["done"], shown["details"]["loadLeft"]) == (1, 0)
    assert world.delete("/jobs/harbour-7").status == 202


def test_when_a_running_job_will_be_done_is_told_by_its_regions():
    world = with_a_job()
    assert world.get("/jobs/harbour-7").body["details"]["expectedEnd"] is None
    before = world.memory.find("harbour-7")
    job = lifecycle.start(before, {POOL: 4}, (), at(-600))
    seen = Observation(training_job_name="image:harbour-7", status=Status.IN_PROGRESS, secondary="Training")
    job = lifecycle.observe(job, seen, at(-600))
    job = replace(job, work=replace(job.work, regions=3, done=2, left=4, load=12))
    assert world.memory.transition([(before, replace(job, version=before.version + 1))])
    # Ten requests' worth is done, two are left: a fifth of ten minutes.
    told = world.get("/jobs/harbour-7").body["details"]["expectedEnd"]
    assert datetime.fromisoformat(told) == at(120)
    (listed,) = world.get("/jobs").body["jobs"]
    assert listed["details"]["expectedEnd"] == told


def test_an_image_job_is_held_released_given_another_priority_and_cancelled():
    world = with_a_job()
    assert world.patch("/jobs/harbour-7", {"hold": True}).body["jobState"] == "held"
    changed = world.patch("/jobs/harbour-7", {"hold": False, "priority": 9}).body
    assert (changed["jobState"], changed["priority"], changed["kind"]) == ("pending", 9, "image")
    assert world.delete("/jobs/harbour-7").body["jobState"] == "cancelled"


def test_why_an_image_job_waits_is_told():
    world = with_a_job()
    assert world.event("GET", "/jobs/harbour-7", query={"why": "true"}).status == 200


def test_looking_up_a_rejected_request_returns_time_and_reason():
    world = ImageApiWorld()
    assert world.get("/jobs/harbour-7").kind == (404, "JobNotFound", "name")
    world.refusals.note(Refusal(job="harbour-7", at=NOW, reason="There are 2 images.", field="imageUrls"))
    reply = world.get("/jobs/harbour-7")
    assert reply.kind == (404, "JobNotFound", "name")
    assert reply.error["message"] == (
        "There is no job harbour-7. A request of that name was refused at 2026-11-21T12:00:00Z for its field "
        "imageUrls, and is in the image dead-letter queue: There are 2 images."
    )
    assert world.get("/jobs/harbour-8").kind == (404, "JobNotFound", "name")
    world.submit("harbour-7")
    assert world.get("/jobs/harbour-7").status == 200


def test_without_image_jobs_nothing_is_read_for_a_job_that_does_not_exist():
    world = ApiWorld()
    assert world.get("/jobs/harbour-7").kind == (404, "JobNotFound", "name")


def test_a_caller_may_use_only_what_the_deployment_grants_it():
    world = ImageApiWorld(resources="arn:aws:iam::111122223333:role/* model:ships image:s3://* output:s3://results/*")
    assert world.post("/image-jobs", an_image_request()).status == 202
    other = an_image_request("other", imageReadRole="arn:aws:iam::222222222222:role/reader")
    for path, members in (("/image-jobs", {}), ("/plan", {"imageSize": [1_024, 1_024]})):
        reply = world.post(path, other | members)
        assert reply.kind == (403, "AccessDenied", "imageReadRole")
    assert len(world.image_queue.sent) == 1
