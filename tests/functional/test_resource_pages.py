"""Examples of the how-to pages on resources and made pools: requests are accepted, settings and reasons are real."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from api_world import ApiWorld
from builders import G5, NOW, a_job, a_pool, a_request, a_running_job, a_snapshot, pools_of
from doc_pages import DOCS, plain, section, table
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.document import document
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Budget, Expansion, Lending, Policy, Share
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.planner.schedule import schedule

ASK, MAKE = (DOCS / "how-to" / f"{name}.md" for name in ("ask-for-resources", "let-the-queue-make-pools"))
ON = Expansion(enabled=True)
TWO_OF_FOUR = Demand((), queue_selects_pool=True, resources=Resources(accelerators=4), instances=2)
CHEAPEST = "ml.g4dn.12xlarge"


def the_request() -> dict:
    """The request of the page, with the tags that its commands and its Python give it."""
    text = ASK.read_text()
    (request,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    tags = re.findall(r'\{"Key": "(trainmaster:\w+)", "Value": "([^"]+)"\}', text)
    assert {name for name, _ in tags} == {"trainmaster:resources", "trainmaster:instances"}
    return {**json.loads(request), "Tags": [{"Key": name, "Value": value} for name, value in tags]}


def test_the_request_of_the_page_is_taken_and_two_instances_are_found_for_it():
    world = ApiWorld()
    assert world.post("/plan", the_request()).body["decision"] == "start"
    job = world.post("/add-job", the_request()).body
    asked = {name: value for name, value in job["resources"].items() if value}
    assert (asked, job["instances"]) == ({"accelerators": 8, "memoryGib": 768, "accelerator": "nvidia"}, 2)
    assert job["demand"] == [{"ml.p5.48xlarge": 2}]


def test_commands_and_python_of_the_page_ask_for_the_same():
    asked = {command.replace(",", "+") for command in re.findall(r"--resources (\S+)", ASK.read_text())}
    assert asked == {the_request()["Tags"][0]["Value"]}


def test_the_members_are_those_that_a_job_can_ask_for():
    members = {plain(row[0]) for row in table(section(ASK, "The tags"), "member")}
    assert members == set(Resources.__dataclass_fields__)


def test_the_settings_of_the_page_have_the_names_and_defaults_of_the_code():
    rows = {plain(row[0]): plain(row[1]) for row in table(section(MAKE, "Turn on expansion"), "setting")}
    known = settings_document(Policy())["expansion"]
    words = {"expansion.types": "all types", "expansion.dollarsPerHour": "none"}
    shown = {f"expansion.{name}": json.dumps(value).strip('"') for name, value in known.items()}
    assert {**rows, "expansion.retireAfterSeconds": float(rows["expansion.retireAfterSeconds"])} == {
        **shown,
        **words,
        "expansion.retireAfterSeconds": known["retireAfterSeconds"],
    }


def test_the_settings_that_the_page_sets_are_taken():
    given = re.findall(r"expansion\.(\w+)=('[^']*'|\S+)", section(MAKE, "Turn on expansion").split("```")[1])
    expansion = {name: json.loads(value.strip("'")) for name, value in given}
    answer = ApiWorld().put("/settings", {"expansion": expansion})
    assert answer.status == 200, answer.body
    assert {name: answer.body["expansion"][name] for name in expansion} == expansion


def waiting(expansion: Expansion, demand: Demand = TWO_OF_FOUR, **fields: object) -> Snapshot:
    job = a_job("job1", demand=demand)
    read = a_snapshot(waiting=[job], policy=Policy(expansion=expansion))
    return replace(read, **{"pools": {}, **fields})


NAMED = replace(TWO_OF_FOUR, alternatives=({CHEAPEST: 2},), listed=1)
THEIRS = Pool("theirs", 1, type_=CHEAPEST, draining=True)
DRAINED = Pool(CHEAPEST, 1, made_for="something", made_at=NOW, draining=True)


def ruled(**share: object) -> Snapshot:
    """A job whose share has these settings."""
    expansion, shares = replace(ON, types=(CHEAPEST,)), {"default": Share(name="default", **share)}  # type: ignore[arg-type]
    return waiting(expansion, policy=Policy(expansion=expansion, shares=shares))


REFUSALS = [
    waiting(replace(ON, types=("ml.c5.*",))),
    waiting(replace(ON, max_per_type=1)),
    waiting(replace(ON, dollars_per_hour=5.0)),
    waiting(ON, catalogue=Catalogue(quotas=dict.fromkeys((kind.name for kind in Catalogue().types), 1))),
    waiting(replace(ON, max_per_type=1), NAMED, pools={CHEAPEST: Pool(CHEAPEST, 1)}),
    waiting(replace(ON, types=("ml.p5e.*",), dollars_per_hour=1e6)),
    waiting(replace(ON, types=(CHEAPEST,)), pools={"theirs": THEIRS}),
    waiting(replace(ON, types=(CHEAPEST,)), pools={CHEAPEST: DRAINED}),
    ruled(lending=Lending.LEND),
    ruled(max={CHEAPEST: 1}),
    ruled(budget=Budget(dollars=0)),
    waiting(ON, waiting=(a_job("job1", demand=TWO_OF_FOUR, retry_at=NOW + timedelta(minutes=1)),)),
]


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_each_reason_of_the_page_is_one_that_jobs_are_told(number):
    (row, *_) = table(section(MAKE, "When it creates none"), "it ends with")[number:]
    first = re.findall(r"`([^`]+)`", row[0])[0]
    (wait,) = schedule(REFUSALS[number], NOW, random.Random(1)).waits
    assert isinstance(wait.reason, Infeasible), wait.reason
    pattern = ".+".join(re.escape(part) for part in first.split("..."))
    assert re.search(pattern, wait.reason.expansion), wait.reason.expansion


def test_every_reason_of_the_page_was_tried():
    assert len(table(section(MAKE, "When it creates none"), "it ends with")) == len(REFUSALS)
    assert document(ON, sparse=True) == {"enabled": True}


def test_infeasible_jobs_are_listed_by_that_though_it_is_no_state_that_is_stored():
    world = ApiWorld(pools=pools_of(a_pool(G5, 4)))
    for name, asked in (("huge", "accelerators=8"), ("small", "accelerators=1"), ("wide", "accelerators=4")):
        world.post("/add-job", a_request(name, options={"resources": asked}, ResourceConfig={"VolumeSizeInGB": 1}))
    world.seed(a_running_job("runs", units={G5: 1}))
    world.seed(a_job("named", units={G5: 5}), a_job("fits", units={G5: 1}))

    def listed(state):
        return [job["jobName"] for job in world.get("/jobs", state=state).body["jobs"]]

    infeasible = [name for name in ("huge", "small", "wide", "named", "fits") if is_infeasible(world, name)]
    assert "huge" in infeasible
    assert "named" in infeasible, "it names its pool, and asks for more than the cap"
    assert not {"small", "fits"} & set(infeasible)
    assert sorted(listed("infeasible")) == sorted(infeasible)
    assert sorted(listed("running,infeasible")) == sorted(["runs", *infeasible])
    assert listed("infeasible,pending") == listed("pending")
    assert world.get("/jobs", state="infeasable").body["error"]["hint"].startswith("Did you mean 'infeasible'?")


def is_infeasible(world, name):
    return (world.get(f"/jobs/{name}").body["reason"] or {}).get("type") in {"Infeasible", "CanNeverFit"}
