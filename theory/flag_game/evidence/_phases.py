"""Copying in infinitely many agents: which evidence leads to which endpoint."""

from __future__ import annotations

import xarray as xr
from scipy.special import expit

from meanfield.toolbox import labelled, real_number, stamp
from theory.flag_game.mechanism1 import ENDPOINTS
from theory.flag_game.mechanism1._endpoints import CONSENSUS_PERCENT, POLAR_PERCENT


def phase_boundaries(anchored: float, bias: float = 0.0) -> xr.Dataset:
    """The shares of rival evidence e at which the endpoint of infinitely many copying agents changes.

    With a_T = a(1 - e) and a_R = a e the share y of agents who hold the truth settles where gains balance losses,

        (1 - y - a e) y q_T = (y - a(1 - e)) (1 - y) q_R,   that is

        e(y) = (1 - y) [y q_T - (y - a) q_R] / (a [y q_T + (1 - y) q_R]).

    Without bias y = 1 - e, whatever a is. The result has e at y = 0.85, 0.75, 0.25 and 0.15, between which an infinite
    population ends in correct consensus, fragmentation, polarisation, fragmentation and wrong consensus.

    Parameters
    ----------
    anchored
        a = a_T + a_R, above 0 and at most 1.
    bias
        h = ln(q_T/q_R).

    Returns
    -------
    Dataset over `boundary` (0 to 3) with `truth_share` y, `evidence` e(y), and the endpoints `below` and `above` it in
    evidence. An e below 0 or above 1 is no boundary: no evidence leads across it.

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

    >>> from theory.flag_game.evidence import phase_boundaries
    >>> for bias in (0.0, 0.3):
    ...     print(phase_boundaries(0.45, bias)["evidence"].values.round(2).tolist())
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
