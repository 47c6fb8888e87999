"""Times at which endpoints are described, and the answers that are stored (facts, section 5: estimator)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from image_builders import an_image_job
from image_stores import MemoryImageStore
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled, Unavailable
from trainmaster.images.domain.capacity import capacity_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, Pressure, Variant, is_serving
from trainmaster.images.service.endpoints import MAX_ASKED, Refresher

LIMITS = Limits(fresh_for=300)


class Clock:
    def __init__(self):
        self.seconds = 0

    def now(self):
        return b.at(self.seconds)


class Aws:
    """SageMaker's endpoints: each answer is a value, or an exception that is raised."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def describe(self, key, *, role=None):
        self.asked.append((key, role))
        answer = self.answers.get(key) or Endpoint(key=key, variants=(Variant(name="blue", instances=3),))
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return MemoryImageStore(default_pools=b.pools_of(), now=clock.now)


@pytest.fixture
def aws():
    return Aws()


@pytest.fixture
def refresher(store, aws, clock):
    return Refresher(store, aws, clock, LIMITS)


def jobs(*endpoints):
    return [an_image_job(f"job-{n}", endpoint=name) for n, name in enumerate(endpoints)]


def capacity(store, key="ships"):
    return capacity_of(store.known([key])[key], "blue", LIMITS)


def test_an_endpoint_is_asked_after_once_while_its_answer_is_fresh(refresher, store, aws, clock):
    for clock.seconds in (0, 60, 299):
        assert refresher.refresh(jobs("ships", "ships")) == ()
    assert aws.asked == [("ships", None)]
    clock.seconds = 300
    refresher.refresh(jobs("ships"))
    assert len(aws.asked) == 2
    assert store.known(["ships"])["ships"].described_at == b.at(300)


def test_more_instances_count_from_the_next_answer_on(refresher, store, aws, clock):
    """W17."""
    refresher.refresh(jobs("ships"))
    assert capacity(store) == 6
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=5),), instance_concurrency=4)
    clock.seconds = 300
    refresher.refresh(jobs("ships"))
    assert capacity(store) == 20


@pytest.mark.parametrize("error", [Throttled("slow"), Unavailable("down"), NotPermitted("no"), InvalidRequest("gone")])
def test_on_a_failure_the_last_good_answer_holds_and_the_error_is_told(refresher, store, aws, clock, error):
    refresher.refresh(jobs("ships"))
    aws.answers["ships"] = error
    clock.seconds = 400
    assert refresher.refresh(jobs("ships")) == ("ships",)
    assert capacity(store) == 6
    kept = store.known(["ships"])["ships"]
    assert (kept.described_at, kept.tried_at) == (b.at(0), b.at(400))


def test_an_undescribed_endpoint_counts_as_one_default_instance(refresher, store, aws):
    """W18: the guess follows from the settings."""
    aws.answers["ships"] = Unavailable("down")
    assert refresher.refresh(jobs("ships")) == ("ships",)
    assert capacity(store) == LIMITS.instance_concurrency


def test_tags_that_cannot_be_read_leave_what_earlier_ones_said(refresher, store, aws, clock):
    variants = (Variant(name="blue", instances=3),)
    aws.answers["ships"] = Endpoint(key="ships", variants=variants, instance_concurrency=5, tile_workers=3)
    refresher.refresh(jobs("ships"))
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=4),), tags_unread=True)
    clock.seconds = 300
    assert refresher.refresh(jobs("ships")) == ()
    assert capacity(store) == 20
    aws.answers["ships"] = Endpoint(key="ships", variants=variants)
    clock.seconds = 600
    refresher.refresh(jobs("ships"))
    assert capacity(store) == 6, "a tag that was taken away counts no more"


def test_tags_that_could_never_be_read_count_as_none(refresher, store, aws):
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=4),), tags_unread=True)
    refresher.refresh(jobs("ships"))
    assert capacity(store) == 8


def test_models_behind_urls_are_not_asked_after(refresher, aws):
    assert refresher.refresh(jobs("https://models.example/ships")) == ()
    assert aws.asked == []


