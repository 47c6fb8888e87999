"""Everything that AWS permits SageMaker to do to its callers, between the clients and the ideal engine."""
