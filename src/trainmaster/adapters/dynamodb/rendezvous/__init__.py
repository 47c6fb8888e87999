"""The table of the rendezvous: the queue's side of its rows, and the secrets of runs."""
