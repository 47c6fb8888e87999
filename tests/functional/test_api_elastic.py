"""Elastic jobs in the API: sizes, members, resizes, and the state of a job's nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from api_world import ApiWorld
from trainmaster.domain.elastic.rendezvous import Node, RendezvousState, Role
from trainmaster.domain.elastic.scaling import ScalingCurve, Speed, Speeds
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Status
from trainmaster.service.resizing.contract import resize_request


def running(hook=Hook.MEMBERS, **sizes):
    return b.a_running_job(elastic=Elastic(hook=hook, **({"min_instances": 1, "max_instances": 4} | sizes)))


def of_four(hook, **fields):
    return b.a_running_job(units={b.P5: 4}, elastic=Elastic(min_instances=1, max_instances=4, hook=hook, **fields))


def shown(*jobs):
    world = ApiWorld()
    world.seed(*jobs)
    return world.get(f"/jobs/{jobs[0].name}").body["elastic"]


def grown(job, size=3, seconds=100, until=1_000):
    return resizing.resize(job, size, Cause.GROW, b.at(seconds), until=b.at(until))


def test_a_job_of_a_fixed_size_says_nothing_of_sizes():
    assert shown(b.a_job()) is None


def test_a_waiting_elastic_job_shows_its_bounds_and_no_size():
    elastic = Elastic(min_instances=2, max_instances=8, values=(2, 4, 8), scale_up_snooze=timedelta(seconds=90))
    told = shown(b.a_job(elastic=elastic, units={b.P5: 2}))
    assert told == {
        "minInstances": 2,
        "maxInstances": 8,
        "instanceStep": None,
        "instanceValues": [2, 4, 8],
        "hook": "restart",
        "target": None,
        "scalingTimeoutSeconds": 60,
        "gracefulShutdownTimeoutSeconds": 600,
        "faultyScaleDownTimeoutSeconds": 30,
        "scaleUpSnoozeSeconds": 90,
        "size": None,
        "sizedAt": None,
        "resizes": 0,
        "resizing": None,
        "faultySince": None,
        "wanted": None,
        "members": [],
        "scaling": None,
    }


def test_a_growth_shows_its_members_each_in_its_state():
    job = grown(running(), 4)
    first, second, third = (member.training_job_name for member in job.attempt.members)
    job = resizing.mark_member_started(resizing.mark_member_launched(job, second), first, b.at(200), b.at(200))
    told = shown(job)
    assert [(each["trainingJobName"], each["state"]) for each in told["members"]] == [
        (first, "working"),
        (second, "starting"),
        (third, "requested"),
    ]
    assert told["resizing"] == {
        "from": 1,
        "to": 4,
        "cause": "grow",
        "askedAt": "2026-11-21T12:01:40Z",
        "until": "2026-11-21T12:16:40Z",
        "freedFor": None,
        "givenUp": False,
        "message": "waits for 2 of its members to start; the growth is given up at 2026-11-21T12:16:40Z",
    }
    assert (told["size"], told["instanceStep"]) == (4, 1)


def test_a_shrink_shows_the_leaving_members_and_the_beneficiary():
    job = grown(running())
    for member in job.attempt.members:
        job = resizing.mark_member_started(job, member.training_job_name, b.at(200), b.at(200))
    job = resizing.resize(job, 1, Cause.SHRINK, b.at(300), until=b.at(900), freed_for="job9")
    job = resizing.mark_member_left(job, job.attempt.members[0].training_job_name, b.at(310))
    told = shown(job)
    assert [each["state"] for each in told["members"]] == ["stopping", "draining"]
    assert told["resizing"]["message"] == (
        "waits for 1 of its members to save their work and leave, 1 of its members to stop, for job9; "
        "members that have not left by then are stopped at 2026-11-21T12:15:00Z"
    )
    assert (told["resizing"]["freedFor"], told["resizes"]) == ("job9", 1)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (grown(running(Hook.RESTART)), "saves its work and stops, to continue with 3 instances"),
        (grown(running(Hook.CUSTOM, target="event")), "is about to send a request to the consumer of its event"),
        (resizing.record_hook_call(grown(running(Hook.CUSTOM, target="arn:f"))), "waits for the answer of arn:f"),
    ],
)
def test_a_resize_says_what_it_waits_for(job, words):
    assert shown(job)["resizing"]["message"] == f"{words}; the growth is given up at 2026-11-21T12:16:40Z"


@pytest.mark.parametrize(
    ("job", "limit"),
    [
        (of_four(Hook.RESTART), "SageMaker terminates it"),
        (of_four(Hook.CUSTOM, target="event"), "without an answer the job is stopped"),
        (
            replace(of_four(Hook.CUSTOM, target="event"), preemptible=False),
            "without an answer the job keeps its size",
        ),
    ],
)
def test_a_shrink_says_until_when(job, limit):
    shrinking = resizing.resize(job, 2, Cause.SHRINK, b.at(100), until=b.at(1_000), freed_for="job9")
    assert shown(shrinking)["resizing"]["message"].endswith(f", for job9; {limit} at 2026-11-21T12:16:40Z")


def test_a_resize_whose_members_have_left_or_whose_attempt_has_stopped_has_no_limit_any_more():
    shrinking = resizing.resize(of_four(Hook.RESTART), 2, Cause.SHRINK, b.at(100), until=b.at(1_000), freed_for="job9")
    stopped = lifecycle.observe(shrinking, b.an_observation(shrinking, status=Status.STOPPED), b.at(160))
    assert shown(stopped)["resizing"]["message"].endswith(" 2 instances, for job9")


def test_a_pool_shows_what_elastic_jobs_could_give_and_what_they_are_giving():
    def figures(job):
        world = ApiWorld()
        world.seed(job)
        return [world.get("/pools").body["pools"][0][name] for name in ("used", "stopping", "beyondMinimum")]

    four = of_four(Hook.RESTART)
    assert figures(four) == [4, 0, 3]
    assert figures(resizing.resize(four, 2, Cause.SHRINK, b.at(100), until=b.at(1_000))) == [4, 2, 1]
    assert figures(lifecycle.preempt(four, "job9", b.at(100))) == [4, 4, 0]
    assert figures(b.a_running_job(units={b.P5: 2})) == [2, 0, 0]


def test_a_waiting_job_names_the_jobs_that_shrink_for_it():
    world = ApiWorld(pools=b.pools_of(b.a_pool(cap=4)))
    four = resizing.resize(of_four(Hook.RESTART), 2, Cause.SHRINK, b.at(100), until=b.at(1_000))
    world.seed(four, b.a_job("new", units={b.P5: 2}, priority=9))
    [holder] = world.get("/jobs/new", why="true").body["why"]["inTheWay"]
    assert (holder["instances"], holder["givingBack"], holder["stopping"]) == (4, 2, False)


def test_a_resize_says_whether_sagemaker_has_been_asked():
    stopping = grown(running(Hook.RESTART))
    resumed = lifecycle.observe(stopping, b.an_observation(stopping, status=Status.STOPPED), b.at(160))
    assert shown(resumed)["resizing"]["message"].startswith("waits for a pass to request 3 instances")
    asked = lifecycle.mark_launched(resumed)
    assert shown(asked)["resizing"]["message"].startswith("waits for SageMaker to provide 3 instances")


def test_a_lost_member_is_told():
    job = grown(running())
    for member in job.attempt.members:
        job = resizing.mark_member_started(job, member.training_job_name, b.at(200), b.at(200))
    lost = b.an_observation(training_job_name=job.attempt.members[0].training_job_name, status=Status.FAILED)
    told = shown(lifecycle.observe(job, lost, b.at(300)))
    assert (told["size"], told["faultySince"], told["wanted"]) == (2, "2026-11-21T12:05:00Z", 3)


def test_an_ended_job_has_no_size_and_keeps_its_bounds():
    job = running()
    ended = lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), b.at(100))
    told = shown(ended)
    assert (told["size"], told["maxInstances"], told["members"]) == (None, 4, [])


class TestRendezvous:
    def test_an_unknown_job_has_no_rendezvous(self):
        assert ApiWorld().get("/jobs/stranger/rendezvous").kind == (404, "JobNotFound", "name")

    @pytest.mark.parametrize(("job", "run"), [(b.a_job(), None), (running(), "job1")])
    def test_without_nodes_the_answer_is_empty(self, job, run):
        world = ApiWorld()
        world.seed(job)
        assert world.get("/jobs/job1/rendezvous").body == {
            "run": run,
            "round": None,
            "complete": False,
            "closed": False,
            "reason": None,
            "restarts": 0,
            "nodes": [],
            "problem": None,
        }

    def test_nodes_are_told_in_the_order_of_their_ranks(self):
        world = ApiWorld()
        world.seed(running())
        nodes = (
            Node(training_job_name="job1", host="algo-1", role=Role.MEMBER, rank=0),
            Node(training_job_name="job1-qstamp-1-m1", host="algo-1", role=Role.SPARE),
        )
        world.rendezvous.set_state("job1", RendezvousState(round=4, complete=True, nodes=nodes, restarts=2))
        told = world.get("/jobs/job1/rendezvous").body
        assert (told["round"], told["complete"], told["restarts"]) == (4, True, 2)
        assert told["nodes"] == [
            {"trainingJobName": "job1", "host": "algo-1", "role": "member", "rank": 0},
            {"trainingJobName": "job1-qstamp-1-m1", "host": "algo-1", "role": "spare", "rank": None},
        ]

    def test_an_unreadable_rendezvous_is_reported(self):
        world = ApiWorld()
        world.seed(running())
        world.rendezvous.set_state("job1", b"\x80\x04pickled")
        told = world.get("/jobs/job1/rendezvous").body
        assert told["problem"].startswith("The state of a rendezvous cannot be read")
        assert (told["run"], told["nodes"]) == ("job1", [])


def test_an_answer_to_a_custom_resize_that_contradicts_the_first_is_refused_with_what_stands():
    world, job = ApiWorld(), b.a_custom_resize("job5")
    world.seed(job)
    token = resize_request(job)["token"]
    done = {"token": token, "outcome": "done", "instances": 2}
    assert [world.post("/jobs/job5/resize", done).status for _ in range(2)] == [200, 200]
    refused = world.post("/jobs/job5/resize", {"token": token, "outcome": "refused", "reason": "no room"})
    assert (refused.status, refused.error["message"]) == (409, "the resize of this token is done, with 2 instances")


class TestScaling:
    """The queue shows how it believes that a job scales."""

    CURVE = ScalingCurve(0.05)

    def world(self, *jobs):
        """A queue in which a job of the same kind has ended."""
        world = ApiWorld(pools={b.P5: b.a_pool(b.P5, 8)})
        taught = replace(b.a_running_job("taught", elastic=BOUNDS), speeds=reported(self.CURVE, 1, 2, 4, 8))
        world.seed(taught, *jobs)
        ended = lifecycle.observe(taught, b.an_observation(taught, status=Status.COMPLETED), b.at(900))
        assert world.memory.transition([(taught, ended)])
        return world

    def test_a_running_job_shows_how_it_scales_by_its_own_reports(self):
        job = replace(b.a_running_job("job1", units={b.P5: 4}, elastic=BOUNDS), speeds=reported(self.CURVE, 2, 4))
        scaling = self.world(job).get("/jobs/job1").body["elastic"]["scaling"]
        assert scaling["message"] == "4 instances run 3.5 times as fast as 1, 8 would run 6.0 times as fast"
        assert scaling["serialPart"] == pytest.approx(0.05, rel=0.05)
        assert [each["instances"] for each in scaling["sizes"]] == [1, 2, 4, 8]
        assert [each["perSecond"] for each in scaling["sizes"]] == [
            None,
            pytest.approx(190.5, abs=0.1),
            pytest.approx(347.8, abs=0.1),
            None,
        ]
        assert scaling["sizes"][0]["speedup"] == 1

    def test_a_waiting_job_and_a_plan_show_how_their_kind_scales(self):
        waits = b.a_job("waits", elastic=BOUNDS, state=JobState.PENDING)
        world = self.world(b.a_running_job("full", units={b.P5: 8}), waits)
        message = "8 instances would run 5.9 times as fast as 1, by 1 earlier job of its kind"
        assert world.get("/jobs/waits").body["elastic"]["scaling"]["message"] == message
        listed = {job["jobName"]: job for job in world.get("/jobs").body["jobs"]}
        assert listed["waits"]["elastic"]["scaling"]["message"] == message
        request = b.a_request("new", options={"max-instances": "8"})
        assert (
            world.post("/plan", request).body["scaling"]["message"]
            == "8 instances would run 6.7 times as fast as 1, by jobs of other kinds"
        ), "a job of another image tells less"

    def test_without_reports_nothing_is_believed(self):
        world = ApiWorld()
        world.seed(b.a_running_job("job1", elastic=BOUNDS))
        assert world.get("/jobs/job1").body["elastic"]["scaling"] is None
        assert world.post("/plan", b.a_request("new")).body["scaling"] is None

    def test_what_was_measured_is_told_rather_than_the_curve(self):
        """The curve of so few reports says that two instances are faster."""
        job = b.a_running_job("job1", units={b.P5: 2}, elastic=BOUNDS)
        job = replace(job, speeds=Speeds(b.P5, (Speed(1, 21.2, 2), Speed(2, 20.0, 2))))
        world = ApiWorld()
        world.seed(job)
        scaling = world.get("/jobs/job1").body["elastic"]["scaling"]
        assert scaling["message"] == "2 instances run 0.9 times as fast as 1"
        assert scaling["sizes"][1]["speedup"] > 1

    def message(self, *sizes, bounds=None, units=4, rates=None):
        """Return the message about a job that reported these sizes three times, by its curve or with these rates."""
        rates = [100 * self.CURVE.speedup(size) for size in sizes] if rates is None else rates
        speeds = [Speed(size, rate, 3, (rate,) * 3, b.at(-60)) for size, rate in zip(sizes, rates, strict=True)]
        job = b.a_running_job("job1", units={b.P5: units}, elastic=bounds or BOUNDS)
        job = replace(job, speeds=Speeds(b.P5, tuple(speeds)))
        world = ApiWorld()
        world.seed(job)
        scaling = world.get("/jobs/job1").body["elastic"]["scaling"]
        return None if scaling is None else scaling["message"]

    def test_a_job_that_has_never_one_instance_is_compared_with_its_smallest_size(self):
        """Nothing tells how fast it would be on one."""
        bounds = replace(BOUNDS, min_instances=2)
        message = self.message(2, 4, bounds=bounds, rates=[100.0, 104.0])
        assert message.startswith("4 instances run 1.0 times as fast as 2")
        assert self.message(2, 4, bounds=bounds).startswith("4 instances run 1.8 times as fast as 2, 8 would run")
        assert self.message(2, 4, bounds=bounds, units=2).startswith("8 instances would run 3.1 times as fast as 2")

    def test_a_curve_that_falls_tells_its_fastest_size(self):
        curve = ScalingCurve(0.0, 0.05)
        rates = [100 * curve.speedup(size) for size in (1, 2, 4, 8)]
        message = self.message(1, 2, 4, 8, units=2, rates=rates)
        fastest = "2 instances run 1.8 times as fast as 1, 7 would run 2.3 times as fast"
        assert message.startswith(f"{fastest}; 8 instances were slower than 4 (3 reports)")
        bounds = replace(BOUNDS, max_instances=16)
        message = self.message(1, 2, 4, bounds=bounds, units=2, rates=[100.0, 150.0, 155.0])
        assert re.search(r", (\d+) would run 1\.\d times as fast, more than \1 instances would not be faster$", message)

    def test_of_a_job_that_gains_nothing_that_is_said(self):
        rates = [100.0, 80.0, 60.0]
        message = self.message(1, 2, 4, units=1, rates=rates)
        assert message.startswith("2 instances were slower than 1 (3 reports), so they are not used before")
        assert "times as fast" not in message

    def test_speeds_that_cannot_be_in_one_unit_are_doubted(self):
        """It counted steps with one instance and samples with four."""
        message = self.message(1, 4, rates=[2.0, 512.0])
        assert message == (
            "4 instances run 4.0 times as fast as 1, 8 would run 8.0 times as fast"
            "; 4 instances report 256 times the speed of 1, so they seem to count other work"
        )
        assert "other work" not in self.message(1, 4, rates=[2.0, 9.0]), "more cache is worth something"

    def test_a_job_of_one_size_has_no_scaling(self):
        assert self.message(4, bounds=replace(BOUNDS, min_instances=4, max_instances=4)) is None

    def test_a_job_that_is_resized_still_runs_with_the_size_before(self):
        job = replace(b.a_running_job("job1", units={b.P5: 2}, elastic=BOUNDS), speeds=reported(self.CURVE, 1, 2))
        world = ApiWorld()
        world.seed(lifecycle.resize(job, 4, Cause.GROW, b.at(9), until=b.at(99)))
        message = world.get("/jobs/job1").body["elastic"]["scaling"]["message"]
        assert message.startswith("2 instances run 1.9 times as fast as 1")

    def test_a_size_that_was_slower_has_the_faster_one_and_the_time_of_the_next_trial(self):
        speeds = (Speed(1, 21.2, 3, (21.2,) * 3, b.at(-900)), Speed(4, 20.0, 3, (20.0,) * 3, b.at(-60)))
        job = replace(b.a_running_job("job1", units={b.P5: 1}, elastic=BOUNDS), speeds=Speeds(b.P5, speeds))
        world = ApiWorld()
        world.seed(job)
        scaling = world.get("/jobs/job1").body["elastic"]["scaling"]
        told = [(each["instances"], each["reports"], each["slowerThan"], each["retryAt"]) for each in scaling["sizes"]]
        retry = "2026-11-21T15:59:00Z"
        assert told == [(1, 3, None, None), (4, 3, 1, retry), (8, 0, None, None)]
        assert scaling["message"].endswith(
            f"; 4 instances were slower than 1 (3 reports), so they are not used before {retry}"
        )
        assert scaling["message"].startswith("3 instances would run ")


BOUNDS = Elastic(min_instances=1, max_instances=8)


def reported(curve, *sizes):
    return Speeds(b.P5, tuple(Speed(size, 100 * curve.speedup(size), 8) for size in sizes))
