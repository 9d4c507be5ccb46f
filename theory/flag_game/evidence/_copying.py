"""Exact probability of each endpoint after some interactions of agents who copy; some of them never change."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import xarray as xr
from scipy.special import expit, gammaln
from scipy.stats import binom

from meanfield import InputError
from meanfield.toolbox import in_threads, labelled, real_number, real_numbers, stamp, whole_number
from theory.flag_game.mechanism1._endpoints import CONSENSUS_PERCENT, ENDPOINTS, POLAR_PERCENT, endpoints_of_votes

MOST_AGENTS = 256  # a distribution takes a second at N = 128, and 2⁵ times as long at twice that
KEPT = 256  # distributions, of (N + 1)² · 4 numbers each
INTERACTIONS_PER_AGENT = 20


def copying_endpoints(
    rival_share: np.ndarray,
    *,
    anchored: float,
    bias: float | None = None,
    interactions_per_agent: int = INTERACTIONS_PER_AGENT,
) -> np.ndarray:
    """Probability of each endpoint if agents with this evidence copy each other; shape (4,), in the order of ENDPOINTS.

    Agent i begins with the rival with probability e_i, else with the truth. With probability a = a_T + a_R it is
    anchored and keeps this answer for good; otherwise it adopts what it hears. If z_T and z_R agents are anchored and k
    of the M others hold the truth, k goes up and down at an interaction with the probabilities

        (M - k)(k + z_T) q_T / (N (N - 1)),     k (M - k + z_R) q_R / (N (N - 1)).

    Parameters
    ----------
    rival_share, anchored
        e_i, from 0 to 1, shape (N,), 2 ≤ N ≤ 256, and a, from 0 to 1.
    bias
        h = ln(q_T/q_R): a heard truth is adopted with q_T = 1/(1 + e^-h), a heard rival with q_R = 1 - q_T. With None
        agents adopt everything (the voter model with zealots); h = 0 is the same at half the speed.
    interactions_per_agent
        Interactions over N, ≥ 0; in each a random agent hears a random other one.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    forecast : with anchored and bias fitted to runs
    phase_boundaries : infinitely many agents
    theory.flag_game.mechanism1.copying_law : zealots who don't vote

    Examples
    --------
    Half of eight agents see the rival. If two in five never change, the group seldom agrees.

    >>> from theory.flag_game.evidence import copying_endpoints
    >>> copying_endpoints([1, 1, 1, 1, 0, 0, 0, 0], anchored=0.4).round(3)
    array([0.198, 0.198, 0.604, 0.   ])
    >>> copying_endpoints([1, 1, 1, 1, 0, 0, 0, 0], anchored=0.4, bias=1.0).round(3)
    array([0.36 , 0.033, 0.607, 0.   ])
    """
    if isinstance(rival_share, np.ndarray) and rival_share.dtype == bool:  # who begins with the rival
        rival_share = rival_share.astype(float)
    shares = real_numbers(rival_share, "rival_share")
    if shares.ndim != 1 or not ((shares >= 0) & (shares <= 1)).all():
        raise InputError(f"rival_share of shape {shares.shape}: expected a row of numbers from 0 to 1")
    anchored = real_number("anchored", anchored, least=0, most=1)
    bias = None if bias is None else real_number("bias", bias)
    per_agent = whole_number("interactions_per_agent", interactions_per_agent, 0)
    return anchored_mixture(by_anchored(shares[None], bias, per_agent), np.array([anchored]))[0, 0]


def by_anchored(shares: np.ndarray, bias: float | None, interactions_per_agent: int) -> np.ndarray:
    """Probabilities of endpoints (R, N + 1, 4) given the number of anchored agents, from P (R, N) of the rival."""
    starts = np.ones((len(shares), 1))
    for share in shares.T[..., None]:
        starts = np.pad(starts * (1 - share), ((0, 0), (0, 1))) + np.pad(starts * share, ((0, 0), (1, 0)))
    return np.tensordot(starts, endpoint_laws(shares.shape[1], bias, interactions_per_agent), axes=1)


def anchored_mixture(given: np.ndarray, anchored: np.ndarray) -> np.ndarray:
    """Probabilities of endpoints (R, points, 4) if each agent is anchored with these probabilities (points,)."""
    n_agents = given.shape[1] - 1
    return binom.pmf(np.arange(n_agents + 1), n_agents, anchored[:, None]) @ given


@lru_cache(maxsize=KEPT)
def endpoint_laws(n_agents: int, bias: float | None, interactions_per_agent: int) -> np.ndarray:
    """Probabilities of endpoints (N + 1, N + 1, 4) given S agents who begin with the rival and z anchored ones.

    z_T given z is hypergeometric, so they do not depend on how many agents are anchored on average.
    """
    if not 2 <= n_agents <= MOST_AGENTS:
        raise InputError(f"N = {n_agents}: expected from 2 to {MOST_AGENTS} agents for exact copying")
    up, down = (1.0, 1.0) if bias is None else (float(expit(bias)), float(expit(-bias)))
    found = np.zeros((n_agents + 1, n_agents + 1, len(ENDPOINTS)))
    log = gammaln(np.arange(n_agents + 1) + 1.0)
    i, j = np.ogrid[: n_agents + 1, : n_agents + 1]
    choose = log[:, None] - log[None] - log[np.maximum(i - j, 0)]  # ln C(i, j), for j ≤ i

    def fill(some: slice) -> None:
        for z in range(n_agents + 1)[some]:
            ends = _after(n_agents, z, up, down, interactions_per_agent * n_agents)
            for z_T in range(z + 1):
                S = np.arange(z - z_T, n_agents - z_T + 1)  # N - S - z_T copying agents begin with the truth
                log = choose[n_agents - S, z_T] + choose[S, z - z_T] - choose[n_agents, z]
                found[S, z] += np.exp(log)[:, None] * ends[z_T, n_agents - S - z_T]

    in_threads(fill, n_agents + 1, n_agents**4)
    found.flags.writeable = False  # it is shared by all who ask again
    return found


def _after(n_agents: int, anchored: int, up: float, down: float, interactions: int) -> np.ndarray:
    """Probabilities of endpoints (z_T, k, 4) from each start k, for all ways to divide the anchored agents."""
    copying = n_agents - anchored
    z_T, k = np.ogrid[: anchored + 1, : copying + 1]
    pairs = n_agents * (n_agents - 1)
    rise = up * (copying - k) * (k + z_T) / pairs
    fall = down * k * (copying - k + anchored - z_T) / pairs
    step = np.zeros((anchored + 1, copying + 1, copying + 1))
    here = np.arange(copying + 1)
    step[:, here, here] = 1 - rise - fall
    step[:, here[:-1], here[1:]] = rise[:, :-1]
    step[:, here[1:], here[:-1]] = fall[:, 1:]
    ends = (endpoints_of_votes(n_agents)[k + z_T][..., None] == np.arange(len(ENDPOINTS))).astype(float)
    while interactions:  # repeated squaring; all terms are positive, so nothing cancels
        if interactions % 2:
            ends = step @ ends
        interactions //= 2
        if interactions:
            step = step @ step
    return ends


def phase_boundaries(anchored: float, bias: float = 0.0) -> xr.Dataset:
    """The shares of rival evidence e at which the endpoint of infinitely many copying agents changes.

    With a_T = a(1 - e) and a_R = a e the share y of agents who hold the truth settles where gains balance losses,

        (1 - y - a e) y q_T = (y - a(1 - e)) (1 - y) q_R,   that is

        e(y) = (1 - y) [y q_T - (y - a) q_R] / (a [y q_T + (1 - y) q_R]).

    Without bias y = 1 - e, whatever a is. The result has e at y = 0.85, 0.75, 0.25 and 0.15, between which an infinite
    population ends in correct consensus, fragmentation, polarisation, fragmentation and wrong consensus.

    Parameters
    ----------
    anchored, bias
        a = a_T + a_R, above 0 and at most 1, and h = ln(q_T/q_R).

    Returns
    -------
    Dataset over `boundary` (0 to 3) with `truth_share` y, `evidence` e(y), and the endpoints `below` and `above` it in
    evidence. An e below 0 or above 1 is not a boundary: no evidence leads across it.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    copying_endpoints : a finite population
    against_evidence : with fitted parameters

    Examples
    --------
    A bias towards the truth moves every boundary to more evidence for the rival.

    >>> for bias in (0.0, 0.3):
    ...     print(theory.flag_game.evidence.phase_boundaries(0.45, bias)["evidence"].values.round(2).tolist())
    [0.15, 0.25, 0.75, 0.85]
    [0.19, 0.31, 0.82, 0.9]
    """
    a, h = real_number("anchored", anchored, above=0, most=1), real_number("bias", bias)
    q_T, q_R = float(expit(h)), float(expit(-h))
    correct, wrong, polarized, fragmented = ENDPOINTS
    high, polar = CONSENSUS_PERCENT / 100, POLAR_PERCENT / 100
    shares = [high, 1 - polar, polar, 1 - high]
    found = [(1 - y) * (y * q_T - (y - a) * q_R) / (a * (y * q_T + (1 - y) * q_R)) for y in shares]
    columns = {
        "truth_share": ("boundary", shares, "share of agents who hold the truth"),
        "evidence": ("boundary", found, "the rival's share of the evidence"),
        "below": ("boundary", [correct, fragmented, polarized, fragmented], "endpoint with less rival evidence"),
        "above": ("boundary", [fragmented, polarized, fragmented, wrong], "endpoint with more rival evidence"),
    }
    return stamp(labelled(columns, {"boundary": range(4)}), "flag_run_phases", None, anchored=a, bias=h)
