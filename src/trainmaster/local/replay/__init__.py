"""Replay: the shipped queue over a trace of jobs, on a virtual clock, to see what a policy would have made of them.

    trace.py      jobs of a CSV file, as values
    account.py    jobs of an account's own history
    queue.py      drives the shipped passes over them, with the in-memory store and the simulated SageMaker
    baselines.py  reference policies that know every duration
    played.py     what came of it: when each job ran
    figures.py    completion times, waits, utilisation, what preemption cost
    report.py     tables and JSON; pictures.py: the queue and the Gantt chart; progress.py: the bar while it runs

It must not hold any rule of the queue.
"""
