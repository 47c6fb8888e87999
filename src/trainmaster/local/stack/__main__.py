"""`python -m trainmaster.local.stack [--hostile SEED] [COMMAND ...]`: runs the stack until Ctrl-C or a command's end.

The command finds the stack through its environment. `--hostile` makes the SageMaker simulator misbehave; see its
option of the same name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from trainmaster.local.stack import LocalStack, SetupMissing, StartFailed
from trainmaster.local.stack.address import StackAddress, clean_environment


def main(arguments: list[str]) -> int:
    """Run the command with the stack and return its exit code; without a command, wait for Ctrl-C."""
    hostile = tuple(arguments[:2]) if arguments[:1] == ["--hostile"] else ()
    command = arguments[len(hostile) :]
    try:
        with LocalStack(label="by-hand", simulator=hostile, on_step=_say) as address:
            return _run(command, address) if command else _wait(address)
    except (StartFailed, SetupMissing) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: list[str], address: StackAddress) -> int:
    environment = {**clean_environment(os.environ), **address.environment()}
    return subprocess.run(command, env=environment, check=False).returncode


def _wait(address: StackAddress) -> int:
    for name, value in address.environment().items():
        sys.stdout.write(f"export {name}={value}\n")
    sys.stdout.flush()
    _say("Press Ctrl-C to stop")
    threading.Event().wait()
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
