"""The example script in real containers: trainmaster-run, torchrun, gloo, and a rendezvous in a DynamoDB engine."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.containers import RUN, alone, until

from trainmaster.domain.elastic.rendezvous import Control

ONE = "--nproc-per-node=1"
WAITS = "poll_interval=0.3,last_call_timeout=1,scale_up_delay=0.3"
QUICK = f"--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=4,{WAITS}"
SLOW_TO_NOTICE = f"--rdzv-conf=keep_alive_interval=15,keep_alive_max_attempt=6,{WAITS}"


def test_a_job_grows_and_shrinks_without_losing_a_step_and_with_the_losses_of_one_process(
    containers, groups, script, tmp_path
):
    base = containers(1, ONE, QUICK, "--preload", "torch")
    until(lambda: len(base.steps) > 20)
    assert has_warm_worker(base), "it forks from a process that has imported torch"
    member = containers(2, ONE, QUICK)
    until(lambda: base.steps[-1]["world"] == 2)
    grown = len(base.steps)
    until(lambda: len(base.steps) > grown + 20)
    groups.set(RUN, Control(epoch=1, min_nodes=1, max_nodes=1, drain=("bert-qstamp-1-m2",), grace=60.0))
    assert member.ends() == 0, "a drained member ends in peace"
    until(lambda: base.steps[-1]["world"] == 1)
    base.stop()
    assert base.ends() == 0, "one that is stopped has saved, and left"
    assert groups.get(RUN).nodes == ()
    assert [line["step"] for line in base.steps] == list(range(1, len(base.steps) + 1)), "no step lost or done twice"
    assert [round_ for round_, _ in itertools.groupby(line["round"] for line in base.steps)] == [1, 2, 3]
    expected = alone(script, len(base.steps), tmp_path)
    worst = max(abs(one["loss"] - other["loss"]) for one, other in zip(base.steps, expected, strict=True))
    assert worst < 1e-6, "the batches are the same in every world"


def has_warm_worker(container):
    """Return whether a worker of this container is a child of the server of its agent."""
    (agent,) = children_of(container.process.pid)
    servers = [pid for pid in children_of(agent) if b"trainmaster.worker.warm.server" in command_of(pid)]
    return any(children_of(pid) for pid in servers)


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.slow
def test_a_stop_while_a_node_waits_for_others_takes_it_out(containers, groups):
    one = containers(1, ONE, QUICK, TRAINMASTER_MIN="2")
    until(lambda: (found := groups.get(RUN)) is not None and found.nodes)
    one.stop()
    assert one.ends() == 143
    assert groups.get(RUN).nodes == ()
    assert not one.failure.exists(), "a stop that was asked for is no failure"


@pytest.mark.slow
def test_a_node_whose_agent_is_killed_is_taken_out_at_once(containers):
    base = containers(1, ONE, SLOW_TO_NOTICE)
    until(lambda: base.steps)  # it has the first rank, which is the one that tells
    member = containers(2, ONE, SLOW_TO_NOTICE)
    until(lambda: base.steps[-1]["world"] == 2)
    began = time.monotonic()
    (agent,) = children_of(member.process.pid)
    os.kill(agent, signal.SIGKILL)
    assert member.ends() == 137
    assert "exit code 137" in member.failure.read_text()
    until(lambda: base.steps[-1]["world"] == 1)
    assert time.monotonic() - began < 60, "without it the others would see it after a minute and a half"


@pytest.mark.slow
def test_a_job_whose_base_is_gone_at_once_works_on_and_takes_another_in(containers):
    base = containers(1, ONE, QUICK)
    until(lambda: base.steps)
    member = containers(2, ONE, QUICK)
    until(lambda: base.steps[-1]["world"] == 2)
    done = base.steps[-1]["step"]
    kill_all(base.process.pid)
    until(lambda: member.steps and member.steps[-1]["world"] == 1)
    assert member.steps[0]["step"] <= done + 1, "it goes on from the last checkpoint at the latest"
    containers(3, ONE, QUICK)
    until(lambda: member.steps[-1]["world"] == 2)
    assert member.process.poll() is None


def kill_all(pid):
    """End a container as a lost instance does, with all of its processes at once."""
    for child in children_of(pid):
        kill_all(child)
    os.kill(pid, signal.SIGKILL)


def children_of(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_a_spent_budget_ends_the_job_with_its_reason(containers):
    budget = json.dumps({"restarts_before_full": 1, "period": 3600})
    one = containers(1, ONE, QUICK, SM_HP_BATCH="0", TRAINMASTER_RESTARTS=budget)
    assert one.ends() == 1
    assert one.failure.read_text().startswith("trainmaster: full restart: 2 restarts")
