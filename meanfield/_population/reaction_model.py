"""Reaction models of low rank: pairwise encounters of agents in finitely many states.

An encounter of initiator i and responder j takes channel m with probability α_m(i) β_m(j); each of the two then moves
by a stochastic matrix of its own for that channel. With x the composition, P_m and R_m these matrices, S the rates of
spontaneous moves and ε the encounters that an agent initiates per unit of time,

    dx/dt = ε Σ_m [(β_m·x)(P_mᵀ - 1)(α_m∘x) + (α_m·x)(R_mᵀ - 1)(β_m∘x)] + (Sᵀ - diag(S1)) x.

An agent is thus a Markov jump process with dx/dt = G(y) x, whose generator G is affine in the fields y = (ε β_m·x, ε
α_m·x). The naming game is the case m = (a, b), α_m = q_a, β_m = q_b and ε = 1/2. Rates at which agents move alone may
be functions of the composition, which are fields as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components

from meanfield._population.changes import Changes, Rate
from meanfield._population.reaction_arguments import (
    acting_pairs,
    probabilities,
    state_names,
    stochastic_matrices,
    transition_rates,
)
from meanfield._population.reaction_rules import channels_of
from meanfield.toolbox._arguments import real_number, shown
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import values_in_order

MAX_TENSOR_STATES = 64  # 64⁴ float64 are 134 MB
MOST_TOLD = 6  # states, and moves


class Moves(NamedTuple):
    """All E moves of one agent: from `source` to `target` at the rate `rate` times the field `field`.

    The fields are ``fields @ x + offset``, then the rates that are functions of the composition.
    """

    source: Any  # shape (E,), as target and field
    target: Any
    field: Any
    rate: Any  # shape (E,), positive
    fields: Any  # shape (F, K)
    offset: Any  # shape (F,)


class ReactionModel:
    """Agents in finitely many states who meet in pairs, or move alone.

    The channels of encounters are products of a factor of the initiator and one of the responder. Rates of moves alone
    are constant, or functions of the composition.

    Parameters
    ----------
    states
        K ≥ 1 distinct labels: strings, or tuples of strings and integers.
    alpha, beta
        Shape (M, K). Initiator i and responder j take channel m with probability alpha[m, i] · beta[m, j]. The sum over
        m is at most 1; with the remaining probability nothing happens.
    first, second
        M row-stochastic matrices of shape (K, K), sparse or dense: how initiator and responder move in channel m,
        independently of each other. None stands for the identity, as an entry or as the whole argument.
    spontaneous
        Rates of spontaneous moves from row to column per unit of time, shape (K, K), sparse or dense, with a zero
        diagonal.
    encounter_rate
        ε > 0, the encounters that an agent initiates per unit of time; it responds in as many on average.
    time_unit
        Name of the unit of time, for labels.
    changes
        Moves (source, target, rate) of one agent, whose rate is a function of the composition, as in `from_rules`.

    Attributes
    ----------
    states
        Tuple of the K labels. `names` holds them as strings, tuples joined by ", ".
    moves
        The moves of one agent (`Moves`): between different states, in channels that some pair takes.
    classes
        The conserved class of each state, 0 … C - 1, shape (K,). Agents move between the states of a class, directly or
        through others, at some composition; the fraction of agents in a class never changes.

    Raises
    ------
    InputError
        If an argument is not as described.

    Examples
    --------
    An epidemic: a susceptible agent that meets an infected one becomes infected, and infected ones recover at the rate
    0.5.

    >>> infect, recover = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 0], [0.5, 0]])
    >>> model = meanfield.ReactionModel(["S", "I"], [[1, 0]], [[0, 1]], [infect], None, recover)
    >>> model.drift([0.9, 0.1]).round(3)
    array([-0.04,  0.04])
    >>> points = meanfield.fixed_points(model)
    >>> points["composition"].values.round(3), points["stability"].values.tolist()
    (array([[1. , 0. ],
           [0.5, 0.5]]), ['unstable', 'stable'])
    """

    def __init__(
        self,
        states: Sequence[Hashable],
        alpha: Any,
        beta: Any,
        first: Any = None,
        second: Any = None,
        spontaneous: Any = None,
        encounter_rate: float = 1.0,
        time_unit: str = "1",
        changes: Iterable[tuple[Hashable, Hashable, Rate]] = (),
    ) -> None:
        if isinstance(states, str) or not isinstance(states, Iterable) or getattr(states, "ndim", 1) == 0:
            raise InputError(f"states = {shown(states)}: expected a sequence of labels")
        self.states = tuple(states)
        self.names = state_names(self.states)
        size = len(self.states)
        self.alpha = probabilities("alpha", alpha, size)
        self.beta = probabilities("beta", beta, size)
        acting_pairs(self.alpha, self.beta, self.names)
        self.first = stochastic_matrices("first", first, len(self.alpha), self.names)
        self.second = stochastic_matrices("second", second, len(self.alpha), self.names)
        self.spontaneous = transition_rates("spontaneous", spontaneous, self.names)
        self.encounter_rate = real_number("encounter_rate", encounter_rate, above=0)
        if not isinstance(time_unit, str) or not time_unit:
            raise InputError(f"time_unit = {time_unit!r}: expected the name of a unit")
        self.time_unit = time_unit
        self.changes = Changes(changes, self.states, self.names)
        self.moves = self._moves()
        edges = coo_array((self.moves.rate, (self.moves.source, self.moves.target)), shape=(size, size))
        self.classes: Int[np.ndarray, " states"] = connected_components(edges, directed=False)[1].astype(np.int64)

    @classmethod
    def from_rules(
        cls,
        rules: Mapping[str, str] | Iterable[tuple[str, str]],
        rates: float | Rate | Sequence[float | Rate] | np.ndarray,
        *,
        states: Sequence[str] | None = None,
        time_unit: str = "1",
    ) -> ReactionModel:
        """The model of rules of mass action: 'A + B' at the rate k happens k x_A x_B times per agent and time.

        '2 A' does so k x_A² times, without a half. Among N agents two different ones meet, so that x_A x_B is
        n_A n_B / (N (N - 1)), and x_A² is n_A (n_A - 1) / (N (N - 1)).

        Parameters
        ----------
        rules
            ``{"S + I": "2 I", "I": "S"}``, or pairs of such texts where a left side has several outcomes. One agent, or
            two that meet, on the left and as many on the right; for births and deaths add a state of empty places. An
            agent that both sides have stays what it is. Names begin with no digit and have no '+'.
        rates
            One for each rule, in their order, or one for all; at least 0, per unit of time. The rate of a rule of one
            agent may be a function f of the composition, ``lambda x: 2 * x["I"] ** 2``: with x[name] the fraction of
            all agents in a state, in the order of `states`, N x_A f(x) agents go from A to B per unit of time.
            Functions are smooth, and written with `jax.numpy`.
        states
            Their order. Default: that in which the rules name them.
        time_unit
            Name of the unit of time, for labels.

        Raises
        ------
        InputError
            If a rule or a rate is not as described.

        Examples
        --------
        The stiff reactions of Robertson:

        >>> rules = {"A": "B", "2 B": "B + C", "B + C": "A + C"}
        >>> model = meanfield.ReactionModel.from_rules(rules, [0.04, 3e7, 1e4])
        >>> solution = meanfield.solve(model, initial=np.array([1.0, 0, 0]), times=[0.4, 40])
        >>> solution["composition"].sel(state="A").values.round(5)
        array([0.98517, 0.71583])

        Agents who see all others, and follow the majority the more surely the larger it is, agree from β = 1 on:

        >>> import jax.numpy as jnp
        >>> def audience(beta):
        ...     def yes(x):
        ...         return (1 + jnp.tanh(beta * (x["yes"] - x["no"]))) / 2
        ...     return meanfield.ReactionModel.from_rules({"no": "yes", "yes": "no"}, [yes, lambda x: 1 - yes(x)])
        >>> meanfield.fixed_points(audience(1.5))["composition"].sel(state="yes").values.round(3)
        array([0.071, 0.5  , 0.929])
        """
        return cls(**channels_of(rules, rates, states), time_unit=time_unit)

    def __repr__(self) -> str:
        moves = dict.fromkeys(f"{self.names[a]} → {self.names[b]}" for a, b in zip(*self.moves[:2], strict=True))
        told = [
            f"{len(names)} {what}: {', '.join(names[:MOST_TOLD])}{', …' * (len(names) > MOST_TOLD)}"
            for what, names in (("states", self.names), ("moves", [*moves]))
        ]
        return f"ReactionModel({'; '.join(told)})"

    @property
    def n_states(self) -> int:
        """K, the number of states."""
        return len(self.states)

    @property
    def n_classes(self) -> int:
        """C, the number of conserved classes."""
        return int(self.classes.max()) + 1

    @cached_property
    def fastest(self) -> float:
        """A positive bound on the rate at which an agent changes its state, per unit of time.

        Of a rate that is a function it has the largest value found, or slope times the source where that is larger.
        Encounters without effect do not count: models with the same rate equation have the same bound.
        """
        moves = self.moves
        peak = np.append(moves.fields.max(axis=1, initial=0.0) + moves.offset, self.changes.peak)
        rates = np.bincount(moves.source, weights=moves.rate * peak[moves.field], minlength=self.n_states)
        return float(rates.max()) or self.encounter_rate

    @property
    def game(self) -> tuple[Any, ...]:
        """The arrays of `meanfield.core.ReactionGame`; source, target and rates of a `RateGame` follow if it is one."""
        own, changes = np.concatenate([self.alpha, self.beta]), self.changes
        paired = self.moves.field < len(self.moves.offset)
        moves = (values[paired] for values in self.moves[:4])
        driven = (changes.source, changes.target, changes.rates) if len(changes) else ()
        return own, *moves, self.classes, self.encounter_rate, *driven

    def index(self, state: Hashable) -> int:
        """The position of a state in `states`; InputError for an unknown label."""
        if state not in self.states:
            raise InputError(f"state = {state!r}: expected one of {', '.join(map(repr, self.states))}")
        return self.states.index(state)

    def class_masses(self, x: Any) -> Float[np.ndarray, " classes"]:
        """The fraction of agents in each conserved class, at the composition x and ever after."""
        return np.bincount(self.classes, weights=self._composition(x), minlength=self.n_classes)

    def drift(self, x: Any) -> Float[np.ndarray, " states"]:
        """dx/dt at the composition x, shape (K,), per unit of time."""
        gained, lost = self.fluxes(x)
        return gained - lost

    def fluxes(self, x: Any) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
        """The gain and the loss of each state at the composition x, shape (K,), per unit of time."""
        x, moves = self._composition(x), self.moves
        flux = moves.rate * self._fields(x)[moves.field] * x[moves.source]
        return self._gained(moves.target, flux), self._gained(moves.source, flux)

    def generator(self, x: Any) -> Float[np.ndarray, "states states"]:
        """G(y) with dx/dt = G(y) x, dense, for an agent whose partners have the composition x. Columns sum to 0."""
        x, moves = self._composition(x), self.moves
        rate = moves.rate * self._fields(x)[moves.field]
        G = _summed(self._places[0], rate, (self.n_states, self.n_states))
        np.fill_diagonal(G, -G.sum(axis=0))
        return G

    def jacobian(self, x: Any) -> Float[np.ndarray, "states states"]:
        """The derivative of `drift` at x, dense: G(y) + (∂G/∂y x) ∂y/∂x. Columns sum to 0 in each class."""
        x = self._composition(x)
        return self.generator(x) + self.through_partners(x, x)

    def through_partners(self, x: Any, z: Any) -> Float[np.ndarray, "states states"]:
        """The derivative of G(y) z in x, for agents of the composition z whose partners have the composition x."""
        x, z, moves = self._composition(x), self._composition(z), self.moves
        slopes = np.vstack([moves.fields, self.changes.slopes(x)]) if len(self.changes) else moves.fields
        flux = moves.rate * z[moves.source]
        return _summed(self._places[1], np.append(flux, -flux), (self.n_states, len(slopes))) @ slopes

    def _fields(self, x: np.ndarray) -> Float[np.ndarray, " fields"]:
        fields = self.moves.fields @ x + self.moves.offset
        return np.append(fields, self.changes.values(x[None])[0]) if len(self.changes) else fields

    @cached_property
    def _places(self) -> tuple[Int[np.ndarray, " moves"], Int[np.ndarray, " ends"]]:
        """Where each move counts in G, and where its target and its source count in ∂(Gz)/∂y."""
        moves, n_fields = self.moves, len(self.moves.offset) + len(self.changes)
        ends = np.append(moves.target, moves.source) * n_fields + np.tile(moves.field, 2)
        return moves.target * self.n_states + moves.source, ends

    def tensor(self) -> Float[np.ndarray, "states states states states"]:
        """P[i, j, i', j'], the probability that an encounter of initiator i and responder j leaves them in i' and j'.

        Spontaneous moves are not included; `protocol` adds them.

        Raises
        ------
        InputError
            If the model has more than 64 states, or rates that are functions.
        """
        if len(self.changes):
            raise InputError("the model has rates that are functions: expected encounters of pairs alone for a tensor")
        if self.n_states > MAX_TENSOR_STATES:
            raise InputError(f"the model has {self.n_states} states: expected at most {MAX_TENSOR_STATES} for a tensor")
        one = np.eye(self.n_states)
        idle = np.maximum(1 - self.alpha.T @ self.beta, 0)
        P = np.einsum("ij,ik,jl->ijkl", idle, one, one)
        for a, b, first, second in zip(self.alpha, self.beta, self.first, self.second, strict=True):
            P += np.einsum("ik,jl->ijkl", a[:, None] * first.toarray(), b[:, None] * second.toarray())
        return P

    def protocol(self) -> tuple[Float[np.ndarray, "states states states states"], float]:
        """The model as a population protocol, for exact simulation of finite populations.

        Spontaneous moves become interactions. With s their largest total rate, an interaction is an encounter with
        probability ε/(ε + s); otherwise its initiator alone moves, with probabilities S/s.

        Returns
        -------
        P[i, j, i', j'], and ε + s, the interactions that an agent initiates per unit of time. N interactions of N
        agents take 1/(ε + s) units of time.

        Raises
        ------
        InputError
            If the model has more than 64 states.

        Examples
        --------
        >>> infect, recover = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 0], [0.5, 0]])
        >>> model = meanfield.ReactionModel(["S", "I"], [[1, 0]], [[0, 1]], [infect], None, recover)
        >>> P, interactions = model.protocol()
        >>> interactions  # that an agent initiates per unit of time: one encounter, half a recovery
        1.5
        >>> P[0, 1].round(3)  # a susceptible agent meets an infected one
        array([[0.   , 0.333],
               [0.   , 0.667]])
        """
        P = self.tensor()
        total = self.spontaneous.sum(axis=1)
        most = float(total.max())
        rate = self.encounter_rate + most
        if most == 0:
            return P, rate
        alone = (self.spontaneous.toarray() + np.diag(most - total)) / most
        moved = np.einsum("ik,jl->ijkl", alone, np.eye(self.n_states))
        return (self.encounter_rate * P + most * moved) / rate, rate

    def _gained(self, to: np.ndarray, flux: np.ndarray) -> np.ndarray:
        # bincount of nothing is of integers
        return np.bincount(to, weights=flux, minlength=self.n_states).astype(np.float64, copy=False)

    def _composition(self, x: Any) -> np.ndarray:
        if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (self.n_states,):
            return x  # at once: solvers ask thousands of times
        x = values_in_order(x, {"state": self.names}, "x")
        if x.shape != (self.n_states,):
            raise InputError(f"x has shape {x.shape}: expected ({self.n_states},), one number for each state")
        return x

    def _moves(self) -> Moves:
        """A field that is zero for every composition moves nobody."""
        own, matrices = np.concatenate([self.alpha, self.beta]), (*self.first, *self.second)
        acting = np.any(np.concatenate([self.beta, self.alpha]), axis=1)
        steps = csr_array(vstack(matrices)) if matrices else csr_array((0, self.n_states))
        ways, source = np.divmod(
            np.repeat(np.arange(len(matrices) * self.n_states), np.diff(steps.indptr)), self.n_states
        )
        rate = steps.data * own[ways, source]
        moving = (source != steps.indices) & (rate > 0) & acting[ways]
        parts = [(one[moving] for one in (source, steps.indices, ways, rate))]
        alone = coo_array(self.spontaneous)
        parts.append((alone.row, alone.col, np.full(len(alone.row), len(own)), alone.data))
        changes = self.changes
        parts.append((changes.source, changes.target, len(own) + 1 + np.arange(len(changes)), np.ones(len(changes))))
        source, target, field, rate = map(np.concatenate, zip(*parts, strict=True))
        fields = np.vstack(
            [self.encounter_rate * self.beta, self.encounter_rate * self.alpha, np.zeros((1, self.n_states))]
        )
        offset = np.append(np.zeros(len(own)), 1.0)
        return Moves(source.astype(np.int64), target.astype(np.int64), field, rate, fields, offset)


def _summed(places: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """A dense matrix with the values in these places, counted along rows, added where several are in one."""
    flat = np.bincount(places, weights=values, minlength=shape[0] * shape[1])
    return flat.astype(np.float64, copy=False).reshape(shape)  # bincount of nothing is of integers
