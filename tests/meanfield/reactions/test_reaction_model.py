"""Reaction models against the naming game's own engine, closed forms of epidemics and games, and exact elimination."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import meanfield
import theory
from _policies import random_composition, random_policy
from meanfield import InputError, Population, ReactionModel, core, reaction_model
from meanfield._population.drift import mixture_drift
from meanfield._reactions.fixed_points import _index_report
from meanfield._reactions.roots import closed_faces
from meanfield._reactions.search import linearised
from meanfield.toolbox import as_population, stability

pytestmark = pytest.mark.usefixtures("unchecked_types")


def sis(transmission=0.6, recovery=0.25, encounter_rate=2.0):
    """Whoever initiates, the susceptible one of a pair is infected: at 2·ε·transmission for each infected partner."""
    infect = np.array([[1 - transmission, transmission], [0, 1]])
    return ReactionModel(
        ["S", "I"],
        alpha=[[1, 0], [0, 1]],
        beta=[[0, 1], [1, 0]],
        first=[infect, None],
        second=[None, infect],
        spontaneous=[[0, 0], [recovery, 0]],
        encounter_rate=encounter_rate,
        time_unit="day",
    )


def random_model(seed, n_channels=3):
    """Six states of two kinds, between which nobody changes; everything else random, with moves alone."""
    rng = np.random.default_rng(seed)
    kind = np.array([0, 0, 1, 1, 1, 0])
    allowed = kind[:, None] == kind

    def matrix():
        weights = np.where(allowed, rng.random((6, 6)), 0)
        return weights / weights.sum(1, keepdims=True)

    states = [("ab"[k], i) for i, k in enumerate(kind)]
    shown = rng.random((2, n_channels, 6)) / n_channels
    alone = np.where(allowed & ~np.eye(6, dtype=bool), rng.random((6, 6)), 0)
    first, second = ([matrix() for _ in range(n_channels)] for _ in range(2))
    return ReactionModel(states, *shown, first, [None, *second[1:]], alone, encounter_rate=0.7)


def drift_of_tensor(P, x):
    """The drift from interactions of agents of the composition x; an agent initiates one per unit of time."""
    rate = np.einsum("ijkl,i,j->ijkl", P, x, x)
    return rate.sum((0, 1, 3)) + rate.sum((0, 1, 2)) - rate.sum((1, 2, 3)) - rate.sum((0, 2, 3))


def bistable(p):
    """Agents say what was said most in two interactions, by whomever: two consensus states and a saddle."""
    space = meanfield.MemorySpace(2, 2)
    lead = [sum(1 - 2 * word for pair in space.memory(i) for word in pair) for i in range(space.n_states)]
    return meanfield.make_policy(0.5 + (p - 0.5) * np.sign(lead), ["a", "b"])


# --- the naming game: the fast method, by the word share alone, against the general one

TWO_KINDS = Population(
    [random_policy(seed, 2, 1, 0.15) for seed in (1, 2)], fractions=[0.3, 0.7], committed={"b": 0.05}
)
GAMES = {
    "two words": random_policy(5, 2, 1, 0.15),
    "three words": random_policy(7, 3, 1, 0.15),
    "bistable": bistable(0.95),
    "bistable, exact": bistable(1.0),
    "two kinds and committed": TWO_KINDS,
}


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_fast_method_has_the_results_of_the_general_one(game):
    """Drift, its derivative, solutions, spectra and fixed points."""
    policy, population = GAMES[game], as_population(GAMES[game])
    model, mixture, space = reaction_model(policy), population.mixture, population.space
    firm = mixture.committed[mixture.committed > 0]
    said = np.concatenate([*mixture.q, np.eye(space.n_words)[mixture.committed > 0]])

    def whole(x, committed=firm):
        """The composition of the reaction model: fractions of all agents."""
        return np.append(mixture.share[:, None] * np.reshape(x, (-1, space.n_states)), committed)

    x = np.stack([random_composition(m, space.n_states) for m in range(len(mixture.q))])
    step = x[:, ::-1] - x
    np.testing.assert_allclose(model.drift(whole(x)), whole(mixture_drift(x[None], mixture)[0], 0 * firm), atol=1e-16)
    share = mixture.share[:, None]
    change = core.jacobian_product(core.WordGame(*mixture), share * x, share * step) / share
    np.testing.assert_allclose(model.jacobian(whole(x)) @ whole(step, 0 * firm), whole(change, 0 * firm), atol=1e-14)

    times = np.array([0.0, 0.5, 3.0, 40.0])
    theirs = meanfield.solve(policy, times=times)["word_share"].values
    empty = whole(meanfield.empty_memories(policy).values)
    ours = meanfield.solve(model, initial=empty, times=times)
    np.testing.assert_allclose(ours["composition"].values @ said, theirs, atol=3e-8)

    theirs = meanfield.spectrum(policy, x if len(x) > 1 else x[0], k=2)
    ours = meanfield.spectrum(model, whole(x), k=2)
    allowed = (ours["eigenvalue_error"] + theirs["eigenvalue_error"]).max().item()
    np.testing.assert_allclose(ours["eigenvalue"], theirs["eigenvalue"], atol=allowed)
    assert allowed < 1e-6

    theirs, ours = meanfield.fixed_points(policy), meanfield.fixed_points(model, initial=empty, starts=16)
    ours = ours.isel(fixed_point=np.argsort(-(ours["composition"].values @ said)[:, 0]))
    np.testing.assert_allclose(ours["composition"], [whole(one) for one in theirs["composition"].values], atol=1e-9)
    for name in ("eigenvalue", "eigenvalue_imaginary"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-7)
    for name in ("stability", "stable", "oscillatory"):
        assert ours[name].values.tolist() == theirs[name].values.tolist()
    if game.startswith("bistable"):
        assert ours["stability"].values.tolist() == ["stable", "unstable", "stable"]
    elif len(x) == 1:
        assert "The sum of their indices is 1, as it must be" in ours.attrs["completeness"]


# --- the equation


def test_tensor_of_the_naming_game_is_that_of_eq_16():
    policy = random_policy(4, 2, 1)
    first_alone = reaction_model(policy).tensor().sum(axis=3)
    np.testing.assert_allclose(
        first_alone.transpose(2, 0, 1), core.reaction_tensor(core.WordGame(policy["q"].values)), atol=1e-15
    )


def test_jacobian_is_the_derivative_of_the_drift():
    """The drift is quadratic, so central differences are exact but for rounding."""
    model, x, h = random_model(0), random_composition(0, 6), 1e-3
    sides = [(model.drift(x + h * e) - model.drift(x - h * e)) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(model.jacobian(x), np.transpose(sides), atol=1e-12)
    assert np.abs(model.jacobian(x) - model.generator(x)).max() > 1e-2, "partners matter"
    np.testing.assert_allclose(model.generator(x) @ x, model.drift(x), atol=1e-16)


def test_tensor_and_protocol_have_the_drift():
    model, x = random_model(1), random_composition(1, 6)
    P, rate = model.protocol()
    np.testing.assert_allclose(P.sum((2, 3)), 1, atol=1e-14)
    assert P.min() >= 0
    S = model.spontaneous.toarray()
    assert rate == pytest.approx(0.7 + S.sum(1).max())
    np.testing.assert_allclose(rate * drift_of_tensor(P, x), model.drift(x), atol=1e-15)
    encounters = 0.7 * drift_of_tensor(model.tensor(), x)
    np.testing.assert_allclose(encounters + S.T @ x - S.sum(1) * x, model.drift(x), atol=1e-15)


def test_classes_are_what_agents_never_leave():
    model = random_model(0)
    assert model.classes.tolist() == [0, 0, 1, 1, 1, 0]
    x = random_composition(0, 6)
    np.testing.assert_allclose(model.class_masses(x), [x[[0, 1, 5]].sum(), x[2:5].sum()])
    np.testing.assert_allclose(model.class_masses(model.drift(x)), 0, atol=1e-16)
    assert theory.minimal_naming_game.reaction_model().classes.tolist() == [0, 0, 0, 1, 2]
    never = ReactionModel(["a", "b"], [[1, 1]], [[0, 0]], first=[[[0, 1], [1, 0]]])
    assert never.n_classes == 2, "nobody responds, so nobody moves"


# --- solutions


def test_epidemic_follows_the_logistic_curve():
    """dI/dt = β I (1 - I) - γ I with β = 2·ε·transmission: the Bernoulli equation, solved."""
    beta, gamma, start = 2.4, 0.25, 1e-3
    times = np.array([0.0, 1.0, 3.0, 5.0, 20.0])
    solution = meanfield.solve(sis(), initial=np.array([1 - start, start]), times=times)
    growth, level = beta - gamma, 1 - gamma / beta
    expected = level / (1 + (level / start - 1) * np.exp(-growth * times))
    np.testing.assert_allclose(solution["composition"].sel(state="I"), expected, rtol=1e-6)
    assert solution["time"].attrs["units"] == "day"
    residual = [np.abs(sis().drift(x)).max() for x in solution["composition"].values]
    np.testing.assert_allclose(solution["residual"], residual, atol=1e-14)


def test_masses_are_conserved_along_solutions_and_starts_may_be_many():
    model = random_model(1)
    starts = xr.DataArray(
        np.random.default_rng(0).dirichlet(np.ones(6), size=(2, 3)),
        dims=("left", "right", "state"),
        coords={"left": ["x", "y"]},
    )
    solution = meanfield.solve(model, initial=starts, times=np.array([0.0, 10.0, 1000.0]))
    assert dict(solution["composition"].sizes) == {"left": 2, "right": 3, "time": 3, "state": 6}
    masses = solution["composition"].groupby("conserved_class").sum("state")
    np.testing.assert_allclose(masses, masses.isel(time=[0, 0, 0]), atol=1e-13)
    np.testing.assert_allclose(solution["composition"].isel(time=0), starts, atol=1e-16)
    alone = meanfield.solve(model, initial=starts[1, 2], times=np.array([10.0]))
    one = solution["composition"].sel(left="y").isel(right=2, time=1)
    np.testing.assert_allclose(alone["composition"][0], one, atol=1e-10)


# --- fixed points


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "p", "committed"),
    [
        ("both", 0.5, (0.097, 0)),
        ("both", 0.5, (0.099, 0)),
        ("both", 0.3, (0.02, 0.03)),
        ("listener", 3 / 8, (Fraction(1, 9), 0)),
    ],
)
def test_committed_agents_are_masses_of_their_classes(rule, p, committed):
    """Against exact elimination, on both sides of the critical fraction 0.09788910377, and at a fold."""
    exact = theory.minimal_naming_game.fixed_points(p, committed, rule)
    model = theory.minimal_naming_game.reaction_model(2, rule, p=p)
    found = meanfield.fixed_points(model, masses=np.array([1 - sum(committed), *committed], dtype=float), starts=16)
    found = found.isel(fixed_point=np.argsort(-(found["composition"].values @ [1, 0, p, 1, 0])))
    np.testing.assert_allclose(found["composition"].isel(state=slice(3)), exact["composition"], atol=1e-8)
    np.testing.assert_allclose(found["eigenvalue"], exact["eigenvalue"], atol=1e-8)
    for name in ("stability", "stable", "oscillatory"):
        assert found[name].values.tolist() == exact[name].values.tolist()


def test_endemic_state_has_its_closed_form():
    """x_I = 1 - 1/R0 with eigenvalue -(β - γ), and the state without infection with β - γ."""
    points = meanfield.fixed_points(sis(), starts=8)
    np.testing.assert_allclose(points["composition"].sel(state="I"), [0, 1 - 0.25 / 2.4], atol=1e-14)
    np.testing.assert_allclose(points["eigenvalue"], [2.4 - 0.25, -(2.4 - 0.25)], atol=1e-13)
    assert points["stability"].values.tolist() == ["unstable", "stable"]
    assert points["eigenvalue"].attrs["units"] == "1/day"
    below = meanfield.fixed_points(sis(recovery=3.0), starts=8)
    assert below["composition"].values.tolist() == [[1, 0]]
    assert below["eigenvalue"].item() == pytest.approx(2.4 - 3.0)


def test_epidemic_threshold_is_marginal_but_no_continuum():
    points = meanfield.fixed_points(sis(transmission=0.5, recovery=2.0, encounter_rate=2.0), starts=4)
    assert points["stability"].values.tolist() == ["marginal"]
    assert points["zero_modes"].item() == 1
    assert not points["continuum"].item()
    assert points["composition"].sel(state="I").item() < 1e-5


def test_hosts_and_vectors_have_the_closed_form_of_ross():
    """Hosts are infected by vectors only, and vectors by hosts: two classes, and R0² is a product."""
    b, c, g, k, hosts, vectors = 0.9, 0.6, 0.2, 0.1, 0.2, 0.8
    rules = {"S + i": "I + i", "s + I": "i + I", "I": "S", "i": "s"}
    model = ReactionModel.from_rules(rules, [b, c, g, k], states=[*"SIsi"])
    points = meanfield.fixed_points(model, masses=[hosts, vectors], starts=4)
    ill = (b * c * hosts * vectors - g * k) / (c * (g + b * vectors))
    assert ill > 0
    vector_ill = c * ill * vectors / (k + c * ill)
    expected = [[hosts, 0, vectors, 0], [hosts - ill, ill, vectors - vector_ill, vector_ill]]
    np.testing.assert_allclose(points["composition"], expected, atol=1e-13)
    growth = -(g + k) / 2 + np.sqrt((g - k) ** 2 / 4 + b * c * hosts * vectors)
    assert points["eigenvalue"].values[0] == pytest.approx(growth, abs=1e-13)
    only_hosts = meanfield.fixed_points(model, masses=[1.0, 0.0], starts=2)
    np.testing.assert_array_equal(only_hosts["composition"], [[1, 0, 0, 0]])
    assert only_hosts["eigenvalue"].item() == pytest.approx(-g), "no vectors, and none can be put there"


def test_rock_paper_scissors_turns_about_its_centre():
    """Zero-sum replicator equation: the centre has ±iε·gain/√3, the vertices ±ε·gain, and there is nothing else."""
    gain = 0.6
    model = ReactionModel.from_rules({"R + S": "2 R", "S + P": "2 S", "P + R": "2 P"}, gain)
    points = meanfield.fixed_points(model, starts=1)
    centre = points.isel(fixed_point=np.abs(points["composition"] - 1 / 3).max("state").values.argmin())
    np.testing.assert_allclose(centre["composition"], 1 / 3, atol=1e-12)
    assert centre["eigenvalue"].item() == pytest.approx(0, abs=1e-12)
    assert centre["eigenvalue_imaginary"].item() == pytest.approx(gain / np.sqrt(3))
    assert centre["stability"].item() == "marginal" and centre["zero_modes"] == 0 and not centre["continuum"]
    assert points.sizes["fixed_point"] == 4
    vertices = points["eigenvalue"].values[points["composition"].max("state") == 1]
    np.testing.assert_allclose(vertices, [gain] * 3, atol=1e-12)


VOTERS = {"a + b": "2 a", "b + a": "2 b"}


def test_voters_have_a_continuum():
    """Who hears a word takes it over: the drift vanishes everywhere."""
    points = meanfield.fixed_points(ReactionModel.from_rules(VOTERS, 1.0), starts=4)
    assert points["stability"].values.tolist() == ["marginal"] * 3
    assert points["continuum"].all()
    assert (points["zero_modes"] == 1).all()
    assert (points["composition"] > 0).values.tolist() == [[True, False], [True, True], [False, True]]
    assert "more points of the continua" in points.attrs["completeness"]


@pytest.mark.slow
def test_a_bifurcation_point_is_listed_once():
    """Naming game with forgetting, d(A - B)/dt = (A - B)(C/2 - s): three fixed points meet at s = (√2 - 1)/2."""
    shows = [[1, 0.5, 0], [0, 0.5, 1]]
    hear_a, hear_b = np.eye(3)[[0, 0, 1]], np.eye(3)[[1, 2, 2]]
    forget = np.zeros((3, 3))
    forget[0, 1] = forget[2, 1] = (np.sqrt(2) - 1) / 2
    model = ReactionModel(["A", "C", "B"], shows, np.ones((2, 3)), second=[hear_a, hear_b], spontaneous=forget)
    points = meanfield.fixed_points(model, starts=4)
    assert points["stability"].values.tolist() == ["marginal"] and not points["continuum"].any()


def test_branches_of_continua_are_told_apart():
    """Voters beside two parties: for each support of the voters a continuum through each fixed point of the parties."""
    meet, alone = (
        [("A + U", "2 A"), ("B + U", "2 B"), ("A + B", "2 U")],
        [("A", "U"), ("B", "U"), ("U", "A"), ("U", "B")],
    )
    parties = ReactionModel.from_rules([*meet, *alone], [1.0] * 3 + [0.06] * 4, states=[*"ABU"])
    rules = [*VOTERS.items(), *meet, *alone]  # of both kinds there are half as many
    both = ReactionModel.from_rules(rules, [2.0] * 5 + [0.06] * 4, states=[*"abABU"])
    points = meanfield.fixed_points(both, masses=[0.5, 0.5], starts=4)
    theirs = meanfield.fixed_points(parties, starts=4)["composition"].values
    found = {(*(x[:2] > 1e-6).tolist(), *(2 * x[2:]).round(6).tolist()) for x in points["composition"].values}
    some = (True, False), (True, True), (False, True)
    assert found == {(*support, *x.round(6).tolist()) for x in theirs for support in some} and len(found) == 9
    assert points["continuum"].all()
    assert sorted(points["stability"].values) == 6 * ["marginal"] + 3 * ["unstable"]


def test_curved_continuum_is_met_where_solutions_end():
    """Agents a and b turn into the idle state c on meeting: every mixture with ab = 0 is at rest."""
    idle = np.eye(3)[[2, 2, 2]]
    model = ReactionModel(["a", "b", "c"], np.eye(3)[:2], np.eye(3)[[1, 0]], [idle] * 2, [idle] * 2)
    points = meanfield.fixed_points(model, starts=8)
    assert points["continuum"].all()
    assert (points["residual"] < 1e-11).all()
    supports = {tuple(row) for row in (points["composition"].values > 1e-6).tolist()}
    line = {(True, False, True), (False, True, True), (False, False, True), (True, False, False), (False, True, False)}
    assert supports == line


def test_agents_who_never_move_are_stable():
    still = ReactionModel(["a", "b"], np.ones((1, 2)), np.ones((1, 2)))
    points = meanfield.fixed_points(still, masses=[0.25, 0.75], starts=1)
    assert points["composition"].values.tolist() == [[0.25, 0.75]]
    assert (points["eigenvalue"].item(), points["eigenvalue_imaginary"].item()) == (-np.inf, 0)
    assert points["stability"].item() == "stable"


def test_missing_fixed_points_are_told_by_the_indices():
    """The only one is withheld, or counted twice."""
    model = reaction_model(meanfield.make_policy(np.array([0.5, 0.99, 0.4, 0.6, 0.01]), ["a", "b"]))
    points = meanfield.fixed_points(model, starts=8)
    roots = [linearised(model, np.ones(1), x)[0] for x in points["composition"].values]
    faces = closed_faces(model, np.ones(1), np.random.default_rng(0))
    assert "as it must be" in _index_report(model, faces, roots)
    assert "some are missing" in _index_report(model, faces, [])
    assert "some are missing" in _index_report(model, faces, roots * 2)


def test_classes_of_next_to_nobody_keep_their_mass():
    """All fractions of a class are below the tolerance of a solution."""
    rules = {"S + I": "2 I", "I": "S", "s + I": "i + I", "i": "s"}
    model, few = ReactionModel.from_rules(rules, [0.6, 0.2, 0.6, 0.2], states=[*"SIsi"]), 4e-7
    points = meanfield.fixed_points(model, masses=[1 - few, few], starts=2)
    ill = (1 - few) * (1 - 0.2 / (0.6 * (1 - few)))
    last = points["composition"].values[-1]
    np.testing.assert_allclose(last[[1, 3]], [ill, few * 0.6 * ill / (0.2 + 0.6 * ill)], rtol=1e-9)
    np.testing.assert_allclose(last[2:].sum(), few, rtol=1e-9)


# --- wrong input

STAY = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": []}, "states is empty"),
        ({"states": ["a", "a"]}, "'a' more than once"),
        ({"states": ["a", 1.5]}, "states has 1.5"),
        ({"alpha": [[0.5]]}, r"alpha has shape \(1, 1\): expected \(channels, 2\)"),
        ({"alpha": [[0.5, 1.2]]}, r"alpha\[0, 1\] = 1.2"),
        ({"beta": [[0.5, 0.5]] * 2}, "beta has 2 channels: expected 1"),
        ({"alpha": [[0.9, 1]] * 2, "beta": [[0.2, 0.6]] * 2}, r"\('b', 'b'\) have the sum 1.2"),
        ({"first": [None, None]}, "first has 2 matrices: expected 1"),
        ({"first": [[[1, 0], [0.5, 0.4]]]}, r"first\[0\]: the row of 'b' sums to 0.9"),
        ({"second": [[[1, 0], [-0.5, 1.5]]]}, r"second\[0\] has the entry -0.5"),
        ({"spontaneous": STAY}, "spontaneous has 1.0 from 'a' to itself"),
        ({"spontaneous": [[0, np.inf], [0, 0]]}, "spontaneous has the entry inf"),
        ({"encounter_rate": 0.0}, "encounter_rate = 0.0"),
        ({"time_unit": ""}, "time_unit = ''"),
    ],
)
def test_wrong_models_are_named(change, message):
    arguments = {"states": ["a", "b"], "alpha": [[1, 1]], "beta": [[0.5, 1]], "first": [STAY], **change}
    with pytest.raises(InputError, match=message):
        ReactionModel(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.drift(np.ones(3)), r"x has shape \(3,\): expected \(2,\)"),
        (lambda model: model.index("R"), "state = 'R': expected one of 'S', 'I'"),
        (lambda model: meanfield.solve(model, initial=np.ones(2), times=np.array([1.0])), "initial sums to 2"),
        (lambda model: meanfield.solve(model, initial=np.ones((2, 2)) / 2, times=np.array([1.0])), "or a DataArray"),
        (lambda model: meanfield.solve(model, initial=np.ones(2) / 2, times=np.array([1.0]), rtol=0.0), "rtol = 0"),
        (lambda model: meanfield.fixed_points(model, masses=[0.5, 0.5]), r"shape \(2,\): expected \(1,\)"),
        (lambda model: meanfield.fixed_points(model, masses=[0.5]), "sum to 1"),
        (lambda model: meanfield.fixed_points(random_model(0)), "2 conserved classes"),
        (lambda model: meanfield.fixed_points(bistable(0.9), starts=3), "starts is given: expected only with a Reac"),
        (lambda model: meanfield.solve(model, times=[1.0]), "initial = None: a ReactionModel has no default"),
        (lambda model: meanfield.solve(model, initial=np.ones(2) / 2), "times = None: a ReactionModel has no default"),
        (lambda model: meanfield.solve(model, max_time=9.0), "max_time = 9.0: a ReactionModel"),
        (lambda model: meanfield.spectrum(model, np.ones(2) / 2, k=2), "k = 2: expected a whole number from 1 to 1"),
        (lambda model: reaction_model(random_policy(0, 2, 3)).tensor(), "the model has 85 states: expected at most 64"),
        *(
            (getattr(meanfield, name), "is a ReactionModel: expected a policy")
            for name in ("critical_mass", "group_size_law", "stability_table")
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(sis())


def test_what_the_error_covers_is_marginal():
    leading, error = [-1e-3, -1e-3, 1e-3, 1e-3j - 1, 1e-9, np.nan, -np.inf, 1.0], [1e-4, 1e-2, 1e-2, 0, 0, 0, 0, np.inf]
    expected = ["stable", "marginal", "marginal", "stable", "marginal", "marginal", "stable", "marginal"]
    assert stability(np.array(leading), np.array(error)).tolist() == expected
    assert stability(1e-9, 1e-10, least=0.0) == "unstable"


@pytest.mark.slow
def test_error_of_an_eigenvalue_is_no_smaller_than_it_is():
    """Near the threshold eigenvalues are ±(β - γ), and a root is known to its residual over that."""
    for recovery in (2.0 + 1e-5, 2.0 - 1e-5):
        points = meanfield.fixed_points(sis(transmission=0.5, recovery=recovery), starts=16)
        sign = np.where(points["composition"].sel(state="I") < 1e-6, 1, -1)
        missed = np.abs(points["eigenvalue"] - sign * (2.0 - recovery)).values
        assert (missed <= points["eigenvalue_error"].values).all() and (points["eigenvalue_error"] < 1e-6).all()
        assert points["stability"].values.tolist() == (["stable"] if recovery > 2 else ["unstable", "stable"])
