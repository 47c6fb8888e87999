"""Reading commands: ls, show, why."""

import csv
import json
import re
from collections.abc import Callable

import pytest
import yaml

from cli_terminal import NOW, Terminal
from fake_api import ANN, G5, P5, FakeApi, Refusal, a_pool, a_request, a_view, an_attempt, starts, waits_for_capacity
from trainmaster.cli.output.listing import jobs_table
from trainmaster.cli.output.render import Paint, colored, plain
from trainmaster.domain.jobs.job import JobState


def test_ls_prints_the_articles_first_table(world: FakeApi, run: Terminal) -> None:
    """Article, "use case example": after job1, job2 and job3 were submitted; our columns follow the article's."""
    world.add("job1", "running", 1)
    world.add("job2", "running", 2)
    world.add("job3", "pending", 1, entryTime="2026-11-20T12:05:00Z")

    assert [line[:29].rstrip() for line in run("ls").stdout.splitlines()] == [
        "Job Name  State    Priority",
        "--------  -------  --------",
        "job2      running         2",
        "job1      running         1",
        "job3      pending         1",
    ]


def test_ls_prints_the_articles_second_table(world: FakeApi, run: Terminal) -> None:
    """Article, "use case example": job4 has preempted job1, which keeps its place before job3."""
    world.add("job3", "pending", 1, entryTime="2026-11-20T12:05:00Z")
    world.add("job1", "preempted", 1)
    world.add("job2", "running", 2)
    world.add("job4", "running", 3, entryTime="2026-11-20T12:10:00Z")

    assert [line.split()[:3] for line in run("ls").stdout.splitlines()[2:]] == [
        ["job4", "running", "3"],
        ["job2", "running", "2"],
        ["job1", "preempted", "1"],
        ["job3", "pending", "1"],
    ]


def test_ls_and_show_tell_when_a_running_job_is_likely_to_end(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")
    world.jobs["job1"] |= {"expectedEnd": "2026-11-20T14:30:00Z", "expectedEndLow": "2026-11-20T14:00:00Z"}
    world.jobs["job1"]["expectedEndHigh"] = "2026-11-20T16:00:00Z"
    assert "about 2026-11-20 14:30" in run("ls").stdout
    assert "2026-11-20T14:30:00Z" in run("ls", "-o", "csv").stdout
    (end, between) = [line for line in run("show", "job1").stdout.splitlines() if line.startswith(("Expected", "Prob"))]
    assert end.startswith("Expected End")
    assert "14:30" in end
    assert "14:00" in between
    assert "16:00" in between


def test_ls_orders_equals_by_entry_then_name(world: FakeApi, run: Terminal) -> None:
    world.add("c")
    world.add("b", entryTime="2026-11-20T11:59:59Z")
    world.add("a", entryTime="2026-11-20T12:00:01Z")
    world.add("d", priority=1, entryTime="2026-11-20T12:00:02Z")
    world.add("bb")
    assert _names(run("ls").stdout) == ["d", "b", "bb", "c", "a"]


def test_colors_do_not_move_columns() -> None:
    reason = waits_for_capacity()
    jobs = [
        a_view("short", "running", priority=2),
        a_view("a-much-longer-name", "preempted", priority=10, reason=reason),
        a_view("third", reason=reason),
        a_view("fourth", "failed", priority=-1),
    ]
    tables: list[Callable[[Paint], str]] = [
        lambda paint: jobs_table(jobs, NOW, paint),
        lambda paint: jobs_table(jobs, NOW, paint, width=90),
        lambda paint: jobs_table(jobs, NOW, paint, width=50),
        lambda paint: jobs_table(jobs, NOW, paint, wide=True),
    ]
    for table in tables:
        in_color = table(colored)
        assert "\x1b[32m" in in_color
        assert re.sub(r"\x1b\[\d+m", "", in_color) == table(plain)


def test_ls_of_an_empty_queue_has_the_head_of_the_table(run: Terminal) -> None:
    assert run("ls").stderr == "No unfinished jobs; --all also lists finished ones.\n"
    assert run("ls", "--all").stderr == ""
    assert run("ls").stdout == (
        "Job Name  State  Priority  User  Age  Ran  Start  End  Reason\n"
        "--------  -----  --------  ----  ---  ---  -----  ---  ------\n"
    )


@pytest.mark.parametrize("name", ["1e5", "007", "nan", "inf", "0x10"])
def test_ls_prints_names_that_look_like_numbers_as_they_are(world: FakeApi, run: Terminal, name: str) -> None:
    world.add(name)
    assert run("ls").stdout.splitlines()[2].split()[:3] == [name, "pending", "0"]


def test_ls_shows_unfinished_jobs_and_with_all_the_finished_after_them(world: FakeApi, run: Terminal) -> None:
    for state in JobState:
        world.add(f"is-{state}", state, priority=1 if state is JobState.FAILED else 0)

    unfinished = _names(run("ls").stdout)
    assert set(unfinished) == {f"is-{s}" for s in JobState if s not in ("completed", "failed", "stopped", "cancelled")}
    everything = _names(run("ls", "--all").stdout)
    assert everything[: len(unfinished)] == unfinished
    assert set(everything) == {f"is-{state}" for state in JobState}


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        (["--state", "running", "--state", "held"], {"state": "running,held"}),
        (["--share", "vision", "--all"], {"share": "vision"}),
        (["--pool", G5, "--state", "failed"], {"pool": G5, "state": "failed"}),
        (["--state", "infeasible"], {"state": "infeasible"}),
        (["--mine", "--all"], {"mine": "true"}),
        (["-a", "--prefix", "bert-"], {"prefix": "bert-"}),
        (["-a", "--prefix", "bert-*"], {"prefix": "bert-"}),
        (["-a", "--kind", "training"], {"kind": "training"}),
        (["-a", "--since", "2h"], {"since": "2026-11-20T11:00:00+00:00"}),
        (["-a", "--since", "2026-11-19"], {"since": "2026-11-19T00:00:00+00:00"}),
    ],
)
def test_ls_filters_at_the_api(world: FakeApi, run: Terminal, arguments: list[str], query: dict[str, str]) -> None:
    world.settings["shares"]["vision"], world.pools["pools"] = {}, [a_pool(G5, 1)]
    assert run("ls", *arguments).exit_code == 0
    assert world.calls[0] == ("GET", "/jobs", query)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--share", "visoin"], "There is no share visoin. Did you mean 'vision'? The shares are: default, vision."),
        (["--share", "nosuch"], "There is no share nosuch. The shares are: default, vision."),
        (["--pool", "ml.p5.48xlage"], f"There is no pool ml.p5.48xlage. Did you mean '{P5}'? The pools are: {P5}."),
    ],
)
def test_ls_refuses_a_share_or_pool_that_does_not_exist(
    world: FakeApi, run: Terminal, arguments: list[str], told: str
) -> None:
    world.add("job1")
    world.jobs["job1"]["share"], world.jobs["job1"]["pools"] = "vision", [G5]
    result = run("ls", *arguments)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.partition(": ")[2] == f"{told}\n"


