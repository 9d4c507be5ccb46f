"""Published measurements: found locally, in the cache, or downloaded from their upstream."""
