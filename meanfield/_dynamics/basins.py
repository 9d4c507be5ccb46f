"""Basins of attraction: where the rate equation ends from families of compositions."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._dynamics.recurrence import STEADY, WINDOWS, follow, recurrence
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield._numerics.stability import stability
from meanfield._population.drift import mixture_word_share
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.observables import MIXED, convention, label_of
from meanfield._population.population import Population
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import as_games
from meanfield._population.trajectories import MAX_TIME, STEADY_RESIDUAL, Tolerances, trajectories
from meanfield._reactions.fixed_points import validated_masses
from meanfield._reactions.modes import modes_at
from meanfield._reactions.solve import state_coords
from meanfield.toolbox._arguments import real_number, shown, whole_number
from meanfield.toolbox._columns import Columns, labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._memory_budget import check_memory

FAMILIES = ("consensus", "dirichlet")
# Even, so that no start of a symmetric family lies on the separatrix in its middle
SECTIONS = 16
REFINEMENT = 6  # starts within an interval that holds a separatrix; also even
SEPARATRIX_TOLERANCE = 1e-7  # of the share along a family of starts
SAME_ATTRACTOR = 1e-3  # Σ|x - y| / 2 below which two trajectories end at the same place
BATCH = 64  # draws that are followed together
TOGETHER = 2**14  # fractions of all populations that are followed at once, from each of up to 64 starts
STRICT = Tolerances(1e-10, 1e-13)  # under which trajectories of reaction models come to rest
SADDLE = -1  # in place of an attractor's number: the trajectory stays beside a saddle
MARGINAL = "marginal"


class _Attractors(ABC):
    """The attractors that trajectories of one game have reached so far."""

    def __init__(self) -> None:
        self._met: list[tuple[np.ndarray, str]] = []
        self.composition: list[np.ndarray] = []
        self.outcome: list[str] = []

    @abstractmethod
    def stability_at(self, x: np.ndarray) -> str:
        """The stability of a fixed point."""

    @abstractmethod
    def convention_at(self, x: np.ndarray) -> str:
        """Marginal fixed points of the same convention count as one."""

    def number(self, compositions: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """The number of the attractor of each trajectory; -1 for one that ends at a saddle and so lies on a separatrix.

        Trajectories that do not come to rest are grouped by their outcome.
        """
        return np.array([self._number(*end) for end in zip(compositions, outcomes, strict=True)])

    def _number(self, x: np.ndarray, outcome: str) -> int:
        if outcome == STEADY:
            outcome = self._status(x)
        if outcome == "unstable":
            return SADDLE
        for k, known in enumerate(self.composition):
            if outcome == self.outcome[k] and self._belongs(x, k, known):
                return k
        self.composition.append(x)
        self.outcome.append(outcome)
        return len(self.composition) - 1

    def _belongs(self, x: np.ndarray, k: int, known: np.ndarray) -> bool:
        """Whether a trajectory with the same outcome as attractor k belongs to it."""
        if self.outcome[k] == STEADY:
            return _same(x, known)
        # A continuum of marginal fixed points would be a list of starts: they count by their convention.
        return self.outcome[k] != MARGINAL or self.convention_at(x) == self.convention_at(known)

    def _status(self, x: np.ndarray) -> str:
        """'steady' at an attractor, 'marginal' or 'unstable' at other fixed points."""
        for known, status in self._met:
            if _same(x, known):
                return status
        status = self.stability_at(x)
        self._met.append((x, STEADY if status == "stable" else status))
        return self._met[-1][1]


class _WordAttractors(_Attractors):
    def __init__(self, mixture: Mixture | Groups, words: tuple[str, ...]) -> None:
        super().__init__()
        self.mixture, self.words = mixture, words

    def stability_at(self, x: np.ndarray) -> str:
        found = leading_eigenvalues(self.mixture, x, self.mixture.space)
        return str(stability(found.values[0], found.errors[0]))

    def convention_at(self, x: np.ndarray) -> str:
        return convention(self.mixture.convincible_share(mixture_word_share(x, self.mixture)), self.words)


class _ReactionAttractors(_Attractors):
    def __init__(self, model: ReactionModel, masses: np.ndarray) -> None:
        super().__init__()
        self.model, self._face = model, masses[model.classes] > 0

    def stability_at(self, x: np.ndarray) -> str:
        modes = modes_at(self.model, x, self._face)
        return str(stability(modes.values[0], modes.errors[0])) if modes.values.size else "stable"

    def convention_at(self, x: np.ndarray) -> str:
        return ""


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.abs(x - y).sum(-1).max() / 2 < SAME_ATTRACTOR)


def basins(
    policy: xr.Dataset | Population | ReactionModel,
    *,
    family: str = "consensus",
    starts: int = 1000,
    concentration: float = 1.0,
    seed: int = 0,
    max_time: float | None = None,
    masses: Sequence[float] | np.ndarray | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Measure basins of attraction: the fraction of a family of initial compositions that ends at each attractor.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair (a result for each), a population, or a reaction model.
    family
        'consensus', for two words: a share s of agents, 0 ≤ s ≤ 1, remembers only the first word ([π]^2H), all others
        only the second. Fractions are lengths in s. Repeated division finds the separatrices, the values of s at which
        the attractor changes, to 1e-7; it may miss a basin narrower than 1/15 between two others. 'dirichlet':
        compositions drawn from a symmetric Dirichlet distribution over all states, independently for each kind of
        agents, for a reaction model over the states of each conserved class; a stack has the same ones for all its
        policies.
    starts
        Number of compositions drawn, for 'dirichlet' only. Time grows with it, memory does not.
    concentration
        Parameter of the Dirichlet distribution; 1 is uniform on the simplex, where word shares hardly differ if there
        are many states. Small values such as 1 / states spread them.
    seed
        Seed of the draws.
    max_time
        As in `solve`, by default 2000; for a reaction model in its unit of time, by default 2000 over its fastest rate.
    masses
        For a reaction model with several conserved classes: the fraction of agents in each, as in `fixed_points`.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `attractor`, in order of decreasing share of the first word, with

    - `fraction` and its `standard_error` (binomial; NaN for 'consensus');
    - `word_share` (word) of all agents, `convention` of the uncommitted, and `label`, which always names the leading
      word ('mostly A (0.97)');
    - `outcome`: 'steady'; 'marginal' for fixed points with a leading eigenvalue 0, one entry for each convention;
      otherwise the outcome in `solve`, one entry for each;
    - `separatrix` (boundary), empty for 'dirichlet'. A start that ends at a saddle lies on a separatrix and counts for
      no attractor.

    For a reaction model in order of decreasing fraction, with `composition` (attractor, state) in place of word
    shares, conventions and separatrices.

    Raises
    ------
    InputError
        If the family is unknown or not defined for this number of words, or a number is out of range.

    See Also
    --------
    fixed_points : the attractors themselves, and the saddles between them
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
    if not isinstance(family, str) or family not in FAMILIES:
        raise InputError(f"family = {shown(family)}: expected one of {', '.join(FAMILIES)}")
    starts, seed = whole_number("starts", starts, 1), whole_number("seed", seed)
    real_number("concentration", concentration, above=0)
    if max_time is not None:
        max_time = real_number("max_time", max_time, above=0)
    words = not isinstance(policy, ReactionModel)
    n_states = as_games(policy, in_groups=True).mixtures[0].q[..., 0].size if words else policy.n_states
    check_memory(16 * n_states * starts, f"starts = {starts}", "fewer starts")
    drawn = {"starts": starts, "concentration": concentration, "seed": seed}
    bar = tqdm(desc="basins", unit="start", disable=not progress, leave=False)
    if isinstance(policy, ReactionModel):
        if family == "consensus":
            raise InputError("family = 'consensus': a ReactionModel has no words; expected 'dirichlet'")
        max_time = MAX_TIME / policy.fastest if max_time is None else max_time
        with bar:
            bar.reset(total=starts)
            result = _reaction_basins(policy, validated_masses(policy, masses), drawn, max_time, bar)
        return stamp(result, "reaction_basins", family=family, max_time=max_time, **drawn)
    if masses is not None:
        raise InputError("masses is given: expected only with a ReactionModel")
    max_time = MAX_TIME if max_time is None else max_time
    games = as_games(policy, in_groups=True)
    n_words = games.mixtures[0].space.n_words
    if family == "consensus" and n_words != 2:
        raise InputError(f"policy has {n_words} words: expected 2 for family = 'consensus', or family = 'dirichlet'")
    found = [_WordAttractors(mixture, words) for mixture, words in zip(games.mixtures, games.words, strict=True)]
    columns: list[Columns] = []
    together = max(1, TOGETHER // games.mixtures[0].q[..., 0].size)
    with bar:
        bar.reset(total=None if family == "consensus" else starts * len(found))
        for first in range(0, len(found), together):
            some = found[first : first + together]
            if family == "consensus":
                basins_of_each = _by_consensus(some, max_time, bar)
            else:
                basins_of_each = _by_draws(some, drawn, max_time, bar)
            columns += [_columns(one, *basins) for one, basins in zip(some, basins_of_each, strict=True)]
    options = drawn if family == "dirichlet" else {}
    return games.stamped(games.labelled(columns, "attractor"), "basins", family=family, max_time=max_time, **options)


class _Basins(NamedTuple):
    """The fraction of one population's starts that ends at each attractor, its error, and the separatrices."""

    fraction: np.ndarray
    error: np.ndarray
    boundaries: np.ndarray


