"""The outbox in the table."""
