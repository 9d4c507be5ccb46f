"""The messages of a population, with agents of any number of states.

As for the path from empty memories (`_finite_size.messages`), with c_a the fraction committed to word a,

    g_ab = Σ_i u_i q_a(i) v_Γ(i,a,b) + c_a,

summed over kinds, gives the linear equations of u and v of each kind. With n the fraction of agents who are not
committed and G = Σ_ab g_ab g_ba,

    ∫ p·dx - h dt = [p·x] + ∫ [Σ_ab (g_ab - c_a) g_ba - n (G + 1)/2 - (G - 1)/2] dt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigs
from scipy.special import xlogy

from meanfield._finite_size import message_kernel as kernel
from meanfield._finite_size.path_equations import PathEquations
from meanfield._finite_size.response_kernel import correlations
from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.message_path import (
    Ending,
    Found,
    Logarithms,
    Make,
    Messages,
    Solved,
    at_nodes,
    image_of,
    message_path,
    refined,
)
from meanfield._large_deviations.message_prefactor import Fluctuations, prefactor_of
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.prefactor import Prefactor
from meanfield._numerics.course import halves, remaining
from meanfield._population.population import Population

Kinds = Float[np.ndarray, "kinds states"]

DENSE_SIZE = 100  # below, LAPACK is faster than Arnoldi
FINE_STEP, MOST_NODES = 0.3, 900  # for the prefactor
MOST_UNKNOWNS = 9 * MOST_NODES  # messages at all nodes, whose covariances then take half a gigabyte
NEGLIGIBLE = 1e-7  # correlations
LEAST = 1e-300


class PopulationEquations:
    """The agents of a population, in fractions x of all agents, shape (kinds, S)."""

    def __init__(self, population: Population) -> None:
        self.mixture, self.space = population.mixture, population.space
        self.kinds = [PathEquations(q, population.space) for q in self.mixture.q]
        self.committed = self.mixture.committed
        W = self.space.n_words
        self._after = self.space.successors()[:, None, None] + np.arange(W * W).reshape(W, W)

    def of_kinds(self, x: Any) -> Any:
        """From the states of the reaction model, on the last axis, to kinds and states."""
        kinds, n_states = self.mixture.q.shape[:2]
        return x[..., : kinds * n_states].reshape(*x.shape[:-1], kinds, n_states)

    def said(self, x: Kinds) -> Float[np.ndarray, " words"]:
        """Q."""
        return np.einsum("mi,mia->a", x, self.mixture.q) + self.committed

    def transposed(self, x: Kinds, w: Kinds) -> Kinds:
        """J(x)ᵀw."""
        q, after = self.mixture.q, w[:, self._after]
        effect = np.einsum("mi,mia,miab->b", x, q, after)
        return np.einsum("mia,b,miab->mi", q, self.said(x), after) + q @ effect - w

    def spread(self, x: Kinds, w: Kinds) -> float:
        """wᵀDw."""
        moved, said = w[:, self._after] - w[:, :, None, None], x[:, :, None] * self.mixture.q
        met = np.einsum("mia,miab->ab", said, moved)
        return float(np.einsum("mia,b,miab->", said, self.said(x), moved**2) + (met * met.T).sum())


def ending_at(equations: PopulationEquations, saddle: Kinds, first: Kinds) -> Ending:
    """The unstable direction of a saddle, positive at `first`."""
    shape, size = saddle.shape, saddle.size

    def shifted(w: np.ndarray) -> np.ndarray:
        # J + 1 has the unstable eigenvalue as its largest, also in modulus
        w = w.reshape(shape)
        w = equations.transposed(saddle, w) + w
        return (w - _mean(w, saddle)).ravel()  # momenta are known up to a number for each kind

    if size <= DENSE_SIZE:
        values, vectors = np.linalg.eig(np.stack([shifted(w) for w in np.eye(size)], axis=1))
    else:
        operator = LinearOperator((size, size), matvec=shifted, dtype=float)
        start = np.random.default_rng(0).standard_normal(size)
        found: Any = eigs(operator, k=3, which="LR", ncv=40, v0=start)
        values, vectors = found
    leading = int(values.real.argmax())
    left = vectors[:, leading].real.reshape(shape)
    left *= np.sign((left * (first - saddle)).sum()) / np.abs(left).max()
    return Ending(saddle, float(values.real[leading]) - 1, left, equations.spread(saddle, left))


class PopulationProblem:
    """The agents of a population; see `message_path.Problem`."""

    def __init__(
        self,
        equations: PopulationEquations,
        way: Exit,
        ending: Ending,
        start: Any,
        end: float,
        n_steps: int,
        strength: float | None,
    ) -> None:
        self._equations, self._way, self._ending, self._strength = equations, way, ending, strength
        self._start, self._step = equations.of_kinds(start), end / n_steps
        self.times = np.linspace(0.0, end, n_steps + 1)
        self._pace = np.full(2 * n_steps + 1, self._step)
        self.n_messages = equations.space.n_words**2

    def evaluate(self, logarithms: Logarithms) -> Found | None:
        W, courses, n_nodes = self._equations.space.n_words, [], len(self.times)
        messages = np.exp(halves(at_nodes(logarithms, n_nodes))).reshape(-1, W, W)
        last = np.exp(-np.exp(logarithms[-1]) * self._ending.left)
        new = np.zeros((n_nodes, W, W)) + self._equations.committed[:, None]
        for kind, start, end in zip(self._equations.kinds, self._start, last, strict=True):
            v = kernel.backward_course(messages, self._pace, end, kind.q, kind.memory)
            if not 0 < v.min() <= v.max() < np.inf:
                return None
            u = kernel.forward_course(messages, self._pace, start / v[0], kind.q, kind.memory, kind.n_kept)
            new += kernel.messages_of(u, v, kind.q, kind.memory, kind.n_kept)
            courses.append((u, v))
        u, v = (np.stack(course, axis=1) for course in zip(*courses, strict=True))
        if not 0 < new.min() <= new.max() < np.inf:
            return None
        strength = self._strength or self._ending.strength(u[-1] * v[-1])
        return Found(logarithms, image_of(new, strength, logarithms), u, v)

    def guess(self, x: Float[np.ndarray, "nodes all"]) -> Messages:
        said = np.array([self._equations.said(one) for one in self._equations.of_kinds(x)])
        return np.repeat(np.log(said), said.shape[1], axis=1)

    def action(self, found: Found) -> Float[np.ndarray, " nodes"]:
        committed = self._equations.committed
        squares = 2 * self.hamiltonian(found) + 1
        met = squares - np.einsum("a,nba->n", committed, self._messages(found))
        rate = met - (1 - committed.sum()) * (squares + 1) / 2 - (squares - 1) / 2
        rest = remaining(halves(rate[:, None])[:, 0], self._step)
        levels = xlogy(found.u * found.v, found.v).sum((1, 2))
        return levels - levels[0] + rest[0] - rest

    def hamiltonian(self, found: Found) -> Float[np.ndarray, " nodes"]:
        g = self._messages(found)
        return ((g * g.transpose(0, 2, 1)).sum((1, 2)) - 1) / 2

    def course(self, found: Found) -> tuple[Float[np.ndarray, "nodes states"], Float[np.ndarray, "nodes states"]]:
        x, p = found.u * found.v, np.log(found.v)
        return self._on_face(x), self._on_face(p - _mean(p, x))

    def fluctuations(self, found: Found) -> Fluctuations:
        """Of the messages of all agents."""
        pace, n_nodes = self._pace, len(self.times)
        W = self._equations.space.n_words
        messages = np.exp(halves(at_nodes(found.logarithms, n_nodes))).reshape(-1, W, W)
        covariance, alone = (
            np.zeros((n_nodes, n_nodes, W * W, W * W)),
            np.full(n_nodes, self._equations.committed.sum()),
        )
        for n, kind in enumerate(self._equations.kinds):
            share = float(found.u[0, n] @ found.v[0, n])
            if share == 0:
                continue
            u, v = found.u[:, n] / share, np.ascontiguousarray(found.v[:, n])
            agents = kind.q, kind.memory, kind.n_kept
            own = kernel.messages_of(u, v, *agents)
            course = messages, pace, u, v, own.reshape(n_nodes, -1)
            covariance += share * correlations(*course, *agents, NEGLIGIBLE)
            alone += share * (own * own.transpose(0, 2, 1)).sum((1, 2))
        g = self._messages(found)
        return Fluctuations(covariance, (g * g.transpose(0, 2, 1)).sum((1, 2)) - alone)

    def _messages(self, found: Found) -> Float[np.ndarray, "nodes own partner"]:
        W = self._equations.space.n_words
        return np.exp(found.again[:-1]).reshape(-1, W, W)

    def _on_face(self, course: Any) -> Float[np.ndarray, "nodes states"]:
        """Numbers for all kinds of agents as numbers for the states of the face, 0 for committed agents."""
        nodes, committed = len(course), self._way.model.n_states - course[0].size
        return np.hstack([course.reshape(nodes, -1), np.zeros((nodes, committed))])[:, self._way.face]


def population_path(way: Exit, population: Population, *, with_prefactor: bool) -> tuple[Path, Prefactor | None] | str:
    """The path, or the reason if none is found; `way` is in the states of the population's reaction model."""
    equations = PopulationEquations(population)
    saddle = equations.of_kinds(way.saddle)
    if (equations.said(saddle) <= 0).any():
        return "some word is never said here: expected a policy without it"
    first = equations.of_kinds(way.downhill(0.0))
    ending = ending_at(equations, saddle, first)

    def make(start: Any, end: float, n_steps: int, strength: float | None) -> PopulationProblem:
        return PopulationProblem(equations, way, ending, start, end, n_steps, strength)

    solved = message_path(way, make, ending, first)
    if isinstance(solved, str):
        return solved
    return solved.path, _prefactor(solved, make, way, ending) if with_prefactor else None


def _prefactor(solved: Solved, make: Make, way: Exit, ending: Ending) -> Prefactor | None:
    problem, found = solved.problem, solved.found
    while problem.times[1] > FINE_STEP:
        finer = refined(problem, found, make, way.attractor)
        if finer is None:
            return None
        problem, found = finer
    n_nodes, n_messages = len(problem.times), problem.n_messages
    if n_nodes > MOST_NODES or n_nodes * n_messages > MOST_UNKNOWNS:
        return None
    fluctuations = problem.fluctuations(found)
    return prefactor_of(fluctuations, problem.times[1], way.decay, ending.growth)


def _mean(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Over the agents of each kind, 0 where there are none."""
    return (x * values).sum(-1, keepdims=True) / np.maximum(x.sum(-1, keepdims=True), LEAST)
