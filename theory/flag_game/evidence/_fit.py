"""Models of how runs end, as grids of parameters, and their fits to the ends of single runs by likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import xarray as xr
from scipy.stats import chi2

from meanfield import InputError
from meanfield.toolbox import check_level, labelled, one_of, shown, stamp
from theory.flag_game.evidence._copying import INTERACTIONS_PER_AGENT, anchored_mixture, by_anchored
from theory.flag_game.evidence._runs import PRIOR, UNKNOWN, Runs, Source, read_runs
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS
from theory.flag_game.mechanism1._agents import played
from theory.flag_game.mechanism1._endpoints import endpoints_of_votes

TOGETHER = 64  # runs with their distributions in memory
PSEUDO_RUNS = 2.0  # half a run of each endpoint, the prior of Krichevsky and Trofimov
# Grids find the highest likelihood everywhere, and make fits of many parts of the data sums.
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


def fit(
    runs: Source | Runs, model: str = "biased_copying", *, crops: str = "decided", level: float = 0.95
) -> xr.Dataset:
    """The likeliest parameters of a model of how single runs end.

    A run that the model holds for impossible may happen all the same. So, like the constant forecast with its half run
    of each endpoint, every model forecasts (1 - ε) P + ε/4 with ε = 2/(n + 2) after n runs. No endpoint has less than
    1/(2n + 4), so no log score is infinite. The likelihood is of this mixture.

    Parameters
    ----------
    runs, crops
        As for `read_runs`, with an outcome for every run.
    model
        One of `MODELS`:

        - 'constant': the frequencies of endpoints, whatever the evidence;
        - 'mechanism1': Mechanism 1 of [002] Appendix E with the measured fields h_i = ln (t_i + 1/2)/(r_i + 1/2) of
          t_i answers for the truth and r_i for the rival, by 1,000 simulated runs; `J` and `beta` are fitted, α = 0.45;
        - 'zealots': the voter model, in which agents are `anchored` to their first belief with probability a;
        - 'biased_copying': the same, and the others adopt the truth with a `bias` h, see `copying_endpoints`;
        - 'mechanism1_published' and 'biased_copying_published': with the values of the authors, J = 2.302, β = 1.078,
          and a = 0.45, h = 0.3; nothing is fitted.
    level
        Confidence of the intervals, which are of the profile likelihood.

    Returns
    -------
    Dataset over `parameter` with `estimate` and `interval` (bound), and `frequency` (endpoint) of the runs. attrs hold
    `log_likelihood`, in nats, `n_runs` and `lapse`, ε. The likelihood is maximised over a grid: a from 0 to 1 by 0.01;
    h from -3 to 3, by 0.1 up to ±1 and by 0.2 beyond; J from 0.5 to 128 by factors √2, and βJ from 0.25 to 20. Where
    the runs bound a parameter no further, its interval ends with the grid.

    Raises
    ------
    InputError
        If a run has no outcome, or an argument is not as described.

    See Also
    --------
    forecast : other runs by fitted models

    Examples
    --------
    About half of the agents of 80 runs never change.

    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> fitted = theory.flag_game.evidence.fit(pd.concat([runs] * 20), "zealots")
    >>> float(fitted["estimate"].sel(parameter="anchored")), fitted["interval"].values.round(2).tolist()
    (0.46, [[0.36, 0.56]])
    """
    chosen, names = model_of(model), list(model_of(model).parameters)
    check_level(level)
    given = with_ends(read_runs(runs, crops=crops), "runs")
    frequency, lapse = frequencies(given.endpoint), lapse_of(len(given))
    likelihood = log_likelihoods(chosen if names else chosen.at(frequency), given, lapse).sum(axis=0)
    best = likelihood.argmax()
    lost = 2 * (likelihood[best] - likelihood) - chi2.ppf(level, 1)
    points = chosen.points[:, : len(names)]
    interval = np.array([_where_negative(values, lost) for values in points.T]).reshape(-1, 2)
    columns = {
        "estimate": ("parameter", points[best], "likeliest value"),
        "interval": (("parameter", "bound"), interval, f"its {100 * level:g} % interval, profile likelihood"),
        "frequency": ("endpoint", frequency, "fraction of runs"),
    }
    coords = {"parameter": names, "bound": ["low", "high"], "endpoint": list(ENDPOINTS)}
    result = stamp(labelled(columns, coords), "flag_run_fit", None, model=model, crops=crops, level=level)
    return result.assign_attrs(log_likelihood=float(likelihood[best]), n_runs=len(given), lapse=lapse)


def _where_negative(values: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """The first and the last value at which the least loss is negative; losses are linear between values."""
    at = np.unique(values)
    least = np.pad([lost[values == one].min() for one in at], 1, constant_values=np.inf)
    at = np.pad(at, 1, mode="edge")  # where the grid ends, so does the interval
    inside = np.flatnonzero(least <= 0)[[0, -1]]
    outside = inside + np.array([-1, 1])
    return at[inside] - least[inside] / (least[outside] - least[inside]) * (at[outside] - at[inside])


def with_ends(runs: Runs, name: str) -> Runs:
    """`runs`; InputError unless all outcomes are known."""
    if (runs.endpoint == UNKNOWN).any():
        unknown = int((runs.endpoint == UNKNOWN).sum())
        raise InputError(f"{name} has {unknown} runs without an outcome: expected one for each run that is fitted")
    return runs


def frequencies(endpoint: np.ndarray) -> np.ndarray:
    return np.bincount(endpoint, minlength=len(ENDPOINTS)) / max(1, len(endpoint))


def lapse_of(n_runs: int) -> float:
    return PSEUDO_RUNS / (n_runs + PSEUDO_RUNS)


def lapsing(law: np.ndarray, lapse: float) -> np.ndarray:
    """Forecasts from probabilities of endpoints."""
    return (1 - lapse) * law + lapse / len(ENDPOINTS)


def log_likelihoods(model: Model, runs: Runs, lapse: float) -> np.ndarray:
    """Log-likelihood of each run at each point, shape (R, P)."""
    found = np.empty((len(runs), len(model.points)))
    for first in range(0, len(runs), TOGETHER):
        some = runs.select(slice(first, first + TOGETHER))
        found[first : first + TOGETHER] = model.laws(some)[np.arange(len(some)), :, some.endpoint]
    return np.log(lapsing(found, lapse))
