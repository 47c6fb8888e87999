"""Large groups on a real engine: how fast handlers meet, and meet again after a loss, without torchrun and workers.

The nodes are threads of a few processes, on one machine. Trainmaster's run in .venv, c10d's in .venv-torch.
"""
