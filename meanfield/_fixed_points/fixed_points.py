"""Fixed points of the rate equation, as roots of the self-consistency of the word share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from meanfield._fixed_points.points import Points, all_points
from meanfield._numerics.stability import stability_columns
from meanfield._population.observables import MIXED
from meanfield._population.population import Population
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import Games, as_games
from meanfield._reactions.fixed_points import reaction_fixed_points
from meanfield.toolbox._errors import InputError

SHIFT = "shift of the eigenvalue without entries below 1e-14"


def fixed_points(
    policy: xr.Dataset | Population | ReactionModel,
    *,
    masses: Sequence[float] | np.ndarray | None = None,
    initial: xr.DataArray | np.ndarray | None = None,
    starts: int | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Find the fixed points of the rate equation: all of them for two words, those that a search finds otherwise.

    **Policies and populations.** A composition x is a fixed point exactly when x = p(Q) and Q = F(Q). Here p(Q) is the
    stationary distribution of an agent whose partners say word w with probability Q_w, and F(Q) is what such agents,
    and those who are committed, say.

    Two words give one equation, g(ℓ) = log(F_0/F_1) - ℓ = 0 with ℓ = log(Q_0/Q_1). A piecewise Chebyshev interpolant of
    g yields every root for -46 ≤ ℓ ≤ 46, and further out until g has reached its asymptote. Fixed points that rounding
    of g, 1e-14, does not tell apart are one row, which is never stable; attrs["completeness"] names the interval. The
    corners Q = 0 and 1 are decided exactly. If an agent's chain has several closed classes of memories, each has its
    own branch of fixed points; mixtures of classes with equal Q are fixed points too but are not listed.

    For more words, Newton iteration from a grid of starts solves Q = F(Q) on the simplex of word shares and on
    its faces and corners to which agents can keep. It may miss roots. Where F points inwards on the whole boundary, the
    indices of the roots sum to 1; attrs["completeness"] reports this check.

    **Reaction models.** The search starts where solutions come to rest and from random compositions, on the whole
    simplex and on the closed faces that single states open, one state of each class. Further starts are the ends of
    solutions that leave the unstable fixed points along their leading mode, and points between the fixed points found.
    It may miss fixed points; where all of them must lie inside one face their indices sum to 1, which
    attrs["completeness"] reports. A continuum of fixed points is represented by one point or several: two belong to one
    continuum if they agree in support, stability and number of zero modes and a third such point lies about half way
    between them.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair, a population, or a reaction model. A stack has a result for each
        policy, shorter ones filled with NaN. The other parameters are for reaction models only.
    masses
        Fraction of agents in each class of `model.classes`, shape (C,); they sum to 1. `model.class_masses` computes
        them from a composition. Optional with one class or with `initial`.
    initial
        Compositions with these masses from which further solutions start, as for `solve`.
    starts
        Number of random starts on the whole simplex, ≥ 1, default 64. As many are spread over the other closed faces,
        and each of these has one more start in its middle.
    seed
        Seed of the random starts, default 0.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `fixed_point`, by decreasing share of the first word, for a reaction model by decreasing fractions in
    the first states, with

    - `composition` (state), for a population (component, state), and `residual` = max|dx/dt|;
    - `eigenvalue` and `eigenvalue_imaginary` of the leading mode, per unit of time, among perturbations that keep the
      mass of each class and leave empty classes empty; `eigenvalue_error`, a bound of their error for the policy or
      model as given;
    - `stability`: stable, unstable, or marginal where 0 lies within the error or within 1e-7 (times the fastest rate of
      a reaction model); `stable`; `oscillatory`, whether the leading eigenvalue is complex;
    - for policies and populations `word_share` (word) of all agents, `kind` (consensus, or mixed with a success rate
      below 0.98), `convention` of the agents who are not committed (a word or 'mixed'), `label`, which names the
      leading word in any case ('mostly A (0.97)'), `branch`, and
      `eigenvalue_floor_shift`, the shift of the eigenvalue at this composition if entries of the policy below 1e-14 are
      set to 0;
    - for reaction models `zero_modes`, the number of directions in which the linearised drift vanishes, and
      `continuum`, whether other fixed points adjoin.

    attrs["completeness"] says what was searched; in a stack it is a variable, as is `policy_sha256`.

    Raises
    ------
    InputError
        If an argument is not as described, or the search would take too long: too many words, too long a memory, or too
        many faces to which agents can keep.
    ConvergenceError
        If a stationary distribution was not found, which can happen from H = 8 on; if a root is not a fixed point: then
        its `best` holds all roots; or if g vanishes up to rounding wherever it may be zero, as for agents who repeat
        what they heard last but for errors of 1e-15.

    See Also
    --------
    spectrum : more eigenvalues, at any composition
    stability_table : fixed points and candidates of many policies
    basins : how much of the simplex leads to each

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> points = meanfield.fixed_points(policy)
    >>> points["word_share"].sel(word="his").values.round(3)
    array([0.526])
    >>> points["eigenvalue"].values.round(3), points["stability"].values.tolist()
    (array([-0.183]), ['stable'])

    With two conventions there is a saddle between them:

    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> points = meanfield.fixed_points(meanfield.make_policy(follow, ["A", "B"], memory_length=2))
    >>> points[["label", "stability"]].to_dataframe()
                           label stability pair
    fixed_point
    0                          A    stable  A/B
    1            mostly B (0.52)  unstable  A/B
    2                          B    stable  A/B
    """
    options = {"masses": masses, "initial": initial, "starts": starts, "seed": seed, "progress": progress or None}
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(policy, ReactionModel):
        return reaction_fixed_points(policy, **given)
    if given:
        raise InputError(f"{next(iter(given))} is given: expected only with a ReactionModel, which needs a search")
    games = as_games(policy, in_groups=True)
    label = partial(_label, games=games)
    return games.stamped(label(all_points(games.mixtures, games.names, games.words, label)), "fixed_points")


def _label(found: list[Points], games: Games) -> xr.Dataset:
    over = "fixed_point"
    columns = [
        {
            "word_share": ((over, "word"), points.word_share, "word share", "1"),
            **stability_columns((over,), points.leading, points.error),
            "eigenvalue_floor_shift": ((over,), points.floor_shift, SHIFT, "1/time"),
            "kind": ((over,), np.where(points.convention == MIXED, MIXED, "consensus"), "kind", "1"),
            "convention": ((over,), points.convention, "convention", "1"),
            "label": ((over,), points.label, "name", "1"),
            "branch": ((over,), points.branch, "closed class; -1 at an exact corner", "1"),
            "residual": ((over,), points.residual, "max |dx/dt|", "1/time"),
            "composition": ((over, "component", "state"), points.composition, "fraction of agents in each state", "1"),
        }
        for points in found
    ]
    return games.labelled(columns, over, completeness=[points.completeness for points in found])
