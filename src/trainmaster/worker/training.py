"""Functions for training scripts: whether to save a checkpoint, where to, the report that it is saved, and progress.

    from trainmaster.worker import training

    if training.checkpoint_requested():         # True for all ranks at the same step
        if rank == 0:
            with training.checkpoints().writing(step) as directory:
                torch.save(model.state_dict(), directory / "model.pt")
        training.checkpoint_saved()             # the world changes now, or the container stops
    training.progress(step)                     # the queue learns how the job's speed depends on its size

Call them from the main thread, where Python handles signals. In a script that was started by hand they do nothing. They
use torch or JAX only if the script has initialized its distributed processes.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from trainmaster.worker.batch import DIVIDED
from trainmaster.worker.checkpoints.checkpoints import Checkpoints, CheckpointStore, DirectoryStore
from trainmaster.worker.checkpoints.notices import CHECKPOINT_SIGNAL, Notices, WorkerRegistration
from trainmaster.worker.container.container import ATTEMPT, OPT_ML, ROUND, Hook, attempt_number
from trainmaster.worker.container.processes import die_with_parent
from trainmaster.worker.progress import (
    STEPS_HINT,
    GlobalBatch,
    SpeedReporter,
    global_batch,
    has_table,
    instances_of,
    reports_here,
    table_writer,
)
from trainmaster.worker.rendezvous.errors import Unreachable

log = logging.getLogger(__name__)

SAVED_WAIT_SECONDS = 60.0
"""Wait of a rank that has saved for its end. After that, the request is obsolete and training continues."""
POLL_SECONDS = 0.1


class ProcessGroup(Protocol):
    """All processes that train together."""

    def max(self, value: int) -> int:
        """Return the maximum over all ranks; each passes a value, and all get the same result."""
        ...

    def barrier(self) -> None:
        """Wait for all ranks."""
        ...


class SingleProcess:
    """A process that trains alone."""

    def max(self, value: int) -> int:
        """Return the value itself."""
        return value

    def barrier(self) -> None:
        """Return at once."""


class TorchProcessGroup:
    """The default process group of torch.

    Args:
        dist: `torch.distributed`, initialized.
        torch: the module.
    """

    def __init__(self, dist: Any, torch: Any) -> None:
        self._dist = dist
        self._torch = torch

    def max(self, value: int) -> int:
        """Return the maximum over all ranks."""
        tensor = self._torch.tensor([value], dtype=self._torch.int32, device=self._device())
        self._dist.all_reduce(tensor, op=self._dist.ReduceOp.MAX)
        return int(tensor.item())

    def _device(self) -> str:
        """Return a device that no other rank uses."""
        if self._dist.get_backend() != "nccl":
            return "cpu"
        # A script that names its device in each call leaves the first one as the current one of all ranks.
        cuda, local = self._torch.cuda, int(os.environ.get("LOCAL_RANK") or 0)
        is_first = cuda.current_device() == 0 and local < cuda.device_count()
        return f"cuda:{local}" if is_first else "cuda"

    def barrier(self) -> None:
        """Wait for all ranks, by an all-reduce, which works on every backend and every version of torch."""
        self.max(0)


class JaxProcessGroup:
    """All processes of `jax.distributed`.

    Args:
        gather: `jax.experimental.multihost_utils.process_allgather`.
        jnp: `jax.numpy`.
    """

    def __init__(self, gather: Callable[[Any], Any], jnp: Any) -> None:
        self._gather = gather
        self._jnp = jnp

    def max(self, value: int) -> int:
        """Return the maximum over all processes."""
        return int(self._gather(self._jnp.asarray(value, dtype="int32")).max())

    def barrier(self) -> None:
        """Wait for all processes."""
        self.max(0)


def process_group() -> ProcessGroup:
    """Return the processes of `torch.distributed` or `jax.distributed`, if initialized, or this process alone."""
    torch, dist = sys.modules.get("torch"), sys.modules.get("torch.distributed")
    if torch is not None and dist is not None and dist.is_available() and dist.is_initialized():
        return TorchProcessGroup(dist, torch)
    if (jax := _initialized_jax()) is not None:
        from jax.experimental.multihost_utils import process_allgather

        return JaxProcessGroup(process_allgather, jax.numpy)
    return SingleProcess()


def _initialized_jax() -> Any:
    """Return the module `jax` if its distributed processes are initialized, else None."""
    jax = sys.modules.get("jax")
    is_initialized = getattr(getattr(jax, "distributed", None), "is_initialized", _old_jax_is_initialized)
    return jax if jax is not None and is_initialized() else None


def _old_jax_is_initialized() -> bool:
    """Return what `jax.distributed.is_initialized` returns, for a JAX from before 2025, which lacks it."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) is not None


