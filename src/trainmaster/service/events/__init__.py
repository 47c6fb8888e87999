"""Delivery of what commits have put into the outbox."""
