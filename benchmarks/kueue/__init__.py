"""The load of Kueue's published baseline, on the shipped queue."""
