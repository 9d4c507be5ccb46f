"""Rare events among many agents: the likeliest escape path from an attractor, and how long it takes."""
