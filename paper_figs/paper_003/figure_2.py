"""[003] Fig. 2: conflicts, thoughts and chats over time, and the shares that accept and comply with three norms."""

from __future__ import annotations

import xarray as xr

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs.paper_003._emergence import draw, emerging
from theory.norms import BEHAVIOURS


def numbers(study: Study) -> xr.Dataset:
    """Societies of the ten agents, one norm at a time."""
    return emerging(study, list(BEHAVIOURS.values()))


ITEMS = [
    Item(
        "003",
        "2",
        "Emergence of three norms",
        "(a) The number of conflicts, thoughts and chats over two days; (b) the shares of ten agents that accept and "
        "that comply with 'no smoking indoors', 'be quiet in public' and 'tipping after meals', in five runs.",
        numbers,
        draw,
        "The paper prints no probabilities of its agents' operations: ours, chosen by hand to give its findings, "
        "drive 1,000 simulated societies of ten agents and the rate equation. Not all agents comply by the end of "
        "day 2 (95 to 96 % with the injunctive norms; the paper has 100 %), because one rate of plans can't "
        "give both its times; tipping loses one run in four (the paper: none in five).",
    )
]
