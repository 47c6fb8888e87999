"""The example queue: the local stack with jobs of three teams that end and arrive, for the console."""
