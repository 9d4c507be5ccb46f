"""Mean and variance of the word share among N agents, to order 1/N.

The composition of N agents has mean x + V/N and covariance C/N, up to 1/N² (Gast and Van Houdt, Proc. ACM Meas. Anal.
Comput. Syst. 1, 33 (2017); van Kampen, ch. X):

    dx/dt = F(x),   dC/dt = JC + CJᵀ + D - 2FFᵀ,   dV/dt = JV + ½F''[C] + b - JF.

2FFᵀ and JF account for exactly N/2 interactions in a unit of time, as in simulations; at the times of a Poisson process
C would be larger by 2t FFᵀ and V by t JF. b accounts for the two agents of an interaction being different: a partner
says b with probability Q_b + (Q_b - q_b(i))/N, and

    b(x) = Σ_i x_i Σ_ab q_a(i) (Q_b - q_b(i)) e_Γ(i,a,b).

Two facts keep the cost at O(S) a step. F is quadratic, F''[C] = 2 Σ_ij C_ij Σ_ab q_a(i) q_b(j) e_Γ(i,a,b), so only the
S·W numbers Cq enter. And agents who have not met are independent: C = diag(x) - xxᵀ + h, where the correlation h/N
between two agents starts from zero and obeys

    dh/dt = Jh + hJᵀ + Σ_ab k_ab k_baᵀ - 2FFᵀ,   k_ab = Σ_i x_i q_a(i) (e_Γ(i,a,b) - x),   F = Σ_ab Q_b k_ab.

Its source has rank W² at most at any time, and is forgotten with the memory. So h has a low rank and is kept in
factors, which J moves like any perturbation of x; they are compressed to the eigenvectors of h whenever they have
become twice as many as these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.interpolate import make_interp_spline
from scipy.linalg import block_diag

from meanfield._finite_size import moments_kernel as kernel
from meanfield._finite_size.noise import outcomes
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.blas import one_blas_thread
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, space_of
from meanfield.toolbox._arguments import increasing_times
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._memory_budget import check_memory

BYTES_A_SIZE = 50  # of a law, as measured
STEP = 0.2  # of fifth order: halving it changes the moments by less than 2e-5
# Lobatto's rule of four points for what is fed in during a step: the weight of its ends, and the points within
END, INNER = 1 / 12, ((1 - 5**-0.5) / 2, (1 + 5**-0.5) / 2)
# Largest neglected eigenvalue of h, relative to the largest kept. What is neglected may grow again, with the dynamics.
NEGLECTED = 1e-9
SPLINE = 7  # degree, between the steps
ROOM = 2  # how many times the rank of h its factors may hold before they are compressed
MAX_NUMBERS = 2**26  # steps times states: 0.5 GB for what drives V, and another for its spline


def finite_size(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int] | np.ndarray | None = None,
    times: Sequence[float] | np.ndarray | None = None,
) -> xr.Dataset:
    """Mean and variance of the word share over time among N agents who start with empty memories, to order 1/N.

    After N·t/2 interactions the word share of N agents has

        mean Q(t) + qᵀV(t)/N + O(1/N²)  (refined mean field),   variance qᵀC(t)q/N + O(1/N²)  (linear noise).

    This describes populations that follow one path. If noise decides between two conventions, it holds while the
    standard deviation is small compared with the distance to the saddle; afterwards see `group_size_law`. Close to
    consensus, where populations differ by how far they have got, the next order is relatively large: for GPT-4o
    {African, White} the variance is too small by 130/N of itself after four rounds and by 450/N after six.

    Parameters
    ----------
    policy
        One policy, of W ≥ 2 words.
    n_agents
        Population sizes N ≥ 2 for which to return `mean` and `variance`.
    times
        Increasing times from 0, shape (T,); two units are a round of N interactions. Default: 0 to 60 in steps of 0.5.

    Returns
    -------
    Dataset with

    - `word_share` (time, word), that of the rate equation;
    - `word_share_correction` (time, word), qᵀV, to be divided by N;
    - `word_share_variance` (time, word), the diagonal of qᵀCq, to be divided by N;
    - `mean` and `variance` (n_agents, time, word), if `n_agents` is given.

    Raises
    ------
    InputError
        If an argument is not as described, so many steps in so many states take too much memory, or sizes and times
        take more than 16 GiB (or the GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    group_size_law : the chance that N agents end at the strong word
    validation.simulate : exact runs of N agents
    solve : the limit of many agents

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> law = meanfield.finite_size(policy, n_agents=[10, 1000], times=[10.0]).sel(word="his", time=10)
    >>> law["mean"].values.round(3)
    array([0.528, 0.529])
    >>> (law["variance"] ** 0.5).values.round(3)  # after five rounds
    array([0.067, 0.007])
    """
    policy = single_policy(policy)
    equations, space = PathEquations(policy["q"].values, space_of(policy)), space_of(policy)
    times = increasing_times(np.linspace(0.0, 60.0, 121) if times is None else times)
    sizes = None if n_agents is None else validate_sizes(n_agents)
    n_sizes = 0 if sizes is None else len(sizes)
    # As measured
    needed = 16 * space.n_words * len(times) * (n_sizes + 2)
    check_memory(needed, f"n_agents has {n_sizes} sizes and times {len(times)}", "fewer of them")
    n_steps = max(SPLINE, int(np.ceil(times[-1] / STEP)))
    if n_steps * space.n_states > MAX_NUMBERS:
        raise InputError(
            f"times end at {times[-1]:g}: expected at most {MAX_NUMBERS // space.n_states * STEP:g} for "
            f"{space.n_states} states"
        )
    grid, moments = STEP * np.arange(n_steps + 1), _moments(equations, n_steps)
    share, correction, variance = (make_interp_spline(grid, values, k=SPLINE)(times) for values in moments)
    # A variance below the accuracy may come out negative.
    result = _label(policy, times, share, correction, np.maximum(variance, 0.0), sizes)
    return stamp(result, "finite_size", policy, step=STEP, neglected=NEGLECTED)


def validate_sizes(n_agents: int | Sequence[int] | np.ndarray) -> np.ndarray:
    """Different population sizes of at least 2, as an array; InputError where `n_agents` is something else."""
    sizes = np.atleast_1d(np.asarray(n_agents))
    check_memory(BYTES_A_SIZE * sizes.size, f"n_agents has {sizes.size} sizes", "fewer of them")
    whole = sizes.ndim == 1 and len(sizes) > 0 and sizes.dtype.kind in "iu"
    if not whole or sizes.min() < 2 or len(np.unique(sizes)) < len(sizes):
        raise InputError(f"n_agents = {n_agents}: expected distinct whole numbers of at least 2")
    return sizes


@one_blas_thread()
def _moments(equations: PathEquations, n_steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q of the rate equation, qᵀV and (qᵀCq)_ww at the steps, each (steps + 1, W); h is rowsᵀ · middle · rows."""
    q = equations.q.T
    W, S = q.shape
    share, variance, drive = np.empty((n_steps + 1, W)), np.empty((n_steps + 1, W)), np.empty((n_steps + 1, S))
    x = np.zeros(S)
    x[0] = 1.0
    none = (np.empty((0, S)), np.empty((0, 0)))
    share[0], (drive[0], variance[0]) = q @ x, _observe(x, *none, equations)
    rows, weights = _fed(x, equations)
    n_fed, middle, rank = len(rows), END * STEP * weights, 0
    for n in range(1, n_steps + 1):
        inner, weights = zip(*(_fed_within(x, equations, part) for part in INNER), strict=True)
        x, *moved = _advance(np.vstack([x, rows]), equations, STEP)
        rows, middle = np.vstack([*moved, *inner]), block_diag(middle, *weights)
        if len(rows) > ROOM * max(rank, 3 * n_fed):
            rows, middle = _compressed(rows, middle)
            rank = len(rows)
        after, weights = _fed(x, equations)
        rows, middle = np.vstack([rows, after]), block_diag(middle, END * STEP * weights)
        share[n], (drive[n], variance[n]) = q @ x, _observe(x, rows, middle, equations)
        middle[-n_fed:, -n_fed:] *= 2  # which is also the start of the next step
    return share, _correction(drive, equations), variance


def _observe(
    x: np.ndarray, rows: np.ndarray, middle: np.ndarray, equations: PathEquations
) -> tuple[np.ndarray, np.ndarray]:
    """The source of V, ½F''[C] + b - JF, shape (S,), and the diagonal of qᵀCq."""
    q, F = np.ascontiguousarray(equations.q.T), equations.drift(x)
    said, Q = x * q, q @ x
    Cq = said - Q[:, None] * x + (middle @ (rows @ q.T)).T @ rows
    apart = Q[:, None] * x - said
    # Σ_i Σ_ab weight[b, i] q_a(i) e_Γ(i,a,b): agents in state i hear b with that weight
    jointly = np.stack([equations.kept(weight) for weight in Cq + apart], axis=-1).ravel()
    return np.concatenate([[0.0], jointly]) - equations.linearised(x, F), (q * Cq).sum(1)


def _fed(x: np.ndarray, equations: PathEquations) -> tuple[np.ndarray, np.ndarray]:
    """k_ab as rows (W², S), and the symmetric matrix of the weights of their products."""
    Q, W = x @ equations.q, equations.n_words
    columns = outcomes(x, equations.q, equations.space) - x[:, None, None] * Q[None, :, None]
    swap = np.eye(W * W).reshape(W, W, W, W).transpose(0, 1, 3, 2).reshape(W * W, W * W)  # (a, b) with (b, a)
    heard = np.tile(Q, W)
    return columns.reshape(len(x), W * W).T, swap - 2 * np.outer(heard, heard)


def _fed_within(x: np.ndarray, equations: PathEquations, part: float) -> tuple[np.ndarray, np.ndarray]:
    """The source of h at that part of a step from x, moved to its end, with the weights of the quadrature."""
    there = _advance(x[None], equations, part * STEP)[0]
    rows, weights = _fed(there, equations)
    return _advance(np.vstack([there, rows]), equations, (1 - part) * STEP)[1:], (0.5 - END) * STEP * weights


def _advance(rows: np.ndarray, equations: PathEquations, step: float, source: np.ndarray | None = None) -> np.ndarray:
    """x and perturbations of it, the rows, one step further; `source` drives these, shape (stages, S)."""
    rows = np.ascontiguousarray(rows)
    q, memory, after = equations.q, equations.memory, np.empty_like(rows)
    after[0], kept, said = kernel.step_of(rows[0], q, memory, equations.n_kept, step)
    driven = np.empty((0, rows.shape[1])) if source is None else source
    kernel.perturbations(rows[1:], kept, said, q, memory, step, driven, after[1:])
    return after


def _compressed(rows: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rowsᵀ · middle · rows with orthonormal rows and a diagonal, without its negligible eigenvalues."""
    basis, triangle = np.linalg.qr(rows.T)
    s, rotation = np.linalg.eigh(triangle @ middle @ triangle.T)
    kept = np.abs(s) > NEGLECTED * np.abs(s).max(initial=0.0)
    return (basis @ rotation[:, kept]).T, np.diag(s[kept])


def _correction(drive: np.ndarray, equations: PathEquations) -> np.ndarray:
    """qᵀV at the nodes, shape (nodes, W), from V = 0."""
    spline = make_interp_spline(STEP * np.arange(len(drive)), drive, k=SPLINE)
    correction, rows = np.zeros((len(drive), equations.n_words)), np.zeros((2, drive.shape[1]))
    rows[0, 0] = 1.0
    for n in range(1, len(drive)):
        rows = _advance(rows, equations, STEP, spline(STEP * (n - 1 + kernel.STAGE_TIMES)))
        correction[n] = rows[1] @ equations.q
    return correction


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
        **labels_of(policy),
    }
    if sizes is not None:
        N = sizes[:, None, None]
        dims = ("n_agents", "time", "word")
        columns["mean"] = (dims, share + correction / N, "mean word share among N agents")
        columns["variance"] = (dims, variance / N, "variance of the word share among N agents")
        coords["n_agents"] = ("n_agents", sizes, {"long_name": "number of agents"})
    return labelled(columns, coords=coords).assign_attrs(policy=name_of(policy))
