"""Replays with elastic jobs: the shipped queue with and without them, compared with the allocations of two papers.

Half of the jobs with several GPUs are elastic.
"""
