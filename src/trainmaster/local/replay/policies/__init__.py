"""Reference policies."""
