"""A worker's turn: one region, or the merge."""
