"""The group-size law: the chance that N agents end at the convention that an infinite population reaches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.special import ndtr, ndtri

from meanfield._finite_size.least_action_path import LeastActionPath
from meanfield._finite_size.least_noise_path import LeastNoisePath, least_noise_path, unstable_direction
from meanfield._finite_size.moments import validate_sizes
from meanfield._finite_size.path_equations import PathEquations
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import FLOOR, spectrum
from meanfield._population.compositions import consensus
from meanfield._population.observables import MIXED
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, space_of, words_of
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError

DEFAULT_SIZES = tuple(int(n) for n in np.unique(np.geomspace(2, 1e5, 48).round()))
MAX_NUMBERS = 2**24  # steps times states: 0.13 GB for each of fifteen courses
# A solution of the rate equation is steady where max|dx/dt| is below; it then is at a fixed point that is this near.
STEADY_RESIDUAL = 1e-8
NEAR = 1e-2
MAX_TIME = 2000.0
KNOWN = 1e-3  # error of κ, relative, above which it is told
# As in the stability table: agents leave the true consensus states of published policies with chance 4e-5 at most.
CONSENSUS_RESIDUAL = 1e-3


def group_size_law(
    policy: xr.Dataset, *, n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES, level: float = 0.99
) -> xr.Dataset:
    """The chance Φ(κ√N) that N agents who start with empty memories end at the strong convention.

    Φ is the normal distribution function. κ measures how strongly a population prefers its strong convention: κ√N is
    the number of standard deviations by which the noise of N agents must push the population, from empty memories, to
    carry it over the saddle to the other attractor. κ = distance/σ comes from the path that takes the least noise.

    The law holds for policies with two attractors and one saddle between them, to leading order in 1/N and in κ. The
    error is of order 1/√N: for the eleven pairs of GPT-4o at most 0.025 at N = 24, 0.009 at N = 100 and 0.003 at N =
    400 ({tall, short}, 200,000 simulated runs each).

    From κ of about 1/2 on, the equations of leading order may have no solution. Then κ²/2 is the least action, the
    exact rate at which the chance of the weak word falls with N, and attrs["reason"] says so; answers of probability 0
    count as 1e-14 there. κ is infinite if agents with empty memories only ever say one word, apart from answers of
    probability below 1e-14.

    Parameters
    ----------
    policy
        One policy, of two words.
    n_agents
        Distinct population sizes N ≥ 2. Default: 48 of them from 2 to 100,000.
    level
        Chance that defines the critical size, between 1/2 and 1.

    Returns
    -------
    Dataset with

    - `kappa`, and `probability` = Φ(κ√N) over `n_agents`;
    - `n_critical` = (Φ⁻¹(level)/κ)², the smallest size with a chance of at least `level`;
    - `strong_word`, the convention at the attractor that the rate equation reaches from empty memories; 'mixed' if that
      is no consensus, '' if there is no law;
    - `distance` and `sigma`, with κ = distance/σ. To first order, the distance is the share of agents who would turn an
      infinite population if they started with memories of the weak word only; σ/√N is the standard deviation of the
      noise in the same unit. Both are NaN if κ is infinite.

    attrs["applies"] is 1 if there is such a law. Otherwise it is 0, the numbers are NaN and attrs["reason"] says why.

    Raises
    ------
    InputError
        If the policy has more than two words, an argument is out of range, or the sizes would take more than 16 GiB of
        memory (or the GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    validation.collective_bias : the law beside simulated runs
    finite_size : mean and variance over time
    sensitivity : which memories κ hangs on

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
    1131.0
    """
    policy = single_policy(policy)
    sizes = validate_sizes(n_agents)
    if not 0.5 < level < 1:
        raise InputError(f"level = {level}: expected a chance between 1/2 and 1, as in 0.99")
    if policy.sizes["word"] != 2:
        raise InputError(f"policy has {policy.sizes['word']} words: expected 2 for the group-size law")
    found = law_path(policy)
    if isinstance(found, NoPath):
        return _label(policy, sizes, level, found.word, (found.kappa, np.nan, np.nan), found.reason)
    word = str(found.points["convention"].values[found.strong])
    kappa, unit = found.path.kappa, _unit(policy, found)
    return _label(policy, sizes, level, word, (kappa, kappa**2 / unit, kappa / unit), _law(policy, found))


class LawPath(NamedTuple):
    """The ingredients of a group-size law."""

    points: xr.Dataset  # the three fixed points
    strong: int  # number of the attractor that the rate equation reaches from empty memories, 0 or 2
    path: LeastNoisePath | LeastActionPath  # the least-noise path


class NoPath(NamedTuple):
    """Why there is no least-noise path; κ and the word where κ is infinite."""

    reason: str
    kappa: float = np.nan
    word: str = ""


def law_path(policy: xr.Dataset) -> LawPath | NoPath:
    """The least-noise path of a policy of two words, or the reason why there is none."""
    points = fixed_points(policy)
    reason = _objection(policy, points)
    if reason:
        return NoPath(reason)
    said = _ever_said(policy)
    if len(said) == 1:
        reason = (
            f"agents who start with empty memories never say any other word than {said[0]!r}, answers of probability "
            f"below {FLOOR:g} aside"
        )
        return NoPath(reason, np.inf, said[0])
    strong = reached(policy, points)
    if strong is None:
        return NoPath("the rate equation leads from empty memories to neither of the two attractors")
    return _path_to_saddle(policy, points, strong)


def _ever_said(policy: xr.Dataset) -> list[str]:
    """The words that a population of agents with empty memories may ever come to say."""
    space, possible = space_of(policy), policy["q"].values > FLOOR
    reached, successors = np.arange(space.n_states) == 0, space.successors()
    while True:
        said = possible[reached].any(0)
        after = reached.copy()
        for own, partner in itertools.product(np.flatnonzero(said), repeat=2):
            after[successors[reached & possible[:, own]] + space.n_words * own + partner] = True
        if (after == reached).all():
            return [word for word, one in zip(words_of(policy), said, strict=True) if one]
        reached = after


def _objection(policy: xr.Dataset, points: xr.Dataset) -> str:
    """Why this landscape has no group-size law; '' if it has two attractors with one saddle between them."""
    status = points["stability"].values.tolist()
    if status == ["stable", "unstable", "stable"]:
        return ""
    if "marginal" in status:
        point = points.isel(fixed_point=status.index("marginal"))
        eigenvalue = f"leading eigenvalue {point['eigenvalue'].item():.1g}"
        place = _place(policy, point)
        return f"the fixed point {place} is marginal ({eigenvalue}): linear theory does not tell whether it attracts"
    if status.count("stable") == 1:
        attractor = points.isel(fixed_point=status.index("stable"))
        others = [word for word in words_of(policy) if word != attractor["convention"].item()]
        why = " and ".join(_why_no_attractor(policy, word) for word in others)
        return f"{why}, so that the fixed point {_place(policy, attractor)} is the only attractor for every group size"
    return (
        f"there are {status.count('stable')} stable and {status.count('unstable')} unstable fixed points: "
        "expected two stable ones with a single saddle between them"
    )


def _law(policy: xr.Dataset, found: LawPath) -> str:
    """Why this landscape has a group-size law, and its reservations."""
    kinds = found.points["kind"].values.tolist()
    mixed = [_place(policy, found.points.isel(fixed_point=i)) for i in (0, 2) if kinds[i] == MIXED]
    reserve = (
        f"; the attractor {' and the one '.join(mixed)} is mixed, and small groups leave it again" if mixed else ""
    )
    if isinstance(found.path, LeastActionPath):
        reserve += "; no path of leading order was found, so that κ is that of the least action"
        if found.path.error > KNOWN:
            reserve += f", known to {found.path.error:.1%}"
    return f"two attractors with one saddle between them{reserve}"


def _place(policy: xr.Dataset, point: xr.Dataset) -> str:
    share = point["word_share"].values
    word = int(np.argmax(share))
    if point["convention"].item() == MIXED:
        return f"at a share {share[word]:.3f} of {words_of(policy)[word]!r}"
    return f"at the consensus on {words_of(policy)[word]!r}"


def _why_no_attractor(policy: xr.Dataset, word: str) -> str:
    """Why the consensus on `word` does not attract."""
    state = consensus(policy, word)
    leaves = 1 - policy["q"].values[np.argmax(state.values), words_of(policy).index(word)]
    if leaves > CONSENSUS_RESIDUAL:
        return f"the consensus on {word!r} is no fixed point (its agents say something else with chance {leaves:.2g})"
    eigenvalue = spectrum(policy, state, k=1)["eigenvalue"].item()
    if eigenvalue < 0:
        return f"the consensus on {word!r} is only near an attractor (its agents err with chance {leaves:.2g})"
    return f"the consensus on {word!r} is unstable (leading eigenvalue {eigenvalue:.2g})"


def reached(policy: xr.Dataset, points: xr.Dataset) -> int | None:
    """The attractor that the rate equation reaches from empty memories, or None."""
    equations = PathEquations(policy["q"].values, space_of(policy))

    def rate(time: float, x: np.ndarray) -> np.ndarray:
        return equations.drift(x)

    def moves(time: float, x: np.ndarray) -> float:
        return np.abs(equations.drift(x)).max() - STEADY_RESIDUAL

    moves.terminal = True  # type: ignore[attr-defined]
    start = np.zeros(space_of(policy).n_states)
    start[0] = 1.0
    tolerances = {"rtol": 1e-8, "atol": 1e-11}
    end = solve_ivp(rate, (0.0, MAX_TIME), start, "DOP853", t_eval=[MAX_TIME], events=moves, **tolerances)
    x = end.y_events[0][-1] if end.status == 1 else end.y[:, -1]
    away = x - points["composition"].values
    nearest = int(np.argmin(np.abs(away).sum(1)))
    if not points["stable"].values[nearest] or np.abs(away[nearest]).sum() > NEAR:
        return None
    # A slow attractor is not reached in this time, but it has to be approached.
    return nearest if end.status == 1 or equations.drift(x) @ away[nearest] < 0 else None


def signed_law_path(policy: xr.Dataset, strong: int, scale: float) -> LawPath | NoPath:
    """The path to the saddle, with κ < 0 where empty memories lead to the other attractor than number `strong`.

    Errors of κ are relative to `scale` where κ is smaller.
    """
    points = fixed_points(policy)
    reason = _objection(policy, points)
    return NoPath(reason) if reason else _path_to_saddle(policy, points, strong, scale)


def signed_kappa(policy: xr.Dataset) -> tuple[float, str]:
    """κ of a policy of two words, positive if the first word is strong; NaN and the reason if there is none."""
    policy = single_policy(policy)
    found = law_path(policy)
    if isinstance(found, LawPath):
        return (found.path.kappa if found.strong == 0 else -found.path.kappa), ""
    return (found.kappa if found.word == words_of(policy)[0] else -found.kappa), found.reason


def _path_to_saddle(policy: xr.Dataset, points: xr.Dataset, strong: int, scale: float = 0.0) -> LawPath | NoPath:
    q, space = policy["q"].values, space_of(policy)
    x = points["composition"].values
    growth, left = unstable_direction(PathEquations(q, space), x[1])
    if growth[1] > 1e-7:
        return NoPath(f"the saddle has two unstable directions (eigenvalues {growth[0]:.2g}, {growth[1]:.2g})")
    left = left * np.sign(left @ (x[2 - strong] - x[1]))
    path = least_noise_path(q, space, x[1], left, float(growth[0]), MAX_NUMBERS, scale)
    return NoPath(path) if isinstance(path, str) else LawPath(points, strong, path)


def _unit(policy: xr.Dataset, found: LawPath) -> float:
    """The momentum of an agent who starts with memories of the weak word only, relative to an empty memory."""
    effect = found.path.p[0]
    weak_word = 1 if found.strong == 0 else 0  # fixed points come by falling share of the first word
    return abs(effect[space_of(policy).consensus_state(weak_word)] - effect[0])


def _label(
    policy: xr.Dataset, sizes: np.ndarray, level: float, word: str, numbers: tuple[float, float, float], reason: str
) -> xr.Dataset:
    kappa, distance, sigma = numbers
    columns = {
        "kappa": ((), kappa, "kappa"),
        "probability": (("n_agents",), ndtr(kappa * np.sqrt(sizes)), "predicted chance to end at the strong word"),
        "n_critical": ((), (ndtri(level) / kappa) ** 2, f"group size with a chance of {level:g}"),
        "distance": ((), distance, "distance to the saddle's stable manifold"),
        "sigma": ((), sigma, "noise across the saddle's stable manifold, for one agent"),
    }
    result = labelled(
        columns,
        coords={
            "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
            **labels_of(policy),
        },
    )
    result["strong_word"] = ((), word, {"long_name": "convention that the rate equation reaches from empty memories"})
    attrs = {"policy": name_of(policy), "applies": int(not np.isnan(kappa)), "reason": reason}
    return stamp(result.assign_attrs(attrs), "group_size_law", policy, level=level)
