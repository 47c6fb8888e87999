"""Commands for pools and settings."""
