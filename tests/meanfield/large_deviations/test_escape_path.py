"""Paths out of attractors: Hamilton's equations, two methods, symmetries, and attractors without a way out."""

import numpy as np
import pytest

import meanfield
import theory
from _metastable import counting_model, follower
from meanfield import InputError, Population, datasets, escape_path, group_size_law, lifetime
from meanfield._large_deviations.boundary_value_path import polished
from meanfield._large_deviations.exit_path import agents_of, exit_path
from meanfield._large_deviations.exits import landscape
from meanfield._large_deviations.linearised import ends_of
from meanfield.toolbox import as_population

pytestmark = pytest.mark.usefixtures("unchecked_types")

ERRS = 0.05
BARRIER = 0.242694492  # of followers with these errors, converged in all tolerances


def test_it_solves_hamiltons_equations_from_end_to_end():
    """Both ends are at rest: the old state, in which most say B, and the saddle."""
    game = theory.minimal_naming_game.reaction_model()
    path = escape_path(game, fixed_point=2, masses=[0.95, 0.05, 0.0])
    x, p = path["composition"].values, path["momentum"].values[:, :4]
    assert x[0].argmax() == game.states.index("B") and np.abs(x[-1] - x[0]).max() > 0.1
    np.testing.assert_allclose([game.drift(x[0]), game.drift(x[-1])], 0, atol=1e-4)
    assert np.abs(path["hamiltonian"]).max() < 1e-10
    np.testing.assert_allclose(x.sum(1), 1, atol=1e-12)
    assert np.isnan(path["momentum"].sel(state="B committed")).all(), "nobody is there"
    assert np.ptp(p[:, :3], axis=1).max() > 0.4, "it is no small fluctuation"
    work = np.trapezoid((p[:, :3] * np.gradient(x[:, :3], path["time"].values, axis=0)).sum(1), path["time"])
    assert work == pytest.approx(path.attrs["barrier"], rel=1e-3)
    assert path["action"].values[-1] == pytest.approx(path.attrs["barrier"], rel=1e-6)
    assert (np.diff(path["action"]) > 0).all()


@pytest.mark.slow
def test_fields_of_words_and_of_channels_and_collocation_find_the_same_barrier():
    """Words for the policy, the sums of channels for the model of nine states that the same agents are."""
    policy, model = landscape(follower(ERRS), None), landscape(counting_model(ERRS), None)
    (of_words,), (of_channels,) = policy.ways_out(0), model.ways_out(0)
    found = [
        exit_path(of_words, agents_of(of_words, as_population(policy.game).mixture, None)).path,
        exit_path(of_channels, agents_of(of_channels, None, ends_of(of_channels))).path,
    ]
    for path in found:
        assert path.barrier == pytest.approx(BARRIER, abs=2e-6)
        assert abs(path.barrier - BARRIER) < path.error < 1e-4
    exact = polished(found[1], ends_of(of_channels), of_channels.decay)
    assert exact.barrier == pytest.approx(BARRIER, abs=1e-9)


def test_path_of_a_policy_is_labelled():
    path = escape_path(follower(ERRS), fixed_point=0)
    share = path["word_share"].sel(word="A").values
    points = meanfield.fixed_points(follower(ERRS))["word_share"].sel(word="A").values
    np.testing.assert_allclose(share[[0, -1]], points[[0, path.attrs["saddle"]]], atol=1e-2)
    assert (np.diff(share) < 1e-6).all()
    assert path["composition"].dims == path["momentum"].dims == ("time", "state")
    assert path["momentum"].isnull().any("time").sum() == 5, "memories that are not full"
    assert path["round"].values[-1] == path["time"].values[-1] / 2
    assert path.attrs["kind"] == "escape_path"


def barriers(game, *numbers):
    ground = landscape(game, None)
    mixture = as_population(game).mixture
    ways = [ground.ways_out(number)[0] for number in numbers]
    return np.array([exit_path(way, agents_of(way, mixture, None)).path.barrier for way in ways])


