"""Rates that are functions of the composition, against pair rules, closed forms and exact chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import meanfield
from meanfield import InputError, ReactionModel

pytestmark = pytest.mark.usefixtures("unchecked_types")


def audience(beta):
    """Agents who see all others."""

    def yes(x):
        return (1 + jnp.tanh(beta * (x["yes"] - x["no"]))) / 2

    return ReactionModel.from_rules({"no": "yes", "yes": "no"}, [yes, lambda x: 1 - yes(x)])


def voters(p, q):
    """Agents who with the probability p choose at random, and otherwise follow q others if these agree."""
    return ReactionModel.from_rules(
        {"down": "up", "up": "down"},
        [lambda x: (1 - p) * x["up"] ** q + p / 2, lambda x: (1 - p) * x["down"] ** q + p / 2],
    )


def herd(alone, together):
    """Kirman's agents, by functions."""
    rates = [lambda x: alone + together * x["B"], lambda x: alone + together * x["A"]]
    return ReactionModel.from_rules({"A": "B", "B": "A"}, rates)


def herd_in_pairs(alone, together):
    rules = [("A + B", "2 A"), ("A + B", "2 B"), ("A", "B"), ("B", "A")]
    return ReactionModel.from_rules(rules, [together, together, alone, alone])


VOLUME = 10.0  # molecules of the unit of concentration, in fractions


def brusselator(B, A=1.0):
    """X and Y among so many places that empty ones never run out; where few are left nothing is of interest."""

    def enters(x):
        return A / VOLUME / jnp.maximum(x["empty"], 0.1)

    rules = {"empty": "X", "X": "empty", "Y": "X"}
    rules = [*rules.items(), ("X", "Y")]
    return ReactionModel.from_rules(rules, [enters, 1.0, lambda x: (VOLUME * x["X"]) ** 2, B])


def at(diagram, kind):
    return diagram.isel(point=np.flatnonzero(diagram["bifurcation"].values == kind))


def moments(n_agents, start, time, up, down):
    """Mean and variance of the fraction that is up, from the master equation of agents of two kinds."""
    n = np.arange(n_agents + 1)
    x = n / n_agents
    rise, fall = (n_agents - n) * up(x), n * down(x)
    generator = np.diag(rise[:-1], -1) + np.diag(fall[1:], 1) - np.diag(rise + fall)
    law = expm(time * generator)[:, round(start * n_agents)]
    return law @ x, law @ x**2 - (law @ x) ** 2


def test_functions_of_fractions_are_the_encounters_they_describe():
    """Herding has no drift, so that it does not matter whether agents count themselves."""
    one, other = herd(0.1, 1.0), herd_in_pairs(0.1, 1.0)
    x, start = np.array([0.3, 0.7]), np.array([0.8, 0.2])
    assert one.fastest == pytest.approx(other.fastest, rel=1e-14)
    for name in ("drift", "jacobian", "generator"):
        np.testing.assert_allclose(getattr(one, name)(x), getattr(other, name)(x), atol=1e-14)
    laws = [meanfield.finite_size(model, initial=start, times=[1.0, 20.0]) for model in (one, other, herd(0.1, 1.1))]
    for name in ("composition", "composition_correction", "composition_variance"):
        np.testing.assert_allclose(laws[0][name], laws[1][name], atol=1e-10)
    assert abs(laws[0] - laws[2])["composition_variance"].max() > 0.01


