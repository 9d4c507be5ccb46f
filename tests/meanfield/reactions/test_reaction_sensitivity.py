"""Derivatives by the rates of moves, against closed forms and central differences."""

import numpy as np
import pytest
from scipy.optimize import root

import meanfield
from meanfield._reactions.modes import modes_at

STEP = 1e-5


def epidemic(recovery):
    return meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [1.0, recovery])


def two_classes(seed):
    """Three states and two states that agents never exchange, with two channels between any of them."""
    random = np.random.default_rng(seed)
    blocks = np.kron([[1, 0], [0, 0]], np.ones((3, 3)))[:5, :5] + np.pad(np.ones((2, 2)), (3, 0))
    moves = random.random((4, 5, 5)) * blocks
    moves /= moves.sum(-1, keepdims=True)
    spontaneous = random.random((5, 5)) * blocks
    np.fill_diagonal(spontaneous, 0)
    alpha, beta = random.random((2, 2, 5)) / 2
    return meanfield.ReactionModel(list("abcde"), alpha, beta, list(moves[:2]), list(moves[2:]), spontaneous, 1.3)


def faster(model, move, factor):
    """The same model with another rate of one move."""
    changed = meanfield.ReactionModel(
        model.states, model.alpha, model.beta, list(model.first), list(model.second), model.spontaneous, 1.3
    )
    rate = np.where(np.arange(len(model.moves.rate)) == move, factor, 1) * model.moves.rate
    changed.moves = model.moves._replace(rate=rate)
    return changed


def settled(model, x):
    """The fixed point near x with the same class masses, by MINPACK."""

    def mismatch(y):
        return np.append(model.drift(y)[[0, 1, 3]], np.bincount(model.classes, y - x))

    return root(mismatch, x, tol=1e-14).x


def test_derivatives_are_central_differences():
    model = two_classes(0)
    assert model.n_classes == 2
    x = settled(model, np.repeat([0.7 / 3, 0.15], [3, 2]))
    by_state, by_eigenvalue = (
        meanfield.sensitivity(model, of=of, fixed_point=x) for of in ("composition", "eigenvalue")
    )
    everywhere = np.ones(5, bool)
    for move in range(0, by_state.sizes["move"], 4):
        moved = [faster(model, move, np.exp(step)) for step in (STEP, -STEP)]
        ends = [settled(one, x) for one in moved]
        np.testing.assert_allclose(by_state["derivative"][move], (ends[0] - ends[1]) / (2 * STEP), atol=1e-9)
        values = [
            modes_at(one, end, everywhere).values[0].real * one.fastest for one, end in zip(moved, ends, strict=True)
        ]
        np.testing.assert_allclose(by_eigenvalue["derivative"][move], (values[0] - values[1]) / (2 * STEP), atol=1e-8)
    # Rates have one unit of time: to make all faster moves nothing, and all eigenvalues in proportion
    np.testing.assert_allclose(by_state["derivative"].sum("move"), 0, atol=1e-12)
    np.testing.assert_allclose(by_eigenvalue["derivative"].sum(), by_eigenvalue.attrs["value"])
    np.testing.assert_allclose(by_state["derivative"].isel(state=slice(3)).sum("state"), 0, atol=1e-12)


def test_epidemic():
    """x = 1 - r/β and λ = r - β where it lasts, λ = β - r where nobody is ill."""
    model, recovery = epidemic(0.2), 0.2
    points = meanfield.fixed_points(model, starts=4)["composition"]
    change = meanfield.sensitivity(model, of="composition", fixed_point=points[1])["derivative"]
    np.testing.assert_allclose(change.sel(state="I"), [recovery, -recovery])
    for point, sign in zip(points, (1, -1), strict=True):
        change = meanfield.sensitivity(model, of="eigenvalue", fixed_point=point)
        np.testing.assert_allclose(change["derivative"], [sign, -sign * recovery])
        np.testing.assert_allclose(change.attrs["value"], sign * (1 - recovery))
    assert change["channel"].values.tolist() == [0, -1]
    assert change["side"].values[-1] == "spontaneous"


# Two classes of two states each, with the eigenvalue -1 twice
TWICE = meanfield.ReactionModel(
    list("abcd"), np.zeros((1, 4)), np.zeros((1, 4)), spontaneous=np.kron(np.eye(2), [[0.0, 0.5], [0.5, 0.0]])
)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (epidemic(0.5), {"of": "kappa"}, "of = 'kappa': expected one of composition, eigenvalue for a ReactionModel"),
        (epidemic(0.5), {"of": "eigenvalue"}, "fixed_point = None: expected a composition"),
        (epidemic(0.5), {"fixed_point": np.array([0.4, 0.6])}, r"max\|dx/dt\| = 0.06: expected a fixed point"),
        (epidemic(0.5), {"fixed_point": np.array([0.5, 0.5]), "word": "a"}, "word = 'a': expected None"),
        (epidemic(1.0), {"fixed_point": np.array([1.0, 0.0])}, "a zero eigenvalue: expected one that moves smoothly"),
        (TWICE, {"of": "eigenvalue", "fixed_point": np.full(4, 0.25)}, "defective or degenerate leading eigenvalue"),
    ],
)
def test_wrong_input_is_named(model, options, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.sensitivity(model, **{"of": "composition", **options})


def test_a_degenerate_eigenvalue_leaves_the_fixed_point_its_derivative():
    change = meanfield.sensitivity(TWICE, of="composition", fixed_point=np.full(4, 0.25))
    assert np.abs(change["derivative"]).max() > 0.1
