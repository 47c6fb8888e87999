"""The order `gittins`: pure parts, each on its own, and the ranking that they make up (docs/explanation/gittins.md)."""
