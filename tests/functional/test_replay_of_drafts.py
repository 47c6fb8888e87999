"""Replays of a queue's own past with a draft of its settings: the past is what the simulated queue really did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from urllib.parse import parse_qsl, unquote

import boto3
import httpx
import pytest

from api_world import CONTEXT, ApiWorld, rest_event
from builders import ADA, G5, NOW, P5
from samples import sample
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import Forbidden, Refused
from trainmaster.client.api.retry import Retry
from trainmaster.client.replay.period import Period
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Expansion, Order, Policy, Preemption, Resizes
from trainmaster.handlers.api.app import build_app
from trainmaster.local.replay.drafts.__main__ import main, replay
from trainmaster.local.replay.drafts.queue import DraftReplay
from trainmaster.local.replay.drafts.week import policies_of, week_of
from trainmaster.local.virtual_time import instant_profile
from trainmaster.service.change import cancel, change
from world import World, a_request

HOUR = 3600.0
STAGE = "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod"
NO_COOLDOWN = Preemption(cooldown=timedelta(0))


class Past:
    """A queue that has worked for a while, and its API."""

    def __init__(self, pools: str = f"{P5}=4", **policy: Any) -> None:
        policy = {"preemption": NO_COOLDOWN} | policy
        self.hidden: dict[str, int] = {}
        self.world = World(pools=pools, policy=Policy(**policy), profile=instant_profile(300))

    def add(
        self,
        name: str,
        seconds: float,
        *,
        share: str = "default",
        options: Mapping[str, Any] | None = None,
        checkpoints: bool = True,
        limit: float = 86_400,
        **request: Any,
    ) -> None:
        made = a_request(name, training_seconds=seconds, **request)
        tags = {"share": share} | dict(options or {})
        made["Tags"] += [{"Key": f"trainmaster:{key}", "Value": str(value)} for key, value in tags.items()]
        made["Environment"]["HF_TOKEN"] = "hidden-from-replays"
        made["StoppingCondition"]["MaxRuntimeInSeconds"] = int(limit)
        if not checkpoints:
            del made["CheckpointConfig"]
        self.world.submit_request(made)

    def run(self, hours: float) -> None:
        self.world.run(hours * HOUR, step=60)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, query = unquote(request.url.path.removeprefix("/prod")), dict(parse_qsl(request.url.query.decode()))
        event = rest_event(request.method, path, request.content.decode() or None, query, caller=self.caller)
        if path in self.hidden:
            kind = {403: "AccessDenied", 404: "JobNotFound"}[self.hidden[path]]
            error = {"type": kind, "message": "No.", "field": None, "hint": None}
            return httpx.Response(self.hidden[path], json={"error": error})
        found = self.app.resolve(event, CONTEXT)
        return httpx.Response(found["statusCode"], content=(found["body"] or "").encode())

    def document(
        self,
        draft: Mapping[str, Any] | None = None,
        *,
        caller: str = ADA.name,
        viewers: tuple[str, ...] = ("*",),
        **period: Any,
    ) -> dict[str, Any]:
        application = self.world.application()
        application.settings = replace(application.settings, admins=(ADA.principal,), viewers=viewers)
        self.caller, self.app = caller, build_app(application)
        session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
        api = ApiClient(
            STAGE,
            session=session,
            transport=httpx.MockTransport(self.handle_request),
            retry=Retry(max_attempts=1),
            environ={},
        )
        with api:
            changed = {**settings_document(self.world.policy), **(draft or {})}
            document = Period(api, self.world.now(), **period).document(changed)
        return json.loads(json.dumps(document))

    def report(self, **draft: Any) -> dict[str, Any]:
        return replay(self.document(draft), lambda _: None)

    def outcomes(self, **draft: Any):
        """The outcomes with the settings in force, and with the draft, by job."""
        document = self.document(draft)
        week = week_of(document)
        return [
            {each.past.job.name: each for each in DraftReplay(week, policy).run()} for policy in policies_of(document)
        ]

    def first_starts(self) -> dict[str, float]:
        """Seconds that jobs really waited for their first start."""
        found = {}
        for name, job in self.world.memory.jobs.items():
            if job.attempts:
                found[name] = (job.attempts[0].created_at - job.entry_time).total_seconds()
        return found


def a_busy_day(past: Past) -> Past:
    """Jobs of two shares and several priorities, more than fit at once; some are preempted."""
    for number in range(5):
        past.add(f"low-{number}", 0.4 * HOUR, count=2, share="vision")
        past.run(0.05)
    past.add("urgent", 0.2 * HOUR, count=4, priority=50, share="speech")
    for number in range(4):
        past.add(f"mid-{number}", 0.25 * HOUR, count=1 + number, priority=10, share="speech")
        past.run(0.1)
    past.add("wide", 0.5 * HOUR, count=4, share="vision")
    past.add("small", 0.1 * HOUR, count=1, share="vision")
    past.run(4)
    return past


@pytest.mark.parametrize("order", sample(Order, 2))
def test_unchanged_settings_reproduce_what_happened(order):
    past = a_busy_day(Past(order=order))
    in_force, draft = past.outcomes()
    really = past.first_starts()
    assert {name: each.wait for name, each in in_force.items()} == {name: each.wait for name, each in draft.items()}
    # The real manager also acts on events that arrive within its minute.
    assert {name: each.wait for name, each in in_force.items()} == pytest.approx(really, abs=180)
    ends = {name: job.ended_at - job.entry_time for name, job in past.world.memory.jobs.items()}
    assert {name: each.completion for name, each in in_force.items()} == pytest.approx(
        {name: span.total_seconds() for name, span in ends.items()}, abs=600
    )
    by_start = sorted(really, key=lambda name: past.world.job(name).attempts[0].created_at)
    again = sorted(really, key=lambda name: past.world.job(name).entry_time + timedelta(seconds=in_force[name].wait))
    assert again == by_start
    preemptions = {name: job.preemptions for name, job in past.world.memory.jobs.items()}
    assert {name: each.preemptions for name, each in in_force.items()} == preemptions


def test_another_order_changes_who_goes_first():
    past = Past(order=Order.BACKFILL)
    past.add("long", HOUR, count=3, limit=1.2 * HOUR)
    past.run(0.1)
    past.add("wide", HOUR, count=4)
    past.run(0.05)
    past.add("narrow", 0.2 * HOUR, count=1, limit=0.3 * HOUR)
    past.run(3)
    in_force, draft = past.outcomes(order="fifo")
    assert in_force["narrow"].wait == pytest.approx(past.first_starts()["narrow"], abs=60)
    assert in_force["narrow"].wait < 120
    assert draft["narrow"].wait > 1.5 * HOUR
    report = past.report(order="fifo")
    assert [each["jobName"] for each in report["changed"]] == ["narrow"]
    assert report["changedJobs"] == 1
    assert report["inForce"]["total"]["waitP95Seconds"] < report["draft"]["total"]["waitP95Seconds"]


def test_a_quota_keeps_room_for_its_share():
    past = Past()
    past.add("others", 2 * HOUR, count=4, share="text")
    past.run(0.2)
    past.add("own", 0.5 * HOUR, count=2, share="vision")
    past.run(4)
    in_force, draft = past.outcomes(shares={"vision": {"nominal": {P5: 2}, "lending": "reserve"}})
    assert in_force["own"].wait == pytest.approx(past.first_starts()["own"], abs=120)
    assert in_force["own"].wait > HOUR
    assert draft["own"].wait == 0
    assert draft["others"].wait is None  # it never fits into what vision leaves it


def test_a_preemption_rule_protects_running_jobs():
    past = Past()
    past.add("first", HOUR, count=4)
    past.run(0.5)
    past.add("urgent", 0.2 * HOUR, count=4, priority=9)
    past.run(3)
    in_force, draft = past.outcomes(preemption={"minRuntimeSeconds": 2 * HOUR})
    assert (in_force["first"].preemptions, draft["first"].preemptions) == (1, 0)
    assert (in_force["urgent"].wait < 60, draft["urgent"].wait > 0.4 * HOUR) == (True, True)
    assert in_force["first"].lost_instance_seconds == pytest.approx(4 * 300, abs=10)
    assert draft["first"].lost_instance_seconds == 0
    report = past.report(preemption={"minRuntimeSeconds": 2 * HOUR})
    assert report["draft"]["total"]["preemptions"] == 0
    assert [group["name"] for group in report["draft"]["priorities"]] == ["9", "0"]
    assert report["inForce"]["total"]["dollars"] > report["draft"]["total"]["dollars"] > 0


def test_a_job_without_checkpoints_starts_again():
    past = Past()
    past.add("first", HOUR, count=4, checkpoints=False)
    past.run(0.5)
    past.add("urgent", 0.2 * HOUR, count=4, priority=9)
    past.run(4)
    in_force, _ = past.outcomes()
    assert in_force["first"].past.work == pytest.approx(HOUR, abs=5)
    assert in_force["first"].lost_instance_seconds == pytest.approx(4 * 0.5 * HOUR, rel=0.05)


def test_jobs_of_before_the_period_continue_first_and_those_that_have_not_ended_are_expected_to():
    past = Past()
    past.add("before", 3 * HOUR, count=4)
    past.run(0.1)
    past.add("waiting-before", HOUR, count=4)
    past.run(2)
    past.add("now", HOUR, count=4)
    document = past.document(days=1 / 24)
    week = week_of(document)
    begin = week.since
    assert [(each.job.name, each.worked, each.arrives == begin) for each in week.jobs] == [
        ("before", True, True),
        ("waiting-before", False, True),
        ("now", False, False),
    ]
    outcomes = {each.past.job.name: each for each in DraftReplay(week, policies_of(document)[0]).run()}
    assert outcomes["before"].wait is None
    assert outcomes["now"].completion is not None
    assert outcomes["waiting-before"].wait > HOUR  # from its real entry


def test_a_job_that_its_user_cancelled_while_it_waited_is_cancelled_then():
    past = Past()
    past.add("long", HOUR, count=4)
    past.run(0.1)
    past.add("given-up", HOUR, count=4)
    past.add("child", 0.1 * HOUR, count=1, options={"after": "given-up"})
    past.run(0.5)
    cancel(past.world.api_context, ADA, "given-up")
    past.run(2)
    in_force, _ = past.outcomes()
    assert (in_force["given-up"].wait, in_force["given-up"].completion) == (None, None)
    assert in_force["child"].completion is None


def test_a_job_that_its_user_stopped_is_no_completed_parent():
    past = Past()
    past.add("stopped", HOUR, count=4)
    past.run(0.05)
    past.add("child", 0.1 * HOUR, count=1, options={"after": "stopped"})
    past.run(0.2)
    cancel(past.world.api_context, ADA, "stopped")
    past.run(1)
    in_force, _ = past.outcomes()
    assert in_force["stopped"].completion == pytest.approx(0.25 * HOUR, abs=120)
    assert in_force["child"].wait is None


def test_dependencies_due_times_groups_and_limits_hold():
    past = Past()
    due = past.world.now() + timedelta(hours=1)
    past.add("parent", 0.5 * HOUR)
    past.add("child", 0.1 * HOUR, options={"after": "parent"})
    past.add("due", 0.1 * HOUR, options={"not-before": due.strftime("%Y-%m-%dT%H:%M:%SZ")})
    for number in range(2):
        past.add(f"grouped-{number}", 0.3 * HOUR, options={"group": "g", "max-concurrent": 1})
    past.run(3)
    in_force, _ = past.outcomes()
    assert {name: each.wait for name, each in in_force.items()} == pytest.approx(past.first_starts(), abs=120)
    assert (in_force["due"].wait, in_force["due"].completion) == (0, pytest.approx(1.1 * HOUR, abs=120))
    assert in_force["grouped-1"].wait >= 0.3 * HOUR


def test_an_elastic_job_uses_what_is_idle():
    past = Past(resizes=Resizes(payback=0))
    past.add("elastic", 2 * HOUR, options={"min-instances": 1, "max-instances": 4, "scaling-timeout": 60})
    past.run(4)
    in_force, draft = past.outcomes(resizes={"enabled": False})
    assert in_force["elastic"].completion == pytest.approx(2 * HOUR, abs=900)
    assert in_force["elastic"].completion < 0.6 * draft["elastic"].completion


def test_a_failed_job_fails_again_after_the_same_time():
    past = Past()
    past.add("fails", 0.2 * HOUR, outcome="failed", failure_reason="AlgorithmError: out of memory")
    past.run(1)
    in_force, _ = past.outcomes()
    assert in_force["fails"].past.work == pytest.approx(0.2 * HOUR, abs=5)
    assert in_force["fails"].completion == pytest.approx(0.2 * HOUR, abs=120)


def test_pools_prices_and_the_accounts_quota_are_those_of_the_queue():
    past = Past(pools=f"{P5}=4,{G5}=2")
    past.add("job", HOUR, count=4)
    past.run(0.2)
    document = past.document()
    document["pools"] = [view | {"quota": 3 if view["name"] == P5 else None} for view in document["pools"]]
    week = week_of(document)
    assert {name: pool.cap for name, pool in week.pools.items()} == {P5: 3, G5: 2}
    assert DraftReplay(week, Policy()).run()[0].completion is None  # four never fit
    kind = week.catalogue.of_pool(week.pools[P5])
    assert (kind.accelerators, kind.price > 50) == (8, True)


@pytest.mark.parametrize(
    ("draft", "field"),
    [
        ({"order": "lifo"}, "order"),
        ({"ordre": "fifo"}, "ordre"),
        ({"shares": {"vision": {"nominal": {P5: 9}}}}, f"shares.vision.nominal.{P5}"),
        ({"preemption": {"maxPreemptions": -1}}, "preemption.maxPreemptions"),
    ],
)
def test_a_wrong_draft_is_refused_by_its_field(draft, field):
    past = Past()
    with pytest.raises(InvalidRequest) as refused:
        past.report(**draft)
    assert refused.value.field == field


def test_a_share_may_name_the_pool_of_a_service():
    past = Past()
    past.report(shares={"vision": {"max": {"service/one": 3}}})


def test_secrets_stay_in_the_api_and_the_answer_counts_what_is_left_out():
    past = Past()
    for name in ("job1", "job2", "job3"):
        past.add(name, 60)
    past.run(0.2)
    past.add("held", 60)
    change(past.world.api_context, ADA, "held", hold=True)
    past.hidden = {"/jobs/job2": 403, "/jobs/job3": 404}
    document = past.document()
    assert "hidden-from-replays" not in json.dumps(document)
    assert [job["jobName"] for job in document["jobs"]] == ["job1"]
    report = replay(document, lambda _: None)
    assert (report["jobs"], report["leftOut"]) == (1, {"held": 1, "notVisible": 1, "gone": 1})


def test_a_caller_who_may_not_read_the_queue_is_refused():
    past = Past()
    past.add("job1", 60)
    with pytest.raises(Forbidden):
        past.document(caller="arn:aws:iam::111122223333:user/eve", viewers=(ADA.principal,))


def test_the_number_of_jobs_is_bounded_by_a_shorter_period():
    past = Past(pools=f"{P5}=1")
    for number in range(6):
        past.add(f"job{number}", 300)
    past.run(1)
    document = past.document(max_jobs=3)
    ends = sorted(job.ended_at for job in past.world.memory.jobs.values())
    assert [job["jobName"] for job in document["jobs"]] == ["job5", "job4", "job3"]
    assert datetime.fromisoformat(document["since"]) == ends[2]
    assert document["leftOut"] == {"beyondLimit": 1}


def test_more_jobs_that_have_not_ended_than_a_replay_has_are_refused():
    past = Past(pools=f"{P5}=1")
    for number in range(4):
        past.add(f"job{number}", HOUR)
    with pytest.raises(Refused, match="More than 3 jobs have not ended"):
        past.document(max_jobs=3)


def test_a_document_that_cannot_be_read_is_an_error_in_words():
    out = StringIO()
    assert main(StringIO('{"at": 1}'), out) == 0
    assert json.loads(out.getvalue())["error"]["message"].startswith("The replay failed: KeyError")


@pytest.mark.parametrize("days", [0, -1, 29, float("nan")])
def test_the_length_of_a_period_is_bounded(days):
    with pytest.raises(Refused, match="days"):
        Past().document(days=days)


def test_what_the_manager_makes_by_itself_is_made_again():
    past = Past(expansion=Expansion(enabled=True, types=("ml.g5.*",)))
    resources = {"resources": "accelerators=1+accelerator=nvidia", "instances": 1}
    past.add("anywhere", HOUR, options=resources)
    past.add("p5", HOUR, count=4)
    past.run(3)
    in_force, draft = past.outcomes(expansion={"enabled": False})
    assert all(each.completion for each in (*in_force.values(), *draft.values()))


def test_an_empty_queue_has_an_empty_answer():
    report = Past().report()
    assert (report["jobs"], report["changed"], report["inForce"]["shares"]) == (0, [], [])
    assert report["assumptions"]


PLAN = "arn:aws:sagemaker:us-east-1:444455556666:training-plan/nightly"


def a_document(pool: Pool, **config: Any) -> dict[str, Any]:
    """Two jobs of an hour that entered an hour ago, in one pool of another kind than on demand."""
    at = NOW + timedelta(hours=1)
    views = ApiWorld(pools={pool.name: pool}).get("/pools").body["pools"]
    attempt = {"createdAt": NOW.isoformat(), "startedAt": NOW.isoformat(), "endedAt": at.isoformat(), "units": {"x": 2}}
    details = {
        "AlgorithmSpecification": {"TrainingImage": "image"},
        "ResourceConfig": {"InstanceType": P5, "InstanceCount": 2, "VolumeSizeInGB": 30} | config.pop("resources", {}),
        "StoppingCondition": {"MaxRuntimeInSeconds": 7_200} | config.pop("limits", {}),
        **config,
    }
    jobs = [
        {
            **dict.fromkeys(("expectedEnd", "submittedBy", "failureReason", "earlierAttempts")),
            "jobName": name,
            "jobState": "completed",
            "priority": 0,
            "share": "default",
            "preemptible": True,
            "entryTime": NOW.isoformat(),
            "endedAt": at.isoformat(),
            "history": [],
            "attempts": [attempt],
            "jobDetails": details,
        }
        for name in ("job1", "job2")
    ]
    settings = settings_document(Policy())
    times = {"since": NOW.isoformat(), "at": at.isoformat()}
    return {"settings": settings, "draft": settings, "pools": views, "jobs": jobs, "leftOut": {}, **times}


def test_jobs_of_a_training_plan_run_while_its_capacity_is_reserved():
    begins, ends = NOW + timedelta(hours=1), NOW + timedelta(hours=9)
    pool = Pool("nightly", 2, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=PLAN, plan_status=PlanStatus.SCHEDULED,
                starts_at=begins, ends_at=ends)  # fmt: skip
    outcomes = DraftReplay(week_of(a_document(pool, resources={"TrainingPlanArn": PLAN})), Policy()).run()
    assert [each.completion for each in outcomes] == [
        pytest.approx(2 * HOUR, abs=120),
        pytest.approx(3 * HOUR, abs=120),
    ]


def test_spot_jobs_run_in_the_pool_of_spot_instances():
    pool = Pool(f"{P5}.spot", 4, type_=P5, kind=Kind.SPOT, price=10.0)
    document = a_document(pool, EnableManagedSpotTraining=True, limits={"MaxWaitTimeInSeconds": 7_200})
    outcomes = DraftReplay(week_of(document), Policy()).run()
    assert [each.wait for each in outcomes] == [0, 0]
    assert [each.dollars for each in outcomes] == [20, 20]
