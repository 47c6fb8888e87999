"""The placement benchmark: tiny experiments end to end, machines that share, and figures that favor no policy."""

from __future__ import annotations

import itertools
from argparse import Namespace
from dataclasses import replace
from random import Random

import pytest
from benchmarks.placement import expansion, loads
from benchmarks.placement.clusters import SLOTS, Cluster, Machine, Setting, cluster, gang_cluster
from benchmarks.placement.experiments import EXPERIMENTS, NODES, POLICIES, cells, run_cell
from benchmarks.placement.figures import differences, gains, mean, of_run
from benchmarks.placement.loads import GANGS, Load, Task
from benchmarks.placement.runs import measure
from benchmarks.placement.simulation import Run
from benchmarks.placement.summary import summarize
from benchmarks.placement.tables import make_tables

from trainmaster.domain.policy.settings import Placement, Policy


def play(load, where, placement=Placement.RANDOM, seed=1):
    return Run(load, where, Policy(placement=placement, reservations=0), seed).play()


def held_at(done, moment):
    return [each for each in done if each.started <= moment < each.ended]


@pytest.mark.parametrize("setting", Setting)
@pytest.mark.parametrize("placement", Placement)
def test_every_task_completes_and_no_node_ever_holds_more_than_it_has(setting, placement):
    where = cluster(4, setting)
    done = play(loads.unequal_at_once(Random(3), 30), where, placement)
    assert len(done) == 30
    for each in done:
        on_node = [other.task.units for other in held_at(done, each.started) if other.pool == each.pool]
        assert sum(on_node) <= where.pools[each.pool].cap


def test_counters_let_a_task_run_as_long_as_it_runs_and_machines_of_enough_cores_do_the_same():
    load = loads.unequal_at_once(Random(4), 25)
    where = cluster(4, Setting.COUNTERS)
    wide = Cluster(where.pools, {name: Machine(cores=1000) for name in where.pools})
    on_counters, on_machines = play(load, where), play(load, wide)
    for one, other in zip(on_counters, on_machines, strict=True):
        assert one.ended - one.started == pytest.approx(one.task.work, abs=0.002)
        assert (one.pool, one.started) == (other.pool, pytest.approx(other.started, abs=0.01))


def test_tasks_beyond_a_machines_cores_slow_each_other_down_and_a_fast_one_is_fast():
    pools = {name: replace(pool, cap=4) for name, pool in cluster(1, Setting.COUNTERS).pools.items()}
    (name,) = pools
    tasks = [Task(0.0, 1, 100.0), Task(0.0, 1, 100.0), Task(0.0, 2, 300.0)]
    shared = play(Load(tasks), Cluster(pools, {name: Machine(cores=2)}))
    # Four CPUs in use share two cores until 200 s; then two are left, and 200 s of work with them.
    assert [each.ended for each in shared] == pytest.approx([200, 200, 400])
    fast = play(Load(tasks), Cluster(pools, {name: Machine(cores=4, speed=2.0)}))
    assert [each.ended for each in fast] == pytest.approx([50, 50, 150])


def test_one_by_one_is_one_by_one():
    done = play(loads.one_by_one(Random(5), 6), cluster(4, Setting.UNEQUAL))
    assert all(before.ended == after.submitted for before, after in itertools.pairwise(done))


def test_gangs_of_every_size_find_a_pool_of_their_type():
    where = gang_cluster(4, two_types=True)
    done = play(loads.gangs(Random(6), 40, where.slots, 1.0, two_types=True), where, Placement.BEST_FIT)
    assert {each.task.units for each in done} <= set(GANGS)
    assert all(where.pools[each.pool].vcpus >= each.task.resources.vcpus for each in done)


def test_equal_seeds_give_equal_figures_and_others_give_others():
    (cell, *_) = [each for each in cells(("figure 5",), NODES) if each.nodes == 4]
    assert run_cell(cell, "random", 1) == run_cell(cell, "random", 1)
    assert run_cell(cell, "random", 1) != run_cell(cell, "random", 2)


class Here:
    """Watches runs that this process plays itself, up to so many, then acts as if Ctrl-C was pressed."""

    def __init__(self, most):
        self.left = most

    def begin(self, doing):
        pass

    update = begin

    def over_cores(self, work, things, processes):
        for thing in things:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield work(thing)


