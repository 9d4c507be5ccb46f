"""The rate equation of the naming game with memory, derived with sympy for two words and H = 1.

The derivation uses the paper's definitions (shift function, gain and loss terms, reduced Jacobian) and nothing of the
numerical engine, so each is an independent check of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from meanfield import InputError
from meanfield.toolbox import instance, shown, whole_number

# Memories of at most one interaction (own word, partner's word), in the order of meanfield.MemorySpace(2, 1).
MEMORIES = ((), (0, 0), (0, 1), (1, 0), (1, 1))
SPECIES = range(len(MEMORIES))


@dataclass(frozen=True)
class RateEquation:
    """A derived rate equation.

    Attributes
    ----------
    x
        Symbols x_i, the fraction of agents in each of the five memories.
    q
        Symbols q_i, the probability that an agent in memory i says the first word.
    rhs
        dx_k/dt in the time of [004] Eq. 27: two units are a population round.

    Examples
    --------
    All agents remember the first word from both sides and say it with probability 0.9: 19 in 100 leave this memory.

    >>> from fractions import Fraction
    >>> from theory.naming_game import rate_equation
    >>> equation = rate_equation()
    >>> values = dict(zip(equation.x, [0, 1, 0, 0, 0])) | {equation.q[1]: Fraction(9, 10)}
    >>> equation.rhs.subs(values).T
    Matrix([[0, -19/100, 9/100, 9/100, 1/100]])
    """

    x: tuple[sp.Symbol, ...]
    q: tuple[sp.Symbol, ...]
    rhs: sp.Matrix


def reaction_tensor(q: tuple[sp.Expr, ...]) -> list[list[list[sp.Expr]]]:
    """P[k][i][j], the probability that an agent in memory i goes to k on meeting one in j: [004] Eqs. 7, 8, 16.

    The printed Eq. 16 lacks the 1 - before q(j) in its last case, and so violates Eq. 17, Σ_k P_k(i, j) = 1.

    Parameters
    ----------
    q
        Probabilities q_i, five expressions, that an agent in memory i says the first word.

    Returns
    -------
    Lists of expressions, 5 × 5 × 5. The memories are (), (0, 0), (0, 1), (1, 0) and (1, 1), pairs of own and partner's
    word.

    See Also
    --------
    meanfield.core.reaction_tensor : numbers, for any policy

    Examples
    --------
    An agent in (0, 0) and a partner in (0, 1) both say the second word. The probabilities of all outcomes sum to 1, Eq.
    17.

    >>> import sympy as sp
    >>> from theory.naming_game import reaction_tensor
    >>> P = reaction_tensor(sp.symbols("q0:5"))
    >>> P[4][1][2]
    (1 - q1)*(1 - q2)
    >>> sp.expand(sum(P[k][1][2] for k in range(5)))
    1
    """
    try:
        says = [(sp.sympify(each), 1 - sp.sympify(each)) for each in q]
    except (TypeError, ValueError, AttributeError):
        says = []
    if len(says) != len(SPECIES):
        raise InputError(f"q = {shown(q)}: expected {len(SPECIES)} expressions")
    return [
        [
            # With H = 1 the new memory is (own, partner's) whatever the old one was, and never empty.
            [says[i][memory[0]] * says[j][memory[1]] if memory else sp.Integer(0) for j in SPECIES]
            for i in SPECIES
        ]
        for memory in MEMORIES
    ]


def rate_equation() -> RateEquation:
    """dx_k/dt = (gain I + gain II - loss I - loss II)/2: [004] Eqs. 18-22, with the factor 2 absorbed as in Eq. 27.

    Returns
    -------
    RateEquation

    See Also
    --------
    meanfield.drift : numbers, for any policy

    Examples
    --------
    Empty memories decay at the rate 1, as Σx = 1, and the equation conserves this sum.

    >>> from theory.naming_game import rate_equation
    >>> equation = rate_equation()
    >>> equation.rhs[0].factor()
    -x0*(x0 + x1 + x2 + x3 + x4)
    >>> sum(equation.rhs).expand()
    0
    """
    x = sp.symbols("x0:5", nonnegative=True)
    q = sp.symbols("q0:5", nonnegative=True)
    P = reaction_tensor(q)
    rhs = []
    for k in SPECIES:
        others = [i for i in SPECIES if i != k]
        gain_first = sum(x[i] * x[j] * P[k][i][j] for i in others for j in SPECIES)
        gain_second = sum(x[i] * x[j] * P[k][j][i] for j in others for i in SPECIES)
        loss_first = x[k] * sum(x[j] * (1 - P[k][k][j]) for j in SPECIES)
        loss_second = x[k] * sum(x[i] * (1 - P[k][k][i]) for i in SPECIES)
        rhs.append(sp.expand((gain_first + gain_second - loss_first - loss_second) / 2))
    return RateEquation(x, q, sp.Matrix(rhs))


def reduced_jacobian(equation: RateEquation, eliminated: int) -> sp.Matrix:
    """J_red[i, j] = ∂F_i/∂x_j - ∂F_i/∂x_n for i, j ≠ n, shape (4, 4): [004] Eq. 37, at any composition.

    Parameters
    ----------
    equation
        From `rate_equation`.
    eliminated
        n, from 0 to 4, the species that x_n = 1 - Σ_{j≠n} x_j eliminates.

    Raises
    ------
    InputError
        If there is no such species.

    See Also
    --------
    meanfield.spectrum : eigenvalues for any policy

    Examples
    --------
    Agents who repeat what they heard last are voters. Their consensus is marginal, with an eigenvalue 0.

    >>> from theory.naming_game import rate_equation, reduced_jacobian
    >>> equation = rate_equation()
    >>> J = reduced_jacobian(equation, 1)
    >>> voters = dict(zip(equation.x, [0, 1, 0, 0, 0])) | dict(zip(equation.q, [1, 1, 0, 1, 0]))
    >>> sorted(J.subs(voters).eigenvals().items())
    [(-1, 3), (0, 1)]
    """
    eliminated = whole_number("eliminated", eliminated, 0, len(MEMORIES) - 1)
    kept = [i for i in SPECIES if i != eliminated]
    instance("equation", equation, RateEquation)
    jacobian = equation.rhs.jacobian(sp.Matrix(equation.x))
    return sp.Matrix(4, 4, lambda i, j: jacobian[kept[i], kept[j]] - jacobian[kept[i], eliminated])


def consensus_eigenvalues(word: int) -> tuple[dict[sp.Expr, int], tuple[sp.Symbol, ...]]:
    """Eigenvalues with their multiplicities at the consensus on `word`, and the symbols q_i: [004] Eq. 38 for H = 1.

    The state is the paper's candidate [π]^2, where all agents remember only `word`; it is a fixed point if they also
    always say it (q = 1 or 0 there).

    Parameters
    ----------
    word
        0 or 1.

    Returns
    -------
    {eigenvalue: its multiplicity}, four in all, per unit of time; and the symbols q_0 to q_4.

    Raises
    ------
    InputError
        If `word` is neither 0 nor 1.

    See Also
    --------
    meanfield.stability_table : numbers, for any policy

    Examples
    --------
    Three of the four are -1. With q1 = 1 the consensus is a fixed point, and stable if q2 + q3 > 1.

    >>> from theory.naming_game import consensus_eigenvalues
    >>> eigenvalues, q = consensus_eigenvalues(0)
    >>> eigenvalues[-1]
    3
    >>> min(eigenvalues, key=eigenvalues.get).subs(q[1], 1)
    -q2 - q3 + 1
    """
    word = whole_number("word", word, 0, 1)
    equation = rate_equation()
    n = MEMORIES.index((word, word))
    at_consensus = {x: sp.Integer(i == n) for i, x in enumerate(equation.x)}
    matrix = reduced_jacobian(equation, n).subs(at_consensus)
    return {sp.simplify(value): count for value, count in matrix.eigenvals().items()}, equation.q
