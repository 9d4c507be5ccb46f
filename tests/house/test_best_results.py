"""Mathematics that does not converge hands over what it has, and says what may help."""

from __future__ import annotations

import numpy as np
import pytest

import meanfield
import validation
from _policies import majority_policy
from meanfield._fixed_points import points
from validation.naming_game import _exact

MAJORITY = majority_policy(3, 0.97)


def test_fixed_points_are_handed_over_with_their_residuals(monkeypatch):
    known = meanfield.fixed_points(MAJORITY)
    monkeypatch.setattr(points, "MAX_RESIDUAL", -1.0)
    with pytest.raises(meanfield.ConvergenceError, match="no fixed point") as raised:
        meanfield.fixed_points(MAJORITY)
    for name in ("residual", "word_share", "eigenvalue"):
        np.testing.assert_array_equal(raised.value.best[name], known[name])


def test_where_runs_end_is_handed_over_with_its_error(monkeypatch):
    chain = validation.naming_game.exact_population(majority_policy(1, 0.9), 3)
    monkeypatch.setattr(_exact, "LARGEST_ERROR", -1.0)
    with pytest.raises(meanfield.ConvergenceError, match="fewer agents") as raised:
        chain.absorption()
    assert float(raised.value.best["probability"].sum()) == pytest.approx(1, abs=1e-9)
    assert raised.value.best.attrs["error"] < 1e-9
