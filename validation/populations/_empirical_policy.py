"""A policy estimated from how often agents chose each word in each memory state, and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from meanfield import InputError, MemorySpace, make_policy
from meanfield.toolbox import (
    LARGEST_SEED,
    check_memory,
    column_numbers,
    expect,
    one_or_several,
    shown,
    single_policy,
    whole_number,
    words_of,
)

COLUMNS = ("model", "options", "memory_length", "state", "choice", "count")
MOST_CHOICES = 10**9  # in a row of the table, so that sums are exact
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
    interaction. Choice probabilities of a child are Dirichlet around those of its parent,

        q(s) ~ Dir(c_h m(parent of s)),    alpha(s) = n(s) + c_h m(parent of s),

    so a state seen often keeps its own frequencies, and one never seen has those of the most similar ones that were
    seen. A child with n choices informs its parent like n (1 + c) / (n + c) independent ones (the variance of a
    Dirichlet-multinomial fraction), as in Kneser-Ney smoothing where c is small and as in pooling where it is large.
    The concentrations c_h, one for each length of full memories' recent parts (`concentration_recent`) and one for each
    length of memories that are still that short (`concentration_short`), maximise the marginal likelihood of the counts
    times a broad log-normal prior around 20 (empirical Bayes), and are fixed in the posterior. The uncertainty of a
    centre widens the distribution of the states around it: their c is the smaller number that has the variance of both.
    Sources: MacKay and Peto 1995, Nat. Lang. Eng. 1, 289; Teh 2006, ACL, 985.

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
    Dirichlet distribution, `observed` (state), the number of choices seen in the state, and `concentration_recent` and
    `concentration_short` (length).

    Raises
    ------
    InputError
        If a column is missing, counts are not whole numbers ≥ 0, a state or choice has a word that is not an option,
        the table holds several policies, or there are too many states to tabulate.

    See Also
    --------
    sample_policies : its posterior
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
    one, options = single_table(counts, words)
    space = tabulable_space(len(options), int(one["memory_length"].iloc[0]))
    return estimated_policy(choice_table(one, options, space), options, space, str(one["model"].iloc[0]))


def estimated_policy(n: np.ndarray, words: Sequence[str], space: MemorySpace, model: str) -> xr.Dataset:
    """The policy of `empirical_policy` from counts (state, word)."""
    alpha, recent, short = _posterior(n, space)
    attrs = {
        "estimator": "hierarchical Dirichlet back-off to memories without their oldest interaction",
        "concentrations": "maximum of the marginal likelihood times a log-normal prior (empirical Bayes)",
        "choices": int(n.sum()),
        "states_seen": int((n.sum(1) > 0).sum()),
    }
    policy = make_policy(alpha / alpha.sum(1, keepdims=True), words, model=model, attrs=attrs)
    policy["alpha"] = (("state", "word"), alpha, {"long_name": "posterior counts (Dirichlet)", "units": "1"})
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
    return [
        make_policy(_draw(policy["alpha"].values, np.random.default_rng((seed, k))), words_of(policy), model=model)
        for k in range(n)
    ]


def tabulable_space(n_words: int, memory_length: int) -> MemorySpace:
    """The memory space; InputError if it has more states than a table can hold."""
    if reason := why_not_tabulable(n_words, memory_length):
        raise InputError(reason)
    return MemorySpace(n_words, memory_length)


def why_not_tabulable(n_words: int, memory_length: int) -> str:
    """'' if a table can hold all memory states."""
    n_states = MemorySpace(n_words, memory_length).n_states
    if n_states <= MOST_STATES:
        return ""
    number = f"{n_states:,}" if n_states < MOST_PRINTED else f"more than 10^{len(str(n_states)) - 1}"
    have = f"{n_words} words with memory_length = {memory_length} have {number} memory states"
    return f"{have}: expected at most {MOST_STATES:,}, more cannot be tabulated"


def posterior_mean(
    n: np.ndarray, space: MemorySpace, concentrations: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The estimated q > 0 (state, word) from counts, and its concentrations."""
    alpha, concentrations = posterior_counts(n, space, concentrations)
    return alpha / alpha.sum(1, keepdims=True), concentrations


