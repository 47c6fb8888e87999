"""Joins the logs and the metrics of a job's attempts, for the readers of both SDKs."""
