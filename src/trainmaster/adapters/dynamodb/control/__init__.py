"""The schema of the table, and the pause of the manager."""
