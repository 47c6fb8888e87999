"""`trainmaster-run`: the container's entry point, for elastic jobs and any others.

It finds out where it is, starts torchrun with the job's rendezvous or just the given command, stays as the container's
first process, and leaves a reason where the job fails. Nothing a script does needs it: a script runs without it, too.
It must not take part in the rendezvous itself, except to take its own node out of it when its agent has died.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trainmaster.domain.errors import TrainmasterError
from trainmaster.worker.checkpoints.notices import DIRECTORY, Notices
from trainmaster.worker.container.container import ROUND, Container, ElasticJob, Hook
from trainmaster.worker.container.processes import blocked, code_of
from trainmaster.worker.container.supervise import HEARD, Ended, Patience, Supervisor

MANY = 1_000_000
"""Restarts that torchrun itself allows: the job's own budget, which is counted for the whole job, decides."""
LEAVING_SECONDS = 45.0
"""How long an agent may take to leave its rendezvous once its workers have saved: torchrun gives them 30 to end."""
MAX_REASON_LENGTH = 1024
"""Characters of a failure reason that SageMaker shows: `domain/text.py`, of which a container has nothing."""
CANNOT_START = 127
"""A shell's exit code for a command that is not there."""
WRONG_USE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the container; the exit code for it. Signals are kept from here on: as process 1, one would be lost else."""
    given = parser(os.environ).parse_args(argv)
    with blocked(HEARD):
        try:
            container, job = Container.of(os.environ), ElasticJob.of(os.environ)
            command = command_of(given, container, job)
        except TrainmasterError as error:
            say(f"trainmaster-run: {error}")
            return WRONG_USE
        return _run(given, command, container, job)


def parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """The command line. What torchrun reads from the environment, it finds there as ever (`PET_NPROC_PER_NODE`)."""
    workers = environ.get("PET_NPROC_PER_NODE") or "auto"
    made = argparse.ArgumentParser(prog="trainmaster-run", description="The entry point of a training container.")
    made.add_argument("--launcher", choices=("torchrun", "none"), help="default: torchrun for jobs with members")
    made.add_argument("--nproc-per-node", default=workers, help="torchrun's: workers on each node (default: auto)")
    made.add_argument("--rdzv-conf", default="", help="torchrun's: settings of the rendezvous, as name=value,...")
    made.add_argument("--stop-seconds", type=float, default=120.0, help="from SIGTERM until all is killed")
    made.add_argument("-m", "--module", action="store_true", help="the command is the name of a Python module")
    made.add_argument("command", nargs=argparse.REMAINDER, help="a Python script or another program, with arguments")
    return made


def command_of(given: argparse.Namespace, container: Container, job: ElasticJob) -> list[str]:
    """What to start. A name that ends in `.py` is run by this Python, so that one request serves every hook.

    Raises `SystemExit` where there is nothing to start.
    """
    command = given.command[1:] if given.command[:1] == ["--"] else list(given.command)
    if not command:
        raise SystemExit("trainmaster-run: what is to be run?")
    launcher = given.launcher or ("torchrun" if job.hook is Hook.MEMBERS else "none")
    if launcher == "torchrun":
        return [*_torchrun(given, container, job), *_kind(given, command), *command]
    if given.module:
        return [sys.executable, "-m", *command]
    return [sys.executable, *command] if command[0].endswith(".py") else command


def _torchrun(given: argparse.Namespace, container: Container, job: ElasticJob) -> list[str]:
    """Torchrun in the job's rendezvous; without one, on this host alone."""
    start = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={given.nproc_per_node}"]
    if job.hook is not Hook.MEMBERS:
        return [*start, "--standalone", "--nnodes=1"]
    return [
        *start,
        f"--nnodes={job.least}:{job.most}",
        "--rdzv-backend=dynamodb",
        f"--rdzv-endpoint={job.table}",
        f"--rdzv-id={job.run}",
        *([f"--rdzv-conf={given.rdzv_conf}"] if given.rdzv_conf else []),
        f"--local-addr={container.address}",
        f"--max-restarts={MANY}",
    ]


def _kind(given: argparse.Namespace, command: Sequence[str]) -> list[str]:
    if given.module:
        return ["--module"]
    return [] if command[0].endswith(".py") else ["--no-python"]


def _run(given: argparse.Namespace, command: Sequence[str], container: Container, job: ElasticJob) -> int:
    members = job.hook is Hook.MEMBERS
    patience = Patience(total=given.stop_seconds, leaving=LEAVING_SECONDS if members else 0.0)
    notices = Notices.create()
    try:
        ended = Supervisor(command, environment(os.environ, notices, patience), notices, patience).run()
        if members and ended.returncode != 0:
            depart(container, job)
        return report(ended, notices, container.failure)
    except OSError as error:
        leave_word(container.failure, f"trainmaster: {command[0]} cannot be started: {error}")
        return CANNOT_START
    finally:
        shutil.rmtree(notices.directory, ignore_errors=True)


def environment(environ: Mapping[str, str], notices: Notices, patience: Patience) -> dict[str, str]:
    """What the command finds: where notices are, and how long torchrun lets workers end after a SIGTERM."""
    inherited = {name: text for name, text in environ.items() if name != ROUND}
    return {
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(1, int(patience.total - 2 * patience.last))),
        "TORCHELASTIC_ERROR_FILE": str(_error_file(notices)),
        **inherited,
        DIRECTORY: str(notices.directory),
    }


def report(ended: Ended, notices: Notices, failure: Path) -> int:
    """The container's exit code; a failure leaves its reason, a stop that was asked for does not."""
    if ended.returncode == 0:
        return 0
    if reason := notices.ended():
        leave_word(failure, reason)
        return 1
    code = code_of(ended.returncode)
    if not ended.stopped and not failure.exists():
        leave_word(failure, f"trainmaster: the command ended with exit code {code}{_cause(notices)}")
    return code


def leave_word(failure: Path, reason: str) -> None:
    """Say why the job failed, on standard error and where SageMaker looks for it."""
    say(reason)
    with suppress(OSError):
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(reason[:MAX_REASON_LENGTH])


def say(text: str) -> None:
    """A line in the container's log."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _error_file(notices: Notices) -> Path:
    return notices.directory / "error.json"


def _cause(notices: Notices) -> str:
    """What torch's `record` wrote down of the first failure (torch.distributed.elastic.multiprocessing.errors)."""
    try:
        said = json.loads(_error_file(notices).read_text())["message"]
        return f": {said['message'] if isinstance(said, dict) else said}"
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def depart(container: Container, job: ElasticJob) -> None:
    """Take this container's node out of the rendezvous if its agent could not: the others need not wait for it then.

    One that still is there when nobody here can beat for it any more is dead; all lives of this container are.
    """
    from trainmaster.worker.container.departure import take_out
    from trainmaster.worker.rendezvous.dynamodb import BRISK, Address, DynamoStateStore, client_of

    try:
        where = Address.of(job.table)
        store = DynamoStateStore(client_of(where.region, patience=BRISK), where.table, job.run)
        take_out(store, container, os.environ, time.sleep)
    except (TrainmasterError, ValueError) as error:
        say(f"trainmaster-run: the others will find out for themselves that this node is gone: {error}")


if __name__ == "__main__":
    sys.exit(main())
