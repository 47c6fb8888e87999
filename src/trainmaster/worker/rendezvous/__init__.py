"""Rendezvous of the nodes of an elastic job."""
