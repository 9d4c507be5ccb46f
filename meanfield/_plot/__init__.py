"""Drawing results: `plot`, the panels, the colours of words; `views` holds the drawings."""
