"""Sizes and rendezvous of elastic jobs."""
