"""Endpoints that jobs need, and the pools they become by a deployment's settings and by the time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

import builders as b
from image_builders import an_endpoint, an_endpoint_pool, an_image_job
from trainmaster.adapters.dynamodb.rows import WAIT, row_of
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.capacity.units import Kind, Pool, counted, in_settings
from trainmaster.images.domain.endpoint import Limits, Pressure, pool_name
from trainmaster.images.domain.endpoint_set import caps_of, default_caps, endpoint_pools, needed

SHIPS = pool_name("ships", "blue")


def test_only_image_jobs_need_endpoints_each_with_the_variants_that_they_name():
    jobs = [b.a_job(), an_image_job("a"), an_image_job("b", variant="green"), an_image_job("c", endpoint="cars")]
    assert needed(jobs) == {"ships": {"blue", "green"}, "cars": {"blue"}}
    assert needed([b.a_job()]) == {}


def test_a_pool_is_what_the_deployments_settings_make_of_its_endpoint():
    caps = caps_of(Limits(target=0.5), lambda: b.NOW)
    assert endpoint_pools({"ships": ["blue"]}, {"ships": an_endpoint(takes=9)}, caps) == {SHIPS: an_endpoint_pool(4)}


def test_throttling_lowers_it_for_a_time():
    throttled_at = an_endpoint(takes=100, pressure={"blue": Pressure(factor=0.5, since=b.NOW)})
    found = []
    for seconds in (0, 60, 600):
        caps = caps_of(Limits(), partial(b.at, seconds))
        found.append(endpoint_pools({"ships": ["blue"]}, {"ships": throttled_at}, caps)[SHIPS].cap)
    assert found == [50, 60, 100]
    assert default_caps(throttled_at, ["blue"])[SHIPS].requests == 100


@pytest.mark.parametrize("status", ["OutOfService", "Creating", "Deleting", "Failed", "Deleted"])
def test_w17_no_job_starts_at_an_endpoint_that_throttles_every_request(status):
    caps = caps_of(Limits(), lambda: b.NOW)
    known = {"ships": an_endpoint(status=status), "cars": an_endpoint("cars", status="Updating")}
    pools = endpoint_pools({"ships": ["blue"], "cars": ["blue"]}, known, caps)
    assert pools[SHIPS] == replace(an_endpoint_pool(), draining=True, status=status)
    assert pools[pool_name("cars", "blue")] == an_endpoint_pool(endpoint="cars")


def test_pools_of_endpoints_are_no_settings_and_have_neither_type_nor_accelerators():
    pool = an_endpoint_pool()
    assert (pool.kind, pool.instance_type, pool.accelerators) == (Kind.SERVICE, "", 0)
    assert in_settings({b.P5: Pool(b.P5, 2), SHIPS: pool}) == {b.P5: Pool(b.P5, 2)}


def test_units_are_called_what_they_are():
    assert [counted(1, SHIPS), counted(8, SHIPS), counted(2, b.P5)] == [
        f"1 request at {SHIPS}",
        f"8 requests at {SHIPS}",
        f"2 x {b.P5}",
    ]


class OneImageWaits:
    """A table, as boto3's session and client, in which nothing is but one waiting image job."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    def client(self, *_, **__):
        return self

    def query(self, *, ExpressionAttributeValues, **_):  # noqa: N803 -- DynamoDB's own names
        waits = ExpressionAttributeValues[":pk"] == {"S": WAIT}
        return {"Items": [row_of(an_image_job())] if waits else []}

    def batch_get_item(self, **_):
        return {"Responses": {}}

    def get_item(self, **_):
        return {}


def test_a_deployments_settings_reach_its_store():
    kinds = '{"image": {"DEFAULT_INSTANCE_CONCURRENCY": "7"}}'
    environ = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", "TRAINMASTER_JOB_KINDS": kinds}
    application = Application(Settings.from_env(environ), OneImageWaits())
    assert application.store.read_snapshot().pools == {SHIPS: an_endpoint_pool(7)}
