"""The rule that populations play, from what they say in their runs alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.special import chdtrc, chdtri, expit

from meanfield import InputError, MemorySpace
from meanfield.toolbox import canonical_order, check_level, labelled, one_of, real_numbers, shown, stamp, whole_number
from theory.naming_game._fit_rule import checked
from theory.naming_game._rules import POSITIVE, RULES, Memories, expanded_logits
from theory.naming_game._run_moments import run_moments

STARTS = 5
WIDE = 0.15  # standard deviation of a share between runs, up to which noise is taken as Gaussian
ITERATIONS, GAIN = 60, 1e-4  # of the search at most, and the gain in nats at which it ends
LONGEST = 2.0  # step of a coordinate
DAMPED, FLAT = 1e-3, 1e-6  # damping at first, and at which it is given up as 1/FLAT; information in flat directions
# Damping falls where a step gains at least this part of step · gradient; by the expected curvature it gains half.
SHARE = 0.25
LEAST = 0.1  # of information, where a search of an end begins
FURTHEST = 12.0  # distance of a coordinate from its estimate at which the search of an end is given up
TRIES, NEAR = 15, 0.01  # of that search, and the relative error of the root of the deviance at which it ends
SLOPES = 4  # at least: rules of fewer parameters then have the program of the others
KICK = 0.1  # away from saddles of likelihoods that are even functions of a coordinate, such as `shift`
USUAL = {"initial": "empty memories", "committed": "none", "topology": "none"}  # options of simulations
BARRIER, INSIDE = 0.05, np.arange(1, 8) / 8  # nats between two modes, and where between them it is looked for


def fit_runs(
    said: xr.Dataset | xr.DataArray | np.ndarray,
    *,
    rule: str,
    memory_length: int,
    n_agents: int | None = None,
    rounds: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Fit a rule of choice to runs of populations that only tell the shares of words said in each round.

    Agents start with empty memories and play a rule of `fit_rule`. The shares y of the first word in rounds 1 to T of a
    run of N agents, 2N words each, are taken as Gaussian, with moments to order 1/N (linear noise, as in
    `meanfield.finite_size`) that are functions of the parameters θ:

        ln L(θ) = -½ Σ_runs [ln det(2πΣ) + (y - μ)ᵀ Σ⁻¹ (y - μ)],   μ = Q + V/N,   Σ = C/N + 1/(48N²).

    The last term, the variance of rounding to multiples of 1/(2N), keeps Σ regular where all say the same. Fisher
    scoring with exact derivatives starts at five points.

    Shares are Gaussian as long as runs have not spread. They are not where runs split between conventions or wait near
    a saddle, nor at a consensus in which fewer than some ten words in a round are others. By default the rounds before
    the first one are used in which the standard deviation between runs of this size is above 0.15. Groups of fewer than
    some 20 agents need a simulation.

    Parameters
    ----------
    said
        Result of `validation.simulate` with `record=["said"]`, or its variable `said` over run and round, and over
        n_agents and word if there are several: shares of the words said in a round of N interactions, in all rounds
        from the first on. Or an array, shape (R, T), of shares of the first word. At least 2 runs and 2 rounds, of
        agents who meet in random pairs, none of them committed.
    rule
        Name of the rule.
    memory_length
        H, 1 to 3. Three interactions take minutes.
    n_agents
        N ≥ 2, if the data do not say it.
    rounds
        Number of rounds T to use, from the first on, at least 2.
    level
        Level of the intervals.
    seed
        Seed of the starts.

    Returns
    -------
    Dataset over `parameter` with

    - `estimate`, the likeliest value, and `interval` (bound): the profile likelihood is at most χ²/2 below its maximum
      (1.92 nats at 95 %), between the lowest and the highest value if there are several modes. An end is infinite, or
      0 for positive parameters, where the likelihood falls by less within 12 in a logit or a logarithm;
    - `identified`: whether both ends are finite, and not such a 0;
    - `log_likelihood`, and over `mode`, all maxima within that reach, the best first: `mode_estimate` and `mode_loss`,
      by how much the log-likelihood is below the best;
    - `chi_squared` of residuals: squares of their means, variances (cube roots, Wilson and Hilferty 1931) and
      correlations of successive rounds, all standardised, with `degrees` of freedom and `p_value`. A small one says
      that another rule was played. NaN with no more squares than parameters;
    - `mean` (n_agents, round), the predicted mean, and `residual`, the observed mean minus the predicted one in
      standard errors. NaN in rounds that are not used.

    Raises
    ------
    InputError
        If an argument is not as described; the message tells all that is wrong.

    See Also
    --------
    fit_rule : from choices or a policy, far more precisely
    summary : the parameters as a table

    Examples
    --------
    >>> from theory.naming_game import fit_runs, rule_policy, summary
    >>> parameters = {"empty": 0.3, "bias": 0.2, "strength": 1.5}
    >>> policy = rule_policy("imitation", parameters, ["A", "B"], memory_length=1)
    >>> options = {"max_rounds": 12, "record_rounds": 12, "record": ["said"]}
    >>> runs = validation.simulate(policy, n_agents=50, runs=100, seed=1, **options)
    >>> fit = fit_runs(runs, rule="imitation", memory_length=1)
    >>> summary(fit).round(2)
               estimate   low  high      status
    parameter
    empty          0.33  0.25  0.40  determined
    bias           0.19  0.17  0.21  determined
    strength       1.57  1.36  1.82  determined
    >>> fit["p_value"].round(2).item(), fit.sizes["mode"]
    (0.32, 1)

    A constant choice does not explain them:

    >>> bool(fit_runs(runs, rule="constant", memory_length=1)["p_value"] < 1e-90)
    True
    """
    checks: list[Callable[[], Any]] = [
        lambda: _groups(said, n_agents, rounds),
        lambda: one_of("rule", rule, RULES),
        lambda: whole_number("memory_length", memory_length, 1, 3),
        lambda: check_level(level),
        lambda: whole_number("seed", seed),
    ]
    likelihood = Likelihood(checked(checks)[0], rule, memory_length)
    names, drop = RULES[rule].parameters, chdtri(1, 1 - level) / 2
    starts = np.random.default_rng(seed).standard_normal((STARTS, len(names)))
    modes, ends = _explored(likelihood, [likelihood.maximum(start) for start in starts], drop)
    values = np.concatenate([[point for point, _ in modes], ends.T])
    positive = [name in POSITIVE for name in names]
    values[:, positive] = np.exp(values[:, positive])
    losses = modes[0][1] - np.array([value for _, value in modes])
    columns = {
        "estimate": (("parameter",), values[0], "likeliest value"),
        "interval": (("parameter", "bound"), values[-2:].T, f"{100 * level:g} % interval"),
        "identified": (("parameter",), np.isfinite(ends).all(1), "whether the likelihood bounds it on both sides"),
        "log_likelihood": ((), modes[0][1], "log-likelihood", "nats"),
        "mode_estimate": (("mode", "parameter"), values[:-2], "values at maxima of the likelihood"),
        "mode_loss": (("mode",), losses, "how much the log-likelihood is below the best one", "nats"),
        **_fit_columns(likelihood, modes[0][0]),
    }
    coords = {"parameter": list(names), "bound": ["low", "high"], "n_agents": [n for n, _ in likelihood.groups]}
    coords["round"] = np.arange(1, columns["mean"][1].shape[1] + 1)
    options = {"rule": rule, "memory_length": memory_length, "rounds": rounds, "level": level, "seed": seed}
    return stamp(labelled(columns, coords), "run_fit", None, **options)


