"""Any story of an elastic job: sizes change, reports come late, twice or never, and training jobs end when they like.

A small SageMaker stands beside the job's own functions. Whatever happens: the job counts all instances that SageMaker
may hold for it, what is charged is what was held, and the job never stands still for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import builders as b
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ACTIVE, ENDED, TRANSITIONS, WAITING, JobState
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.domain.records import Records, booked
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.domain.shares.usage import spent

POLICY = b.a_metered_policy("default")
POOLS = b.pools_of()
LIMIT = timedelta(minutes=15)
SIZES = ((1, 2, 3, 4), (1, 3, 5), (2, 4))
FAILURES = {
    "done": "it broke",
    "broken": "it broke",
    "no capacity": "CapacityError: no instances",
    "internal error": "InternalServerError: sorry",
}


@dataclass
class TrainingJob:
    """One of SageMaker's."""

    instances: int
    status: Status = Status.IN_PROGRESS
    at_work: bool = False
    failure: str | None = None

    def seen(self, name: str, now) -> Observation:
        if self.status is not Status.IN_PROGRESS:
            return Observation(
                training_job_name=name,
                status=self.status,
                started_at=now if self.at_work else None,
                failure_reason=self.failure,
            )
        secondary = "Training" if self.at_work else "Starting"
        return Observation(training_job_name=name, status=self.status, secondary=secondary)


