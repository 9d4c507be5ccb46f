"""Fits of Mechanism 1: likelihood and gradients against independent formulas, parameters recovered, limits honest.

Error budget: a recovered parameter is held to 4 standard errors, 6e-5 for each of a handful, with fixed seeds. The
rate at which intervals cover the truth is measured by tests/bench/bench_mechanism1_recovery.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import logit
from scipy.stats import binom, chisquare, multinomial, norm

import meanfield
from _endpoint_counts import table
from meanfield import InputError
from theory.flag_game import mechanism1
from theory.flag_game.mechanism1 import (
    APPENDIX_E,
    PARAMETERS,
    EndpointCounts,
    Mechanism1,
    copying_law,
    fit_copying,
    read_counts,
)
from theory.flag_game.mechanism1._agents import played, simulated_moments
from theory.flag_game.mechanism1._coordinates import Coordinates, describe, interval_of
from theory.flag_game.mechanism1._endpoints import moments_of_laws
from theory.flag_game.mechanism1._fit import FEWER, differences, measured_again, refitted
from theory.flag_game.mechanism1._likelihood import information, log_likelihood, scoring_parts
from theory.flag_game.mechanism1._surrogate import Surrogate, corrected, make_draws, transferred
from validation import flag_game

pytestmark = pytest.mark.filterwarnings("ignore:runs = ")
SIZES = (4, 8, 16)
FREE = ("mean_R", "J")
START = replace(APPENDIX_E, mean_R=0.2, J=2.8)

UNMEASURED: dict[str, object] = {"final_mean": None, "final_standard_error": None}


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """Runs with the parameters of Appendix E; the accuracy of the smallest groups was not measured."""
    found = flag_game.simulate(n_agents=SIZES, runs=1000, seed=5)
    found["collective_accuracy"] = found["collective_accuracy"].where(found["n_agents"] > 4)
    return found


@pytest.fixture(scope="module", autouse=True)
def few_slots() -> Iterator[None]:
    """As few draws in the climb as in the search, so that one program serves both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("theory.flag_game.mechanism1._fit.SLOTS", FEWER)
        yield


@pytest.fixture(scope="module")
def fit(data: xr.Dataset) -> xr.Dataset:
    return mechanism1.fit(data, free=FREE, start=START, starts=1, runs=2000, bootstrap=4, seed=1)


# --- gradients ---


def test_surrogate_is_near_the_simulator() -> None:
    """Within 0.08 with these draws, and so are its derivatives near those of simulations."""
    coordinates = Coordinates.of(FREE, APPENDIX_E)
    point = coordinates.from_parameters(APPENDIX_E)
    values, jacobian = few_draws().slopes(point)
    (exact,) = simulated_moments([APPENDIX_E], SIZES, 20_000, 1)
    assert np.abs(values - exact.values).max() < 0.08
    np.testing.assert_allclose(values[:, :4].sum(1), 1, atol=1e-12)
    simulated = differences(coordinates, point, SIZES, 8000, 1)
    assert np.abs(jacobian - simulated).max() < 0.3 * np.abs(simulated).max()
    assert np.corrcoef(jacobian.ravel(), simulated.ravel())[0, 1] > 0.97


