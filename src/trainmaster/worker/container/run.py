"""`trainmaster-run`: the entry point of a training container, for elastic and other jobs.

It starts torchrun in the job's rendezvous, or the given command, supervises it as the container's first process, and
writes a failure reason. Scripts also run without it. It does not take part in the rendezvous, but removes its own node
from it if the agent has died.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.checkpoints.notices import DIRECTORY_VARIABLE, NodeWorld, Notices
from trainmaster.worker.container.container import (
    ROUND,
    Container,
    ElasticJob,
    Hook,
    base_of,
    failure_file_in,
    interface_address,
)
from trainmaster.worker.container.processes import exit_code_of, signals_blocked
from trainmaster.worker.container.supervise import HANDLED_SIGNALS, CommandResult, StopTimeouts, Supervisor
from trainmaster.worker.container.toolkit import toolkit_variables
from trainmaster.worker.warm import start as warm_start
from trainmaster.worker.warm.start import PRELOAD

UNLIMITED_RESTARTS = 1_000_000
"""Restarts that torchrun allows; the restart budget of the whole job decides instead."""
LEAVE_TIMEOUT_SECONDS = 45.0
"""Time for an agent to leave its rendezvous once its workers have saved: torchrun allows them 30 s to end."""
MAX_REASON_LENGTH = 1024
"""Characters of a failure reason that SageMaker shows. `domain/text.py` has the same limit but is not in containers."""
INTERFACE_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
EXIT_COMMAND_NOT_FOUND = 127
"""A shell's exit code for a command that does not exist."""
EXIT_USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the container and return its exit code. Signals are held from the start, since process 1 would lose them."""
    args = make_parser(os.environ).parse_args(argv)
    with signals_blocked(HANDLED_SIGNALS):
        try:
            job = ElasticJob.from_environment(os.environ)
            # Without members no other node asks for the address; in SageMaker's local mode there may be none.
            address_of = interface_address if job.hook is Hook.MEMBERS else lambda _: ""
            container = Container.from_environment(os.environ, address_of)
            command = build_command(args, container, job)
        except InvalidRequest as error:
            reason = f"trainmaster-run: {error}" + (f"; {error.hint}" if error.hint else "")
            write_failure(failure_file_in(base_of(os.environ)), reason)
            return EXIT_USAGE_ERROR
        return _run(args, command, container, job)


def make_parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the command-line parser. torchrun's own variables, such as `PET_NPROC_PER_NODE`, still apply."""
    workers = environ.get("PET_NPROC_PER_NODE") or "auto"
    parser = argparse.ArgumentParser(prog="trainmaster-run", description="The entry point of a training container.")
    parser.add_argument("--launcher", choices=("torchrun", "none"), help="default: torchrun for jobs with members")
    parser.add_argument("--nproc-per-node", default=workers, help="torchrun's: workers on each node (default: auto)")
    parser.add_argument("--rdzv-conf", default="", help="torchrun's: settings of the rendezvous, as name=value,...")
    preload = environ.get(PRELOAD, "")
    parser.add_argument(
        "--preload", default=preload, help="modules that workers below torchrun have imported already: torch"
    )
    parser.add_argument("--stop-seconds", type=float, default=120.0, help="from SIGTERM until all processes are killed")
    parser.add_argument("-m", "--module", action="store_true", help="the command is the name of a Python module")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a Python script or another program, with arguments")
    return parser


def build_command(args: argparse.Namespace, container: Container, job: ElasticJob) -> list[str]:
    """Return the command to start. This Python runs names that end in `.py`, so one request serves every hook.

    Raises:
        InvalidRequest: no command is given.
    """
    command = args.command[1:] if args.command[:1] == ["--"] else list(args.command)
    if not command:
        hint = "name the script after the options, in ContainerArguments"
        raise InvalidRequest("no command is given", field="command", hint=hint)
    launcher = args.launcher or ("torchrun" if job.hook is Hook.MEMBERS else "none")
    if launcher == "torchrun":
        return [*_torchrun_command(args, container, job), *_script(args, command, job)]
    if args.module:
        return [sys.executable, "-m", *command]
    return [sys.executable, *command] if command[0].endswith(".py") else command


def _torchrun_command(args: argparse.Namespace, container: Container, job: ElasticJob) -> list[str]:
    """Return the torchrun command for the job's rendezvous, or for the hosts of the training job if it has none."""
    start = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={args.nproc_per_node}"]
    if job.hook is not Hook.MEMBERS:
        return [*start, *_hosts_of_job(container)]
    return [
        *start,
        f"--nnodes={job.min_nodes}:{job.max_nodes}",
        "--rdzv-backend=dynamodb",
        f"--rdzv-endpoint={job.table}",
        f"--rdzv-id={job.run}",
        *([f"--rdzv-conf={args.rdzv_conf}"] if args.rdzv_conf else []),
        f"--local-addr={container.address}",
        f"--max-restarts={UNLIMITED_RESTARTS}",
    ]


def _hosts_of_job(container: Container) -> list[str]:
    """Return torchrun's options for a fixed number of hosts."""
    hosts = container.hosts
    if len(hosts) == 1:
        return ["--standalone", "--nnodes=1"]
    return [f"--nnodes={len(hosts)}", f"--node-rank={hosts.index(container.host)}", f"--master-addr={hosts[0]}"]


def _script(args: argparse.Namespace, command: Sequence[str], job: ElasticJob) -> list[str]:
    """Return torchrun's arguments for the script, module or program that it starts."""
    is_python = args.module or command[0].endswith(".py")
    if args.preload and is_python and job.hook is Hook.MEMBERS:
        return [warm_start.__file__, *(["-m"] if args.module else []), *command]
    if args.module:
        return ["--module", *command]
    return list(command) if is_python else ["--no-python", *command]


