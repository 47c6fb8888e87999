"""Cost of image jobs' runs; rows that one run left behind are never taken for another's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from meter import Meter
from runs_contract import RegionState, begin, done, ended, regions, states

from image_engines import DynamoImageEngine
from trainmaster.images.adapters.run_rows import MAX_REGIONS_IN_RUN
from trainmaster.images.domain.tiling import Window


@pytest.fixture
def stage(dynoxide):
    client = dynoxide.client()
    engine = DynamoImageEngine(client)
    yield Meter(client), engine, engine.runs()
    client.close()


def places(engine, job):
    """Return the sort keys of the rows of a job's run."""
    return sorted(row["sk"]["S"] for row in engine.rows() if row["pk"]["S"] == f"image#{job}")


@pytest.mark.parametrize("count", [1, 50, 300])
def test_forgetting_a_job_costs_one_write_however_many_regions_it_has(stage, count):
    meter, _, runs = stage
    runs.create("scene", 1, regions(count))
    with meter.measured() as cost:
        runs.forget("scene")
    assert (cost.write_units, cost.read_units, cost.calls) == (1, 1, 2)
    assert runs.run("scene") is None


@pytest.mark.parametrize("count", [1, 2, MAX_REGIONS_IN_RUN])
def test_a_run_of_few_regions_is_created_by_one_write_unit_and_so_is_its_next_attempt(stage, count):
    """A long name and a large image do not make it more; a region's row is written once a worker begins it."""
    meter, engine, runs = stage
    job = "s" * 63
    wide = [replace(each, window=Window(100_000, 100_000, 10_240, 10_240), tiles=121) for each in regions(count)]
    with meter.measured() as cost:
        runs.create(job, 1, wide, concurrency=1)
    assert (cost.write_units, cost.read_units, cost.calls) == (1, 0, 1)
    begin(runs, 0, job=job)
    with meter.measured() as cost:
        runs.create(job, 2, wide, concurrency=1)
    assert (cost.write_units, cost.calls) == (1, 2)
    assert places(engine, job) == ["region#00000", "run"]
    assert [done(runs, number, job=job, attempt=2) for number in range(count)] == list(reversed(range(count)))


def test_regions_beyond_those_that_fit_have_rows_from_the_beginning(stage):
    _, engine, runs = stage
    runs.create("scene", 1, regions(MAX_REGIONS_IN_RUN + 1))
    assert len(places(engine, "scene")) == MAX_REGIONS_IN_RUN + 3


def test_a_region_costs_the_same_whether_others_are_kept_back_or_not(stage):
    meter, _, runs = stage
    costs = []
    for job, concurrency in (("all", None), ("few", 2)):
        runs.create(job, 1, regions(50), concurrency=concurrency)
        with meter.measured() as cost:
            ended(runs, 0, job=job)
        costs.append((cost.write_units, cost.read_units, cost.calls))
    # Taken by one write; done and counted in a transaction of two, which cost two units each.
    assert costs[0] == costs[1] == (5, 6, 6)


def test_narrowing_a_run_costs_one_guarded_write_and_its_regions_cost_what_they_did(stage):
    meter, _, runs = stage
    runs.create("scene", 1, regions(50), concurrency=5)
    with meter.measured() as cost:
        runs.narrow("scene", 1, 2)
    assert (cost.write_units, cost.calls) == (2, 1)
    with meter.measured() as cost:
        ended(runs, 0)
    assert (cost.write_units, cost.read_units, cost.calls) == (5, 6, 6)


@pytest.mark.parametrize(("earlier", "later"), [(6, 4), (40, 30), (40, 4), (6, 30)])
def test_rows_that_have_outlived_their_run_are_not_taken_for_a_new_ones(stage, earlier, later):
    """DynamoDB removes expired rows in any order; no worker could have begun before the run was there."""
    _, engine, runs = stage
    runs.create("scene", 1, regions(earlier))
    for number in (0, 1):
        done(runs, number)
    begin(runs, 2)
    runs.forget("scene")
    engine.client.delete_item(TableName=engine.name, Key={"pk": {"S": "image#scene"}, "sk": {"S": "run"}})
    run = runs.create("scene", 1, regions(later, tiles=9), concurrency=2)
    assert run == runs.run("scene")
    assert states(run) == [RegionState.PENDING] * (later + 1)
    assert [each.region for each in run.records[:-1]] == regions(later, tiles=9)
    assert [done(runs, number) for number in range(later)] == list(reversed(range(later)))
