"""Names of the tags that the queue reads and writes: what users, clients, the queue and SageMaker all must spell alike.

It must not import anything, so that everybody may import it. What the options are is said in `request/options.py`.
"""

from __future__ import annotations

PRIORITY_TAG = "priority"
OPTION_PREFIX = "trainmaster:"
"""What the tag of each of the queue's options begins with."""
RESOURCES_TAG = f"{OPTION_PREFIX}resources"
ATTEMPT_TAGS = (f"{OPTION_PREFIX}queue", f"{OPTION_PREFIX}job", f"{OPTION_PREFIX}attempt")
"""Tags that the queue puts on every attempt."""
