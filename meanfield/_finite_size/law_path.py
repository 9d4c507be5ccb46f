"""The path that decides between two attractors, from empty memories to the saddle; or why a policy has none."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from meanfield._finite_size.least_action_path import BALANCED, SMALLEST, LeastActionPath, least_action_path, linearised
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import FLOOR, spectrum
from meanfield._numerics.trajectory import Vector
from meanfield._population.compositions import consensus
from meanfield._population.mixture import Mixture
from meanfield._population.observables import MIXED
from meanfield._population.population import Population, as_population
from meanfield._population.single_policy import single_policy, words_of
from meanfield._population.trajectories import Tolerances, integrate
from meanfield.core._game import WordGame
from meanfield.core._space import MemorySpace
from meanfield.core._spectrum import Eigenvalues, leading_eigenvalues

Model = xr.Dataset | Population
Kinds = Float[np.ndarray, "kinds states"]
Compositions = Float[np.ndarray, "points kinds states"]
Starts = Float[np.ndarray, "starts kinds states"]

# A solution of the rate equation that is steady is at a fixed point that is this near.
NEAR = 1e-2
MAX_TIME = 2000.0
# As in the stability table: agents leave the true consensus states of published policies with probability 4e-5 at most.
CONSENSUS_RESIDUAL = 1e-3
ROUNDING = 1e-14  # of probabilities
ALIKE = "agents treat both words alike, so that either wins with the same probability"
FADED = 1e-4  # of the action: later than this ξ of `weak_side` has its last weights
TWO_WAYS = 1e-7  # eigenvalue, above which the second direction is unstable too


class LawPath(NamedTuple):
    """The ingredients of a group-size law."""

    words: tuple[str, str]  # that lead at the attractor which the rate equation reaches from empty memories, and beyond
    strong: int  # number of the former, 0 or 2
    points: xr.Dataset  # the three fixed points
    path: LeastActionPath


class NoPath(NamedTuple):
    """Why there is no path; κ, the word and the three fixed points where κ is known without one; an only attractor."""

    reason: str
    kappa: float = np.nan
    word: str = ""
    points: xr.Dataset | None = None
    attractor: xr.Dataset | None = None
    several: bool = False  # attractors, more than two, and none is marginal

    def without_slope(self, name: str) -> str:
        """Why κ has no derivative, for an error."""
        if self.attractor is None:
            return f"{name} has no finite κ above 0: {self.reason}"
        number = int(self.attractor["fixed_point"].item())
        return (
            f"{name} has one attractor, and only κ of two has a derivative, not what group_size_law gives for one: "
            f"{self.reason}; expected of = 'word_share' or 'eigenvalue', with fixed_point = {number}"
        )


def law_path(model: Model) -> LawPath | NoPath:
    """The path of least action of a policy or a population of two words, or the reason why there is none."""
    population, points = as_population(model), fixed_points(model)
    objection = _objection(model, points)
    if objection:
        return objection
    said = ever_said(population)
    if len(said) == 1:
        reason = (
            f"agents who start with empty memories never say any other word than {said[0]!r}, answers of probability "
            f"below {FLOOR:g} aside"
        )
        return NoPath(reason, np.inf, said[0], points)
    if alike(population.mixture):
        return NoPath(ALIKE, 0.0, "", points)
    strong = reached(population, points)
    if strong is None:
        return NoPath("the rate equation leads from empty memories to neither of the two attractors")
    # At 1 it is so near to the saddle's stable manifold that the rate equation does not tell
    found = _path_to_saddle(population, points, *((0, BALANCED) if strong == 1 else (strong, 0.0)))
    if strong == 1 and isinstance(found, LawPath) and found.path.kappa < 0:
        found = _path_to_saddle(population, points, 2, BALANCED)
    if isinstance(found, LawPath) and abs(found.path.kappa) < SMALLEST:
        return NoPath(f"{ALIKE}: κ is below {SMALLEST:g}, which rounding does not tell from 0", 0.0, "", points)
    return found


def ever_said(population: Population) -> list[str]:
    """The words that a population of agents with empty memories may ever come to say."""
    (q, share, committed), space = population.mixture, population.space
    possible, successors = (q > FLOOR) & (share > 0)[:, None, None], space.successors()
    reached = np.zeros(q.shape[:2], bool)
    reached[:, 0] = True
    while True:
        said = possible[reached].any(0) | (committed > 0)
        after = reached.copy()
        for one, able, became in zip(reached, possible, after, strict=True):
            for own, partner in itertools.product(range(len(said)), np.flatnonzero(said)):
                became[successors[one & able[:, own]] + space.n_words * own + partner] = True
        if (after == reached).all():
            return [word for word, one in zip(population.words, said, strict=True) if one]
        reached = after


def alike(mixture: Mixture) -> bool:
    """Whether exchanging any two words changes no agent, rounding aside."""
    (q, _, committed), space = mixture, mixture.space
    if np.ptp(committed) >= ROUNDING:
        return False
    for other in range(1, space.n_words):
        words = np.arange(space.n_words)
        words[[0, other]] = other, 0
        if np.abs(q - q[:, exchanged(space, words)][..., words]).max() >= ROUNDING:
            return False
    return True


def exchanged(space: MemorySpace, words: Int[np.ndarray, " words"]) -> Int[np.ndarray, " states"]:
    """The numbers of all memories after each word was replaced by the one of this number."""
    digits = (space.n_words * words[:, None] + words).ravel()
    found = np.zeros(1, dtype=int)
    for _ in range(space.memory_length):
        found = np.append(0, 1 + space.n_digits * found[:, None] + digits)
    return found


def _objection(model: Model, points: xr.Dataset) -> NoPath | None:
    """Why this landscape has no group-size law; None if it has two attractors with one saddle between them."""
    status, words = points["stability"].values.tolist(), as_population(model).words
    if status == ["stable", "unstable", "stable"]:
        return None
    if "marginal" in status:
        return NoPath(marginal(words, points))
    n_stable = status.count("stable")
    if n_stable == 1:
        attractor = points.isel(fixed_point=status.index("stable"))
        others = [word for word in words if word != attractor["convention"].item()]
        why = " and ".join(_why_no_attractor(model, word) for word in others)
        only = f"the fixed point {place(words, attractor)} is the only attractor for every group size"
        return NoPath(f"{why}, so that {only}", attractor=attractor)
    return NoPath(
        f"there are {n_stable} stable and {status.count('unstable')} unstable fixed points: "
        "expected two stable ones with a single saddle between them",
        several=n_stable > 2,
    )


def marginal(words: tuple[str, ...], points: xr.Dataset) -> str:
    """Reason why a marginal fixed point leaves the law open."""
    point = points.isel(fixed_point=points["stability"].values.tolist().index("marginal"))
    where, eigenvalue = place(words, point), f"leading eigenvalue {point['eigenvalue'].item():.1g}"
    return f"the fixed point {where} is marginal ({eigenvalue}): linear theory does not tell whether it attracts"


def place(words: tuple[str, ...], point: xr.Dataset) -> str:
    share = point["word_share"].values
    word = int(np.argmax(share))
    if point["convention"].item() == MIXED:
        return f"at a share {share[word]:.3f} of {words[word]!r}"
    return f"at the consensus on {words[word]!r}"


def _why_no_attractor(model: Model, word: str) -> str:
    """Why the consensus on `word` does not attract."""
    population = as_population(model)
    state, number = consensus(model, word), population.words.index(word)
    if population.mixture.committed.sum() > population.mixture.committed[number]:
        return f"there is no consensus on {word!r} with agents committed to another word"
    leaves = 1 - population.mixture.q[:, population.space.consensus_state(number), number].min()
    if leaves > CONSENSUS_RESIDUAL:
        return f"the consensus on {word!r} is no fixed point (agents say something else with probability {leaves:.2g})"
    eigenvalue = spectrum(model, state, k=1)["eigenvalue"].item()
    if eigenvalue < 0:
        return f"the consensus on {word!r} is only near an attractor (agents err with probability {leaves:.2g})"
    return f"the consensus on {word!r} is unstable (leading eigenvalue {eigenvalue:.2g})"


def reached(population: Population, points: xr.Dataset) -> int | None:
    """The fixed point that the rate equation reaches from empty memories, or None."""
    mixture = population.mixture
    return ends(mixture, compositions(mixture, points), mixture.empty[None])[0]


def ends(mixture: Mixture, points: Compositions, starts: Starts) -> list[int | None]:
    """The fixed point that the rate equation reaches from each start, or None; all in fractions of all agents."""
    agents = np.where(mixture.share == 0, 1.0, mixture.share)[:, None]
    found = integrate(Mixture.stacked([mixture]), starts[None] / agents, np.zeros(1), MAX_TIME, Tolerances())
    numbers: list[int | None] = []
    for x, time in zip(found.composition[0] * mixture.share[:, None], found.time[0], strict=True):
        away = x - points
        distance = np.abs(away).sum((1, 2))
        nearest = int(np.argmin(distance))
        # A slow attractor is not reached in this time, but it has to be approached.
        steady = time < MAX_TIME or (linearised(tuple(mixture), x, x)[0] * away[nearest]).sum() < 0
        numbers.append(nearest if distance[nearest] <= NEAR and steady else None)
    return numbers


def compositions(mixture: Mixture, points: xr.Dataset) -> Compositions:
    """The fixed points, in fractions of all agents."""
    x = points["composition"].values
    return x.reshape(len(x), *mixture.q.shape[:2]) * mixture.share[:, None]


def signed_law_path(model: Model, strong: int, scale: float) -> LawPath | NoPath:
    """The path to the saddle, with κ < 0 where empty memories lead to the other attractor than number `strong`.

    Errors of κ are relative to `scale` where κ is smaller.
    """
    points = fixed_points(model)
    return _objection(model, points) or _path_to_saddle(as_population(model), points, strong, scale)


def signed_kappa(policy: xr.Dataset) -> tuple[float, str]:
    """κ of a policy of two words, positive if the first word is strong; NaN and the reason if there is none."""
    found = law_path(policy)
    if isinstance(found, LawPath):
        return (found.path.kappa if found.strong == 0 else -found.path.kappa), ""
    return (found.kappa if found.word == words_of(policy)[0] else -found.kappa), found.reason


def _path_to_saddle(population: Population, points: xr.Dataset, strong: int, scale: float) -> LawPath | NoPath:
    mixture, x = population.mixture, compositions(population.mixture, points)
    growth, left = unstable_direction(mixture, x[1])
    if growth[1] > TWO_WAYS:
        return NoPath(f"the saddle has two unstable directions (eigenvalues {growth[0]:.2g}, {growth[1]:.2g})")
    left = left * np.sign((left * (x[2 - strong] - x[1])).sum())
    path = least_action_path(mixture, x[1], left, float(growth[0]), scale)
    if isinstance(path, str):
        return NoPath(path)
    leading = [population.words[int(points["word_share"].values[k].argmax())] for k in (strong, 2 - strong)]
    return LawPath((leading[0], leading[1]), strong, points, path)


def unstable_direction(mixture: Mixture, saddle: Kinds) -> tuple[Float[np.ndarray, " two"], Kinds]:
    """The two leading eigenvalues (real parts, per unit of time) and the left eigenvector of the first."""
    found = eigenvalues_at(mixture, saddle, 2)
    return found.values.real, found.left[0].real


def eigenvalues_at(mixture: Mixture, x: Kinds, k: int) -> Eigenvalues:
    """The leading eigenvalues with their eigenvectors at x, in fractions of all agents."""
    with jax.enable_x64(True):
        return leading_eigenvalues(WordGame(*mixture), jnp.asarray(x), k)


class WeakSide(NamedTuple):
    """ξ(x, t) = weights(t)·x, with the last weights for all later times."""

    word: str  # said more often at the weak side
    times: Vector
    weights: Float[np.ndarray, "times states"]


def weak_side(policy: xr.Dataset) -> WeakSide | None:
    """The progress ξ(x, t) towards the weak side of agents who start with empty memories.

    On the optimal path x_c(t) the action still to come is S(t) = -p(t)·x_c(t). Next to it a population x ends at the
    weak side with the probability Φ(√N ξ) to leading order, ξ = (p(t)·x - S(t)) / √(2 S(t)). On the path ξ rises from
    -κ to 0. Late it is the left eigenvector of the saddle's unstable direction, up to a factor. None if the policy has
    no group-size law, or an infinite κ.
    """
    policy = single_policy(policy)
    found = law_path(policy) if policy.sizes["word"] == 2 else None
    if not isinstance(found, LawPath):
        return None
    path = found.path
    x, p = path.x[:, 0], path.p[:, 0]
    left = -(p * x).sum(1)
    faded = left < FADED * left[0]
    kept = max(1, int(np.argmax(faded))) if faded.any() else len(left)
    left = left[:kept, None]
    return WeakSide(found.words[1], path.time[:kept], (p[:kept] - left) / np.sqrt(2 * left))
