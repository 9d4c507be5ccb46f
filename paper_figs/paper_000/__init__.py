"""Figures and tables of [000], and those of [001] that are the same."""
