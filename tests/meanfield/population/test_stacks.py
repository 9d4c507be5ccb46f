"""Functions of a policy for stacks: each result is that of the policy alone."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import majority_policy, random_policy

CALLS = {
    "fixed_points": {},
    "critical_mass": {"word": "b"},
    "bifurcation": {"word": "b", "spacing": 0.2},
    "basins": {},
    "sensitivity": {"of": "word_share", "fixed_point": 0},
    "spectrum": {"composition": np.full(21, 1 / 21), "k": 3},
}
POLICIES = {"many": majority_policy(2, 0.97), "one": random_policy(3, 2, 2)}
POLICIES = {name: meanfield.make_policy(one["q"].values, ["a", "b"], model=name) for name, one in POLICIES.items()}
SHORT = {"times": [0.0, 3.0, 20.0], "max_time": 200.0}
STACK = xr.concat(list(POLICIES.values()), "model")


@pytest.mark.parametrize("name", CALLS)
def test_stacks_have_the_results_of_their_policies(name):
    call = getattr(meanfield, name)
    whole = call(STACK, **CALLS[name])
    for model, policy in POLICIES.items():
        alone, part = call(policy, **CALLS[name]), whole.sel(model=model)
        assert part["policy_sha256"].item() == alone.attrs["policy_sha256"]
        for key, values in alone.data_vars.items():
            kept = part[key].isel({dim: slice(size) for dim, size in values.sizes.items()})
            np.testing.assert_array_equal(kept.values, values.values, err_msg=key)
            beyond = part[key].isel({dim: slice(size, None) for dim, size in values.sizes.items()})
            assert not beyond.size or (beyond.isnull() | (beyond == "") | (beyond == 0)).all()
    assert name == "spectrum" or whole["word_label"].values.tolist() == ["a", "b"]


@pytest.mark.slow
def test_draws_and_compositions_go_to_their_policies():
    drawn = {"family": "dirichlet", "starts": 70, "concentration": 0.1, "max_time": 50.0}
    whole = meanfield.basins(STACK, **drawn)
    points = meanfield.fixed_points(STACK)["composition"].isel(fixed_point=0)
    modes = meanfield.spectrum(STACK.isel(model=[1, 0]), points, k=2)  # aligned by model
    slopes = meanfield.drift(STACK, points)
    starts = points.copy(data=np.random.default_rng(1).dirichlet(np.full(21, 0.1), size=2)).isel(model=[1, 0])
    ends = meanfield.solve(STACK, initial=starts, **SHORT)
    for model, policy in POLICIES.items():
        alone = meanfield.basins(policy, **drawn)
        rows = whole.sel(model=model).isel(attractor=slice(alone.sizes["attractor"]))
        np.testing.assert_allclose(rows["fraction"], alone["fraction"])
        expected = meanfield.spectrum(policy, points.sel(model=model), k=2)
        np.testing.assert_array_equal(modes.sel(model=model)["eigenvalue"], expected["eigenvalue"])
        expected = meanfield.solve(policy, initial=starts.sel(model=model), **SHORT)["word_share"]
        np.testing.assert_allclose(ends["word_share"].sel(model=model), expected, atol=1e-7)
    assert slopes.dims == ("model", "state")
    assert np.abs(slopes).max() < 1e-12
    assert np.abs(meanfield.drift(STACK, points.isel(model=0, drop=True))).max() > 1e-3
    with pytest.raises(meanfield.InputError, match="composition has model = 'other': expected many, one, each once"):
        meanfield.spectrum(STACK, points.assign_coords(model=["many", "other"]))


def test_absent_policies_stay_absent():
    q = np.stack(
        [[random_policy(seed)["q"].values for seed in (0, 1)], [random_policy(seed)["q"].values for seed in (2, 3)]]
    )
    q[1, 0] = np.nan
    coords = {
        "model": ["x", "y"],
        "pair": ["a/b", "c/d"],
        "word_label": (("pair", "word"), [["a", "b"], ["c", "d"]]),
    }
    stack = xr.Dataset({"q": (("model", "pair", "state", "word"), q)}, coords=coords, attrs={"memory_length": 1})
    points = meanfield.fixed_points(stack)
    assert points["word_share"].isnull().all(["fixed_point", "word"]).values.tolist() == [[False, False], [True, False]]
    assert points["stability"].sel(model="y", pair="a/b").values.tolist() == [""] * points.sizes["fixed_point"]
    alone = meanfield.fixed_points(random_policy(3))["word_share"]
    there = points["word_share"].sel(model="y", pair="c/d").set_index(word="word_label").sel(word="d")
    np.testing.assert_array_equal(there[: alone.sizes["fixed_point"]], alone.isel(word=1))


def test_compositions_along_a_dim_of_size_one():
    one = STACK.isel(model=[0])
    end = meanfield.solve(one)["composition"]
    assert np.abs(meanfield.drift(one, end)).max() < 1e-7
    assert dict(meanfield.spectrum(one, end, k=2).sizes) == {"mode": 2}
    with pytest.raises(meanfield.InputError, match="composition has model = 'other': expected many"):
        meanfield.drift(one, end.assign_coords(model=["other"]))


def test_stacks_are_drawn_and_have_no_fraction_of_a_second_policy():
    constant = [meanfield.make_policy(np.full(5, 0.6), ["a", "b"], model=name) for name in ("x", "y")]
    never = meanfield.critical_mass(xr.concat(constant, "model"), word="b")
    assert never["transition"].values.tolist() == ["none", "none"]
    meanfield.plot(never)
    with pytest.raises(meanfield.InputError, match="expected a Population of several policies"):
        meanfield.critical_mass(STACK, parameter="fraction")
