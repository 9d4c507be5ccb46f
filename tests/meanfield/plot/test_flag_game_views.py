"""Flag games: crops on their flag, runs, teams, fits, forecasts, and the random-field mean field."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba

import meanfield
from _drawings import band, labels, notes, points, rows, ticks
from _drawn_results import drawn
from meanfield import InputError
from meanfield._plot.intervals import error_bars, forest, wilson
from meanfield._plot.words import NEUTRAL
from theory import flag_game as theory_of
from validation.flag_game import accuracy

# --- crops on their flag ---


def dots(axes):
    (found,) = axes.collections
    return np.asarray(found.get_offsets()), np.asarray(found.get_array()), found


def test_fields_lie_at_the_middles_of_crops_on_the_flag():
    """Fields for France: some crops exclude Peru, none excludes France."""
    fields = drawn("flag_game_fields")
    axes = meanfield.plot(fields, s=11)
    places, values, found = dots(axes)
    most = fields["high"].values[-1]
    for (x, y), value in zip(places, values, strict=True):
        assert value == pytest.approx(np.clip(fields["field"].sel(left=x - 3, top=y - 2), -most, most).item())
    assert len(places) == fields["field"].size and (found.norm.vmin, found.norm.vmax) == pytest.approx((-most, most))
    assert found.get_sizes() == [11]
    (picture,) = axes.images
    np.testing.assert_array_equal(picture.get_array(), theory_of.render(theory_of.flag_of("France"), 6))
    assert picture.get_extent() == [0, 24, 16, 0] and (axes.get_xlim(), axes.get_ylim()) == ((0, 24), (16, 0))
    assert not meanfield.plot(fields.drop_vars("flag")).images
    with pytest.raises(InputError, match="flag has 2 channels: expected 1, or 3 of red, green and blue, or 4"):
        meanfield.plot(fields.isel(channel=[0, 1]))


def test_infinite_fields_have_hatched_bars():
    fields = drawn("flag_game_fields")
    axes = meanfield.plot(fields, view="distribution")
    *bars, beyond = axes.patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], fields["probability"])
    np.testing.assert_allclose([bar.get_x() for bar in bars], fields["low"])
    assert beyond.get_height() == fields["surely_truth"] and beyond.get_hatch() and beyond.get_x() > bars[-1].get_x()
    assert ticks(axes, "x")[-1] == "+∞"
    assert len(meanfield.plot(fields.assign(surely_truth=0.0), view="distribution").patches) == len(bars)


@pytest.mark.parametrize(("view", "limits"), [("difference", (-1, 1)), ("ideal", (0, 1)), ("measured", (0, 1))])
def test_a_probe_has_a_map_for_each_column(view, limits):
    probe = drawn("flag_game_probe")
    axes = meanfield.plot(probe, view=view)
    places, values, found = dots(axes)
    np.testing.assert_allclose(places, np.stack([probe["left"] + 3, probe["top"] + 2], -1))
    np.testing.assert_allclose(values, probe[view])
    assert (found.norm.vmin, found.norm.vmax) == limits
    if view == "difference":
        departs = probe["departs"].values
        np.testing.assert_allclose(axes.lines[0].get_xydata(), places[departs], err_msg="rings")
        assert axes.get_xlabel() == f"{departs.sum()} of {departs.size} differ (rings, 99 %)" and departs.any()


# --- runs ---

REPORTS = np.array(
    [
        [["A", "A", "B"], ["A", "B", "B"], ["B", "B", "B"], ["B", "B", "B"]],
        [["C", "A", "A"], ["A", "A", "A"], [None, None, None], [None, None, None]],
    ],
    dtype=object,
)


@pytest.fixture
def gossip() -> xr.Dataset:
    """Two runs of three agents; the second one stops after its second probe."""
    columns = {
        "initial_report": (("run", "agent"), REPORTS[:, 0].astype(str)),
        "final_report": (("run", "agent"), [list("BBB"), list("AAA")]),
        "report": (("run", "probe", "agent"), REPORTS),
        "steps": ("run", [9, 3]),
        "stopped": ("run", [False, True]),
        "truth": ("run", ["A", "A"]),
    }
    coords = {"run": [0, 1], "agent": range(3), "step": ("probe", [0, 3, 6, 9])}
    return xr.Dataset(columns, coords, {"kind": "gossip"})


def game(gossip: xr.Dataset, **columns: object) -> xr.Dataset:
    models = ("agent", ["gpt-4o", "gpt-4o", "phi_4"])
    return gossip.isel(run=[0]).assign_coords(model=models).assign(columns).assign_attrs(kind="flag_game")


def test_answers_before_and_after(gossip):
    before, after = ([bar.get_height() for bar in one] for one in meanfield.plot(gossip).containers)
    assert (before[6], sum(before)) == (1, 1), "two of three agents are right in both runs"
    assert (after[0], after[-1]) == (0.5, 0.5)
    axes = meanfield.plot(gossip, view="reports")
    before, after = ([bar.get_width() for bar in one] for one in axes.containers)
    np.testing.assert_allclose([before, after], [[4 / 6, 1 / 6, 1 / 6], [0.5, 0.5, 0]])
    assert ticks(axes) == ["A (true)", "B", "C"]
    many = gossip.drop_vars("truth").assign(final_report=(("run", "agent"), [list("DEF"), list("GHI")]))
    assert ticks(meanfield.plot(many))[-1] == "2 others"


def test_the_answers_of_a_run_are_cells(gossip):
    axes = meanfield.plot(gossip, view="answers")
    assert [one.get_title() for one in axes] == ["run 0", "run 1"]
    cells = np.ma.getdata(axes[0].collections[0].get_array())
    np.testing.assert_allclose(cells, (REPORTS[0].T == "A").astype(float), err_msg="B is the most frequent answer")
    assert axes[1].collections[0].get_array().mask.sum() == 6, "no colour after the end"
    decisions = np.array([[None, "A", "B", "B"]], dtype=object)
    axes = meanfield.plot(game(gossip, manager_decision=(("run", "probe"), decisions)))
    cells = axes.collections[0].get_array()
    assert cells.shape == (4, 4) and cells.mask[3, 0] and cells[3, 1:].tolist() == [1, 0, 0]
    assert ticks(axes) == ["0 GPT-4o", "1 GPT-4o", "2 Phi-4", "manager"]


def test_messages_between_agents(gossip):
    heard = np.arange(9).reshape(1, 3, 3)
    result = game(gossip, messages=(("run", "agent", "source"), heard, {"long_name": "messages heard"}))
    axes = meanfield.plot(result, view="links")
    np.testing.assert_array_equal(axes.collections[0].get_array(), heard[0])
    with pytest.raises(InputError, match="result is a game with a manager: expected one in pairs or by broadcast"):
        meanfield.plot(game(gossip), view="links")


def test_shares_of_answers_and_consensus_keep_the_last_answers(gossip):
    first, second = meanfield.plot(gossip, view="shares")
    np.testing.assert_allclose(points(first, "A"), np.column_stack([[0, 3, 6, 9], [2 / 3, 1 / 3, 0, 0]]))
    np.testing.assert_allclose(points(second, "C")[:, 1], [1 / 3, 0, 0, 0])
    axes = meanfield.plot(gossip, view="consensus")
    np.testing.assert_allclose(points(axes, "most frequent answer")[:, 1], [2 / 3, 5 / 6, 1, 1])
    np.testing.assert_allclose(points(axes, "true answer")[:, 1], [2 / 3, 2 / 3, 0.5, 0.5])


def test_rare_answers_count_together():
    names = np.array(list("AABBCCDDEEFFGGHI"), dtype=object).reshape(1, 1, 16)
    columns = {"report": (("run", "probe", "agent"), names)}
    coords = {"run": [0], "agent": range(16), "step": ("probe", [0])}
    one = xr.Dataset(columns, coords, {"kind": "flag_game"})
    axes = meanfield.plot(one)
    (mesh,) = axes.collections
    assert mesh.get_array().max() == 7 and mesh.cmap(7) == to_rgba(NEUTRAL)
    assert axes.get_legend().get_texts()[-1].get_text() == "2 others"
    np.testing.assert_allclose(points(meanfield.plot(one, view="shares"), "2 others"), [[0, 1 / 8]])


def test_steps_by_their_end(gossip):
    axes = meanfield.plot(gossip, view="steps")
    stopped, played = ([bar.get_height() for bar in one] for one in axes.containers)
    assert (stopped[0], played[-1], sum(stopped), sum(played)) == (1, 1, 1, 1)


@pytest.mark.parametrize(("kind", "select"), [("mechanism1_simulation", {"n_agents": 1}), ("gossip", {})])
def test_leans_of_runs_keep_their_last_values_and_have_means(kind, select):
    result = drawn(kind).isel(select)
    axes = meanfield.plot(result, view="lean")
    time = result["round"] if "round" in result.coords else result["step"] / 4
    for number, name in enumerate(("m_path", "q_path")):
        kept = result[name].to_pandas().ffill(axis=1).to_numpy()
        lines = axes.lines[1 + number * len(kept) : 1 + (number + 1) * len(kept)]
        np.testing.assert_allclose([line.get_ydata() for line in lines], kept)
        np.testing.assert_allclose(points(axes, f"{name[0]}, mean"), np.column_stack([time, kept.mean(0)]))
    assert kind != "gossip" or result["m_path"].isnull().any(), "some runs stop early"


# --- teams ---


def test_endpoints_and_accuracy_against_size():
    simulation = drawn("mechanism1_simulation")
    axes = meanfield.plot(simulation)
    for name in simulation["endpoint"].values:
        one = simulation.sel(endpoint=name)
        expected = np.column_stack([one["n_agents"], one["endpoint_fraction"], one["endpoint_interval"]])
        np.testing.assert_allclose(points(axes, name.replace("_", " ")), expected, atol=1e-12)
    (bars,) = meanfield.plot(simulation, view="accuracy").containers
    np.testing.assert_allclose(bars.lines[0].get_ydata(), simulation["collective_accuracy"])
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * simulation["collective_accuracy_se"], atol=1e-12)
    panels = meanfield.plot(simulation, view="votes")
    for axes, share in zip(panels, simulation["truth_share"].values, strict=True):
        expected = np.histogram(share, np.linspace(0, 1, 21))[0] / len(share)
        np.testing.assert_allclose([bar.get_height() for bar in axes.patches], expected)


ACCURACIES = ("initial_accuracy", "majority_vote_accuracy", "collective_accuracy", "final_vote_accuracy")


def test_one_ensemble_has_rows_and_several_sizes_an_uplift():
    answers = np.array([list("TTTT"), list("TTRR"), list("RRRR"), list("TRST")])
    scored = accuracy(answers[::-1], answers, "T")
    axes = meanfield.plot(scored)
    np.testing.assert_allclose(axes.lines[0].get_xdata(), scored["endpoint_fraction"])
    np.testing.assert_allclose(rows(axes), scored["endpoint_interval"])
    axes = meanfield.plot(scored, view="accuracy")
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [scored[name] for name in ACCURACIES])
    assert ticks(axes)[2] == "agents in the end"
    raised = [scored.assign(collective_accuracy=0.1 * n).assign_coords(n_agents=n) for n in (4, 8)]
    several = xr.concat(raised, "n_agents")
    assert points(meanfield.plot(several, view="accuracy"), "agents in the end")[:, 1].tolist() == [0.4, 0.8]
    axes = meanfield.plot(several, view="uplift")
    for label, name in (("initial", "initial_accuracy"), ("collective", "collective_accuracy")):
        value, error = several[name], several[f"{name}_se"]
        expected = np.column_stack([[4, 8], value, value - error, value + error])
        np.testing.assert_allclose(points(axes, label), expected)
    np.testing.assert_allclose(band(axes, -1), np.sort([[several[n][k] for n in ACCURACIES[::2]] for k in (0, 1)]))
    with pytest.raises(InputError, match="result has no n_agents"):
        meanfield.plot(scored.drop_vars("n_agents"), view="uplift")


def test_composition_predicted_and_measured():
    teams = drawn("team_composition_comparison")
    panels = meanfield.plot(teams)
    assert [one.get_title() for one in panels] == ["uptake 0.5", "uptake 0.9"]
    axes, one = panels[1], teams.isel(uptake=1)
    np.testing.assert_allclose(points(axes, "predicted, ± 2 SE")[:, 1], one["collective_accuracy"])
    np.testing.assert_allclose(points(axes, "before talk")[:, 1], one["initial_accuracy"])
    half = 2 * one["collective_accuracy_se"].values
    np.testing.assert_allclose(np.ptp(band(axes), axis=1), 2 * half, atol=1e-12)
    measured = [one["measured"], one["measured"] - one["measured_se"], one["measured"] + one["measured_se"]]
    np.testing.assert_allclose(points(axes, "measured, ± SE")[:, 1:], np.transpose(measured))
    assert not meanfield.plot(drawn("team_composition"))[0].containers, "a prediction alone has no measured points"
    axes = meanfield.plot(teams, view="uplift")[0]
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), teams["social_uplift"][0])
    axes = meanfield.plot(teams, view="mixed_gain")
    for label, name in (("predicted", "mixed_gain"), ("measured", "measured_mixed_gain")):
        gain, error = teams[name], teams[f"{name}_se"]
        expected = np.column_stack([[0.5, 0.9], gain, gain - error, gain + error])
        np.testing.assert_allclose(points(axes, f"{label}, ± SE"), expected)


# --- intervals, fits and forecasts ---


def test_ends_beyond_the_limits_are_arrows_and_rounding_does_not_turn_bars_around():
    axes, places = plt.subplots()[1], np.arange(3)
    ends = np.array([-np.inf, 0.5, np.nan]), np.array([1, 9.0, np.nan])
    forest(axes, places, places + 0.0, *ends, (-1.0, 5.0))
    _, left, right = axes.lines
    assert (left.get_marker(), left.get_xydata().tolist()) == ("<", [[-1, 0]])
    assert (right.get_marker(), right.get_xydata().tolist()) == (">", [[5, 1]])
    np.testing.assert_array_equal(rows(axes), [[-1, 1], [0.5, 5], [np.nan, np.nan]])
    error_bars(axes, np.arange(1), np.array([0.3]), np.array([0.3 + 1e-16]), np.array([0.4]), label="bars")
    np.testing.assert_allclose(points(axes, "bars"), [[0, 0.3, 0.3, 0.4]])


@pytest.mark.parametrize("view", ["polarization", "endpoints", "accuracy"])
def test_curves_and_measured_points_against_size(view):
    copying = drawn("copying_fit")
    fit = {name: copying["fitted"] * factor for name, factor in (("fitted", 1), ("paper", 0.9), ("measured", 0.8))}
    fit |= {f"{name}_accuracy": copying["fitted_accuracy"] * 0.9 for name in fit}
    fit |= {"measured_accuracy_error": ("n_agents", [0.1, 0.05]), "seeds": ("n_agents", [10, 20])}
    fit = xr.Dataset(fit, attrs={"kind": "mechanism1_fit"})
    axes = np.ravel(meanfield.plot(fit, view=view))
    assert len(axes) == (4 if view == "endpoints" else 1)
    one = fit.isel(endpoint=0) if view == "endpoints" else fit.sel(endpoint="polarization")
    end = "_accuracy" if view == "accuracy" else ""
    for label, name in (("fitted", "fitted"), ("parameters of [002]", "paper")):
        np.testing.assert_allclose(points(axes[0], label)[:, 1], one[name + end])
    shown = points(axes[0], "measured, 95 %")
    np.testing.assert_allclose(shown[:, :2], np.column_stack([one["n_agents"], one["measured" + end]]))
    if view == "accuracy":
        half = 1.959964 * fit["measured_accuracy_error"].values
        np.testing.assert_allclose(np.ptp(shown[:, 2:], axis=1), 2 * half, rtol=1e-5)
    else:
        np.testing.assert_allclose(shown[:, 2:], np.transpose(wilson(one["measured"], one["seeds"])))


@pytest.fixture
def parameters() -> xr.Dataset:
    """J is known, mean_R has an end far away, scale_T is not determined, beta is held."""
    columns = {
        "estimate": ("parameter", [2.0, -0.2, 4.0, 1.0]),
        "free": ("parameter", [True, True, True, False]),
        "identified": ("parameter", [True, True, False, False]),
        "interval": (("parameter", "bound"), [[1.5, 2.6], [-0.4, np.inf], [1e-9, 1e9], [np.nan, np.nan]]),
        "bootstrap_standard_error": ("parameter", [0.1, np.nan, np.nan, np.nan]),
        "direction_error": ("direction", [0.1, 0.5, np.inf]),
        "direction_determined": ("direction", [True, True, False]),
    }
    coords = {"parameter": ["J", "mean_R", "scale_T", "beta"], "bound": ["low", "high"], "direction": range(3)}
    return xr.Dataset(columns, coords, {"kind": "mechanism1_fit", "option_level": 0.95})


def test_parameters_are_rows(parameters):
    axes = meanfield.plot(parameters, view="intervals")
    assert ticks(axes) == parameters["parameter"].values.tolist()
    assert [(text.get_position()[1], text.get_text()) for text in axes.texts] == [(2, "not determined"), (3, "held")]
    known, arrow, others = axes.lines[:3]
    np.testing.assert_allclose(known.get_xydata(), [[2, 0], [-0.2, 1]])
    assert arrow.get_marker() == ">" and arrow.get_xydata().tolist() == [[axes.get_xlim()[1], 1]]
    np.testing.assert_allclose(others.get_xydata(), [[4, 2], [1, 3]])
    np.testing.assert_allclose(rows(axes)[0], [1.5, 2.6])
    np.testing.assert_allclose(rows(axes, 1)[0], [2 - 0.196, 2 + 0.196], atol=1e-4, err_msg="of the bootstrap")


def test_directions_by_their_errors(parameters):
    axes = meanfield.plot(parameters, view="directions")
    np.testing.assert_allclose(points(axes, "determined"), [[1, 0.1], [2, 0.5]])
    assert points(axes, "no curvature")[:, 0].tolist() == [3]


def test_the_copying_process():
    result = drawn("copying_fit")
    axes = meanfield.plot(result)
    for name in result["endpoint"].values:
        expected = result["fitted"].sel(endpoint=name)
        np.testing.assert_allclose(points(axes, name.replace("_", " "))[:, 1], expected)
    axes = meanfield.plot(result, view="parameters")
    np.testing.assert_allclose(axes.lines[0].get_xdata(), result["estimate"])
    np.testing.assert_allclose(np.ptp(rows(axes), axis=1), 2 * result["standard_error"])


def test_simulated_values_beside_measured_ones():
    columns = {
        "measured": (("quantity", "n_agents"), [[0.5, 0.6], [0.1, 0.2]]),
        "simulated": (("quantity", "n_agents"), [[0.52, 0.4], [0.15, 0.18]]),
        "simulated_error": (("quantity", "n_agents"), [[0.01, 0.02], [0.01, 0.02]]),
        "inside": (("quantity", "n_agents"), [[1.0, 0.0], [1.0, 0.0]]),
        "interval": (("quantity", "n_agents", "bound"), [[[0.4, 0.6], [0.5, 0.7]], [[0.0, 0.2], [0.1, 0.3]]]),
    }
    coords = {"quantity": ["accuracy", "wrong_consensus"], "n_agents": [4, 8], "bound": ["low", "high"]}
    result = xr.Dataset(columns, coords, {"kind": "mechanism1_comparison", "option_level": 0.95})
    for axes, one in zip(meanfield.plot(result), (result.isel(quantity=k) for k in (0, 1)), strict=True):
        np.testing.assert_allclose(points(axes, "simulated, ± SE")[:, 1], one["simulated"])
        np.testing.assert_allclose(np.ptp(band(axes), axis=1), [0.02, 0.04])
        shown = np.concatenate([points(axes, "measured, 95 %"), points(axes, "simulated lies outside")])
        np.testing.assert_allclose(shown, np.column_stack([[4, 8], one["measured"], one["interval"]]))


def test_parameters_of_mechanism_2_are_rows_for_each_model():
    fit, names = drawn("mechanism2"), ("uptake", "rewrite", "literal")
    half = fit.assign({name: fit[name] / 2 for one in names for name in (one, f"{one}_interval")})
    both = xr.concat([fit, half], "model", data_vars="all").assign_coords(model=["gpt-4o", "gpt-5.4"])
    axes = meanfield.plot(both)
    one = both.isel(model=1).squeeze()
    np.testing.assert_allclose(points(axes, "GPT-5.4")[:, 0], [one[name] for name in names])
    np.testing.assert_allclose(points(axes, "GPT-5.4")[:, 1] - points(axes, "GPT-4o")[:, 1], 0.3)
    np.testing.assert_allclose(rows(axes, 1), [one[f"{name}_interval"] for name in names])
    assert ticks(axes) == ["uptake α", "rewrite γ", "literal α(1 - γ)"]


def test_answers_have_wilson_intervals_beside_the_fit():
    fit = drawn("mechanism2")
    unasked, axes = meanfield.plot(fit, view="answers")
    assert not unasked.axison and notes(unasked) == ["not asked"]
    one = fit.squeeze().sel(relation="incompatible").transpose("response", "social_entries", ...)
    for number, label in enumerate(labels(axes)):
        np.testing.assert_allclose(points(axes, label)[:, 1], one["predicted"][number])
    asked = one["count"].sum("response")
    share, (line, _, (bars,)) = one["count"][1] / asked, axes.containers[1].lines
    np.testing.assert_allclose(line.get_ydata(), share)
    ends = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, np.transpose(wilson(share, asked)), atol=1e-12)
    axes = meanfield.plot(fit.isel(evidence=0), view="likelihood")
    gain = (fit["aic"] - fit["aic_similarity_fitted"]).values.ravel()
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], gain)
    assert ticks(axes, "x") == ["strong\nm = 1"]


def test_answers_to_a_probe_of_one_agent():
    probe = drawn("memory_conflict")
    axes = meanfield.plot(probe)
    for label, name in (("France (target)", "target"), ("Peru (lure)", "lure"), ("other", "other")):
        np.testing.assert_allclose(points(axes, label)[:, 1], probe[f"{name}_count"] / 20)


def test_forecasts_have_a_curve_for_each_endpoint_and_the_runs_of_their_size():
    table = drawn("flag_run_evidence")
    for one, size in zip(meanfield.plot(table.isel(endpoint=[2, 0, 3, 1])), (4, 8), strict=True):
        for name in table["endpoint"].values:
            expected = table["probability"].squeeze("model").sel(n_agents=size, endpoint=name)
            np.testing.assert_array_equal(points(one, name.replace("_", " "))[:, 1], expected)
        shown = np.concatenate([line.get_xdata() for line in one.lines if line.get_marker() == "|"])
        runs = table["run_evidence"].values[table["run_n_agents"].values == size]
        assert sorted(shown) == sorted(runs) and len(runs) == (4 if size == 4 else 0)


@pytest.mark.parametrize("view", ["log_score", "brier"])
def test_scores_have_a_row_for_each_model(view):
    scores = drawn("flag_run_scores")
    axes = meanfield.plot(scores, view=view)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), scores[view])
    np.testing.assert_allclose(rows(axes), scores[f"{view}_interval"])
    assert ticks(axes) == ["constant", "zealots"]


# --- the random-field mean field ---


@pytest.mark.parametrize("view", ["bistable", "truth_only", "rival_only", "several", "m", "q"])
def test_phases_are_cells_as_wide_for_each_size(view):
    phases = drawn("random_field_phase_diagram")
    axes = meanfield.plot(phases, view=view)
    (mesh,) = axes.collections
    np.testing.assert_allclose(np.asarray(mesh.get_array()), phases[view].transpose("J", "n_agents"))
    assert (mesh.norm.vmin, mesh.norm.vmax) == ((-1 if view == "m" else 0), 1)
    assert ticks(axes, "x") == ["4", "64"] and axes.get_ylim()[0] < 1


def test_full_branches_are_stable_and_dashed_ones_not():
    result = drawn("random_field_bifurcation")
    axes = meanfield.plot(result)
    stable = result["stable"].values & result["J"].notnull().values
    for name, chosen, style in (("stable", stable, "-"), ("unstable", result["J"].notnull() & ~stable, "--")):
        (line,) = (line for line in axes.lines if line.get_label() == name)
        shown = {(J, m) for J, m in line.get_xydata() if np.isfinite(J)}
        expected = {(J, m) for J, m in zip(result["J"].values[chosen], result["m"].values[chosen], strict=True)}
        assert expected <= shown and len(shown - expected) <= 2 and line.get_linestyle() == style
    np.testing.assert_allclose(points(axes, "fold"), np.column_stack([result["fold_J"], result["fold_m"]]))
    assert axes.lines[0].get_xydata().tolist() == [[0, 0], [4, 0]], "m = 0 is stable up to the pitchfork, beyond 4"
    assert "pitchfork, subcritical" not in labels(axes)


def test_a_pitchfork_divides_the_centre_which_a_distribution_without_symmetry_has_not():
    result = theory_of.random_field.bifurcation([-0.3, 0.3], beta=2.0, max_J=4.0)
    axes = meanfield.plot(result)
    before, beyond = axes.lines[:2]
    place = float(result["pitchfork_J"])
    assert (before.get_xdata()[1], beyond.get_xdata()[0], beyond.get_linestyle()) == (place, place, "--")
    assert labels(axes) == ["stable", "unstable", "pitchfork, supercritical"]
    axes = meanfield.plot(theory_of.random_field.bifurcation([-0.3, 0.5], beta=2.0, max_J=4.0))
    assert labels(axes) == ["stable", "unstable", "fold"] and len(axes.lines) == 3


def test_solutions_are_points_or_lines_for_axes_over_time():
    result = drawn("random_field_fixed_points")
    lines, axes = meanfield.plot(result, view="levels").lines, meanfield.plot(result)
    for status, style, fill in (("stable", "-", "full"), ("unstable", "--", "none")):
        here = result.isel(fixed_point=result["stability"].values == status)
        assert here.sizes["fixed_point"]
        np.testing.assert_allclose(points(axes, status), np.column_stack([here["m"], here["q"]]))
        assert next(line for line in axes.lines if line.get_label() == status).get_fillstyle() == fill
        assert [line.get_ydata()[0] for line in lines if line.get_linestyle() == style] == here["m"].values.tolist()
    assert labels(lines[0].axes) == ["m*, stable", "m*, unstable"], "one entry for each"
