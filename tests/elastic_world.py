"""The world of elastic jobs: nodes that join and leave, a resizer that answers requests, and sizes set by the test.

It must not hold any rule of the queue, nor of the rendezvous: its nodes join when they are at work, and leave some
seconds after they were asked to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from builders import ADA, P5, ROLE
from trainmaster.domain.elastic.rendezvous import Control, Node, RendezvousState, Role, Run
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.plan import Plan, Resize
from trainmaster.domain.policy.settings import Policy, Resizes
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.store import Store
from trainmaster.service.apply_plan import PassReport, apply_plan
from trainmaster.service.resizing.contract import HookAnswer, Outcome
from trainmaster.service.resizing.custom import answer_resize
from world import Faults, World, a_request

TARGET = "arn:aws:lambda:us-east-1:111122223333:function:resize"
LEAVES_AFTER = timedelta(seconds=10)
BY_DECREE = Policy(reservation_timeout=timedelta(minutes=20), resizes=Resizes(enabled=False))
"""Running jobs keep their sizes, unless a test decrees others."""
EAGER = Policy(reservation_timeout=timedelta(minutes=20), resizes=Resizes(payback=0.01))
"""They grow whenever they may."""


def elastic_request(
    name: str, hook: str, *, min_instances: int = 1, max_instances: int = 3, **more: Any
) -> dict[str, Any]:
    """A request of an elastic job; options with `_` for `-` go into `options`, the rest is `world.a_request`'s."""
    options = {
        "min_instances": min_instances,
        "max_instances": max_instances,
        "resize_by": hook,
        **more.pop("options", {}),
    }
    if hook == "custom":
        options.setdefault("resize_target", TARGET)
    request = a_request(name, count=min_instances, **more)
    request["VpcConfig"] = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    tags = [{"Key": f"trainmaster:{key.replace('_', '-')}", "Value": str(value)} for key, value in options.items()]
    return {**request, "Tags": [*request["Tags"], *tags]}