def test_runs_that_were_kept_are_not_played_again(tmp_path):
    asked = Namespace(only=["table 3"], nodes=[4], policy=["random", "best-fit"], seeds=1, processes=1)
    asked.resume = tmp_path / "runs.jsonl"
    with pytest.raises(KeyboardInterrupt):
        measure(asked, Here(3))
    rest = Here(5)
    found = measure(asked, rest)
    assert rest.left == 0
    assert measure(asked, Here(0)) == found
    assert {tuple(cell["policies"]) for cell in found} == {("random", "best-fit")}


def test_every_policy_is_measured_on_every_size_of_cluster():
    every = cells(tuple(EXPERIMENTS), NODES)
    assert {cell.nodes for cell in every} == {3, *NODES}
    assert len({cell.key for cell in every}) == len(every)
    assert set(POLICIES) == {placement.value for placement in Placement}


def test_expansion_completes_what_never_completes_without_it():
    off, on = expansion.measure()[:3], expansion.measure()[3:]
    assert [(row["submitted"], row["completed"]) for row in off] == [(8, 8), (2, 0), (1, 0)]
    assert [(row["submitted"], row["completed"]) for row in on] == [(8, 8), (2, 2), (1, 1)]
    # The article's figure 7: two of the second Pod and one of the third, and nothing for the first task.
    assert [list(row["pools_made"].values()) for row in on] == [[], [2], [1]]
    assert [row["started_after_s"] for row in on[1:]] == [0, 0]


def test_figures_are_those_of_the_run():
    where = cluster(2, Setting.COUNTERS)
    done = play(Load([Task(0.0, 2, 100.0), Task(50.0, 2, 150.0)]), where, Placement.BEST_FIT)
    found = of_run(done, where)
    assert (found["makespan"], found["completion"], found["wait"]) == pytest.approx((200, 125, 0))
    assert found["throughput"] == pytest.approx(2 / 200 * 3600)
    # Both on the smaller node, by best fit: 2 * 250 of 4 * 200 unit-seconds, and nothing on the other.
    assert SLOTS[0] == 4
    assert (found["spread"], found["deviation"]) == pytest.approx((62.5, 31.25))


def test_intervals_are_students_and_gains_are_of_pairs():
    # Three values: t at 0.975 for 2 degrees of freedom is 4.303, the deviation is 1.
    found = mean([1.0, 2.0, 3.0])
    assert (found.value, found.half) == pytest.approx((2.0, 4.303 / 3**0.5))
    assert gains([110.0, 220.0], [100.0, 200.0]).value == pytest.approx(10)
    assert gains([110.0, 220.0], [100.0, 200.0]).half == pytest.approx(0)
    assert gains([90.0], [100.0], less_is_better=True).value == pytest.approx(10)


def run_of(throughput, completion):
    return {
        "throughput": throughput,
        "makespan": 1.0,
        "completion": completion,
        "wait": 0.0,
        "spread": 1.0,
        "deviation": 1.0,
    }


def test_equal_gains_and_losses_cancel_out():
    assert gains([1.0, 4.0, 1.0, 4.0], [2.0, 2.0, 2.0, 2.0]).value == pytest.approx(0.0)
    assert gains([1.0, 4.0], [2.0, 2.0], less_is_better=True).value == pytest.approx(0.0)
    assert differences([0.0, 10.0], [20.0, 10.0]).value == 10.0


def test_a_claim_holds_only_where_the_whole_interval_does_and_best_fit_is_held_against_the_best():
    (cell, *_) = cells(("gangs",), NODES)
    runs = {
        "random": [run_of(100.0, 10.0), run_of(100.0, 10.0)],
        "pick-kx": [run_of(112.0, 9.0), run_of(112.0, 9.0)],
        "round-robin": [run_of(101.0, 10.0), run_of(125.0, 10.0)],
        "best-fit": [run_of(111.0, 9.1), run_of(111.0, 9.1)],
    }
    made = {sheet.title: sheet for sheet in make_tables({"cells": [summarize(cell, runs)]})}
    assert made["Throughput over random, %"].rows[0][-1] == "pick-kx, best-fit"
    gangs = made["best-fit compared with the best of the article's policies, for gangs"]
    beside = {row[3]: row[4:] for row in gangs.rows}
    assert beside["completion"][0] == "pick-kx"
    assert [beside[figure][2] for figure in ("throughput", "makespan", "completion")] == [
        "within the noise",
        "yes",
        "NO",
    ]
