"""Texts, JSON and folders, for all inner packages."""
