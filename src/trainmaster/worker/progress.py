"""Reports how fast a job trains, from which the queue learns how the job scales (docs/reference/rendezvous.md).

One process of a job reports, first after three minutes and then ever more rarely, in a row of the rendezvous's table;
each report takes one write unit. A report that fails is lost, and training never waits for one.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol

from trainmaster.domain.compat import StrEnum
from trainmaster.worker.container.container import ROUND, Hook, hosts_of
from trainmaster.worker.rendezvous.run import TABLE_VARIABLE, Run

log = logging.getLogger(__name__)

WARM_UP_SECONDS = 60.0
"""Time after the first count that is not measured: the first steps compile, fill caches and read data."""
FIRST_SECONDS = 120.0
"""Time that each of the first two reports measures, after a start or a resize; further ones measure for longer."""
LONGEST_SECONDS = 1_800.0
GROWTH = 2.5
MAX_GAP = 0.1
"""Largest part of a measurement that may pass without progress, as in an evaluation or a long step."""
_MAX_RATE = 1e12
GLOBAL_BATCH = "TRAINMASTER_GLOBAL_BATCH"
"""Variable that says what a step is, for sources that count steps."""
STEPS_HINT = (
    "trainmaster: checkpoints tell this job's speed in steps, and the queue cannot know whether a step is the same work"
    f" at every size: set {GLOBAL_BATCH} to fixed or per-instance, or call training.progress with samples"
)


class GlobalBatch(StrEnum):
    """The samples of a step: as many at every size, or as many for each instance."""

    FIXED = "fixed"
    PER_INSTANCE = "per-instance"


class Writer(Protocol):
    """Stores a report."""

    def write(self, instances: int, rate: float) -> None:
        """Store how many steps, samples or epochs a second this many instances do. May raise any error."""
        ...


class SpeedMeter:
    """Measures speed as the sum of all increases of a count, divided by the time in which they were made.

    All time counts, also that of evaluations and checkpoints. A measurement that has one of them in it goes on until no
    time without progress is more than a part of it, since a short one would tell chance.

    Args:
        clock: seconds; never goes back.
        warm_up: seconds after the first count that are not measured.
        max_gap: largest part of a measurement without progress; of one of `LONGEST_SECONDS`, any part.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, warm_up: float = WARM_UP_SECONDS, max_gap: float = MAX_GAP
    ) -> None:
        self._clock = clock
        self._warm_up = warm_up
        self._max_gap = max_gap
        self._since = self._sum = self._gap = 0.0
        self.begin_again()

    def begin_again(self) -> None:
        """Begin as after a start, with the next count."""
        self._last: tuple[float, float] | None = None
        self._step, self._before_drop = 0.0, math.inf
        self._warm = self._warm_up == 0
        self._wait, self._next = FIRST_SECONDS if self._warm else self._warm_up, FIRST_SECONDS

    def count(self, done: float) -> float | None:
        """Return the speed if it has been measured for long enough, else None.

        Args:
            done: steps, samples or epochs done so far. A count that goes back, as at the start of an epoch or after a
                return to a checkpoint, goes on from there; the call itself counts as much as the one before. If the
                next call is back at the old level, as after a number that was read in part, so does that one. A count
                that did not change is no call.
        """
        now, last = self._clock(), self._last
        if last is not None and done == last[1]:
            return None
        self._last = (now, done) if math.isfinite(done) else None
        if last is None or self._last is None:
            self._begin(now)
            return None
        self._step = self._step_to(done, last[1])
        self._before_drop = last[1] if done < last[1] else math.inf
        self._sum += self._step
        self._gap = max(self._gap, now - last[0])
        return self._speed(now) if self._is_complete(now - self._since) else None

    def _step_to(self, done: float, last: float) -> float:
        if done < last:
            return self._step
        step = done - last
        return min(step, self._step or step) if done >= self._before_drop else step

    def _is_complete(self, seconds: float) -> bool:
        smooth = not self._warm or self._gap <= self._max_gap * seconds or seconds >= LONGEST_SECONDS
        return seconds >= self._wait and smooth

    def _speed(self, now: float) -> float | None:
        """Return the speed that was measured, None for the warm-up, and begin the next measurement."""
        rate, measured = self._sum / (now - self._since), self._warm
        self._warm, self._wait = True, self._next
        self._next = min(self._next * GROWTH, LONGEST_SECONDS) if measured else self._next
        self._begin(now)
        return rate if measured and 0 < rate <= _MAX_RATE else None

    def _begin(self, now: float) -> None:
        self._since, self._sum, self._gap = now, 0.0, 0.0


