"""Solutions of the rate equation against an independent integrator and against its symmetries."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import majority_policy, random_policy

TIMES = [0.0, 1.0, 5.0, 20.0]


def test_one_unit_of_time_is_half_a_round():
    """From empty memories x_0 = exp(-t): each agent leaves after one interaction, of which it has two a round."""
    solution = meanfield.solve(random_policy(5), times=[0.0, 2.0], max_time=2.0)
    assert solution["composition"].values[0] == pytest.approx(np.exp(-2.0), rel=1e-6)
    assert solution["round"].values[[0, -1]].tolist() == [0.0, 1.0]


def test_entropy_and_success_rate_are_those_of_the_word_share():
    solution = meanfield.solve(random_policy(2), times=TIMES)
    share = solution["word_share"].values
    np.testing.assert_allclose(solution["entropy"], -(share * np.log(share)).sum(1))
    np.testing.assert_allclose(solution["success_rate"], (share**2).sum(1))


@pytest.mark.slow
def test_strong_words_of_the_paper(published, tmp_path):
    """Mean field from empty memories names the bold word of [004] Table S1 in 20 of 22 and no convention in two."""
    from paper_figs.table_s1 import table_s1

    solution = meanfield.solve(published)
    bold = table_s1().query("strong == 1").set_index(["model", "pair"])["word"]
    differs = {
        (model, pair): solution["attractor"].sel(model=model, pair=pair).item()
        for model in solution.model.values
        for pair in solution.pair.values
        if solution["attractor"].sel(model=model, pair=pair).item() != bold[model, pair]
    }
    assert differs == {("llama31_70B", "more/less"): "mixed", ("llama31_70B", "young/old"): "mixed"}
    slow = solution["steady"].sel(model="llama31_70B", pair="wife/husband")
    assert not slow, "the marginal fixed point is approached too slowly to be called steady"
    assert meanfield.load(meanfield.save(solution, tmp_path / "s.nc")).identical(solution)


def test_absent_policies_of_a_stack_stay_absent():
    q = np.stack([random_policy(seed)["q"].values for seed in range(3)])
    q[1] = np.nan
    coords = {"pair": ["a/b", "c/d", "e/f"], "word_label": (("pair", "word"), [["a", "b"], ["c", "d"], ["e", "f"]])}
    stack = xr.Dataset({"q": (("pair", "state", "word"), q)}, coords=coords, attrs={"memory_length": 1})
    solution = meanfield.solve(stack, times=TIMES)
    assert solution["word_share"].isnull().all(["time", "word"]).values.tolist() == [False, True, False]
    assert solution["attractor"].isnull().values.tolist() == [False, True, False]
    alone = meanfield.solve(random_policy(2), times=TIMES)
    np.testing.assert_allclose(solution["word_share"].isel(pair=2), alone["word_share"], atol=1e-10)


def test_unbiased_population_stays_at_the_saddle():
    solution = meanfield.solve(majority_policy(3, 0.98), times=np.array([0.0, 1.0]))
    assert (solution["attractor"].item(), solution["outcome"].item()) == ("mixed", "steady")
    np.testing.assert_allclose(solution["word_share"], 0.5, atol=1e-9)


def test_batches_are_single_solutions():
    policy, starts = random_policy(1), np.random.default_rng(0).dirichlet(np.ones(5), size=2)
    alone = [meanfield.solve(policy, initial=start, times=TIMES)["word_share"].values for start in starts]
    together = meanfield.solve(policy, initial=xr.DataArray(starts, dims=("start", "state")), times=TIMES)["word_share"]
    np.testing.assert_allclose(together.values, alone, atol=1e-14)


def test_a_start_that_is_steady_stays_where_it_is():
    """Agents who never err, all agreed: nothing happens from time 0 on."""
    policy = meanfield.make_policy(np.array([0.5, 1.0, 0.0, 1.0, 0.0]), ["A", "B"])
    solution = meanfield.solve(policy, initial=meanfield.consensus(policy, "A"), times=TIMES)
    np.testing.assert_array_equal(solution["word_share"].values, np.tile([1.0, 0.0], (solution.sizes["time"], 1)))
    assert (solution["entropy"] == 0).all() and solution["attractor"] == "A"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": np.array([])}, "times = .*: expected increasing times"),
        ({"times": np.array([0.0, 2.0, 1.0])}, "increasing"),
        ({"max_time": 10.0}, "max_time = 10.0"),
        ({"initial": np.ones(5)}, "initial sums to 5"),
        ({"rtol": -1.0}, "rtol = -1.0: expected"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.solve(random_policy(1), **arguments)
