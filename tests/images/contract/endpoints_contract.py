"""Contract of every store of endpoints: it remembers them, and adds the pools that image jobs need."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import builders as b
from image_builders import an_endpoint, an_endpoint_pool, an_image_job, an_image_work
from trainmaster.domain.capacity.read_limits import FIRST_OF_FULL, FIRST_OF_SERVICE
from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.images.domain.capacity import Cap
from trainmaster.images.domain.endpoint import Endpoint, Held, Others, Pressure, Variant, pool_name

SHIPS = pool_name("ships", "blue")
URL = "https://models.example.com:8443/v1/ships"
EVERYTHING = Endpoint(
    key="111122223333:équipe",
    variants=(
        Variant(name="blue", weight=0.7, instances=3),
        Variant(name="green", weight=0.0, max_concurrency=200),
        Variant(name="name"),
    ),
    instance_concurrency=5,
    target=0.8,
    tile_workers=6,
    described_at=b.at(0.123457),
    tried_at=b.at(60),
    role="arn:aws:iam::111122223333:role/reader",
    pressure={"blue": Pressure(factor=0.5, since=b.at(7)), "green": Pressure()},
    status="Updating",
    others={"blue": Others(requests=3, seen_at=b.at(9), ours=(Held(requests=2, at=b.at(8)),)), "green": Others()},
)


def image_pools(snapshot):
    """The endpoints' pools of a snapshot, by name."""
    return {name: pool.cap for name, pool in snapshot.pools.items() if pool.kind is Kind.SERVICE}


class KnownEndpointsContract:
    def test_at_first_no_endpoint_is_remembered(self, store):
        assert store.known(["ships", URL]) == {}
        assert store.known([]) == {}

    def test_stored_endpoints_round_trip(self, store, other_store):
        assert store.remember(EVERYTHING, None)
        bare = Endpoint(key=URL, http=True)
        assert store.remember(bare, None)
        assert other_store.known([EVERYTHING.key, URL, "none"]) == {EVERYTHING.key: EVERYTHING, URL: bare}

    def test_only_those_that_are_asked_for_come(self, store):
        for key in ("a", "b", "c"):
            assert store.remember(an_endpoint(key), None)
        assert store.known(["a", "c", "a"]).keys() == {"a", "c"}

    def test_more_than_a_hundred_can_be_asked_for(self, store):
        keys = [f"endpoint-{number}" for number in range(103)]
        for key in keys:
            assert store.remember(an_endpoint(key), None)
        assert store.known(keys).keys() == set(keys)

    def test_it_takes_the_place_of_what_was_there_before(self, store, other_store):
        first = an_endpoint()
        second = replace(first, described_at=b.at(300))
        assert store.remember(first, None)
        assert other_store.remember(second, first)
        assert store.known(["ships"]) == {"ships": second}

    def test_a_stale_write_loses_and_changes_nothing(self, store, other_store):
        first = an_endpoint()
        second, third = (replace(first, described_at=b.at(seconds)) for seconds in (300, 600))
        assert store.remember(first, None)
        assert not other_store.remember(second, None)
        assert other_store.remember(second, first)
        assert not store.remember(third, first)
        assert store.known(["ships"]) == {"ships": second}

    def test_of_many_that_write_at_once_one_wins(self, engine):
        first = an_endpoint()
        stores = [engine.open() for _ in range(6)]
        assert stores[0].remember(first, None)
        versions = [replace(first, described_at=b.at(number + 1)) for number in range(6)]
        with ThreadPoolExecutor(6) as pool:
            won = list(pool.map(lambda each: each[0].remember(each[1], first), zip(stores, versions, strict=True)))
        assert won.count(True) == 1
        assert stores[0].known(["ships"]) == {"ships": versions[won.index(True)]}


