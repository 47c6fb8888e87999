"""A whole Trainmaster on a virtual clock: API use cases, wake queue, manager and simulated SageMaker in one process.

The manager is the shipped handler over the shipped adapters; DynamoDB is moto, any other client, or the in-memory
store, SageMaker the simulator. `Faults` kills the manager after any one of its AWS calls, fails the call, or lets
another manager overtake it there. It must not hold any rule of the queue.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from builders import ADA, IMAGE, P5, ROLE
from fake_pipelines import FakePipelines
from fake_states import FakeStates
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.adapters.eventbridge import EventBus
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.adapters.sagemaker.pipelines import PipelineSteps
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.adapters.sns import Topic, notification_message
from trainmaster.adapters.stepfunctions import StepFunctions
from trainmaster.bootstrap import Application, Settings, parse_pools
from trainmaster.domain.errors import Throttled, Unavailable
from trainmaster.domain.events.job_events import timestamp
from trainmaster.domain.events.publication import BUS, TOPIC, Publication
from trainmaster.domain.events.types import event_types
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.policy.settings import Policy
from trainmaster.handlers.manager import consume, metrics
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.store import Store
from trainmaster.service.access import Access
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.change import ApiContext
from trainmaster.service.events.delivery import Outbox
from trainmaster.service.submit import submit

TABLE = "sagemaker-queue"
QUEUE = "sagemaker-queue"
TOPIC_ARN = "arn:aws:sns:us-east-1:111122223333:training-jobs"
EPOCH = datetime.fromisoformat("2026-11-21T12:00:00+00:00")
TICK = timedelta(seconds=60)
VISIBILITY = timedelta(seconds=120)
SWALLOWED = timedelta(minutes=5)
VERDICTS = ("infeasible: ", "can never fit: ", "a pool can hold it again")
"""Lines of history that are events although the state stays."""
BRISK = Profile(
    requesting_seconds=1,
    starting_seconds=5,
    downloading_seconds=2,
    uploading_seconds=2,
    stopping_seconds=5,
    pending_seconds=60,
)
"""Short ways to and from training, so that a run has few ticks in which nothing happens."""


class Killed(BaseException):
    """The manager's process is gone; nothing in it can catch this."""


def make_table(client: Any, name: str = TABLE) -> None:
    """The table of `template.yaml`."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk", "finishedIn", "finishedAt")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "finished",
                "KeySchema": [
                    {"AttributeName": "finishedIn", "KeyType": "HASH"},
                    {"AttributeName": "finishedAt", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def a_request(name: str, *, priority: int = 0, count: int = 1, kind: str = P5, **environment: Any) -> dict[str, Any]:
    """A CreateTrainingJob request; further arguments are the simulator's variables (`training_seconds=300`)."""
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "CheckpointConfig": {"S3Uri": f"s3://bucket/checkpoints/{name}"},
        "Environment": {f"SIMULATOR_{key.upper()}": str(value) for key, value in environment.items()},
        "Tags": [{"Key": "priority", "Value": str(priority)}],
    }


@dataclass
class WakeQueue:
    """SQS FIFO as far as the manager feels it: one group, five minutes of deduplication, redelivery; a Publisher."""

    now: Callable[[], datetime]
    messages: list[tuple[str, str]] = field(default_factory=list)
    aside: list[tuple[str, str]] = field(default_factory=list)
    swallowed: dict[str, datetime] = field(default_factory=dict)
    sent: int = 0

    def wake(self, follows: int) -> None:
        self.send(json.dumps({"kind": "wake", "follows": follows}), f"wake-{follows}")

    def set_aside(self, message: str, reason: str) -> None:
        self.aside.append((message, reason))

    def send(self, body: str, dedup: str | None = None) -> None:
        if dedup is not None:
            if self.swallowed.get(dedup, self.now() - SWALLOWED) > self.now() - SWALLOWED:
                return
            self.swallowed[dedup] = self.now()
        self.sent += 1
        self.messages.append((f"m{self.sent}", body))

    def batch(self) -> list[tuple[str, str]]:
        return self.messages[:10]

    def delete(self, identifiers: set[str]) -> None:
        self.messages = [message for message in self.messages if message[0] not in identifiers]