class TableWriter:
    """Writes reports to the row of a run.

    Args:
        client: a low-level DynamoDB client.
        table: the table of the rendezvous.
        run: the run, with its secret.
        now: seconds since 1970; sets when the row expires.
    """

    def __init__(self, client: Any, table: str, run: Run, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._table = table
        self._run = run
        self._now = now

    def write(self, instances: int, rate: float) -> None:
        """Replace the last report; see `Writer.write`."""
        from trainmaster.worker.rendezvous.dynamodb import RETENTION_SECONDS

        values = {"instances": instances, "perSecond": float(f"{rate:.6g}"), "at": int(self._now())}
        text = json.dumps(values, separators=(",", ":"))
        self._client.update_item(
            TableName=self._table,
            Key={"pk": {"S": self._run.partition}, "sk": {"S": "speed"}},
            UpdateExpression="SET #speed = :speed, #mac = :mac, #expires = :expires",
            ExpressionAttributeNames={f"#{name}": name for name in ("speed", "mac", "expires")},
            ExpressionAttributeValues={
                ":speed": {"S": text},
                ":mac": {"B": self._run.sign_speed(text)},
                ":expires": {"N": str(int(self._now()) + RETENTION_SECONDS)},
            },
        )


class SpeedReporter:
    """Measures the speed of a job, and writes it in a thread of its own. No error reaches the caller.

    Args:
        writer: returns where reports are stored; called in the thread, before the first report.
        size: returns the instances that work together, None if unknown; called in the thread, where no caller tells.
        meter: measures counts.
        checkpoints: measures the steps between checkpoints.
        start: starts a function in the background.
    """

    def __init__(
        self,
        writer: Callable[[], Writer],
        size: Callable[[], int | None] = lambda: None,
        *,
        meter: SpeedMeter | None = None,
        checkpoints: SpeedMeter | None = None,
        start: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._writer = lru_cache(maxsize=1)(writer)
        self._size = size
        self._meter = SpeedMeter() if meter is None else meter
        self._checkpoints = SpeedMeter(warm_up=0, max_gap=1) if checkpoints is None else checkpoints
        self._start = _in_thread if start is None else start
        self._busy = threading.Lock()
        self._instances: int | None = None
        self._counts = self._refused = self._failed = False

    def count(self, done: float | str, instances: int | str | None = None) -> None:
        """Report the speed if it is time; at most one report is under way. Another size begins again.

        Args:
            done: see `SpeedMeter.count`. The first that is no number is logged.
            instances: the instances that work together; None for those that `size` returns.
        """
        self._counts = True
        self._measure(self._meter, done, instances)

    def count_checkpoint(self, step: int, batch: GlobalBatch) -> None:
        """Report the work a second between checkpoints if it is time, unless the script counts its progress."""
        if not self._counts:
            self._measure(self._checkpoints, step, None, batch)

    def _measure(
        self,
        meter: SpeedMeter,
        done: float | str,
        instances: int | str | None,
        batch: GlobalBatch = GlobalBatch.FIXED,
    ) -> None:
        try:
            size = int(instances) if instances else None
            if size != self._instances:
                self._instances = size
                meter.begin_again()
            rate = meter.count(float(done))
            if rate is not None and self._busy.acquire(blocking=False):
                self._start_report(rate, size, batch)
        except Exception as error:  # noqa: BLE001 -- of any array library
            if not self._refused:
                log.warning("trainmaster: progress %.99r counts nothing: %s: %s", done, type(error).__name__, error)
            self._refused = True

    def report(self, rate: float, instances: int | None = None, batch: GlobalBatch = GlobalBatch.FIXED) -> None:
        """Write a report now; the first of several failures in a row is logged.

        Args:
            rate: work a second.
            instances: that work together; None for those that `size` returns.
            batch: `PER_INSTANCE` if a unit of the rate is as much work on each instance.
        """
        try:
            size = instances or self._size()
            if size:
                self._writer().write(size, rate * size if batch is GlobalBatch.PER_INSTANCE else rate)
            self._failed = False
        except Exception as error:  # noqa: BLE001 -- of any library below
            self._fail(error)

    def _start_report(self, rate: float, instances: int | None, batch: GlobalBatch) -> None:
        try:
            self._start(partial(self._report_alone, rate, instances, batch))
        except Exception as error:  # noqa: BLE001 -- as "can't start new thread"
            self._busy.release()
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._failed:
            log.warning("trainmaster: the job's speed could not be reported: %s: %s", type(error).__name__, error)
        self._failed = True

    def _report_alone(self, rate: float, instances: int | None, batch: GlobalBatch) -> None:
        try:
            self.report(rate, instances, batch)
        finally:
            self._busy.release()


def has_table(environ: Mapping[str, str]) -> bool:
    """Return True if an environment has all that a report needs, as that of an elastic job."""
    return all(environ.get(name) for name in (TABLE_VARIABLE, "TRAINMASTER_RUN", "TRAINMASTER_RENDEZVOUS_KEY"))


def global_batch(environ: Mapping[str, str]) -> GlobalBatch | None:
    """Return what a step is; None if the environment does not say, or says something else, which is logged."""
    text = environ.get(GLOBAL_BATCH, "")
    if text and text not in list(GlobalBatch):
        log.warning("trainmaster: %s is %.99r, not one of: %s", GLOBAL_BATCH, text, ", ".join(GlobalBatch))
    return GlobalBatch(text) if text in list(GlobalBatch) else None


def instances_of(environ: Mapping[str, str]) -> int | None:
    """Return the instances that work together; None if they are not known.

    They are with the hook `restart`, and with `members` in a world of the rendezvous. A `custom` hook resizes in a way
    of its own. May raise any error of DynamoDB's client.
    """
    if environ.get("TRAINMASTER_HOOK") == Hook.CUSTOM:
        return None
    if environ.get("TRAINMASTER_HOOK") == Hook.MEMBERS:
        return number_in(environ, "GROUP_WORLD_SIZE") or _nodes_of(environ, number_in(environ, ROUND))
    return len(hosts_of(environ)[1]) or None


def number_in(environ: Mapping[str, str], name: str) -> int | None:
    """Return the digits of a variable as a number; None if it has other text or none."""
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _nodes_of(environ: Mapping[str, str], round_: int | None) -> int | None:
    """Return the nodes of the newest world if it is of this round."""
    from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore, TableAddress, dynamodb_client
    from trainmaster.worker.rendezvous.state import decode

    if round_ is None:
        return None
    address = TableAddress.parse(environ.get(TABLE_VARIABLE, ""))
    client, run = dynamodb_client(address.region, environ), Run.from_environment(environ)
    row = DynamoStateStore(client, address.table, run).get_state()
    state = None if row is None else decode(row[0])
    return state.size if state is not None and state.complete and state.round == round_ else None


def reports_here(environ: Mapping[str, str], rank: int | None = None) -> bool:
    """Return True for the one process that reports: rank 0, on the first host where each host has its own ranks.

    Args:
        environ: the process's variables.
        rank: its rank, as its framework tells; None for that of the environment.
    """
    if not has_table(environ) or (number_in(environ, "RANK") or 0 if rank is None else rank) != 0:
        return False
    return environ.get("TRAINMASTER_HOOK") == Hook.MEMBERS or is_first_host(environ)


def is_first_host(environ: Mapping[str, str]) -> bool:
    """Return True on the first host of a training job, on each host of torchrun's world, and outside of containers."""
    current, hosts = hosts_of(environ)
    return not hosts or current == hosts[0] or (number_in(environ, "GROUP_WORLD_SIZE") or 1) > 1


def table_writer(environ: Mapping[str, str]) -> Writer:
    """Return the writer of the job in an environment. Raises `InvalidRequest` or `ValueError` outside of a job."""
    from trainmaster.worker.rendezvous.dynamodb import TableAddress, dynamodb_client

    address = TableAddress.parse(environ.get(TABLE_VARIABLE, ""))
    return TableWriter(dynamodb_client(address.region, environ), address.table, Run.from_environment(environ))


def run_now(function: Callable[[], None]) -> None:
    """Run a function; the `start` of a reporter that has a thread of its own already."""
    function()


def _in_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="trainmaster-speed", daemon=True).start()
