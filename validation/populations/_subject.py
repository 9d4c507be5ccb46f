"""One policy against all runs of its real populations: its simulations and tests."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import make_policy
from meanfield.toolbox import LARGEST_SEED, check_memory, whole_number, wilson_interval, words_of
from validation.naming_game import LazyPolicy
from validation.naming_game._lazy_policy import Memory
from validation.naming_game._stopped_runs import Ends, play_real_runs
from validation.populations._back_off import BackOffPolicy
from validation.populations._conditions import EXPERIMENTS, PAPERS_SUCCESS_RATE, Condition, conditions, with_lengths
from validation.populations._empirical_policy import sample_policies
from validation.populations._statistics import distribution_test, outcome_test

AGREES, DISAGREES, TOO_FEW, NOT_SIMULATED = "agrees", "disagrees", "too few data", "not simulated"
FEWEST_RUNS = 5  # fewer can't contradict a prediction at 99 % unless it is all but certain
IMITATIONS = 4000
PATIENCE = 4  # times the longest real run
LATE = "agents are committed from mid-run on, which is not simulated"

Row = dict[str, object]


class Options(NamedTuple):
    """Options of `validation.populations.validate`."""

    draws: int
    runs: int
    seed: int
    level: float
    window: int | None
    sharpness: float


def draws_and_runs(draws: int, runs: int, numbers: int = 1) -> tuple[int, int]:
    """Both as whole numbers; InputError if so many runs of so many draws, with `numbers` of each, are too many."""
    draws, runs = whole_number("draws", draws, 1), whole_number("runs", runs, 1)
    check_memory(8 * draws * runs * numbers, f"draws = {draws}, runs = {runs}", "fewer draws or runs")
    return draws, runs


class _Played(NamedTuple):
    """A condition, and how its real and its simulated runs (policy draw, run) ended."""

    condition: Condition
    real: Ends
    simulated: Ends
    words: tuple[str, ...]


class Subject:
    """A model with its options and memory length, which all its experiments share."""

    def __init__(
        self, subject: tuple[str, str, int], policy: xr.Dataset | BackOffPolicy | str, options: Options
    ) -> None:
        """`policy` is an estimated one, or the reason why there is none."""
        self.model, words, self.memory_length = subject
        self.words = tuple(words.split("_"))
        self.options = options
        # Policies of one folder have streams of their own, whatever else is in it.
        self.seed = (options.seed + zlib.crc32("\0".join(map(str, subject)).encode())) % (LARGEST_SEED + 1)
        self.unknown = policy if isinstance(policy, str) else ""
        self.policies = [] if isinstance(policy, str) else _drawn(policy, options, self.seed)

    def rows(self, real: pd.DataFrame, tested: np.ndarray | None = None) -> list[Row]:
        """Tests of the runs whose index is in `tested` (default: all); all of them tell when runs stop."""
        rows = []
        for experiment in (e for e in EXPERIMENTS if e in set(real["experiment"])):
            runs = with_lengths(real[real["experiment"] == experiment], self.options.window)
            for _, part in runs.groupby(["n_agents", "initial_consensus"], sort=True):
                where = {
                    "model": self.model,
                    "pair": "/".join(self.words),
                    "memory_length": self.memory_length,
                    "experiment": experiment,
                    "n_agents": int(part["n_agents"].iloc[0]),
                    "initial_consensus": part["initial_consensus"].iloc[0],
                }
                if "committed_from" in part:
                    late = part["committed_from"].fillna(0) > 0
                    if counted := int((late if tested is None else late & part.index.isin(tested)).sum()):
                        rows.append(where | _line("flips", counted, NOT_SIMULATED, note=LATE))
                    part = part[~late]
                found = conditions(part, self.options.window) if len(part) else []
                if tested is not None:
                    found = [kept for one in found if len((kept := one.of(tested)).runs)]
                rows += [where | row for row in self._tests(experiment, found)] if found else []
        return rows

    def _tests(self, experiment: str, real: list[Condition]) -> list[Row]:
        if self.unknown:
            counted = sum(len(condition.runs) for condition in real)
            return [_line("majority word", counted, NOT_SIMULATED, note=self.unknown)]
        played = [self._play(condition) for condition in real]
        rules = " or ".join(sorted({rule.text for p in played for rule in p.condition.runs["rule"]}))
        rows = []
        if experiment != "committed":
            rows.append(self._shares("majority word", played, [_word_of(p) for p in played], len(self.words)))
        if experiment != "from_empty":
            rows.append(self._shares("flips", played, [_flips_of(p) for p in played], 2))
            rows.append(self._distribution("success rate", played, "success_rate"))
        # Where all runs are cut at a fixed length their lengths tell nothing.
        if any(p.real.stopped.any() or p.simulated.stopped.any() for p in played):
            note = {"note": f"a run stops when it succeeds in: {rules}"}
            rows.append(self._distribution("time", played, "interactions") | note)
        if experiment == "committed":
            for p in played:
                rows.append(self._shares("flips", [p], [_flips_of(p)], 2) | {"n_committed": p.condition.n_committed})
        return rows

    def _play(self, condition: Condition) -> _Played:
        """Each real run's rule and greatest length are imitated as often as they occur."""
        real = condition.runs
        stops = [condition.stops[k % len(real)] for k in range(self.options.runs)]
        if isinstance(self.policies[0], LazyPolicy):
            # Runs that never agree have new memories without end. Beyond all real runs it matters little by how much.
            most = PATIENCE * int(real["interactions"].max())
            stops = [replace(stop, longest=min(stop.longest, most)) for stop in stops]
        parts: list[list[np.ndarray]] = []
        for k, policy in enumerate(self.policies):
            ends = []
            for stop in sorted(set(stops)):
                number = k * self.options.runs + np.flatnonzero([one == stop for one in stops])
                seed = (self.seed + condition.n_committed) % (LARGEST_SEED + 1)
                population = policy, condition.n_agents, condition.committed, condition.initial
                ends.append(play_real_runs(*population, stop, seed, number))
            parts.append([np.concatenate(values) for values in zip(*ends, strict=True)])
            if isinstance(policy, LazyPolicy):
                policy.forget()  # the answers of all draws take gigabytes
        majority = np.array([self.words.index(word) for word in real["majority_word_last_3N"]])
        columns = ("interactions", "success_last_3N", "majority_share_last_3N", "stopped")
        interactions, success, share, stopped = (real[column].to_numpy() for column in columns)
        simulated = Ends(*(np.stack(values) for values in zip(*parts, strict=True)))
        # The tables are rounded to four digits: equal values have to be equal.
        simulated = simulated._replace(success_rate=simulated.success_rate.round(4))
        return _Played(condition, Ends(interactions, success.round(4), majority, share, stopped), simulated, self.words)

    def _shares(
        self, quantity: str, played: list[_Played], outcomes: list[tuple[np.ndarray, np.ndarray]], n_outcomes: int
    ) -> Row:
        real, simulated = [r for r, _ in outcomes], [s for _, s in outcomes]
        statistic, p_value = outcome_test(real, simulated, n_outcomes, IMITATIONS, self.seed)
        n = sum(map(len, real))
        # Weighted like the real runs: conditions differ in how many there are.
        expected = [len(r) / s.size * np.bincount(s.ravel(), minlength=n_outcomes) for r, s in outcomes]
        shares = np.sum(expected, axis=0) / n
        shown = 1 if quantity == "flips" else int(np.argmax(shares))
        times = int((np.concatenate(real) == shown).sum())
        low, high = wilson_interval(np.array(times), n, self.options.level)
        note = "" if quantity == "flips" else f"predicted: {played[0].words[shown]}"
        numbers = {"observed": times / n, "predicted": float(shares[shown]), "low": float(low), "high": float(high)}
        return _line(quantity, n, self._verdict(n, p_value), statistic, p_value, note) | numbers

    def _distribution(self, quantity: str, played: list[_Played], field: str) -> Row:
        real = [getattr(p.real, field) for p in played]
        simulated = [getattr(p.simulated, field) for p in played]
        statistic, p_value = distribution_test(real, simulated, IMITATIONS, self.seed)
        n = sum(map(len, real))
        weights = np.concatenate([np.full(s.size, len(r) / s.size) for r, s in zip(real, simulated, strict=True)])
        values = np.concatenate([s.ravel() for s in simulated])
        order = np.argsort(values, kind="stable")
        middle = np.searchsorted(np.cumsum(weights[order]), n / 2 * (1 - 1e-12))
        numbers = {"observed": float(np.median(np.concatenate(real))), "predicted": float(values[order][middle])}
        return _line(quantity, n, self._verdict(n, p_value), statistic, p_value) | numbers

    def _verdict(self, n: int, p_value: float) -> str:
        if p_value < 1 - self.options.level:
            return DISAGREES
        return AGREES if n >= FEWEST_RUNS else TOO_FEW


