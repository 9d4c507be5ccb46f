"""Derivatives of collective quantities with respect to the policy: which memories make the collective bias."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield._finite_size.law_path import NoPath, eigenvalues_at, exchanged, law_path
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.points import Points, all_points
from meanfield._large_deviations.exit_path import agents_of, exit_path
from meanfield._large_deviations.exits import Landscape, NoExit, landscape
from meanfield._numerics.stability import stability
from meanfield._parameters.critical_mass import fates_of_each
from meanfield._parameters.equilibria import parameter_lines
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population, as_population
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import each_policy
from meanfield._population.stacks import Games, as_games
from meanfield._population.tabulation import named_memories, text_of
from meanfield._reactions.sensitivity import reaction_sensitivity
from meanfield.core._export import exported
from meanfield.core._path_search import action_slope
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import one_of
from meanfield.toolbox._columns import Columns
from meanfield.toolbox._errors import InputError

word_share_gradient = exported("meanfield.core._sensitivity", "word_share_gradient")
eigenvalue_gradient = exported("meanfield.core._sensitivity", "eigenvalue_gradient")
critical_mass_gradient = exported("meanfield.core._sensitivity", "critical_mass_gradient")

LEAST_SHARE = 1e-100  # of an empty species
DEFECTIVE = 1e-11  # |l·r|/(|l||r|); derivatives are good to about 1e-16 over this number
NEEDS = {
    "kappa": None,
    "eigenvalue": "fixed_point",
    "word_share": "fixed_point",
    "barrier": "fixed_point",
    "critical_mass": "word",
}

Arrays = dict[str, np.ndarray]


def sensitivity(
    policy: xr.Dataset | Population | ReactionModel,
    *,
    of: str,
    fixed_point: int | xr.DataArray | np.ndarray | None = None,
    word: str | None = None,
) -> xr.Dataset:
    """The derivative of a collective quantity with respect to the probabilities in each memory, or to rates of moves.

    dq(i) raises the probability of the first word in memory i by dq and lowers the second's by as much. With more
    than two words, dq(i, w) raises that probability and lowers all others by equal parts. Derivatives are exact
    (`jax.grad` of functions of `meanfield.core`, which can also differentiate with respect to parameters of your own).
    In a memory with a probability of exactly 0 or 1 the derivative is one-sided; for κ it is taken at 1e-14 instead of
    0. In a reaction model the derivative is with respect to the logarithm of the rate of each move of one agent: dx/dθ
    = -J⁻¹ ∂F/∂θ on perturbations that keep the mass of each class.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair (a result for each), a population, or a reaction model.
    of
        - 'kappa': κ of the group-size law of two attractors, ≥ 0 whichever word is strong (the errors of the
          derivatives are about 1e-4 of the largest one);
        - 'eigenvalue': real part of the leading eigenvalue of a fixed point, which moves with the policy;
        - 'word_share': share of the first word at a fixed point;
        - 'barrier': least action out of an attractor, over its only saddle, as in `lifetime`;
        - 'critical_mass': fraction of agents committed to `word` at which the old state (see `critical_mass`) vanishes
          in a fold;
        - 'composition' (reaction models, which have 'eigenvalue' besides): the fraction of agents in each state.
    fixed_point
        Number of the fixed point, as in `fixed_points(policy)`; for 'eigenvalue', 'word_share' and 'barrier'. For a
        reaction model, the composition of the fixed point, which also sets the mass of each conserved class.
    word
        Word of the committed agents; for 'critical_mass'.

    Returns
    -------
    Dataset over `state`, for a population (component, state), with

    - `derivative` with respect to q(i) (for more than two words also over `word`), and `memory`, a label as 'a/b b/b':
      own/partner's word, oldest first;
    - `weight`, the fraction of agents in the memory: at the fixed point; among the uncommitted at the fold; for κ
      and barriers averaged over the path of least action, with each time weighted by its part of the action;
    - for 'eigenvalue' `direct`, the derivative with the fixed point held in place;
    - for 'kappa' `bias`, half of q(first | i) - q(second | i with the words exchanged), and `contribution` = derivative
      · bias. A policy that treats both words alike has κ = 0, so contributions sum to κ up to bias³; for the eleven
      strongly biased pairs of GPT-4o the sum is within 14 % of κ.

    attrs["value"], in a stack a variable, is the quantity itself.

    For a reaction model: Dataset over `move` with `derivative` (move), for 'composition' (move, state), and
    `composition`; the coordinates `source`, `target`, `side` ('first', 'second' or 'spontaneous') and `channel` (-1 for
    none) identify the move. attrs["value"] is the eigenvalue.

    Raises
    ------
    InputError
        If the policy has more than two words for 'kappa', 'barrier' or 'critical_mass', an argument is missing or out
        of place, there are not two attractors with a finite κ, no fold or no escape path over a single saddle, the
        fixed point is marginal or its leading eigenvalue not simple, or agents have several sets of memories that they
        never leave.

    See Also
    --------
    group_size_law, fixed_points, critical_mass : the quantities themselves

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> change = meanfield.sensitivity(policy, of="word_share", fixed_point=0)
    >>> round(change.attrs["value"], 3)
    0.526
    >>> top = change.isel(state=change["derivative"].argmax("state"))
    >>> top["memory"].item(), top["derivative"].round(4).item()  # "his" here raises its share most
    ('his/his his/his his/his his/his his/his', 0.0028)

    In an epidemic with infection rate 1 and recovery rate 0.5, half of the agents are ill: x = 1 - recovery/infection.
    The derivatives are with respect to the logarithms of the two rates:

    >>> infect, recover = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 0], [0.5, 0]])
    >>> model = meanfield.ReactionModel(["S", "I"], [[1, 0]], [[0, 1]], [infect], None, recover)
    >>> change = meanfield.sensitivity(model, of="composition", fixed_point=np.array([0.5, 0.5]))
    >>> change["side"].values.tolist(), change["derivative"].sel(state="I").values.round(3)
    (['first', 'spontaneous'], array([ 0.5, -0.5]))
    """
    if isinstance(policy, ReactionModel):
        if word is not None:
            raise InputError(f"word = {word!r}: expected None for a ReactionModel")
        return reaction_sensitivity(policy, of, fixed_point)
    games = as_games(policy)
    validate_options(of, fixed_point, word, games.mixtures[0].space.n_words)
    if fixed_point is not None and not isinstance(fixed_point, (int, np.integer)):
        raise InputError(f"fixed_point = {fixed_point!r}: expected its number")
    models, number = [policy] if isinstance(policy, Population) else each_policy(policy), int(fixed_point or 0)
    if of == "kappa":
        found = [_kappa(model, name) for model, name in zip(models, games.names, strict=True)]
    elif of == "barrier":
        found = [_barrier(model, name, number) for model, name in zip(models, games.names, strict=True)]
    elif of == "critical_mass":
        found = slope_of_critical_mass(games, word or "")
    else:
        rows = zip(all_points(games.mixtures, games.names, games.words), games.mixtures, games.names, strict=True)
        found = [slope_at_fixed_point(points, mixture, name, of, number) for points, mixture, name in rows]
    values, columns = zip(*found, strict=True)
    each = [_labelled(of, words, one) for words, one in zip(games.words, columns, strict=True)]
    result = games.labelled(each, value=[float(value) for value in values]).assign_attrs(of=of)
    return games.stamped(result, "sensitivity", fixed_point=fixed_point, word=word)


def validate_options(of: str, fixed_point: object, word: str | None, n_words: int) -> None:
    """InputError unless the quantity is one of those of `sensitivity`, with the argument that it needs."""
    one_of("of", of, NEEDS)
    for name, value in (("fixed_point", fixed_point), ("word", word)):
        needed = NEEDS[of] == name
        if needed != (value is not None):
            raise InputError(f"{name} = {value!r}: expected {'a value' if needed else 'None'} for of = {of!r}")
    if n_words != 2 and of in ("kappa", "barrier", "critical_mass"):
        raise InputError(f"policy has {n_words} words: expected 2 for of = {of!r}")


def _labelled(of: str, words: tuple[str, ...], columns: Arrays) -> Columns:
    units = "1/time" if of == "eigenvalue" else "1"
    labels = {
        "derivative": (f"derivative of {of} with respect to q", units),
        "weight": ("fraction of agents with this memory", "1"),
        "direct": ("derivative at an unmoved fixed point", units),
        "bias": ("half of what q(first) differs by from q(second) with the words exchanged", "1"),
        "contribution": ("derivative times bias", units),
    }
    dims, space = ("component", "state", "word"), MemorySpace.from_sizes(columns["derivative"].shape[1], len(words))
    named = {name: (dims[: values.ndim], values, *labels[name]) for name, values in columns.items()}
    return {**named, "memory": memory_column(space, words)}


def memory_column(space: MemorySpace, words: tuple[str, ...]) -> tuple:
    """The names of all memories."""
    memories = np.array([text_of(one) for one in named_memories(space, words)], dtype=str)
    return ("state",), memories, "own word/partner's word, oldest first", ""


def slope_at_fixed_point(points: Points, mixture: Mixture, name: str, of: str, number: int) -> tuple[float, Arrays]:
    if not 0 <= number < len(points.branch):
        raise InputError(f"fixed_point = {number}: expected 0 to {len(points.branch) - 1} for {name}")
    if stability(points.leading[number], points.error[number]) == "marginal":
        raise InputError(f"fixed_point = {number} of {name} is marginal: expected a stable or unstable one")
    x, share = points.composition[number], points.word_share[number]
    _check_classes(mixture, name, tuple(np.flatnonzero(share > 0).tolist()))
    game = (*mixture, x * mixture.share[:, None])
    if of == "word_share":
        return float(share[0]), {"derivative": _derivative(word_share_gradient(*game)), "weight": x}
    left, right = _eigenvectors(mixture, name, x)
    total, direct = eigenvalue_gradient(*game, left, right)
    columns = {"derivative": _derivative(total), "weight": x, "direct": _derivative(direct)}
    return float(points.leading[number].real), columns


def slope_of_critical_mass(games: Games, word: str) -> list[tuple[float, Arrays]]:
    _, lines = parameter_lines(games, "committed", word)
    result = []
    fates = fates_of_each(games, lines, word, None)
    for line, (fate, _), words, name in zip(lines, fates, games.words, games.names, strict=True):
        if fate.transition != "fold" or fate.end is None:
            raise InputError(f"word = {word!r}: expected one with a fold, but for {name} {fate.reason}")
        mixture = line.at(0.0)
        _check_classes(mixture, name, (0, 1))
        share = np.maximum(mixture.share, LEAST_SHARE)
        game = (mixture.q, share, mixture.committed)
        gradient, x = critical_mass_gradient(*game, fate.end.logit, words.index(word))
        result.append((fate.end.parameter, {"derivative": _derivative(gradient), "weight": x / share[:, None]}))
    return result


def _derivative(gradient: np.ndarray) -> np.ndarray:
    """The derivative with respect to what a word gains while all others lose equal parts.

    For two words it is with respect to what the first word gains.
    """
    n_words = gradient.shape[-1]
    gained = gradient - (gradient.sum(-1, keepdims=True) - gradient) / (n_words - 1)
    return gained[..., 0] if n_words == 2 else gained


def _check_classes(mixture: Mixture, name: str, heard: tuple[int, ...]) -> None:
    for q in mixture.q:
        n_classes = len(closed_classes(q, mixture.space, heard=heard))
        if n_classes > 1:
            raise InputError(
                f"{name} has {n_classes} sets of memories that agents never leave: expected one, since "
                "the stationary distribution jumps when a transition between several opens"
            )


def _eigenvectors(mixture: Mixture, name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of the leading left and right eigenvectors; InputError if they have no derivatives."""
    found = eigenvalues_at(mixture, x * mixture.share[:, None], 1)
    value, left, right = found.values[0], found.left[0], found.right[0]
    overlap = 1 / (np.linalg.norm(left) * np.linalg.norm(right))
    # What an agent has forgotten in H interactions makes J defective at λ = -1, which rounding spreads over a circle.
    forgotten = abs(value + 1) < 5 * np.finfo(float).eps ** (1 / mixture.space.memory_length)
    if forgotten or not overlap > DEFECTIVE:
        raise InputError(
            f"fixed_point of {name} has a defective or degenerate leading eigenvalue {value.real:.6g} (overlap of its "
            f"eigenvectors {overlap:.0e}): expected a simple one, which has derivatives"
        )
    return np.stack([left.real, left.imag]), np.stack([right.real, right.imag])


