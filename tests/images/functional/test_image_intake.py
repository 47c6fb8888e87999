"""Requests for images become jobs: whatever a message holds, its neighbors are entered, and nothing starts twice.

Numbers such as W1 are those of the weaknesses of ModelRunner's own queue; the other tests are in parity with its tests.

"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders import NOW, at
from image_poison import POISON, SQUARE
from image_world import (
    API_ROLE,
    BUCKET,
    SENT,
    ImageWorld,
    a_header,
    a_record,
    an_endpoint,
    an_image_request,
)
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.images.domain.endpoint import Limits, Pressure, Variant
from trainmaster.images.handlers.models import read_request
from trainmaster.images.service.endpoints import described
from trainmaster.images.service.resource_access import parse_access
from trainmaster.images.service.senders import parse_senders

EVENTS = Path(__file__).parents[3] / "events"
POOL = "endpoint/ships/AllTraffic"


def test_a_request_becomes_a_waiting_job_with_its_load():
    world = ImageWorld()
    assert world.deliver(an_image_request(trainmaster={"priority": 5})) == []
    job = world.store.find("harbour-7")
    assert (job.state, job.priority, job.share, job.entry_time) == (JobState.PENDING, 5, "default", NOW)
    # 2,048 pixels a side are 3 x 3 tiles in one region, of which a worker sends 4 at once.
    assert job.demand.alternatives == ({POOL: 4},)
    work = job.work
    assert (work.endpoint, work.variant, work.regions, work.tiles) == ("ships", "AllTraffic", 1, 9)
    assert (work.workers, work.load, work.left, work.done, work.failed) == (4, 4, 4, 0, 0)
    assert world.store.request_of("harbour-7") == an_image_request(trainmaster={"priority": 5})
    assert world.image_queue.aside == []


def test_an_empty_batch_does_nothing():
    world = ImageWorld()
    assert world.deliver() == []
    assert (world.names(), world.publisher.wakes) == ([], [])


def test_requests_are_entered_in_the_order_in_which_they_were_sent_and_the_manager_is_woken_once():
    world = ImageWorld(now=at(100))
    records = [a_record(number, an_image_request(f"job{number}")) for number in range(3)]
    for record, after in zip(records, (2000, 0, 1000), strict=True):
        record["attributes"]["SentTimestamp"] = str(SENT + after)
    assert world.deliver(*records) == []
    assert world.names() == ["job1", "job2", "job0"]
    assert world.store.find("job0").entry_time == at(2)
    assert len(world.publisher.wakes) == 1


def test_a_request_from_the_future_enters_now():
    world = ImageWorld(now=at(-10))
    world.deliver(an_image_request())
    assert world.store.find("harbour-7").entry_time == at(-10)


# ---------------------------------------------------------------- what cannot be taken in


@pytest.mark.parametrize(("members", "field"), POISON.values(), ids=POISON)
def test_w1_a_poison_message_is_set_aside_at_once_and_its_neighbors_are_entered(members, field):
    world = ImageWorld()
    poison = an_image_request("poison", **members)
    assert world.deliver(an_image_request("before"), poison, an_image_request("behind")) == []
    assert world.names() == ["before", "behind"]
    ((body, reason, attributes),) = world.image_queue.aside
    assert body == json.dumps(poison)
    assert reason
    assert attributes == {"Field": field}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not JSON",
        "[]",
        "null",
        '"text"',
        "7",
        "{",
        '{"jobId": NaN}',
        "[" * 5000,
        '{"jobId":"a","jobId":"b"}',
        "\ufeff{}",
    ],
)
def test_w1_what_is_no_request_at_all_is_set_aside_unchanged(text):
    world = ImageWorld()
    assert world.deliver(an_image_request("before"), text, an_image_request("behind")) == []
    assert world.names() == ["before", "behind"]
    assert [body for body, _, _ in world.image_queue.aside] == [text]


def test_w2_a_region_of_interest_is_stored_and_its_job_is_entered():
    """ModelRunner could not write the region's geometry into its table, and the whole cycle failed."""
    world = ImageWorld()
    body = an_image_request(regionOfInterest=SQUARE)
    assert world.deliver(body, an_image_request("neighbor")) == []
    job = world.store.find("harbour-7")
    assert (job.work.part.column, job.work.part.width) == (100, 1848)
    assert read_request(world.store.request_of("harbour-7")).request.region_of_interest == SQUARE
    assert set(world.images.reads) == {(f"{BUCKET}small.tif", None, SQUARE), (f"{BUCKET}small.tif", None, None)}


