"""Flags, their crops, and how much each crop favours each country."""
