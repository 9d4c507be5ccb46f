"""Reaction models against the naming game's own engine, closed forms of epidemics and games, and exact elimination.

Error budget: the one stochastic test accepts a true statement with probability 1 - 1e-6 for an arbitrary seed.
"""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from scipy.linalg import block_diag

import meanfield
import theory
from _policies import majority_policy, random_composition, random_policy
from meanfield import InputError, Population, ReactionModel, core, reaction_model
from meanfield._population.drift import mixture_drift
from meanfield._population.trajectories import Tolerances
from meanfield._reactions.fixed_points import _index_report
from meanfield._reactions.roots import closed_faces
from meanfield._reactions.search import linearised, starts_of
from meanfield._reactions.solve import courses
from meanfield.toolbox import as_population, stability
from validation import reactions


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


def replicator(gain):
    """Rock, paper, scissors: a responder who loses takes the initiator's strategy with probability `gain`."""
    beats = np.roll(np.eye(3), 1, axis=1)  # 0 beats 1 beats 2 beats 0
    takes = [gain * np.eye(3)[[k, k, k]] + (1 - gain) * np.eye(3) for k in range(3)]
    return ReactionModel(["rock", "scissors", "paper"], alpha=np.eye(3), beta=beats, second=takes)


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
    **{
        f"{W} words, H = {H}, {seed}": random_policy(seed, W, H, 0.15)
        for W, H, seed in [(2, 1, 5), (2, 2, 0), (3, 1, 7)]
    },
    "bistable": bistable(0.95),
    "bistable, exact": bistable(1.0),
    "two kinds and committed": TWO_KINDS,
}


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
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


