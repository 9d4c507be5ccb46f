"""Norm emergence of [003]: objects, operations; the reaction model against closed forms, enumeration and findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import xarray as xr

import meanfield
from _norm_societies import ordinary, random_table, table
from _paths import ROOT
from meanfield import InputError
from theory import norms
from theory.norms import (
    AGENTS,
    BEHAVIOURS,
    Behaviour,
    NormAgent,
    NormRates,
    default_operations,
    emergence,
    emergence_measures,
    initial_composition,
    observables,
    reaction_model,
)
from theory.norms._operations import OPERATIONS, checked_operations
from theory.norms._society import PersonalNorm
from theory.norms._states import NORM_STATES, NormState, starting_fractions

LABELS = [state.label for state in NORM_STATES]
TEXTS = {"for": "a", "against": "b"}
TIMES = np.linspace(0, 2, 41)


def operations(**changes) -> xr.Dataset:
    """Operations that never fail and never err, without thoughts, but for changes."""
    return table(**(dict.fromkeys(OPERATIONS, 1.0) | {"false_conflict": 0, "generate_thought": 0} | changes))


def course(table: xr.Dataset, start: xr.DataArray | np.ndarray, **rates) -> xr.Dataset:
    """Observables of the smoking norm from `start`, and the composition."""
    model = reaction_model(table, "smoking", NormRates(**rates))
    composition = meanfield.solve(model, initial=start, times=TIMES)["composition"]
    return observables(model, composition).assign(composition=composition)


def only(state: NormState) -> xr.DataArray:
    return xr.DataArray(np.eye(len(LABELS))[LABELS.index(state.label)], dims="state", coords={"state": LABELS})


def mixture(**fractions: float) -> xr.DataArray:
    """Some entrepreneurs for the standard, and ordinary agents against it."""
    return initial_composition(
        {("entrepreneur", "for"): fractions["leading"], ("ordinary", "against"): 1 - fractions["leading"]}
    )


# --- agents and behaviours ---


def test_the_ten_agents() -> None:
    """[003] Appendix A: preferences for (F) or against (A) no smoking indoors, quiet, tips."""
    expected = {
        "Isabella": "FFF", "Wolfgang": "AAF", "Tom": "FAA", "Tamara": "FFA", "Sam": "AAF", "Jennifer": "FAA",
        "Carlos": "AAA", "Bob": "FFA", "Abigail": "FFF", "Francisco": "FFF",
    }  # fmt: skip
    found = {a.name.split()[0]: "".join(a.prefers[b][0].upper() for b in BEHAVIOURS) for a in AGENTS}
    assert list(BEHAVIOURS) == ["smoking", "noise", "tipping"]
    assert found == expected
    assert {a.name.split()[0] for a in AGENTS if a.type == "entrepreneur"} == {"Bob", "Abigail", "Francisco"}
    assert [one.kind for one in BEHAVIOURS.values()] == ["injunctive", "injunctive", "descriptive"]
    assert all(len(agent.description) > 100 and "\n" not in agent.description for agent in AGENTS)


def test_start() -> None:
    fractions = starting_fractions("tipping")
    assert fractions == pytest.approx(
        {
            ("entrepreneur", "for"): 0.2,
            ("entrepreneur", "against"): 0.1,
            ("ordinary", "for"): 0.3,
            ("ordinary", "against"): 0.4,
        }
    )
    x = initial_composition(fractions)
    assert float(x.sel(state="entrepreneur/against/complying/against")) == 0.1
    assert float(x.sel(state="ordinary/for/none")) == 0.3
    assert int((x > 0).sum()) == 4


# --- operation probabilities ---


def test_tables_of_operations_may_be_in_any_order() -> None:
    good = default_operations()
    xr.testing.assert_identical(checked_operations(good), good)
    shuffled = good.isel(held=[2, 0, 3, 1], type=[1, 0]).transpose()
    xr.testing.assert_identical(checked_operations(shuffled), good)


# --- the model against an enumeration of what can happen in an encounter ---


def enumerated(p: Callable[..., float], kind: str, i: NormState, j: NormState) -> tuple[dict, Counter]:
    """{(i', j'): probability} of an encounter, branch by branch, and how often conflicts, thoughts and chats occur."""

    def willing(agent: NormState, standard: str) -> str:
        return "willing" if agent.preference == standard else "unwilling"

    def after(agent: NormState, standard: str, identify: float) -> list[tuple[NormState, float]]:
        holds = agent.level in ("qualified", "complying", "superseded")
        if holds and agent.standard == standard and agent.level != "superseded":
            return [(agent, 1.0)]
        held = "none" if not holds else "abstract" if agent.standard == standard else "opposed"
        check = p("consistent") * p("unique", held=held) * p("correct_type", kind=kind)
        check *= p("conflict_free", willing=willing(agent, standard), held=held)
        accepted = agent._replace(level="complying" if held == "abstract" else "qualified", standard=standard)
        refused = agent._replace(level="informed", standard=standard) if held == "none" else agent
        return [(accepted, identify * check), (refused, identify * (1 - check)), (agent, 1 - identify)]

    outcomes: dict = defaultdict(float)
    events: Counter = Counter()
    acts = {"complying": "comply_in_action", "superseded": "comply_abstract"}
    follows = p(acts[j.level], willing=willing(j, j.standard)) if j.level in acts else 0.0
    for shown, normative, chance in ((j.standard, True, follows), (j.preference, False, 1 - follows)):
        if chance == 0:
            continue
        conflict = 0.0
        if i.level in ("qualified", "complying", "superseded"):
            conflict = p("false_conflict") if i.standard == shown else p("detect_conflict", kind=kind)
            conflict *= p("detect_abstract") if i.level == "superseded" else 1
        talk = p("decide_to_talk", type=i.type, willing=willing(i, i.standard)) if conflict else 0.0
        chat = chance * conflict * talk
        events["conflicts"] += chance * conflict
        events["chats"] += chat
        reminded = "reminded" if (j.level, j.standard) == ("informed", i.standard) else "first"
        for target, q in after(j, i.standard, p("identify_chat", kind=kind, reminded=reminded)) if chat else ():
            outcomes[i, target] += chat * q
        held = "none" if i.level in ("none", "informed") else "same" if i.standard == shown else "opposed"
        held = "abstract" if held == "same" and i.level == "superseded" else held
        think = p("generate_thought", held=held)
        events["thoughts"] += (chance - chat) * think
        identify = p("identify_thought" if normative else "identify_habit", kind=kind)
        for target, q in after(i, shown, identify):
            outcomes[target, j] += (chance - chat) * think * q
        outcomes[i, j] += (chance - chat) * (1 - think)
    return outcomes, events


@pytest.mark.parametrize("behaviour", ["smoking", "tipping"])
def test_the_tensor_is_that_of_the_enumeration(behaviour: str) -> None:
    operations, eps, kind = random_table(3), 7.0, BEHAVIOURS[behaviour].kind
    p = cache(lambda name, **labels: float(operations[name].sel(labels)))
    happens = cache(lambda a, b: enumerated(p, kind, NORM_STATES[a], NORM_STATES[b]))
    model = reaction_model(operations, behaviour, NormRates(encounters_per_day=eps))
    P = model.tensor()
    np.testing.assert_allclose(P.sum(axis=(2, 3)), 1, atol=1e-12)
    drawn = np.random.default_rng(0).integers(len(LABELS), size=(120, 2))
    # of such halves i meets i, j meets j, and each the other
    seen = observables(model, np.eye(len(LABELS))[drawn].mean(1))
    for row, (i, j) in enumerate(drawn.tolist()):
        outcomes, events = happens(i, j)
        expected = np.zeros(P.shape[2:])
        for (first, second), chance in outcomes.items():
            expected[LABELS.index(first.label), LABELS.index(second.label)] += chance
        np.testing.assert_allclose(P[i, j], expected, atol=1e-12)
        total = sum((happens(*pair)[1] for pair in product((i, j), repeat=2)), Counter())
        for name in ("conflicts", "thoughts", "chats"):
            assert seen[name].values[row] == pytest.approx(eps * total[name] / 4, abs=1e-12)
        assert events["chats"] <= events["conflicts"]


def test_masses_are_conserved_by_type_and_preference() -> None:
    model = reaction_model(random_table(1), "noise")
    x = np.random.default_rng(1).dirichlet(np.ones(len(LABELS)))
    drift, masses = model.drift(x), defaultdict(float)
    for state, change in zip(NORM_STATES, drift, strict=True):
        masses[state.type, state.preference] += change
    assert max(map(abs, masses.values())) < 1e-12
    assert np.abs(drift).max() > 0.1
    groups = {(s.type, s.preference, int(c)) for s, c in zip(NORM_STATES, model.classes, strict=True)}
    assert len(groups) == 4
    assert model.n_classes == 4


# --- closed forms ---


def test_talk_alone_is_logistic() -> None:
    """With talk, identification and check certain, holders of A tell all others, who like and show the opposite."""
    eps, first = 4.0, 0.05
    found = course(operations(), mixture(leading=first), encounters_per_day=eps, plans_per_day=0, syntheses_per_day=0)
    A = first / (first + (1 - first) * np.exp(-eps * TIMES))
    followed = found.sel(standard="for")
    np.testing.assert_allclose(followed["accepted"], A, atol=1e-7)
    np.testing.assert_allclose(followed["complying"], first, atol=1e-12)
    # all but the leaders keep showing the opposite, so that every holder goes on talking to them
    np.testing.assert_allclose(found["chats"], eps * A * (1 - first), rtol=1e-7)
    np.testing.assert_allclose(found["conflicts"], found["chats"], rtol=1e-12)
    np.testing.assert_allclose(found["thoughts"], 0, atol=1e-12)


def test_reminders() -> None:
    """Only entrepreneurs talk: none → informed at λ p₁(1 - c), none → qualified at λ p₁ c, informed → at λ p₂ c."""
    eps, first, p1, p2, c = 20.0, 0.1, 0.3, 0.9, 0.25
    table = operations(decide_to_talk=[[1, 1], [0, 0]], identify_chat=[[p1, p2], [0, 0]], consistent=c)
    found = course(table, mixture(leading=first), encounters_per_day=eps, plans_per_day=0, syntheses_per_day=0)
    gone, going = (np.exp(-eps * first * rate * TIMES) for rate in (p1, p2 * c))
    none = (1 - first) * gone
    informed = (1 - first) * p1 * (1 - c) / (p2 * c - p1) * (gone - going)
    followed = found.sel(standard="for")
    np.testing.assert_allclose(followed["informed"], informed, atol=1e-7)
    np.testing.assert_allclose(followed["accepted"], 1 - none - informed, atol=1e-7)


def test_plans_and_synthesis() -> None:
    """Alone: accepted = exp(-σt), and 1 - complying = exp(-(k + σ)t)."""
    table = operations(comply_in_plan=0.4, abstract=0.3)
    start = only(NormState("ordinary", "for", "qualified", "for"))
    k, sigma = 2.0 * 0.4, 3.0 * 0.3
    limit = 350 - BEHAVIOURS["smoking"].utility
    for other, rate in ((limit, 0.0), (limit + 0.01, sigma)):
        found = course(
            table, start, plans_per_day=2.0, syntheses_per_day=3.0, other_utility_ordinary=other, encounters_per_day=1.0
        ).sel(standard="for")
        np.testing.assert_allclose(found["accepted"], np.exp(-rate * TIMES), atol=1e-7)
        np.testing.assert_allclose(1 - found["complying"], np.exp(-(k + rate) * TIMES), atol=1e-7)
        np.testing.assert_allclose(found["reached"], 1, atol=1e-12)


def test_the_standards_are_treated_alike() -> None:
    """Who prefers what, exchanged: the curves are exchanged too."""
    fractions = starting_fractions("tipping")
    swapped = {(t, {"for": "against", "against": "for"}[p]): value for (t, p), value in fractions.items()}
    one, other = (emergence(["tipping"], fractions=f) for f in (fractions, swapped))
    for name in ("accepted", "complying", "informed"):
        np.testing.assert_allclose(one[name].sel(standard="for"), other[name].sel(standard="against"), atol=1e-7)
    np.testing.assert_allclose(one["conflicts"], other["conflicts"], rtol=1e-6)


# --- findings of [003] Section 3.2 and Appendix D with the default set, each with a control that lacks it ---


@pytest.fixture(scope="module")
def curves() -> xr.Dataset:
    return emergence()


@pytest.fixture(scope="module")
def deaf() -> xr.Dataset:
    """Agents who find norms in habits only."""
    return emergence(operations=table(identify_chat=0, identify_thought=0))


def followed(curves: xr.Dataset) -> xr.Dataset:
    return emergence_measures(curves).sel(standard="for")


def test_all_norms_reach_everyone(curves: xr.Dataset, deaf: xr.Dataset) -> None:
    """After two days fewer than half of one agent in ten lacks a norm; not if agents find no norm in talk and sight."""
    assert (followed(curves)["reached_end"] > 0.95).all()
    assert (followed(curves)["complying_end"] > 0.7).all()
    assert (followed(deaf)["reached_end"] < 0.5).all()


def test_acceptance_comes_before_compliance(curves: xr.Dataset) -> None:
    """Over 70 % accept each norm in a quarter of a day, and comply with injunctive ones at about three quarters."""
    assert (followed(curves)["accepted_day"] < 0.25).all()
    assert (curves["accepted"].sel(standard="for", time=0.25) > 0.7).all()
    days = followed(curves).where(curves["kind"] == "injunctive", drop=True)
    assert ((days["complying_day"] > 0.55) & (days["complying_day"] < 0.9)).all()
    assert (curves["complying"].isel(time=-1).sel(standard="for", behaviour=["smoking", "noise"]) > 0.95).all()
    hasty = followed(emergence(["smoking"], rates=NormRates(plans_per_day=20)))
    assert (hasty["complying_day"] < 0.25).all()


def test_conflicts_surge_and_vanish(curves: xr.Dataset, deaf: xr.Dataset) -> None:
    """They double, and an eighth is left of injunctive ones; not if agents do half of the time as they please."""
    measures = followed(curves)
    assert (measures["conflicts_surge"] > 2).all()
    assert (measures["conflicts_left"].sel(behaviour=["smoking", "noise"]) < 0.125).all()
    assert measures["conflicts_left"].sel(behaviour="tipping") < 0.5
    chats = curves["chats"]
    assert (chats.isel(time=-1) < 0.5 * chats.max("time")).all()
    assert (curves["thoughts"].isel(time=-1) < 0.5 * curves["thoughts"].isel(time=0)).all()
    wilful = followed(emergence(["smoking"], operations=table(comply_in_action=0.5)))
    assert (wilful["conflicts_left"] > 0.125).all()
    assert (followed(deaf)["conflicts_surge"] < 2).all()


def test_entrepreneurs_decide_about_the_evenly_split_norm(curves: xr.Dataset) -> None:
    """Two of three make it emerge, none leaves a draw, and one of three makes the opposite norm emerge."""
    none = emergence(["tipping"], agents=ordinary(AGENTS))
    np.testing.assert_allclose(
        none["accepted"].sel(standard="for"), none["accepted"].sel(standard="against"), atol=1e-7
    )
    assert (none["reached"].max() < 0.51) and (none["complying"].max() < 0.2)
    assert followed(curves)["reached_end"].sel(behaviour="tipping") > 0.95
    one_of_three = {
        ("entrepreneur", "for"): 0.1,
        ("entrepreneur", "against"): 0.2,
        ("ordinary", "for"): 0.4,
        ("ordinary", "against"): 0.3,
    }
    ends = emergence_measures(emergence(["tipping"], fractions=one_of_three))["reached_end"].squeeze()
    assert float(ends.sel(standard="against")) > 0.95
    assert float(ends.sel(standard="for")) < 0.05


def test_synthesis_makes_dips_in_the_accepted_share(curves: xr.Dataset) -> None:
    """And the share recovers; without synthesis it never falls."""
    accepted = curves["accepted"].sel(standard="for", behaviour=["smoking", "noise"])
    assert (followed(curves)["dip"].sel(behaviour=["smoking", "noise"]) > 0.02).all()
    later = accepted.where(accepted["time"] > 0.4)
    assert (accepted.isel(time=-1) - later.min("time") > 0.01).all()
    without = followed(emergence(rates=NormRates(syntheses_per_day=0)))
    assert (without["dip"] < 1e-6).all()


# --- measures and their derivatives ---


def test_measures_of_known_curves() -> None:
    time = np.array([0.0, 1.0, 2.0, 3.0])
    share = xr.DataArray([[0.1, 0.5, 0.9, 0.8], [0.0, 0.1, 0.2, 0.3]], dims=("standard", "time"), coords={"time": time})
    shares = {name: share for name in ("accepted", "complying", "reached")}
    made_up = xr.Dataset({**shares, "conflicts": ("time", [2.0, 6.0, 3.0, 1.5])}).assign_coords(
        standard=["for", "against"]
    )
    found = emergence_measures(made_up, level=0.7)
    np.testing.assert_allclose(found["accepted_day"], [1.5, np.nan])
    np.testing.assert_allclose(found["dip"], [0.1, 0], atol=1e-12)
    np.testing.assert_allclose(found["reached_end"], [0.8, 0.3])
    assert (float(found["conflicts_surge"]), float(found["conflicts_left"])) == (3, 0.25)
    assert float(emergence_measures(made_up, level=0.1)["accepted_day"][0]) == 0


def test_curves_are_saved_and_loaded(curves: xr.Dataset, tmp_path) -> None:
    meanfield.save(curves, tmp_path / "curves.nc")
    xr.testing.assert_allclose(meanfield.load(tmp_path / "curves.nc"), curves)
    other = emergence(["smoking"], operations=table(abstract=0.5), times=np.linspace(0, 2, 9))
    made_of = [one["made_of"].sel(behaviour="smoking").item() for one in (curves, other)]
    assert made_of[0] != made_of[1]
    assert "complying/for 0.3, ordinary/for/none 0.4, ordinary/against/none 0.3, encounters_per_day 160" in made_of[0]


DOCUMENT = ROOT / "docs" / "results" / "norms.md"


def test_the_document_has_the_numbers_of_the_model(curves: xr.Dataset) -> None:
    measures = emergence_measures(curves).sel(standard="for")
    rows = {
        "70 % accept it on day": "accepted_day",
        "70 % comply on day": "complying_day",
        "share that it reached, day 2": "reached_end",
        "share that complies, day 2": "complying_end",
        "largest fall of the accepted share": "dip",
        "conflicts at most, over those at the start": "conflicts_surge",
        "conflicts on day 2, over the most": "conflicts_left",
    }
    cells = [line.strip("|").split("|") for line in DOCUMENT.read_text().splitlines() if line.count("|") == 5]
    table = {first.strip(): [cell.strip() for cell in rest] for first, *rest in cells}
    for label, name in rows.items():
        for printed, value in zip(table[label], measures[name].values, strict=True):
            assert printed == f"{value:.{len(printed) - 2}f}", label


ALL = default_operations()
BOTH = {("ordinary", "for"): 1.1, ("ordinary", "against"): -0.1}
NOISE = BEHAVIOURS["noise"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda utility=utility: PersonalNorm("Tip.", utility, "injunctive"), "utility = .*number from 1 to 100")
            for utility in (0, 0.99, 100.01, -1, float("nan"), True, "80", None)
        ),
        (lambda: PersonalNorm("  ", 80, "injunctive"), "content"),
        (lambda: PersonalNorm("Tip.", 80, "moral"), "kind = 'moral'"),
        (lambda: PersonalNorm("Tip.", 80, "descriptive", "valid"), "state = 'valid'"),
        (lambda: NormAgent("Ann", "leader", "", {}), "type = 'leader'"),
        (lambda: NormAgent("Ann", "ordinary", "", {"noise": "F"}), r"prefers\['noise'\] of Ann = 'F'"),
        (lambda: NormAgent(" ", "ordinary", "", {}), "name = ' '"),
        (lambda: NormAgent("Al", "ordinary", None, {}), "description = None of Al"),
        (lambda: NormAgent("Al", "ordinary", "", ["for"]), r"prefers = \['for'\] of Al"),
        (lambda: NOISE.norm("maybe"), "standard = 'maybe'"),
        (lambda: replace(NOISE, utility=101), "utility = 101"),
        (lambda: Behaviour("", "injunctive", 5, TEXTS, TEXTS), "name = ''"),
        (lambda: Behaviour("x", "injunctive", 5, {"for": "a", "against": "a"}, TEXTS), "expected different texts"),
        (lambda: Behaviour("x", "injunctive", 5, TEXTS, TEXTS, "("), r"mentions of x = '\('"),
        (lambda: initial_composition({("ordinary", "for"): 0.9}), "sum to"),
        (lambda: initial_composition(BOTH), "from 0 to 1"),
        (lambda: initial_composition({("citizen", "for"): 1.0}), "fractions have"),
        (lambda: starting_fractions("noise", [NormAgent("Ann", "ordinary", "", {})]), "Ann prefers nothing in 'noise'"),
        (lambda: checked_operations(ALL.drop_vars("abstract")), "lack 'abstract'"),
        (lambda: checked_operations(ALL.assign(smile=0.5)), "unknown 'smile'"),
        *(
            (lambda value=value: checked_operations(table(ALL, abstract=value)), r"\['abstract'\] has the value")
            for value in (-0.01, 1.01, np.nan)
        ),
        (lambda: checked_operations(ALL.assign(correct_type=0.5)), r"\['correct_type'\] has dims"),
        (lambda: checked_operations(ALL.assign_coords(held=["none", "same", "opposed", "x"])), "labels .* along held"),
        (lambda: NormRates(encounters_per_day=0.0), "encounters_per_day"),
        (lambda: NormRates(plans_per_day=-1.0), "plans_per_day"),
        (lambda: NormRates(threshold=float("nan")), "threshold"),
        (lambda: NormRates().synthesises("Entrepreneur", 30), "type = 'Entrepreneur'"),
        (lambda: reaction_model(ALL, "queueing"), "behaviour = 'queueing'"),
        (lambda: emergence("smoking"), "behaviours = 'smoking': expected a list of names"),
        (lambda: emergence(["noise", "noise"]), "behaviours = "),
        (lambda: emergence(agents=["Bob"]), "expected one or more NormAgents"),
        (lambda: emergence(agents=AGENTS[:2] * 2), "expected different names"),
        (lambda: emergence(agents=AGENTS[:5], fractions={("ordinary", "for"): 1.0}), "agents and fractions"),
        (lambda: emergence(fractions=[0.5, 0.5]), r"fractions = \[0.5, 0.5\]: expected"),
        (lambda: emergence(rates={"plans_per_day": 1}), "expected NormRates"),
        (lambda: emergence(times="soon"), "times = 'soon': expected numbers"),
        (lambda: emergence(operations=ALL.assign(abstract=xr.DataArray("x"))), "expected numbers"),
        (lambda: emergence_measures(None), "curves is a NoneType"),
        (lambda: emergence_measures(emergence(["noise"]), level=1), "level = 1"),
        (lambda: emergence_measures(emergence(["noise"]).isel(time=0)), "expected time"),
        (lambda: observables(3, np.zeros(36)), "model is a int"),
        (
            lambda: observables(meanfield.ReactionModel(["a"], [[0.5]], [[0.5]]), np.ones(1)),
            "model is a ReactionModel: expected the result of",
        ),
        (lambda: observables(reaction_model(ALL, "noise"), np.ones(35) / 35), "expected 36 along state"),
        (lambda: observables(reaction_model(ALL, "noise"), np.ones(36)), "does not sum to 1"),
        (
            lambda: emergence_measures(
                observables(reaction_model(ALL, "noise"), np.ones((3, 36)) / 36).rename(dim_0="time")
            ),
            "expected time in both",
        ),
    ],
)
def test_arguments_that_cannot_be_are_named(unchecked_types, call, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_former_names_warn() -> None:
    with pytest.warns(DeprecationWarning, match="as_ordinary.* use "):
        assert {agent.type for agent in norms.as_ordinary(AGENTS)} == {"ordinary"}
    for name, match in (
        ("behaviour_of", "use BEHAVIOURS"),
        ("STANDARDS", "goes"),
        ("starting_fractions", "use initial"),
    ):
        with pytest.warns(DeprecationWarning, match=f"{name}.*{match}"):
            assert getattr(norms, name)
    with pytest.warns(DeprecationWarning, match="validate_operations"):
        xr.testing.assert_identical(norms.validate_operations(ALL), ALL)
    with pytest.warns(DeprecationWarning, match=r"use meanfield.fixed_points\(reaction_model"):
        assert norms.fixed_points("smoking", starts=1)["reached"].sel(standard="for").item() == pytest.approx(
            1, abs=1e-3
        )


@pytest.mark.slow
def test_former_analyses_find_what_they_found() -> None:
    with pytest.warns(DeprecationWarning, match="entrepreneur_threshold"):
        found = norms.entrepreneur_threshold("smoking", opposing=0.2, times=[2.0])
    assert found["threshold"].item() == pytest.approx(0.193, abs=1e-3)
    with pytest.warns(DeprecationWarning, match="sensitivity"):
        effect = norms.sensitivity(["smoking"], names=["comply_in_plan"]).isel(behaviour=0)
    assert effect["complying_day"].to_series().round(1).to_dict() == {
        "comply_in_plan[willing]": -0.2,
        "comply_in_plan[unwilling]": -0.2,
    }
