"""Features found by models: placed, de-duplicated, merged, written."""
