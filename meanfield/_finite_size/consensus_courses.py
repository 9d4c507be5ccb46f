"""The courses that N agents may take from empty memories, and how often they take each.

With two attractors the direction of the noise is that of the path of least action: tilts below the critical one lead to
the strong word, tilts above it to the other, and close to it a population waits at the saddle. What courses have is
interpolated in log d + d/0.2, with the distance d to the critical tilt. With one attractor there is the one course.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.interpolate import CubicSpline, PchipInterpolator, make_interp_spline
from scipy.special import wrightomega
from tqdm.auto import tqdm

from meanfield._finite_size.course_noise import WINDOW, CourseNoise, course_noise
from meanfield._finite_size.forced_course import STEP, Direction, forced_course
from meanfield._finite_size.group_size_law import LawPath, law_path
from meanfield._finite_size.least_action_path import LeastActionPath
from meanfield._finite_size.path_equations import PathEquations
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._population.single_policy import space_of
from meanfield.toolbox._errors import ConvergenceError

LINEAR = 0.2  # distance from the critical tilt beyond which courses are equally far apart
SPACING = 0.7  # of courses, in the coordinate
NEAREST, NOISY = 3e-3, 2e-2  # distance of the nearest course, in standard deviations; of the nearest one with noise
FARTHEST, ENOUGH = 4.5, 3.0  # tilts, in standard deviations
SEARCHED = 1e-2  # error of the critical tilt, relative to that distance
TINY = 1e-12  # chance of failure
CHANGE = 40.0  # largest relative correction
FADED = 3.0  # after the end of the path, in units of the time in which its momentum fades
FINE = 150  # tilts for one size
RARE = 1e-9  # weight of a course that is left out

Values = Float[np.ndarray, " tilts"]
Table = Float[np.ndarray, "tilts rounds"]


class Branch(NamedTuple):
    """The courses that end at one word, from the critical tilt outwards."""

    word: int
    tilts: Values
    amplitudes: Values
    failures: Table
    correction: Table  # N times the relative change of the mean failures
    excess: Table  # N times the relative variance of a window's failures beyond that of a binomial number


class Family(NamedTuple):
    """All courses; the critical tilt is NaN where there is none."""

    branches: list[Branch]
    critical: float


class Chosen(NamedTuple):
    """Tilts of N agents on one branch, their weights, and what their courses have."""

    word: int
    weights: Values
    failures: Table
    excess: Table


def coordinate(distance: Values) -> Values:
    """Where the courses of tilts at a distance from the critical one are."""
    return np.log(distance) + distance / LINEAR


def distance_at(place: Values) -> Values:
    """The inverse of `coordinate`."""
    return LINEAR * wrightomega(place - np.log(LINEAR)).real


def family(policy: xr.Dataset, smallest: int, largest: int, progress: bool) -> Family | str:
    """The courses that groups of such sizes may take, or the reason why there are none."""
    courses = _courses(policy, NEAREST / np.sqrt(largest), FARTHEST / np.sqrt(smallest), progress)
    if isinstance(courses, str) or len(courses.branches[0].tilts) == 1:
        return courses
    tilts = np.concatenate([one.tilts for one in courses.branches])
    covered = float(min(-tilts.min(), tilts.max()))
    if covered * np.sqrt(smallest) < ENOUGH:
        least = int(np.ceil((ENOUGH / covered) ** 2)) if covered > 0 else 0
        return f"groups of {smallest} are too small: the noise leads courses out of bounds{_from(least)}"
    return courses


def _from(least: int) -> str:
    return f" for groups below {least}" if 0 < least < 10**9 else ""


def _courses(policy: xr.Dataset, nearest: float, reach: float, progress: bool) -> Family | str:
    found = law_path(policy)
    if isinstance(found, LawPath):
        return _two_branches(found, nearest, reach, progress)
    points = fixed_points(policy)["stability"].values.tolist()
    if not np.isinf(found.kappa) and (points.count("stable") != 1 or "marginal" in points):
        return found.reason
    return _one_branch(PathEquations(policy["q"].values, space_of(policy)), progress)


def _two_branches(found: LawPath, nearest: float, reach: float, progress: bool) -> Family | str:
    path, direction = found.path, _direction(found.path)
    weak = 1 if found.strong == 0 else 0  # fixed points come by falling share of the first word
    share = float(found.points["word_share"].values[1, weak])

    def is_weak(tilt: float) -> bool:
        return bool(forced_course(path.equations, direction, tilt).x[-1] @ path.equations.q[:, weak] > share)

    critical = _threshold(is_weak, path.kappa, SEARCHED * nearest)
    if critical is None:
        return "no critical strength of the noise separates the courses to the two attractors"
    branches = []
    for side, word in ((-1, 1 - weak), (1, weak)):
        first, last = coordinate(np.array([nearest, max(reach - side * critical, 2 * NOISY)]))
        tilts = critical + side * distance_at(np.arange(first, last + SPACING, SPACING))
        branches.append(_branch(path.equations, direction, word, tilts, critical, progress))
    return Family(branches, critical)


def _direction(path: LeastActionPath) -> Direction:
    """The momentum for κ = 1 at the steps, until it has faded."""
    end = path.time[-1]
    times = np.arange(0.0, end + FADED / path.ends.growth, STEP)
    after = np.maximum(times - end, 0.0)[:, None]
    p, x = (make_interp_spline(path.time, course)(np.minimum(times, end)) for course in (path.p, path.x))
    return Direction(np.exp(-path.ends.growth * after) * p / path.kappa, x)


def _threshold(above: Callable[[float], bool], guess: float, error: float) -> float | None:
    """The tilt from which on `above` is true, near a guess, or None."""
    width = 0.02 * guess
    while above(guess - width) or not above(guess + width):
        width *= 2
        if width > max(guess / 2, NOISY):
            return None
    low, high = guess - width, guess + width
    while high - low > error:
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return (low + high) / 2


def _one_branch(equations: PathEquations, progress: bool) -> Family:
    word = int(np.argmax(forced_course(equations, None, 0.0).x[-1] @ equations.q))
    return Family([_branch(equations, None, word, np.zeros(1), np.nan, progress)], np.nan)


def _branch(
    equations: PathEquations,
    direction: Direction | None,
    word: int,
    tilts: Values,
    critical: float,
    progress: bool,
) -> Branch:
    near = np.abs(tilts - critical) < NOISY  # never where there is no critical tilt
    with np.errstate(all="ignore"):  # courses of the strongest noise may leave all bounds
        bare = [forced_course(equations, direction, tilt) for tilt in tilts[near]]
        noisy = [
            course_noise(equations, direction, tilt)
            for tilt in tqdm(tilts[~near], desc="courses", disable=not progress, leave=False)
        ]
    sound = np.append(np.ones(len(bare), bool), [_sound(one) for one in noisy])
    kept = int(np.argmin(np.append(sound, False)))  # tilts go outwards
    noisy = noisy[: kept - len(bare)]
    if not noisy:
        raise ConvergenceError("no course of the noise of these agents stays within bounds: expected larger groups")
    n_rounds = max(*(len(one.failures()) for one in bare), *(len(one.failures) for one in noisy), 1)
    tables = [_table(one, n_rounds) for one in noisy]
    first = [_like(_padded(one.failures(), n_rounds), tables[0]) for one in bare]
    failures, correction, excess = (np.array(each) for each in zip(*first, *tables, strict=True))
    amplitudes = np.array([one.amplitude for one in (*bare, *noisy)])
    return Branch(word, tilts[:kept], amplitudes, failures, correction, excess)


def _sound(one: CourseNoise) -> bool:
    """Whether a course has stayed within bounds."""
    finite = all(np.isfinite(values).all() for values in (one.failures, one.correction, one.amplitude))
    return finite and bool((one.failures > -TINY).all())


def _padded(values: np.ndarray, n_rounds: int) -> np.ndarray:
    return np.maximum(np.append(values, np.full(n_rounds - len(values), values[-1])), TINY)


def _windows(failures: np.ndarray) -> np.ndarray:
    """Means over the rounds of the window up to each one."""
    return np.convolve(failures, np.full(WINDOW, 1 / WINDOW))[: len(failures)]


def _table(one: CourseNoise, n_rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Failures, correction and excess of a course, by round."""
    failures = np.maximum(one.failures, TINY)
    window = _windows(failures)
    change = np.clip(one.correction / failures, -CHANGE, CHANGE)
    excess = np.maximum(one.spread - window * (1 - window) / WINDOW, 0.0) / window**2
    known = np.flatnonzero(np.isfinite(excess))
    excess = np.interp(np.arange(n_rounds), known, excess[known]) if known.size else np.zeros(n_rounds)
    return _padded(failures, n_rounds), np.append(change, np.full(n_rounds - len(change), change[-1])), excess


