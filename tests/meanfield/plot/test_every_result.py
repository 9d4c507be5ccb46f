"""Every kind of result in every view: whole, reduced and damaged it is drawn, or one sentence says what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import meanfield
from _drawn_results import RESULTS
from _drawn_results import drawn as drawn_result
from meanfield._plot import registry
from meanfield._plot.plot import _dataset

ALWAYS = {"solution", "spectrum", "drift", "real_runs"}  # others in make test-slow
VIEWS = [
    pytest.param(kind, view, marks=[pytest.mark.slow] * (kind not in ALWAYS or number > 0))
    for kind, views in registry.views().items()
    for number, view in enumerate(views)
]


@cache
def results(kind: str) -> list[xr.Dataset]:
    return [_dataset(drawn_result(kind, number)) for number in range(len(RESULTS[kind]))]


def drawn_of(result: xr.Dataset, kind: str, view: str) -> set[str]:
    """The variables from which a view is drawn, with its titles."""
    one = registry.views()[kind][view]
    return {*one.reads, *one.by, *map(str, result.dims), "word_label", "word_number", "pair", "model"}


def damaged(result: xr.Dataset, names: set[str]) -> Iterator[tuple[str, xr.Dataset]]:
    """The result with one entry or none of a dim, without one of these variables, and with NaN in one of them."""
    for dim, size in result.sizes.items():
        if size:
            yield f"isel({dim}=-1)", result.isel({dim: -1})
        yield f"isel({dim}=[])", result.isel({dim: []})
    for name in names & set(result.variables):
        array = result.variables[name]
        yield f"drop_vars({name!r})", result.drop_vars(name)
        if array.dtype.kind == "f" and name not in result.dims:
            yield f"NaN in {name}", result.assign({name: (array.dims, np.full(array.shape, np.nan))})  # without attrs


def drawn(result: xr.Dataset, view: str) -> str:
    """'' or why it is not drawn."""
    try:
        axes = np.atleast_1d(np.asarray(meanfield.plot(result, view=view), dtype=object))
    except meanfield.MeanfieldError as error:
        return str(error)
    finally:
        plt.close("all")
    assert all(one.has_data() or one.texts or one.get_legend() for one in axes)
    return ""


def test_every_kind_has_a_result():
    assert set(RESULTS) == set(registry.views())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "view"), VIEWS)
def test_what_is_left_is_drawn_or_what_is_missing_is_named(kind: str, view: str):
    reads = {name for name, one in registry.views()[kind][view].reads.items() if not one.optional}
    shown, named = False, set()
    for result in results(kind):
        told = drawn(result, view)
        shown |= not told
        for how, part in damaged(result, drawn_of(result, kind, view)):
            why = drawn(part, view)
            assert "\n" not in why and len(why) < 1000, f"{how}: {why}"
            if not told and f"no {how[11:-2]}" in why:
                named.add(how[11:-2])
    assert shown, told
    assert named >= reads - {"word"}, "what the view needs is named where it is missing"


@pytest.mark.parametrize(("kind", "view"), VIEWS)
def test_a_view_reads_what_its_signature_has(kind: str, view: str):
    result = results(kind)[0]
    others = set(result.variables) - drawn_of(result, kind, view)
    assert drawn(result.drop_vars(others), view) == drawn(result, view)
