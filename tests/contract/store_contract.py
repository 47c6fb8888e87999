"""Contract of every Store. An engine's test module subclasses `StoreContract` and gives the fixture `engine`.

In parts, by what is asked: submitting and finding, moving, the fence (here); reading, listing, settings (beside).
"""

from __future__ import annotations

import random
import string
from dataclasses import replace

import pytest
from audit_contract import AuditContract, PurgeContract
from callback_contract import CallbackContract
from changes_contract import ChangesContract
from held_contract import HeldContract
from knowledge_contract import CursorContract, KnowledgeContract
from listing_contract import ListingContract
from outbox_contract import OutboxContract, ThresholdContract
from pause_contract import PauseContract
from reading_contract import ReadingContract
from records_contract import RecordsContract
from settings_contract import SettingsContract
from warm_contract import WarmContract

import builders as b
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.errors import Fenced, JobNotFound, TooLarge
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, TRANSITIONS, Change, Job, JobState
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides

BY_RESOURCES = Demand(({b.P5: 2},), queue_selects_pool=True, resources=Resources(accelerators=8), instances=2, listed=1)
EDGES = [(before, after) for before in JobState for after in (*sorted(TRANSITIONS[before]), before)]


def in_state(state: JobState, job: Job) -> Job:
    """The job in another state, one version on."""
    ended = b.at(60) if state in ENDED else None
    return replace(job, state=state, version=job.version + 1, ended_at=ended)