def _kappa(model: xr.Dataset | Population, name: str) -> tuple[float, Arrays]:
    law = law_path(model)
    if isinstance(law, NoPath):
        raise InputError(law.without_slope(name))
    derivative, weight = law.path.slope()
    q, space = law.path.mixture.q, law.path.mixture.space
    bias = (q[..., 0] - q[:, exchanged(space, np.array([1, 0])), 1]) / 2
    columns = {"derivative": derivative, "weight": weight, "bias": bias, "contribution": derivative * bias}
    return law.path.kappa, columns


def _barrier(model: xr.Dataset | Population, name: str, number: int) -> tuple[float, Arrays]:
    found = barrier_of(landscape(model, None), number)
    if isinstance(found, str):
        raise InputError(f"fixed_point = {number} of {name}: {found}")
    return found.value, {"derivative": found.derivative, "weight": found.weight}


class Barrier(NamedTuple):
    """A barrier, its error, its derivative in q of the first of two words, and x weighted by its part of the action."""

    value: float
    error: float
    derivative: np.ndarray
    weight: np.ndarray


def barrier_of(ground: Landscape, number: int) -> Barrier | str:
    """The barrier of the attractor with this number, or why it has none; InputError unless it is an attractor.

    Its path comes from fields alone: collocation takes ten times as long.
    """
    ways = ground.ways_out(ground.numbered(number))
    if isinstance(ways, NoExit):
        return ways.reason
    if len(ways) > 1:
        return f"there are {len(ways)} ways out of it: expected one"
    (way,), mixture = ways, as_population(ground.game).mixture
    if way.obstacle or way.dies_out:
        return way.obstacle or "agents leave it by an extinction: expected a saddle"
    agents = agents_of(way, mixture, None)
    solved = agents if isinstance(agents, str) else exit_path(way, agents)
    if isinstance(agents, str) or isinstance(solved, str):
        return str(solved)
    path = solved.path
    x, p = (agents.inwards(way.everywhere(one, 0.0)) for one in (path.x, path.p))
    by_q, passed = action_slope(tuple(mixture), x, p, path.weight, way.decay, agents.ending.growth)
    return Barrier(path.barrier, path.error, by_q[..., 0] - by_q[..., 1], passed / passed.sum())
