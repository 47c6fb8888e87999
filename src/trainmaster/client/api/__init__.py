"""HTTP client of the queue's API."""
