"""The rendezvous below torchrun."""
