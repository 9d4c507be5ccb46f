"""Policies that agree with a measurement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from meanfield import InputError, make_policy
from meanfield.toolbox import LARGEST_SEED, check_memory, expect, single_policy, space_of, whole_number, words_of
from policy_extraction.measuring._active.explore import choices
from policy_extraction.measuring._active.explore import posterior_of as exact_posterior
from policy_extraction.measuring._active.features import features, mirror_pairs
from policy_extraction.measuring._active.marginal_likelihood import SPREAD
from policy_extraction.measuring._active.noisy import Joint, noisy_posterior, paired_counts, sites_of
from policy_extraction.measuring._active.posterior import odd_even, probits
from policy_extraction.measuring._active.tails import Tails


def sample_policies(policy: xr.Dataset, n: int, seed: int) -> list[xr.Dataset]:
    """Draw `n` policies that agree with what `measure` asked: intervals for every analysis.

    Parameters
    ----------
    policy
        Result of `measure`.
    n
        Number of policies, ≥ 1.
    seed
        0 to 2^63 - 1. The first 10 of 100 are the 10.

    Returns
    -------
    `n` policies with `q` (state, word), drawn from the posterior. All have the measured probabilities where a memory
    was asked, but not where answers were sampled. Draws are as wide as predictions of single memories turned out to
    need, which were drawn by their weight in the goal; `goal_widening` is not in them. Memories that hardly matter for
    the goal are known less well: of all that were not asked 81 to 90 % were inside 95 % of the draws of SmolLM2's
    {his, her}, H = 5 and 7.

    Raises
    ------
    InputError
        If `policy` is no result of `measure`, or a number is out of range.

    See Also
    --------
    measure : the measurement

    Examples
    --------
    >>> from policy_extraction import measure, sample_policies
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     lead = sum(1 if heard == "his" else -1 for said, heard in memory)
    ...     his = 1 / (1 + np.exp(-0.2 - 0.5 * lead))
    ...     return {"his": his, "her": 1 - his}
    >>> table = TableBackend(law, ("his", "her"), memory_length=3)
    >>> policy = measure(table, words=("his", "her"), memory_length=3, temperature=1.0, budget=80)
    >>> draws = xr.concat(sample_policies(policy, 4, seed=1), "draw")
    >>> bool((draws["q"].std("draw").max("word") == 0).equals(policy["asked"]))
    True
    """
    policy = single_policy(expect(policy, "measured", "policy"))
    if "posterior_parameters" not in policy.attrs:
        raise InputError("policy: expected the result of policy_extraction.measure, but its attrs are gone")
    n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    check_memory(8 * n * policy["q"].size, f"n = {n}", "fewer draws")
    q, asked, space = policy["q"].values, policy["asked"].values, space_of(policy)
    pairs = mirror_pairs(space)
    measured = np.flatnonzero(asked[pairs].all(axis=1))
    parameters = np.array(policy.attrs["posterior_parameters"], dtype=float).reshape(-1, 2, len(SPREAD))
    every = features(space).at(pairs[:, 0])
    posterior_of: Callable[..., Joint]
    if "answers" in policy:
        known = sites_of(parameters[0], every, measured, paired_counts(policy["answers"].values, pairs, measured))
        posterior_of = partial(noisy_posterior, every=every, asked=measured, known=known)
        asked = np.zeros_like(asked)
    else:
        posterior_of = partial(
            exact_posterior, every=every, asked=measured, parts=odd_even(probits(q[pairs[measured]]))
        )
    scales, freedoms = (np.atleast_1d(policy.attrs[f"posterior_{name}"]) for name in ("scale", "freedom"))
    tails = (Tails(scales[0], freedoms[0]), Tails(scales[1], freedoms[1]))
    model = str(policy["model"].item())
    random = [np.random.default_rng((seed, k)) for k in range(n)]
    which = np.array([each.integers(len(parameters)) for each in random])
    drawn = {}
    for j in np.unique(which):
        posterior = posterior_of(parameters[j])
        for k in np.flatnonzero(which == j).tolist():
            q_drawn = choices(posterior.draw(random[k], tails), pairs, asked, q)
            drawn[k] = make_policy(q_drawn, words_of(policy), model=model)
    return [drawn[k] for k in range(n)]
