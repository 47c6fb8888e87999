"""Who steps aside, against an oracle that looks at every set of jobs and knows the rules in their plainest words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

from hypothesis import given, note, settings
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_job, a_past_attempt, a_pool, a_running_job, a_snapshot, a_starting_job, at
from trainmaster.domain import lifecycle
from trainmaster.domain.capacity import covers, total
from trainmaster.domain.history import History, types_of
from trainmaster.domain.job import JobState, Outcome, Wishes
from trainmaster.domain.policy import Policy, Preemption
from trainmaster.domain.records import Records
from trainmaster.planner.preempt import Candidates

TRN = "ml.trn1.32xlarge"
POOLS = (P5, G5, TRN)
ACCELERATORS = {P5: 8, G5: 1, TRN: 16}
FOREVER = timedelta(days=1000)

units = st.dictionaries(st.sampled_from(POOLS), st.integers(1, 4), min_size=1, max_size=2)
lacking = st.dictionaries(st.sampled_from(POOLS), st.integers(1, 6), min_size=1, max_size=3)
spans = st.sampled_from((0, 60, 600)).map(lambda seconds: timedelta(seconds=seconds))
maybe_spans = st.none() | spans
mosts = st.none() | st.integers(1, 3)
rules = st.builds(Preemption, min_runtime=spans, cooldown=spans, most=mosts)
wishes = st.builds(Wishes, min_runtime=maybe_spans, cooldown=maybe_spans, most=mosts)


@st.composite
def active_jobs(draw, name):
    """A job in any state in which it holds units, with any past."""
    since = at(-draw(st.integers(0, 900)))
    fields = {
        "units": draw(units),
        "priority": draw(st.integers(0, 3)),
        "share": draw(st.sampled_from("abc")),
        "preemptible": draw(st.integers(0, 9)) > 0,
        "wishes": draw(wishes | st.just(Wishes())),
        "checkpointed": draw(st.booleans()),
    }
    if draw(st.integers(0, 4)) == 0:
        job = a_starting_job(name, now=since, **fields)
        job = lifecycle.launched(job) if draw(st.booleans()) else job
    else:
        job = a_running_job(name, now=since, **fields)
        saved = draw(st.none() | st.integers(-1200, 0).map(at))
        job = replace(job, attempt=replace(job.attempt, saved_at=saved))
    outcomes = draw(st.lists(st.sampled_from((Outcome.PREEMPTED, Outcome.RETURNED)), max_size=3))
    past = tuple(a_past_attempt(number, outcome=outcome) for number, outcome in enumerate(outcomes, 1))
    job = replace(job, past=past, attempt=replace(job.attempt, number=len(past) + 1))
    return lifecycle.preempt(job, "somebody", NOW) if draw(st.integers(0, 9)) == 0 else job


@st.composite
def snapshots(draw, most=8):
    active = [draw(active_jobs(f"a{i}")) for i in range(draw(st.integers(0, most)))]
    startups = {types_of(job): float(draw(st.integers(0, 300))) for job in active if draw(st.booleans())}
    policy = Policy(preemption=draw(rules))
    snapshot = a_snapshot(pools=[a_pool(name, 100) for name in POOLS], active=active, policy=policy)
    return replace(snapshot, records=Records(history=History(startups=startups)))


def by_priority(job):
    return (job.priority,)


def by_level(job):
    """Two members, as under least attained service: a level of its own for every third job."""
    return (job.priority // 2, -(int(job.name[1:] or 0) % 3))


standings = st.sampled_from((by_priority, by_level))


# -- the oracle -----------------------------------------------------------------------------------------------------


def could_go(job):
    """Whether a job is one that could be preempted at all."""
    known = job.attempt.launched and job.attempt.stop_asked_at is None
    return job.preemptible and known and job.state in (JobState.STARTING, JobState.RUNNING)


def free_from(job, snapshot):
    """From when on the rules against thrashing leave a job alone; None for never."""
    queue, own = snapshot.policy.preemption, job.wishes
    stepped_aside = [attempt for attempt in job.past if attempt.outcome is Outcome.PREEMPTED]
    most = queue.most if own.most is None else own.most
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


def best_set(jobs, missing, snapshot, standing):
    """Of all sets that free enough: the lowest best standing, then the least loss, the fewest, the first by names."""

    def rank(some):
        names = sorted(job.name for job in some)
        return max(map(standing, some)), sum(loss(job, snapshot) for job in some), len(some), names

    return min((rank(some) for some in sets_of(jobs) if frees(some, missing)), default=None)


# -- the properties -------------------------------------------------------------------------------------------------


def choose(snapshot, job, missing, standing, permits=None, now=NOW):
    choice = Candidates.among(snapshot, now, standing).victims(job, missing, permits)
    note(str(choice))
    return choice


newcomers = st.builds(a_job, st.just("n1"), priority=st.integers(0, 4), share=st.sampled_from("abc"))


@given(snapshots(), newcomers, lacking, standings)
@settings(max_examples=400, deadline=None)
def test_the_cheapest_set_of_the_lowest_cutoff_steps_aside(snapshot, job, missing, standing):
    choice = choose(snapshot, job, missing, standing)
    could = [other for other in snapshot.active if is_open(other, snapshot) and standing(other) < standing(job)]
    best = best_set(could, missing, snapshot, standing)
    if best is None:
        assert choice.victims == ()
    else:
        found = (choice.highest, choice.cost, len(choice.victims), sorted(victim.name for victim in choice.victims))
        assert found == best
        assert choice.protected == ()


@given(snapshots(), newcomers, lacking, standings)
@settings(max_examples=300, deadline=None)
def test_where_only_the_rules_are_in_the_way_it_says_whom_they_protect_and_until_when(snapshot, job, missing, standing):
    choice = choose(snapshot, job, missing, standing)
    lower = [other for other in snapshot.active if could_go(other) and standing(other) < standing(job)]
    assert bool(choice.victims or choice.protected) == frees(lower, missing)
    assert not (choice.victims and choice.protected)
    for protected in choice.protected:
        assert protected in lower
        assert not is_open(protected, snapshot)
    if choice.protected and choice.until is None:
        assert not choose(snapshot, job, missing, standing, now=NOW + FOREVER).victims
    if choice.until is not None:
        assert choice.until > NOW
        assert choose(snapshot, job, missing, standing, now=choice.until).victims


@given(snapshots(), newcomers, lacking, standings, st.randoms(use_true_random=False))
def test_the_choice_does_not_hang_on_the_order_in_which_jobs_were_read(snapshot, job, missing, standing, shuffler):
    shuffled = list(snapshot.active)
    shuffler.shuffle(shuffled)
    again = replace(snapshot, active=tuple(shuffled))
    assert choose(again, job, missing, standing) == choose(snapshot, job, missing, standing)
