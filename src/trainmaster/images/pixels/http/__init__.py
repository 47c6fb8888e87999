"""Images behind HTTP, read by ranges from checked public addresses only."""
