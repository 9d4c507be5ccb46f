"""The search for fixed points of a reaction model: its starts, and the selection of new finds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.integrate import BDF
from scipy.linalg import null_space
from tqdm.auto import tqdm

from meanfield._numerics.stability import MARGINAL, stability
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import MARGIN, modes_at, reduced_jacobian
from meanfield._reactions.roots import MAX_RESIDUAL, ClosedFaces, on_face, polish

SAME = 1e-6  # fixed points whose compositions differ by less are one
MARGINAL_SAME = 1e-3  # marginal ones; where the drift has a cubic zero its size tells little of the distance
TRAJECTORY_LENGTH = 1e10  # in units of the fastest rate
STILL = SAME / TRAJECTORY_LENGTH  # speed at which a state is left as it is, in units of the fastest rate
MOST_STEPS = 1000  # until a solution is given up, which may oscillate
RANDOM_TRAJECTORIES = 15  # of the random starts those from which solutions are followed
MAX_PAIRS = 64  # of fixed points between which others are looked for
# A fixed point belongs to a continuum where another one lies about this far along a direction in which it is marginal.
ASIDE = 1e-2
NEAR = 0.25  # of the way between two points of a continuum: how far from its middle the continuum may pass


class Root(NamedTuple):
    """A fixed point with the leading eigenvalue of its spectrum on the perturbations that keep the masses.

    `leading` (-∞ if there is no such perturbation) and `error`, a bound of its error, are in units of the fastest rate;
    `mode` is a real direction of its eigenvector.
    """

    x: Float[np.ndarray, " states"]
    leading: complex
    error: float
    mode: Float[np.ndarray, " states"]
    zero_modes: int
    continuum: bool

    @property
    def stability(self) -> str:
        """'stable', 'unstable' or 'marginal'."""
        return str(stability(self.leading, self.error))


class Found(NamedTuple):
    """The result of the search."""

    roots: list[Root]  # isolated fixed points, and of each continuum one or more
    tried: int  # number of starts
    converged: int  # number of starts that led to a fixed point
    merged: int  # number of points of continua, or next to marginal fixed points, that are not listed
    cut: bool  # whether some pairs of fixed points were not looked between


def search(
    model: ReactionModel,
    mass: Float[np.ndarray, " classes"],
    faces: ClosedFaces,
    initial: Float[np.ndarray, "starts states"],
    number: int,
    rng: np.random.Generator,
    progress: bool,
    trajectories: int = RANDOM_TRAJECTORIES,
) -> Found:
    """Fixed points from `initial` and `number` random starts, from unstable ones downhill, and from between them.

    Solutions are followed from `trajectories` of the starts; with 0 of them the search does not go downhill either.
    """
    starts = [*_starts(model, mass, faces, initial, number, rng, trajectories)]
    found, converged = _polished(model, mass, starts, [], progress)
    roots = distinct(model, mass, found, [])
    pairs = [(a, b) for a, b in itertools.combinations(roots, 2) if not a.continuum & b.continuum]
    more = [*(_downhill(model, mass, faces, roots) if trajectories else ()), *_between(pairs[:MAX_PAIRS])]
    new, converged_too = _polished(model, mass, more, found, progress)
    roots = distinct(model, mass, new, roots)
    merged = len(found) + len(new) - len(roots)
    return Found(roots, len(starts) + len(more), converged + converged_too, merged, len(pairs) > MAX_PAIRS)


def _starts(
    model: ReactionModel,
    mass: np.ndarray,
    faces: ClosedFaces,
    initial: np.ndarray,
    number: int,
    rng: np.random.Generator,
    trajectories: int,
) -> Iterator[np.ndarray]:
    """Starts of the search; ends of solutions come first, so that a continuum is listed with a point they reach."""
    whole, *others = faces.faces
    centre = on_face(model, mass, whole, np.ones(model.n_states))
    spread = [on_face(model, mass, whole, _weights(model, rng)) for _ in range(number)]
    if trajectories:
        yield from _rests(model, mass, whole, [*initial, centre, *spread[:trajectories]])
    yield from (centre, *spread)
    for face in others:
        yield on_face(model, mass, face, np.ones(model.n_states))
    wide = [face for face in others if face.sum() > np.count_nonzero(mass)]
    for face in itertools.islice(itertools.cycle(wide), number if wide else 0):
        yield on_face(model, mass, face, _weights(model, rng))


def distinct(model: ReactionModel, mass: np.ndarray, found: list[np.ndarray], roots: list[Root]) -> list[Root]:
    """`roots` and the new ones among `found`: isolated fixed points, and points of continua not yet listed.

    Two points of one support, stability and number of zero modes are the same if they are closer than the accuracy of a
    marginal point; they belong to one continuum if there is another such point about half way between them.
    """
    listed = list(roots)
    for x in found:
        root, sides = linearised(model, mass, x)
        if root.zero_modes and any(_same(model, mass, root, one) for one in listed):
            continue
        listed.append(root._replace(continuum=any(_aside(model, mass, x, side) for side in sides)))
    return listed


def linearised(model: ReactionModel, mass: np.ndarray, x: np.ndarray) -> tuple[Root, list[np.ndarray]]:
    """The spectrum at x, and both senses of the directions in which x is marginal."""
    values, errors, vectors, reduced, tangent = modes_at(model, x, mass[model.classes] > 0)
    if not values.size:
        return Root(x, complex(-np.inf), 0.0, np.zeros_like(x), 0, False), []
    flat = null_space(reduced, rcond=MARGINAL)
    if np.abs(reduced).max() <= MARGINAL:
        flat = np.eye(len(reduced))
    # x is off by about the step of Newton's method, which moves the eigenvalue
    step = np.linalg.lstsq(reduced, -tangent.T @ model.drift(x) / model.fastest, rcond=MARGINAL)[0]
    moved = np.linalg.eigvals(reduced_jacobian(model, x + tangent @ step, tangent))
    # Few agents in one more state are a flat direction to which nobody needs to be missing elsewhere
    empty = np.flatnonzero((x <= SAME * mass[model.classes]) & (mass[model.classes] > 0))
    one_more = [
        np.eye(len(x))[i] - np.where(model.classes == model.classes[i], x / mass[model.classes[i]], 0) for i in empty
    ]
    one_more = [v for v in one_more if np.abs(model.jacobian(x) @ v).max() <= MARGINAL * model.fastest]
    sides = [*one_more, *(sign * tangent @ v for v in flat.T for sign in (1, -1))]
    leading, error = complex(values[0]), float(errors[0] + MARGIN * np.abs(moved - values[0]).min())
    return Root(x, leading, error, vectors[:, 0].real, flat.shape[1], False), sides


def _rests(model: ReactionModel, mass: np.ndarray, face: np.ndarray, starts: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Where solutions come to rest, or are given up."""
    rate, slope = (lambda _, x, f=f: f(x) / model.fastest for f in (model.drift, model.jacobian))

    def rests(x: np.ndarray) -> bool:
        gained, lost = model.fluxes(x)
        return bool((np.abs(gained - lost) <= np.maximum(MAX_RESIDUAL * (gained + lost), STILL * model.fastest)).all())

    for start in starts:
        solver = BDF(rate, 0.0, start, TRAJECTORY_LENGTH, jac=slope, rtol=1e-5, atol=1e-11, first_step=0.1)
        for _ in range(MOST_STEPS):
            if solver.status != "running" or rests(solver.y):  # from there on the solver would follow rounding
                break
            solver.step()
        # The solver leaves less than its tolerance in states that have emptied; small classes have small fractions.
        yield on_face(model, mass, face, np.where(solver.y > SAME * mass[model.classes], solver.y, 0.0))


