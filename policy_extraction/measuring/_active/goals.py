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

    `strong` is the word that is more frequent where large populations with empty memories come to; with a single
    attractor 'mixed' if it is not a consensus; '' if it is not known.
    """

    name: str  # 'kappa', 'eigenvalue', 'critical_mass' or 'word_share'; '' if the policy has none
    value: float  # NaN without one; κ is negative if the second word is strong
    strong: str
    at: int = 0  # number of the fixed point that they come to


NOTHING = Quantity("", np.nan, "")


@dataclass(frozen=True)
class Goal:
    """A quantity to be known.

    'kappa' and 'strong word' are about κ of the group-size law. A policy with a single attractor has no κ, and then the
    share of the first word there takes its place. 'eigenvalue' and 'word_share' belong to the attractor to which
    large populations with empty memories come, 'critical_mass' to agents committed to `word`.
    """

    name: str
    word: str | None = None

    def of(self, policy: xr.Dataset, only: str = "") -> Quantity:
        """The quantity of a policy; `NOTHING` if it is not defined or not found, or not the one of this name.

        Computing κ takes longest, so it is computed only where it is asked for.
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
        points, words = fixed_points(policy), words_of(policy)
        stability, conventions = (points[name].values.tolist() for name in ("stability", "convention"))
        share = points["word_share"].sel(word=words[0]).values
        if stability == ["stable", "unstable", "stable"]:
            if self.name in ("kappa", "strong word") and only == "word_share":
                return NOTHING
            law = group_size_law(policy)
            if not law.attrs["applies"] or np.isinf(law["kappa"].item()):
                return NOTHING
            at = 0 if law["strong_word"].item() == conventions[0] else 2
            if conventions[0] == conventions[2]:
                end = solve(policy)["word_share"].sel(word=words[0]).isel(time=-1).item()
                at = 0 if end > share[1] else 2
            strong = words[at // 2]
            if self.name in ("kappa", "strong word"):
                return Quantity("kappa", law["kappa"].item() * (1 if at == 0 else -1), strong, at)
        elif stability.count("stable") == 1 and "marginal" not in stability:
            at = stability.index("stable")
            strong = str(conventions[at])
        else:
            return NOTHING
        if self.name == "eigenvalue":
            return Quantity(self.name, points["eigenvalue"].values[at].item(), strong, at)
        return Quantity("word_share", share[at].item(), strong, at)

    def derivatives(self, policy: xr.Dataset, quantity: Quantity) -> np.ndarray | None:
        """Derivatives with respect to the first word's probability in each memory, shape (S,); None without them."""
        if not quantity.name:
            return None
        at = {"kappa": {}, "critical_mass": {"word": self.word}}.get(quantity.name, {"fixed_point": quantity.at})
        try:
            slopes = sensitivity(policy, of=quantity.name, **at)["derivative"].values
        except (InputError, ConvergenceError):
            return None
        slopes = np.sign(quantity.value) * slopes if quantity.name == "kappa" else slopes
        return slopes if np.isfinite(slopes).all() else None
