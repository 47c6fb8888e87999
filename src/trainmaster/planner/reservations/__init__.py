"""Expected ends, reservations and backfill."""
