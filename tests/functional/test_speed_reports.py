"""Reports of the speed of elastic jobs: by the API and by nodes, at every size, late, twice, wrong or never."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

import boto3
import httpx
import pytest

import builders as b
from api_fuzz import as_wsgi
from api_world import ApiWorld
from builders import ADA, P5
from cli_terminal import Terminal
from elastic_world import EAGER, ElasticWorld
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import NotFound, Refused
from trainmaster.domain.elastic.scaling import MAX_REPORTS, ScalingCurve, Speed
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.errors import IllegalTransition, InvalidRequest, Throttled
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.service.explain.scaling import believed_scaling
from trainmaster.service.resizing.speed import report_speed
from world import BRISK

BOUNDS = Elastic(min_instances=1, max_instances=4, hook=Hook.MEMBERS)


def of_two(name="job1", **fields):
    return b.a_running_job(name, units={P5: 2}, elastic=BOUNDS, **fields)


def having_had(*sizes, name="job1", hook=Hook.MEMBERS):
    """A job that runs with the last of these sizes, and had the others before."""
    return b.resized(b.a_running_job(name, units={P5: sizes[0]}, elastic=replace(BOUNDS, hook=hook)), *sizes[1:])


def sizes_had(job):
    """The sizes of a job one after the other, from its start."""
    return [size for size, _ in groupby(line.size for line in job.history if line.size is not None)]


@pytest.fixture
def world():
    made = ApiWorld()
    made.seed(of_two())
    return made


def told(world, body, name="job1"):
    return world.post(f"/jobs/{name}/speed", body)


def rates(job):
    """Size, mean and number of reports of each size."""
    return [(speed.instances, speed.rate, speed.reports) for speed in job.speeds.of_sizes]


class TestRoute:
    def test_a_report_is_stored_with_the_job(self, world):
        before = world.memory.find("job1")
        answer = told(world, {"instances": 2, "perSecond": 7.5})
        after = world.memory.find("job1")
        assert (answer.status, answer.body["jobName"]) == (200, "job1")
        assert after.speeds.of_sizes == (Speed(2, 7.5, 1, (7.5,), b.NOW),)
        assert after == replace(before, version=before.version + 1, speeds=after.speeds)

    def test_it_wakes_no_manager(self, world):
        told(world, {"instances": 2, "perSecond": 7.5})
        assert world.publisher.wakes == []

    def test_repeated_reports_are_soon_not_stored_any_more(self, world):
        for minute in range(MAX_REPORTS + 5):
            world.clock.moment = b.at(60 * minute)
            assert told(world, {"instances": 2, "perSecond": 7.5}).status == 200
        assert world.memory.find("job1").version == of_two().version + MAX_REPORTS

    def test_a_program_that_reports_each_second_changes_its_job_once_a_minute(self, world):
        for second in range(180):
            world.clock.moment = b.at(second)
            assert told(world, {"instances": 2, "perSecond": 7.5 + second % 2}).status == 200
        assert world.memory.find("job1").version == of_two().version + 3

    def test_a_size_that_the_job_cannot_have_is_refused(self, world):
        world.seed(b.a_running_job("even", units={P5: 2}, elastic=replace(BOUNDS, values=(2, 4))))
        answer = told(world, {"instances": 3, "perSecond": 2}, "even")
        assert (answer.status, answer.error["field"]) == (400, "instances")
        assert answer.error["message"] == "instances is 3, not one of the job's sizes: 2, 4"

    def test_a_late_report_of_an_earlier_size_counts_for_that_size(self, world):
        world.seed(having_had(1, 2, name="late"))
        for body in ({"instances": 2, "perSecond": 7.5}, {"instances": 1, "perSecond": 4}):
            assert told(world, body, "late").status == 200
        assert rates(world.memory.find("late")) == [(2, 7.5, 1), (1, 4.0, 1)]

    def test_a_size_that_the_job_never_had_is_refused(self, world):
        world.seed(having_had(2, 3, name="grown"))
        before = world.memory.find("grown")
        answer = told(world, {"instances": 4, "perSecond": 12}, "grown")
        assert (answer.status, answer.error["field"], world.memory.find("grown")) == (400, "instances", before)
        assert answer.error["message"] == "instances is 4, which the job has never had; it has had 2, 3"

    def test_a_size_that_it_had_in_another_pool_counts_as_never_had(self, world):
        job = having_had(4, name="moved", hook=Hook.RESTART)
        preempted = lifecycle.preempt(job, "urgent", b.at(9))
        waits = lifecycle.observe(preempted, b.an_observation(preempted, status=Status.STOPPED), b.at(10))
        again = lifecycle.start(waits, {"ml.p4d.24xlarge": 1}, (), b.at(20))
        seen = b.an_observation(again, secondary="Training", started_at=b.at(21))
        world.seed(lifecycle.observe(again, seen, b.at(21)))
        assert told(world, {"instances": 4, "perSecond": 12}, "moved").status == 400
        assert told(world, {"instances": 1, "perSecond": 3}, "moved").status == 200

    @pytest.mark.parametrize(
        "body",
        [
            {},
            [],
            {"instances": 2},
            {"perSecond": 2},
            {"instances": 0, "perSecond": 2},
            {"instances": 5, "perSecond": 2},
            {"instances": 10**30, "perSecond": 2},
            {"instances": "two", "perSecond": 2},
            {"instances": 2, "perSecond": 0},
            {"instances": 2, "perSecond": -1},
            {"instances": 2, "perSecond": 1e13},
            {"instances": 2, "perSecond": 10**400},
            {"instances": 2, "perSecond": "fast"},
            {"instances": 2, "perSecond": None},
            {"instances": 2, "perSecond": 2, "unit": "steps"},
        ],
    )
    def test_other_values_are_refused(self, world, body):
        before = world.memory.find("job1")
        assert told(world, body).status == 400
        assert world.memory.find("job1") == before

    @pytest.mark.parametrize("text", ['{"instances":2,"perSecond":NaN}', '{"instances":2,"perSecond":Infinity}', "{"])
    def test_numbers_that_are_none_are_refused(self, world, text):
        assert world.event("POST", "/jobs/job1/speed", text).status == 400

    def test_a_job_without_sizes_or_without_capacity_is_refused(self, world):
        running = b.a_running_job("ended", elastic=replace(BOUNDS, hook=Hook.RESTART))
        ended = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(99))
        world.seed(b.a_running_job("fixed"), b.a_job("waits", elastic=BOUNDS), ended)
        report = {"instances": 1, "perSecond": 2}
        for name, status in (("fixed", 409), ("waits", 409), ("ended", 409), ("none", 404)):
            assert told(world, report, name).status == status

    def test_a_job_that_is_resized_is_left_alone(self, world):
        job = of_two("moving")
        world.seed(lifecycle.resize(job, 4, "grow", b.at(9), until=b.at(99)))
        before = world.memory.find("moving")
        assert told(world, {"instances": 2, "perSecond": 7.5}, "moving").status == 200
        assert world.memory.find("moving") == before


class TestUseCase:
    def test_a_conflict_is_tried_again(self):
        world, others = ApiWorld(), [(2.0, b.at(-60)), (1.0, b.at(-120))]
        world.seed(having_had(1, 2))
        store, commit = world.memory, world.memory.transition

        def overtaken(changes, **given):
            if others:
                job = store.find("job1")
                commit([(job, lifecycle.record_speed(job, 1, *others.pop()))])
            return commit(changes, **given)

        context = world.application.api_context
        context = replace(context, store=_With(store, transition=overtaken))
        assert report_speed(context, ADA, "job1", 2, 7.5).speeds.sizes == {1, 2}

    def test_a_job_that_never_rests_is_given_up(self):
        world = ApiWorld()
        world.seed(of_two())
        store = _With(world.memory, transition=lambda *_, **__: False)
        with pytest.raises(Throttled):
            report_speed(replace(world.application.api_context, store=store), ADA, "job1", 2, 7.5)

    @pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e-10, 1e13])
    def test_the_domain_refuses_what_a_model_would(self, rate):
        with pytest.raises(InvalidRequest):
            lifecycle.record_speed(of_two(), 2, rate, b.NOW)
        with pytest.raises(IllegalTransition):
            lifecycle.record_speed(b.a_running_job(), 1, 2.0, b.NOW)


class _With:
    """An object with some other verbs."""

    def __init__(self, inner, **verbs):
        self._inner, self._verbs = inner, verbs

    def __getattr__(self, name):
        return self._verbs.get(name) or getattr(self._inner, name)


class TestTerminal:
    """Another program reports through the client; the commands say what the queue believes."""

    @pytest.fixture
    def run(self, world):
        session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
        with ApiClient(
            "https://api", session=session, transport=httpx.WSGITransport(app=as_wsgi(world)), environ={}
        ) as api:
            yield Terminal(api)

    def test_show_and_plan_say_how_a_job_scales(self, run, world, tmp_path):
        curve, request = ScalingCurve(0.05), tmp_path / "request.json"
        world.seed(having_had(1, 4, 2, name="job3", hook=Hook.RESTART))
        request.write_text(json.dumps(b.a_request("new", options={"max-instances": "8"})))
        assert "times as fast" not in run("show", "job3").stdout + run("plan", str(request)).stdout
        for minute, size in enumerate((1, 2, 4) * 4):
            world.clock.moment = b.at(60 * minute)
            run.api.report_speed("job3", instances=size, per_second=100 * curve.speedup(size))
        lines = [" ".join(line.split()) for line in run("show", "job3").stdout.splitlines()]
        assert "Scaling 2 instances run 1.9 times as fast as 1, 4 would run 3.5 times as fast" in lines
        running = world.memory.find("job3")
        ended = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(900))
        assert world.memory.transition([(running, ended)])
        plan = " ".join(run("plan", str(request)).stdout.split())
        assert "8 instances would run 7.2 times as fast as 1, by jobs of other kinds." in plan

    def report(self, run, world, *rates):
        for size, rate in rates:
            world.clock.moment += timedelta(minutes=1)
            run.api.report_speed("job3", instances=size, per_second=rate)
        return {line.split()[0]: " ".join(line.split()) for line in run("show", "job3").stdout.splitlines() if line}

    def test_show_says_that_reports_arrive_from_the_first_one_on(self, run, world):
        world.seed(having_had(1, 2, name="job3", hook=Hook.RESTART))
        lines = self.report(run, world, (2, 3.8))
        assert lines["Speed"] == "Speed 3.8/s with 2 instances (1 report), last 2026-11-21 12:01:00 UTC (in 23 hours)"
        assert lines["Scaling"] == "Scaling the job counts as linear until it has reported its speed at two sizes"
        lines = self.report(run, world, *[(2, 3.8)] * 8, (1, 2.0))
        one = "2/s with 1 instance (1 report), last 2026-11-21 12:10:00 UTC (in 23 hours)"
        two = "3.8/s with 2 instances (8 or more reports), the last new one 2026-11-21 12:08:00 UTC (in 23 hours)"
        assert lines["Speed"] == f"Speed {one}; {two}"
        assert lines["Scaling"].startswith("Scaling 2 instances run 1.9 times as fast as 1, 4 would run")

    def test_show_and_why_say_which_sizes_are_slower(self, run, world):
        """The curve of a job with these reports is above one at two instances, since few reports tell little."""
        world.seed(having_had(2, 1, name="job3", hook=Hook.RESTART))
        rates = [(1, 21.2), (2, 20.0), (2, 20.0), (2, 20.0)]
        lines = self.report(run, world, *rates)
        slower = "2 instances were slower than 1 (3 reports), so they are not used before"
        assert re.fullmatch(rf"Scaling {re.escape(slower)} .*16:04:00 UTC \(in .*\)", lines["Scaling"])
        assert f"{slower} " in " ".join(run("why", "job3").stdout.split())

    def test_the_client_says_what_is_wrong_with_a_report(self, run):
        with pytest.raises(Refused, match="instances is 5, not between 1 and 4"):
            run.api.report_speed("job1", instances=5, per_second=2)
        with pytest.raises(NotFound):
            run.api.report_speed("job2", instances=1, per_second=2)


@pytest.mark.usefixtures("quiet")
class TestNodes:
    CURVE = ScalingCurve(0.2)

    def a_world(self):
        world = ElasticWorld(policy=EAGER, pools=f"{P5}=4", profile=BRISK)
        world.reports, world.speed = True, lambda size: 100 * self.CURVE.speedup(size)
        return world

    @pytest.mark.parametrize("hook", ["restart", "members"])
    def test_the_queue_learns_the_curve_across_resizes(self, hook):
        """It works with 2 instances while another job has the rest of the pool, then with 4."""
        world = self.a_world()
        world.submit("first", count=2, training_seconds=1_500)
        world.elastic("elastic", hook, max_instances=4, training_seconds=20_000)
        world.run_until_ended("first")
        world.run_until(lambda: world.size("elastic") == 4)
        world.run(1_200)
        assert world.job("elastic").speeds.sizes == {2, 4}
        assert world.job("elastic").state is JobState.RUNNING
        history = world.api_context.store.records().history
        assert history.curve(world.job("elastic")).speedup(4) == pytest.approx(self.CURVE.speedup(4), rel=0.1)
        message = believed_scaling(world.job("elastic"), history, world.clock.now()).message
        assert re.fullmatch(r"4 instances run 2\.[456] times as fast as 1", message)

    @pytest.mark.parametrize(
        "text",
        ["", "{", *(f'{{"instances":{size},"perSecond":{rate}}}' for size, rate in ((99, 1), (2, 1e300), (3, 1)))],
    )
    def test_what_nodes_write_wrongly_changes_nothing(self, text):
        world = self.a_world()
        world.reports = False
        world.elastic("elastic", "members", max_instances=4, training_seconds=3_000)
        world.run_until(lambda: world.size("elastic") == 4)
        world.meeting.speeds["elastic"] = text
        world.run(900)
        assert world.job("elastic").speeds.of_sizes == ()
        world.run_until_ended("elastic")

    def test_a_report_that_stays_the_same_is_soon_not_written_any_more(self):
        world = self.a_world()
        world.elastic("elastic", "members", max_instances=4, training_seconds=20_000)
        world.run_until(lambda: world.size("elastic") == 4)
        world.run(300 * (MAX_REPORTS + 2))
        version = world.job("elastic").version
        assert world.job("elastic").speeds.of_sizes[-1].reports == MAX_REPORTS
        world.run(1_200)
        assert world.job("elastic").version == version

    @pytest.mark.parametrize("hook", ["restart", "members"])
    def test_a_job_that_turns_out_to_be_slower_returns_to_its_best_size_and_stays(self, hook):
        world = self.a_world()
        world.speed = lambda size: 100 / (1 + 0.25 * (size - 1))
        world.submit("first", count=3, training_seconds=1_200)
        world.elastic("elastic", hook, max_instances=4, training_seconds=60_000)
        world.run_until_ended("first")
        world.run(9_000)
        assert (world.size("elastic"), world.job("elastic").speeds.sizes) == (1, {1, 4})
        assert sizes_had(world.job("elastic")) == [1, 4, 1]
        reasons = [change.reason for change in world.job("elastic").history]
        assert any("resizes, 4 -> 1 instances: it runs faster with fewer" in reason for reason in reasons)
        assert world.job("elastic").state is JobState.RUNNING

    def test_a_slower_size_is_tried_once_after_four_hours_and_kept_if_it_is_faster_then(self):
        for later, sizes in ((1.0, [1, 4, 1, 4, 1]), (9.0, [1, 4, 1, 4])):
            world = self.a_world()
            world.speed = lambda size: 100 / (1 + 0.25 * (size - 1))
            world.submit("first", count=3, training_seconds=1_200)
            world.elastic("elastic", "members", max_instances=4, training_seconds=600_000)
            world.run_until_ended("first")
            world.run(3_600)
            world.speed = lambda size, more=later: 100 * (more if size > 1 else 1) / (1 + 0.25 * (size - 1))
            world.run(6 * 3_600)
            assert sizes_had(world.job("elastic")) == sizes

    def test_one_report_that_is_too_low_does_not_shrink_a_job(self):
        """The first report at 4 instances is of a time with an evaluation; the job does scale."""
        world = self.a_world()
        world.submit("first", count=3, training_seconds=1_200)
        world.elastic("elastic", "members", max_instances=4, training_seconds=60_000)
        world.run_until_ended("first")
        world.run_until(lambda: world.size("elastic") == 4)
        world.reports, row = False, {"instances": 4, "perSecond": 9.4, "at": world.clock.now().timestamp()}
        world.meeting.speeds["elastic"] = json.dumps(row)
        world.run(900)
        assert rates(world.job("elastic"))[-1] == (4, 9.4, 1)
        world.reports = True
        world.run(9_000)
        assert world.size("elastic") == 4
        assert sizes_had(world.job("elastic")) == [1, 4]

    @pytest.mark.parametrize(("at", "reports"), [(b.NOW.timestamp(), 1), (1e300, 1), (None, MAX_REPORTS)])
    def test_a_row_that_is_read_again_counts_once_if_it_says_when_it_was_measured(self, at, reports):
        world = self.a_world()
        world.reports = False
        world.elastic("elastic", "members", max_instances=4, training_seconds=20_000)
        world.run_until(lambda: world.size("elastic") == 4)
        row = {"instances": 4, "perSecond": 10.0} | ({} if at is None else {"at": at})
        world.meeting.speeds["elastic"] = json.dumps(row)
        world.run(300 * (MAX_REPORTS + 2))
        assert rates(world.job("elastic")) == [(4, 10.0, reports)]

    def test_a_report_by_a_fast_clock_hides_no_later_one(self):
        world = self.a_world()
        world.reports = False
        world.elastic("elastic", "members", max_instances=4, training_seconds=20_000)
        world.run_until(lambda: world.size("elastic") == 4)
        for ahead, rate in ((72_000, 10.0), (-1, 40.0)):
            row = {"instances": 4, "perSecond": rate, "at": world.clock.now().timestamp() + ahead}
            world.meeting.speeds["elastic"] = json.dumps(row)
            world.run(900)
        assert rates(world.job("elastic")) == [(4, 25.0, 2)]

    def test_a_table_that_does_not_answer_keeps_nothing_from_running(self):
        world = self.a_world()

        def failing(run):
            raise Throttled("slow down")

        world.rendezvous = _With(world.meeting, speed=failing)
        world.elastic("elastic", "members", max_instances=4, training_seconds=1_500)
        world.run_until_ended("elastic")
        assert json.loads(world.meeting.speeds["elastic"])["instances"] == 4
        assert world.job("elastic").speeds.of_sizes == ()
