"""The smallest change of κ: its derivative, its costs, symmetry, simulated groups, and where there is none."""

import numpy as np
import pytest
from scipy.special import ndtr, rel_entr

import meanfield
import validation
from _labelled_calls import conformist
from _metastable import follower
from _policies import majority, random_policy, relabelled, relabelled_states
from meanfield import InputError, design
from meanfield._finite_size.law_path import signed_law_path
from meanfield._large_deviations import least_change
from meanfield.toolbox import canonical_order, space_of

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.fixture(scope="module")
def policy():
    return conformist()


@pytest.fixture(scope="module")
def to_the_boundary(policy):
    return canonical_order(design(policy, of="kappa", value=0.0), "result")


@pytest.fixture(scope="module")
def beyond(policy):
    """With κ = 0.1 for the other word."""
    return design(policy, of="kappa", value=-0.1)


@pytest.mark.slow
def test_small_changes_cost_what_the_derivative_says():
    """κ²/(2 Σ g²q(1 - q)/m) to lowest order. By symmetry the next one is smaller by κ²."""
    errors = []
    for bias in (0.04, 0.02):
        policy = follower(0.005, empty=0.5 + bias, words="ab")
        result = canonical_order(design(policy, of="kappa", value=0.0), "result")
        q, g, m = policy["q"].values, result["derivative"].values, result["weight"].values
        expected = result["value_before"].item() ** 2 / (2 * (g**2 * q.prod(1) / m).sum())
        errors.append(abs(result["total_cost"].item() / expected - 1))
    assert errors[0] < 0.02
    assert errors[1] < errors[0] / 2


def test_kappa_is_as_asked(policy, beyond):
    result, law = beyond, meanfield.group_size_law(beyond, n_agents=[100])
    assert law["strong_word"].item() == result["other_word"].item() == "b"
    assert law["kappa"].item() == pytest.approx(0.1, rel=1e-4)
    assert result["value_after"].item() == pytest.approx(-0.1, rel=1e-4)
    assert result["value_before"].item() == meanfield.group_size_law(policy)["kappa"].item()
    assert result.attrs["residual"] < 1e-4


def test_kappa_is_smooth_through_the_boundary(to_the_boundary):
    """Signed, from both sides, against its derivative: differences of order two."""
    q, random = to_the_boundary["q"].values[:, 0], np.random.default_rng(1)
    direction = q * (1 - q) * random.standard_normal(21)

    def kappa(step):
        moved = meanfield.make_policy(q + step * direction, ["a", "b"])
        return signed_law_path(moved, 0, 0.05).path.kappa

    values = [kappa(step) for step in (-0.01, 0, 0.01)]
    assert abs(values[1]) < 1e-5 and values[0] * values[2] < 0
    slope = to_the_boundary["derivative_after"].values @ direction
    assert (values[2] - values[0]) / 0.02 == pytest.approx(slope, rel=1e-3)


