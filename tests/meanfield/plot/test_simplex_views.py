"""The flow and the basins of attraction in the triangle of three word shares."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.quiver import Quiver

import meanfield
from _policies import loyal_policy, random_policy
from meanfield import InputError
from meanfield._fixed_points.response import responses
from meanfield._plot.views import simplex
from meanfield._plot.views.simplex import SHADE, in_plane
from meanfield._plot.words import PALETTE
from meanfield._population.population import Population, as_population

POLICY = loyal_policy(1, 2)


CELLS = 8


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch):
    monkeypatch.setattr(simplex, "CELLS", CELLS)


@pytest.fixture(scope="module")
def found():
    return meanfield.fixed_points(POLICY)


def shared_out(axes):
    """Centres of the cells in the plane, and their colours without the white in them."""
    (cells,) = (one for one in axes.collections if isinstance(one, PolyCollection) and not isinstance(one, Quiver))
    centres = np.array([path.vertices[:3].mean(0) for path in cells.get_paths()])
    return centres, 1 - (1 - cells.get_facecolor()[:, :3]) / SHADE


def test_arrows_follow_the_change_of_the_word_share(found):
    axes = meanfield.plot(found, policy=POLICY)
    (flow,) = (one for one in axes.collections if isinstance(one, Quiver))
    middle = np.stack([flow.X + flow.U / 2, flow.Y + flow.V / 2], -1)
    c = middle[:, 1] / np.sqrt(0.75)
    b = middle[:, 0] - c / 2
    Q = np.stack([1 - b - c, b, c], -1)
    change = in_plane(responses(as_population(POLICY).mixture)[0](Q) - Q)
    length = np.hypot(flow.U, flow.V)
    cosine = (change * np.stack([flow.U, flow.V], -1)).sum(1) / length / np.hypot(*change.T)
    np.testing.assert_allclose(cosine, 1, atol=1e-6)
    np.testing.assert_allclose((length / length.max()) ** 4, np.hypot(*change.T) / np.hypot(*change.T).max(), atol=1e-6)


@pytest.mark.parametrize("population", [False, True])
def test_basins_have_the_colours_of_their_attractors(found, population):
    axes = meanfield.plot(found, policy=Population([POLICY]) if population else POLICY)
    centres, colours = shared_out(axes)
    assert len(centres) == CELLS**2
    stable = found["word_share"].values[found["stable"].values]
    expected = stable @ [to_rgb(colour) for colour in PALETTE[:3]]
    for place, colour in zip(in_plane(stable), expected, strict=True):
        nearest = np.hypot(*(centres - place).T).argmin()
        np.testing.assert_allclose(colours[nearest], colour, atol=1e-6)
    known = np.abs(colours[:, None] - expected).max(-1).min(1)
    assert (known < 1e-6).all(), "each cell belongs to one of them"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["stable", "unstable"]


def test_a_start_that_reaches_none_of_the_fixed_points_is_white_and_named(found):
    without = found.isel(fixed_point=found["convention"].values != "b")
    axes = meanfield.plot(without, policy=POLICY)
    _, colours = shared_out(axes)
    assert 0.2 < (colours == 1).all(1).mean() < 0.9
    assert "reaches none of these" in [text.get_text() for text in axes.get_legend().get_texts()]


def several_classes() -> xr.Dataset:
    """Agents who repeat themselves for ever."""
    q = np.vstack([np.full(3, 1 / 3), np.repeat(np.eye(3), 3, axis=0)])
    return meanfield.make_policy(q, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (random_policy(1), "policy is over a, b: expected a, b, c"),
        (several_classes(), "policy has 3 closed classes of memories"),
    ],
)
def test_policies_that_do_not_fit_are_refused(found, policy, message):
    with pytest.raises(InputError, match=message):
        meanfield.plot(found, policy=policy)
