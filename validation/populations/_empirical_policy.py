"""A policy estimated from how often agents chose each word in each memory state, and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, softmax

from meanfield import InputError, MemorySpace, make_policy
from meanfield.toolbox import LARGEST_SEED, check_memory, expect, single_policy, whole_number, words_of
from validation.populations._choices import Choices

MOST_STATES = 1_000_000
MOST_PRINTED = 10**15
PASSES = 8  # of the alternation between centres and concentrations; it settles to a percent within five
# A level with few states says little of its concentration; without a prior it would run to 0 or to infinity. The mean
# is that with which choices of held-out runs are best foretold, of coins and of strict agents alike.
LOG_CONCENTRATION_MEAN, LOG_CONCENTRATION_SD = 3.0, 2.0  # 20 choices, and a factor of 7
LOG_CONCENTRATION_BOUNDS = (-6.0, 8.0)
LEAST_COUNT = 1e-300  # of a prior, where the logarithm of its gamma function is finite


def empirical_policy(counts: pd.DataFrame, *, words: Sequence[str] | None = None) -> xr.Dataset:
    """Estimate the policy of agents whose choices were counted, with its posterior distribution.

    Memories with a common recent part form a tree: the parent of a memory is the memory without its oldest
    interaction. Choice probabilities of a child are Dirichlet around its parent's,

        q(s) ~ Dir(c_h m(parent of s)),    alpha(s) = n(s) + c_h m(parent of s),

    so a state seen often keeps its own frequencies, and one never seen takes them from the most similar states that
    were seen. A child with n choices informs its parent like n (1 + c) / (n + c) independent ones (the variance of a
    Dirichlet-multinomial fraction). The concentrations c_h, one for each length of full memories' recent parts
    (`concentration_recent`) and of memories that are still that short (`concentration_short`), maximise the marginal
    likelihood times a broad log-normal prior around 20, and are fixed in the posterior. The uncertainty of a centre
    widens the distribution of the states around it. Sources: MacKay and Peto 1995, Nat. Lang. Eng. 1, 289; Teh 2006,
    ACL, 985.

    Parameters
    ----------
    counts
        Columns model, options, memory_length, state, choice, count, as in `meanfield.datasets.ai_norms` (`state` is
        "own,partner|own,partner|…", oldest first; '' when empty), for one model, options and memory length.
    words
        The words in the wanted order. Default: the order in `options`, which are joined by underscores.

    Returns
    -------
    Policy Dataset with `q` (state, word), the posterior mean, `alpha` (state, word), the posterior counts of the
    Dirichlet distribution, `choice_count` (state, word), the number of choices of each word, `observed` (state), their
    sum, and `concentration_recent` and `concentration_short` (length).

    Raises
    ------
    InputError
        If the table is damaged or holds several policies, or there are too many states to tabulate.

    See Also
    --------
    sample_policies : its posterior
    theory.naming_game.fit_rule : which simple rule they play, of `policy["choice_count"]`
    meanfield.make_policy : from known probabilities

    Examples
    --------
    Choices of agents who remember one interaction:

    >>> counts = pd.DataFrame({"state": ["", "", "A,A", "B,B"], "choice": list("ABAB"), "count": [12, 8, 30, 5]})
    >>> counts = counts.assign(model="m", options="A_B", memory_length=1)
    >>> policy = validation.populations.empirical_policy(counts)
    >>> [policy["q"].sel(word="A").values.round(2), policy["observed"].values]  # nothing, A,A, A,B, B,A, B,B
    [array([0.59, 0.99, 0.58, 0.58, 0.04]), array([20, 30,  0,  0,  5])]
    """
    choices = Choices.of_table(counts, words)
    if reason := why_not_tabulable(len(choices.words), choices.memory_length):
        raise InputError(reason)
    return estimated_policy(choices, str(counts["model"].iloc[0]))


def estimated_policy(choices: Choices, model: str) -> xr.Dataset:
    """The policy of `empirical_policy` from choices."""
    space, n = MemorySpace(len(choices.words), choices.memory_length), choices.counts()
    alpha, (recent, short) = posterior(n, space)
    attrs = {
        "estimator": "hierarchical Dirichlet back-off to memories without their oldest interaction",
        "concentrations": "maximum of the marginal likelihood times a log-normal prior (empirical Bayes)",
        "choices": int(n.sum()),
        "states_seen": int((n.sum(1) > 0).sum()),
    }
    policy = make_policy(mean_of(alpha), choices.words, model=model, attrs=attrs)
    policy["alpha"] = (("state", "word"), alpha, {"long_name": "posterior counts (Dirichlet)", "units": "1"})
    policy["choice_count"] = (("state", "word"), n.astype(int), {"long_name": "choices", "units": "1"})
    policy["observed"] = ("state", n.sum(1).astype(int), {"long_name": "choices seen in the state", "units": "1"})
    policy = policy.assign_coords(length=np.arange(space.memory_length + 1))
    for name, values in (("concentration_recent", recent), ("concentration_short", short)):
        policy[name] = ("length", values, {"long_name": "Dirichlet concentration", "units": "1"})
    return policy


def sample_policies(policy: xr.Dataset, n: int, seed: int) -> list[xr.Dataset]:
    """Draw `n` policies from the posterior of an empirical policy.

    Parameters
    ----------
    policy
        Result of `empirical_policy`.
    n
        Number of policies, ≥ 1.
    seed
        0 to 2^63 - 1. The first 10 of 100 are the 10.

    Returns
    -------
    `n` policies with `q` (state, word), each row drawn from Dir(alpha).

    Raises
    ------
    InputError
        If the policy has no `alpha`, or a number is out of range.

    See Also
    --------
    empirical_policy : makes the posterior

    Examples
    --------
    >>> counts = pd.DataFrame({"state": ["", "", "A,A", "B,B"], "choice": list("ABAB"), "count": [12, 8, 30, 5]})
    >>> policy = validation.populations.empirical_policy(counts.assign(model="m", options="A_B", memory_length=1))
    >>> draws = xr.concat(validation.populations.sample_policies(policy, 50, seed=1), "draw")
    >>> (draws["q"].sel(word="A").std("draw") > 0.2).values  # unknown: memories that nobody had
    array([False, False,  True,  True, False])
    """
    policy = single_policy(expect(policy, "empirical_policy", "policy"))
    n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    check_memory(8 * n * policy["alpha"].size, f"n = {n}", "fewer draws")
    model = str(policy["model"].item()) if "model" in policy.coords else None
    alpha, drawn = policy["alpha"].values, []
    for random in (np.random.default_rng((seed, k)) for k in range(n)):
        # Parameters may be so small that every gamma variate underflows: log Gamma(a) = log Gamma(a + 1) + log(U) / a
        logs = np.log(random.standard_gamma(alpha + 1)) + np.log1p(-random.random(alpha.shape)) / alpha
        drawn.append(make_policy(softmax(logs, axis=1), words_of(policy), model=model))
    return drawn


def why_not_tabulable(n_words: int, memory_length: int) -> str:
    """'' if a table can hold all memory states."""
    n_states = MemorySpace(n_words, memory_length).n_states
    if n_states <= MOST_STATES:
        return ""
    number = f"{n_states:,}" if n_states < MOST_PRINTED else f"more than 10^{len(str(n_states)) - 1}"
    have = f"{n_words} words with memory_length = {memory_length} have {number} memory states"
    return f"{have}: expected at most {MOST_STATES:,}, more cannot be tabulated"


def mean_of(alpha: np.ndarray) -> np.ndarray:
    """Mean of a Dirichlet distribution in each row."""
    return alpha / alpha.sum(1, keepdims=True)


def posterior(
    n: np.ndarray, space: MemorySpace, known: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Posterior counts (state, word), and concentrations by length of the recent part and of short memories.

    Known concentrations are kept, which is 20 times faster.
    """
    H, n_words = space.memory_length, n.shape[1]
    # By length of the memory. The oldest interaction is the most significant digit, so that it is the first axis.
    own = np.split(n, [space.offset(h) for h in range(1, H + 1)])
    # The root has the uniform distribution as its parent, and memories of length H are never short of it.
    recent, short = (np.append(n_words / 2, np.ones(H)), np.append(np.ones(H), np.nan)) if known is None else known
    pooled, parents, centres = own, own, own
    for _ in range(PASSES if known is None else 1):
        # Evidence of each memory and all that end with it, in independent choices
        pooled = own[H:]
        for h in reversed(range(H)):
            below = _informative(pooled[0], recent[h + 1]).reshape(-1, len(own[h]), n_words).sum(0)
            pooled = [_informative(own[h], short[h]) + below, *pooled]
        parents, centres = [np.full((1, n_words), 1 / n_words)], []
        for h in range(H + 1):
            if known is None and h > 0:
                recent[h] = concentration(pooled[h], parents[h])
            centres.append(mean_of(pooled[h] + recent[h] * parents[h]))
            parents.append(np.tile(centres[h], (n_words**2, 1)))
            if known is None and h < H:
                short[h] = concentration(own[h], centres[h])
    # The posterior counts of each state are widened by the uncertainty of its centre.
    alpha = []
    worth = np.full(1, np.inf)  # of the parents: independent choices that their centre is worth
    for h in range(H):
        total = pooled[h].sum(1) + _passed_on(recent[h], worth)
        alpha.append(own[h] + _passed_on(short[h], total)[:, None] * centres[h])
        worth = np.tile(total, n_words**2)
    alpha.append(own[H] + _passed_on(recent[H], worth)[:, None] * parents[H])
    return np.concatenate(alpha), (recent, short)


