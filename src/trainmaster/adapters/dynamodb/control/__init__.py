"""The schema of the table, the pause of the manager, and comparisons after a restore."""
