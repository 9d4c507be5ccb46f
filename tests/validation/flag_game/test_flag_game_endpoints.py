"""Endpoint classes and accuracies of flag games on endpoints made by hand, ties included: [002] Section 2.3."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from meanfield import InputError
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS, read_counts
from theory.toolbox import endpoints_of_votes, played
from validation import flag_game
from validation.flag_game._endpoints import endpoints
from validation.flag_game._gossip import simulate_gossip

TRUE = "Peru"
SIZES = (4, 16)


def votes(**numbers: int) -> list[str]:
    return [name for name, number in numbers.items() for _ in range(number)]


def one(reports: list[str], **thresholds: float) -> xr.Dataset:
    return endpoints(np.array(reports), TRUE, **thresholds)


# --- classes ---


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"Peru": 15, "Mali": 4, "Chad": 1}, "fragmentation"),
        ({"Mali": 4, "Chad": 4}, "polarization"),  # the truth need not be a faction
        ({"Peru": 1, "Mali": 1, "Chad": 1, "Italy": 1}, "polarization"),  # four factions of 0.25
        ({"Peru": 1, "Mali": 1, "Chad": 1, "Italy": 1, "Gabon": 1}, "fragmentation"),
        ({"Peru": 6, "Mali": 1, "Chad": 1}, "fragmentation"),  # 0.75 and one faction only
        ({"Peru": 1}, "correct_consensus"),
    ],
)
def test_classes_of_endpoints(numbers: dict[str, int], expected: str) -> None:
    assert one(votes(**numbers))["endpoint"] == expected


def test_every_size_meets_its_thresholds_exactly() -> None:
    """All pairs of counts up to N = 60, against whole-number arithmetic: 100 a ≥ 85 N and 4 b ≥ N."""
    for n in range(1, 61):
        rows = np.array([["Peru"] * a + ["Mali"] * (n - a) for a in range(n + 1)])
        found = endpoints(rows, TRUE)["endpoint"].values
        a = np.arange(n + 1)
        polar = np.where((4 * a >= n) & (4 * (n - a) >= n), "polarization", "fragmentation")
        wrong = np.where(100 * (n - a) >= 85 * n, "wrong_consensus", polar)
        assert found.tolist() == np.where(100 * a >= 85 * n, "correct_consensus", wrong).tolist(), n
        assert np.array(ENDPOINTS)[endpoints_of_votes(n)].tolist() == found.tolist(), n


def test_thresholds_can_be_chosen() -> None:
    reports = votes(Peru=6, Mali=2)
    assert one(reports, consensus=0.75)["endpoint"] == "correct_consensus"
    assert one(reports, faction=0.26)["endpoint"] == "fragmentation"


def test_names_and_order_of_agents_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    reports = rng.integers(0, 4, (200, 12))
    found = endpoints(reports, 2)
    names = np.array(["d", "a", "c", "b"])
    other = endpoints(rng.permuted(names[reports], axis=1), "c")
    xr.testing.assert_equal(found, other)


# --- votes, ties included ---


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"Peru": 5, "Mali": 3}, 1),
        ({"Peru": 4, "Mali": 4}, 1 / 2),
        ({"Peru": 2, "Mali": 2, "Chad": 2}, 1 / 3),
        ({"Peru": 2, "Mali": 3, "Chad": 3}, 0),  # a tie without the truth
        ({"Peru": 3, "Mali": 2, "Chad": 2}, 1),
    ],
)
def test_a_tie_counts_for_the_chance_of_the_truth(numbers: dict[str, int], expected: float) -> None:
    assert one(votes(**numbers))["correct"] == pytest.approx(expected, abs=1e-15)


def test_accuracies_by_hand() -> None:
    """Three runs of four agents, with the true answers a, a and b; Eqs. 1 to 3 worked out by hand."""
    initial = np.array([list("aabb"), list("aaab"), list("accc")])
    final = np.array([list("aaaa"), list("aabb"), list("cccc")])
    found = flag_game.accuracy(initial, final, ["a", "a", "b"])
    assert found["initial_accuracy"] == pytest.approx((2 / 4 + 3 / 4 + 0) / 3)
    assert found["majority_vote_accuracy"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found["collective_accuracy"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found["final_vote_accuracy"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found["social_uplift"] == pytest.approx((1 / 2 - 1 / 4 + 0) / 3)
    # of 1/2, -1/4, 0: variance 7/48, over three runs
    assert found["social_uplift_se"] == pytest.approx(np.sqrt(7 / 48 / 3))
    assert found["endpoint_count"].values.tolist() == [1, 1, 1, 0]
    assert found["endpoint_fraction"].sum() == pytest.approx(1)
    low, high = found["endpoint_interval"].sel(endpoint="fragmentation").values
    assert low == 0 and high == pytest.approx(0.5615, abs=1e-4)  # z²/(n + z²)
    assert np.isnan(flag_game.accuracy(initial[:1], final[:1], "a")["social_uplift_se"])


@pytest.mark.parametrize("protocol", ["pairwise", "manager"])
def test_accuracies_of_a_simulation(protocol: str) -> None:
    """The same numbers counted by hand; a game with a manager is scored by its answer."""
    p = np.random.default_rng(0).dirichlet([1, 1, 1], (40, 5))
    truth = np.arange(40) % 3
    games = simulate_gossip(p, runs=40, seed=0, uptake=0.5, truth=truth, protocol=protocol, progress=True)
    found = flag_game.accuracy(games)
    is_true = games["initial_report"].values == truth.astype(str)[:, None]
    assert float(found["initial_accuracy"]) == pytest.approx(is_true.mean())
    with pytest.raises(InputError, match="truth: the simulation has its own"):
        flag_game.accuracy(games, truth="0")
    if protocol == "manager":
        right = games["manager_report"].values == truth.astype(str)
        assert found["endpoint_count"].values.tolist() == [right.sum(), 40 - right.sum(), 0, 0]
        assert float(found["final_vote_accuracy"]) == pytest.approx(right.mean())
    else:
        right = games["final_report"].values == truth.astype(str)[:, None]
        assert found["endpoint_count"].sum() == 40 and 0 < right.mean() < 1
    assert float(found["collective_accuracy"]) == pytest.approx(right.mean())
    assert float(found["social_uplift"]) == pytest.approx(right.mean() - is_true.mean())


# --- fits ---


def vote_game(n_agents: int, runs: int) -> xr.Dataset:
    """Runs of Mechanism 1 as answers of agents, whom isolation leaves undecided."""
    n_true = played([APPENDIX_E], n_agents, runs, 7).truth_votes[:, 0]
    final = np.where(np.arange(n_agents) < n_true[:, None], TRUE, "Mali")
    return flag_game.accuracy(np.full_like(final, "Chad"), final, TRUE)


@pytest.fixture(scope="module")
def by_size() -> xr.Dataset:
    return xr.concat([vote_game(n, runs) for n, runs in zip(SIZES, (60, 200), strict=True)], "n_agents")


def test_endpoints_are_what_fits_take(by_size: xr.Dataset) -> None:
    """The same runs, counted by the simulator of Mechanism 1 and answer by answer."""
    for k, (n, runs) in enumerate(zip(SIZES, (60, 200), strict=True)):
        expected = read_counts(flag_game.simulate(n_agents=n, runs=runs, seed=7))
        alone = read_counts(vote_game(n, runs))
        for name in ("n_agents", "seeds", "counts", "accuracy", "standard_error"):
            together = getattr(read_counts(by_size), name)[k : k + 1]
            np.testing.assert_allclose(together, getattr(expected, name), rtol=1e-14)
            np.testing.assert_allclose(getattr(alone, name), getattr(expected, name), rtol=1e-14)
    other_order = by_size.isel(endpoint=[2, 0, 3, 1])
    np.testing.assert_array_equal(read_counts(other_order).counts, read_counts(by_size).counts)
    unmeasured = read_counts(by_size[["seeds", "endpoint_count"]])
    assert np.isnan(unmeasured.accuracy).all() and unmeasured.seeds.tolist() == [60, 200]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop_vars("n_agents"), "counts lacks the coordinate n_agents"),
        (lambda d: d.isel(endpoint=[0, 1, 2, 3, 3]), "endpoint_count has the endpoints"),
        (lambda d: d.expand_dims(uptake=[0.1, 0.2]), "endpoint_count is over ('uptake', 'n_agents', 'endpoint')"),
        (lambda d: d.assign(polarization_count=3), "counts has endpoint_count and polarization_count: expected one"),
        (lambda d: d.assign(final_mean=0.5), "counts has final_mean and collective_accuracy"),
    ],
)
def test_endpoints_that_cannot_be_fitted_are_named(by_size: xr.Dataset, change, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_counts(change(by_size))
    assert str(error.value).startswith(message)


def test_games_with_a_manager_are_not_fitted() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], (10, 5))
    games = simulate_gossip(p, runs=10, seed=0, uptake=0.5, truth=np.zeros(10, int), protocol="manager")
    with pytest.raises(InputError, match="lacks the coordinate n_agents"):
        read_counts(flag_game.accuracy(games))


# --- input ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reports": np.array([["a", ""]]), "truth": "a"}, "reports: expected an answer from every agent"),
        ({"reports": np.empty((3, 0)), "truth": 1}, r"reports has shape \(3, 0\)"),
        ({"reports": xr.DataArray(["a"], dims="run"), "truth": "a"}, "expected a dim agent"),
        ({"reports": np.array([["a", "b"]]), "truth": ["a", "b"]}, r"truth has shape \(2,\)"),
        ({"reports": np.array([["a", "b"]]), "truth": 0}, "truth = 0 is something else, and answers are text"),
        ({"reports": np.array([["a", "b"]]), "truth": "A", "countries": "ab"}, "truth = 'A': expected one of a, b"),
        ({"reports": np.array([["a", "b"]]), "truth": "a", "countries": "a"}, "reports = 'b': expected one of a"),
    ],
)
def test_bad_input_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        endpoints(**arguments)


def test_a_truth_that_nobody_gave() -> None:
    """It may be: [002] has groups that never find it. Names in arrays of objects are names as well."""
    names = np.array([["a", "b"]], dtype=object)
    assert endpoints(names, "c")["truth_share"] == 0
    assert flag_game.accuracy(names, names, ["c"], countries=["a", "b", "c"])["collective_accuracy"] == 0
    with pytest.raises(InputError, match="truth = 'C': expected one of a, b, c"):
        flag_game.accuracy(names, names, "C", countries=["a", "b", "c"])


def test_accuracy_needs_the_truth() -> None:
    with pytest.raises(InputError, match="final and truth"):
        flag_game.accuracy(np.array([["a", "b"]]))
    with pytest.raises(InputError, match="'truth' is missing"):
        flag_game.accuracy(xr.Dataset({"initial_report": 0, "final_report": 0}))
    with pytest.raises(InputError, match="initial is for runs of shape"):
        flag_game.accuracy(np.array([["a", "b"]]), np.array([["a", "b"]] * 2), "a")
