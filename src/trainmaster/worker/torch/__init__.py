"""Integration of the rendezvous with torchrun."""
