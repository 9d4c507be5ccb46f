"""Bifurcation diagrams of committed minorities and of mixtures with a second model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._fixed_points.points import word_shares
from meanfield._fixed_points.spectrum import leading_of_each
from meanfield._numerics.stability import stability_columns
from meanfield._parameters.equilibria import EquilibriumCurve, Line, Stop, curves_of_each, parameter_lines
from meanfield._population.drift import mixture_word_share
from meanfield._population.population import Population
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import as_games
from meanfield._reactions.bifurcation import MassesAt, ModelAt, reaction_bifurcation
from meanfield.toolbox._arguments import real_number
from meanfield.toolbox._columns import Columns
from meanfield.toolbox._errors import InputError

SAMPLES = 200  # for the length of a stretch
LEAST_SPACING = 1e-4  # tens of thousands of points


class _Point(NamedTuple):
    """An equilibrium at a value of the parameter."""

    parameter: float
    composition: Float[np.ndarray, "kinds states"]
    branch: int
    arc: int
    fold: bool


def bifurcation(
    population: xr.Dataset | Population | ModelAt,
    *,
    parameter: str | None = None,
    word: str | None = None,
    spacing: float | int = 0.02,
    interval: Sequence[float | int] | np.ndarray | None = None,
    masses: MassesAt = None,
    starts: int | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Equilibria along a parameter: a committed minority, the fraction of a second model, or any of a reaction model.

    **Policies of two words.** With a fraction c of committed agents the word share of an equilibrium obeys Q = (1 - c)
    f(Q) + c e_w, so c(Q) = (Q - f(Q)) / (e_w - f(Q)) gives the whole diagram; beside a fraction c of a second policy
    c(Q) = (Q - f_0(Q)) / (f_1(Q) - f_0(Q)). The curve is resolved for 1e-20 ≤ Q ≤ 1 - 1e-20; an exact consensus that
    remains an equilibrium is a branch of its own.

    **Reaction models.** Fixed points are searched for at five values of the parameter. The branches through them are
    followed to the ends of the interval or of the simplex, around folds, and so are the branches that cross them
    (pseudo-arclength continuation). A diagram takes seconds; each value of the parameter needs a model.

    Parameters
    ----------
    population
        A policy, a stack over model and pair (a diagram for each), or a population. The diagram does not depend on its
        own value of the parameter, except that the last of three or more policies must not have the fraction 1. Or a
        function of the parameter that returns a `ReactionModel`, always with the same states and conserved classes; or
        one reaction model, if the parameter is in `masses`.
    parameter
        'committed': the fraction of all agents who are committed to `word`, which all pairs of a stack must have; the
        default. 'fraction', of a population: the fraction of the last policy among the uncommitted agents; the others
        keep their proportions. For a function a label; default is the name of its argument.
    word
        Word of the committed agents. Optional if the population has agents committed to exactly one word.
    spacing
        Distance of neighbouring points of the diagram in the plane of c and Q, from 1e-4 to below 1; for a reaction
        model the largest one, in the space of compositions and s, where s goes from 0 to 1 along the interval.
    interval
        Smallest and largest value of the parameter. This and the following are for reaction models only.
    masses
        As for `fixed_points`, or a function of the parameter.
    starts
        Number of random starts at each of the five values, default 16; as many are spread over closed faces.
    seed
        Seed of the random starts, default 0.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `point`, arc by arc along the curve, with

    - `parameter`, and `word_share` (word) of all agents;
    - `eigenvalue` to `oscillatory`, the leading eigenvalue and the stability as in `fixed_points`;
    - `fold`, whether the curve turns here, and `arc`, the number of the connected piece;
    - `branch`, the closed class, as in `fixed_points` of a population with agents of every kind; -1 for an exact
      consensus.

    A state that is an equilibrium at every c is an arc of its own, such as equal shares where no model prefers a word.
    For a reaction model there are `composition` (state) in place of `word_share`, and in place of `branch`

    - `bifurcation`: 'fold'; 'Hopf', where a pair of complex eigenvalues crosses the imaginary axis; 'branch point',
      where another branch crosses or begins (transcritical or pitchfork); '' elsewhere;
    - `lyapunov`, the first Lyapunov coefficient of a Hopf bifurcation, in units of its frequency, for fractions of
      agents: a stable cycle grows out of the branch if it is negative, an unstable one shrinks to it if positive.

    attrs["completeness"] says what may be missing.

    Raises
    ------
    InputError
        If there are more than two words, the parameter or the word is unknown, `spacing` is out of range, or the
        second model responds exactly as the first; or if reaction models of different parameters have different states
        or conserved classes.

    See Also
    --------
    critical_mass : the fold at which an old convention vanishes
    fixed_points : the equilibria of one population

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> diagram = meanfield.bifurcation(policy, word="B")
    >>> folds = diagram.isel(point=diagram["fold"].values)
    >>> folds["parameter"].values.round(3), folds["word_share"].sel(word="B").values.round(3)
    (array([0.174]), array([0.308]))

    Agents who have had an illness are immune for a time τ, in twelve stages. Where τ is neither too short nor too long
    there are epidemic waves:

    >>> rules = {"S + I": "2 I", "I": "R0", **{f"R{k}": f"R{k + 1}" for k in range(11)}, "R11": "S"}
    >>> def epidemic(tau):
    ...     return meanfield.ReactionModel.from_rules(rules, [3.0, 1.0] + 12 * [12 / tau])
    >>> diagram = meanfield.bifurcation(epidemic, interval=(1, 40))
    >>> diagram["parameter"][diagram["bifurcation"] == "Hopf"].values.round(3)
    array([11.866, 17.463])

    Committed agents of the minimal naming game are a conserved class, whose mass is the parameter:

    >>> import theory
    >>> game = theory.minimal_naming_game.reaction_model()
    >>> diagram = meanfield.bifurcation(game, interval=(0, 0.3), masses=lambda c: [1 - c, c, 0])
    >>> diagram["parameter"][diagram["fold"]].values.round(4)
    array([0.0979])
    """
    own = {"interval": interval, "masses": masses, "starts": starts, "seed": seed, "progress": progress or None}
    given = {name: value for name, value in own.items() if value is not None}
    if isinstance(population, ReactionModel) or callable(population):
        if word is not None:
            raise InputError(f"word = {word!r}: expected none with a reaction model")
        real_number("spacing", spacing, least=LEAST_SPACING, below=1)
        given = {"interval": None, **given}
        return reaction_bifurcation(population, parameter=parameter, spacing=spacing, **given)
    if given:
        raise InputError(f"{next(iter(given))} is given: expected only with reaction models along a parameter")
    parameter = "committed" if parameter is None else parameter
    games = as_games(population, "population", in_groups=True)
    real_number("spacing", spacing, least=LEAST_SPACING, below=1)
    word, lines = parameter_lines(games, parameter, word)
    columns = []
    for line, curves in zip(lines, curves_of_each(lines), strict=True):
        points: list[_Point] = []
        lasting: list[tuple[int, np.ndarray]] = []
        arcs = 0
        for branch, curve in enumerate(curves):
            for arc in curve.arcs:
                points += _sample(curve, arc, branch, arcs, spacing)
                arcs += 1
            lasting += [(branch, curve.composition(crossing)) for crossing in curve.crossings]
        lasting += [(-1, corner) for corner in line.corners()]
        for branch, x in lasting:
            values = np.linspace(0.0, line.end, 1 + round(1 / spacing), endpoint=parameter == "fraction")
            points += [_Point(float(c), x, branch, arcs, False) for c in values]
            arcs += 1
        columns.append(_columns(line, points))
    result = games.labelled(columns, "point").assign_attrs(parameter=parameter, word=word or "")
    return games.stamped(result, "bifurcation", spacing=spacing)


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


def _columns(line: Line, points: list[_Point]) -> Columns:
    mixtures = [line.at(point.parameter) for point in points]
    found = leading_of_each(mixtures, [point.composition for point in points])
    leading = np.array([one.values[0] for one in found], dtype=complex)
    error = np.array([one.errors[0] for one in found], dtype=float)
    share = np.array([mixture_word_share(one.composition, at) for one, at in zip(points, mixtures, strict=True)])
    over = ("point",)
    return {
        "parameter": (over, np.array([point.parameter for point in points]), "parameter", "1"),
        "word_share": ((*over, "word"), share.reshape(-1, 2), "word share", "1"),
        **stability_columns(over, leading, error),
        "fold": (over, np.array([point.fold for point in points], dtype=bool), "the parameter turns here", "1"),
        "arc": (over, np.array([point.arc for point in points], dtype=int), "connected piece", "1"),
        "branch": (over, np.array([point.branch for point in points], dtype=int), "closed class", "1"),
    }
