"""`python -m trainmaster.local.stack [OPTIONS] [COMMAND ...]`: runs the stack until Ctrl-C.

With a command, the stack runs until the command's end, and the command finds it through its environment. `--hostile`
makes the SageMaker simulator misbehave; see its option of the same name, and `--help` for the others.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from trainmaster.local.signals import signal_pipe
from trainmaster.local.simulator.containers import opt_ml
from trainmaster.local.stack import Checkout, LocalStack, SetupMissing, StartFailed
from trainmaster.local.stack.address import StackAddress, clean_environment

_LIMITS = {"ml.p5.48xlarge": 2, "ml.g5.xlarge": 2, "ml.m5.xlarge": 4}
"""Instances of the account and caps of the pools; the last is the type that SDK 3 chooses without one."""
_RUNS_AS_YOU = """\
Warning: the entry points of training jobs run as processes on this machine, with your user's permissions. They can
read, change and delete your files and reach your network: nothing isolates them. Submit only code that you trust."""
_REPLACED = """\
This machine cannot mount /opt/ml for a job ({reason}). The path is replaced instead in commands, variables,
hyperparameters and the .py and .sh files of input channels; jobs with several instances cannot resolve algo-N."""


def main(arguments: list[str]) -> int:
    """Run the command with the stack and return its exit code; without a command, wait for Ctrl-C."""
    options = _parser().parse_args(arguments)
    hostile = () if options.hostile is None else ("--hostile", str(options.hostile))
    simulator = ("--speed", str(options.speed), *hostile)
    limits = {**_LIMITS, **dict(options.pool)}
    try:
        pythons = tuple(options.python)
        stack = LocalStack(label="by-hand", limits=limits, simulator=simulator, pythons=pythons, on_step=_say)
        with stack as address:
            return _run(options.command, address) if options.command else _wait(address, stack.checkout)
    except (StartFailed, SetupMissing) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainmaster.local.stack", description=__doc__)
    parser.add_argument("--hostile", type=int, metavar="SEED", help="make the SageMaker simulator misbehave")
    pool = "a pool and its cap, repeatable, in addition to " + ",".join(
        f"{name}={cap}" for name, cap in _LIMITS.items()
    )
    parser.add_argument("--pool", type=_pool, action="append", default=[], metavar="TYPE=N", help=pool)
    speed = "divides the durations of the simulated phases of jobs, not those of entry points"
    parser.add_argument("--speed", type=float, default=1.0, help=speed)
    python = "interpreter of an environment whose packages entry points find; repeatable, the preferred first"
    parser.add_argument("--python", type=Path, action="append", default=[], metavar="PATH", help=python)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program to run with the stack")
    return parser


def _pool(text: str) -> tuple[str, int]:
    name, _, cap = text.partition("=")
    return name, int(cap)


def _run(command: list[str], address: StackAddress) -> int:
    environment = {**clean_environment(os.environ), **address.environment()}
    return subprocess.run(command, env=environment, check=False).returncode


def _wait(address: StackAddress, checkout: Checkout) -> int:
    """Print the environment, write it to a file that is deleted at the end, and wait."""
    lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in address.environment().items())
    file = checkout.environment_file
    try:
        message = _start_message(file.relative_to(checkout.root), opt_ml.why_unavailable())
        file.write_text(lines)
        sys.stdout.write(lines)
        sys.stdout.flush()
        _say(message)
        with signal_pipe() as wait_for_signal:
            wait_for_signal()
    except KeyboardInterrupt:  # how a user ends the stack, so no error for `make`
        _say("Shutting down")
    finally:
        file.unlink(missing_ok=True)
    return 0


def _start_message(file: Path, unmounted: str | None) -> str:
    """Return what a user needs to know of a running stack."""
    parts = [_RUNS_AS_YOU, *([_REPLACED.format(reason=unmounted)] if unmounted else [])]
    parts.append(f"In another shell: source {file}    (or paste the lines above)\nPress Ctrl-C to stop")
    return "\n".join(parts)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
