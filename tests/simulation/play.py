"""Plays a story: the shipped manager and use cases over a store, with SageMaker simulated, on a virtual clock.

Time jumps from one moment at which something happens to the next. Ticks come every minute while jobs wait or run.
"""

from __future__ import annotations

import heapq
import json
import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from builders import ADA
from elastic_world import TARGET, Resizer
from simulation import acts
from simulation.acts import Act
from simulation.checks import Finding, Oracle, Source, Waiter
from simulation.faults import Calls, FaultySageMaker, FaultyStore, Killed
from simulation.requests import PLAN_ARN, pool_of, request_of
from simulation.story import Configuration, Story
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.bootstrap import Application, Settings, parse_pools
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.elastic.rendezvous import Control, Node, RendezvousState, Role
from trainmaster.domain.errors import TrainmasterError
from trainmaster.domain.jobs.job import ENDED, WAITING, Job
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.handlers.manager import consume, metrics
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.local.simulator import ApiError, SageMakerSimulator, VirtualClock
from trainmaster.local.simulator.service.demand import Market
from trainmaster.ports.store import Store
from trainmaster.service.access import Access
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.capacity import pools as pool_commands
from trainmaster.service.change import ApiContext, cancel, change, set_policy
from trainmaster.service.resizing.contract import HookAnswer, Outcome
from trainmaster.service.resizing.custom import answer_resize
from trainmaster.service.submit import submit
from world import BRISK, EPOCH, QUEUE, TABLE, Context, WakeQueue

TICK = timedelta(seconds=60)
IDLE_TICK = timedelta(minutes=30)
WATCH = timedelta(minutes=6)
"""Time in which ticks come each minute after an external job began, although the queue is idle."""
VISIBILITY = timedelta(seconds=120)
DRAIN = timedelta(days=3)
"""Time in which the queue must end all jobs once hostility has ended; they work for less than a day in all."""
AFTERWARDS = timedelta(minutes=20)
ROOMY = 6
"""Cap of each pool in the end, at least: as many instances as the largest job has."""
LATE_SECONDS = 0.0
"""Maximum delay of a late create, in seconds, unless the story sets it."""
LEAVES_AFTER = timedelta(seconds=10)
PRIORITY_ORDERS = ("fifo", "backfill")
EVER = datetime.max.replace(tzinfo=EPOCH.tzinfo)
ADMISSION = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))


@dataclass
class Result:
    """Outcome of a day."""

    findings: list[Finding] = field(default_factory=list)
    jobs: int = 0
    attempts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    passes: int = 0


