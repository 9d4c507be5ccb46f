"""The phase diagram of [002] Eq. 9 over population size and coupling, from sampled fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield import InputError
from meanfield.toolbox import check_memory, different, labelled, one_or_several, real_numbers, stamp, whole_number
from theory.flag_game.random_field._field_law import FieldLaw
from theory.flag_game.random_field._fixed_points import check_coupling

GRID = 801  # values of m between which solutions are counted
MOST = 1.001  # the largest of them: beyond 1, because large fields round to m = ±1
NEUTRAL = 1e-12  # f(0) below it is 0 as far as rounding tells
ITERATIONS = 200  # of m ← f(Jm)
BLOCK = 2**22  # numbers held at once
COLUMNS = {
    "bistable": "fraction of samples with stable solutions on both sides",
    "truth_only": "fraction for the truth only",
    "rival_only": "fraction for the rival only",
    "several": "fraction with several stable solutions",
    "m": "mean m",
    "q": "mean q",
}


def phase_diagram(
    fields_of: FieldLaw | Callable[[int], FieldLaw],
    *,
    n_agents: Sequence[int],
    J: ArrayLike,
    beta: float,
    samples: int = 200,
    seed: int = 0,
) -> xr.Dataset:
    """The numbers of stable solutions of [002] Eq. 9 for samples of N fields, by N and coupling.

    Stable solutions are counted as falls of f(Jm) - m through zero on a grid of 801 values from m = -1.001 to 1.001. A
    stable solution closer than 1/400 to an unstable one can be missed.

    Parameters
    ----------
    fields_of
        The distribution of an agent's field as a function of N, such as `Mechanism1.field_law`; or one for all N.
    n_agents, J
        Population sizes, all different, and couplings above 0, shape (couplings,), at least one.
    beta
        β > 0, finite.
    samples, seed
        Samples of N fields at each N, at least 1, and their seed, at least 0; a sample depends on the seed, N and its
        number only.

    Returns
    -------
    Dataset over `n_agents` and `J` with

    - `bistable`, the fraction of samples with stable solutions on both sides of m = 0, `truth_only` and `rival_only`,
      with all of them on one side, and `several`, with more than one. A stable m = 0 is on neither side, so the first
      three can sum to less than 1;
    - `m` and `q` ([002] Eq. 8), means over samples at the solution reached from m = mean tanh(βh_i), the agents' mean
      answer before they listen.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bifurcation : one distribution of fields

    Examples
    --------
    With a strong coupling all groups can agree on either side, with a weak one none.

    >>> from theory.flag_game.random_field import FieldLaw, phase_diagram
    >>> law = FieldLaw([1.0], [0.3], [1.0])
    >>> found = phase_diagram(law, n_agents=[4, 64], J=[1.0, 4.0], beta=1.0, samples=50)
    >>> found["bistable"].values.round(1)
    array([[0., 1.],
           [0., 1.]])
    """
    sizes = different("n_agents", [whole_number("n_agents", n, 1) for n in one_or_several(n_agents)], "population size")
    samples, seed = whole_number("samples", samples, 1), whole_number("seed", seed, 0)
    couplings = np.atleast_1d(real_numbers(J, "J"))
    if couplings.ndim != 1 or couplings.size == 0:
        raise InputError(f"J has shape {couplings.shape}: expected a row of at least one coupling")
    for coupling in couplings:
        check_coupling(float(coupling), beta)
    if not np.isfinite(beta) or not (couplings > 0).all():
        raise InputError(f"beta = {beta}, J = {couplings.tolist()}: expected finite numbers above 0")
    check_memory(8 * samples * max(sizes), f"samples = {samples}, n_agents = {sizes}", "fewer samples or agents")
    m, counted = np.linspace(-MOST, MOST, GRID), np.empty((len(COLUMNS), len(sizes), len(couplings)))
    for row, n in enumerate(sizes):
        law = fields_of(n) if callable(fields_of) else fields_of
        if not isinstance(law, FieldLaw):
            raise InputError(f"fields_of = {fields_of!r}: expected a FieldLaw, or a function that makes one of N")
        h, together = sample_fields(law, n, samples, seed), max(1, BLOCK // (GRID * n))
        for column, coupling in enumerate(couplings):
            parts = [_solutions(h[k : k + together], m, coupling, beta) for k in range(0, samples, together)]
            counted[:, row, column] = np.concatenate(parts, axis=1).mean(axis=1)
    columns = {
        name: (("n_agents", "J"), values, text) for (name, text), values in zip(COLUMNS.items(), counted, strict=True)
    }
    coords = {"n_agents": sizes, "J": ("J", couplings, {"long_name": "coupling", "units": "nat"})}
    result = labelled(columns, coords)
    return stamp(result, "random_field_phase_diagram", None, beta=beta, samples=samples, seed=seed)


def sample_fields(law: FieldLaw, n_agents: int, samples: int, seed: int) -> np.ndarray:
    """Fields (samples, N) drawn from a distribution; the first samples are the same however many follow."""
    h = np.empty((samples, n_agents))
    for k in range(samples):
        rng = np.random.default_rng([seed, n_agents, k])
        component = rng.choice(len(law.weights), size=n_agents, p=law.weights / law.weights.sum())
        h[k] = law.means[component] + law.sds[component] * rng.standard_normal(n_agents)
    return h


def _solutions(h: np.ndarray, m: np.ndarray, coupling: float, beta: float) -> np.ndarray:
    """The values of COLUMNS for each sample, shape (columns, samples)."""
    mismatch = np.tanh(beta * (h[:, None, :] + coupling * m[:, None])).mean(axis=-1) - m
    falls = (mismatch[:, :-1] > 0) & (mismatch[:, 1:] <= 0)  # stable solutions lie there; one at least exists
    middle = (m[:-1] + m[1:]) / 2
    # m = 0 is a value of the grid: where it is a solution, rounding decides on which side of it the fall is seen.
    centre = GRID // 2
    neutral = np.abs(mismatch[:, centre]) < NEUTRAL
    beside = np.isin(np.arange(GRID - 1), (centre - 1, centre)) & neutral[:, None]
    on_neither = (falls & beside).any(1)
    truth, rival = ((falls & ~beside & side).any(1) for side in (middle > 0, middle < 0))
    # From the agents' first answers on m ← f(Jm) is monotone, so it reaches the next solution.
    reached = np.tanh(beta * h).mean(1)
    for _ in range(ITERATIONS):
        reached = np.tanh(beta * (h + coupling * reached[:, None])).mean(1)
    q = (np.tanh(beta * (h + coupling * reached[:, None])) ** 2).mean(1)
    alone = [one & ~other & ~on_neither for one, other in ((truth, rival), (rival, truth))]
    return np.stack([truth & rival, *alone, falls.sum(1) > 1, reached, q])
