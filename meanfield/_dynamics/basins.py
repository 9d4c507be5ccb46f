"""Basins of attraction: where the rate equation ends from families of compositions."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._dynamics.recurrence import STEADY
from meanfield._dynamics.solve import solve
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield._numerics.stability import stability
from meanfield._population.compositions import consensus
from meanfield._population.observables import MIXED, convention
from meanfield._population.population import Population, as_population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import names_of
from meanfield._population.stacks import each_of_stack
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import word_coords

FAMILIES = ("consensus", "dirichlet")
# Even, so that no start of a symmetric family lies on the separatrix in its middle
SECTIONS = 16
REFINEMENT = 6  # starts within an interval that holds a separatrix; also even
SEPARATRIX_TOLERANCE = 1e-7
SAME_ATTRACTOR = 1e-3  # Σ|x - y| / 2 below which two trajectories end at the same place
BATCH = 64
SADDLE = -1
MARGINAL = "marginal"


class _Ends(NamedTuple):
    """Where trajectories end: compositions (starts, kinds, states), word shares of all agents, and outcomes."""

    composition: np.ndarray
    word_share: np.ndarray
    outcome: np.ndarray


class _Attractors:
    """The attractors that trajectories have reached so far."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.met: list[tuple[np.ndarray, str]] = []
        self.composition: list[np.ndarray] = []
        self.word_share: list[np.ndarray] = []
        self.outcome: list[str] = []

    def number(self, ends: _Ends) -> np.ndarray:
        """The number of the attractor of each trajectory; -1 for one that ends at a saddle and so lies on a separatrix.

        Trajectories that do not come to rest are grouped by their outcome.
        """
        return np.array([self._number(*end) for end in zip(*ends, strict=True)])

    def _number(self, x: np.ndarray, share: np.ndarray, outcome: str) -> int:
        if outcome == STEADY:
            outcome = self._status(x)
        if outcome == "unstable":
            return SADDLE
        for k, known in enumerate(self.composition):
            if outcome == self.outcome[k] and self._belongs(x, share, k, known):
                return k
        self.composition.append(x)
        self.word_share.append(share)
        self.outcome.append(outcome)
        return len(self.composition) - 1

    def _belongs(self, x: np.ndarray, share: np.ndarray, k: int, known: np.ndarray) -> bool:
        """Whether a trajectory with the same outcome as attractor k belongs to it."""
        if self.outcome[k] == STEADY:
            return _same(x, known)
        # A continuum of marginal fixed points would be a list of starts: they count by their convention.
        return self.outcome[k] != MARGINAL or self._convention(share) == self._convention(self.word_share[k])

    def _convention(self, share: np.ndarray) -> str:
        return convention(self.population.convincible_share(share), self.population.words)

    def _status(self, x: np.ndarray) -> str:
        """'steady' at an attractor, 'marginal' or 'unstable' at other fixed points."""
        for known, status in self.met:
            if _same(x, known):
                return status
        found = leading_eigenvalues(self.population.mixture, x, self.population.space)
        status = str(stability(found.values[0], found.errors[0]))
        self.met.append((x, STEADY if status == "stable" else status))
        return self.met[-1][1]


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.abs(x - y).sum(-1).max() / 2 < SAME_ATTRACTOR)


@each_of_stack
def basins(
    policy: xr.Dataset | Population,
    *,
    family: str = "consensus",
    starts: int = 1000,
    concentration: float = 1.0,
    seed: int = 0,
    max_time: float = 2000.0,
    progress: bool = False,
) -> xr.Dataset:
    """Measure basins of attraction: the fraction of a family of initial compositions that ends at each attractor.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair (a result for each), or a population.
    family
        'consensus', for two words: a share s of agents, 0 ≤ s ≤ 1, remembers only the first word ([π]^2H), all others
        only the second. Fractions are lengths in s. Repeated division finds the separatrices, the values of s at which
        the attractor changes, to 1e-7; it may miss a basin narrower than 1/15 between two others. 'dirichlet':
        compositions drawn from a symmetric Dirichlet distribution over all states, independently for each kind of
        agents.
    starts
        Number of compositions drawn, for 'dirichlet' only. Time grows with it, memory does not.
    concentration
        Parameter of the Dirichlet distribution; 1 is uniform on the simplex. Many states then share the weight so
        evenly that word shares hardly differ; small values such as 1 / states spread them.
    seed
        Seed of the draws.
    max_time
        As in `solve`: a trajectory still moving then is a 'slow transient' or a 'limit cycle'.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `attractor`, by falling share of the first word, with

    - `fraction` and its `standard_error` (binomial; NaN for 'consensus');
    - `word_share` (word) of all agents, `convention` of the uncommitted;
    - `outcome`: 'steady'; 'marginal' for fixed points with a leading eigenvalue 0, one entry for each convention;
      otherwise the outcome in `solve`, one entry for each;
    - `separatrix` (boundary), empty for 'dirichlet'. A start that ends at a saddle lies on a separatrix and counts for
      no attractor.

    Raises
    ------
    InputError
        If the family is unknown or not defined for this number of words, or a number is out of range.

    See Also
    --------
    fixed_points : the attractors themselves, and what separates them
    group_size_law : which of two attractors a finite group reaches

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> basins = meanfield.basins(policy)
    >>> basins["convention"].values.tolist(), basins["fraction"].values.round(3)
    (['A', 'B'], array([0.521, 0.479]))
    >>> basins["separatrix"].values.round(3)  # with fewer agents than this who remember A only, B wins
    array([0.479])
    """
    population = as_population(policy)
    if family not in FAMILIES:
        raise InputError(f"family = {family!r}: expected one of {', '.join(FAMILIES)}")
    if family == "consensus" and population.space.n_words != 2:
        raise InputError(f"policy has {population.space.n_words} words: expected 2 for family = 'consensus'")
    starts, seed = whole_number("starts", starts, 1), whole_number("seed", seed)
    real_number("concentration", concentration, above=0)
    if not max_time > 0:
        raise InputError(f"max_time = {max_time}: expected a time above 0")
    attractors = _Attractors(population)
    with tqdm(desc="basins", unit="start", disable=not progress, leave=False) as bar:
        if family == "consensus":
            fraction, error, boundaries = _by_consensus(population, attractors, max_time, bar)
        else:
            fraction, error = _by_draws(population, attractors, (starts, concentration, seed), max_time, bar)
            boundaries = np.empty(0)
    result = _label(population, attractors, fraction, error, boundaries)
    options = {"starts": starts, "concentration": concentration, "seed": seed} if family == "dirichlet" else {}
    result = result.assign_attrs(policy=population.name).assign_coords(names_of(policy))
    return stamp(result, "basins", policy, family=family, max_time=max_time, **options)


