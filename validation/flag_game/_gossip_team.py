"""The team of a game of gossip: beliefs, anchors, maps and dispositions, checked and in the kernel's form."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import shown
from validation._engine.arguments import LARGEST_POPULATION
from validation.flag_game._gossip_kernel import Team

ROUNDING = 1e-9  # by which probabilities that sum to 1 may miss it
# Of the largest in its row. Products with something smaller would underflow, and a belief be lost.
SMALLEST_COMPATIBILITY = 1e-100
LARGEST_BANDWIDTH = 10**6
MOST_LABELS = 2**15 - 1  # answers are kept in 16 bits


def compatibility_rows(name: str, value: xr.DataArray | np.ndarray) -> tuple[xr.DataArray, list[str]]:
    """Probabilities over (run, agent, country), one run if they have no such dim, and the names of the countries.

    Countries are a coordinate of the probabilities only if they were named; other countries have their numbers as
    names.
    """
    names = None
    if isinstance(value, xr.DataArray):
        dims = ("run", "agent", "country") if "run" in value.dims else ("agent", "country")
        if set(value.dims) != set(dims):
            raise InputError(f"{name} has the dims {value.dims}: expected (agent, country) or (run, agent, country)")
        value = value.transpose(*dims)
        names = _names(name, value, "country")
    rows = _array(name, value, "an array of probabilities")
    several = rows.ndim in (2, 3) and 2 <= rows.shape[-2] <= LARGEST_POPULATION and 2 <= rows.shape[-1] <= MOST_LABELS
    if not several:
        raise InputError(f"{name} has shape {rows.shape}: expected (N, K) or (runs, N, K) with N ≥ 2 and K ≥ 2")
    rows = rows.reshape(-1, *rows.shape[-2:])
    worst = np.abs(rows.sum(-1) - 1).max() if np.isfinite(rows).all() and rows.size else np.inf
    if not worst <= ROUNDING or rows.min() < 0:
        found = f"sums miss it by up to {worst:.3g}, the smallest entry is {rows.min(initial=np.inf):.3g}"
        raise InputError(f"{name}: expected probabilities of at least 0 that sum to 1 over the countries; {found}")
    scaled = rows / rows.max(-1, keepdims=True)
    if ((scaled > 0) & (scaled < SMALLEST_COMPATIBILITY)).any():
        least = f"{SMALLEST_COMPATIBILITY:g} of their row's largest"
        raise InputError(f"{name}: expected entries that are 0 or at least {least}")
    labelled = xr.DataArray(rows, dims=("run", "agent", "country"), coords={"country": names} if names else None)
    return labelled, names or [str(k) for k in range(rows.shape[-1])]


def _names(name: str, value: xr.DataArray, dim: str) -> list[str] | None:
    """The names of the countries along `dim`, if it has some."""
    if dim not in value.coords:
        return None
    names = [str(country) for country in value[dim].values]
    if len(set(names)) < len(names):
        raise InputError(f"{name}: {dim} = {names}: expected different countries")
    return names


def _in_order(name: str, value: xr.DataArray, dim: str, rows: xr.DataArray) -> xr.DataArray:
    """`value` with its countries along `dim` in the order of `rows`, where both have names."""
    names = _names(name, value, dim)
    if names is None or "country" not in rows.coords:
        return value
    order = rows["country"].values.tolist()
    if set(names) != set(order):
        raise InputError(f"{name}: {dim} = {names}: expected the countries of compatibility, {', '.join(order)}")
    return value.isel({dim: [names.index(country) for country in order]})


def start_beliefs(initial: str | xr.DataArray | np.ndarray | None, rows: xr.DataArray, grounded: bool) -> np.ndarray:
    """Beliefs at the start, shape (T, N, K): p itself, 'flat', or the given ones."""
    if initial is None:
        return rows.values
    if isinstance(initial, str):
        if initial != "flat":
            raise InputError(f"initial = {initial!r}: expected None, 'flat' or beliefs")
        return np.full((1, *rows.shape[1:]), 1 / rows.shape[-1])
    given, _ = compatibility_rows("initial", initial)
    if given.shape[1:] != rows.shape[1:] or len(given) not in (1, len(rows)):
        raise InputError(f"initial has shape {given.shape}: expected the shape of compatibility, {rows.shape}")
    beliefs = _in_order("initial", given, "country", rows).values
    disjoint = ~((beliefs > 0) & (rows.values > 0)).any(-1)
    if grounded and disjoint.any():
        agent = int(np.argwhere(disjoint)[0, 1])
        raise InputError(f"initial: agent {agent} believes in no country that is compatible with its crop")
    return beliefs


def make_team(
    rows: xr.DataArray,
    grounded: bool,
    rewrite_map: xr.DataArray | np.ndarray | None,
    uptake: float | Sequence[float],
    rewrite: float | Sequence[float],
    bandwidth: float | Sequence[float],
    manager_uptake: float | None,
) -> Team:
    """The team of N observers with the compatibilities `rows` (T, N, K), and of a manager unless its uptake is None."""
    n_agents, n_labels = rows.shape[1:]
    scaled = rows.values / rows.values.max(-1, keepdims=True)
    alpha = _by_agent("uptake", uptake, n_agents, 0, 1)
    gamma = _by_agent("rewrite", rewrite, n_agents, 0, 1)
    maps, is_similarity = _maps(rewrite_map, rows)
    if rewrite_map is None and gamma.any():
        raise InputError(f"rewrite = {rewrite!r}: a rewrite needs a rewrite_map")
    anchor = scaled if grounded else np.ones((1, n_agents, n_labels))
    crop_weight = scaled if is_similarity else np.ones((1, n_agents, n_labels))
    words = _by_agent("bandwidth", bandwidth, n_agents, 1, math.inf)
    finite = words[np.isfinite(words)]
    if (finite != np.round(finite)).any() or finite.max(initial=1) > LARGEST_BANDWIDTH:
        raise InputError(f"bandwidth = {bandwidth!r}: expected whole numbers up to {LARGEST_BANDWIDTH}, or math.inf")
    words = np.where(np.isfinite(words), words, 0).astype(np.int64)  # 0 for infinitely many
    if manager_uptake is not None:
        # It sees no crop: nothing to anchor it, and nothing to rewrite by. It sends decisions, not messages.
        anchor, crop_weight = (np.pad(a, ((0, 0), (0, 1), (0, 0)), constant_values=1.0) for a in (anchor, crop_weight))
        alpha = np.append(alpha, _by_agent("manager_uptake", manager_uptake, 1, 0, 1))
        gamma, words = np.append(gamma, 0.0), np.append(words, 1)
        maps = np.concatenate([maps, maps[:1]]) if len(maps) > 1 else maps
    trials = max(len(anchor), len(crop_weight))
    # Copies, because views are read-only: the kernel would be compiled once more for them.
    anchor, crop_weight = (np.broadcast_to(a, (trials, *a.shape[1:])).copy() for a in (anchor, crop_weight))
    return Team(anchor, crop_weight, maps, np.stack([alpha, gamma], axis=-1), words)


def _array(name: str, value: object, expected: str) -> np.ndarray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} = {shown(value)}: expected {expected}") from None


def _by_agent(name: str, value: float | Sequence[float], n_agents: int, least: float, most: float) -> np.ndarray:
    values = _array(name, value, "a number, or one for each agent")
    if values.shape not in ((), (n_agents,)):
        raise InputError(f"{name} has shape {values.shape}: expected one number, or one for each of {n_agents} agents")
    if not ((values >= least) & (values <= most)).all():
        raise InputError(f"{name} = {value!r}: expected from {least} to {most}")
    return np.broadcast_to(values, (n_agents,)).copy()


def _maps(rewrite_map: xr.DataArray | np.ndarray | None, rows: xr.DataArray) -> tuple[np.ndarray, bool]:
    """Maps with the reported country first, one for all or one for each agent; and whether it is a similarity."""
    n_agents, n_labels = rows.shape[1:]
    if isinstance(rewrite_map, xr.DataArray):
        dims = ("agent", "country", "reported") if "agent" in rewrite_map.dims else ("country", "reported")
        if len(rewrite_map.dims) != len(dims) or set(rewrite_map.dims) != set(dims):
            expected = "(country, reported) or (agent, country, reported)"
            raise InputError(f"rewrite_map has the dims {rewrite_map.dims}: expected {expected}")
        if ("country" in rewrite_map.coords) != ("reported" in rewrite_map.coords):
            raise InputError(
                "rewrite_map: expected names of countries along both country and reported, or along neither"
            )
        for dim in ("country", "reported"):
            rewrite_map = _in_order("rewrite_map", rewrite_map, dim, rows)
        rewrite_map = rewrite_map.transpose(*dims)
    if rewrite_map is None:
        return np.zeros((1, n_labels, n_labels)), False
    maps = _array("rewrite_map", rewrite_map, "an array of numbers")
    shared = (n_labels, n_labels)
    if maps.shape not in (shared, (n_agents, *shared)):
        raise InputError(f"rewrite_map has shape {maps.shape}: expected {shared} or {(n_agents, *shared)}")
    if not np.isfinite(maps).all() or maps.min() < 0:
        raise InputError("rewrite_map: expected finite numbers of at least 0")
    return np.ascontiguousarray(maps.reshape(-1, *shared).transpose(0, 2, 1)), maps.ndim == 2
