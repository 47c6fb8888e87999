"""Position, reason and estimated start: readers of a plan."""
