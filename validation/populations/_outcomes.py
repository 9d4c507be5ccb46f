"""Tests of the outcomes of a few real runs against many runs simulated under the same conditions.

Each test compares a statistic of the real runs with its values for imitations: as many runs under the same conditions,
all with the same policy drawn from the posterior. Its p-value is the share of imitations at least as far off, as
in a Monte Carlo test. So ties and runs cut at a fixed length need no correction, and an uncertain policy widens the
distribution of the imitations. Sources: Barnard 1963, J. R. Stat. Soc. B 25, 294; Rubin 1984, Ann. Stat. 12, 1151.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import softmax

from meanfield import make_policy
from meanfield.toolbox import (
    LARGEST_SEED,
    check_level,
    check_memory,
    real_number,
    whole_number,
    wilson_interval,
    words_of,
)
from validation.naming_game import LazyPolicy
from validation.naming_game._stopped_runs import Ends, Stop, play_real_runs
from validation.populations._back_off import BackOffPolicy
from validation.populations._conditions import EXPERIMENTS, PAPERS_SUCCESS_RATE, Condition
from validation.populations._empirical_policy import sample_policies
from validation.populations._experiment import Experiment

AGREES, DISAGREES, TOO_FEW, NOT_SIMULATED = "agrees", "disagrees", "too few data", "not simulated"
FEWEST_RUNS = 5  # fewer can't contradict a prediction at 99 % unless it is all but certain
IMITATIONS = 4000
PATIENCE = 4  # times the longest real run
EXPERIMENTS_THAT_TELL = {
    "majority word": ("from_empty", "from_consensus"),
    "flips": ("from_consensus", "committed"),
    "success rate": ("from_consensus", "committed"),
    "time": EXPERIMENTS,
}
Runs = Sequence[np.ndarray]  # one array a condition: (run,) of real runs, (policy draw, run) of simulated ones
LATE = "agents are committed from mid-run on, which is not simulated"
PREDICTED = "predicted: "  # before a word


class Options(NamedTuple):
    """Options of `validation.populations.validate`."""

    draws: int
    runs: int
    seed: int
    level: float
    window: int | None
    sharpness: float

    @classmethod
    def checked(
        cls, draws: int, runs: int, seed: int, level: float, window: int | None, sharpness: float = 1, numbers: int = 1
    ) -> Options:
        """InputError if one is out of range, or so many runs of so many draws, with `numbers` of each, are too many."""
        draws, runs = whole_number("draws", draws, 1), whole_number("runs", runs, 1)
        check_memory(8 * draws * runs * numbers, f"draws = {draws}, runs = {runs}", "fewer draws or runs")
        seed = whole_number("seed", seed, 0, LARGEST_SEED)
        window = None if window is None else whole_number("window", window, 1)
        check_level(level)
        return cls(draws, runs, seed, level, window, real_number("sharpness", sharpness, above=0))


class Played(NamedTuple):
    """A condition, and for each quantity a number for each real (run,) and each simulated run (policy draw, run)."""

    condition: Condition
    outcomes: dict[str, list[np.ndarray]]


def outcome_tests(
    experiment: Experiment,
    policy: xr.Dataset | BackOffPolicy | str,
    options: Options,
    tested: np.ndarray | None = None,
) -> list[dict]:
    """A row for each test of the runs (run,) that are tested, by default all. `policy` may say why there is none."""
    rows = []
    policies = [] if isinstance(policy, str) else _drawn(policy, options, experiment.seed(options.seed))
    for where, conditions, late in experiment.conditions(options.window, tested):
        if late:
            rows.append(where | _line("flips", late, NOT_SIMULATED, note=LATE))
        if isinstance(policy, str):
            if counted := sum(len(condition.runs) for condition in conditions):
                rows.append(where | _line("majority word", counted, NOT_SIMULATED, note=policy))
            continue
        played = [_play(policies, condition, experiment, options) for condition in conditions]
        # Where all runs are cut at a fixed length their lengths tell nothing
        timed = any(runs.any() for one in played for runs in one.outcomes["stopped"])
        for quantity, kinds in EXPERIMENTS_THAT_TELL.items() if played else ():
            if where["experiment"] in kinds and (quantity != "time" or timed):
                rows.append(where | _tested(quantity, played, experiment, options))
        if where["experiment"] == "committed":
            for one in played:
                number = {"n_committed": sum(one.condition.committed.values())}
                rows.append(where | _tested("flips", [one], experiment, options) | number)
    return rows


def dealt(stops: list[Stop], runs: int) -> Iterator[tuple[Stop, np.ndarray]]:
    """Each rule with numbers of simulated runs: it stops them as often as it stops real runs."""
    told = [stops[k % len(stops)] for k in range(runs)]
    for stop in sorted(set(told)):
        yield stop, np.flatnonzero([one == stop for one in told])


def _play(
    policies: list[xr.Dataset] | list[LazyPolicy], condition: Condition, experiment: Experiment, options: Options
) -> Played:
    real, words = condition.runs, experiment.words
    # Lazy runs that never agree have new memories without end. Beyond all real runs it matters little by how much.
    lazy = isinstance(policies[0], LazyPolicy)
    stops = condition.stops(PATIENCE * int(real["interactions"].max()) if lazy else int(real["longest"].max()))
    own = (experiment.seed(options.seed) + sum(condition.committed.values())) % (LARGEST_SEED + 1)
    parts = []
    for k, policy in enumerate(policies):
        population = policy, condition.n_agents, condition.committed, condition.initial
        numbers = ((stop, k * options.runs + number) for stop, number in dealt(stops, options.runs))
        ends = [play_real_runs(*population, stop, own, number) for stop, number in numbers]
        parts.append([np.concatenate(values) for values in zip(*ends, strict=True)])
        if isinstance(policy, LazyPolicy):
            policy.forget()  # the answers of all draws take gigabytes
    columns = ("interactions", "success_last_3N", "majority_word_last_3N", "majority_share_last_3N", "stopped")
    lengths, success, majority, *others = (real[column].to_numpy() for column in columns)
    both = [
        Ends(lengths, success, np.array([words.index(word) for word in majority]), *others),
        Ends(*(np.stack(values) for values in zip(*parts, strict=True))),
    ]
    # The tables are rounded to four digits: equal values have to be equal.
    rates = [ends.success_rate.round(4) for ends in both]
    # Agreement on another word than they started from. Source: [001] Methods.
    old = -1 if condition.initial is None else words.index(condition.initial)
    agreed = [rate >= PAPERS_SUCCESS_RATE for rate in rates]
    flips = [((ends.word != old) & it).astype(int) for ends, it in zip(both, agreed, strict=True)]
    outcomes = {"majority word": [ends.word for ends in both], "success rate": rates, "flips": flips}
    told = {"time": [ends.interactions for ends in both], "stopped": [ends.stopped for ends in both]}
    return Played(condition, outcomes | told)


def _tested(quantity: str, played: list[Played], experiment: Experiment, options: Options) -> dict:
    words, seed = experiment.words, experiment.seed(options.seed)
    real, simulated = zip(*(one.outcomes[quantity] for one in played), strict=True)
    observed, (values, weights), n, note = np.concatenate(real), pooled(real, simulated), sum(map(len, real)), ""
    if quantity in ("majority word", "flips"):
        n_outcomes = 2 if quantity == "flips" else len(words)
        statistic, p_value = outcome_test(real, simulated, n_outcomes, IMITATIONS, seed)
        shares = np.bincount(values, weights, minlength=n_outcomes) / n
        shown = 1 if quantity == "flips" else int(np.argmax(shares))
        note = "" if quantity == "flips" else f"{PREDICTED}{words[shown]}"
        times = int((observed == shown).sum())
        low, high = wilson_interval(np.array(times), n, options.level)
        numbers = {"observed": times / n, "predicted": float(shares[shown]), "low": float(low), "high": float(high)}
    else:
        statistic, p_value = distribution_test(real, simulated, IMITATIONS, seed)
        middle = np.quantile(values, 0.5 - 1e-12, weights=weights, method="inverted_cdf")
        numbers = {"observed": float(np.median(observed)), "predicted": float(middle)}
        if quantity == "time":
            rules = sorted({rule.text for one in played for rule in one.condition.runs["rule"]})
            note = f"a run stops when it succeeds in: {' or '.join(rules)}"
    verdict = DISAGREES if p_value < 1 - options.level else AGREES if n >= FEWEST_RUNS else TOO_FEW
    return _line(quantity, n, verdict, statistic, p_value, note) | numbers


def _drawn(policy: xr.Dataset | BackOffPolicy, options: Options, seed: int) -> list[xr.Dataset] | list[LazyPolicy]:
    """Policies drawn from the posterior, with choice probabilities q^sharpness."""

    def sharpened(q: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return q if options.sharpness == 1 else softmax(options.sharpness * np.log(q), axis=1)

    if isinstance(policy, BackOffPolicy):
        return policy.sample(options.draws, seed, sharpened)
    drawn = sample_policies(policy, options.draws, seed)
    return [make_policy(sharpened(one["q"].values), words_of(one)) for one in drawn]


def _line(
    quantity: str, runs: int, verdict: str, statistic: float = np.nan, p_value: float = np.nan, note: str = ""
) -> dict:
    unknown = dict.fromkeys(("observed", "predicted", "low", "high"), np.nan)
    tested = {"statistic": statistic, "p_value": p_value, "verdict": verdict, "note": note}
    return {"n_committed": -1, "quantity": quantity, "runs": runs} | unknown | tested


def distribution_test(real: Runs, simulated: Runs, imitations: int, seed: int) -> tuple[float, float]:
    """Two-sample Kolmogorov-Smirnov distance of real from simulated values, and its p-value.

    With several conditions each value is first replaced by its mid-rank among those simulated under its condition.
    """
    ranked = [_mid_ranks(values, values) for values in simulated]
    values, weight = pooled(real, ranked)
    observed = np.concatenate([_mid_ranks(r, s) for r, s in zip(real, simulated, strict=True)])
    imitated = np.concatenate(imitate(ranked, real, imitations, seed), axis=1)
    samples, order = np.sort(np.concatenate([observed[None], imitated]), axis=1), np.argsort(values, kind="stable")
    cumulated = np.append(0.0, np.cumsum(weight[order]) / weight.sum())
    # Both functions are steps: the difference is greatest at a sample or just before one.
    below, at = (cumulated[np.searchsorted(values[order], samples, side)] for side in ("left", "right"))
    ranks = np.arange(samples.shape[1] + 1) / samples.shape[1]
    return against_imitations(np.maximum((ranks[1:] - at).max(1), (below - ranks[:-1]).max(1)))


def outcome_test(real: Runs, simulated: Runs, n_outcomes: int, imitations: int, seed: int) -> tuple[float, float]:
    """Deviance G of real from simulated outcomes (integers from 0), and its p-value; summed over conditions.

    G = 2 Σ_k n_k log(n_k / (n p_k)), with p_k the share of outcome k in the simulated runs of the condition.
    """
    total = np.zeros(1)
    for runs, outcomes, imitated in zip(real, simulated, imitate(simulated, real, imitations, seed), strict=True):
        samples = np.concatenate([runs[None], imitated])
        # An outcome that was never simulated is not impossible.
        shares = np.bincount(outcomes.ravel(), minlength=n_outcomes) + 0.5
        for k, p in enumerate(shares / (outcomes.size + 0.5 * n_outcomes)):
            times = (samples == k).sum(1)
            total = total + 2 * times * np.log(np.maximum(times, 1) / (samples.shape[1] * p))
    return against_imitations(total)


def pooled(real: Runs, simulated: Runs) -> tuple[np.ndarray, np.ndarray]:
    """All simulated values, and weights by which each condition has as much as it has real runs."""
    weights = [np.full(s.size, len(r) / s.size) for r, s in zip(real, simulated, strict=True)]
    return np.concatenate([s.ravel() for s in simulated]), np.concatenate(weights)


def imitate(simulated: Runs, real: Runs, imitations: int, seed: int) -> list[np.ndarray]:
    """Imitated sets of runs, (draws · imitations of each, real runs, …) a condition."""
    random = np.random.default_rng(seed)
    draws = len(simulated[0])
    size, draw = (draws, -(-imitations // draws)), np.arange(draws)[:, None, None]
    chosen = [random.integers(s.shape[1], size=(*size, len(r))) for s, r in zip(simulated, real, strict=True)]
    return [s[draw, some].reshape(-1, some.shape[2], *s.shape[2:]) for s, some in zip(simulated, chosen, strict=True)]


def _mid_ranks(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    ordered = np.sort(among, axis=None)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (2 * ordered.size)


def against_imitations(statistics: np.ndarray) -> tuple[float, float]:
    """The first, of the real runs, and its p-value among the imitations."""
    real, imitated = statistics[0], statistics[1:]
    return float(real), float((1 + (imitated >= real - 1e-12).sum()) / (1 + imitated.size))
