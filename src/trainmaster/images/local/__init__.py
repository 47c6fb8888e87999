"""In-memory stores of image jobs, for tests, replay and the local stack."""