def test_the_result_is_a_policy_that_lists_its_costs(policy, beyond):
    result = beyond
    assert (np.diff(result["cost"]) <= 0).all()
    assert result["cost"].sum().item() == pytest.approx(result["total_cost"].item())
    ours = meanfield.validate_policy(result)
    np.testing.assert_allclose(ours["q"].values[:, 0] - policy["q"].values[:, 0], ours["change"], atol=1e-15)
    before, after = (meanfield.sensitivity(one, of="kappa") for one in (policy, result))
    for name in ("derivative", "memory"):
        np.testing.assert_array_equal(ours[name], before[name])
    np.testing.assert_allclose(ours["weight"], after["weight"], rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(ours["derivative_after"], -after["derivative"], rtol=1e-3, atol=1e-6)
    expected = rel_entr(ours["q"].values, policy["q"].values).sum(1)
    np.testing.assert_allclose(ours["divergence"], expected, atol=1e-15)
    assert ours["memory"].values[space_of(policy).state([(1, 0), (0, 1)])] == "b/a a/b"


def test_exchanging_the_words_exchanges_the_change(policy, to_the_boundary):
    theirs = canonical_order(design(relabelled(policy, [1, 0]), of="kappa", value=0.0), "result")
    mirrored = relabelled_states(space_of(policy), [1, 0])
    np.testing.assert_allclose(theirs["change"].values[mirrored], -to_the_boundary["change"], atol=1e-6)
    np.testing.assert_allclose(theirs["cost"].values[mirrored], to_the_boundary["cost"], rtol=1e-4, atol=1e-9)
    assert theirs["total_cost"].item() == pytest.approx(to_the_boundary["total_cost"].item(), rel=1e-5)


@pytest.mark.slow
def test_groups_of_a_hundred_end_at_the_other_word(policy, beyond):
    """5,000 runs: five standard errors are 0.036 at most, and 0.01 is left for what is of order 1/√N. The control is
    the policy itself."""
    chances = []
    for one in (policy, beyond):
        runs = validation.simulate(one, n_agents=100, runs=5000, seed=1, max_rounds=40, record_rounds=40)
        chances.append((runs["word_share"].sel(word="b").isel(round=-1) > 0.5).mean().item())
    law = ndtr([-10 * beyond["value_before"].item(), 1.0])
    np.testing.assert_allclose(chances, law, atol=0.046)
    assert chances[0] < 0.4 and chances[1] > 0.8


def test_zeros_stay():
    """And what can't change does not: agents without memories, and those in a tie, do all of it."""
    result = canonical_order(design(follower(0.0, empty=0.6, words="ab"), of="kappa", value=0.0), "result")
    fixed = (follower(0.0, empty=0.6, words="ab")["q"].values == 0).any(1)
    assert fixed.any() and (result["change"].values[fixed] == 0).all()
    assert (result["q"].values[fixed].max(1) == 1).all()
    assert result["value_after"].item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MAX_ITERATIONS", 1, "1 iterations did not suffice"),
        ("DOUBLINGS", 0, "no change of the answers that have a probability above 0"),
    ],
)
def test_what_is_not_found_says_why_and_hands_over_kappa(policy, to_the_boundary, monkeypatch, name, value, message):
    monkeypatch.setattr(least_change, name, value)
    with pytest.raises(meanfield.ConvergenceError, match=message) as raised:
        design(policy, of="kappa", value=0.0)
    assert raised.value.best == to_the_boundary["value_before"].item()


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (random_policy(0, 3), {}, "policy has 3 words: expected 2 for of = 'kappa'"),
        (conformist(), {"value": -0.7}, "value = -0.7: expected a number of at least -0.5"),
        (conformist(), {"of": "speed"}, "of = 'speed': expected one of kappa, "),
        (conformist(), {"of": lambda q: q}, r"of returned an array of shape \(21, 2\), float64: expected a function"),
        (conformist(), {"of": lambda q: float(q[0, 0])}, r"of can't be called with an array of JAX .*: expected"),
        (conformist(), {"of": lambda q: (q * np.nan).sum()}, "of = nan, and its gradient, are not finite"),
        (conformist(), {"of": lambda q: q[0, 0], "word": "a"}, "word = 'a': expected None where of is a function"),
        (
            random_policy(1),
            {},
            "policy has one attractor, .* not what group_size_law gives .* is the only attractor .* fixed_point = 0$",
        ),
        (conformist(), {"of": "word_share", "value": -1.0, "fixed_point": 0}, "^value = -1.0: .* between 0 and 1"),
        (majority(0.5), {}, "policy has no finite κ above 0: agents treat both words alike"),
        (
            follower(0.0, empty=1.0, words="ab"),
            {},
            "policy has no finite κ above 0: agents who start with empty memories never say any other word",
        ),
    ],
)
def test_where_kappa_is_not_defined(policy, arguments, message):
    with pytest.raises(InputError, match=message):
        design(policy, **{"of": "kappa", "value": 0.0, **arguments})


def test_marginal_policies_are_refused(published):
    with pytest.raises(InputError, match=r"policy has no finite κ above 0: the fixed point .* is marginal"):
        design(published.sel(model="llama31_70B", pair="young/old"), of="kappa", value=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "word"), [("woman/man", "man"), ("more/less", "more")])
def test_published_policies(published, pair, word):
    """One of the weakest and one of the strongest biases of GPT-4o. 10,000 groups: five standard errors are 0.02."""
    policy = published.sel(model="gpt-4o", pair=pair).set_index(word="word_label")
    changed = design(policy, of="kappa", value=-0.1)
    law = meanfield.group_size_law(changed, n_agents=[100])
    assert law["kappa"].item() == pytest.approx(0.1, rel=1e-3)
    assert law["strong_word"].item() == changed["other_word"].item() == word
    runs = validation.simulate(changed, n_agents=100, runs=10_000, seed=1, max_rounds=60, record_rounds=60)
    other = (runs["word_share"].sel(word=word).isel(round=-1) > 0.5).mean().item()
    assert other == pytest.approx(law["probability"].item(), abs=0.03)
