"""`python -m tests.simulation`: see `command`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # As pytest finds them: what tests share is in this folder.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from simulation.command import main

    sys.exit(main())
