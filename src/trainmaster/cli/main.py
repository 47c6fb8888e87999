"""The entry point of the program, which ends it with one line on Ctrl-C even while its modules are imported."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`, which may not be imported yet."""


def main() -> None:
    """Run the program and exit with its code."""
    try:
        _open_closed_streams()
        from trainmaster.cli.program import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(_INTERRUPTED)


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller has closed (`>&-`): Python has None for it."""
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - to the end
