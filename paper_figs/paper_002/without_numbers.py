"""[002] Fig. 7 and Table 1, which hold no numbers."""

from __future__ import annotations

from paper_figs._item import Item

ITEMS = [
    Item(
        "002",
        "7",
        "The social funnel",
        "Population phenomena above interactions, psychology of single agents and mechanisms inside a model.",
        reason="it is a diagram and holds no numbers",
    ),
    Item(
        "002",
        "Table 1",
        "Control variables",
        "The five controls: N, α, m, composition of the team, and protocol.",
        reason="it holds no numbers; arguments of validation.flag_game.simulate_gossip are these controls",
    ),
]
