"""The random-field mean field: phases as cells, branches by stability, solutions as points."""

from __future__ import annotations

import numpy as np
import pytest

import meanfield
from theory.flag_game import random_field
from theory.flag_game.mechanism1 import APPENDIX_E


@pytest.mark.parametrize("view", ["bistable", "truth_only", "rival_only", "several", "m", "q"])
def test_phases_are_cells_as_wide_for_each_size(view):
    options = {"n_agents": [4, 64], "J": [1.0, 2.0, 3.0], "beta": 1.0, "samples": 4}
    phases = random_field.phase_diagram(APPENDIX_E.field_law, **options)
    axes = meanfield.plot(phases, view=view)
    (mesh,) = axes.collections
    np.testing.assert_allclose(np.asarray(mesh.get_array()), phases[view].transpose("J", "n_agents"))
    assert (mesh.norm.vmin, mesh.norm.vmax) == ((-1 if view == "m" else 0), 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "64"] and axes.get_ylim()[0] < 1
    assert axes.get_ylabel() == "coupling J (nat)"
    if view == "bistable":
        assert np.asarray(meanfield.plot(phases).collections[0].get_array()).tolist() == mesh.get_array().tolist()


def test_full_branches_are_stable_and_dashed_ones_not():
    result = random_field.bifurcation([-1.0, 1.0], beta=2.0, max_J=4.0)
    axes = meanfield.plot(result)
    labelled = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    stable = result["stable"].values & result["J"].notnull().values
    for name, chosen, style in (("stable", stable, "-"), ("unstable", result["J"].notnull() & ~stable, "--")):
        line = labelled[name]
        shown = {(J, m) for J, m in line.get_xydata() if np.isfinite(J)}
        expected = {(J, m) for J, m in zip(result["J"].values[chosen], result["m"].values[chosen], strict=True)}
        assert expected <= shown and len(shown - expected) <= 2 and line.get_linestyle() == style
    np.testing.assert_allclose(labelled["fold"].get_xydata(), np.column_stack([result["fold_J"], result["fold_m"]]))
    assert axes.lines[0].get_xydata().tolist() == [[0, 0], [4, 0]], "m = 0 is stable up to the pitchfork, beyond 4"
    assert axes.get_xlim() == (0, 4) and "pitchfork, subcritical" not in labelled


def test_a_pitchfork_divides_the_centre():
    result = random_field.bifurcation([-0.3, 0.3], beta=2.0, max_J=4.0)
    axes = meanfield.plot(result)
    place = float(result["pitchfork_J"])
    before, beyond = axes.lines[:2]
    assert (before.get_xdata()[1], beyond.get_xdata()[0], beyond.get_linestyle()) == (place, place, "--")
    assert axes.get_legend_handles_labels()[1] == ["stable", "unstable", "pitchfork, supercritical"]


def test_a_law_without_symmetry_has_no_centre():
    axes = meanfield.plot(random_field.bifurcation([-0.3, 0.5], beta=2.0, max_J=4.0))
    assert axes.get_legend_handles_labels()[1] == ["stable", "unstable", "fold"] and len(axes.lines) == 3


def test_solutions_are_lines_for_axes_over_time():
    result = random_field.fixed_points([-1.0, 1.0], J=3.0, beta=2.0)
    axes = meanfield.plot(result, view="levels", linewidth=3)
    for status, style in (("stable", "-"), ("unstable", "--")):
        lines = [line for line in axes.lines if line.get_linestyle() == style]
        assert [line.get_ydata()[0] for line in lines] == result["m"].values[result["stability"] == status].tolist()
        assert lines and all(line.get_linewidth() == 3 for line in lines)
    assert axes.get_legend_handles_labels()[1] == ["m*, stable", "m*, unstable"], "one entry for each"
    assert axes.get_legend() and not axes.texts and axes.get_ylabel() == "truth minus rival, m"


def test_solutions_are_filled_where_stable():
    result = random_field.fixed_points([-1.0, 1.0], J=3.0, beta=2.0)
    axes = meanfield.plot(result)
    points = {line.get_label(): line for line in axes.get_legend_handles_labels()[0]}
    for status, fill in (("stable", "full"), ("unstable", "none")):
        here = result.isel(fixed_point=result["stability"].values == status)
        np.testing.assert_allclose(points[status].get_xydata(), np.column_stack([here["m"], here["q"]]))
        assert points[status].get_fillstyle() == fill and here.sizes["fixed_point"]
    assert set(points) == {"stable", "unstable"}
