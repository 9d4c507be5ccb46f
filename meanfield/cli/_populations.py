"""Commands that simulate populations and hold theory against them: simulate, validate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import xarray as xr

import meanfield
from meanfield import TIME_PER_ROUND, InputError
from meanfield.cli._common import (
    MaxRounds,
    Model,
    Out,
    Pair,
    PolicyFile,
    Runs,
    Seed,
    Sizes,
    app,
    check_out,
    console,
    one_model,
    over_pairs,
    read_policies,
    saved,
    say,
    select,
)
from meanfield.toolbox import name_of


@app.command(epilog="Example: meanfield simulate published.nc --model gpt-4o --pair his/her -n 24 --out runs.nc")
def simulate(
    policies: PolicyFile,
    out: Out,
    n_agents: Sizes,
    model: Model = None,
    pair: Pair = None,
    runs: Runs = 1000,
    seed: Seed = 0,
    max_rounds: MaxRounds = 1000,
    record_rounds: Annotated[int | None, typer.Option(help="Record this many rounds.")] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(help="What to record of them: word_share (the default), said or success_rate; several times."),
    ] = None,
) -> None:
    """Simulate finite populations agent by agent, from empty memories."""
    from validation import simulate as simulate_runs

    check_out(out)
    results = [
        simulate_runs(
            policy,
            n_agents=n_agents,
            runs=runs,
            seed=seed,
            max_rounds=max_rounds,
            record_rounds=record_rounds,
            record=record,
            progress=sys.stderr.isatty(),
        )
        for policy in one_model(select(read_policies(policies), model, pair))
    ]
    for result in results:
        for size in result["n_agents"].values:
            ended = result["consensus_word"].sel(n_agents=size)
            shares = {word: (ended == word).mean().item() for word in meanfield.words_of(result)}
            shares["no consensus"] = ended.isnull().mean().item()
            listed = ", ".join(f"{outcome} {share:.3f}" for outcome, share in shares.items())
            say(f"{name_of(result)}, N = {size:,}: {listed}")
    saved(over_pairs(results), out)


@app.command(
    epilog="Example: meanfield validate published.nc --model gpt-4o --pair his/her -n 24 -n 2000 --out check.nc"
)
def validate(
    policies: Annotated[
        Path | None, typer.Argument(metavar="POLICIES", help="Policies as NetCDF, or the published q_dicts.zip.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write (CSV for --real-populations).")] = None,
    n_agents: Annotated[
        list[int] | None, typer.Option("--n-agents", "-n", help="Population size N; may be given several times.")
    ] = None,
    model: Model = None,
    pair: Pair = None,
    runs: Annotated[int | None, typer.Option(help="Simulated runs of each size (400) or policy drawn (100).")] = None,
    seed: Seed = 0,
    max_rounds: MaxRounds = 1000,
    rounds: Annotated[int, typer.Option(help="Rounds over which the word shares are compared.")] = 30,
    real_populations: Annotated[
        Path | None,
        typer.Option(help="Folder with choice_counts.csv.gz and runs.csv of populations that were really run."),
    ] = None,
) -> None:
    """Check the theory against simulation, or with --real-populations policies against populations that were run."""
    check_out(out)
    if real_populations is not None:
        if policies is not None or n_agents:
            raise InputError("--real-populations estimates policies from the folder: expected no POLICIES and no -n")
        _validate_real(real_populations, out, 100 if runs is None else runs, seed)
        return
    if policies is None or out is None or not n_agents:
        raise InputError("validate: expected POLICIES, --out and --n-agents, or --real-populations FOLDER")
    chosen = one_model(select(read_policies(policies), model, pair))
    saved(compare_policies(chosen, n_agents, 400 if runs is None else runs, seed, max_rounds, rounds), out)


def compare_policies(
    policies: list[xr.Dataset], n_agents: list[int], runs: int, seed: int, max_rounds: int, rounds: int
) -> xr.Dataset:
    from validation import compare
    from validation import simulate as simulate_runs
    from validation.comparison import comparison_table

    if runs < 2:
        raise InputError(f"runs = {runs}: expected at least 2, for a standard error")
    if not 1 <= rounds <= max_rounds:
        raise InputError(f"rounds = {rounds}: expected 1 to max_rounds = {max_rounds}")
    times = np.linspace(0, TIME_PER_ROUND * rounds, 4 * rounds + 1)
    comparisons = []
    for policy in policies:
        solution = meanfield.solve(policy, times=times, max_time=max(2000.0, times[-1]))
        simulation = simulate_runs(
            policy,
            n_agents=n_agents,
            runs=runs,
            seed=seed,
            max_rounds=max_rounds,
            record_rounds=rounds,
            progress=sys.stderr.isatty(),
        )
        comparisons.append(compare(solution, simulation))
        console.print(comparison_table(comparisons[-1]))
    return over_pairs(comparisons)


def _validate_real(folder: Path, out: Path | None, runs: int, seed: int) -> None:
    from validation import populations

    table = populations.validate(folder, runs=runs, seed=seed, progress=sys.stderr.isatty())
    for line in populations.report(table)[:-1]:
        say(line)
    if out is not None:
        table.to_csv(out, index=False)
        say(f"wrote {out}")
    say(populations.report(table)[-1])