@pytest.mark.slow
def test_the_mean_of_agents_who_count_themselves():
    """An agent that meets others meets N/(N - 1) times as many ill ones; x = 1 - 1/k moves by k dx/dk = 1/k."""
    options = {"initial": np.array([0.5, 0.5]), "times": [20.0]}
    pairs = meanfield.finite_size(ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [2.0, 1.0]), **options)
    rates = [lambda x: 2 * x["I"], 1.0]
    functions = meanfield.finite_size(ReactionModel.from_rules({"S": "I", "I": "S"}, rates), **options)
    more = (pairs - functions).isel(time=0).sel(state="I")
    assert more["composition_correction"].item() == pytest.approx(0.5, abs=1e-6)
    assert more["composition_variance"].item() == pytest.approx(0, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_finite_size_converges_to_the_exact_chain(order):
    """Errors fall like N^-(order + 1); the drift has derivatives of all orders."""
    beta, start, time = 0.8, 0.75, 2.0
    options = {"initial": np.array([1 - start, start]), "times": [time], "n_agents": [40, 80]}
    law = meanfield.finite_size(audience(beta), **options, order=order)
    law = law.sel(state="yes").isel(time=0)
    missed = []
    for n_agents in (40, 80):
        exact = moments(
            n_agents,
            start,
            time,
            lambda x: (1 + np.tanh(beta * (2 * x - 1))) / 2,
            lambda x: (1 - np.tanh(beta * (2 * x - 1))) / 2,
        )
        found = law.sel(n_agents=n_agents)
        without = abs(found["composition"].item() - exact[0])
        missed.append([abs(found[name].item() - one) for name, one in zip(("mean", "variance"), exact, strict=True)])
        assert missed[-1][0] < without / 5
    np.testing.assert_allclose(np.array(missed[0]) / missed[1], 2 ** (order + 1), rtol=0.3)


def test_audience_agrees_from_one_on():
    diagram = meanfield.bifurcation(audience, interval=(0.8, 1.4), starts=1, spacing=0.15)
    assert at(diagram, "branch point")["parameter"].values == pytest.approx(1, abs=1e-7)
    beta, m = diagram["parameter"].values, 2 * diagram["composition"].sel(state="yes").values - 1
    assert m == pytest.approx(np.tanh(beta * m), abs=1e-10)
    assert np.abs(m).max() > 0.7
    even = abs(m) < 1e-6
    assert diagram["eigenvalue"].values[even] == pytest.approx(beta[even] - 1, abs=1e-9)


@pytest.mark.parametrize(("q", "sudden"), [(3, False), (6, True)])
def test_voters_lose_their_order_where_noise_is_critical(q, sudden):
    """p = (q - 1) / (q - 1 + 2^(q-1)); the transition is sudden from q = 6 on (Nyczka et al. 2012)."""
    critical = (q - 1) / (q - 1 + 2 ** (q - 1))
    slopes = [np.linalg.eigvals(voters(part * critical, q).jacobian([0.5, 0.5])).real for part in (0.999, 1, 1.001)]
    least, there, most = (values[np.abs(values).argmax()] for values in slopes)
    assert abs(there) < 1e-14
    assert most < -1e-4 < 1e-4 < least
    numbers = [
        meanfield.fixed_points(voters(part * critical, q), starts=4).sizes["fixed_point"] for part in (0.9, 1.05)
    ]
    assert numbers == [3, 5 if sudden else 1]


@pytest.mark.slow
def test_folds_of_schloegl():
    """Autocatalysis of two molecules, X decays at the rate d = (1 - x) (a + c x²) / x."""
    a, c = 0.1, 20.0
    diagram = meanfield.bifurcation(
        lambda d: ReactionModel.from_rules({"O": "X", "X": "O"}, [lambda x: a + c * x["X"] ** 2, d]),
        interval=(1.0, 8.0),
        starts=1,
        spacing=0.2,
    )
    x = np.roots([-2 * c, c, 0, -a])
    x = np.sort(x[(x > 0) & (x < 1)])
    expected = (1 - x) * (a + c * x**2) / x
    inside = (expected > 1) & (expected < 8)
    assert inside.sum() == 2
    folds = at(diagram, "fold").sortby("parameter")
    np.testing.assert_allclose(folds["parameter"], np.sort(expected[inside]), atol=1e-8)


@pytest.mark.slow
def test_brusselator_oscillates_from_its_closed_form_on():
    """B = 1 + A², with the frequency A, and the coefficient of Guckenheimer and Holmes, Eq. 3.4.11, times 4/ω."""
    diagram = meanfield.bifurcation(brusselator, interval=(1.6, 2.5), starts=1, spacing=0.3)
    hopf = at(diagram, "Hopf")
    assert hopf["parameter"].values == pytest.approx(2.0, abs=1e-8)
    assert np.abs(hopf["eigenvalue_imaginary"].values) == pytest.approx(1.0, abs=1e-7)

    def slope(z):
        x, y = z * VOLUME
        return jnp.stack([1 - 3 * x + x**2 * y, 2 * x - x**2 * y]) / VOLUME

    with jax.enable_x64(True):
        point = jnp.array([0.1, 0.2])
        values, vectors = np.linalg.eig(np.asarray(jax.jacfwd(slope)(point)))
        r = vectors[:, values.imag > 0][:, 0]
        r = r / np.linalg.norm([*r, r.sum()])
        T = np.column_stack([r.real, -r.imag])

        def turned(w):
            return jnp.asarray(np.linalg.inv(T)) @ slope(point + jnp.asarray(T) @ w)

        at_rest = jnp.zeros(2)
        second = np.asarray(jax.jacfwd(jax.jacfwd(turned))(at_rest))
        third = np.asarray(jax.jacfwd(jax.jacfwd(jax.jacfwd(turned)))(at_rest))
    f, g = second
    omega = 1.0
    cubic = third[0, 0, 0, 0] + third[0, 0, 1, 1] + third[1, 0, 0, 1] + third[1, 1, 1, 1]
    mixed = f[0, 1] * (f[0, 0] + f[1, 1]) - g[0, 1] * (g[0, 0] + g[1, 1]) - f[0, 0] * g[0, 0] + f[1, 1] * g[1, 1]
    expected = 4 / omega * (cubic + mixed / omega) / 16
    assert hopf["lyapunov"].values == pytest.approx(expected, rel=1e-5)
    assert expected < 0


def test_imitation_of_the_better_is_the_replicator_equation():
    """Hawks and doves: who meets a better one takes over its ways, the more surely the better; hawks are V/C."""
    V, C = 1.0, 2.5
    payoffs = np.array([[(V - C) / 2, V], [0.0, V / 2]])

    def copies(own, other):
        def rate(x):
            gains = payoffs @ jnp.stack([*x.values()])
            return x["HD"[other]] * (1 + 0.5 * (gains[other] - gains[own])) / 2

        return rate

    model = ReactionModel.from_rules({"H": "D", "D": "H"}, [copies(0, 1), copies(1, 0)])
    x = np.array([0.3, 0.7])
    gains = payoffs @ x
    np.testing.assert_allclose(model.drift(x), 0.5 * x * (gains - x @ gains), atol=1e-14)
    points = meanfield.fixed_points(model, starts=4)
    np.testing.assert_allclose(points["composition"], [[1, 0], [V / C, 1 - V / C], [0, 1]], atol=1e-9)
    assert points["stable"].values.tolist() == [False, True, False]


def test_solutions_follow_the_functions():
    start = np.array([0.4, 0.6])
    solution = meanfield.solve(audience(1.5), initial=start, times=[1.0, 60.0])["composition"].sel(state="yes")
    final = brentq(lambda x: (1 + np.tanh(1.5 * (2 * x - 1))) / 2 - x, 0.6, 1)
    assert solution[1].item() == pytest.approx(final, abs=1e-7)
    assert 0.6 < solution[0].item() < final


@pytest.mark.parametrize(
    "form",
    [
        lambda b: lambda x: jnp.where(x["A"] > 0.3 * b, b, x["B"] + b),
        lambda b: lambda x: jax.lax.cond(x["A"] > x["B"], lambda y: b * y, lambda y: b / (1 + y), x["A"]),
        lambda b: lambda x: np.array([b, 1.0]) @ jnp.stack([x["A"], x["B"]]),
        lambda b: lambda x: b,
    ],
)
def test_programs_are_shared_by_functions_of_one_form_and_right_for_any(form):
    x = np.array([0.6, 0.4])
    for b in (0.5, 2.0):
        model = ReactionModel.from_rules({"A": "B"}, form(b))
        with jax.enable_x64(True):
            rate = form(b)
            value = float(rate({"A": x[0], "B": x[1]}))
            slope = jax.grad(lambda x, rate=rate: 1.0 * rate({"A": x[0], "B": x[1]}))(x)
        assert model.drift(x) == pytest.approx(x[0] * value * np.array([-1, 1]), rel=1e-14)
        assert model.jacobian(x)[1] == pytest.approx(x[0] * np.asarray(slope) + [value, 0], rel=1e-13)


def test_a_parameter_is_no_new_program():
    one, other, third = (model.changes.rates for model in (audience(1.0), audience(1.3), voters(0.1, 2)))
    assert one.func is other.func is not third.func


@pytest.mark.parametrize(
    ("rate", "complaint"),
    [
        (lambda x: np.exp(float(x["S"])), "fails with ConcretizationTypeError"),
        (lambda x: x["R"], r"fails with KeyError \('R'\)"),
        (lambda x: 1 - 2 * x["I"], "at {'S': 0.0, 'I': 1.0} is -1: expected a finite number of at least 0"),
        (lambda x: 1 / x["I"], "at {'S': 1.0, 'I': 0.0} is inf"),
        (lambda x: jnp.ones(2), "returns .*: expected a function of {state: fraction}"),
        (lambda x: None, "returns None"),
        (lambda x: True, "returns True"),
        (lambda: 1.0, "fails with TypeError"),
    ],
)
def test_functions_are_tried(rate, complaint):
    with pytest.raises(InputError, match=f"the rate of 'S → I' .*{complaint}.*; the rate of 'I → S'|{complaint}"):
        ReactionModel.from_rules({"S": "I", "I": "S"}, [rate, rate])


def test_what_takes_constant_rates_says_so():
    model = herd(0.1, 1.0)
    with pytest.raises(InputError, match=r"'S \+ I → 2 I' is a function, and two agents meet: expected a number"):
        ReactionModel.from_rules({"S + I": "2 I"}, [lambda x: 1.0])
    with pytest.raises(InputError, match="functions of the composition: expected constant ones, by whose"):
        meanfield.sensitivity(model, of="composition", fixed_point=np.array([0.5, 0.5]))
    with pytest.raises(InputError, match="has rates that are functions: expected encounters of pairs alone"):
        meanfield.reaction_protocol(model)
    none = np.empty((0, 2))
    for changes in ([("A", "C", abs)], [("A", "A", abs)], [("A", "B", 2.0)], 3):
        with pytest.raises(InputError, match=r"changes.*: expected"):
            ReactionModel(["A", "B"], none, none, changes=changes)


def test_infinite_derivatives_are_told():
    model = ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: jnp.sqrt(x["I"]), lambda x: 0.5])
    with pytest.raises(InputError, match=r"'S → I' at {'S': 1\.0, 'I': 0\.0}: expected a finite derivative"):
        meanfield.fixed_points(model)
