"""Requests of other callers at an endpoint: never those of the queue's own jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from image_builders import a_running_image, an_image_job
from image_stores import MemoryImageStore
from trainmaster.domain.errors import NotPermitted, Unavailable
from trainmaster.images.domain.capacity import cap_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, Pressure, Variant
from trainmaster.images.service.endpoints import Refresher
from trainmaster.images.service.external_load import MAX_ROLES, MAX_WATCHED, ExternalLoadMonitor

LIMITS = Limits(instance_concurrency=5)
MINUTE = 60


class Clock:
    seconds = 0

    def now(self):
        return b.at(self.seconds)


class Figures:
    """CloudWatch: requests of each instance by endpoint and variant, or an exception that is raised."""

    def __init__(self):
        self.says, self.asked = {}, []

    def min_requests(self, asked, now, *, role=None):
        self.asked.append((role, list(asked)))
        if isinstance(self.says, Exception):
            raise self.says
        return {each: self.says[each] for each in asked if each in self.says}


class Scene:
    def __init__(self):
        self.clock, self.figures = Clock(), Figures()
        self.store = MemoryImageStore(default_pools=b.pools_of(), now=self.clock.now)
        self.neighbors = ExternalLoadMonitor(self.store, self.figures, self.clock)
        variants = (Variant(name="blue", instances=4), Variant(name="free", max_concurrency=9))
        self.remember(Endpoint(key="ships", variants=variants, described_at=b.NOW))

    def remember(self, endpoint):
        assert self.store.remember(endpoint, self.store.known([endpoint.key]).get(endpoint.key))

    def look(self, *jobs, minutes=0):
        self.clock.seconds += minutes * MINUTE
        return self.neighbors.look(jobs)

    def cap(self, variant="blue"):
        return cap_of(self.known(), variant, LIMITS, self.clock.now()).requests

    def known(self):
        return self.store.known(["ships"])["ships"]


@pytest.fixture
def scene():
    return Scene()


def test_w17_what_others_ask_is_left_to_them(scene):
    assert scene.cap() == 20
    scene.figures.says = {("ships", "blue"): 2.0}
    assert scene.look(an_image_job()) == ()
    assert scene.cap() == 12
    assert scene.cap("free") == 9
    scene.figures.says = {}
    scene.look(an_image_job(), minutes=1)
    assert scene.cap() == 20, "they have gone"


def test_w17_our_own_load_is_never_taken_for_others(scene):
    """Also when the job that made it has ended by the time at which the figures come, and when it was larger before."""
    running = a_running_image(load=16)
    scene.figures.says = {("ships", "blue"): 4.0}
    for _ in range(5):
        scene.look(running, minutes=1)
        assert scene.cap() == 20
    for _ in range(3):
        scene.look(an_image_job(), minutes=1)
        assert scene.cap() == 20
    scene.figures.says = {}
    scene.look(an_image_job(), minutes=1)
    assert scene.known().others.keys() == {"blue"}
    scene.look(an_image_job(), minutes=3)
    assert scene.known().others == {}, "nothing is left to remember"


def test_external_load_is_the_difference_from_the_queues_own(scene):
    scene.figures.says = {("ships", "blue"): 4.5}
    scene.look(a_running_image("one", 6), a_running_image("two", 4))
    assert scene.cap() == 20 - (18 - 10)


def test_jobs_that_have_no_variant_may_be_at_any(scene):
    scene.figures.says = {("ships", "blue"): 4.0}
    scene.look(a_running_image("one", 6), a_running_image("two", 4, variant=""))
    assert scene.cap() == 20 - (16 - 10)


def test_one_request_is_left_to_us_whatever_others_do(scene):
    scene.figures.says = {("ships", "blue"): 100.0}
    scene.look(an_image_job())
    assert scene.cap() == 1


def test_old_figures_count_for_nothing_and_a_failure_keeps_the_last_good_ones(scene):
    scene.figures.says = {("ships", "blue"): 2.0}
    scene.look(an_image_job())
    scene.figures.says = Unavailable("down")
    assert scene.look(an_image_job(), minutes=5) == ("ships",)
    assert scene.cap() == 12
    assert scene.look(an_image_job(), minutes=1) == ("ships",)
    assert scene.cap() == 20


def test_where_we_may_not_ask_others_count_for_nothing_and_that_is_no_error(scene):
    scene.figures.says = {("ships", "blue"): 2.0}
    scene.look(an_image_job())
    scene.figures.says = NotPermitted("no")
    assert scene.look(an_image_job(), minutes=1) == ()
    assert scene.cap() == 20


def test_one_call_asks_for_all_under_a_role_and_for_none_without_instances(scene):
    role = "arn:aws:iam::444455556666:role/reader"
    blue = (Variant(name="blue", instances=1),)
    scene.remember(Endpoint(key="cars", variants=blue))
    scene.remember(Endpoint(key="444455556666:ships", variants=blue, role=role))
    names = ["ships", "cars", "444455556666:ships", "https://models.example/a", "unknown"]
    jobs = [an_image_job(f"job{number}", endpoint=name) for number, name in enumerate(names)]
    scene.look(*jobs, an_image_job("free", variant="free"))
    assert scene.figures.asked == [
        (role, [("444455556666:ships", "blue")]),
        (None, [("cars", "blue"), ("ships", "blue")]),
    ]


def test_a_tick_asks_for_no_more_than_it_may(scene):
    jobs = []
    for number in range(MAX_WATCHED + 1):
        scene.remember(Endpoint(key=f"e{number}", variants=(Variant(name="blue", instances=1),)))
        jobs.append(an_image_job(f"job{number}", endpoint=f"e{number}"))
    scene.look(*jobs)
    ((_, asked),) = scene.figures.asked
    assert len(asked) == MAX_WATCHED


def accounts(scene, count):
    """Endpoints of so many other accounts, each under a role of its own, in order."""
    keys = [f"{account:012}:ships" for account in range(count)]
    for key in keys:
        role = f"arn:aws:iam::{key.partition(':')[0]}:role/reader"
        scene.remember(Endpoint(key=key, variants=(Variant(name="blue", instances=4),), described_at=b.NOW, role=role))
    return keys


@pytest.mark.parametrize("count", [4, 5, 6, 12, 25])
def test_under_many_roles_all_get_their_turn_a_few_with_each_tick(scene, count):
    jobs = [an_image_job(f"job{key}", endpoint=key) for key in ("ships", *accounts(scene, count))]
    roles, ticks = set(), -(-(count + 1) // MAX_ROLES)
    for _ in range(ticks):
        scene.figures.asked.clear()
        scene.look(*jobs, minutes=1)
        now = [role for role, _ in scene.figures.asked]
        assert len(now) == len(set(now)) == min(MAX_ROLES, count + 1)
        roles.update(now)
    assert len(roles) == count + 1


def test_a_failure_is_told_only_of_those_whose_turn_it_is(scene):
    jobs = [an_image_job(f"job{key}", endpoint=key) for key in accounts(scene, 7)]
    scene.figures.says = Unavailable("down")
    assert len(scene.look(*jobs)) == MAX_ROLES


def test_our_own_load_is_never_taken_for_others_where_it_came_and_went_between_two_turns(scene):
    keys = accounts(scene, 2 * MAX_ROLES)
    waiting = [an_image_job(f"job{key}", endpoint=key) for key in keys]
    scene.look(*waiting)
    scene.look(*(a_running_image(f"mine{key}", load=16, endpoint=key) for key in keys), minutes=1)
    scene.figures.says = {(key, "blue"): 4.0 for key in keys}
    scene.figures.asked.clear()
    scene.look(*waiting, minutes=1)
    asked = [key for _, places in scene.figures.asked for key, _ in places]
    assert len(asked) == MAX_ROLES
    assert {cap_of(scene.store.known([key])[key], "blue", LIMITS, scene.clock.now()).requests for key in asked} == {20}


def test_concurrent_updates_of_workers_are_kept(scene):
    pressure = {"blue": Pressure(factor=0.5, since=b.NOW)}

    class Slow(Figures):
        def min_requests(self, asked, now, *, role=None):
            scene.remember(replace(scene.known(), pressure=pressure))
            return {("ships", "blue"): 2.0}

    ExternalLoadMonitor(scene.store, Slow(), scene.clock).look([an_image_job()])
    assert (scene.known().pressure, scene.cap()) == (pressure, 2)


def test_w17_the_tick_that_describes_endpoints_sees_to_their_other_callers_and_tells_both_failures(scene):
    class Down:
        def describe(self, key, *, role=None):
            raise Unavailable("down")

    scene.clock.seconds = 400
    scene.figures.says = {("ships", "blue"): 2.0}
    refresher = Refresher(scene.store, Down(), scene.clock, LIMITS, scene.neighbors)
    assert refresher.refresh([an_image_job()]) == ("ships",)
    assert scene.cap() == 12
    scene.figures.says = Unavailable("down")
    assert refresher.refresh([an_image_job()]) == ("ships",), "each endpoint is told once"
