"""The minimal naming game in mean field: the interaction, and the rate equations for two and for W words.

All rates follow from `_after`, which says how a meeting changes speaker and hearer. Two units of time
(`TIME_PER_ROUND`) are a population round of N interactions, so an agent takes part in one interaction per unit on
average. Published equations count rounds and are twice these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from meanfield import TIME_PER_ROUND, InputError, ReactionModel
from meanfield.toolbox import one_of, one_or_several, real_number, shown, whole_number

RULES = ("both", "listener")
SURE = (1, 0)  # probabilities that a hearer says yes to a word that it holds, and to one that it does not
SPECIES = ("A", "B", "AB")  # the lexicons of agents who are not committed, in the order of every result
MAX_WORDS = 6  # 63 lexicons; each further word doubles them
LETTERS = "ABCDEF"


class Agent(NamedTuple):
    """The words that an agent holds; a committed agent keeps them whatever it hears.

    Examples
    --------
    >>> from theory.minimal_naming_game import Agent, two_word_agents
    >>> Agent(frozenset({0}), committed=True) in two_word_agents()
    True
    """

    lexicon: frozenset[int]
    committed: bool = False


class Interaction(NamedTuple):
    """One outcome of a meeting: kinds of agents before (speaker, hearer) and after, its probability, and its success.

    See Also
    --------
    interactions : all of them
    """

    before: tuple[int, int]
    after: tuple[int, int]
    probability: Any
    success: bool


def interactions(
    agents: Sequence[Agent],
    utter: Callable[[frozenset[int]], Mapping[int, Any]],
    rule: str = "both",
    *,
    stores_invented: bool = True,
    accepts: tuple[Any, Any] = SURE,
) -> Iterator[Interaction]:
    """Every outcome of every ordered meeting of two kinds of agents: [004] SI, Minimal Naming Game Model.

    The speaker utters a word of its lexicon, or invents one and adds it. A hearer who says yes keeps only this word,
    and under the rule 'both' so does the speaker. Otherwise a hearer who lacks the word adds it.

    Parameters
    ----------
    agents
        The kinds of agents, which include every lexicon that can arise from them.
    utter
        Lexicon → {word: probability}; numbers or sympy expressions.
    rule
        Who updates on success: 'both' (the papers) or 'listener'.
    stores_invented
        Whether a speaker keeps the word that it invents; if not, its lexicon stays empty unless it collapses to this
        word on success.
    accepts
        (π, φ), the probabilities that a hearer says yes to a word that it holds, and to one that it does not; numbers
        or sympy expressions. Committed agents answer like all others, and keep their word.

    Yields
    ------
    Interaction, with kinds as places in `agents`.

    Raises
    ------
    InputError
        If the rule is unknown.

    See Also
    --------
    reaction_model : the same meetings as a reaction model

    Examples
    --------
    An agent with the word 0 says it to one with both words: both keep this word only, and now hold the lexicon A.

    >>> from theory.minimal_naming_game import interactions, two_word_agents
    >>> events = list(interactions(two_word_agents(), lambda lexicon: {min(lexicon): 1}))
    >>> events[2]
    Interaction(before=(0, 2), after=(0, 0), probability=1, success=True)
    """
    check_rule(rule)
    place = {agent: k for k, agent in enumerate(agents)}
    for (one, speaker), (other, hearer) in product(enumerate(agents), repeat=2):
        for word, probability in utter(speaker.lexicon).items():
            yes = accepts[0] if word in hearer.lexicon else accepts[1]
            for success, chance in ((True, yes), (False, 1 - yes)):
                if chance != 0:
                    stores = speaker.lexicon or stores_invented or (rule == "both" and success)
                    spoke = _after(speaker, word, success and rule == "both") if stores else speaker
                    after = (place[spoke], place[_after(hearer, word, success)])
                    yield Interaction((one, other), after, probability * chance, success)


def _after(agent: Agent, word: int, collapses: bool) -> Agent:
    """The agent after it has said or heard the word."""
    if agent.committed:
        return agent
    return Agent(frozenset({word}) if collapses else agent.lexicon | {word})


def check_rule(rule: str) -> str:
    """`rule`; InputError if it is not in RULES."""
    return one_of("rule", rule, RULES)


def uttered(lexicon: frozenset[int], n_words: int, p: Any, p_invented: Any = 0.5) -> dict[int, Any]:
    """{word: probability} of the words that a holder of this lexicon says, or without words invents."""
    if n_words == 2 and len(lexicon) != 1:
        first = p if lexicon else p_invented
        return {0: first, 1: 1 - first}
    held = lexicon or range(n_words)
    return dict.fromkeys(held, 1 / len(held) if len(held) > 1 else 1)


def two_word_agents() -> list[Agent]:
    """Lexicons A, B and AB, then the agents committed to A and to B.

    See Also
    --------
    interactions : their meetings

    Examples
    --------
    >>> [(sorted(agent.lexicon), agent.committed) for agent in theory.minimal_naming_game.two_word_agents()]
    [([0], False), ([1], False), ([0, 1], False), ([0], True), ([1], True)]
    """
    return [*map(Agent, lexicons(2)), *(Agent(lexicon, committed=True) for lexicon in lexicons(2)[:2])]


@dataclass(frozen=True)
class RateEquation:
    """The two-word rate equation, as derived with sympy.

    Attributes
    ----------
    x
        Symbols x_A, x_B, x_AB: uncommitted agents with these lexicons, as fractions of all agents.
    p
        Symbol, the probability that an agent with both words utters A.
    committed
        Symbols c_A, c_B: agents committed to A and to B; x_A + x_B + x_AB = 1 - c_A - c_B.
    rhs
        dx/dt, shape (3, 1), quadratic in x and committed together.
    reduced, jacobian
        (dx_A/dt, dx_B/dt) with x_AB eliminated, shape (2, 1), and ∂reduced/∂(x_A, x_B), shape (2, 2).

    Examples
    --------
    Consensus on A is a fixed point, and stable for p > 0.

    >>> equation = theory.minimal_naming_game.rate_equation()
    >>> values = dict(zip((*equation.x, *equation.committed), (1, 0, 0, 0, 0)))
    >>> equation.rhs.subs(values).T
    Matrix([[0, 0, 0]])
    >>> sorted(map(str, equation.jacobian.subs(values).eigenvals()))
    ['-1/2', '-p']
    """

    x: tuple[sp.Symbol, ...]
    p: sp.Symbol
    committed: tuple[sp.Symbol, ...]
    rhs: sp.Matrix
    reduced: sp.Matrix
    jacobian: sp.Matrix


def rate_equation(rule: str = "both", accepts: tuple[float, float] = SURE) -> RateEquation:
    """The two-word minimal naming game with bias p and committed agents, as [004] SI describes it.

    dx_k/dt = ½ Σ_ij x_i x_j Σ_w u_w(i) (changes of the number of k in the meeting). The sum includes committed agents;
    the factor is ½ because two units of time are a round.

    Parameters
    ----------
    rule, accepts
        'both' or 'listener', and (π, φ), as for `interactions`.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    reaction_model : its numbers, and more words

    Examples
    --------
    Without committed agents, where only the hearer updates.

    >>> equation = theory.minimal_naming_game.rate_equation("listener")
    >>> equation.rhs[0].subs(dict.fromkeys(equation.committed, 0)).factor()
    (p*x_A*x_AB + p*x_AB**2 - x_A*x_B)/2
    """
    return _derived(check_rule(rule), checked_answers(accepts))


def checked_answers(accepts: Any) -> tuple[sp.Rational, sp.Rational]:
    """π and φ as the decimals that they print."""
    given, exact = one_or_several(accepts), []
    if len(given) != 2:
        raise InputError(f"accepts = {shown(accepts)}: expected two probabilities, for words held and not held")
    for k, one in enumerate(given):
        number = real_number(f"accepts[{k}]", one, least=0, most=1)
        exact.append(sp.Rational(one if isinstance(one, (int, Fraction, sp.Rational)) else str(number)))
    return tuple(exact)


@cache
def _derived(rule: str, accepts: tuple[sp.Rational, sp.Rational]) -> RateEquation:
    x, committed = sp.symbols("x_A x_B x_AB", real=True), sp.symbols("c_A c_B", real=True)
    p, fraction = sp.Symbol("p", real=True), (*x, *committed)
    rates = [sp.Integer(0)] * len(fraction)
    for event in interactions(two_word_agents(), lambda lexicon: uttered(lexicon, 2, p), rule, accepts=accepts):
        rate = event.probability * fraction[event.before[0]] * fraction[event.before[1]] / sp.Rational(TIME_PER_ROUND)
        for before, after in zip(event.before, event.after, strict=True):
            rates[before] -= rate
            rates[after] += rate
    rhs = sp.Matrix([sp.expand(rate) for rate in rates[:3]])
    reduced = rhs[:2, 0].subs(x[2], 1 - sum(committed) - x[0] - x[1]).expand()
    return RateEquation(x, p, committed, rhs, reduced, reduced.jacobian(x[:2]))


def reaction_model(
    n_words: int = 2,
    rule: str = "both",
    *,
    p: float = 0.5,
    start_empty: bool = False,
    accepts: tuple[float, float] = SURE,
) -> ReactionModel:
    """The minimal naming game with W words and lexicons of any size, exactly in mean field ([004] SI).

    There is one channel for each word, whether the hearer knows it, and its answer. Agents utter each of their words
    equally often.

    Parameters
    ----------
    n_words, rule
        W, 1 to 6, and 'both' or 'listener', as for `interactions`.
    p
        For two words: probability that an agent with both utters the first.
    start_empty
        Add the empty lexicon, whose holders invent a word uniformly at random.
    accepts
        (π, φ), as for `interactions`.

    Returns
    -------
    ReactionModel over the 2^W - 1 lexicons by size, as 'A', 'B', 'AB' (the empty one is 'none' and comes first), then
    the agents committed to each word, as 'A committed', each a conserved class. Compositions are fractions of all
    agents; two units of time are a round.

    Raises
    ------
    InputError
        If an argument is out of its range.

    See Also
    --------
    meanfield.solve : integrates it
    fixed_points : two words, in closed form

    Examples
    --------
    Ten per cent of the agents are committed to A, more than the critical fraction 0.098.

    >>> points = meanfield.fixed_points(theory.minimal_naming_game.reaction_model(), masses=[0.9, 0.1, 0.0])
    >>> points["stability"].values.tolist()
    ['stable']
    """
    whole_number("n_words", n_words, 1, MAX_WORDS)
    check_rule(rule)
    real_number("p", p, least=0, most=1)
    if n_words != 2 and p != 0.5:
        raise InputError(f"p = {p}: expected 0.5 for n_words = {n_words}")
    held_by_all = lexicons(n_words, 0 if start_empty else 1)
    agents = [*map(Agent, held_by_all), *(Agent(frozenset({word}), committed=True) for word in range(n_words))]
    place = {agent: k for k, agent in enumerate(agents)}
    pi, phi = map(float, checked_answers(accepts))
    channels = []  # what agents say and hear, and what becomes of speakers and of hearers
    for word, known, success in product(range(n_words), (True, False), (True, False)):
        yes = pi if known else phi
        chance = yes if success else 1 - yes
        if chance:
            says = [uttered(agent.lexicon, n_words, p).get(word, 0.0) for agent in agents]
            hears = [chance * ((word in agent.lexicon) == known) for agent in agents]
            collapses = success and rule == "both"
            spoke = [place[_after(agent, word, collapses)] if says[k] else k for k, agent in enumerate(agents)]
            heard = [place[_after(agent, word, success)] if hears[k] else k for k, agent in enumerate(agents)]
            channels.append((says, hears, *np.eye(len(agents))[[spoke, heard]]))
    names = ["".join(LETTERS[word] for word in sorted(held)) or "none" for held in held_by_all]
    names += [f"{LETTERS[word]} committed" for word in range(n_words)]
    return ReactionModel(names, *map(list, zip(*channels, strict=True)), encounter_rate=1 / TIME_PER_ROUND)


def lexicons(n_words: int, least: int = 1) -> list[frozenset[int]]:
    """Every lexicon of at least so many words, by size."""
    return [frozenset(held) for size in range(least, n_words + 1) for held in combinations(range(n_words), size)]
