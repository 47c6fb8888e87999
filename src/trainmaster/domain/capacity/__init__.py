"""Units, pools and instance types."""
