"""Which word is ahead at a random moment, and for how long, where a policy has one attractor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import log_ndtr, ndtr, owens_t

from meanfield._finite_size.group_size_law import DEFAULT_SIZES
from meanfield._finite_size.majority_path import MajorityPath, majority_path
from meanfield._finite_size.moments import validate_sizes
from meanfield._finite_size.word_share_correlation import Correlation, word_share_correlation
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import as_population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, space_of, words_of
from meanfield.toolbox._arguments import increasing_times
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._memory_budget import check_memory

ROUNDS, LONG = 41, 4.0  # by default: how many, and the last one in units of the slowest relaxation
NODES = 2000  # of the integral over time
SMALLEST = 1e-300  # chance
BYTES = 40  # of a chance at a size and a round, as measured


class _Attractor(NamedTuple):
    composition: np.ndarray
    share: np.ndarray
    decay: float


def majority_law(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    rounds: Sequence[float] | np.ndarray | None = None,
) -> xr.Dataset:
    """The chance that the majority word is ahead among N agents, and how long the other one stays ahead.

    For policies with one attractor, which have no group-size law: after long times the word share Q of N agents, the
    chance that a random one of them says the word next, fluctuates about that of the attractor. At a random moment the
    majority word of the attractor is ahead, Q > 1/2, with the chance

        P = Φ(κ√N - c/√N) + O(N^-3/2).

    κ²/2 is the action that brings the population from the attractor to Q = 1/2, and c comes from all fluctuations about
    its path; they are those of `group_size_law(policy, order=2)` with another end. A tie counts as half. The path is
    followed as the end moves away from the attractor; whether another one has less action is not checked.

    Where the other word is ahead, it is ahead t rounds later with the chance

        s(t) = 1 - 2 T(z, √[(1 - ρ)/(1 + ρ)]) / Φ(-z),   z = κ√N - c/√N,

    with Owen's function T and the correlation ρ(t) of word shares in linear noise. In between it may have fallen back.
    s goes from 1 to 1 - P; the side is forgotten in the time τ = ∫ [s - (1 - P)] dt / P.

    Parameters
    ----------
    policy
        One policy, of two words.
    n_agents
        Distinct population sizes N ≥ 2. Default: 48 of them from 2 to 100,000.
    rounds
        Increasing numbers of rounds t from 0 on. Default: 41, ever further apart, up to four relaxation times of the
        attractor.

    Returns
    -------
    Dataset with

    - `majority_word`, and `word_share` (word) of the attractor; for equal shares rounding decides which;
    - `kappa`, `correction` = c and `correction_error`, the numerical error of c; κ is infinite where Q > 1/2 always;
    - `probability` = P (n_agents), and `log_minority_probability`, the natural logarithm of 1 - P;
    - `correlation` = ρ (round);
    - `still_ahead` = s (n_agents, round), and `memory_rounds` = τ (n_agents) in rounds; NaN where 1 - P is below
      1e-300.

    attrs["applies"] is 1 if there is such a law. Otherwise it is 0, the numbers are NaN and attrs["reason"] says why:
    the policy has several attractors, a marginal or a very slow one, or no path was found. If only c is not found, it
    is NaN and counts as 0, and attrs["reason"] says so.

    Small groups stay longer at a consensus that is hardly ever left than the law says, and for ever at one that never
    is: the law then holds until all agree, and attrs["reason"] says so. With memories of one interaction Q is a sum of
    few numbers; P was off by up to 0.08 for ten agents with sharp answers.

    Raises
    ------
    InputError
        If the policy has more than two words, an argument is out of range, or the sizes would take more than 16 GiB of
        memory (or the GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    group_size_law : policies with two attractors
    finite_size : mean and variance of the word share over time
    lifetime : how long a metastable convention lasts

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> law = meanfield.majority_law(policy, n_agents=[10, 100, 1000])
    >>> law["majority_word"].item(), law["word_share"].values.round(3)
    ('his', array([0.526, 0.474]))
    >>> law["probability"].values.round(3)
    array([0.65 , 0.889, 1.   ])
    >>> law["memory_rounds"].values.round(1)
    array([0.5, 0.4, 0.1])
    """
    policy = single_policy(policy)
    sizes = validate_sizes(n_agents)
    if policy.sizes["word"] != 2:
        raise InputError(f"policy has {policy.sizes['word']} words: expected 2 for the majority law")
    if rounds is not None:
        rounds = increasing_times(rounds, "rounds")
        check_memory(
            BYTES * len(sizes) * len(rounds), f"n_agents has {len(sizes)} sizes and rounds {len(rounds)}", "fewer"
        )
    found = _attractor(policy)
    if isinstance(found, str):
        return _label(policy, sizes, rounds, np.full(2, np.nan), None, None, found)
    mixture, word = as_population(policy).mixture, int(found.share.argmax())
    if rounds is None:
        rounds = LONG / found.decay / TIME_PER_ROUND * np.linspace(0, 1, ROUNDS) ** 2  # s falls fast at first
    correlation = word_share_correlation(mixture, found.composition[None], word, found.decay)
    if isinstance(correlation, str):
        return _label(policy, sizes, rounds, found.share, None, None, correlation)
    path = majority_path(mixture, found.composition[None], word, found.decay, correlation.variance)
    if isinstance(path, str):
        return _label(policy, sizes, rounds, found.share, None, correlation, path)
    return _label(policy, sizes, rounds, found.share, path, correlation, path.reason + _never_left(policy, found.share))


def _never_left(policy: xr.Dataset, share: np.ndarray) -> str:
    """A reservation for conventions, beside the attractor, that agents never leave once all of them agree."""
    space, q = space_of(policy), policy["q"].values
    words = [word for a, word in enumerate(words_of(policy)) if q[space.consensus_state(a), a] == 1 and share[a] < 1]
    return "".join(f"; it holds until all agree on {word!r}, which they never leave" for word in words)


def _attractor(policy: xr.Dataset) -> _Attractor | str:
    """The only attractor, or why there is no law."""
    points = fixed_points(policy)
    status = points["stability"].values.tolist()
    if "marginal" in status:
        eigenvalue = points["eigenvalue"].values[status.index("marginal")]
        return f"a fixed point is marginal (leading eigenvalue {eigenvalue:.1g}): linear theory does not describe it"
    if status.count("stable") != 1:
        return f"there are {status.count('stable')} attractors: see group_size_law and lifetime"
    point = points.isel(fixed_point=status.index("stable"))
    return _Attractor(point["composition"].values, point["word_share"].values, -point["eigenvalue"].item())


def _label(
    policy: xr.Dataset,
    sizes: np.ndarray,
    rounds: np.ndarray | None,
    share: np.ndarray,
    path: MajorityPath | None,
    correlation: Correlation | None,
    reason: str,
) -> xr.Dataset:
    rounds = np.zeros(1) if rounds is None else rounds
    kappa, c, error = (np.nan, np.nan, np.nan) if path is None else (path.kappa, path.correction, path.error)
    z = kappa * np.sqrt(sizes) - np.nan_to_num(c) / np.sqrt(sizes)
    rho = np.full(len(rounds), np.nan) if correlation is None else correlation.at(rounds * TIME_PER_ROUND)
    columns = {
        "word_share": (("word",), share, "word share at the attractor"),
        "kappa": ((), kappa, "kappa"),
        "correction": ((), c, "c, which moves the law by c/√N"),
        "correction_error": ((), error, "numerical error of c"),
        "probability": (("n_agents",), ndtr(z), "chance that the majority word is ahead"),
        "log_minority_probability": (("n_agents",), log_ndtr(-z), "logarithm of the chance that it is not"),
        "correlation": (("round",), rho, "correlation of word shares so many rounds apart"),
        "still_ahead": (("n_agents", "round"), _still_ahead(z, rho), "chance that the minority word is ahead later"),
        "memory_rounds": (("n_agents",), _memory(z, correlation), "time in which the side is forgotten", "rounds"),
    }
    coords = {
        "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
        "round": ("round", rounds, {"long_name": "rounds later"}),
        **labels_of(policy),
    }
    result = labelled(columns, coords=coords)
    word = "" if np.isnan(share).any() else words_of(policy)[int(share.argmax())]
    result["majority_word"] = ((), word, {"long_name": "word that is ahead at the attractor"})
    attrs = {"policy": name_of(policy), "applies": int(path is not None), "reason": reason}
    return stamp(result.assign_attrs(attrs), "majority_law", policy)


def _memory(z: np.ndarray, correlation: Correlation | None) -> np.ndarray:
    """τ in rounds."""
    found = np.full(len(z), np.nan)
    if correlation is None:
        return found
    root = np.linspace(0.0, np.sqrt(correlation.times[-1]), NODES)  # s falls like a root of time at first
    rho = correlation.at(root**2)
    for k in np.flatnonzero(ndtr(-z) > SMALLEST):
        excess = (_still_ahead(z[[k]], rho)[0] - ndtr(-z[k])) / ndtr(z[k])
        found[k] = np.trapezoid(2 * root * excess, root) / TIME_PER_ROUND
    return found


def _still_ahead(z: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """s for each z and correlation."""
    rho, behind = np.clip(correlation, -1.0, 1.0), ndtr(-z)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        still = 1 - 2 * owens_t(z[:, None], np.sqrt((1 - rho) / (1 + rho))) / behind
    return np.where(behind > SMALLEST, np.clip(still, 0.0, 1.0), np.nan)
