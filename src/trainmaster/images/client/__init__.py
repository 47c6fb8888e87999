"""The client's types for image jobs."""
