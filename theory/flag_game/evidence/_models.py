"""Models of how runs end, each a grid of parameters and the distribution of a run at all its points.

A grid finds the highest likelihood everywhere, and makes fits of many subsets of runs a matter of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from meanfield import InputError
from meanfield.toolbox import one_of, shown
from theory.flag_game.evidence._copying import INTERACTIONS_PER_AGENT, anchored_mixture, by_anchored
from theory.flag_game.evidence._runs import PRIOR, Runs
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS, endpoints_of_votes
from theory.flag_game.mechanism1._agents import played

ANCHORED = np.linspace(0, 1, 101)
BIAS = np.r_[np.linspace(-3, -1.2, 10), np.linspace(-1, 1, 21), np.linspace(1.2, 3, 10)].round(9)
# A grid of J and βJ, the probability (1 + tanh βJ)/2 that an agent without evidence repeats what it last heard. Without
# J nobody listens. Fields of 50 equal answers are ±4.6 nats.
COUPLING = 2.0 ** np.arange(-1, 7.5, 0.5)
REPEATING = np.array([0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 10, 20])
PLAYED = 1000  # runs of Mechanism 1 for each measured one: a probability of 0.2 is known to 0.013


@dataclass(frozen=True)
class Model:
    """A model with P points of parameters, (P, number of parameters)."""

    name: str
    parameters: tuple[str, ...]
    points: np.ndarray
    law: Callable[[Runs, np.ndarray], np.ndarray]  # of runs with the same N, at some points: (R, points, 4)

    def laws(self, runs: Runs) -> np.ndarray:
        """The probabilities of endpoints (R, P, 4)."""
        found = np.empty((len(runs), len(self.points), len(ENDPOINTS)))
        for n_agents in np.unique(runs.n_agents):
            chosen = np.flatnonzero(runs.n_agents == n_agents)
            found[chosen] = self.law(runs.select(chosen), self.points)
        return found

    def at(self, point: np.ndarray) -> Model:
        """With this point only."""
        return replace(self, points=np.asarray(point, dtype=float).reshape(1, -1))


def _copying(runs: Runs, points: np.ndarray) -> np.ndarray:
    """The second parameter, if there is one, is the bias."""
    shares = np.array([runs.rival_sided(run) for run in range(len(runs))])
    biases = points[:, 1] if points.shape[1] > 1 else np.full(len(points), np.nan)
    found = np.empty((len(runs), len(points), len(ENDPOINTS)))
    for bias in np.unique(biases):
        chosen = (biases == bias) | np.isnan(bias)
        given = by_anchored(shares, None if np.isnan(bias) else float(bias), INTERACTIONS_PER_AGENT)
        found[:, chosen] = anchored_mixture(given, points[chosen, 0])
    return found


def _mechanism1(runs: Runs, points: np.ndarray) -> np.ndarray:
    """With the fields h_i = ln (t_i + 1/2)/(r_i + 1/2) of t_i answers for the truth and r_i for the rival."""
    agents = [replace(APPENDIX_E, J=J, beta=beta, interactions_per_agent=INTERACTIONS_PER_AGENT) for J, beta in points]
    found = np.empty((len(runs), len(points), len(ENDPOINTS)))
    for row, truth, rival in zip(found, runs.truth, runs.rival, strict=True):
        fields = np.log((truth + PRIOR) / (rival + PRIOR))
        classes = endpoints_of_votes(len(fields))[played(agents, len(fields), PLAYED, seed=0, given=fields).truth_votes]
        row[:] = np.stack([(classes == c).mean(axis=0) for c in range(len(ENDPOINTS))], axis=-1)
    return found


CONSTANT = "constant"
_BOTH = ("anchored", "bias")
_FIELDS = ("J", "beta")
_KNOWN = (
    # Its point is the frequencies of the endpoints of the fitted runs.
    Model(
        CONSTANT, (), np.full((1, 4), np.nan), lambda runs, points: np.broadcast_to(points, (len(runs), *points.shape))
    ),
    Model("mechanism1", _FIELDS, np.array([(J, K / J) for J, K in product(COUPLING, REPEATING)]), _mechanism1),
    Model("zealots", _BOTH[:1], ANCHORED[:, None], _copying),
    Model("biased_copying", _BOTH, np.array(list(product(ANCHORED, BIAS))), _copying),
    Model("mechanism1_published", _FIELDS, np.array([[APPENDIX_E.J, APPENDIX_E.beta]]), _mechanism1),
    Model("biased_copying_published", _BOTH, np.array([[0.45, 0.3]]), _copying),
)
MODELS = tuple(model.name for model in _KNOWN)


def model_of(name: object) -> Model:
    """The model of this name."""
    return _KNOWN[MODELS.index(one_of("model", name, MODELS))]


def models_of(names: object) -> list[Model]:
    """The models of these names, each once."""
    if isinstance(names, str) or not isinstance(names, (list, tuple)) or not names:
        raise InputError(f"models = {shown(names)}: expected a list of {', '.join(MODELS)}")
    if len(set(map(str, names))) < len(names):
        raise InputError(f"models = {shown(names)}: expected every model once")
    return [model_of(name) for name in names]
