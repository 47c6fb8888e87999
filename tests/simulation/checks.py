"""Invariants of a day, judged from SageMaker's side.

The oracle is fed what SageMaker did (status changes, calls and their requests), what administrators and people did, and
at the end how the queue says that its jobs ended. It reads the queue's own rows only where SageMaker cannot answer:
which jobs wait, and in which state each ended.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.domain.jobs.names import attempt_name

Source = tuple[str, str]
"""Capacity: `on-demand`, `spot` or `training-plan`, and the instance type or the plan's ARN."""

OPEN = frozenset({"InProgress", "Stopping"})
LONG_AGO = datetime.min.replace(tzinfo=UTC)
CAP_GRACE = timedelta(minutes=10)
"""A start that was committed before a cap was lowered may reach SageMaker after it, when its call failed."""
QUIET = timedelta(minutes=10)
"""Rules about what the queue should have known hold if nothing went wrong with it for this time."""
KNOWN_AFTER = timedelta(minutes=5)
"""External jobs count once they are visible for longer than a tick, its pass and the lag of lists."""
ORPHAN_GRACE = timedelta(minutes=15)
END_GRACE = timedelta(minutes=5)
UNDECIDED = timedelta(minutes=2)
"""A person's stop and a failed one of the queue less than this time apart cannot be told from each other."""
LIST_PER_MINUTE = 120
"""ListTrainingJobs allows two calls a second (see `local.simulator.faults`)."""
CALLS_PER_MINUTE = 600
"""Calls of any other verb that a queue of this size may make; AWS does not publish those limits."""
_LOSSES = ("InternalServerError", "CapacityError", "InsufficientCapacityError", "ResourceLimitExceeded")
_MEMBER = re.compile(r"-qstamp-\d+-m\d+$")
_OWN_CHOICES = ("InstanceType", "InstanceCount", "InstancePreferences", "TrainingPlanArn", "KeepAlivePeriodInSeconds")


@dataclass(frozen=True)
class Finding:
    """Something that must not happen.

    Attributes:
        kind: which rule it breaks.
        at: when.
        text: what happened.
    """

    kind: str
    at: datetime
    text: str

    def __str__(self) -> str:
        return f"{self.at:%d %H:%M:%S} {self.kind}: {self.text}"


@dataclass
class TrainingJob:
    """A training job as SageMaker shows it.

    Attributes:
        decided: when the queue decided to start it, by its tag; when it was created without one.
    """

    name: str
    job: str | None
    attempt: int
    units: Mapping[Source, int]
    created: datetime
    decided: datetime
    status: str = "InProgress"
    secondary: str = "Starting"
    reason: str = ""
    stopped_by: str = ""
    ended: datetime | None = None

    @property
    def member(self) -> bool:
        """True for a further training job of an elastic attempt."""
        return _MEMBER.search(self.name) is not None

    @property
    def open(self) -> bool:
        """True until it has ended."""
        return self.status in OPEN


@dataclass(frozen=True)
class Waiter:
    """A waiting job as the rule about priorities needs it.

    Attributes:
        source: its only source of capacity; None if it has several.
        backs_off: whether it may not start yet for another reason than missing capacity.
    """

    name: str
    priority: int
    order: tuple[Any, ...]
    since: datetime
    source: Source | None
    count: int
    backs_off: bool = False


