"""Policies that agree with a measurement."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield import InputError, make_policy
from meanfield.toolbox import LARGEST_SEED, check_memory, expect, single_policy, space_of, whole_number, words_of
from policy_extraction.measuring._active.explore import Exploration
from policy_extraction.measuring._active.goals import Goal
from policy_extraction.measuring._active.sampled import SampledExploration
from policy_extraction.measuring._doubt import Tails


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
    the goal are known less well.

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
    kind = SampledExploration if "answers" in policy else Exploration
    first, second = words_of(policy)
    found = kind(lambda states: states, space_of(policy), (first, second), Goal(policy.attrs["goal"]), 1.0)
    if isinstance(found, SampledExploration):
        found.counts = policy["answers"].values
    else:
        found.q = policy["q"].values
    found.order = np.flatnonzero(policy["asked"].values)
    found.keep(np.array(policy.attrs["posterior_parameters"], dtype=float))
    tails = Tails(policy.attrs["posterior_scale"])
    model = str(policy["model"].item())
    drawn = (found.draw(np.random.default_rng((seed, k)), tails) for k in range(n))
    return [make_policy(q, words_of(policy), model=model) for q in drawn]
