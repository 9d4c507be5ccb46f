"""The rate equation of the naming game with memory, derived with sympy for two words and H = 1.

The derivation uses the paper's definitions (shift function, gain and loss terms, reduced Jacobian) and nothing of the
numerical engine, so each is an independent check of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

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
    """

    x: tuple[sp.Symbol, ...]
    q: tuple[sp.Symbol, ...]
    rhs: sp.Matrix


def reaction_tensor(q: tuple[sp.Expr, ...]) -> list[list[list[sp.Expr]]]:
    """P[k][i][j], the probability that an agent in memory i goes to k on meeting one in j: [004] Eqs. 7, 8, 16.

    The printed Eq. 16 lacks the 1 - before q(j) in its last case, and so violates Eq. 17, Σ_k P_k(i, j) = 1.
    """
    says = [(q[i], 1 - q[i]) for i in SPECIES]
    return [
        [
            # With H = 1 the new memory is (own, partner's) whatever the old one was, and never empty.
            [says[i][memory[0]] * says[j][memory[1]] if memory else sp.Integer(0) for j in SPECIES]
            for i in SPECIES
        ]
        for memory in MEMORIES
    ]


def rate_equation() -> RateEquation:
    """dx_k/dt = (gain I + gain II - loss I - loss II)/2: [004] Eqs. 18-22, with the factor 2 absorbed as in Eq. 27."""
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
        n, the species that x_n = 1 - Σ_{j≠n} x_j eliminates.

    See Also
    --------
    meanfield.spectrum : eigenvalues for any policy
    """
    kept = [i for i in SPECIES if i != eliminated]
    jacobian = equation.rhs.jacobian(sp.Matrix(equation.x))
    return sp.Matrix(4, 4, lambda i, j: jacobian[kept[i], kept[j]] - jacobian[kept[i], eliminated])


def consensus_eigenvalues(word: int) -> tuple[dict[sp.Expr, int], tuple[sp.Symbol, ...]]:
    """Eigenvalues with their multiplicities at the consensus on `word`, and the symbols q_i: [004] Eq. 38 for H = 1.

    The state is the paper's candidate [π]^2, where all agents remember only `word`; it is a fixed point if they also
    always say it (q = 1 or 0 there).
    """
    equation = rate_equation()
    n = MEMORIES.index((word, word))
    at_consensus = {x: sp.Integer(i == n) for i, x in enumerate(equation.x)}
    matrix = reduced_jacobian(equation, n).subs(at_consensus)
    return {sp.simplify(value): count for value, count in matrix.eigenvals().items()}, equation.q
