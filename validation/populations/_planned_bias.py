"""The chance that a planned run ends at a word: from κ, a policy, or simulated runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri

from meanfield import InputError, each_policy, group_size_law
from meanfield.toolbox import canonical_order, name_of, one_or_several, real_number, single_policy, words_of
from validation._engine.arguments import name_in, population_sizes


class Bias(NamedTuple):
    """The chance that a run of N agents ends at `word`, if it ends at any; '' is the strong word of a number κ."""

    n_agents: int
    kappa: float
    chance: float
    undecided: float
    model: str = ""
    pair: str = ""
    word: str = ""


class Rival(NamedTuple):
    """The bias to exclude: κ for `word` of `words`, or without words for that of the bias itself."""

    kappa: float
    word: str = ""
    words: tuple[str, ...] = ()

    def kappa_for(self, bias: Bias) -> float:
        """κ for the word of the bias: of two words, what favours one disfavours the other."""
        if not self.words or not bias.word:
            return self.kappa
        if sorted(self.words) != sorted(bias.pair.split("/")):
            raise InputError(f"against has the words {', '.join(self.words)}: expected {bias.pair}, as the bias has")
        return self.kappa if self.word == bias.word else -self.kappa


def chance_of(kappa: float, n_agents: int) -> float:
    """Φ(κ√N), the group-size law."""
    return float(ndtr(kappa * np.sqrt(n_agents)))


def rival(against: float | xr.Dataset) -> Rival:
    if not isinstance(against, xr.Dataset):
        return Rival(real_number("against", against))
    policy = single_policy(against, "against")
    return Rival(*_law(policy), words_of(policy))


def biases(bias: object, n_agents: int | Sequence[int] | None, undecided: float) -> list[Bias]:
    """One for each κ, policy or simulated bias, and each population size."""
    undecided = real_number("undecided", undecided, least=0)
    if undecided >= 1:
        raise InputError(f"undecided = {undecided}: expected a probability from 0 to below 1")
    if isinstance(bias, xr.Dataset) and bias.attrs.get("kind") == "collective_bias":
        if n_agents is not None or undecided:
            raise InputError("bias was simulated: expected neither n_agents nor undecided, which it has itself")
        return _simulated(bias)
    sizes = population_sizes(n_agents)  # type: ignore[arg-type]
    given = one_or_several(bias)
    if not given:
        raise InputError("bias is empty: expected a number κ, or policies")
    if any(isinstance(one, xr.Dataset) for one in given):
        known = [_of_policy(policy) for policy in each_policy(given)]
    else:
        known = [(real_number("bias", kappa), ()) for kappa in given]
    return [Bias(n, kappa, chance_of(kappa, n), undecided, *names) for kappa, names in known for n in sizes]


def _of_policy(policy: xr.Dataset) -> tuple[float, tuple[str, ...]]:
    kappa, word = _law(policy)
    return kappa, (name_in(policy, "model"), "/".join(words_of(policy)), word)


def _law(policy: xr.Dataset) -> tuple[float, str]:
    """κ and the strong word; InputError without a law."""
    law = group_size_law(policy, n_agents=2)
    if law["attractors"].item() != 2:
        advice = "expected one with a law, or validation.naming_game.simulated_bias of its runs"
        raise InputError(f"{name_of(policy)} has no group-size law of two attractors ({law.attrs['reason']}): {advice}")
    kappa, word = law["kappa"].item(), str(law["strong_word"].item())
    return kappa, word


def _simulated(bias: xr.Dataset) -> list[Bias]:
    bias = canonical_order(bias, "bias")
    bias = bias.expand_dims([dim for dim in ("pair", "n_agents") if dim not in bias.dims])
    bias = bias.transpose("pair", "n_agents", ...)
    found = []
    for place in np.ndindex(bias["simulated"].shape):
        one = bias.isel(dict(zip(("pair", "n_agents"), place, strict=True)))
        n, undecided = int(one["n_agents"].item()), float(one["no_consensus"].item())
        names = (name_in(one, "model"), "/".join(words_of(one)), str(one["strong_word"].item()))
        if not undecided < 1:
            raise InputError(f"bias has no simulated run of {names[1]} that agrees, N = {n}: expected some")
        chance = min(one["simulated"].item() / (1 - undecided), 1.0)
        found.append(Bias(n, float(ndtri(chance) / np.sqrt(n)), chance, undecided, *names))
    return found
