"""`run_job`: a job as a step of another program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli_fixtures import client, world
from doc_blocks import blocks
from fake_api import FakeApi, a_request
from trainmaster import ApiClient, JobFailed, job_facts, run_job
from trainmaster.client.api.errors import ApiError, Unreachable

__all__ = ["client", "world"]
REQUEST = a_request("job1", OutputDataConfig={"S3OutputPath": "s3://bucket/out/"})


class Clock:
    """A clock that only sleeping advances; then the next thing happens."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self.seconds, self.happens = 0.0, list(happens)

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        assert self.happens, "the step waits for something that the test does not foresee"
        self.happens.pop(0)()


def run(client: ApiClient, clock: Clock, shown: list[str] | None = None) -> Any:
    show = ([] if shown is None else shown).append
    return run_job(client, REQUEST, show=show, sleep=clock.sleep, clock=clock)


def test_a_job_is_submitted_followed_and_returned(client: ApiClient, world: FakeApi) -> None:
    shown: list[str] = []
    clock = Clock(
        lambda: world.start("job1"),
        lambda: world.preempt("job1"),
        lambda: None,
        lambda: world.start("job1"),
        lambda: world.end("job1"),
    )
    job = run(client, clock, shown)
    assert (job["jobState"], clock.seconds) == ("completed", 75.0)
    assert [line.split(";")[0].split(".")[0].split(",")[0] for line in shown] == [
        "job1: Waiting in the queue",
        "job1: Running",
        "job1: Preempted",
        "job1: Running",
        "job1: Completed",
    ]
    assert job_facts(job) == {
        "trainmaster.job": "job1",
        "trainmaster.state": "completed",
        "trainmaster.attempts": 2,
        "trainmaster.priority": 0,
        "trainmaster.share": "default",
        "sagemaker.training_job": "job1-qstamp-2",
        "sagemaker.model_artifacts": "s3://bucket/out/job1-qstamp-2/output/model.tar.gz",
    }


@pytest.mark.parametrize("state", ["failed", "stopped", "cancelled"])
def test_a_job_that_does_not_complete_is_an_error_with_its_reason(
    client: ApiClient, world: FakeApi, state: str
) -> None:
    with pytest.raises(JobFailed, match=f"Training job job1 is {state}: AlgorithmError: bad  data") as caught:
        run(client, Clock(lambda: world.end("job1", state, "AlgorithmError: bad \ndata")))
    assert "sagemaker.model_artifacts" not in job_facts(caught.value.job)


def test_the_same_step_finds_its_job_again(client: ApiClient, world: FakeApi) -> None:
    client.submit(REQUEST)
    world.end("job1")
    assert run(client, Clock())["jobState"] == "completed"
    assert list(world.jobs) == ["job1"]


class Interrupted(BaseException):
    """Raised by orchestrators in a step that is to end."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Interrupted])
def test_an_interruption_cancels_the_job(client: ApiClient, world: FakeApi, kind: type[BaseException]) -> None:
    def interrupt() -> None:
        raise kind

    with pytest.raises(kind):
        run(client, Clock(interrupt))
    assert world.jobs["job1"]["jobState"] == "cancelled"
    reasons = [query["reason"] for method, _, query in world.calls if method == "DELETE"]
    assert reasons == ["the program that waited for it was interrupted"]


def test_an_interruption_is_not_hidden_by_a_job_that_has_just_ended(client: ApiClient, world: FakeApi) -> None:
    def interrupt() -> None:
        world.end("job1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(client, Clock(interrupt))
    assert world.jobs["job1"]["jobState"] == "completed"


def test_a_short_outage_is_survived_and_a_long_one_leaves_the_job(client: ApiClient, world: FakeApi) -> None:
    def out() -> None:
        world.outage = [503] * 3

    assert run(client, Clock(out, lambda: world.end("job1")))["jobState"] == "completed"
    world.jobs.clear()
    with pytest.raises(Unreachable):
        run(client, Clock(*[out] * 61))
    assert world.jobs["job1"]["jobState"] == "pending"


def test_a_refused_request_is_the_apis_error(client: ApiClient) -> None:
    with pytest.raises(ApiError):
        run_job(client, a_request("job1", RoleArn="other"))


def test_the_page_runs_a_job_and_prints_its_facts(
    client: ApiClient, world: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    block = next(
        each for each in blocks() if each.page.endswith("how-to/orchestrators.md") and "show=print" in each.text
    )
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def run_here(_: object, request: Any, show: Any) -> Any:
        return run_job(client, request, show=show, sleep=lambda _: world.end("job1"))

    text = block.text.replace(", run_job", "")
    exec(compile(text, str(block), "exec"), {"request": REQUEST, "run_job": run_here})
    shown = capsys.readouterr().out
    assert "job1: Completed" in shown
    assert "'trainmaster.job': 'job1'" in shown
