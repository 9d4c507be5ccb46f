"""The society of agents with norm databases: its law against the reaction model's, its databases, its log.

The law of every single event is enumerated, not sampled. Error budget of what is sampled: a true statement is accepted
with probability 1 - 1e-5 or more for an arbitrary seed, in fewer than 30 comparisons; each criterion has a control that
it must reject.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import UserList, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2_contingency, chisquare

import meanfield
from meanfield import InputError, ReactionModel, UnparsedError
from theory.norms import (
    AGENTS,
    BEHAVIOURS,
    CHANNELS,
    NORM_STATES,
    OPERATIONS,
    NormAgent,
    NormRates,
    NormState,
    as_ordinary,
    default_operations,
    norm_fractions,
    norm_model,
    norm_start,
)
from theory.norms._contract import Action, Plan
from validation._norm_society import Streams, play_event, simulate_society
from validation._norm_society_events import Event, Rules
from validation._norm_society_filing import file_norm
from validation._norm_society_json import plain
from validation._norm_society_member import OPPOSITE, Member
from validation._protocol import simulate_protocol
from validation._table_operations import TableOperations

ALPHA = 1e-5
LABELS = [state.label for state in NORM_STATES]
K = len(LABELS)
SMOKING, NOISE, _ = BEHAVIOURS.values()
ASKED = (
    "create", "detect_conflict", "decide_to_talk", "talk", "think", "identify", "is_consistent", "is_unique",
    "is_type_right", "is_conflict_free", "plan", "act", "classify", "abstract",
)  # fmt: skip


def table(base: xr.Dataset | None = None, **changes: Any) -> xr.Dataset:
    changed = (default_operations() if base is None else base).copy(deep=True)
    for name, value in changes.items():
        changed[name] = changed[name].dims, np.broadcast_to(np.asarray(value, float), changed[name].shape).copy()
    return changed


def random_table(seed: int) -> xr.Dataset:
    rng, base = np.random.default_rng(seed), default_operations()
    return table(base, **{name: rng.uniform(0.05, 0.95, base[name].shape) for name in OPERATIONS})


def rules_of(operations: TableOperations) -> Rules:
    return Rules(operations, operations.behaviours, operations.rates, 5, "raise")


# --- members in given states, and all that may become of them ---


def member_at(states: dict[str, NormState], operations: TableOperations, name: str = "Ann") -> Member:
    """One who is in such a state for each of the behaviours; `type` is that of the last."""
    kind = list(states.values())[-1].type
    member = Member(NormAgent(name, kind, "", {b: state.preference for b, state in states.items()}))
    for behaviour, state in states.items():
        if state.level == "none":
            continue
        norm, about = BEHAVIOURS[behaviour].norm(state.standard), ((behaviour, state.standard),)
        before = OPPOSITE[state.standard]  # what it has heard earlier must not matter
        member = member.told_of(BEHAVIOURS[behaviour].norm(before), ((behaviour, before),))
        if state.level == "informed":
            member = member.told_of(norm, about)
            continue
        member = member.accepts(norm, about)
        if state.level == "complying":
            member = member.plans_by(Plan("", frozenset({norm.content})))
        if state.level == "superseded":
            content, kind, weights = operations.abstract(member.agent, "", (norm,), np.random.default_rng())
            member = member.generalises([norm.content], content, kind, weights)
    return member


def state_of(member: Member, behaviour: str) -> NormState:
    start = NormState(member.agent.type, member.agent.prefers[behaviour])
    held = {standard: level for (about, standard), level in member.held.items() if about == behaviour}
    assert len(held) <= 1
    for standard, level in held.items():
        return start.at(level, standard)
    told = member.informed_last.get(behaviour)
    return start.at("informed", told) if told else start


class Branches:
    """In place of a random generator: goes through all outcomes of `random() < p`, with their probabilities."""

    def __init__(self) -> None:
        self.chosen: list[bool] = []

    def all(self, play: Callable[[Branches], Event]) -> Iterator[tuple[float, Event]]:
        while True:
            self.place, self.weight = 0, 1.0
            event = play(self)
            yield self.weight, event
            while self.chosen and not self.chosen[-1]:
                self.chosen.pop()
            if not self.chosen:
                return
            self.chosen[-1] = False

    def random(self) -> Branches:
        return self

    def __lt__(self, chance: float) -> bool:
        if chance in (0, 1):
            return bool(chance)
        if self.place == len(self.chosen):
            self.chosen.append(True)
        outcome = self.chosen[self.place]
        self.place += 1
        self.weight *= chance if outcome else 1 - chance
        return outcome


def states_after(members: list[Member], event: Event, behaviour: str) -> tuple[int, ...]:
    after = [event.changed.get(number, member) for number, member in enumerate(members)]
    return tuple(LABELS.index(state_of(member, behaviour).label) for member in after)


@pytest.mark.parametrize(("behaviour", "every"), [("smoking", 1), ("tipping", 5)])
def test_an_encounter_has_the_law_of_the_model(behaviour: str, every: int) -> None:
    """All outcomes of all pairs of states, or a fifth, and how often there are conflicts, thoughts and chats."""
    operations = TableOperations(random_table(1), [behaviour])
    rules, about = rules_of(operations), BEHAVIOURS[behaviour]
    model = norm_model(random_table(1), behaviour)
    P = model.tensor()
    kinds = {
        "conflict": ("chat", "conflict thought", "conflict"),
        "thought": ("thought", "conflict thought"),
        "chat": ("chat",),
    }
    expected = {
        name: np.einsum(
            "mi,mj->ij", *(rows[[c.event in events for c in CHANNELS]] for rows in (model.alpha, model.beta))
        )
        for name, events in kinds.items()
    }
    for i, j in list(np.ndindex(K, K))[::every]:
        members = [member_at({behaviour: NORM_STATES[k]}, operations) for k in (i, j)]
        law, seen = np.zeros((K, K)), dict.fromkeys(kinds, 0.0)
        for weight, event in Branches().all(lambda rng, m=members: rules.encounter(m, 0, 1, about, rng)):  # type: ignore[misc]
            law[states_after(members, event, behaviour)] += weight
            for name in event.seen:
                seen[name] += weight
        assert np.abs(law - P[i, j]).max() < 1e-12
        assert all(abs(seen[name] - expected[name][i, j]) < 1e-12 for name in kinds)


def spontaneous(behaviour: str, rates: NormRates) -> np.ndarray:
    """Rates of moves alone in the society."""
    operations = TableOperations(random_table(2), [behaviour], rates)
    rules, S = rules_of(operations), np.zeros((K, K))
    for k, state in enumerate(NORM_STATES):
        members = [member_at({behaviour: state}, operations)]
        for happens, per_day in ((rules.plan, rates.plans_per_day), (rules.synthesis, rates.syntheses_per_day)):
            for weight, event in Branches().all(lambda rng, m=members, f=happens: f(m, 0, rng)):  # type: ignore[misc]
                (after,) = states_after(members, event, behaviour)
                S[k, after] += per_day * weight
    np.fill_diagonal(S, 0)
    return S


@pytest.mark.parametrize("behaviour", ["smoking", "tipping"])
def test_plans_and_syntheses_have_the_rates_of_the_model(behaviour: str) -> None:
    for rates in (NormRates(plans_per_day=3, syntheses_per_day=2), NormRates(threshold=420)):
        expected = norm_model(random_table(2), behaviour, rates).spontaneous.toarray()
        np.testing.assert_allclose(spontaneous(behaviour, rates), expected, atol=1e-12)
    assert (
        norm_model(random_table(2), "tipping").spontaneous.sum()
        < norm_model(random_table(2), "smoking").spontaneous.sum()
    )


def test_several_behaviours_are_independent_but_for_the_threshold() -> None:
    """In an encounter nothing changes in another behaviour, and what happens does not depend on it."""
    operations = TableOperations(random_table(3))
    rules, P = rules_of(operations), norm_model(random_table(3), "noise").tensor()
    rng = np.random.default_rng(0)
    for _ in range(60):
        i, j = rng.integers(K, size=2)
        kinds = [NORM_STATES[i].type, NORM_STATES[j].type]
        others = [{b: NORM_STATES[rng.integers(K)]._replace(type=kind) for b in BEHAVIOURS} for kind in kinds]
        pair = [{**other, "noise": NORM_STATES[k]} for other, k in zip(others, (i, j), strict=True)]
        members = [member_at(states, operations) for states in pair]
        law = np.zeros((K, K))
        for weight, event in Branches().all(lambda rng, m=members: rules.encounter(m, 0, 1, NOISE, rng)):  # type: ignore[misc]
            law[states_after(members, event, "noise")] += weight
            for behaviour in ("smoking", "tipping"):
                expected = tuple(LABELS.index(states[behaviour].label) for states in pair)
                assert states_after(members, event, behaviour) == expected
        np.testing.assert_allclose(law, P[i, j], atol=1e-12)


def test_utilities_of_all_behaviours_count_for_synthesis() -> None:
    """100 outside and 95 + 85 are too few; 80 more are enough, and then each norm is generalised independently."""
    rates = NormRates(other_utility_ordinary=100)
    operations = TableOperations(table(abstract=0.6), rates=rates)
    rules = rules_of(operations)
    held = NormState("ordinary", "for").at("complying", "for")
    none = NormState("ordinary", "for")
    few = member_at({"smoking": held, "noise": held, "tipping": none}, operations)
    assert few.database.total_utility == 180
    assert not any(event.changed for _, event in Branches().all(lambda rng: rules.synthesis([few], 0, rng)))  # type: ignore[misc]
    enough = member_at({"smoking": held, "noise": held, "tipping": held}, operations)
    law: dict = defaultdict(float)
    for weight, event in Branches().all(lambda rng: rules.synthesis([enough], 0, rng)):  # type: ignore[misc]
        after = event.changed.get(0, enough)
        law[tuple(state_of(after, b).level for b in BEHAVIOURS)] += weight
    assert len(law) == 8
    for levels, weight in law.items():
        assert weight == pytest.approx(np.prod([0.6 if level == "superseded" else 0.4 for level in levels]))


# --- whole runs ---

FAST = NormRates(encounters_per_day=20.0, plans_per_day=6.0, syntheses_per_day=4.0)


def protocol_of(model: ReactionModel, rates: NormRates) -> np.ndarray:
    """The model, interaction by interaction, with the frequencies of events in the society."""
    alone = rates.plans_per_day + rates.syntheses_per_day
    S = model.spontaneous.toarray()
    moved = np.einsum("ik,jl->ijkl", (S + np.diag(alone - S.sum(1))) / alone, np.eye(K))
    return (rates.encounters_per_day * model.tensor() + alone * moved) / (rates.encounters_per_day + alone)


def homogeneous(first: np.ndarray, second: np.ndarray) -> float:
    """p that two samples of small whole numbers are from one law, rare values taken together."""
    counts = np.array([np.bincount(sample, minlength=11) for sample in (first, second)])
    order = np.argsort(-counts.sum(0))
    rare = counts.sum(0)[order] < 20
    merged = np.column_stack([counts[:, order[~rare]], counts[:, order[rare]].sum(1)])
    merged = merged[:, merged.sum(0) > 0]
    return chi2_contingency(merged).pvalue if merged.shape[1] > 1 else 1.0


def society_counts(operations: xr.Dataset, rounds: tuple[int, ...], runs: int) -> dict[str, np.ndarray]:
    decide = TableOperations(operations, ["tipping"], FAST)
    counts = defaultdict(list)
    for seed in range(runs):
        # as many encounters as events are asked for, so that it never ends before
        run = simulate_society(decide, AGENTS, ["tipping"], encounters=10 * max(rounds), seed=seed)
        for name in ("accepted", "complying", "reached", "informed"):
            shares = run[name].values[[10 * one for one in rounds], 0]
            counts[name].append((10 * shares).round().astype(int))
    return {name: np.array(values) for name, values in counts.items()}


@pytest.fixture(scope="module")
def tipping() -> dict[str, np.ndarray]:
    return society_counts(default_operations(), (4, 20), 300)


def test_whole_runs_have_the_law_of_the_model(tipping: dict[str, np.ndarray]) -> None:
    """Numbers of agents after 40 and 200 events of ten agents; not of a model with another operation."""

    def by_protocol(operations: xr.Dataset) -> dict[str, np.ndarray]:
        protocol = protocol_of(norm_model(operations, "tipping", FAST), FAST)
        start = (10 * norm_start(norm_fractions("tipping")).values).round().astype(int)
        runs = simulate_protocol(protocol, start, runs=4000, seed=1, max_rounds=20, record_rounds=20)
        count = runs["count"].sel(round=[4, 20]).values
        levels = {
            "accepted": ("qualified", "complying"),
            "complying": ("complying", "superseded"),
            "reached": ("qualified", "complying", "superseded"),
            "informed": ("informed",),
        }
        member = {
            name: np.array(
                [[s.standard == standard and s.level in of for standard in ("for", "against")] for s in NORM_STATES]
            )
            for name, of in levels.items()
        }
        return {name: np.einsum("rts,sk->rtk", count, belongs.astype(int)) for name, belongs in member.items()}

    expected = by_protocol(default_operations())
    for name, counts in tipping.items():
        for place in np.ndindex(counts.shape[1:]):
            assert homogeneous(counts[:, *place], expected[name][:, *place]) > ALPHA, (name, place)
    other = by_protocol(table(identify_chat=[[0.6, 0.85], [0.2, 0.3]], identify_thought=0.2))
    for name in ("accepted", "complying", "reached"):
        assert homogeneous(tipping[name][:, 1, 0], other[name][:, 1, 0]) < ALPHA
    lazy = by_protocol(table(comply_in_plan=0.4))
    assert homogeneous(tipping["complying"][:, 1, 0], lazy["complying"][:, 1, 0]) < ALPHA


def test_events_and_pairs_come_as_often_as_they_should(tmp_path: Path) -> None:
    log, rates = tmp_path / "log", NormRates(encounters_per_day=5, plans_per_day=7, syntheses_per_day=4)
    simulate_society(TableOperations(rates=rates), AGENTS[:4], encounters=4000, seed=3, log=log)
    lines = [json.loads(line) for line in log.read_text().splitlines()[2:]]
    what = np.array([line["what"] for line in lines])
    observed = np.array([(what == name).sum() for name in ("encounter", "plan", "synthesis")])
    assert chisquare(observed, np.array([15, 7, 4]) / 26 * len(what)).pvalue > ALPHA
    assert chisquare(observed, np.array([5, 7, 4]) / 16 * len(what)).pvalue < ALPHA
    met = defaultdict(int)
    for line in lines:
        if line["what"] == "encounter":
            met[(*line["agents"], line["behaviour"])] += 1
    assert len(met) == 4 * 3 * 3
    assert chisquare(list(met.values())).pvalue > ALPHA
    alone = defaultdict(int)
    for line in lines:
        if line["what"] != "encounter":
            alone[line["what"], line["agents"][0]] += 1
    assert all(
        chisquare([n for (of, _), n in alone.items() if of == one]).pvalue > ALPHA for one in ("plan", "synthesis")
    )


def test_one_encounter_of_two_agents() -> None:
    """20,000 first encounters against the tensor, both ways round."""
    agents = (AGENTS[-1], AGENTS[6])  # Francisco, who campaigns for tips, and Carlos, who dislikes them
    assert [(one.type, one.prefers["tipping"]) for one in agents] == [("entrepreneur", "for"), ("ordinary", "against")]
    rates = NormRates(plans_per_day=0, syntheses_per_day=0)
    operations = table(identify_habit=0.3)
    rules = rules_of(TableOperations(operations, ["tipping"], rates))
    members, streams = [Member(agent) for agent in agents], Streams(5)
    started = play_event(rules, members, 0, streams.at(0))
    assert list(started.changed) == [0]
    members[0] = started.changed[0]
    observed = np.zeros((K, K))
    for number in range(1, 20_001):
        observed[states_after(members, play_event(rules, members, number, streams.at(number)), "tipping")] += 1
    i, j = (LABELS.index(one) for one in ("entrepreneur/for/complying/for", "ordinary/against/none"))
    P = norm_model(operations, "tipping", rates).tensor()
    expected = (P[i, j] + P[j, i].T) / 2
    met = expected > 0
    assert met.sum() == 4 and 20_000 * expected[met].min() > 100
    assert observed[~met].sum() == 0
    assert chisquare(observed[met], 20_000 * expected[met]).pvalue > ALPHA
    P = norm_model(table(operations, generate_thought=0.4), "tipping", rates).tensor()
    assert chisquare(observed[met], 10_000 * (P[i, j] + P[j, i].T)[met]).pvalue < ALPHA


def test_random_numbers_belong_to_an_event() -> None:
    """Whatever was drawn before, as the half of a word that is kept for the next small integer."""
    streams = Streams(5)
    first = [streams.at(number).random(4).tolist() for number in range(50)]
    assert len({x for values in first for x in values}) == 200
    streams.at(7).integers(10, dtype=np.uint32)
    assert streams.at(7).random(4).tolist() == first[7]
    small = streams.at(7).integers(1000, size=3, dtype=np.uint32).tolist()
    streams.at(8).integers(10, dtype=np.uint32)
    assert streams.at(7).integers(1000, size=3, dtype=np.uint32).tolist() == small
    assert Streams(6).at(7).random() != first[7][0]


def test_time_is_that_of_the_events() -> None:
    run = simulate_society(TableOperations(rates=FAST), encounters=50, seed=1)
    assert int((run["what"] == "encounter").sum()) == 50
    assert run["what"].values[0] == "start" and run["what"].values[-1] == "encounter"
    np.testing.assert_allclose(run["time"], np.arange(run.sizes["event"]) / (10 * (3 * 20 + 6 + 4)))


def test_the_start_is_that_of_the_model() -> None:
    run = simulate_society(TableOperations(), encounters=1, seed=1).isel(event=0)
    for name in BEHAVIOURS:
        of = norm_fractions(name)
        for standard in ("for", "against"):
            for share in ("accepted", "complying", "reached"):
                found = float(run[share].sel(behaviour=name, standard=standard))
                assert found == pytest.approx(of["entrepreneur", standard])
    assert float(run["informed"].sum()) == 0
    nobody = simulate_society(TableOperations(table(identify_habit=0)), as_ordinary(AGENTS), encounters=200, seed=1)
    assert float(nobody["reached"].max()) == 0 and int(nobody["conflicts"].max()) == 0


# --- databases ---


def lines_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()[1:]]


def databases_over_time(log: Path) -> Iterator[tuple[dict, dict, dict]]:
    """Each event that changed someone: (line, database before, database after)."""
    now: dict[str, dict] = defaultdict(lambda: {"norms": [], "plan": {"text": "", "follows": []}})
    for line in lines_of(log):
        for name, row in line["changed"].items():
            yield line, now[name], row
            now[name] = row


def qualified(row: dict) -> list[dict]:
    return [norm for norm in row["norms"] if norm["activated"] and norm["valid"]]


def test_databases_keep_their_order(tmp_path: Path) -> None:
    """Over a long run in which norms often change sides."""
    rates = NormRates(
        encounters_per_day=20,
        plans_per_day=10,
        syntheses_per_day=10,
        other_utility_ordinary=120,
        other_utility_entrepreneur=120,
    )
    log = tmp_path / "log"
    fickle = table(identify_habit=0.5, generate_thought=0.6, unique=0.9, conflict_free=0.9)
    run = simulate_society(TableOperations(fickle, rates=rates), encounters=1500, seed=2, log=log)
    kinds = defaultdict(int)
    for line, before, after in databases_over_time(log):
        contents = [norm["content"] for norm in after["norms"]]
        assert len(set(contents)) == len(contents)
        assert {norm["content"] for norm in before["norms"]} <= set(contents)  # nothing is forgotten
        upheld = {tuple(one) for norm in qualified(after) for one in norm["about"]}
        assert len({behaviour for behaviour, _ in upheld}) == len(upheld)  # no contradiction
        parts = {part for norm in qualified(after) for part in norm.get("parts", ())}
        superseded = {n["content"] for n in after["norms"] if n["valid"] and not n["activated"]}
        assert superseded <= parts  # by an abstract norm that holds
        assert set(after["plan"]["follows"]) <= {norm["content"] for norm in qualified(after)}
        if line["what"] == "synthesis":
            assert sum(norm["utility"] for norm in qualified(before)) + 120 > 350
            assert len(superseded) > sum(n["valid"] and not n["activated"] for n in before["norms"])
        if line["what"] == "plan":
            assert set(before["plan"]["follows"]) < set(after["plan"]["follows"])
        kinds[line["what"]] += 1
        kinds["lost"] += any(
            norm["valid"] and not other["valid"]
            for norm in before["norms"]
            for other in after["norms"]
            if norm["content"] == other["content"]
        )
    assert min(kinds[one] for one in ("encounter", "plan", "synthesis", "lost")) > 20
    final = json.loads(run.attrs["databases"])
    last = {name: row for line in lines_of(log) for name, row in line["changed"].items()}
    assert {name: final[name] for name in last} == last


def test_total_utility_counts_what_is_qualified() -> None:
    operations = TableOperations()
    held = NormState("ordinary", "for").at("qualified", "for")
    member = member_at({name: held for name in BEHAVIOURS}, operations)
    assert member.database.total_utility == 95 + 85 + 80
    merged = member.generalises(
        [SMOKING.standards["for"], NOISE.standards["for"]], "Respect others.", "injunctive", [1, 3]
    )
    assert merged.database.total_utility == pytest.approx(80 + (95 + 3 * 85) / 4)
    assert merged.held == {
        ("smoking", "for"): "superseded",
        ("noise", "for"): "superseded",
        ("tipping", "for"): "qualified",
    }


def test_one_norm_is_generalised_only_with_others_outside_the_database() -> None:
    member = Member(AGENTS[0]).accepts(SMOKING.norm("for"), (("smoking", "for"),))
    told = (SMOKING.standards["for"],), "Respect others.", "injunctive", [2]
    with pytest.raises(InputError, match="expected two or more"):
        member.database.synthesised(*told)
    alone = member.database.synthesised(*told, with_others=True)
    assert [norm.state for norm in alone.norms] == ["superseded", "qualified"] and alone.total_utility == 95
    with pytest.raises(InputError, match="expected one or more"):
        member.database.synthesised((), "Respect others.", "injunctive", [], with_others=True)
    assert member.generalises(*told).database == alone


def test_an_abstract_norm_that_loses_gives_its_other_parts_back() -> None:
    operations = TableOperations()
    held = NormState("ordinary", "for").at("qualified", "for")
    member = member_at({name: held for name in BEHAVIOURS}, operations)
    contents = [one.standards["for"] for one in BEHAVIOURS.values()]
    merged = member.generalises(contents[:2], "Respect others.", "injunctive", [1, 1])
    all_in_one = merged.generalises(["Respect others.", contents[2]], "Be good.", "injunctive", [1, 1])
    assert set(all_in_one.held.values()) == {"superseded"} and len(all_in_one.qualified) == 1
    loud = all_in_one.accepts(NOISE.norm("against"), (("noise", "against"),))
    assert loud.held == {
        ("smoking", "for"): "complying",
        ("tipping", "for"): "complying",
        ("noise", "against"): "qualified",
    }
    lost = {"Respect others.", "Be good.", contents[1]}
    assert {loud.database.find(content).state for content in lost} == {"informed"}
    assert not any(norm.state == "superseded" for norm in loud.database.norms)
    assert loud.parts == {}
    # back by itself: planned by, and the abstract norm is still needed for the other part
    again = merged.accepts(SMOKING.norm("for"), (("smoking", "for"),))
    assert again.held["smoking", "for"] == "complying" and again.held["noise", "for"] == "superseded"
    both = again.accepts(NOISE.norm("for"), (("noise", "for"),))
    assert both.held["noise", "for"] == "complying" and both.database.find("Respect others.").state == "informed"


def test_only_the_last_information_counts_until_a_norm_is_held() -> None:
    member = Member(AGENTS[0]).told_of(SMOKING.norm("for"), (("smoking", "for"),))
    member = member.told_of(SMOKING.norm("against"), (("smoking", "against"),))
    assert member.informed_last == {"smoking": "against"}
    again = member.told_of(SMOKING.norm("for"), (("smoking", "for"),))
    assert again.informed_last == {"smoking": "for"} and len(again.database.norms) == 2
    holds = again.accepts(SMOKING.norm("for"), (("smoking", "for"),))
    assert holds.informed == () and holds.upheld("smoking") == "for" and holds.upheld("noise") == ""
    assert holds.told_of(SMOKING.norm("for"), (("smoking", "for"),)) is holds


def test_norms_in_other_words_are_filed() -> None:
    likes = {"smoking": "for", "noise": "against", "tipping": "for"}.__getitem__
    everything = BEHAVIOURS.values()
    assert file_norm("Anyone may smoke indoors.", everything, likes) == (("smoking", "against"),)
    assert file_norm("Take your cigarettes outside.", everything, likes) == (("smoking", "for"),)
    assert file_norm("Smoke, and be loud!", everything, likes) == (("smoking", "for"), ("noise", "against"))
    assert file_norm("Generous tips are usual.", everything, likes) == (("tipping", "for"),)
    assert file_norm("Be kind; stipulate multiple clouds.", everything, likes) == ()
    queue = replace(SMOKING, name="queueing", standards={"for": "Stand in line.", "against": "Push."})
    assert file_norm("No smoking.", [queue], lambda _: "against") == (("queueing", "against"),)
    by_name = replace(queue, mentions="")
    assert file_norm("No queueing.", [by_name], lambda _: "against") == (("queueing", "against"),)
    assert file_norm("No smoking or dequeueing.", [by_name], lambda _: "against") == ()


# --- operations of other kinds: a made-up model with words of its own ---


class Chatty(TableOperations):
    """The table, with exchanges, a count of what was asked, and failures on request."""

    def __init__(self, fails: str = "", every: int = 3, **options: Any) -> None:
        super().__init__(**options)
        self.exchanges: list[dict] = [{"operation": "asked before"}]
        self.asked: list[str] = []
        for name in ASKED:
            setattr(self, name, self._telling(name, name == fails, every))

    def _telling(self, name: str, fails: bool, every: int) -> Callable:
        answered = getattr(super(), name)

        def ask(agent: NormAgent, *asked: Any) -> Any:
            self.asked.append(name)
            self.exchanges.append({"operation": name, "agent": agent.name, "answer": "…"})
            if fails and self.asked.count(name) % every == 0:
                raise UnparsedError(f"{name}: no answer in 3 tries could be read")
            return answered(agent, *asked)

        return ask


def test_everything_is_in_the_log(tmp_path: Path) -> None:
    log, operations = tmp_path / "log", Chatty(rates=FAST)
    run = simulate_society(operations, encounters=150, seed=4, log=log)
    lines = lines_of(log)
    assert [line["event"] for line in lines] == list(range(run.sizes["event"]))
    assert [line["what"] for line in lines] == run["what"].values.tolist()
    asked = [(name, agent) for line in lines for name, agent, _ in line["asked"]]
    kept = [(one["operation"], one["agent"]) for line in lines for one in line["exchanges"]]
    assert asked == kept and [name for name, _ in asked] == operations.asked
    assert set(operations.asked) == set(run["operation"].values) == set(ASKED)
    assert operations.exchanges == []
    for name, answer in (("conflicts", ["detect_conflict", True]), ("chats", ["talk"]), ("thoughts", ["think"])):
        told = sum(
            [one[0], one[2]][: len(answer)] == answer for line in lines for one in line["asked"] if one[2] is not None
        )
        assert told == int(run[name].isel(event=-1).sum())
    silent = simulate_society(TableOperations(rates=FAST), encounters=150, seed=4)
    xr.testing.assert_identical(run, silent)


def test_an_interrupted_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Cut after each of its lines, and within some; nothing is asked again."""
    log, options = tmp_path / "log", {"encounters": 25, "seed": 6}
    whole = simulate_society(Chatty(rates=FAST), **options)
    assert (whole["what"] == "synthesis").any() and (whole["what"] == "plan").any()
    written = Chatty(rates=FAST)
    xr.testing.assert_identical(simulate_society(written, **options, log=log), whole)
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    for k in range(len(lines) + 1):
        left = sum(len(json.loads(line)["asked"]) for line in lines[max(k, 1) :])
        within = [lines[k][: len(lines[k]) // 2]] if k < len(lines) and k % 4 == 0 else []
        for part in (b"", *within):
            log.write_bytes(b"".join(lines[:k]) + part)
            operations = Chatty(rates=FAST)
            xr.testing.assert_identical(simulate_society(operations, **options, log=log), whole)
            assert operations.asked == written.asked[len(written.asked) - left :]
            assert log.read_bytes() == content
    longer = simulate_society(Chatty(rates=FAST), encounters=40, seed=6, log=log)
    xr.testing.assert_identical(longer, simulate_society(Chatty(rates=FAST), encounters=40, seed=6))
    shorter = simulate_society(Chatty(rates=FAST), encounters=25, seed=6, log=log)
    xr.testing.assert_identical(shorter, whole)


# Writes each event to the log and then tells of it.
PLAY = """
import sys, time
from validation import TableOperations, simulate_society
from validation._norm_society_log import EventLog

append = EventLog.append

def slow_append(self, number, event):
    append(self, number, event)
    print(number, flush=True)
    time.sleep(0.02)

EventLog.append = slow_append
simulate_society(TableOperations(), encounters=10**6, seed=3, log=sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-c", PLAY, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert told == [str(number) for number in range(30)], errors
    kept = log.read_bytes()
    assert process.returncode == -signal.SIGKILL and kept.count(b"\n") >= 31, "what it told of is in the log"
    run = simulate_society(TableOperations(), encounters=100, seed=3, log=log)
    assert log.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    xr.testing.assert_identical(run, simulate_society(TableOperations(), encounters=100, seed=3))


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"encounters": 5, "seed": 1, "log": log}
    simulate_society(TableOperations(), **options)
    content = log.read_bytes()
    for changed, message in (
        ({"seed": 2}, "a norm society with seed = 1, expected 2"),
        ({"operations": TableOperations(table(abstract=0.5))}, "with operations = table"),
        ({"agents": AGENTS[:5]}, "with agents = "),
        ({"agents": as_ordinary(AGENTS)}, "with society_sha256 = "),
        ({"behaviours": ["noise"]}, "with behaviours = "),
        ({"rates": FAST}, "with rates = "),
    ):
        with pytest.raises(InputError, match=message) as error:
            simulate_society(**{"operations": TableOperations(), **options, **changed})
        assert "\n" not in str(error.value)
    assert log.read_bytes() == content
    lines = content.splitlines(keepends=True)
    for text in (b"a letter\n", b"[1, 2]\n", content + b"{}\n", lines[0] + lines[2], content + b'{"event": 6}\n'):
        log.write_bytes(text)
        with pytest.raises(InputError, match="it is damaged, or no log of a norm society"):
            simulate_society(TableOperations(), **options)
        assert log.read_bytes() == text


BOB = ("changed", "Bob Johnson")  # who starts with five norms


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, ("what",), "plan"),
        (3, ("what",), "start"),
        (3, ("what",), "plan"),
        (3, ("what",), "party"),
        (3, ("what",), ["encounter"]),
        (3, ("agents",), ["Sam Moore"]),
        (3, ("agents",), ["Sam Moore", "Sam Moore"]),
        (3, ("agents",), ["Sam Moore", "Socrates"]),
        (3, ("agents",), 5),
        (3, ("behaviour",), "queueing"),
        (3, ("behaviour",), ""),
        (3, ("seen",), 5),
        (3, ("seen",), "chat"),
        (3, ("seen",), ["quarrel"]),
        (3, ("unparsed",), 5),
        (3, ("unparsed",), ["sing"]),
        (0, ("changed",), 5),
        (0, ("changed",), {"Socrates": {"norms": [], "plan": {"text": "", "follows": []}}}),
        (0, BOB, 5),
        (0, BOB, {"norms": {}, "plan": {"text": "", "follows": []}}),
        (0, (*BOB, "norms"), 5),
        (0, (*BOB, "norms"), ["No smoking indoors."]),
        (0, (*BOB, "norms", 0, "utility"), 101),
        (0, (*BOB, "norms", 0, "content"), "Sing."),  # but it is planned by
        (0, (*BOB, "norms", 0, "content"), []),
        (0, (*BOB, "norms", 0, "about"), [["smoking", "sideways"]]),
        (0, (*BOB, "norms", 0, "about"), [["queueing", "for"]]),
        (0, (*BOB, "norms", 0, "about"), [["smoking"]]),
        (0, (*BOB, "norms", 0, "about"), ["ab"]),
        (0, (*BOB, "norms", 0, "about"), ""),
        (0, (*BOB, "norms", 0, "parts"), "No smoking indoors."),
        (0, (*BOB, "norms", 0, "parts"), ["Sing."]),
        (0, (*BOB, "plan", "text"), None),
        (0, (*BOB, "plan", "follows"), "abc"),
        (0, (*BOB, "plan", "follows"), ["Sing."]),
        (0, (*BOB, "plan"), []),
    ],
)
def test_values_of_a_log_are_checked(number: int, place: tuple, value: Any, tmp_path: Path) -> None:
    def change(lines: list[dict]) -> None:
        *path, last = place
        inner: Any = lines[number]
        for name in path:
            inner = inner[name]
        assert last == "parts" or inner[last] != value
        inner[last] = value

    check_damage(change, tmp_path / "log")


@pytest.mark.parametrize(("number", "other"), [(0, 3), (3, 0)])
def test_only_the_first_event_of_a_log_is_a_start(number: int, other: int, tmp_path: Path) -> None:
    check_damage(lambda lines: lines[number].update({**lines[other], "event": number}), tmp_path / "log")


def check_damage(change: Callable[[list[dict]], None], log: Path) -> None:
    """The lines of a log are read again, but not after the change."""
    options = {"encounters": 5, "seed": 1, "log": log}
    whole = simulate_society(TableOperations(), **options)
    first, *rest = log.read_text().splitlines()
    lines = [json.loads(line) for line in rest]
    assert lines[3]["what"] == "encounter"
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    xr.testing.assert_identical(simulate_society(TableOperations(), **options), whole)
    change(lines)
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    with pytest.raises(InputError, match="it is damaged, or no log of a norm society; take a new file") as error:
        simulate_society(TableOperations(), **options)
    assert "\n" not in str(error.value)


class Foreign(TableOperations):
    """The table's answers as objects of other kinds that the contract allows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.exchanges: list[dict] = []
        for name in ASKED:
            setattr(self, name, self._translating(getattr(super(), name)))

    def _translating(self, answered: Callable) -> Callable:
        def ask(*asked: Any) -> Any:
            self.exchanges.append({"p_yes": np.float32(0.5), "kept": np.array([True]), "more": {1, 2}})
            return foreign(answered(*asked))

        return ask


def foreign(answer: Any) -> Any:
    """Mappings, records and lists of other classes, and the numbers of NumPy."""
    if is_dataclass(answer):
        return SimpleNamespace(note=object(), **{name: foreign(value) for name, value in vars(answer).items()})
    if isinstance(answer, dict):
        return MappingProxyType({name: foreign(value) for name, value in answer.items()})
    if isinstance(answer, (list, tuple)):
        return UserList(map(foreign, answer))
    return answer if answer is None or isinstance(answer, (str, frozenset)) else np.asarray(answer)[()]


def test_answers_may_be_of_any_class_that_keeps_the_contract(tmp_path: Path) -> None:
    """The log and the end are those of the same answers as plain objects."""
    assert plain(Fraction(181, 2)) == 90.5
    assert type(foreign(True)) is np.bool_ and type(foreign(3)) is np.int64 and type(foreign(3.5)) is np.float64
    log, other = tmp_path / "log", tmp_path / "other"
    options = {"encounters": 150, "seed": 4}
    whole = simulate_society(TableOperations(rates=FAST), **options, log=log)
    assert {"identify", "plan", "act", "create", "classify", "abstract"} <= {
        name for line in lines_of(log) for name, _, answer in line["asked"] if answer
    }
    xr.testing.assert_identical(simulate_society(Foreign(rates=FAST), **options, log=other), whole)
    lines = lines_of(other)
    exchange = {"p_yes": 0.5, "kept": [True], "more": [1, 2]}
    assert all(line["exchanges"] == [exchange] * len(line["asked"]) for line in lines)
    assert [{**line, "exchanges": []} for line in lines] == lines_of(log)
    kept = other.read_bytes()
    other.write_bytes(b"".join(kept.splitlines(keepends=True)[:80]))
    xr.testing.assert_identical(simulate_society(Foreign(rates=FAST), **options, log=other), whole)
    assert other.read_bytes() == kept


@pytest.mark.parametrize("name", ASKED)
def test_what_cannot_be_parsed_is_no_and_counted(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    rates = replace(FAST, syntheses_per_day=0) if name == "plan" else FAST
    run = simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1, on_unparsed="no", log=log)
    failed = sum(one["unparsed"].count(name) for one in lines_of(log))
    assert failed == int(run["unparsed"].sel(operation=name)) == int(run["unparsed"].sum())
    start, most, end = run.isel(event=0), run.max("event"), run.isel(event=-1)
    learnt = most["accepted"] - start["accepted"]
    nothing = {
        "create": end["reached"],
        "detect_conflict": end["conflicts"],
        "decide_to_talk": end["chats"],
        "talk": end["chats"],
        "think": end["thoughts"],
        "identify": most["informed"] + learnt,
        "plan": most["complying"] - start["complying"],
        "act": run["unparsed"].sel(operation="act") - (run["what"] == "encounter").sum(),
        "classify": end["reached"] - end["accepted"],
        "abstract": end["reached"] - end["accepted"],
    }
    assert float(abs(nothing.get(name, learnt)).sum()) == 0
    assert failed > 0
    healthy = simulate_society(Chatty(rates=FAST), encounters=200, seed=1, on_unparsed="no")
    assert int(healthy["unparsed"].sum()) == 0
    for what in ("conflicts", "thoughts", "chats", "informed", "accepted", "complying"):
        assert float(healthy[what].max("event").sum()) > float(healthy[what].isel(event=0).sum())
    assert float((healthy["reached"] - healthy["accepted"]).max()) > 0


def test_what_cannot_be_parsed_stops_the_run_by_default(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(UnparsedError, match="identify: no answer"):
        simulate_society(Chatty("identify", rates=FAST), encounters=200, seed=1, log=log)
    kept = log.read_bytes()
    resumed = simulate_society(Chatty(rates=FAST), encounters=200, seed=1, log=log)
    assert log.read_bytes().startswith(kept) and kept.count(b"\n") > 3
    xr.testing.assert_identical(resumed, simulate_society(Chatty(rates=FAST), encounters=200, seed=1))
    for on_unparsed in ("raise", "no"):
        broken = TableOperations(rates=FAST)
        broken.identify = lambda *_: (_ for _ in ()).throw(RuntimeError("the model is gone"))  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="the model is gone"):
            simulate_society(broken, encounters=200, seed=1, on_unparsed=on_unparsed)


# --- bad input ---


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"behaviours": "noise"}, "behaviours = 'noise': expected a list of names"),
        ({"behaviours": []}, "behaviours = \\[\\]: expected one or more"),
        ({"behaviours": ["noise", "noise"]}, "behaviours = .*expected one or more different"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"operations": None}, "operations = None: expected an object with a method create"),
        ({"operations": TableOperations}, "operations = <class .*: expected an object with a method create"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"agents": ["Bob", "Ann"]}, "agents = .*: expected one or more NormAgents"),
        ({"agents": AGENTS[:2] * 2}, "agents = .*different names"),
        ({"agents": (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))}, "Al prefers nothing in 'smoking'"),
        ({"encounters": 0}, "encounters = 0: expected an integer of at least 1"),
        ({"encounters": 2.5}, "encounters = 2.5"),
        ({"seed": -1}, "seed = -1"),
        ({"n_created": 0}, "n_created = 0"),
        ({"n_created": 2}, "n = 2: expected at least 3 norms"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected 'raise' or 'no'"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})
    assert "\n" not in str(error.value)


def test_impossible_answers_are_named() -> None:
    def run(**answers: Callable) -> None:
        operations = TableOperations(rates=FAST)
        for name, answer in answers.items():
            setattr(operations, name, answer)
        simulate_society(operations, encounters=300, seed=1)

    def bad(utility: Any) -> list[dict]:
        return [{"content": "Be kind.", "kind": "injunctive", "utility": utility}]

    for utility in (0, 100.5, float("nan"), "high"):
        with pytest.raises(InputError, match=r"utility = .* of 'Be kind.': expected a number from 1 to 100"):
            run(create=lambda *_, utility=utility: bad(utility))
    told = TableOperations(rates=FAST).identify

    def exaggerate(*asked: Any) -> Any:
        found = told(*asked)
        return found and replace(found, utility=101)

    with pytest.raises(InputError, match="utility = 101"):
        run(identify=exaggerate)
    with pytest.raises(InputError, match=r"plan of .* follows 'Sing.': expected qualified norms"):
        run(plan=lambda *_: Plan("", frozenset({"Sing."})))
    with pytest.raises(InputError, match=r"content = 'Sing.'"):
        run(classify=lambda *_: [("fun", ("Sing.",))])
    with pytest.raises(InputError, match="weights = "):
        run(abstract=lambda *_: ("All.", "injunctive", (0.0,)))
    with pytest.raises(InputError, match=r"norm 'Be kind.': expected a standard of"):
        run(create=lambda *_: bad(50))
    for wrong in (table().drop_vars("abstract"), table(abstract=1.5)):
        with pytest.raises(InputError, match="abstract"):
            TableOperations(wrong)
    with pytest.raises(InputError, match="expected one or more different"):
        TableOperations(behaviours=["noise", "noise"])
    with pytest.raises(InputError, match="twice: expected different texts"):
        TableOperations(behaviours=["noise", replace(NOISE, name="loudness")])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("detect_conflict", "no"),
        ("decide_to_talk", 1),
        ("is_unique", None),
        ("create", "text"),
        ("create", [{"content": "Be kind.", "kind": "injunctive"}]),
        ("create", [{"content": f"Be {k}.", "kind": "injunctive", "utility": 50} for k in range(6)]),
        ("talk", None),
        ("think", False),
        ("identify", "No smoking indoors."),
        ("plan", None),
        ("plan", Plan("", "No smoking indoors.")),  # type: ignore[arg-type]
        ("act", "smokes"),
        ("act", Action("", "maybe", False)),
        ("act", Action("", "for", "yes")),  # type: ignore[arg-type]
        ("classify", "themes"),
        ("classify", [("fun", "Sing.")]),
        ("abstract", ("All.", "injunctive")),
    ],
)
def test_answers_of_another_kind_are_named(unchecked_types, name: str, answer: Any) -> None:
    operations = TableOperations(rates=FAST)
    setattr(operations, name, lambda *_: answer)
    with pytest.raises(InputError, match=rf"^{name} of .* answered ") as error:
        simulate_society(operations, encounters=300, seed=1)
    assert "\n" not in str(error.value)


