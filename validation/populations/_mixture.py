"""Number of policies that the runs of real populations had, and which one when: a hidden Markov model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield import MemorySpace
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, whole_number
from validation.populations._choice_model import Cells, fit_tilts
from validation.populations._empirical_policy import mean_of, posterior
from validation.populations._experiment import Experiment, as_table, each

FOLDS = 5
STARTS = 2
MOST = 20
MOST_STEPS = 60
FEWEST_STEPS = 10
GAIN = 0.1  # of the log-likelihood in one step, below which the estimate has settled
FIRST_CHANGE = 0.1
CERTAINTY = 0.3  # Dirichlet parameter of random starts
BOUNDS = (1e-4, 1.0)  # of the probability of a change
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
    """Describe the choices of each model, pair and memory length by several policies, one at a time.

    A run draws one of K policies, and after each `period` it keeps it or, with one probability for all, draws anew.
    Without a period each run has one policy. The policies have the prior of `empirical_policy`, and all is estimated by
    EM. K is judged by runs that were held out (one fifth at a time): each choice is predicted from the earlier ones of
    its run, which tell which policy holds. The smallest K is chosen whose log-likelihood there is within one standard
    error, over runs, of the best.

    Parameters
    ----------
    populations, progress
        As in `cross_validate`.
    period
        Interactions after which a run may change its policy. Default: never.
    most
        The largest K that is tried, 1 to 20. None is tried beyond one that does worse than one policy less.
    seed
        0 to 2^63 - 1, of the folds and the starts of EM. The result of a model and pair does not depend on the others.

    Returns
    -------
    Four tables that begin with `model`, `pair` and `memory_length`. Policies that cannot be tabulated are left out.

    - `numbers`, a row for each K: `components`; `log_likelihood` per held-out choice; `gain` of all held-out
      choices over one policy, and its standard error `gain_error`; `chosen`.
    - `components`, a row for each policy of the chosen K, the most frequent first: `component`; `share` of choices;
      `sharpness`, beside a mean of 1; `length`, the mean number of interactions until a policy is drawn anew.
    - `runs`: the condition of each, `choices`, the `component` that held most, the `share` of its choices, and the
      expected number of `draws` of a policy.
    - `stretches`, a row for each time that one policy probably held: `run`, the steps `start` and `stop` (the first
      after it), `component`, and its mean `probability`.

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
    found = [
        (one.where, _described(one, period, most, one.seed(seed)))
        for one in each(Experiment.all_of(populations, tabulable=True), "mixture", progress)
    ]
    rows = ([where | row for where, tables in found for row in tables[k]] for k in range(len(Mixtures._fields)))
    kinds = (f"mixture_{name}" for name in Mixtures._fields)
    return Mixtures(*(as_table(*table, period=period or 0, seed=seed) for table in zip(rows, kinds, strict=True)))


