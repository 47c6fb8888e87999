"""The console over a large queue: first paint, script time of an update, requests and bytes of a poll."""
