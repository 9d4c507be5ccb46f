"""The majority law: exact chains, closed forms, simulated groups, symmetry, and policies without it."""

from functools import partial

import jax
import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_lyapunov
from scipy.special import ndtr

import meanfield
import validation
from meanfield import core
from meanfield._finite_size import majority
from meanfield._finite_size.majority import word_share_correlation
from meanfield.toolbox import as_population

majority_law = partial(meanfield.group_size_law, order=2)
LEANING = np.array([0.6, 0.75, 0.5, 0.6, 0.3])  # H = 1
POLICY = meanfield.make_policy(LEANING, ["A", "B"])


def chain_of(n_agents, q=LEANING):
    """P(the first word is ahead) after long times, a tie as half, exactly."""
    group = validation.naming_game.exact_population(meanfield.make_policy(q, ["A", "B"]), n_agents=n_agents)
    ahead, law = group.word_share[:, 0] - 0.5, np.asarray(group.law(rounds=30)).ravel()
    return law @ ((ahead > 1e-9) + (np.abs(ahead) < 1e-9) / 2)


def test_chances_converge_to_those_of_the_exact_chain():
    sizes = [6, 8, 10, 12]
    law = majority_law(POLICY, n_agents=sizes)
    exact = np.array([chain_of(n) for n in sizes])
    assert law["strong_word"].item() == "A"
    assert law.attrs["applies"] == 1
    # Word shares are fractions of few numbers, so that the remaining error is not smooth
    errors = np.abs(law["probability"].values - exact)
    assert errors.max() < 0.002, errors
    without = np.abs(ndtr(law["kappa"].item() * np.sqrt(sizes) + 0.1 / np.sqrt(sizes)) - exact)
    assert without.min() > 0.004, "control: c off by 0.12"


def test_the_tail_is_that_of_the_exact_chain():
    q, sizes = np.array([0.5, 0.9123, 0.8311, 0.4517, 0.1829]), [8, 10, 12, 14]
    law = majority_law(meanfield.make_policy(q, ["A", "B"]), n_agents=sizes)
    exact = np.array([1 - chain_of(n, q) for n in sizes])
    weak = np.exp(law["log_weak_probability"].values)
    np.testing.assert_allclose(weak / exact, 1, atol=0.03)
    moments = meanfield.finite_size(meanfield.make_policy(q, ["A", "B"]), times=[60.0]).squeeze("time").sel(word="A")
    deviations = (moments["word_share"].item() - 0.5) / moments["word_share_variance"].item() ** 0.5
    assert ndtr(-np.sqrt(sizes[-1]) * deviations) < exact[-1] / 10, "control: linear noise alone"


def test_correlations_are_those_of_linear_noise():
    point = meanfield.fixed_points(POLICY).isel(fixed_point=0)
    x, game = point["composition"].values, core.WordGame(POLICY["q"].values)
    found = word_share_correlation(as_population(POLICY).mixture, x[None], 0, -point["eigenvalue"].item())
    # Perturbations keep their sum, so that J has an eigenvalue 0, which is moved to -1
    unit, q = np.eye(len(x)), LEANING
    drift = partial(core.drift, game)
    J = np.asarray(jax.jit(jax.jacobian(drift))(x)) - np.outer(x, np.ones(len(x)))
    D = np.asarray(jax.jit(jax.vmap(partial(core.noise_product, game, x)))(unit))
    C = solve_continuous_lyapunov(J, -D)
    times = np.array([0.0, 0.5, 2.0, 5.0])
    exact = np.array([q @ expm(J * t) @ C @ q for t in times])
    assert found.variance == pytest.approx(exact[0], rel=3e-4)
    np.testing.assert_allclose(found.at(times), exact / exact[0], atol=1e-4)
    assert found.variance == pytest.approx(
        meanfield.finite_size(POLICY, times=[40.0])["word_share_variance"].sel(word="A").item(), rel=3e-4
    )