def _described(experiment: Experiment, period: int | None, most: int, seed: int) -> tuple[list[dict], ...]:
    """Rows of the four tables."""
    observed = _observed(experiment, period)
    judged = _judged(observed, most, seed)
    number = next(row["components"] for row in judged if row["chosen"])
    fitted, held = _best(observed, number, np.random.default_rng((seed, 0)))
    cells, times = observed.cells, np.zeros((observed.runs, number))  # choices that each policy made in each run
    made = cells.counts.sum(0)[:, None] * held.weights.reshape(-1, number)[cells.unit]
    np.add.at(times, cells.unit // observed.periods, made)
    order = np.argsort(-times.sum(0), kind="stable")
    times, weights, drawn = times[:, order], held.weights[:, :, order], held.drawn[:, :, order]
    n, total = observed.by_state(weights), times.sum(0)
    log_q = np.log(mean_of(posterior(n.sum(0), observed.space, observed.concentrations)[0]))
    unit, state = np.nonzero(n.sum(2))
    sharp = fit_tilts(log_q, Cells(unit, state, np.zeros(0, dtype=np.int64), n[unit, state].T), number).sharpness
    components = {"component": np.arange(number), "share": total / total.sum()}
    # Shrinkage alone makes the policy of all choices less sharp than these.
    components |= {"sharpness": sharp / np.average(sharp, weights=total)}
    components |= {"length": period / fitted.change if period and number > 1 else np.inf}
    with np.errstate(invalid="ignore"):
        runs = {"choices": times.sum(1).round().astype(int), "component": times.argmax(1)}
        runs |= {"share": times.max(1) / times.sum(1), "draws": (drawn * observed.known[:, :, None]).sum((1, 2))}
    stretches = []
    for k, name in enumerate(experiment.runs["run"].tolist()):
        holding, steps = weights[k, observed.known[k]], experiment.named[experiment.run == k]
        steps = np.append(steps[:: period or len(steps)], steps[-1] + 1)  # starts of periods, and the end
        best = holding.argmax(1)
        changes = np.flatnonzero(np.diff(best, prepend=-1))
        for start, stop in zip(changes, [*changes[1:], len(best)], strict=True):
            told = {"run": name, "start": int(steps[start]), "stop": int(steps[stop]), "component": int(best[start])}
            stretches.append(told | {"probability": float(holding[start:stop, best[start]].mean())})
    by_run = experiment.runs[FROM].assign(**runs)
    return judged, pd.DataFrame(components).to_dict("records"), by_run.to_dict("records"), stretches


def _observed(experiment: Experiment, period: int | None) -> Observed:
    choices = experiment.choices
    part = experiment.step_of // period if period else np.zeros(len(choices.chosen), dtype=np.int64)
    runs, periods = len(experiment.runs), int(part.max(initial=0)) + 1
    last = np.zeros(runs, dtype=np.int64)
    np.maximum.at(last, experiment.run_of, part)
    cells = Cells.group(experiment.run_of * periods + part, choices.states(), choices.chosen, len(choices.words))
    known = np.arange(periods) <= last[:, None]
    return Observed(experiment.space, cells, runs, periods, known, posterior(choices.counts(), experiment.space)[1])


def _judged(observed: Observed, most: int, seed: int) -> list[dict]:
    """A row for each number of components."""
    choices = observed.cells.counts.sum()
    if observed.runs == 1:
        return [{"components": 1, "log_likelihood": np.nan, "gain": np.nan, "gain_error": np.nan, "chosen": True}]
    fold = np.random.default_rng((seed, 1)).permutation(observed.runs) % min(FOLDS, observed.runs)
    held_out: list[np.ndarray] = []
    while len(held_out) < most and (len(held_out) < 2 or held_out[-1].sum() > held_out[-2].sum()):
        k, score = len(held_out), np.empty(observed.runs)
        for number in range(fold.max() + 1):
            fitted = _best(observed.only(fold != number), k + 1, np.random.default_rng((seed, 2, k, number)))[0]
            score[fold == number] = filtered(observed, fitted).log_likelihood[fold == number]
        held_out.append(score)
    scores = np.array(held_out)
    # Differences from one policy, and from the best: sums over runs, and their standard errors
    differences = np.stack([scores - scores[0], scores[np.argmax(scores.sum(1))] - scores])
    gain, lead = differences.sum(-1)
    error, its_error = np.std(differences, axis=-1, ddof=1) * np.sqrt(observed.runs)
    number = np.arange(len(scores))
    table = {"components": 1 + number, "log_likelihood": scores.sum(1) / choices}
    table |= {"gain": gain, "gain_error": error, "chosen": number == np.argmax(lead <= its_error)}
    return pd.DataFrame(table).to_dict("records")


def _best(observed: Observed, n_components: int, random: np.random.Generator) -> tuple[Mixture, Held]:
    """The most probable of several starts."""
    fits = [fit_mixture(observed, n_components, random) for _ in range(STARTS if n_components > 1 else 1)]
    return max(fits, key=lambda fit: float(fit[1].log_likelihood.sum()))


class Observed(NamedTuple):
    """Choices by run, period of the run, and memory state."""

    space: MemorySpace
    cells: Cells  # unit = run · periods + period
    runs: int
    periods: int  # of the longest run
    known: np.ndarray  # (run, period), whether the run lasted into it
    concentrations: tuple[np.ndarray, np.ndarray]  # of all choices, which is the prior of each policy

    def by_state(self, weights: np.ndarray) -> np.ndarray:
        """Choice counts (component, state, word) by how probably each policy held (run, period, component)."""
        of = weights.reshape(-1, weights.shape[2])[self.cells.unit]
        return np.stack([self.cells.by_state(self.space.n_states, one) for one in of.T])

    def only(self, chosen: np.ndarray) -> Observed:
        """The choices of some runs (run,); the others have none."""
        keep = chosen[self.cells.unit // self.periods]
        unit, state, _, counts = self.cells
        cells = Cells(unit[keep], state[keep], np.zeros(0, dtype=np.int64), counts[:, keep])
        return self._replace(cells=cells, known=self.known & chosen[:, None])


class Mixture(NamedTuple):
    """Policies, how often each holds, and the probability that the policy is drawn anew after a period."""

    q: np.ndarray  # (component, state, word)
    shares: np.ndarray  # (component,)
    change: float


class Held(NamedTuple):
    """Which policy held when."""

    log_likelihood: np.ndarray  # (run,)
    weights: np.ndarray  # (run, period, component)
    drawn: np.ndarray  # (run, period, component), probability that it was drawn anew for the period


def fit_mixture(observed: Observed, n_components: int, random: np.random.Generator) -> tuple[Mixture, Held]:
    """The most probable mixture from one random start (EM)."""
    weights = random.dirichlet(np.full(n_components, CERTAINTY), (observed.runs, observed.periods))
    shares, change = np.full(n_components, 1 / n_components), FIRST_CHANGE
    known, before = observed.known[:, :, None], -np.inf
    for step in range(MOST_STEPS + 1):
        alphas = (posterior(n, observed.space, observed.concentrations)[0] for n in observed.by_state(weights))
        mixture = Mixture(np.stack([mean_of(alpha) for alpha in alphas]), shares, change)
        held = filtered(observed, mixture)
        weights, now = held.weights, held.log_likelihood.sum()
        if step > FEWEST_STEPS and now - before < GAIN:
            break
        # Each with one more period, as a prior
        before, drawn = now, (held.drawn * known).sum((0, 1)) + 1
        shares, later = drawn / drawn.sum(), known[:, 1:].sum()
        if later:
            changes = (held.drawn * known)[:, 1:].sum()
            change = float(np.clip((changes + 1) / (later + 1 / FIRST_CHANGE), *BOUNDS))
    return mixture, held  # type: ignore[possibly-undefined]


def filtered(observed: Observed, mixture: Mixture) -> Held:
    """Log-likelihood of each run, each choice given those before it, and which policy held when, given all."""
    cells, runs, periods, (_, shares, change) = observed.cells, observed.runs, observed.periods, mixture
    logs = [(cells.counts * log_q[cells.state].T).sum(0) for log_q in np.log(mixture.q)]
    logs = np.stack([np.bincount(cells.unit, one, minlength=runs * periods) for one in logs], axis=1)
    logs = logs.reshape(runs, periods, -1)
    most = logs.max(2, keepdims=True)
    likelihood = np.exp(logs - most)
    forward, norm, expected = np.empty(logs.shape), np.empty((runs, periods)), np.tile(shares, (runs, 1))
    for t in range(periods):
        joint = expected * likelihood[:, t]
        norm[:, t] = joint.sum(1)
        forward[:, t] = joint / norm[:, t, None]
        expected = (1 - change) * forward[:, t] + change * shares
    weights, drawn, future = forward.copy(), np.zeros(logs.shape), np.ones((runs, len(shares)))
    for t in range(periods - 1, 0, -1):
        value = likelihood[:, t] * future / norm[:, t, None]
        drawn[:, t] = change * shares * value
        future = (1 - change) * value + drawn[:, t].sum(1, keepdims=True)
        weights[:, t - 1] = forward[:, t - 1] * future
    drawn[:, 0] = weights[:, 0]
    return Held((np.log(norm) + most[:, :, 0]).sum(1), weights, drawn)
