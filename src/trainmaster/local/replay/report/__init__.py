"""Results, figures, tables and pictures of replays."""
