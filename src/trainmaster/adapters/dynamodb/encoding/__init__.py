"""The encoding of rows' texts."""
