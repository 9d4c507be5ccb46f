"""Sampling: from log-probabilities of words to probabilities of choice.

A filter (top-k, top-p) over the words alone is exact. A filter over the whole vocabulary also depends on how the other
tokens share the rest of the probability, which no record holds: it surely keeps a word, surely removes it, or leaves it
undecided. Censored words, with an upper bound only, are treated alike: all steps use a lower and an upper value of each
log-probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanfield import InputError
from meanfield.toolbox import is_number, real_number, whole_number

FILTERED_SET = ("words", "vocabulary")
UNDECIDED = ("raise", "bound")
ROUNDING = 1e-5  # a word that is all but certain may come out of a softmax in float32 with a little more than 1


@dataclass(frozen=True)
class Sampling:
    """The steps from log-probabilities to a draw, in their order.

    In each presentation order: p_w ∝ exp(ℓ_w / T). Top-k keeps the words with fewer than k more probable ones. After
    renormalisation, top-p keeps the words whose more probable ones together have less than p. The kept words are
    renormalised. Equally probable words are kept or removed together, so names carry no order. Then the presentation
    orders are averaged. The limit T → 0, always the most probable word, is top_k = 1.

    Words are drawn as wholes. Token by token, words of one token have the same distribution; longer words another one,
    unless T = 1 and nothing is filtered.

    Parameters
    ----------
    temperature, top_k, top_p, over, floor, order, undecided
        As in `policy_extraction.policy_from_record`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> from policy_extraction.measuring import Sampling
    >>> print(Sampling(0.7, top_p=0.9, floor=2.2e-16))
    softmax over the words at T = 0.7; top-p 0.9 over the words; floor 2.2e-16; mean over orders
    """

    temperature: float = 0.5
    top_k: int | None = None
    top_p: float | None = None
    over: str = "words"
    floor: float = 0.0
    order: int | None = None
    undecided: str = "raise"

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.top_k is not None:
            whole_number("top_k", self.top_k, 1)
        if self.top_p is not None:
            real_number("top_p", self.top_p, above=0, most=1)
        real_number("floor", self.floor, least=0, below=1)
        if self.order is not None:
            whole_number("order", self.order)
        for name, known in (("over", FILTERED_SET), ("undecided", UNDECIDED)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} = {getattr(self, name)!r}: expected one of {', '.join(known)}")

    @property
    def filters(self) -> bool:
        """Whether a word can be removed."""
        return self.top_k is not None or self.top_p is not None

    def __str__(self) -> str:
        steps = [f"softmax over the words at T = {self.temperature:g}"]
        steps += [f"top-k {self.top_k} over the {self.over}"] if self.top_k is not None else []
        steps += [f"top-p {self.top_p:g} over the {self.over}"] if self.top_p is not None else []
        steps += [f"floor {self.floor:.3g}"] if self.filters and self.floor else []
        steps += ["mean over orders" if self.order is None else f"order {self.order}"]
        return "; ".join(steps)


class Choice(NamedTuple):
    """Probabilities of choice and their bounds, shape (…, word), and whether they are determined, shape (…)."""

    q: np.ndarray  # as by `Sampling.undecided = 'bound'` if it is not determined
    low: np.ndarray  # equal to q where it is determined; valid if a filter over the vocabulary leaves any word
    high: np.ndarray
    decided: np.ndarray


def choose(log_p: np.ndarray, censored: np.ndarray | None, sampling: Sampling) -> Choice:
    """Probabilities of choice from log-probabilities (…, word) at temperature 1, without a mean over orders.

    `censored` has the same shape, None for nowhere. `Sampling.order` and `undecided` are left to the caller. Raises
    InputError if a log-probability is not a number below 0, or all words of a prompt are impossible.
    """
    n_words = log_p.shape[-1]
    if sampling.floor * n_words >= 1:
        raise InputError(f"floor = {sampling.floor}: expected less than 1 / {n_words}, for {n_words} words")
    check_log_probabilities(log_p)
    lower = log_p if censored is None else np.where(censored, -np.inf, log_p)
    scale = log_p.max(-1, keepdims=True)
    weights = [np.exp((bound - scale) / sampling.temperature) for bound in (lower, log_p)]
    surely, possibly = _kept(lower, log_p, *weights, scale, sampling)
    least, most = weights[0] * surely, weights[1] * possibly
    total_least, total_most = (w.sum(-1, keepdims=True) for w in (least, most))
    with np.errstate(invalid="ignore"):  # 0 / 0 for a word that is surely removed or impossible
        low = np.where(least > 0, least / (least + (total_most - most).clip(0)), 0)
        high = np.where(most > 0, most / (most + (total_least - least).clip(0)), 0)
    decided = ((surely == possibly) & (~possibly | (lower == log_p))).all(-1)
    q = most / total_most
    low, high = np.minimum(low, q), np.maximum(high, q)  # against rounding
    low, high = (np.where(decided[..., None], q, bound) for bound in (low, high))
    floor = sampling.floor  # of each removed word
    most_left, least_left = (1 - floor * (~kept).sum(-1, keepdims=True) for kept in (possibly, surely))
    return Choice(
        np.where(possibly, most_left * q, floor),
        np.where(surely, least_left * low, np.where(possibly, 0, floor)),  # a kept word may be below the floor
        np.where(possibly, np.maximum(most_left * high, floor), floor),
        decided,
    )


def _kept(
    lower: np.ndarray, upper: np.ndarray, low: np.ndarray, high: np.ndarray, scale: np.ndarray, sampling: Sampling
) -> tuple[np.ndarray, np.ndarray]:
    """The words that the filters surely keep, and those that they possibly keep, with these weights of words."""
    surely, possibly = np.ones(upper.shape, dtype=bool), np.ones(upper.shape, dtype=bool)
    if not sampling.filters:
        return surely, possibly
    # The tokens that are not words share at most this probability in any way.
    rest = (1 - np.exp(lower).sum(-1)).clip(0) * (sampling.over == "vocabulary")

    def number_above(log_p: np.ndarray) -> np.ndarray:
        """The largest number of other tokens that can exceed this probability."""
        return np.where(rest > 0, np.floor(rest / np.exp(log_p)), 0)

    def weight(number: np.ndarray) -> np.ndarray:
        """The largest Σ p^(1/T) over n other tokens: one has all of p for T < 1 (convex), all share it for T > 1."""
        spread = 0.0 if sampling.temperature <= 1 else 1 - 1 / sampling.temperature
        found = np.exp((np.log(rest) - scale[..., 0]) / float(sampling.temperature)) * number**spread
        return np.where((number >= 1) & (rest > 0), found, 0)

    # A censored word is possibly above itself, which does not matter because it may have no weight.
    above = [(lower > upper[..., [w]], upper > lower[..., [w]]) for w in range(upper.shape[-1])]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if sampling.top_k is not None:
            for w, (surely_above, possibly_above) in enumerate(above):
                surely[..., w] = possibly_above.sum(-1) + number_above(lower[..., w]) < sampling.top_k
                possibly[..., w] = surely_above.sum(-1) < sampling.top_k
        if sampling.top_p is not None:
            after_top_k = surely.copy(), possibly.copy()
            most = weight(np.full(rest.shape, np.inf if sampling.top_k is None else float(sampling.top_k)))
            for w, (surely_above, possibly_above) in enumerate(above):
                least_below = (low * (~possibly_above & after_top_k[0])).sum(-1)
                most_below = (high * (~surely_above & after_top_k[1])).sum(-1) + most
                most_above = (high * possibly_above).sum(-1) + weight(number_above(lower[..., w]))
                least_above = (low * surely_above).sum(-1)
                # Products in place of quotients: either side may be 0 or infinite.
                surely[..., w] &= most_above * (1 - sampling.top_p) < sampling.top_p * least_below
                possibly[..., w] &= least_above * (1 - sampling.top_p) < sampling.top_p * most_below
    return surely, possibly


def check_temperature(temperature: float) -> None:
    """InputError unless it is a positive, finite number."""
    if not is_number(temperature) or temperature <= 0:
        raise InputError(f"temperature = {temperature!r}: expected a positive number (top_k = 1 is the limit 0)")


def check_log_probabilities(log_p: np.ndarray) -> None:
    """InputError unless these are log-probabilities (…, word), with a possible word for each prompt."""
    wrong = ~(log_p <= ROUNDING)
    if wrong.any():
        raise InputError(f"log_probability has the value {log_p[wrong][0]}: expected logarithms of probabilities")
    if not np.isfinite(log_p.max(-1)).all():
        raise InputError("log_probability is -inf for all words of a prompt: expected a word that can be said")
