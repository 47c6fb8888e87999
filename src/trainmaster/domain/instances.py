"""How many accelerators an ML instance type has, for what is counted in GPU-seconds and GPU-hours.

From AWS's pages "Amazon SageMaker pricing" and "Amazon EC2 accelerated computing instances". A type that is not here
counts as one accelerator an instance; a pool's own `accelerators` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

ACCELERATORS: Mapping[str, int] = {
    **dict.fromkeys(("ml.p2.8xlarge", "ml.p3.16xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p4de.24xlarge"), 8),
    **dict.fromkeys(("ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p5en.48xlarge", "ml.p6-b200.48xlarge"), 8),
    **dict.fromkeys(("ml.p6-b300.48xlarge", "ml.g5.48xlarge", "ml.g6.48xlarge", "ml.g6e.48xlarge"), 8),
    **dict.fromkeys(("ml.g7.48xlarge", "ml.g7e.48xlarge"), 8),
    "ml.p2.16xlarge": 16,
    **dict.fromkeys(("ml.trn1.32xlarge", "ml.trn1n.32xlarge", "ml.trn2.48xlarge"), 16),
    **dict.fromkeys(("ml.p3.8xlarge", "ml.g4dn.12xlarge", "ml.g5.12xlarge", "ml.g5.24xlarge"), 4),
    **dict.fromkeys(("ml.g6.12xlarge", "ml.g6.24xlarge", "ml.g6e.12xlarge", "ml.g6e.24xlarge", "ml.g7e.24xlarge"), 4),
    **dict.fromkeys(("ml.g7.24xlarge", "ml.p6e-gb200.36xlarge"), 4),
    **dict.fromkeys(("ml.g7.12xlarge", "ml.g7e.12xlarge"), 2),
}


def accelerators_of(instance_type: str) -> int:
    """Accelerators of one instance; 1 where the type is not known to have several."""
    return ACCELERATORS.get(instance_type, 1)
