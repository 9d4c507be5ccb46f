"""Flags, their crops, and how far each crop favours each country."""
