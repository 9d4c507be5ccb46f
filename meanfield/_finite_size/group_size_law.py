"""The group-size law: the probability that N agents end at the infinite population's convention, or side with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import ndtri
from tqdm import tqdm

from meanfield._finite_size.law_path import LawPath, NoPath, alike, law_path, marginal, place
from meanfield._finite_size.least_action_path import SMALLEST
from meanfield._finite_size.majority import Correlation, majority, memory_rounds, still_ahead
from meanfield._finite_size.moments import validate_sizes
from meanfield._finite_size.several_attractors import Crossing, Several, next_orders, several
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.observables import MIXED, success_rate
from meanfield._population.population import Population, as_population
from meanfield._population.single_policy import each_policy
from meanfield._population.stacks import as_games
from meanfield.toolbox._arguments import increasing_times, real_number, whole_number
from meanfield.toolbox._columns import Columns
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._memory_budget import check_memory

DEFAULT_SIZES = tuple(int(n) for n in np.unique(np.geomspace(2, 1e5, 48).round()))
KNOWN = 1e-3  # relative error of κ above which it is reported
SAME_SHARES = 1e-6  # of words at a fixed point, above the error of its solution
ALL_ALIKE = "agents treat all words alike, so that each wins with the same probability"
LONGEST = 100.0  # logarithm of a critical size
BYTES = 40  # of a probability at a size and a round, as measured


class _Law(NamedTuple):
    """κ, which is NaN where there is no law, and what is reported about it."""

    kappa: float
    reason: str
    word: str = ""
    attractors: int = 2
    distance: float = np.nan
    sigma: float = np.nan
    success_rate: float = np.nan
    correlation: Correlation | None = None  # where there is one attractor
    several: Several | None = None  # the borders; None without a law, and where all of three words or more are alike
    leaders: tuple[tuple[str, ...], ...] = ()  # words that lead at each place between them


def group_size_law(
    policy: xr.Dataset | Population,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    level: float = 0.99,
    order: int = 1,
    rounds: Sequence[float] | np.ndarray | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """The probability Φ(κ√N - c/√N) that N agents who start with empty memories end at the strong convention.

    Φ is the normal distribution function. κ measures how strongly a population prefers its strong convention: κ²/2 is
    the least action of a fluctuation that takes it from empty memories over the saddle to the other attractor. It is
    the exact rate at which the probability of the weak word falls with N. For weak noise κ√N is the number of standard
    deviations by which noise must push N agents. All this holds for two attractors with one saddle between them.

    With more attractors or words the rate equation still leads to one attractor, the strong one, and each of the others
    has its κ. Where saddles connect the attractors as a tree, as for two words, one is reached if the saddle before it
    is crossed and none beyond; where probabilities of few agents add up to more than 1, they are divided by their sum.
    Where the basins of up to four attractors meet, as for three words, weak noise is normal in two or three dimensions,
    and the rate equation tells where each point leads. Against 200,000 simulated runs of 24 policies of three words
    probabilities were within 0.018 at N = 24 and 0.006 at N = 100; of four words within 0.023 and 0.013.

    With one attractor no group settles. The result is then the probability that the word that leads at the attractor is
    ahead at a random moment, Q > 1/2 (a tie counts half), and κ²/2 is the least action that brings a population from
    the attractor to Q = 1/2. The path is followed as the end moves away from the attractor; whether another one has
    less action is not checked. If the weak word is ahead, it is ahead again t rounds later with the probability

        s(t) = 1 - 2 T(z, √[(1 - ρ)/(1 + ρ)]) / Φ(-z),   z = κ√N - c/√N,

    with Owen's function T and the correlation ρ(t) of word shares in linear noise. It may have fallen back in between.
    s goes from 1 to Φ(-z); the side is forgotten in the time τ = ∫ [s - Φ(-z)] dt / Φ(z).

    Order 1 leaves c out. For the eleven pairs of GPT-4o it differs from simulated probabilities by at most 0.025 at N =
    24 and 0.010 at N = 100. Answers of probability 0 count as 1e-14. κ is infinite if agents with empty memories only
    ever say one word, apart from answers of probability below 1e-14.

    Order 2 has the same κ, and c from all fluctuations about the path of least action: skewness, the shift of the mean,
    and that agents do not meet themselves. The remaining error is of order N^-3/2, and in the tail the probability of
    the weak word has a relative error of order 1/N. The same pairs: at most 0.0006 at N = 24 and 0.0005 at N = 100,
    where 2,000,000 simulated runs have a standard error of 0.0004. Where c is of the order of 1, as for policies with
    strict answers, small groups need higher orders: such a law was off by 0.03 at N = 10. For memories of five
    interactions order 1 takes about half a second and order 2 two seconds, and more where the saddle is slow.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair (a result for each), or a population, whose committed agents count among
        the N.
    n_agents
        Distinct population sizes N ≥ 2. Default: 48 of them from 2 to 100,000.
    level
        Probability that defines the critical size, between 1/2 and 1.
    order
        1 or 2.
    rounds
        Increasing numbers of rounds t ≥ 0 at which to compute s, for one attractor. Default: none.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset with

    - `kappa`, `correction` = c and `correction_error`, the numerical error of c; both are 0 for
      order 1 and for infinite κ;
    - `probability` over `n_agents`, of the strong attractor, and `log_weak_probability`, the natural logarithm of
      1 - `probability`;
    - `word_probability` (n_agents, word), the probability of ending where this word leads, or that it is ahead where
      there is one attractor; and its `word_kappa` (word), 0 for the strong word, NaN for words that lead nowhere. With
      more than two attractors `kappa` is the least of them, and `correction` belongs to it;
    - `n_critical`, the size above which the probability is at least `level`: κ√N - c/√N = Φ⁻¹(level) for two
      attractors;
    - `attractors`, their number; with 1 the probability is of being ahead; 0 if there is no law;
    - `strong_word`, the word that leads at the attractor which the rate equation reaches from empty memories; '' if
      there is no law, or agents treat both words alike, so that κ = 0;
    - `success_rate`, the probability that two agents say the same word, at the attractor where it is smallest;
    - `distance` and `sigma`, with κ = distance/σ. For weak noise, the distance is the share of agents who would turn an
      infinite population if they started with memories of the weak word only, and σ/√N is the standard deviation of the
      noise in the same unit. Both are NaN if κ is infinite or 0, and unless there are two attractors of two words;
    - with `rounds`, for one attractor, `correlation` = ρ (round), `still_ahead` = s (n_agents, round) and
      `memory_rounds` = τ (n_agents) in rounds; NaN where 1 - `probability` is below 1e-300.

    attrs["applies"] is 1 if there is such a law. Otherwise it is 0, the numbers are NaN and attrs["reason"] says why.
    If c is not found, `correction` is NaN and counts as 0, and attrs["reason"] says so. In a stack both are variables.

    With one attractor, small groups stay at a consensus that is hardly ever left longer than the law says, and forever
    at one that is never left: the law then holds until all agree, and attrs["reason"] says so. Where answers have few
    different probabilities, as with memories of one interaction, Q is a sum of few numbers; the probability was off by
    up to 0.08 for ten agents with sharp answers.

    Raises
    ------
    InputError
        If an argument is out of range, or the sizes would take more than 16 GiB of memory (or the environment variable
        MEANFIELD_MEMORY, in GiB).

    See Also
    --------
    validation.collective_bias : comparison with simulated runs
    finite_size : mean and variance over time
    sensitivity : the memories on which κ depends

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> law = meanfield.group_size_law(policy, n_agents=[10, 100, 1000])
    >>> law["strong_word"].item(), law["kappa"].round(3).item()
    ('A', 0.069)
    >>> law["probability"].values.round(3)
    array([0.587, 0.755, 0.986])
    >>> law["n_critical"].round().item()
    1132.0

    Three words:

    >>> def follow(memory):  # logit in what it remembers, what it heard twice as much, and a lean
    ...     said = {word: sum((own == word) / 2 + (heard == word) for own, heard in memory) for word in "ABC"}
    ...     weight = {word: np.exp(2.5 * said[word] + (0.2 if word == "C" else 0)) for word in "ABC"}
    ...     return {word: weight[word] / sum(weight.values()) for word in "ABC"}
    >>> law = meanfield.group_size_law(meanfield.make_policy(follow, list("ABC"), memory_length=2), n_agents=[24, 100])
    >>> law["word_probability"].values.round(2)
    array([[0.17, 0.17, 0.67],
           [0.05, 0.05, 0.91]])

    One attractor:

    >>> policy = meanfield.datasets.smollm2(pair="his/her")
    >>> law = meanfield.group_size_law(policy, n_agents=[10, 100, 1000], order=2, rounds=[0, 1, 2])
    >>> law["attractors"].item(), law["strong_word"].item(), law["probability"].values.round(3)
    (1, 'his', array([0.65 , 0.889, 1.   ]))
    >>> law["memory_rounds"].values.round(1)
    array([0.5, 0.4, 0.1])
    """
    sizes = validate_sizes(n_agents)
    level = real_number("level", level)
    if not 0.5 < level < 1:
        raise InputError(f"level = {level}: expected a probability between 1/2 and 1, as in 0.99")
    order = whole_number("order", order, 1, 2)
    if rounds is not None:
        rounds = increasing_times(rounds, "rounds")
        sizes_and_rounds = f"n_agents has {len(sizes)} sizes and rounds {len(rounds)}"
        check_memory(BYTES * len(sizes) * len(rounds), sizes_and_rounds, "fewer")
    games = as_games(policy)
    populations = [games.population] if games.population else [as_population(one) for one in each_policy(policy)]
    hidden, laws = None if progress is None else not progress, []
    with tqdm(desc="paths and orders", total=order * len(populations), disable=hidden, leave=False) as bar:
        for population in populations:
            found = law_path(population) if len(population.words) == 2 else NoPath("", several=True)
            bar.update()
            laws.append(_law_of(population, found, order))
            bar.update(order - 1)
    columns = [_columns(law, words, sizes, level, rounds) for law, words in zip(laws, games.words, strict=True)]
    applies = [int(not np.isnan(law.kappa)) for law in laws]
    result = games.labelled(columns, applies=applies, reason=[law.reason for law in laws])
    result = result.assign_coords(n_agents=("n_agents", sizes, {"long_name": "number of agents"}))
    if rounds is not None:
        result = result.assign_coords(round=("round", rounds, {"long_name": "rounds later"}))
    return games.stamped(result, "group_size_law", level=level, order=order)


def _law_of(population: Population, found: LawPath | NoPath, order: int) -> _Law:
    words = population.words
    if isinstance(found, NoPath):
        if found.attractor is not None:
            return _majority(population, found, found.attractor, order)
        if found.several:
            return _several(population, order)
        if np.isnan(found.kappa):
            return _Law(np.nan, found.reason, attractors=0)
        assert found.points is not None
        law = _Law(found.kappa, found.reason, found.word, success_rate=_agreed(found.points))
        return _with_border(law, words, Crossing(0, 1, found.kappa))
    path, points = found.path, found.points
    kappa, space = path.kappa, path.mixture.space
    # The momentum of an agent with memories of the weak word only; fixed points come by decreasing share of the first
    weak = space.consensus_state(1 if found.strong == 0 else 0)
    unit = abs(path.mixture.fractions @ (path.p[0][:, weak] - path.p[0][:, 0]))
    reason = "two attractors with one saddle between them" + _mixed(words, [points.isel(fixed_point=i) for i in (0, 2)])
    if found.words[0] == found.words[1]:
        reason += f"; {found.words[0]!r} leads at both attractors"
    if path.error > KNOWN:
        reason += f"; κ is known to {path.error:.1%}"
    numbers = {"distance": kappa**2 / unit, "sigma": kappa / unit, "success_rate": _agreed(points)}
    return _with_border(_Law(kappa, reason, found.words[0], **numbers), found.words, Crossing(0, 1, kappa, path), order)


def _with_border(law: _Law, words: tuple[str, ...], border: Crossing, order: int = 1) -> _Law:
    """The law of two words with this only border, to order 2 if asked; the strong word leads on the near side."""
    borders = Several(0, [border], None)
    borders = next_orders(borders) if order == 2 else borders
    leaders = tuple((word,) for word in sorted(words, key=lambda word: word != law.word))
    return _bordered(law, borders, leaders)


def _bordered(law: _Law, borders: Several, leaders: tuple[tuple[str, ...], ...]) -> _Law:
    """The law with c from its borders."""
    left_out = f"; the next order is left out: {borders.missing}" if borders.missing else ""
    return law._replace(reason=law.reason + left_out, several=borders, leaders=leaders)


def _several(population: Population, order: int) -> _Law:
    """The law of more than two attractors or words."""
    points = fixed_points(population)
    status = points["stability"].values.tolist()
    n_attractors = status.count("stable")
    if "marginal" in status:
        return _Law(np.nan, marginal(population.words, points), attractors=0)
    if n_attractors < 2:
        reason = f"stable fixed points: {n_attractors}; for more than two words the law needs two at least"
        return _Law(np.nan, reason, attractors=0)
    share = points["word_share"].values
    if alike(population.mixture) and np.ptp(share[points["stability"] == "stable"], axis=1).min() > SAME_SHARES:
        return _Law(0.0, ALL_ALIKE, "", n_attractors, success_rate=_agreed(points))
    law = several(population, points, order)
    if isinstance(law, str):
        return _Law(np.nan, law, attractors=0)
    nearest = law.nearest
    leaders = [tuple(np.array(population.words)[one > one.max() - SAME_SHARES].tolist()) for one in share]
    strong = leaders[law.strong][0] if len(leaders[law.strong]) == 1 and nearest.kappa > SMALLEST else ""
    reason = f"{n_attractors} attractors with a saddle on the way to each"
    if law.sectors is not None:
        reason += ", whose basins meet at one fixed point: the rate equation tells where weak noise leads"
    for number in [one.far for one in law.crossings if one.path is None and np.isfinite(one.kappa)]:
        reason += f"; to {'/'.join(leaders[number])!r} κ is from linear noise, since no path over the saddle was found"
    ends = [points.isel(fixed_point=number) for number in law.kappas()]
    reason += _mixed(population.words, ends)
    twice = [word for word in population.words if sum(leaders[number] == (word,) for number in law.kappas()) > 1]
    reason += "".join(f"; {word!r} leads at several attractors" for word in twice)
    errors = [one.path.error for one in law.crossings if one.path is not None]
    reason += f"; κ is known to {max(errors):.1%}" if errors and max(errors) > KNOWN else ""
    found = _Law(max(nearest.kappa, 0.0), reason, strong, n_attractors, success_rate=_agreed(points))
    return _bordered(found, law, tuple(leaders))


def _majority(population: Population, why: NoPath, attractor: xr.Dataset, order: int) -> _Law:
    found = majority(population, attractor, with_correction=order == 2)
    if isinstance(found, str):
        return _Law(np.nan, f"{why.reason}; {found}", attractors=0)
    agreed, word = float(success_rate(attractor["word_share"].values)), population.words[found.word]
    numbers = {"success_rate": agreed, "correlation": found.correlation}
    law = _Law(found.kappa, why.reason + found.reason, word if found.kappa else "", 1, **numbers)
    return _with_border(law, population.words, Crossing(0, 1, found.kappa, None, found.correction, found.error))


def _agreed(points: xr.Dataset) -> float:
    """Smallest probability, over the attractors, that two agents say the same."""
    return float(success_rate(points["word_share"].values[points["stability"] == "stable"]).min())


def _mixed(words: tuple[str, ...], attractors: list[xr.Dataset]) -> str:
    """A reservation for attractors that are not conventions."""
    mixed = [place(words, one) for one in attractors if one["kind"].item() == MIXED]
    return f"; noise keeps a part of the agents off the convention {' and '.join(mixed)}" if mixed else ""


def _columns(law: _Law, words: tuple[str, ...], sizes: np.ndarray, level: float, rounds: np.ndarray | None) -> Columns:
    chance, log_weak, each = _chances(law, words, sizes)
    c, error = (law.several.nearest.correction, law.several.nearest.error) if law.several else 2 * [0 * law.kappa]
    columns = {
        "kappa": ((), law.kappa, "kappa"),
        "correction": ((), c, "c, which moves the law by c/√N"),
        "correction_error": ((), error, "numerical error of c"),
        "probability": (("n_agents",), chance, "predicted probability of the strong word"),
        "log_weak_probability": (("n_agents",), log_weak, "logarithm of the probability of the others"),
        "word_probability": (("n_agents", "word"), each, "predicted probability of the word"),
        "word_kappa": (("word",), _kappas(law, words), "kappa of the word"),
        "n_critical": ((), _critical_size(law, c, level), f"group size with a probability of {level:g}"),
        "distance": ((), law.distance, "distance to the saddle's stable manifold"),
        "sigma": ((), law.sigma, "noise across the saddle's stable manifold, for one agent"),
        "success_rate": ((), law.success_rate, "success rate at the attractors, the smallest"),
        "attractors": ((), law.attractors, "number of attractors; 0 if there is no law"),
        "strong_word": ((), law.word, "word that leads where the rate equation goes from empty memories", ""),
    }
    if rounds is None:
        return columns
    rho, forgotten = np.full(len(rounds), np.nan), np.full(len(sizes), np.nan)
    still = np.full((len(sizes), len(rounds)), np.nan)
    if law.correlation is not None and law.several is not None:
        z, rho = law.several.nearest.deviations(sizes.astype(float)), law.correlation.at(rounds * TIME_PER_ROUND)
        still, forgotten = still_ahead(z, rho), memory_rounds(z, law.correlation)
    return columns | {
        "correlation": (("round",), rho, "correlation of word shares so many rounds apart"),
        "still_ahead": (("n_agents", "round"), still, "probability that the weak word is still ahead later"),
        "memory_rounds": (("n_agents",), forgotten, "time in which the side is forgotten", "rounds"),
    }


def _chances(law: _Law, words: tuple[str, ...], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of the strong attractor, of all others (the logarithm), and of each word."""
    each = np.zeros((len(sizes), len(words)))
    if law.several is None:
        each += 1 / len(words) if law.kappa == 0 else np.nan
        return each[:, 0], np.log1p(-each[:, 0]), each
    chances, log_weak = law.several.chances(sizes.astype(float))
    for number, chance in chances.items():
        for word in law.leaders[number]:
            each[:, words.index(word)] += chance / len(law.leaders[number])
    return chances[law.several.strong], log_weak, each


