"""What training scripts import: when to save, that it is saved, and where to.

    from trainmaster.worker import training

    if training.checkpoint_requested():         # True for all ranks at the same step
        if rank == 0:
            with training.checkpoints().writing(step) as directory:
                torch.save(model.state_dict(), directory / "model.pt")
        training.checkpoint_saved()             # the world changes now, or the container stops

It does nothing in a script that was started by hand. Of torch and JAX it uses what the script has initialised itself.
Call it from the main thread: Python handles signals there. It must not stop a script by itself.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from trainmaster.worker.checkpoints.checkpoints import Checkpoints, DirectoryKeeper, Keeper
from trainmaster.worker.checkpoints.notices import SIGNAL, Enrolment, Notices
from trainmaster.worker.container.container import OPT_ML, ROUND, attempt_of
from trainmaster.worker.container.processes import die_with_parent
from trainmaster.worker.rendezvous.errors import Unreachable

PARKED_SECONDS = 60.0
"""How long a rank that has saved waits to be ended; then what asked for it is over, and training goes on."""
LOOK_SECONDS = 0.1


class Ranks(Protocol):
    """All processes that train together."""

    def most(self, value: int) -> int:
        """The greatest value of all ranks; each gives one, and all get the same."""
        ...

    def meet(self) -> None:
        """Wait for all."""
        ...


class Alone:
    """One process by itself."""

    def most(self, value: int) -> int:
        """See `Ranks`."""
        return value

    def meet(self) -> None:
        """See `Ranks`."""


class TorchRanks:
    """The default process group.

    Args:
        dist: `torch.distributed`, initialised.
        torch: the module.
    """

    def __init__(self, dist: Any, torch: Any) -> None:
        self._dist = dist
        self._torch = torch

    def most(self, value: int) -> int:
        """See `Ranks`."""
        device = "cuda" if self._dist.get_backend() == "nccl" else "cpu"
        tensor = self._torch.tensor([value], dtype=self._torch.int32, device=device)
        self._dist.all_reduce(tensor, op=self._dist.ReduceOp.MAX)
        return int(tensor.item())

    def meet(self) -> None:
        """See `Ranks`. By a sum that all need, which works on every backend and every torch."""
        self.most(0)


class JaxRanks:
    """All processes of `jax.distributed`.

    Args:
        gather: `jax.experimental.multihost_utils.process_allgather`.
        jnp: `jax.numpy`.
    """

    def __init__(self, gather: Callable[[Any], Any], jnp: Any) -> None:
        self._gather = gather
        self._jnp = jnp

    def most(self, value: int) -> int:
        """See `Ranks`."""
        return int(self._gather(self._jnp.asarray(value, dtype="int32")).max())

    def meet(self) -> None:
        """See `Ranks`."""
        self.most(0)


def ranks() -> Ranks:
    """Those of `torch.distributed` or `jax.distributed`, where the script has initialised it; else this process."""
    torch, dist = sys.modules.get("torch"), sys.modules.get("torch.distributed")
    if torch is not None and dist is not None and dist.is_available() and dist.is_initialized():
        return TorchRanks(dist, torch)
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        from jax.experimental.multihost_utils import process_allgather

        return JaxRanks(process_allgather, jax.numpy)
    return Alone()


class Requests:
    """Requests for checkpoints, as one worker answers them.

    Args:
        enrolment: its part of the notices; None where nobody sends any.
        group: those that must agree, at the time of asking.
        clock, sleep: seconds.
    """

    def __init__(
        self,
        enrolment: Enrolment | None,
        group: Callable[[], Ranks],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._enrolment = enrolment
        self._group = group
        self._clock = clock
        self._sleep = sleep
        self._signalled = True  # one may have been asked for while this process enrolled
        self._calls = 0
        self._agreed = False

    def signalled(self) -> None:
        """A notice has come."""
        self._signalled = True

    def requested(self, every: int = 1) -> bool:
        """See `checkpoint_requested`."""
        self._calls += 1
        if self._calls % every:
            return False
        self._agreed = self._group().most(int(self._asked_here())) > 0
        return self._agreed

    def saved(self, wait: float = PARKED_SECONDS) -> None:
        """See `checkpoint_saved`."""
        if not self._agreed:
            return
        self._agreed = False
        self._group().meet()
        self._answer()
        until = self._clock() + wait
        while self._enrolment is not None and self._clock() < until:
            self._sleep(LOOK_SECONDS)
            self._answer()

    def _asked_here(self) -> bool:
        if not self._signalled:
            return False
        self._signalled = False  # before the look: a signal that comes meanwhile sets it again
        asked = self._pending() is not None
        if asked:
            self._signalled = True
        return asked

    def _pending(self) -> int | None:
        notice = self._enrolment.pending() if self._enrolment is not None else None
        return notice.number if notice is not None else None

    def _answer(self) -> None:
        """Answer what has been asked of this node; its agent may hear of the change later than another's."""
        number = self._pending()
        if self._enrolment is not None and number is not None:
            self._enrolment.answer(number)


