"""Crops on their flag: dots at their middles in the colours of their values, and bars of the distribution of fields."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from theory import flag_game as game


@pytest.fixture(scope="module")
def fields() -> xr.Dataset:
    """Fields for France: some crops exclude Peru, none excludes France."""
    return game.crop_fields(game.crop_compatibility("France"), "France", "Peru")


@pytest.fixture(scope="module")
def probe() -> xr.Dataset:
    """Answers that are always the truth, about crops of which some also fit the rival."""
    seen = game.crop_compatibility("Yemen")[::9]
    counts = xr.DataArray(
        np.tile([40, 0], (seen.sizes["crop"], 1)), seen[:, :2].coords, ("crop", "country"), attrs=seen.attrs
    )
    return game.compare_with_probe(counts.assign_coords(country=["Yemen", "Austria"]), "Yemen")


def dots(axes):
    (found,) = axes.collections
    return np.asarray(found.get_offsets()), np.asarray(found.get_array()), found


def test_fields_lie_at_the_middles_of_crops_on_the_flag(fields):
    axes = meanfield.plot(fields, s=11)
    places, values, found = dots(axes)
    most = fields["high"].values[-1]
    for (x, y), value in zip(places, values, strict=True):
        assert value == pytest.approx(np.clip(fields["field"].sel(left=x - 3, top=y - 2), -most, most).item())
    assert len(places) == fields["field"].size and (found.norm.vmin, found.norm.vmax) == pytest.approx((-most, most))
    assert found.get_sizes() == [11]
    (picture,) = axes.images
    np.testing.assert_array_equal(picture.get_array(), game.render(game.flag_of("France"), 6))
    assert picture.get_extent() == [0, 24, 16, 0] and (axes.get_xlim(), axes.get_ylim()) == ((0, 24), (16, 0))
    assert axes.figure.axes[1].get_xlabel() == "h = log p(France)/p(Peru)"
    assert not meanfield.plot(fields.drop_vars("flag")).images


def test_infinite_fields_have_hatched_bars(fields):
    axes = meanfield.plot(fields, view="distribution")
    *bars, beyond = axes.patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], fields["probability"])
    np.testing.assert_allclose([bar.get_x() for bar in bars], fields["low"])
    assert beyond.get_height() == fields["surely_truth"] and beyond.get_hatch() and beyond.get_x() > bars[-1].get_x()
    assert axes.get_xticklabels()[-1].get_text() == "+∞"
    finite = fields.assign(surely_truth=0.0)
    assert len(meanfield.plot(finite, view="distribution").patches) == len(bars)


@pytest.mark.parametrize(
    ("view", "limits", "label"),
    [
        ("difference", (-1, 1), "measured - ideal"),
        ("ideal", (0, 1), "ideal observer's p(Yemen)"),
        ("measured", (0, 1), "share of answers Yemen"),
    ],
)
def test_a_probe_has_a_map_for_each_column(probe, view, limits, label):
    axes = meanfield.plot(probe, view=view)
    places, values, found = dots(axes)
    np.testing.assert_allclose(places, np.stack([probe["left"] + 3, probe["top"] + 2], -1))
    np.testing.assert_allclose(values, probe[view])
    assert (found.norm.vmin, found.norm.vmax) == limits
    assert axes.figure.axes[1].get_xlabel() == label


def test_crops_that_differ_have_rings(probe):
    axes = meanfield.plot(probe)
    (rings,) = axes.lines
    departs = probe["departs"].values
    np.testing.assert_allclose(rings.get_xydata(), dots(axes)[0][departs])
    assert rings.get_fillstyle() == "none" and 0 < departs.sum() < departs.size
    assert axes.get_xlabel() == f"{departs.sum()} of {departs.size} differ (rings, 99 %)"
