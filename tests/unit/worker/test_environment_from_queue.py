"""The environment that the queue writes is the one that containers read; the two share no code."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.elastic.sizes import Elastic, RestartBudget
from trainmaster.domain.elastic.sizes import Hook as QueuesHook
from trainmaster.domain.jobs.names import attempt_name, member_name
from trainmaster.service.attempt_request import environment
from trainmaster.worker.container.container import ElasticJob, Hook, attempt_number
from trainmaster.worker.container.restart_budget import PERIOD
from trainmaster.worker.container.restart_budget import RestartBudget as WorkerBudget
from trainmaster.worker.rendezvous.run import Run as NodesRun
from trainmaster.worker.rendezvous.settings import Settings

ELASTIC = Elastic(
    min_instances=2,
    max_instances=8,
    values=(2, 4, 8),
    hook=QueuesHook.MEMBERS,
    graceful_shutdown_timeout=timedelta(minutes=5),
    budget=RestartBudget(
        max_restarts=9, period=timedelta(hours=6), max_total_restarts=50, restarts_before_full=3, max_full_restarts=1
    ),
)


def test_a_container_reads_the_job_its_bounds_and_its_budget():
    told = environment(ELASTIC, Run("bert", "role"), "queue", key="secret")
    assert ElasticJob.from_environment(told) == ElasticJob(
        hook=Hook.MEMBERS, run="bert", table="queue", min_nodes=2, max_nodes=8
    )
    assert NodesRun.from_environment(told) == NodesRun("bert", "secret", "role")
    assert WorkerBudget.from_environment(told) == WorkerBudget(
        max_restarts=9, period=21_600.0, max_total_restarts=50, restarts_before_full=3, max_full_restarts=1
    )
    settings = Settings.from_environment(told)
    assert (settings.min_nodes, settings.max_nodes, settings.sizes, settings.grace) == (2, 8, (2, 4, 8), 300.0)


def test_a_container_is_told_what_earlier_attempts_have_used_of_the_total():
    assert WorkerBudget.from_environment(environment(ELASTIC, Run("bert-qstamp-2", "role"), "queue", used=7)).used == 7
    unbounded = replace(ELASTIC, budget=RestartBudget(max_restarts=9))
    assert WorkerBudget.from_environment(
        environment(unbounded, Run("bert-qstamp-2", "role"), "queue", used=7)
    ) == WorkerBudget(max_restarts=9)


def test_a_budget_without_bounds_is_one_here_too():
    told = environment(Elastic(min_instances=1, max_instances=2), Run("bert", "role"), "")
    assert WorkerBudget.from_environment(told) == WorkerBudget()
    assert timedelta(seconds=PERIOD) == RestartBudget().period


@pytest.mark.parametrize("hook", QueuesHook)
def test_every_hook_is_known_here(hook):
    assert Hook(hook.value).value == hook.value


@pytest.mark.parametrize("name", ["bert", "b" * 63])
@pytest.mark.parametrize("attempt", [1, 2, 31])
def test_a_name_that_the_queue_has_made_tells_its_attempt(name, attempt):
    assert attempt_number(attempt_name(name, attempt)) == attempt
    assert attempt_number(member_name(name, attempt, 7)) == attempt
