"""m and q of flag games over time: a thin line for each run, a wide one for their mean."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from meanfield import InputError

N_AGENTS, RUNS = 4, 6


@pytest.fixture(scope="module")
def simulation() -> xr.Dataset:
    return validation.flag_game.simulate(n_agents=[N_AGENTS, 8], runs=RUNS, seed=1, trajectories=True)


@pytest.fixture(scope="module")
def gossip() -> xr.Dataset:
    """Runs, some of which stop early."""
    crops = np.array([[0.6, 0.3, 0.1]] * 2 + [[0.1, 0.7, 0.2]] * 2)
    options = {"uptake": 0.6, "truth": 0, "rival": 1, "trajectories": True, "patience": 2}
    return validation.flag_game.simulate_gossip(crops, runs=RUNS, seed=2, **options)


def drawn(axes):
    """The lines of the runs of m and of q, and the two means."""
    _, *lines = axes.lines
    return np.array([line.get_ydata() for line in lines[: 2 * RUNS]]).reshape(2, RUNS, -1), lines[2 * RUNS :]


def test_each_size_has_its_runs_and_their_means(simulation):
    panels = np.ravel(meanfield.plot(simulation, view="lean", linestyle="--"))
    assert [axes.get_title() for axes in panels] == ["N = 4", "N = 8"]
    for axes, size in zip(panels, simulation["n_agents"].values, strict=True):
        runs, means = drawn(axes)
        paths = [simulation[name].sel(n_agents=size).values for name in ("m_path", "q_path")]
        np.testing.assert_allclose(runs, paths)
        for mean, path, label in zip(means, paths, ("m, mean", "q, mean"), strict=True):
            np.testing.assert_allclose(mean.get_xydata(), np.column_stack([np.arange(17), path.mean(0)]))
            assert (mean.get_label(), mean.get_linestyle()) == (label, "--")
        assert axes.get_xlim() == (0, 16) and axes.get_xlabel() == "time t/N"


def test_gossip_keeps_its_last_values(gossip):
    axes = meanfield.plot(gossip, view="lean")
    runs, means = drawn(axes)
    stopped = gossip["m_path"].isnull().any("probe").values
    assert stopped.any() and not np.isnan(runs).any()
    kept = gossip["m_path"].to_pandas().ffill(axis=1).to_numpy()
    np.testing.assert_allclose(runs[0], kept)
    np.testing.assert_allclose(means[0].get_xdata(), gossip["step"] / N_AGENTS)
    np.testing.assert_allclose(means[0].get_ydata(), kept.mean(0))
    alone = meanfield.plot(gossip.isel(run=3), view="lean").lines[1]
    np.testing.assert_allclose(alone.get_ydata(), kept[3])


def test_a_result_without_them_says_how_they_are_made(simulation, gossip):
    for result, option in ((simulation, "trajectories=True"), (gossip, "trajectories=True and a rival")):
        with pytest.raises(InputError, match=f"result has no m_path, expected one made with {option}$"):
            meanfield.plot(result.drop_vars("m_path"), view="lean")
    assert meanfield.plot(simulation).get_ylabel() == "fraction of runs", "endpoints stay the default"
