"""Numbers by which the literature describes agents, from a policy, beside the collective ones that follow from it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import minimize
from tqdm.auto import tqdm

import meanfield
from meanfield import InputError, core
from meanfield.toolbox import instance, labelled, space_of, stamp, words_of
from theory.naming_game._collective import collective_numbers, labels_of, stacked
from theory.naming_game._rules import Memories

COLUMNS = {
    "gain": "change of m' by the m of the words heard, at random memories",
    "own_gain": "change of m' by the m of its own words, at random memories",
    "bias": "m' at random memories",
    "coupling": "effective Ising coupling J",
    "field": "effective Ising field h, positive for the first word",
    "majority_force": "β of (1 + tanh(β m + h))/2 in the words heard",
    "adoption_known": "probability of the word just heard if it was remembered before",
    "adoption_new": "probability of the word just heard if it was not",
    "kappa": "κ of the group-size law",
    "n_critical": "group size at which the strong word wins with 95 %",
    "critical_mass": "fraction committed to the weak word that turns the population",
}
TEXTS = {
    "first_word": "first word",
    "strong_word": "strong word",
    "conventions": "attractors",
    "reason": "why numbers are missing",
}


def fingerprints(policies: xr.Dataset, *, progress: bool | None = None) -> xr.Dataset:
    """Numbers by which the literature describes agents, in one table with the results of their populations.

    m is the share of the first word minus the share of the second, and m' = 2 q(first word) - 1 the same for the
    words that an agent says.
    *Random memories* are full ones with all words equally likely and independent, as in an
    experiment that starts agents from a history drawn at random. It sees the choice of one agent, not its effect in a
    population.

    - `bias` = ⟨m'⟩ and `gain` = d⟨m'⟩/dm = ⟨m' Σ_k h_k⟩ over random memories, where h_k = ±1 is the word heard in
      interaction k; `own_gain` is the same with the words s_k that the agent said itself.
    - `coupling` J and `field` h of an Ising model with the same response: an agent who has long had partners with
      share m says m' = tanh(J m + h) to first order about m = 0, where its own words follow its policy. Without a field
      two conventions exist for J > 1.
    - `majority_force` β: the choice in random memories as (1 + tanh(β m + h))/2 in the words heard alone, by the least
      Kullback-Leibler divergence. Without a field there is order in a fully connected population for β > 1.
    - `adoption_known` and `adoption_new`, π and φ of a listener: the probability, over random memories, of saying the
      word just heard if it occurs elsewhere in the memory, and if it does not. A convention can grow in the minimal
      naming game for 3π - 2φ > 1.
    - `kappa`, `n_critical` and `strong_word` of `meanfield.group_size_law`, `critical_mass` of the weak word, and the
      attractors `conventions`. `reason` says why some of these are missing.

    Parameters
    ----------
    policies
        A policy of two words, or a stack over model and pair.
    progress
        Show a progress bar. Default: on a terminal. Memories of five interactions take a second or more each.

    Returns
    -------
    Dataset with these variables, over the dims of a stack; `to_dataframe()` is the table. J and h are NaN where
    agents say one word only, or have habits that they never leave, since their response then depends on the start. β
    is large without any meaning where the words heard decide for sure.

    Raises
    ------
    InputError
        If a policy has more than two words or is not valid.

    See Also
    --------
    fit_rule : which rule a model plays
    policy_extraction.listener : π and φ of a language model that answers yes or no

    Notes
    -----
    Sources: [arXiv 2606.22203] for the gain at a random start, [arXiv 2605.10528] for coupling and field,
    [arXiv 2409.02822] for β, [arXiv 2608.02178] for π and φ. The formulas here are for agents with a memory; for
    H = 1 and a response to the word heard they agree with the sources.

    Examples
    --------
    >>> from theory.naming_game import fingerprints, rule_policy
    >>> imitator = rule_policy("imitation", {"empty": 0, "bias": 0.2, "strength": 3}, ["A", "B"], memory_length=1)
    >>> table = fingerprints(imitator)
    >>> {name: table[name].round(3).item() for name in ("gain", "coupling", "field", "majority_force", "adoption_new")}
    {'gain': 0.904, 'coupling': 0.904, 'field': 0.018, 'majority_force': 1.5, 'adoption_new': 0.952}
    """
    several = list(meanfield.each_policy(instance("policies", policies, xr.Dataset)))
    for policy in several:
        if len(words := words_of(policy)) != 2:
            raise InputError(f"policies has a policy of {len(words)} words: expected 2")
    results, hidden = [], None if progress is None else not progress
    for policy in tqdm(several, desc="policies", disable=hidden, leave=False):
        found = _fingerprints(policy)
        columns: dict[str, tuple] = {name: ((), found[name], text) for name, text in COLUMNS.items()}
        columns |= {name: ((), found[name], text, "") for name, text in TEXTS.items()}
        results.append(labelled(columns).assign_coords(labels_of(policy)))
    return stamp(results[0] if len(results) == 1 else stacked(results), "fingerprints", policies)


def _fingerprints(policy: xr.Dataset) -> dict[str, Any]:
    space, words = space_of(policy), words_of(policy)
    q = policy["q"].values
    memories = Memories.of(space)
    q_full, own, heard = (values[-space.n_full :] for values in (q, *memories))
    said = q_full[:, 0] - q_full[:, 1]
    latest = heard[:, 0]
    others = np.column_stack([own, heard[:, 1:]])
    known = (others == latest[:, None]).any(1)
    adopted = (1 + said * latest) / 2
    collective = collective_numbers(policy, words, "")
    coupling, field = _ising(q) if collective["forgets"] else (np.nan, np.nan)
    return collective | {
        "first_word": words[0],
        "bias": said.mean(),
        "gain": (said * heard.sum(1)).mean(),
        "own_gain": (said * own.sum(1)).mean(),
        "coupling": coupling,
        "field": field,
        "majority_force": _majority_force(q_full[:, 0], heard.mean(1)),
        "adoption_known": adopted[known].mean(),
        "adoption_new": adopted[~known].mean(),
    }


def _ising(q: Float[np.ndarray, "states words"]) -> tuple[float, float]:
    """J and h with tanh(J m + h) for what agents say whose partners have the share m, to first order in m."""
    with jax.enable_x64(True):
        field, coupling = _log_odds(q)
    found = coupling.item(), field.item()
    return found if np.isfinite(found).all() else (np.nan, np.nan)


@jax.jit
def _log_odds(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Half the log-odds of the first word at m = 0, and its derivative in m."""

    def at(m: jax.Array) -> jax.Array:
        said = core.response(core.WordGame(q), (1 + jnp.stack([m, -m])) / 2)
        return (jnp.log(said[0]) - jnp.log(said[1])) / 2

    return jax.jvp(at, (jnp.zeros(()),), (jnp.ones(()),))


def _majority_force(first: np.ndarray, m: np.ndarray) -> float:
    """β of the likeliest (1 + tanh(β m + h))/2."""

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        logit = 2 * (parameters[0] * m + parameters[1])
        error = 2 * (0.5 * (1 + np.tanh(logit / 2)) - first)
        nats = first * np.logaddexp(0, -logit) + (1 - first) * np.logaddexp(0, logit)
        return nats.mean(), np.array([(error * m).mean(), error.mean()])

    return minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-10}).x[0]
