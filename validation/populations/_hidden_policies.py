"""Several policies, of which one at a time holds in a run: estimated and told apart (a hidden Markov model)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield import MemorySpace
from validation.populations._choice_model import Cells
from validation.populations._empirical_policy import mean_of, posterior

MOST_STEPS = 60
FEWEST_STEPS = 10
GAIN = 0.1  # of the log-likelihood in one step, below which the estimate has settled
FIRST_CHANGE = 0.1
CERTAINTY = 0.3  # Dirichlet parameter of random starts
BOUNDS = (1e-4, 1.0)  # of the probability of a change


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
    mixture = Mixture(_policies(observed, weights), np.full(n_components, 1 / n_components), FIRST_CHANGE)
    held = filtered(observed, mixture)
    for step in range(MOST_STEPS):
        before = held.log_likelihood.sum()
        mixture = _improved(observed, held, mixture.change)
        held = filtered(observed, mixture)
        if step >= FEWEST_STEPS and held.log_likelihood.sum() - before < GAIN:
            break
    return mixture, held


def _improved(observed: Observed, held: Held, change: float) -> Mixture:
    """Each with one more period, as a prior."""
    drawn = (held.drawn * observed.known[:, :, None]).sum((0, 1)) + 1
    later = observed.known[:, 1:]
    if later.any():
        changes = (held.drawn[:, 1:] * later[:, :, None]).sum()
        change = float(np.clip((changes + 1) / (later.sum() + 1 / FIRST_CHANGE), *BOUNDS))
    return Mixture(_policies(observed, held.weights), drawn / drawn.sum(), change)


def filtered(observed: Observed, mixture: Mixture) -> Held:
    """Log-likelihood of each run, each choice given those before it, and which policy held when, given all."""
    logs = _log_likelihoods(observed, mixture.q)
    most = logs.max(2, keepdims=True)
    likelihood = np.exp(logs - most)
    n_runs, n_periods, n_components = logs.shape
    shares, change = mixture.shares, mixture.change
    forward, norm = np.empty(logs.shape), np.empty((n_runs, n_periods))
    expected = np.tile(shares, (n_runs, 1))
    for t in range(n_periods):
        joint = expected * likelihood[:, t]
        norm[:, t] = joint.sum(1)
        forward[:, t] = joint / norm[:, t, None]
        expected = (1 - change) * forward[:, t] + change * shares
    weights, drawn = forward.copy(), np.zeros(logs.shape)
    future = np.ones((n_runs, n_components))
    for t in range(n_periods - 1, 0, -1):
        value = likelihood[:, t] * future / norm[:, t, None]
        drawn[:, t] = change * shares * value
        future = (1 - change) * value + drawn[:, t].sum(1, keepdims=True)
        weights[:, t - 1] = forward[:, t - 1] * future
    drawn[:, 0] = weights[:, 0]
    return Held((np.log(norm) + most[:, :, 0]).sum(1), weights, drawn)


def _log_likelihoods(observed: Observed, q: np.ndarray) -> np.ndarray:
    """(run, period, component); 0 where there is no choice."""
    cells, size = observed.cells, observed.runs * observed.periods
    logs = [(cells.counts * log_q[cells.state].T).sum(0) for log_q in np.log(q)]
    found = np.stack([np.bincount(cells.unit, one, minlength=size) for one in logs], axis=1)
    return found.reshape(observed.runs, observed.periods, len(q))


def _policies(observed: Observed, weights: np.ndarray) -> np.ndarray:
    """(component, state, word), from the choices weighted by how probably each policy held."""
    counts = observed.by_state(weights)
    return np.stack([mean_of(posterior(n, observed.space, observed.concentrations)[0]) for n in counts])
