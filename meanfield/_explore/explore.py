"""A page in which a person who does not program explores policies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import xarray as xr

from meanfield._explore.entries import entries_of
from meanfield._explore.page import page_of
from meanfield.toolbox._files import check_writable, whole_file


def explore(policies: xr.Dataset | Iterable[xr.Dataset], path: str | os.PathLike[str] = "explorer.html") -> Path:
    """Write a page for a browser that shows the behaviour of populations of these agents, and return its path.

    The page is one file. It needs no server and no network, and shows the flow on the line of word shares with fixed
    points and basins, the rate equation from chosen starts, N agents that are really simulated beside it, the
    group-size law and critical masses. The browser computes all of it but κ of the group-size law, which this function
    computes at about 25 temperatures where there are two attractors. That takes half a minute for a policy with H = 5,
    and half a second where there is one attractor. Sliders change N, the fractions of agents committed to either word,
    and the sampling temperature. The address holds all settings, so that a view can be shared.

    Numbers on the page agree with `fixed_points`, `solve`, `basins`, `critical_mass`, `group_size_law` and, for the
    same seed, `validation.simulate`; κ at other temperatures is interpolated to three digits. The page takes the
    measured log-probabilities there, as `policy_extraction.policy_from_record` does. A policy without them, or one that
    was filtered, has its probabilities taken to the power 1/T and normalised, with T in units of the measured
    temperature.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, or several of either; of two words each and H ≤ 6.
    path
        HTML file to write, whole or not at all.

    Returns
    -------
    Path of the file, 0.18 MB plus 0.06 MB for each policy with H = 5.

    Raises
    ------
    InputError
        If a policy has other than two words or H > 6, there is no policy, or `path` can't be written.

    See Also
    --------
    plot : drawings of single results
    group_size_law : the numbers behind one of its pictures

    Examples
    --------
    >>> import meanfield, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = meanfield.explore(meanfield.datasets.smollm2(), f"{folder}/explorer.html")
    ...     page.stat().st_size < 2_000_000
    True
    """
    path = check_writable(path)
    entries = entries_of(policies)
    with whole_file(path) as temporary:
        temporary.write_text(page_of(entries), encoding="utf-8", newline="\n")
    return path