def test_an_image_that_cannot_be_read_is_set_aside_with_the_reason():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}broken.tif"] = InvalidRequest("This is no image.")
    broken = an_image_request("broken", imageUrls=[f"{BUCKET}broken.tif"])
    assert world.deliver(an_image_request(), broken) == []
    assert world.names() == ["harbour-7"]
    assert world.reasons() == [("This is no image.", "imageUrls[0]")]


def test_an_image_is_read_with_the_role_of_its_request():
    world = ImageWorld()
    role = "arn:aws:iam::222222222222:role/reader"
    world.deliver(an_image_request(imageReadRole=role))
    assert (world.images.reads, world.images.submitters) == ([(f"{BUCKET}small.tif", role, None)], [""])


def test_a_role_is_assumed_for_the_principal_for_which_the_api_vouches_and_not_for_its_session():
    world = ImageWorld()
    records = [
        a_record(
            number, an_image_request(f"job{number}", imageReadRole="arn:aws:iam::222222222222:role/reader"), sender
        )
        | {"messageAttributes": {"Caller": {"stringValue": ALICE, "dataType": "String"}}}
        for number, sender in enumerate([f"{API_ROLE}:sagemaker-queue-api", "AROASTRANGER:x"])
    ]
    world.consume({"Records": records})
    assert sorted(world.images.submitters) == ["", ALICE.rpartition("/")[0]]


def test_a_role_for_reading_that_cannot_be_assumed_is_refused_by_its_field():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}small.tif"] = NotPermitted("not authorized to perform sts:AssumeRole")
    assert world.deliver(an_image_request(imageReadRole="arn:aws:iam::222222222222:role/reader")) == []
    ((reason, field),) = world.reasons()
    assert "cannot be assumed" in reason
    assert field == "imageReadRole"


def test_a_request_without_permission_is_retried_until_it_is_granted():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}small.tif"] = NotPermitted("a policy of ours is missing")
    assert world.deliver(an_image_request()) == ["m0"]