def _drawn(policy: xr.Dataset | BackOffPolicy, options: Options, seed: int) -> list[xr.Dataset] | list[LazyPolicy]:
    """Policies drawn from the posterior, at a temperature lower by the sharpness."""
    sharpness = options.sharpness
    if isinstance(policy, BackOffPolicy):
        return [_sharpened_lazily(one, sharpness) for one in policy.sample(options.draws, seed)]
    drawn = sample_policies(policy, options.draws, seed)
    return [make_policy(_sharpened(one["q"].values, sharpness), words_of(one)) for one in drawn]


def _sharpened_lazily(policy: LazyPolicy, sharpness: float) -> LazyPolicy:
    def function(memories: list[Memory]) -> np.ndarray:
        return _sharpened(policy.function(memories), sharpness)

    return LazyPolicy(function, policy.words, policy.space.memory_length, name=policy.name)


def _sharpened(q: np.ndarray, sharpness: float) -> np.ndarray:
    """q^sharpness, each row normalised."""
    if sharpness == 1:
        return q
    with np.errstate(divide="ignore"):
        logs = sharpness * np.log(q)
    q = np.exp(logs - logs.max(1, keepdims=True))
    return q / q.sum(1, keepdims=True)


def _word_of(played: _Played) -> tuple[np.ndarray, np.ndarray]:
    return played.real.word, played.simulated.word


def _flips_of(played: _Played) -> tuple[np.ndarray, np.ndarray]:
    """Whether runs ended in agreement on another word than they started from. Source: [001] Methods."""
    old = -1 if played.condition.initial is None else played.words.index(played.condition.initial)
    flips = [((e.word != old) & (e.success_rate >= PAPERS_SUCCESS_RATE)).astype(int) for e in played[1:3]]
    return flips[0], flips[1]


def _line(
    quantity: str, runs: int, verdict: str, statistic: float = np.nan, p_value: float = np.nan, note: str = ""
) -> Row:
    unknown = dict.fromkeys(("observed", "predicted", "low", "high"), np.nan)
    tested = {"statistic": statistic, "p_value": p_value, "verdict": verdict, "note": note}
    return {"n_committed": -1, "quantity": quantity, "runs": runs} | unknown | tested
