"""Orders inside a priority."""