def play(story: Story, dynamodb: Any = None) -> Result:
    """Play a story; `dynamodb` is a client of an engine with an empty table, the store is in memory without one."""
    with quiet():
        return Day(story, dynamodb).play()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the thousands of warnings about faults."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Day:
    """A story being played. It is also the application's clock, and its view of the checkpoints.

    Days with another kind of jobs have `job_kinds` of the settings, and a `memory_store` that knows their pools.
    """

    job_kinds: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    memory_store: Callable[..., Store] = MemoryStore

    def __init__(self, story: Story, dynamodb: Any = None) -> None:
        self.story, self.dynamodb = story, dynamodb
        configuration = story.configuration
        self.configuration: Configuration = configuration
        self.rng = random.Random(f"play {story.seed}")
        self.clock = VirtualClock(EPOCH)
        settings = dict(configuration.settings)
        rules = settings.get("order", "backfill") in PRIORITY_ORDERS
        changing = any(isinstance(act, acts.ChangeSettings) for act in story.acts)
        plain = not changing and not {"shares", "expansion", "patienceSeconds"}.intersection(settings)
        self.oracle = Oracle(QUEUE, rules and plain, settings.get("order") == "fifo", self._waiters)
        self.oracle.late = timedelta(seconds=dict(configuration.hostility).get("late_seconds", LATE_SECONDS))
        self.result = Result()
        self.simulator = SageMakerSimulator(
            self.clock,
            limits=dict(configuration.quotas),
            capacity=dict(configuration.capacity),
            profile=BRISK,
            sink=self._on_event,
            **({"hostility": _hostility(configuration.hostility)} if configuration.hostility else {}),
        )
        self.calls = Calls(
            self._second_manager,
            self._hang,
            self._sent,
            self._answered,
            lambda: self.oracle.trouble(self.now()),
        )
        self.memory = MemoryTable()
        self.parameters = ["", ""]
        self.queue = WakeQueue(self.clock.now)
        self.stores = [self._new_store(0), self._new_store(1)]
        self.faulty = [FaultyStore(store, self.calls) for store in self.stores]
        self.sagemaker: Any = FaultySageMaker(self.simulator.direct(checked=False), self.calls)
        self.api = ApiContext(self.stores[0], self.queue, self, Access(admins=(ADA.principal,)))
        self.resizer = Resizer()
        self.meeting = MemoryRendezvousControl()
        self.nodes: dict[str, dict[str, Any]] = {}
        self.asked: dict[str, datetime] = {}
        self.due: list[tuple[datetime, int, str]] = []
        self.sequence = 0
        self.visible_at = EPOCH
        self.next_tick = EPOCH + TICK
        self.watched_until = EPOCH
        self.coming = deque(story.acts)
        self.invoked = False
        self.expands = "expansion" in settings
        self.calm = False
        self.ended: set[str] = set()
        self.bad_messages: set[str] = set()
        self.broken: Exception | None = None
        self.has_members = any(isinstance(act, acts.Submit) and act.hook == "members" for act in story.acts)
        self._prepare()

    def play(self) -> Result:
        """Play the acts, end hostility, and let the queue drain."""
        while self.coming:
            self._run_until(EPOCH + timedelta(seconds=self.coming[0].at))
            if self.coming:
                # A manager that hung meanwhile may have had the next act happen.
                self._act(self.coming.popleft())
        self._run_until(EPOCH + timedelta(hours=self.story.hours))
        self._end_hostility()
        end = self.now() + DRAIN
        while self._busy() and self.now() < end and len(self.oracle.findings) < 20:
            self._run_until(self.now() + timedelta(minutes=5))
            self._check_orphans()
        for _ in range(4):
            self._run_until(self.now() + AFTERWARDS / 4)
            self._check_orphans()
        return self._finish()

    # -- the clock and the buckets that the application gets ----------------------------------------------------------
    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    def sleep(self, seconds: float) -> None:
        """Let time pass while a manager waits; events queue up meanwhile."""
        if seconds > 0:
            self.simulator.advance(seconds)

    def _hang(self, seconds: float) -> None:
        """Let time pass while a manager hangs; people, administrators and others go on."""
        end = self.now() + timedelta(seconds=seconds)
        while self.coming and EPOCH + timedelta(seconds=self.coming[0].at) <= end:
            act = self.coming.popleft()
            self.simulator.run_until(EPOCH + timedelta(seconds=act.at))
            self._act(act)
        self.simulator.run_until(end)

    def newest(self, _uri: str) -> datetime | None:
        """Return None: no checkpoint is ever seen."""
        return None

    # -- time ---------------------------------------------------------------------------------------------------------
    def _run_until(self, end: datetime) -> None:
        """Let time pass; a manager that hangs may take longer."""
        self._deliver()
        while (moment := self._next_moment()) <= end:
            self.simulator.run_until(moment)
            self._deliver()
        self.simulator.run_until(end)
        self._deliver()

    def _next_moment(self) -> datetime:
        moments = [self.next_tick]
        if (timer := self.simulator.next_time()) is not None:
            moments.append(timer)
        if self.due:
            moments.append(self.due[0][0])
        if self.queue.messages:
            moments.append(self.visible_at)
        return max(min(moments), self.now())

    def _deliver(self) -> None:
        """Deliver all that is due now, unless a manager is at work."""
        if self.invoked:
            return
        now = self.now()
        if self.has_members:
            self._play_nodes()
        if self.resizer.later:
            self._answer_resizes()
        while self.due and self.due[0][0] <= now:
            self.queue.send(heapq.heappop(self.due)[2])
        if self.next_tick <= now:
            self._tick(now)
        while self.queue.messages and self.visible_at <= self.now():
            self._invoke()

    def _tick(self, now: datetime) -> None:
        if not self.calm and self.rng.random() < self.configuration.lost_ticks:
            self.result.faults["lost tick"] += 1
            self.oracle.trouble(now)
        else:
            self.queue.send(json.dumps({"kind": "tick", "time": now.isoformat()}))
        self.next_tick = now + (TICK if now < self.watched_until or self._busy() else IDLE_TICK)

    def _busy(self) -> bool:
        if self.dynamodb is None:
            return bool(self.memory.active or self.memory.lanes or self.memory.held)
        for name in self.oracle.submitted:
            if name not in self.ended:
                job = self.stores[0].find(name)
                if job is None or job.state not in ENDED:
                    return True
                self.ended.add(name)
        return False

    # -- the manager --------------------------------------------------------------------------------------------------
    def _invoke(self) -> None:
        """Run one invocation; a killed one leaves its messages to come again after the visibility time."""
        batch = self.queue.batch()
        event = {"Records": [{"messageId": identifier, "body": body} for identifier, body in batch]}
        began, self.invoked = self.now(), True
        self.calls.begin()
        try:
            answer = consume(self._application(0), event, Context())  # type: ignore[arg-type]
        except Killed:
            self._hide(began)
        except Exception as error:  # noqa: BLE001 -- as the Lambda service: any error redelivers the batch
            self.oracle.find("error", f"the manager raised {error!r}")
            self._hide(began)
        else:
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            self.queue.delete({identifier for identifier, _ in batch} - failed)
            if failed:
                self._hide(began)
        finally:
            self.calls.end()
            self.invoked = False
            self._read_metrics()
        self.result.passes += 1

    def _hide(self, began: datetime) -> None:
        self.visible_at = max(began + VISIBILITY, self.now())
        self.oracle.trouble(self.visible_at)

    def _read_metrics(self) -> None:
        told = metrics.metric_set.get("Faults", {"Value": []})["Value"]
        if any(told):
            self.oracle.now = self.now()
            self.oracle.find("error", "an unexpected exception was contained")
        metrics.clear_metrics()

    def _second_manager(self) -> None:
        """Run a whole tick of another manager, of the other version if two are deployed."""
        body = json.dumps({"kind": "tick", "time": "late"})
        event = {"Records": [{"messageId": "other", "body": body}]}
        with suppress(Killed):
            consume(self._application(1), event, Context())  # type: ignore[arg-type]

    def _application(self, version: int) -> Application:
        """Return a fresh process: nothing is remembered from one invocation to the next."""
        pools = self.parameters[version]
        settings = Settings(queue=QUEUE, table=TABLE, pools=pools, allowed_roles=("*",), job_kinds=self.job_kinds)
        application = Application(settings)
        application.clock = self
        made = application.__dict__
        made["store"] = self.faulty[version]
        made["publisher"] = self.queue
        made["launcher"] = SageMakerLauncher(self.sagemaker, QUEUE)
        made["checkpoints"] = None
        made["rendezvous"] = self.meeting
        made["resize_requesters"] = {"function": self, "event": self}
        return application

    def _new_store(self, version: int) -> Any:
        settings: dict[str, Any] = {
            "default_pools": parse_pools(self.parameters[version]),
            "parameter": "",
            "policy": policy_of({}),
            "now": self.now,
        }
        if self.dynamodb is None:
            return type(self).memory_store(table=self.memory, **settings)
        return DynamoStore(Table(self.dynamodb, TABLE, lambda seconds: None), **settings)

    def _sent(self, verb: str, members: Any) -> None:
        if self.expands and verb == "CreateTrainingJob":
            self._note_pools()
        self.oracle.sent(self.now(), verb, members)
        self.oracle.stopper = "queue" if verb == "StopTrainingJob" else ""

    def _answered(self) -> None:
        self.oracle.stopper = ""

    # -- SageMaker ----------------------------------------------------------------------------------------------------
    def _on_event(self, event: dict[str, Any]) -> None:
        """Note a change at SageMaker, and send the event on its way to the queue."""
        detail, now = event["detail"], self.now()
        self._judge(detail)
        if self.has_members:
            self.nodes[detail["TrainingJobName"]] = detail
        configuration, rng = self.configuration, self.rng
        delays = [0.0]
        if not self.calm and (configuration.lost or configuration.late or configuration.doubled):
            chance = rng.random()
            if chance < configuration.lost:
                delays = []
                self.result.faults["lost event"] += 1
            elif chance < configuration.lost + configuration.late:
                delays = [rng.uniform(1, 600)]
                self.result.faults["late event"] += 1
            if rng.random() < configuration.doubled:
                delays.append(rng.uniform(0, 300))
                self.result.faults["repeated event"] += 1
        if delays != [0.0]:
            self.oracle.trouble(now + timedelta(seconds=max(delays, default=0)))
        for delay in delays:
            self._post(now + timedelta(seconds=delay), json.dumps(event))

    def _judge(self, detail: dict[str, Any]) -> None:
        """Have the oracle see a change; an error of its own must not look like one of the queue."""
        try:
            self.oracle.status(self.now(), detail)
        except Exception as error:  # noqa: BLE001 -- raised at the end
            self.broken = self.broken or error

    def _post(self, at: datetime, body: str) -> None:
        self.sequence += 1
        heapq.heappush(self.due, (at, self.sequence, body))

    # -- elastic jobs -------------------------------------------------------------------------------------------------
    def request_resize(self, _target: str, question: dict[str, Any]) -> dict[str, Any] | None:
        """Take a question of the custom hook; it is answered when time goes on."""
        self.resizer.later.append(dict(question))
        return {"outcome": "later"}

    def _answer_resizes(self) -> None:
        later, self.resizer.later = self.resizer.later, []
        for question in later:
            name, size = question["trainingJobName"], question["to"]
            answer = HookAnswer(token=question["token"], outcome=Outcome.DONE, instances=size)
            try:
                answer_resize(self.api, ADA, question["job"], answer)
            except TrainmasterError:
                continue
            self.oracle.resized(self.now(), name, size)

    def _play_nodes(self) -> None:
        """Have nodes of training jobs at work take part, until some seconds after they were asked to leave."""
        runs: dict[str, list[str]] = {}
        for name, job in self.nodes.items():
            run = job.get("Environment", {}).get("TRAINMASTER_RUN")
            if run and job["SecondaryStatus"] == "Training" and job["TrainingJobStatus"] == "InProgress":
                runs.setdefault(run, []).append(name)
        for run in sorted({*runs, *self.meeting.controls}):
            control = self.meeting.controls.get(run)
            there = sorted(name for name in runs.get(run, []) if not self._has_left(name, control))
            nodes = [
                Node(training_job_name=name, host="algo-1", role=Role.MEMBER, rank=rank)
                for rank, name in enumerate(there)
            ]
            self.meeting.set_state(run, RendezvousState(round=1, complete=True, nodes=tuple(nodes)))

    def _has_left(self, name: str, control: Control | None) -> bool:
        if control is None or name not in control.drain:
            return False
        return self.now() >= self.asked.setdefault(name, self.now()) + LEAVES_AFTER

    # -- acts ---------------------------------------------------------------------------------------------------------
    def _prepare(self) -> None:
        configuration = self.configuration
        block = (EPOCH + timedelta(minutes=30), EPOCH + timedelta(days=20))
        for pool in configuration.pools:
            if pool.name == acts.PLAN:
                self.simulator.add_plan(acts.PLAN, configuration.pools[0].name, pool.cap, block)
        pool_commands.set_pools(self.api, ADA, [pool_of(pool, configuration) for pool in configuration.pools])
        set_policy(self.api, ADA, dict(configuration.settings))
        self._note_pools()

    def _act(self, act: Act) -> None:
        kind = type(act).__name__
        self.result.acts[kind] += 1
        try:
            getattr(self, f"_act_{kind}")(act)
        except (TrainmasterError, ApiError):
            # People ask for what is not possible any more; they are told, and nothing happens.
            self.result.acts[f"{kind} refused"] += 1
        self._note_pools()
        self._deliver()

    def _act_Submit(self, act: acts.Submit) -> None:  # noqa: N802 -- named as the act
        request = request_of(act, EPOCH)
        submit(self.api, ADA, ADMISSION, request)
        self.oracle.submit(self.now(), act.name, request, act.priority)
        self.next_tick = min(self.next_tick, self.now() + TICK)

    def _act_Cancel(self, act: acts.Cancel) -> None:  # noqa: N802
        cancel(self.api, ADA, act.name)
        self.oracle.cancel(act.name)

    def _act_Hold(self, act: acts.Hold) -> None:  # noqa: N802
        change(self.api, ADA, act.name, hold=act.hold)

    def _act_Reprioritize(self, act: acts.Reprioritize) -> None:  # noqa: N802
        change(self.api, ADA, act.name, priority=act.priority)
        self.oracle.prioritize(act.name, act.priority)

    def _act_Scale(self, act: acts.Scale) -> None:  # noqa: N802
        change(self.api, ADA, act.name, bounds=SizeBounds(act.least, act.most))

    def _act_ConsoleStop(self, act: acts.ConsoleStop) -> None:  # noqa: N802
        name = self._open_training_job(act.name)
        if name is not None and self.oracle.training_jobs[name].status == "InProgress":
            self.oracle.stopper = "person"
            self.simulator.call("StopTrainingJob", TrainingJobName=name)
            self.oracle.stopper = ""

    def _act_Stray(self, act: acts.Stray) -> None:  # noqa: N802
        job, request = self.stores[0].find(act.name), self.oracle.refused(act.name)
        if job is None or job.state not in WAITING or request is None:
            return
        name = request["TrainingJobName"]
        self.oracle.add_stray(name)
        self.simulator.call("CreateTrainingJob", **request)
        self.simulator.call("StopTrainingJob", TrainingJobName=name)

    def _act_ChangePool(self, act: acts.ChangePool) -> None:  # noqa: N802
        given = {"cap": act.cap, "draining": act.draining}
        fields = {name: value for name, value in given.items() if value is not None}
        pool_commands.change_pool(self.api, ADA, act.pool, fields)

    def _act_RemovePool(self, act: acts.RemovePool) -> None:  # noqa: N802
        pool_commands.remove_pool(self.api, ADA, act.pool, force=act.force)

    def _act_AddPool(self, act: acts.AddPool) -> None:  # noqa: N802
        known = next(pool for pool in self.configuration.pools if pool.name == act.pool)
        pool = pool_of(known, self.configuration)
        pool_commands.put_pool(self.api, ADA, Pool(**{**_members(pool), "cap": act.cap}))

    def _act_ChangeSettings(self, act: acts.ChangeSettings) -> None:  # noqa: N802
        set_policy(self.api, ADA, {**dict(self.configuration.settings), **dict(act.document)})

    def _act_External(self, act: acts.External) -> None:  # noqa: N802
        submitted = acts.Submit(act.at, act.name, act.instance_type, act.count, act.seconds, checkpoints=False)
        request = request_of(submitted, EPOCH)
        tags = {"trainmaster:queue": act.queue, "trainmaster:job": act.name.split("-qstamp-")[0]} if act.queue else {}
        request["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        self.simulator.call("CreateTrainingJob", **request)
        # An idle queue lists external jobs each minute as well.
        self.watched_until = self.now() + WATCH
        self.next_tick = min(self.next_tick, self.now() + TICK)

    def _act_Capacity(self, act: acts.Capacity) -> None:  # noqa: N802
        self.simulator.set_capacity(act.instance_type, act.count, spot=act.spot)

    def _act_Quota(self, act: acts.Quota) -> None:  # noqa: N802
        self.simulator.quotas.set_limit(act.instance_type, act.limit)

    def _act_Interrupt(self, _act: acts.Interrupt) -> None:  # noqa: N802
        for name, job in list(self.oracle.training_jobs.items()):
            if job.open and any(source[0] == "spot" for source in job.units):
                with suppress(ValueError):
                    self.simulator.interrupt(name)

    def _act_Redeploy(self, act: acts.Redeploy) -> None:  # noqa: N802
        self.parameters = [act.parameter, self.parameters[0]]

    def _act_Kill(self, act: acts.Kill) -> None:  # noqa: N802
        self.calls.planned.append(act)

    _act_Overtake = _act_StoreFault = _act_CallFault = _act_Kill  # noqa: N815

    def _act_Forge(self, act: acts.Forge) -> None:  # noqa: N802
        name = self._open_training_job(act.name)
        if name is None:
            return
        detail = self.simulator.call("DescribeTrainingJob", TrainingJobName=name)
        self.oracle.trouble(self.now())
        told = {
            "TrainingJobName": name,
            "TrainingJobArn": detail["TrainingJobArn"],
            "TrainingJobStatus": act.status,
            "SecondaryStatus": act.status,
            "Tags": {"trainmaster:queue": QUEUE, "trainmaster:job": act.name},
        }
        event = {"detail-type": "SageMaker Training Job State Change", "source": "aws.sagemaker", "detail": told}
        self._post(self.now(), json.dumps(event))

    def _act_BadMessage(self, act: acts.BadMessage) -> None:  # noqa: N802
        self.bad_messages.add(act.body)
        self._post(self.now(), act.body)

    def _open_training_job(self, job: str) -> str | None:
        jobs = self.oracle.training_jobs.items()
        return next((name for name, each in jobs if each.job == job and each.open and not each.member), None)

    # -- the end ------------------------------------------------------------------------------------------------------
    def _end_hostility(self) -> None:
        """Have AWS and people do nothing odd any more, and make room for every job."""
        self.calm = True
        if self.configuration.hostility:
            self.simulator.hostility = _hostility(())
        self.calls.planned.clear()
        for kind in acts.TYPES:
            for market in Market.ON_DEMAND, Market.SPOT:
                self.simulator.quotas.set_limit(kind, 1000, market)
            self.simulator.set_capacity(kind, None)
            self.simulator.set_capacity(kind, None, spot=True)
        for name, job in list(self.oracle.training_jobs.items()):
            if job.open and job.job is None:
                with suppress(ApiError):
                    self.simulator.call("StopTrainingJob", TrainingJobName=name)
        with suppress(TrainmasterError):
            # A share that borrows nothing may never run what its users submit.
            set_policy(self.api, ADA, {**dict(self.configuration.settings), "shares": {}})
            kept = self.stores[0].settings().pools
            roomy = {name: replace(pool, cap=max(pool.cap, ROOMY), draining=False) for name, pool in kept.items()}
            named = (pool_of(pool, self.configuration) for pool in self.configuration.pools)
            gone = {pool.name: pool for pool in named if pool.name not in kept}
            pool_commands.set_pools(self.api, ADA, [*roomy.values(), *gone.values()])
        for name in self.oracle.submitted:
            job = self.stores[0].find(name)
            if job is not None and job.held_by is not None and job.state not in ENDED:
                change(self.api, ADA, name, hold=False)
        self._note_pools()
        self.next_tick = min(self.next_tick, self.now() + TICK)

    def _check_orphans(self) -> None:
        active: set[str] = set()
        ended: dict[str, datetime | None] = {}
        for name in self.oracle.submitted:
            job: Job | None = self.stores[0].find(name)
            if job is None or job.state in ENDED:
                ended[name] = None if job is None else job.ended_at
            elif job.units and job.attempt is not None:
                active.update(job.attempt.training_job_names)
        self.oracle.check_orphans(self.now(), frozenset(active), ended)

    def _finish(self) -> Result:
        if self.broken is not None:
            raise self.broken
        oracle, result = self.oracle, self.result
        states: dict[str, tuple[str, str]] = {}
        for name in oracle.submitted:
            job = self.stores[0].find(name)
            states[name] = (
                ("lost", "") if job is None else (str(job.state), job.history[-1].reason if job.history else "")
            )
        oracle.check_ends(self.now(), states)
        others = [reason for body, reason in self.queue.aside if body not in self.bad_messages]
        if others:
            oracle.find("set aside", f"{len(others)} messages: {others[:3]}")
        result.findings, result.calls = oracle.findings, oracle.calls
        result.jobs, result.faults = len(oracle.submitted), result.faults + self.calls.done + self.simulator.misbehaved
        result.attempts = sum(job.job is not None for job in oracle.training_jobs.values())
        result.states = Counter(state for state, _ in states.values())
        return result

    # -- what the oracle asks the queue -------------------------------------------------------------------------------
    def _note_pools(self) -> None:
        pools: dict[Source, tuple[int, bool]] = {}
        for pool in self.stores[0].settings(catalogue=False).pools.values():
            source = _source(pool)
            cap, counts = pools.get(source, (0, False))
            pools[source] = (cap + pool.cap, counts or pool.count_external)
        self.oracle.set_pools(self.now(), pools)

    def _waiters(self) -> Iterator[Waiter]:
        pools = self.stores[0].settings(catalogue=False).pools
        for name in self.oracle.submitted:
            job = self.stores[0].find(name)
            if job is None or job.state not in WAITING:
                continue
            source, count = None, 0
            units = job.demand.alternatives[0] if len(job.demand.alternatives) == 1 else {}
            if len(units) == 1:
                ((pool, count),) = units.items()
                source = _source(pools[pool]) if pool in pools and not pools[pool].draining else None
            backs_off = job.retry_at is not None and not (job.attempt is not None and job.attempt.found_no_capacity)
            since = job.history[-1].at if job.history else job.entry_time
            # Not the order of the queue's own code, which the rule judges.
            order = (-job.priority, job.entry_time, job.name)
            yield Waiter(name, job.priority, order, since, source, count, backs_off or job.group is not None)


def _source(pool: Pool) -> Source:
    kind = pool.plan_arn if pool.kind is Kind.TRAINING_PLAN else pool.instance_type
    return str(pool.kind), kind or ""


def _members(pool: Pool) -> dict[str, Any]:
    return {name: getattr(pool, name) for name in pool.__dataclass_fields__}


def _hostility(members: tuple[tuple[str, Any], ...]) -> Any:
    """Return the simulator's hostility with these members; none of the others."""
    from trainmaster.local.simulator.hostility.hostility import Hostility

    return Hostility(**dict(members))


__all__ = ["PLAN_ARN", "TARGET", "Day", "Result", "play"]
