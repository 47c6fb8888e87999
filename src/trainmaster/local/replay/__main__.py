"""`python -m trainmaster.local.replay`: what `trainmaster replay` becomes.

It must not hold anything but the order of the steps.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from trainmaster.local.replay import report
from trainmaster.local.replay.options import DEFAULT_POLICY, parse
from trainmaster.local.replay.pictures import draw
from trainmaster.local.replay.progress import Bar
from trainmaster.local.replay.queue import ReplayFailed
from trainmaster.local.replay.running import POLICIES, REFERENCE, Run, play
from trainmaster.local.replay.trace import BadTrace, TraceJob, chosen, read_trace, write_trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, and return the exit code: 0 done, 2 the trace is no good, 70 a bug of the queue, 130 interrupted."""
    options = parse(arguments)
    try:
        return _replay(options)
    except BadTrace as error:
        return _complain(f"{options.trace or 'the account'}: {error}", 2)
    except BrokenPipeError:
        # Nobody reads any more: keep Python from failing again when it flushes at the end (Python's library, signal).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _complain(f"{error.filename or options.trace}: {error.strerror or error}", 2)
    except ReplayFailed as error:
        return _complain(str(error), 70)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)


def _replay(options: Namespace) -> int:
    jobs = read_trace(options.trace)
    if options.save_trace:
        write_trace(options.save_trace, jobs)
    if options.cap is None:
        return 0
    jobs = chosen(jobs, cap=options.cap, share=options.vc, limit=options.limit)
    with Bar() as bar:
        runs = [_run(name, jobs, options, bar) for name in _policies(options)]
    _tell(_shown(runs, options))
    if options.out:
        _draw(runs, options.out)
    return 0


def _draw(runs: Sequence[Run], directory: str) -> None:
    files = [path for run in runs for path in draw(run, directory)]
    sys.stderr.write("".join(f"wrote {path}\n" for path in files))


def _shown(runs: Sequence[Run], options: Namespace) -> str:
    if options.json:
        return report.as_json(runs, compared=options.compare)
    return report.comparison(runs) if options.compare else report.one_table(runs[0])


def _policies(options: Namespace) -> list[str]:
    """What is to be played, each once; a comparison needs its reference."""
    if not options.compare:
        return [(options.policy or [DEFAULT_POLICY])[0]]
    return list(dict.fromkeys([REFERENCE, *(options.policy or POLICIES)]))


def _run(name: str, jobs: Sequence[TraceJob], options: Namespace, bar: Bar) -> Run:
    bar.begin(name, len(jobs))
    return play(name, jobs, options.cap, options.restart_cost, told=bar.at)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(line: str, code: int) -> int:
    sys.stderr.write(f"Error: {line}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
