"""Checkpoints that nodes of a world write together."""
