"""Admission of requests: normalised jobs, access to shares, warnings about budgets and deadlines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api_world import ALICE, Recorder, StillClock
from builders import IMAGE, NOW, a_request, a_running_job, an_observation, at, pools_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import BudgetExhausted, InvalidRequest, ShareNotAllowed
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState, ParentRule
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import (
    Budget,
    FailureClass,
    Limits,
    Policy,
    PreemptionOverrides,
    Share,
    WhenSpent,
)
from trainmaster.domain.shares.usage import period_end
from trainmaster.local.memory.store import MemoryStore
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.change import ApiContext
from trainmaster.service.submit import Submission, plan, submit

DOOR = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))
HOUR = timedelta(hours=1)


class Entrance:
    """The door and the memory behind it, under a policy."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.clock = StillClock()
        self.store = MemoryStore(default_pools=pools_of(), policy=policy, now=self.clock.now)
        self.api_context = ApiContext(self.store, Recorder(), self.clock)

    def submit(self, name: str = "job1", caller: str | None = ALICE, **options: str) -> Submission:
        return submit(self.api_context, Caller(caller), DOOR, asking(name, **options))

    def ran(self, share: str, hours: float) -> None:
        """A job of the share has held its one instance, of eight accelerators, for so long, and has just ended."""
        now = self.clock.now()
        job = a_running_job(f"past-{share}", share=share, now=now - hours * HOUR, digest="x")
        stored = self.store.submit(job, {})
        ended = lifecycle.observe(stored, an_observation(stored, status=Status.COMPLETED), now)
        assert ended is not None
        assert self.store.transition([(stored, ended)])


def asking(name: str, /, **options: str) -> dict[str, Any]:
    return a_request(name, options={key.replace("_", "-"): text for key, text in options.items()})


def made(request: dict[str, Any]) -> Job:
    return DOOR.admit(request, Caller(ALICE), pools_of(), NOW).job


def test_a_job_that_asks_for_notifications_is_told_if_there_is_no_topic():
    for notifies, told in [(False, True), (True, False)]:
        admission = replace(DOOR, notifies=notifies)
        advice = admission.admit(asking("job1", notify="end"), Caller(ALICE), pools_of(), NOW).warnings
        assert any("NotificationTopicArn" in each for each in advice) == told


class TestTheJob:
    def test_has_all_that_its_options_say(self):
        job = made(
            asking(
                "job1",
                share="vision",
                min_runtime="30m",
                cooldown="20m",
                preemption_delay="10m",
                max_preemptions="3",
                not_before="2026-11-22T08:00Z",
                deadline="2026-11-23T08:00Z",
                after="a+b",
                after_failure="run",
                group="sweep",
                max_concurrent="20",
                retry_algorithm="2",
            )
        )
        eight = datetime(2026, 11, 22, 8, tzinfo=UTC)
        assert (job.share, job.not_before, job.deadline) == ("vision", eight, eight + 24 * HOUR)
        assert job.preemption_overrides == PreemptionOverrides(
            min_runtime=HOUR / 2, cooldown=HOUR / 3, delay=HOUR / 6, max_preemptions=3
        )
        assert (job.after, job.if_parent_fails) == (("a", "b"), ParentRule.RUN)
        assert (job.group, job.max_concurrent, job.retries) == ("sweep", 20, {FailureClass.ALGORITHM: 2})

    def test_knows_what_it_runs_and_whether_it_saves_its_work(self):
        job = made(asking("job1"))
        assert (job.container_image, job.checkpointed) == (IMAGE, True)
        algorithm = {"AlgorithmName": "my-algorithm", "TrainingInputMode": "File"}
        other = made(a_request(AlgorithmSpecification=algorithm, checkpoint=False))
        assert (other.container_image, other.checkpointed) == ("my-algorithm", False)

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ({"min_runtime": "5h"}, "Tags[0].Value"),
            ({"group": "a", "max_preemptions": "0"}, "Tags[1].Value"),
            ({"after_failure": "run"}, "Tags[0].Value"),
            ({"after": "job1"}, "Tags[0].Value"),
        ],
    )
    def test_is_refused_beyond_what_the_queue_grants(self, options, field):
        with pytest.raises(InvalidRequest) as refused:
            made(asking("job1", **options))
        assert refused.value.field == field

    def test_limits_are_those_of_the_policy_in_force(self):
        generous = Entrance(Policy(limits=Limits(max_min_runtime=9 * HOUR)))
        assert generous.submit(min_runtime="5h").job.preemption_overrides.min_runtime == 5 * HOUR