def _reached(some: list[_WordAttractors], starts: list[np.ndarray], max_time: float, bar: tqdm) -> list[np.ndarray]:
    """The number of the attractor of each population that is reached from each of its starts, as many for each."""
    mixtures = Mixture.stacked([one.mixture for one in some])
    times = np.array([0.0, min(1.0, max_time)])
    trajectories, outcome, _ = follow(mixtures, np.stack(starts), times, max_time, Tolerances())
    bar.update(outcome.size)
    return [one.number(*ends) for one, *ends in zip(some, trajectories.composition, outcome, strict=True)]


def _by_consensus(some: list[_WordAttractors], max_time: float, bar: tqdm) -> list[_Basins]:
    """Lengths in s of the basins of each population, and the separatrices: all are divided at once."""
    s = [np.empty(0) for _ in some]
    reached = [np.empty(0, int) for _ in some]
    wanted = {number: np.linspace(0.0, 1.0, SECTIONS) for number in range(len(some))}
    while wanted:
        asked = [some[number] for number in wanted]
        starts = [
            inner[:, None, None] * one.mixture.consensus(0) + (1 - inner)[:, None, None] * one.mixture.consensus(1)
            for one, inner in zip(asked, wanted.values(), strict=True)
        ]
        found = _reached(asked, starts, max_time, bar)
        for (number, inner), attractors in zip(wanted.items(), found, strict=True):
            order = np.argsort(both := np.append(s[number], inner))
            s[number], reached[number] = both[order], np.append(reached[number], attractors)[order]
        wanted = {
            number: np.linspace(left, right, REFINEMENT + 2)[1:-1]
            for number in wanted
            for left, right in _open_intervals(s[number], reached[number])[:1]
        }
    return [_lengths(one, *sides) for one, *sides in zip(some, s, reached, strict=True)]


