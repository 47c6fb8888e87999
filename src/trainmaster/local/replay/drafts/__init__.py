"""Replays the last days of a queue with its settings and with a draft of other settings."""
