"""Pools, warm pools, the catalogue and external training jobs."""