def test_sides_are_kept_as_long_as_among_simulated_groups():
    policy = meanfield.datasets.smollm2().sel(pair="his/her")
    law = majority_law(policy, n_agents=24, rounds=[0.0, 1.0, 2.0, 4.0]).squeeze("n_agents")
    runs = validation.simulate(policy, n_agents=24, runs=8000, seed=3, record_rounds=34, max_rounds=34)
    share = runs["word_share"].sel(word=law["strong_word"].item()).squeeze("n_agents").transpose("round", "run")
    ahead = share.sel(round=[30, 31, 32, 34]).values > 0.5
    # Standard errors of 0.005 and, for the 2,200 runs at the other side, of 0.01
    assert ahead[0].mean() == pytest.approx(law["probability"].item(), abs=0.015)
    still = (~ahead[:, ~ahead[0]]).mean(1)
    np.testing.assert_allclose(still, law["still_ahead"], atol=0.03)
    assert still[1] > 1 - law["probability"] + 0.03, "control: sides that are forgotten by then"


def test_words_are_equals():
    rounds = np.linspace(0, 10, 11)
    one = majority_law(POLICY, n_agents=[10, 50], rounds=rounds)
    swapped = 1 - LEANING[[0, 4, 3, 2, 1]]
    other = majority_law(meanfield.make_policy(swapped, ["A", "B"]), n_agents=[10, 50], rounds=rounds)
    assert (one["strong_word"], other["strong_word"]) == ("A", "B")
    for name in ("kappa", "correction", "probability", "still_ahead", "memory_rounds"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-7)


def test_without_a_lean_each_word_is_ahead_half_of_the_time():
    policy = meanfield.make_policy(np.array([0.5, 0.7, 0.5, 0.5, 0.3]), ["A", "B"])
    law = majority_law(policy, n_agents=[10, 1000], rounds=np.linspace(0, 10, 11))
    assert abs(law["kappa"].item()) < 1e-6 and law["strong_word"].item() == "" and law["attractors"] == 1
    assert abs(law["correction"].item()) < 1e-6
    np.testing.assert_allclose(law["probability"], 0.5, atol=1e-6)
    rho = law["correlation"].values  # then the sides are forgotten by the law of arcsines
    np.testing.assert_allclose(law["still_ahead"].sel(n_agents=10), 0.5 + np.arcsin(rho) / np.pi, atol=1e-6)


def test_next_to_no_lean_has_the_next_order_of_a_little_more():
    laws = [majority_law(meanfield.make_policy(LEANING - less, ["A", "B"])) for less in (0.036, 0.0374, 0.04)]
    kappas = np.array([1, 1, -1]) * [law["kappa"].item() for law in laws]
    corrections = np.array([1, 1, -1]) * [law["correction"].item() for law in laws]
    assert abs(kappas[1]) < 0.002, "c is a mean of those of two bounds"
    between = np.interp(kappas[1], kappas[::-1], corrections[::-1])
    assert corrections[1] == pytest.approx(between, abs=0.002)


def test_order_1_leaves_c_out():
    first, second = (meanfield.group_size_law(POLICY, n_agents=[10], order=order) for order in (1, 2))
    assert first["kappa"] == second["kappa"] and first["correction"] == 0 != second["correction"]
    assert first["attractors"] == 1


@pytest.mark.slow
def test_populations_of_two_models_with_committed_agents():
    """Against simulated groups: 20,000 runs of 40 agents, 4 of them committed to B."""
    policies = [meanfield.make_policy(q, ["A", "B"]) for q in (LEANING, 1 - LEANING[[0, 4, 3, 2, 1]] / 2)]
    population = meanfield.Population(policies, [0.8, 0.2], committed={"B": 0.1})
    law = majority_law(population, n_agents=40).squeeze("n_agents")
    runs = validation.simulate(population, n_agents=40, runs=20_000, seed=2, record_rounds=30, max_rounds=30)
    word = law["strong_word"].item()
    share = runs["word_share"].sel(word=word, round=30).values
    found = (share > 0.5 + 1e-9).mean() + (abs(share - 0.5) < 1e-9).mean() / 2
    assert 0.55 < found < 0.98
    assert law["probability"].item() == pytest.approx(found, abs=0.015)
    control = majority_law(POLICY, n_agents=40)
    assert law["probability"].item() != pytest.approx(control["probability"].item(), abs=0.03)