ALL, ROUNDS, UNEVEN = Coordinates.of(PARAMETERS, APPENDIX_E), 5, (2, 7, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_derivatives_of_the_surrogate_are_those_of_its_differences(seed: int) -> None:
    """In all parameters, anywhere, at sizes that leave slots idle; quantiles are interpolated: kinks."""
    surrogate = Surrogate(ALL, make_draws(UNEVEN, ROUNDS, seed))
    point = ALL.from_parameters(APPENDIX_E) + np.random.default_rng(seed).standard_normal(14)
    values, jacobian = surrogate.slopes(point)
    np.testing.assert_allclose(surrogate.moments(point), values, rtol=0, atol=1e-14)
    moved = [surrogate.moments(point + step) for step in (*np.eye(14) / 1e3, *-np.eye(14) / 1e3)]
    own = np.stack([(up - down) / 2e-3 for up, down in zip(moved[:14], moved[14:], strict=True)], axis=-1)
    np.testing.assert_allclose(own, jacobian, rtol=0, atol=5e-3 * np.abs(jacobian).max())


def test_the_search_ends_near_the_top_of_a_ridge(data: xr.Dataset) -> None:
    surrogate, measured = few_draws(), read_counts(data)
    point = Coordinates.of(FREE, APPENDIX_E).from_parameters(START)

    def value(at: np.ndarray) -> float:
        return log_likelihood(surrogate.moments(at), measured)

    top = surrogate.search(point, measured)
    around = [value(top + 0.3 * np.array(way)) for way in product((-1, 0, 1), repeat=2) if any(way)]
    assert value(top) > max(around) and value(top) > value(point) + 0.1


def few_draws() -> Surrogate:
    """As the fit uses it for its search and its refits."""
    return Surrogate(Coordinates.of(FREE, APPENDIX_E), make_draws(SIZES, 16, 0, FEWER))


def test_runs_side_by_side_are_those_of_one_by_one() -> None:
    rng, first = np.random.default_rng(5), ALL.from_parameters(APPENDIX_E)
    points = [ALL.parameters(first + rng.standard_normal(14)) for _ in range(7)]
    together = played(points, 5, 50, 3).truth_votes.T
    np.testing.assert_array_equal(together, [played([point], 5, 50, 3).truth_votes[:, 0] for point in points])
    assert (together != together[0]).any()


def test_space_mapping_agrees_where_it_was_made() -> None:
    rng = np.random.default_rng(2)
    surrogate = np.c_[rng.dirichlet(np.ones(4), 2), [0.5, 0.6]]
    exact = np.c_[rng.dirichlet(np.ones(4), 2), [0.4, 0.7]]
    possible = np.ones((2, 4), dtype=bool)
    ratio, offset = exact[:, :4] / surrogate[:, :4], exact[:, 4] - surrogate[:, 4]
    np.testing.assert_allclose(corrected(surrogate, ratio, offset), exact)
    move = np.c_[rng.normal(size=(2, 4)), rng.normal(size=2)]
    move[:, :4] -= move[:, :4].mean(1, keepdims=True)
    step = 1e-6
    numeric = (
        corrected(surrogate + step * move, ratio, offset) - corrected(surrogate - step * move, ratio, offset)
    ) / (2 * step)
    np.testing.assert_allclose(transferred(surrogate, move[..., None], exact, possible)[..., 0], numeric, atol=1e-7)


# --- likelihood and information ---


def test_log_likelihood() -> None:
    measured = read_counts(table())
    moments = np.array([[0.4, 0.3, 0.3, 0.0, 0.5], [0.35, 0.15, 0.3, 0.2, 0.65]])
    expected = multinomial.logpmf([4, 3, 3], 10, [0.4, 0.3, 0.3]) + multinomial.logpmf([8, 2, 7, 3], 20, moments[1, :4])
    assert log_likelihood(moments, read_counts(table(**UNMEASURED))) == pytest.approx(expected)
    expected += norm.logpdf(0.55, 0.5, 0.1) + norm.logpdf(0.6, 0.65, 0.08)
    assert log_likelihood(moments, measured) == pytest.approx(expected)


def copying_moments(point: np.ndarray):
    return moments_of_laws([copying_law(n, *np.exp(point)) for n in (4, 16)])


def copying_jacobian(point: np.ndarray) -> np.ndarray:
    steps = 1e-5 * np.eye(2)
    return np.stack([(copying_moments(point + s).values - copying_moments(point - s).values) / 2e-5 for s in steps], -1)


def test_score_is_the_gradient() -> None:
    measured, point = read_counts(table()), np.array([0.2, -0.3])
    gradient, curvature = scoring_parts(copying_moments(point).values, copying_jacobian(point), measured)
    steps = 1e-5 * np.eye(2)

    def value(at: np.ndarray) -> float:
        return log_likelihood(copying_moments(at).values, measured)

    numeric = [(value(point + s) - value(point - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5)
    assert (np.linalg.eigvalsh(curvature) > 0).all()


def test_information_of_counts_alone_is_that_of_fisher() -> None:
    """A complete likelihood has K = H: as many effective parameters as free ones, and the covariance H⁻¹."""
    measured, point = read_counts(table(**UNMEASURED)), np.array([0.2, -0.3])
    jacobian = copying_jacobian(point)
    found = information(copying_moments(point), jacobian, jacobian, measured, np.inf)
    assert found.effective_parameters == pytest.approx(2)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(found.curvature), rtol=1e-9)
    both = information(copying_moments(point), jacobian, jacobian, read_counts(table()), np.inf)
    assert both.effective_parameters > 2.2  # accuracies repeat what the endpoints say


def test_godambe_covariance_is_that_of_estimates() -> None:
    """Copying with zealots, 1,000 simulated data sets of 2 × 400 seeds; variances within 4 of their standard errors."""
    point, seeds, repeats = np.log([0.8, 0.5]), 400, 1000
    exact = copying_moments(point)
    error = np.sqrt(exact.covariances[:, 4, 4] / seeds)
    measured = read_counts(table())._replace(seeds=np.full(2, seeds), standard_error=error)
    jacobian = copying_jacobian(point)
    rng = np.random.default_rng(3)
    curvature = scoring_parts(exact.values, jacobian, measured)[1]
    again = [measured_again(exact.laws, measured, rng) for _ in range(repeats)]
    steps = np.linalg.solve(curvature, np.array([scoring_parts(exact.values, jacobian, one)[0] for one in again]).T)
    found = information(exact, jacobian, jacobian, measured, np.inf)
    ratio = steps.var(axis=1) / np.diag(found.covariance)
    assert (np.abs(ratio - 1) < 4 * np.sqrt(2 / repeats)).all()
    in_units_of_curvature = np.trace(curvature @ np.cov(steps))  # 2, if curvature told the whole story
    assert in_units_of_curvature == pytest.approx(found.effective_parameters, abs=0.4)
    assert in_units_of_curvature > 2.4


def test_what_is_not_determined_is_named() -> None:
    """Two coordinates that act only through their sum: its direction is known, the difference is not."""
    measured, point = read_counts(table(seeds=[10, 20])), np.array([0.2, -0.3])
    one = copying_jacobian(point)[..., :1]
    both = np.concatenate([one, one], axis=-1)
    found = information(copying_moments(point), both, both, measured, np.inf)
    assert found.eigenvalues[0] > 1 and abs(found.eigenvalues[1]) < 1e-9
    np.testing.assert_allclose(np.abs(found.directions), np.sqrt(0.5), atol=1e-6)
    assert np.sqrt(np.diag(found.covariance)).min() > 10
    assert describe(found.directions[0], ("J", "beta")) in ("0.71 ln J + 0.71 ln beta", "0.71 ln beta + 0.71 ln J")


# --- coordinates ---


@pytest.mark.parametrize("free", [PARAMETERS, ("weight_R", "alpha"), ("weight_T", "mean_0", "scale_T")], ids=len)
def test_coordinates_there_and_back(free: tuple[str, ...]) -> None:
    coordinates = Coordinates.of(free, APPENDIX_E)
    point = coordinates.from_parameters(APPENDIX_E)
    np.testing.assert_allclose(coordinates.parameters(point).theta, APPENDIX_E.theta, rtol=1e-12)
    for seed in range(20):
        far = point + 2 * np.random.default_rng(seed).standard_normal(len(point))
        found = coordinates.parameters(far)  # refuses what is out of range, such as weights above 1
        np.testing.assert_allclose(coordinates.from_parameters(found), far, atol=1e-6)
        assert all(getattr(found, name) == getattr(APPENDIX_E, name) for name in PARAMETERS if name not in free)


def test_coordinates_are_what_directions_say() -> None:
    logs = dict.fromkeys(PARAMETERS, ("ln {}", np.log)) | {"alpha": ("logit {}", logit)}
    logs |= dict.fromkeys(("mean_T", "mean_R", "mean_0"), ("{}", float))
    rest = 1 - APPENDIX_E.weight_T - APPENDIX_E.weight_R
    logs |= dict.fromkeys(("weight_T", "weight_R"), ("ln({}/weight_0)", lambda value: np.log(value / rest)))
    expected = [logs[name][1](getattr(APPENDIX_E, name)) for name in PARAMETERS]
    np.testing.assert_allclose(ALL.from_parameters(APPENDIX_E), expected)
    for name, along in zip(PARAMETERS, np.eye(14), strict=True):
        assert describe(along, PARAMETERS) == f"1.00 {logs[name][0].format(name)}"


def test_intervals_stay_in_range() -> None:
    assert tuple(interval_of("mean_T", 1.0, 0.5, 2.0)) == (0.0, 2.0)
    low, high = interval_of("J", 2.0, 4.0, 2.0)
    assert 0 < low < 2 < high and low * high == pytest.approx(4)
    low, high = interval_of("alpha", 0.5, 1.0, 2.0)
    assert 0 < low < 0.5 < high < 1 and low + high == pytest.approx(1)
    assert tuple(interval_of("weight_T", 0.3, 1e6, 2.0)) == (0.0, 1.0)


# --- fits ---


def test_parameters_are_recovered(fit: xr.Dataset) -> None:
    found = fit.sel(parameter=list(FREE))
    truth = np.array([getattr(APPENDIX_E, name) for name in FREE])
    started = np.array([getattr(START, name) for name in FREE])
    assert (np.abs(found["estimate"] - truth) < 4 * found["standard_error"]).all()
    assert (np.abs(found["estimate"] - started) > 4 * found["standard_error"]).all()
    assert found["identified"].all() and found["free"].all()
    ratio = found["bootstrap_standard_error"] / found["standard_error"]
    assert ((ratio > 0.2) & (ratio < 2.5)).all()  # four replicates
    others = fit.drop_sel(parameter=list(FREE))
    assert not others["free"].any() and others["standard_error"].isnull().all()


def test_fit_is_as_likely_as_the_truth(fit: xr.Dataset) -> None:
    """The data are of Appendix E: a fit gains a little over it, by luck of the data, less that of the simulation."""
    gain = fit.attrs["log_likelihood"] - fit.attrs["log_likelihood_paper"]
    assert -3 < gain < 8
    assert fit.attrs["not_determined"] == ""
    assert fit.attrs["verdict"] == "the data determine 2 of 2 free parameters and 2 of 2 combinations of them"
    assert np.isfinite(fit.attrs["log_likelihood_error"])
    effective, error = fit.attrs["effective_parameters"], fit.attrs["effective_parameters_error"]
    assert 0 < effective < 8 and 0 < error < 4  # four replicates
    np.testing.assert_allclose(fit.attrs["aic"], 2 * effective - 2 * fit.attrs["log_likelihood"])


def test_fit_repeats_itself_and_is_saved(fit: xr.Dataset, data: xr.Dataset, tmp_path) -> None:
    with pytest.warns(UserWarning, match="runs = 300: with fewer than 1000 the curvature is noisy"):
        one, again = (mechanism1.fit(data, free=FREE, start=START, starts=0, runs=300, bootstrap=0) for _ in range(2))
    xr.testing.assert_equal(one, again)
    assert all(np.isnan(one.attrs[name]) for name in ("effective_parameters", "aic", "bic"))
    loaded = meanfield.load(meanfield.save(fit, tmp_path / "fit.nc"))
    xr.testing.assert_equal(fit, loaded)
    assert loaded.attrs["kind"] == "mechanism1_fit" and loaded.attrs["option_free"] == "mean_R J"
    assert loaded.attrs["option_start"] == str(START)
    found = {name: loaded["estimate"].sel(parameter=name).item() for name in FREE}
    assert Mechanism1.of(loaded) == replace(APPENDIX_E, **found)
    short = Mechanism1.of(loaded.assign_attrs(option_interactions_per_agent=np.int64(2)))
    assert short == replace(APPENDIX_E, interactions_per_agent=2, **found)


def test_the_first_bootstrap_replicates_do_not_depend_on_their_number(data: xr.Dataset) -> None:
    point = Coordinates.of(FREE, APPENDIX_E).from_parameters(APPENDIX_E)
    (moments,) = simulated_moments([APPENDIX_E], SIZES, 1000, 1)
    few, many = (refitted(few_draws(), point, moments, read_counts(data), n, 2)[0] for n in (2, 4))
    np.testing.assert_array_equal(few, many[:2])
    assert len(np.unique(many, axis=0)) == 4


@pytest.mark.slow
def test_what_bootstrap_refits_gain_is_the_number_of_parameters(monkeypatch) -> None:
    """Endpoints alone are a complete likelihood, so that twice the gain is chi-squared with 2 degrees of freedom.

    40 refits of 3 × 1,000 seeds: 2 within 4 standard errors of 2/√40. Climbs cut short fall below it, and spread less.
    """
    coordinates = Coordinates.of(("mean_R", "J"), APPENDIX_E)
    point, surrogate = coordinates.from_parameters(APPENDIX_E), Surrogate(coordinates, make_draws(SIZES, 16, 0))
    (moments,) = simulated_moments([APPENDIX_E], SIZES, 4000, 1)
    nothing = np.full(3, np.nan)
    counts = np.zeros((3, 4))
    measured = EndpointCounts(np.array(SIZES), np.full(3, 1000), counts, nothing, nothing)
    _, gains = refitted(surrogate, point, moments, measured, 40, 2)
    assert (gains >= 0).all()
    assert 2 * gains.mean() == pytest.approx(2, abs=4 * 2 / 40**0.5)
    monkeypatch.setattr("theory.flag_game.mechanism1._fit.REFIT_STEPS", 0)
    _, cut = refitted(surrogate, point, moments, measured, 40, 2)
    assert 2 * cut.mean() < 2 - 4 * 2 / 40**0.5


@pytest.mark.slow
def test_bootstrap_says_nothing_of_what_is_not_identified(data: xr.Dataset) -> None:
    free = ("scale_T", "scale_R", "exponent_R", "J")
    found = mechanism1.fit(data, free=free, starts=0, runs=300, bootstrap=2).sel(parameter=list(free))
    lost = ~found["identified"]
    assert lost.any() and found["standard_error"].notnull().all()
    np.testing.assert_array_equal(found["bootstrap_standard_error"].isnull(), lost)


def test_measured_sweep_is_better_fitted_than_by_the_paper(data_folder) -> None:
    path = data_folder / "flag_game" / "population_scaling_gpt4o.csv"
    measured, better = read_counts(path), replace(APPENDIX_E, mean_R=-0.18, J=2.09)
    both = simulated_moments([better, APPENDIX_E], measured.sizes, 5000, 1)
    of_better, of_paper = (log_likelihood(moments.values, measured) for moments in both)
    assert of_better > of_paper + 3
    assert fit_copying(path).attrs["log_likelihood"] > of_better


def measured_exactly(sizes: np.ndarray, laws: list[np.ndarray]) -> pd.DataFrame:
    """Measurements of 10⁶ seeds at each N, without noise."""
    moments = moments_of_laws(laws)
    counts = np.round(moments.values[:, :4] * 10**6).astype(int)
    columns = {f"{name}_count": counts[:, k] for k, name in enumerate(mechanism1.ENDPOINTS)}
    accuracy = {"final_mean": moments.values[:, 4], "final_standard_error": 1e-3}
    return pd.DataFrame({"N": sizes, "seeds": counts.sum(1)} | columns | accuracy)


# --- copying for a finite time ---


def agent_by_agent(n_agents: int, z_T: int, z_R: int, interactions: int, share: float) -> np.ndarray:
    """Distribution of votes from all 2^N states; an interaction is a listener and one of all others whom it hears."""
    states = list(product((0, 1), repeat=n_agents))
    law = np.array([share ** sum(s) * (1 - share) ** (n_agents - sum(s)) for s in states])
    step = np.zeros((len(states), len(states)))
    for s, listener in product(states, range(n_agents)):
        heard = [*s[:listener], *s[listener + 1 :], *[1] * z_T, *[0] * z_R]
        for said in heard:
            then = (*s[:listener], said, *s[listener + 1 :])
            step[states.index(s), states.index(then)] += 1 / (n_agents * len(heard))
    law = law @ np.linalg.matrix_power(step, interactions)
    return np.bincount([sum(s) for s in states], weights=law)


@pytest.mark.parametrize(("n_agents", "z_T", "z_R"), [(1, 1, 2), (2, 3, 1), (3, 1, 2)])
def test_copying_for_a_while_is_agents_who_copy(n_agents: int, z_T: int, z_R: int) -> None:
    for interactions, share in product((0, 1, 2, 7), (0.0, 0.3, 1.0)):
        law = copying_law(n_agents, z_T, z_R, interactions=interactions, initial_share=share)
        np.testing.assert_allclose(law, agent_by_agent(n_agents, z_T, z_R, interactions, share), atol=1e-14)


def test_copying_conserves_and_relaxes() -> None:
    """Probabilities stay so, the mean goes to z_T/z at its own rate, and long runs are stationary."""
    n, z_T, z_R, share = 128, 1.2, 1.9, 0.8
    rate, limit = (z_T + z_R) / (n * (n + z_T + z_R - 1)), z_T / (z_T + z_R)
    for interactions in (1, 16 * n, 64 * n):
        law = copying_law(n, z_T, z_R, interactions=interactions, initial_share=share)
        assert law.min() >= 0 and law.sum() == pytest.approx(1, abs=1e-12)
        expected = limit + (share - limit) * (1 - rate) ** interactions
        assert law @ np.arange(n + 1) / n == pytest.approx(expected, abs=1e-12)
    stationary = copying_law(12, 0.3, 0.5)
    late, early = (copying_law(12, 0.3, 0.5, interactions=t, initial_share=share) for t in (20_000, 200))
    np.testing.assert_allclose(late, stationary, atol=1e-12)
    assert np.abs(early - stationary).max() > 0.02


def test_copying_for_a_while_is_a_limit_of_mechanism1() -> None:
    """χ² at 1e-4: zealots by chance, and only the interactions whose listener copies count."""
    n, per_agent, share, runs = 5, 3, 0.7, 20_000
    means = {"mean_T": 9.0, "sd_T": 0.0, "mean_R": -9.0, "sd_R": 0.0, "mean_0": 1e-3 * norm.ppf(share), "sd_0": 1e-3}
    weights = {"weight_T": 0.3, "weight_R": 0.2, "scale_T": 0.0, "scale_R": 0.0}
    rules = {"J": 1.0, "beta": 1e7, "alpha": 1.0, "interactions_per_agent": per_agent}
    votes = played([replace(APPENDIX_E, **means, **weights, **rules)], n, runs, 4).truth_votes[:, 0]

    def law(played: int | None) -> np.ndarray:
        total = np.zeros(n + 1)
        for t, r in product(range(n + 1), repeat=2):
            copying = n - t - r
            if copying < 0:
                continue
            weight = multinomial.pmf([t, r, copying], n, [0.3, 0.2, 0.5])
            zealots = max(t, 1e-9), max(r, 1e-9)
            for heard in range(per_agent * n + 1) if copying else ():
                chance = binom.pmf(heard, per_agent * n, copying / n)
                end = copying_law(copying, *zealots, interactions=played and heard, initial_share=share)
                total[t : t + copying + 1] += weight * chance * end
            total[t] += 0 if copying else weight
        return total

    counted = np.bincount(votes, minlength=n + 1)
    assert chisquare(counted, law(per_agent) * runs).pvalue > 1e-4
    assert chisquare(counted, law(None) * runs).pvalue < 1e-4


def test_copying_is_recovered() -> None:
    """z_T = 0.35 √N and z_R = 0.2 √N, for long runs and after 16 N interactions, where the stationary one is wrong."""
    sizes, expected = np.array([4, 16, 64]), [0.35, 0.2, 0.5, 0.8]
    zealots = [(n, 0.35 * n**0.5, 0.2 * n**0.5) for n in sizes.tolist()]
    stationary = measured_exactly(sizes, [copying_law(*one) for one in zealots])
    np.testing.assert_allclose(fit_copying(stationary)["estimate"], expected[:3], rtol=1e-3)
    laws = [copying_law(*one, interactions=16 * one[0], initial_share=0.8) for one in zealots]
    measured = measured_exactly(sizes, laws)
    finite, infinite = fit_copying(measured, interactions_per_agent=16), fit_copying(measured)
    assert finite["parameter"].values.tolist() == ["zealots_T", "zealots_R", "growth", "initial_share"]
    np.testing.assert_allclose(finite["estimate"], expected, rtol=2e-3)
    assert np.abs(np.log(infinite["estimate"] / expected[:3])).max() > 0.05
    assert infinite.attrs["log_likelihood"] < finite.attrs["log_likelihood"] - 20


# --- input ---


def test_sources_agree(tmp_path) -> None:
    frame = table()
    frame.to_csv(tmp_path / "counts.csv")
    dataset = xr.Dataset.from_dataframe(frame.rename(columns={"N": "n_agents"}).set_index("n_agents"))
    for source in (tmp_path / "counts.csv", dataset):
        for found, expected in zip(read_counts(source), read_counts(frame), strict=True):
            np.testing.assert_array_equal(found, expected)
    low, high = np.array([0.55, 0.6]) - 0.196, np.array([0.55, 0.6]) + 0.196
    by_interval = read_counts(table(final_standard_error=None, final_ci_low=low, final_ci_high=high))
    np.testing.assert_allclose(by_interval.standard_error, 0.1, rtol=1e-4)


def test_an_accuracy_of_nan_was_not_measured() -> None:
    """Games that all end alike have the error 0; without their accuracy, they are fitted by their endpoints alone."""
    partly = table(final_mean=[np.nan, 0.6], final_standard_error=[0.0, 0.08])
    moments = np.array([[0.4, 0.3, 0.3, 0.0, 0.5], [0.35, 0.15, 0.3, 0.2, 0.65]])
    without = log_likelihood(moments, read_counts(table(**UNMEASURED)))
    assert log_likelihood(moments, read_counts(partly)) == pytest.approx(without + norm.logpdf(0.6, 0.65, 0.08))
    assert np.isfinite(fit_copying(partly).attrs["aic"])
    compared = flag_game.compare(partly, runs=50)["inside"]
    np.testing.assert_array_equal(compared.sel(quantity="accuracy").isnull(), [True, False])


BAD_COUNTS = [
    ({"seeds": None}, "counts lacks the column seeds"),
    ({"seeds": [9, 20]}, "the endpoint counts at N = 4 sum to 10: above the 9 seeds"),
    ({"polarization_count": [2.5, 7]}, "polarization_count = "),
    ({"N": [4, 4]}, "N = [4, 4]"),
    ({"fragmentation_count": [1, 3], "polarization_count": [2, 7]}, "fragmentation_count = 1 at N = 4"),
    ({"final_mean": [1.2, 0.5]}, "final_mean = [1.2, 0.5]"),
    ({"final_standard_error": None}, "counts has final_mean"),
    ({"final_mean": None}, "counts has final_standard_error: expected final_mean too"),
    ({"collective_accuracy": [0.5, 0.6]}, "counts has final_mean and collective_accuracy"),
    ({"final_standard_error": [0.1, 0.0]}, "the standard error of final_mean at N = 16 is 0.0: expected a number"),
    (
        {"final_ci_low": [0.4, 0.99], "final_ci_high": [0.7, 0.1]},
        "final_ci_low, final_ci_high = 0.99, 0.1 at N = 16: expected an interval that holds the mean, 0.6",
    ),
]
BAD_OPTIONS = [
    ({"free": ("J", "K")}, "free = ('J', 'K')"),
    ({"free": -1}, "free = -1: expected different names"),
    ({"start": replace(APPENDIX_E, scale_T=0.0)}, "start.scale_T = 0"),
    ({"start": {"J": 2.0}}, "start = {'J': 2.0}: expected a Mechanism1"),
]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda changes=changes: read_counts(table(**changes)), message) for changes, message in BAD_COUNTS),
        *((lambda given=given: mechanism1.fit(table(), **given), message) for given, message in BAD_OPTIONS),
        *((lambda counts=counts: fit_copying(counts), f"counts = {counts}: expected a") for counts in (None, [1])),
        *((lambda fit=fit: Mechanism1.of(fit), "fit: expected the result of theory.") for fit in (xr.Dataset(),)),
        (lambda: make_draws((4, 10**7), 16, 0), "N = 10000000: the fit would need 4.8 GiB for 16 rounds"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message)
