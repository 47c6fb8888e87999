"""Pools that the queue makes and removes."""
