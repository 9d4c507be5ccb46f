"""Paths out of attractors: Hamilton's equations, two methods, symmetries, and attractors without a way out."""

import numpy as np
import pytest

import meanfield
import theory
from _metastable import counting_model, follower
from meanfield import escape_path, lifetime

ERRS = 0.05


def test_it_solves_hamiltons_equations_from_end_to_end():
    game = theory.minimal_naming_game.reaction_model()
    masses = [0.95, 0.05, 0.0]
    points = meanfield.fixed_points(game, masses=masses)
    number = int(np.argmax(points["composition"].sel(state="B").values))
    path = escape_path(game, fixed_point=number, masses=masses)
    saddle = points["composition"].values[path.attrs["saddle"]]
    x, p = path["composition"].values, path["momentum"].values[:, :4]
    np.testing.assert_allclose(x[0], points["composition"].values[number], atol=1e-4)
    np.testing.assert_allclose(x[-1], saddle, atol=1e-4)
    assert np.abs(path["hamiltonian"]).max() < 1e-10
    np.testing.assert_allclose(x.sum(1), 1, atol=1e-12)
    assert np.isnan(path["momentum"].sel(state="B committed")).all(), "nobody is there"
    assert np.abs(p[:, :3]).max() > 0.5, "it is no small fluctuation"
    assert path["action"].values[-1] == pytest.approx(path.attrs["barrier"], rel=1e-6)
    assert (np.diff(path["action"]) > 0).all()


def test_both_methods_find_the_same_barrier():
    """Messages for the policy, collocation for the model of nine states that the same agents are."""
    by_messages = lifetime(follower(ERRS), n_agents=[10])
    by_collocation = lifetime(counting_model(ERRS), n_agents=[10])
    for name, tolerance in (("barrier", 1e-5), ("prefactor", 1e-2)):
        ours, theirs = by_messages[name].values, by_collocation[name].values / (2 if name == "prefactor" else 1)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
