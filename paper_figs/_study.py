"""Sources of the papers' figures: policies, numbers of runs, and a folder that keeps results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
    """The data at hand and the effort; results are kept in `folder` and found there the next time.

    Parameters
    ----------
    given
        The policies of [004], a stack over model and pair; None for papers that need none.
    folder
        For the numbers of figures, as NetCDF files.
    quick
        A tenth of the runs.
    seed
        Of all simulations.
    progress
        Show progress.
    """

    given: xr.Dataset | None
    folder: Path
    quick: bool = False
    seed: int = 1
    progress: bool = False

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

    @property
    def models(self) -> list[str]:
        """The models at hand."""
        return [str(model) for model in self.policies["model"].values]

    @property
    def pairs(self) -> list[str]:
        """The pairs at hand."""
        return [str(pair) for pair in self.policies["pair"].values]

    def policy(self, model: str, pair: str) -> xr.Dataset:
        """One policy; NotAtHandError if the data do not hold it."""
        if model not in self.models or pair not in self.pairs:
            raise NotAtHandError(f"the policy of {model} for {pair} is not in the data at hand")
        for one in meanfield.each_policy(self.policies.sel(model=[model], pair=[pair])):
            return one
        raise NotAtHandError(f"the policy of {model} for {pair} is not in the data at hand")

    def of_model(self, model: str) -> list[xr.Dataset]:
        """All policies of a model; NotAtHandError if there are none."""
        found = self.policies.sel(model=[model]) if model in self.models else None
        if found is None or not (policies := list(meanfield.each_policy(found))):
            raise NotAtHandError(f"the policies of {model} are not in the data at hand")
        return policies

    def of_pair(self, pair: str) -> list[xr.Dataset]:
        """The policies of all models for a pair; NotAtHandError if there are none."""
        found = self.policies.sel(pair=[pair]) if pair in self.pairs else None
        if found is None or not (policies := list(meanfield.each_policy(found))):
            raise NotAtHandError(f"no policy for {pair} is in the data at hand")
        return policies

    def kept(
        self, name: str, make: Callable[[], xr.Dataset], policy: xr.Dataset | None, **settings: object
    ) -> xr.Dataset:
        """The value of `make`, from the folder if it was computed there before with the same policy and settings.

        Of a DataFrame that `make` uses, `digest` goes into the settings.
        """
        told = {"seed": self.seed, "version": meanfield.__version__, "numbers": NUMBERS, **settings}
        if policy is not None:
            names = [policy[dim].values.tolist() for dim in ("model", "pair")]
            told |= {"policy": policy_hash(policy), "names": names}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        path = self.folder / f"{name}.nc"
        if path.exists():
            try:
                found = meanfield.load(path)
            except InputError:  # damaged, as by a machine that stopped: it is computed again
                found = xr.Dataset()
            if found.attrs.get(STUDY) == digest:
                return found
        self.folder.mkdir(parents=True, exist_ok=True)
        result = make().assign_attrs({STUDY: digest})
        meanfield.save(result, path)
        return result


def digest(table: pd.DataFrame) -> str:
    """A hash of the values of a table, for `Study.kept`."""
    return hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode()).hexdigest()