class Story(RuleBasedStateMachine):
    """Events in the life of one elastic job."""

    hook: Hook

    @initialize(sizes=st.sampled_from(SIZES), warm=st.booleans(), data=st.data())
    def begin(self, sizes, warm, data):
        elastic = Elastic(min_instances=sizes[0], max_instances=sizes[-1], values=sizes, hook=self.hook)
        self.now, self.records, self.held = b.NOW, Records(), 0.0
        self.world: dict[str, TrainingJob] = {}
        self.reports: list[Observation] = []
        self.meddled = False
        self.job = b.a_job(elastic=elastic, units={b.P5: sizes[0]}, keep_alive=warm)
        self.start(data)

    # Actions of the queue.

    def become(self, after):
        before = self.job
        if after is None or after is before:
            return
        for old, new in zip(before.history, after.history, strict=False):
            assert old == new
        for line in after.history[len(before.history) :]:
            assert line.before is line.after or line.after in TRANSITIONS[line.before]
        self.records = booked(self.records, before, after, POLICY, POOLS)
        self.job = after

    def pass_time(self, seconds):
        self.held += sum(self.job.units.values()) * seconds
        self.now += timedelta(seconds=seconds)

    @rule(seconds=st.integers(1, 300))
    def time_passes(self, seconds):
        self.pass_time(seconds)

    @precondition(lambda self: self.job.state in WAITING)
    @rule(data=st.data())
    def start(self, data):
        size = data.draw(st.sampled_from(self.job.elastic.sizes), label="size")
        self.become(lifecycle.start(self.job, {b.P5: size}, (), self.now))

    @precondition(lambda self: self.job.state is JobState.RUNNING and not self.job.stopping)
    @rule(data=st.data(), cause=st.sampled_from(Cause), freed_for=st.sampled_from([None, "job9"]))
    def resize(self, data, cause, freed_for):
        sizes = [size for size in self.job.sizes if size != self.job.attempt.size]
        if not sizes:
            return
        size = data.draw(st.sampled_from(sizes), label="size")
        until = self.now + LIMIT
        self.become(lifecycle.resize(self.job, size, cause, self.now, until=until, freed_for=freed_for))

    @precondition(lambda self: self.job.state not in ENDED)
    @rule(data=st.data())
    def change_bounds(self, data):
        """Set other bounds; the base of a job with members may refuse them, and then nothing changes."""
        bounds = sorted(data.draw(st.tuples(*[st.sampled_from(self.job.elastic.values)] * 2), label="bounds"))
        asked = SizeBounds(*bounds).apply(self.job.elastic)
        try:
            self.become(lifecycle.set_bounds(self.job, asked, self.now, "ada"))
        except IllegalTransition:
            assert self.job.attempt.base_size > bounds[1]
            return
        assert self.job.demand == b.a_demand({b.P5: bounds[0]})
        assert self.job.sizes

    @precondition(lambda self: self.job.state in ACTIVE - {JobState.PREEMPTING} and not self.job.stopping)
    @rule(who=st.sampled_from(["ada", "job9"]))
    def ends_by_decision(self, who):
        self.meddled |= who == "ada"
        if who == "ada":
            self.become(lifecycle.request_stop(self.job, self.now, who))
        else:
            self.become(lifecycle.preempt(self.job, who, self.now))

    @rule(luck=st.sampled_from(["created", "created", "answer lost", "refused"]))
    def carry_out(self, luck="created"):
        """One round of what a pass does for an active job."""
        self.launch(luck)
        self.stop()
        self.recheck_at()
        if self.job.elastic.hook is Hook.MEMBERS and self.job.units and self.job.attempt.launched:
            self.tend_members(luck)
        self.tend_resize()

    def launch(self, luck):
        attempt = self.job.attempt
        if self.job.state not in ACTIVE or attempt.launched:
            return
        name = attempt.training_job_name
        if self.job.stop_asked:
            gone = Observation(training_job_name=name, status=Status.STOPPED)
            self.become(
                lifecycle.mark_launched(self.job) if name in self.world else lifecycle.observe(self.job, gone, self.now)
            )
        elif luck == "refused" and name not in self.world:
            if attempt.resizing is not None and attempt.resizing.grows:
                self.become(lifecycle.abandon_resize(self.job, self.now, "no room"))
            else:
                self.become(lifecycle.retry_or_fail(self.job, FailureClass.CAPACITY, self.now, "no room"))
        else:
            count = attempt.base_size if self.hook is Hook.MEMBERS else attempt.size
            self.world.setdefault(name, TrainingJob(count))
            if luck != "answer lost":
                self.become(lifecycle.mark_launched(self.job))

    def stop(self):
        attempt = self.job.attempt
        wants = self.job.state in ACTIVE and attempt.launched and attempt.stop_asked_at is not None
        if not wants or attempt.stop_sent:
            return
        own = self.world[attempt.base_name]
        if own.status is Status.IN_PROGRESS:
            own.status = Status.STOPPING
            self.become(lifecycle.mark_stop_sent(self.job))

    def recheck_at(self):
        attempt = self.job.attempt
        if self.job.units and attempt.base_ended_at is not None and not attempt.members:
            self.tell(attempt.base_name)

    def tend_members(self, luck):
        for member in self.job.attempt.members:
            if not self.job.units:
                return
            name, there = member.training_job_name, self.world.get(member.training_job_name)
            if member not in self.job.attempt.members:
                continue
            gone_base = self.job.attempt.base_ended_at is not None
            if member.leaving and not member.launched:
                if there is not None:
                    self.become(lifecycle.mark_member_launched(self.job, name))
                else:
                    self.become(lifecycle.remove_member(self.job, name, self.now, "is not needed", lost=False))
            elif member.leaving and member.left_at is None:
                self.become(lifecycle.mark_member_left(self.job, name, self.now))
            elif member.leaving and not member.stop_sent:
                if there.status is Status.IN_PROGRESS:
                    there.status = Status.STOPPING
                self.become(lifecycle.mark_member_stop_sent(self.job, name))
            elif not member.launched and not self.job.stop_asked and not gone_base:
                self.create_member(name, luck)

    def create_member(self, name, luck):
        under_way = self.job.attempt.resizing
        if luck == "refused" and name not in self.world:
            if under_way is not None and under_way.grows:
                self.become(lifecycle.abandon_resize(self.job, self.now, "no room"))
            else:
                self.become(lifecycle.remove_member(self.job, name, self.now, "cannot be created", lost=False))
            return
        self.world.setdefault(name, TrainingJob(1))
        if luck != "answer lost":
            self.become(lifecycle.mark_member_launched(self.job, name))

    def tend_resize(self):
        """Abandon a growth whose time is over; a custom resize is done at once, or never."""
        attempt = self.job.attempt
        under_way = attempt.resizing
        if self.job.state is not JobState.RESIZING or under_way is None or self.now < under_way.until:
            return
        late = under_way.grows and attempt.launched and (self.hook is not Hook.RESTART or attempt.started_at is None)
        if self.hook is Hook.CUSTOM or late:
            self.become(lifecycle.abandon_resize(self.job, self.now, "it has not come in time"))

    @precondition(lambda self: self.hook is Hook.CUSTOM and self.job.state is JobState.RESIZING)
    @rule()
    def custom_resizer_answers(self):
        under_way = self.job.attempt.resizing
        own = self.world.get(self.job.attempt.training_job_name)
        if under_way is not None and own is not None and own.status is Status.IN_PROGRESS:
            own.instances = under_way.after
            self.become(lifecycle.complete_resize(lifecycle.record_hook_call(self.job), self.now, under_way.after))

    @precondition(lambda self: self.job.state is JobState.RUNNING and self.job.attempt.faulty_since is not None)
    @rule()
    def accept_smaller_size(self):
        if self.job.attempt.size in self.job.elastic.sizes and not self.job.stopping:
            self.become(lifecycle.accept_smaller_size(self.job, self.now))

    @precondition(lambda self: self.job.state is JobState.RUNNING and self.job.attempt.faulty_since is not None)
    @rule()
    def give_up_attempt(self):
        if self.job.attempt.size < self.job.elastic.min_instances and not self.job.stopping:
            self.become(lifecycle.give_up_attempt(self.job, self.now))

    # Actions of SageMaker.

    def live(self):
        return [name for name, each in self.world.items() if each.status in (Status.IN_PROGRESS, Status.STOPPING)]

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def something_comes_to_work(self, data):
        name = data.draw(st.sampled_from(self.live()))
        self.world[name].at_work = self.world[name].at_work or self.world[name].status is Status.IN_PROGRESS
        self.note(name)

    @precondition(lambda self: self.live())
    @rule(data=st.data(), how=st.sampled_from(["done", "broken", "no capacity", "internal error"]))
    def something_ends(self, data, how):
        name = data.draw(st.sampled_from(self.live()))
        self.end(name, how)
        self.note(name)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def a_person_stops_a_training_job(self, data):
        name = data.draw(st.sampled_from(self.live()))
        self.world[name].status = Status.STOPPING
        self.meddled = True
        self.note(name)

    def end(self, name, how):
        there = self.world[name]
        if there.status is Status.STOPPING:
            there.status = Status.STOPPED
        elif how == "done" and there.at_work:
            there.status = Status.COMPLETED
        else:
            there.status = Status.FAILED
            there.failure = FAILURES[how]

    # Reports about them.

    def note(self, name):
        self.reports.append(self.world[name].seen(name, self.now))

    def tell(self, name):
        self.become(lifecycle.observe(self.job, self.world[name].seen(name, self.now), self.now))

    @precondition(lambda self: self.reports)
    @rule(data=st.data(), again=st.booleans())
    def report(self, data, again):
        index = data.draw(st.integers(0, len(self.reports) - 1))
        seen = self.reports[index] if again else self.reports.pop(index)
        self.become(lifecycle.observe(self.job, seen, self.now))

    @rule()
    def look_at_all(self):
        if not self.job.units:
            return
        for name in self.job.attempt.training_job_names:
            if self.job.units and name in self.world and name in self.job.attempt.training_job_names:
                self.tell(name)

    # Invariants.

    @invariant()
    def the_job_counts_all_that_sagemaker_may_hold(self):
        if not hasattr(self, "job"):
            return
        held = sum(self.world[name].instances for name in self.live())
        assert all(count >= 0 for count in self.job.units.values())
        assert sum(self.job.units.values()) >= held, (self.job.units, self.world)

    @invariant()
    def what_is_charged_is_what_was_held(self):
        if not hasattr(self, "job"):
            return
        charged = self.records.usage.in_period("default", POLICY.shares["default"].budget, self.now).gpu_seconds
        if self.job.state in ACTIVE:
            charged += spent(self.job.units, self.job.attempt.held_since, self.now, POOLS).gpu_seconds
        assert charged == pytest.approx(self.held * POOLS[b.P5].accelerators)

    @invariant()
    def an_attempt_that_is_over_holds_no_member_and_no_resize(self):
        if not hasattr(self, "job"):
            return
        over = self.job.attempts if self.job.state not in ACTIVE else self.job.past
        for attempt in over:
            assert attempt.outcome is not Outcome.ACTIVE
            assert not attempt.members
            assert attempt.resizing is None
            assert attempt.faulty_since is None
            assert attempt.size > 0

    @invariant()
    def no_job_is_lost_for_being_resized(self):
        if hasattr(self, "job"):
            assert self.job.state is not JobState.STOPPED or self.meddled

    def teardown(self):
        """From here on nothing goes wrong any more: the job comes to rest."""
        if not hasattr(self, "job"):
            return
        for _ in range(40):
            if self.at_rest():
                break
            self.pass_time(60)
            self.bring_into_bounds()
            if self.hook is Hook.CUSTOM and self.job.state is JobState.RESIZING:
                self.custom_resizer_answers()
            self.carry_out()
            for name in self.live():
                if self.world[name].status is Status.STOPPING:
                    self.end(name, "done")
                else:
                    self.world[name].at_work = True
            self.look_at_all()
            self.the_job_counts_all_that_sagemaker_may_hold()
            self.what_is_charged_is_what_was_held()
        assert self.at_rest(), self.job
        self.an_attempt_that_is_over_holds_no_member_and_no_resize()
        self.no_job_is_lost_for_being_resized()

    def bring_into_bounds(self):
        """Resize as a pass does if the bounds have changed: to the next smaller size, or up to the smallest."""
        attempt = self.job.attempt
        settled = self.job.state is JobState.RUNNING and not self.job.stopping and attempt.faulty_since is None
        if settled and attempt.base_ended_at is None and attempt.size not in self.job.sizes:
            smaller = [size for size in self.job.sizes if size < attempt.size]
            size = max(smaller, default=self.job.sizes[0])
            self.become(lifecycle.resize(self.job, size, Cause.BOUNDS, self.now, until=self.now + LIMIT))

    def at_rest(self):
        if self.job.state in WAITING or self.job.state in ENDED:
            return not self.live()
        attempt = self.job.attempt
        whole = attempt.size in self.job.sizes or attempt.faulty_since is not None or attempt.size == 0
        there = {name for name in self.live() if self.world[name].at_work}
        return self.job.state is JobState.RUNNING and whole and there == set(attempt.training_job_names)


def plays(hook, examples, steps):
    machine = type(f"StoryOf{hook.title()}", (Story,), {"hook": hook})
    unhurried = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=unhurried)


@pytest.mark.parametrize("hook", Hook)
def test_no_story_holds_more_than_counts_or_gets_stuck(hook):
    plays(hook, 40, 30)


@pytest.mark.slow
@pytest.mark.parametrize("hook", Hook)
def test_no_long_story_does_either(hook):
    plays(hook, 1_500, 60)
