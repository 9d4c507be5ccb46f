"""Drawing results: the door, the panels, the colours of words; `views` holds the drawings."""
