"""The parts that commands share: the application, its options, and the reading of policies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meanfield.toolbox import require_packages

if TYPE_CHECKING:
    import xarray as xr

try:
    require_packages("policy_extraction", "theory", "validation", "paper_figs")
except ImportError as error:
    sys.exit(f"meanfield: {error}")
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
DATASETS = ("llm-group-size", "smollm2")
EMPTY = {"U": "", "O": "", "b": False}  # what pads text and truth values, by the kind of a dtype
POLICIES = "Policies as NetCDF, the published q_dicts.zip, or smollm2 or llm-group-size as from `meanfield data`."

PolicyFile = Annotated[str, typer.Argument(metavar="POLICIES", help=POLICIES)]
Model = Annotated[str | None, typer.Option(help="Take this model of the file only.")]
Pair = Annotated[str | None, typer.Option(help="Take this word pair of the file only, as first/second.")]
Seed = Annotated[int, typer.Option(help="Seed; equal seeds give equal runs.")]
MaxRounds = Annotated[int, typer.Option(help="Rounds after which a run ends without consensus.")]


def read_policies(name: str, model: str | None = None, pair: str | None = None) -> xr.Dataset:
    """The policies of a file, or of a dataset by its name, of one model or pair."""
    import meanfield
    from meanfield.toolbox._labels import chosen

    if name.endswith(".zip"):
        policies = meanfield.datasets.llm_group_size(name)
    elif name in DATASETS and not Path(name).exists():
        policies = getattr(meanfield.datasets, name.replace("-", "_"))()
    else:
        policies = meanfield.load_policy(name)
    return chosen(policies, model=model, pair=pair)


def numbered(results: list[xr.Dataset]) -> list[xr.Dataset]:
    """The results with numbers along `word`, as results of different pairs have in one file or table."""
    return [one.assign_coords(word=one["word_number"].values) if "word" in one.coords else one for one in results]


def over_pairs(results: list[xr.Dataset]) -> xr.Dataset:
    """One Dataset; over the dim `pair` where there are several, with numbers along `word`.

    The shorter ones are padded with NaN, '' and False.
    """
    if len(results) == 1:
        return results[0]
    import xarray as xr

    results = numbered(results)
    counted = [
        one.assign_coords({dim: range(n) for dim, n in one.sizes.items() if dim not in one.coords}) for one in results
    ]
    empty = {name: EMPTY[one.dtype.kind] for name, one in results[0].variables.items() if one.dtype.kind in EMPTY}
    return xr.concat(
        counted,
        "pair",
        data_vars="different",
        coords="different",
        compat="equals",
        combine_attrs="drop_conflicts",
        join="outer",
        fill_value=empty,
    )


def captured(policies: xr.Dataset) -> str:
    mass = policies["captured_mass"]
    return f"the words hold {float(mass.min()):.1%} to {float(mass.max()):.1%} of the next-token probability"