def posterior_counts(
    n: np.ndarray, space: MemorySpace, concentrations: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Counts of the Dirichlet posterior, and its concentrations; known ones are kept, which is 20 times faster."""
    if concentrations is None:
        alpha, recent, short = _posterior(n, space)
    else:
        recent, short = concentrations
        levels = [slice(space.offset(h), space.offset(h + 1)) for h in range(space.memory_length + 1)]
        pooled, centre = _pool(n, levels, recent, short), np.empty(n.shape)
        for h, level in enumerate(levels):
            weight = pooled[level] + recent[h] * _parents_of(centre, levels, h, n.shape[1])
            centre[level] = weight / weight.sum(1, keepdims=True)
        alpha = _alpha(n, pooled, centre, levels, recent, short)
    return alpha, (recent, short)


def _draw(alpha: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One Dirichlet variate a row, also for parameters so small that every gamma variate underflows."""
    # log Gamma(a) = log Gamma(a + 1) + log(U) / a
    logs = np.log(random.standard_gamma(alpha + 1)) + np.log1p(-random.random(alpha.shape)) / alpha
    weights = np.exp(logs - logs.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def check_columns(name: str, table: pd.DataFrame, columns: Sequence[str] = COLUMNS) -> None:
    """InputError unless it is a table with these columns."""
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{name} is a {type(table).__name__}: expected a pandas.DataFrame")
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(f"{name} lacks the column {', '.join(missing)}; expected {', '.join(columns)}")


def single_table(counts: pd.DataFrame, words: Sequence[str] | None) -> tuple[pd.DataFrame, list[str]]:
    """The counts of one policy and its words; InputError if they are of several or lack something."""
    check_columns("counts", counts)
    if counts.empty:
        raise InputError("counts is empty: expected a row a state and choice")
    for column in ("model", "options", "memory_length"):
        values = counts[column].unique()
        if len(values) > 1:
            raise InputError(f"counts holds {len(values)} values of {column}: select one, as in {column} = {values[0]}")
    options = str(counts["options"].iloc[0]).split("_")
    chosen = one_or_several(options if words is None else words)
    if sorted(map(shown, chosen)) != sorted(map(shown, options)) or len(set(options)) < max(2, len(options)):
        raise InputError(f"words = {chosen}: expected at least two that differ, in any order: {', '.join(options)}")
    return counts, chosen


def choice_table(counts: pd.DataFrame, words: list[str], space: MemorySpace) -> np.ndarray:
    """Choice counts as an array (state, word)."""
    memories, number = counted_memories(counts, words, space.memory_length)
    table = np.zeros((space.n_states, len(words)))
    np.add.at(table, [space.state(memory) for memory in memories], number)
    return table


def counted_memories(
    counts: pd.DataFrame, words: list[str], memory_length: int
) -> tuple[list[list[tuple[int, int]]], np.ndarray]:
    """The memories in the table, and choice counts as an array (memory, word)."""
    number = column_numbers(counts["count"])
    wrong = ~((number >= 0) & (number <= MOST_CHOICES) & (number == np.floor(number)))
    if wrong.any():
        given = counts["count"].tolist()[int(wrong.argmax())]
        raise InputError(f"count = {given!r}: expected a whole number from 0 to {MOST_CHOICES}")
    index = {word: k for k, word in enumerate(words)}
    if unknown := [choice for choice in counts["choice"].unique() if choice not in index]:
        raise InputError(f"choice = {unknown[0]!r}: expected one of {', '.join(words)}")
    row, texts = pd.factorize(counts["state"], use_na_sentinel=False)
    table = np.zeros((len(texts), len(words)))
    np.add.at(table, (row, counts["choice"].map(index).to_numpy()), number)
    return [memory_of(text, index, memory_length) for text in texts], table


def memory_of(text: object, index: dict[str, int], memory_length: int) -> list[tuple[int, int]]:
    """Pairs of the numbers of own and partner's words, oldest first; InputError if the text is no memory."""
    if not isinstance(text, str):
        raise InputError(f"state = {text!r}: expected text such as 'A,B|B,B', '' for the empty memory")
    memory = [tuple(interaction.split(",")) for interaction in text.split("|")] if text else []
    for interaction in memory:
        if len(interaction) != 2 or not set(interaction) <= set(index):
            raise InputError(f"state = {text!r}: expected own,partner|own,partner|… of the words {', '.join(index)}")
    if len(memory) > memory_length:
        raise InputError(f"state = {text!r}: expected at most memory_length = {memory_length} interactions")
    return [(index[own], index[partner]) for own, partner in memory]


def _posterior(n: np.ndarray, space: MemorySpace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posterior counts (state, word), and concentrations by length of the recent part and of short memories."""
    H = space.memory_length
    levels = [slice(space.offset(h), space.offset(h + 1)) for h in range(H + 1)]
    recent, short = np.ones(H + 1), np.ones(H + 1)
    # The root has the uniform distribution as its parent, and memories of length H are never short of it.
    recent[0], short[H] = n.shape[1] / 2, np.nan
    centre, pooled = np.empty_like(n), n
    for _ in range(PASSES):
        pooled = _pool(n, levels, recent, short)
        for h, level in enumerate(levels):
            parent = _parents_of(centre, levels, h, n.shape[1])
            if h > 0:
                recent[h] = concentration(pooled[level], parent)
            weight = pooled[level] + recent[h] * parent
            centre[level] = weight / weight.sum(1, keepdims=True)
            if h < H:
                short[h] = concentration(n[level], centre[level])
    return _alpha(n, pooled, centre, levels, recent, short), recent, short


def _alpha(
    n: np.ndarray, pooled: np.ndarray, centre: np.ndarray, levels: list[slice], recent: np.ndarray, short: np.ndarray
) -> np.ndarray:
    """Posterior counts of each state, widened by the uncertainty of its centre."""
    H, n_words = len(levels) - 1, n.shape[1]
    alpha = n.copy()
    known = np.full(1, np.inf)  # of the parents: independent choices that their centre is worth
    for h, level in enumerate(levels):
        mine = _passed_on(recent[h], known)
        total = pooled[level].sum(1) + mine
        if h < H:
            alpha[level] += _passed_on(short[h], total)[:, None] * centre[level]
            known = np.tile(total, n_words**2)
        else:
            alpha[level] += mine[:, None] * _parents_of(centre, levels, h, n_words)
    return alpha


def _passed_on(concentration: float, known: np.ndarray) -> np.ndarray:
    """Concentration around an uncertain centre: the variance of a Dirichlet around a Dirichlet centre.

    Its fraction of m(1 - m) is 1/(c + 1) + c/(c + 1)/(A + 1), with A the posterior counts of the centre.
    """
    fraction = 1 / (concentration + 1) + concentration / (concentration + 1) / (known + 1)
    return 1 / fraction - 1


def _pool(n: np.ndarray, levels: list[slice], recent: np.ndarray, short: np.ndarray) -> np.ndarray:
    """Evidence of each memory and all that end with it, in independent choices."""
    pooled = n.copy()
    for h in range(len(levels) - 2, -1, -1):
        below = _informative(pooled[levels[h + 1]], recent[h + 1])
        size = levels[h].stop - levels[h].start
        # The oldest interaction is the most significant digit, so that it is the first axis.
        pooled[levels[h]] = _informative(n[levels[h]], short[h]) + below.reshape(-1, size, n.shape[1]).sum(0)
    return pooled


def _informative(counts: np.ndarray, concentration: float) -> np.ndarray:
    total = counts.sum(1, keepdims=True)
    return counts * (1 + concentration) / (total + concentration)


def _parents_of(centre: np.ndarray, levels: list[slice], h: int, n_words: int) -> np.ndarray:
    if h == 0:
        return np.full((1, n_words), 1 / n_words)
    return np.tile(centre[levels[h - 1]], (n_words**2, 1))


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
