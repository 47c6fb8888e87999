"""The nouns: frozen values of jobs, capacity and plans. Standard library only; no clock, no randomness, no I/O."""
