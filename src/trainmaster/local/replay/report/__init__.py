"""Figures and pictures of a replay."""
