"""Writing commands: submit, plan, cancel, hold, release, priority, pools."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_terminal import Terminal

from fake_api import ANN, G5, P5, FakeApi, a_pool, a_request, starts


def _file(tmp_path: Path, request: Any) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(request))
    return str(path)


# -- submit and plan


def test_submit_sends_the_request_and_says_what_becomes_of_it(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    request = a_request("job1", HyperParameters={"name": "größer"})

    result = run("submit", _file(tmp_path, request))

    assert world.calls == [("POST", "/add-job", request)]
    assert result.exit_code == 0
    assert result.stdout == (
        "Submitted job1: Waiting in the queue; position 1; waits for 1 x ml.p5.48xlarge: 0 free for it now.\n"
    )
    assert result.stderr == "Warning: The job has no CheckpointConfig: preempted, it would begin anew.\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_submit_reads_standard_input(world: FakeApi, run: Terminal, mark: str) -> None:
    assert run("submit", "-", stdin=mark + json.dumps(a_request("job1"))).exit_code == 0
    assert list(world.jobs) == ["job1"]


def test_submit_sets_tags_in_the_place_of_the_requests(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    old = [{"Key": "priority", "Value": "1"}, {"Key": "team", "Value": "vision"}]
    file = _file(tmp_path, a_request("job1", Tags=old))

    run("submit", file, "--priority", "-5", "--option", "preemptible=false", "--option", "trainmaster:note=a=b")

    (_, _, sent) = world.calls[0]
    assert sent["Tags"] == [
        {"Key": "team", "Value": "vision"},
        {"Key": "priority", "Value": "-5"},
        {"Key": "trainmaster:preemptible", "Value": "false"},
        {"Key": "trainmaster:note", "Value": "a=b"},
    ]
    assert world.jobs["job1"]["priority"] == -5


def test_submit_adds_tags_to_a_request_without_any(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    request = {key: value for key, value in a_request("job1").items() if key != "Tags"}
    run("submit", _file(tmp_path, request), "--priority=7")
    assert world.jobs["job1"]["jobDetails"]["Tags"] == [{"Key": "priority", "Value": "7"}]


def test_submit_as_json_is_the_answer(run: Terminal, tmp_path: Path) -> None:
    result = run("submit", _file(tmp_path, a_request("job1")), "--json")
    answer = json.loads(result.stdout)
    assert (answer["jobName"], answer["jobState"], answer["wouldPreempt"]) == ("job1", "pending", ["job1"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("TrainingJobName: job1", "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"a": NaN}', "is not JSON: NaN is not a number in JSON"),
        ("[]", "holds no JSON object"),
        ("\udcff", "is not JSON: 'utf-8' codec can't decode byte 0xff"),
        ('{"Tags": {"priority": "1"}}', "InvalidRequest: The request's tags are no list (field Tags)"),
    ],
)
def test_a_file_that_holds_no_request_is_refused_before_anything_is_sent(
    world: FakeApi, run: Terminal, tmp_path: Path, content: str, told: str
) -> None:
    path = tmp_path / "job.json"
    path.write_bytes(content.encode(errors="surrogateescape"))

    result = run("submit", str(path), "--priority", "1")

    assert (result.exit_code, result.stdout, world.calls) == (2, "", [])
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_told_in_one_line(run: Terminal, tmp_path: Path) -> None:
    result = run("submit", str(tmp_path / "nope.json"))
    assert result.exit_code == 2
    assert result.stderr == f"Error: InvalidFile: {tmp_path}/nope.json cannot be read: No such file or directory.\n"


@pytest.mark.parametrize("option", ["preemptible", "=false"])
def test_an_option_without_name_or_value_is_wrong_usage(run: Terminal, tmp_path: Path, option: str) -> None:
    result = run("submit", _file(tmp_path, a_request("job1")), "--option", option)
    assert (result.exit_code, "NAME=VALUE" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (
            {"RoleArn": "other"},
            (5, "RoleNotAllowed: The queue may not pass this role (field RoleArn). Use another role."),
        ),
        (
            {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 3}},
            (
                2,
                "NeverFits: The pool's cap is 2 (field ResourceConfig.InstanceCount). Ask for fewer instances.",
            ),
        ),
        (
            {"HyperParameters": {"a": "b"}},
            (
                4,
                "NameTaken: job1 belongs to a job with another request (field TrainingJobName). Choose another name.",
            ),
        ),
    ],
)
@pytest.mark.parametrize("command", ["submit", "plan"])
def test_a_refusal_is_one_line_with_field_and_hint_and_its_own_code(  # noqa: PLR0917 - fixtures
    world: FakeApi, run: Terminal, tmp_path: Path, command: str, change: dict[str, Any], end: tuple[int, str]
) -> None:
    world.add("job1")

    result = run(command, _file(tmp_path, a_request("job1", **change)))

    assert (result.exit_code, result.stderr) == (end[0], f"Error: {end[1]}\n")
    assert result.stdout == ""


def test_plan_says_what_would_happen_and_stores_nothing(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    result = run("plan", _file(tmp_path, a_request("job1")), "--priority", "-2")

    assert result.stdout == (
        "It would wait at position 3: waits for 1 x ml.p5.48xlarge: 0 free for it now. "
        "It would be expected to start at 2026-11-20 16:00:00 UTC (in 3 hours).\n"
    )
    assert result.stderr == "Warning: no CheckpointConfig\n"
    assert world.jobs == {}
    assert world.calls[0][2]["Tags"][-1] == {"Key": "priority", "Value": "-2"}


def test_plan_of_what_starts_at_once_says_no_more(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.planned = {"decision": "start", "position": 1, "reason": None} | starts("2026-11-20T13:00:00Z")
    assert run("plan", _file(tmp_path, a_request("job1"))).stdout == "It would start at once.\n"


def test_plan_of_a_preemption_names_who_steps_aside(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.planned = {
        "decision": "preempt",
        "wouldPreempt": ["job7", "job8"],
        "warnings": [],
    } | starts("2026-11-20T13:03:00Z")
    assert run("plan", _file(tmp_path, a_request("job1"))).stdout == (
        "It would preempt job7, job8 and start in the freed capacity. "
        "It would be expected to start at 2026-11-20 13:03:00 UTC (in 3 minutes).\n"
    )


def test_plan_without_an_estimate_promises_none(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.planned = {"position": None} | starts(None)
    assert run("plan", _file(tmp_path, a_request("job1"))).stdout == (
        "It would wait: waits for 1 x ml.p5.48xlarge: 0 free for it now.\n"
    )


def test_plan_as_json_is_the_answer(run: Terminal, tmp_path: Path) -> None:
    answer = json.loads(run("plan", _file(tmp_path, a_request("job1")), "--json").stdout)
    assert (answer["decision"], answer["position"]) == ("wait", 3)


# -- cancel, hold, release, priority


def test_cancel_tells_apart_what_waits_and_what_runs(world: FakeApi, run: Terminal) -> None:
    world.add("waits")
    world.add("runs", "running")

    result = run("cancel", "waits", "runs")

    assert result.exit_code == 0
    assert result.stdout == (
        "waits: Cancelled while it waited in the queue.\nruns: Is being stopped; it will not be resumed.\n"
    )


def test_one_job_that_cannot_be_changed_does_not_keep_the_others_from_it(world: FakeApi, run: Terminal) -> None:
    world.add("over", "completed")
    world.add("waits")

    result = run("cancel", "over", "nope", "waits", "waits")

    assert result.exit_code == 4  # the code of the first that failed
    assert result.stdout == "waits: Cancelled while it waited in the queue.\n"
    assert result.stderr == (
        "Error: IllegalTransition: job over is completed\n"
        "Error: JobNotFound: The queue knows no job nope. See `trainmaster ls --all`.\n"
    )


def test_what_stands_in_the_way_of_all_is_told_once(world: FakeApi, run: Terminal) -> None:
    world.outage = [403, 403, 403]
    result = run("hold", "a", "b", "c")
    assert (result.exit_code, result.stderr.count("Error:")) == (5, 1)


@pytest.mark.parametrize("command", ["cancel", "hold"])
def test_changes_as_json_are_the_answers(world: FakeApi, run: Terminal, command: str) -> None:
    world.add("a")
    world.add("b")
    answers = json.loads(run(command, "a", "nope", "b", "--json").stdout)
    state = {"cancel": "cancelled", "hold": "held"}[command]
    assert [(job["jobName"], job["jobState"]) for job in answers] == [("a", state), ("b", state)]


def test_hold_and_release(world: FakeApi, run: Terminal) -> None:
    world.add("job1")
    assert run("hold", "job1").stdout == "job1: Held back in the queue until it is released.\n"
    assert run("release", "job1").stdout == "job1: Waiting in the queue.\n"
    assert world.jobs["job1"]["jobState"] == "pending"
    again = run("release", "job1")
    assert (again.exit_code, again.stderr) == (4, "Error: IllegalTransition: job job1 is pending, not held\n")


@pytest.mark.parametrize("value", [-5, 0, 100, -1_000_000])
def test_priority_takes_negative_numbers_as_they_are(world: FakeApi, run: Terminal, value: int) -> None:
    world.add("job1", priority=3)

    result = run("priority", "job1", str(value))

    assert (result.exit_code, world.jobs["job1"]["priority"]) == (0, value)
    assert result.stdout == f"job1: Waiting in the queue. Priority {value}.\n"
    assert json.loads(run("priority", "job1", str(value), "--json").stdout)["priority"] == value


@pytest.mark.parametrize("value", ["-x", "--much", "1.5", "1000001", "-1000001", "1e3"])
def test_priority_refuses_what_is_no_priority(world: FakeApi, run: Terminal, value: str) -> None:
    assert run("priority", "job1", value).exit_code == 2
    assert world.calls == []


# -- pools


def test_pools_are_a_table(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [
        a_pool(P5, 2, used=2, stopping=1, held=1, free=0),
        a_pool(G5, 8, foreign=3, warm=1, free=4, countForeign=True),
    ]
    assert run("pools").stdout == (
        "Pool              Cap    Used    Stopping    Held    Foreign    Warm    Free  Counts Foreign\n"
        "--------------  -----  ------  ----------  ------  ---------  ------  ------  ----------------\n"
        "ml.p5.48xlarge      2       2           1       1          0       0       0  no\n"
        "ml.g5.2xlarge       8       0           0       0          3       1       4  yes\n"
    )
    assert json.loads(run("pools", "--json").stdout) == world.pools


PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring"


def test_pools_of_several_kinds_show_type_and_kind(world: FakeApi, run: Terminal) -> None:
    plan = {"instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}
    world.pools["pools"] = [
        a_pool(P5, 2),
        a_pool("p5-spot", 8, instanceType=P5, kind="spot"),
        a_pool("new", 4, **plan),
        a_pool(
            "next", 4, **plan, planStatus="Scheduled", startsAt="2026-12-01T08:00:00Z", endsAt="2026-12-08T08:00:00Z"
        ),
        a_pool("now", 4, **plan, planStatus="Active", startsAt="2026-11-01T08:00:00Z", endsAt="2026-11-28T08:00:00Z"),
        a_pool("over", 4, **plan, planStatus="Expired", endsAt="2026-11-01T08:00:00Z"),
    ]
    kinds = [line[32:84].strip() for line in run("pools").stdout.splitlines()[2:]]
    assert [" ".join(kind.split()) for kind in kinds] == [
        "on-demand",
        "spot",
        "training plan, unknown",
        "training plan, scheduled from 2026-12-01 08:00:00",
        "training plan, active until 2026-11-28 08:00:00",
        "training plan, expired",
    ]


def test_set_makes_pools_of_other_kinds(world: FakeApi, run: Terminal) -> None:
    spot = ["--type", P5, "--kind", "spot", "--price", "31.5", "--accelerators", "4"]
    assert run("pools", "set", "p5-spot=8", *spot).exit_code == 0
    assert run("pools", "set", "spring=4", "--type", P5, "--plan", PLAN).exit_code == 0
    assert world.calls[-1][2]["pools"] == [
        {"instanceType": P5, "cap": 2, "countForeign": False},
        {
            "instanceType": P5,
            "cap": 8,
            "countForeign": False,
            "name": "p5-spot",
            "kind": "spot",
            "price": 31.5,
            "accelerators": 4,
        },
        {"instanceType": P5, "cap": 4, "kind": "training-plan", "trainingPlanArn": PLAN, "name": "spring"},
    ]


def test_set_keeps_what_a_pool_is_when_only_its_cap_changes(world: FakeApi, run: Terminal) -> None:
    plan = {"instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}
    world.pools["pools"] = [a_pool("spring", 4, **plan, planStatus="Active", endsAt="2026-11-28T08:00:00Z", price=2.5)]
    assert run("pools", "set", "spring=2").exit_code == 0
    assert world.calls[-1][2]["pools"] == [{**plan, "cap": 2, "name": "spring", "price": 2.5, "countForeign": False}]


@pytest.mark.parametrize("option", [["--kind", "Spot"], ["--price", "-1"], ["--price", "x"], ["--accelerators", "-1"]])
def test_set_refuses_what_is_no_setting(world: FakeApi, run: Terminal, option: list[str]) -> None:
    assert run("pools", "set", f"{P5}=2", *option).exit_code == 2
    assert world.calls == []


def test_set_changes_the_named_pools_and_leaves_the_others_as_they_are(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2, countForeign=True), a_pool(G5, 8)]

    result = run("pools", "set", f"{P5}=4", "ml.m5.large=0")

    assert result.exit_code == 0
    assert world.calls[-1] == (
        "PUT",
        "/pools",
        {
            "pools": [
                {"instanceType": P5, "cap": 4, "countForeign": True},
                {"instanceType": G5, "cap": 8, "countForeign": False},
                {"instanceType": "ml.m5.large", "cap": 0},
            ],
            "version": 1,
        },
    )
    assert "ml.m5.large" in result.stdout


@pytest.mark.parametrize(("flag", "counted"), [("--count-foreign", True), ("--no-count-foreign", False)])
def test_set_says_whether_foreign_jobs_count(world: FakeApi, run: Terminal, flag: str, counted: bool) -> None:
    world.pools["pools"] = [a_pool(P5, 2, countForeign=not counted), a_pool(G5, 8, countForeign=not counted)]
    answer = json.loads(run("pools", "set", f"{P5}=2", flag, "--json").stdout)
    assert [pool["countForeign"] for pool in answer["pools"]] == [counted, not counted]


def test_set_keeps_what_somebody_else_changed_meanwhile(world: FakeApi, run: Terminal) -> None:
    def somebody_else() -> None:
        world.on_set_pools = lambda: None
        world.pools = {"pools": [*world.pools["pools"], a_pool(G5, 8)], "version": 2}

    world.on_set_pools = somebody_else

    assert run("pools", "set", f"{P5}=5").exit_code == 0
    assert {pool["name"]: pool["cap"] for pool in world.pools["pools"]} == {P5: 5, G5: 8}


def test_set_gives_up_when_somebody_else_is_always_faster(world: FakeApi, run: Terminal) -> None:
    def somebody_else() -> None:
        world.pools["version"] += 1

    world.on_set_pools = somebody_else

    result = run("pools", "set", f"{P5}=5")
    assert (result.exit_code, result.stderr) == (
        4,
        "Error: VersionConflict: The pools were changed meanwhile. Try again.\n",
    )


@pytest.mark.parametrize("text", ["ml.p5.48xlarge", "=2", "ml.p5.48xlarge=", "a=-1", "a=two", "a=1.5", "a=²"])
def test_set_refuses_what_is_no_cap(world: FakeApi, run: Terminal, text: str) -> None:
    assert run("pools", "set", text).exit_code == 2
    assert world.calls == []


def test_remove_takes_pools_away_that_are_there(world: FakeApi, run: Terminal) -> None:
    world.pools["pools"] = [a_pool(P5, 2), a_pool(G5, 8)]
    assert run("pools", "remove", G5).exit_code == 0
    assert [pool["name"] for pool in world.pools["pools"]] == [P5]
    again = run("pools", "remove", G5)
    assert (again.exit_code, again.stderr) == (
        3,
        f"Error: PoolNotFound: There is no pool {G5}. See `trainmaster pools`.\n",
    )


def test_who_changed_a_job_is_in_its_history(world: FakeApi, run: Terminal) -> None:
    world.add("job1")
    run("hold", "job1")
    assert f"Held by {ANN}." in run("why", "job1").stdout
