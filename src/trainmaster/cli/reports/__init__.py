"""Commands that report: shares, usage, the schedule, and the live queue."""
