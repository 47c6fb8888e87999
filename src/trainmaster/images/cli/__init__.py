"""Image jobs on the command line."""
