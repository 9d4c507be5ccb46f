"""How many policies the runs of real populations had, and which one when."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, whole_number
from validation.populations._choices import ordered_subjects
from validation.populations._empirical_policy import posterior_mean
from validation.populations._hidden_policies import Held, Mixture, Observed, filtered, fit_mixture
from validation.populations._schedule import Schedule
from validation.populations._subject import Row
from validation.populations._tilts import Cells, fit_tilts

FOLDS = 5
STARTS = 2
MOST = 20
FROM = ["experiment", "n_agents", "initial_consensus", "committed_word", "n_committed", "run"]


class Mixtures(NamedTuple):
    """Result of `mixture`: four tables."""

    numbers: pd.DataFrame
    components: pd.DataFrame
    runs: pd.DataFrame
    stretches: pd.DataFrame


def mixture(
    populations: RealPopulations, *, period: int | None = None, most: int = 8, seed: int = 0, progress: bool = False
) -> Mixtures:
    """Describe the choices of each model, pair and memory length by several policies, of which one holds at a time.

    A run draws one of K policies, and after each `period` it keeps it or, with one probability for all, draws anew.
    Without a period each run has one policy. The policies have the prior of `empirical_policy`, and all is estimated by
    EM. K is judged by runs that were held out (one fifth at a time): each choice is predicted from the earlier ones of
    its run, which tell which policy holds. The smallest K is chosen whose log-likelihood there is within one standard
    error, over runs, of the best.

    Parameters
    ----------
    populations
        Runs in order: `meanfield.datasets.ai_norms(ordered=True)` or `meanfield.datasets.from_events`.
    period
        Interactions after which a run may change its policy. Default: never.
    most
        The largest K that is tried, 1 to 20. None is tried beyond one that does worse than one policy less.
    seed
        0 to 2^63 - 1, of the folds and the starts of EM. The result of a model and pair does not depend on the others.
    progress
        Show a progress bar.

    Returns
    -------
    Four tables. All begin with `model`, `pair` and `memory_length`; policies that cannot be tabulated are left out.

    - `numbers`: a row for each K: `components`; `log_likelihood` per held-out choice; `gain`, the log-likelihood of all
      held-out choices less that of one policy, and its standard error `gain_error`; `chosen`.
    - `components`: a row for each policy of the chosen K, the most frequent first: `component`; the `share` of choices;
      its `sharpness`, beside a mean of 1; `length`, the mean number of interactions until a policy is
      drawn anew, infinite without a period.
    - `runs`: a row for each run: its condition, `choices`, the `component` that held most, the `share` of its choices,
      and the expected number of `draws` of a policy.
    - `stretches`: a row for each time that one policy probably held, from one change point to the next: `run`, the
      steps `start` and `stop` (the first after it), `component`, and its mean `probability`.

    Raises
    ------
    InputError
        If the runs are not in order, a table is damaged, a number is out of range, or no policy can be tabulated.

    See Also
    --------
    one_policy : whether one suffices

    Examples
    --------
    Twelve runs of agents who say A in nine of ten cases, and eight of agents who say B as often:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(20), 40), "step": np.tile(range(40), 20)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(800)]
    >>> chance = np.where(table[["run"]] < 12, 0.9, 0.1)
    >>> table[["said", "heard"]] = np.where(rng.random((800, 2)) < chance, "A", "B")
    >>> found = validation.populations.mixture(meanfield.datasets.from_events(table, memory_length=1))
    >>> found.numbers[["components", "gain", "chosen"]].round()
       components   gain  chosen
    0           1    0.0   False
    1           2  179.0    True
    2           3  175.0   False
    >>> found.runs["component"].tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    period = None if period is None else whole_number("period", period, 1)
    most, seed = whole_number("most", most, 1, MOST), whole_number("seed", seed, 0, LARGEST_SEED)
    numbers: list[Row] = []
    components: list[Row] = []
    runs: list[Row] = []
    stretches: list[Row] = []
    reason = ""
    for subject, table, events in tqdm(
        ordered_subjects(populations), desc="mixture", unit="policy", disable=not progress, leave=False
    ):
        try:
            schedule = Schedule.read(table, events)
        except InputError as error:
            reason = f"{error}"
            continue
        where = {"model": subject[0], "pair": subject[1].replace("_", "/"), "memory_length": subject[2]}
        own = (seed + zlib.crc32("\0".join(map(str, subject)).encode())) % (LARGEST_SEED + 1)
        observed = _observed(schedule, period)
        judged = _judged(observed, most, own)
        chosen = next(int(row["components"]) for row in judged if row["chosen"])  # type: ignore[call-overload]
        best, held = _best(observed, chosen, np.random.default_rng((own, 0)))
        order = np.argsort(-_times(observed, held).sum(0), kind="stable")
        numbers += [where | row for row in judged]
        components += [where | row for row in _components(observed, best, held, order, period)]
        runs += [where | row for row in _runs(schedule, observed, held, order)]
        stretches += [where | row for row in _stretches(schedule, observed, held, order, period)]
    if not numbers:
        raise InputError(f"populations: {reason}")
    tables = [pd.DataFrame(rows) for rows in (numbers, components, runs, stretches)]
    for table, kind in zip(tables, Mixtures._fields, strict=True):
        table.attrs = {"kind": f"mixture_{kind}", "period": period or 0, "seed": seed}
    return Mixtures(*tables)


