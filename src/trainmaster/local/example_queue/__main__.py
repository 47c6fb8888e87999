"""`python -m trainmaster.local.example_queue [OPTIONS]`: opens the console on an example queue, until Ctrl-C.

It starts the local stack with jobs of three teams that run, wait, resize, are preempted, held or infeasible; jobs end,
and others arrive. Options are those of `trainmaster console`, such as `--no-browser` and `--port`.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

import httpx

from trainmaster.domain.compat import UTC
from trainmaster.local.demo.display import Display
from trainmaster.local.demo.queue import Queue
from trainmaster.local.example_queue.examples import POOLS, PROFILE, SETTINGS, TRAINING
from trainmaster.local.example_queue.kinds import KindExamples, kind_examples
from trainmaster.local.example_queue.player import Player
from trainmaster.local.example_queue.teams import Teams
from trainmaster.local.stack import LocalStack, SetupMissing, StackAddress, StartFailed
from trainmaster.local.stack.address import clean_environment
from trainmaster.local.stack.processes import GuardedProcess
from trainmaster.local.stack.signed import client

_GUIDE = """
Three teams share three pools. Jobs end and new ones arrive, until Ctrl-C. In the console:

  Now      the pools by share, the next starts with their ranges, the last hour, and what needs attention
  Queue    the reason for which each job waits: select llm-sft-2, choose Priority… and see which jobs it passes
  A job    click vit-sweep-1: its attempts, the jobs in its way, and what would help
  Ctrl-K   go to urgent-fix-1, which preempts; eval-elastic-1, which resizes; too-large-1, which no pool fits;
           nightly-1, which is due tonight; paused-by-hand-1, which you can release; harbour-scan-1 at an endpoint
  ?        the keyboard
"""


def main(arguments: Sequence[str]) -> int:
    """Run until Ctrl-C, and return the exit code."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(f"{__doc__}\n")
        return 0
    try:
        with _example_queue() as (address, stack):
            return _serve(address, stack, arguments)
    except (StartFailed, SetupMissing, httpx.HTTPError) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:  # how a user ends it, so no error for `make`
        _say("The example queue has ended; nothing is left running.")
        return 0


@contextlib.contextmanager
def _example_queue() -> Iterator[tuple[StackAddress, LocalStack]]:
    """Start the stack with its jobs. Raises SetupMissing, StartFailed or httpx.HTTPError."""
    with contextlib.ExitStack() as opening:
        starting = opening.enter_context(contextlib.ExitStack())
        display = starting.enter_context(Display())
        kind = kind_examples()
        simulator = [part for name, value in PROFILE.items() for part in ("--profile", f"{name}={value}")]
        if kind is not None:
            simulator += ["--model-server", opening.enter_context(kind.model_server())]
        stack = LocalStack(
            label="console",
            limits=POOLS,
            kinds={} if kind is None else kind.STACKS,
            simulator=tuple(simulator),
            on_step=display.step,
        )
        address = opening.enter_context(stack)
        display.step("Submitting the example jobs")
        player = _player(address, kind)
        player.fill()
        starting.close()
        opening.enter_context(player.playing(_say))
        yield address, stack


def _player(address: StackAddress, kind: KindExamples | None) -> Player:
    """Return the player of a running stack, with settings and endpoints in place."""
    queue = Queue(address)
    queue.change_settings(dict(SETTINGS))
    if kind is not None:
        kind.prepare(lambda service: client(service, address.endpoint_of(service)))
    return Player(
        (*TRAINING, *(() if kind is None else kind.EXAMPLES)),
        unfinished=lambda: [job["jobName"] for job in queue.jobs()],
        submit=Teams(address, SETTINGS["shares"]).submit,
        rng=random.Random(1),  # noqa: S311 - the same example each time
        now=lambda: datetime.now(UTC),
    )


def _serve(address: StackAddress, stack: LocalStack, arguments: Sequence[str]) -> int:
    """Run `trainmaster console`, and return its exit code once it has ended."""
    _say(_GUIDE)
    source = {"PYTHONPATH": str(stack.checkout.source)}  # the console of the checkout that is deployed
    environment = {**clean_environment(os.environ), **address.environment(), **source}
    command = [sys.executable, "-m", "trainmaster", "console", *arguments]
    with contextlib.closing(GuardedProcess("the console", command, environment, None)) as console:
        return console.wait()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