def _like(failures: np.ndarray, other: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    """A course that ends like another one, later."""
    last = np.argmax(other[0])  # from where on failures fall
    order = slice(None, last - 1 if last else None, -1)
    change = np.interp(np.log(failures), np.log(other[0][order]), other[1][order])
    excess = np.interp(np.log(_windows(failures)), np.log(_windows(other[0])[order]), other[2][order])
    return failures, change, excess


def chosen(courses: Family, n_agents: int) -> list[Chosen]:
    """The tilts of N agents; weights sum to 1."""
    if len(courses.branches[0].tilts) == 1:
        branch = courses.branches[0]
        return [Chosen(branch.word, np.ones(1), branch.failures, branch.excess / n_agents)]
    nodes = np.concatenate([one.tilts for one in courses.branches])
    order = np.argsort(nodes)
    amplitude = PchipInterpolator(nodes[order], np.concatenate([one.amplitudes for one in courses.branches])[order])
    grids = [_grid(one, courses.critical, n_agents) for one in courses.branches]
    whole = np.sort(np.concatenate(grids))
    slope = np.maximum(amplitude(whole, 1), TINY)
    pieces = (whole[1:] * slope[1:] + whole[:-1] * slope[:-1]) / 2 * np.diff(whole)
    action = np.append(0.0, np.cumsum(pieces))
    logarithm = np.log(slope) / 2 - n_agents * (action - action.min())
    density = np.exp(logarithm - logarithm.max())
    weights = np.gradient(whole) * density
    weights /= weights.sum()
    return [
        _interpolated(one, courses.critical, grid, weights[np.searchsorted(whole, grid)], n_agents)
        for one, grid in zip(courses.branches, grids, strict=True)
    ]


def _grid(branch: Branch, critical: float, n_agents: int) -> Values:
    reach = FARTHEST / np.sqrt(n_agents)
    nearest, farthest = np.abs(branch.tilts[[0, -1]] - critical)
    side = np.sign(branch.tilts[0] - critical)
    tilts = np.append(np.linspace(-reach, reach, FINE), critical + side * np.geomspace(nearest, farthest, FINE))
    low, high = np.sort(branch.tilts[[0, -1]])
    return np.unique(tilts[(tilts >= low) & (tilts <= high)])


def _interpolated(branch: Branch, critical: float, tilts: Values, weights: Values, n_agents: int) -> Chosen:
    kept = np.unique([weights.argmax(), *np.flatnonzero(weights > RARE)])
    weights, tilts = weights[kept], tilts[kept]
    places, wanted = (coordinate(np.maximum(np.abs(one - critical), TINY)) for one in (branch.tilts, tilts))
    failures = np.exp(CubicSpline(places, np.log(branch.failures))(wanted))
    correction, excess = (
        np.transpose([np.interp(wanted, places, column) for column in table.T]) for table in branch[4:]
    )
    failures = failures * np.exp(np.clip(correction / n_agents, -1, 1))
    return Chosen(branch.word, weights, np.minimum(failures, 1.0), excess / n_agents)
