"""The minimal naming game of many words that are alike: one word that may get ahead, and all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from meanfield import ConvergenceError, InputError
from meanfield.toolbox import increasing_times, labelled, real_number, shown, stamp, whole_number
from theory.minimal_naming_game._rate_equation import SURE, check_rule, checked_answers

MOST_SIZES = 3000  # of lexicons, whose eigenvalues take half a minute
BLOCK = 64  # columns of a Jacobian at a time
NEGLIGIBLE = 1e-16  # of the agents: lexicons larger than these many agents have are left out
TOLERANCE = 1e-9  # of integration, relative; 1e-13 absolute
Answers = tuple[float, float]


def open_vocabulary(
    n_words: int,
    *,
    accepts: tuple[float, float] = SURE,
    rule: str = "both",
    lead: float | None = None,
    committed: float = 0.0,
    times: Any = None,
) -> xr.Dataset:
    """The minimal naming game of W words, one of them ahead, for N → ∞ and thousands of words.

    Words are alike, so the rate equation keeps all but one of them exchangeable: who holds l of the W - 1 others holds
    any l of them equally often. An agent is then a pair (a, l), where a tells whether it holds the one word, and not
    one of 2^W lexicons. A speaker utters a random word of its lexicon; a hearer says yes with probability π if it
    holds the word and φ if not, and then keeps only this word, as does the speaker under the rule 'both'; otherwise
    the hearer adds the word. Where all words are equally common, lexicons of n words have the fraction

        y_n = y_{n-1} g_{n-1}/(g_n + r_n + ā),  g_n = (1 - φ)(1 - n/W),  r_n = π n/W + φ(1 - n/W),

    with ā = Σ r_n y_n of 'both' and 0 of 'listener'. A convention can grow out of it where a word that is slightly
    ahead gains.

    Parameters
    ----------
    n_words
        W ≥ 2.
    accepts
        (π, φ), the probabilities that a hearer says yes to a word that it holds, π > 0, and to one that it does not.
    rule
        Who updates on success: 'both' or 'listener'.
    lead
        With `times`, the share of agents who hold the one word at the start, and nothing else; all others hold one of
        the others each. Default: 1/W.
    committed
        With `times`, the fraction of agents who always utter the one word, 0 ≤ c < 1.
    times
        Times from 0 on, in rounds of N interactions, at which the solution is wanted.

    Returns
    -------
    Dataset with

    - `lexicon_size` (words_held), the fractions y_n where no word is ahead, and its mean `mean_words`;
    - `growth_rate`, the rate per round at which a word that is slightly ahead gains or, if negative, falls back: the
      largest real part of an eigenvalue. For W = 2 it is x_AB (3π - 2φ - 1)/2 per round under the rule 'both';
    - with `times`, over `time`: `said`, the share of the one word in all utterances, `single_share`, the agents who
      hold nothing else, committed ones included, and `mean_words_held` of the uncommitted.

    Raises
    ------
    InputError
        If an argument is out of range, or given without `times`.
    ConvergenceError
        If the solution is not found.

    See Also
    --------
    fixed_points : two words, exactly
    validation.minimal_naming_game.simulate : finite populations with up to 64 words

    Notes
    -----
    Source: [arXiv 2608.02178], for two words. Lexicons of sizes that fewer than 1e-16 of the agents have are left out.
    The others have up to about 7√(W/π) words if φ = 0; ten thousand words take seconds.

    Examples
    --------
    Ten thousand words; the last listeners never agree:

    >>> for accepts in ((1, 0), (0.6, 0.0), (0.2, 0.1)):
    ...     game = theory.minimal_naming_game.open_vocabulary(10_000, accepts=accepts)
    ...     print(accepts, game["mean_words"].round(1).item(), game["growth_rate"].round(5).item())
    (1, 0) 61.5 0.00137
    (0.6, 0.0) 79.2 0.00085
    (0.2, 0.1) 5.5 -2e-05
    """
    n_words = whole_number("n_words", n_words, 2)
    check_rule(rule)
    pi, phi = map(float, checked_answers(accepts))
    if not pi:
        raise InputError(f"accepts = {shown(accepts)}: expected π > 0, or agents who hold all words never agree")
    if times is None:
        given = {"lead": lead is not None, "committed": committed != 0}
        if wrong := [name for name, is_given in given.items() if is_given]:
            raise InputError(f"{' and '.join(wrong)} without times: expected times beside it")
    share = real_number("lead", 1 / n_words if lead is None else lead, least=0, most=1)
    minority = real_number("committed", committed, least=0, below=1)
    when = None if times is None else increasing_times(times)
    y = _equal_words(n_words, (pi, phi), rule)
    held, growth = np.arange(1, len(y) + 1), _growth_rate(y, n_words, (pi, phi), rule)
    columns: dict[str, tuple] = {
        "lexicon_size": (("words_held",), y, "fraction of agents who hold so many words, no word being ahead"),
        "mean_words": ((), held @ y, "mean number of words held, no word being ahead"),
        "growth_rate": ((), growth, "rate at which a word that is ahead gains", "1/round"),
    }
    coords: dict[str, Any] = {"words_held": held}
    options = {"n_words": n_words, "accepts": f"{pi:g} {phi:g}", "rule": rule}
    if when is not None:
        columns |= _trajectory(when, share, minority, n_words, (pi, phi), rule, 2 * len(y) + 8)
        coords["time"] = ("time", when, {"units": "rounds"})
        options |= {"lead": share, "committed": minority}
    return stamp(labelled(columns, coords), "open_vocabulary", None, **options)


def _equal_words(n_words: int, accepts: Answers, rule: str) -> Float[np.ndarray, " sizes"]:
    """y_1, y_2, … where no word is ahead."""
    pi, phi = accepts

    def sizes(accepted: float) -> tuple[np.ndarray, np.ndarray]:
        n = np.arange(1.0, min(n_words, most) + 1)
        yes = (pi * n + phi * (n_words - n)) / n_words
        grows = (1 - phi) * (n_words - n) / n_words
        y = np.cumprod(np.append(1.0, grows[:-1] / (grows[1:] + yes[1:] + accepted)))
        return y / y.sum(), yes

    def excess(accepted: float) -> float:
        y, yes = sizes(accepted)
        return float(y @ yes) - accepted

    most = 2
    while True:  # enough sizes
        accepted = brentq(excess, 0, 1, xtol=1e-15) if rule == "both" and excess(0) > 0 else 0.0
        y, _ = sizes(accepted)
        if most >= n_words or y[-1] < NEGLIGIBLE:
            y = y[: np.flatnonzero(y > NEGLIGIBLE)[-1] + 1]
            if len(y) > MOST_SIZES:
                raise InputError(
                    f"n_words = {n_words} with accepts = {accepts}: agents hold up to {len(y)} words, expected "
                    f"{MOST_SIZES} at most"
                )
            return y
        most *= 2


def _drift(
    x: Float[np.ndarray, "*several two sizes"], committed: float, n_words: int, accepts: Answers, rule: str
) -> Float[np.ndarray, "*several two sizes"]:
    """dx/dt per round, where x[a, l] is the fraction that holds the one word (a = 1) or not, and l of the others.

    The last column holds the largest lexicons that are followed; those who would add to them stay.
    """
    pi, phi = accepts
    others = n_words - 1
    holds, rest = np.arange(2.0)[:, None], np.arange(x.shape[-1] * 1.0)
    size = np.maximum(holds + rest, 1.0)  # nobody has none
    known, room = rest / others, np.where(rest < rest[-1], 1 - rest / others, 0.0)
    yes_one = np.where(holds == 1, pi, phi)
    yes_other = pi * known + phi * (1 - known)

    def mean(values: np.ndarray) -> np.ndarray:
        return (x * values).sum((-2, -1), keepdims=True)

    one, other = mean(holds / size) + committed, mean(rest / size)
    learns_one = x[..., :1, :] * (1 - phi) * one
    learns_other = x * (1 - phi) * room * other
    to_one, to_other = x * yes_one * one, x * yes_other * other
    if rule == "both":
        to_one = to_one + x * holds / size * (mean(yes_one) + committed * pi)
        to_other = to_other + x * rest / size * (mean(yes_other) + committed * phi)  # the committed hold no other word
    change = np.concatenate([-learns_one, learns_one], axis=-2) - to_one - to_other - learns_other
    change[..., 1:] += learns_other[..., :-1]
    change[..., 1, 0] += to_one.sum((-2, -1))
    change[..., 0, 1] += to_other.sum((-2, -1))
    return change


def _growth_rate(y: np.ndarray, n_words: int, accepts: Answers, rule: str) -> float:
    """The leading eigenvalue for agents who move to the one word while the sizes of lexicons stay."""
    most, n = len(y), np.arange(1, len(y) + 1)
    x = np.zeros((2, most + 2))  # a column more than holders have, so that nobody is at the end
    x[1, :most] = y * n / n_words
    x[0, 1 : most + 1] = y * (1 - n / n_words)
    rows = []
    for first in range(0, most, BLOCK):
        moved = np.zeros((min(BLOCK, most - first), *x.shape))
        k = np.arange(len(moved))
        moved[k, 1, first + k] = 1
        moved[k, 0, first + k + 1] = -1
        up, down = (_drift(x + sign * moved, 0.0, n_words, accepts, rule)[:, 1, :most] for sign in (0.5, -0.5))
        rows.append(up - down)  # differences of a quadratic function are its derivatives
    return float(np.linalg.eigvals(np.concatenate(rows).T).real.max())


def _trajectory(
    times: np.ndarray, lead: float, committed: float, n_words: int, accepts: Answers, rule: str, sizes: int
) -> dict[str, tuple]:
    """Columns over time, from so many sizes of lexicons or, where those don't suffice, more."""

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        return _drift(x.reshape(2, -1), committed, n_words, accepts, rule).ravel()

    while True:
        sizes = min(n_words, sizes)
        start = np.zeros((2, sizes))
        start[1, 0], start[0, 1] = (1 - committed) * lead, (1 - committed) * (1 - lead)
        found = solve_ivp(
            rate, (0.0, times[-1] or 1.0), start.ravel(), "DOP853", times, rtol=TOLERANCE, atol=1e-4 * TOLERANCE
        )
        if not found.success:
            raise ConvergenceError(f"the solution was not found up to t = {times[-1]:g}: {found.message}")
        if sizes == n_words or np.abs(found.y.reshape(2, sizes, -1)[:, -1]).max() < TOLERANCE:
            break
        sizes *= 2
    x = found.y.reshape(2, sizes, -1)
    rest = np.arange(sizes)[:, None]
    held = ((x[1] * (1 + rest)).sum(0) + (x[0] * rest).sum(0)) / (1 - committed)
    return {
        "said": (("time",), (x[1] / (1 + rest)).sum(0) + committed, "share of the one word in all utterances"),
        "single_share": (("time",), x[1, 0] + committed, "fraction of agents who hold the one word only"),
        "mean_words_held": (("time",), held, "mean number of words held"),
    }
