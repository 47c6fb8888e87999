"""Publishing: verdicts that are stored for their events, and the delivery of the outbox."""
