"""Bifurcation diagrams of reaction models against closed forms, characteristic polynomials and solutions."""

import jaxtyping
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
import theory

ReactionModel = meanfield.ReactionModel
pytestmark = pytest.mark.usefixtures("unchecked_types")


def epidemic(R0):
    return ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [R0, 1.0])


STAGES = 12


def waning(tau):
    """Immunity that lasts for the time tau on average, in stages."""
    rules = {"S + I": "2 I", "I": "R0", **{f"R{k}": f"R{k + 1}" for k in range(STAGES - 1)}, f"R{STAGES - 1}": "S"}
    return ReactionModel.from_rules(rules, [3.0, 1.0, *STAGES * [STAGES / tau]])


def trust(beta):
    """Minimal naming game whose agents drop the other word after a success with probability beta only."""
    rules, rates = [], []
    for own, other in ("AB", "BA"):
        both = f"{own}{other}" if own < other else f"{other}{own}"
        rules += [
            (f"{own} + {other}", f"{own} + {both}"),
            (f"{own} + {both}", f"2 {own}"),
            (f"{own} + {both}", f"2 {both}"),
        ]
        rules += [(f"2 {both}", f"2 {own}")]
        rates += [1.0, 1.5 * beta, 0.5, 0.5 * beta]
    return ReactionModel.from_rules(rules, rates, states=["A", "B", "AB"])