class CheckpointRequests:
    """Checkpoint requests to one worker, and its answers.

    Args:
        registration: its entry in the directory of notices; None without one.
        group: returns the processes that must agree, at the time of the call.
        clock, sleep: seconds.
    """

    def __init__(
        self,
        registration: WorkerRegistration | None,
        group: Callable[[], ProcessGroup],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._registration = registration
        self._group = group
        self._clock = clock
        self._sleep = sleep
        self._signal_received = True  # a request may have arrived while this process registered
        self._calls = 0
        self._agreed = False

    def on_signal(self) -> None:
        """Record that a request may have arrived."""
        self._signal_received = True

    def requested(self, every: int = 1) -> bool:
        """Return whether to save a checkpoint; see `checkpoint_requested`."""
        self._calls += 1
        if self._calls % every:
            return False
        self._agreed = self._group().max(int(self._has_local_request())) > 0
        return self._agreed

    def saved(self, wait: float = SAVED_WAIT_SECONDS) -> None:
        """Report that all ranks have saved; see `checkpoint_saved`."""
        if not self._agreed:
            return
        self._agreed = False
        self._group().barrier()
        self._answer()
        until = self._clock() + wait
        while self._registration is not None and self._clock() < until:
            self._sleep(POLL_SECONDS)
            self._answer()

    def _has_local_request(self) -> bool:
        if not self._signal_received:
            return False
        self._signal_received = False  # before the check: a signal during it sets this again
        pending = self._pending_number() is not None
        if pending:
            self._signal_received = True
        return pending

    def _pending_number(self) -> int | None:
        notice = self._registration.pending() if self._registration is not None else None
        return notice.number if notice is not None else None

    def _answer(self) -> None:
        """Answer the pending request; this node's agent may have made it later than another node's."""
        number = self._pending_number()
        if self._registration is not None and number is not None:
            self._registration.answer(number)


@lru_cache(maxsize=1)
def requests() -> CheckpointRequests:
    """Return this process's requests; from the first call on it handles SIGUSR1.

    Raises:
        ValueError: not called from the main thread (`signal.signal`).
        SystemExit: the process that started this one has died; a process left behind must not disturb a newer world.
    """
    notices = _own_notices()
    if notices is None:
        return CheckpointRequests(None, process_group)
    previous = signal.getsignal(CHECKPOINT_SIGNAL)
    callbacks: list[Callable[[], None]] = []

    def handle(number: int, frame: Any) -> None:
        for callback in callbacks:
            callback()
        if callable(previous):
            previous(number, frame)

    signal.signal(CHECKPOINT_SIGNAL, handle)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        die_with_parent()  # torch's workers have their own sessions, and would outlive a killed agent
    if notices.owner_has_died():
        raise SystemExit("trainmaster-run has died; this worker ends too")
    registered = CheckpointRequests(notices.register(os.getpid()), process_group)
    callbacks.append(registered.on_signal)
    return registered


def _own_notices() -> Notices | None:
    """Return the directory of notices; None without one, or if it was removed or belongs to another user."""
    try:
        return Notices.from_environment(os.environ)
    except OSError as error:
        log.warning("trainmaster: a resize or stop does not wait for this process to save a checkpoint: %s", error)
        return None


def checkpoint_requested(*, every: int = 1) -> bool:
    """Return whether to save a checkpoint now, the same answer for all ranks of a step; then call `checkpoint_saved`.

    Call it once per step on every rank: the ranks agree in a small all-reduce. Call it, or `requests`, before the first
    long step: until then a resize does not wait for this process.

    Args:
        every: agree only on each call of this number, the same on all ranks; return False in between.
    """
    return requests().requested(every)


def checkpoint_saved(*, wait: float = SAVED_WAIT_SECONDS) -> None:
    """Report that all ranks have saved. Call it on every rank, even if the rank wrote nothing.

    Waits for at most `wait` seconds. It usually does not return: SIGTERM ends this process, and further work would be
    lost. Does nothing if no checkpoint was requested.
    """
    requests().saved(wait)


@lru_cache(maxsize=1)
def speed_reporter() -> SpeedReporter | None:
    """Return what reports the job's speed; None if another process reports, or outside of an elastic job.

    An error is logged, and then this process reports nothing, since another one may report in another unit.
    """
    try:
        if not has_table(os.environ):
            return None
        reports = reports_here(os.environ, rank_here())  # before the announcement, after which no other source reports
        with suppress(FileNotFoundError):  # cleared directories for temporary files: then nothing else reports either
            if (notices := Notices.from_environment(os.environ)) is not None:
                notices.announce_progress()
        if not reports:
            return None
        return SpeedReporter(partial(table_writer, os.environ), partial(instances_of, os.environ))
    except Exception as error:  # noqa: BLE001 -- no report may end a training
        log.warning("trainmaster: the job's speed is not reported: %s: %s", type(error).__name__, error)
        return None


def rank_here() -> int | None:
    """Return this process's rank as torch or JAX tells; None if neither is initialized."""
    torch_dist, jax = sys.modules.get("torch.distributed"), _initialized_jax()
    if torch_dist is not None and torch_dist.is_available() and torch_dist.is_initialized():
        return int(torch_dist.get_rank())
    return int(jax.process_index()) if jax is not None else None


def progress(done: float, *, instances: int | None = None) -> None:
    """Count the work that is done, so that the queue learns how the job's speed depends on its size.

    Call it once per step, on all ranks or on rank 0. It takes microseconds; a report leaves every few minutes. It
    raises no error: a count that is no number, and a report that fails, are logged once.

    Args:
        done: samples, epochs or steps, in a unit that means the same work at every size: where the global batch grows
            with the job, as in most scripts, count samples or epochs. It may start again, as a step within an epoch.
        instances: the instances that work together; None for those of the training job, or of the rendezvous's world.
    """
    reporter = speed_reporter()
    if reporter is not None:
        reporter.count(done, instances)


def _count_checkpoint(step: int) -> None:
    batch = batch_of_steps()
    if batch is None:
        if not speed_reporter.cache_info().currsize:  # unless the script counts its progress
            log_steps_hint()
    elif (reporter := speed_reporter()) is not None:
        reporter.count_checkpoint(step, batch)


def batch_of_steps() -> GlobalBatch | None:
    """Return what a step is, as the environment says, or as the script shows; None if that is not known."""
    return stated_batch() or (GlobalBatch.FIXED if DIVIDED.is_set() else None)


@lru_cache(maxsize=1)
def stated_batch() -> GlobalBatch | None:
    """Return what the environment says that a step is."""
    return global_batch(os.environ)


@lru_cache(maxsize=1)
def log_steps_hint() -> None:
    """Log once in an elastic job that its checkpoints tell no speed."""
    if has_table(os.environ):
        log.warning(STEPS_HINT)


def checkpoints(where: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Checkpoints:
    """Return the job's checkpoints, to be written by this process's world.

    Args:
        where: a directory, or `s3://bucket/prefix`; None for SageMaker's (`SM_CHECKPOINT_DIR`, `/opt/ml/checkpoints`).
        environ: variables; None for the process's.
    """
    variables = os.environ if environ is None else environ
    location = str(where or variables.get("SM_CHECKPOINT_DIR") or f"{OPT_ML}/checkpoints")
    run = variables.get("TRAINMASTER_RUN") or variables.get("TRAINING_JOB_NAME") or ""
    store: CheckpointStore
    if location.startswith("s3://"):
        from trainmaster.worker.checkpoints.s3 import S3Store
        from trainmaster.worker.container.aws import make_client

        store, scratch = S3Store(make_client("s3", environ=variables), location), Path(tempfile.gettempdir())
    else:
        store, scratch = DirectoryStore(Path(location)), Path(location)
        if not where and variables.get("TRAINMASTER_HOOK") == Hook.MEMBERS:
            log.warning("trainmaster: each instance has its own %s: name a place in S3, or one that all see", location)
    attempt, round_ = attempt_number(run), int(variables.get(ROUND) or 0)
    saved = Checkpoints(store, attempt, round_, latest_round_reader(variables), scratch, job=ATTEMPT.sub("", run))
    saved.on_saved = _count_checkpoint
    return saved


def latest_round_reader(environ: Mapping[str, str]) -> Callable[[], int | None]:
    """Return a function that reads the round of the newest world; None without a rendezvous or a response."""
    run, table = environ.get("TRAINMASTER_RUN"), environ.get("TRAINMASTER_RENDEZVOUS_TABLE")
    if not environ.get(ROUND) or not run or not table:
        return lambda: None

    def read() -> int | None:
        from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore, TableAddress, dynamodb_client
        from trainmaster.worker.rendezvous.run import Run
        from trainmaster.worker.rendezvous.state import decode

        address = TableAddress.parse(table)
        try:
            store = DynamoStateStore(dynamodb_client(address.region), address.table, Run.from_environment(environ))
            row = store.get_state()
        except Unreachable:
            return None
        return decode(row[0]).latest_round if row else None

    return read
