"""Cost of endpoints in a pass: one read unit for each that image jobs need, none without them, at any backlog."""

from __future__ import annotations

import pytest
from meter import Meter

import builders as b
from image_builders import an_endpoint, an_image_job
from image_engines import DynamoImageEngine


@pytest.fixture
def meter(dynoxide):
    client = dynoxide.client()
    yield Meter(client), DynamoImageEngine(client).open()
    client.close()


def cost_of_a_pass(meter, store):
    with meter.measured() as cost:
        store.begin_pass()
    return cost.read_units, cost.calls


def test_remembered_endpoints_cost_a_queue_without_image_jobs_nothing(meter):
    meter, store = meter
    store.submit(b.a_job("job1"), b.a_request("job1"))
    before = cost_of_a_pass(meter, store)
    for number in range(30):
        store.remember(an_endpoint(f"endpoint{number}"), None)
    assert cost_of_a_pass(meter, store) == before


def test_w15_each_endpoint_that_is_needed_costs_one_read_unit_and_all_of_them_one_call(meter):
    meter, store = meter
    before = cost_of_a_pass(meter, store)
    for number in range(12):
        store.remember(an_endpoint(f"endpoint{number:02}", takes=100), None)
        store.submit(an_image_job(f"image{number}", endpoint=f"endpoint{number:02}"), {})
    units, calls = cost_of_a_pass(meter, store)
    # Besides, the waiting jobs have to be read: some half a kilobyte each.
    assert units - before[0] <= 12 + 12
    assert calls == before[1] + 1


def test_w15_a_pass_costs_the_same_however_many_images_wait(meter):
    meter, store = meter
    store.remember(an_endpoint(takes=16), None)
    costs = []
    for number in range(150):
        store.submit(an_image_job(f"image{number:03}", 8), {})
        if number in (0, 49, 149):
            costs.append(cost_of_a_pass(meter, store))
    # The first of these passes tells the store of the lane.
    assert costs[1] == costs[2]
