"""The smallest change that lets a convention live longer, against brute force, a closed form and simulation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, rel_entr

import meanfield
from _metastable import follower
from _policies import random_policy
from meanfield import ConvergenceError, InputError, design
from meanfield._large_deviations import design as module
from meanfield._large_deviations.exits import landscape
from meanfield._large_deviations.least_change import Slope
from meanfield._large_deviations.sensitivity import barrier_of
from meanfield.toolbox import canonical_order
from validation import simulate
from validation.naming_game import Convention

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.fixture(scope="module")
def policy():
    """A is favoured; both words are conventions."""
    return follower(0.05, tie=0.53)


@pytest.fixture(scope="module")
def doubled(policy):
    return living(policy, 0, 20)


def slope_at(first):
    """The barrier of an attractor, and its derivative."""
    one = meanfield.make_policy(first, ["A", "B"])
    barrier = barrier_of(landscape(one, None), 0)
    return Slope.of(barrier.value, barrier.derivative[0], barrier.weight[0])


def living(policy, number, n_agents):
    """The smallest change with which a convention lives twice as long, but for its prefactor."""
    value = barrier_of(landscape(policy, None), number).value + np.log(2) / n_agents
    return canonical_order(design(policy, of="barrier", fixed_point=number, value=value), "result")


def rounds(policy, n_agents):
    """Mean lifetime."""
    return meanfield.lifetime(policy, n_agents=n_agents)["lifetime"].sel(fixed_point=0).item()


def cost(first, original, weight):
    return float(weight @ (rel_entr(first, original) + rel_entr(1 - first, 1 - original)))


@pytest.mark.slow
def test_the_barrier_is_as_asked(policy, doubled):
    before, after = doubled["value_before"].item(), doubled["value_after"].item()
    assert after - before == pytest.approx(np.log(2) / 20, rel=3e-5)
    assert slope_at(doubled["q"].values[:, 0]).value == pytest.approx(after, abs=1e-9)
    assert rounds(doubled, 20) / rounds(policy, 20) == pytest.approx(2, rel=0.05)
    assert doubled.attrs["residual"] < 1e-4
    np.testing.assert_allclose(doubled["derivative"], slope_at(policy["q"].values[:, 0]).derivative)


@pytest.mark.slow
def test_it_is_stationary(policy, doubled):
    """Logits change by what is proportional to the derivative over the weight."""
    q, original = doubled["q"].values[5:, 0], policy["q"].values[5:, 0]
    ratio = (logit(q) - logit(original)) * (doubled["weight"] / doubled["derivative_after"]).values[5:]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


@pytest.mark.slow
def test_no_policy_with_this_barrier_is_nearer(policy, doubled):
    """Sequential quadratic programming over all full memories from three starts. The control: equal weights cost more.

    Its variables are logits in units in which the cost is about half their square.
    """
    original, weight, full = policy["q"].values[:, 0], doubled["weight"].values, np.arange(21) >= 5
    wanted = doubled["value_after"].item()

    def nearest(weight, start):
        scale = 1e2 * np.sqrt(weight * original * (1 - original))[full]

        def at(t):
            first = original.copy()
            first[full] = expit(logit(original[full]) + t / scale)
            return first

        def slope(t):
            return 100 * slope_at(at(t)).derivative[full] * (at(t) * (1 - at(t)))[full] / scale

        best = minimize(
            lambda t: 1e4 * cost(at(t), original, weight),
            start,
            method="SLSQP",
            bounds=[(-3, 3)] * full.sum(),
            constraints={"type": "eq", "fun": lambda t: 100 * (slope_at(at(t)).value - wanted), "jac": slope},
            options={"maxiter": 100, "ftol": 1e-8},
        )
        assert slope_at(at(best.x)).value == pytest.approx(wanted, abs=1e-6)
        return cost(at(best.x), original, doubled["weight"].values)

    random = np.random.default_rng(1)
    found = [nearest(weight, size * random.standard_normal(16)) for size in (0, 0.3, 0.3)]
    np.testing.assert_allclose(found, doubled["total_cost"], rtol=1e-5)
    assert nearest(np.full(21, 1 / 21), np.zeros(16)) > 1.01 * min(found)


def mean_stay(policy, word, n_agents, seen, runs=4000):
    """Rounds until more than nine in ten say the other word; runs that stay longer count as long as they are seen."""
    options = {"initial": word, "convention": Convention(1.0, first_test=seen + 1)}
    found = simulate(
        policy, n_agents=n_agents, runs=runs, seed=5, record_rounds=seen + 1, max_rounds=seen + 2, **options
    )
    left = found["word_share"].sel(word=word).isel(n_agents=0).transpose("run", "round").values < 0.1
    ended = left.any(1)
    return np.where(ended, left.argmax(1), left.shape[1]).sum() / ended.sum()


@pytest.mark.slow
def test_simulated_conventions_live_twice_as_long():
    """The mean of 4,000 runs with a few ends in each has a standard error of 2 %, the ratio one of 3 %. The control is
    the other convention, whose lifetime does not double."""
    policy, n = follower(0.05), 8
    changed, before = living(policy, 0, n), rounds(policy, n)
    theory, seen = rounds(changed, n) / before, int(2 * before)
    ratio, control = (mean_stay(changed, word, n, seen) / mean_stay(policy, word, n, seen) for word in "AB")
    assert ratio == pytest.approx(theory, rel=0.1)
    assert ratio == pytest.approx(2, rel=0.15)
    assert control < 0.7


@pytest.mark.slow
def test_barriers_that_are_known_badly_are_not_taken(policy, monkeypatch):
    """The original path is; those of changed policies get a large error."""
    found, calls = module.barrier_of, []

    def rough(*arguments, **options):
        barrier = found(*arguments, **options)
        calls.append(barrier)
        return barrier if len(calls) == 1 else barrier._replace(error=0.01)

    monkeypatch.setattr(module, "barrier_of", rough)
    with pytest.raises(ConvergenceError, match=r"of a changed policy is known to 0\.01 only"):
        design(policy, of="barrier", fixed_point=0, value=0.1)


def test_changes_that_its_error_hides_are_refused(policy):
    value = barrier_of(landscape(policy, None), 0).value * (1 + 1e-13)
    with pytest.raises(InputError, match=r"differs by .* from the barrier .*: expected a larger change"):
        design(policy, of="barrier", fixed_point=0, value=value)


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (random_policy(1), {}, "fixed_point = 0: this is the only attractor"),
        (follower(0.05), {"fixed_point": 1}, "fixed_point = 1 is unstable: expected an attractor"),
        (follower(0.0), {}, "fixed_point = 0: agents at this attractor never change"),
        (follower(0.05), {"value": 0.0}, "value = 0.0: expected a number above 0"),
    ],
)
def test_what_cannot_be_asked(policy, arguments, message):
    with pytest.raises(InputError, match=message):
        design(policy, **{"of": "barrier", "fixed_point": 0, "value": 0.2, **arguments})
