"""Sources of the papers' figures: policies, numbers of runs, and a folder that keeps results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.toolbox import policy_hash

STUDY = "study"
NUMBERS = 1  # raised where items compute something else from the same settings


class NotAtHandError(Exception):
    """An item needs data that this study does not have; the message names them."""


@dataclass(frozen=True)
class Study:
    """The data at hand and the effort; results are kept in `folder`, as NetCDF files, and found there the next time."""

    given: xr.Dataset | None  # policies of [004], a stack over model and pair; None for papers that need none
    folder: Path
    quick: bool = False  # a tenth of the runs
    seed: int = 1  # of all simulations
    progress: bool = False  # is shown

    def __post_init__(self) -> None:
        if self.given is None:
            return
        missing = [dim for dim in ("model", "pair") if dim not in self.policies.dims]
        if missing:
            raise InputError(f"policies have no dim {missing[0]}: expected a stack over model and pair")
        if self.policies.sizes["word"] != 2:
            raise InputError(f"policies have {self.policies.sizes['word']} words: expected two, as in the paper")

    def runs(self, number: int) -> int:
        """The number of runs, or a tenth of it."""
        return max(1, number // 10) if self.quick else number

    def effort(self, runs: int) -> dict[str, Any]:
        """Options of a simulation of so many runs."""
        return {"runs": self.runs(runs), "seed": self.seed, "progress": self.progress}

    @property
    def policies(self) -> xr.Dataset:
        """The policies; NotAtHandError if none were given."""
        if self.given is None:
            raise NotAtHandError("the policies of [004] are not at hand")
        return self.given

    def flag_game(self, table: str) -> pd.DataFrame:
        """A table of `meanfield.datasets.flag_game`; NotAtHandError if it is neither here nor can be fetched."""
        try:
            return meanfield.datasets.flag_game(table)
        except InputError as error:
            raise NotAtHandError(str(error)) from None

    def each_policy(self, **labels: str) -> list[xr.Dataset]:
        """The policies of a model, for a pair, or both; NotAtHandError if there are none."""
        found = self.policies
        for dim, label in labels.items():
            found = found.isel({dim: found[dim].values == label})
        policies = list(meanfield.each_policy(found)) if all(found.sizes.values()) else []
        if not policies:
            asked = "".join(f" {'for' if dim == 'pair' else 'of'} {label}" for dim, label in labels.items())
            raise NotAtHandError(f"no policy{asked} is in the data at hand")
        return policies

    def kept(self, name: str, make: Callable[..., xr.Dataset], *args: Any, **options: Any) -> xr.Dataset:
        """`make(*args, **options)`, from the folder if it was computed there before with equal arguments."""
        own = {key: value for key, value in options.items() if key != "progress"}
        told = {"args": args, "options": own, "seed": self.seed, "version": meanfield.__version__, "numbers": NUMBERS}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=_as_json).encode()).hexdigest()
        path = self.folder / f"{name}.nc"
        if path.exists():
            try:
                found = meanfield.load(path)
            except InputError:  # damaged, as by a machine that stopped: it is computed again
                found = xr.Dataset()
            if found.attrs.get(STUDY) == digest:
                return found
        self.folder.mkdir(parents=True, exist_ok=True)
        result = make(*args, **options).assign_attrs({STUDY: digest})
        meanfield.save(result, path)
        return result


def _as_json(value: Any) -> object:
    """An argument by which kept results are told apart."""
    if isinstance(value, xr.Dataset):
        return [policy_hash(value), *(value[dim].values.tolist() for dim in ("model", "pair"))]
    return value.to_csv(index=False, lineterminator="\n") if isinstance(value, pd.DataFrame) else str(value)


def together(**parts: xr.Dataset) -> xr.Dataset:
    """Several results in one Dataset, so that a figure has one file of numbers.

    Names of variables, dims and attrs begin with the name of their part.
    """
    renamed = [_renamed(one, f"{name}.", "") for name, one in parts.items()]
    attrs = {name: value for one in renamed for name, value in one.attrs.items()}
    return xr.merge(renamed, combine_attrs="drop").assign_attrs(attrs)


def part(numbers: xr.Dataset, name: str) -> xr.Dataset:
    """One of them, as it was."""
    others = [one for one in numbers.variables if not str(one).startswith(f"{name}.")]
    return _renamed(numbers.drop_vars(others), "", f"{name}.")


def _renamed(one: xr.Dataset, before: str, without: str) -> xr.Dataset:
    """With another start of the names; attrs whose names do not start with `without` are left out."""
    names = {name: f"{before}{str(name).removeprefix(without)}" for name in {*one.variables, *one.dims}}
    attrs = {f"{before}{k.removeprefix(without)}": v for k, v in one.attrs.items() if k.startswith(without)}
    return one.rename(names).drop_attrs(deep=False).assign_attrs(attrs)
