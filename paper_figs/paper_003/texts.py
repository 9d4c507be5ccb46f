"""[003] Fig. 1, A1, A2 and B1 to B12: a diagram and texts, with nothing to compute."""

from __future__ import annotations

from paper_figs._item import Item

ITEMS = [
    Item(
        "003",
        "1",
        "The architecture",
        "A diagram of how norms are created, spread, evaluated and complied with.",
        reason="it is a diagram without numbers; the reaction model theory.norms.reaction_model is our version of it",
    ),
    Item(
        "003",
        "A1",
        "Descriptions of agents (Figs. A1 and A2)",
        "The descriptions of seven ordinary agents and three norm entrepreneurs.",
        reason="they are texts; theory.norms.AGENTS holds the ten agents with their preferences, in our own words",
    ),
    Item(
        "003",
        "B1",
        "Prompts (Figs. B1 to B12)",
        "Sketches of the prompts for the twelve operations of a language model.",
        reason="they are texts; policy_extraction.norms has prompts of our own for the same operations",
    ),
]
