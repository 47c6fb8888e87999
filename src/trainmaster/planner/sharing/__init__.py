"""Shares: entitlements, holdings, limits, turns."""