def _passed_on(concentration: float, known: np.ndarray) -> np.ndarray:
    """Concentration around an uncertain centre: the variance of a Dirichlet around a Dirichlet centre.

    Its fraction of m(1 - m) is 1/(c + 1) + c/(c + 1)/(A + 1), with A the posterior counts of the centre.
    """
    fraction = 1 / (concentration + 1) + concentration / (concentration + 1) / (known + 1)
    return 1 / fraction - 1


def _informative(counts: np.ndarray, concentration: float) -> np.ndarray:
    total = counts.sum(1, keepdims=True)
    return counts * (1 + concentration) / (total + concentration)


def concentration(counts: np.ndarray, centre: np.ndarray) -> float:
    """Maximum of the Dirichlet-multinomial likelihood times the prior, over the concentration."""
    seen = counts.sum(1) > 0
    counts, centre = counts[seen], centre[seen]
    total = counts.sum(1)

    def cost(log_c: float) -> float:
        c = np.exp(log_c)
        a = np.maximum(c * centre, LEAST_COUNT)
        likelihood = (gammaln(c) - gammaln(total + c)).sum() + (gammaln(counts + a) - gammaln(a)).sum()
        return 0.5 * ((log_c - LOG_CONCENTRATION_MEAN) / LOG_CONCENTRATION_SD) ** 2 - likelihood

    best = minimize_scalar(cost, bounds=LOG_CONCENTRATION_BOUNDS, method="bounded")
    return float(np.exp(best.x))
