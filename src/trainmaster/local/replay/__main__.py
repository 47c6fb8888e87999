"""`python -m trainmaster.local.replay`: ends with one line on Ctrl-C, even while its modules are imported."""

from __future__ import annotations

import signal
import sys

INTERRUPTED = 130
"""`cli.common.exit_codes.ExitCode.INTERRUPTED`, also for the other signals that end the replay."""
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def run() -> int:
    """Run the program and return its exit code."""
    try:
        _handle_signals()
        from trainmaster.local.replay.program import main

        return main()
    except KeyboardInterrupt:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        sys.stderr.write("Error: interrupted\n")
        return INTERRUPTED


def _handle_signals() -> None:
    """Make every signal that ends programs act as Ctrl-C; ignored signals stay ignored (nohup)."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(run())