@dataclass
class Oracle:
    """Collects findings.

    Attributes:
        queue: the queue's name, the value of its tag.
        priority_rules: whether a first-in-line rule holds in this configuration.
        strict: whether no job passes an equal that waits for the same pool.
        waiting: returns the waiting jobs, called when a new job starts.
        late: how late a create may take effect.
        cancelled: jobs that users cancelled.
        stopper: `person` or `queue` while one calls StopTrainingJob; "" for SageMaker itself.
    """

    queue: str
    priority_rules: bool = True
    strict: bool = False
    waiting: Callable[[], Iterable[Waiter]] = tuple
    findings: list[Finding] = field(default_factory=list)
    training_jobs: dict[str, TrainingJob] = field(default_factory=dict)
    submitted: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    late: timedelta = timedelta(0)
    cancelled: set[str] = field(default_factory=set)
    stopper: str = ""
    now: datetime = LONG_AGO
    last_trouble: datetime = LONG_AGO
    _caps: dict[Source, list[tuple[datetime, int | None, bool]]] = field(default_factory=lambda: defaultdict(list))
    _requests: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _submitted_at: dict[str, datetime] = field(default_factory=dict)
    _priorities: dict[str, int] = field(default_factory=dict)
    _stopped_by_people: dict[str, int] = field(default_factory=dict)
    _stop_called: dict[str, datetime] = field(default_factory=dict)
    _strays: set[str] = field(default_factory=set)
    _per_minute: Counter[tuple[str, datetime]] = field(default_factory=Counter)
    _sizes: dict[str, int] = field(default_factory=dict)
    _orphans: dict[str, datetime] = field(default_factory=dict)

    def find(self, kind: str, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, self.now, text))

    # -- administrators and people ----------------------------------------------------------------------------------
    def set_pools(self, now: datetime, pools: Mapping[Source, tuple[int, bool]]) -> None:
        """Note the caps in force from now on, and whether external jobs count."""
        for source in {**self._caps, **pools}:
            cap, counts = pools.get(source, (None, False))
            history = self._caps[source]
            if not history or history[-1][1:] != (cap, counts):
                history.append((now, cap, counts))

    def submit(self, now: datetime, name: str, request: Mapping[str, Any], priority: int) -> None:
        """Note an accepted job."""
        self.submitted[name] = request
        self._submitted_at.setdefault(name, now)
        self._priorities[name] = priority

    def prioritize(self, name: str, priority: int) -> None:
        """Note a changed priority."""
        self._priorities[name] = priority

    def cancel(self, name: str) -> None:
        """Note that a user cancelled a job."""
        self.cancelled.add(name)

    def refused(self, job: str) -> Mapping[str, Any] | None:
        """Return the newest create request of a job if SageMaker has no training job for it."""
        requests = (request for request in self._requests.values() if _tags(request).get("trainmaster:job") == job)
        newest = max(requests, key=lambda request: int(_tags(request)["trainmaster:attempt"]), default=None)
        return None if newest is None or newest["TrainingJobName"] in self.training_jobs else newest

    def add_stray(self, name: str) -> None:
        """Ignore a training job that is not the queue's doing, although it has its tags."""
        self._strays.add(name)

    def trouble(self, now: datetime) -> None:
        """Note that something went wrong for the queue, so that it cannot know everything at once."""
        self.last_trouble = max(self.last_trouble, now)

    # -- SageMaker --------------------------------------------------------------------------------------------------
    def sent(self, now: datetime, verb: str, members: Mapping[str, Any]) -> None:
        """Note a call of the queue."""
        self.now = now
        self.calls[verb] += 1
        minute = now.replace(second=0, microsecond=0)
        self._per_minute[verb, minute] += 1
        limit = LIST_PER_MINUTE if verb == "ListTrainingJobs" else CALLS_PER_MINUTE
        if self._per_minute[verb, minute] == limit + 1:
            self.find("calls", f"more than {limit} {verb} in a minute")
        if verb in ("StopTrainingJob", "UpdateTrainingJob") and self._is_strangers(members["TrainingJobName"]):
            self.find("stranger", f"{verb} of {members['TrainingJobName']}, which the queue did not start")
        if verb == "StopTrainingJob":
            self._stop_called[members["TrainingJobName"]] = now
        if verb == "CreateTrainingJob":
            self._check_request(members)
            self._requests[members["TrainingJobName"]] = members

    def _is_strangers(self, training_job: str) -> bool:
        """Return whether another user of the account, or another queue, started a training job, by its tags."""
        found = self.training_jobs.get(training_job)
        return found is not None and found.job is None

    def status(self, now: datetime, detail: Mapping[str, Any]) -> None:
        """Note a change of a training job, in SageMaker's order."""
        self.now = now
        name = detail["TrainingJobName"]
        if name in self._strays:
            return
        known = self.training_jobs.get(name)
        if known is None or (not known.open and detail["TrainingJobStatus"] in OPEN):
            known = self.training_jobs[name] = self._opened(now, detail)
            self._check_opened(known)
        if known.status == "InProgress" and detail["TrainingJobStatus"] in ("Stopping", "Stopped"):
            self._note_stop(known)
        known.units = self._units_of(name, detail, known.job)
        known.status, known.secondary = detail["TrainingJobStatus"], detail["SecondaryStatus"]
        known.reason = detail.get("FailureReason", "")
        if not known.open:
            known.ended = known.ended or now

    def _note_stop(self, stopping: TrainingJob) -> None:
        """Note whose stop SageMaker accepted.

        The queue cannot know that of a person's stop that comes soon after a call of its own without an answer.
        """
        stopping.stopped_by = self.stopper
        called = self._stop_called.get(stopping.name, LONG_AGO)
        if called > self.now - UNDECIDED:
            return
        if self.stopper == "person" and stopping.job is not None and not stopping.member:
            self._stopped_by_people[stopping.job] = stopping.attempt

    def resized(self, now: datetime, training_job: str, count: int) -> None:
        """Note that a training job was resized outside the queue."""
        self.now = now
        self._sizes[training_job] = count
        found = self.training_jobs.get(training_job)
        if found is not None and found.open:
            before = sum(found.units.values())
            found.units = dict.fromkeys(found.units, count)
            if count > before:
                self._check_caps(found)

    def _opened(self, now: datetime, detail: Mapping[str, Any]) -> TrainingJob:
        name, tags = detail["TrainingJobName"], detail.get("Tags", {})
        ours = tags.get("trainmaster:queue") == self.queue
        job = tags.get("trainmaster:job") if ours else None
        attempt = int(tags.get("trainmaster:attempt", 0)) if ours else 0
        start = "" if job is None or _MEMBER.search(name) else tags.get("trainmaster:start", "")
        decided = datetime.fromisoformat(start) if start else now
        return TrainingJob(name, job, attempt, self._units_of(name, detail, job), now, min(decided, now))

    def _units_of(self, name: str, detail: Mapping[str, Any], job: str | None) -> dict[Source, int]:
        request = self._requests.get(name, {})
        units: Counter[Source] = Counter()
        for kind, count in held(detail["ResourceConfig"]):
            source = source_of(request, kind)
            if source[0] == "spot" and not self._had_pool(source, job):
                # Without a pool of their own, spot instances count against the cap of those on demand.
                source = ("on-demand", kind)
            units[source] += self._sizes.get(name, count)
        return dict(units)

    # -- rules about a start ----------------------------------------------------------------------------------------
    def _check_opened(self, opened: TrainingJob) -> None:
        if opened.job is None:
            return
        self._check_caps(opened)
        self._check_single(opened)
        self._check_person(opened)
        if not opened.member:
            self._check_priority(opened)

    def _check_caps(self, opened: TrainingJob) -> None:
        """Rule 1: a start never brings a source over its cap; also not with external jobs that the queue must know."""
        for source in opened.units:
            if source not in self._caps:
                self.find("cap", f"{opened.name} started in {source}, which has no pool")
                continue
            ours, cap = self._used(source, lambda each: each.job is not None), self._largest_cap(source)
            if ours > cap:
                self.find("cap", f"{opened.name} brings {source} to {ours} of {cap}: {self._holders(source)}")
            elif self._must_count(source):
                total = ours + self._known_external(source, opened.decided - KNOWN_AFTER)
                if total > cap:
                    self.find("external", f"{opened.name} brings {source} to {total} of {cap} with external jobs")

    def _known_external(self, source: Source, created_by: datetime) -> int:
        return self._used(source, lambda each: each.job is None and each.created <= created_by)

    def _largest_cap(self, source: Source) -> int:
        """Return the largest cap in the time in which the start may have been decided."""
        decided = self.now - CAP_GRACE - self.late
        history = self._caps[source]
        before = [cap or 0 for since, cap, _ in history if since <= decided][-1:]
        return max([*before, *(cap or 0 for since, cap, _ in history if since > decided)])

    def _had_pool(self, source: Source, job: str | None) -> bool:
        """Return whether the source had a pool when a job was submitted; the job counts against it from then on."""
        submitted = self._submitted_at.get(job or "", self.now)
        return any(
            cap is not None for _, cap, _ in [at for at in self._caps.get(source, []) if at[0] <= submitted][-1:]
        )

    def _must_count(self, source: Source) -> bool:
        """Return whether external jobs count there, and the queue could list them for a while.

        Where jobs keep warm pools, a start may use instances that count already.
        """
        since, _, counts = self._caps[source][-1]
        return counts and not self._keeps_warm_pools(source[1]) and max(since, self.last_trouble) <= self.now - QUIET

    def _keeps_warm_pools(self, instance_type: str) -> bool:
        configs = (request["ResourceConfig"] for request in self.submitted.values())
        kept = (config for config in configs if "KeepAlivePeriodInSeconds" in config)
        return any(config.get("InstanceType", instance_type) == instance_type for config in kept)

    def _used(self, source: Source, which: Callable[[TrainingJob], bool]) -> int:
        return sum(each.units.get(source, 0) for each in self.training_jobs.values() if each.open and which(each))

    def _holders(self, source: Source) -> str:
        open_jobs = (each for each in self.training_jobs.values() if each.open and each.job is not None)
        return ", ".join(f"{each.name} {each.units[source]}" for each in open_jobs if source in each.units)

    def _check_single(self, opened: TrainingJob) -> None:
        """Rule 3: two attempts of a job never run at once."""
        for other in self.training_jobs.values():
            if other.open and other.job == opened.job and other.attempt != opened.attempt:
                self.find("double", f"{opened.name} started while {other.name} is {other.status}")

    def _check_person(self, opened: TrainingJob) -> None:
        """Rule 7: a job that a person stopped does not run again."""
        stopped = self._stopped_by_people.get(opened.job or "")
        if stopped is not None and opened.attempt > stopped:
            self.find("resumed", f"{opened.name} started although a person stopped attempt {stopped}")

    def _check_priority(self, opened: TrainingJob) -> None:
        """Rule 5: no start in front of the first waiting job, which would fit.

        A start of a plain job breaks it if the first of the jobs that wait for that source alone has a higher
        priority, asks for no more instances, has waited for two minutes, and does not back off for a reason other than
        missing capacity. In strict order, a job behind one that waits for several sources does not count as one that
        would fit. Nothing is said for training plans, types with warm pools, shares, expansion, orders that do
        not put priority first, and while anything else went wrong with the queue in the last minutes.
        """
        if not self.priority_rules or len(opened.units) != 1 or self.last_trouble > self.now - QUIET:
            return
        ((source, count),) = opened.units.items()
        if source[0] == "training-plan" or self._keeps_warm_pools(source[1]):
            return
        waiting = sorted(self.waiting(), key=lambda each: each.order)
        line = [each for each in waiting if each.source == source]
        if not line or line[0].name == opened.job:
            return
        if self.strict and any(each.source is None for each in waiting[: waiting.index(line[0])]):
            return
        first, priority = line[0], self._priorities.get(opened.job or "", 0)
        waited = first.since <= self.now - timedelta(minutes=2) - self.late
        if first.priority > priority and first.count <= count and waited and not first.backs_off:
            self.find("inversion", f"{opened.name} ({priority}) started in front of {first.name} ({first.priority})")

    def _check_request(self, members: Mapping[str, Any]) -> None:
        """Rule 6: an attempt's request is the submitted one but for its name, tags, choices and size."""
        submitted = self.submitted.get(_tags(members).get("trainmaster:job", ""))
        if submitted is None:
            self.find("request", f"{members['TrainingJobName']} belongs to no submitted job")
            return
        wanted, got = _comparable(submitted), _comparable(members)
        if _MEMBER.search(members["TrainingJobName"]):
            # Checkpoints of SageMaker belong to the attempt's own training job alone.
            wanted.pop("CheckpointConfig", None)
        if wanted != got:
            odd = sorted(key for key in {*wanted, *got} if wanted.get(key) != got.get(key))
            self.find("request", f"{members['TrainingJobName']} differs in {', '.join(odd)}")

    # -- rules about the end ----------------------------------------------------------------------------------------
    def check_orphans(self, now: datetime, active: frozenset[str], ended: Mapping[str, datetime | None]) -> None:
        """Rules 3 and 4, once hostility has ended: what runs with the queue's tag is an active attempt.

        Args:
            now: the time.
            active: names of the training jobs of all active attempts.
            ended: jobs that have ended.
        """
        self.now = now
        strays = {name for name, each in self.training_jobs.items() if each.open and each.job is not None} - active
        self._orphans = {name: self._orphans.get(name, now) for name in strays}
        for name, since in self._orphans.items():
            job, which = self.training_jobs[name].job, "orphan"
            if job in ended:
                which = "after the end"
            if since <= now - ORPHAN_GRACE and not any(each.text.startswith(f"{name} ") for each in self.findings):
                self.find(which, f"{name} runs on, though it is no active attempt")

    def check_ends(self, now: datetime, states: Mapping[str, tuple[str, str]]) -> None:
        """Rule 2: every accepted job has ended, as its last attempt did."""
        self.now = now
        for name in self.submitted:
            state, reason = states.get(name, ("lost", ""))
            attempts = [each for each in self.training_jobs.values() if each.job == name and not each.member]
            last = max(attempts, key=lambda each: each.attempt, default=None)
            wrong = self._wrong_end(name, state, last)
            if wrong:
                self.find(*wrong[:1], f"{name} is {state} ({reason}), {wrong[1]}")

    def _wrong_end(self, name: str, state: str, last: TrainingJob | None) -> tuple[str, str] | None:
        if state not in ("completed", "failed", "stopped", "cancelled"):
            return "not drained", "long after hostility ended"
        if last is None:
            cancelled = state == "stopped" and name in self.cancelled
            return None if cancelled or state in ("cancelled", "failed") else ("lost", "and never had a training job")
        if last.status == "Completed" and state != "completed":
            return "lost", f"but {last.name} completed"
        if state == "completed" and all(each.status != "Completed" for each in self._deciding(last)):
            return "lost", f"but {last.name} is {last.status}"
        if state == "stopped" and not self._stop_explained(name, last):
            return "ended as stopped", f"but no user stopped {last.name} ({last.status})"
        if state == "failed" and last.status != "Failed":
            return "ended as failed", f"but {last.name} is {last.status}"
        return None

    def _deciding(self, last: TrainingJob) -> list[TrainingJob]:
        """Return the training jobs that may have decided an attempt's end: also its members, if its own was lost."""
        if last.status != "Failed" or not last.reason.startswith(_LOSSES):
            return [last]
        others = self.training_jobs.values()
        return [
            last,
            *(each for each in others if each.member and (each.job, each.attempt) == (last.job, last.attempt)),
        ]

    def _stop_explained(self, name: str, last: TrainingJob) -> bool:
        people = name in self._stopped_by_people or name in self.cancelled
        limits = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")
        deciding = self._deciding(last)
        return people or any(each.secondary in limits or each.stopped_by == "person" for each in deciding)


