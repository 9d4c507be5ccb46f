"""The origin of a collective bias: choices of agents without memory, and with one and two interactions in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import rel_entr
from scipy.stats import binom, binomtest, chisquare

from meanfield import InputError, MemorySpace
from meanfield.toolbox import check_columns, whole_number, words_of
from validation.populations._choices import COLUMNS, Choices
from validation.populations._empirical_policy import empirical_policy

NEUTRAL_DISTANCE = 0.005  # [004] Methods
SIGNIFICANCE = 0.05  # [001] Methods
RESAMPLED = 0.7  # [000] SI 6.1.1
DEEPEST = 4

Row = dict[str, object]


def individual_bias(counts: pd.DataFrame) -> pd.DataFrame:
    """Test whether agents with empty memories prefer a word, for every policy in a table of choice counts.

    Parameters
    ----------
    counts
        Columns model, options, memory_length, state, choice, count, as in `meanfield.datasets.ai_norms`.

    Returns
    -------
    DataFrame with a row for each model, options and memory length that has choices with empty memories: `choices`,
    their number; `favourite` and its `share`; `test` and `p_value`, of the exact binomial test for two words, of χ² for
    more ([001] Methods); `unbiased`, p ≥ 0.05; `distance`, the Jensen-Shannon distance from the uniform distribution
    (square root of the divergence in nats); `neutral`, distance < 0.005 ([004] Methods). The last two use the observed
    shares; chance alone makes a distance of about 0.35 √((W - 1) / choices).

    Raises
    ------
    InputError
        If a column is missing, counts are not whole numbers ≥ 0 or sum to 0, or a choice is not an option.

    See Also
    --------
    microscopic_bias : the first interactions

    Examples
    --------
    >>> counts = pd.DataFrame({"options": ["A_B"] * 2 + ["C_D"] * 2, "choice": list("ABCD"), "count": [65, 35, 52, 48]})
    >>> bias = validation.populations.individual_bias(counts.assign(model="m", memory_length=5, state=""))
    >>> bias[["options", "favourite", "share", "p_value", "unbiased"]].round(3)
      options favourite  share  p_value  unbiased
    0     A_B         A   0.65    0.004     False
    1     C_D         C   0.52    0.764      True
    """
    check_columns("counts", counts, COLUMNS)
    rows, subject = [], ["model", "options", "memory_length"]
    for _, empty in counts[counts["state"] == ""].groupby(subject, sort=True):
        choices = Choices.of_table(empty)
        words = choices.words
        times = np.bincount(choices.chosen, choices.times, minlength=len(words)).astype(int)
        if not times.any():
            raise InputError(f"counts of {', '.join(words)} with empty memories sum to 0: expected choices")
        total, best, two = int(times.sum()), int(times.argmax()), len(words) == 2
        p_value = float(binomtest(int(times[0]), total).pvalue if two else chisquare(times).pvalue)
        distance = float(distance_from_uniform(times[None] / total)[0])
        row = empty[subject].iloc[0].to_dict() | {"choices": total, "favourite": words[best]}
        row |= {"share": times[best] / total, "test": "exact binomial" if two else "chi-square", "p_value": p_value}
        row |= {"unbiased": p_value >= SIGNIFICANCE, "distance": distance, "neutral": distance < NEUTRAL_DISTANCE}
        rows.append(row)
    return pd.DataFrame(rows)


def microscopic_bias(counts: pd.DataFrame, strong: str, *, interactions: int = 3) -> pd.DataFrame:
    """Growing preference for the strong one of two words in agents' first interactions. Source: [000] Table 1, SI1.

    Parameters
    ----------
    counts
        As for `empirical_policy`, for one model, options and memory length.
    strong
        The strong word.
    interactions
        Number of first interactions, 1 to 5 and at most memory_length + 1; the first has an empty memory.

    Returns
    -------
    DataFrame, a row for each memory ("own,partner|…") and, from interaction 2, a row 'all', with `choices`, the number
    seen, and

    - `share` of the strong word; in a row 'all' the mean over memories weighted by `weight`, the probability of a
      memory among agents with equally many interactions;
    - `equal_share`, in a row 'all' the mean with equal weights, as the papers print it, and `pooled_share`, the share
      in all choices, where memories count as often as they were seen;
    - `p_exact`, of the exact binomial test of ½, in a row 'all' for the pooled choices;
    - `p_bootstrap`, the probability (estimated from 10,000 draws in the papers) that 70 % of the choices, drawn with
      replacement, lean at least as far the same way.

    Shares of memories never seen are NaN; weights and means use the policy estimated for them.

    Raises
    ------
    InputError
        If `strong` is not one of exactly two words, or `interactions` is out of range.

    See Also
    --------
    individual_bias : before any interaction

    Examples
    --------
    >>> counts = pd.DataFrame({"state": ["", "", "A,A", "A,B", "A,B", "B,A", "B,B"], "choice": list("ABAABAB")})
    >>> counts = counts.assign(model="m", options="A_B", memory_length=1, count=[60, 40, 30, 10, 14, 24, 16])
    >>> table = validation.populations.microscopic_bias(counts, "A", interactions=2)
    >>> table[["interaction", "memory", "choices", "share"]].round(2)
       interaction memory  choices  share
    0            1             100   0.60
    1            2    A,A       30   1.00
    2            2    A,B       24   0.42
    3            2    B,A       24   1.00
    4            2    B,B       16   0.00
    5            2    all       94   0.70
    """
    policy = empirical_policy(counts)
    words = words_of(policy)
    if len(words) != 2:
        raise InputError(f"counts has {len(words)} words: expected 2")
    if strong not in words:
        raise InputError(f"strong = {strong!r}: expected one of {', '.join(words)}")
    space = MemorySpace(2, int(policy.attrs["memory_length"]))
    depth = whole_number("interactions", interactions, 1, min(DEEPEST, space.memory_length) + 1)
    n, column = Choices.of_table(counts).counts(), words.index(strong)
    rows: list[Row] = []
    weight = np.ones(1)
    for number in range(1, depth + 1):
        level = slice(space.offset(number - 1), space.offset(number))
        seen = n[level].sum(1, keepdims=True)
        p = np.where(seen > 0, n[level] / np.maximum(seen, 1), policy["q"].values[level])
        for state, times, mass in zip(range(level.start, level.stop), n[level], weight, strict=True):
            memory = "|".join(f"{words[own]},{words[partner]}" for own, partner in space.memory(state))
            rows.append({"interaction": number, "memory": memory} | _one(times, column) | {"weight": mass})
        if number > 1:
            means = {"share": weight @ p[:, column], "equal_share": p[:, column].mean(), "weight": weight.sum()}
            pooled = _one(n[level].sum(0), column) | means | {"p_bootstrap": np.nan}
            rows.append({"interaction": number, "memory": "all"} | pooled)
        # After one more interaction with an equally experienced agent
        weight = (weight[:, None, None] * p[:, :, None] * (weight @ p)).ravel()
    return pd.DataFrame(rows)


def _one(times: np.ndarray, column: int) -> Row:
    total, strong = int(times.sum()), int(times[column])
    if total == 0:
        shares = ("share", "equal_share", "pooled_share", "p_exact", "p_bootstrap")
        return {"choices": 0, **dict.fromkeys(shares, np.nan)}
    resample, share, most = max(1, round(RESAMPLED * total)), strong / total, max(strong / total, 1 - strong / total)
    # As biased or more, to the same side; ties of a resample with the observed share count.
    least = int(np.ceil(most * resample - 1e-9))
    bootstrap = float(binom.sf(least - 1, resample, most))
    numbers: Row = {**dict.fromkeys(("share", "equal_share", "pooled_share"), share), "choices": total}
    return numbers | {"p_exact": float(binomtest(strong, total).pvalue), "p_bootstrap": bootstrap}


def distance_from_uniform(q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of each row, nats; shape (policies,)."""
    uniform = 1 / q.shape[1]
    middle = (q + uniform) / 2
    divergence = (rel_entr(q, middle) + rel_entr(uniform, middle)).sum(1) / 2
    # Rounding can leave -1e-17 instead of 0, and it has no root
    return np.sqrt(np.maximum(divergence, 0))