class SubmitContract:
    def test_a_new_job_is_stored_and_given_back_itself(self, store):
        job = b.a_job("job1", submitted_by="arn:aws:iam::111122223333:user/ada", max_pending=b.UNTIL - b.NOW)
        assert store.submit(job, b.a_request("job1")) is job
        assert store.find("job1") == job

    def test_a_request_comes_back_as_it_was(self, store):
        request = b.a_request("job1", Weights=[0.5, 1e-9, -3, None, True], Nested={"é": {"日本": ["\U0001f682", ""]}})
        store.submit(b.a_job("job1"), request)
        assert store.request_of("job1") == request

    def test_half_a_surrogate_pair_comes_back_as_it_was(self, store):
        request = b.a_request("job1", Environment={"HALF": "\ud83d"})
        store.submit(b.a_job("job1"), request)
        assert store.request_of("job1") == request

    def test_a_name_is_taken_once_and_the_first_stays(self, store):
        first = b.a_job("job1", digest="a" * 64)
        store.submit(first, b.a_request("job1", priority=1))
        again = store.submit(b.a_job("job1", priority=9, digest="b" * 64), b.a_request("job1", priority=2))
        assert again == first
        assert store.request_of("job1") == b.a_request("job1", priority=1)
        assert store.read_snapshot().waiting == (first,)

    @pytest.mark.parametrize(
        "later", [b.a_starting_job, b.a_running_job, b.a_preempted_job, b.a_held_job, b.an_ended_job, b.a_cancelled_job]
    )
    def test_a_name_stays_taken_whatever_became_of_its_job(self, store, later):
        first, now = b.a_job("job1"), later("job1")
        store.submit(first, b.a_request("job1"))
        assert store.transition([(first, now)])
        assert store.submit(b.a_job("job1"), b.a_request("job1")) == now

    def test_an_unsubmitted_name_is_not_found(self, store):
        assert store.find("missing") is None
        with pytest.raises(JobNotFound):
            store.request_of("missing")

    def test_one_read_finds_the_active_ones_among_named_jobs(self, store):
        active = [b.a_starting_job("starting"), b.a_running_job("running"), b.a_preempting_job("preempting")]
        others = [b.a_job("waits"), b.a_held_job("held"), b.an_ended_job("ended"), b.a_preempted_job("again")]
        for job in (*active, *others, b.a_running_job("unnamed")):
            store.submit(job, b.a_request(job.name))
        names = [job.name for job in (*active, *others)]
        assert store.find_active([*names, "missing"]) == {job.name: job for job in active}
        assert store.find_active([]) == {}

    def test_one_read_has_the_requests_of_named_jobs_but_may_leave_large_ones_out(self, store):
        noise = "".join(random.Random(7).choices(string.printable, k=50_000))
        requests = {"small": b.a_request("small"), "other": b.a_request("other")}
        for name, request in requests.items():
            store.submit(b.a_job(name), request)
        large = b.a_request("large", Environment={"NOISE": noise})
        store.submit(b.a_job("large"), large)
        found = store.requests_of([*requests, "large", "missing"])
        assert requests.items() <= found.items() <= (requests | {"large": large}).items()
        assert store.requests_of([]) == {}

    @pytest.mark.parametrize("alphabet", [string.printable, "\U00010000\U00020001\U0001f682\u4e2d\u6587é"])
    def test_the_largest_request_that_sagemaker_accepts_is_kept(self, store, alphabet):
        rng = random.Random(7)

        def text(length: int) -> str:
            return "".join(rng.choices(alphabet, k=length))

        request = b.a_request(
            "job1",
            HyperParameters={text(256): text(2500) for _ in range(100)},
            Environment={text(512): text(512) for _ in range(100)},
        )
        store.submit(b.a_job("job1"), request)
        assert store.request_of("job1") == request

    def test_a_request_that_no_transaction_holds_is_refused_by_its_largest_member(self, store):
        noise = "".join(random.Random(7).choices(string.printable, k=5_000_000))
        with pytest.raises(TooLarge) as refusal:
            store.submit(b.a_job("job1"), b.a_request("job1", Environment={"NOISE": noise}))
        assert refusal.value.field == "Environment"
        assert str(refusal.value.hint).startswith("Environment is its largest part")
        assert store.find("job1") is None
        assert store.read_snapshot().waiting == ()

    def test_any_text_is_kept(self, store):
        odd = 'é 日本 \U0001f682 # % $ / | , " \\ \n \x00'
        job = b.a_job(
            "job1",
            submitted_by=odd,
            share="équipe#1/%23$ |,",
            failure=odd,
            history=(Change(b.NOW, None, JobState.PENDING, odd),),
        )
        store.submit(job, b.a_request("job1"))
        assert store.find("job1") == job
        assert store.begin_pass().waiting == (job,)

    @pytest.mark.parametrize("alternatives", [(), ({b.G5: 2}, {b.P5: 2})], ids=["no pool", "two pools"])
    def test_requested_resources_are_stored(self, store, alternatives):
        asked = Resources(accelerators=8, accelerator_memory_gib=640, memory_gib=1.5, accelerator="nvidia")
        demand = Demand(
            alternatives, queue_selects_pool=True, resources=asked, instances=2, listed=len(alternatives) // 2
        )
        job = b.a_job("job1", demand=demand)
        store.submit(job, b.a_request("job1"))
        assert store.find("job1") == job
        assert store.begin_pass().waiting == (job,)

    def test_a_job_by_resources_starts_in_a_pool_that_was_not_there_when_it_was_submitted(self, store):
        demand = Demand((), queue_selects_pool=True, resources=Resources(accelerators=8), instances=2)
        job = b.a_job("job1", demand=demand)
        store.submit(job, b.a_request("job1"))
        store.submit(b.a_job("job2", demand=demand), b.a_request("job2"))
        found = replace(job, demand=replace(demand, alternatives=({"new": 2},)))
        started = lifecycle.start(found, {"new": 2}, (), b.at(1), instance_type=b.P5)
        fence = store.begin_pass().pass_number
        assert store.transition([(found, started)], fence=fence)
        snapshot = store.begin_pass()
        assert (snapshot.active, [each.name for each in snapshot.waiting]) == ((started,), ["job2"])
        assert snapshot.active[0].attempt.instance_type == b.P5

    def test_all_that_a_job_can_carry_is_kept(self, store):
        job = b.a_job(
            "job1",
            demand=b.a_demand({b.P5: 2, b.G5: 4}, {b.G5: 16}),
            preemptible=False,
            max_runtime=b.at(1.5) - b.NOW,
            keep_alive=True,
            attempt=b.an_attempt(3, training_job_name="other", choices=(b.P5, b.G5), stop_asked_at=b.at(0.000001)),
            past=(b.a_past_attempt(1), b.a_past_attempt(2, training_job_name="job1-qstamp-2", freed_for="job9")),
            reservation=b.a_reservation({b.P5: 2}),
            retry_at=b.at(-86_400.000001),
            capacity_failures=3,
            stop_requested=True,
            warm_pool_key="abc",
            container_image="image",
            checkpointed=True,
            preemption_overrides=PreemptionOverrides(min_runtime=b.at(0.5) - b.NOW, max_preemptions=3),
            deadline=b.at(86_400),
            group="sweep",
            max_concurrent=4,
            retries={FailureClass.ALGORITHM: 2},
            failures={FailureClass.ALGORITHM: 1, FailureClass.SPOT: 7},
        )
        store.submit(job, b.a_request("job1"))
        assert store.find("job1") == job