def _downhill(model: ReactionModel, mass: np.ndarray, faces: ClosedFaces, roots: list[Root]) -> Iterator[np.ndarray]:
    """The ends of solutions that leave the unstable fixed points, to both sides."""
    sides = []
    for root in roots:
        if root.stability == "unstable":
            push = ASIDE * root.mode / np.abs(root.mode).max()
            sides += [np.maximum(root.x + sign * push, 0) for sign in (1, -1)]
    if sides:
        yield from _rests(model, mass, faces.faces[0], [on_face(model, mass, side > 0, side) for side in sides])


def _between(pairs: list[tuple[Root, Root]]) -> Iterator[np.ndarray]:
    """Between fixed points there may be a saddle; between two points of continua are mostly more of these."""
    for one, other in pairs:
        yield from (one.x + part * (other.x - one.x) for part in (0.25, 0.5, 0.75))


def _polished(
    model: ReactionModel, mass: np.ndarray, starts: list[np.ndarray], known: list[np.ndarray], progress: bool
) -> tuple[list[np.ndarray], int]:
    """The distinct fixed points beside those `known` to which starts lead, and how many starts lead to any."""
    found, converged = [], 0
    for start in tqdm(starts, disable=not progress, unit="start", leave=False):
        x = polish(model, mass, start)
        if x is not None:
            converged += 1
            if all(np.abs(x - other).max() > SAME for other in known + found):
                found.append(x)
    return found, converged


def _weights(model: ReactionModel, rng: np.random.Generator) -> np.ndarray:
    """Positive, and so uneven that starts near all faces occur."""
    return rng.gamma(0.5, size=model.n_states) + 1e-12


def _aside(model: ReactionModel, mass: np.ndarray, x: np.ndarray, side: np.ndarray) -> bool:
    """Whether another fixed point lies that way."""
    side = side / np.abs(side).max()
    start = np.maximum(x + ASIDE * np.where(np.abs(side) > SAME, side, 0), 0)  # rounding would open further states
    other = polish(model, mass, on_face(model, mass, start > 0, start))
    return other is not None and bool(ASIDE / 10 < np.abs(other - x).max() < 10 * ASIDE)


def _same(model: ReactionModel, mass: np.ndarray, one: Root, other: Root) -> bool:
    near = _kind(one) == _kind(other) and bool(np.abs(one.x - other.x).max() < MARGINAL_SAME)
    return near or (other.continuum and _connected(model, mass, one, other))


def _connected(model: ReactionModel, mass: np.ndarray, one: Root, other: Root) -> bool:
    if _kind(one) != _kind(other):
        return False
    middle = (one.x + other.x) / 2
    gained, lost = model.fluxes(middle)
    still = (np.abs(gained - lost) <= MAX_RESIDUAL * (gained + lost)).all()
    x = middle if still else polish(model, mass, middle)  # which moves along a continuum even from one of its points
    if x is None or np.abs(x - middle).max() > NEAR * np.abs(one.x - other.x).max():
        return False
    return _kind(linearised(model, mass, x)[0]) == _kind(one)


def _kind(root: Root) -> tuple:
    return (root.x > SAME).tobytes(), root.zero_modes, root.stability
