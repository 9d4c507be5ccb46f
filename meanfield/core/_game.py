"""Games: populations of agents in finitely many states who meet in pairs or groups, each given by one Hamiltonian.

In the limit of many agents a population of N jumps by vectors of order 1/N, and all that is known of it to leading
order is the generating function of its jumps,

    H(x, p) = Σ_jumps rate(x) (exp(p·jump) - 1),

with x the fractions of agents and p the momentum conjugate to x. The rate equation is dx/dt = ∂H/∂p at p = 0, the noise
of N agents has the covariance ∂²H/∂p² / N there, and probabilities of rare ends are exp(-N S) with S the action of H.
The functions of `meanfield.core` differentiate H; nothing else in this package knows how agents meet.
"""

import abc
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from meanfield.core._groups import Array, Hearing

T = TypeVar("T", bound=Callable)


def one_program(function: T) -> T:
    """A function of a game as one program where it is called by itself; within another program nothing changes.

    Calls that hold functions or Python numbers are left as they are: each new one would be a new program, and be kept.
    """
    program = eqx.filter_jit(function, inline=True)

    @wraps(function)
    def call(game: "Flow", *arguments: Any, **options: Any) -> Any:
        leaves = jax.tree.leaves((game, arguments))
        alone = any(callable(leaf) or isinstance(leaf, (float, complex)) for leaf in leaves)
        return (function if alone else program)(game, *arguments, **options)

    return cast(T, call)