@pytest.mark.parametrize(
    ("errs", "lean", "length", "committed", "exact"),
    [
        (1 / 32, 0.55, 2, {}, [0.542197, 0.287462]),
        (0.0, 0.52, 2, {"A": 0.01, "B": 0.01}, [1.072133, 0.918087]),
        pytest.param(1e-6, 0.52, 2, {}, [1.274871, 1.106083], marks=pytest.mark.slow),
        pytest.param(1e-4, 0.52, 3, {}, [2.130104, 1.980911], marks=pytest.mark.slow),
    ],
)
def test_paths_of_strict_policies_are_found(errs, lean, length, committed, exact):
    """Those who remember as much of both lean to A; checked by another search, with kernels of its own."""
    policy = follower(errs, empty=lean, tie=lean, length=length)
    np.testing.assert_allclose(barriers(Population(policy, committed=committed), 0, 2), exact, rtol=2e-5)


def test_words_exchanged_give_the_mirror_image():
    ours, theirs = (barriers(follower(ERRS, tie=tie), 0, 2) for tie in (0.48, 0.52))
    np.testing.assert_allclose(ours, theirs[::-1], rtol=2e-5)
    assert ours[0] < 0.9 * ours[1], "the weak word is left sooner"


@pytest.mark.slow
def test_committed_agents_lower_the_barrier_of_the_other_word_to_nothing():
    """It falls like the distance from the fold to the power 3/2."""
    policy = follower(ERRS)
    critical = meanfield.critical_mass(policy, word="B")["critical_mass"].item()
    below = np.array([0.16, 0.08, 0.04])
    barrier = [barriers(Population(policy, committed={"B": critical * (1 - d)}), 0)[0] for d in below]
    slopes = np.diff(np.log(barrier)) / np.diff(np.log(below))
    np.testing.assert_allclose(slopes, 1.5, atol=0.1)
    assert abs(slopes[1] - 1.5) < abs(slopes[0] - 1.5)


@pytest.mark.slow
def test_kinds_that_are_alike_are_one_kind():
    policy = follower(ERRS)
    both = Population([policy, policy], fractions=[0.3, 0.7])
    assert barriers(both, 0) == pytest.approx(BARRIER, abs=2e-6)


@pytest.mark.parametrize(
    ("policy", "reason", "barrier"),
    [(follower(0.0), "never change", np.inf), (follower(0.4), "this is the only attractor", np.nan)],
)
def test_attractors_without_a_way_out_say_why(policy, reason, barrier):
    found = lifetime(policy, n_agents=[10])
    assert found["reason"].values.size
    assert all(reason in one for one in found["reason"].values)
    np.testing.assert_array_equal(found["barrier"], barrier)
    np.testing.assert_array_equal(found["lifetime"].values[:, 0], barrier)
    assert (found["saddle"] == -1).all()
    with pytest.raises(InputError, match=reason):
        escape_path(policy, fixed_point=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fixed_point": 1}, "fixed_point = 1 is unstable: expected an attractor"),
        ({"fixed_point": 0.5}, "fixed_point = 0.5: expected"),
        ({"saddle": 1, "masses": [1.0]}, "saddle = 1: expected None without a fixed_point; masses"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        escape_path(follower(ERRS), **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "known"), [("African/White", [1.23193, 0.48026]), ("woman/man", [0.71294, 0.58433])])
def test_policy_of_gpt_4o_with_errors(published, pair, known):
    """H = 5; two answers in a hundred are random. Halving the step changes nothing here."""
    policy = published.sel(model="gpt-4o", pair=pair)
    mixed = meanfield.make_policy(0.98 * policy["q"].values + 0.01, ["A", "B"])
    found = lifetime(mixed, n_agents=[10])
    np.testing.assert_allclose(found["barrier"], known, atol=2e-5)
    assert (found["barrier_error"] < 1e-4).all()
    has_prefactor = found["lifetime"].notnull().squeeze("n_agents")
    assert has_prefactor.any() and (found["prefactor_error"].where(has_prefactor, 0) < 0.02).all()
    assert (found["reason"].where(~has_prefactor, "the prefactor was not found") == "the prefactor was not found").all()


def test_paths_from_empty_memories_are_those_of_the_group_size_law():
    policy = follower(ERRS, empty=0.6)
    path = escape_path(policy)
    assert path.attrs["barrier"] == pytest.approx(group_size_law(policy)["kappa"].item() ** 2 / 2, rel=1e-12)
    start = path.isel(time=0)
    assert start["composition"].values[0] == pytest.approx(1, abs=1e-12)
    assert abs(start["action"]) < 1e-3 * path.attrs["barrier"]
    assert np.abs(path["hamiltonian"].values).max() < 0.05 * path.attrs["barrier"]
    with pytest.raises(InputError, match="one attractor"):
        escape_path(datasets.smollm2(pair="his/her"))
