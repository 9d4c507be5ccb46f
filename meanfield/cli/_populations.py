"""Commands that compare theory with populations: validate, power."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meanfield import InputError
from meanfield.cli._common import POLICIES, MaxRounds, Model, Pair, Seed, app, over_pairs, read_policies
from meanfield.cli._options import numbers, split
from meanfield.cli._output import DATASET, TABLE, Output, console, say

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from meanfield.datasets import RealPopulations


class HeldOut(StrEnum):
    """Interactions left out of the runs from which a policy is estimated."""

    run = "run"
    experiment = "experiment"


@app.command(epilog="Example: meanfield validate published.nc --model gpt-4o --pair his/her -n 24,2000 --out check.nc")
def validate(
    policies: Annotated[str | None, typer.Argument(metavar="POLICIES", help=POLICIES)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="NetCDF file to write, a table for --real-populations.")
    ] = None,
    n_agents: Annotated[
        list[str] | None, typer.Option("--n-agents", "-n", metavar="NUMBER,…", help="Population sizes N.")
    ] = None,
    model: Model = None,
    pair: Pair = None,
    runs: Annotated[int | None, typer.Option(help="Simulated runs of each size (400) or policy drawn (100).")] = None,
    seed: Seed = 0,
    max_rounds: MaxRounds = 1000,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds over which the word shares are compared (the first 30).")
    ] = None,
    real_populations: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER|LOG",
            help="Populations really run: a folder with choice_counts.csv.gz and runs.csv, or archives, or a file "
            "with a row for each interaction, as datasets.from_events takes it.",
        ),
    ] = None,
    memory_length: Annotated[
        int | None, typer.Option(help="Of a log: the interactions that an agent remembers.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMN,…", help="Of a log: its columns, as said=answer,run=None.")
    ] = None,
    sep: Annotated[str | None, typer.Option(help="Of a log: what stands between its columns, as ';'.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Of a log: the decimal mark of its steps, '.' or ','.")] = None,
    held_out: Annotated[HeldOut | None, typer.Option(help="With archives or a log: what other runs predict.")] = None,
) -> None:
    """Check the theory against simulation, or with --real-populations policies against populations that were run."""
    if real_populations is not None:
        if policies is not None or n_agents:
            raise InputError("--real-populations estimates policies from the folder: expected no POLICIES and no -n")
        real = _log(real_populations, memory_length, columns, sep, decimal) or real_populations
        _validate_real(real, out, 100 if runs is None else runs, seed, held_out)
        return
    of_log = {"memory-length": memory_length, "columns": columns, "sep": sep, "decimal": decimal}
    for name, given in {"held-out": held_out, **of_log}.items():
        if given is not None:
            raise InputError(f"--{name}: expected --real-populations")
    if policies is None or out is None or not n_agents:
        raise InputError("validate: expected POLICIES, --out and --n-agents, or --real-populations FOLDER or LOG")
    sizes = numbers("n_agents", n_agents)
    output = Output(out, forms=DATASET)
    chosen = one_model(read_policies(policies, model, pair))
    output.write(compare_policies(chosen, sizes, 400 if runs is None else runs, seed, max_rounds, rounds))


def compare_policies(
    policies: list[xr.Dataset], n_agents: list[int | float], runs: int, seed: int, max_rounds: int, rounds: int | None
) -> xr.Dataset:
    from validation import compare
    from validation.comparison import comparison_table

    plan = {"n_agents": n_agents, "runs": runs, "seed": seed, "max_rounds": max_rounds, "rounds": rounds}
    comparisons = []
    for policy in policies:
        comparisons.append(compare(policy, **plan, progress=sys.stderr.isatty()))
        console.print(comparison_table(comparisons[-1]))
    return over_pairs(comparisons)


def _log(
    path: Path, memory_length: int | None, columns: list[str] | None, sep: str | None, decimal: str | None
) -> RealPopulations | None:
    """The populations of a log; None of a folder or an archive."""
    from meanfield.toolbox import existing_file

    if path.is_dir() or existing_file(path, "real_populations").suffix.lower() == ".zip":
        if (memory_length, columns, sep, decimal) != (None,) * 4:
            options = "--memory-length, --columns, --sep and --decimal"
            raise InputError(f"real_populations = {path}: {options} are for the file of a log")
        return None
    if memory_length is None:
        raise InputError(f"real_populations = {path}: a log needs --memory-length")
    from meanfield.datasets import from_events

    parts = {part: part.partition("=") for part in split(columns or [])}
    if wrong := [part for part, (_, equals, _) in parts.items() if not equals]:
        raise InputError(f"columns = {wrong[0]!r}: expected names and columns, as in said=answer,run=None")
    named = {name: None if column == "None" else column for name, _, column in parts.values()}
    return from_events(path, memory_length=memory_length, columns=named, sep=sep, decimal=decimal or ".")


def _validate_real(
    given: Path | RealPopulations, out: Path | None, runs: int, seed: int, held_out: HeldOut | None
) -> None:
    output = Output(out, forms=TABLE)
    from meanfield._tables.result_table import table_text
    from meanfield.datasets import ai_norms
    from validation import populations

    progress = sys.stderr.isatty()
    if held_out is None:
        table = populations.validate(given, runs=runs, seed=seed, progress=progress)
    else:
        real = ai_norms(given, ordered=True, progress=progress) if isinstance(given, Path) else given
        table = populations.cross_validate(real, by=held_out.value, runs=runs, seed=seed, progress=progress)
        _say_scores(populations.choice_scores(real, by=held_out.value, seed=seed, progress=progress))
    *lines, last = populations.report(table)
    for line in lines:
        say(line)
    output.write(None, lambda form: table_text(table, form, "Real populations against policies", "real-populations"))
    say(last)


def _say_scores(scores: pd.DataFrame) -> None:
    """A line a policy: how much better than the best simple law it predicts single choices."""
    for _, rows in scores.groupby(["model", "pair", "memory_length"], sort=True):
        policy, *others = rows.to_dict("records")
        words = "{" + ", ".join(policy["pair"].split("/")) + "}"
        known = [row for row in others if row["log_likelihood"] == row["log_likelihood"]]
        best = max(known, key=lambda row: row["log_likelihood"], default=None)
        where = f"{policy['model']} {words}, H = {policy['memory_length']}"
        if best is None:
            say(f"{where}: no other runs")
        elif policy["log_likelihood"] != policy["log_likelihood"]:
            say(f"{where}: ln q of a held-out choice {best['log_likelihood']:.3f} ({best['law']})")
        else:
            told = (
                f"ln q of a held-out choice {policy['log_likelihood']:.3f}; {best['law']} {best['log_likelihood']:.3f}"
            )
            gain, low, high = (f"{best[name] + 0.0:.2g}" for name in ("gain", "gain_low", "gain_high"))  # no -0
            say(f"{where}: {told}, gain {gain} ({low} to {high})")


@app.command(epilog="Example: meanfield power published.nc --model gpt-4o --pair his/her -n 24,100 --runs 10,20,40,80")
def power(
    policies: Annotated[str | None, typer.Argument(metavar="POLICIES", help=POLICIES)] = None,
    kappa: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER,…", help="κ of the group-size law, in place of POLICIES.")
    ] = None,
    n_agents: Annotated[
        list[str] | None, typer.Option("--n-agents", "-n", metavar="NUMBER,…", help="Population sizes N.")
    ] = None,
    model: Model = None,
    pair: Pair = None,
    runs: Annotated[list[str] | None, typer.Option(metavar="NUMBER,…", help="Planned numbers of runs.")] = None,
    against: Annotated[float, typer.Option(help="κ of the bias to exclude.")] = 0.0,
    undecided: Annotated[float, typer.Option(help="Probability that a run agrees on no word.")] = 0.0,
    level: Annotated[float, typer.Option(help="Confidence at which a bias is called.")] = 0.95,
    wanted: Annotated[float, typer.Option(help="Power for which the number of runs is needed.")] = 0.8,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write: .csv, .json or .tex.")] = None,
) -> None:
    """The probability that planned runs call a collective bias, and the number of runs needed."""
    if (policies is None) == (kappa is None) or not n_agents:
        raise InputError("power: expected POLICIES or --kappa, and --n-agents")
    output = Output(out, forms=TABLE)
    from meanfield._tables.result_table import table_text
    from validation import populations

    bias = numbers("kappa", kappa) if kappa else read_policies(str(policies), model, pair)
    plan = {"runs": numbers("runs", runs)} if runs else {}
    chances = {"against": against, "undecided": undecided, "level": level, "wanted": wanted}
    table = populations.power(bias, n_agents=numbers("n_agents", n_agents), **plan, **chances)
    for line in populations.report(table):
        say(line)
    output.write(None, lambda form: table_text(table, form, "Power of planned runs", "power"))


def one_model(policies: xr.Dataset) -> list[xr.Dataset]:
    import meanfield

    if policies.sizes.get("model", 1) > 1:
        raise InputError(f"the file has the models {', '.join(policies['model'].values)}: choose one with --model")
    return list(meanfield.each_policy(policies))