def test_ls_of_a_share_without_jobs_is_an_empty_table(run: Terminal) -> None:
    for arguments in (["--share", "vision"], ["--share", "default"], ["--pool", P5]):
        assert run("ls", *arguments).exit_code == 0


def test_ls_of_a_removed_share_lists_its_jobs(world: FakeApi, run: Terminal) -> None:
    world.add("job1", share="gone")
    assert _names(run("ls", "--share", "gone").stdout) == ["job1"]


def test_ls_prints_every_form(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "failed", failureReason="=HYPERLINK(1)", endedAt="2026-11-20T12:30:00Z")
    listed = json.loads(run("ls", "--all", "-o", "json").stdout)
    assert listed == json.loads(run("ls", "--all", "--json").stdout)
    assert yaml.safe_load(run("ls", "--all", "-o", "yaml").stdout) == listed
    (row,) = csv.DictReader(run("ls", "--all", "-o", "csv").stdout.splitlines())
    assert (row["jobName"], row["user"], row["endedAt"]) == ("job1", "ann", "2026-11-20T12:30:00Z")
    assert row["reason"] == "'=HYPERLINK(1)", "a spreadsheet would take it for a formula"
    assert run("ls", "-a", "-o", "wide").stdout == run("ls", "-a", "--wide").stdout
    assert run("ls", "-o", "xml").exit_code == 2


