"""In-memory stores."""
