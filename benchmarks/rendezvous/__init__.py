"""Pauses of real torchrun agents on this machine: our rendezvous beside torch's own c10d, in the same run.

Agents run in .venv-torch, on addresses 127.0.0.N. It must not know how either engine works: it does things to processes
and reads what their workers say.
"""