class Flow(eqx.Module):
    """A rate equation dx/dt = F(x) of fractions in conserved classes, given by its drift.

    Trajectories and Jacobian work for it, under `jax.jit`, `jax.vmap` and `jax.grad`. Compositions x have the shape of
    `classes`.

    Attributes
    ----------
    classes
        The conserved class of each state, numbers from 0: Σ x over each class is conserved.
    """

    classes: eqx.AbstractVar[Int[Array, "..."]]

    def masses(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The mass of the class of each state, Σ x over the class, in the shape of x."""
        classes = self.classes.ravel()
        return jax.ops.segment_sum(x.ravel(), classes, x.size)[classes].reshape(x.shape)

    @abc.abstractmethod
    def drift(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """F(x), which sums to 0 over each class."""


class Game(Flow):
    """A game, given by its Hamiltonian.

    A subclass defines `hamiltonian` and `classes`. Then drift, Jacobian, noise, trajectories, fixed points and
    eigenvalues work for it. Agents never leave their class: H(x, p) does not change if p is shifted by one number on a
    whole class.
    """

    @abc.abstractmethod
    def hamiltonian(self, x: Float[Array, "..."], p: Float[Array, "..."]) -> Float[Array, ""]:
        """H(x, p) per unit of time, with H(x, 0) = 0; x and p of one shape."""

    def drift(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        return jax.grad(self.hamiltonian, argnums=1)(x, jnp.zeros_like(x))


class PairGame(Game):
    """A game whose Hamiltonian depends on the composition through a few sums over agents, its fields.

    Fields are bilinear in u = x exp(-p) and v = exp(p), which are canonical variables like x and p:

        H(x, p) = E(g),   g = G(u, v) + constants.

    Given the fields as functions of time, Hamilton's equations are linear in u and in v. That is how N agents who meet
    in pairs are N independent agents in random fields; instantons are found from them.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> x, p = np.full(5, 0.2), np.array([0.0, 0.1, 0.0, 0.0, -0.1])
    >>> energy = game.energy(game.fields(x * np.exp(-p), np.exp(p)) + game.constants)
    >>> print(np.isclose(energy, game.hamiltonian(x, p)))
    True
    """

    @abc.abstractmethod
    def fields(self, u: Float[Array, "..."], v: Float[Array, "..."]) -> Float[Array, " fields"]:
        """G(u, v), bilinear and not negative."""

    @abc.abstractmethod
    def energy(self, fields: Float[Array, " fields"]) -> Float[Array, ""]:
        """E(g)."""

    @property
    @abc.abstractmethod
    def constants(self) -> Float[Array, " fields"]:
        """Contribution of agents without a state to the fields."""


class WordGame(PairGame):
    """The naming game: two random agents each say a word by their policy, and remember what was said.

    An agent in memory i says a with probability q_a(i), hears b and moves to Γ(i, a, b) (see `MemorySpace`). With

        g(a, b) = Σ_i x_i q_a(i) exp(p_Γ(i,a,b) - p_i) + c_a,   n = Σ_i x_i + Σ_a c_a,
        H(x, p) = ½ [Σ_ab g(a, b) g(b, a) / n - n],

    two units of time are a population round ([004] Eqs. 1 and 27). Agents of several species have policies of their own
    and act on each other through g alone; committed agents always say one word. With `meets` species m has its own g_m
    and n_m, and H(x, p) = ½ Σ_mn M_mn [Σ_ab g_m(a, b) g_n(b, a) - n_m n_n].

    In groups of k agents, where in outcome r of a meeting those who say a hear b with probability h_r(a, b),

        H(x, p) = ½ n [Σ_r weight_r Π_a (Σ_b h_r(a, b) g(a, b) / n)^said_r(a) - 1].

    Parameters
    ----------
    q
        Choice probabilities, shape (S, W), or (M, S, W) for M species. S = Σ_{h≤H} W^{2h}; rows sum to 1.
    share
        Share of each species among all agents, shape () or (M,). Shares and `committed` sum to 1. Default: one species
        takes what committed agents leave.
    committed
        Share of all agents who always say each word, shape (W,); with `meets` (M, W), those who meet like each species.
        Default: none.
    meets
        M, symmetric rates at which two agents of these species meet, shape (M, M), relative to two who are drawn from
        all: Σ_mn M_mn n_m n_n = 1 where a round is N interactions. Default: all agents meet alike.
    groups
        Outcomes of meetings of k agents, from `Hearing.of`; not with `meets`. Default: two meet and hear each other.

    Notes
    -----
    x[m, i] is the fraction of all agents that are of species m and in memory i, so that x[m] sums to ``share[m]``.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])  # P(first word); H = 1
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(np.asarray(core.drift(game, core.empty_memories(game))).round(2))
    [-1.    0.36  0.24  0.24  0.16]
    """

    q: Float[Array, "*species states words"]
    share: Float[Array, "*species"]
    committed: Float[Array, "*apart words"]
    meets: Float[Array, "species species"] | None
    groups: Hearing | None

    def __init__(self, q, share=None, committed=None, meets=None, groups=None) -> None:
        self.q = jnp.asarray(q)
        if meets is not None and groups is not None:
            raise ValueError("meets beside groups: expected one of them")
        self.groups = None
        if groups is not None:
            weight, said, heard = map(jnp.asarray, groups)
            self.groups = Hearing(weight.astype(self.q.dtype), said, heard.astype(self.q.dtype))
        self.meets = None if meets is None else jnp.asarray(meets, self.q.dtype)
        apart, n_words = () if meets is None else self.q.shape[:-2], self.q.shape[-1]
        committed = np.zeros((*apart, n_words)) if committed is None else committed
        self.committed = jnp.asarray(committed, self.q.dtype)
        if share is None:
            if self.q.ndim != 2:
                raise ValueError(f"share = None: expected shape {self.q.shape[:-2]}, one share for each species")
            share = 1 - self.committed.sum()
        self.share = jnp.asarray(share, self.q.dtype)
        for name, found, expected in (
            ("share", self.share.shape, self.q.shape[:-2]),
            ("committed", self.committed.shape, (*apart, n_words)),
            ("meets", np.shape(meets), () if meets is None else 2 * self.q.shape[:1]),
            ("groups.said", np.shape(groups and groups[1])[1:], () if groups is None else (n_words,)),
        ):
            if found != expected:
                raise ValueError(f"{name} has shape {found}: expected {expected} for q of shape {self.q.shape}")

    def hamiltonian(self, x: Float[Array, "*species states"], p: Float[Array, "*species states"]) -> Float[Array, ""]:
        g = self.fields(x * jnp.exp(-p), jnp.exp(p)) + self.constants
        return self._energy(g, self._present(jnp.sum(x, -1)))

    def fields(self, u: Float[Array, "*species states"], v: Float[Array, "*species states"]) -> Float[Array, " fields"]:
        """Σ_i u_i q_a(i) v_Γ(i,a,b) over all species, or with `meets` of each, for a and b in turn."""
        n_words = self.q.shape[-1]
        kept = keep(u[..., None] * self.q)
        moved = v[..., 1:].reshape(*kept.shape, n_words)
        apart = 1 if self.meets is None else len(self.meets)
        return (kept[..., None] * moved).reshape(apart, -1, n_words**2).sum(1).ravel()

    @property
    def constants(self) -> Float[Array, " fields"]:
        return jnp.repeat(self.committed, self.q.shape[-1])

    def energy(self, fields: Float[Array, " fields"]) -> Float[Array, ""]:
        return self._energy(fields, self._present(self.share))

    def _present(self, share: Float[Array, "*species"]) -> Float[Array, "*apart"]:
        """n, of each species if these meet at rates of their own."""
        return share.sum() + self.committed.sum() if self.meets is None else share + self.committed.sum(-1)

    def _energy(self, fields: Float[Array, " fields"], n: Float[Array, "*apart"]) -> Float[Array, ""]:
        n_words = self.q.shape[-1]
        g = fields.reshape(-1, n_words, n_words)
        if self.groups is not None:
            heard = jnp.einsum("rab,ab->ra", self.groups.heard, g[0] / n)
            return n / 2 * (self.groups.weight @ jnp.prod(heard**self.groups.said, axis=1) - 1)
        if self.meets is None:
            return (jnp.sum(g[0] * g[0].T) / n - n) / 2
        return (jnp.einsum("mn,mab,nba->", self.meets, g, g) - n @ self.meets @ n) / 2

    @property  # equinox takes a property for an abstract field
    def classes(self) -> Int[Array, "*species states"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        species = jnp.arange(self.share.size).reshape(self.share.shape)
        return jnp.broadcast_to(species[..., None], self.q.shape[:-1])


class ReactionGame(PairGame):
    """Pairwise encounters of agents in K states, whose channels are products of a factor of each partner.

    In an encounter of initiator i and responder j the channel m happens with probability α_m(i) β_m(j); each of the two
    then moves on its own. A *side* is a channel seen by one of the two: sides 0 … M - 1 belong to initiators, and
    M … 2M - 1 to responders. With own[s] = α_m or β_m,

        δ_s = Σ_moves of side s  rate · x_source (exp(p_target - p_source) - 1),
        H(x, p) = ε Σ_m [(own_m·x) δ_{M+m} + δ_m (own_{M+m}·x) + δ_m δ_{M+m}] + Σ_spontaneous moves (the same as δ).

    Parameters
    ----------
    own
        Shape (2M, K): α, then β.
    source, target, side
        Shape (E,): the moves of one agent from a state to another on a side; 2M for spontaneous moves.
    rate
        Shape (E,): own[side, source] times the probability of this move, or the rate of a spontaneous one.
    classes
        Shape (K,): the conserved class of each state.
    encounter_rate
        ε, the encounters that an agent initiates per unit of time.

    Examples
    --------
    The arrays of a `meanfield.ReactionModel` are its `game`. An epidemic, in which infected agents recover at the rate
    0.5:

    >>> from meanfield import core
    >>> infect, recover = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 0], [0.5, 0]])
    >>> model = meanfield.ReactionModel(["S", "I"], [[1, 0]], [[0, 1]], [infect], None, recover)
    >>> names = ("own", "source", "target", "side", "rate", "classes", "encounter_rate")
    >>> game = core.ReactionGame(**dict(zip(names, model.game, strict=True)))
    >>> print(core.drift(game, np.array([0.9, 0.1])).round(3))
    [-0.04  0.04]
    """

    own: Float[Array, "sides states"] = eqx.field(converter=jnp.asarray)
    source: Int[Array, " moves"] = eqx.field(converter=jnp.asarray)
    target: Int[Array, " moves"] = eqx.field(converter=jnp.asarray)
    side: Int[Array, " moves"] = eqx.field(converter=jnp.asarray)
    rate: Float[Array, " moves"] = eqx.field(converter=jnp.asarray)
    classes: Int[Array, " states"] = eqx.field(converter=jnp.asarray)
    encounter_rate: Float[Array, ""] = eqx.field(converter=jnp.asarray)

    def hamiltonian(self, x: Float[Array, " states"], p: Float[Array, " states"]) -> Float[Array, ""]:
        channels = self.own.shape[0] // 2
        flux = self.rate * x[self.source] * jnp.expm1(p[self.target] - p[self.source])
        delta = jax.ops.segment_sum(flux, self.side, 2 * channels + 1)
        first, second, alone = delta[:channels], delta[channels:-1], delta[-1]
        acts = self.own @ x
        met = acts[:channels] @ second + first @ acts[channels:] + first @ second
        return self.encounter_rate * met + alone

    def fields(self, u: Float[Array, " states"], v: Float[Array, " states"]) -> Float[Array, " fields"]:
        """Agents of each side who take part, with and without their moves; then spontaneous moves and who makes them.

        With moves a side is Σ_i own_s(i) u_i (v of where agent i goes), without them Σ_i own_s(i) u_i v_i.
        """
        sides = len(self.own)
        leaving = jax.ops.segment_sum(self.rate * u[self.source] * v[self.source], self.side, sides + 1)
        arriving = jax.ops.segment_sum(self.rate * u[self.source] * v[self.target], self.side, sides + 1)
        present = self.own @ (u * v)
        moving = present + arriving[:-1] - leaving[:-1]
        return jnp.concatenate([moving, present, arriving[-1:], leaving[-1:]])

    @property
    def constants(self) -> Float[Array, " fields"]:
        return jnp.zeros(2 * len(self.own) + 2, self.own.dtype)

    def energy(self, fields: Float[Array, " fields"]) -> Float[Array, ""]:
        first, second, met, meant = fields[:-2].reshape(4, -1)
        return self.encounter_rate * (first @ second - met @ meant) + fields[-2] - fields[-1]


class RateGame(Game):
    """A reaction game in which agents also move alone, at rates that are functions of the composition.

    H(x, p) is the Hamiltonian of the pairs, and

        Σ_moves f(x) x_source (exp(p_target - p_source) - 1).

    Parameters
    ----------
    pairs
        The encounters, and moves at constant rates.
    source, target
        Shape (R,): moves of one agent from a state to another.
    rates
        Function of x that returns the rate f(x) of each of these moves for an agent in its source, shape (R,).

    Examples
    --------
    Agents see all others, and say yes with the probability (1 + tanh β m)/2, where m is the majority of yes over no:

    >>> import jax
    >>> from meanfield import core
    >>> nobody = core.ReactionGame(np.empty((0, 2)), *np.empty((3, 0), int), np.empty(0), np.zeros(2, int), 1.0)
    >>> audience = lambda x: (1 + np.array([1, -1]) * jax.numpy.tanh(2 * (x[0] - x[1]))) / 2
    >>> game = core.RateGame(nobody, np.array([1, 0]), np.array([0, 1]), audience)
    >>> print(core.drift(game, np.array([0.6, 0.4])).round(3))
    [ 0.09 -0.09]
    """

    pairs: ReactionGame
    source: Int[Array, " rates"] = eqx.field(converter=jnp.asarray)
    target: Int[Array, " rates"] = eqx.field(converter=jnp.asarray)
    rates: Callable[[Array], Array]

    def hamiltonian(self, x: Float[Array, " states"], p: Float[Array, " states"]) -> Float[Array, ""]:
        change = p[self.target] - p[self.source]
        return self.pairs.hamiltonian(x, p) + jnp.vdot(self.rates(x) * x[self.source], jnp.expm1(change))

    @property  # equinox takes a property for an abstract field
    def classes(self) -> Int[Array, " states"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.pairs.classes

    def driven(self, x: Float[Array, " states"]) -> Float[Array, " states"]:
        """The part of the drift that these moves make."""
        flux = self.rates(x) * x[self.source]
        return jnp.zeros_like(x).at[self.target].add(flux).at[self.source].add(-flux)


def game_of(arrays: tuple[Any, ...]) -> Game:
    """The game of the arrays of a policy or population (three, four with the rates at which kinds meet, six in groups),
    or of a reaction model (seven, or ten with rates).
    """
    if len(arrays) < 7:
        return WordGame(*arrays) if len(arrays) < 5 else WordGame(*arrays[:3], groups=arrays[3:])
    pairs, rates = ReactionGame(*arrays[:7]), arrays[7:]
    return RateGame(pairs, *rates) if rates else pairs


def keep(said: Float[Array, "*species states words"]) -> Float[Array, "*species kept words"]:
    """Sums over the states that keep the same memory: the last H - 1 interactions, or all where there are fewer."""
    n_states, n_words = said.shape[-2:]
    n_digits = n_words**2
    n_kept = (n_states - 1) // n_digits  # memories of at most H - 1 interactions
    full = said[..., n_kept:, :]
    full = full.reshape(*said.shape[:-2], n_digits, -1, n_words).sum(-3)
    longest = said[..., n_kept - full.shape[-2] : n_kept, :] + full
    return jnp.concatenate([said[..., : n_kept - full.shape[-2], :], longest], axis=-2)


@one_program
def word_share(game: WordGame, x: Float[Array, "*species states"]) -> Float[Array, " words"]:
    """Q_w = Σ_mi x_m(i) q_m(i, w) + c_w, the probability that a random agent says word w.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(core.word_share(game, core.empty_memories(game)))
    [0.6 0.4]
    """
    n_words = game.q.shape[-1]
    said = jnp.einsum("...i,...iw->...w", x, game.q).reshape(-1, n_words).sum(0)
    return said + game.committed.reshape(-1, n_words).sum(0)


def empty_memories(game: WordGame) -> Float[Array, "*species states"]:
    """The composition in which no agent has interacted yet.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(core.empty_memories(game))
    [1. 0. 0. 0. 0.]
    """
    return jnp.zeros(game.q.shape[:-1], game.q.dtype).at[..., 0].set(game.share)
