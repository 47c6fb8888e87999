"""Replays with elastic jobs: the shipped queue with and without them, beside allocations after two papers.

Half of the jobs with several GPUs are elastic. It must not know any rule of the queue: it plays traces and compares.
"""
