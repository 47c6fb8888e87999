"""Training scripts as local processes."""
