"""Image jobs in the client."""
