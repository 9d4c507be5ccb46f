"""Figures of [003], by number."""
