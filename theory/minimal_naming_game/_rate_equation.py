"""The minimal naming game in mean field: the interaction, the two-word rate equation and the one for W words.

Everything follows from one enumeration of speaker, hearer and word, `interactions`; no rate is typed in.
Time is that of the engine: two units (`TIME_PER_ROUND`) are a population round of N interactions, so that in one
unit an agent takes part in one interaction on average. Published equations count rounds and are twice these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from scipy.sparse import csr_array

from meanfield import TIME_PER_ROUND, InputError

RULES = ("both", "listener")
SPECIES = ("A", "B", "AB")  # the lexicons of agents who are not committed, in the order of every result
MAX_WORDS = 6  # 63 lexicons; each further word doubles them and makes the interactions more than four times as many


class Agent(NamedTuple):
    """The words that an agent holds, and whether it is committed: keeps them whatever it hears."""

    lexicon: frozenset[int]
    committed: bool = False


class Interaction(NamedTuple):
    """One outcome of a meeting: kinds of agents before (speaker, hearer) and after, and its probability."""

    before: tuple[int, int]
    after: tuple[int, int]
    probability: Any


def interactions(
    agents: Sequence[Agent], utter: Callable[[frozenset[int]], Mapping[int, Any]], rule: str = "both"
) -> Iterator[Interaction]:
    """Every outcome of every ordered meeting of two kinds of agents: [004] SI, Minimal Naming Game Model.

    The speaker utters a word of its lexicon, which it adds first where it had to invent it. A hearer who holds the
    word keeps only that word, and under the rule 'both' so does the speaker; a hearer who does not hold it adds it.

    Parameters
    ----------
    agents
        The kinds of agents; the lexicons that can arise from them must be among them.
    utter
        Lexicon → {word: probability}; numbers or sympy expressions.
    rule
        Who updates on success: 'both' (the papers) or 'listener'.

    Raises
    ------
    InputError
        If the rule is unknown.
    """
    check_rule(rule)
    place = {agent: k for k, agent in enumerate(agents)}
    for i, speaker in enumerate(agents):
        for j, hearer in enumerate(agents):
            for word, probability in utter(speaker.lexicon).items():
                after = (_heard(speaker, hearer, word, rule), _hears(hearer, word))
                yield Interaction((i, j), (place[after[0]], place[after[1]]), probability)


def _heard(speaker: Agent, hearer: Agent, word: int, rule: str) -> Agent:
    """The speaker after `hearer` has heard `word` from it."""
    if speaker.committed:
        return speaker
    collapses = rule == "both" and word in hearer.lexicon
    return Agent(frozenset({word}) if collapses else speaker.lexicon | {word})


def _hears(hearer: Agent, word: int) -> Agent:
    if hearer.committed:
        return hearer
    return Agent(frozenset({word}) if word in hearer.lexicon else hearer.lexicon | {word})


def check_rule(rule: str) -> None:
    """Refuse a rule that is not in RULES."""
    if rule not in RULES:
        raise InputError(f"rule = {rule!r}: expected one of {', '.join(map(repr, RULES))}")


def two_word_agents() -> list[Agent]:
    """Lexicons A, B and AB, then the agents committed to A and to B."""
    lexicons = [frozenset({0}), frozenset({1}), frozenset({0, 1})]
    return [*map(Agent, lexicons), *(Agent(lexicon, committed=True) for lexicon in lexicons[:2])]


@dataclass(frozen=True)
class RateEquation:
    """The two-word rate equation, derived.

    Attributes
    ----------
    x
        Symbols x_A, x_B, x_AB: uncommitted agents with these lexicons, as fractions of all agents.
    p
        Symbol, the probability that an agent with both words utters A.
    committed
        Symbols c_A, c_B, the fractions of agents committed to A and to B; x_A + x_B + x_AB = 1 - c_A - c_B.
    rhs
        dx/dt, shape (3, 1), of second order in x and committed together.
    reduced
        (dx_A/dt, dx_B/dt) with x_AB eliminated, shape (2, 1).
    jacobian
        ∂reduced/∂(x_A, x_B), shape (2, 2).
    """

    x: tuple[sp.Symbol, ...]
    p: sp.Symbol
    committed: tuple[sp.Symbol, ...]
    rhs: sp.Matrix
    reduced: sp.Matrix
    jacobian: sp.Matrix


@cache
def rate_equation(rule: str = "both") -> RateEquation:
    """The two-word minimal naming game with bias p and committed agents, as [004] SI describes it.

    dx_k/dt = ½ Σ_ij x_i x_j Σ_w u_w(i) (changes of the number of k in the meeting), the sum running over committed
    agents too; ½ because two units of time are a round.

    Parameters
    ----------
    rule
        'both' or 'listener', as `interactions` takes it.

    Raises
    ------
    InputError
        If the rule is unknown.
    """
    x = sp.symbols("x_A x_B x_AB", real=True)
    committed = sp.symbols("c_A c_B", real=True)
    p = sp.Symbol("p", real=True)
    fraction = (*x, *committed)
    rates = [sp.Integer(0)] * len(fraction)
    for event in interactions(two_word_agents(), lambda lexicon: _biased(lexicon, p), rule):
        rate = event.probability * fraction[event.before[0]] * fraction[event.before[1]] / sp.Rational(TIME_PER_ROUND)
        for before, after in zip(event.before, event.after, strict=True):
            rates[before] -= rate
            rates[after] += rate
    rhs = sp.Matrix([sp.expand(rate) for rate in rates[:3]])
    both_words = 1 - sum(committed) - x[0] - x[1]
    reduced = rhs[:2, 0].subs(x[2], both_words).expand()
    return RateEquation(x, p, committed, rhs, reduced, reduced.jacobian(x[:2]))


def _biased(lexicon: frozenset[int], p: sp.Symbol) -> dict[int, sp.Expr]:
    return {0: p, 1: 1 - p} if len(lexicon) == 2 else {word: sp.Integer(1) for word in lexicon}


@dataclass(frozen=True, eq=False)
class ManyWords:
    """The minimal naming game with W words and lexicons of any size; agents utter each word they hold equally often.

    Attributes
    ----------
    lexicons
        The species: the words, 0 … W - 1, of each lexicon, by size and then in order; () first where agents may
        start with none, and such an agent invents a word uniformly at random. For W = 2 the order of SPECIES.
    committed
        Shape (W,), the fraction of agents committed to each word.
    """

    lexicons: tuple[tuple[int, ...], ...]
    committed: np.ndarray
    _pairs: np.ndarray
    _change: csr_array

    def drift(self, x: np.ndarray) -> np.ndarray:
        """dx/dt of the fractions x of agents in each of `lexicons`, both of shape (species,), per unit of time.

        Raises
        ------
        InputError
            If x has another shape.
        """
        x = np.asarray(x, dtype=float)
        if x.shape != (len(self.lexicons),):
            raise InputError(f"x has shape {x.shape}: expected ({len(self.lexicons)},), one number for each lexicon")
        fraction = np.concatenate([x, self.committed])
        return (self._change @ (fraction[self._pairs[0]] * fraction[self._pairs[1]]))[: len(x)]


def many_words(
    n_words: int, rule: str = "both", *, start_empty: bool = False, committed: Sequence[float] | None = None
) -> ManyWords:
    """The exact mean field of the minimal naming game with W words: species are the 2^W - 1 lexicons ([004] SI).

    Parameters
    ----------
    n_words
        W, 1 to 6.
    rule
        'both' or 'listener', as `interactions` takes it.
    start_empty
        Add the empty lexicon as a species.
    committed
        Fraction of agents committed to each word, shape (W,); none by default. The species sum to the rest.

    Raises
    ------
    InputError
        If an argument is out of its range.
    """
    if not isinstance(n_words, (int, np.integer)) or not 1 <= n_words <= MAX_WORDS:
        raise InputError(f"n_words = {n_words}: expected 1 to {MAX_WORDS}, since the lexicons are 2^n_words - 1")
    zealots = np.zeros(n_words) if committed is None else np.asarray(committed, dtype=float)
    # not (≥ 0) rather than (< 0): it refuses NaN as well
    if zealots.shape != (n_words,) or not (zealots >= 0).all() or zealots.sum() > 1:
        raise InputError(f"committed = {committed}: expected {n_words} fractions, none negative, that sum to at most 1")
    words = range(n_words)
    lexicons = [
        lexicon for size in range(0 if start_empty else 1, n_words + 1) for lexicon in combinations(words, size)
    ]
    agents = [Agent(frozenset(lexicon)) for lexicon in lexicons]
    agents += [Agent(frozenset({word}), committed=True) for word in words]
    events = list(interactions(agents, lambda lexicon: _uniform(lexicon or words), rule))
    pairs = np.array([event.before for event in events]).T
    return ManyWords(tuple(lexicons), zealots, pairs, _changes(events, len(agents)))


def _uniform(words: Collection[int]) -> dict[int, float]:
    return dict.fromkeys(words, 1 / len(words))


def _changes(events: Sequence[Interaction], n_agents: int) -> csr_array:
    """Expected change per unit of time of the number of each kind (row) by each event (column)."""
    rate = np.array([event.probability for event in events]) / TIME_PER_ROUND
    columns = np.arange(len(events))
    kinds = np.array([(*event.before, *event.after) for event in events]).T
    values = np.concatenate([-rate, -rate, rate, rate])
    return csr_array((values, (kinds.ravel(), np.tile(columns, 4))), shape=(n_agents, len(events)))
