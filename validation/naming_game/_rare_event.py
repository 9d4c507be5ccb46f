"""The probability of an end that simulation hardly ever sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.special import stdtrit
from tqdm.auto import tqdm

from meanfield import ConvergenceError, InputError, Population
from meanfield.toolbox import (
    LARGEST_SEED,
    as_population,
    canonical_order,
    check_level,
    check_memory,
    labelled,
    names_of,
    stamp,
    weak_side,
    whole_number,
    wilson_interval,
    word_number,
)
from validation._engine.arguments import LARGEST_POPULATION
from validation._engine.topology import pairs_met
from validation.naming_game._convention import Convention, convention_of
from validation.naming_game._ensemble import Rules
from validation.naming_game._roster import kind_names, make_cast, start_composition, start_options
from validation.naming_game._splitting import Division, Draws, Game, Pilot, Replication, choose_levels, replicate

# Of a weight on the way to the saddle. Processors differ by 1e-12 in weights of order one, and each further bit doubles
# the probability that this moves one of them.
BITS = 12
SADDLE, SHARE, GIVEN = "way to the saddle", "word share", "given"


def rare_event(
    policy: xr.Dataset | Population,
    word: str,
    *,
    n_agents: int,
    runs: int,
    seed: int,
    replications: int = 20,
    committed: Mapping[str, int | Sequence[int] | np.ndarray] | None = None,
    initial: str | xr.DataArray | np.ndarray | None = None,
    convention: str | Convention = "004",
    max_rounds: int = 1000,
    coordinate: xr.DataArray | np.ndarray | None = None,
    level: float = 0.99,
    progress: bool = False,
) -> xr.Dataset:
    """The probability that a run of `simulate` ends at a word, however small, by splitting.

    The event is ``simulate(...)["consensus_word"] == word``: a run converges to the word within `max_rounds`.

    A coordinate tells how far a run has come. Runs are stopped as soon as they are above a level, and continued several
    times to the next one. The product of the shares that come above the levels is an unbiased estimate of the
    probability, whatever the coordinate; a bad one makes it vary more. A pilot, whose runs aren't counted, chooses the
    levels. Sources: Garvels 2000, thesis, Twente (fixed effort); Cérou and Guyader 2007, Stoch. Anal. Appl. 25, 417;
    Bréhier et al. 2016, Ann. Appl. Probab. 26, 3559 (ties).

    Parameters
    ----------
    policy, committed, initial, convention, max_rounds
        As for `simulate`. From a consensus that agents leave by mistake, ``Convention(0.95, first_test=T)`` with
        ``max_rounds=T`` asks whether they agree on another word after T rounds.
    word
        The word.
    n_agents
        N ≥ 2, one population size.
    runs
        Number of runs in each stage of a replication, ≥ 2. A hundred do for 1e-6, several hundred for 1e-12.
    seed
        0 to 2^63 - 1. The result is the same for any number of threads and on any processor, and its runs are not those
        of `simulate`.
    replications
        Number of independent estimates, ≥ 2, whose mean is the result and whose spread is its error.
    coordinate
        A number for each memory state, shape (S,), or a DataArray over `state`; its mean over agents is the coordinate.
        Default: how much action is left on the likeliest way to the saddle (see `meanfield.group_size_law`), for agents
        of one policy of two words who start with empty memories, if there is one. Else the probability that a random
        agent says the word.
    level
        Confidence of the interval.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset with

    - `probability`, and `interval` (bound), from the spread of the replications: of Student's t, on a logarithmic
      scale. Wilson's where the pilot chose no levels, so that all runs are ordinary ones;
    - `relative_error`, the standard error over `probability`, NaN if that is 0;
    - `estimate` (replication), and `passed` (replication, stage), the shares whose product it is; the last one is the
      share of runs that end at the word;
    - `rounds`, the number of rounds of N interactions played in all, the pilot's included.

    attrs["reason"] says where the error is not known well: no run ended at the word, or few replications saw it. Of an
    event that depends on a single rare answer splitting sees no more than `simulate`.

    Raises
    ------
    InputError
        If an argument is out of range, `word` is not a word of the policy, or the runs would take more memory than
        16 GiB (or the environment variable MEANFIELD_MEMORY, in GiB).

    See Also
    --------
    simulate : for probabilities above 1e-3
    meanfield.group_size_law : Φ(-κ√N), the same probability up to a factor, and with order 2 that factor
    validation.naming_game.exact_population : of few agents

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.6 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> rare = validation.rare_event(policy, "B", n_agents=200, runs=100, seed=1)
    >>> print(f"{rare['probability'].item():.1e}", rare["relative_error"].round(2).item())
    4.2e-07 0.13
    """
    population = as_population(policy)
    target = word_number(population.words, word)
    n = whole_number("n_agents", n_agents, 2, LARGEST_POPULATION)
    runs = whole_number("runs", runs, 2)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    replications = whole_number("replications", replications, 2)
    max_rounds = whole_number("max_rounds", max_rounds, 1, LARGEST_SEED)
    rule = convention_of(convention)
    check_level(level)
    cast = make_cast(population, committed, sizes=[n])
    composition = start_composition(population, initial)
    rules = Rules.of(cast.q, population.space)
    a_run = n * rules.successors.itemsize + 3 * 8 * (rules.q.shape[1] + 1)
    asked = f"runs = {runs}, n_agents = {n}, replications = {replications}"
    check_memory(2 * runs * a_run + 200 * replications, asked, "fewer runs, agents or replications")
    edges = cast.edges(n)
    if not pairs_met(edges):
        raise InputError(f"policy {population!r} meets in groups of several sizes: expected one size")
    test = np.array([rule.first_test, rule.successes_needed(n * pairs_met(edges))])
    name, weights = SHARE, np.ascontiguousarray(rules.q[:, target])[None]  # (time, state of any kind)
    alone = isinstance(policy, xr.Dataset) and not cast.words and initial is None
    if coordinate is not None:
        name, weights = GIVEN, np.tile(_given(coordinate, population.space.n_states), rules.n_kinds)[None]
    elif alone and (way := _way_to_the_saddle(policy, word, n)) is not None:
        name, weights = SADDLE, way
    game = Game(rules, cast.states(n, composition), test, max_rounds, target, weights, edges)
    with tqdm(desc=population.name, unit="stage", disable=not progress, leave=False) as bar:
        pilot = choose_levels(game, runs, seed, bar.update)
        bar.reset(replications * (len(pilot.levels) + 1))
        found = [replicate(game, pilot.levels, runs, Draws(seed, n, k + 1), bar.update) for k in range(replications)]
    result = _labelled(pilot, found, runs, level).assign_coords({**names_of(policy), "word": word, "n_agents": n})
    options = {"n_agents": n, "runs": runs, "seed": seed, "replications": replications}
    options |= start_options(initial, cast, [n])
    options["agents"] = " ".join(map(str, cast.numbers(n))) if len(kind_names(cast)) > 1 else None
    options |= {"convention": str(convention), "max_rounds": max_rounds, "coordinate": name, "level": level}
    return stamp(result.assign_attrs(reason=_reason(pilot, found, word)), "rare_event", policy, **options)


def _given(coordinate: xr.DataArray | np.ndarray, n_states: int) -> np.ndarray:
    if isinstance(coordinate, xr.DataArray):
        if coordinate.dims != ("state",):
            raise InputError(f"coordinate has the dims {', '.join(map(str, coordinate.dims))}: expected state")
        coordinate = canonical_order(coordinate, "coordinate").values
    values = np.asarray(coordinate)
    if values.shape != (n_states,) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InputError(f"coordinate: expected {n_states} finite numbers, one for each memory state")
    return values.astype(np.float64)


def _way_to_the_saddle(policy: xr.Dataset, word: str, n_agents: int) -> np.ndarray | None:
    try:
        side = weak_side(policy)
    except ConvergenceError:
        return None
    if side is None:
        return None
    division = Division.of(n_agents)
    # A round is two units of the rate equation's time
    parts = np.arange(division.parts(int(side.times[-1] / 2) + 2) + 1)
    place = np.interp(2 * division.rounds(parts), side.times, np.arange(len(side.times)))
    before, share = place.astype(int), (place % 1)[:, None]
    after = np.minimum(before + 1, len(side.times) - 1)
    way = (1 - share) * side.weights[before] + share * side.weights[after]
    # Runs that are equally far must tie on every processor: sums of numbers with few bits are exact.
    grain = 2.0 ** (np.frexp(np.abs(way).max())[1] - BITS)
    return np.round((way if word == side.word else -way) / grain) * grain


def _labelled(pilot: Pilot, found: list[Replication], runs: int, level: float) -> xr.Dataset:
    estimates = np.array([one.probability for one in found])
    probability, trials = estimates.mean(), len(found) * runs
    with np.errstate(invalid="ignore"):
        error = estimates.std(ddof=1) / np.sqrt(len(found)) / probability
    width = stdtrit(len(found) - 1, (1 + level) / 2) * error
    if not pilot.levels:
        interval = np.array(wilson_interval(np.rint(probability * trials), trials, level))
    elif probability > 0:
        interval = np.minimum(probability * np.exp([-width, width]), 1.0)
    else:
        interval = np.array([0.0, np.nan])
    columns = {
        "probability": ((), probability, "probability of ending at the word"),
        "interval": ("bound", interval, f"{100 * level:g} % interval"),
        "relative_error": ((), error, "standard error of the probability, as a share of it"),
        "estimate": ("replication", estimates, "probability of ending at the word, by replication"),
        "passed": (("replication", "stage"), np.stack([one.passed for one in found]), "share of runs above the level"),
        "rounds": ((), pilot.rounds + sum(one.rounds for one in found), "rounds played", "rounds of N interactions"),
    }
    return labelled(columns, coords={"bound": ["low", "high"]})


def _reason(pilot: Pilot, found: list[Replication], word: str) -> str:
    """Why the error is not known well, '' if it is."""
    estimates = np.array([one.probability for one in found])
    if not estimates.any():
        if not pilot.levels:
            return f"no run ended at {word!r}"
        reached = np.mean([one.passed[:-1].prod() for one in found])
        far = f"the probability of passing all levels is {reached:.1e}" if reached > 0 else "none came above all levels"
        return f"no run ended at {word!r}; {far}"
    if not estimates.all():
        share = f"{np.count_nonzero(estimates)} of {len(estimates)}"
        return f"runs of {share} replications only ended at {word!r}: the interval may be too short, take more runs"
    if estimates.std(ddof=1) > estimates.mean():
        return "replications differ by more than their mean: the interval may be too short, take more runs"
    return ""
