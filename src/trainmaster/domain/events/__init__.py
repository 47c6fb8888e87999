"""Events that tell other programs, and notifications that tell people, what changed in the queue."""
