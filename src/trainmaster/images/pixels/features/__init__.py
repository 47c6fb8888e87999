"""Features found by models: their positions, duplicates, merging and storage."""