class Group(NamedTuple):
    """Runs of one size, cut after the rounds that are used."""

    n_agents: int
    shares: Float[np.ndarray, "runs rounds"]


@partial(jax.jit, static_argnames="rounds")
def _moments(first: jax.Array, slopes: jax.Array, rounds: int) -> tuple:
    """Moments of the shares by the probabilities of the first word, and their changes along several slopes of these."""

    def moments(first: jax.Array) -> tuple:
        return run_moments(jnp.stack([first, 1 - first], -1), rounds)

    found, changes = jax.vmap(lambda slope: jax.jvp(moments, (first,), (slope,)))(slopes)
    return jax.tree.map(lambda values: values[0], found), changes


class Likelihood(NamedTuple):
    """The synthetic likelihood of a rule: shares of independent runs are Gaussian, with moments to order 1/N."""

    groups: list[Group]
    rule: str
    memory_length: int

    def predicted(self, point: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """Mean and covariance for each group, with their derivatives."""
        rounds, parameters = max(group.shares.shape[1] for group in self.groups), len(point)
        memories = Memories.of(MemorySpace(2, self.memory_length))
        with jax.enable_x64(True):
            logit, slopes, _ = (np.asarray(values[0]) for values in expanded_logits(point[None], memories, self.rule))
            first = expit(logit)
            slopes = np.pad(first * (1 - first) * slopes.T, ((0, max(0, SLOPES - parameters)), (0, 0)))
            found, changes = jax.tree.map(np.asarray, _moments(first, slopes, rounds))
        both = found, [change[:parameters] for change in changes]
        result = []
        for n, shares in self.groups:
            cut = shares.shape[1]
            (mean, covariance), slopes = (
                ((mean + correction / n)[..., :cut], covariance[..., :cut, :cut] / n)
                for mean, correction, covariance in both
            )
            result.append((mean, covariance + np.eye(cut) / (48 * n**2), *slopes))
        return result

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The log-likelihood, its gradient and Fisher's information; -∞ where the theory has no values."""
        value, gradient, information = 0.0, np.zeros(len(point)), np.zeros((len(point), len(point)))
        for group, (mean, covariance, d_mean, d_covariance) in zip(self.groups, self.predicted(point), strict=True):
            runs, off = len(group.shares), group.shares - mean
            sign, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
            if not sign > 0 or not np.isfinite(d_covariance).all():
                return -np.inf, gradient, information
            precision = np.linalg.inv(covariance)
            seen = precision @ off.T @ off / runs
            value -= runs / 2 * (log_determinant + np.trace(seen))
            along, turned = d_mean @ precision, precision @ d_covariance
            gradient += runs * (along @ off.mean(0) + np.einsum("pij,ji->p", turned, seen - np.eye(len(mean))) / 2)
            information += runs * (along @ d_mean.T + np.einsum("pij,qji->pq", turned, turned) / 2)
        return value, gradient, information

    def maximum(self, point: np.ndarray, free: Bool[np.ndarray, " n"] | None = None) -> tuple[np.ndarray, float]:
        """A local maximum by damped Fisher scoring from this point, over the coordinates that are `free`."""
        free = np.ones(len(point), bool) if free is None else free
        value, gradient, information = self(point)
        damping = DAMPED
        for _ in range(ITERATIONS):
            block = information[np.ix_(free, free)]
            block = block + np.diag(damping * (np.diag(block) + 1) + FLAT)
            step = np.zeros(len(point))
            step[free] = np.linalg.solve(block, gradient[free])
            step *= min(1.0, LONGEST / max(np.abs(step).max(), FLAT))
            if gradient @ step < GAIN or damping > 1 / FLAT:
                break
            found = self(point + step)
            damping *= 0.2 if found[0] - value > SHARE * (gradient @ step) else 8
            if found[0] > value:
                point, (value, gradient, information) = point + step, found
        return point, value

    def end(
        self, best: np.ndarray, value: float, place: int, sign: int, drop: float
    ) -> tuple[float, float, np.ndarray]:
        """Where the profile likelihood of a coordinate has fallen by `drop`, or ±∞, and the best point met.

        The root of the deviance is close to a power of the distance.
        """
        free = np.arange(len(best)) != place
        inverse = np.linalg.inv(self(best)[2] + LEAST * np.eye(len(best)))
        ahead = sign * inverse[place] / inverse[place, place]
        point, ratio, power, before, top = best, 0.0, 1.0, None, (value, best)
        distance = min(np.sqrt(2 * drop * inverse[place, place]), LONGEST)
        for _ in range(TRIES):
            point, found = self.maximum(best + distance * ahead + KICK * free, free)
            top = max(top, (found, point), key=lambda one: one[0])
            ratio = np.sqrt(max(value - found, FLAT) / drop)
            if abs(ratio - 1) < NEAR or (distance == FURTHEST and ratio < 1):
                break
            if before is not None and distance != before[0]:
                power = np.clip(np.log(ratio / before[1]) / np.log(distance / before[0]), 0.3, 3.0)
            before = distance, ratio
            distance = min(distance * np.clip(ratio ** (-1 / power), 0.2, 3.0), FURTHEST)
            ahead = (point - best) / abs(point[place] - best[place])
        end = point[place] if ratio > 1 - NEAR else sign * np.inf
        return end, *top


def _groups(said: Any, n_agents: int | None, rounds: int | None) -> list[Group]:
    """The shares of the first word in runs of each size."""
    if isinstance(said, xr.Dataset):
        if "said" not in said:
            raise InputError('said is a Dataset without said: expected validation.simulate(..., record=["said"])')
        played = {name: said.attrs.get(f"option_{name}", usual) for name, usual in USUAL.items()}
        if played != USUAL:
            raise InputError(f"said was simulated with {shown(played)}: expected {USUAL}")
        said = said["said"]
    if not isinstance(said, xr.DataArray):
        values = real_numbers(said, "said")
        said = xr.DataArray(values, dims=("run", "round") if values.ndim == 2 else None)
    if not {"run", "round"} <= {*said.dims} <= {"n_agents", "run", "round", "word"} or said.sizes.get("word", 2) != 2:
        raise InputError(f"said has the dims {dict(said.sizes)}: expected run and round, or also n_agents and 2 words")
    said = canonical_order(said, "said").isel(word=0) if "word" in said.dims else said
    if "round" in said.coords:
        said = said.isel(round=real_numbers(said["round"].values, "round of said") > 0).sortby("round")
        if not np.array_equal(said["round"], np.arange(said.sizes["round"]) + 1):
            raise InputError(f"said has the rounds {shown(said['round'].values)}: expected all from 1 on")
    known = "n_agents" in said.coords
    if known == (n_agents is not None):
        raise InputError(
            f"n_agents = {n_agents}: expected {'None, as said has it' if known else 'the number of agents'}"
        )
    each = said if "n_agents" in said.dims else said.expand_dims("n_agents")
    values = real_numbers(each.transpose("n_agents", "run", "round").values, "said")
    sizes = np.atleast_1d(said["n_agents"].values) if known else [n_agents] * len(values)
    if not values.size or min(values.shape[1:]) < 2 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"said = {shown(values)}: expected shares from 0 to 1 of at least 2 runs in 2 rounds")
    last = whole_number("rounds", values.shape[2] if rounds is None else rounds, 2, values.shape[2])
    groups = []
    for n, shares in zip(sizes, values[:, :, :last], strict=True):
        (wide,) = np.nonzero(shares.std(0) > WIDE)
        cut = wide[0] if rounds is None and len(wide) else last
        if cut < 2:
            raise InputError(f"said spreads by more than {WIDE} in round {cut + 1}: expected larger groups, or rounds")
        groups.append(Group(whole_number("n_agents", n, 2), shares[:, :cut]))
    return groups