def test_a_command_without_json_has_no_forms(run: Terminal) -> None:
    result = run("logs", "job1", "-o", "json")
    assert (result.exit_code, "has no option -o" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", [("show", "job1"), ("why", "job1"), ("pools",), ("settings",), ("wait", "job1")])
def test_every_command_with_json_takes_the_form_as_well(
    world: FakeApi, run: Terminal, command: tuple[str, ...]
) -> None:
    world.add("job1", "completed")
    answer = json.loads(run(*command, "--json").stdout)
    for words in (["-o", "json"], ["-ojson"], ["--output", "json"], ["--output=json"]):
        assert json.loads(run(*command, *words).stdout) == answer
    printed = run(*command, "-o", "yaml").stdout
    assert yaml.safe_load(printed) == answer
    assert printed[0] not in "[{"
    assert run("show", "job1", "--", "-o").exit_code == 2


def test_ls_refuses_a_state_that_does_not_exist_and_lists_those_that_do(run: Terminal) -> None:
    result = run("ls", "--state", "done")
    assert (result.exit_code, "completed" in result.stderr) == (2, True)


def test_ls_help_names_every_state(run: Terminal) -> None:
    text = run("ls", "--help").stdout
    assert [state for state in JobState if state not in text] == []


def test_ls_reads_only_the_pages_that_it_shows_and_says_that_there_is_more(world: FakeApi, run: Terminal) -> None:
    for number in range(9):
        world.add(f"job{number}")

    result = run("ls", "--limit", "3")

    assert _names(result.stdout) == ["job0", "job1", "job2"]
    assert "There are more jobs than these: see --limit." in result.stderr
    assert len(world.calls) == 2
    assert run("ls", "--limit", "9").stderr == ""


def test_ls_wide_adds_position_pools_start_and_reason(world: FakeApi, run: Terminal) -> None:
    in_hours = starts("2026-11-20T16:00:00Z", "2026-11-20T15:00:00Z", "2026-11-20T18:00:00Z")
    world.add("a", position=1, reason=waits_for_capacity(), demand=[{P5: 2, G5: 1}, {G5: 8}], **in_hours)
    world.add("b", positionAtLeast=1000)

    head, _, first, second = run("ls", "--wide").stdout.splitlines()

    assert head.split()[:6] == ["Job", "Name", "State", "Priority", "Position", "Share"]
    assert head.split()[6:] == ["User", "Age", "Ran", "Start", "End", "Pools", "Reason"]
    assert f"1  default  ann   60m       in 2 h to 5 h       2 x {P5} + {G5} or 8 x {G5}  waits for 1 x" in first
    assert "1000+  default" in second
    assert second.endswith("ml.p5.48xlarge")


def test_ls_as_json_is_what_the_api_said_in_the_order_of_the_table(world: FakeApi, run: Terminal) -> None:
    low, high = world.add("low", priority=-1), world.add("high", priority=1)
    brief = [{k: v for k, v in job.items() if k not in ("history", "jobDetails", "redacted")} for job in (high, low)]
    assert json.loads(run("ls", "--json").stdout) == brief


def test_show_has_the_jobs_facts_attempts_and_history(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running", -3, attempts=[
        an_attempt("job1", 1, outcome="preempted", endedAt="2026-11-20T12:20:05Z", reason="preempted for job4"),
        an_attempt("job1", 2, createdAt="2026-11-20T12:30:00Z", startedAt="2026-11-20T12:59:00Z"),
    ])  # fmt: skip
    world.jobs["job1"]["submittedBy"] = ANN

    result = run("show", "job1")

    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["State", "running"] in lines
    assert ["Priority", "-3"] in lines
    assert ["Submitted", "By", ANN] in lines
    assert ["1", "job1", "preempted", "2026-11-20", "12:00:05", "0:19:05", "preempted", "for", "job4"] in lines
    assert ["2", "job1-qstamp-2", "active", "2026-11-20", "12:30:00", "0:01:00"] in lines
    assert ["2026-11-20", "12:00:00", "pending", "submitted", "by", ANN] in lines
    assert not [line for line in lines if line[:1] == ["Position"]]


def test_show_names_the_training_job_its_logs_and_the_command_for_them(world: FakeApi, run: Terminal) -> None:
    world.add("job1")
    assert "Log Streams" not in run("show", "job1").stdout
    world.start("job1")
    world.preempt("job1")
    world.start("job1")
    lines = [" ".join(line.split()) for line in run("show", "job1").stdout.splitlines()]
    assert "Training Job arn:aws:sagemaker:us-east-1:123456789012:training-job/job1-qstamp-2" in lines
    assert "Log Streams /aws/sagemaker/TrainingJobs job1-qstamp-2/algo-*" in lines
    assert "Logs trainmaster logs job1" in lines


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            {"type": "NotBefore", "message": "starts no earlier than 2026-11-20T15:00:00Z, as requested"},
            "Not in the queue yet; starts no earlier than 2026-11-20 15:00:00 UTC (in 2 hours), as requested.",
        ),
        (
            {"type": "WaitsForJobs", "message": "waits for job parent to end", "jobs": ["parent"]},
            "Not in the queue yet; waits for job parent to end.",
        ),
        (
            {"type": "Held", "message": "held by ann until it is released", "by": "ann"},
            "Held by ann until it is released.",
        ),
    ],
)
def test_a_job_that_enters_the_queue_by_itself_is_not_said_to_wait_for_a_release(
    world: FakeApi, run: Terminal, reason: dict[str, str], told: str
) -> None:
    world.add("job1", "held", reason=reason)
    for command in (("priority", "job1", "3"), ("wait", "job1", "--timeout", "0")):
        assert run(*command).stdout.startswith(f"job1: {told}")
    assert ("release" in run("why", "job1").stdout) == (reason["type"] == "Held")


