"""Critical masses: where an old state vanishes as a committed minority, or the fraction of a second model, grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import brentq

from meanfield._fixed_points.points import Points, all_points, word_shares
from meanfield._fixed_points.response import responses
from meanfield._numerics.stability import stability
from meanfield._parameters.equilibria import EquilibriumCurve, Line, Stop, curves_of_each, parameter_lines
from meanfield._parameters.neighbours import Held, old_state
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population
from meanfield._population.single_policy import word_number
from meanfield._population.stacks import Games, as_games
from meanfield._population.trajectories import MAX_TIME, Tolerances, integrate
from meanfield.toolbox._columns import Columns
from meanfield.toolbox._errors import InputError

EDGE = 45.9  # |logit Q| beyond which an equilibrium is taken for the consensus at which the curve ends
NOTHING = 1e-9  # a parameter below this is 0; it is known to 1e-10
SAME_SHARE = 1e-6  # difference of word shares, or relative one of fractions, that is taken for none
NEAR = 1e-2  # Σ s|x - y| within which a trajectory ends at a fixed point
GRID = 200  # points of logit Q along the old state's path
GRADUAL = "the old state changes gradually and never vanishes; most others say the other word {}"


class _Old(NamedTuple):
    """The old state: its word share, and the number of the closed class on which it lives (-1 at an exact corner)."""

    word_share: Float[np.ndarray, " two"]
    branch: int


class Fate(NamedTuple):
    """Where the old state vanishes (None if nowhere), the kind of transition, and the reason."""

    end: Stop | None
    transition: str
    reason: str


def critical_mass(
    population: xr.Dataset | Population,
    *,
    parameter: str = "committed",
    word: str | None = None,
    old: str | None = None,
) -> xr.Dataset:
    """The fraction of committed agents, or of a second model, at which an old state of a two-word population vanishes.

    The fraction is the total: agents of the population who are already committed to `word`, or already have the last
    policy, count towards it, and `already_there` is their fraction. Agents committed to the other word stay committed.

    The old state is followed along c(Q) (see `bifurcation`) from c = 0 to the fold where c turns back; beyond it the
    population leaves the state. A loss of stability before the fold is not reported; `bifurcation` shows it.

    On a graph (`Population` with a `degree`) the old state is the one reached from agreement on the other word. It is
    followed as `word` is said more and more, in the pair approximation (see attrs["method"]), and only its first fold
    is listed.

    Parameters
    ----------
    population, parameter, word
        As in `bifurcation`.
    old
        Which state to follow: the stable or marginal fixed point without newcomers at which a random partner says this
        word most often, and more often than the other. Default: for committed agents the one at which `word` is rarest;
        for a second model the one that the rest reaches from empty memories. On a graph it is the other word's.

    Returns
    -------
    Dataset with

    - `critical_mass`, NaN if the old state never vanishes, and `word_share` (word) there;
    - `already_there`, the part of it that the population has;
    - `old_word_share` (word), the word share of the old state at fraction 0;
    - `fold_parameter` (fold) and `fold_word_share` (fold, word), all folds of the diagram.

    attrs["counts"] says which agents are counted. attrs["transition"] is 'fold'; 'continuous' if the state merges with
    the new consensus; 'pitchfork' if it meets a state that is an equilibrium at every fraction, or is such a state and
    turns unstable; or 'none'. attrs["reason"] explains it. In a stack transition and reason are variables.

    Raises
    ------
    InputError
        As `bifurcation`, or if `old` is not a word of the population.

    See Also
    --------
    validation.naming_game.committed_minority : N agents and a deadline, simulated
    bifurcation : all equilibria along the way
    theory.minimal_naming_game.critical_fraction : closed forms of the minimal naming game

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> mass = meanfield.critical_mass(policy, word="B")  # who say B whatever they remember, and end the habit of A
    >>> mass["critical_mass"].round(3).item(), mass.attrs["transition"]
    (0.174, 'fold')
    """
    games = as_games(population, "population", in_groups=True, on_graph=True)
    word, lines = parameter_lines(games, parameter, word)
    on_graph = isinstance(population, Population) and population.degree is not None
    if on_graph:
        found = [_fate_on_graph(population, lines[0], str(word), old)]
    else:
        found = fates_of_each(games, lines, word, old)
    fates, columns = zip(*found, strict=True)
    transitions, reasons = ([getattr(fate, name) for fate in fates] for name in ("transition", "reason"))
    if parameter == "committed":
        counts = f"all agents committed to {word!r}, those that the population has included"
        has = [mixture.committed[words.index(word)] for mixture, words in zip(games.mixtures, games.words, strict=True)]
    else:
        counts = "all agents of the last policy among those not committed"
        has = [mixture.fractions[-1] for mixture in games.mixtures]
    columns = [
        {**one, "already_there": ((), already, "fraction that the population has, a part of the critical mass")}
        for one, already in zip(columns, has, strict=True)
    ]
    result = games.labelled(columns, transition=transitions, reason=reasons).assign_attrs(counts=counts)
    method = "pair approximation" if on_graph else "mean field"
    result = result.assign_attrs(method=method, parameter=parameter, word=word or "", old=old or "")
    return games.stamped(result, "critical_mass")


def fates_of_each(games: Games, lines: list[Line], word: str | None, old: str | None) -> Iterator[tuple[Fate, Columns]]:
    """The end of the old state of each population along its line, with the columns of `critical_mass`."""
    if old is not None:
        for words in games.words:
            word_number(words, old, "old")
    starts = _old_states(lines, games, word, old)
    for line, curves, start in zip(lines, curves_of_each(lines), starts, strict=True):
        fate = Fate(None, "none", start) if isinstance(start, str) else _follow(curves, start, line)
        folds = [stop for curve in curves for arc in curve.arcs for stop in arc if stop.fold]
        yield fate, _columns(sorted(folds, key=lambda stop: stop.logit), start, fate)


def _fate_on_graph(population: Population, line: Line, word: str, old: str | None) -> tuple[Fate, Columns]:
    """The end of the other word among neighbours, with the columns of `critical_mass`."""
    new, mixture = population.words.index(word), line.at(0.0)
    other = population.words[1 - new]
    if old not in (None, other):
        raise InputError(f"old = {old!r}: expected {other!r}, which is not the word of the newcomers, on a graph")
    path, fold = old_state(line, float(population.degree or 0), new)

    def of_all(point: Held) -> Float[np.ndarray, " two"]:
        """The word share of all agents."""
        bound = mixture.committed + point.fraction * line.committed_slope
        said = np.where(line.committed_slope, point.said, 1 - point.said)
        return bound + (1 - bound.sum()) * said

    if len(path) == 1:
        start = f"without the newcomers agreement on {other!r} does not last"
        fate = Fate(None, "none", start)
    elif fold is None:
        turn = np.interp(0.5, [point.said for point in path], [point.fraction for point in path], right=np.nan)
        where = "at no fraction" if np.isnan(turn) else f"from {turn:.3f} on"
        start, fate = _Old(of_all(path[0]), -1), Fate(None, "none", GRADUAL.format(where))
    else:
        share = of_all(fold)
        stop = Stop(float(np.log(share[0] / share[1])), fold.fraction, fold=True)
        start, fate = _Old(of_all(path[0]), -1), Fate(stop, "fold", "the old state meets a saddle")
    return fate, _columns([fate.end] if fate.end else [], start, fate)


def _columns(folds: list[Stop], start: _Old | str, fate: Fate) -> Columns:
    end = fate.end
    share = np.full(2, np.nan) if end is None else word_shares(np.array(end.logit))
    if fate.transition == "continuous":
        share = share.round()  # the curve ends at a consensus, and is followed to 1e-20 of it
    before = np.full(2, np.nan) if isinstance(start, str) else start.word_share
    at_folds = word_shares(np.array([stop.logit for stop in folds]))
    return {
        "critical_mass": ((), np.nan if end is None else end.parameter, "fraction at which the old state vanishes"),
        "word_share": (("word",), share, "word share there"),
        "old_word_share": (("word",), before, "word share of the old state at fraction 0"),
        "fold_parameter": (("fold",), np.array([stop.parameter for stop in folds]), "fraction at the fold"),
        "fold_word_share": (("fold", "word"), at_folds.reshape(-1, 2), "word share at the fold"),
    }


def _old_states(lines: list[Line], games: Games, word: str | None, old: str | None) -> list[_Old | str]:
    """The fixed point of each population to follow, without the newcomers; or the reason why there is none."""
    rest = [line.at(0.0) for line in lines]
    every = all_points(rest, games.names, games.words)
    away: list[np.ndarray | None] = [None] * len(rest)
    if word is None and old is None:
        mixtures = Mixture.stacked(rest)
        empty = np.zeros((len(rest), 1, *mixtures.q.shape[1:3]))
        empty[..., 0] = 1
        ends = integrate(mixtures, empty, np.array([0.0, 1.0]), MAX_TIME, Tolerances())
        away = [
            np.einsum("m,pms->p", mixture.share, np.abs(points.composition - end))
            for points, mixture, (end,) in zip(every, rest, ends.composition, strict=True)
        ]
    return [_old_state(*one, word, old) for one in zip(every, games.words, away, strict=True)]


def _old_state(
    points: Points, words: tuple[str, ...], away: np.ndarray | None, word: str | None, old: str | None
) -> _Old | str:
    """`away` is the distance of each fixed point from where the rate equation leads from empty memories."""
    # A marginal consensus is left so slowly that it may well be where a population is.
    (stable,) = np.nonzero(stability(points.leading, points.error) != "unstable")
    if not stable.size:
        return "without the newcomers every fixed point is unstable"
    shares = points.word_share[stable]
    if old is not None:
        chosen = int(np.argmax(shares[:, words.index(old)]))
        if shares[chosen, words.index(old)] <= 0.5:
            return f"without the newcomers there is no attractor at which most say {old!r}"
    elif away is None:
        chosen = int(np.argmin(shares[:, words.index(word or "")]))
    else:
        chosen = int(np.argmin(away[stable]))
        if away[stable[chosen]] > NEAR:
            where = "leads from empty memories to no attractor"
            return f"without the newcomers the rate equation {where}; name one by `old`"
    return _Old(shares[chosen], int(points.branch[stable[chosen]]))


def _follow(curves: list[EquilibriumCurve], old: _Old, line: Line) -> Fate:
    """The fate of the old state with rising c."""

    def away(stop: Stop) -> float:
        return float(np.abs(word_shares(np.array(stop.logit)) - old.word_share).max())

    # Kinds of whom there is nobody at c = 0 have classes of their own later
    later = len(curves) // len(responses(line.at(0.0)))
    its_own = curves if old.branch < 0 else curves[later * old.branch : later * (old.branch + 1)]
    for curve in its_own:
        for crossing in curve.crossings:
            if np.abs(word_shares(np.array(crossing)) - old.word_share).max() < SAME_SHARE:
                return _at_crossing(curve, crossing, line)
    paths = [(curve, path) for curve in its_own for arc in curve.arcs for path in (arc, arc[::-1])]
    beginning = [(curve, path) for curve, path in paths if path[0].parameter <= NOTHING]
    curve, path = min(beginning, key=lambda both: away(both[1][0]), default=(None, []))
    if curve is None or away(path[0]) > SAME_SHARE:
        if line.corners():
            return Fate(None, "none", "the old state is a consensus that stays one at every fraction")
        return Fate(None, "none", "the old state is on no curve of equilibria with 1e-20 < Q < 1 - 1e-20")
    end = path[1]
    if end.fold:
        if end.logit in curve.crossings:
            return Fate(end, "pitchfork", "the old state meets one that is an equilibrium at every fraction")
        return Fate(end, "fold", "the old state meets a saddle")
    inwards = end.logit - np.sign(end.logit) * 2
    merges = end.parameter < line.end * (1 - SAME_SHARE)
    if merges and abs(end.logit) > EDGE and abs(end.parameter - curve.parameter(np.array([inwards]))[0]) < NOTHING:
        return Fate(end, "continuous", "the old state merges with a consensus")
    return Fate(None, "none", _gradual(curve, path[0], end))


def _at_crossing(curve: EquilibriumCurve, crossing: float, line: Line) -> Fate:
    """The fate of a state that is an equilibrium at every c and from which others branch off at a crossing."""
    c = float(curve.parameter(np.array([crossing]))[0])
    if 0 < c < line.end:
        reason = "the old state is an equilibrium at every fraction, and turns unstable where others branch off"
        return Fate(Stop(crossing, c, fold=True), "pitchfork", reason)
    return Fate(None, "none", "the old state is an equilibrium at every fraction, and stays stable")


def _gradual(curve: EquilibriumCurve, start: Stop, end: Stop) -> str:
    """The reason for a state that never vanishes, with the fraction from which the others say the other word."""
    logits = np.linspace(start.logit, end.logit, GRID)
    said = curve.said_by_others(logits)
    old = int(np.argmax(said[0]))
    turn = int(np.argmax(said[:, old] < 0.5))
    where = "at no fraction"
    if turn:
        half = brentq(lambda logit: curve.said_by_others(np.array([logit]))[0, old] - 0.5, *logits[turn - 1 : turn + 1])
        where = f"from {np.clip(curve.parameter(np.array([half]))[0], 0, curve.line.end):.3f} on"
    return GRADUAL.format(where)
