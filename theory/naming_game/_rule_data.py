"""Data to which a rule is fitted: probabilities of a policy, weighted by memory, or counted choices."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

import meanfield
from meanfield import InputError, MemorySpace, core
from meanfield.toolbox import canonical_order, real_numbers, shown, single_policy, space_of, words_of

ROUNDS = 30  # that the trajectory from empty memories is followed for, about as long as the papers' runs
VISITED, UNIFORM = "visited", "uniform"
Weights = str | xr.DataArray | np.ndarray


class Data(NamedTuple):
    """Choices by memory: numbers of them, or for a policy probabilities times the weights of memories."""

    words: tuple[str, ...]
    space: MemorySpace
    choices: Float[np.ndarray, "states two"]
    runs: Float[np.ndarray, "runs states two"] | None
    policy: xr.Dataset | None  # None for counts

    def folds(self, n: int, seed: int) -> Float[np.ndarray, "folds states two"]:
        """The choices held out together: whole runs, or else memories; the empty one is never held out with others."""
        random = np.random.default_rng(seed)
        if self.runs is not None:
            runs = self.runs[self.runs.sum((1, 2)) > 0]
            turn = random.permutation(len(runs)) % n
            return np.stack([runs[turn == fold].sum(0) for fold in range(min(n, len(runs)))])
        (seen,) = np.nonzero(self.choices[1:].sum(1))
        turn = np.full(len(self.choices), -1)
        turn[seen + 1] = random.permutation(len(seen)) % n
        return np.stack([self.choices * (turn == fold)[:, None] for fold in range(min(n, len(seen)))])


def policy_data(policy: xr.Dataset, weights: Weights) -> Data:
    """A policy of two words, each memory with its weight."""
    policy = single_policy(policy)
    words = words_of(policy)
    if len(words) != 2:
        raise InputError(f"data has {len(words)} words: expected 2 for a rule")
    space = space_of(policy)
    weight = _weights(policy, space, weights)
    if np.count_nonzero(weight[1:]) < 2:
        raise InputError(
            "weights = 'visited': agents have fewer than 2 memories that are not empty: expected more, or 'uniform'"
        )
    return Data(words, space, weight[:, None] * policy["q"].values, None, policy)


def check_weights(weights: object) -> None:
    """InputError unless these are weights of memories, for some number of them."""
    if isinstance(weights, str):
        if weights not in (VISITED, UNIFORM):
            raise InputError(f"weights = {weights!r}: expected '{VISITED}', '{UNIFORM}' or a number for each memory")
        return
    values = real_numbers(weights, "weights")
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any() or (values[1:] > 0).sum() < 2:
        raise InputError(
            f"weights = {shown(weights)}: expected '{VISITED}', '{UNIFORM}' or a number ≥ 0 for each memory, above 0 "
            "for 2 that are not empty"
        )


def _weights(policy: xr.Dataset, space: MemorySpace, weights: Weights) -> Float[np.ndarray, " states"]:
    if isinstance(weights, str):
        return visited(policy) if weights == VISITED else np.full(space.n_states, 1 / space.n_states)
    if isinstance(weights, xr.DataArray):
        weights = canonical_order(weights, "weights")
    values = np.asarray(weights, dtype=float)
    if len(values) != space.n_states:
        raise InputError(f"weights has {len(values)} numbers: expected one for each of {space.n_states} memories")
    return values / values.sum()


def visited(policy: xr.Dataset) -> Float[np.ndarray, " states"]:
    """Fraction of agents in each state: half over 30 rounds from empty memories, half at the fixed points.

    Those are the attractors and marginal points, with equal weights.
    """
    with jax.enable_x64(True):
        weight = np.asarray(_mean_composition(policy["q"].values))
    points = meanfield.fixed_points(policy)
    there = points["composition"].values[points["stability"].values != "unstable"]
    weight = np.clip(0.5 * (weight + there.mean(0)) if len(there) else weight, 0, None)
    return weight / weight.sum()


@jax.jit
def _mean_composition(q: jax.Array) -> jax.Array:
    game = core.WordGame(q)
    times = np.linspace(0, meanfield.TIME_PER_ROUND * ROUNDS, 2 * ROUNDS + 1)
    return core.trajectory(game, core.empty_memories(game), times).observed.mean(0)


def count_data(counts: xr.DataArray) -> Data:
    """Counts of choices by memory and word, and by run if there are several runs."""
    dims = {*counts.dims}
    if not {"state", "word"} <= dims <= {"state", "word", "run"}:
        raise InputError(f"data has the dims {', '.join(map(str, counts.dims))}: expected state and word, or also run")
    counts = canonical_order(counts, "data").transpose("run", "state", "word", missing_dims="ignore")
    if counts.sizes["word"] != 2:
        raise InputError(f"data has {counts.sizes['word']} words: expected 2 for a rule")
    values: Int[np.ndarray, ...] | Float[np.ndarray, ...] = real_numbers(counts.values, "data").astype(float)
    wrong = values[~(np.isfinite(values) & (values >= 0) & (values == np.floor(values)))]
    if wrong.size:
        raise InputError(f"data has the entry {wrong[0]}: expected whole numbers of choices ≥ 0")
    space = MemorySpace.from_sizes(counts.sizes["state"], 2)
    runs = values if values.ndim == 3 else None
    choices = values if runs is None else runs.sum(0)
    if np.count_nonzero(choices[1:].sum(1)) < 2:
        raise InputError("data has choices in fewer than 2 memories that are not empty: expected more")
    if runs is not None and np.count_nonzero(runs.sum((1, 2))) < 2:
        raise InputError("data has choices in fewer than 2 runs: expected more, or counts without the dim run")
    words = tuple(str(word) for word in counts["word"].values) if "word" in counts.coords else ("0", "1")
    return Data(words, space, choices, runs, None)
