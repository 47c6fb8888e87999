"""Choice of victims, against an oracle that tries every set of jobs under the rules in their simplest form."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import combinations

from hypothesis import HealthCheck, event, given, note
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_job, a_past_attempt, a_pool, a_running_job, a_snapshot, a_starting_job, at
from samples import examples
from trainmaster.domain.capacity.units import covers, total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Policy, Preemption, PreemptionOverrides
from trainmaster.domain.records import Records
from trainmaster.planner.preemption.candidates import CumulativeUnits
from trainmaster.planner.preemption.preempt import Candidates

TRN = "ml.trn1.32xlarge"
POOLS = (P5, G5, TRN)
ACCELERATORS = {P5: 8, G5: 1, TRN: 16}
FOREVER = timedelta(days=1000)

common = st.sampled_from((P5, P5, P5, P5, G5, TRN))
units = st.dictionaries(common, st.integers(1, 3), min_size=1, max_size=2)
lacking = st.dictionaries(common, st.integers(2, 6), min_size=1, max_size=2)
spans = st.sampled_from((0, 60, 600)).map(lambda seconds: timedelta(seconds=seconds))
maybe_spans = st.none() | spans
mosts = st.none() | st.integers(1, 3)
rules = st.just(Preemption()) | st.builds(Preemption, min_runtime=spans, cooldown=spans, max_preemptions=mosts)
preemption_overrides = st.builds(
    PreemptionOverrides, min_runtime=maybe_spans, cooldown=maybe_spans, max_preemptions=mosts
)


@st.composite
def active_jobs(draw, name):
    """A job in any state in which it holds units, with any past."""
    since = at(-draw(st.integers(0, 900)))
    fields = {
        "units": draw(units),
        "priority": draw(st.integers(0, 3)),
        "share": draw(st.sampled_from("abc")),
        "preemptible": draw(st.integers(0, 14)) > 0,
        "preemption_overrides": draw(st.just(PreemptionOverrides()) | preemption_overrides),
        "checkpointed": draw(st.booleans()),
    }
    if draw(st.integers(0, 9)) == 0:
        job = a_starting_job(name, now=since, **fields)
        job = lifecycle.mark_launched(job) if draw(st.booleans()) else job
    else:
        job = a_running_job(name, now=since, **fields)
        saved = draw(st.none() | st.integers(-1200, 0).map(at))
        job = replace(job, attempt=replace(job.attempt, saved_at=saved))
    outcomes = draw(st.just([]) | st.lists(st.sampled_from((Outcome.PREEMPTED, Outcome.RETURNED)), max_size=3))
    past = tuple(a_past_attempt(number, outcome=outcome) for number, outcome in enumerate(outcomes, 1))
    job = replace(job, past=past, attempt=replace(job.attempt, number=len(past) + 1))
    return lifecycle.preempt(job, "other", NOW) if draw(st.integers(0, 14)) == 0 else job


@st.composite
def snapshots(draw, most=8):
    active = [draw(active_jobs(f"a{i}")) for i in range(draw(st.integers(most // 2, most)))]
    startups = {job.demand.types: float(draw(st.integers(0, 300))) for job in active if draw(st.booleans())}
    policy = Policy(preemption=draw(rules))
    snapshot = a_snapshot(pools=[a_pool(name, 100) for name in POOLS], active=active, policy=policy)
    return replace(snapshot, records=Records(history=History(startups=startups)))


def by_priority(job):
    return (job.priority,)


def by_level(job):
    """Two members, as under least attained service: a level of its own for every third job."""
    return (job.priority // 2, -(int(job.name[1:] or 0) % 3))


ranks = st.sampled_from((by_priority, by_level))


def with_examples(count):
    """Snapshots take long to draw, and longer on a busy machine."""
    return examples(count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# -- the oracle -----------------------------------------------------------------------------------------------------


def could_go(job):
    """Return True if a job could be preempted at all."""
    known = job.attempt.launched and job.attempt.stop_asked_at is None
    return job.preemptible and known and job.state in (JobState.STARTING, JobState.RUNNING)


def free_from(job, snapshot):
    """From when on the rules against thrashing leave a job alone; None for never."""
    queue, own = snapshot.policy.preemption, job.preemption_overrides
    stepped_aside = [attempt for attempt in job.past if attempt.outcome is Outcome.PREEMPTED]
    most = queue.max_preemptions if own.max_preemptions is None else own.max_preemptions
    if most is not None and len(stepped_aside) >= most:
        return None
    span = queue.min_runtime if own.min_runtime is None else own.min_runtime
    if stepped_aside:
        span = max(span, queue.cooldown if own.cooldown is None else own.cooldown)
    if span == timedelta(0):
        return NOW
    startup = timedelta(seconds=snapshot.records.history.startup(job))
    return (job.attempt.started_at or job.attempt.created_at + startup) + span


def is_open(job, snapshot):
    return could_go(job) and (moment := free_from(job, snapshot)) is not None and moment <= NOW


def loss(job, snapshot):
    """GPU-seconds that are done again."""
    attempt, startup = job.attempt, snapshot.records.history.startup(job)
    gpus = sum(ACCELERATORS[pool] * count for pool, count in attempt.units.items())
    if attempt.started_at is None:
        return gpus * min(startup, (NOW - attempt.created_at).total_seconds())
    kept = attempt.saved_at if job.checkpointed and attempt.saved_at is not None else attempt.started_at
    return gpus * ((NOW - max(kept, attempt.started_at)).total_seconds() + startup)


def frees(jobs, missing):
    return covers(total(job.units for job in jobs), missing)


def sets_of(jobs):
    return (some for count in range(1, len(jobs) + 1) for some in combinations(jobs, count))


def best_set(jobs, missing, snapshot, rank):
    """Of all sets that free enough: the lowest best standing, then the least loss, the fewest, the first by names."""

    def sort_key(some):
        names = sorted(job.name for job in some)
        return max(map(rank, some)), sum(loss(job, snapshot) for job in some), len(some), names

    return min((sort_key(some) for some in sets_of(jobs) if frees(some, missing)), default=None)


def starts_no_chain(some, could, missing, rank):
    """Return True if no victim could at once displace in its turn a spared job of a lower rank."""
    for victim in some:
        others = [job for job in some if job is not victim]
        lower = [job for job in could if job not in some and rank(job) < rank(victim)]
        if frees([*others, *lower], missing):
            return False
    return True


# -- the properties -------------------------------------------------------------------------------------------------


def choose(snapshot, job, missing, rank, *, permits=None, now=NOW):
    choice = Candidates.of(snapshot, now, rank).victims(job, missing, permits)
    note(str(choice))
    return choice


new_jobs = st.builds(a_job, st.just("n1"), priority=st.integers(2, 5), share=st.sampled_from("abc"))


@given(snapshots(), new_jobs, lacking, ranks)
@with_examples(80)
def test_the_cheapest_set_of_the_lowest_cutoff_steps_aside(snapshot, job, missing, rank):
    """Unless that starts a chain: then who would be displaced in turn steps aside at once, in the place of another."""
    choice = choose(snapshot, job, missing, rank)
    could = [other for other in snapshot.active if is_open(other, snapshot) and rank(other) < rank(job)]
    best = best_set(could, missing, snapshot, rank)
    assert bool(choice.victims) == (best is not None)
    if best is None:
        return
    cutoff, _, _, names = best
    assert choice.highest_rank == cutoff == max(map(rank, choice.victims))
    assert choice.cost == sum(loss(victim, snapshot) for victim in choice.victims)
    assert starts_no_chain(choice.victims, could, missing, rank)
    if starts_no_chain([other for other in could if other.name in names], could, missing, rank):
        assert (choice.cost, sorted(victim.name for victim in choice.victims)) == (best[1], names)
        event("cheapest of several" if len(names) > 1 else "cheapest of one")
    else:
        event("chain avoided")


@given(snapshots(), new_jobs, lacking, ranks)
@with_examples(80)
def test_only_eligible_and_needed_jobs_are_preempted(snapshot, job, missing, rank):
    choice = choose(snapshot, job, missing, rank)
    for victim in choice.victims:
        assert rank(victim) < rank(job)
        assert is_open(victim, snapshot)
        assert not frees([other for other in choice.victims if other is not victim], missing)
    assert frees(choice.victims, missing) or not choice.victims


@given(snapshots(), new_jobs, lacking, ranks)
@with_examples(80)
def test_protection_alone_is_reported_with_jobs_and_time(snapshot, job, missing, rank):
    choice = choose(snapshot, job, missing, rank)
    lower = [other for other in snapshot.active if could_go(other) and rank(other) < rank(job)]
    assert bool(choice.victims or choice.protected) == frees(lower, missing)
    assert not (choice.victims and choice.protected)
    for protected in choice.protected:
        assert protected in lower
        assert not is_open(protected, snapshot)
    if choice.protected and choice.until is None:
        assert not choose(snapshot, job, missing, rank, now=NOW + FOREVER).victims
    if choice.until is not None:
        assert choice.until > NOW
        assert choose(snapshot, job, missing, rank, now=choice.until).victims


@given(snapshots(), new_jobs, lacking, ranks, st.randoms(use_true_random=False))
@with_examples(60)
def test_the_choice_does_not_hang_on_the_order_in_which_jobs_were_read(snapshot, job, missing, rank, shuffler):
    shuffled = list(snapshot.active)
    shuffler.shuffle(shuffled)
    again = replace(snapshot, active=tuple(shuffled))
    assert choose(again, job, missing, rank) == choose(snapshot, job, missing, rank)


# -- where shares are in play: what is permitted hangs on who was taken before --------------------------------------


class Lending:
    """An owner takes from shares that hold more than their own, as long as they do; inside its share it outranks.

    Args:
        job: the newcomer.
        above: units that each share holds beyond its own; the newcomer's own counts the newcomer.
        standing: what decides inside a share.
    """

    def __init__(self, job, above, rank):
        self.job, self.above, self.rank = job, above, rank

    def __call__(self, victim, taken):
        if victim.share == self.job.share:
            return self.rank(victim) < self.rank(self.job)
        return self._left(self.job.share, taken) <= 0 < self._left(victim.share, taken)

    def _left(self, share, taken):
        return self.above[share] - sum(sum(other.units.values()) for other in taken if other.share == share)

    def permits_all(self, jobs):
        return all(self(job, jobs[:index]) for index, job in enumerate(jobs))


surplus = st.fixed_dictionaries({share: st.integers(0, 5) for share in "abc"})


def best_permitted(jobs, missing, snapshot, rank, permits):
    """Of all sets that free enough, each permitted after those before it: the best. Own jobs are asked for first."""

    def order(job):
        return job.share != permits.job.share, rank(job), loss(job, snapshot), job.name

    def sort_key(some):
        return (
            max(map(rank, some)),
            sum(loss(job, snapshot) for job in some),
            len(some),
            sorted(job.name for job in some),
        )

    def each_helps(some):
        freed = [total(job.units for job in some[:index]) for index in range(len(some))]
        left = [[pool for pool, count in missing.items() if count > before.get(pool, 0)] for before in freed]
        return all(any(pool in job.units for pool in pools) for job, pools in zip(some, left, strict=True))

    enough = (some for some in sets_of(sorted(jobs, key=order)) if frees(some, missing))
    legal = (some for some in enough if permits.permits_all(some) and each_helps(some))
    return min(map(sort_key, legal), default=None)


@given(snapshots(), new_jobs, lacking, ranks, surplus)
@with_examples(80)
def test_of_what_shares_permit_a_set_as_good_as_the_best_in_the_order_of_asking_steps_aside(
    snapshot, job, missing, rank, above
):
    """Asked in another order, others may be permitted together: then the choice may be better than that best."""
    permits = Lending(job, above, rank)
    choice = choose(snapshot, job, missing, rank, permits=permits)
    could = [o for o in snapshot.active if is_open(o, snapshot) and any(pool in o.units for pool in missing)]
    alone = [other for other in could if permits(other, ())]
    # Where those do not suffice that are permitted alone, others may be once the newcomer's own have been taken.
    best = best_permitted(alone, missing, snapshot, rank, permits)
    any_ = best or best_permitted(could, missing, snapshot, rank, permits)
    if not choice.victims:
        assert any_ is None
        return
    assert permits.permits_all(choice.victims)
    assert frees(choice.victims, missing)
    for victim in choice.victims:
        fewer = [other for other in choice.victims if other is not victim]
        assert not (frees(fewer, missing) and permits.permits_all(fewer))
    if best is not None:
        cutoff, cost, _, names = best
        assert choice.highest_rank <= cutoff
        free_of_chains = starts_no_chain([other for other in could if other.name in names], could, missing, rank)
        if choice.highest_rank == cutoff and free_of_chains:
            assert choice.cost <= cost


@given(snapshots(), new_jobs, lacking, ranks, surplus)
@with_examples(80)
def test_victims_that_only_the_rules_exclude_are_reported_as_protected(snapshot, job, missing, rank, above):
    permits = Lending(job, above, rank)
    choice = choose(snapshot, job, missing, rank, permits=permits)
    for protected in choice.protected:
        assert could_go(protected)
        assert not is_open(protected, snapshot)
    if choice.until is not None:
        assert choose(snapshot, job, missing, rank, permits=permits, now=choice.until).victims


asked = st.lists(st.tuples(new_jobs, lacking), min_size=2, max_size=5)


@given(snapshots(), asked, ranks, surplus, st.booleans())
@with_examples(80)
def test_repeated_searches_equal_fresh_searches_of_the_remaining_jobs(snapshot, questions, rank, above, enabled):
    """Work is shared between questions; a job that has been taken is not counted on again."""
    candidates, left = Candidates.of(snapshot, NOW, rank), snapshot
    for job, missing in questions:
        permits = Lending(job, above, rank) if enabled else None
        choice = candidates.victims(job, missing, permits, job.share if enabled else None)
        assert choice == choose(left, job, missing, rank, permits=permits)
        candidates.remove(choice.victims)
        left = replace(left, active=tuple(other for other in left.active if other not in choice.victims))


steps = st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 20))


@given(st.lists(steps, min_size=1, max_size=30))
def test_sums_by_rank_are_right_after_each_change(changes):
    """Only the sums below a change are kept, and each question adds up no more than it needs."""
    units, held = CumulativeUnits(), Counter()
    for number, added, count in changes:
        removed = min(held[number], added) if added > 2 else 0
        change = -removed if removed else added
        held[number] += change
        units.add((number,), change)
        reached = [rank for rank in sorted(held) if sum(held[r] for r in held if r <= rank) >= count]
        assert units.rank_reaching(count) == ((reached[0],) if reached else None)
        assert units.up_to((number,)) == sum(held[rank] for rank in held if rank <= number)
        assert units.ranks == [(rank,) for rank in sorted(held)]
