"""Tests of whether all agents of real populations followed one policy, at all times.

Each statistic grows with one kind of departure from a policy q. Residuals are 1 (said) or 0 minus the word's
probability; for sharpness, log q(said) minus its mean. Given the past each has mean 0 under q, so its product with
anything known before is a martingale difference, even if what was said stops a run or returns an agent to a memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, check_memory, whole_number
from validation.populations._choice_model import Cells, Tilts, fit_tilts
from validation.populations._conditions import CONDITION
from validation.populations._empirical_policy import mean_of, posterior
from validation.populations._experiment import UNSAID, Experiment, as_table, each
from validation.populations._outcomes import AGREES, DISAGREES, TOO_FEW

ONE, NEAR = "one policy", "a tilt a run"
# Differences of log-odds and of sharpness that tests of variance are most powerful for: large groups count like others
TYPICAL = {"words": 0.3, "sharpness": 0.2}
PLAYERS = 2
Measure = Callable[["Residuals"], "Departure"]


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

    - First kind: differences between `experiments` (runs that began alike), between `runs` of an experiment, or along
      the `order of runs` in the table; in the sharpness β of choices by q^β, or in the policy in any memory. Imitations
      follow one policy.
    - Second kind: `time in a run`; `round`, a trend that all runs share; `next choice` in the same memory or in another
      one, and `partners`, who choose at once; `agents` of a run; the `first or second` player of an interaction; the
      words of `interaction H + 1` and `H + 1 to 2H` ago, which agents were no longer told. Here runs may differ:
      imitations follow q^β e^b with one β and one bias b a run (or a `period`), fitted as random effects.

    The p-value is the share of imitations, the real data among them, with a statistic at least as large: a parametric
    bootstrap, which is not exact because the policy is an estimate. In an imitation the same agents meet in the same
    order, with the same memories at the start and committed agents; the words of the others are drawn anew, and all is
    fitted again. Runs may stop when they agree although imitations do not. Tests of the second kind assume that runs
    differ in β and b alone: where the policy changes in a run, a `period` shorter than the changes helps.

    Parameters
    ----------
    populations, progress
        As in `cross_validate`.
    imitations
        Imitations for each of the two hypotheses, ≥ 1. The least p-value is 1 / (imitations + 1).
    period
        Interactions after which β and b of a run may change. Default: never.
    level
        Confidence of a verdict: 'disagrees' where the p-value is at most 1 - level.
    seed
        0 to 2^63 - 1. The result of a policy does not depend on the others.

    Returns
    -------
    DataFrame with a row for each test:

    - `model`, `pair`, `memory_length`; `compared` as above, and the `direction`: 'sharpness', 'policy' (words in each
      memory state by itself) or 'words' (over all memory states);
    - `null`, the hypothesis of the imitations; `number` of experiments, runs, agents, choices or pairs compared;
    - `effect`, a standard deviation of β or of log-odds, or a coefficient (per round; first less second player; per
      word remembered), in absolute value where it is not of memory; NaN for a drift;
    - `z`, the statistic minus its mean over imitations, in their standard deviations; `p_value`; `verdict` ('agrees',
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
    rows = [
        experiment.where | row
        for experiment in each(Experiment.all_of(populations), "one policy", progress)
        for row in _rows(experiment, imitations, period, level, seed)
    ]
    return as_table(rows, "one_policy", imitations=imitations, period=period or 0, level=level, seed=seed)


def _rows(experiment: Experiment, imitations: int, period: int | None, level: float, seed: int) -> list[dict]:
    if experiment.why_not:
        return [_row(ONE, "experiments", "policy", NOTHING, np.empty(0), level, experiment.why_not)]
    rows, run = [], experiment.run
    periods = run if period is None else np.unique([run, experiment.step // period], axis=1, return_inverse=True)[1]
    for null, tests in _tests(experiment).items():
        unit = np.zeros_like(run) if null == ONE else periods
        real = Residuals(experiment, null, unit, experiment.choices.states(), experiment.said.ravel())
        own = np.random.default_rng((experiment.seed(seed), null == NEAR))
        imitated = []
        for stream in own.integers(LARGEST_SEED, size=imitations):
            played = experiment.imitate(real.log_q, *real.tilts, unit, stream)
            residuals = Residuals(experiment, null, unit, *played, real.concentrations)
            imitated.append([measure(residuals).statistic for measure in tests.values()])
        for (test, measure), others in zip(tests.items(), np.transpose(imitated), strict=True):
            rows.append(_row(null, *test, measure(real), others, level))
    return rows


def _tests(experiment: Experiment) -> dict[str, dict[tuple[str, str], Measure]]:
    """The tests of each hypothesis, by the compared quantity and the direction."""
    run, agent, H, size = experiment.run_of, experiment.agent_of, experiment.memory_length, experiment.space.n_states
    start, condition, all_of_them = experiment.alike()[run], experiment.alike(CONDITION)[run], np.zeros_like(run)
    order, first = np.argsort(condition, kind="stable"), 0.5 - experiment.free % PLAYERS
    rounds = experiment.step_of / experiment.runs["n_agents"].to_numpy()[run]
    forgotten = experiment.past(range(H + 1, 2 * H + 1))
    meeting = experiment.free // PLAYERS
    partner = np.flatnonzero(meeting[1:] == meeting[:-1])

    def both(compared: str, measure: Callable[..., Departure], **given: np.ndarray) -> dict[tuple[str, str], Measure]:
        return {(compared, to): partial(measure, direction=to, **given) for to in ("sharpness", "words")}

    return {
        ONE: {
            ("experiments", "sharpness"): lambda r: apart(r, "sharpness", start, all_of_them),
            ("experiments", "policy"): lambda r: apart(r, "words", start * size + r.state, r.state),
            ("runs", "sharpness"): lambda r: apart(r, "sharpness", run, start),
            ("runs", "policy"): lambda r: apart(r, "words", run * size + r.state, start * size + r.state),
            **both("order of runs", drift, group=condition, order=order),
        },
        NEAR: {
            **both("time in a run", drift, group=run, order=np.arange(len(run))),
            ("next choice, same memory", "words"): lambda r: alike(r, *next_choices(r, same_memory=True)),
            ("next choice, other memory", "words"): lambda r: alike(r, *next_choices(r, same_memory=False)),
            ("partners", "words"): lambda r: alike(r, partner, partner + 1),
            **both("round", trend, covariate=rounds),
            **both("agents", apart, group=agent, parent=run),
            **both("first or second", trend, covariate=first),
            ("interaction H + 1", "words"): lambda r: echo(r, forgotten[:1]),
            ("H + 1 to 2H", "words"): lambda r: echo(r, forgotten),
        },
    }


def _row(
    null: str, compared: str, direction: str, real: Departure, others: np.ndarray, level: float, note: str = ""
) -> dict:
    """`others` are the statistics of imitations; one that is undefined is not a departure."""
    told = {"compared": compared, "direction": direction, "null": null, "number": real.number}
    if np.isnan(real.statistic):
        unknown = dict.fromkeys(("effect", "z", "p_value"), np.nan)
        return told | unknown | {"verdict": TOO_FEW, "note": note or "nothing to compare"}
    p_value = (1 + np.sum(others >= real.statistic)) / (1 + len(others))
    others = others[~np.isnan(others)]
    z = (real.statistic - others.mean()) / others.std() if len(others) > 1 and others.std() > 0 else np.nan
    numbers = {"effect": float(real.effect), "z": float(z), "p_value": float(p_value)}
    return told | numbers | {"verdict": DISAGREES if p_value <= 1 - level else AGREES, "note": note}


class Departure(NamedTuple):
    """Deviation of choices from a policy in one way."""

    statistic: float  # grows with it
    effect: float  # its size, in log-odds or sharpness
    number: int  # of things that were compared


NOTHING = Departure(np.nan, np.nan, 0)


class Residuals:
    """Residuals of choices in memory states under the policy, or tilts of it, that fits them best; over `choice`.

    The concentrations of a known estimate are kept.
    """

    def __init__(
        self,
        experiment: Experiment,
        null: str,
        unit: np.ndarray,
        states: np.ndarray,
        said: np.ndarray,
        concentrations: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.experiment, self.said, self.state = experiment, said, states
        units, n_words, chosen = int(unit.max()) + 1, len(experiment.words), said[experiment.free]
        cells = Cells.group(unit[experiment.free // PLAYERS], states, chosen, n_words)
        counts = cells.by_state(experiment.space.n_states)
        alpha, self.concentrations = posterior(counts, experiment.space, concentrations)
        log_q = self.log_q = np.log(mean_of(alpha))
        untilted = Tilts(np.ones(units), np.zeros((units, n_words)))
        self.tilts = fit_tilts(log_q, cells, units) if null == NEAR else untilted
        logs = log_q[cells.state].T.copy()
        p = self.tilts.probabilities(cells.unit, logs)
        centred = logs - (p * logs).sum(0)
        self.p = p[:, cells.of]  # (word, choice)
        words = (chosen == np.arange(n_words)[:, None]) - self.p
        sharpness, spread = centred[chosen, cells.of], (p * centred**2).sum(0)[cells.of]
        # (direction, choice): one direction a word, or the one of sharpness
        self.of = {"words": (words, self.p * (1 - self.p)), "sharpness": (sharpness[None], spread[None])}


def _sums(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of values (direction, choice) by the group of each choice, (direction, group)."""
    return np.stack([np.bincount(group, one, minlength=n_groups) for one in values])