def test_a_tick_asks_after_a_few_and_the_others_follow(refresher, aws, clock):
    names = [f"e{n:02d}" for n in range(MAX_ASKED + 3)]
    refresher.refresh(jobs(*names))
    assert len(aws.asked) == MAX_ASKED
    clock.seconds = 60
    refresher.refresh(jobs(*names))
    assert sorted(key for key, _ in aws.asked) == names


def test_w17_an_endpoint_that_is_not_serving_is_asked_after_with_every_tick(refresher, store, aws, clock):
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=3),), status="Creating")
    refresher.refresh(jobs("ships"))
    aws.answers["ships"] = replace(aws.answers["ships"], status="InService")
    for seconds in (60, 120):
        clock.seconds = seconds
        refresher.refresh(jobs("ships"))
    assert len(aws.asked) == 2
    assert store.known(["ships"])["ships"].status == "InService"


@pytest.mark.parametrize("status", ["Updating", "SystemUpdating", "RollingBack"])
def test_w17_an_endpoint_that_is_being_changed_is_asked_after_with_every_tick(refresher, store, aws, clock, status):
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=1),), status=status)
    refresher.refresh(jobs("ships"))
    clock.seconds = 60
    aws.answers["ships"] = Endpoint(key="ships", variants=(Variant(name="blue", instances=9),), status="InService")
    refresher.refresh(jobs("ships"))
    assert store.known(["ships"])["ships"].variants[0].instances == 9


def test_the_jobs_of_an_endpoint_that_was_deleted_wait_until_it_is_there_again(refresher, store, aws, clock):
    refresher.refresh(jobs("ships"))
    for clock.seconds in (300, 360):
        aws.answers["ships"] = InvalidRequest("SageMaker has no endpoint ships.")
        assert refresher.refresh(jobs("ships")) == ("ships",)
        assert store.known(["ships"])["ships"].status == "Deleted"
    aws.answers["ships"] = Unavailable("down")
    clock.seconds = 420
    refresher.refresh(jobs("ships"))
    assert not is_serving(store.known(["ships"])["ships"])
    aws.answers.clear()
    clock.seconds = 480
    refresher.refresh(jobs("ships"))
    assert is_serving(store.known(["ships"])["ships"])


def test_an_endpoint_that_never_was_there_is_not_taken_for_a_deleted_one(refresher, store, aws):
    aws.answers["ships"] = InvalidRequest("SageMaker has no endpoint ships.")
    refresher.refresh(jobs("ships"))
    assert is_serving(store.known(["ships"])["ships"])


def test_those_that_fail_do_not_keep_the_others_from_their_turn(refresher, aws, clock):
    names = [f"e{n:02d}" for n in range(MAX_ASKED + 3)]
    aws.answers = {name: Unavailable("down") for name in names[:MAX_ASKED]}
    refresher.refresh(jobs(*names))
    clock.seconds = 60
    refresher.refresh(jobs(*names))
    assert set(names) == {key for key, _ in aws.asked}


def test_an_endpoint_of_another_account_is_asked_after_under_its_role(refresher, store, aws):
    """W14."""
    role = "arn:aws:iam::444455556666:role/reader"
    assert store.remember(Endpoint(key="444455556666:ships", role=role), None)
    refresher.refresh(jobs("444455556666:ships"))
    assert aws.asked == [("444455556666:ships", role)]
    assert store.known(["444455556666:ships"])["444455556666:ships"].role == role


def test_the_throttling_state_survives_a_concurrent_refresh(store, clock):
    pressure = {"blue": Pressure(factor=0.5, since=b.NOW)}

    class Slow(Aws):
        def describe(self, key, *, role=None):
            before = store.known([key]).get(key)
            assert store.remember(replace(before or Endpoint(key=key), pressure=pressure), before)
            return super().describe(key, role=role)

    refresher = Refresher(store, Slow(), clock, LIMITS)
    refresher.refresh(jobs("ships"))
    found = store.known(["ships"])["ships"]
    assert found.pressure == pressure
    assert found.variants[0].instances == 3
    assert clock.now() - found.described_at == timedelta(0)
