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
from typing import Any, Protocol

from trainmaster.worker.checkpoints.checkpoints import CheckpointId
from trainmaster.worker.container.container import Hook, hosts_of
from trainmaster.worker.rendezvous.run import TABLE_VARIABLE, Run

log = logging.getLogger(__name__)

WARM_UP_SECONDS = 60.0
"""Time after the first count that is not measured: the first steps compile, fill caches and read data."""
FIRST_SECONDS = 120.0
"""Time that each of the first two reports measures, after a start or a resize; further ones measure for longer."""
LONGEST_SECONDS = 1_800.0
GROWTH = 2.5
_MAX_RATE = 1e12


class Writer(Protocol):
    """Stores a report."""

    def write(self, instances: int, rate: float) -> None:
        """Store how many steps or samples a second this many instances do. May raise any error."""
        ...


class SpeedMeter:
    """Measures speed from a count that grows.

    Args:
        clock: seconds; never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._base = 0.0
        self._wait, self._next = WARM_UP_SECONDS, FIRST_SECONDS
        self._warm = False

    def count(self, done: float) -> float | None:
        """Return the speed if it has been measured for long enough, else None.

        Args:
            done: steps or samples done so far. A count that goes back begins a new measurement.
        """
        now = self._clock()
        if not math.isfinite(done):
            self._since = None
            return None
        if self._since is None or done < self._base:
            self._begin(now, done)
            return None
        if now - self._since < self._wait:
            return None
        rate = (done - self._base) / (now - self._since)
        measured, self._warm = self._warm, True
        self._wait = self._next
        self._next = min(self._next * GROWTH, LONGEST_SECONDS) if measured else self._next
        self._begin(now, done)
        return rate if measured and 0 < rate <= _MAX_RATE else None

    def _begin(self, now: float, done: float) -> None:
        self._since, self._base = now, done


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
    """Measures the speed of a process, and writes it in a thread of its own.

    Args:
        writer: returns where reports are stored; called in the thread, before the first report.
        meter: measures.
        start: starts a function in the background.
    """

    def __init__(
        self,
        writer: Callable[[], Writer],
        meter: SpeedMeter | None = None,
        start: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._reports = SafeWriter(writer)
        self._meter = SpeedMeter() if meter is None else meter
        self._start = _in_thread if start is None else start
        self._busy = threading.Lock()
        self._refused = False

    def count(self, done: float, instances: int) -> None:
        """Report the speed if it is time; at most one report is under way. A count that is no number is logged once."""
        try:
            rate = self._meter.count(float(done))
        except (TypeError, ValueError, OverflowError) as error:
            if not self._refused:
                log.warning("trainmaster: training.progress(%.99r) counts nothing: %s", done, error)
            self._refused = True
            return
        if rate is not None and self._busy.acquire(blocking=False):
            self._start(lambda: self._report(instances, rate))

    def _report(self, instances: int, rate: float) -> None:
        try:
            self._reports.write(instances, rate)
        finally:
            self._busy.release()


class SafeWriter:
    """Writes reports, and logs the first of several failures in a row, since no report may end a training.

    Args:
        make: returns the writer; called before the first report, and again while that fails.
    """

    def __init__(self, make: Callable[[], Writer]) -> None:
        self._make = make
        self._writer: Writer | None = None
        self._failed = False

    def write(self, instances: int, rate: float) -> None:
        """Store a report if possible; see `Writer.write`."""
        try:
            if self._writer is None:
                self._writer = self._make()
            self._writer.write(instances, rate)
            self._failed = False
        except Exception as error:  # noqa: BLE001 -- of any library below
            if not self._failed:
                log.warning("trainmaster: the job's speed could not be reported: %s: %s", type(error).__name__, error)
            self._failed = True


class CheckpointReports:
    """Reports of speeds between checkpoints.

    Args:
        environ: variables of an elastic job.
        writer: returns where reports are stored.
    """

    def __init__(self, environ: Mapping[str, str], writer: Callable[[], Writer] | None = None) -> None:
        self._environ = environ
        self._writer = SafeWriter(writer or (lambda: table_writer(environ)))

    def report(self, checkpoint: CheckpointId, rate: float) -> None:
        """Report the steps a second of the world that wrote a checkpoint; nothing if its size is not known."""
        instances = self._nodes_of(checkpoint.round) if self._has_members else instances_of(self._environ)
        if instances:
            self._writer.write(instances, rate)

    @property
    def _has_members(self) -> bool:
        return self._environ.get("TRAINMASTER_HOOK") == Hook.MEMBERS

    def _nodes_of(self, round_: int) -> int:
        """Return the nodes of the newest world if it is of this round; else 0."""
        from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore, TableAddress, dynamodb_client
        from trainmaster.worker.rendezvous.errors import Unreachable
        from trainmaster.worker.rendezvous.state import decode

        address = TableAddress.parse(self._environ.get(TABLE_VARIABLE, ""))
        client, run = dynamodb_client(address.region, self._environ), Run.from_environment(self._environ)
        try:
            row = DynamoStateStore(client, address.table, run).get_state()
        except Unreachable:
            return 0
        state = None if row is None else decode(row[0])
        return state.size if state is not None and state.complete and state.round == round_ else 0


def has_table(environ: Mapping[str, str]) -> bool:
    """Return True if an environment has all that a report needs, as that of an elastic job."""
    return all(environ.get(name) for name in (TABLE_VARIABLE, "TRAINMASTER_RUN", "TRAINMASTER_RENDEZVOUS_KEY"))


def instances_of(environ: Mapping[str, str]) -> int | None:
    """Return the instances that work together; None if the environment does not tell.

    It tells with the hook `restart`, and with `members` under torchrun. A `custom` hook resizes in a way of its own.
    """
    if environ.get("TRAINMASTER_HOOK") == Hook.CUSTOM:
        return None
    if environ.get("TRAINMASTER_HOOK") == Hook.MEMBERS:
        nodes = environ.get("GROUP_WORLD_SIZE", "")
        return int(nodes) if nodes.isascii() and nodes.isdigit() else None
    return len(hosts_of(environ)[1]) or None


def reports_here(environ: Mapping[str, str]) -> bool:
    """Return True for the one process that reports: rank 0, on the first host where each host has its own ranks."""
    if not has_table(environ) or environ.get("RANK", "0") != "0":
        return False
    if environ.get("TRAINMASTER_HOOK") == Hook.MEMBERS:
        return True
    current, hosts = hosts_of(environ)
    return not hosts or current == hosts[0]


def table_writer(environ: Mapping[str, str]) -> Writer:
    """Return the writer of the job in an environment. Raises `InvalidRequest` or `ValueError` outside of a job."""
    from trainmaster.worker.rendezvous.dynamodb import TableAddress, dynamodb_client

    address = TableAddress.parse(environ.get(TABLE_VARIABLE, ""))
    return TableWriter(dynamodb_client(address.region, environ), address.table, Run.from_environment(environ))


def _in_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="trainmaster-speed", daemon=True).start()
