"""The minimal naming game: the derived equations against published ones and symmetries."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import meanfield
import theory.minimal_naming_game as game
from meanfield import TIME_PER_ROUND

RULES = ("both", "listener")
CASES = [(0.5, (0, 0)), (0.7, (0.05, 0.1)), (0.5, (0.2, 0)), (1, (0, 0.2))]


def composition(seed, size, total=1.0):
    return total * np.random.default_rng(seed).dirichlet(np.ones(size))


def drift(x, p, committed=(0, 0), rule="both", accepts=(1, 0)):
    """The drift of uncommitted agents, from the reaction model, which does not know of the derivation with sympy."""
    return game.reaction_model(2, rule, p=p, accepts=accepts).drift([*x, *committed])[:3]


# --- the derivation


def test_equation_of_xie_et_al():
    """Their Eq. 1 counts population rounds: twice ours."""
    equation = game.rate_equation("both")
    (a, b, ab), (c, c_b) = equation.x, equation.committed
    printed = [-a * b + ab**2 + a * ab + sp.Rational(3, 2) * c * ab, -a * b + ab**2 + b * ab - c * b]
    derived = equation.rhs.subs({equation.p: sp.Rational(1, 2), c_b: 0}) * sp.Rational(TIME_PER_ROUND)
    difference = (derived[:2, 0] - sp.Matrix(printed)).expand()
    assert difference == sp.zeros(2, 1)


@pytest.mark.parametrize("rule", RULES)
def test_derived_rates_are_those_of_the_reaction_model(rule):
    """With listeners who say yes or no; and agents are conserved."""
    x, committed, accepts = composition(7, 3, 0.85), (0.1, 0.05), (Fraction(3, 5), Fraction(2, 5))
    equation = game.rate_equation(rule, accepts)
    assert sp.expand(sum(equation.rhs)) == 0
    values = dict(zip((*equation.x, equation.p, *equation.committed), (*x, 0.4, *committed), strict=True))
    derived = np.array(equation.rhs.subs(values), dtype=float).ravel()
    np.testing.assert_allclose(drift(x, 0.4, committed, rule, (0.6, 0.4)), derived, atol=1e-16)
    assert np.abs(derived - drift(x, 0.4, committed, rule)).max() > 0.002


@pytest.mark.parametrize("rule", RULES)
def test_swapping_the_words_swaps_everything(rule):
    points = game.fixed_points(0.2, (0.1, 0.05), rule)
    mirrored = game.fixed_points(0.8, (0.05, 0.1), rule).isel(fixed_point=slice(None, None, -1))
    np.testing.assert_allclose(mirrored["composition"].values[:, [1, 0, 2]], points["composition"], atol=1e-15)
    np.testing.assert_allclose(mirrored["spectrum"], points["spectrum"], atol=1e-14)


# --- listeners who say yes or no

ANSWERS = [(1, 0.5), (0.7, 0.4), (0.4, 0)]
DISORDERED = [(0.8, 0.9), (0.3, 0), (0.6, 0.41)]


@pytest.mark.parametrize("accepts", [*ANSWERS, *DISORDERED])
def test_words_spread_where_3_pi_exceeds_1_plus_2_phi(accepts):
    """At equal shares the difference grows at x_AB (3π - 2φ - 1)/2 a round (arXiv 2608.02178)."""
    points = game.fixed_points(0.5, accepts=accepts)
    middle = points.isel(fixed_point=int(np.abs(points["word_share"].values[:, 0] - 0.5).argmin()))
    pi, phi = accepts
    growth = middle["composition"].sel(species="AB").item() * (3 * pi - 2 * phi - 1) / 2 / TIME_PER_ROUND
    assert middle["eigenvalue"].item() == pytest.approx(growth, abs=1e-14)
    ordered = accepts in ANSWERS
    assert points["stability"].values.tolist() == (
        ["stable", "unstable", "stable"] if ordered else ["unstable", "stable", "unstable"]
    )


def test_on_the_critical_line_there_is_a_curve_of_fixed_points():
    with pytest.raises(meanfield.InputError, match=r"fixed points form a curve at p = 0\.5"):
        game.fixed_points(0.5, accepts=(0.6, 0.4))


def test_answers_are_exact_numbers():
    third = game.critical_polynomial(Fraction(1, 2), accepts=(1, Fraction(1, 3)))
    assert max(abs(int(c)) for c in third.all_coeffs()) < 10**9
    assert np.isnan(game.critical_fraction(1, accepts=(0.9, 0.1))), (
        "consensus on B is unstable without anybody committed"
    )


# --- fixed points


@pytest.mark.parametrize(
    ("rule", "single", "both"), [("both", (3 - 5**0.5) / 2, 5**0.5 - 2), ("listener", 1 / 3, 1 / 3)]
)
def test_two_consensus_and_a_symmetric_saddle(rule, single, both):
    points = game.fixed_points(0.5, rule=rule)
    expected = [[1, 0, 0], [single, single, both], [0, 1, 0]]
    np.testing.assert_allclose(points["composition"], expected, atol=1e-15)
    assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]
    assert points["convention"].values.tolist() == ["A", "mixed", "B"]
    assert points["species"].values.tolist() == ["A", "B", "AB"]


@pytest.mark.parametrize("p", [0.1, 0.8])
def test_spectra_of_consensus_in_closed_form(p):
    """On B the only way out is by AB, who say A with probability p."""
    for rule, expected in (("both", [p - 1, -0.5]), ("listener", [(p - 1) / 2, -0.5])):
        last = game.fixed_points(p, rule=rule).isel(fixed_point=-1)
        np.testing.assert_allclose(last["spectrum"], sorted(expected)[::-1], atol=1e-14)
        assert last["eigenvalue"] == last["spectrum"][0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("p", "committed"), CASES)
def test_no_fixed_point_is_missed_and_trajectories_end_at_stable_ones(rule, p, committed):
    points = game.fixed_points(p, committed, rule)
    free = 1 - sum(committed)
    assert float(points["residual"].max()) < 1e-15
    np.testing.assert_allclose(points["composition"].sum("species"), free, atol=1e-15)
    rates = game.reaction_model(2, rule, p=p).drift

    def reduced(x):
        return rates([*x, free - x.sum(), *committed])[:2]

    for start in free * np.random.default_rng(3).dirichlet(np.ones(3), size=10)[:, :2]:
        root, _, status, _ = fsolve(reduced, start, full_output=True, xtol=1e-13)
        if status == 1 and min(*root, free - root.sum()) > -1e-9:
            assert np.abs(points["composition"].values[:, :2] - root).max(1).min() < 1e-5
    stable = points["composition"].values[points["stable"].values, :2]
    end = solve_ivp(lambda _, x: reduced(x), (0, 600), composition(4, 3, free)[:2], "LSODA", rtol=1e-8, atol=1e-11)
    assert np.abs(stable - end.y[:, -1]).max(1).min() < 1e-6


# --- the critical committed fraction


def test_known_critical_fractions():
    """Xie et al. 2011; both polynomials up to a factor."""
    c = sp.Symbol("c_A", real=True)
    assert game.critical_fraction(0.5) == pytest.approx(0.09788910377, abs=1e-11)
    assert game.critical_polynomial(0.5) == sp.Poly(2 * c**3 + 3 * c**2 + 204 * c - 20, c)
    assert game.critical_fraction(0.5, "listener") == pytest.approx(7 - 4 * 3**0.5, abs=1e-15)
    assert game.critical_polynomial(0.5, "listener") == sp.Poly(c**2 - 14 * c + 1, c)
    assert game.critical_fraction(0) == pytest.approx(6 - 4 * 2**0.5, abs=1e-15)


def test_critical_fraction_falls_with_the_bias():
    bias = np.linspace(0, 1, 3)
    listener = [game.critical_fraction(p, "listener") for p in bias]
    assert listener[0] == 0.25
    np.testing.assert_allclose(listener[1:], ((1 - np.sqrt(1 - bias + bias**2)[1:]) / bias[1:]) ** 2, atol=1e-14)
    both = [game.critical_fraction(p) for p in bias]
    assert (np.diff(both) < 0).all() and both[-1] == 0


@pytest.mark.parametrize(("rule", "p", "committed_b"), [("both", 0.8, 0.1), ("listener", 0.5, 0.05)])
def test_one_state_is_left_above_the_critical_fraction(rule, p, committed_b):
    critical = game.critical_fraction(p, rule, committed_b)
    below, above = (game.fixed_points(p, (critical + d, committed_b), rule) for d in (-1e-9, 1e-9))
    assert below.sizes["fixed_point"] == 3 and above.sizes["fixed_point"] == 1
    assert float(above["word_share"].sel(word="A")[0]) > 0.5


def test_the_fold_is_one_marginal_point_where_it_is_rational():
    """At p = 3/8 the root in the closed form is rational, and the critical fraction 1/9."""
    points = game.fixed_points(Fraction(3, 8), (Fraction(1, 9), 0), "listener")
    assert game.critical_fraction(Fraction(3, 8), "listener") == pytest.approx(1 / 9, abs=1e-15)
    assert points["stability"].values.tolist() == ["stable", "marginal"]


def test_many_committed_to_the_other_word_leave_no_fold():
    assert np.isnan(game.critical_fraction(0.5, committed_b=0.2))
    assert game.critical_polynomial(0.5, committed_b=0.2) is None


# --- many words


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("start_empty", [False, True])
def test_general_model_has_the_drift_of_all_meetings(rule, start_empty):
    """Channels of word and knowledge against the enumeration of every pair; and words in another order."""
    model = game.reaction_model(3, rule, start_empty=start_empty)
    words, lexicons = range(3), [held for size in range(4) for held in combinations(range(3), size)]
    agents = [game.Agent(frozenset(held)) for held in lexicons[not start_empty :]]
    agents += [game.Agent(frozenset({word}), committed=True) for word in words]
    assert model.n_states == len(agents) == 10 + start_empty
    x, expected = composition(6, len(agents)), np.zeros(len(agents))
    for event in game.interactions(agents, lambda held: dict.fromkeys(held or words, 1 / len(held or words)), rule):
        rate = event.probability * x[list(event.before)].prod() / TIME_PER_ROUND
        np.add.at(expected, list(event.before), -rate)
        np.add.at(expected, list(event.after), rate)
    np.testing.assert_allclose(model.drift(x), expected, atol=1e-16)
    for order in permutations(words):
        place = [agents.index((frozenset(order[w] for w in held), firm)) for held, firm in agents]
        np.testing.assert_allclose(model.drift(x[np.argsort(place)])[place], model.drift(x), atol=1e-16)


# --- wrong input


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: game.fixed_points(1.2), "p = 1.2: expected a probability, 0 to 1, and none between 0 and 1e-30"),
        (lambda: game.fixed_points(0.5, (0.6, 0.5)), "committed = .*: expected two fractions"),
        (lambda: game.fixed_points(0.5, rule="speaker"), "rule = 'speaker'"),
        (lambda: game.fixed_points(0.5, accepts=(1,)), "accepts = .*: expected two probabilities"),
        (lambda: game.critical_fraction(0.5, committed_b=-0.2), "committed_b = -0.2"),
        (lambda: game.reaction_model(7), "n_words = 7"),
        (lambda: game.reaction_model(3, p=0.6), "p = 0.6: expected 0.5 for n_words = 3"),
    ],
)
def test_wrong_input_is_named(call, named):
    with pytest.raises(meanfield.InputError, match=named):
        call()