def test_show_says_where_attempts_ran_and_how_often_spot_instances_were_lost(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running", 0, attempts=[
        an_attempt("job1", 1, outcome="reclaimed", endedAt="2026-11-20T12:20:05Z", units={"spring": 2}),
        an_attempt("job1", 2, units={"p5-spot": 2}, interruptions=3, startedAt="2026-11-20T12:59:00Z"),
    ])  # fmt: skip
    lines = [line.split() for line in run("show", "job1").stdout.splitlines()]
    assert ["1", "job1", "2", "x", "spring", "reclaimed", "2026-11-20", "12:00:05", "0:19:05", "0"] in lines
    second = ["2", "job1-qstamp-2", "2", "x", "p5-spot", "active", "2026-11-20", "12:00:05", "0:01:00", "3"]
    assert second in lines


def test_show_request_prints_what_submit_takes(world: FakeApi, run: Terminal) -> None:
    world.add("job1", jobDetails=a_request("job1", HyperParameters={"name": "größer"}))
    assert json.loads(run("show", "job1", "--request").stdout) == world.jobs["job1"]["jobDetails"]
    assert "größer" in run("show", "job1", "--request").stdout


def test_show_says_that_values_are_redacted(world: FakeApi, run: Terminal) -> None:
    world.add("job1", redacted=["Environment.A", "Environment.B", "Tags[1].Value", "HyperParameters.C"])
    for options in ((), ("--request",), ("--json",)):
        warning = run("show", "job1", *options).stderr
        assert "Values of the request are redacted" in warning
        assert "Environment.A, Environment.B, Tags[1].Value and 1 more." in warning


def test_show_as_json_is_what_the_api_said(world: FakeApi, run: Terminal) -> None:
    job = world.add("job1")
    assert json.loads(run("show", "job1", "--json").stdout) == job


def test_why_is_one_paragraph_of_state_position_reason_and_outlook(world: FakeApi, run: Terminal) -> None:
    world.add("job3", priority=1, position=2, reason=waits_for_capacity(), **starts("2026-11-20T14:30:00Z"))

    assert run("why", "job3").stdout == (
        "job3 waits at position 2, with priority 1, since 2026-11-20 12:00:00 UTC (60 minutes ago). "
        "It waits for 1 x ml.p5.48xlarge: 0 free for it now. "
        "It is expected to start at 2026-11-20 14:30:00 UTC (in 2 hours).\n"
    )
    assert world.calls == [("GET", "/jobs/job3", {"why": "true"}), ("GET", "/manager", {})]


def test_why_tells_of_a_pause_of_the_manager(world: FakeApi, run: Terminal) -> None:
    world.add("waits")
    world.add("runs", state="running", attempts=[an_attempt("runs", 1)])
    world.put_pause({"reason": "maintenance \x1b[31mof the network."})
    told = (
        "The manager is paused since 2026-11-21 12:00:00 UTC (in 23 hours) by arn:aws:iam::111122223333:user/ann: "
        "maintenance [31mof the network. No job starts until an admin resumes it with `trainmaster resume`."
    )
    assert " ".join(run("why", "waits").stdout.split()).endswith(told)
    assert told in " ".join(json.loads(run("why", "waits", "--json").stdout)["explanation"].split())
    assert "paused" not in run("why", "runs").stdout


def test_why_answers_callers_who_may_not_read_the_state_of_the_manager(world: FakeApi, run: Terminal) -> None:
    def refuse(_: object) -> None:
        raise Refusal(403, "AccessDenied", "ann may not read this queue.", None, None)

    world.add("job1")
    setattr(world, "get_manager", refuse)  # noqa: B010 -- its type is that of the answer
    assert run("why", "job1").stdout.startswith("job1 waits")


def test_why_as_json_has_the_facts_and_the_words(world: FakeApi, run: Terminal) -> None:
    world.add("job3", position=2, reason=waits_for_capacity())
    answer = json.loads(run("why", "job3", "--json").stdout)
    assert answer.pop("explanation").startswith("job3 waits at position 2")
    assert answer == {
        "jobName": "job3",
        "jobState": "pending",
        "priority": 0,
        "position": 2,
        "positionAtLeast": None,
        "reason": waits_for_capacity(),
        "deadline": None,
        "why": None,
        "elastic": None,
        "kind": "training",
        "details": None,
        **starts(None),
    }


@pytest.mark.parametrize("command", ["show", "why", "wait"])
def test_a_job_that_does_not_exist_is_told_in_one_line(run: Terminal, command: str) -> None:
    result = run(command, "nope")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "Error: There is no job nope. See `trainmaster ls --all`.\n"


def _names(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()[2:]]
