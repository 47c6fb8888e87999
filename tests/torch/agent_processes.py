"""Torch's own agents as processes, whose first rank can be lost at any call of the exchange of ranks."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from agents import eventually
from tests.containers import KEY, ROLE, RUN_OF_NODES
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch.distributed.run", "boto3", "trainmaster.worker.torch.handler"])
QUICK = {
    "keep_alive_interval": 0.3,
    "keep_alive_max_attempt": 6,
    "poll_interval": 0.2,
    "last_call_timeout": 0.5,
    "scale_up_delay": 0.2,
    "straggler_timeout": 10,
    "max_backoff": 0.5,
}
ANNOUNCED = "loss.json"
"""File of the loss that the next first rank takes."""
CALLS = 5
"""Points of the exchange at which the first rank can be lost: before each of its four calls, and after them."""


class FatalStore:
    """A store on which the process gets a signal before a call of this number.

    Args:
        store: answers the calls.
        at: number of the call, from 0.
        signal_number: the signal.
    """

    def __init__(self, store, at, signal_number):
        self._store, self._left, self._signal = store, at, signal_number

    def __getattr__(self, name):
        self.pass_call()
        return getattr(self._store, name)

    def pass_call(self):
        if self._left == 0:
            os.kill(os.getpid(), self._signal)
        self._left -= 1


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The loss of the first rank of a world: before which call of the exchange of ranks, and by which signal.

    SIGKILL ends its connections, SIGSTOP keeps them open.
    """

    at: int
    signal_number: int


class ReportingAgent(LocalElasticAgent):
    """Torch's agent, which reports each world, and is lost as a first rank if its play says so."""

    def prepare(self, output):
        self._output = output

    def _assign_worker_ranks(self, store, group_rank, group_world_size, spec):
        loss = self._taken_loss() if group_rank == 0 else None
        if loss is None:
            return super()._assign_worker_ranks(store, group_rank, group_world_size, spec)
        fatal = FatalStore(store, loss.at, loss.signal_number)
        workers = super()._assign_worker_ranks(fatal, group_rank, group_world_size, spec)
        fatal.pass_call()
        return workers

    def _taken_loss(self):
        """Return the loss that the play has announced, if no other agent has taken it."""
        taken = self._output.with_suffix(".loss")
        try:
            self._output.with_name(ANNOUNCED).rename(taken)
        except FileNotFoundError:
            return None
        return Loss(**json.loads(taken.read_text()))

    def _start_workers(self, worker_group):
        started = super()._start_workers(worker_group)
        (worker,) = worker_group.workers
        (pid,) = self._pcontext.pids().values()
        line = {
            "rank": worker_group.group_rank,
            "size": worker_group.group_world_size,
            "worker": [worker.global_rank, worker.world_size],
            "master": [worker_group.master_addr, worker_group.master_port],
            "pid": pid,
        }
        with self._output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return started


def run_agent(number, where, output, worker, settings):
    """Run one agent to its end, in a process of its own."""
    table, environ = where
    os.environ.update(environ)
    conf = QUICK | settings | {"job": f"bert-m{number}"}
    parameters = RendezvousParameters("dynamodb", table, RUN_OF_NODES.name, 2, 3, f"127.0.2.{number}", **conf)
    handler = get_rendezvous_handler(parameters)
    spec = WorkerSpec(
        role="default",
        local_world_size=1,
        rdzv_handler=handler,
        entrypoint=worker[0],
        args=worker[1:],
        max_restarts=100,
        monitor_interval=0.1,
    )
    agent = ReportingAgent(spec, DefaultLogsSpecs())
    agent.prepare(output)
    try:
        agent.run()
    finally:
        handler.shutdown()


class Play:
    """Three agents of one job.

    Args:
        client, table: where they meet.
        folder: for what they report.
        loss: how the first rank is lost; None if it is not.
        worker: the command of the agents' workers.
        settings: of the rendezvous, besides `QUICK`.
    """

    def __init__(self, client, table, folder, loss=None, worker=("sleep", "1000"), **settings):
        environ = {
            "AWS_ENDPOINT_URL_DYNAMODB": client.meta.endpoint_url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "TRAINMASTER_RUN": RUN_OF_NODES.name,
            "TRAINMASTER_RENDEZVOUS_TABLE": table,
            "TRAINMASTER_RENDEZVOUS_ROLE": ROLE,
            "TRAINMASTER_RENDEZVOUS_KEY": KEY,
        }
        self._where, self._worker, self._settings, self._folder = (table, environ), worker, settings, folder
        self.outputs, self.processes, self.losses = [], [], 0
        folder.mkdir(parents=True, exist_ok=True)
        if loss is not None:
            self.lose(loss)
        for _ in range(3):
            self.start()

    def start(self):
        """Start another agent."""
        number = len(self.processes) + 1
        self.outputs.append(self._folder / f"{number}.jsonl")
        self.outputs[-1].touch()
        args = (number, self._where, self.outputs[-1], self._worker, self._settings)
        self.processes.append(CONTEXT.Process(target=run_agent, args=args))
        self.processes[-1].start()

    def lose(self, loss):
        """Lose the next first rank."""
        self.losses += 1
        written = self._folder / "written"
        written.write_text(json.dumps(asdict(loss)))
        written.rename(self._folder / ANNOUNCED)

    def worlds(self):
        """Return the newest report of each agent that runs."""
        alive = [output for output, process in zip(self.outputs, self.processes, strict=True) if works(process)]
        lines = [output.read_text().splitlines() for output in alive]
        return sorted((json.loads(each[-1]) for each in lines if each), key=lambda world: world["rank"])

    def is_one_world(self, size):
        """Return whether all agents that run work in one world of this size; fail if one has ended that must not."""
        dead = [process for process in self.processes if not works(process)]
        assert len(dead) <= max(self.losses, 1), f"agents ended: {[process.exitcode for process in dead]}"
        found = self.worlds()
        same = len({tuple(world["master"]) for world in found}) == 1
        there = [(world["rank"], world["size"]) for world in found] == [(rank, size) for rank in range(size)]
        return same and there and len(self.processes) - len(dead) == size

    def check(self, size, patience=120):
        """Wait until this number of agents work in one world, and check the ranks of their workers."""
        eventually(lambda: self.is_one_world(size), timeout=patience)
        assert [world["worker"] for world in self.worlds()] == [[rank, size] for rank in range(size)]

    def close(self):
        """End all agents, and their workers with them."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM if works(process) else signal.SIGKILL)
        for process in self.processes:
            process.join(20)
            process.kill()


def works(process):
    """Return whether a process runs, and is not suspended."""
    if process.exitcode is not None:
        return False
    try:
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZX"
    except (FileNotFoundError, ProcessLookupError):  # the fork server knows of its end first
        return False
