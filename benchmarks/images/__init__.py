"""Cost of image jobs on endpoints to the queue: `python -m benchmarks.images`, or `make bench-images`.

Decisions a second and DynamoDB's units for each, by how many requests are outstanding and over how many endpoints;
`python -m benchmarks.images.tiles` measures the tiles a second of a worker. It must not know any rule of the queue.
"""

import sys

from benchmarks import ROOT

if str(ROOT / "tests" / "images") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests" / "images"))
