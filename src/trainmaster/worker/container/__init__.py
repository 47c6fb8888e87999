"""The container's entry point and its processes."""
