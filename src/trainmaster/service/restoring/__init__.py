"""Restores: a table that was set back in time is compared with SageMaker, and differences are adopted."""
