"""Instance types, prices and quotas."""
