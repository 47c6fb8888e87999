"""Cost of a job over its life, which the depth of the queue does not raise: counts, never times.

The stories are the benchmarks' own, so what is asserted here is what `make bench` reports.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from benchmarks.common.engine import engine
from benchmarks.common.meter import WritesByPartition, total
from benchmarks.common.requests import request
from benchmarks.common.world import MeteredWorld, make_table
from benchmarks.queue.depth import answers
from benchmarks.queue.growth import POOLS, Size, fill
from benchmarks.queue.life import Scenario, measure_idle, measure_life

from api_world import CONTEXT, rest_event
from builders import G5, P5
from doc_blocks import ROOT
from samples import sample
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.jobs.job import ENDED
from trainmaster.domain.jobs.listing import Filter
from trainmaster.handlers.api.app import build_app

MAX_UNITS = 25
MAX_WRITE_UNITS = {"alone, text that does not compress": 27}
"""Its audit entry is stored in the transaction of the submission, where each KB counts twice."""
STORIES = [
    Scenario("alone", {P5: 2}),
    Scenario("alone, text that does not compress", {P5: 2}, options={"dense": True}),
    Scenario("a burst in two pools", {P5: 2, G5: 2}, jobs=24),
    Scenario("a burst in one pool", {P5: 4}, jobs=40),
]


@pytest.mark.parametrize("story", sample(STORIES, 3), ids=lambda story: story.name)
def test_the_life_of_a_job_of_4_kb_has_a_largest_cost(story):
    job = measure_life(story)["job"]
    assert 15 <= job["write_units"] <= MAX_WRITE_UNITS.get(story.name, MAX_UNITS)
    assert 10 <= job["read_units"] <= MAX_UNITS
    assert job["refused"] == 0


def test_the_pages_have_the_counted_cost_of_a_job():
    job = measure_life(STORIES[0])["job"]
    page = (ROOT / "docs/explanation/cost.md").read_text()
    counted = f"**{job['write_units']:g} write and {job['read_units']:g} read units in {job['calls']:g} calls.**"
    assert counted in page
    rows = re.findall(r"^\| [a-zA-Z ]+ \| (\d+) \| ([\d.]*) ?\|", page, re.MULTILINE)
    assert len(rows) == 7
    assert sum(int(write) for write, _ in rows) == job["write_units"]
    assert sum(float(read or 0) for _, read in rows) == job["read_units"]
    dollars = f"${job['write_units'] * 0.625e-3 + job['read_units'] * 0.125e-3:.3f}"
    readme = " ".join((ROOT / "README.md").read_text().split())
    in_words = f"{job['write_units']:g} DynamoDB write units and {job['read_units']:g} read units"
    assert f"{in_words} in its whole life: 1,000 jobs cost about {dollars}" in readme
    assert f"**{dollars}**" in page
    benchmarks = " ".join((ROOT / "benchmarks/README.md").read_text().split())
    assert f"now takes {job['write_units']:g} write and {job['read_units']:g} read units" in benchmarks


@pytest.mark.parametrize(("events", "units"), [("none", 23), ("ended", 26), ("all", 36)])
def test_an_event_costs_three_write_units_and_four_where_its_change_was_no_transaction(events, units):
    assert measure_life(replace(STORIES[0], events=events))["job"]["write_units"] == units


def spent_behind(waiting):
    """Cost of a pass and of a submission, step by step, with so many waiting jobs of which none can start."""
    with engine() as client:
        make_table(client)
        fill(client, Size(running=2, lanes=1, waiting_each=waiting))
        world = MeteredWorld(client, pools=f"{POOLS[0]}=2")
        world.wake_and_settle()
        world.submit_request(request("another", kind=POOLS[0]))
        return world.meter.reset()


def test_a_pass_and_a_submission_cost_the_same_behind_50_and_behind_2000_waiting_jobs():
    few, many = spent_behind(50), spent_behind(2_000)
    assert few == many
    assert few["pass: fence and read"].calls == 4


def test_a_request_has_the_size_that_is_asked_for_and_passes_the_door():
    for dense in (False, True):
        made = request("job1", dense=dense, training_seconds=5)
        assert len(json.dumps(made, separators=(",", ":"))) == 4096
        assert problems(made) == []


def test_each_answer_of_the_api_that_is_measured_is_given():
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{POOLS[0]}=1")
        for name in ("runs", "waits"):
            world.submit_request(request(name, kind=POOLS[0]))
        world.run(300, step=5)
        assert {name for name, cost in answers(world).items() if cost["read_units"] > 0 == cost["write_units"]} == {
            "GET /jobs/{waiting}",
            "GET /jobs/{running}",
            "GET /jobs",
            "GET /queue",
            "GET /pools",
        }


def asked(world, path, tag=None, **query):
    """The answer of the shipped handler, and what it cost."""
    app = build_app(SimpleNamespace(api_context=world.api_context, admission=world.admission, kinds={}))
    event = rest_event("GET", path, query=query)
    event["headers"] |= {} if tag is None else {"If-None-Match": tag}
    world.meter.reset()
    answer = app.resolve(event, CONTEXT)
    return answer, total(world.meter.reset().values())


@pytest.mark.parametrize("path", ["/queue", "/jobs", "/pools", "/schedule", "/shares"])
def test_a_poll_of_an_unchanged_queue_costs_one_read_unit(path):
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{POOLS[0]}=2")
        for number in range(6):
            world.submit_request(request(f"job{number}", kind=POOLS[0]))
        world.run(60, step=5)
        first, whole = asked(world, path)
        (tag,) = first["multiValueHeaders"]["ETag"]
        second, poll = asked(world, path, tag)
        assert (first["statusCode"], second["statusCode"]) == (200, 304)
        assert poll.reads <= 1 < whole.reads
        assert poll.writes == 0


def test_the_schedule_costs_as_many_read_units_as_why_and_what_the_past_needs():
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{POOLS[0]}=1")
        for number in range(6):
            world.submit_request(request(f"job{number}", kind=POOLS[0]))
        world.run(2_400, step=5)
        assert len(world.api_context.store.list_jobs(Filter(states=ENDED), limit=9).jobs) >= 2
        _, why = asked(world, "/jobs/job5", why="true")
        _, ahead = asked(world, "/schedule", **{"from": world.now().isoformat()})
        _, whole = asked(world, "/schedule")
        # It reads whether anything has changed, and not the job and its request.
        assert ahead.reads <= why.reads
        assert whole.reads <= why.reads + 0.5 + 1


def test_the_shares_cost_no_more_than_the_queue():
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{POOLS[0]}=1")
        for number in range(6):
            world.submit_request(request(f"job{number}", kind=POOLS[0]))
        world.run(60, step=5)
        _, queue = asked(world, "/queue")
        answer, shares = asked(world, "/shares")
        assert answer["statusCode"] == 200
        assert 0 < shares.reads <= queue.reads


def test_a_usage_report_costs_the_rows_that_it_reads_and_no_more_than_its_limit():
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{POOLS[0]}=1")
        for number in range(6):
            world.submit_request(request(f"job{number}", kind=POOLS[0]))
        world.run(2_400, step=5)
        answer, whole = asked(world, "/usage")
        first, part = asked(world, "/usage", limit="1")
        total = json.loads(answer["body"])["total"]
        assert (total["submitted"], total["started"] >= total["completed"] >= 2) == (6, True)
        assert json.loads(first["body"])["jobsRead"] == 1
        assert 0 < part.reads <= whole.reads <= 20
        assert part.writes == whole.writes == 0


def test_a_tick_of_an_idle_queue_costs_a_write_unit_and_no_more_than_four_read_units():
    tick = measure_idle(0)["tick"]
    assert 1 <= tick["write_units"] < 1.2
    assert 1 <= tick["read_units"] <= 4


def test_no_partition_of_the_table_bounds_the_rate_of_jobs_before_sagemaker_does():
    """DynamoDB takes 1,000 write units a second for a partition; `STATE` and `WAIT` are one each."""
    with engine() as client:
        make_table(client)
        world, jobs = MeteredWorld(client, pools=f"{P5}=8"), 24
        units = WritesByPartition(client).units
        for number in range(jobs):
            world.submit_request(request(f"job{number:02}", kind=P5, training_seconds=300))
        world.run(6_000, step=5)
        assert world.ended == jobs
    # Of a job: its start and its end 4 each, two notes; the passes that it shares with others.
    assert 9 <= units["STATE"] / jobs <= 13
    assert units["WAIT"] / jobs == 4
    page = (ROOT / "docs/explanation/cost.md").read_text()
    (bound,) = re.findall(r"takes (\d+) jobs a second", page)
    assert int(bound) <= 1_000 / (units["STATE"] / jobs)