@pytest.fixture(scope="module")
def waves():
    """The diagram of `waning`, with the interval in which there are waves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        return meanfield.bifurcation(waning, interval=(10, 19), starts=1, spacing=0.2)


def moving(rate):
    """Agents who change their state at this rate."""
    return ReactionModel.from_rules({"A": "B", "B": "A"}, [rate, rate])


TWO_CLASSES = ReactionModel.from_rules({"A + Z": "B + Z", "B": "A"}, [1.0, 1.0])


def at(diagram, kind):
    return diagram.isel(point=np.flatnonzero(diagram["bifurcation"].values == kind))


def test_epidemic_begins_at_one_and_has_its_closed_form():
    diagram = meanfield.bifurcation(epidemic, interval=(0, 3), starts=2, spacing=0.1)
    assert diagram.attrs["parameter"] == "R0"
    assert at(diagram, "branch point")["parameter"].values == pytest.approx(1, abs=1e-9)
    infected, R0 = diagram["composition"].sel(state="I").values, diagram["parameter"].values
    endemic = infected > 1e-9
    assert infected[endemic] == pytest.approx(1 - 1 / R0[endemic], abs=1e-9)
    stable = diagram["stable"].values
    assert stable[endemic & (R0 > 1 + 1e-6)].all()
    assert (stable == (R0 < 1))[~endemic & (abs(R0 - 1) > 1e-6)].all()
    assert R0[endemic].max() == pytest.approx(3) and R0[~endemic].min() == pytest.approx(0), "to the interval's ends"
    assert (np.abs(np.diff(infected[endemic])) < 0.1).all(), "spacing"


@pytest.mark.parametrize(("accepts", "highest"), [((1.0, 0.0), 0.3), ((0.5, 0.0), 0.6)])
def test_committed_agents_are_masses_along_the_interval(accepts, highest):
    """Listeners who agree half of the time are turned by 4.3 %, next to the end of the interval."""
    game = theory.minimal_naming_game.reaction_model(accepts=accepts)
    diagram = meanfield.bifurcation(
        game, interval=(0, highest), starts=4, spacing=0.1, masses=lambda c: [1 - c, c, 0.0]
    )
    expected = theory.minimal_naming_game.critical_fraction(0.5, accepts=accepts)
    assert at(diagram, "fold")["parameter"].values == pytest.approx([expected], abs=1e-8)
    assert diagram["fold"].sum() == 1 and diagram.attrs["parameter"] == "c"
    totals = diagram["composition"].groupby("conserved_class").sum("state")
    assert np.abs(totals.sel(conserved_class=1).values - diagram["parameter"].values).max() < 1e-12


def test_trust_has_its_transition_at_a_third():
    diagram = meanfield.bifurcation(trust, interval=(0.2, 0.5), starts=2, spacing=0.2)
    met = at(diagram, "branch point")
    assert met["parameter"].values == pytest.approx(1 / 3, abs=1e-7)
    assert met.sizes["point"] >= 3, "both consensus states and the mixed one change there"
    x, beta = diagram["composition"].values, diagram["parameter"].values
    mixed = (np.abs(x[:, 0] - x[:, 1]) < 1e-9) & (x[:, 0] > 0)
    # dx_A/dt with x_A = x_B
    a, both = x[mixed, 0], x[mixed, 2]
    assert np.abs(-(a**2) + (1.5 * beta[mixed] - 0.5) * a * both + beta[mixed] * both**2).max() < 1e-9


def leading_roots(tau):
    """The largest real part among the roots s of the characteristic polynomial of `waning` at its endemic state.

    With S = 1/3, I = (2/3) / (1 + tau) and P(s) = (1 + s tau/n)^n of n stages: s² P + 3 I [(1 + s) P - 1] = 0. The root
    0 belongs to the number of agents.
    """
    infected = (2 / 3) / (1 + tau)
    stage = np.poly1d([tau / STAGES, 1]) ** STAGES
    s = np.poly1d([1, 0])
    polynomial = s * s * stage + 3 * infected * (s * stage + stage - 1)
    roots = polynomial.roots
    return roots[np.abs(roots) > 1e-6].real.max()


def test_epidemic_waves_begin_where_the_characteristic_polynomial_says(waves):
    hopf = at(waves, "Hopf")
    assert hopf.sizes["point"] == 2
    for tau in hopf["parameter"].values:
        assert leading_roots(tau - 1e-4) * leading_roots(tau + 1e-4) < 0
    assert np.abs(hopf["eigenvalue"]).max() < 1e-9 and (hopf["eigenvalue_imaginary"] > 0.1).all()
    assert np.isnan(waves["lyapunov"].values[waves["bifurcation"].values != "Hopf"]).all()


@pytest.mark.slow
def test_lyapunov_coefficient_gives_the_size_of_waves(waves):
    hopf = at(waves, "Hopf").sortby("parameter").isel(point=0)
    assert hopf["lyapunov"] < 0, "a stable cycle"
    sizes = []
    for more in (0.3, 1.2):
        model = waning(hopf["parameter"].item() + more)
        points = meanfield.fixed_points(model, starts=4)
        endemic = points.isel(fixed_point=int(np.argmax(points["composition"].sel(state="I").values)))
        growth, omega = endemic["eigenvalue"].item(), endemic["eigenvalue_imaginary"].item()
        values, modes = np.linalg.eig(model.jacobian(endemic["composition"].values))
        r = modes[:, np.argmin(np.abs(values - growth - 1j * omega))]
        predicted = 2 * np.sqrt(-growth / (omega * hopf["lyapunov"].item()))
        start = endemic["composition"].values + 0.5 * predicted * r.real  # half as large, and grows
        end = 5 / growth
        solution = solve_ivp(lambda _, x, m=model: m.drift(x), (0, end), start, "DOP853", rtol=1e-9, atol=1e-12)
        last = solution.y[1, solution.t > end - 2 * np.pi / omega]
        sizes.append((last.max() - last.min()) / 2 / (predicted * abs(r[1])))
    assert abs(sizes[0] - 1) < 0.05 and abs(sizes[0] - 1) < abs(sizes[1] - 1), "better where the waves are smaller"


STRAINS = {"S + I": "2 I", "I": "S", "S + J": "2 J", "J": "S"}


def points_of(model_at, interval, **options):
    """The parameters of the bifurcations on each arc."""
    diagram = meanfield.bifurcation(model_at, interval=interval, starts=2, **options)
    arcs = [diagram.isel(point=diagram["arc"].values == arc) for arc in np.unique(diagram["arc"])]
    return [sorted(arc["parameter"].values[arc["bifurcation"].values != ""].tolist()) for arc in arcs]


def test_bifurcations_on_points_of_the_curve_are_found():
    # The search begins at s = 0.09276 and 0.29276, so that the step of 0.1 ends at one threshold
    assert points_of(epidemic, (1 - 0.19276, 2 - 0.19276), spacing=0.1) == [pytest.approx([1], abs=1e-6)] * 2


@pytest.mark.slow
def test_two_thresholds_in_one_step_are_parted():
    arcs = points_of(lambda c: ReactionModel.from_rules(STRAINS, [c, 1.0, 1.01 * c, 1.0]), (0.9, 1.1), spacing=0.1)
    free = max(arcs, key=len)
    assert free == pytest.approx([1 / 1.01, 1], abs=1e-6)
    assert sorted(arc[0] for arc in arcs if len(arc) == 1) == pytest.approx([1 / 1.01, 1], abs=1e-6)


def test_eigenvalue_that_stays_zero_hides_no_threshold():
    arcs = points_of(lambda c: ReactionModel.from_rules(STRAINS, [c, 1.0, 1.0, 1.0]), (0.5, 1.6), spacing=0.2)
    assert [found for arc in arcs for found in arc] == pytest.approx([1, 1], abs=1e-6)


def test_states_with_next_to_nobody_are_no_empty_ones():
    model = meanfield.bifurcation(
        lambda p: ReactionModel.from_rules({"A": "B", "B": "A"}, [10.0**p, 1.0]),
        interval=(-14, 0),
        starts=2,
        spacing=0.1,
    )
    rate = 10 ** model["parameter"].values
    assert model["composition"].sel(state="A").values == pytest.approx(1 / (1 + rate), abs=1e-9)


@pytest.mark.parametrize(
    "call, said",
    [
        (dict(population=epidemic), "interval = None"),
        (dict(population=epidemic, interval=(1, 1)), r"interval\[1\] = 1"),
        (dict(population=epidemic(2.0), interval=(0, 1)), "nothing depends"),
        (dict(population=epidemic, interval=(0, 1), spacing=0), "spacing"),
        (dict(population=epidemic, interval=(0, 1), spacing=1e-300), "spacing = 1e-300"),
        (dict(population=epidemic, interval=(0, 1), masses=[0.5, 0.5]), "masses"),
        (dict(population=lambda c: moving(max(0.0, c - 0.3)), interval=(0, 1)), "conserved classes"),
        (dict(population=TWO_CLASSES, interval=(-1, 1), masses=lambda c: [1 - abs(c), abs(c)]), "classes to be empty"),
        (dict(population=lambda c: epidemic(1) if c < 0.5 else waning(1), interval=(0, 1)), "states"),
        (dict(population=meanfield.make_policy(np.full(5, 0.5), ["A", "B"]), word="A", interval=(0, 1)), "interval"),
    ],
)
def test_wrong_arguments_are_named(call, said):
    with pytest.raises(meanfield.InputError, match=said):
        meanfield.bifurcation(**call)


@pytest.mark.slow
def test_fractions_below_rounding_do_not_end_a_branch():
    """In groups of ten next to nobody holds A alone while all hold B: a fraction like the ninth power of c."""
    diagram = meanfield.bifurcation(
        theory.minimal_naming_game.group_model(10), interval=(0, 0.3), masses=lambda c: [1 - c, c, 0.0]
    )
    assert diagram["parameter"][diagram["fold"]].values == pytest.approx([0.1037], abs=5e-5)
    for _, branch in diagram.groupby("arc"):
        assert branch["parameter"].min() < 1e-6


@pytest.mark.slow
def test_rates_that_are_negative_far_from_all_compositions():
    """A group of seven, whose rates are polynomials of degree 6; the search must not end in a singular matrix."""
    diagram = meanfield.bifurcation(
        theory.minimal_naming_game.group_model(7, "union", beta=0.7),
        interval=(0, 0.6),
        masses=lambda c: [1 - c, c, 0.0],
    )
    assert diagram["parameter"][diagram["fold"]].values == pytest.approx([0.01307], abs=1e-5)
