"""Writing commands: submit, plan, cancel, hold, release, priority, resized."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli_terminal import Terminal
from doc_blocks import blocks, commands
from fake_api import ANN, P5, ROLE, FakeApi, a_request, starts


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
    assert result.stderr == "Warning: The job has no CheckpointConfig: preempted, it would start from the beginning.\n"


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


def test_a_request_may_be_in_yaml_as_for_the_aws_cli(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    request = a_request("job1", HyperParameters={"day": "2026-11-30", "rate": "0.1"})
    path = tmp_path / "job.yaml"
    path.write_text("---\n" + yaml.safe_dump(request).replace("'2026-11-30'", "2026-11-30"))
    run("submit", str(path))
    assert world.jobs["job1"]["jobDetails"] == request


def test_a_manifest_of_sagemakers_controllers_is_a_request(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    spec = {"roleARN": ROLE, "resourceConfig": {"instanceType": P5, "instanceCount": 1, "volumeSizeInGB": 30}}
    manifest = {
        "apiVersion": "sagemaker.services.k8s.aws/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "job1"},
    }
    result = run("submit", _file(tmp_path, manifest | {"spec": spec}), "--option", "share=vision")
    assert result.exit_code == 0
    tags = [{"Key": "trainmaster:share", "Value": "vision"}]
    assert world.jobs["job1"]["jobDetails"] == a_request("job1", Tags=tags)


def test_submit_as_json_is_the_answer(run: Terminal, tmp_path: Path) -> None:
    result = run("submit", _file(tmp_path, a_request("job1")), "--json")
    answer = json.loads(result.stdout)
    assert (answer["jobName"], answer["jobState"], answer["wouldPreempt"]) == ("job1", "pending", ["job1"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("TrainingJobName = job1", "is not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ("TrainingJobName: job1\nTrainingJobName: job2", "'TrainingJobName' is a duplicate key"),
        ("HyperParameters: {rate: .nan}", "is not valid YAML: NaN is not a number in JSON"),
        ("HyperParameters: {2026-11-30: a}", "is not valid YAML: keys must be str"),
        ("- TrainingJobName: job1\na: b", "is not valid YAML"),
        ("metadata:\n  name: job1\nspec: {}\n", "A manifest, in YAML or JSON, needs apiVersion and kind."),
        ('{"a": NaN}', "is not valid JSON: NaN is not a number in JSON"),
        ("[]", "does not contain a JSON object"),
        ("\udcff", "is not text in UTF-8"),
        ('{"Tags": {"priority": "1"}}', "Tags: The request's tags are not a list."),
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
    told = f"{tmp_path}/nope.json cannot be read: No such file or directory. Check the path, or give - to read"
    assert result.stderr == f"Error: {told} the request from standard input.\n"


@pytest.mark.parametrize("option", ["preemptible", "=false"])
def test_an_option_without_name_or_value_is_wrong_usage(run: Terminal, tmp_path: Path, option: str) -> None:
    result = run("submit", _file(tmp_path, a_request("job1")), "--option", option)
    assert (result.exit_code, "NAME=VALUE" in result.stderr) == (2, True)


def test_submitting_the_same_request_again_says_so_with_a_code_of_its_own(
    world: FakeApi, run: Terminal, tmp_path: Path
) -> None:
    path = _file(tmp_path, a_request("job1"))
    assert run("submit", path).exit_code == 0
    again = run("submit", path)
    assert again.exit_code == 7
    told = "job1 exists already: the same request was submitted before, and nothing was submitted now. Waiting"
    assert again.stdout.startswith(told)
    answer = run("submit", path, "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["submittedBefore"]) == (7, True)


def test_a_submission_whose_first_answer_was_lost_is_new(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.add("job1", jobDetails=a_request("job1"))
    world.outage = [503]
    result = run("submit", _file(tmp_path, a_request("job1")))
    assert (result.exit_code, result.stdout.startswith("Submitted job1: ")) == (0, True)


def test_resubmit_takes_the_first_name_that_is_free(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    path = _file(tmp_path, a_request("job1"))
    world.add("job1-3", jobDetails=a_request("job1-3", HyperParameters={"a": "b"}))
    told = [run("submit", path, "--resubmit") for _ in range(3)]
    assert [result.exit_code for result in told] == [0, 0, 0]
    names = ["job1", "job1-2", "job1-4"]
    assert [result.stdout.partition(":")[0] for result in told] == [f"Submitted {name}" for name in names]
    assert [world.jobs[name]["jobDetails"]["TrainingJobName"] for name in names] == names


def test_a_new_name_is_no_longer_than_names_may_be(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    own = "a" * 60 + "-bc"
    path = _file(tmp_path, a_request(own))
    assert run("submit", path).exit_code == 0
    assert run("submit", path, "--resubmit").stdout.startswith(f"Submitted {'a' * 60}-2: ")


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (
            {"RoleArn": "other"},
            (5, "The queue may not pass this role. Use another role."),
        ),
        (
            {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 3}},
            (
                2,
                "The pool's cap is 2. Ask for fewer instances.",
            ),
        ),
        (
            {"HyperParameters": {"a": "b"}},
            (
                7,
                (
                    "job1 belongs to a job with another request. Nothing was "
                    "submitted; `trainmaster submit --resubmit` takes a new name."
                ),
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
    assert run("plan", _file(tmp_path, a_request("job1"))).stdout == "It would start immediately.\n"


def test_plan_says_where_the_job_would_start_unless_the_request_does(
    world: FakeApi, run: Terminal, tmp_path: Path
) -> None:
    world.planned = {"decision": "start", "position": 1, "reason": None, "wouldTake": {"lab": 2}}
    request = a_request("job1") | {"ResourceConfig": {"InstanceCount": 1, "VolumeSizeInGB": 30}}
    assert run("plan", _file(tmp_path, request)).stdout.startswith("It would start immediately on 2 x lab.")


def test_plan_says_why_expansion_would_make_no_pool(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    world.planned = {"wouldCreateNone": "5 x ml.g5.xlarge would exceed 9 dollars an hour"}
    text = run("plan", _file(tmp_path, a_request("job1"))).stdout
    assert (
        "Even with expansion.enabled=true, the queue would create no pool for it: 5 x ml.g5.xlarge would exceed" in text
    )


def test_plan_of_a_preemption_names_the_victims(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
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
    assert result.stdout == ("waits: Cancelled while waiting in the queue.\nruns: Stopping; it will not be resumed.\n")


def test_one_job_that_cannot_be_changed_does_not_keep_the_others_from_it(world: FakeApi, run: Terminal) -> None:
    world.add("over", "completed")
    world.add("waits")

    result = run("cancel", "over", "nope", "waits", "waits")

    assert result.exit_code == 4  # the code of the first that failed
    assert result.stdout == "waits: Cancelled while waiting in the queue.\n"
    assert result.stderr == (
        "Error: job over is completed.\nError: There is no job nope. See `trainmaster ls --all`.\n"
    )


def test_a_job_of_another_person_does_not_keep_the_others_from_it(world: FakeApi, run: Terminal) -> None:
    world.add("theirs")
    world.others = {"theirs"}
    world.add("mine")
    result = run("cancel", "theirs", "mine")
    assert (result.exit_code, result.stdout) == (5, "mine: Cancelled while waiting in the queue.\n")
    assert result.stderr.startswith("Error: ada may not change the job theirs")


def test_a_common_obstacle_is_reported_once(world: FakeApi, run: Terminal) -> None:
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
    assert run("hold", "job1").stdout == "job1: Held in the queue until it is released.\n"
    assert run("release", "job1").stdout == "job1: Waiting in the queue.\n"
    assert world.jobs["job1"]["jobState"] == "pending"
    again = run("release", "job1")
    assert (again.exit_code, again.stderr) == (4, "Error: Job job1 is pending, not held.\n")


@pytest.mark.parametrize("value", [-5, 0, 100, -1_000_000])
def test_priority_takes_negative_numbers_as_they_are(world: FakeApi, run: Terminal, value: int) -> None:
    world.add("job1", priority=3)

    result = run("priority", "job1", str(value))

    assert (result.exit_code, world.jobs["job1"]["priority"]) == (0, value)
    assert result.stdout == f"job1: Waiting in the queue. Priority {value}.\n"
    assert json.loads(run("priority", "job1", str(value), "--json").stdout)["priority"] == value


@pytest.mark.parametrize(
    ("arguments", "body", "shown"),
    [
        (("--max", "6"), {"maxInstances": 6}, "(2-6)"),
        (("--min", "1", "--max", "6"), {"minInstances": 1, "maxInstances": 6}, "(1-6)"),
    ],
)
def test_scale_sets_the_bounds_that_are_given(world: FakeApi, run: Terminal, arguments, body, shown) -> None:
    sizes = {"minInstances": 2, "maxInstances": 4, "instanceStep": 1, "instanceValues": None}
    world.add("job1", elastic={**sizes, "size": None, "resizing": None})
    result = run("scale", "job1", *arguments)
    assert (result.exit_code, result.stdout) == (0, f"job1: Waiting in the queue. Size {shown}.\n")
    assert world.calls[-1][:3] == ("PATCH", "/jobs/job1", body)
    assert json.loads(run("scale", "job1", *arguments, "--json").stdout)["elastic"]["maxInstances"] == 6


def test_scale_refuses_what_changes_nothing_and_tells_what_the_queue_refuses(world: FakeApi, run: Terminal) -> None:
    world.add("job1")
    assert run("scale", "job1").exit_code == 2
    assert run("scale", "job1", "--max", "0").exit_code == 2
    assert world.calls == []
    refused = run("scale", "job1", "--max", "3")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (4, "Error: Job job1 is not elastic.")


@pytest.mark.parametrize("value", ["-x", "--much", "1.5", "1000001", "-1000001", "1e3"])
def test_priority_refuses_what_is_no_priority(world: FakeApi, run: Terminal, value: str) -> None:
    assert run("priority", "job1", value).exit_code == 2
    assert world.calls == []


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (("--done", "2"), {"outcome": "done", "instances": 2}),
        (("--refused", "not now"), {"outcome": "refused", "reason": "not now"}),
    ],
)
def test_resized_answers_a_custom_resize(world: FakeApi, run: Terminal, said: tuple[str, ...], sent: Any) -> None:
    world.add("job1", state="resizing")

    result = run("resized", "job1", "--token", "t1", *said)

    assert (result.exit_code, result.stdout.startswith("job1: Running")) == (0, True)
    assert world.calls == [("POST", "/jobs/job1/resize", {"token": "t1", **sent})]
    again = run("resized", "job1", "--token", "t1", *said)
    assert (again.exit_code, again.stderr) == (4, "Error: the resize of this token is over.\n")


def test_the_command_of_the_page_on_custom_resizes_answers_its_request(world: FakeApi, run: Terminal) -> None:
    on_page = [each for each in blocks() if each.page == "docs/how-to/custom-resize.md"]
    (request,) = [json.loads(each.text) for each in on_page if each.language == "json"]
    ((_, *words),) = [commands(each)[0] for each in on_page if each.language == "sh"]
    world.add(request["job"], state="resizing")

    assert run(*words).exit_code == 0
    answer = {"token": request["token"], "outcome": "done", "instances": request["to"]}
    assert world.calls == [("POST", request["answerTo"]["path"], answer)]


@pytest.mark.parametrize("said", [(), ("--done", "2", "--refused", "no"), ("--done", "0"), ("--done", "many")])
def test_resized_wants_one_answer(world: FakeApi, run: Terminal, said: tuple[str, ...]) -> None:
    assert run("resized", "job1", "--token", "t1", *said).exit_code == 2
    assert world.calls == []


def test_the_history_names_the_user_of_a_change(world: FakeApi, run: Terminal) -> None:
    world.add("job1")
    run("hold", "job1")
    assert f"Held by {ANN}." in run("why", "job1").stdout