@pytest.mark.parametrize("seed", range(2))
def test_jacobian_is_the_derivative_of_the_drift(seed):
    """The drift is quadratic, so central differences are exact but for rounding."""
    model, x, h = random_model(seed), random_composition(seed, 6), 1e-3
    sides = [(model.drift(x + h * e) - model.drift(x - h * e)) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(model.jacobian(x), np.transpose(sides), atol=1e-12)
    assert np.abs(model.jacobian(x) - model.generator(x)).max() > 1e-2, "partners matter"
    np.testing.assert_allclose(model.generator(x) @ x, model.drift(x), atol=1e-16)


@pytest.mark.parametrize("seed", range(2))
def test_tensor_and_protocol_have_the_drift(seed):
    model, x = random_model(seed), random_composition(seed, 6)
    P, rate = model.protocol()
    np.testing.assert_allclose(P.sum((2, 3)), 1, atol=1e-14)
    assert P.min() >= 0
    assert rate == pytest.approx(0.7 + model.spontaneous.toarray().sum(1).max())
    np.testing.assert_allclose(rate * drift_of_tensor(P, x), model.drift(x), atol=1e-15)
    S = model.spontaneous.toarray()
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


def test_solutions_and_fixed_points_read_back_from_files(tmp_path):
    model = random_model(0)
    for name, result in {
        "solution": meanfield.solve(model, initial=random_composition(0, 6), times=np.array([0.0, 1.0])),
        "points": meanfield.fixed_points(model, masses=[0.3, 0.7], starts=2),
    }.items():
        meanfield.save(result, tmp_path / f"{name}.nc")
        xr.testing.assert_identical(meanfield.load(tmp_path / f"{name}.nc"), result)


@pytest.mark.slow
def test_simulated_protocol_follows_the_solution():
    """Infected among 20 runs of 20,000 agents. Linear noise has N·Var(I/N) = 1.03 at its largest, and 2,000 runs of
    2,000 agents 1.04, so the mean has σ ≤ 0.0016; the bias is of order 1/N. Accepted: 5.6σ at each of 12 times.
    Control: the clock of encounters alone, without moves alone, is rejected."""
    model, n_agents, runs, rounds = sis(0.6, 0.4, 0.5), 20_000, 20, 12
    P, rate = model.protocol()
    played = reactions.simulate(P, [18_000, 2_000], runs=runs, seed=5, max_rounds=rounds, record_rounds=rounds)
    infected = played["count"].isel(state=1).mean("run").values / n_agents

    def worst(interactions_per_time):
        times = np.arange(rounds + 1) / interactions_per_time
        expected = meanfield.solve(model, initial=np.array([0.9, 0.1]), times=times)["composition"].values[:, 1]
        return np.abs(infected - expected).max()

    assert worst(rate) < 0.009
    assert worst(model.encounter_rate) > 0.02


# --- fixed points


@pytest.mark.usefixtures("unchecked_types")
def test_majority_of_two_heard_words_has_a_continuum():
    """Without error and with a coin for ties agents say each word as often as they heard it: f(Q) = Q."""
    policy = majority_policy(2, 1.0)
    points = meanfield.fixed_points(reaction_model(policy), starts=8)
    assert points["continuum"].all()
    assert (points["zero_modes"] == 1).all()
    assert points["stability"].values.tolist() == ["marginal"] * 3
    shares = points["composition"].values @ policy["q"].values[:, 0]
    assert np.sort(shares)[[0, 2]].tolist() == [0, 1]
    assert 0 < np.sort(shares)[1] < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "p", "committed"),
    [
        ("both", 0.5, (0.097, 0)),
        ("both", 0.5, (0.099, 0)),
        ("both", 0.3, (0.02, 0.03)),
        ("listener", 0.5, (0, 0)),
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
    points = meanfield.fixed_points(sis(transmission=0.5, recovery=2.0, encounter_rate=2.0), starts=16)
    assert points["stability"].values.tolist() == ["marginal"]
    assert points["zero_modes"].item() == 1
    assert not points["continuum"].item()
    assert points["composition"].sel(state="I").item() < 1e-5


def test_hosts_and_vectors_have_the_closed_form_of_ross():
    """Hosts are infected by vectors only, and vectors by hosts: two classes, and R0² is a product."""
    states = [("host", "S"), ("host", "I"), ("vector", "S"), ("vector", "I")]
    b, c, g, k = 0.9, 0.6, 0.2, 0.1
    ill_host = np.eye(4) + b * np.outer(np.eye(4)[0], np.eye(4)[1] - np.eye(4)[0])
    ill_vector = np.eye(4) + c * np.outer(np.eye(4)[2], np.eye(4)[3] - np.eye(4)[2])
    alone = np.zeros((4, 4))
    alone[1, 0], alone[3, 2] = g, k
    one = np.eye(4)
    model = ReactionModel(states, one[[3, 1]], one[[0, 2]], second=[ill_host, ill_vector], spontaneous=alone)
    hosts, vectors = 0.2, 0.8
    points = meanfield.fixed_points(model, masses=[hosts, vectors], starts=8)
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


@pytest.mark.slow
def test_rock_paper_scissors_turns_about_its_centre():
    """Zero-sum replicator equation: the centre has ±iε·gain/√3, the vertices ±ε·gain, and there is nothing else."""
    gain = 0.6
    points = meanfield.fixed_points(replicator(gain), starts=16)
    centre = points.isel(fixed_point=np.abs(points["composition"] - 1 / 3).max("state").values.argmin())
    np.testing.assert_allclose(centre["composition"], 1 / 3, atol=1e-12)
    assert centre["eigenvalue"].item() == pytest.approx(0, abs=1e-12)
    assert centre["eigenvalue_imaginary"].item() == pytest.approx(gain / np.sqrt(3))
    assert (centre["stability"].item(), centre["zero_modes"].item(), centre["continuum"].item()) == (
        "marginal",
        0,
        False,
    )
    assert points.sizes["fixed_point"] == 4
    vertices = points["eigenvalue"].values[points["composition"].max("state") == 1]
    np.testing.assert_allclose(vertices, [gain] * 3, atol=1e-12)


def test_voters_have_a_continuum():
    """Who hears a word takes it over: the drift vanishes everywhere."""
    takes = [np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]]
    model = ReactionModel(["a", "b"], np.eye(2), np.ones((2, 2)), second=takes)
    points = meanfield.fixed_points(model, starts=8)
    assert points["stability"].values.tolist() == ["marginal"] * 3
    assert points["continuum"].all()
    assert (points["zero_modes"] == 1).all()
    assert (points["composition"] > 0).values.tolist() == [[True, False], [True, True], [False, True]]
    assert "more points of the continua" in points.attrs["completeness"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_bifurcation_point_is_listed_once(seed):
    """Naming game with forgetting, d(A - B)/dt = (A - B)(C/2 - s): three fixed points meet at s = (√2 - 1)/2."""
    shows = [[1, 0.5, 0], [0, 0.5, 1]]
    hear_a, hear_b = np.eye(3)[[0, 0, 1]], np.eye(3)[[1, 2, 2]]
    forget = np.zeros((3, 3))
    forget[0, 1] = forget[2, 1] = (np.sqrt(2) - 1) / 2
    model = ReactionModel(["A", "C", "B"], shows, np.ones((2, 3)), second=[hear_a, hear_b], spontaneous=forget)
    points = meanfield.fixed_points(model, starts=4, seed=seed)
    assert points["stability"].values.tolist() == ["marginal"] and not points["continuum"].any()


def beside(one: ReactionModel, other: ReactionModel) -> ReactionModel:
    """Two populations that have nothing to do with each other."""
    models = (one, other)

    def blocks(name: str) -> list:
        parts = [[np.eye(one.n_states), np.eye(other.n_states)] for _ in (*one.alpha, *other.alpha)]
        for number, matrix in enumerate((*getattr(one, name), *getattr(other, name))):
            parts[number][number >= len(one.alpha)] = matrix.toarray()
        return [block_diag(*pair) for pair in parts]

    return ReactionModel(
        [f"{which} {state}" for which, model in zip("12", models, strict=True) for state in model.names],
        block_diag(one.alpha, other.alpha),
        block_diag(one.beta, other.beta),
        blocks("first"),
        blocks("second"),
        encounter_rate=one.encounter_rate,
    )


@pytest.mark.usefixtures("unchecked_types")
def test_branches_of_continua_are_told_apart():
    """Voters beside a bistable naming game: for each support of the voters a continuum through each of its points."""
    policy = bistable(0.95)
    voters = ReactionModel(
        ["a", "b"], np.eye(2), np.ones((2, 2)), second=[np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]], encounter_rate=0.5
    )
    points = meanfield.fixed_points(beside(voters, reaction_model(policy)), masses=[0.5, 0.5], starts=8)
    shares = 2 * (points["composition"].values[:, 2:] @ policy["q"].values)[:, 0]
    theirs = meanfield.fixed_points(policy)["composition"].values @ policy["q"].values
    supports = points["composition"].values[:, :2] > 1e-6
    found = {(*support.tolist(), round(share, 6)) for support, share in zip(supports, shares, strict=True)}
    some = (True, False), (True, True), (False, True)
    assert found == {(*support, round(share, 6)) for share in theirs[:, 0] for support in some} and len(found) == 9
    assert points["continuum"].all()
    assert (points["stability"] == "marginal").values.sum() == 2 * (points["stability"] == "unstable").values.sum() > 0