RESEARCH = "arn:aws:sts::111122223333:assumed-role/research"
SHARES = Policy(
    shares={
        "vision": Share(name="vision", submitters=(RESEARCH, "arn:aws:sts::111122223333:assumed-role/ops/*")),
        "speech": Share(name="speech", submitters=("arn:aws:sts::111122223333:assumed-role/speech",)),
        "free": Share(name="free"),
    }
)


class TestShares:
    def test_any_name_will_do_where_there_are_none(self):
        submission = Entrance().submit(share="whatever")
        assert submission.job.share == "whatever"
        assert [each for each in submission.warnings if "The queue has no shares" in each and "'whatever'" in each]

    def test_a_warning_is_only_for_a_share_where_there_are_none(self):
        warnings = [*Entrance().submit().warnings, *Entrance(SHARES).submit(share="vision").warnings]
        assert [each for each in warnings if "no shares" in each] == []

    @pytest.mark.parametrize("share", ["vision", "free", "default"])
    def test_one_s_own_everybody_s_and_the_default(self, share):
        assert Entrance(SHARES).submit(share=share).job.share == share

    def test_without_a_tag_it_is_the_default(self):
        assert Entrance(SHARES).submit().job.share == "default"

    def test_one_of_others_is_not_allowed(self):
        entrance = Entrance(SHARES)
        with pytest.raises(ShareNotAllowed, match=f"{ALICE} may not use the share speech") as refused:
            entrance.submit(group="g", share="speech")
        assert refused.value.field == "Tags[1].Value"
        assert entrance.store.find("job1") is None

    def test_a_session_may_not_name_itself_into_a_share(self):
        """Callers choose their session's name: it must not match a pattern for another role's."""
        with pytest.raises(ShareNotAllowed):
            Entrance(SHARES).submit(caller="arn:aws:sts::111122223333:assumed-role/other/ops", share="vision")

    def test_a_caller_that_is_not_known_has_no_share_but_the_free_ones(self):
        assert Entrance(SHARES).submit(caller=None, share="free").job.submitted_by is None
        with pytest.raises(ShareNotAllowed, match="An unknown caller"):
            Entrance(SHARES).submit(caller=None, share="vision")

    def test_the_default_share_can_be_for_some_alone(self):
        policy = Policy(
            shares={"default": Share(name="default", submitters=("arn:aws:sts::111122223333:assumed-role/x",))}
        )
        with pytest.raises(ShareNotAllowed) as refused:
            Entrance(policy).submit()
        assert refused.value.field == "Tags"

    @pytest.mark.parametrize(("share", "meant"), [("visio", "Did you mean 'vision'? "), ("zzz", "")])
    def test_one_that_does_not_exist_is_refused_with_those_that_do(self, share, meant):
        with pytest.raises(InvalidRequest, match=f"There is no share {share}") as refused:
            Entrance(SHARES).submit(share=share)
        assert refused.value.field == "Tags[0].Value"
        assert refused.value.hint == f"{meant}The shares are: default, free, speech, vision."

    def test_a_dry_run_asks_the_same(self):
        entrance = Entrance(SHARES)
        with pytest.raises(ShareNotAllowed):
            plan(entrance.api_context, Caller(ALICE), DOOR, asking("job1", share="speech"))


