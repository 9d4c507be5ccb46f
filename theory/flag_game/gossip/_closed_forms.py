"""The moments of Quantized Simplex Gossip in closed form.

Agents hold beliefs x on the simplex of K labels. At an interaction a random speaker i sends M, the mean of m labels
drawn from x_i, and a random listener j ≠ i moves to (1 - α)x_j + αM: [002] Eqs. 4 and 5, after Tanaka 2026.

E‖M‖² = (1 - 1/m)‖x_i‖² + 1/m and E[M] = x_i close the second moments. Heterozygosity is the probability that two labels
differ: a = 1 - ‖mean x‖² in the group, b = mean of 1 - ‖x_i‖² in single agents, d = (N·a - b)/(N - 1) in pairs. Its
expected changes at an interaction are, exactly and from any start,

    Δa = (α/N)² [(2 - 1/m) b - 2d]        Δb = [2α(1 - α) d - (2α(1 - α) + α²/m) b] / N

If all beliefs are alike (a = b = d), Δa = -α² a/(m N²).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield import InputError
from meanfield.toolbox import is_number, labelled, one_of, real_number, shown, whole_number

BIASES = ("speaker", "listener", "anchor")
ROUNDING = 1e-9


def heterozygosity(
    interactions: Sequence[int] | np.ndarray,
    *,
    n_agents: int,
    uptake: float,
    bandwidth: float,
    group: float,
    agent: float | None = None,
) -> xr.Dataset:
    """The expected heterozygosity of a group and of its agents after a number of interactions, exactly.

    At first it falls by α²(1 - 1/K)/(m N²) an interaction if every agent believes 1/K in each of K labels [Tanaka
    2026]. At late times, in large groups, it falls at the rate 2α²/(N²(2m(1 - α) + α)) an interaction: 2/N² for the
    voter model (α = m = 1), α²/(mN²) for small α.

    Parameters
    ----------
    interactions
        Numbers of pairwise interactions, ≥ 0.
    n_agents, uptake
        N ≥ 2, and α in [0, 1].
    bandwidth
        m, the number of labels in a message, whole and ≥ 1; `math.inf` sends the belief itself.
    group, agent
        Initial 1 - Σ_k (mean belief in k)², and mean over agents of 1 - Σ_k (belief in k)². The latter is by default
        `group`, for beliefs that are all alike.

    Returns
    -------
    Dataset over `interaction` with the expected heterozygosities `group` and `agent`.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    validation.flag_game.simulate_gossip : runs

    Examples
    --------
    Voters (α = m = 1) hold a single label once they have listened, and the group loses its diversity slowly.

    >>> found = theory.flag_game.gossip.heterozygosity([0, 10, 100], n_agents=10, uptake=1, bandwidth=1, group=0.5)
    >>> found["group"].values.round(3).tolist(), found["agent"].values.round(3).tolist()
    ([0.5, 0.435, 0.061], [0.5, 0.174, 0.0])
    """
    step = _moments_step(n_agents, uptake, bandwidth)
    times = np.asarray(interactions)
    if times.ndim != 1 or times.size == 0 or not np.issubdtype(times.dtype, np.integer) or times.min() < 0:
        raise InputError(f"interactions = {interactions!r}: expected a sequence of integers of at least 0")
    start = np.array([real_number("group", group), real_number("agent", group if agent is None else agent)])
    # The agents' beliefs differ from the group's mean, so a ≥ b; pairs can't be more alike than identical, so d ≥ 0.
    if not (0 <= start[1] <= start[0] < 1):
        raise InputError(f"group = {start[0]}, agent = {start[1]}: expected 0 ≤ agent ≤ group < 1")
    pair = (n_agents * start[0] - start[1]) / (n_agents - 1)
    if pair > 1 + ROUNDING:
        raise InputError(
            f"group = {start[0]}, agent = {start[1]}: expected a mean over pairs, (N group - agent)/(N - 1), of at "
            f"most 1, and for n_agents = {n_agents} it is {pair:.6g}"
        )
    values = np.array([np.linalg.matrix_power(step, int(t)) @ start for t in times])
    columns = {
        name: ("interaction", values[:, k], "expected heterozygosity") for k, name in enumerate(("group", "agent"))
    }
    return labelled(columns, {"interaction": ("interaction", times, {"units": "interactions"})})


def fixation(
    bias: float, *, n_agents: int, uptake: float, bandwidth: int, biased: str = "speaker", initial: float = 0.5
) -> float:
    """The probability that the favoured of two labels takes over, to leading order in a weak bias and in 1/N.

    The group's mean belief y in the label hardly moves while each agent listens a few times, and the agents' own
    heterozygosity b settles at the fraction 2m(1 - α)/(2m(1 - α) + α) of a = 2y(1 - y). On longer times y diffuses
    with a drift and a variance both proportional to y(1 - y), so the probability is (1 - exp(-S y))/(1 - exp(-S)) with
    S = 2·drift/variance [Kimura 1962]. The bias h is a log-odds ratio, and acts on

    - the speaker, who draws labels from x_k exp(h_k), normalised: drift ∝ αh, S = 2 m N h (1 - α)/α;
    - the listener, who weights the shares of a message by exp(h_k), as in [002] Eq. 10 with γ = 1 and a diagonal C.
      This leaves a message of one label unchanged: S = 2 (m - 1) N h (1 - α)/α;
    - the anchor of all listeners, p ∝ exp(h_k) in [002] Eq. 6, which weights the whole belief, not only its new part α:
      S = 2 m N h (1 - α)/α².

    From y = 1/2 the probability is 1/(1 + exp(-S/2)); for a speaker and small α, 1/(1 + exp(-mNh/α)) [Tanaka 2026]. At
    α = m = 1 beliefs are single labels, and no weak bias acts.

    Parameters
    ----------
    bias
        h = h_1 - h_2, any sign.
    n_agents, uptake, bandwidth
        N ≥ 2, α in (0, 1], an integer m ≥ 1.
    biased
        Where the bias acts: 'speaker', 'listener' or 'anchor'.
    initial
        y, every agent's initial belief in the favoured label, in [0, 1].

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    heterozygosity : how fast labels are lost

    Examples
    --------
    A bias too weak for ten agents decides in a group of a thousand.

    >>> from theory.flag_game import gossip
    >>> [round(gossip.fixation(0.001, n_agents=n, uptake=0.1, bandwidth=1), 3) for n in (10, 100, 1000)]
    [0.522, 0.711, 1.0]
    """
    _moments_step(n_agents, uptake, bandwidth)
    one_of("biased", biased, BIASES)
    if not (uptake > 0 and math.isfinite(bandwidth)):
        raise InputError(f"uptake = {uptake}, bandwidth = {bandwidth}: expected a positive and a finite number")
    bias, initial = real_number("bias", bias), real_number("initial", initial, least=0, most=1)
    labels = bandwidth - 1 if biased == "listener" else bandwidth
    strength = 2 * labels * n_agents * bias * (1 - uptake) / uptake ** (2 if biased == "anchor" else 1)
    if abs(strength) < 1e-12:
        return initial
    # exp(-S) overflows for strong negative biases; exchanging the labels makes S positive.
    if strength < 0:
        return 1 - math.expm1(strength * (1 - initial)) / math.expm1(strength)
    return math.expm1(-strength * initial) / math.expm1(-strength)


def _moments_step(n_agents: int, uptake: float, bandwidth: float) -> Float[np.ndarray, "2 2"]:
    """The matrix that takes (a, b) over one interaction."""
    N, alpha = whole_number("n_agents", n_agents, 2), real_number("uptake", uptake, least=0, most=1)
    unbounded = isinstance(bandwidth, float) and bandwidth == math.inf
    if not (unbounded or (is_number(bandwidth) and bandwidth >= 1 and bandwidth == round(bandwidth))):
        raise InputError(f"bandwidth = {shown(bandwidth)}: expected a whole number of at least 1, or math.inf")
    once, mixed = 1 / bandwidth, 2 * alpha * (1 - alpha)
    single, pair = np.array([0.0, 1.0]), np.array([N, -1.0]) / (N - 1)  # b and d as combinations of a and b
    group = (alpha / N) ** 2 * ((2 - once) * single - 2 * pair)
    agent = (mixed * pair - (mixed + alpha**2 * once) * single) / N
    return np.eye(2) + np.stack([group, agent])
