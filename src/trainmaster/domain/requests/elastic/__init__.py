"""Sizes of elastic jobs in requests: bounds, rules, lists of values, and requests at another size."""
