"""Batches of messages about regions, from SQS to what was done, and what of them comes again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_stage import JOB, Ticking

from api_world import StillClock
from image_builders import an_image_job
from spots import geotiff, picture, scattered, squares
from trainmaster.adapters.sts import Roles, source_identity
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.errors import InvalidRequest, Throttled
from trainmaster.domain.jobs.job import JobState
from trainmaster.images.adapters.sqs_progress import SqsProgress
from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.tiling import Cut, Window, regions
from trainmaster.images.domain.work import BEGUN, MERGE, RegionState, run_of
from trainmaster.images.handlers.regions import _task_of, claim_of, consume
from trainmaster.images.kind import image_parts
from trainmaster.images.pixels.work.pressure import note_throttling

SIZE = (300, 200)
CUT = Cut(region=(200, 200), tile=(100, 100), overlap=(20, 20))


class Context:
    """The Lambda context that the handler looks at."""

    aws_request_id = "request-1"
    left = 900_000

    def get_remaining_time_in_millis(self):
        return self.left


ANN = "arn:aws:iam::111122223333:user/team/ann"
RESEARCH = "arn:aws:sts::111122223333:assumed-role/research"


class OneJob:
    """A store that knows one image job and its request."""

    def __init__(self, request, work):
        self.request, self.work = request, work
        self.units, self.state, self.submitted_by = {"endpoint/ships": 100}, JobState.RUNNING, None

    def find(self, name):
        return self if name == JOB else None

    @property
    def image_work(self):
        return self.work

    def request_of(self, name):
        return self.request


class World:
    """Parts of an application that the handler needs."""

    def __init__(self, play, request):
        self.queue, self.region_senders = "sagemaker-queue", ()
        self.workers, self.imaging = play.queue, play.imaging
        work = an_image_job().work
        changed = replace(work, endpoint=play.task.endpoint, variant="", part=play.task.part, cut=CUT, workers=2)
        self.store = OneJob(request, changed)


@pytest.fixture
def objects():
    return scattered(*SIZE, 8)


@pytest.fixture
def play(play_of, web, objects):
    web.files["a.tif"] = geotiff(picture(*SIZE, objects))
    made = play_of(f"{web.url}/a.tif", SIZE, CUT)
    made.create()
    return made


@pytest.fixture
def world(play, web):
    request = {
        "jobId": JOB,
        "imageUrls": [f"{web.url}/a.tif"],
        "imageProcessor": {"name": f"{web.url}/model", "type": "HTTP_ENDPOINT"},
        "imageProcessorTileSize": 100,
        "imageProcessorTileOverlap": 20,
        "imageProcessorTileFormat": "PNG",
        "outputs": [{"type": "S3", "bucket": "results", "prefix": "ships"}],
    }
    return World(play, request)


def deliver(world, *bodies, left=900_000, sender="AROAMANAGER:session"):
    context = Context()
    context.left = left
    records = [
        {
            "messageId": f"m{number}",
            "body": body if isinstance(body, str) else json.dumps(body),
            "attributes": {"SenderId": sender},
        }
        for number, body in enumerate(bodies)
    ]
    answer = consume(world, {"Records": records}, context)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def about(number, attempt=1, job=JOB):
    return {"job": job, "attempt": attempt, "region": number}


def test_a_batch_works_on_its_regions_and_the_merging_gives_the_result(world, play, objects):
    numbers = [each.number for each in regions(Window(0, 0, *SIZE), CUT)]
    assert deliver(world, *[about(number) for number in numbers]) == []
    assert play.messages.sent == [(JOB, 1, MERGE, 0.0)]
    assert deliver(world, about(MERGE)) == []
    assert sorted(tuple(each["properties"]["imageBBox"]) for each in play.result()["features"]) == squares(objects)


def test_regions_of_other_senders_are_not_worked_on_and_go_to_the_dead_letters(world, play):
    world.region_senders = ("AROAMANAGER", "AROAREGIONS")
    for stranger in ("AROASTRANGER:AROAMANAGER", "AROAMANAGERX:a", "AIDAANN", ""):
        assert deliver(world, about(0), about(1), sender=stranger) == ["m0", "m1"]
    assert {each.state for each in play.run.records} == {RegionState.PENDING}
    assert deliver(world, about(0)) == []
    assert deliver(world, about(1), sender="AROAREGIONS:b") == []
    assert [each.state for each in play.run.records[:2]] == [RegionState.DONE] * 2


def test_one_that_cannot_be_read_comes_again_and_its_neighbors_are_done(world, play):
    assert deliver(world, "no json", about(0), {"job": JOB}, about("0"), about(1)) == ["m0", "m2", "m3"]
    assert [each.state for each in play.run.records[:2]] == [RegionState.DONE] * 2


@pytest.mark.parametrize(
    "body", ["", "[]", "7", '{"job":1,"attempt":1,"region":1}', '{"job":"a","attempt":true,"region":0}']
)
def test_a_message_without_a_region_is_rejected(body):
    with pytest.raises(InvalidRequest, match="names no region"):
        claim_of(body, "w")


def test_w3_messages_of_others_attempts_and_of_jobs_that_are_gone_do_nothing(world, web):
    assert deliver(world, about(0, attempt=9), about(0, job="gone"), about(77)) == []
    assert web.tiles == []


def test_a_region_without_time_left_is_dispatched_again_unchanged(world, play):
    assert deliver(world, about(0), left=30_000) == []
    assert play.messages.sent == [(JOB, 1, 0, 0.0)]
    assert play.run.records[0].tries == 0


def test_trouble_of_the_table_brings_its_own_message_again_only(world, play):
    class Troubled:
        def __getattr__(self, name):
            return getattr(play.runs, name)

        def begin(self, claim, now, *, dead_before):
            if claim.number == 0:
                raise Throttled("slow down")
            return play.runs.begin(claim, now, dead_before=dead_before)

    world.workers = replace(world.workers, runs=Troubled())
    assert deliver(world, about(0), about(1)) == ["m0"]
    assert play.run.records[1].state is RegionState.DONE


def test_a_failed_write_of_the_end_is_retried_without_calling_the_model(world, play, web):
    """ModelRunner marks such a region, and its image, as failed."""

    class Troubled:
        taken = False

        def __getattr__(self, name):
            return getattr(play.runs, name)

        def finish(self, claim, now, *, features):
            self.taken = not self.taken
            if self.taken:
                raise Throttled("slow down")
            return play.runs.finish(claim, now, features=features)

    world.workers = replace(world.workers, runs=Troubled())
    assert deliver(world, about(0)) == ["m0"]
    record, asked = play.run.records[0], len(web.tiles)
    assert (record.state, asked) == (RegionState.RUNNING, record.region.tiles)
    play.queue.clock.sleep(300)
    assert deliver(world, about(0)) == []
    assert (play.run.records[0].state, len(web.tiles)) == (RegionState.DONE, asked)


def test_the_queue_hears_that_a_job_is_at_work_as_soon_as_a_region_is_taken(world, play):
    """And not again once it knows."""
    world.store.state = JobState.STARTING
    assert deliver(world, about(0)) == []
    assert play.told == [(run_of(JOB, 1), BEGUN), (run_of(JOB, 1), 0)]
    world.store.state = JobState.RUNNING
    assert deliver(world, about(1)) == []
    assert play.told[2:] == [(run_of(JOB, 1), 1)]


def test_a_region_asks_no_more_at_once_than_its_job_holds(world, play):
    for held, workers in ((1, 1), (2, 2), (100, 2)):
        world.store.units = {"endpoint/ships": held}
        assert _task_of(world.store)(claim_of(json.dumps(about(0)), "w")).workers == workers


@pytest.mark.parametrize(("stored", "submitter"), [(ANN, ANN), (None, "")])
def test_workers_assume_roles_for_the_submitter_of_the_job(world, stored, submitter):
    world.store.submitted_by = stored
    assert _task_of(world.store)(claim_of(json.dumps(about(0)), "w")).submitter == submitter


def test_a_request_that_has_gone_fails_its_region(world, play):
    world.store.work = None
    assert deliver(world, about(0)) == []
    assert play.run.records[0].state is RegionState.FAILED
    assert "no image job" in play.run.records[0].reason


def test_where_the_queue_cannot_be_told_the_region_is_done_all_the_same(world, play):
    def deaf(*_, **__):
        raise Throttled("slow down")

    play.messages.dispatch = deaf
    world.workers = replace(world.workers, tell=deaf)
    numbers = [each.number for each in regions(Window(0, 0, *SIZE), CUT)]
    assert deliver(world, *[about(number) for number in numbers]) == []
    assert {each.state for each in play.run.records[:-1]} == {RegionState.DONE}


def test_the_application_makes_all_that_workers_need(session, s3):
    kinds = {"image": {"REGION_QUEUE_URL": "https://regions"}}
    application = Application(Settings(queue="q", table="q", wake_queue_url="https://wake", job_kinds=kinds), session)
    parts = image_parts(application)
    assert parts.workers.attempts == parts.settings.limits.attempts
    assert parts.workers.endpoints is parts.known_endpoints
    assert parts.imaging.headers is parts.imaging.headers
    parts.imaging.close()


def test_throttling_is_noted_once_however_many_workers_see_it_at_once(play):
    clock = Ticking()
    key = "ships"
    play.known.by_key[key] = Endpoint(key=key)
    lost = [True]

    class Contended:
        def known(self, keys):
            return play.known.known(keys)

        def remember(self, endpoint, before):
            if lost:
                lost.pop()
                return False
            return play.known.remember(endpoint, before)

    queue = replace(play.queue, clock=clock, endpoints=Contended())
    note_throttling(queue, key, "v1")
    note_throttling(queue, key, "v1")
    assert play.known.by_key[key].pressure["v1"].factor == 0.5
    clock.sleep(31)
    note_throttling(queue, key, "v1")
    assert play.known.by_key[key].pressure["v1"].factor < 0.5
    note_throttling(replace(queue, endpoints=None), key, "v1")


class Sts:
    """Assumes roles; each time with other keys."""

    def __init__(self, clock):
        self.clock, self.calls = clock, []

    def assume_role(self, **asked):
        self.calls.append(asked)
        number = str(len(self.calls))
        until = self.clock.now() + timedelta(hours=1)
        keys = {"AccessKeyId": number, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": until}
        return {"Credentials": keys}


def test_a_role_is_assumed_once_while_its_keys_last_long_enough_for_a_worker():
    clock = StillClock(datetime(2026, 11, 21, tzinfo=UTC))
    own, sts = boto3.Session(region_name="eu-west-1"), Sts(clock)
    roles = Roles(own, sts, clock, "sagemaker-queue")
    assert roles.session(None) is own
    first = roles.session("arn:aws:iam::1:role/a")
    assert roles.session("arn:aws:iam::1:role/a") is first
    assert roles.session("arn:aws:iam::1:role/b") is not first
    assert first.region_name == "eu-west-1"
    assert [each["RoleArn"][-1] for each in sts.calls] == ["a", "b"]
    clock.sleep(41 * 60)
    assert roles.session("arn:aws:iam::1:role/a") is not first


def test_a_role_is_assumed_for_the_submitter_under_the_queues_external_id_and_sessions_are_not_shared():
    clock = StillClock(datetime(2026, 11, 21, tzinfo=UTC))
    sts, role = Sts(clock), "arn:aws:iam::1:role/a"
    roles = Roles(boto3.Session(region_name="eu-west-1"), sts, clock, "sagemaker-queue")
    sessions = [roles.session(role, submitter) for submitter in (ANN, RESEARCH, "", ANN, RESEARCH, "")]
    assert sessions[:3] == sessions[3:]
    assert len({id(session) for session in sessions}) == 3
    assert {each["ExternalId"] for each in sts.calls} == {"sagemaker-queue"}
    assert [each["SourceIdentity"] for each in sts.calls] == [
        "111122223333-user-ann",
        "111122223333-assumed-role-research",
        "sagemaker-queue",
    ]


NAMES = st.text(st.sampled_from("aZ9+=,.@_-"), min_size=1, max_size=64)
KINDS = st.sampled_from(["iam::111122223333:user", "iam::111122223333:user/team", "sts::111122223333:assumed-role"])


@given(KINDS, NAMES, KINDS, NAMES)
def test_a_source_identity_has_the_form_that_sts_takes_and_stands_for_one_principal(kind, name, other_kind, other):
    first, second = source_identity(f"arn:aws:{kind}/{name}"), source_identity(f"arn:aws:{other_kind}/{other}")
    assert re.fullmatch(r"[\w+=,.@-]{2,64}", first, re.ASCII)
    same = (kind.removesuffix("/team"), name) == (other_kind.removesuffix("/team"), other)
    assert (first == second) is same


@pytest.mark.parametrize(
    ("principal", "identity"),
    [
        ("arn:aws-us-gov:iam::111122223333:root", "111122223333-root"),
        ("arn:aws:sts::111122223333:federated-user", "111122223333-federated-user"),
        ("", ""),
        ("ann", ""),
    ],
)
def test_principals_without_a_name_have_source_identities_too(principal, identity):
    assert source_identity(principal) == identity


class Sqs:
    def __init__(self):
        self.sent = []

    def send_message(self, **asked):
        self.sent.append(asked)


def test_a_run_is_told_of_once_in_a_few_seconds_and_its_merging_in_any_case():
    clock, sqs = StillClock(datetime(2026, 11, 21, tzinfo=UTC)), Sqs()
    progress = SqsProgress(sqs, "https://wake", clock)
    progress.tell("image:a", 0)
    progress.tell("image:a", 1)
    progress.tell("image:b", 0)
    progress.tell("image:a", MERGE)
    identifiers = [each["MessageDeduplicationId"] for each in sqs.sent]
    assert identifiers[0] == identifiers[1]
    assert len(set(identifiers)) == 3
    assert all(len(each) <= 128 for each in identifiers)
    progress.tell("image:c", BEGUN)
    progress.tell("image:c", BEGUN)
    progress.tell("image:c", 0)
    begun, again, ended = [each["MessageDeduplicationId"] for each in sqs.sent[4:]]
    assert begun == again != ended, "it swallows no news of regions"
    assert json.loads(sqs.sent[0]["MessageBody"]) == {"kind": "image", "run": "image:a"}
