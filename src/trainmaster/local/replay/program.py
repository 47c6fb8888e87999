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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from trainmaster.domain.compat import UTC
from trainmaster.domain.text import one_line
from trainmaster.local.replay.files import check_directory, name_in_errors, write_standard_output
from trainmaster.local.replay.options import DEFAULT_DAYS, parse, policies
from trainmaster.local.replay.processes import in_processes
from trainmaster.local.replay.progress import Bar
from trainmaster.local.replay.report import tables
from trainmaster.local.replay.report.pictures import draw
from trainmaster.local.replay.runs import Run, run_replay
from trainmaster.local.replay.trace.account import Account
from trainmaster.local.replay.trace.csv_trace import write_trace
from trainmaster.local.replay.trace.reading import read_trace
from trainmaster.local.replay.trace.trace import BadTrace, TraceJob, select_jobs
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
    source = "the trace"
    try:
        options = parse(arguments)
        source = options.trace or "the account"
        return _replay(options, connect, sleep)
    except BadTrace as error:
        return _fail(f"{source}: {error}", INVALID)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        return _fail(": ".join(filter(None, (error.filename, error.strerror or str(error)))), INVALID)
    except (BotoCoreError, ClientError) as error:
        return _fail(f"{type(error).__name__}: {error}", _code_of(error))
    except ReplayFailed as error:
        return _fail(str(error), BUG)
    except BrokenProcessPool:
        return _fail(WORKER_KILLED, BUG)


def _replay(options: Namespace, connect: Connect, sleep: Callable[[float], None]) -> int:
    if options.out:
        check_directory(options.out)
    with Bar() as bar:
        chosen = select_jobs(_jobs(options, connect, sleep, bar), share=options.vc, limit=options.limit)
        if options.save_trace:
            write_trace(options.save_trace, chosen)
        if options.cap is None:
            return OK
        jobs = select_jobs(chosen, cap=options.cap)
        capped = _count_capped(chosen, options.cap)
        runs = _runs(policies(options), jobs, options, bar)
    write_standard_output(f"{_text(runs, options, capped)}\n")
    if options.out:
        _draw(runs, options.out)
    return OK


def _count_capped(jobs: Sequence[TraceJob], cap: int) -> int:
    """Return the number of jobs that are wider than the pool, and warn of them."""
    count = sum(job.gpus > cap for job in jobs)
    if count:
        sys.stderr.write(
            f"Warning: {count:,} of {len(jobs):,} jobs need more than {cap:,} GPUs; they run on {cap:,}.\n"
        )
    return count


def _jobs(options: Namespace, connect: Connect, sleep: Callable[[float], None], bar: Bar) -> list[TraceJob]:
    if not options.from_account:
        return read_trace(options.trace)
    account = Account(connect(options), sleep, bar.show)
    return account.history(datetime.now(UTC) - timedelta(days=DEFAULT_DAYS if options.days is None else options.days))


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


def _text(runs: Sequence[Run], options: Namespace, capped: int) -> str:
    if options.json:
        return tables.as_json(runs, capped, compared=options.compare)
    return tables.comparison(runs) if options.compare else tables.one_table(runs[0])


def _draw(runs: Sequence[Run], directory: str) -> None:
    """Draw the runs elsewhere, and move the files once all are complete."""
    with name_in_errors(directory), TemporaryDirectory(dir=directory, prefix=".") as unfinished:
        drawn = [path for run in runs for path in draw(run, unfinished)]
        files = [path.replace(Path(directory) / path.name) for path in drawn]
    sys.stderr.write("".join(f"Wrote {path}\n" for path in files))


def _code_of(error: BotoCoreError | ClientError) -> int:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    return NOT_ALLOWED if isinstance(error, NoCredentialsError) or code.startswith(_FORBIDDEN) else UNREACHABLE


def _fail(line: str, code: int) -> int:
    sys.stderr.write(f"Error: {one_line(line)}\n")
    return code