def held(config: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the instances that a training job holds by type; among preferences, those that SageMaker chose."""
    if "InstancePreferences" in config:
        chosen = config.get("SelectedInstanceType")
        return [(chosen, config["SelectedInstanceCount"])] if chosen else []
    groups = config.get("InstanceGroups") or [config]
    return [(group["InstanceType"], group["InstanceCount"]) for group in groups]


def source_of(request: Mapping[str, Any], instance_type: str) -> Source:
    """Return the source of a request's instances of a type."""
    plan = request.get("ResourceConfig", {}).get("TrainingPlanArn")
    if plan is not None:
        return "training-plan", plan
    return "spot" if request.get("EnableManagedSpotTraining") else "on-demand", instance_type


def _tags(request: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}


def _comparable(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must not change from a submission to its attempts."""
    left = {key: value for key, value in request.items() if key not in ("TrainingJobName", "Tags")}
    config = {key: value for key, value in left.pop("ResourceConfig", {}).items() if key not in _OWN_CHOICES}
    environment = {
        key: value for key, value in left.pop("Environment", {}).items() if not key.startswith("TRAINMASTER_")
    }
    return {**json.loads(json.dumps(left)), "ResourceConfig": config, "Environment": environment}


__all__ = ["Finding", "Oracle", "Source", "TrainingJob", "Waiter", "attempt_name", "held", "source_of"]