class MoveContract:
    @pytest.mark.parametrize(("origin", "target"), EDGES)
    def test_a_job_is_in_one_place_after_every_move(self, store, origin, target):
        before = in_state(origin, b.a_job("job1", attempt=b.an_attempt()))
        after = in_state(target, before)
        store.submit(before, b.a_request("job1"))
        assert store.transition([(before, after)])
        assert store.find("job1") == after
        snapshot = store.begin_pass()
        in_pass = target not in ENDED | {JobState.HELD}
        assert [*snapshot.active, *snapshot.waiting] == ([after] if in_pass else [])
        assert bool(snapshot.active) is (target.value in {"starting", "running", "preempting", "resizing"})

    def test_a_change_of_an_older_version_loses_and_changes_nothing(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        held = lifecycle.hold(job, b.at(1), "ada")
        assert store.transition([(job, held)])
        assert not store.transition([(job, lifecycle.cancel(job, b.at(2), "bob"))])
        assert not store.transition([(job, held)])
        assert store.find("job1") == held

    def test_a_change_in_place_of_an_older_version_loses(self, store):
        job = b.a_running_job("job1")
        store.submit(job, b.a_request("job1"))
        now = lifecycle.request_stop(job, b.at(1), "ada")
        assert store.transition([(job, now)])
        assert not store.transition([(job, lifecycle.request_stop(job, b.at(2), "bob"))])
        assert store.find("job1") == now

    def test_a_job_that_was_never_submitted_cannot_change(self, store):
        job = b.a_job("job1")
        assert not store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))])
        assert not store.transition([(job, lifecycle.reserve(job, b.a_reservation()))])
        assert store.find("job1") is None

    def test_all_changes_or_none(self, store):
        jobs = [b.a_running_job(f"job{n}") for n in range(3)]
        for job in jobs:
            store.submit(job, b.a_request(job.name))
        stale = jobs[1]
        store.transition([(stale, lifecycle.request_stop(stale, b.NOW, "ada"))])
        afters = [lifecycle.preempt(job, "job9", b.at(1)) for job in jobs]
        assert not store.transition(list(zip(jobs, afters, strict=True)))
        assert [store.find(f"job{n}").state.value for n in range(3)] == ["running"] * 3
        kept = [0, 2]
        assert store.transition([(jobs[n], afters[n]) for n in kept])
        assert [store.find(f"job{n}") for n in kept] == [afters[n] for n in kept]

    def test_nothing_to_change_always_wins(self, store):
        assert store.transition([])

    def test_ninety_changes_in_place_are_one(self, store):
        jobs = [b.a_running_job(f"job{n}") for n in range(90)]
        for job in jobs:
            store.submit(job, b.a_request(job.name))
        fence = store.begin_pass().pass_number
        assert store.transition([(job, lifecycle.preempt(job, "job9", b.NOW)) for job in jobs], fence=fence)
        assert {job.state for job in store.begin_pass().active} == {JobState.PREEMPTING}

    def test_forty_jobs_may_move_at_once(self, store):
        jobs = [b.a_job(f"job{n}") for n in range(40)]
        for job in jobs:
            store.submit(job, b.a_request(job.name))
        fence = store.begin_pass().pass_number
        assert store.transition([(job, lifecycle.start(job, {b.P5: 1}, (), b.NOW)) for job in jobs], fence=fence)
        assert len(store.begin_pass().active) == 40

    def test_more_changes_than_a_transaction_holds_or_two_of_one_job_are_a_mistake(self, store):
        jobs = [b.a_running_job(f"job{n}") for n in range(91)]
        with pytest.raises(ValueError, match="90"):
            store.transition([(job, lifecycle.preempt(job, "job9", b.NOW)) for job in jobs])
        job = jobs[0]
        with pytest.raises(ValueError, match="one of each job"):
            store.transition([(job, lifecycle.preempt(job, "job9", b.NOW))] * 2)

    def test_a_changed_priority_moves_a_waiting_job_in_its_lane(self, store):
        first, second = b.a_job("first"), b.a_job("second", entry_time=b.at(1))
        for job in (first, second):
            store.submit(job, b.a_request(job.name))
        raised = lifecycle.reprioritize(second, 7, b.at(2), "ada")
        assert store.transition([(second, raised)])
        assert store.begin_pass().waiting == (raised, first)
        assert store.find("second") == raised

    @pytest.mark.parametrize("demand", [b.a_demand({b.P5: 2}, {b.G5: 2}), BY_RESOURCES])
    def test_other_size_bounds_move_a_waiting_job_to_the_lane_of_its_new_minimum(self, store, demand):
        elastic = Elastic(min_instances=2, max_instances=16, values=(2, 4, 8, 16))
        job, other = b.a_job("job1", elastic=elastic, demand=demand), b.a_job("job2", entry_time=b.at(1))
        for each in (job, other):
            store.submit(each, b.a_request(each.name))
        larger = lifecycle.set_bounds(job, replace(elastic, min_instances=8, max_instances=8), b.at(2), "ada")
        assert larger.lane != job.lane
        assert store.transition([(job, larger)])
        assert not store.transition([(job, larger)])
        assert store.begin_pass().waiting == (larger, other)
        back = lifecycle.set_bounds(larger, elastic, b.at(3), "ada")
        assert store.transition([(larger, back)])
        assert (store.find("job1"), store.begin_pass().waiting) == (back, (back, other))
        assert (back.demand, back.elastic) == (demand, elastic)

    @pytest.mark.parametrize("away", [b.a_held_job, b.a_running_job])
    def test_a_priority_changed_while_a_job_does_not_wait_counts_when_it_waits_again(self, store, away):
        job = away("job1")
        store.submit(job, b.a_request("job1"))
        raised = lifecycle.reprioritize(job, 1_000_000, b.at(1), "ada")
        assert store.transition([(job, raised)])
        back = in_state(JobState.PENDING, raised)
        assert store.transition([(raised, back)])
        assert store.find("job1") == back
        assert store.begin_pass().waiting == (back,)

    @pytest.mark.parametrize("from_snapshot", [True, False])
    def test_a_long_history_is_found_whole(self, store, from_snapshot):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        whole = list(job.history)
        for n in range(150):
            before = store.begin_pass().waiting[0] if from_snapshot or n % 3 == 0 else store.find("job1")
            after = lifecycle.reprioritize(before, n, b.at(n), "ada")
            whole.append(after.history[-1])
            assert store.transition([(before, after)])
        assert list(store.find("job1").history) == whole
        before = store.begin_pass().waiting[0]
        ended = lifecycle.cancel(before, b.at(200), "ada")
        assert store.transition([(before, ended)])
        assert list(store.find("job1").history) == [*whole, ended.history[-1]]