def _run(args: argparse.Namespace, command: Sequence[str], container: Container, job: ElasticJob) -> int:
    members = job.hook is Hook.MEMBERS
    timeouts = StopTimeouts(total=args.stop_seconds, leave_timeout=LEAVE_TIMEOUT_SECONDS if members else 0.0)
    preload = {PRELOAD: args.preload} if args.preload else {}
    try:
        with _own_notices() as notices:
            ours = toolkit_variables(container) | network_variables(container, job)
            environ = ours | environment(os.environ, notices, timeouts) | preload
            with speed_reports(container, notices):
                result = Supervisor(command, environ, notices, timeouts).run()
            if members and result.returncode != 0:
                leave_rendezvous(container, job)
            return report(result, notices, container.failure_file)
    except OSError as error:
        write_failure(container.failure_file, f"trainmaster: cannot start {command[0]}: {error}")
        return EXIT_COMMAND_NOT_FOUND


@contextmanager
def _own_notices() -> Iterator[Notices]:
    notices = Notices.create()
    try:
        yield notices
    finally:
        shutil.rmtree(notices.directory, ignore_errors=True)


@contextmanager
def speed_reports(container: Container, notices: Notices) -> Iterator[None]:
    """Report the speed of an elastic job as long as no Python script of it does by itself."""
    from trainmaster.worker.container.checkpoint_speed import CheckpointSpeed
    from trainmaster.worker.container.speed_watch import SpeedWatch
    from trainmaster.worker.progress import SpeedReporter, global_batch, has_table, run_now, table_writer

    if not has_table(os.environ):
        yield
        return
    stop = threading.Event()
    root = Path(os.environ.get("SM_CHECKPOINT_DIR") or container.base / "checkpoints")
    reporter = SpeedReporter(partial(table_writer, os.environ), start=run_now)
    checkpoints = CheckpointSpeed(root, global_batch(os.environ))
    watch = SpeedWatch(notices, reporter, checkpoints, partial(world_of, container, notices, os.environ))
    # The thread inherits the blocked signals, which the main thread waits for.
    threading.Thread(target=watch.run, args=(stop,), daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def world_of(container: Container, notices: Notices, environ: Mapping[str, str]) -> NodeWorld | None:
    """Return the nodes that work together; None if they are not known, as with a custom hook."""
    hook = environ.get("TRAINMASTER_HOOK")
    if hook == Hook.RESTART:
        return NodeWorld(0, container.hosts.index(container.host), len(container.hosts))
    return notices.world() if hook == Hook.MEMBERS else None


def environment(environ: Mapping[str, str], notices: Notices, timeouts: StopTimeouts) -> dict[str, str]:
    """Return the command's environment, with the directory of notices and torchrun's timeout after a SIGTERM."""
    inherited = {name: text for name, text in environ.items() if name != ROUND}
    return {
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(1, int(timeouts.total - 2 * timeouts.sigkill_margin))),
        "TORCHELASTIC_ERROR_FILE": str(_error_file(notices)),
        **inherited,
        DIRECTORY_VARIABLE: str(notices.directory),
    }


def network_variables(container: Container, job: ElasticJob) -> dict[str, str]:
    """Return the interface for NCCL and Gloo if hosts work together, as SageMaker's own images set it."""
    several = job.hook is Hook.MEMBERS or len(container.hosts) > 1
    return dict.fromkeys(INTERFACE_VARIABLES, container.interface) if several and container.interface else {}


def report(result: CommandResult, notices: Notices, failure: Path) -> int:
    """Return the container's exit code, and write the reason of a failure; a requested stop is not a failure."""
    if result.returncode == 0:
        return 0
    if reason := notices.job_failure():
        write_failure(failure, reason)
        return 1
    code = exit_code_of(result.returncode)
    if not result.stopped and not failure.exists():
        write_failure(failure, f"trainmaster: the command ended with exit code {code}{_first_exception(notices)}")
    return code


def write_failure(failure: Path, reason: str) -> None:
    """Write the reason of a failure to standard error and to SageMaker's failure file."""
    log(reason)
    with suppress(OSError):
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(reason[:MAX_REASON_LENGTH])


def log(text: str) -> None:
    """Write a line to the container's log."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _error_file(notices: Notices) -> Path:
    return notices.directory / "error.json"


def _first_exception(notices: Notices) -> str:
    """Return the first failure that torch's `record` has written (torch.distributed.elastic.multiprocessing.errors)."""
    try:
        message = json.loads(_error_file(notices).read_text())["message"]
        return f": {message['message'] if isinstance(message, dict) else message}"
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def leave_rendezvous(container: Container, job: ElasticJob) -> None:
    """Remove this container's node from the rendezvous if its agent could not, so that the other nodes need not wait.

    Every incarnation of this container is dead by now, since only this process is left.
    """
    from trainmaster.worker.container.departure import remove_nodes
    from trainmaster.worker.rendezvous.dynamodb import (
        ENGINE_CLIENT_CONFIG,
        DynamoStateStore,
        TableAddress,
        dynamodb_client,
    )
    from trainmaster.worker.rendezvous.run import Run

    try:
        where = TableAddress.parse(job.table)
        client = dynamodb_client(where.region, config=ENGINE_CLIENT_CONFIG)
        store = DynamoStateStore(client, where.table, Run.from_environment(os.environ, job.run))
        remove_nodes(store, container, os.environ, time.sleep)
    except Exception as error:  # noqa: BLE001  # the reason for the failure has yet to be reported
        log(f"trainmaster-run: could not remove this node; the other nodes will evict it: {error!r}")


if __name__ == "__main__":
    sys.exit(main())
