"""Texts, JSON and folders, for all inner rooms."""