def _observed(schedule: Schedule, period: int | None) -> Observed:
    states, n_words = schedule.states(), len(schedule.words)
    chosen = schedule.said.ravel()[schedule.free]
    part = schedule.step_of // period if period else np.zeros(len(chosen), dtype=np.int64)
    runs, periods = len(schedule.runs), int(part.max(initial=0)) + 1
    last = np.zeros(runs, dtype=np.int64)
    np.maximum.at(last, schedule.run_of, part)
    cells = Cells.group(schedule.run_of * periods + part, states, chosen, n_words)
    n = np.stack([np.bincount(cells.state, one, minlength=schedule.space.n_states) for one in cells.counts], axis=1)
    known = np.arange(periods) <= last[:, None]
    return Observed(schedule.space, cells, runs, periods, known, posterior_mean(n, schedule.space)[1])


def _judged(observed: Observed, most: int, seed: int) -> list[Row]:
    """A row for each number of components."""
    choices = observed.cells.counts.sum()
    if observed.runs == 1:
        unknown = {"log_likelihood": np.nan, "gain": np.nan, "gain_error": np.nan}
        row: Row = {"components": 1, **unknown, "chosen": True}
        return [row]
    fold = np.random.default_rng((seed, 1)).permutation(observed.runs) % min(FOLDS, observed.runs)
    held_out: list[np.ndarray] = []
    while len(held_out) < most and (len(held_out) < 2 or held_out[-1].sum() > held_out[-2].sum()):
        k, score = len(held_out), np.empty(observed.runs)
        for number in range(fold.max() + 1):
            fitted = _best(observed.only(fold != number), k + 1, np.random.default_rng((seed, 2, k, number)))[0]
            score[fold == number] = filtered(observed, fitted).log_likelihood[fold == number]
        held_out.append(score)
    scores = np.array(held_out)
    gains = scores - scores[0]
    best = int(np.argmax(scores.sum(1)))
    close = scores[best].sum() - scores.sum(1) <= _error(scores[best] - scores)
    chosen = int(np.argmax(close))
    rows: list[Row] = []
    for k, (score, gain, error) in enumerate(zip(scores.sum(1) / choices, gains.sum(1), _error(gains), strict=True)):
        numbers = {"log_likelihood": score, "gain": gain, "gain_error": error, "chosen": k == chosen}
        rows.append({"components": k + 1} | numbers)
    return rows


def _error(differences: np.ndarray) -> np.ndarray:
    """Standard error of sums over runs, of (…, run)."""
    runs = differences.shape[-1]
    return np.std(differences, axis=-1, ddof=1) * np.sqrt(runs)


def _best(observed: Observed, n_components: int, random: np.random.Generator) -> tuple[Mixture, Held]:
    """The most probable of several starts."""
    starts = STARTS if n_components > 1 else 1
    fits = [fit_mixture(observed, n_components, random) for _ in range(starts)]
    return max(fits, key=lambda fit: float(fit[1].log_likelihood.sum()))


def _times(observed: Observed, held: Held) -> np.ndarray:
    """Choices that each policy made in each run, (run, component)."""
    cells = observed.cells
    of = cells.counts.sum(0)[:, None] * held.weights.reshape(-1, held.weights.shape[2])[cells.unit]
    return np.stack([np.bincount(cells.unit // observed.periods, one, minlength=observed.runs) for one in of.T], axis=1)


def _components(observed: Observed, fitted: Mixture, held: Held, order: np.ndarray, period: int | None) -> list[Row]:
    times = _times(observed, held).sum(0)
    cells, n_states = observed.cells, observed.space.n_states
    weights = held.weights.reshape(-1, held.weights.shape[2])[cells.unit]
    n = np.stack(
        [[np.bincount(cells.state, w * one, minlength=n_states) for one in cells.counts] for w in weights.T[order]]
    )  # (component, word, state)
    every = n.sum(0).T
    log_q = np.log(posterior_mean(every, observed.space, observed.concentrations)[0])
    unit, state = np.nonzero(n.sum(1))
    cells = Cells(unit, state, np.zeros(0, dtype=np.int64), n[unit, :, state].T)
    sharp = fit_tilts(log_q, cells, len(order)).sharpness
    # Shrinkage alone makes the policy of all choices less sharp than these.
    sharp /= np.average(sharp, weights=times[order])
    length = period / fitted.change if period and len(order) > 1 else np.inf
    return [
        {
            "component": k,
            "share": times[place] / times.sum(),
            "sharpness": sharp[k],
            "length": length,
        }
        for k, place in enumerate(order)
    ]


def _runs(schedule: Schedule, observed: Observed, held: Held, order: np.ndarray) -> list[Row]:
    times = _times(observed, held)[:, order]
    draws = (held.drawn * observed.known[:, :, None]).sum((1, 2))
    rows = []
    for number, row in enumerate(schedule.runs[FROM].to_dict("records")):
        total, k = times[number].sum(), int(np.argmax(times[number]))
        share = times[number, k] / total if total else np.nan
        rows.append(row | {"choices": round(total), "component": k, "share": share, "draws": draws[number]})
    return rows


def _stretches(schedule: Schedule, observed: Observed, held: Held, order: np.ndarray, period: int | None) -> list[Row]:
    rows: list[Row] = []
    for number, name in enumerate(schedule.runs["run"].tolist()):
        steps = schedule.named[schedule.run == number]
        weights = held.weights[number, observed.known[number]][:, order]
        components = weights.argmax(1)
        changes = np.flatnonzero(np.diff(components, prepend=-1))
        for start, stop in zip(changes, [*changes[1:], len(weights)], strict=True):
            k = components[start]
            end = steps[-1] + 1 if stop == len(weights) else steps[stop * (period or 1)]
            told = {"run": name, "start": int(steps[start * (period or 1)]), "stop": int(end), "component": int(k)}
            rows.append(told | {"probability": float(weights[start:stop, k].mean())})
    return rows