def _kappas(law: _Law, words: tuple[str, ...]) -> np.ndarray:
    """κ of the nearest attractor at which each word leads, 0 for the strong word; NaN if there is none."""
    found = dict.fromkeys(words, np.nan if law.several else law.kappa)
    for number, kappa in law.several.kappas().items() if law.several else ():
        for word in law.leaders[number]:
            found[word] = float(np.fmin(found[word], max(kappa, 0.0)))
    return np.array(list(found.values()))


def _critical_size(law: _Law, c: float, level: float) -> float:
    """The larger N with κ√N - c/√N = Φ⁻¹(level); 0 if the probability is larger for all N, infinite if it never is."""
    kappa, needed, borders = law.kappa, ndtri(level), law.several
    if np.isinf(kappa) or kappa == 0:
        return 0.0 if kappa else np.inf
    if borders is None or len(borders.crossings) == 1:
        square = needed**2 + 4 * kappa * np.nan_to_num(c)
        return ((needed + np.sqrt(square)) / (2 * kappa)) ** 2 if not square < 0 else 0.0

    def excess(logarithm: float) -> float:
        return borders.chances(np.exp([logarithm]))[1].item() - np.log1p(-level)

    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
        if high > LONGEST:
            return np.inf
    return float(np.exp(brentq(excess, low, high))) if excess(low) > 0 else 0.0
