"""[003] Fig. D1: a norm that nobody starts with, and that agents find in what they see."""

from __future__ import annotations

import xarray as xr

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs.paper_003._emergence import draw, emerging
from theory.norms import Behaviour

HEALTHY = Behaviour(
    "maintain a healthy environment",
    "injunctive",
    90,
    {"for": "Keep the café a healthy place.", "against": "Nobody need care for the café."},
    {"for": "opens a window and clears the table", "against": "leaves litter and stale air behind"},
)
# Nobody is an entrepreneur for it. Preferences as for smoking, the behaviour whose descriptions speak of health.
FRACTIONS = {("ordinary", "for"): 0.7, ("ordinary", "against"): 0.3}


def numbers(study: Study) -> xr.Dataset:
    """Societies in which no agent holds the norm at the start."""
    return emerging(study, [HEALTHY], FRACTIONS)


ITEMS = [
    Item(
        "003",
        "D1",
        "A norm without entrepreneurs",
        "(a) Conflicts, thoughts and chats over two days; (b) the shares that accept and comply with 'maintain a "
        "healthy environment', which no description names and no entrepreneur creates, in all of five runs.",
        numbers,
        draw,
        "In the model talks about one norm don't suggest another. Here agents find it in thoughts about what others "
        "do out of habit, with our probability of 0.002 a thought, which begins at a random time; 7 of 10 agents "
        "like it, as they dislike smoking, which is our assumption. So it emerges in about two of three "
        "simulated societies by day 2, the opposite in one of five; the rate equation has all of them accept it.",
    )
]
