"""Norms of [003]: agents, operations; the reaction model against closed forms, an enumeration and the findings."""

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
from _norm_societies import DAYS, emergence, first_day, ordinary, random_table, table
from _paths import ROOT
from meanfield import InputError
from theory.norms import (
    AGENTS,
    BEHAVIOURS,
    Behaviour,
    NormAgent,
    NormRates,
    default_operations,
    initial_composition,
    observables,
    reaction_model,
)
from theory.norms._operations import OPERATIONS, checked_operations
from theory.norms._states import LABELS, NORM_STATES, NormState, starting_fractions

TEXTS = {"for": "a", "against": "b"}
TIMES = np.linspace(0, 2, 41)


def operations(**changes) -> xr.Dataset:
    """Operations that never fail and never err, without thoughts, but for changes."""
    return table(**(dict.fromkeys(OPERATIONS, 1.0) | {"false_conflict": 0, "generate_thought": 0} | changes))


def trajectory(table: xr.Dataset, start: xr.DataArray | np.ndarray, **rates) -> xr.Dataset:
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
    x = initial_composition("tipping").to_series()
    assert x[x > 0].to_dict() == pytest.approx(
        {
            "entrepreneur/for/complying/for": 0.2,
            "entrepreneur/against/complying/against": 0.1,
            "ordinary/for/none": 0.3,
            "ordinary/against/none": 0.4,
        }
    )


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
    found = trajectory(
        operations(), mixture(leading=first), encounters_per_day=eps, plans_per_day=0, syntheses_per_day=0
    )
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
    found = trajectory(table, mixture(leading=first), encounters_per_day=eps, plans_per_day=0, syntheses_per_day=0)
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
        found = trajectory(
            table, start, plans_per_day=2.0, syntheses_per_day=3.0, other_utility_ordinary=other, encounters_per_day=1.0
        ).sel(standard="for")
        np.testing.assert_allclose(found["accepted"], np.exp(-rate * TIMES), atol=1e-7)
        np.testing.assert_allclose(1 - found["complying"], np.exp(-(k + rate) * TIMES), atol=1e-7)
        np.testing.assert_allclose(found["reached"], 1, atol=1e-12)


def test_the_standards_are_treated_alike() -> None:
    """Who prefers what, exchanged: the curves are exchanged too."""
    fractions = starting_fractions("tipping")
    swapped = {(t, {"for": "against", "against": "for"}[p]): value for (t, p), value in fractions.items()}
    one, other = (emergence(["tipping"], start=f) for f in (fractions, swapped))
    for name in ("accepted", "complying", "informed"):
        np.testing.assert_allclose(one[name].sel(standard="for"), other[name].sel(standard="against"), atol=1e-7)
    np.testing.assert_allclose(one["conflicts"], other["conflicts"], rtol=1e-6)


# --- findings of [003] Section 3.2 and Appendix D with the default set, each with a control that lacks it ---

INJUNCTIVE = ["smoking", "noise"]


def followed(curves: xr.Dataset) -> xr.Dataset:
    return curves.sel(standard="for", drop=True)


def dip(curves: xr.Dataset) -> xr.DataArray:
    accepted = followed(curves)["accepted"].transpose("behaviour", "time")
    return (accepted.copy(data=np.maximum.accumulate(accepted.values, axis=1)) - accepted).max("time")


@pytest.fixture(scope="module")
def curves() -> xr.Dataset:
    return emergence()


@pytest.fixture(scope="module")
def deaf() -> xr.Dataset:
    """Agents who find norms in habits only."""
    return emergence(operations=table(identify_chat=0, identify_thought=0))


def test_all_norms_reach_everyone_and_are_accepted_before_they_are_complied_with(curves, deaf) -> None:
    """After two days fewer than half of one agent in ten lacks a norm; not if agents find no norm in talk and sight.

    Over 70 % accept each norm in a quarter of a day, and comply with injunctive ones at about three quarters.
    """
    end = followed(curves).isel(time=-1)
    assert (end["reached"] > 0.95).all() and (end["complying"] > 0.7).all()
    assert (end["complying"].sel(behaviour=INJUNCTIVE) > 0.95).all()
    assert (followed(deaf)["reached"].isel(time=-1) < 0.5).all()
    assert (first_day(followed(curves)["accepted"]) < 0.25).all()
    days = first_day(followed(curves)["complying"]).sel(behaviour=INJUNCTIVE)
    assert ((days > 0.55) & (days < 0.9)).all()
    hasty = followed(emergence(["smoking"], rates=NormRates(plans_per_day=20)))
    assert (first_day(hasty["complying"]) < 0.25).all()


def test_conflicts_surge_and_vanish(curves: xr.Dataset, deaf: xr.Dataset) -> None:
    """They double, and an eighth is left of injunctive ones; not if agents do half of the time as they please."""

    def surge(of: xr.Dataset) -> xr.DataArray:
        return of["conflicts"].max("time") / of["conflicts"].isel(time=0)

    def left(of: xr.Dataset) -> xr.DataArray:
        return of["conflicts"].isel(time=-1) / of["conflicts"].max("time")

    assert (surge(curves) > 2).all() and (surge(deaf) < 2).all()
    assert (left(curves).sel(behaviour=INJUNCTIVE) < 0.125).all() and left(curves).sel(behaviour="tipping") < 0.5
    assert (curves["chats"].isel(time=-1) < 0.5 * curves["chats"].max("time")).all()
    assert (curves["thoughts"].isel(time=-1) < 0.5 * curves["thoughts"].isel(time=0)).all()
    assert (left(emergence(["smoking"], table(comply_in_action=0.5))) > 0.125).all()