def _ends(population: Population, compositions: np.ndarray, max_time: float, bar: tqdm) -> _Ends:
    initial = xr.DataArray(compositions, dims=("start", "component", "state"))
    solution = solve(population, initial=initial, times=np.array([0.0, min(1.0, max_time)]), max_time=max_time)
    bar.update(len(compositions))
    x = solution["composition"].values
    said = np.einsum("m,ims,msw->iw", population.mixture.share, x, population.mixture.q)
    return _Ends(x, said + population.mixture.committed, solution["outcome"].values)


def _by_consensus(
    population: Population, attractors: _Attractors, max_time: float, bar: tqdm
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Length in s of each basin, no errors, and the separatrices."""
    first, second = (consensus(population, word).values for word in population.words)

    def number(s: np.ndarray) -> np.ndarray:
        compositions = s[:, None, None] * first + (1 - s)[:, None, None] * second
        return attractors.number(_ends(population, compositions, max_time, bar))

    s = np.linspace(0.0, 1.0, SECTIONS)
    reached = number(s)
    while True:
        wide = np.diff(s) > SEPARATRIX_TOLERANCE
        open_intervals = np.flatnonzero((np.diff(reached) != 0) & wide)
        if not len(open_intervals):
            break
        inner = np.linspace(s[open_intervals[0]], s[open_intervals[0] + 1], REFINEMENT + 2)[1:-1]
        s, reached = np.append(s, inner), np.append(reached, number(inner))
        order = np.argsort(s)
        s, reached = s[order], reached[order]
    s, reached = s[reached != SADDLE], reached[reached != SADDLE]
    if not len(s):
        return np.empty(0), np.empty(0), np.empty(0)
    changes = np.flatnonzero(np.diff(reached))
    boundaries = (s[changes] + s[changes + 1]) / 2
    length = np.zeros(len(attractors.composition))
    for k, (left, right) in enumerate(itertools.pairwise([0.0, *boundaries, 1.0])):
        length[reached[[*changes, -1][k]]] += right - left
    return length, np.full(len(length), np.nan), boundaries


def _by_draws(
    population: Population, attractors: _Attractors, drawn: tuple[int, float, int], max_time: float, bar: tqdm
) -> tuple[np.ndarray, np.ndarray]:
    """Share of the draws that end at each attractor, and its standard error."""
    starts, concentration, seed = drawn
    random = np.random.default_rng(seed)
    shape = population.mixture.q.shape[:2]
    bar.reset(total=starts)
    counts = Counter()
    for first in range(0, starts, BATCH):
        size = min(BATCH, starts - first)
        compositions = random.dirichlet(np.full(shape[1], concentration), size=(size, shape[0]))
        counts.update(attractors.number(_ends(population, compositions, max_time, bar)).tolist())
    fraction = np.array([counts[k] for k in range(len(attractors.composition))]) / starts
    return fraction, np.sqrt(fraction * (1 - fraction) / starts)


def _label(
    population: Population, attractors: _Attractors, fraction: np.ndarray, error: np.ndarray, boundaries: np.ndarray
) -> xr.Dataset:
    share = np.array(attractors.word_share).reshape(-1, population.space.n_words)
    outcome = np.array(attractors.outcome, dtype=str)
    order = np.lexsort((-share[:, 0], outcome != STEADY))
    share, outcome = share[order], outcome[order]
    conventions = np.array([convention(one, population.words) for one in population.convincible_share(share)], str)
    moving = (outcome != STEADY) & (outcome != MARGINAL)
    several = moving | ((outcome == MARGINAL) & (conventions == MIXED))
    columns = {
        "fraction": (("attractor",), fraction[order], "fraction of the family that ends here"),
        "standard_error": (("attractor",), error[order], "standard error of the fraction"),
        "word_share": (("attractor", "word"), np.where(several[:, None], np.nan, share), "word share"),
        "convention": (("attractor",), np.where(moving, "", conventions), "convention"),
        "outcome": (("attractor",), outcome, "what trajectories do"),
        "separatrix": (("boundary",), boundaries, "share of agents who remember the first word only"),
    }
    return labelled(columns, coords={**word_coords(population.words), "attractor": np.arange(len(order))})