@dataclass
class Faults:
    """Faults of the manager's AWS calls, by their number; counts all calls.

    A call of `fail` does not happen, one of `lose` happens and its answer is lost.
    """

    kill_after: int | None = None
    overtake_after: int | None = None
    overtake: Callable[[], None] = lambda: None
    fail: dict[int, str] = field(default_factory=dict)
    lose: frozenset[int] = frozenset()
    calls: list[str] = field(default_factory=list)
    armed: bool = False

    def watch(self, client: Any) -> Any:
        client.meta.events.register("before-call.*.*", self._before)
        client.meta.events.register("after-call.*.*", self._after)
        return client

    def _before(self, model: Any, **_: Any) -> tuple[AWSResponse, dict[str, Any]] | None:
        if not self.armed:
            return None
        self.calls.append(model.name)
        code = self.fail.get(len(self.calls))
        if code is None:
            return None
        status = 400 if "Throttl" in code else 500
        response = AWSResponse("https://fault.test", status, {}, None)
        parsed = {"Error": {"Code": code, "Message": "injected"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return response, parsed

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        """The same around what is a call of AWS in the end, where no client makes it."""
        if not self.armed:
            return act()
        self.calls.append(name)
        code = self.fail.get(len(self.calls))
        if code is not None:
            raise (Throttled if "Throttl" in code else Unavailable)(code)
        done = act()
        if len(self.calls) in self.lose:
            raise Unavailable("the answer is lost")
        self._then()
        return done

    def _after(self, http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
        if not self.armed:
            return
        if len(self.calls) in self.lose:
            http_response.status_code = 500
            parsed["Error"] = {"Code": "InternalServerError", "Message": "the answer is lost"}
        self._then()

    def _then(self) -> None:
        """Whatever comes upon the manager after its call."""
        if len(self.calls) == self.overtake_after:
            self.overtake_after = None
            self.armed = False
            self.overtake()
            self.armed = True
        if len(self.calls) == self.kill_after:
            self.kill_after = None
            raise Killed


READS = frozenset({"BatchGetItem", "DescribeTrainingJob", "GetItem", "ListTags", "ListTrainingJobs", "Query"})


def kills(calls: list[str], *, reads: bool) -> list[int]:
    """The numbers of the calls that only read, or of those that change something, after which to kill a manager.

    One that dies after a read leaves what it would have left after the last change before.
    """
    return [number for number, name in enumerate(calls, 1) if (name in READS) is reads]


def in_chunks(count: int) -> pytest.MarkDecorator:
    """Split a test's faults among `count` tests, of which the first is not slow: each has an argument `chunk`."""
    slow = [pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(1, count)]
    return pytest.mark.parametrize("chunk", [0, *slow])


def fault_at(number: int, trouble: str) -> Faults:
    """The call of that number fails with an error code, or happens if its trouble is a "lost answer"."""
    return Faults(lose=frozenset({number})) if trouble == "lost answer" else Faults(fail={number: trouble})


@dataclass
class FakeBus:
    """An EventBridge client that keeps the details of the events it accepts.

    `rejects` is asked for each entry, by its number from 1.
    """

    faults: Faults
    rejects: Callable[[int], bool] = lambda number: False
    details: list[dict[str, Any]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 -- as boto3 names it
        assert 0 < len(Entries) <= 10
        return self.faults.around("PutEvents", lambda: self._put(Entries))

    def _put(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        answers = []
        for entry in entries:
            self.seen += 1
            rejected = self.rejects(self.seen)
            answers.append({"ErrorCode": "ThrottlingException"} if rejected else {"EventId": str(self.seen)})
            if not rejected:
                self.entries.append(entry)
                self.details.append(json.loads(entry["Detail"]))
        return {"FailedEntryCount": sum("ErrorCode" in answer for answer in answers), "Entries": answers}


@dataclass
class FakeTopic:
    """An SNS client that keeps the messages it accepts."""

    faults: Faults
    messages: list[dict[str, Any]] = field(default_factory=list)

    def publish(self, **message: Any) -> None:
        self.faults.around("Publish", lambda: self.messages.append(message))


class Context:
    """The Lambda context that the manager looks at."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


class World:
    """Everything, wired; time moves only in `run`.

    `dynamodb` is a client of an engine with the table in it; without one the in-memory store is used.
    `warm`: whether one process serves all invocations, as Lambda does while it can; else each has a fresh one.
    """

    stores = (MemoryStore, DynamoStore)

    has_faults = False
    """True if faults are injected into the manager, which would otherwise cost one job its turn unnoticed."""

    def __init__(
        self,
        dynamodb: Any = None,
        *,
        pools: str = f"{P5}=2",
        policy: Policy | None = None,
        limits: dict[str, int] | None = None,
        faults: Faults | None = None,
        events: Callable[[int, dict[str, Any]], list[float]] | None = None,
        published: str = "none",
        notifies: bool = False,
        step_functions: bool = False,
        pipelines: bool = False,
        warm: bool = False,
        **simulator: Any,
    ) -> None:
        self.clock = VirtualClock(EPOCH)
        self.training_jobs: dict[str, dict[str, Any]] = {}
        self.opened: list[str] = []
        self.warm, self.kept_store = warm, None
        self.checkpoints: dict[str, datetime] = {}
        self.rendezvous: RendezvousControl = MemoryRendezvousControl()
        self.resize_requesters: dict[str, ResizeRequester] = {}
        self.simulator = SageMakerSimulator(self.clock, limits=limits, sink=self._on_event, **simulator)
        self.faults = faults or Faults()
        self.faults.overtake = self.second_manager
        self.dynamodb = dynamodb
        self.sagemaker = self.faults.watch(self.simulator.client())
        self.memory = MemoryTable()
        if dynamodb is not None:
            self.faults.watch(dynamodb)
        self.published = event_types(published)
        self.notifies = notifies
        self.bus, self.topic = FakeBus(self.faults), FakeTopic(self.faults)
        self.step_functions = step_functions
        self.fake_states = FakeStates(self.faults, self.clock.now)
        self.has_pipelines, self.pipelines = pipelines, FakePipelines(self.faults)
        self.pools = pools
        self.policy = policy or Policy(reservation_timeout=timedelta(minutes=20))
        self.queue = WakeQueue(self.clock.now)
        self.events_seen = 0
        self.delivery = events or (lambda number, event: [0.0])
        self.due: list[tuple[datetime, str]] = []
        self.next_tick = EPOCH + TICK
        self.killed = 0
        self.overtaken = 0
        self.peaks: Counter[str] = Counter()
        self.doubles: set[str] = set()
        self.api_context = ApiContext(self._store(), self.queue, self, Access(admins=(ADA.principal,)))
        self.admission = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))

    # -- the clock that the application gets ------------------------------------------------------------------------
    def now(self) -> datetime:
        return self.clock.now()

    def sleep(self, seconds: float) -> None:
        self.simulator.advance(seconds)

    # -- the buckets that the application gets ---------------------------------------------------------------------
    def newest(self, uri: str) -> datetime | None:
        """Time at which the newest checkpoint under this URI was written."""
        return self.checkpoints.get(uri)

    # -- people -----------------------------------------------------------------------------------------------------
    def submit(self, name: str, **request: Any) -> Job:
        return self.submit_request(a_request(name, **request))

    def submit_request(self, request: dict[str, Any]) -> Job:
        return submit(self.api_context, ADA, self.admission, request).job

    def job(self, name: str) -> Job:
        found = self.api_context.store.find(name)
        assert found is not None, name
        return found

    def states(self, *names: str) -> dict[str, str]:
        return {name: str(self.job(name).state) for name in names}

    # -- time -------------------------------------------------------------------------------------------------------
    def run(self, seconds: float, step: float = 5) -> None:
        """Let time pass, delivering events, ticks and wakes as they fall due."""
        end = self.clock.now() + timedelta(seconds=seconds)
        self.settle()
        while self.clock.now() < end:
            self.simulator.advance(min(step, (end - self.clock.now()).total_seconds()))
            self.settle()

    def run_until_ended(self, *names: str, limit: float = 20_000) -> None:
        """Let time pass until all these jobs have ended. Fails after `limit` seconds, saying how they stand."""
        end = self.clock.now() + timedelta(seconds=limit)
        while not all(self.job(name).state in ENDED for name in names):
            assert self.clock.now() < end, self.states(*names)
            self.run(30, step=10)

    def settle(self) -> None:
        """Deliver all that is due now."""
        self.fake_states.expire()
        self._tick()
        for item in sorted(item for item in self.due if item[0] <= self.clock.now()):
            self.due.remove(item)
            self.queue.send(item[1])
        while self.queue.messages:
            self.invoke()

    def invoke(self) -> None:
        """One invocation of the manager; a killed one leaves its messages to come again after the visibility time."""
        batch = self.queue.batch()
        event = {"Records": [{"messageId": identifier, "body": body} for identifier, body in batch]}
        self.faults.armed = True
        try:
            self.before_pass()
            answer = consume(self.application(), event, Context())  # type: ignore[arg-type]
        except Killed:
            self.killed += 1
            self._pass_over(VISIBILITY)
        except Exception:  # noqa: BLE001 -- as the Lambda service: any error redelivers the batch
            self._pass_over(VISIBILITY)
        else:
            told = metrics.metric_set.get("Faults", {"Value": []})["Value"]
            assert self.has_faults or not any(told), "a fault of ours was contained: see the log"
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            self.queue.delete({identifier for identifier, _ in batch} - failed)
            if failed:
                self._pass_over(VISIBILITY)
        finally:
            self.faults.armed = False
            metrics.clear_metrics()

    def before_pass(self) -> None:
        """Hook for a test: run before the manager's pass."""

    def second_manager(self) -> None:
        """A whole tick of another manager, as when a message becomes visible again while its first reader works on."""
        body = json.dumps({"kind": "tick", "time": "late"})
        consume(self.application(), {"Records": [{"messageId": "other", "body": body}]}, Context())  # type: ignore[arg-type]
        self.overtaken += 1

    def application(self) -> Application:
        """A fresh process; unless it is `warm`, nothing is remembered from one invocation to the next."""
        application = Application(
            Settings(
                queue=QUEUE,
                table=TABLE,
                rendezvous_table=f"{TABLE}-rendezvous",
                pools=self.pools,
                allowed_roles=("*",),
                events=self.published,
                notification_topic=TOPIC_ARN if self.notifies else "",
                step_functions=self.step_functions,
                pipelines=self.has_pipelines,
            )
        )
        application.clock = self
        self.kept_store = (self.warm and self.kept_store) or self._store()
        application.__dict__["store"] = self.kept_store
        application.__dict__["publisher"] = self.queue
        application.__dict__["launcher"] = SageMakerLauncher(self.sagemaker, QUEUE)
        application.__dict__["training"] = SageMakerLauncher(self.sagemaker, QUEUE)
        application.__dict__["tasks"] = StepFunctions(lambda: self.fake_states, self.sleep)
        application.__dict__["steps"] = PipelineSteps(lambda: self.pipelines, lambda: self.pipelines)
        application.__dict__["outbox"] = self.outbox_of(application)
        application.__dict__["checkpoints"] = self
        application.__dict__["rendezvous"] = self.rendezvous
        application.__dict__["resize_requesters"] = self.resize_requesters
        return application

    def outbox_of(self, application: Application) -> Outbox:
        recipients = {
            BUS: EventBus(lambda: self.bus),
            TOPIC: Topic(lambda: self.topic, TOPIC_ARN, notification_message),
        }
        return Outbox(application.store, {**recipients, **application.ends}, QUEUE)

    def check_events(self, *names: str) -> None:
        """Fail unless every change of these jobs' states was delivered, each with one content, and nothing else was."""
        self.run(240, step=60)
        assert not self.api_context.store.outbox(limit=1)
        told: dict[tuple[str, int], dict[str, Any]] = {}
        for detail in self.bus.details:
            if "jobName" in detail:
                assert told.setdefault((detail["jobName"], detail["sequence"]), detail) == detail
        for name in names:
            in_order = [detail for (job, _), detail in sorted(told.items()) if job == name]
            heard = [(each.get("from"), each["to"], each["at"], each["reason"]["message"]) for each in in_order]
            assert heard == [
                (line.before, line.after, timestamp(line.at), line.reason)
                for line in self.job(name).history
                if line.before is not line.after or line.size is not None or line.reason.startswith(VERDICTS)
            ]
        assert {name for name, _ in told} <= set(names)

    def _store(self) -> Store:
        settings = {
            "default_pools": parse_pools(self.pools),
            "parameter": self.pools,
            "policy": self.policy,
            "now": self.now,
            "publication": Publication(self.published, notifies=self.notifies),
        }
        in_memory, in_dynamodb = self.stores
        if self.dynamodb is None:
            return in_memory(table=self.memory, **settings)
        return in_dynamodb(Table(self.dynamodb, TABLE, lambda seconds: None), **settings)

    def _pass_over(self, time: timedelta) -> None:
        self.simulator.advance(time.total_seconds())

    def _tick(self) -> None:
        while self.next_tick <= self.clock.now():
            self.queue.send(json.dumps({"kind": "tick", "time": self.next_tick.isoformat()}))
            self.next_tick += TICK

    def _on_event(self, event: dict[str, Any]) -> None:
        """Every change at SageMaker passes here in its order, whether or not the manager hears of it."""
        detail = event["detail"]
        name = detail["TrainingJobName"]
        if name not in self.training_jobs:
            self.opened.append(name)
        self.training_jobs[name] = detail
        self._measure()
        self.events_seen += 1
        for delay in self.delivery(self.events_seen, event):
            self.due.append((self.clock.now() + timedelta(seconds=delay), json.dumps(event)))

    def _measure(self) -> None:
        """The most instances that training jobs have held at once, and jobs of which two attempts ran at once."""
        for kind, count in self.in_use().items():
            self.peaks[kind] = max(self.peaks[kind], count)
        # Members of one attempt run side by side.
        tags = [(name, job["Tags"]) for name, job in self._open()]
        attempts = {(each.get("trainmaster:job", name), each.get("trainmaster:attempt")) for name, each in tags}
        running = Counter(name for name, _ in attempts)
        self.doubles |= {name for name, count in running.items() if count > 1}

    def _open(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (name, job)
            for name, job in self.training_jobs.items()
            if job["TrainingJobStatus"] in ("InProgress", "Stopping")
        ]

    def in_use(self) -> Counter[str]:
        """Instances that open training jobs hold, as SageMaker tells it."""
        used: Counter[str] = Counter()
        for _, job in self._open():
            for kind, count in _held(job["ResourceConfig"]):
                used[kind] += count
        return used


def _held(config: dict[str, Any]) -> list[tuple[str, int]]:
    """Instances that a job's configuration holds; among preferences, those that SageMaker has chosen."""
    if "InstancePreferences" in config:
        chosen = config.get("SelectedInstanceType")
        return [(chosen, config["SelectedInstanceCount"])] if chosen else []
    groups = config.get("InstanceGroups") or [config]
    return [(group["InstanceType"], group["InstanceCount"]) for group in groups]


def shuffled(seed: int, items: list[Any]) -> list[Any]:
    items = list(items)
    random.Random(seed).shuffle(items)
    return items
