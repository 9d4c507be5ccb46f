"""Rare events among many agents: the likeliest way out of an attractor, and how long it takes."""
