"""The commands that call one function each: the function, its table, and the printed summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from meanfield.cli._analysis import Analysis, register

if TYPE_CHECKING:
    import xarray as xr


def _attractors(solution: xr.Dataset) -> Iterator[str]:
    import numpy as np

    import meanfield

    dims = solution["attractor"].dims
    for place in np.ndindex(*solution["attractor"].shape):
        end = solution.isel(dict(zip(dims, place, strict=True)))
        if end["attractor"].item() is not None:
            note = "" if end["steady"] else f", not steady: still moving at t = {end['end_time'].item():g}"
            last = end.isel(time=-1)
            words = zip(meanfield.toolbox.words_of(end), last["word_share"].values, strict=True)
            shares = ", ".join(f"{word} {share:.3g}" for word, share in words)
            yield f"{_name(end)}: ends at {end['label'].item()}{note}; at t = {last['time'].item():g} {shares}"


def _ends(runs: xr.Dataset) -> Iterator[str]:
    import meanfield

    for one in [runs.isel(pair=i) for i in range(runs.sizes["pair"])] if "pair" in runs.dims else [runs]:
        for size in one["n_agents"].values:
            ended = one["consensus_word"].sel(n_agents=size)
            shares = {word: (ended == word).mean().item() for word in meanfield.toolbox.words_of(one)}
            shares["no consensus"] = ended.isnull().mean().item()
            listed = ", ".join(f"{outcome} {share:.3f}" for outcome, share in shares.items())
            yield f"{_name(one)}, N = {size:,}: {listed}"


def _winners(times: xr.Dataset) -> Iterator[str]:
    for size in times["n_agents"].values:
        for word in times["word"].values:
            one = times.sel(n_agents=size, word=word)
            low, high = one["interval"].values
            share = f"{_name(times)}, N = {size:,}, {word}: {one['probability'].item():.3f} ({low:.3f} to {high:.3f})"
            rows = zip(one["quantile"].values, one["quantiles"].values, one["quantile_interval"].values, strict=True)
            rounds = [f"{100 * q:g} % {time:g} ({low:g} to {high:g})" for q, time, (low, high) in rows]
            yield f"{share}, rounds {', '.join(rounds)}" if one["wins"] else share


def _chances(rare: xr.Dataset) -> Iterator[str]:
    chance, error, (low, high) = rare["probability"].item(), rare["relative_error"].item(), rare["interval"].values
    name = " ".join(str(rare[one].item()) for one in ("model", "pair") if one in rare.coords)
    told = f"{name}, N = {rare['n_agents'].item():,}: ends at {rare['word'].item()} with probability {chance:.3g}"
    told += f" ({rare['interval'].attrs['long_name']} {low:.3g} to {high:.3g})" if high == high else ""
    yield told + (f", relative error {error:.2g}" if error == error else "")
    if rare.attrs["reason"]:
        yield rare.attrs["reason"]


def _warnings(report: xr.Dataset) -> list[str]:
    from policy_extraction import policy_warnings

    return policy_warnings(report) or ["nothing to warn of"]


def _name(result: xr.Dataset) -> str:
    from meanfield.toolbox import name_of

    return name_of(result)


ANALYSES = (
    Analysis(
        "solve",
        "meanfield._dynamics.solve",
        "solve",
        ("model", "pair", "time"),
        "published.nc --model gpt-4o --out solution.nc",
        together=True,
        summary=_attractors,
        skip=("initial",),
    ),
    Analysis(
        "fixed-points",
        "meanfield._fixed_points.fixed_points",
        "fixed_points",
        ("fixed_point",),
        "published.nc --pair his/her --out fixed_points.csv",
        skip=("masses", "initial", "starts", "seed"),
        first=("label", "word_share", "eigenvalue", "stability"),
    ),
    Analysis(
        "basins",
        "meanfield._dynamics.basins",
        "basins",
        ("attractor",),
        "published.nc --model gpt-4o --out basins.csv",
        skip=("masses",),
        first=("label", "fraction", "word_share"),
    ),
    Analysis(
        "bifurcation",
        "meanfield._parameters.bifurcation",
        "bifurcation",
        ("point",),
        "published.nc --model gpt-4o --pair his/her --word her --out bifurcation.nc",
        skip=("interval", "masses", "starts", "seed"),
    ),
    Analysis(
        "critical-mass",
        "meanfield._parameters.critical_mass",
        "critical_mass",
        (),
        "published.nc --model gpt-4o --pair woman/man --word woman",
    ),
    Analysis(
        "group-size",
        "meanfield._finite_size.group_size_law",
        "group_size_law",
        ("n_agents",),
        "published.nc --model gpt-4o --pair African/White --n-agents 24,100,400",
    ),
    Analysis(
        "finite-size",
        "meanfield._finite_size.moments",
        "finite_size",
        ("n_agents", "time"),
        "published.nc --model gpt-4o --pair his/her -n 24,100 --times 0:20:2 --out moments.csv",
        skip=("initial",),
        first=("mean", "variance"),
    ),
    Analysis(
        "sensitivity",
        "meanfield._large_deviations.sensitivity",
        "sensitivity",
        ("component", "state"),
        "published.nc --model gpt-4o --pair woman/man --of kappa --out sensitivity.csv",
        first=("memory", "derivative", "contribution"),
        largest="derivative",
    ),
    Analysis(
        "lifetime",
        "meanfield._large_deviations.lifetime",
        "lifetime",
        ("fixed_point", "n_agents"),
        "policies.nc -n 24,100 --out lifetimes.csv",
        skip=("masses",),
    ),
    Analysis(
        "transition-rates",
        "meanfield._large_deviations.transition_rates",
        "transition_rates",
        ("fixed_point", "next_fixed_point", "n_agents"),
        "policies.nc -n 24,100 --out rates.csv",
        skip=("masses",),
        first=("rate", "stationary", "lifetime"),
    ),
    Analysis(
        "escape-path",
        "meanfield._large_deviations.escape_path",
        "escape_path",
        ("time",),
        "policies.nc --fixed-point 0 --out path.nc",
        skip=("masses",),
    ),
    Analysis(
        "design",
        "meanfield._large_deviations.design",
        "design",
        ("state",),
        "published.nc --model gpt-4o --pair woman/man --of kappa --value -0.1 --out changed.nc",
    ),
    Analysis(
        "check",
        "policy_extraction.checks._check_policy",
        "check_policy",
        ("policy",),
        "smollm2 --out check.csv",
        together=True,
        summary=_warnings,
    ),
    Analysis(
        "simulate",
        "validation.naming_game._simulate",
        "simulate",
        ("n_agents", "run"),
        "published.nc --model gpt-4o --pair his/her -n 24 --out runs.nc",
        summary=_ends,
    ),
    Analysis(
        "consensus-times",
        "validation.naming_game._outcomes",
        "consensus_times",
        ("n_agents", "word", "consensus_time"),
        "runs.nc --quantiles 0.05,0.5,0.95 --out times.csv",
        summary=_winners,
    ),
    Analysis(
        "committed-minority",
        "validation.naming_game._committed_minority",
        "committed_minority",
        ("n_committed",),
        "policies.nc -n 24 --word her --numbers 0:12:1 --out flips.csv",
    ),
    Analysis(
        "rare-event",
        "validation.naming_game._rare_event",
        "rare_event",
        ("replication",),
        "published.nc White --model gpt-4o --pair African/White -n 1000 --runs 200 --out rare.nc",
        summary=_chances,
        skip=("initial", "coordinate"),
    ),
    Analysis(
        "collective-bias",
        "validation.naming_game._collective_bias",
        "collective_bias",
        ("pair", "n_agents"),
        "published.nc --model gpt-4o -n 24,100 --out bias.csv",
        together=True,
    ),
    Analysis(
        "flag-game",
        "validation.flag_game._mechanism1",
        "simulate",
        ("n_agents",),
        "-n 4,16,64 --parameters J=0.5,beta=2 --out flag_game.nc",
    ),
    Analysis(
        "fit-flag-game",
        "theory.flag_game.mechanism1._fit",
        "fit",
        ("parameter",),
        "population_scaling.csv --free mean_T,mean_R --out fit.nc",
    ),
)
register(ANALYSES)