def _fraction(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """0 where the denominator is."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def apart(residuals: Residuals, direction: str, group: np.ndarray, parent: np.ndarray) -> Departure:
    """Score test of a variance: sums over `group` (choice,) vary more than expected within their `parent` (choice,)."""
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    _, above = np.unique(parent[first], return_inverse=True)
    several = np.bincount(above)[above] > 1
    S, V = (_sums(of, one, len(first)) for one in residuals.of[direction])
    S_above, V_above = (_sums(above, one, above.max() + 1)[:, above] for one in (S, V))
    share = _fraction(V, V_above)
    S, V = S - share * S_above, V * (1 - share)
    weight = 1 / (1 + TYPICAL[direction] ** 2 * V) ** 2
    top, square = (weight * (S**2 - V)).sum(), (weight**2 * V**2).sum()
    if not several.any() or square <= 0:
        return NOTHING
    effect = np.sqrt(max(0.0, top) / (weight * V**2).sum())
    return Departure(top / np.sqrt(2 * square), float(effect), int(several.sum()))


def drift(residuals: Residuals, direction: str, group: np.ndarray, order: np.ndarray) -> Departure:
    """Bridge of sums over `group` (choice,), in the given `order` of choices: mean square distance from its chord."""
    group = group[order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    lengths = np.diff(np.append(starts, len(group)))
    S, V = (one[:, order] for one in residuals.of[direction])
    sum_S, sum_V = (np.add.reduceat(one, starts, axis=1) for one in (S, V))
    repeated = partial(np.repeat, repeats=lengths, axis=1)
    # Within each group: the running sum minus what the others before it left
    run_S, run_V = (np.cumsum(one, 1) - repeated(np.cumsum(sums, 1) - sums) for one, sums in ((S, sum_S), (V, sum_V)))
    known, scale = sum_V > 0, np.where(sum_V > 0, sum_V, 1)
    bridge = run_S - run_V / repeated(scale) * repeated(sum_S)
    # In the clock of the variance: stretches where all say the same do not count.
    squares = np.add.reduceat(bridge**2 * V, starts, axis=1) / scale**2
    number = int(known[-1].sum())
    return Departure(squares[known].sum(), np.nan, number) if number else NOTHING


def alike(residuals: Residuals, first: np.ndarray, second: np.ndarray) -> Departure:
    """Deviation of pairs of choices from the policy in the same direction."""
    shared, information = (float((one[:, first] * one[:, second]).sum()) for one in residuals.of["words"])
    if information <= 0:
        return NOTHING
    effect = np.sqrt(max(0.0, shared) / information)
    return Departure(shared / np.sqrt(information), float(effect), len(first))


def trend(residuals: Residuals, direction: str, covariate: np.ndarray) -> Departure:
    """Score test of a coefficient of a covariate (choice,), compared within runs."""
    run, (values, variances) = residuals.experiment.run_of, residuals.of[direction]
    n_runs = int(run.max()) + 1
    mean = _fraction(_sums(run, variances * covariate, n_runs), _sums(run, variances, n_runs))
    centred = covariate - mean[:, run]
    U, information = (centred * values).sum(1), (centred**2 * variances).sum(1)
    U, information = U[information > 0], information[information > 0]
    if not len(U):
        return NOTHING
    return Departure((U**2 / information).sum(), float(np.sqrt(np.mean((U / information) ** 2))), len(run))


def echo(residuals: Residuals, past: np.ndarray) -> Departure:
    """Score test of a coefficient: does a choice repeat words, own or partner's, of these slots (lag, choice)?"""
    known = past != UNSAID
    # Own word and partner's, of the other slot of the interaction
    said = [residuals.said[past], residuals.said[past ^ 1]]
    heard = np.stack([sum(((one == word) & known).sum(0) for one in said) for word in range(len(residuals.p))])
    mean = (residuals.p * heard).sum(0)
    U = (residuals.of["words"][0] * heard).sum()
    information = (residuals.p * heard**2).sum() - (mean**2).sum()
    if information <= 0:
        return NOTHING
    return Departure(float(U**2 / information), float(U / information), int(known.any(0).sum()))


def next_choices(residuals: Residuals, same_memory: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of choices of different agents of a run: the next in a memory state, or the next elsewhere."""
    e, state, lag = residuals.experiment, residuals.state, 1 if same_memory else PLAYERS
    order = np.lexsort((state, e.run_of)) if same_memory else np.arange(len(state))
    first, second = order[:-lag], order[lag:]
    run, agent, step, memory = (one[first] == one[second] for one in (e.run_of, e.agent_of, e.step_of, state))
    pairs = run & ~agent & (memory == same_memory) & (same_memory | ~step)
    return first[pairs], second[pairs]
