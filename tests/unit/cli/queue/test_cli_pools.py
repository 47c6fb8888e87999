"""`trainmaster pools`: the table, set, remove, drain and resume."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from cli_terminal import NOW, Terminal
from fake_api import G5, P5, FakeApi, a_pool
from trainmaster.cli.queue.draining import ProgressBars
from trainmaster.cli.queue.pools_table import pools_table
from trainmaster.client.api.client import ApiClient

PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring"
ON_PLAN = {"instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}


# -- the table


def test_pools_are_a_table(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [
        a_pool(P5, 2, used=2, stopping=1, held=1, free=0, waiting=32, waitingMore=True, weight=1.0),
        a_pool(G5, 8, external=3, warm=1, free=4, countExternal=True, weight=0.034),
    ]
    assert run("pools").stdout == (
        "Pool            Cap  Used  Held  External  Warm  Free  Waiting  Weight\n"
        "--------------  ---  ----  ----  --------  ----  ----  -------  ------\n"
        "ml.p5.48xlarge    2     2     1         0     0     0      32+    1.00\n"
        "ml.g5.2xlarge     8     0     0         3     1     4        0    0.03\n"
    )
    assert json.loads(run("pools", "--json").stdout) == world.pools


def test_a_queue_without_pools_has_an_empty_table(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = []
    assert run("pools").stdout.startswith("Pool")
    assert run("pools", "--wide").exit_code == 0


def test_the_history_lists_pool_changes_with_jobs_and_cost(world: FakeApi, run: Terminal) -> None:
    made = {"at": "2026-11-21T12:00:00Z", "change": "expand", "pool": G5, "instanceType": G5, "before": 0, "after": 2}
    made |= {"dollarsPerHour": 3.03, "madeFor": "2 x (vcpus=4)", "jobs": ["a", "b"], "jobCount": 9, "why": "jobs wait"}
    gone = made | {"change": "retire", "before": 2, "after": 0, "dollarsPerHour": None, "jobs": [], "jobCount": 0}
    world.pools["history"] = [gone, made | {"change": "shrink", "dollarsPerHour": -1.5}, made | {"before": 1}, made]
    heading, _, *lines = run("pools", "--history").stdout.splitlines()
    assert heading.split() == ["Time", "(UTC)", "Change", "Pool", "Instances", "$/h", "For", "Why"]
    assert [" ".join(line.split()[2:]) for line in lines] == [
        f"removed {G5} 2 -> 0 ? jobs wait",
        f"shrunk {G5} 0 -> 2 -1.50 a, b and 7 more jobs wait",
        f"expanded {G5} 1 -> 2 +3.03 a, b and 7 more jobs wait",
        f"created {G5} 0 -> 2 +3.03 a, b and 7 more jobs wait",
    ]
    assert json.loads(run("pools", "--history", "--json").stdout)["history"] == world.pools["history"]
    world.pools["history"] = []
    assert run("pools", "--history").stdout == "The queue has not created, changed or removed any pools yet.\n"


def some_pools() -> list[dict[str, Any]]:
    scheduled = {"planStatus": "Scheduled", "startsAt": "2026-12-01T08:00:00Z", "endsAt": "2026-12-08T08:00:00Z"}
    return [
        a_pool(P5, 128, used=100, free=28),
        a_pool("p5-spot", 8, instanceType=P5, kind="spot", draining=True, used=3),
        a_pool("new", 4, **ON_PLAN),
        a_pool("next", 4, **ON_PLAN, **scheduled),
        a_pool("now", 4, **ON_PLAN, planStatus="Active", endsAt="2026-11-28T08:00:00Z"),
        a_pool("over", 4, **ON_PLAN, planStatus="Expired", endsAt="2026-11-01T08:00:00Z", draining=True),
        a_pool("ml.g6e.12xlarge", 4, madeFor="accelerators=4", price=13.1, accelerators=4),
    ]


def test_pools_of_several_kinds_show_type_and_state_in_100_columns(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = some_pools()
    heading, _, *lines = run("pools").stdout.splitlines()
    assert max(map(len, [heading, *lines])) <= 100
    assert heading.split() == ["Pool", "Type", "State", "Cap", "Used", "Held", "Warm", "Free", "Waiting", "Weight"]
    assert [" ".join(line[17:48].split()) for line in lines] == [
        f"{P5} in use",
        f"{P5} spot draining",
        f"{P5} plan unknown",
        f"{P5} plan scheduled",
        f"{P5} plan active",
        f"{P5} plan drained",
        "ml.g6e.12xlarge managed",
    ]


def test_columns_go_that_say_least_where_lines_would_be_too_long(world: FakeApi, run: Terminal) -> None:
    long = "a-pool-with-a-rather-long-name-for-the-largest-models"
    world.pools["pools"] = [a_pool(long, 128, instanceType=P5, external=3, warm=1)]
    heading, _, line = run("pools").stdout.splitlines()
    assert heading.split() == ["Pool", "Type", "Cap", "Used", "Free", "Waiting"]
    assert len(line) <= 100


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    heading, *_ = lines = pools_table([a_pool(P5, 2), a_pool("ml.g5.12xlarge", 3, used=1)], NOW, width=60).splitlines()  # type: ignore[list-item]
    assert heading.split() == ["Pool", "Cap", "Used", "Held", "Warm", "Free", "Waiting", "Weight"]
    assert max(map(len, lines)) <= 60


def test_a_wide_table_has_all_that_is_known(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = some_pools()
    heading, _, *lines = run("pools", "--wide").stdout.splitlines()
    for column in (
        "Kind",
        "Stopping",
        "Wanted",
        "vCPUs",
        "GiB",
        "Accelerators",
        "$/h",
        "Counts External",
        "Created For",
    ):
        assert column in heading
    kinds = [line[heading.index("Kind") : heading.index("State")].strip() for line in lines]
    assert kinds == [
        "on-demand",
        "spot",
        "training plan, unknown",
        "training plan, scheduled from 2026-12-01 08:00:00",
        "training plan, active until 2026-11-28 08:00:00",
        "training plan, expired",
        "on-demand",
    ]
    assert lines[-1].split()[-7:] == ["4", "x", "nvidia", "640", "13.10", "no", "accelerators=4"]


def test_unknown_values_of_an_instance_are_empty() -> None:
    unknown = {"vcpus": 0, "memoryGib": 0.0, "accelerators": 0, "accelerator": None, "acceleratorMemoryGib": 0.0}
    line = pools_table([a_pool("ml.x9.large", 1, **unknown)], NOW, wide=True).splitlines()[-1]  # type: ignore[list-item]
    assert " ".join(line.split()) == "ml.x9.large ml.x9.large on-demand in use 1 0 0 0 0 1 0 0.50 0 0 no"


# -- set


def test_set_makes_pools_of_other_kinds(world: FakeApi, run: Terminal) -> None:
    spot = ["--type", P5, "--kind", "spot", "--price", "31.5", "--accelerators", "4"]
    assert run("pools", "set", "p5-spot=8", *spot).exit_code == 0
    assert run("pools", "set", "spring=4", "--type", P5, "--plan", PLAN).exit_code == 0
    assert world.calls[-1][2]["pools"] == [
        {"instanceType": P5, "cap": 2, "countExternal": False},
        {
            "instanceType": P5,
            "cap": 8,
            "countExternal": False,
            "name": "p5-spot",
            "kind": "spot",
            "price": 31.5,
            "accelerators": 4,
        },
        {"instanceType": P5, "cap": 4, "kind": "training-plan", "trainingPlanArn": PLAN, "name": "spring"},
    ]


def test_set_makes_no_pool_of_another_name_without_a_type(world: FakeApi, run: Terminal) -> None:
    result = run("pools", "set", "lab=2")
    assert result.exit_code == 2
    assert "there is no pool 'lab'; to create it, set its instance type with --type" in result.stderr
    assert [call[0] for call in world.calls] == ["GET"]


def test_set_takes_each_pool_once(world: FakeApi, run: Terminal) -> None:
    result = run("pools", "set", f"{P5}=2", f"{P5}=3")
    assert (result.exit_code, world.calls) == (2, [])
    assert f"'{P5}' is specified twice" in result.stderr


def test_set_refuses_a_type_that_is_neither_known_nor_described(world: FakeApi, run: Terminal) -> None:
    result = run("pools", "set", "ml.x9.large=1")
    assert (result.exit_code, [call[0] for call in world.calls]) == (2, ["GET"])
    assert "'ml.x9.large' is no known instance type" in result.stderr
    described = run("pools", "set", "ml.x9.large=1", "--vcpus", "8")
    assert described.stderr.startswith("Warning: ml.x9.large: this version does not know ml.x9.large. ")
    assert not run("pools", "set", f"{P5}=2").stderr


def test_set_keeps_what_a_pool_is_when_only_its_cap_changes(world: FakeApi, run: Terminal) -> None:
    plan = {"instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}
    world.pools["pools"] = [a_pool("spring", 4, **plan, planStatus="Active", endsAt="2026-11-28T08:00:00Z", price=2.5)]
    assert run("pools", "set", "spring=2").exit_code == 0
    assert world.calls[-1][2]["pools"] == [{**plan, "cap": 2, "name": "spring", "price": 2.5, "countExternal": False}]


@pytest.mark.parametrize("option", [["--kind", "Spot"], ["--price", "-1"], ["--price", "x"], ["--accelerators", "-1"]])
def test_set_refuses_what_is_no_setting(world: FakeApi, run: Terminal, option: list[str]) -> None:
    assert run("pools", "set", f"{P5}=2", *option).exit_code == 2
    assert world.calls == []


def test_set_changes_the_named_pools_and_leaves_the_others_as_they_are(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2, countExternal=True), a_pool(G5, 8)]

    result = run("pools", "set", f"{P5}=4", "ml.m5.large=0")

    assert result.exit_code == 0
    assert world.calls[-1] == (
        "PUT",
        "/pools",
        {
            "pools": [
                {"instanceType": P5, "cap": 4, "countExternal": True},
                {"instanceType": G5, "cap": 8, "countExternal": False},
                {"instanceType": "ml.m5.large", "cap": 0},
            ],
            "version": 1,
        },
    )
    assert "ml.m5.large" in result.stdout


@pytest.mark.parametrize(("flag", "counted"), [("--count-external", True), ("--no-count-external", False)])
def test_set_says_whether_external_jobs_count(world: FakeApi, run: Terminal, flag: str, counted: bool) -> None:
    world.pools["pools"] = [a_pool(P5, 2, countExternal=not counted), a_pool(G5, 8, countExternal=not counted)]
    answer = json.loads(run("pools", "set", f"{P5}=2", flag, "--json").stdout)
    assert [pool["countExternal"] for pool in answer["pools"]] == [counted, not counted]


def test_set_keeps_concurrent_changes(world: FakeApi, run: Terminal) -> None:
    def another_writer() -> None:
        world.on_set_pools = lambda: None
        world.pools = {"pools": [*world.pools["pools"], a_pool(G5, 8)], "version": 2}

    world.on_set_pools = another_writer

    assert run("pools", "set", f"{P5}=5").exit_code == 0
    assert {pool["name"]: pool["cap"] for pool in world.pools["pools"]} == {P5: 5, G5: 8}


def test_set_gives_up_after_repeated_conflicts(world: FakeApi, run: Terminal) -> None:
    def another_writer() -> None:
        world.pools["version"] += 1

    world.on_set_pools = another_writer

    result = run("pools", "set", f"{P5}=5")
    assert (result.exit_code, result.stderr) == (
        4,
        "Error: The pools were changed meanwhile. Try again.\n",
    )


@pytest.mark.parametrize("text", ["ml.p5.48xlarge", "=2", "ml.p5.48xlarge=", "a=-1", "a=two", "a=1.5", "a=²"])
def test_set_refuses_what_is_no_cap(world: FakeApi, run: Terminal, text: str) -> None:
    assert run("pools", "set", text).exit_code == 2
    assert world.calls == []


def test_set_says_what_an_instance_has(world: FakeApi, run: Terminal) -> None:
    has = ["--vcpus", "8", "--memory-gib", "32.5", "--accelerator", "acme", "--accelerator-memory-gib", "24"]
    assert run("pools", "set", "ml.x9.large=1", *has).exit_code == 0
    assert world.calls[-1][2]["pools"][-1] == {
        "instanceType": "ml.x9.large",
        "cap": 1,
        "vcpus": 8,
        "memoryGib": 32.5,
        "accelerator": "acme",
        "acceleratorMemoryGib": 24.0,
    }
    assert run("pools", "set", "ml.x9.large=2").exit_code == 0
    assert world.calls[-1][2]["pools"][-1]["memoryGib"] == 32.5


def test_set_keeps_a_pool_draining(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2, draining=True)]
    run("pools", "set", f"{P5}=4")
    assert world.calls[-1][2]["pools"] == [{"instanceType": P5, "cap": 4, "countExternal": False, "draining": True}]


# -- remove


def test_remove_takes_pools_away_that_are_there(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2), a_pool(G5, 8, waiting=3)]
    removed = run("pools", "remove", G5)
    assert (removed.exit_code, removed.stdout) == (0, f"{G5}: Removed. 3 waiting jobs can run elsewhere.\n")
    assert [pool["name"] for pool in world.pools["pools"]] == [P5]
    again = run("pools", "remove", G5)
    assert (again.exit_code, again.stderr) == (
        3,
        f"Error: There is no pool {G5}. `trainmaster pools` lists the pools.\n",
    )


def test_remove_goes_on_with_the_others_and_tells_the_first_error_by_its_code(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2, used=2), a_pool(G5, 8)]
    result = run("pools", "remove", P5, "none", G5)
    assert (result.exit_code, result.stdout) == (4, f"{G5}: Removed.\n")
    assert result.stderr.splitlines() == [
        f"Error: The pool is in use: job1 hold 2 x {P5}. Drain it first, or force it.",
        "Error: There is no pool none. `trainmaster pools` lists the pools.",
    ]


def test_remove_with_force_tells_what_goes_on(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2, used=2, waiting=32, waitingMore=True)]
    result = run("pools", "remove", P5, "--force")
    assert (result.exit_code, result.stdout) == (
        0,
        f"{P5}: Removed. 1 running jobs continue there; at least 32 waiting jobs can run elsewhere.\n",
    )
    assert world.calls[-1] == ("DELETE", f"/pools/{P5}", {"force": "true"})


def test_remove_prints_the_answers_as_json(world: FakeApi, run: Terminal) -> None:
    (answer,) = json.loads(run("pools", "remove", P5, "--json").stdout)
    assert (answer["moved"], answer["pools"]) == (0, [])


def test_a_removal_whose_answer_was_lost_is_no_error(world: FakeApi, client: ApiClient) -> None:
    delete = world.delete_pools_one

    def lost(name: str, query: dict[str, str]) -> tuple[int, Any]:
        delete(name, query)
        world.delete_pools_one = delete  # type: ignore[method-assign]
        return 503, {"message": "lost"}

    world.delete_pools_one = lost  # type: ignore[method-assign]
    assert client.remove_pool(P5)["pools"] == []


# -- drain, resume


def test_drain_lets_jobs_end_and_resume_ends_that(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 4, used=2, warm=1), a_pool(G5, 8)]
    drained = run("pools", "drain", P5, G5)
    assert (drained.exit_code, drained.stdout) == (
        0,
        f"{P5}: Draining; 3 of 4 instances are still held.\n{G5}: Drained; no instances are held.\n",
    )
    assert world.calls[-1] == ("PATCH", f"/pools/{G5}", {"draining": True})
    resumed = run("pools", "resume", P5)
    assert (resumed.exit_code, resumed.stdout) == (0, f"{P5}: In use; jobs start there.\n")
    assert json.loads(run("pools", "resume", P5, "--json").stdout)[0]["state"] == "in use"


def uses(world: FakeApi, name: str, used: int) -> Any:
    def happen() -> None:
        pools = world.pools["pools"]
        world.pools["pools"] = [
            a_pool(name, pool["cap"], draining=True, used=used) if pool["name"] == name else pool for pool in pools
        ]

    return happen


def test_drain_waits_until_nothing_holds_the_pool(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 4, used=2)]
    run.meanwhile = [lambda: None, uses(world, P5, 1), uses(world, P5, 0)]
    result = run("pools", "drain", P5, "--wait", "--interval", "2")
    assert (result.exit_code, run.seconds) == (0, 6)
    left = ("2 instances are", "1 instance is", "0 instances are")
    assert result.stderr.splitlines() == [f"{P5}: {each} still held." for each in left]
    assert result.stdout.splitlines()[-1] == f"{P5}: Drained; no instances are held."


def test_drain_gives_up_waiting_when_the_time_is_up(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 4, used=2)]
    run.meanwhile = [lambda: None, lambda: None]
    result = run("pools", "drain", P5, "--wait", "--timeout", "8", "--json")
    assert (result.exit_code, run.seconds) == (124, 8)
    assert json.loads(result.stdout)[0]["state"] == "draining"


def test_waiting_for_a_drain_ends_if_the_pool_is_resumed(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 4, used=2)]
    run.meanwhile = [lambda: world.patch_pools_one(P5, {"draining": False})]
    result = run("pools", "drain", P5, "--wait")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        4,
        f"Error: {P5} is no longer draining. Drain it again: `trainmaster pools drain {P5}`.",
    )


def test_waiting_ends_for_a_removed_pool(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 4, used=2)]
    run.meanwhile = [lambda: world.delete_pools_one(P5, {"force": "true"})]
    result = run("pools", "drain", P5, "--wait")
    assert (result.exit_code, run.seconds) == (0, 5)


def test_ctrl_c_ends_the_waiting_and_not_the_draining(world: FakeApi, run: Terminal) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    world.pools["pools"] = [a_pool(P5, 4, used=2)]
    run.meanwhile = [interrupt]
    result = run("pools", "drain", P5, "--wait")
    assert (result.exit_code, world.pools["pools"][0]["state"]) == (130, "draining")
    assert f"`trainmaster pools resume {P5}` ends that" in result.stderr


def test_drain_of_a_pool_that_is_not_there_waits_for_the_others_and_says_so(world: FakeApi, run: Terminal) -> None:
    result = run("pools", "drain", "none", P5, "--wait")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1] == f"{P5}: Drained; no instances are held."


def test_a_terminal_shows_bars_that_vanish() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    with ProgressBars(console) as bars:
        bars.show([a_pool(P5, 4, draining=True, used=3), a_pool("[x]", 2, instanceType=G5, draining=True, used=1)])  # type: ignore[list-item]
        bars.show([a_pool(P5, 4, draining=True, used=1)])  # type: ignore[list-item]
    drawn = screen.getvalue()
    assert "0 of 3 instances free" in drawn
    assert "2 of 3 instances free" in drawn
    assert "[x]" in drawn
    assert drawn.rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_set_does_not_offer_the_kind_that_the_queue_makes_itself(world: FakeApi, run: Terminal) -> None:
    result = run("pools", "set", "lab=2", "--type", P5, "--kind", "endpoint")
    assert (result.exit_code, "training-plan" in result.stderr, world.calls) == (2, True, [])
    assert "endpoint" not in run("pools", "set", "--help").stdout
