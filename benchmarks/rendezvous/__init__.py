"""Pauses of torchrun agents on this machine: Trainmaster's rendezvous compared with torch's c10d, in one run.

Agents run in .venv-torch, on addresses 127.0.0.N. The benchmark signals processes and reads the output of workers.
"""