def with_budget(**fields: Any) -> Policy:
    budget = Budget(**{"gpu_hours": 16, "period": 24 * HOUR, "when_spent": WhenSpent.REFUSE, **fields})
    return Policy(shares={"vision": Share(name="vision", budget=budget), "other": Share(name="other")})


class TestBudgets:
    def test_a_spent_one_refuses_and_says_when_it_renews(self):
        policy = with_budget()
        entrance = Entrance(policy)
        entrance.ran("vision", hours=2)
        with pytest.raises(BudgetExhausted, match=r"vision has spent 16\.0 of its 16\.0 GPU-hours") as refused:
            entrance.submit(share="vision")
        renews = period_end(policy.shares["vision"].budget, NOW)
        assert renews.strftime("%Y-%m-%dT%H:%M:%SZ") in str(refused.value.hint)
        assert refused.value.field == "Tags[0].Value"
        entrance.clock.moment = renews
        assert entrance.submit(share="vision").new

    def test_running_jobs_count_against_the_budget(self):
        entrance = Entrance(with_budget())
        entrance.store.submit(a_running_job("now", share="vision", now=NOW, digest="x"), {})
        assert entrance.submit("early", share="vision").new
        entrance.clock.moment = NOW + 2 * HOUR
        with pytest.raises(BudgetExhausted):
            entrance.submit("late", share="vision")

    def test_one_that_is_not_spent_lets_in(self):
        entrance = Entrance(with_budget())
        entrance.ran("vision", hours=1.9)
        assert entrance.submit(share="vision").new

    def test_other_shares_have_their_own(self):
        entrance = Entrance(with_budget())
        entrance.ran("vision", hours=20)
        assert entrance.submit(share="other").new

    def test_where_jobs_wait_for_the_next_period_they_are_let_in(self):
        entrance = Entrance(with_budget(when_spent=WhenSpent.WAIT))
        entrance.ran("vision", hours=20)
        assert entrance.submit(share="vision").job.state is JobState.PENDING

    def test_repeating_an_accepted_submission_returns_the_same_answer(self):
        entrance = Entrance(with_budget())
        assert entrance.submit(share="vision").new
        entrance.ran("vision", hours=2)
        assert not entrance.submit(share="vision").new

    def test_a_dry_run_asks_the_same(self):
        entrance = Entrance(with_budget())
        entrance.ran("vision", hours=2)
        with pytest.raises(BudgetExhausted):
            plan(entrance.api_context, Caller(ALICE), DOOR, asking("job1", share="vision"))


class TestDeadlines:
    """The request's limit is an hour (`builders.a_request`)."""

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"deadline": "2026-11-21T22:00Z"}, ""),
            ({"deadline": "2026-11-21T13:30Z"}, "it left less time to wait than it may run"),
            ({"deadline": "2026-11-21T12:30Z"}, "only if it is faster than most similar jobs"),
            ({"deadline": "2026-11-21T11:30Z"}, "can no longer be done by 2026-11-21T11:30:00Z"),
            ({"deadline": "2026-11-21T22:00Z", "not_before": "2026-11-21T20:30Z"}, "it left less time to wait"),
            ({"deadline": "2026-11-21T22:00Z", "not_before": "2026-11-21T21:30Z"}, "only if it is faster"),
        ],
    )
    def test_warnings(self, options, said):
        entrance = Entrance()
        _, planned, _ = plan(entrance.api_context, Caller(ALICE), DOOR, asking("job1", **options))
        submitted = entrance.submit(**options).warnings
        assert planned == submitted
        told = [text for text in submitted if text.startswith("This job ")]
        assert [said in text for text in told] == ([True] if said else [])

    def test_the_same_request_again_after_its_deadline_is_no_error(self):
        entrance = Entrance()
        entrance.submit(deadline="2026-11-21T13:30Z")
        entrance.clock.moment = at(7200)
        again = entrance.submit(deadline="2026-11-21T13:30Z")
        assert (again.new, "can no longer be done" in again.warnings[-1]) == (False, True)
