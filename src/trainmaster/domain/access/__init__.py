"""Callers of the API and of the queues, and what each may do."""