def _open_intervals(s: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The intervals, still too wide, in which the attractor changes."""
    rows = (np.diff(reached) != 0) & (np.diff(s) > SEPARATRIX_TOLERANCE)
    return np.stack([s[:-1], s[1:]], axis=1)[rows]


def _lengths(attractors: _Attractors, s: np.ndarray, reached: np.ndarray) -> _Basins:
    s, reached = s[reached != SADDLE], reached[reached != SADDLE]
    if not len(s):
        return _Basins(*np.empty((3, 0)))
    changes = np.flatnonzero(np.diff(reached))
    boundaries = (s[changes] + s[changes + 1]) / 2
    length = np.zeros(len(attractors.composition))
    for k, (left, right) in enumerate(itertools.pairwise([0.0, *boundaries, 1.0])):
        length[reached[[*changes, -1][k]]] += right - left
    return _Basins(length, np.full(len(length), np.nan), boundaries)


def _by_draws(some: list[_WordAttractors], drawn: dict[str, Any], max_time: float, bar: tqdm) -> list[_Basins]:
    """Share of the draws that end at each attractor of each population, and its standard error."""
    random = np.random.default_rng(drawn["seed"])
    kinds, states = some[0].mixture.q.shape[:2]

    def reached(size: int) -> list[np.ndarray]:
        compositions = random.dirichlet(np.full(states, drawn["concentration"]), size=(size, kinds))
        return _reached(some, [compositions] * len(some), max_time, bar)

    return _shares_of_draws(some, reached, drawn["starts"])


def _shares_of_draws(
    some: Sequence[_Attractors], reached: Callable[[int], list[np.ndarray]], starts: int
) -> list[_Basins]:
    """`reached` draws so many starts and returns the numbers of their attractors, for each game."""
    counts: list[Counter[int]] = [Counter() for _ in some]
    for first in range(0, starts, BATCH):
        for count, numbers in zip(counts, reached(min(BATCH, starts - first)), strict=True):
            count.update(numbers.tolist())
    result = []
    for one, count in zip(some, counts, strict=True):
        fraction = np.array([count[k] for k in range(len(one.composition))]) / starts
        result.append(_Basins(fraction, np.sqrt(fraction * (1 - fraction) / starts), np.empty(0)))
    return result


def _reaction_basins(
    model: ReactionModel, masses: np.ndarray, drawn: dict[str, Any], max_time: float, bar: tqdm
) -> xr.Dataset:
    random, attractors = np.random.default_rng(drawn["seed"]), _ReactionAttractors(model, masses)
    members = [np.flatnonzero(model.classes == c) for c in range(model.n_classes)]

    def reached(size: int) -> list[np.ndarray]:
        x = np.empty((size, model.n_states))
        for mass, states in zip(masses, members, strict=True):
            x[:, states] = mass * random.dirichlet(np.full(len(states), drawn["concentration"]), size)
        x, speed = (values[:, -1] for values in trajectories(model, x, np.array([0.0, max_time]), STRICT))
        outcome = np.full(size, STEADY, dtype=object)
        (moving,) = np.nonzero(speed > STEADY_RESIDUAL * model.fastest)
        if moving.size:
            times = WINDOWS[0]
            seen, _ = trajectories(model, x[moving], times / model.fastest, Tolerances())
            outcome[moving] = [recurrence(times, one)[0] for one in seen]
        bar.update(size)
        return [attractors.number(x, outcome)]

    ((fraction, error, _),) = _shares_of_draws([attractors], reached, drawn["starts"])
    order, outcome = np.argsort(-fraction, kind="stable"), np.array(attractors.outcome, dtype=str)
    x = np.array(attractors.composition).reshape(-1, model.n_states)
    over, steady = ("attractor",), (outcome == STEADY)[order, None]
    columns = {
        "fraction": (over, fraction[order], "fraction of the family that ends here"),
        "standard_error": (over, error[order], "standard error of the fraction"),
        "composition": ((*over, "state"), np.where(steady, x[order], np.nan), "fraction of agents in each state"),
        "outcome": (over, outcome[order], "what trajectories do"),
    }
    return labelled(columns, coords={**state_coords(model), "attractor": np.arange(len(order))})


def _columns(attractors: _WordAttractors, fraction: np.ndarray, error: np.ndarray, boundaries: np.ndarray) -> Columns:
    mixture, words = attractors.mixture, attractors.words
    x = np.array(attractors.composition).reshape(-1, *mixture.q.shape[:2])
    share = mixture_word_share(x, mixture)
    outcome = np.array(attractors.outcome, dtype=str)
    order = np.lexsort((-share[:, 0], outcome != STEADY))
    share, outcome = share[order], outcome[order]
    free = mixture.convincible_share(share)
    label = partial(label_of, committed=bool(mixture.committed.any()))
    conventions, labels = (np.array([name(one, words) for one in free], str) for name in (convention, label))
    moving = (outcome != STEADY) & (outcome != MARGINAL)
    several = moving | ((outcome == MARGINAL) & (conventions == MIXED))
    return {
        "fraction": (("attractor",), fraction[order], "fraction of the family that ends here"),
        "standard_error": (("attractor",), error[order], "standard error of the fraction"),
        "word_share": (("attractor", "word"), np.where(several[:, None], np.nan, share), "word share"),
        "convention": (("attractor",), np.where(moving, "", conventions), "convention"),
        "label": (("attractor",), np.where(several, np.where(moving, "", MIXED), labels), "name"),
        "outcome": (("attractor",), outcome, "what trajectories do"),
        "separatrix": (("boundary",), boundaries, "share of agents who remember the first word only"),
    }
