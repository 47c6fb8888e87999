"""The rendezvous engine."""
