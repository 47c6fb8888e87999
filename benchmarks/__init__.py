"""What Trainmaster costs, measured: `python -m benchmarks`, or `make bench`.

It uses the shipped code throughout and the tests' world, a whole queue on a virtual clock. It must not be imported by
anything that is deployed.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".local" / "bench"
"""Engines' files, bundles and caches; git ignores it."""

if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))
