"""Effects of the size of a population: moments, noise, the path across a saddle, the group-size law."""
