"""Fits as tables: the numbers of the fit, and what its intervals say."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from meanfield import InputError
from theory.flag_game import evidence, mechanism1, summary

ENDS = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
RUNS = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ENDS})
COUNTS = pd.DataFrame(
    {"N": [4, 8, 16], "seeds": 40}
    | {
        f"{name}_count": row
        for name, row in zip(mechanism1.ENDPOINTS, [[17, 17, 18], [12, 3, 1], [11, 20, 17], [0, 0, 4]], strict=True)
    }
)


def test_fits_of_mechanism_1_and_of_copying_are_tables():
    columns = {"estimate": [2.0, 0.5, 1.0], "free": [True, True, False], "identified": [True, False, False]}
    fit = xr.Dataset(
        {name: ("parameter", values) for name, values in columns.items()}
        | {"interval": (("bound", "parameter"), [[3.0, 2.5, np.nan], [1.0, 0.1, np.nan]])},
        {"parameter": ["J", "sd_R", "beta"], "bound": ["high", "low"]},
        {"kind": "mechanism1_fit"},
    )
    table = summary(fit)
    assert table["status"].to_dict() == {"J": "determined", "sd_R": "not determined", "beta": "held"}
    assert table.loc["J", ["estimate", "low", "high"]].tolist() == [2.0, 1.0, 3.0]
    copying = mechanism1.fit_copying(COUNTS)
    np.testing.assert_array_equal(summary(copying)["standard_error"], copying["standard_error"])


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ((0.1, 0.9), "determined"),
        ((0.0, 0.9), "at most high"),
        ((0.1, 1.0), "at least low"),
        ((0.0, 1.0), "not determined"),
    ],
)
def test_intervals_that_end_with_the_range_bound_on_one_side(ends, status):
    fit = evidence.fit(pd.concat([RUNS] * 20), "zealots")
    fit["interval"][:] = [ends]
    table = summary(fit)
    assert table["status"].tolist() == [status]
    assert table[["low", "high"]].to_numpy().tolist() == [list(ends)]


@pytest.mark.parametrize("wrong", [None, xr.Dataset()])
def test_other_things_are_refused(wrong):
    with pytest.raises(InputError, match=r"fit: expected the result of theory.fit_mechanism1 or"):
        summary(wrong)
