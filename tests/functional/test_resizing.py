"""Elastic jobs in a whole world, with the shipped planner: they grow, give way without dying, lose members, and end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from builders import ADA, P5
from elastic_world import BY_DECREE, EAGER, TARGET, ElasticWorld
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.errors import IllegalTransition, InvalidRequest
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.service.change import cancel
from trainmaster.service.resizing.contract import HookAnswer
from trainmaster.service.resizing.contract import Outcome as Answers
from trainmaster.service.resizing.custom import answer_resize
from world import BRISK, ROLE

HOOKS = ("restart", "members", "custom")


pytestmark = pytest.mark.usefixtures("quiet")


def a_world(*, policy: Policy = EAGER, cap: int = 4, **arguments: Any) -> ElasticWorld:
    return ElasticWorld(policy=policy, pools=f"{P5}={cap}", profile=BRISK, **arguments)


def runs_with(world: ElasticWorld, size: int, name: str = "elastic") -> bool:
    return world.job(name).state is JobState.RUNNING and world.size(name) == size


def reasons(world: ElasticWorld, name: str = "elastic") -> list[str]:
    return [line.reason for line in world.job(name).history]


def decreed(world: ElasticWorld, size: int, name: str = "elastic") -> None:
    """The job is given this size, and has it."""
    world.decreed[name] = size
    world.run_until(lambda: runs_with(world, size, name))


@pytest.mark.parametrize("hook", HOOKS)
def test_it_starts_small_grows_when_others_end_gives_way_without_dying_and_grows_back(hook):
    world = a_world()
    world.submit("first", count=3, training_seconds=200)
    world.run(20)
    world.elastic("elastic", hook, max_instances=4, training_seconds=2500)
    world.run(60)
    assert runs_with(world, 1)
    world.run_until_ended("first")
    world.run_until(lambda: runs_with(world, 4))
    world.submit("urgent", count=2, priority=5, training_seconds=200)
    world.run_until(lambda: world.job("urgent").state is JobState.RUNNING)
    # Where it restarts, it may be about to.
    assert world.size("elastic") == 2
    world.run_until_ended("urgent")
    world.run_until(lambda: runs_with(world, 4))
    world.run_until_ended("elastic")
    job = world.job("elastic")
    assert (job.state, job.preemptions) == (JobState.COMPLETED, 0)
    assert len(job.attempts) == (4 if hook == "restart" else 1)
    assert {each.outcome for each in job.past} <= {Outcome.RESIZED}
    assert (world.peaks[P5], world.doubles, world.torn) == (4, set(), set())


def test_a_group_is_told_what_it_is_and_has_instances_beside_its_own_one_by_one():
    world = a_world(cap=3)
    world.elastic(
        "elastic", "members", min_instances=1, max_instances=3, training_seconds=2000, options={"instance_step": 2}
    )
    world.run_until(lambda: len(world.names("elastic")) == 3)
    base, first, second = (world.training_jobs[name] for name in world.names("elastic"))
    assert [job["ResourceConfig"]["InstanceCount"] for job in (base, first, second)] == [1, 1, 1]
    assert ["CheckpointConfig" in job for job in (base, first, second)] == [True, False, False]
    told = {
        "TRAINMASTER_RUN": "elastic",
        "TRAINMASTER_RENDEZVOUS_TABLE": "sagemaker-queue-rendezvous",
        "TRAINMASTER_RENDEZVOUS_ROLE": ROLE,
        "TRAINMASTER_RENDEZVOUS_KEY": world.meeting.key(Run("elastic", ROLE)),
        "TRAINMASTER_MIN": "1",
        "TRAINMASTER_MAX": "3",
        "TRAINMASTER_SIZES": "1,3",
        "TRAINMASTER_GRACE": "600",
        "TRAINMASTER_FAULTY_WAIT": "30",
        "TRAINMASTER_HOOK": "members",
    }
    assert told.items() <= base["Environment"].items() == first["Environment"].items() == second["Environment"].items()
    assert base["Tags"] == first["Tags"] == second["Tags"]


def test_a_group_expects_as_many_nodes_as_its_job_is_to_have():
    """Else each of its worlds would wait a while for as many as the job may ever have, on paid instances."""
    world = a_world(policy=BY_DECREE)
    world.elastic("elastic", "members", min_instances=1, max_instances=4, training_seconds=4000)
    world.run_until(lambda: runs_with(world, 1))
    expected = [world.meeting.controls["elastic"].max_nodes]
    for size in (3, 4, 2):
        decreed(world, size)
        expected.append(world.meeting.controls["elastic"].max_nodes)
    assert expected == [1, 3, 4, 2]


def test_a_member_that_does_not_leave_is_stopped_when_its_time_is_over():
    world = a_world(policy=BY_DECREE)
    world.elastic("elastic", "members", training_seconds=4000, options={"graceful_shutdown_timeout": "200"})
    decreed(world, 3)
    world.stubborn = {"elastic-qstamp-1-m1", "elastic-qstamp-1-m2"}
    begun = world.now()
    decreed(world, 1)
    assert timedelta(seconds=260) <= world.now() - begun <= timedelta(seconds=400)


def test_a_lost_member_is_replaced_by_another():
    world = a_world(cap=3)
    world.elastic("elastic", "members", training_seconds=4000)
    world.run_until(lambda: runs_with(world, 3))
    world.simulator.call("StopTrainingJob", TrainingJobName="elastic-qstamp-1-m1")
    world.run_until(lambda: world.names("elastic") == ["elastic", "elastic-qstamp-1-m2", "elastic-qstamp-1-m3"])
    world.run_until(lambda: runs_with(world, 3))
    assert world.job("elastic").attempt.faulty_since is None
    assert "resizes, 2 -> 3 instances: replaces a lost member" in reasons(world)


def test_where_none_comes_it_makes_do_without_the_lost_member():
    world = a_world(policy=BY_DECREE)
    world.elastic("elastic", "members", training_seconds=4000)
    decreed(world, 3)
    world.simulator.call("StopTrainingJob", TrainingJobName="elastic-qstamp-1-m1")
    world.run_until(lambda: runs_with(world, 2))
    attempt = world.job("elastic").attempt
    assert (attempt.wanted, attempt.faulty_since is not None) == (3, True)
    world.run_until(lambda: world.job("elastic").attempt.faulty_since is None)
    assert reasons(world)[-1] == "continues with 2 of 3 instances"


def test_a_preempted_group_stops_as_a_whole_and_goes_on_as_another():
    world = a_world(cap=3)
    world.elastic("elastic", "members", min_instances=2, max_instances=3, training_seconds=900)
    world.run_until(lambda: runs_with(world, 3))
    world.submit("urgent", count=3, priority=5, training_seconds=100)
    world.run_until(lambda: world.job("urgent").state is JobState.RUNNING)
    assert (world.job("elastic").state, world.names("elastic")) == (JobState.PREEMPTED, [])
    world.run_until_ended("urgent", "elastic")
    assert [each.outcome for each in world.job("elastic").attempts] == [Outcome.PREEMPTED, Outcome.COMPLETED]
    assert world.peaks[P5] == 3


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("when", [0, 10, 30])
def test_its_user_may_stop_it_whatever_its_size_is_doing(hook, when):
    world = a_world(policy=BY_DECREE)
    world.resizer.answers_at_once = False
    world.elastic("elastic", hook, training_seconds=4000)
    world.run_until(lambda: runs_with(world, 1))
    world.decreed["elastic"] = 3
    world.run(60 + when)
    cancel(world.api_context, ADA, "elastic")
    world.run_until_ended("elastic")
    assert (world.job("elastic").state, world.in_use()) == (JobState.STOPPED, {})


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("after", [55, 60, 65])
def test_it_may_complete_while_it_grows(hook, after):
    world = a_world(policy=BY_DECREE)
    world.elastic("elastic", hook, training_seconds=after)
    world.run_until(lambda: runs_with(world, 1))
    world.decreed["elastic"] = 3
    world.run_until_ended("elastic")
    assert (world.job("elastic").state, world.in_use()) == (JobState.COMPLETED, {})


@pytest.mark.parametrize("hook", ["restart", "members"])
def test_a_growth_that_the_account_has_no_room_for_is_given_up(hook):
    world = a_world(policy=BY_DECREE, limits={P5: 2})
    world.elastic("elastic", hook, training_seconds=300)
    world.run_until(lambda: runs_with(world, 1))
    world.decreed["elastic"] = 3
    world.run_until(lambda: any("gives up 3 instances" in reason for reason in reasons(world)))
    world.run_until(lambda: runs_with(world, 1) or runs_with(world, 2))
    world.run_until_ended("elastic")
    assert world.job("elastic").state is JobState.COMPLETED
    assert world.torn == set()


def test_members_are_no_external_training_jobs():
    world = a_world(policy=BY_DECREE)
    world.elastic("elastic", "members", training_seconds=1000)
    decreed(world, 3)
    pool = world.api_context.store.settings().pools[P5]
    world.api_context.store.set_settings(pools=[type(pool)(pool.name, pool.cap, count_external=True)], version=0)
    world.run(180)
    assert world.api_context.store.read_snapshot().external == {}


class TestCustomResizer:
    """Custom resizes."""

    @pytest.fixture
    def world(self) -> ElasticWorld:
        world = a_world(policy=BY_DECREE)
        world.resizer.answers_at_once = False
        world.elastic("elastic", "custom", training_seconds=4000)
        world.run_until(lambda: runs_with(world, 1))
        return world

    def asked(self, world: ElasticWorld) -> dict[str, Any]:
        """Have the job grow to three instances, and the resizer remain silent; return its last question."""
        world.resizer.silent = True
        world.decreed["elastic"] = 3
        world.run(70)
        return world.resizer.asked[-1]

    def test_is_asked_once_and_told_all_that_it_needs(self, world):
        question = self.asked(world)
        world.run(300)
        assert len(world.resizer.asked) == 1
        until = world.job("elastic").attempt.resizing.until
        assert question | {"token": ""} == {
            "target": TARGET,
            "token": "",
            "job": "elastic",
            "attempt": 1,
            "trainingJobName": "elastic",
            "from": 1,
            "to": 3,
            "cause": "grow",
            "deadline": until.isoformat(),
            "answerTo": {"method": "POST", "path": "/jobs/elastic/resize"},
        }

    def test_answers_later_and_may_repeat_itself(self, world):
        question = self.asked(world)
        done = HookAnswer(token=question["token"], outcome=Answers.DONE, instances=2)
        assert answer_resize(world.api_context, ADA, "elastic", done).units == {P5: 2}
        again = answer_resize(world.api_context, ADA, "elastic", done)
        assert (again.state, again.units) == (JobState.RUNNING, {P5: 2})

    def test_may_refuse_and_the_job_keeps_its_size(self, world):
        question = self.asked(world)
        no = HookAnswer(token=question["token"], outcome=Answers.REFUSED, reason="not now")
        assert answer_resize(world.api_context, ADA, "elastic", no).units == {P5: 1}
        assert answer_resize(world.api_context, ADA, "elastic", no).units == {P5: 1}
        assert reasons(world)[-1] == "gives up 3 instances: refused: not now"

    @pytest.mark.parametrize("instances", [None, 1, 4, 0])
    def test_cannot_say_sizes_that_were_not_asked_for(self, world, instances):
        question = self.asked(world)
        wrong = HookAnswer(token=question["token"], outcome=Answers.DONE, instances=instances)
        with pytest.raises(InvalidRequest):
            answer_resize(world.api_context, ADA, "elastic", wrong)
        assert world.job("elastic").state is JobState.RESIZING

    def test_is_not_waited_for_beyond_his_time_and_is_told_so_then(self, world):
        question = self.asked(world)
        world.run_until(lambda: runs_with(world, 1))
        assert "no answer came in time" in reasons(world)[-1]
        late = HookAnswer(token=question["token"], outcome=Answers.DONE, instances=3)
        with pytest.raises(IllegalTransition, match="is over"):
            answer_resize(world.api_context, ADA, "elastic", late)

    def test_cannot_take_back_what_he_has_said(self, world):
        token = self.asked(world)["token"]
        answer_resize(world.api_context, ADA, "elastic", HookAnswer(token=token, outcome=Answers.DONE, instances=2))
        stands = world.job("elastic")
        for other in (
            HookAnswer(token=token, outcome=Answers.REFUSED),
            HookAnswer(token=token, outcome=Answers.DONE, instances=3),
        ):
            with pytest.raises(IllegalTransition, match="is done, with 2 instances") as caught:
                answer_resize(world.api_context, ADA, "elastic", other)
            assert (caught.value.field, world.job("elastic")) == ("token", stands)

    def test_may_refuse_late_what_was_not_done(self, world):
        token = self.asked(world)["token"]
        world.run_until(lambda: runs_with(world, 1))
        stands = world.job("elastic")
        assert (
            answer_resize(world.api_context, ADA, "elastic", HookAnswer(token=token, outcome=Answers.REFUSED)) == stands
        )

    def test_may_repeat_himself_when_he_has_been_asked_for_more_since(self, world):
        token = self.asked(world)["token"]
        done = HookAnswer(token=token, outcome=Answers.DONE, instances=2)
        answer_resize(world.api_context, ADA, "elastic", done)
        world.decreed["elastic"] = 3
        world.run_until(lambda: world.job("elastic").state is JobState.RESIZING)
        stands = world.job("elastic")
        assert answer_resize(world.api_context, ADA, "elastic", done) == stands
        with pytest.raises(IllegalTransition, match="is done, with 2 instances"):
            answer_resize(world.api_context, ADA, "elastic", HookAnswer(token=token, outcome=Answers.REFUSED))

    def test_comes_too_late_for_a_job_that_is_to_stop_or_has_stopped(self, world):
        token = self.asked(world)["token"]
        done = HookAnswer(token=token, outcome=Answers.DONE, instances=3)
        cancel(world.api_context, ADA, "elastic")
        with pytest.raises(IllegalTransition, match="is over: job elastic is stopping"):
            answer_resize(world.api_context, ADA, "elastic", done)
        world.run_until_ended("elastic")
        with pytest.raises(IllegalTransition, match="is over: stopped by its user"):
            answer_resize(world.api_context, ADA, "elastic", done)
        no = HookAnswer(token=token, outcome=Answers.REFUSED)
        assert answer_resize(world.api_context, ADA, "elastic", no).state is JobState.STOPPED

    def test_an_answer_without_a_resize_is_rejected(self, world):
        self.asked(world)
        with pytest.raises(IllegalTransition, match="this job has no resize with this token"):
            answer_resize(
                world.api_context, ADA, "elastic", HookAnswer(token="guessed", outcome=Answers.DONE, instances=3)
            )

    def test_a_job_that_does_not_shrink_is_preempted(self, world):
        world = a_world()
        world.elastic("elastic", "custom", max_instances=4, training_seconds=600)
        world.run_until(lambda: runs_with(world, 4))
        world.resizer.refuses = True
        world.submit("urgent", count=2, priority=5, training_seconds=100)
        world.run_until(lambda: world.job("urgent").state is JobState.RUNNING)
        world.resizer.refuses = False
        world.run_until_ended("urgent", "elastic")
        assert [each.outcome for each in world.job("elastic").attempts] == [Outcome.PREEMPTED, Outcome.COMPLETED]
