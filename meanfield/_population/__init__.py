"""Who the agents are and how they move: memories, policies, populations, reaction tensor, drift."""
