"""The copying process with zealots: the limit of Mechanism 1 in which agents either copy or never change.

With α = 1 and β → ∞ an agent with |h| < J holds and repeats the last message, an agent with |h| > J its own side. Let N
agents copy each other and z_T + z_R zealots. The number k who hold the truth rises at the rate (N - k)(k + z_T) and
falls at k (N - k + z_R), up to a common factor. By detailed balance long runs of this one-step chain have the
beta-binomial distribution

    P(k) = C(N, k) B(k + z_T, N - k + z_R)/B(z_T, z_R),

also for z_T and z_R that are not whole numbers. Source: Mobilia, Petersen and Redner 2007, J. Stat. Mech. P08029.

In an interaction one of the N hears one of all others, so the rates over N (N + z - 1), with z = z_T + z_R, are
probabilities, and E k relaxes in N (N + z - 1)/z interactions. With the 3.1 zealots of a fit to GPT-4o at N = 128 these
are about 41 N, and Mechanism 1 plays 16 N. The same chain gives the distribution of runs that end early.

As a model of measured endpoints it is simpler than this limit: its zealots don't vote, and N counts copying agents.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.linalg.blas import dgbmv
from scipy.special import expit
from scipy.stats import betabinom, binom

from meanfield.toolbox import check_memory, labelled, real_number, stamp, whole_number
from theory.flag_game.mechanism1._endpoints import ENDPOINTS, Moments, Source, moments_of_laws, read_counts
from theory.flag_game.mechanism1._likelihood import climb, information, judgement

STEP = 1e-5
STARTS = ((0.0, 0.0, 0.0, 0.0), (-1.0, -1.0, 0.0, 0.0), (-2.0, -2.0, 0.5, 0.0), (1.0, 0.0, -0.5, 0.0))
NAMES = ("zealots_T", "zealots_R", "growth", "initial_share")


def copying_law(
    n_agents: int, zealots_T: float, zealots_R: float, *, interactions: int | None = None, initial_share: float = 0.5
) -> np.ndarray:
    """Distribution of the number, 0 to N, of copying agents who hold the truth; shape (N + 1,).

    Parameters
    ----------
    n_agents
        N ≥ 1 agents who copy a random other agent or zealot.
    zealots_T, zealots_R
        Zealots of the truth and of the rival, above 0, whole numbers or not.
    interactions
        Number of interactions; in each a random copying agent hears a random other one or a zealot. None gives the
        stationary distribution, the limit of infinitely many.
    initial_share
        Probability that a copying agent first holds the truth; the stationary distribution does not depend on
        it.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    fit_copying : its parameters from endpoints

    Examples
    --------
    With half a zealot on each side, four agents end in a consensus more often than not, after 16 interactions already.

    >>> from theory.flag_game.mechanism1 import copying_law
    >>> copying_law(4, 0.5, 0.5).round(3)
    array([0.273, 0.156, 0.141, 0.156, 0.273])
    >>> copying_law(4, 0.5, 0.5, interactions=16).round(3)
    array([0.271, 0.158, 0.143, 0.158, 0.271])
    """
    n_agents = whole_number("n_agents", n_agents, 1)
    check_memory(16 * n_agents, f"n_agents = {n_agents}", "fewer agents")
    zealots_T, zealots_R = real_number("zealots_T", zealots_T, above=0), real_number("zealots_R", zealots_R, above=0)
    initial_share = real_number("initial_share", initial_share, least=0, most=1)
    k = np.arange(n_agents + 1)
    if interactions is None:
        return betabinom.pmf(k, n_agents, zealots_T, zealots_R)
    pairs = n_agents * (n_agents + zealots_T + zealots_R - 1)
    up, down = (n_agents - k) * (k + zealots_T) / pairs, k * (n_agents - k + zealots_R) / pairs
    # Bands of the matrix as BLAS stores them: column k holds the ways out of k. BLAS takes 3 states at least, so one
    # unreachable state follows. All terms are positive, so nothing cancels.
    step = np.asfortranarray([np.r_[0.0, down[1:], 0.0], np.r_[1 - up - down, 1.0], np.r_[up, 0.0]])
    law = np.r_[binom.pmf(k, n_agents, initial_share), 0.0]
    for _ in range(whole_number("interactions", interactions, 0)):
        law = dgbmv(n_agents + 2, n_agents + 2, 1, 1, 1.0, step, law)
    return law[:-1]


def fit_copying(counts: Source, *, interactions_per_agent: int | None = None) -> xr.Dataset:
    """The likeliest copying process with z_T N^κ and z_R N^κ zealots, who don't vote.

    κ is the growth exponent of the zealots: 0 is a fixed number, 1 a fixed share.

    Parameters
    ----------
    counts
        As for `fit_mechanism1`.
    interactions_per_agent
        Mean number of messages that a copying agent hears until the run ends: 16 in [002] Appendix E. The initial share
        of the truth is then fitted too, one for all N. None for infinitely long runs, which forget it.

    Returns
    -------
    Dataset over `parameter` (zealots_T, zealots_R, growth and, with finite runs, initial_share) with `estimate` and
    `standard_error`, and over `n_agents` `fitted` (endpoint) and `fitted_accuracy`; attrs hold log_likelihood,
    effective_parameters, aic and bic.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    fit : the full mechanism

    Examples
    --------
    >>> from theory.flag_game.mechanism1 import ENDPOINTS, fit_copying
    >>> ends = [[17, 17, 18], [12, 3, 1], [11, 20, 17], [0, 0, 4]]
    >>> counts = {f"{name}_count": row for name, row in zip(ENDPOINTS, ends)}
    >>> fitted = fit_copying(pd.DataFrame({"N": [4, 8, 16], "seeds": 40} | counts))
    >>> fitted["estimate"].to_series().round(2).to_dict()
    {'zealots_T': 0.09, 'zealots_R': 0.04, 'growth': 1.12}
    """
    if interactions_per_agent is not None:
        interactions_per_agent = whole_number("interactions_per_agent", interactions_per_agent, 1)
    measured = read_counts(counts)

    def law(n: int, point: np.ndarray) -> np.ndarray:
        zealots = np.exp(np.clip(point[:2] + point[2] * np.log(n), -12, 12)).tolist()
        if interactions_per_agent is None:
            return copying_law(n, *zealots)
        return copying_law(n, *zealots, interactions=interactions_per_agent * n, initial_share=float(expit(point[3])))

    def exact(point: np.ndarray) -> Moments:
        return moments_of_laws([law(n, point) for n in measured.sizes])

    def values(points: list[np.ndarray]) -> list[np.ndarray]:
        return [exact(point).values for point in points]

    def slopes(point: np.ndarray, _: np.ndarray) -> np.ndarray:
        moves = STEP * np.eye(len(point))
        return np.stack([(exact(point + m).values - exact(point - m).values) / (2 * STEP) for m in moves], axis=-1)

    starts = np.array(STARTS)[:, : 3 if interactions_per_agent is None else 4]
    best = max((climb(values, slopes, start, measured) for start in starts), key=lambda summit: summit.log_likelihood)
    point, jacobian = best.coordinates, slopes(best.coordinates, best.moments)
    found = information(exact(point), jacobian, jacobian, measured, np.inf)
    share = expit(point[3:])
    estimate = np.r_[np.exp(point[:2]), point[2], share]
    errors = np.sqrt(np.diag(found.covariance)) * np.r_[estimate[:2], 1.0, share * (1 - share)]
    columns = {
        "estimate": (("parameter",), estimate, "likeliest value"),
        "standard_error": (("parameter",), errors, "standard error, Godambe"),
        "fitted": (("n_agents", "endpoint"), best.moments[:, :4], "fraction of runs, fitted"),
        "fitted_accuracy": (("n_agents",), best.moments[:, 4], "collective mean accuracy, fitted"),
    }
    coords = {"parameter": list(NAMES[: len(estimate)]), "endpoint": list(ENDPOINTS), "n_agents": measured.n_agents}
    judged = judgement(best.log_likelihood, found.effective_parameters, measured)
    result = stamp(labelled(columns, coords), "copying_fit", None, interactions_per_agent=interactions_per_agent)
    return result.assign_attrs(judged)
