"""Every state of a job satisfies the state machine of SageMaker's TrainingQueuedJob, as its source has it."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fake_api import P5, a_request, a_view, an_attempt
from trainmaster.client.batch.answers import STATES, description_of, newest_attempt, status_of
from trainmaster.client.batch.names import Arns, batch_name_of, candidate_names, job_in, stem_in, stem_of
from trainmaster.domain.jobs.job import ACTIVE, ENDED, JobState

ARNS = Arns("aws-us-gov", "us-gov-west-1", "123456789012")
NO_TRAINING_JOB = {"SUBMITTED", "PENDING", "RUNNABLE"}
TRAINING_JOB = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:training-job/(.+)")
REASONS = st.sampled_from(
    [None, {"type": "Held", "message": "held by ann"}, {"type": "NotBefore", "message": "waits for its time"}]
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    state = draw(st.sampled_from([state.value for state in JobState]))
    ran = st.sampled_from(["preempted", "resized", "returned", "failed"])
    past = [
        an_attempt(
            "job1", number, outcome=draw(ran), endedAt="2026-11-20T12:20:00Z", reason=draw(st.none() | st.text())
        )
        for number in range(1, draw(st.integers(1, 4)))
    ]
    launched, started = draw(st.sampled_from([(False, False), (True, False), (True, True)]))
    newest = an_attempt("job1", len(past) + 1, launched=launched, outcome="active") | (
        {} if started else {"startedAt": None}
    )
    attempts = [*past, newest] if state in {each.value for each in ACTIVE} or draw(st.booleans()) else past
    name = attempts[-1]["trainingJobName"] if attempts else None
    return a_view("job1", state, attempts=attempts, trainingJobName=name, reason=draw(REASONS)) | {
        "failureReason": draw(st.none() | st.text())
    }


@given(jobs())
def test_the_sdk_finds_a_training_job_exactly_if_there_is_one(job: Any) -> None:
    described = description_of(job, ARNS, "queue")
    if described["status"] in NO_TRAINING_JOB:
        assert job["jobState"] in ("pending", "preempted", "held", "starting")
        if job["jobState"] == "starting":
            assert newest_attempt(job) is None
    elif newest_attempt(job) is None:
        assert job["jobState"] in {state.value for state in ENDED}, "only a job that ended may never have started"
        assert "latestAttempt" not in described
    else:
        found = TRAINING_JOB.fullmatch(described["latestAttempt"]["serviceResourceId"]["value"])
        assert found is not None
        assert found[1] == job["trainingJobName"]


@given(jobs())
def test_a_failed_job_has_a_reason_and_every_status_is_listed_under_its_state(job: Any) -> None:
    described = description_of(job, ARNS, "queue")
    assert job["jobState"] in STATES[described["status"]]
    assert described["status"] == status_of(job)
    assert described["statusReason"].strip() or job["failureReason"]
    if "preemptionSummary" in described:
        assert described["preemptionSummary"]["recentPreemptedAttempts"], "AWS's notebook reads the first of them"
    assert all(TRAINING_JOB.fullmatch(each["serviceResourceId"]["value"]) for each in described["attempts"])


NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True)
SAGEMAKER = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


@given(NAMES, st.text(min_size=1, max_size=64), st.text(min_size=1, max_size=64))
def test_every_name_of_batch_has_one_in_the_queue_that_sagemaker_takes(name: str, token: str, other: str) -> None:
    names = list(candidate_names(name, token))
    assert all(SAGEMAKER.fullmatch(each) and "-qstamp-" not in each for each in names)
    assert names == list(candidate_names(name, token))
    assert (names[-1] == list(candidate_names(name, other))[-1]) == (token == other)
    assert all(batch_name_of(each) in (name, None) for each in names)
    assert stem_in(names[-1]) == stem_of(name)
    assert job_in(ARNS.of_job(names[-1])) == names[-1]


def test_a_request_needs_no_tags_to_be_described() -> None:
    job: Any = a_view("job1", jobDetails={k: v for k, v in a_request("job1").items() if k != "Tags"}, demand=[{P5: 1}])
    assert description_of(job, ARNS, "queue")["tags"] == {}
