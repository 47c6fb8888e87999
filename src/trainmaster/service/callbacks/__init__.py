"""Executions of orchestrators that wait for jobs: entering their jobs, heartbeats, and the delivery of ends."""
