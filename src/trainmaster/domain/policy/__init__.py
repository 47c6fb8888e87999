"""The settings that a queue decides by."""
