"""Requesting resources on the command line, and how they are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_terminal import NOW, Terminal
from fake_api import G5, P5, FakeApi, a_request, a_view, an_attempt
from trainmaster.cli.output.explanation import explanation
from trainmaster.cli.output.render import attempt_placement, demand_text, requested_resources

ASKED = {"accelerators": 8, "acceleratorMemoryGib": 640.0, "vcpus": 0, "memoryGib": 0.0, "accelerator": "nvidia"}
WORDS = "2 x (accelerators=8,accelerator_memory_gib=640,accelerator=nvidia)"
INFEASIBLE = {
    "type": "Infeasible",
    "message": f"infeasible: needs {WORDS}, no pool has such instances",
    "resources": WORDS[5:-1],
    "needed": 2,
    "most": 0,
    "expansion": "",
}


def asking(**changes: Any) -> dict[str, Any]:
    return {"resources": ASKED, "instances": 2, "demand": [], "pools": []} | changes


@pytest.mark.parametrize("command", ["submit", "plan"])
def test_resources_and_instances_become_tags(world: FakeApi, run: Terminal, tmp_path: Path, command: str) -> None:
    request = a_request("job1", Tags=[{"Key": "trainmaster:instances", "Value": "1"}])
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    world.planned = {"decision": "start", "reason": None, "warnings": [], "wouldPreempt": [], "estimatedStart": None}
    run(command, str(path), "--resources", "accelerators=8,vcpus=96", "--instances", "2", "--option", "share=a")
    (_, _, sent) = world.calls[0]
    assert {tag["Key"]: tag["Value"] for tag in sent["Tags"]} == {
        "trainmaster:share": "a",
        "trainmaster:resources": "accelerators=8,vcpus=96",
        "trainmaster:instances": "2",
    }


def test_less_than_one_instance_is_wrong_usage(run: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(a_request("job1")))
    assert run("submit", str(path), "--instances", "0").exit_code == 2


def test_a_job_that_no_pool_could_hold_is_listed_as_infeasible(world: FakeApi, run: Terminal) -> None:
    world.add("huge", position=1, reason=INFEASIBLE, **asking())
    world.add("plain")
    lines = [line.split()[:3] for line in run("ls").stdout.splitlines()]
    assert ["huge", "infeasible", "0"] in lines
    assert ["plain", "pending", "0"] in lines
    assert WORDS in run("ls", "--wide").stdout
    assert json.loads(run("ls", "--json").stdout)[0]["jobState"] == "pending"


def test_so_is_one_that_names_a_pool_which_could_not_hold_it(world: FakeApi, run: Terminal) -> None:
    message = f"can never fit: needs 9 x {P5}, the pool's cap is 1"
    reason = {"type": "CanNeverFit", "message": message, "pool": P5, "needed": 9, "cap": 1, "expansion": ""}
    world.add("named", position=1, reason=reason, demand=[{P5: 9}])
    assert ["named", "infeasible", "0"] in [line.split()[:3] for line in run("ls").stdout.splitlines()]
    assert f"9 x {P5}" in run("ls", "--wide").stdout
    assert "State infeasible" in [" ".join(line.split()) for line in run("show", "named").stdout.splitlines()]


def test_show_says_what_it_asks_for_and_that_it_is_infeasible(world: FakeApi, run: Terminal) -> None:
    world.add("huge", position=1, reason=INFEASIBLE, **asking())
    lines = [" ".join(line.split()) for line in run("show", "huge").stdout.splitlines()]
    assert "State infeasible" in lines
    assert f"Resources {WORDS}" in lines
    assert f"Reason infeasible: needs {WORDS}, no pool has such instances" in lines


def test_show_says_which_type_each_attempt_got(world: FakeApi, run: Terminal) -> None:
    attempts = [
        an_attempt("job1", 1, units={"wide": 2}, instanceType=P5, outcome="preempted"),
        an_attempt("job1", 2, units={G5: 2}, instanceType=G5),
    ]
    world.add("job1", "running", attempts=attempts, **asking(demand=[{"wide": 2}, {G5: 2}]))
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert [line.split(" 2026")[0] for line in lines if "job1" in line][1:] == [
        f"1 job1 2 x wide ({P5}) preempted",
        f"2 job1-qstamp-2 2 x {G5} active",
    ]


def test_why_says_that_it_is_infeasible_and_what_would_help() -> None:
    advice = {"message": f"add a pool of 2 x {P5}: it starts with the next pass"}
    story = {"inTheWay": [], "jobsInTheWay": 0, "reserved": None, "advice": [advice]}
    text = explanation(a_view("job1", position=1, reason=INFEASIBLE, why=story, **asking()), NOW)
    assert f"It is infeasible: needs {WORDS}, no pool has such instances." in text
    assert f"Suggestions: add a pool of 2 x {P5}: it starts with the next pass." in text
    assert text.endswith("Its start cannot be estimated.")


def test_why_says_that_its_pool_is_being_drained() -> None:
    reason = {
        "type": "Draining",
        "message": f"can run only in {P5}, which is draining and starts no jobs",
        "pools": [P5],
    }
    assert f"It can run only in {P5}, which is draining" in explanation(a_view("job1", reason=reason), NOW)


def test_why_says_where_it_runs_of_all_that_it_could_have_had() -> None:
    attempt = an_attempt("job1", units={"wide": 2}, instanceType=P5)
    told = explanation(a_view("job1", "running", attempts=[attempt], **asking(demand=[{"wide": 2}, {G5: 2}])), NOW)
    assert f"on 2 x wide ({P5}), as job1 (attempt 1)." in told


def test_demands_are_shown_for_existing_pools() -> None:
    assert demand_text(a_view("a", **asking())) == requested_resources(a_view("a", **asking())) == WORDS
    assert demand_text(a_view("a", **asking(demand=[{P5: 2}, {G5: 2}]))) == f"2 x {P5} or 2 x {G5}"
    assert (requested_resources(a_view("a")), demand_text(a_view("a"))) == ("", P5)
    assert attempt_placement(an_attempt("a", units={P5: 1})) == P5