def errors_told(text):
    """Values of the guide's metric `Errors` in what was written, by model; None for all."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"_aws"')]
    told = [line for line in lines if line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "OSML/ModelRunner"]
    return {line.get("ModelName"): line["Errors"] for line in told if "Errors" in line}


def test_images_and_endpoints_that_fail_are_counted_by_model_and_wrong_requests_are_not(capsys):
    world = ImageWorld()
    world.endpoints.known["planes"] = Throttled("slow")
    world.deliver(
        "not JSON",
        an_image_request("unreadable", imageUrls=[f"{BUCKET}nowhere.tif"]),
        an_image_request("unknown", imageProcessor={"name": "planes"}),
        an_image_request("nowhere", imageProcessor={"name": "boats"}),
        an_image_request("good"),
    )
    told = errors_told(capsys.readouterr().out)
    assert {model: values if isinstance(values, list) else [values] for model, values in told.items()} == {
        None: [3.0],
        "ships": [1.0],
        "planes": [1.0],
        "boats": [1.0],
    }


def test_w12_an_image_without_pixels_is_refused_instead_of_vanishing():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}small.tif"] = a_header(0, 0)
    assert world.deliver(an_image_request()) == []
    ((reason, field),) = world.reasons()
    assert "no pixels" in reason
    assert field == "imageUrls[0]"
    assert world.store.find("harbour-7") is None


def test_w12_a_narrow_strip_of_which_modelrunner_makes_no_region_is_processed():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}small.tif"] = a_header(40, 5000)
    assert world.deliver(an_image_request()) == []
    assert world.store.find("harbour-7").work.regions == 1


def test_w1_a_header_with_huge_sizes_uses_no_memory():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}liar.tif"] = a_header(2**31, 2**31)
    liar = an_image_request("liar", imageUrls=[f"{BUCKET}liar.tif"])
    assert world.deliver(liar, an_image_request()) == []
    assert world.names() == ["harbour-7"]
    ((reason, _),) = world.reasons()
    assert "regions" in reason


@pytest.mark.parametrize(
    ("pixels", "region", "tile", "overlap", "regions"),
    [
        ((1024, 1024), 10_240, 1024, 50, 1),
        ((40_000, 30_000), 8192, 1024, 100, 30),
        ((50_000, 50_000), 10_240, 4096, 128, 49),
        ((25_000, 12_000), 10_000, 4096, 100, 8),
    ],
)
def test_the_regions_are_as_many_as_modelrunners_and_the_load_follows(pixels, region, tile, overlap, regions):
    world = ImageWorld(limits=Limits(region_size=(region, region)))
    world.images.headers[f"{BUCKET}small.tif"] = a_header(*pixels)
    world.deliver(an_image_request(imageProcessorTileSize=tile, imageProcessorTileOverlap=overlap))
    work = world.store.find("harbour-7").work
    assert work.regions == regions
    assert regions <= work.load <= regions * 4


# ---------------------------------------------------------------- the same again


def test_w3_a_message_that_comes_twice_makes_one_job_and_loses_nothing():
    world = ImageWorld()
    for _ in range(2):
        assert world.deliver(an_image_request(), an_image_request()) == []
        world.clock.sleep(60)
    assert world.names() == ["harbour-7"]
    assert world.store.find("harbour-7").entry_time == NOW
    assert (world.image_queue.aside, len(world.publisher.wakes)) == ([], 1)


def test_w3_a_request_that_comes_again_while_its_job_is_half_done_changes_nothing():
    world = ImageWorld()
    world.deliver(an_image_request())
    before = world.store.find("harbour-7")
    under_way = replace(before, version=before.version + 1, work=replace(before.work, done=1, left=0))
    assert world.store.transition([(before, under_way)])
    # Neither its image nor its endpoint is there any more.
    world.images.headers.clear()
    world.endpoints.known.clear()
    assert world.deliver(an_image_request()) == []
    assert world.store.find("harbour-7") == under_way
    assert world.image_queue.aside == []


def test_w3_the_order_of_members_makes_no_other_request():
    world = ImageWorld()
    body = an_image_request()
    world.deliver(body, dict(reversed(body.items())))
    assert (world.names(), world.image_queue.aside) == (["harbour-7"], [])


@pytest.mark.parametrize("together", [True, False])
def test_w3_another_request_under_the_same_name_is_refused(together):
    world = ImageWorld()
    first, second = an_image_request(), an_image_request(imageProcessorTileSize=512)
    if together:
        world.deliver(first, second)
    else:
        world.deliver(first)
        world.deliver(second)
    assert world.store.request_of("harbour-7") == first
    ((reason, field),) = world.reasons()
    assert "belongs to a job with another request" in reason
    assert field == "jobId"


def test_w10_a_dead_letter_that_was_mended_is_taken_when_it_is_sent_again():
    world = ImageWorld()
    world.deliver(an_image_request(imageProcessorTileFormat="BMP"))
    ((letter, reason, attributes),) = world.image_queue.aside
    assert (attributes["Field"], "BMP" in letter) == ("imageProcessorTileFormat", True)
    assert "should be" in reason
    mended = letter.replace("BMP", "PNG")
    assert world.deliver(a_record(1, mended, Reason=reason, **attributes)) == []
    assert world.names() == ["harbour-7"]
    assert len(world.image_queue.aside) == 1


def test_w10_a_dead_letter_of_an_image_that_is_there_by_now_is_taken_as_it_was():
    world = ImageWorld()
    late = an_image_request(imageUrls=[f"{BUCKET}late.tif"])
    world.deliver(late)
    ((letter, _, _),) = world.image_queue.aside
    world.images.headers[f"{BUCKET}late.tif"] = a_header()
    assert world.deliver(letter) == []
    assert world.store.request_of("harbour-7") == late


def test_w10_a_dead_letter_of_a_job_that_has_failed_is_not_swallowed_and_taken_under_another_name():
    world = ImageWorld()
    world.deliver(an_image_request())
    job = world.store.find("harbour-7")
    assert world.store.transition([(job, lifecycle.cancel(job, NOW, "ada"))])
    letter = json.dumps(an_image_request())
    assert world.deliver(a_record(0, letter)) == []
    assert world.image_queue.aside == []
    assert world.deliver(a_record(1, letter, Reason="1 of 1 regions failed")) == []
    ((body, reason, attributes),) = world.image_queue.aside
    assert (body, attributes) == (letter, {"Field": "jobId"})
    assert "harbour-7 is cancelled" in reason
    mended = json.loads(body) | {"jobId": "harbour-7b"}
    assert world.deliver(a_record(2, mended, Reason=reason)) == []
    assert world.names() == ["harbour-7b"]


def test_w11_a_stored_request_still_has_the_settings_of_its_distillation():
    world = ImageWorld()
    algorithm = {
        "algorithmType": "SOFT_NMS",
        "iouThreshold": 0.5,
        "skipBoxThreshold": 0.02,
        "sigma": 0.4,
        "withinTiles": True,
    }
    body = an_image_request(postProcessing=[{"step": "FEATURE_DISTILLATION", "algorithm": algorithm}])
    world.deliver(body)
    distillation = read_request(world.store.request_of("harbour-7")).request.distillation
    assert (distillation.iou, distillation.skip_box, distillation.sigma) == (0.5, 0.02, 0.4)
    assert distillation.within_tiles


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize("trouble", [Throttled("slow down"), Unavailable("away")])
def test_an_aws_error_repeats_only_its_own_message(trouble):
    world = ImageWorld()
    world.images.headers[f"{BUCKET}late.tif"] = trouble
    late = an_image_request("late", imageUrls=[f"{BUCKET}late.tif"])
    assert world.deliver(an_image_request("before"), late, an_image_request("behind")) == ["m1"]
    assert world.names() == ["before", "behind"]
    assert world.image_queue.aside == []
    world.images.headers[f"{BUCKET}late.tif"] = a_header()
    assert world.deliver(late) == []
    assert "late" in world.names()


class FailingStore:
    """A store that does not take one job."""

    def __init__(self, store, name, error):
        self._store, self._name, self._error = store, name, error

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    def submit(self, job, request, **rest):
        if job.name == self._name:
            raise self._error
        return self._store.submit(job, request, **rest)


@pytest.mark.parametrize("error", [Unavailable("away"), RuntimeError("a fault of ours")])
def test_a_job_that_cannot_be_stored_comes_again_and_its_neighbors_are_entered(error):
    world = ImageWorld()
    world.intake = replace(world.intake, store=FailingStore(world.store, "second", error))
    assert world.deliver(*(an_image_request(name) for name in ("first", "second", "third"))) == ["m1"]
    assert world.names() == ["first", "third"]
    assert len(world.publisher.wakes) == 1


def test_all_messages_of_a_batch_may_come_again():
    world = ImageWorld()
    world.images.headers[f"{BUCKET}small.tif"] = Unavailable("away")
    assert world.deliver(an_image_request("a"), an_image_request("b")) == ["m0", "m1"]


def test_messages_that_cannot_be_set_aside_are_delivered_again():
    world = ImageWorld()
    world.image_queue.failing = Unavailable("the dead-letter queue is away")
    assert world.deliver("not JSON", an_image_request()) == ["m0"]
    assert world.names() == ["harbour-7"]


def test_a_manager_that_cannot_be_woken_costs_no_job():
    world = ImageWorld()

    def away(_):
        raise Unavailable("the wake queue is away")

    world.publisher.wake = away
    assert world.deliver(an_image_request()) == []
    assert world.names() == ["harbour-7"]


# ---------------------------------------------------------------- W16: beside each other, and never forever


def test_w16_the_images_of_a_batch_are_read_at_the_same_time():
    world = ImageWorld()
    # No thread gets past it before all ten have come.
    world.images.meet = threading.Barrier(10)
    assert world.deliver(*(an_image_request(f"job{number}") for number in range(10))) == []
    assert len(world.names()) == 10


def test_w16_an_image_that_takes_too_long_comes_again_and_its_neighbors_are_entered():
    world = ImageWorld()
    world.images.meet = threading.Barrier(2)
    done = threading.Timer(2.0, world.images.meet.abort)
    done.start()
    assert world.deliver(an_image_request("slow"), left=5_200) == ["m0"]
    done.join()
    assert world.names() == []
    world.images.meet = None
    assert world.deliver(an_image_request("slow"), an_image_request("quick")) == []
    assert sorted(world.names()) == ["quick", "slow"]


# ---------------------------------------------------------------- endpoints and variants


def test_an_endpoint_is_described_once_and_remembered():
    world = ImageWorld()
    for number in range(5):
        world.deliver(an_image_request(f"job{number}"))
    assert world.endpoints.described == [("ships", None)]
    known = world.store.known(["ships"])["ships"]
    assert (known.described_at, known.tried_at) == (NOW, NOW)


def test_many_requests_at_once_for_an_endpoint_that_is_not_known_ask_for_it_once():
    world = ImageWorld()
    world.deliver(*(an_image_request(f"job{number}") for number in range(10)))
    assert world.endpoints.described == [("ships", None)]


def test_an_old_description_is_refreshed_and_keeps_the_throttling_state():
    world = ImageWorld()
    world.deliver(an_image_request("job1"))
    before = world.store.known(["ships"])["ships"]
    throttled_at = replace(before, pressure={"AllTraffic": Pressure(factor=0.5, since=NOW)})
    assert world.store.remember(throttled_at, before)
    world.clock.sleep(301)
    world.endpoints.known["ships"] = an_endpoint("ships", Variant(name="AllTraffic", instances=4))
    world.deliver(an_image_request("job2"))
    known = world.store.known(["ships"])["ships"]
    assert (known.described_at, known.variants[0].instances) == (at(301), 4)
    assert known.pressure["AllTraffic"].factor == 0.5


def test_while_an_endpoint_cannot_be_described_the_last_description_holds():
    world = ImageWorld()
    world.deliver(an_image_request("job1"))
    world.clock.sleep(301)
    for trouble in (Throttled("slow"), Unavailable("away"), NotPermitted("not any more")):
        world.endpoints.known["ships"] = trouble
        assert world.deliver(an_image_request(type(trouble).__name__)) == []
    assert len(world.names()) == 4
    assert world.store.known(["ships"])["ships"].described_at == NOW


@pytest.mark.parametrize("trouble", [Throttled("slow"), Unavailable("InternalFailure")])
def test_w18_a_request_enters_with_the_defaults_while_its_endpoint_cannot_be_described(trouble, capsys):
    """The guide: a failing API means default capacity, and is counted; it costs no request."""
    world = ImageWorld()
    world.endpoints.known["ships"] = trouble
    blue = {"TargetVariant": "blue"}
    assert world.deliver(an_image_request("any"), an_image_request("named", imageProcessorParameters=blue)) == []
    assert errors_told(capsys.readouterr().out)["ships"] in (1, [1])
    variants = {name: world.store.find(name).work.variant for name in world.names()}
    assert variants == {"any": "", "named": "blue"}
    pools = {name: pool.cap for name, pool in world.store.read_snapshot().pools.items() if "ships" in name}
    assert pools == {"endpoint/ships": 2, "endpoint/ships/blue": 2}
    # Asked once for both, and not again before the next tick's turn.
    known = world.store.known(["ships"])["ships"]
    assert (known.described_at, known.tried_at, world.endpoints.described) == (None, NOW, [("ships", None)])


def test_a_request_for_an_endpoint_that_is_being_created_waits_for_it():
    """SageMaker names no variants before it has created them."""
    world = ImageWorld()
    world.endpoints.known["ships"] = an_endpoint("ships", status="Creating")
    assert world.deliver(an_image_request("early")) == []
    assert world.store.find("early").work.variant == ""
    pool = world.store.read_snapshot().pools["endpoint/ships"]
    assert (pool.cap, pool.draining, pool.status) == (2, True, "Creating")


def test_a_request_for_an_endpoint_that_was_deleted_is_refused_and_the_jobs_before_it_wait():
    world = ImageWorld()
    world.deliver(an_image_request("before"))
    del world.endpoints.known["ships"]
    before = world.store.known(["ships"])["ships"]
    assert world.store.remember(described("ships", None, before, world.clock.now(), missing=True), before)
    world.deliver(an_image_request("after"))
    assert world.names() == ["before"]
    assert world.reasons()[0][1] == "imageProcessor.name"
    assert world.store.read_snapshot().pools[POOL].status == "Deleted"


def test_an_endpoint_that_could_not_be_described_is_asked_for_again_by_the_next_request_half_a_minute_later():
    world = ImageWorld()
    ships, world.endpoints.known["ships"] = world.endpoints.known["ships"], Throttled("slow")
    world.deliver(an_image_request("early"))
    world.endpoints.known["ships"] = ships
    world.clock.sleep(29)
    world.deliver(an_image_request("soon"))
    world.clock.sleep(1)
    world.deliver(an_image_request("late"))
    assert [world.store.find(name).work.variant for name in ("early", "soon", "late")] == ["", "", "AllTraffic"]


def test_the_tick_is_told_the_role_of_an_endpoint_that_could_not_be_described():
    world = ImageWorld()
    role = "arn:aws:iam::222222222222:role/model"
    world.endpoints.known["222222222222:ships"] = Unavailable("away")
    world.deliver(an_image_request(imageProcessor={"name": "ships", "assumedRole": role}))
    assert world.store.known(["222222222222:ships"])["222222222222:ships"].role == role


def test_a_model_on_a_private_host_is_rejected_and_an_unresolvable_one_is_left_to_the_workers():
    world = ImageWorld()
    private, unknown = "http://169.254.169.254/m", "http://models.example/m"
    world.unreachable = {private: InvalidRequest("no public address", field="imageProcessor.name")}
    world.unreachable[unknown] = Unavailable("no resolver")
    for name, url in (("private", private), ("unknown", unknown)):
        assert world.deliver(an_image_request(name, imageProcessor={"name": url})) == []
    assert world.names() == ["unknown"]
    assert world.reasons() == [("no public address", "imageProcessor.name")]


def test_an_endpoint_that_does_not_exist_is_refused():
    world = ImageWorld()
    world.deliver(an_image_request(imageProcessor={"name": "planes"}))
    ((reason, field),) = world.reasons()
    assert reason.startswith("There is no endpoint planes.")
    assert field == "imageProcessor.name"


@pytest.mark.parametrize(
    ("role", "field"),
    [(None, "imageProcessor.name"), ("arn:aws:iam::222222222222:role/model", "imageProcessor.assumedRole")],
)
def test_an_endpoint_that_the_queue_may_not_describe_is_refused_with_what_it_needs(role, field):
    world = ImageWorld()
    world.endpoints.known = {key: NotPermitted("no") for key in ("ships", "222222222222:ships")}
    processor = {"name": "ships"} if role is None else {"name": "ships", "assumedRole": role}
    world.deliver(an_image_request(imageProcessor=processor))
    ((reason, where),) = world.reasons()
    assert "sagemaker:DescribeEndpoint" in reason
    assert where == field


def test_w14_an_endpoint_of_another_account_is_another_endpoint_described_under_its_role():
    world = ImageWorld()
    role = "arn:aws:iam::222222222222:role/model"
    world.endpoints.known["222222222222:ships"] = an_endpoint("222222222222:ships", Variant(name="v", instances=1))
    world.deliver(
        an_image_request("ours"), an_image_request("theirs", imageProcessor={"name": "ships", "assumedRole": role})
    )
    assert world.store.find("theirs").demand.alternatives == ({"endpoint/222222222222:ships/v": 4},)
    assert world.store.find("ours").demand.alternatives == ({POOL: 4},)
    assert ("222222222222:ships", role) in world.endpoints.described
    assert world.store.known(["222222222222:ships"])["222222222222:ships"].role == role


def test_a_role_of_our_own_account_leads_to_our_own_endpoint():
    world = ImageWorld()
    role = "arn:aws:iam::111122223333:role/model"
    world.deliver(an_image_request(imageProcessor={"name": "ships", "assumedRole": role}))
    assert world.store.find("harbour-7").work.endpoint == "ships"


def test_a_model_behind_a_url_has_no_variant_and_is_not_described():
    world = ImageWorld()
    processor = {"name": "HTTPS://user:secret@Host/models/ships?key=secret", "type": "HTTP_ENDPOINT"}
    world.deliver(an_image_request(imageProcessor=processor, imageProcessorParameters={"TargetVariant": "blue"}))
    job = world.store.find("harbour-7")
    assert job.work.variant == ""
    assert job.demand.alternatives == ({"endpoint/https://host/models/ships": 4},)
    assert world.endpoints.described == []
    assert world.store.known(["https://host/models/ships"])["https://host/models/ships"].http


def test_the_variant_that_is_asked_for_is_taken_and_one_that_does_not_exist_refused():
    world = ImageWorld()
    variants = [Variant(name=name, weight=weight, instances=1) for name, weight in (("blue", 0.0), ("green", 1.0))]
    world.endpoints.known["ships"] = an_endpoint("ships", *variants)
    asks = {name: {"TargetVariant": name} for name in ("blue", "green", "red")} | {"any": {"TargetVariant": ""}}
    world.deliver(*(an_image_request(name, imageProcessorParameters=asked) for name, asked in asks.items()))
    chosen = {name: world.store.find(name).work.variant for name in world.names()}
    assert chosen == {"any": "green", "blue": "blue", "green": "green"}
    assert [field for _, field in world.reasons()] == ["imageProcessorParameters.TargetVariant"]


def test_variants_without_any_weight_are_refused_with_the_reason():
    world = ImageWorld()
    variants = [Variant(name=name, weight=0.0, instances=1) for name in ("blue", "green")]
    world.endpoints.known["ships"] = an_endpoint("ships", *variants)
    world.deliver(an_image_request())
    ((reason, _),) = world.reasons()
    assert "weight" in reason


def test_jobs_are_spread_over_variants_by_weight_and_each_keeps_its_own():
    world = ImageWorld()
    variants = [Variant(name=name, weight=weight, instances=1) for name, weight in (("a", 0.7), ("b", 0.3))]
    world.endpoints.known["ships"] = an_endpoint("ships", *variants)
    names = [f"job{number}" for number in range(200)]
    for first in range(0, 200, 10):
        world.deliver(*(an_image_request(name) for name in names[first : first + 10]))
    chosen = {name: world.store.find(name).work.variant for name in names}
    assert 110 <= sum(variant == "a" for variant in chosen.values()) <= 170
    again = ImageWorld()
    again.endpoints.known["ships"] = an_endpoint("ships", *variants)
    again.deliver(*(an_image_request(name) for name in names[:10]))
    assert {name: again.store.find(name).work.variant for name in names[:10]} == {
        name: chosen[name] for name in names[:10]
    }


def test_an_endpoint_may_say_how_many_tiles_are_sent_at_once():
    world = ImageWorld()
    world.endpoints.known["ships"] = an_endpoint("ships", Variant(name="AllTraffic", instances=1), tile_workers=8)
    world.deliver(an_image_request())
    work = world.store.find("harbour-7").work
    assert (work.workers, work.load) == (8, 8)


# ---------------------------------------------------------------- shares


ALICE = "arn:aws:sts::111122223333:assumed-role/research/alice"
VISION = Policy(
    shares={
        "vision": Share(name="vision", submitters=("arn:aws:sts::111122223333:assumed-role/research",)),
        "open": Share(name="open"),
    }
)


def test_a_share_that_does_not_exist_is_refused_with_the_one_that_is_meant():
    world = ImageWorld(policy=VISION)
    world.deliver(
        an_image_request(trainmaster={"share": "vison"}), an_image_request("b", trainmaster={"share": "open"})
    )
    ((reason, field),) = world.reasons()
    assert "Did you mean 'vision'?" in reason
    assert field == "trainmaster.share"
    assert world.store.find("b").share == "open"


def test_a_share_for_some_takes_requests_for_which_the_api_vouches_and_no_others():
    world = ImageWorld(policy=VISION)
    mine = {"trainmaster": {"share": "vision"}}
    assert (
        world.deliver(
            a_record(0, an_image_request("through-the-api", **mine), f"{API_ROLE}:sagemaker-queue-api", Caller=ALICE),
            a_record(1, an_image_request("forged", **mine), "AROAOTHER:sagemaker-queue-api", Caller=ALICE),
            a_record(2, an_image_request("missing", **mine)),
        )
        == []
    )
    assert world.names() == ["through-the-api"]
    assert world.store.find("through-the-api").submitted_by == Caller(ALICE).principal
    assert [field for _, field in world.reasons()] == ["trainmaster.share"] * 2


def test_a_request_for_what_its_sender_may_not_use_is_set_aside_with_the_field():
    world = ImageWorld()
    rules = f"{Caller(ALICE).principal} model:ships image:s3://* output:s3://results/*"
    world.intake = replace(world.intake, resources=parse_access(rules))
    requests = [an_image_request(name) for name in ("vouched", "unknown")]
    senders = [f"{API_ROLE}:sagemaker-queue-api", "AROAOTHER:x"]
    records = [a_record(n, *each, Caller=ALICE) for n, each in enumerate(zip(requests, senders, strict=True))]
    assert world.deliver(*records) == []
    assert world.names() == ["vouched"]
    assert [field for _, field in world.reasons()] == ["imageProcessor.name"]


UPLOADER = "AROAUPLOADERUPLOADER1"


def test_a_sender_that_the_deployment_names_passes_the_same_checks_as_a_caller_of_the_api():
    world = ImageWorld(policy=VISION)
    rules = f"{Caller(ALICE).principal} model:ships image:s3://* output:s3://results/*"
    senders = parse_senders(f"{UPLOADER}={Caller(ALICE).principal}")
    world.intake = replace(world.intake, resources=parse_access(rules), senders=senders)
    mine = {"trainmaster": {"share": "vision"}}
    other = {"imageProcessor": {"name": "planes", "type": "SM_ENDPOINT"}}
    assert world.deliver(
        a_record(0, an_image_request("ours", **mine), f"{UPLOADER}:session", Caller="forged"),
        a_record(1, an_image_request("another-model", **mine, **other), UPLOADER),
    ) == []  # fmt: skip
    assert world.names() == ["ours"]
    assert world.store.find("ours").submitted_by == Caller(ALICE).principal
    assert [field for _, field in world.reasons()] == ["imageProcessor.name"]


@pytest.mark.parametrize("sender", ["AROAOTHER:x", f"{UPLOADER}X", "", API_ROLE, f"x:{API_ROLE}:y"])
def test_a_sender_that_the_deployment_does_not_name_is_refused(sender):
    world = ImageWorld()
    world.intake = replace(world.intake, senders=parse_senders(f"{UPLOADER}={Caller(ALICE).principal}"))
    assert world.deliver(a_record(0, an_image_request(), sender, Caller=ALICE)) == []
    assert (world.names(), world.images.reads) == ([], [])
    ((reason, field),) = world.reasons()
    assert (field, "may not send requests to the image queue" in reason) == ("SenderId", True)


# ---------------------------------------------------------------- the events


@pytest.mark.parametrize("path", sorted(EVENTS.glob("intake-*.json")), ids=lambda path: path.stem)
def test_an_intake_event_is_consumed(path):
    world = ImageWorld()
    world.images.headers["s3://bucket/images/harbour-7.tif"] = a_header()
    assert world.consume(json.loads(path.read_text())) == []
    assert world.names() == ["harbour-7"]
    assert world.store.find("harbour-7").entry_time == datetime.fromtimestamp(SENT / 1000, UTC)
    assert world.reasons() == [("imageProcessor is missing. Add it.", "imageProcessor")]


# ---------------------------------------------------------------- what becomes of those who ask for a refused request


def test_a_refused_request_is_remembered_by_its_job_with_time_field_and_reason():
    world = ImageWorld()
    world.deliver(an_image_request(imageUrls=[f"{BUCKET}small.tif", f"{BUCKET}second.tif"]))
    found = world.refusals.of("harbour-7")
    assert (found.job, found.at, found.field) == ("harbour-7", world.clock.now(), "imageUrls")
    assert found.reason.startswith("There are 2 images; a job processes one.")


@pytest.mark.parametrize("body", ["no JSON", "[1]", "{}", '{"jobId": 7}', '{"jobId": "../../etc"}'])
def test_of_a_request_without_a_name_that_a_job_can_have_nothing_is_remembered(body):
    world = ImageWorld()
    world.deliver(body)
    assert len(world.reasons()) == 1
    assert [world.refusals.of(name) for name in ("", "7", "../../etc")] == [None] * 3


def test_a_job_that_is_there_is_told_of_rather_than_of_a_refusal_and_a_later_good_request_is_taken():
    world = ImageWorld()
    world.deliver(an_image_request(), an_image_request("harbour-8", imageUrls=[]))
    world.deliver(an_image_request(imageProcessorTileSize=512))
    assert world.refusals.of("harbour-7") is None
    assert world.refusals.of("harbour-8") is not None
    world.deliver(an_image_request("harbour-8"))
    assert world.store.find("harbour-8") is not None


def test_a_refusal_that_cannot_be_remembered_is_set_aside_all_the_same():
    world = ImageWorld()

    class Away:
        def note(self, refusal):
            raise Unavailable("DynamoDB is away")

    world.refusals = Away()
    assert world.deliver(an_image_request(imageUrls=[])) == []
    assert len(world.reasons()) == 1