@lru_cache(maxsize=1)
def requests() -> Requests:
    """This process's, made when they are first needed: from then on it answers SIGUSR1.

    Raises `ValueError` outside the main thread, as `signal.signal` does, and `SystemExit` where whoever started this
    process has died meanwhile: a newer world must not be disturbed by one that was left behind.
    """
    notices = Notices.of(os.environ)
    if notices is None:
        return Requests(None, ranks)
    before = signal.getsignal(SIGNAL)
    heard: list[Callable[[], None]] = []

    def handle(number: int, frame: Any) -> None:
        for hear in heard:
            hear()
        if callable(before):
            before(number, frame)

    signal.signal(SIGNAL, handle)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        die_with_parent()  # torch's workers are in sessions of their own, and would outlive a killed agent
    if notices.deserted():
        raise SystemExit("trainmaster-run has died, so this worker ends as well")
    made = Requests(notices.enrol(os.getpid()), ranks)
    heard.append(made.signalled)
    return made


def checkpoint_requested(*, every: int = 1) -> bool:
    """Whether to save a checkpoint now, then call `checkpoint_saved`. The same answer for all ranks of a step.

    Every rank calls it once a step: the ranks agree by one small all-reduce. A script that begins to train should have
    called it, or `requests`, before its first long step: until then nobody waits for it.

    Args:
        every: ask the others at each so many calls only, the same number on all ranks; False in between.
    """
    return requests().requested(every)


def checkpoint_saved(*, wait: float = PARKED_SECONDS) -> None:
    """Tell whoever asked that all ranks have saved. Every rank calls it, whether it wrote anything or not.

    Returns after `wait` seconds at the latest. In most cases it does not return: what asked ends this process
    meanwhile, by SIGTERM, and what it would have computed by then would be lost. Nothing happens where no checkpoint
    was requested.
    """
    requests().saved(wait)


def checkpoints(where: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Checkpoints:
    """The job's checkpoints, written in the name of this process's world.

    Args:
        where: a directory, or `s3://bucket/prefix`; None for SageMaker's (`SM_CHECKPOINT_DIR`, `/opt/ml/checkpoints`).
        environ: None for the process's.
    """
    given = os.environ if environ is None else environ
    place = str(where or given.get("SM_CHECKPOINT_DIR") or f"{OPT_ML}/checkpoints")
    run = given.get("TRAINMASTER_RUN") or given.get("TRAINING_JOB_NAME") or ""
    keeper: Keeper
    if place.startswith("s3://"):
        import boto3

        from trainmaster.worker.checkpoints.s3 import S3Keeper

        keeper, scratch = S3Keeper(boto3.session.Session().client("s3"), place), Path(tempfile.gettempdir())
    else:
        keeper, scratch = DirectoryKeeper(Path(place)), Path(place)
    return Checkpoints(keeper, attempt_of(run), int(given.get(ROUND) or 0), newest_world_of(given), scratch)


def newest_world_of(environ: Mapping[str, str]) -> Callable[[], int | None]:
    """Asks the job's rendezvous for the round of its newest world; None where it has none, or does not answer."""
    run, table = environ.get("TRAINMASTER_RUN"), environ.get("TRAINMASTER_TABLE")
    if not environ.get(ROUND) or not run or not table:
        return lambda: None

    def ask() -> int | None:
        from trainmaster.worker.rendezvous.dynamodb import Address, DynamoStateStore, client_of
        from trainmaster.worker.rendezvous.state import decode

        where = Address.of(table)
        try:
            found = DynamoStateStore(client_of(where.region), where.table, run).get_state()
        except Unreachable:
            return None
        return decode(found[0]).newest_world if found else None

    return ask
