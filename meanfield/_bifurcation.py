"""Bifurcation diagrams and critical masses of committed minorities and of second models."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._equilibria import PARAMETERS, EquilibriumCurve, Line, Stop, committed_line, fraction_line
from meanfield._errors import InputError
from meanfield._fixed_points import exact_corners, fixed_points, word_shares
from meanfield._mixture import mixture_word_share
from meanfield._policy import word_index
from meanfield._population import Population, as_population
from meanfield._provenance import stamp
from meanfield._response import responses
from meanfield._solve import solve
from meanfield._spectrum import leading_eigenvalues, stability

SAMPLES = 200  # for the length of a stretch
EDGE = 45.9  # |logit Q| beyond which an equilibrium is taken for the consensus at which the curve ends
NOTHING = 1e-9  # what is called 0 of a parameter known to 1e-10
SAME_SHARE = 1e-6


class _Point(NamedTuple):
    """An equilibrium at a value of the parameter."""

    parameter: float
    composition: Float[np.ndarray, "kinds states"]
    branch: int
    arc: int
    fold: bool


def bifurcation(
    population: xr.Dataset | Population,
    *,
    parameter: str = "committed",
    word: str | None = None,
    spacing: float = 0.02,
) -> xr.Dataset:
    """All equilibria of a two-word population as a committed minority, or the fraction of a second model, grows.

    With a fraction c of committed agents the word share of an equilibrium obeys Q = (1 - c) f(Q) + c e_w, so that
    c(Q) = (Q - f(Q)) / (e_w - f(Q)) gives the whole diagram without continuation; a mixture with a fraction c of a
    second policy has c(Q) = (Q - f_0(Q)) / (f_1(Q) - f_0(Q)). The curve is resolved for 1e-20 ≤ Q ≤ 1 - 1e-20; an exact
    consensus that stays one is a branch of its own.

    Parameters
    ----------
    population
        A policy or a population. Its own value of the parameter does not matter.
    parameter
        'committed': the fraction of all agents who are committed to `word`. 'fraction': that of the last policy among
        the agents who are not committed; the others keep their proportions.
    word
        To which agents are committed. May be left out where the population has agents committed to one word only.
    spacing
        Of neighbouring points of the diagram in the plane of c and Q.

    Returns
    -------
    Dataset over `point`, arc by arc, along the curve, with `parameter`, `word_share` (point, word) of all agents,
    `eigenvalue` (real part of the leading one, per unit of time), `stability`, `stable`, `fold`, `arc` (number of the
    connected piece) and `branch` (closed class as in `fixed_points`; -1 for an exact consensus).

    Raises
    ------
    InputError
        If there are more than two words, the parameter or the word is not one, `spacing` is not in (0, 1), or the
        second model responds exactly as the first.
    """
    population = as_population(population)
    if not 0 < spacing < 1:
        raise InputError(f"spacing = {spacing}: expected a number between 0 and 1")
    word, line = _line(population, parameter, word)
    points: list[_Point] = []
    arcs = 0
    for branch, response in enumerate(responses(population)):
        curve = EquilibriumCurve(line, response)
        for arc in curve.arcs:
            points += _sample(curve, arc, branch, arcs, spacing)
            arcs += 1
    for corner in _lasting_corners(population, parameter, word):
        values = np.linspace(0.0, line.end, 1 + round(1 / spacing), endpoint=parameter == "fraction")
        points += [_Point(float(c), corner, -1, arcs, False) for c in values]
        arcs += 1
    result = _label(population, line, points)
    attrs = {"policy": population.name, "parameter": parameter, "word": word or ""}
    return stamp(result.assign_attrs(attrs), "bifurcation", population, spacing=spacing)


def critical_mass(
    population: xr.Dataset | Population,
    *,
    parameter: str = "committed",
    word: str | None = None,
    old: str | None = None,
) -> xr.Dataset:
    """The fraction of committed agents, or of a second model, at which an old state of a two-word population vanishes.

    The old state is followed along c(Q) (see `bifurcation`) from c = 0 to where c turns back: the fold, beyond which
    the population leaves it. A state that turns unstable before is not noticed here; `bifurcation` shows it.

    Parameters
    ----------
    population, parameter, word
        As in `bifurcation`.
    old
        Which state to follow: the fixed point without the newcomers, stable or marginal, at which a random partner is
        likeliest to say this word. Default: for committed agents the one at which `word` is rarest, for a second model
        the one that the rest reaches from empty memories.

    Returns
    -------
    Dataset with `critical_mass` (NaN where the old state never vanishes), `word_share` (word) there and at the start,
    `old_word_share` (word), and all folds of the diagram, `fold_parameter` (fold) and `fold_word_share` (fold, word).
    attrs["transition"] is 'fold', 'continuous' where the state merges with the new consensus, or 'none', and
    attrs["reason"] says why.

    Raises
    ------
    InputError
        As `bifurcation`, or if `old` is not a word of the population.
    """
    population = as_population(population)
    word, line = _line(population, parameter, word)
    curves = [EquilibriumCurve(line, response) for response in responses(population)]
    start, why_not = _old_logit(population, parameter, word, old)
    end, transition, reason = None, "none", why_not
    if start is not None:
        end, transition, reason = _follow(curves, start, line)
    folds = sorted((stop for curve in curves for arc in curve.arcs for stop in arc if stop.fold), key=lambda s: s.logit)
    share = np.full(2, np.nan) if end is None else word_shares(np.array(end.logit))
    if transition == "continuous":
        share = share.round()  # the curve ends at a consensus, and is followed to 1e-20 of it
    before = np.full(2, np.nan) if start is None else word_shares(np.array(start))
    columns = {
        "critical_mass": ((), np.nan if end is None else end.parameter, "fraction at which the old state vanishes"),
        "word_share": (("word",), share, "word share there"),
        "old_word_share": (("word",), before, "word share of the old state at fraction 0"),
        "fold_parameter": (("fold",), np.array([stop.parameter for stop in folds]), "fraction at the fold"),
        "fold_word_share": (
            ("fold", "word"),
            word_shares(np.array([stop.logit for stop in folds])).reshape(-1, 2),
            "word share at the fold",
        ),
    }
    data = {name: (dims, values, {"long_name": label, "units": "1"}) for name, (dims, values, label) in columns.items()}
    coords = {"word": [0, 1], "word_label": ("word", np.array(population.words, dtype=str))}
    attrs = {
        "policy": population.name,
        "parameter": parameter,
        "word": word or "",
        "old": old or "",
        "transition": transition,
        "reason": reason,
    }
    return stamp(xr.Dataset(data, coords=coords).assign_attrs(attrs), "critical_mass", population)


def _line(population: Population, parameter: str, word: str | None) -> tuple[str | None, Line]:
    """The word to which agents are committed, and the populations along the parameter."""
    if population.space.n_words != 2:
        raise InputError(f"population has {population.space.n_words} words: equilibria are followed for two")
    if parameter not in PARAMETERS:
        raise InputError(f"parameter = {parameter!r}: expected one of {', '.join(PARAMETERS)}")
    if parameter == "fraction":
        if word is not None:
            raise InputError(f"word = {word!r}: only committed agents have one; expected none for parameter 'fraction'")
        return None, fraction_line(population)
    if word is None:
        if len(population.committed) != 1:
            raise InputError(
                f"word = None with agents committed to {list(population.committed) or 'no word'}: expected one of "
                f"{', '.join(population.words)}"
            )
        (word,) = population.committed
    word_index(population.policies[0], word)
    return word, committed_line(population, word)


def _at_zero(population: Population, parameter: str, word: str | None) -> Population:
    return population.with_fraction(0.0) if word is None else population.with_committed(word, 0.0)


def _lasting_corners(population: Population, parameter: str, word: str | None) -> list[np.ndarray]:
    """Exact consensus states that are fixed points whatever the parameter."""
    if word is None:
        between = population.with_fraction(0.5)
    else:
        free = 1 - sum(share for other, share in population.committed.items() if other != word)
        between = population.with_committed(word, free / 2)
    return [root.composition for root in exact_corners(between)]


def _sample(curve: EquilibriumCurve, arc: list[Stop], branch: int, number: int, spacing: float) -> list[_Point]:
    """Points along an arc at equal distances in the plane of c and Q; its ends and folds among them."""
    logits, folds = [arc[0].logit], [False]
    for left, right in itertools.pairwise(arc):
        fine = np.linspace(left.logit, right.logit, SAMPLES)
        steps = np.hypot(np.diff(curve.parameter(fine)), np.diff(word_shares(fine)[:, 0]))
        length = np.concatenate([[0.0], np.cumsum(steps)])
        wanted = np.linspace(0.0, length[-1], 2 + int(length[-1] / spacing))[1:-1]
        logits += [*np.interp(wanted, length, fine), right.logit]
        folds += [False] * len(wanted) + [right.fold]
    values = curve.parameter(np.array(logits))
    values[[0, -1]] = arc[0].parameter, arc[-1].parameter  # 0 or the largest, where rounding would miss them
    return [
        _Point(float(c), curve.composition(logit), branch, number, fold)
        for c, logit, fold in zip(values, logits, folds, strict=True)
    ]


def _label(population: Population, line: Line, points: list[_Point]) -> xr.Dataset:
    leading = [
        complex(leading_eigenvalues(line.at(point.parameter), point.composition, population.space)[0])
        for point in points
    ]
    status = np.array([stability(value) for value in leading], dtype=str)
    share = np.array([mixture_word_share(point.composition, line.at(point.parameter)) for point in points])
    over = ("point",)
    columns = {
        "parameter": (over, np.array([point.parameter for point in points]), "parameter", "1"),
        "word_share": ((*over, "word"), share.reshape(-1, 2), "word share", "1"),
        "eigenvalue": (over, np.array([value.real for value in leading]), "leading eigenvalue, real part", "1/time"),
        "stability": (over, status, "linear stability", "1"),
        "stable": (over, status == "stable", "leading eigenvalue below zero", "1"),
        "fold": (over, np.array([point.fold for point in points], dtype=bool), "the parameter turns here", "1"),
        "arc": (over, np.array([point.arc for point in points], dtype=int), "connected piece", "1"),
        "branch": (over, np.array([point.branch for point in points], dtype=int), "closed class", "1"),
    }
    data = {
        name: (dims, values, {"long_name": label, "units": units})
        for name, (dims, values, label, units) in columns.items()
    }
    coords = {"word": [0, 1], "word_label": ("word", np.array(population.words, dtype=str))}
    return xr.Dataset(data, coords={**coords, "point": np.arange(len(points))})


def _old_logit(population: Population, parameter: str, word: str | None, old: str | None) -> tuple[float | None, str]:
    """logit(Q) of the state to follow, within the ends of the curve; or None and the reason."""
    if old is not None and old not in population.words:
        raise InputError(f"old = {old!r}: expected one of {', '.join(population.words)}")
    rest = _at_zero(population, parameter, word)
    points = fixed_points(rest)
    # A marginal consensus is left so slowly that it may well be where a population is.
    stable = points.isel(fixed_point=points["stability"].values != "unstable")
    if not stable.sizes["fixed_point"]:
        return None, "without the newcomers every fixed point is unstable"
    shares = stable["word_share"].values
    if old is not None:
        chosen = int(np.argmax(shares[:, rest.words.index(old)]))
    elif word is not None:
        chosen = int(np.argmin(shares[:, rest.words.index(word)]))
    else:
        end = solve(rest, times=np.array([0.0, 1.0]))["composition"].values
        chosen = int(np.argmin(np.abs(stable["composition"].values - end).sum((1, 2))))
    with np.errstate(divide="ignore"):
        logit = float(np.log(shares[chosen, 0]) - np.log(shares[chosen, 1]))
    return float(np.clip(logit, -46.0, 46.0)), ""


def _follow(curves: list[EquilibriumCurve], start: float, line: Line) -> tuple[Stop | None, str, str]:
    """Where the state that is at logit `start` for c = 0 vanishes; how; and why, or why it does not."""

    def away(stop: Stop) -> float:
        here, there = word_shares(np.array([stop.logit, start]))
        return float(np.abs(here - there).max())

    outwards = [(curve, path) for curve in curves for arc in curve.arcs for path in (arc, arc[::-1])]
    beginning = [(curve, path) for curve, path in outwards if path[0].parameter <= NOTHING]
    curve, path = min(beginning, key=lambda both: away(both[1][0]), default=(None, []))
    if curve is None or away(path[0]) > SAME_SHARE:
        return None, "none", "the old state is a consensus that stays one at every fraction"
    end = path[1]
    if end.fold:
        return end, "fold", "the old state meets a saddle"
    inwards = end.logit - np.sign(end.logit) * 2
    merges = end.parameter < line.end * (1 - SAME_SHARE)
    if merges and abs(end.logit) > EDGE and abs(end.parameter - curve.parameter(np.array([inwards]))[0]) < NOTHING:
        return end, "continuous", "the old state merges with a consensus"
    return None, "none", _gradual(curve, path[0], end, line)


def _gradual(curve: EquilibriumCurve, start: Stop, end: Stop, line: Line) -> str:
    """How a state changes that never vanishes: from which fraction on the others say the other word."""
    logits = np.linspace(start.logit, end.logit, 20 * SAMPLES)
    c = curve.parameter(logits)[:, None]
    committed = line.committed + c * line.committed_slope
    rest = 1 - committed.sum(1, keepdims=True)
    somebody = rest[:, 0] > 0  # at the end of the curve nobody may be left who is not committed
    others = (word_shares(logits) - committed)[somebody] / rest[somebody]
    say_old = others[:, int(np.argmax(others[0]))]
    turn = int(np.argmax(say_old < 0.5))
    crossing = np.interp(0.5, say_old[[turn, turn - 1]], c[somebody][[turn, turn - 1], 0])
    where = f"from {crossing:.3f} on" if turn else "at no fraction"
    return f"the old state changes gradually and never vanishes; most others say the other word {where}"
