"""Tests of whether all agents of real populations followed one policy, at all times."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, check_memory, whole_number
from validation.populations._choices import ordered_subjects
from validation.populations._conditions import CONDITION
from validation.populations._departures import (
    NOTHING,
    Departure,
    Residuals,
    alike,
    apart,
    drift,
    echo,
    next_elsewhere,
    next_in_memory,
    partners,
    trend,
)
from validation.populations._empirical_policy import posterior_mean
from validation.populations._schedule import Schedule
from validation.populations._subject import AGREES, DISAGREES, TOO_FEW, Row
from validation.populations._tilts import Cells, Tilts, fit_tilts

ONE, NEAR = "one policy", "a tilt a run"


class _Test(NamedTuple):
    """A comparison, its direction and its null hypothesis."""

    compared: str
    direction: str
    measure: Callable[[Residuals], Departure]


def one_policy(
    populations: RealPopulations,
    *,
    imitations: int = 199,
    period: int | None = None,
    level: float = 0.99,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Test whether all agents of each model, pair and memory length followed one policy, in all runs at all times.

    Under one policy q a choice depends on the agent's memory state only. Each test has a statistic that grows where
    choices depend on something else too:

    - `experiments` (runs that began alike), `runs` of an experiment, and `order of runs` as in the table of runs: in
      sharpness β, choices by q^β; or in the policy for any memory. Imitations follow one policy.
    - `time in a run`; `round`, a trend that all runs share; `next choice` in the same memory or in another one, and
      `partners`, who choose at once; `agents` of a run; the `first or second` player of an interaction; the words of
      `interaction H + 1` and `H + 1 to 2H` ago, which agents were no longer told. Here runs may differ: imitations
      follow q^β e^b with one β and one bias b a run (or a `period`), fitted as random effects.

    The p-value is the share of imitations, the real data among them, with a statistic at least as large: a parametric
    bootstrap. In an imitation the same agents meet in the same order, with the same memories at the start and the same
    committed agents; the words of the others are drawn anew, and all is fitted again. The p-values are not exact, since
    the policy of the imitations is an estimate. Residuals are martingale differences under the hypothesis, so runs may
    stop when they agree although imitations do not. Tests of the second kind assume that runs differ in β and b alone:
    where the policy changes in a run, the others of them mean little, and a `period` shorter than the changes helps.

    Parameters
    ----------
    populations
        Runs in order: `meanfield.datasets.ai_norms(ordered=True)` or `meanfield.datasets.from_events`.
    imitations
        Imitations of all runs for each of the two hypotheses, ≥ 1. The least p-value is 1 / (imitations + 1).
    period
        Interactions after which β and b of a run may change. Default: never.
    level
        Confidence of a verdict: 'disagrees' where the p-value is at most 1 - level.
    seed
        0 to 2^63 - 1. The result of a policy does not depend on the others.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame with a row for each test:

    - `model`, `pair`, `memory_length`; `compared` as above, and the `direction`: 'sharpness', 'policy' (words in each
      memory state by itself) or 'words' (over all memory states);
    - `null`, the hypothesis of the imitations; `number` of experiments, runs, agents, choices or pairs compared;
    - `effect`, the size of the departure: a standard deviation of β or of log-odds, or a coefficient (per round; first
      less second player; per word remembered), in absolute value where it is not of memory; NaN for a drift;
    - `z`, the statistic less its mean over imitations, in their standard deviations; `p_value`; `verdict` ('agrees',
      'disagrees', 'too few data'); `note`.

    Raises
    ------
    InputError
        If the runs are not in order, a table is damaged, or a number is out of range.

    See Also
    --------
    sharpness : of each run and experiment, with intervals
    mixture : several policies, where one is rejected

    Examples
    --------
    Four runs of agents who say A in nine of ten cases, and four of agents who say B as often:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    >>> chance = np.where(table[["run"]] < 4, 0.9, 0.1)
    >>> table[["said", "heard"]] = np.where(rng.random((320, 2)) < chance, "A", "B")
    >>> real = meanfield.datasets.from_events(table, memory_length=1)
    >>> tests = validation.populations.one_policy(real, imitations=99)
    >>> tests.loc[tests["compared"] == "runs", ["compared", "direction", "number", "p_value", "verdict"]]
      compared  direction  number  p_value    verdict
    2     runs  sharpness       8     0.03     agrees
    3     runs     policy      36     0.01  disagrees
    """
    imitations, seed = whole_number("imitations", imitations, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    check_memory(64 * imitations, f"imitations = {imitations}", "fewer imitations")
    period = None if period is None else whole_number("period", period, 1)
    check_level(level)
    rows: list[Row] = []
    for subject, runs, events in tqdm(
        ordered_subjects(populations), desc="one policy", unit="policy", disable=not progress, leave=False
    ):
        where = {"model": subject[0], "pair": subject[1].replace("_", "/"), "memory_length": subject[2]}
        rows += [where | row for row in _rows(subject, runs, events, imitations, period, level, seed)]
    result = pd.DataFrame(rows)
    settings = {"imitations": imitations, "period": period or 0, "level": level, "seed": seed}
    result.attrs = {"kind": "one_policy", **settings}
    return result


def _rows(
    subject: tuple[str, str, int],
    runs: pd.DataFrame,
    events: pd.DataFrame,
    imitations: int,
    period: int | None,
    level: float,
    seed: int,
) -> list[Row]:
    try:
        schedule = Schedule.read(runs, events)
    except InputError as error:
        return [_row("experiments", "policy", ONE, NOTHING, [], level, f"{error}")]
    own = (seed + zlib.crc32("\0".join(map(str, subject)).encode())) % (LARGEST_SEED + 1)
    rows = []
    for null, tests, unit in (
        (ONE, _between_runs(schedule), np.zeros(len(schedule.run), dtype=np.int64)),
        (NEAR, _within_runs(schedule), periods(schedule, period)),
    ):
        model = _Model(schedule, unit, tilted=null == NEAR)
        real = [test.measure(model.residuals) for test in tests]
        streams = np.random.default_rng((own, null == NEAR)).integers(LARGEST_SEED, size=imitations)
        imitated = [[test.measure(one).statistic for test in tests] for one in map(model.imitation, streams)]
        for k, (test, departure) in enumerate(zip(tests, real, strict=True)):
            rows.append(_row(*test[:2], null, departure, [one[k] for one in imitated], level))
    return rows


def periods(schedule: Schedule, period: int | None) -> np.ndarray:
    """Number of the run, or of the period of a run, of each interaction."""
    if period is None:
        return schedule.run
    parts = schedule.step // period
    return np.unique(schedule.run * (int(parts.max()) + 1) + parts, return_inverse=True)[1]


class _Model:
    """The policy, or tilts of it, that choices fit best; residuals of these choices and of imitations."""

    def __init__(self, schedule: Schedule, unit: np.ndarray, tilted: bool) -> None:
        self.schedule, self.unit, self.tilted = schedule, unit, tilted
        self.units = int(unit.max()) + 1
        self.concentrations: tuple[np.ndarray, np.ndarray] | None = None
        self.log_q, self.tilts, self.residuals = self._fit(schedule.states(), schedule.said.ravel())

    def imitation(self, seed: int) -> Residuals:
        states, said = self.schedule.imitate(self.log_q, *self.tilts, self.unit, seed)
        return self._fit(states, said)[2]

    def _fit(self, states: np.ndarray, said: np.ndarray) -> tuple[np.ndarray, Tilts, Residuals]:
        space, n_words = self.schedule.space, len(self.schedule.words)
        chosen = said[self.schedule.free]
        n = np.bincount(states * n_words + chosen, minlength=space.n_states * n_words).reshape(-1, n_words)
        q, self.concentrations = posterior_mean(n.astype(float), space, self.concentrations)
        log_q = np.log(q)
        cells = Cells.group(np.repeat(self.unit, 2)[self.schedule.free], states, chosen, n_words)
        tilts = fit_tilts(log_q, cells, self.units) if self.tilted else Tilts.none(self.units, n_words)
        return log_q, tilts, Residuals(self.schedule, said, log_q, cells, tilts)


def _between_runs(schedule: Schedule) -> list[_Test]:
    run, size = schedule.run_of, schedule.space.n_states
    experiment, all_of_them = schedule.experiment[run], np.zeros(len(run), dtype=np.int64)
    condition = schedule.runs.groupby(CONDITION, sort=True).ngroup().to_numpy()[run]
    order = np.argsort(condition, kind="stable")
    return [
        _Test("experiments", "sharpness", lambda r: apart(r, "sharpness", experiment, all_of_them)),
        _Test("experiments", "policy", lambda r: apart(r, "words", experiment * size + r.state, r.state)),
        _Test("runs", "sharpness", lambda r: apart(r, "sharpness", run, experiment)),
        _Test("runs", "policy", lambda r: apart(r, "words", run * size + r.state, experiment * size + r.state)),
        _Test("order of runs", "sharpness", lambda r: drift(r, "sharpness", condition, order)),
        _Test("order of runs", "words", lambda r: drift(r, "words", condition, order)),
    ]


def _within_runs(schedule: Schedule) -> list[_Test]:
    run, agent = schedule.run_of, schedule.agent_of
    order = np.arange(len(run))
    rounds = schedule.step_of / schedule.runs["n_agents"].to_numpy()[run]
    first = 0.5 - schedule.free % 2
    return [
        _Test("time in a run", "sharpness", lambda r: drift(r, "sharpness", run, order)),
        _Test("time in a run", "words", lambda r: drift(r, "words", run, order)),
        _Test("next choice, same memory", "words", lambda r: alike(r, *next_in_memory(r))),
        _Test("next choice, other memory", "words", lambda r: alike(r, *next_elsewhere(r))),
        _Test("partners", "words", lambda r: alike(r, *partners(r))),
        _Test("round", "sharpness", lambda r: trend(r, "sharpness", rounds)),
        _Test("round", "words", lambda r: trend(r, "words", rounds)),
        _Test("agents", "sharpness", lambda r: apart(r, "sharpness", agent, run)),
        _Test("agents", "words", lambda r: apart(r, "words", agent, run)),
        _Test("first or second", "sharpness", lambda r: trend(r, "sharpness", first)),
        _Test("first or second", "words", lambda r: trend(r, "words", first)),
        _Test("interaction H + 1", "words", lambda r: echo(r, slice(0, 1))),
        _Test("H + 1 to 2H", "words", lambda r: echo(r, slice(0, None))),
    ]


def _row(
    compared: str, direction: str, null: str, real: Departure, imitated: list[float], level: float, note: str = ""
) -> Row:
    """`imitated` has statistics; one that is undefined is no departure."""
    told: Row = {"compared": compared, "direction": direction, "null": null, "number": real.number}
    if np.isnan(real.statistic):
        unknown = dict.fromkeys(("effect", "z", "p_value"), np.nan)
        return told | unknown | {"verdict": TOO_FEW, "note": note or "nothing to compare"}
    others = np.array(imitated)
    reached = (others >= real.statistic).sum()
    p_value = (1 + reached) / (1 + len(others))
    others = others[~np.isnan(others)]
    z = (real.statistic - others.mean()) / others.std() if len(others) > 1 and others.std() > 0 else np.nan
    numbers = {"effect": float(real.effect), "z": float(z), "p_value": float(p_value)}
    return told | numbers | {"verdict": DISAGREES if p_value <= 1 - level else AGREES, "note": note}