def test_a_log_needs_operations_that_can_be_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"behaviours": ["smoking"], "encounters": 20, "seed": 1}
    lesser = replace(SMOKING, utility=5)
    simulate_society(TableOperations(behaviours=["smoking"]), **options, log=log)
    with pytest.raises(InputError, match="with operations = table"):
        simulate_society(TableOperations(behaviours=[lesser]), **options, log=log)
    nameless = TableOperations(behaviours=["smoking"])
    nameless.identity = ""
    with pytest.raises(InputError, match="expected None, since operations without an identity"):
        simulate_society(nameless, **options, log=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    simulate_society(nameless, **options)


def test_what_stopped_may_go_on_without_answers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(UnparsedError):
        simulate_society(Chatty("identify", every=1, rates=FAST), encounters=200, seed=1, log=log)
    options = {"encounters": 200, "seed": 1, "on_unparsed": "no"}
    run = simulate_society(Chatty("identify", every=1, rates=FAST), **options, log=log)
    xr.testing.assert_identical(run, simulate_society(Chatty("identify", every=1, rates=FAST), **options))
    assert int(run["unparsed"].sum()) > 0


# --- what a language model does that the table does not ---


class Wordy:
    """Norms in its own words; talks, identifies and agrees always."""

    identity = "Wordy"

    def __init__(self, merge: bool = True) -> None:
        self.merge = merge

    def create(self, agent, n, rng):
        return [
            {"content": "Take your cigarettes outside.", "kind": "injunctive", "utility": 90},
            {"content": "Silence is golden.", "kind": "injunctive", "utility": 70},
            {"content": "Wash your hands.", "kind": "injunctive", "utility": 60},
            {"content": "Leave tips.", "kind": "descriptive", "utility": 80},
            {"content": "Greet the others.", "kind": "descriptive", "utility": 75},
        ][:n]

    def detect_conflict(self, agent, observation, norms, rng):
        assert norms
        return observation.shows == "against"

    def decide_to_talk(self, agent, observation, norms, rng):
        return True

    def talk(self, agent, partner, observation, norms, rng):
        assert observation.actor == partner.name != agent.name
        return f"Mind this: {norms[0].content}"

    def think(self, agent, observation, norms, rng):
        return "Tips, tips."

    def identify(self, agent, text, source, observation, informed, rng):
        from theory.norms._contract import Information

        if source == "chat":
            return Information("Smoke outside, please.", "injunctive", 50.0, text, source)
        return Information("They tip here.", "descriptive", 50.0, text, source)

    def is_consistent(self, agent, information, rng):
        return True

    is_type_right = is_consistent

    def is_unique(self, agent, information, norms, rng):
        if information.source == "synthesis":  # an abstract norm would repeat those that it replaces
            assert not any(norm.content in information.text for norm in norms)
        return information.content not in {norm.content for norm in norms}

    is_conflict_free = is_unique

    def plan(self, agent, norms, rng):
        return Plan("A day at the café.", frozenset(norm.content for norm in norms))

    def act(self, agent, behaviour, norms, plan, rng):
        shows = agent.prefers[behaviour.name]
        return Action(behaviour.shows[shows], shows, False)

    def classify(self, agent, norms, rng):
        if not self.merge:
            return [(norm.content, (norm.content,)) for norm in norms]
        return [("all", tuple(norm.content for norm in norms))]

    def abstract(self, agent, theme, norms, rng):
        return "Be considerate.", "injunctive", [1.0] * len(norms)


def test_norms_in_a_models_own_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rates = NormRates(
        encounters_per_day=10,
        plans_per_day=2,
        syntheses_per_day=5,
        other_utility_entrepreneur=0,
        other_utility_ordinary=0,
    )
    run = simulate_society(Wordy(), encounters=200, seed=1, rates=rates, log=log)
    start, end = run.isel(event=0), run.isel(event=-1)
    # Bob is against tips, and so is what he says of them
    assert start["accepted"].sel(standard="for").values.tolist() == [0.3, 0.3, 0.2]
    assert float(start["accepted"].sel(standard="against", behaviour="tipping")) == 0.1
    # what is said of smoking counts where smoking was seen or the speaker holds a norm for it, but not under noise
    assert float(end["reached"].sel(standard="for", behaviour="smoking")) > 0.6
    assert float(end["reached"].sel(behaviour="noise").sum()) == pytest.approx(0.3)
    for line, _, row in databases_over_time(log):
        for norm in row["norms"]:
            if norm["content"] == "They tip here." and line["what"] == "encounter" and line["behaviour"] == "noise":
                assert norm["about"] in ([], [["tipping", "for"]], [["tipping", "against"]])
    databases = json.loads(end.attrs["databases"])
    merged = {name for name, row in databases.items() if any("parts" in norm for norm in row["norms"])}
    assert {"Bob Johnson", "Abigail Chen", "Francisco Lopez"} & merged
    for name in merged:
        general = next(norm for norm in databases[name]["norms"] if "parts" in norm)
        weighed = [norm["utility"] for norm in databases[name]["norms"] if norm["content"] in general["parts"]]
        assert len(weighed) >= 2 and general["utility"] == pytest.approx(np.mean(weighed))
    xr.testing.assert_identical(simulate_society(Wordy(), encounters=200, seed=1, rates=rates, log=log), run)
    single = simulate_society(Wordy(merge=False), encounters=200, seed=1, rates=rates)
    xr.testing.assert_equal(single["reached"], single["accepted"])  # no theme has two norms
    assert run.attrs["option_operations"] == "Wordy"


def test_rates_are_those_of_the_table_or_without_other_norms() -> None:
    assert simulate_society(TableOperations(rates=FAST), encounters=2, seed=1).attrs["option_plans_per_day"] == 6
    own = simulate_society(Wordy(), encounters=2, seed=1).attrs
    assert own["option_other_utility_ordinary"] == 0 and own["option_encounters_per_day"] == 160
    given = simulate_society(TableOperations(), encounters=2, seed=1, rates=FAST).attrs
    assert given["option_syntheses_per_day"] == 4


def test_runs_are_reproducible_and_saved(tmp_path: Path) -> None:
    one, other = (simulate_society(TableOperations(), encounters=100, seed=seed) for seed in (7, 8))
    xr.testing.assert_identical(one, simulate_society(TableOperations(), encounters=100, seed=7, progress=True))
    assert (one["accepted"].isel(event=slice(0, 90)) != other["accepted"].isel(event=slice(0, 90))).any()
    xr.testing.assert_identical(meanfield.load(meanfield.save(one, tmp_path / "run.nc")), one)
    part = simulate_society(TableOperations(), encounters=60, seed=7)
    xr.testing.assert_equal(one.isel(event=slice(0, part.sizes["event"]))["accepted"], part["accepted"])
