"""What the size of a population does: moments, noise, the path across a saddle, the group-size law."""