class EndpointPoolsContract:
    def test_a_queue_without_image_jobs_has_no_pools_of_endpoints(self, store):
        store.remember(an_endpoint(), None)
        store.submit(b.a_job("job1"), b.a_request("job1"))
        assert image_pools(store.begin_pass()) == image_pools(store.read_snapshot()) == {}

    def test_waiting_image_jobs_bring_their_endpoints_pools(self, store):
        store.remember(an_endpoint(takes=8), None)
        store.submit(an_image_job("image1"), {"jobId": "image1"})
        for snapshot in (store.begin_pass(), store.read_snapshot()):
            assert snapshot.pools[SHIPS] == an_endpoint_pool(8)
            assert snapshot.pools.keys() == {b.P5, SHIPS}
            assert [job.name for job in snapshot.waiting] == ["image1"]

    def test_so_do_those_that_hold_requests_and_ended_ones_do_not(self, store):
        store.remember(an_endpoint(takes=8), None)
        job = an_image_job("image1")
        store.submit(job, {"jobId": "image1"})
        started = lifecycle.start(job, {SHIPS: 8}, (), b.at(1))
        assert store.transition([(job, started)], fence=store.begin_pass().pass_number)
        assert image_pools(store.begin_pass()) == {SHIPS: 8}
        assert store.transition([(started, lifecycle.fail(started, b.at(2), "it broke"))])
        assert image_pools(store.begin_pass()) == {}

    def test_all_variants_of_an_endpoint_come_and_one_that_is_gone_takes_one_request(self, store):
        blue, green = Variant(name="blue", instances=3), Variant(name="green", max_concurrency=9)
        store.remember(Endpoint(key="ships", variants=(blue, green), described_at=b.NOW), None)
        store.submit(an_image_job("image1", variant="red"), {})
        pools = {pool_name("ships", name): cap for name, cap in (("blue", 6), ("green", 9), ("red", 1))}
        assert image_pools(store.begin_pass()) == pools

    def test_an_endpoint_that_is_not_remembered_has_the_defaults_of_one_instance(self, store):
        store.submit(an_image_job("image1"), {})
        store.submit(an_image_job("image2", endpoint=URL, variant=""), {})
        assert image_pools(store.begin_pass()) == {SHIPS: 2, pool_name(URL, ""): 10}

    def test_the_deployments_endpoint_settings_apply(self, engine):
        store = engine.open(caps=lambda endpoint, named: {pool_name(endpoint.key, each): Cap(77) for each in named})
        store.submit(an_image_job("image1"), {})
        assert image_pools(store.begin_pass()) == image_pools(store.read_snapshot()) == {SHIPS: 77}

    def test_endpoints_pools_are_in_no_settings(self, store):
        store.submit(an_image_job("image1"), {})
        store.begin_pass()
        assert store.settings().pools.keys() == {b.P5}

    def test_an_image_job_comes_back_as_it_was_in_all_its_states(self, store):
        job = an_image_job("image1", work=an_image_work(24, endpoint=URL, variant="", done=1, failed=2))
        store.submit(job, {"jobId": "image1"})
        assert store.find("image1") == job
        started = lifecycle.start(job, {pool_name(URL, ""): 10}, (), b.at(1))
        assert store.transition([(job, started)])
        assert store.find("image1") == store.begin_pass().active[0] == started

    def test_a_job_that_a_pass_read_with_its_demand_cut_is_moved_all_the_same(self, store):
        """Its place in the queue does not depend on what its endpoint takes just now."""
        job = an_image_job("image1", 24)
        store.submit(job, {"jobId": "image1"})
        cut = replace(job, demand=b.a_demand({SHIPS: 2}))
        assert store.transition([(cut, lifecycle.start(cut, {SHIPS: 2}, (), b.at(1)))])
        snapshot = store.begin_pass()
        assert [each.name for each in snapshot.active] == ["image1"]
        assert snapshot.waiting == ()

    def test_w15_of_a_deep_lane_no_more_is_read_than_could_start(self, store):
        store.remember(an_endpoint(takes=200), None)
        for number in range(70):
            store.submit(an_image_job(f"image{number:03}", 8), {})
        snapshot = store.begin_pass()
        # 200 requests at no fewer than 8 each.
        assert len(snapshot.waiting) == 33
        assert snapshot.cut_lanes == {snapshot.waiting[0].lane}

    def test_w15_a_pass_reads_few_jobs_of_a_full_endpoints_lane_and_queries_read_more(self, store):
        self.fill(store)
        snapshot = store.begin_pass()
        assert len(snapshot.waiting) == FIRST_OF_FULL
        assert snapshot.waiting == store.read_snapshot().waiting[:FIRST_OF_FULL]
        assert snapshot.cut_lanes == {snapshot.waiting[0].lane} == store.read_snapshot().cut_lanes
        assert len(store.read_snapshot().waiting) == FIRST_OF_SERVICE

    def test_w15_a_lane_as_long_as_what_is_read_of_a_full_one_is_not_cut(self, store):
        self.fill(store, waiting=FIRST_OF_FULL)
        assert (len(store.begin_pass().waiting), store.begin_pass().cut_lanes) == (FIRST_OF_FULL, frozenset())

    @pytest.mark.parametrize("head", [{"priority": 1}, {"share": "team"}], ids=["priority", "share"])
    def test_w15_where_others_could_step_aside_as_many_are_read_as_could_take_their_place(self, store, head):
        self.fill(store, **head)
        assert len(store.begin_pass().waiting) == FIRST_OF_SERVICE

    @pytest.mark.parametrize("preemptible", [True, False])
    def test_w15_equals_could_step_aside_where_the_order_of_the_queue_lets_them(self, engine, preemptible):
        store = engine.open(policy=Policy(order=Order.GITTINS))
        self.fill(store, running={"preemptible": preemptible})
        assert len(store.begin_pass().waiting) == (FIRST_OF_SERVICE if preemptible else FIRST_OF_FULL)

    def test_w15_what_is_too_little_for_the_smallest_of_a_lane_is_no_room(self, store):
        # Those of 8 and of 15 are of one lane, and 4 requests are left.
        self.fill(store, takes=12)
        assert len(store.begin_pass().waiting) == FIRST_OF_FULL
        store.remember(an_endpoint(takes=16), store.known(["ships"])["ships"])
        assert len(store.begin_pass().waiting) == FIRST_OF_SERVICE

    def fill(self, store, *, takes=8, waiting=20, running=None, **fields):
        """One image runs at an endpoint, and others wait."""
        store.remember(an_endpoint(takes=takes), None)
        job = an_image_job("running", 8, **(running or {}))
        store.submit(job, {"jobId": job.name})
        assert store.transition([(job, lifecycle.start(job, {SHIPS: 8}, (), b.at(1)))])
        for number in range(waiting):
            store.submit(an_image_job(f"image{number:03}", 8, **fields), {})

    def test_w15_fifty_waiting_jobs_of_one_endpoint_hide_no_other(self, store):
        for number in range(60):
            store.submit(an_image_job(f"image{number:03}"), {})
        store.submit(an_image_job("other", endpoint="cars", entry_time=b.at(1)), {})
        assert "other" in {job.name for job in store.begin_pass().waiting}

    def test_w4_of_two_managers_the_overtaken_one_starts_nothing(self, store, other_store):
        """Each would start an image that fills the endpoint; the fence lets only the later one."""
        store.remember(an_endpoint(takes=8), None)
        jobs = [an_image_job(name) for name in ("image1", "image2")]
        for job in jobs:
            store.submit(job, {"jobId": job.name})
        early = store.begin_pass()
        late = other_store.begin_pass()
        started = [lifecycle.start(job, {SHIPS: 8}, (), b.at(1)) for job in jobs]
        assert other_store.transition([(jobs[0], started[0])], fence=late.pass_number)
        with pytest.raises(Fenced):
            store.transition([(jobs[1], started[1])], fence=early.pass_number)
        assert [job.name for job in store.begin_pass().active] == ["image1"]


class EndpointsContract(KnownEndpointsContract, EndpointPoolsContract):
    """The whole contract; `engine` is a fixture of the subclass."""

    @pytest.fixture
    def store(self, engine):
        return engine.open()

    @pytest.fixture
    def other_store(self, engine):
        """Another process at the same table."""
        return engine.open()
