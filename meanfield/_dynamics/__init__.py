"""What the rate equation does in time: solutions, recurrence, basins of attraction."""