def test_entrepreneurs_decide_about_the_evenly_split_norm(curves: xr.Dataset) -> None:
    """Two of three make it emerge, none leaves a draw, and one of three makes the opposite norm emerge."""
    none = emergence(["tipping"], agents=ordinary(AGENTS))
    accepted = none["accepted"]
    np.testing.assert_allclose(accepted.sel(standard="for"), accepted.sel(standard="against"), atol=1e-7)
    assert (none["reached"].max() < 0.51) and (none["complying"].max() < 0.2)
    assert followed(curves)["reached"].isel(time=-1).sel(behaviour="tipping") > 0.95
    one_of_three = starting_fractions("tipping") | {("entrepreneur", "for"): 0.1, ("entrepreneur", "against"): 0.2}
    one_of_three |= {("ordinary", "for"): 0.4, ("ordinary", "against"): 0.3}
    ends = emergence(["tipping"], start=one_of_three)["reached"].isel(time=-1, behaviour=0)
    assert ends.sel(standard="against") > 0.95 and ends.sel(standard="for") < 0.05


def test_synthesis_makes_dips_in_the_accepted_share(curves: xr.Dataset) -> None:
    """And the share recovers; without synthesis it never falls."""
    accepted = followed(curves)["accepted"].sel(behaviour=INJUNCTIVE)
    assert (dip(curves).sel(behaviour=INJUNCTIVE) > 0.02).all()
    later = accepted.where(accepted["time"] > 0.4)
    assert (accepted.isel(time=-1) - later.min("time") > 0.01).all()
    assert (dip(emergence(rates=NormRates(syntheses_per_day=0))) < 1e-6).all()


DOCUMENT = ROOT / "docs" / "results" / "norms.md"


def test_the_document_has_the_numbers_of_the_model(curves: xr.Dataset) -> None:
    found, conflicts = followed(curves), curves["conflicts"]

    def day(name: str) -> list[float]:
        """Between two saved times, by linear interpolation; the shares grow until they reach 70 %."""
        shares = found[name].transpose("behaviour", "time").values
        return [float(np.interp(0.7, share[: share.argmax()], DAYS[: share.argmax()])) for share in shares]

    rows = {
        "70 % accept it on day": day("accepted"),
        "70 % comply on day": day("complying"),
        "share that it reached, day 2": found["reached"].isel(time=-1).values,
        "share that complies, day 2": found["complying"].isel(time=-1).values,
        "largest fall of the accepted share": dip(curves).values,
        "conflicts at most, over those at the start": (conflicts.max("time") / conflicts.isel(time=0)).values,
        "conflicts on day 2, over the most": (conflicts.isel(time=-1) / conflicts.max("time")).values,
    }
    cells = [line.strip("|").split("|") for line in DOCUMENT.read_text().splitlines() if line.count("|") == 5]
    table = {first.strip(): [cell.strip() for cell in rest] for first, *rest in cells}
    for label, values in rows.items():
        for printed, value in zip(table[label], values, strict=True):
            assert printed == f"{value:.{len(printed) - 2}f}", label


ALL = default_operations()
NOISE = BEHAVIOURS["noise"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NormAgent("Ann", "ordinary", "", {"noise": "F"}), r"prefers\['noise'\] of Ann = 'F'"),
        (lambda: NormAgent(" ", "ordinary", "", {}), "name = ' '"),
        (lambda: NormAgent("Al", "ordinary", None, {}), "description = None of Al"),
        (lambda: NormAgent("Al", "ordinary", "", ["for"]), r"prefers = \['for'\] of Al"),
        (lambda: replace(NOISE, utility=0.99), "utility of 'noise' = .*expected a number from 1"),
        (lambda: Behaviour("x", "moral", 5, TEXTS, TEXTS), "kind = 'moral'"),
        (lambda: Behaviour("x", "injunctive", 5, {"for": "a", "against": "a"}, TEXTS), "expected different texts"),
        (lambda: Behaviour("x", "injunctive", 5, TEXTS, TEXTS, "("), r"mentions of x = '\('"),
        (lambda: initial_composition({("ordinary", "for"): 0.9}), "sum to"),
        (lambda: initial_composition({("citizen", "for"): 1.0}), "fractions have"),
        (lambda: initial_composition("noise", ["Bob"]), "expected one or more NormAgents"),
        (lambda: initial_composition("noise", AGENTS[:2] * 2), "expected different names"),
        (lambda: initial_composition([0.5, 0.5]), r"fractions = \[0.5, 0.5\]: expected"),
        (
            lambda: initial_composition("noise", [NormAgent("Ann", "ordinary", "", {})]),
            "Ann prefers nothing in 'noise'",
        ),
        (lambda: reaction_model(3, "noise"), "operations is a int"),
        (lambda: reaction_model(ALL.drop_vars("abstract"), "noise"), "lack 'abstract'"),
        (lambda: reaction_model(ALL.assign(smile=0.5), "noise"), "unknown 'smile'"),
        (lambda: reaction_model(table(ALL, abstract=1.01), "noise"), r"\['abstract'\] has the value"),
        (lambda: reaction_model(ALL.assign(correct_type=0.5), "noise"), r"\['correct_type'\] has dims"),
        (lambda: reaction_model(ALL, "queueing"), "behaviour = 'queueing'"),
        (lambda: reaction_model(ALL, "noise", {"plans_per_day": 1}), "expected NormRates"),
        (lambda: NormRates(encounters_per_day=0.0), "encounters_per_day"),
        (lambda: observables(3, np.zeros(36)), "model is a int: expected the result of"),
        (lambda: observables(reaction_model(ALL, "noise"), np.ones(36)), "misses a sum of 1 by 35"),
        (lambda: observables(reaction_model(ALL, "noise"), xr.DataArray([0.5, 0.5], dims="x")), "expected state"),
    ],
)
def test_arguments_that_cannot_be_are_named(unchecked_types, call, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
