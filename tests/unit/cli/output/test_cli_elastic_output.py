"""Output about elastic jobs: sizes, resizes, members, rendezvous."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from cli_terminal import Terminal
from fake_api import P5, FakeApi, a_pool, a_rendezvous, a_request, a_view, an_attempt
from trainmaster.cli.output.elastic import rendezvous_line, size_text
from trainmaster.cli.output.explanation import explanation
from trainmaster.cli.output.listing import jobs_table
from trainmaster.client.views.wording import sentence_of

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)


def an_elastic(**changes: Any) -> dict[str, Any]:
    return {
        "minInstances": 1,
        "maxInstances": 4,
        "instanceStep": 1,
        "instanceValues": None,
        "hook": "members",
        "faultyScaleDownTimeoutSeconds": 300.0,
        "target": None,
        "size": 2,
        "sizedAt": "2026-11-20T12:30:00Z",
        "resizes": 0,
        "resizing": None,
        "faultySince": None,
        "wanted": None,
        "members": [],
        "scaling": None,
    } | changes


def a_resizing(**changes: Any) -> dict[str, Any]:
    return {
        "from": 1,
        "to": 3,
        "cause": "grow",
        "givenUp": False,
        "message": "waits for 2 of its members to start; the growth is given up at 2026-11-20T13:15:00Z",
    } | changes


def a_member(number: int, state: str) -> dict[str, Any]:
    name = f"job1-qstamp-1-m{number}"
    return {"trainingJobName": name, "state": state, "createdAt": "2026-11-20T12:30:00Z", "startedAt": None}


def job(**changes: Any) -> Any:
    attempts = [an_attempt("job1", startedAt="2026-11-20T12:00:00Z")]
    return a_view("job1", **({"state": "running", "elastic": an_elastic(), "attempts": attempts} | changes))


@pytest.mark.parametrize(
    ("elastic", "told"),
    [
        (None, ""),
        (an_elastic(), "2 (1-4)"),
        (an_elastic(size=None), "(1-4)"),
        (an_elastic(instanceStep=3, maxInstances=7), "2 (1-7 by 3)"),
        (an_elastic(instanceStep=None, instanceValues=[2, 4, 8], minInstances=2, maxInstances=8), "2 (2,4,8)"),
        (an_elastic(instanceStep=None, instanceValues=[2, 4, 8], minInstances=2, maxInstances=4), "2 (2,4)"),
        (an_elastic(size=3, resizing=a_resizing()), "1 -> 3 (1-4)"),
    ],
)
def test_a_size_in_a_few_words(elastic: Any, told: str) -> None:
    assert size_text(job(elastic=elastic)) == told


def test_ls_has_a_column_of_sizes_only_where_a_job_is_elastic() -> None:
    fixed = cast("Any", a_view("job2"))
    for table in (
        lambda jobs: jobs_table(jobs, NOW, wide=True),
        lambda jobs: jobs_table(jobs, NOW, width=120),
        lambda jobs: jobs_table(jobs, NOW),
    ):
        assert "Size" not in table([fixed])
        heading, _, first, second = table([job(), fixed]).splitlines()
        assert "Size" in heading
        assert ("2 (1-4)" in first, "(1-4)" in second) == (True, False)


def test_show_has_the_size_the_resize_and_the_members(world: FakeApi, run: Terminal) -> None:
    members = [a_member(1, "working"), a_member(2, "starting")]
    elastic = an_elastic(size=3, resizing=a_resizing(), members=members, resizes=2)
    world.add("job1", "resizing", trainingJobName="job1", elastic=elastic)
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert "Size 1 -> 3 (1-4)" in lines
    assert "Resized by adding and removing members, 2 times since it last left the queue" in lines
    assert any(line.startswith("Resizing waits for 2 of its members to start") for line in lines)
    assert "job1-qstamp-1-m2 starting 2026-11-20 12:30:00" in lines
    assert not any("Rendezvous" in line for line in lines), "no node has come"


def test_show_has_the_nodes_of_the_rendezvous(world: FakeApi, run: Terminal) -> None:
    world.add(
        "job1", "running", trainingJobName="job1", elastic=an_elastic(faultySince="2026-11-20T12:40:00Z", wanted=3)
    )
    nodes = [
        {"trainingJobName": "job1", "host": "algo-1", "role": "member", "rank": 0},
        {"trainingJobName": "job1-qstamp-1-m1", "host": "algo-1", "role": "waiting", "rank": None},
    ]
    world.rendezvous["job1"] = a_rendezvous(run="job1", round=3, complete=True, restarts=1, nodes=nodes)
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert "Rendezvous job1: round 3, formed, 1 restarts" in lines
    assert "0 job1/algo-1 member" in lines
    assert "job1-qstamp-1-m1/algo-1 waiting" in lines
    [lacks] = [line for line in lines if line.startswith("Missing Member 3 wanted since 2026-11-20 12:40:00 UTC")]
    assert "; waiting for a replacement until 2026-11-20 12:45:00 UTC" in lacks
    assert json.loads(run("show", "job1", "--json").stdout)["rendezvous"]["round"] == 3


def test_only_elastic_jobs_that_hold_instances_are_asked_for_their_nodes(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")
    world.add("job2", "pending", elastic=an_elastic(size=None))
    for name in ("job1", "job2"):
        run("show", name)
    assert not any(path.endswith("rendezvous") for _, path, _ in world.calls)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"round": 2}, "Rendezvous job1: round 2, forming"),
        ({"round": 2, "closed": True, "reason": "all done"}, "Rendezvous job1: round 2, closed: all done"),
        ({"problem": "It cannot be read."}, "Rendezvous job1: It cannot be read."),
    ],
)
def test_a_rendezvous_in_a_line(changes: dict[str, Any], told: str) -> None:
    assert rendezvous_line(cast("Any", a_rendezvous(run="job1", **changes))) == told


def line_to(state: str, reason: str, before: str = "running") -> dict[str, Any]:
    return {"at": "2026-11-20T12:59:00Z", "from": before, "to": state, "reason": reason, "attempt": 1}


SCALING = {
    "message": "2 instances run 1.9 times as fast as 1, 4 would run 3.5 times as fast",
    "serialPart": 0.05,
    "communicationPart": 0.0,
    "sizes": [{"instances": 2, "speedup": 1.9, "perSecond": 12.5}],
}


def test_show_and_plan_say_how_a_job_scales(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.add("job1", "running", trainingJobName="job1", elastic=an_elastic(scaling=SCALING))
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert f"Scaling {SCALING['message']}" in lines
    assert json.loads(run("show", "job1", "--json").stdout)["elastic"]["scaling"] == SCALING
    world.planned = {"scaling": SCALING}
    request = tmp_path / "request.json"
    request.write_text(json.dumps(a_request("new")))
    assert " ".join(run("plan", str(request)).stdout.split()).endswith(f"{SCALING['message']}.")
    assert json.loads(run("plan", str(request), "--json").stdout)["scaling"] == SCALING


def test_why_says_what_a_resize_waits_for() -> None:
    history = [line_to("resizing", "resizes, 1 -> 3 instances: capacity is idle")]
    told = explanation(job(state="resizing", elastic=an_elastic(resizing=a_resizing()), history=history), NOW)
    assert told == (
        "job1 began to resize from 1 to 3 instances at 2026-11-20 12:59:00 UTC (60 seconds ago). "
        "Resizes, 1 -> 3 instances: capacity is idle. It waits for 2 of its members to start; "
        "the growth is given up at 2026-11-20 13:15:00 UTC (in 15 minutes)."
    )


@pytest.mark.parametrize(
    ("size", "preemptible", "told"),
    [
        (2, True, "A job of higher priority may shrink or preempt it."),
        (2, False, "A job of higher priority may shrink it, but not preempt it."),
        (1, True, "A job of higher priority may preempt it."),
        (1, False, "It is not preemptible."),
    ],
)
def test_why_says_what_an_elastic_job_may_have_and_lose(size: int, preemptible: bool, told: str) -> None:
    running = job(elastic=an_elastic(size=size), preemptible=preemptible)
    assert explanation(running, NOW).endswith(f" Its size is 1 to 4 instances. {told}")


def test_why_names_the_jobs_that_shrink() -> None:
    holder = {"jobName": "wide", "pool": P5, "instances": 8, "expectedEnd": "2026-11-20T14:00:00Z"}
    why = {"inTheWay": [holder | {"overdue": False, "stopping": False, "givingBack": 3}], "jobsInTheWay": 1}
    waiting = cast("Any", a_view("job2", why=why | {"reserved": None, "advice": []}))
    assert f"wide (8 x {P5}, releasing 3 now, the rest until about 2026-11-20 14:00" in explanation(waiting, NOW)


def test_attempts_of_different_sizes_show_them(world: FakeApi, run: Terminal) -> None:
    attempts = [an_attempt("job1", 1, outcome="resized"), an_attempt("job1", 2, units={P5: 3})]
    world.add("job1", "running", attempts=attempts)
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert [f"1 job1 {P5} resized" in line or f"3 x {P5} active" in line for line in lines].count(True) == 2


def test_attempts_that_are_not_listed_are_summed_up_and_counted(world: FakeApi, run: Terminal) -> None:
    earlier = {"count": 9, "outcomes": {"resized": 8, "preempted": 1}, "beganAt": "2026-11-01T12:00:00Z"}
    earlier |= {"atWorkSeconds": 864_000.0, "instanceSeconds": 1_728_000.0}
    attempts = [an_attempt("job1", 10, outcome="resized"), an_attempt("job1", 11)]
    world.add("job1", "completed", attempts=attempts, earlierAttempts=earlier)
    told = "9 not listed: 1 preempted, 8 resized; 10 days at work; the first began 2026-11-01 12:00:00 UTC"
    assert told in run("show", "job1").stdout
    assert "after 11 attempts" in run("why", "job1").stdout


@pytest.mark.parametrize(
    ("state", "elastic", "told"),
    [
        ("running", an_elastic(), "Running with 2 instances."),
        ("running", an_elastic(size=1), "Running with 1 instance."),
        ("resizing", an_elastic(resizing=a_resizing()), "Resizing from 1 to 3 instances."),
        ("resizing", an_elastic(), "Resizing."),
        ("pending", an_elastic(size=None), "Waiting in the queue."),
    ],
)
def test_progress_says_how_many_instances_an_elastic_job_has(state: str, elastic: Any, told: str) -> None:
    assert sentence_of(job(state=state, jobState=state, elastic=elastic)) == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"decision": "start", "wouldTake": {P5: 4}}, f"It would start immediately on 4 x {P5}."),
        (
            {"reason": {"type": "Shrinks", "message": "shrinks a, b; kept", "shrinks": ["a", "b"]}},
            "It would shrink a, b and start in the freed capacity. It would be expected to start",
        ),
        (
            {
                "decision": "preempt",
                "wouldPreempt": ["c"],
                "reason": {"type": "Preempts", "message": "preempts c", "shrinks": ["a"]},
            },
            "It would preempt c, shrink a and start in the freed capacity.",
        ),
    ],
)
def test_a_plan_names_the_chosen_pool_and_the_jobs_that_would_shrink(
    world: FakeApi, run: Terminal, tmp_path: Any, answer: Any, told: str
) -> None:
    world.planned = answer
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_request("job9")))
    assert run("plan", str(file), "--max-instances", "8").stdout.startswith(told)


def test_pools_have_a_column_of_what_elastic_jobs_could_give_only_where_there_is_any(
    world: FakeApi, run: Terminal
) -> None:
    world.pools["pools"] = [a_pool(P5, 8, used=8, beyondMinimum=6)]
    heading, _, row = run("pools").stdout.splitlines()
    assert heading.split()[:5] == ["Pool", "Cap", "Used", "Above", "Min"]
    assert row.split()[:4] == [P5, "8", "8", "6"]
    world.pools["pools"] = [a_pool(P5, 8, used=8)]
    assert "Above" not in run("pools").stdout


def test_why_says_that_a_resize_is_over_because_the_job_stops() -> None:
    history = [line_to("resizing", "resizes"), line_to("resizing", "stop requested by ada", "resizing")]
    told = explanation(job(state="resizing", history=history), NOW)
    assert told.startswith("job1 is being stopped during a resize. Stop requested by ada at")


def test_why_says_that_a_member_is_lacking() -> None:
    lacking = an_elastic(faultySince="2026-11-20T12:58:00Z", wanted=3)
    told = explanation(job(elastic=lacking), NOW)
    assert "It lost a member at 2026-11-20 12:58:00 UTC (2 minutes ago); it had 3 instances before." in told
    assert "It waits for a replacement until 2026-11-20 13:03:00 UTC (in 3 minutes), and then continues" in told