class FenceContract:
    def test_passes_are_numbered_one_by_one(self, store):
        assert store.read_snapshot().pass_number == store.current_pass() == 0
        assert [store.begin_pass().pass_number for _ in range(3)] == [1, 2, 3]
        assert store.read_snapshot().pass_number == store.current_pass() == 3

    def test_an_overtaken_pass_commits_nothing(self, store, other_store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        old = store.begin_pass().pass_number
        new = other_store.begin_pass().pass_number
        started = lifecycle.start(job, {b.P5: 1}, (), b.NOW)
        with pytest.raises(Fenced):
            store.transition([(job, started)], fence=old)
        assert store.find("job1") == job
        assert other_store.transition([(job, started)], fence=new)

    def test_an_overtaken_pass_is_told_so_even_where_the_job_has_moved_too(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        old = store.begin_pass().pass_number
        new = store.begin_pass().pass_number
        started = lifecycle.start(job, {b.P5: 1}, (), b.NOW)
        assert store.transition([(job, started)], fence=new)
        with pytest.raises(Fenced):
            store.transition([(job, started)], fence=old)

    def test_a_change_in_place_is_fenced_too(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        old = store.begin_pass().pass_number
        store.begin_pass()
        with pytest.raises(Fenced):
            store.transition([(job, lifecycle.reserve(job, b.a_reservation()))], fence=old)
        assert store.find("job1") == job

    def test_within_its_pass_a_change_of_an_older_version_just_loses(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        fence = store.begin_pass().pass_number
        store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))])
        assert not store.transition([(job, lifecycle.start(job, {b.P5: 1}, (), b.NOW))], fence=fence)

    def test_changes_that_free_capacity_need_no_fence(self, store):
        job = b.a_running_job("job1")
        store.submit(job, b.a_request("job1"))
        store.begin_pass()
        assert store.transition([(job, lifecycle.fail(job, b.NOW, "it broke"))])


class StoreContract(
    ChangesContract,
    SubmitContract,
    MoveContract,
    FenceContract,
    ReadingContract,
    ListingContract,
    OutboxContract,
    ThresholdContract,
    CallbackContract,
    HeldContract,
    SettingsContract,
    RecordsContract,
    WarmContract,
    KnowledgeContract,
    CursorContract,
    AuditContract,
    PauseContract,
    PurgeContract,
):
    """The whole contract; `engine` is a fixture of the subclass."""

    @pytest.fixture
    def store(self, engine):
        return engine.open()

    @pytest.fixture
    def other_store(self, engine):
        """Another process at the same table."""
        return engine.open()
