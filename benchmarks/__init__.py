"""Benchmarks of Trainmaster: `python -m benchmarks`, or `make bench`.

They run the shipped code and the tests' world, a whole queue on a virtual clock. No deployed code imports them.

    common/      DynamoDB engine, meter, result files, tables and pages
    queue/       cost of passes and jobs
    startup/     cold start and size of the Lambda functions, start-up of the command line
    days/        days of jobs, and the limits of AWS that they meet
    kueue/       the load of Kueue's published baseline
    replay/      replays of real traces
    elastic/     replays with elastic jobs, and the allocations of two papers
    placement/   placement policies
    rendezvous/  pauses of torchrun
    images/      image jobs
    console/     the console's pages in a browser
    traces/      real traces
    results/     figures and pages
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".local" / "bench"
"""Files of engines, bundles and caches, which git ignores."""

if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))
