"""The general reaction model of low rank: its drift, solutions and fixed points."""
