"""The entry point of the program, which ends it with one line on Ctrl-C even while its modules are imported."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`, which may not be imported yet."""


def main() -> None:
    """Run the program and exit with its code."""
    try:
        from trainmaster.cli.program import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(_INTERRUPTED)
