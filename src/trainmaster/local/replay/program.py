"""The program `trainmaster replay`: its steps, and errors as exit codes."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from trainmaster.domain.compat import UTC
from trainmaster.local.replay.options import DEFAULT_POLICY, parse
from trainmaster.local.replay.processes import in_processes
from trainmaster.local.replay.progress import Bar
from trainmaster.local.replay.report import tables
from trainmaster.local.replay.report.pictures import draw
from trainmaster.local.replay.runs import POLICIES, REFERENCE, Run, run_replay
from trainmaster.local.replay.trace.account import Account
from trainmaster.local.replay.trace.trace import BadTrace, TraceJob, read_trace, select_jobs, write_trace
from trainmaster.local.replay.virtual_queue import ReplayFailed

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

# The same values as in `cli.common.exit_codes`.
OK, INVALID, NOT_ALLOWED, UNREACHABLE, BUG, BROKEN_PIPE = 0, 2, 5, 6, 70, 141
_FORBIDDEN = ("AccessDenied", "UnrecognizedClient", "ExpiredToken", "InvalidSignature", "InvalidClientTokenId")

WORKER_KILLED = (
    "a process of the replay was killed, perhaps because memory ran out; "
    "replay fewer jobs (--limit) or compare fewer policies (--policy)"
)
MIN_JOBS_FOR_PROCESSES = 1_000
"""Jobs of a trace from which on several policies are replayed in processes, each of which takes a second to start."""

Connect = Callable[[Namespace], "SageMakerClient"]


def connect(options: Namespace) -> SageMakerClient:
    """Return a SageMaker client for the account of the options or of the environment."""
    import boto3
    from botocore.config import Config

    patience = Config(retries={"mode": "standard", "total_max_attempts": 5})
    session = boto3.session.Session(region_name=options.region, profile_name=options.profile)
    return session.client("sagemaker", config=patience)


def main(
    arguments: Sequence[str] | None = None, *, connect: Connect = connect, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Replay, and return the exit code.

    Args:
        arguments: command line; that of the process by default.
        connect: makes the SageMaker client for `--from-account`.
        sleep: waits between calls to AWS.
    """
    options = parse(arguments)
    try:
        return _replay(options, connect, sleep)
    except BadTrace as error:
        return _fail(f"{options.trace or 'the account'}: {error}", INVALID)
    except BrokenPipeError:
        # The reader has closed the pipe. Keep Python from failing again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _fail(f"{error.filename or options.trace}: {error.strerror or error}", INVALID)
    except (BotoCoreError, ClientError) as error:
        return _fail(f"{type(error).__name__}: {error}", _code_of(error))
    except ReplayFailed as error:
        return _fail(str(error), BUG)
    except BrokenProcessPool:
        return _fail(WORKER_KILLED, BUG)


def _replay(options: Namespace, connect: Connect, sleep: Callable[[float], None]) -> int:
    with Bar() as bar:
        jobs = _jobs(options, connect, sleep, bar)
        if options.save_trace:
            write_trace(options.save_trace, jobs)
        if options.cap is None:
            return OK
        jobs = select_jobs(jobs, cap=options.cap, share=options.vc, limit=options.limit)
        runs = _runs(_policies(options), jobs, options, bar)
    _print(_text(runs, options))
    if options.out:
        _draw(runs, options.out)
    return OK


def _jobs(options: Namespace, connect: Connect, sleep: Callable[[float], None], bar: Bar) -> list[TraceJob]:
    if not options.from_account:
        return read_trace(options.trace)
    account = Account(connect(options), sleep, bar.show)
    return account.history(datetime.now(UTC) - timedelta(days=options.days))


def _policies(options: Namespace) -> list[str]:
    """Return the policies to replay, each once; a comparison includes its reference."""
    if not options.compare:
        return [(options.policy or [DEFAULT_POLICY])[0]]
    return list(dict.fromkeys([REFERENCE, *(options.policy or POLICIES)]))


def _runs(names: Sequence[str], jobs: Sequence[TraceJob], options: Namespace, bar: Bar) -> list[Run]:
    """Replay under each policy: in as many processes as there are processors, or in this one if the trace is short."""
    cost, asked, lane = options.restart_cost, options.eta, options.guaranteed_lane
    play = partial(run_replay, jobs=jobs, cap=options.cap, restart_cost=cost, questions=asked, lane=lane)
    workers = min(len(names), os.cpu_count() or 1) if len(jobs) >= MIN_JOBS_FOR_PROCESSES else 1
    if workers > 1:
        bar.begin(f"{len(names)} policies", len(jobs) * len(names))
        return in_processes(play, names, workers, bar.at)
    runs = []
    for name in names:
        bar.begin(name, len(jobs))
        runs.append(play(name, on_progress=bar.at))
    return runs


def _text(runs: Sequence[Run], options: Namespace) -> str:
    if options.json:
        return tables.as_json(runs, compared=options.compare)
    return tables.comparison(runs) if options.compare else tables.one_table(runs[0])


def _draw(runs: Sequence[Run], directory: str) -> None:
    files = [path for run in runs for path in draw(run, directory)]
    sys.stderr.write("".join(f"Wrote {path}\n" for path in files))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _code_of(error: BotoCoreError | ClientError) -> int:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    return NOT_ALLOWED if isinstance(error, NoCredentialsError) or code.startswith(_FORBIDDEN) else UNREACHABLE


def _fail(line: str, code: int) -> int:
    sys.stderr.write(f"Error: {line}\n")
    return code
