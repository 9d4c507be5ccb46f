"""The minimal naming game of two words in groups: one agent speaks to all others, who agree on the word or learn it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meanfield import TIME_PER_ROUND, ReactionModel
from meanfield.toolbox import one_of, real_number, whole_number

AGREE = ("union", "unanimity")
MOST = 1000  # members of a group
Rate = Callable[[Mapping[str, Any]], Any]


def group_model(group: int, agree: str = "unanimity", *, beta: float = 1.0, p: float = 0.5) -> ReactionModel:
    """The rate equation of the minimal naming game among groups of n random agents, of whom one speaks to all.

    The speaker says one of its words. The group may agree on it if one of the hearers holds it ('union'), or if all do
    ('unanimity'), and then does so with probability β: all members who are not committed keep this word only. Otherwise
    hearers who lack the word add it. With K_w the fraction of agents who hold word w and s_w the probability that an
    agent says it, in a group of n = m + 1, per meeting and for w = A, rates of one agent are

        hearer AB → A    m β s_A K_A^(m-1)  (unanimity),   m β s_A  (union),
        speaker AB → A   β p K_A^m,                        β p (1 - (1 - K_A)^m),
        hearer B → A     0,                                m β s_A (1 - (1 - K_A)^(m-1)),
        hearer B → AB    m s_A,                            m s_A (1 - β + β (1 - K_A)^(m-1)).

    N meetings are a round, two units of time. For n = 2 this is `reaction_model` with ``accepts=(beta, 0)``. Members of
    a group change together, while agents of a reaction model with rates that are functions change one by one: the
    rate equation, fixed points and critical masses hold for the game, noise and lifetimes do not.

    Source: Iacopini, Petri, Baronchelli and Barrat, Commun. Phys. 5, 64 (2022), for the rules; rates are our own.

    Parameters
    ----------
    group, agree
        n, 2 to 1000, and 'union' or 'unanimity'.
    beta, p
        Probabilities to agree where that is possible, and that an agent with both words says A.

    Returns
    -------
    ReactionModel over the states of `reaction_model`: 'A', 'B', 'AB', 'A committed', 'B committed'.

    Raises
    ------
    InputError
        If an argument is out of its range.

    See Also
    --------
    reaction_model : pairs

    Examples
    --------
    The fraction that has to be committed to A before the others leave B, where all three have to know a word:

    >>> import meanfield
    >>> from theory.minimal_naming_game import group_model
    >>> diagram = meanfield.bifurcation(group_model(3), interval=(0, 0.3), masses=lambda c: [1 - c, c, 0.0])
    >>> diagram["parameter"][diagram["fold"]].values.round(4)
    array([0.125])

    By the size of groups, at β = 1 and at β = 0.7:

    ===========  =====  =====  =====  =====  =====  =====  =====  =====
    agree        2      3      5      10     2      3      5      10
    ===========  =====  =====  =====  =====  =====  =====  =====  =====
    unanimity    0.098  0.125  0.129  0.104  0.073  0.092  0.096  0.081
    union        0.098  0.077  0.046  0.019  0.073  0.053  0.024  0.008
    ===========  =====  =====  =====  =====  =====  =====  =====  =====
    """
    m = whole_number("group", group, 2, MOST) - 1
    one_of("agree", agree, AGREE)
    real_number("beta", beta, least=0, most=1)
    real_number("p", p, least=0, most=1)
    rules, rates = [], []
    for word, other, bias in (("A", "B", p), ("B", "A", 1 - p)):
        rules += [(other, "AB"), (other, word), ("AB", word)]
        rates += _rates(word, m, agree, beta, bias)
    return ReactionModel.from_rules(rules, rates, states=["A", "B", "AB", "A committed", "B committed"])


def _rates(word: str, m: int, agree: str, beta: float, p: float) -> tuple[Rate, Rate, Rate]:
    """Per unit of time: agents with the other word learn this one, or drop theirs for it; those with both keep it."""
    union = agree == "union"

    def said_known(x: Mapping[str, Any]) -> tuple[Any, Any]:
        own = x[word] + x[f"{word} committed"]
        return own + p * x["AB"], own + x["AB"]

    def dropped(x: Mapping[str, Any]) -> Any:
        said, known = said_known(x)
        return m * beta * said * (1 - (1 - known) ** (m - 1)) / TIME_PER_ROUND if union else 0 * known

    def learned(x: Mapping[str, Any]) -> Any:
        return m * said_known(x)[0] / TIME_PER_ROUND - dropped(x)

    def kept(x: Mapping[str, Any]) -> Any:
        said, known = said_known(x)
        heard = m * said * (1 if union else known ** (m - 1))
        agreed = 1 - (1 - known) ** m if union else known**m
        return beta * (heard + p * agreed) / TIME_PER_ROUND

    return learned, dropped, kept