def _explored(
    likelihood: Likelihood, found: list[tuple[np.ndarray, float]], drop: float
) -> tuple[list[tuple[np.ndarray, float]], np.ndarray]:
    """All modes within reach, the best first, and the ends of each coordinate."""
    modes: list[tuple[np.ndarray, float]] = []
    for point, value in sorted(found, key=lambda one: -one[1]):
        if value >= max(one for _, one in found) - drop and all(
            min(likelihood(point + part * (other - point))[0] for part in INSIDE) < min(value, least) - BARRIER
            for other, least in modes
        ):
            modes.append((point, value))
    best, ends = modes[0][1], []
    for point, value in modes:
        for place, sign in np.ndindex(len(point), 2):
            end, higher, at = likelihood.end(point, value, place, 2 * sign - 1, max(drop - (best - value), NEAR))
            if higher > best + BARRIER:
                return _explored(likelihood, [*found, likelihood.maximum(at)], drop)
            ends.append(end)
    sides = np.reshape(ends, (len(modes), -1, 2))
    return modes, np.stack([sides[..., 0].min(0), sides[..., 1].max(0)], -1)


def _fit_columns(likelihood: Likelihood, point: np.ndarray) -> dict[str, tuple]:
    """Predicted moments, and how well they fit."""
    groups, statistics = likelihood.groups, []
    table = np.full((2, len(groups), max(shares.shape[1] for _, shares in groups)), np.nan)
    for row, ((_, shares), (mean, covariance, *_)) in enumerate(zip(groups, likelihood.predicted(point), strict=True)):
        runs, cut = shares.shape
        table[:, row, :cut] = mean, (shares.mean(0) - mean) / np.sqrt(np.diag(covariance) / runs)
        white = np.linalg.solve(np.linalg.cholesky(covariance), (shares - mean).T)
        size, spread = np.maximum((white**2).sum(1), FLAT), 2 / (9 * runs)
        products = (white[1:] * white[:-1]).sum(1)
        statistics += [*(white.sum(1) ** 2 / runs), *(((size / runs) ** (1 / 3) - 1 + spread) ** 2 / spread)]
        statistics += [*(runs * products**2 / (size[1:] * size[:-1]))]
    degrees = len(statistics) - len(point)
    over, total = ("n_agents", "round"), sum(statistics)
    return {
        "chi_squared": ((), total, "sum of squares of standardised residuals"),
        "degrees": ((), degrees, "degrees of freedom"),
        "p_value": ((), chdtrc(degrees, total) if degrees > 0 else np.nan, "probability of as large a chi-squared"),
        "mean": (over, table[0], "predicted mean share of the first word"),
        "residual": (over, table[1], "observed mean minus the predicted one, in standard errors"),
    }
