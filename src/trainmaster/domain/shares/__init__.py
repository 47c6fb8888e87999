"""Entitlements, usage and budgets of shares."""
