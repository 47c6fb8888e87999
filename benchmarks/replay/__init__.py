"""Replays of real traces under the shipped orders and the reference policies."""
