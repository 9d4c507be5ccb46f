"""Mean and variance of the word share among N agents, to order 1/N.

The composition of N agents has mean x + V/N and covariance C/N, up to 1/N², with (Gast and Van Houdt, Proc. ACM Meas.
Anal. Comput. Syst. 1, 17 (2017); van Kampen, ch. X)

    dx/dt = F(x),   dC/dt = JC + CJᵀ + D - 2FFᵀ,   dV/dt = JV + ½F''[C] + b - JF.

2FFᵀ and JF are there because exactly N/2 interactions happen in a unit of time, as in simulations; at the times of a
Poisson process C would be larger by 2t FFᵀ and V by t JF. b is there because the two agents who meet are different
ones: an agent never meets itself, so that its partner says b with Q_b + (Q_b - q_b(i))/N, and

    b(x) = Σ_i x_i Σ_ab q_a(i) (Q_b - q_b(i)) e_Γ(i,a,b).

Two facts keep this at O(S) a step. F is quadratic, F''[C] = 2 Σ_ij C_ij Σ_ab q_a(i) q_b(j) e_Γ(i,a,b), so that only Cq
enters, S·W numbers. And agents who have not met are independent: C = diag(x) - xxᵀ + h, where the correlation h/N
between two agents starts from zero and obeys

    dh/dt = Jh + hJᵀ + Σ_ab k_ab k_baᵀ - 2FFᵀ,   k_ab = Σ_i x_i q_a(i) (e_Γ(i,a,b) - x),   F = Σ_ab Q_b k_ab:

what is fed in at a time has rank W² at most, and is forgotten with the memory. So h has a low rank, and is kept as
L diag(s) Lᵀ with orthonormal L.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

from meanfield._errors import InputError
from meanfield._memory import MemorySpace
from meanfield._memory_budget import check_memory
from meanfield._noise import outcomes
from meanfield._policy import name_of, single_policy, space_of
from meanfield._provenance import stamp
from meanfield._rate_equation import TIME_PER_ROUND, drift
from meanfield._reaction import spoken, word_share

BYTES_A_SIZE = 50  # of a law, as measured
STEP = 0.1  # of fourth order: halving it changes the moments by less than 2e-5
FIRST_RANK = 32
# Largest neglected eigenvalue of h, relative to the largest kept. What is neglected may grow again, with the dynamics.
NEGLECTED = 1e-11
MAX_NUMBERS = 2**27  # steps times states: 1 GB for the course of x, and another for what drives V


class Moments(NamedTuple):
    """What the equations give at the steps.

    Attributes
    ----------
    share
        Word share Q of the rate equation, shape (steps + 1, W).
    correction
        qᵀV, shape (steps + 1, W).
    variance
        (qᵀCq)_ww, shape (steps + 1, W).
    neglected
        Largest eigenvalue of h that was neglected in a step, relative to the largest kept.
    """

    share: Float[np.ndarray, "nodes words"]
    correction: Float[np.ndarray, "nodes words"]
    variance: Float[np.ndarray, "nodes words"]
    neglected: float


def finite_size(
    policy: xr.Dataset, *, n_agents: int | Sequence[int] | np.ndarray | None = None, times: np.ndarray | None = None
) -> xr.Dataset:
    """Mean and variance of the word share over time among N agents who start with empty memories, to order 1/N.

    The word share Q of N agents, after N·t/2 interactions of two different agents each, has

        mean Q(t) + qᵀV(t)/N + O(1/N²)  (refined mean field),   variance qᵀC(t)q/N + O(1/N²)  (linear noise).

    This describes populations that follow one path. Where noise decides between two conventions, it holds as long as
    the standard deviation is small against the distance to the saddle; after that, see `group_size_law`. Close to
    consensus, where populations differ by how far they have got, the next order is large in relation: for GPT-4o
    {African, White} the variance is too small by 130/N of itself after four rounds and by 450/N after six.

    Parameters
    ----------
    policy
        One policy, of W ≥ 2 words.
    n_agents
        Population sizes N ≥ 2 for which to give `mean` and `variance`.
    times
        Increasing times from 0, shape (T,); two units are a round of N interactions. Default: 0 to 60 in steps of 0.5.

    Returns
    -------
    Dataset with

    - `word_share` (time, word), that of the rate equation;
    - `word_share_correction` (time, word), qᵀV, to be divided by N;
    - `word_share_variance` (time, word), the diagonal of qᵀCq, to be divided by N;
    - where `n_agents` is given, `mean` and `variance` (n_agents, time, word).

    Raises
    ------
    InputError
        If an argument is not as described, or a course of that many steps in that many states takes too much memory,
        or sizes and times more than 16 GiB (or what the environment variable MEANFIELD_MEMORY says, in GiB).
    """
    policy = single_policy(policy)
    q, space = jnp.asarray(policy["q"].values), space_of(policy)
    times = _validate_times(times)
    sizes = None if n_agents is None else validate_sizes(n_agents)
    n_sizes = 0 if sizes is None else len(sizes)
    # As measured
    needed = 16 * space.n_words * len(times) * (n_sizes + 2)
    check_memory(needed, f"n_agents has {n_sizes} sizes and times {len(times)}", "fewer of them")
    n_steps = max(3, int(np.ceil(times[-1] / STEP)))
    if n_steps * space.n_states > MAX_NUMBERS:
        raise InputError(
            f"times end at {times[-1]:g}: for {space.n_states} states expected {MAX_NUMBERS // space.n_states * STEP:g}"
            " at most"
        )
    moments = _moments(q, space, n_steps)
    grid = STEP * np.arange(n_steps + 1)
    share, correction, variance = (CubicSpline(grid, values)(times) for values in moments[:3])
    # A variance below the accuracy may come out negative.
    result = _label(policy, times, share, correction, np.maximum(variance, 0.0), sizes)
    return stamp(result, "finite_size", policy, step=STEP, neglected=moments.neglected)


def _validate_times(times: np.ndarray | None) -> np.ndarray:
    saved = np.linspace(0.0, 60.0, 121) if times is None else np.asarray(times, dtype=np.float64)
    if saved.ndim != 1 or not len(saved) or not saved[0] >= 0 or not (np.diff(saved) > 0).all() or saved[-1] == np.inf:
        raise InputError(f"times = {times}: expected increasing times from 0 on")
    return saved


def validate_sizes(n_agents: int | Sequence[int] | np.ndarray) -> np.ndarray:
    """Different population sizes of at least 2, as an array; InputError where `n_agents` is something else."""
    sizes = np.atleast_1d(np.asarray(n_agents))
    check_memory(BYTES_A_SIZE * sizes.size, f"n_agents has {sizes.size} sizes", "fewer of them")
    whole = sizes.ndim == 1 and len(sizes) > 0 and sizes.dtype.kind in "iu"
    if not whole or sizes.min() < 2 or len(np.unique(sizes)) < len(sizes):
        raise InputError(f"n_agents = {n_agents}: expected different whole numbers of at least 2")
    return sizes


def _moments(q: Float[Array, "states words"], space: MemorySpace, n_steps: int) -> Moments:
    """The moments at the steps; the rank of h is doubled until nothing of weight is neglected."""
    rank = min(FIRST_RANK, space.n_states)
    while True:
        x, drive, variance, neglected = _covariance(q, space, n_steps, rank)
        worst = float(neglected)
        if worst <= NEGLECTED or rank == space.n_states:
            break
        rank = min(2 * rank, space.n_states)
    correction = _correction(x, drive, q, space)
    return Moments(np.asarray(x @ q), np.asarray(correction @ q), np.asarray(variance), worst)


@eqx.filter_jit
def _covariance(
    q: Float[Array, "states words"], space: MemorySpace, n_steps: int, rank: int
) -> tuple[Array, Array, Array, Array]:
    """x (nodes, S), what drives V (nodes, S), the variance of the word share (nodes, W), and what was neglected."""

    def observe(x: Array, L: Array, s: Array) -> tuple[Array, Array]:
        Q = word_share(x, q)
        Cq = x[:, None] * q - x[:, None] * Q + (L * s) @ (L.T @ q)
        return _drive(x, Cq, q, space), jnp.einsum("iw,iw->w", q, Cq)

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
        x, L, s = carry
        # Simpson's rule for what is fed in during the step: at its start, in its middle and at its end
        fed, weights = _fed(x, q, space)
        half = _advance(x, fed[:, :0], q, space, STEP / 2)[0]
        fed_half, weights_half = _fed(half, q, space)
        after, moved = _advance(x, jnp.concatenate([L, fed], 1), q, space, STEP)
        moved_half = _advance(half, fed_half, q, space, STEP / 2)[1]
        fed_after, weights_after = _fed(after, q, space)
        columns = jnp.concatenate([moved, moved_half, fed_after], 1)
        middle = jax.scipy.linalg.block_diag(
            jnp.diag(s), STEP / 6 * weights, 4 * STEP / 6 * weights_half, STEP / 6 * weights_after
        )
        L, s, neglected = _compress(columns, middle, rank)
        return (after, L, s), (after, *observe(after, L, s), neglected)

    start = jnp.zeros(len(q)).at[0].set(1.0)
    none = (jnp.zeros((len(q), rank)), jnp.zeros(rank))
    _, (x, drive, variance, neglected) = jax.lax.scan(step, (start, *none), None, length=n_steps)
    first = observe(start, *none)
    return (
        jnp.concatenate([start[None], x]),
        jnp.concatenate([first[0][None], drive]),
        jnp.concatenate([first[1][None], variance]),
        neglected.max(),
    )


def _fed(x: Array, q: Array, space: MemorySpace) -> tuple[Array, Array]:
    """k_ab as columns (S, W²), and the symmetric matrix of the weights of their products."""
    Q, W = word_share(x, q), space.n_words
    columns = outcomes(x, q, space) - x[:, None, None] * Q[None, :, None]
    swap = jnp.eye(W * W).reshape(W, W, W, W).transpose(0, 1, 3, 2).reshape(W * W, W * W)  # (a, b) with (b, a)
    heard = jnp.tile(Q, W)
    return columns.reshape(len(x), W * W), swap - 2 * jnp.outer(heard, heard)


def _drive(x: Array, Cq: Array, q: Array, space: MemorySpace) -> Array:
    """½F''[C] + b - JF."""
    Q = word_share(x, q)
    apart = x[:, None] * (Q - q)
    F = drift(x, q, space)
    return _heard_jointly(Cq + apart, q, space) - _linearised(x, F, q, space)


def _heard_jointly(weight: Array, q: Array, space: MemorySpace) -> Array:
    """Σ_i Σ_ab weight[i, b] q_a(i) e_Γ(i,a,b): agents in state i hear b with that weight, shape (S,)."""
    each = [spoken(weight[:, b], q, space) for b in range(space.n_words)]
    return jnp.concatenate([jnp.zeros(1), jnp.stack(each, -1).reshape(-1)])


def _linearised(x: Array, v: Array, q: Array, space: MemorySpace) -> Array:
    """J(x)v in the form that conserves Σv, which rounding errors would otherwise let grow."""
    return jax.jvp(lambda y: drift(y, q, space), (x,), (v,))[1]


def _advance(x: Array, columns: Array, q: Array, space: MemorySpace, step: float) -> tuple[Array, Array]:
    """x and perturbations of it (S, columns) one step of the classical Runge-Kutta method further."""

    def slope(state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, v = state
        value, along = jax.linearize(lambda y: drift(y, q, space), x)
        return value, jax.vmap(along, in_axes=1, out_axes=1)(v)

    def moved(by: float, slopes: tuple[Array, Array]) -> tuple[Array, Array]:
        return x + by * slopes[0], columns + by * slopes[1]

    first = slope((x, columns))
    second = slope(moved(step / 2, first))
    third = slope(moved(step / 2, second))
    fourth = slope(moved(step, third))
    return moved(
        step / 6,
        tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(first, second, third, fourth, strict=True)),
    )


def _compress(columns: Array, middle: Array, rank: int) -> tuple[Array, Array, Array]:
    """columns · middle · columnsᵀ as L diag(s) Lᵀ of the given rank, and the largest |s| left out over the largest."""
    basis, triangle = jnp.linalg.qr(columns)
    s, rotation = jnp.linalg.eigh(triangle @ middle @ triangle.T)
    order = jnp.argsort(-jnp.abs(s))
    kept, rest = order[:rank], order[rank:]
    largest = jnp.abs(s[order[0]])
    neglected = jnp.max(jnp.abs(s[rest]), initial=0.0) / jnp.where(largest > 0, largest, 1.0)
    return basis @ rotation[:, kept], s[kept], neglected


@eqx.filter_jit
def _correction(x: Array, drive: Array, q: Array, space: MemorySpace) -> Array:
    """V at the nodes, shape (nodes, S), from V = 0."""
    slope = jax.lax.map(lambda y: drift(y, q, space), x, batch_size=64)
    x_half = (x[1:] + x[:-1]) / 2 + STEP / 8 * (slope[:-1] - slope[1:])
    inner = (9 * (drive[1:-2] + drive[2:-1]) - drive[:-3] - drive[3:]) / 16
    # The cubic through the four nearest nodes, at the ends too
    first = (5 * drive[0] + 15 * drive[1] - 5 * drive[2] + drive[3]) / 16
    last = (5 * drive[-1] + 15 * drive[-2] - 5 * drive[-3] + drive[-4]) / 16
    drive_half = jnp.concatenate([first[None], inner, last[None]])

    def step(V: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        x0, x1, x2, f0, f1, f2 = now
        k1 = _linearised(x0, V, q, space) + f0
        k2 = _linearised(x1, V + STEP / 2 * k1, q, space) + f1
        k3 = _linearised(x1, V + STEP / 2 * k2, q, space) + f1
        k4 = _linearised(x2, V + STEP * k3, q, space) + f2
        V = V + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return V, V

    start = jnp.zeros(x.shape[1])
    _, rest = jax.lax.scan(step, start, (x[:-1], x_half, x[1:], drive[:-1], drive_half, drive[1:]))
    return jnp.concatenate([start[None], rest])


def _label(
    policy: xr.Dataset,
    times: np.ndarray,
    share: np.ndarray,
    correction: np.ndarray,
    variance: np.ndarray,
    sizes: np.ndarray | None,
) -> xr.Dataset:
    columns = {
        "word_share": (("time", "word"), share, "word share of the rate equation"),
        "word_share_correction": (("time", "word"), correction, "N (mean word share - word share), for large N"),
        "word_share_variance": (("time", "word"), variance, "N times the variance of the word share, for large N"),
    }
    coords = {
        "time": ("time", times, {"long_name": "time", "units": "half rounds"}),
        "round": ("time", times / TIME_PER_ROUND, {"long_name": "population round"}),
        **{name: policy[name] for name in ("model", "pair", "word", "word_label") if name in policy.coords},
    }
    if sizes is not None:
        N = sizes[:, None, None]
        dims = ("n_agents", "time", "word")
        columns["mean"] = (dims, share + correction / N, "mean word share among N agents")
        columns["variance"] = (dims, variance / N, "variance of the word share among N agents")
        coords["n_agents"] = ("n_agents", sizes, {"long_name": "number of agents"})
    data = {name: (dims, values, {"long_name": label, "units": "1"}) for name, (dims, values, label) in columns.items()}
    return xr.Dataset(data, coords=coords).assign_attrs(policy=name_of(policy))
