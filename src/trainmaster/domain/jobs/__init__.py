"""Jobs, attempts, and their transitions."""
