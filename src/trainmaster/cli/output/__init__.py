"""Tables, progress lines and sentences that commands print."""
