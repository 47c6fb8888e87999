"""Choice of victims by example: cutoff, lost work, the rules against thrashing, chains, shares, and large pools."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_job,
    a_launched_job,
    a_past_attempt,
    a_pool,
    a_preempting_job,
    a_running_job,
    a_snapshot,
    a_starting_job,
    at,
)
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Policy, Preemption, PreemptionOverrides
from trainmaster.domain.records import Records
from trainmaster.planner.preemption.candidates import Candidate, Protection
from trainmaster.planner.preemption.eligible import CandidateIndex, Preemptor
from trainmaster.planner.preemption.levels import CandidateLevels
from trainmaster.planner.preemption.preempt import (
    Candidates,
    VictimChoice,
    lost_work,
    may_be_preempted,
    protected_until,
)
from trainmaster.planner.preemption.victims import MAX_EXACT_STEPS, cheapest, frees, relevant

MINUTE = timedelta(minutes=1)


def by_priority(job):
    return (job.priority,)


def running(name, *, priority=0, units=None, ago=3_600, saved=None, **fields):
    """A job at work for so many seconds, whose newest checkpoint was written so many seconds ago."""
    job = a_running_job(name, priority=priority, units=units or {P5: 1}, now=at(-ago), **fields)
    return job if saved is None else replace(job, attempt=replace(job.attempt, saved_at=at(-saved)))


def resumed(job, times=1, outcome=Outcome.PREEMPTED):
    """The same, back from that many preemptions."""
    past = tuple(a_past_attempt(number + 1, outcome=outcome) for number in range(times))
    return replace(job, past=past, attempt=replace(job.attempt, number=times + 1))


def candidates(*active, rules=None, startups=None, rank=by_priority, now=NOW):
    policy = Policy(preemption=rules or Preemption())
    snapshot = a_snapshot(pools=[a_pool(P5, 100), a_pool(G5, 100)], active=active, policy=policy)
    snapshot = replace(snapshot, records=Records(history=History(startups=startups or {})))
    return Candidates.of(snapshot, now, rank)


def new_job(priority=9, **fields):
    return a_job("new", priority=priority, **fields)


def names(choice):
    return [victim.name for victim in choice.victims]


# -- who goes -------------------------------------------------------------------------------------------------------


def test_the_lowest_standing_that_suffices_is_the_cutoff():
    """However little work the better one would lose."""
    active = [running("low", priority=1, ago=80_000), running("better", priority=2, ago=1)]
    assert names(candidates(*active).victims(new_job(), {P5: 1})) == ["low"]


def test_only_ranks_that_are_needed_are_looked_at():
    looked_at = []

    def make(job, rank):
        looked_at.append(job.name)
        return Candidate(job, job.units, rank, 0.0)

    active = [running(f"j{priority}", priority=priority) for priority in (3, 1, 2, 8)]
    index = CandidateIndex(CandidateLevels({P5: active}, by_priority, make), Protection.NONE)
    for count, expected in ((1, ["j1"]), (2, ["j1", "j2"]), (9, ["j1", "j2", "j3"])):
        enough = index.eligible(Preemptor("default", (5,), {P5: count}))
        assert (enough is not None) == (count < 9)
        assert looked_at == expected


def test_only_jobs_of_the_missing_pools_are_looked_at_and_each_once():
    looked_at = []

    def make(job, rank):
        looked_at.append(job.name)
        return Candidate(job, job.units, rank, 0.0)

    small, both, other = running("small"), running("both", units={P5: 1, G5: 1}), running("other", units={G5: 1})
    levels = CandidateLevels({P5: [small, both], G5: [both, other]}, by_priority, make)
    for protection in (Protection.NONE, Protection.FOR_A_TIME):
        index = CandidateIndex(levels, protection)
        assert index.eligible(Preemptor("default", (5,), {P5: 2})) is not None
        assert looked_at == ["small", "both"]
    assert index.eligible(Preemptor("default", (5,), {P5: 2, G5: 2})) is not None
    assert looked_at == ["small", "both", "other"]


def test_a_job_that_is_removed_before_its_rank_is_looked_at_is_no_candidate():
    active = [running("low", priority=1), running("gone", priority=2), running("better", priority=3)]
    found = candidates(*active)
    found.remove([active[1]])
    assert names(found.victims(new_job(), {P5: 2})) == ["low", "better"]


def test_within_the_cutoff_the_least_work_is_lost_and_then_the_fewest_step_aside():
    wide = running("wide", units={P5: 2}, ago=100)
    two_small = [running("small1", ago=60), running("small2", ago=60)]
    assert names(candidates(wide, *two_small).victims(new_job(), {P5: 2})) == ["small1", "small2"]
    two_as_dear = [running("small1", ago=100), running("small2", ago=100)]
    assert names(candidates(wide, *two_as_dear).victims(new_job(), {P5: 2})) == ["wide"]


def test_the_cheapest_set_is_not_what_the_cheapest_jobs_by_the_unit_make_up():
    active = [running("a", units={P5: 3}, ago=30), running("b", units={P5: 3}, ago=31), running("c", ago=40)]
    active.append(running("d", units={P5: 4}, ago=42))
    assert names(candidates(*active).victims(new_job(), {P5: 4})) == ["c", "a"]
    cheaper = [*active[:3], running("d", units={P5: 4}, ago=32)]
    assert names(candidates(*cheaper).victims(new_job(), {P5: 4})) == ["d"]


def test_equal_standing_never_steps_aside():
    active = [running("equal", priority=5), running("higher", priority=6)]
    assert candidates(*active).victims(new_job(5), {P5: 1}) == VictimChoice()


def test_standing_has_as_many_members_as_the_order_gives_it():
    """Priority first, then the level: of equals the one that has received more is lower."""
    levels = {"new": 0, "fresh": 0, "served": 3}

    def rank(job):
        return (job.priority, -levels[job.name])

    found = candidates(running("fresh"), running("served", ago=90_000), rank=rank)
    assert found.victims(new_job(0), {P5: 1}).highest_rank == (0, -3)
    assert names(found.victims(new_job(0), {P5: 1})) == ["served"]
    assert found.victims(new_job(0), {P5: 2}) == VictimChoice()


def test_jobs_that_hold_several_pools_count_in_each_of_them():
    active = [running("both", units={P5: 1, G5: 1}, ago=300), running("p", ago=100), running("g", units={G5: 1})]
    choice = candidates(*active).victims(new_job(), {P5: 1, G5: 1})
    assert names(choice) == ["both"]
    assert choice.cost == 300 * 9


def test_no_job_is_preempted_where_all_together_do_not_suffice():
    assert candidates(running("a"), running("b")).victims(new_job(), {P5: 3}) == VictimChoice()
    assert candidates(running("a")).victims(new_job(), {P5: 1, G5: 1}) == VictimChoice()


def test_a_job_that_a_victim_would_displace_next_is_preempted_in_its_place():
    """The dear low job is spared by cost alone; but then `mid2` would displace it a moment later: three would stop."""
    active = [running("low", priority=1, ago=50_000)]
    active += [running("mid1", priority=5, ago=60), running("mid2", priority=5, ago=90)]
    assert names(candidates(*active).victims(new_job(), {P5: 2})) == ["low", "mid1"]


def test_a_low_job_is_spared_where_it_could_not_take_the_place_of_a_better_one():
    """`mid` alone holds enough, so that `low` would have to go beside it, not in its place."""
    active = [running("low", priority=1, ago=60), running("mid", priority=5, units={P5: 4}, ago=60)]
    assert names(candidates(*active).victims(new_job(), {P5: 4})) == ["mid"]


def test_a_low_job_of_another_pool_takes_no_victims_place():
    """Two pools are short; what replaces a victim in one of them has to be there."""
    active = [running("p1", priority=5, ago=60), running("p2", priority=5, ago=90)]
    active += [running("low", priority=1, ago=90_000), running("elsewhere", priority=1, units={G5: 1}, ago=90)]
    active += [running("g", priority=1, units={G5: 1}, ago=60)]
    assert names(candidates(*active).victims(new_job(), {P5: 2, G5: 1})) == ["g", "low", "p1"]


# -- what it costs --------------------------------------------------------------------------------------------------


def test_lost_work_is_what_was_done_since_the_newest_checkpoint_and_the_start_again():
    job = running("j", ago=3_600, saved=600, checkpointed=True)
    assert lost_work(job, 300, NOW) == 900
    assert lost_work(replace(job, checkpointed=False), 300, NOW) == 3_900


def test_a_checkpoint_of_an_earlier_attempt_does_not_count_work_before_this_one():
    assert lost_work(running("j", ago=100, saved=5_000, checkpointed=True), 0, NOW) == 100


def test_a_clock_that_is_behind_costs_nothing():
    assert lost_work(running("j", ago=-50), 0, NOW) == 0


def test_a_start_that_is_under_way_costs_what_of_it_has_passed():
    job = a_launched_job("j", now=at(-100))
    assert lost_work(job, 300, NOW) == 100
    assert lost_work(job, 60, NOW) == 60
    assert lost_work(job, 0, NOW) == 0


def test_work_is_counted_in_gpu_seconds():
    """One instance of eight accelerators loses more in 60 s than one of a single accelerator in 300 s."""
    active = [running("p5", ago=60, units={P5: 1}), running("g5", ago=300, units={G5: 1})]
    found = candidates(*active)
    assert found.victims(new_job(), {P5: 1}).cost == 480
    assert found.victims(new_job(), {G5: 1}).cost == 300


def test_history_tells_what_a_restart_costs():
    active = [running("slow", ago=100), running("quick", ago=200)]
    assert names(candidates(*active).victims(new_job(), {P5: 1})) == ["slow"]
    choice = candidates(*active, startups={P5: 300.0}).victims(new_job(), {P5: 1})
    assert choice.cost == 400 * 8


# -- jobs that the rules protect ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "job",
    [
        a_starting_job("unknown to SageMaker"),
        a_preempting_job("stopping"),
        lifecycle.request_stop(a_running_job("stopped by its user"), NOW, "ada"),
        a_running_job("exempt", preemptible=False),
        a_job("waiting"),
    ],
    ids=lambda job: job.name,
)
def test_who_may_not_step_aside_at_all(job):
    assert not may_be_preempted(job)
    assert candidates(job).victims(new_job(), {P5: 1}) == VictimChoice()


def test_minimum_run_time():
    rules = Preemption(min_runtime=10 * MINUTE)
    found = candidates(running("young", ago=599), rules=rules).victims(new_job(), {P5: 1})
    assert (names(found), found.protected[0].name, found.until) == ([], "young", at(1))
    assert names(candidates(running("old", ago=600), rules=rules).victims(new_job(), {P5: 1})) == ["old"]


def test_cooldown_binds_resumed_jobs_only():
    rules = Preemption(min_runtime=MINUTE, cooldown=10 * MINUTE)
    fresh, back = running("fresh", ago=300), resumed(running("back", ago=300))
    assert protected_until(fresh, rules, 0, NOW) is None
    assert protected_until(back, rules, 0, NOW) == at(300)
    assert protected_until(resumed(back, outcome=Outcome.RETURNED), rules, 0, NOW) is None


def test_the_longer_of_the_two_binds():
    rules = Preemption(min_runtime=10 * MINUTE, cooldown=MINUTE)
    assert protected_until(resumed(running("back", ago=300)), rules, 0, NOW) == at(300)


def test_a_jobs_own_wishes_go_before_the_queues_rules():
    rules = Preemption(min_runtime=10 * MINUTE, max_preemptions=1)
    eager = running("eager", ago=60, preemption_overrides=PreemptionOverrides(min_runtime=timedelta(0)))
    assert protected_until(eager, rules, 0, NOW) is None
    wary = running("wary", ago=60, preemption_overrides=PreemptionOverrides(min_runtime=20 * MINUTE))
    assert protected_until(wary, rules, 0, NOW) == at(1_140)
    hardy = resumed(running("hardy", preemption_overrides=PreemptionOverrides(max_preemptions=2)))
    assert protected_until(hardy, Preemption(max_preemptions=1), 0, NOW) is None


def test_after_the_most_preemptions_a_job_is_protected_for_good_but_never_killed():
    twice = resumed(running("twice"), times=2)
    choice = candidates(twice, rules=Preemption(max_preemptions=2)).victims(new_job(), {P5: 1})
    assert (names(choice), [job.name for job in choice.protected], choice.until) == ([], ["twice"], None)
    assert names(candidates(twice, rules=Preemption(max_preemptions=3)).victims(new_job(), {P5: 1})) == ["twice"]
    assert names(candidates(twice, rules=Preemption(max_preemptions=None)).victims(new_job(), {P5: 1})) == ["twice"]


def test_an_attempt_that_is_not_at_work_yet_is_protected_as_long_as_its_start_is_expected_to_take():
    """Else a job could be put aside again and again before it has begun; but not forever where AWS has nothing."""
    rules = Preemption(cooldown=10 * MINUTE)
    starting = resumed(a_launched_job("starting", now=at(-200)))
    assert protected_until(starting, rules, 300, NOW) == at(700)
    assert protected_until(starting, rules, 300, at(700)) is None
    assert protected_until(a_launched_job("first", now=NOW), rules, 300, NOW) is None


def test_protected_jobs_are_named_where_they_alone_are_in_the_way():
    """The protected candidates that are free soonest are named, and none of a rank that it may not preempt."""
    rules = Preemption(min_runtime=10 * MINUTE)
    young = [running("a", ago=100), running("b", ago=300), running("c", ago=200), running("equal", priority=9, ago=590)]
    found = candidates(*young, running("open", ago=900), rules=rules)
    choice = found.victims(new_job(), {P5: 2})
    assert ([job.name for job in choice.protected], choice.until) == (["b"], at(300))
    choice = found.victims(new_job(), {P5: 3})
    assert ([job.name for job in choice.protected], choice.until) == (["b", "c"], at(400))
    assert found.victims(new_job(), {P5: 5}) == VictimChoice()


def test_who_is_protected_for_a_time_is_told_before_who_is_for_good():
    rules = Preemption(min_runtime=10 * MINUTE, max_preemptions=1)
    good, young = resumed(running("good", ago=9_000)), running("young", priority=1, ago=300)
    found = candidates(good, young, rules=rules)
    assert found.victims(new_job(), {P5: 1}).until == at(300)
    both = found.victims(new_job(), {P5: 2})
    assert ([job.name for job in both.protected], both.until) == (["good"], None)


# -- a waiting job that may have to step aside later ----------------------------------------------------------------


def test_whether_a_job_that_starts_now_could_be_put_aside_by_then():
    found = candidates(rules=Preemption(min_runtime=10 * MINUTE, cooldown=30 * MINUTE, max_preemptions=2))
    assert found.preemptible_by(a_job("a"), at(600))
    assert not found.preemptible_by(a_job("a"), at(599))
    assert not found.preemptible_by(a_job("a", preemptible=False), at(9_000))
    assert found.preemptible_by(a_job("a", preemption_overrides=PreemptionOverrides(min_runtime=timedelta(0))), NOW)
    back = replace(a_job("a"), attempt=a_past_attempt())
    assert not found.preemptible_by(back, at(1_799))
    assert found.preemptible_by(back, at(1_800))
    twice = replace(a_job("a"), attempt=a_past_attempt(2), past=(a_past_attempt(),))
    assert not found.preemptible_by(twice, at(9_000))


# -- where shares are in play ---------------------------------------------------------------------------------------


def test_victims_are_asked_about_in_turn_and_listed_so():
    """Only one of each other share may go."""

    def permits(victim, taken):
        return victim.share not in {other.share for other in taken}

    active = [running(f"{share}{index}", share=share, ago=100 + index) for share in "xy" for index in range(2)]
    choice = candidates(*active).victims(new_job(share="n"), {P5: 2}, permits)
    assert names(choice) == ["x0", "y0"]
    assert candidates(*active).victims(new_job(share="n"), {P5: 3}, permits) == VictimChoice()


def test_whatever_is_permitted_steps_aside_even_of_better_standing():
    active = [running("high", priority=99, share="x")]
    assert names(candidates(*active).victims(new_job(share="n"), {P5: 1}, lambda victim, taken: True)) == ["high"]
    assert candidates(*active).victims(new_job(share="n"), {P5: 1}, lambda victim, taken: False) == VictimChoice()


def test_many_candidates_are_searched_in_several_orders():
    """Thirty small ones that come first would leave no room for the large one that is needed."""

    def permits(victim, taken):
        return sum(other.units[P5] for other in taken) + victim.units[P5] <= 4

    small = [running(f"s{index:02}", share="x", ago=100) for index in range(30)]
    large = running("large", share="x", units={P5: 4}, ago=9_000)
    choice = candidates(*small, large).victims(new_job(share="n"), {P5: 4}, permits)
    assert names(choice) == ["s00", "s01", "s02", "s03"]
    two_wide = [running(f"w{index:02}", share="x", units={P5: 3}, ago=100) for index in range(30)]
    choice = candidates(*two_wide, large).victims(new_job(share="n"), {P5: 4}, permits)
    assert names(choice) == ["large"]


@pytest.mark.parametrize("others", [0, 30])
def test_what_no_order_finds_a_search_does(others):
    """The wide one comes first in every order, and leaves no room for another."""

    def permits(victim, taken):
        return sum(other.units[P5] for other in taken) + victim.units[P5] <= 4

    wide = [running("wide", share="x", units={P5: 3}, ago=1)]
    wide += [running(f"wide{index:02}", share="x", units={P5: 3}, ago=2) for index in range(others)]
    pair = [running("a", share="x", units={P5: 2}, ago=20), running("b", share="x", units={P5: 2}, ago=40)]
    choice = candidates(*wide, *pair).victims(new_job(share="n"), {P5: 4}, permits)
    assert names(choice) == ["a", "b"]


def test_the_weakest_of_a_share_are_thought_of_though_they_are_dearer():
    """The second of them has to be one for which the share has no room, however many cheaper ones there are."""

    def permits(victim, taken):
        return not taken or victim.name == "weak"

    cheap = [running(f"j{index:02}", share="x", ago=9_000, saved=60, checkpointed=True) for index in range(30)]
    weak = running("weak", share="x", ago=600)
    choice = candidates(*cheap, weak).victims(new_job(share="n"), {P5: 2}, permits)
    assert names(choice) == ["j00", "weak"]


def test_a_share_of_which_only_some_may_go_is_halved_not_gone_through():
    asked = []

    def permits(victim, taken):
        asked.append(victim.name)
        return victim.name > "j0990"

    jobs = [running(f"j{index:04}", share="x", ago=5_000 - index) for index in range(1_000)]
    choice = candidates(*jobs).victims(new_job(share="n"), {P5: 2}, permits)
    assert all(name > "j0990" for name in names(choice))
    assert len(names(choice)) == 2
    assert len(asked) < 40


def test_questions_that_are_alike_are_answered_once():
    asked = []

    def permits(victim, taken):
        asked.append(victim.name)
        return True

    found = candidates(running("a", share="x"), running("b", share="x"))
    first = found.victims(new_job(share="n"), {P5: 1}, permits, "alike")
    count = len(asked)
    assert found.victims(new_job(priority=3, share="n"), {P5: 1}, permits, "alike") == first
    assert len(asked) == count
    found.remove(first.victims)
    assert names(found.victims(new_job(share="n"), {P5: 1}, permits, "alike")) == ["b"]


# -- many victims, many candidates ----------------------------------------------------------------------------------


def test_removed_victims_are_not_counted_on_again():
    found = candidates(running("a", ago=10), running("b", ago=20), running("both", units={P5: 1, G5: 1}, ago=5))
    first = found.victims(new_job(), {P5: 1})
    assert names(first) == ["both"] or names(first) == ["a"]
    found.remove(first.victims)
    second = found.victims(new_job(), {P5: 2})
    assert not set(names(first)) & set(names(second))
    found.remove(second.victims)
    assert found.victims(new_job(), {P5: 1}) == VictimChoice()
    assert found.victims(new_job(), {G5: 1}) == VictimChoice()


def test_a_large_gang_takes_nearly_the_cheapest_and_no_needless_victim():
    """Beyond what is searched exactly: within a tenth of a bound from below, at once."""
    rng = random.Random(1)
    active = [running(f"j{i:04}", units={P5: rng.choice((1, 2, 4, 8))}, ago=rng.randrange(9_000)) for i in range(2_000)]
    items = [Candidate(job, job.units, (0,), lost_work(job, 0, NOW) * 8 * job.units[P5]) for job in active]
    missing = {P5: 900}
    assert len(relevant(items, missing)) * 901 > MAX_EXACT_STEPS
    taken = cheapest(items, missing)
    assert frees(taken, missing)
    assert all(not frees([other for other in taken if other is not one], missing) for one in taken)
    assert sum(one.cost for one in taken) <= 1.1 * at_least(items, missing[P5])


def at_least(items, count):
    """Cost of the units at the cheapest rates, if jobs could be cut."""
    cost = 0.0
    for item in sorted(items, key=lambda one: one.cost / one.units[P5]):
        take = min(count, item.units[P5])
        cost += item.cost * take / item.units[P5]
        count -= take
    return cost


def test_of_thousands_alike_only_the_few_that_could_be_needed_are_looked_at():
    items = [Candidate(job, job.units, (0,), float(i)) for i, job in enumerate(running(f"j{i}") for i in range(3_000))]
    assert len(relevant(items, {P5: 8})) == 8


# -- the page -------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "preemption.md"


def minutes(text):
    return int(text.split()[0])


def test_the_example_of_the_page_is_what_happens():
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if " min | " in line]
    assert len(rows) == 6
    active = []
    for name, priority, count, work, saved, *_ in rows:
        checkpoint = {} if saved == "none" else {"saved": 60 * minutes(saved), "checkpointed": True}
        units = {P5: int(count)}
        active.append(running(name, priority=int(priority), units=units, ago=60 * minutes(work), **checkpoint))
    found = candidates(*active, rules=Preemption(min_runtime=10 * MINUTE), startups={P5: 300.0})
    for (name, *_, lost, _), job in zip(rows, active, strict=True):
        assert f"{lost_work(job, 300, NOW) * 8 * job.units[P5] / 3_600:.2f}" == lost, name
    choice = found.victims(new_job(5), {P5: 3})
    assert sorted(names(choice)) == sorted(row[0] for row in rows if row[-1] == "preempted")
    assert f"lose the least, {choice.cost / 3_600:.2f}" in PAGE.read_text().replace("\n", " ")