def test_curved_continuum_is_met_where_solutions_end():
    """Agents a and b turn into the idle state c on meeting: every mixture with ab = 0 is at rest."""
    idle = np.eye(3)[[2, 2, 2]]
    model = ReactionModel(["a", "b", "c"], np.eye(3)[:2], np.eye(3)[[1, 0]], [idle] * 2, [idle] * 2)
    points = meanfield.fixed_points(model, starts=16)
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


def test_starts_of_the_search_keep_the_mass_of_small_classes() -> None:
    """Agents of a class so small that its fractions are all below the tolerance of a solution."""
    infect = np.array([[0.4, 0.6, 0, 0], [0, 1, 0, 0], [0, 0, 0.4, 0.6], [0, 0, 0, 1]])
    alone = np.zeros((4, 4))
    alone[1, 0] = alone[3, 2] = 0.2
    model = ReactionModel(
        ["many S", "many I", "few S", "few I"], [[1, 0, 1, 0]], [[0, 1, 0, 1]], first=[infect], spontaneous=alone
    )
    mass = np.array([1 - 4e-7, 4e-7])
    rng = np.random.default_rng(0)
    for start in starts_of(model, mass, closed_faces(model, mass, rng), np.empty((0, 4)), 4, rng):
        np.testing.assert_allclose(model.class_masses(start), mass, rtol=1e-12)


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
        (lambda model: meanfield.solve(model, initial=np.ones(2), times=np.array([1.0])), "composition sums to 2"),
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
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(sis())


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", ["critical_mass", "group_size_law", "stability_table"])
def test_what_is_for_policies_says_so(name):
    with pytest.raises(InputError, match=r"is a ReactionModel: expected a policy"):
        getattr(meanfield, name)(sis())


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


@pytest.mark.slow
def test_encounters_that_nothing_comes_of_change_nothing():
    """The same rate equation with 10^8 times as many encounters has the same fixed points and stability."""

    def susceptible(infects: float, encounters: float) -> ReactionModel:
        infect = np.array([[0.0, 1.0], [0.0, 1.0]])
        return ReactionModel(
            ["S", "I"], [[1.0, 0.0]], [[0.0, infects]], [infect], None, [[0, 0], [0.25, 0]], encounters
        )

    usual, idle = (meanfield.fixed_points(susceptible(*one), starts=8) for one in ((0.6, 2.0), (1.2e-8, 1e8)))
    assert usual["stability"].values.tolist() == idle["stability"].values.tolist() == ["unstable", "stable"]
    np.testing.assert_allclose(usual["composition"], idle["composition"], atol=1e-9)
    np.testing.assert_allclose(usual["eigenvalue"], idle["eigenvalue"], atol=1e-6)


def test_starts_in_any_memory_order_have_the_same_solutions():
    """The compiled loop moves the composition in place, which a copy of it would not see."""
    model = reaction_model(random_policy(1))
    starts = np.random.default_rng(1).dirichlet(np.ones(model.n_states), size=3)
    times, tolerances = np.linspace(0, 4, 9), Tolerances(1e-8, 1e-11)
    straight, residual = courses(model, starts, times[::2].copy(), tolerances)
    other, other_residual = courses(model, np.asfortranarray(starts), times[::2], tolerances)
    np.testing.assert_array_equal(other, straight)
    np.testing.assert_array_equal(other_residual, residual)
