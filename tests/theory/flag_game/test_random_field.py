"""Eq. 9 of [002]: all roots, folds and pitchforks, against closed forms of the random-field mean-field model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from meanfield import InputError
from theory.flag_game import random_field
from theory.flag_game.mechanism1 import APPENDIX_E
from theory.flag_game.random_field import FieldLaw
from theory.flag_game.random_field._phase_diagram import sample_fields

LAW = APPENDIX_E.field_law()


def bimodal_fields(strength: float) -> FieldLaw:
    return FieldLaw([0.5, 0.5], [strength, -strength], [0, 0])


def normal_fields(mean: float, sd: float) -> FieldLaw:
    return FieldLaw([1.0], [mean], [sd])


def test_curie_weiss() -> None:
    points = random_field.fixed_points([0.0], J=1.5, beta=1.0)
    np.testing.assert_allclose(points["m"], [-0.8585596366, 0, 0.8585596366], atol=1e-9)
    assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]
    np.testing.assert_allclose(points["q"], np.tanh(1.5 * points["m"]) ** 2, atol=1e-12)
    assert random_field.fixed_points([0.0], J=0.99, beta=1.0)["m"].size == 1


def test_tricritical_point_of_the_bimodal_law() -> None:
    """T/J = 2/3 and h/J = 0.4389859656: there the pitchfork is at J = 1, and changes its kind."""
    T, h = 2 / 3, 0.4389859656
    assert random_field.pitchfork(bimodal_fields(h), beta=1 / T)[0] == pytest.approx(1, abs=1e-9)
    for t in (0.62, 0.66, 0.68, 0.72):
        strength = t * np.arccosh(t**-0.5)  # where T cosh²(h/T) = J = 1
        J, kind = random_field.pitchfork(bimodal_fields(strength), beta=1 / t)
        assert abs(J - 1) < 1e-12
        assert kind == ("supercritical" if t > T else "subcritical")
        folds = random_field.bifurcation(bimodal_fields(strength), beta=1 / t, max_J=1.5)["fold_J"]
        assert (folds.size == 2) == (t < T)


@pytest.mark.parametrize("beta", [6.0, 30.0, 1000.0])
def test_folds_of_sharp_agents_with_bimodal_fields(beta: float) -> None:
    """From x/f(x) at its least, on a grid; J = cosh²(βh)/β of the pitchfork is beyond all numbers at β = 1000."""
    law = bimodal_fields(1.0)
    diagram = random_field.bifurcation(law, beta=beta, max_J=4.0)
    x = np.linspace(1, 4, 300_001)
    expected = (2 * x / (np.tanh(beta * (x + 1)) + np.tanh(beta * (x - 1)))).min()
    np.testing.assert_allclose(diagram["fold_J"], [expected, expected], rtol=1e-6)
    J, kind = random_field.pitchfork(law, beta=beta)
    assert kind == diagram["pitchfork_kind"] == "subcritical"
    np.testing.assert_allclose(J, np.cosh(beta) ** 2 / beta if beta < 300 else np.inf, rtol=1e-9)
    assert diagram["pitchfork_J"] == J


def test_folds_are_not_made_of_rounding() -> None:
    """Laws whose f is smooth over many widths 1/β, and fields so large that nothing happens near m = 0."""
    for law, beta in ((normal_fields(0, 1), 50.0), (bimodal_fields(4.6), 2.0)):
        assert random_field.bifurcation(law, beta=beta, max_J=4.0)["fold_J"].size == 0
    folds = random_field.bifurcation(bimodal_fields(4.6), beta=2.0, max_J=10.0)["fold_J"].values
    assert folds == pytest.approx([5.6163, 5.6163], abs=1e-3)


def test_normal_fields_at_zero_temperature() -> None:
    """σ_c = √(2/π) J, and above it m = erf(Jm/(σ√2)) has three solutions."""
    sigma = np.sqrt(2 / np.pi)
    assert random_field.pitchfork(normal_fields(0, sigma), beta=np.inf) == (
        pytest.approx(1, abs=1e-12),
        "supercritical",
    )
    assert random_field.pitchfork(normal_fields(0, sigma), beta=500)[0] == pytest.approx(1, abs=1e-5)
    assert random_field.fixed_points(normal_fields(0, sigma), J=0.99, beta=np.inf)["m"].size == 1
    m = random_field.fixed_points(normal_fields(0, sigma), J=1.2, beta=np.inf)["m"].values
    expected = brentq(lambda x: 2 * norm.cdf(1.2 * x / sigma) - 1 - x, 0.1, 1)
    np.testing.assert_allclose(m, [-expected, 0, expected], atol=1e-9)


@pytest.mark.parametrize("beta", [0.3, 1.078, 8.0])
@pytest.mark.parametrize("x", [-1.0, 0.0, 0.7])
def test_quadrature(beta: float, x: float) -> None:
    def integrand(h: float, slope: bool) -> float:
        density = sum(w * norm.pdf(h, m, s) for w, m, s in zip(LAW.weights, LAW.means, LAW.sds, strict=True))
        value = np.tanh(beta * (h + x))
        return density * (beta * (1 - value**2) if slope else value)

    for slope, found in ((False, LAW.response(x, beta)), (True, LAW.slope(x, beta))):
        expected = quad(integrand, -14, 14, args=(slope,), points=[-x], epsabs=1e-11, limit=400)[0]
        assert float(found) == pytest.approx(expected, abs=1e-9)
    assert float(LAW.commitment(x, beta)) == pytest.approx(1 - float(LAW.slope(x, beta)) / beta)


def test_every_root_of_a_sample_is_found() -> None:
    """Sharp agents make a staircase of 10 steps, with 10 stable roots; a grid of 200,000 values counts them as well."""
    h = np.linspace(-2.0, 2.0, 9)
    points = random_field.fixed_points(h, J=2.3, beta=12.0)
    m = np.linspace(-1, 1, 200_001) + 1e-7
    mismatch = np.tanh(12.0 * (h[:, None] + 2.3 * m)).mean(0) - m
    assert points["m"].size == (np.diff(np.sign(mismatch)) != 0).sum() == 19
    assert points["residual"].max() < 1e-10
    assert (points["stability"][::2] == "stable").all() and (points["stability"][1::2] == "unstable").all()


def test_two_roots_vanish_at_a_fold() -> None:
    diagram = random_field.bifurcation(LAW, beta=APPENDIX_E.beta)
    (fold,) = diagram["fold_J"].values
    assert random_field.fixed_points(LAW, J=fold - 1e-4, beta=APPENDIX_E.beta)["m"].size == 1
    above = random_field.fixed_points(LAW, J=fold + 1e-4, beta=APPENDIX_E.beta)["m"].values
    assert above.size == 3
    assert np.abs(above[:2] - diagram["fold_m"].item()).max() < 0.02
    assert diagram["pitchfork_kind"].item() == "none" and np.isnan(diagram["pitchfork_J"])


def test_the_diagram_holds_the_roots() -> None:
    diagram = random_field.bifurcation(LAW, beta=APPENDIX_E.beta, max_J=4.0).dropna("point")
    for k in range(0, diagram.sizes["point"], 80):
        one = diagram.isel(point=k)
        points = random_field.fixed_points(LAW, J=one["J"].item(), beta=APPENDIX_E.beta)
        nearest = int(np.abs(points["m"].values - one["m"].item()).argmin())
        assert points["m"].values[nearest] == pytest.approx(one["m"].item(), abs=1e-7)
        assert (points["stability"].values[nearest] == "stable") == bool(one["stable"])


def test_truth_and_rival_exchanged() -> None:
    mirrored = FieldLaw(LAW.weights, -LAW.means, LAW.sds)
    points, other = (random_field.fixed_points(law, J=2.302, beta=1.078) for law in (LAW, mirrored))
    np.testing.assert_allclose(other["m"], -points["m"][::-1], atol=1e-10)
    assert not LAW.symmetric and FieldLaw(np.ones(2) / 2, np.array([-1.0, 1.0]), np.ones(2)).symmetric


@pytest.mark.parametrize(
    ("law", "sizes", "couplings", "beta"),
    [
        (APPENDIX_E.field_law, [3, 10], [0.5, 1.5, 3.0], 1.078),
        (APPENDIX_E.field_law, [16], [4.0], 10.0),  # unanimous groups round to m = ±1
        (bimodal_fields(1.0), [2], [0.2, 3.0], 1.0),  # a balanced group has m = 0, which takes no side
        (normal_fields(0, 0), [10], [0.5, 2.0], 1.0),
    ],
)
def test_phase_diagram_counts_what_fixed_points_finds(law, sizes, couplings, beta) -> None:
    diagram = random_field.phase_diagram(law, n_agents=sizes, J=couplings, beta=beta, samples=8)
    for n, J in product(sizes, couplings):
        counted = []
        for h in sample_fields(law(n) if callable(law) else law, n, 8, 0):
            points = random_field.fixed_points(h, J=J, beta=beta)
            stable = points["m"].values[points["stability"].values == "stable"]
            truth, rival = stable > 1e-6, stable < -1e-6
            counted.append([truth.any() and rival.any(), truth.all(), rival.all(), stable.size > 1])
        at = diagram.sel(n_agents=n, J=J)
        seen = [at[name].item() for name in ("bistable", "truth_only", "rival_only", "several")]
        np.testing.assert_allclose(seen, np.mean(counted, axis=0))


def test_phase_diagram_goes_where_the_first_answers_lead() -> None:
    """m and q at the end of m ← f(Jm) from the mean of tanh(βh), where both sides are stable."""
    law, J, beta = bimodal_fields(0.3), 3.0, 1.5
    h = sample_fields(law, 5, 4, 0)
    sides = np.sign(np.tanh(beta * h).mean(1))
    ends = [random_field.fixed_points(one, J=J, beta=beta) for one in h]
    ends = [one.isel(fixed_point=int(np.argmax(side * one["m"].values))) for one, side in zip(ends, sides, strict=True)]
    found = random_field.phase_diagram(law, n_agents=[5], J=[J], beta=beta, samples=4)
    assert found["bistable"] == 1 and abs(sides.mean()) < 1
    for name in ("m", "q"):
        assert found[name].item() == pytest.approx(np.mean([one[name] for one in ends]), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_field.fixed_points(APPENDIX_E, J=1, beta=1), "fields has dtype object: expected real numbers"),
        (lambda: random_field.phase_diagram(lambda n: n, n_agents=[4], J=[1], beta=1), "fields_of = <function"),
        (lambda: random_field.fixed_points([0.0], J=-1, beta=1), "J = -1"),
        (lambda: random_field.fixed_points([0.0], J=1, beta=np.inf), "beta = inf"),
        (lambda: random_field.fixed_points([np.nan], J=1, beta=1), "fields has shape (1,): expected finite numbers"),
        (lambda: FieldLaw([1.0], [0.0, 1.0], [1.0]), "weights, means and sds differ in length"),
        (lambda: normal_fields(0, -1), "means = [0.], sds = [-1.]: expected finite numbers, and sds of at least 0"),
        (lambda: random_field.fixed_points(normal_fields(0, 1), J=1, beta=1e5), "beta = 100000"),
        (lambda: FieldLaw(np.array([0.7, 0.7]), np.zeros(2), np.ones(2)), "weights = "),
        (lambda: random_field.phase_diagram(lambda n: LAW, n_agents=[4], J=[0], beta=1), "beta = 1, J = "),
        (lambda: random_field.phase_diagram(lambda n: LAW, n_agents=[4, 4], J=[1], beta=1), "n_agents = [4, 4]"),
        (lambda: random_field.phase_diagram(lambda n: LAW, n_agents=[4], J=[], beta=1), "J has shape (0,)"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message)
