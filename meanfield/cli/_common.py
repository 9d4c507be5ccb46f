"""What all commands share: the application, its options, and how files are read, written and told of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from rich.console import Console

import meanfield
from meanfield import InputError
from meanfield.toolbox import check_writable

HELP = """The `meanfield` command: each step of the chain, from files to files."""
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich", help=HELP)
console = Console()

PolicyFile = Annotated[
    Path, typer.Argument(metavar="POLICIES", help="Policies as NetCDF, or the published q_dicts.zip.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]
Model = Annotated[str | None, typer.Option(help="Take this model of the file only.")]
Pair = Annotated[str | None, typer.Option(help="Take this word pair of the file only, as first/second.")]
Sizes = Annotated[list[int], typer.Option("--n-agents", "-n", help="Population size N; may be given several times.")]
Runs = Annotated[int, typer.Option(help="Simulated runs of each population size.")]
Seed = Annotated[int, typer.Option(help="Seed; equal seeds give equal runs.")]
MaxRounds = Annotated[int, typer.Option(help="Rounds after which a run ends without consensus.")]


def read_policies(path: Path) -> xr.Dataset:
    return meanfield.datasets.llm_group_size(path) if path.suffix == ".zip" else meanfield.load_policy(path)


def select(policies: xr.Dataset, model: str | None, pair: str | None) -> xr.Dataset:
    for dim, label in (("model", model), ("pair", pair)):
        if label is None:
            continue
        known = [str(value) for value in policies[dim].values.ravel()] if dim in policies.coords else []
        if label not in known:
            raise InputError(
                f"{dim} = {label!r}: expected one of {', '.join(known) or 'none, the file names no ' + dim}"
            )
        policies = policies.sel({dim: label}) if dim in policies.dims else policies
    return policies


def one_model(policies: xr.Dataset) -> list[xr.Dataset]:
    if policies.sizes.get("model", 1) > 1:
        raise InputError(f"the file has the models {', '.join(policies['model'].values)}: choose one with --model")
    return list(meanfield.each_policy(policies))


def over_pairs(results: list[xr.Dataset]) -> xr.Dataset:
    """One Dataset; over the dim `pair` where there are several, with numbers along `word`."""
    if len(results) == 1:
        return results[0]
    results = [one.assign_coords(word=one["word_number"].values) if "word" in one.coords else one for one in results]
    return xr.concat(
        results, "pair", data_vars="different", coords="different", compat="equals", combine_attrs="drop_conflicts"
    )


def captured(policies: xr.Dataset) -> str:
    mass = policies["captured_mass"]
    return f"the words hold {float(mass.min()):.1%} to {float(mass.max()):.1%} of the next-token probability"


def check_out(*paths: Path | None) -> None:
    """Long work starts only when its results can be written."""
    for path in paths:
        if path is not None:
            check_writable(path)


def saved(result: xr.Dataset, path: Path, note: str = "") -> None:
    meanfield.save(result, path)
    say(f"wrote {path}" + (f": {note}" if note else ""))


def say(text: str) -> None:
    """One line, however long, and no markup: paths and words are shown as they are."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