SURE, EVEN = np.array([0.9, 0.95, 0.9, 0.9, 0.85]), np.array([0.5, 0.6, 0.5, 0.5, 0.4])


@pytest.mark.parametrize(
    ("policies", "committed", "word", "reason"),
    [
        ([[0.2, 0.9, 0.6, 0.7, 0.55]], {}, "A", "with probability 0.55 or more in every memory"),
        ([[0.2, 1.0, 1.0, 1.0, 1.0]], {}, "A", "never say any other word"),
        ([SURE, EVEN], {}, "A", "with probability 0.625 or more"),
        ([LEANING], {"B": 0.6}, "B", "committed to its word"),
    ],
    ids=["in every memory", "no other word", "by their shares", "half are committed"],
)
def test_a_word_that_is_always_ahead(policies, committed, word, reason):
    policies = [meanfield.make_policy(np.array(q), ["A", "B"]) for q in policies]
    population = meanfield.Population(policies, [1 / len(policies)] * len(policies), committed=committed)
    law = majority_law(population, n_agents=[2, 10])
    assert np.isposinf(law["kappa"]) and law["strong_word"].item() == word and law["correction"] == 0
    assert reason in law.attrs["reason"]
    np.testing.assert_array_equal(law["probability"], 1.0)


def test_c_does_not_depend_on_how_long_the_start_is_forgotten(monkeypatch):
    policy = meanfield.make_policy(np.random.default_rng(0).beta(0.5, 0.5, 21), ["A", "B"])
    law = majority_law(policy, n_agents=10)
    monkeypatch.setattr(majority, "FORGOTTEN", 20.0)
    longer = majority_law(policy, n_agents=10)
    assert law["correction"].item() == pytest.approx(longer["correction"].item(), abs=2e-4)
    monkeypatch.setattr(majority, "FORGOTTEN", 4.0)
    shorter = majority_law(policy, n_agents=10)
    assert law["correction"].item() != pytest.approx(shorter["correction"].item(), abs=1e-3), "control"


def test_a_consensus_that_is_never_left_is_told():
    policy = meanfield.make_policy(np.array([0.5, 1.0, 0.2, 0.3, 0.1]), ["A", "B"])
    reason = majority_law(policy, n_agents=10).attrs["reason"]
    assert reason.endswith("; it holds until all agree on 'A', which they never leave")


@pytest.mark.parametrize(
    ("q", "reason"),
    [
        ([0.5, 1.0, 0.5, 0.5, 0.0], "marginal"),
        ([0.5, 0.9, 0.5, 0.5, 0.5], "no path was found"),  # B is never ahead, but may be level
        ([0.5, 0.9999, 0.5, 0.5, 1e-4], "the attractor is slow (eigenvalue -0.0002)"),
        (np.full((10, 3), 1 / 3), "stable fixed points: 1; for more than two words the law needs two at least"),
    ],
)
def test_where_there_is_no_law(q, reason):
    q = np.array(q)
    law = majority_law(meanfield.make_policy(q, list("ABC"[: 2 if q.ndim == 1 else 3])), n_agents=[10])
    assert law.attrs["applies"] == 0 and law["attractors"] == 0
    assert reason in law.attrs["reason"]
    assert np.isnan(law["probability"]).all()
    assert law["strong_word"].item() == ""


def test_chances_stay_chances_far_in_the_tail():
    law = majority_law(POLICY, n_agents=[10, 3000, 14_000, 15_300], rounds=[0.0, 1e-3, 0.1, 1.0])
    still = law["still_ahead"].values
    assert np.isnan(still[-1]).all() and np.isfinite(still[:-1]).all()
    assert (still[:-1] >= 0).all() and (still[:-1] <= 1).all()
    assert (np.diff(law["log_weak_probability"]) < 0).all()
