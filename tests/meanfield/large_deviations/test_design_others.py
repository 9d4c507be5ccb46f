"""Smallest changes of quantities of a fixed point, of folds, and of functions of one's own, for any number of words."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr, softmax

import meanfield
import policy_extraction
from _labelled_calls import conformist
from _policies import random_policy
from meanfield import core, design
from meanfield.toolbox import canonical_order

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.mark.parametrize(
    ("policy", "asked", "value"),
    [
        (random_policy(3, 3, 1), {"of": "word_share", "fixed_point": 0}, 0.4),
        (random_policy(3, 3, 1), {"of": "eigenvalue", "fixed_point": 0}, -0.55),
        (conformist(), {"of": "critical_mass", "word": "b"}, 0.1),
    ],
    ids=["share of three", "eigenvalue of three", "critical mass"],
)
def test_the_value_is_reached_and_stationary(policy, asked, value):
    """Logits change by what is proportional to the derivative over the weight, up to a number for each memory."""
    result = canonical_order(design(policy, value=value, **asked), "result")
    again = meanfield.sensitivity(meanfield.validate_policy(result), **asked)
    assert again.attrs["value"] == pytest.approx(value, abs=1e-4 * abs(value - result["value_before"].item()))
    np.testing.assert_allclose(again["derivative"], result["derivative_after"], rtol=1e-6, atol=1e-12)
    q, original, weight = result["q"].values, policy["q"].values, result["weight"].values
    moved = np.log(q / original)
    slope = result["derivative_after"].values
    slope = (np.stack([slope, -slope], 1) if slope.ndim == 1 else slope) / weight[:, None]
    moved, slope = (part - part.mean(1, keepdims=True) for part in (moved, slope))
    often = weight > 1e-6
    mu = (moved * slope)[often].sum() / (slope**2)[often].sum()
    np.testing.assert_allclose(moved[often], mu * slope[often], atol=2e-3 * np.abs(moved).max())
    assert mu * (value - result["value_before"].item()) > 0


@pytest.mark.slow
def test_a_function_of_ones_own_and_no_policy_is_nearer():
    """The share of the second of three words at the fixed point; sequential quadratic programming over all logits."""
    policy = random_policy(5, 3, 1)
    guess = meanfield.fixed_points(policy)["word_share"].values[0]
    value = guess[1] + 0.1

    def second(q):
        return core.fixed_point(core.WordGame(q), guess).word_share[1]

    result = canonical_order(design(policy, of=second, value=value), "result")
    assert result["value_after"].item() == pytest.approx(value, abs=1e-5)
    assert (result["weight"] == 1 / 10).all() and result.attrs["of"] == "second"
    original = policy["q"].values
    with jax.enable_x64(True):
        slope = jax.jit(jax.value_and_grad(lambda t: second(jax.nn.softmax(t.reshape(original.shape), axis=1))))
        best = minimize(
            lambda t: rel_entr(softmax(t.reshape(original.shape), axis=1), original).sum(),
            np.log(original).ravel(),
            method="SLSQP",
            constraints={"type": "eq", "fun": lambda t: slope(t)[0] - value, "jac": lambda t: slope(t)[1]},
            options={"maxiter": 200, "ftol": 1e-12},
        )
    assert result["total_cost"].item() == pytest.approx(best.fun / 10, rel=1e-3)


def test_former_names_warn_and_lead_to_the_new_ones():
    policy = conformist()
    with pytest.warns(DeprecationWarning, match="use design"):
        changed = meanfield.intervention(policy, kappa=0.05)
    assert changed["kappa_after"].item() == pytest.approx(-0.05, rel=1e-3)
    assert "intervention" not in dir(meanfield) and "prolong" not in meanfield.__all__


def test_what_moved_is_found_at_its_former_place(tmp_path):
    policy = conformist()
    model, table, path = meanfield.reaction_model(policy), meanfield.stability_table(policy), tmp_path / "table.txt"
    tensor = np.asarray(meanfield.core.reaction_tensor(meanfield.core.WordGame(policy["q"].values)))
    csv, latex = (meanfield.write_stability(table, tmp_path / name).read_text() for name in ("table.CSV", "table.tex"))
    for former, new in (
        (lambda: meanfield.words_of(policy), meanfield.toolbox.words_of(policy)),
        (lambda: meanfield.dense_tensor(policy).tolist(), tensor.tolist()),
        (lambda: meanfield.reaction_protocol(model)[0].tolist(), model.protocol()[0].tolist()),
        (lambda: meanfield.UnparsedError, policy_extraction.UnparsedError),
        (lambda: meanfield.write_stability_csv(table, path).read_text(), csv),
        (lambda: meanfield.write_stability_latex(table, path).read_text(), latex),
    ):
        with pytest.warns(DeprecationWarning, match="goes with the next release: use "):
            assert former() == new


def test_a_stability_table_needs_a_known_ending(tmp_path):
    with pytest.raises(meanfield.InputError, match=r"table\.txt: expected a name that ends with \.csv or \.tex"):
        meanfield.write_stability(meanfield.stability_table(conformist()), tmp_path / "table.txt")


def test_a_fixed_point_is_not_confused_with_another_one():
    """Its share is asked to be that of the other attractor, which would be cheap to move there."""
    policy = conformist()
    shares = meanfield.fixed_points(policy)["word_share"].values[:, 0]
    wanted = shares[2] + 0.001
    with pytest.raises(meanfield.ConvergenceError, match=r"other fixed points|suffice"):
        design(policy, of="word_share", fixed_point=0, value=wanted)
