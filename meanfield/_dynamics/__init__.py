"""The rate equation in time: solutions, recurrence, basins of attraction."""
