"""Models of how runs end, each a grid of parameters and the distribution of a run at all its points.

A grid finds the highest likelihood everywhere, and makes fits of many subsets of runs a matter of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from meanfield import InputError
from meanfield.toolbox import shown
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


def _zealots(runs: Runs, points: np.ndarray) -> np.ndarray:
    return _copying(runs, points[:, 0], None)


def _biased(runs: Runs, points: np.ndarray) -> np.ndarray:
    found = np.empty((len(runs), len(points), len(ENDPOINTS)))
    for bias in np.unique(points[:, 1]):
        chosen = points[:, 1] == bias
        found[:, chosen] = _copying(runs, points[chosen, 0], float(bias))
    return found


def _copying(runs: Runs, anchored: np.ndarray, bias: float | None) -> np.ndarray:
    shares = np.array([runs.rival_sided(run) for run in range(len(runs))])
    return anchored_mixture(by_anchored(shares, bias, INTERACTIONS_PER_AGENT), anchored)


def _mechanism1(runs: Runs, points: np.ndarray) -> np.ndarray:
    """With the fields h_i = ln (t_i + 1/2)/(r_i + 1/2) of t_i answers for the truth and r_i for the rival."""
    agents = [replace(APPENDIX_E, J=J, beta=beta, interactions_per_agent=INTERACTIONS_PER_AGENT) for J, beta in points]
    found = np.empty((len(runs), len(points), len(ENDPOINTS)))
    for run, (truth, rival) in enumerate(zip(runs.truth, runs.rival, strict=True)):
        fields = np.log((truth + PRIOR) / (rival + PRIOR))
        votes = played(agents, len(fields), PLAYED, seed=0, given=fields).truth_votes
        classes = endpoints_of_votes(len(fields))[votes]
        found[run] = np.stack([(classes == c).mean(axis=0) for c in range(len(ENDPOINTS))], axis=-1)
    return found


def _nothing(runs: Runs, points: np.ndarray) -> np.ndarray:
    """The constant forecast needs no distribution: the frequencies of the fitted runs take its place."""
    return np.full((len(runs), len(points), len(ENDPOINTS)), np.nan)


CONSTANT = "constant"
_BOTH = ("anchored", "bias")
_FIELDS = ("J", "beta")
_KNOWN = (
    Model(CONSTANT, (), np.empty((1, 0)), _nothing),
    Model("mechanism1", _FIELDS, np.array([(J, K / J) for J, K in product(COUPLING, REPEATING)]), _mechanism1),
    Model("zealots", _BOTH[:1], ANCHORED[:, None], _zealots),
    Model("biased_copying", _BOTH, np.array(list(product(ANCHORED, BIAS))), _biased),
    Model("mechanism1_published", _FIELDS, np.array([[APPENDIX_E.J, APPENDIX_E.beta]]), _mechanism1),
    Model("biased_copying_published", _BOTH, np.array([[0.45, 0.3]]), _biased),
)
MODELS = tuple(model.name for model in _KNOWN)


def model_of(name: object) -> Model:
    for model in _KNOWN:
        if model.name == name:
            return model
    raise InputError(f"model = {shown(name)}: expected one of {', '.join(MODELS)}")


def models_of(names: object) -> list[Model]:
    """The models of these names, each once."""
    if isinstance(names, str) or not isinstance(names, (list, tuple)) or not names:
        raise InputError(f"models = {shown(names)}: expected a list of {', '.join(MODELS)}")
    if len(set(map(str, names))) < len(names):
        raise InputError(f"models = {shown(names)}: expected every model once")
    return [model_of(name) for name in names]
