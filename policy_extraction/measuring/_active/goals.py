"""Goals of a measurement: a collective quantity of a policy of two words, and its derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import ConvergenceError, InputError, critical_mass, fixed_points, group_size_law, sensitivity, solve
from meanfield.toolbox import words_of

GOALS = ("kappa", "strong word", "eigenvalue", "critical_mass", "word_share")


class Quantity(NamedTuple):
    """A collective quantity.

    Parameters
    ----------
    name
        'kappa', 'eigenvalue', 'critical_mass' or 'word_share'; '' if the policy has none.
    value
        Its value, NaN without one; κ is negative if the second word is strong.
    strong
        The word that is more frequent where large populations with empty memories come to; with a single attractor
        'mixed' if it is no consensus; '' if it is not known.
    at
        Number of the fixed point that they come to.
    """

    name: str
    value: float
    strong: str
    at: int = 0


NOTHING = Quantity("", np.nan, "")


@dataclass(frozen=True)
class Goal:
    """A quantity to be known.

    'kappa' and 'strong word' are about κ of the group-size law. A policy with a single attractor has no κ, and then the
    share of the first word there takes its place. 'eigenvalue' and 'word_share' are those of the attractor to which
    large populations with empty memories come, 'critical_mass' is that of agents committed to `word`.
    """

    name: str
    word: str | None = None

    def of(self, policy: xr.Dataset, only: str = "") -> Quantity:
        """The quantity of a policy; `NOTHING` if it is not defined or not found, or not the one of this name.

        Computing κ takes longest, so a policy of which something else is asked is not searched for it.
        """
        try:
            return self._of(policy, only)
        except (InputError, ConvergenceError):
            return NOTHING

    def _of(self, policy: xr.Dataset, only: str) -> Quantity:
        if self.name == "critical_mass":
            found = critical_mass(policy, word=str(self.word))
            fold = found.attrs["transition"] == "fold"
            return Quantity(self.name, found["critical_mass"].item(), "") if fold else NOTHING
        points = fixed_points(policy)
        stability = points["stability"].values.tolist()
        if stability == ["stable", "unstable", "stable"]:
            if self.name in ("kappa", "strong word") and only == "word_share":
                return NOTHING
            law = group_size_law(policy)
            if not law.attrs["applies"] or np.isinf(law["kappa"].item()):
                return NOTHING
            at = _reached(policy, points, law["strong_word"].item())
            strong = words_of(policy)[at // 2]
            if self.name in ("kappa", "strong word"):
                return Quantity("kappa", law["kappa"].item() * (1 if at == 0 else -1), strong, at)
        elif stability.count("stable") == 1 and "marginal" not in stability:
            at = stability.index("stable")
            strong = str(points["convention"].values[at])
        else:
            return NOTHING
        point = points.isel(fixed_point=at)
        if self.name == "eigenvalue":
            return Quantity(self.name, point["eigenvalue"].item(), strong, at)
        return Quantity("word_share", point["word_share"].sel(word=words_of(policy)[0]).item(), strong, at)

    def derivatives(self, policy: xr.Dataset, quantity: Quantity) -> np.ndarray | None:
        """Derivatives by the first word's probability in each memory, shape (S,); None without them."""
        try:
            if quantity.name in ("eigenvalue", "word_share"):
                found = sensitivity(policy, of=quantity.name, fixed_point=quantity.at)
            elif quantity.name == "critical_mass":
                found = sensitivity(policy, of=quantity.name, word=self.word)
            elif quantity.name == "kappa":
                found = sensitivity(policy, of="kappa")
            else:
                return None
        except (InputError, ConvergenceError):
            return None
        slopes = found["derivative"].values * (np.sign(quantity.value) if quantity.name == "kappa" else 1)
        return slopes if np.isfinite(slopes).all() else None


def _reached(policy: xr.Dataset, points: xr.Dataset, strong: str) -> int:
    """The number of the attractor, 0 or 2, that large populations with empty memories come to."""
    conventions = points["convention"].values.tolist()
    if conventions[0] != conventions[2]:
        return 0 if strong == conventions[0] else 2
    first = words_of(policy)[0]
    end = solve(policy)["word_share"].sel(word=first).isel(time=-1).item()
    return 0 if end > points["word_share"].sel(word=first).values[1] else 2
