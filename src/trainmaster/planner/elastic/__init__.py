"""Scale up and scale down of elastic jobs."""
