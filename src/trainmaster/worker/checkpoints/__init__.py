"""Checkpoints, and the requests for them within a container."""