class Watched:
    """A store, a rendezvous or anything else whose every verb is a call of AWS: faults come upon it."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner, self._faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if not callable(verb):
            return verb
        return lambda *given, **named: self._faults.around(name, lambda: verb(*given, **named))


class Resizer:
    """The custom resizer; `answer` sets what it returns, and what it answers later.

    Attributes:
        asked: every question, in order; the same may come twice.
        answers_at_once: whether it answers by what it returns, else some seconds later.
        silent: whether it never answers by itself.
        later: the questions that it has not answered yet.
        sizes: instances of training jobs, as it has made them.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers_at_once = True
        self.silent = False
        self.refuses = False
        self.later: list[dict[str, Any]] = []
        self.sizes: dict[str, int] = {}

    def request_resize(self, target: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.asked.append({"target": target, **question})
        if self.silent:
            return None
        if not self.answers_at_once:
            self.later.append(dict(question))
            return {"outcome": "later"}
        return self.answer(question)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self.refuses:
            return {"outcome": "refused", "reason": "not now"}
        self.sizes[question["trainingJobName"]] = question["to"]
        return {"outcome": "done", "instances": question["to"]}


class ElasticWorld(World):
    """A world with nodes, in memory unless a client of DynamoDB is given; every verb of its memory is a call then."""

    def __init__(self, dynamodb: Any = None, *, policy: Policy | None = BY_DECREE, **arguments: Any) -> None:
        self.resizer = Resizer()
        self.decreed: dict[str, int] = {}
        self.asked_at: dict[tuple[str, int], datetime] = {}
        self.stubborn: set[str] = set()
        self.torn: set[str] = set()
        self.reports = False
        self.speed: Callable[[int], float] = float
        self.meeting: MemoryRendezvousControl = MemoryRendezvousControl()
        super().__init__(dynamodb, policy=policy, **arguments)
        self.rendezvous: RendezvousControl = Watched(self.meeting, self.faults)
        asker: ResizeRequester = Watched(self.resizer, self.faults)
        self.resize_requesters = {"function": asker, "event": asker}

    def elastic(self, name: str, hook: str, **more: Any) -> Job:
        return self.submit_request(elastic_request(name, hook, **more))

    def size(self, name: str) -> int:
        job = self.job(name)
        return sum(job.units.values())

    def names(self, name: str) -> list[str]:
        """The training jobs of a job that are open."""
        return sorted(each for each, job in self._open() if job["Tags"].get("trainmaster:job") == name)

    def run_until(self, holds: Callable[[], bool], *, limit: float = 3000, step: float = 10) -> None:
        end = self.clock.now() + timedelta(seconds=limit)
        while not holds():
            assert self.clock.now() < end, [
                (job.name, job.state, job.attempt) for job in self.api_context.store.read_snapshot().active
            ]
            self.run(step, step=step)

    def settle(self) -> None:
        self.play_nodes()
        for question in self.resizer.later[:]:
            self.resizer.later.remove(question)
            said = self.resizer.answer(question)
            answer = HookAnswer(
                token=question["token"], outcome=Outcome(said["outcome"]), instances=said.get("instances")
            )
            answer_resize(self.api_context, ADA, question["job"], answer)
        super().settle()

    def before_pass(self) -> None:
        """Carry out the decrees that are not carried out yet, as a pass would a plan of its own."""
        wanted = {name: size for name, size in self.decreed.items() if self._to_resize(name, size)}
        if not wanted:
            return
        manager_context = self.application().manager_context
        snapshot = manager_context.store.begin_pass()
        jobs = [job for job in snapshot.active if job.name in wanted and job.state is JobState.RUNNING]
        report = PassReport(snapshot.pass_number)
        report.plan = Plan(tuple(Resize(job, wanted[job.name], _cause(job, wanted[job.name])) for job in jobs))
        apply_plan(manager_context, snapshot, report)
        for job in jobs:
            if job.name in report.resized:
                self.decreed.pop(job.name)

    def _to_resize(self, name: str, size: int) -> bool:
        job = self.api_context.store.find(name)
        if job is None or job.attempt is None or job.state is not JobState.RUNNING or job.stop_asked:
            return False
        # A job whose own training job has ended is not resized any more.
        return job.attempt.base_ended_at is None and self.size(name) != size

    def play_nodes(self) -> None:
        """Nodes of training jobs at work take part, until some seconds after they were asked to leave."""
        runs: dict[str, list[str]] = {}
        for name, job in self._open():
            run = job.get("Environment", {}).get("TRAINMASTER_RUN")
            if run and job["SecondaryStatus"] == "Training":
                runs.setdefault(run, []).append(name)
        for run in {*runs, *self.meeting.controls}:
            control = self.meeting.controls.get(run)
            nodes = [name for name in runs.get(run, []) if not self._has_left(name, control)]
            self._watch_for_tears(run, nodes)
            members = [
                Node(training_job_name=each, host="algo-1", role=Role.MEMBER, rank=rank)
                for rank, each in enumerate(sorted(nodes))
            ]
            self.meeting.set_state(run, RendezvousState(round=1, complete=True, nodes=tuple(members)))
            if self.reports and (at_work := runs.get(run)):
                size = sum(self.training_jobs[name]["ResourceConfig"]["InstanceCount"] for name in at_work)
                self.meeting.speeds[run] = json.dumps({"instances": size, "perSecond": self.speed(size)})

    def in_use(self) -> Counter[str]:
        """Units in use by SageMaker's count, corrected for jobs that the custom resizer has resized."""
        used = super().in_use()
        for name, job in self._open():
            config = job["ResourceConfig"]
            if name in self.resizer.sizes:
                used[config["InstanceType"]] += self.resizer.sizes[name] - config["InstanceCount"]
        return used

    def _has_left(self, name: str, control: Control | None) -> bool:
        if control is None or name not in control.drain or name in self.stubborn:
            return False
        return self.now() >= self.asked_at.setdefault((name, 0), self.now()) + LEAVES_AFTER

    def _watch_for_tears(self, run: str, nodes: list[str]) -> None:
        """Note members that were stopped while they took part, and the job went on."""
        group = self.meeting.get(Run(run, ROLE))
        if group is None or not self._works_on(run):
            return
        for node in group.nodes:
            there = self.training_jobs[node.training_job_name]
            if there["TrainingJobStatus"] in ("Stopping", "Stopped") and node.training_job_name not in self.stubborn:
                self.torn.add(node.training_job_name)

    def _works_on(self, run: str) -> bool:
        """Return whether the base of a group is open, or was lost while its job goes on."""
        base = self.training_jobs.get(run)
        if base is None or not base.get("FailureReason", "").startswith("InternalServerError"):
            return base is not None and base["TrainingJobStatus"] == "InProgress"
        job = self.memory.jobs.get(base["Tags"]["trainmaster:job"]) if self.dynamodb is None else None
        return job is not None and bool(job.units) and not job.stopping

    def _store(self) -> Store:
        store = super()._store()
        return store if self.dynamodb is not None else Watched(store, self.faults)


def _cause(job: Job, size: int) -> Cause:
    return Cause.GROW if size > sum(job.units.values()) else Cause.SHRINK


POOLS = f"{P5}=4"
