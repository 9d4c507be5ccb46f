"""A society of agents with norm databases: its events have the distribution of the reaction model, and its norms hold.

The distribution of an event is enumerated. Statistical tests accept a true statement with probability 1 - 1e-5 or more
for an arbitrary seed; each has a control that it must reject.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2_contingency, chisquare

import meanfield
from _norm_societies import ordinary, random_table, table
from meanfield import InputError, ReactionModel
from meanfield.toolbox import UnparsedError
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.norm_society._member import OPPOSITE, Member, PersonalNorm
from paper_figs.norm_society._society import OPERATIONS, Event, Society
from theory import norms
from theory.norms import AGENTS, BEHAVIOURS, EVENTS, NormAgent, NormRates, default_operations
from theory.norms._states import LABELS, NORM_STATES, NormState, starting_fractions
from validation import reactions

ALPHA = 1e-5
K = len(NORM_STATES)
FAST = NormRates(encounters_per_day=20.0, plans_per_day=6.0, syntheses_per_day=4.0)
SMOKING, NOISE, _ = BEHAVIOURS.values()
FOR = {name: one.standards["for"] for name, one in BEHAVIOURS.items()}


def society_of(operations: Any, rates: NormRates = FAST, agents: tuple = AGENTS, behaviours: Any = None) -> Society:
    return Society(operations, agents, tuple(behaviours or BEHAVIOURS.values()), rates)


def member_at(states: dict[str, NormState], operations: TableOperations) -> Member:
    """One who is in such a state for each of the behaviours; `type` is that of the last."""
    kind = list(states.values())[-1].type
    member = Member(NormAgent("Ann", kind, "", {b: state.preference for b, state in states.items()}))
    for behaviour, state in states.items():
        if state.level == "none":
            continue
        norm = PersonalNorm.of(BEHAVIOURS[behaviour], state.standard)
        # what it has heard earlier must not matter
        member = member.told_of(PersonalNorm.of(BEHAVIOURS[behaviour], OPPOSITE[state.standard]))
        member = member.told_of(norm) if state.level == "informed" else member.accepts(norm)
        if state.level == "complying":
            member = member.plans("", [norm.content])
        if state.level == "superseded":
            general = operations("abstract", member.agent, {"theme": "", "norms": (norm,)}, np.random.default_rng())
            member = member.generalises([norm.content], *general)
    return member


def state_of(member: Member, behaviour: str) -> NormState:
    start = NormState(member.agent.type, member.agent.prefers[behaviour])
    held = {standard: level for (about, standard), level in member.held.items() if about == behaviour}
    assert len(held) <= 1
    for standard, level in held.items():
        return start.at(level, standard)
    told = [standard for norm in member.informed for about, standard in norm.about if about == behaviour]
    return start.at("informed", told[-1]) if told else start


def label_of(member: Member, behaviour: str) -> int:
    return LABELS.index(state_of(member, behaviour).label)


class Branches:
    """In place of a random generator: goes through all outcomes of `random() < p`, with their probabilities."""

    def __init__(self) -> None:
        self.chosen: list[bool] = []

    def all(self, society: Society, play: Callable[[], Any]) -> Iterator[tuple[float, Any]]:
        while True:
            self.place, self.weight = 0, 1.0
            society.rng, society.event = self, Event("")  # type: ignore[assignment]
            result = play()
            yield self.weight, result
            while self.chosen and not self.chosen[-1]:
                self.chosen.pop()
            if not self.chosen:
                return
            self.chosen[-1] = False

    def random(self) -> Branches:
        return self

    def __lt__(self, probability: float) -> bool:
        if probability in (0, 1):
            return bool(probability)
        if self.place == len(self.chosen):
            self.chosen.append(True)
        outcome = self.chosen[self.place]
        self.place += 1
        self.weight *= probability if outcome else 1 - probability
        return outcome


# Events, beside the reaction model


@pytest.mark.parametrize("pairs", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_an_encounter_has_the_distribution_of_the_model(pairs: int) -> None:
    """For pairs in random states; in other behaviours nothing changes, and what happens does not depend on them."""
    operations = TableOperations(random_table(3))
    society, rng = society_of(operations, agents=AGENTS[:2]), np.random.default_rng(0)
    models = {name: norms.reaction_model(random_table(3), name) for name in BEHAVIOURS}
    tensors = {name: model.tensor() for name, model in models.items()}
    seen_as = dict(zip(("conflict", "thought", "chat"), EVENTS.values(), strict=True))

    def meet() -> list[str]:
        society.members = list(members)
        society.encounter(0, 1, BEHAVIOURS[behaviour])
        return society.event.seen

    for number in range(pairs):
        behaviour = list(BEHAVIOURS)[number % 3]
        i, j = rng.integers(K, size=2)
        states = [
            {b: NORM_STATES[rng.integers(K)]._replace(type=NORM_STATES[k].type) for b in BEHAVIOURS} for k in (i, j)
        ]
        for one, k in zip(states, (i, j), strict=True):
            one[behaviour] = NORM_STATES[k]
        members = [member_at(one, operations) for one in states]
        found, often = np.zeros((K, K)), Counter()
        for weight, seen in Branches().all(society, meet):
            after = {b: tuple(label_of(one, b) for one in society.members) for b in BEHAVIOURS}
            found[after.pop(behaviour)] += weight
            often.update(dict.fromkeys(seen, weight))
            assert after == {b: tuple(LABELS.index(one[b].label) for one in states) for b in after}
        np.testing.assert_allclose(found, tensors[behaviour][i, j], atol=1e-12)
        model = models[behaviour]
        for name, of in seen_as.items():
            assert abs(often[name] - model.alpha[list(of), i] @ model.beta[list(of), j]) < 1e-12


@pytest.mark.parametrize("behaviour", ["smoking", "tipping"])
@pytest.mark.parametrize("rates", [NormRates(plans_per_day=3, syntheses_per_day=2), NormRates(threshold=420)])
def test_plans_and_syntheses_have_the_rates_of_the_model(behaviour: str, rates: NormRates) -> None:
    operations = TableOperations(random_table(2), [behaviour], rates)
    society, S = society_of(operations, rates, behaviours=operations.behaviours), np.zeros((K, K))
    for k, state in enumerate(NORM_STATES):
        member = member_at({behaviour: state}, operations)
        for happens, per_day in ((society.plan, rates.plans_per_day), (society.synthesis, rates.syntheses_per_day)):
            for weight, after in Branches().all(society, lambda f=happens, m=member: f(m)):  # type: ignore[misc]
                S[k, label_of(after, behaviour)] += per_day * weight
    np.fill_diagonal(S, 0)
    expected = norms.reaction_model(random_table(2), behaviour, rates).spontaneous.toarray()
    np.testing.assert_allclose(S, expected, atol=1e-12)
    assert expected.any()


def test_utilities_of_all_behaviours_count_for_synthesis() -> None:
    """100 outside and 95 + 85 are too few; 80 more are enough, and then each norm is generalised independently."""
    rates = NormRates(other_utility_ordinary=100)
    operations = TableOperations(table(abstract=0.6), rates=rates)
    society, held = society_of(operations, rates), NormState("ordinary", "for").at("complying", "for")
    few = member_at({"smoking": held, "noise": held, "tipping": NormState("ordinary", "for")}, operations)
    assert all(after == few for _, after in Branches().all(society, lambda: society.synthesis(few)))
    enough = member_at({"smoking": held, "noise": held, "tipping": held}, operations)
    found: dict = defaultdict(float)
    for weight, after in Branches().all(society, lambda: society.synthesis(enough)):
        found[tuple(state_of(after, b).level for b in BEHAVIOURS)] += weight
    assert len(found) == 8
    for levels, weight in found.items():
        assert weight == pytest.approx(np.prod([0.6 if level == "superseded" else 0.4 for level in levels]))


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


@pytest.fixture(scope="module")
def tipping() -> dict[str, np.ndarray]:
    """Numbers of agents after 40 and 200 events, of 300 runs."""
    decide, counts = TableOperations(behaviours=["tipping"], rates=FAST), defaultdict(list)
    for seed in range(300):
        run = simulate_society(decide, AGENTS, ["tipping"], encounters=170, seed=seed)  # 200 events hold 133 ± 7
        for name in ("accepted", "complying", "reached", "informed"):
            counts[name].append((10 * run[name].values[[40, 200], 0]).round().astype(int))
    return {name: np.array(values) for name, values in counts.items()}


@pytest.mark.slow
def test_whole_runs_have_the_law_of_the_model(tipping: dict[str, np.ndarray]) -> None:
    """Numbers of agents after 40 and 200 events of ten agents; not of a model with another operation."""

    def by_protocol(operations: xr.Dataset) -> dict[str, np.ndarray]:
        protocol = protocol_of(norms.reaction_model(operations, "tipping", FAST), FAST)
        start = (10 * norms.initial_composition("tipping").values).round().astype(int)
        runs = reactions.simulate(protocol, start, runs=4000, seed=1, max_rounds=20, record_rounds=20)
        model = norms.reaction_model(operations, "tipping", FAST)
        seen = norms.observables(model, runs["count"].sel(round=[4, 20]).values / 10)
        return {name: (10 * seen[name].values).round().astype(int) for name in tipping}

    expected = by_protocol(default_operations())
    for name, counts in tipping.items():
        for place in np.ndindex(counts.shape[1:]):
            assert homogeneous(counts[:, *place], expected[name][:, *place]) > ALPHA, (name, place)
    other = by_protocol(table(identify_chat=[[0.6, 0.85], [0.2, 0.3]], identify_thought=0.2))
    for name in ("accepted", "complying", "reached"):
        assert homogeneous(tipping[name][:, 1, 0], other[name][:, 1, 0]) < ALPHA
    lazy = by_protocol(table(comply_in_plan=0.4))
    assert homogeneous(tipping["complying"][:, 1, 0], lazy["complying"][:, 1, 0]) < ALPHA


class Recorder(TableOperations):
    """The table, which notes who acts about what, who sees it, and who plans or sorts its norms."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.met: Counter = Counter()
        self.alone: Counter = Counter()

    def __call__(self, operation, agent, given, rng):
        if operation == "act":
            self.acts = agent.name, given["behaviour"].name
        if operation == "think":
            self.met[agent.name, *self.acts] += 1
        if operation in ("plan", "classify"):
            self.alone[operation, agent.name] += 1
        return [] if operation == "classify" else super().__call__(operation, agent, given, rng)


def test_events_and_pairs_come_as_often_as_they_should() -> None:
    """All are entrepreneurs who never talk, so that all think, and whose utilities are always above the threshold."""
    rates = NormRates(encounters_per_day=5, plans_per_day=7, syntheses_per_day=4, threshold=1)
    recorder = Recorder(operations=table(decide_to_talk=0), rates=rates)
    agents = [agent for agent in AGENTS if agent.type == "entrepreneur"]
    run = simulate_society(recorder, agents, encounters=3000, seed=3)
    observed = np.array([(run["what"] == name).sum() for name in ("encounter", "plan", "synthesis")])
    assert chisquare(observed, np.array([15, 7, 4]) / 26 * observed.sum()).pvalue > ALPHA
    assert chisquare(observed, np.array([5, 7, 4]) / 16 * observed.sum()).pvalue < ALPHA
    assert len(recorder.met) == 3 * 2 * 3 and chisquare(list(recorder.met.values())).pvalue > ALPHA
    assert recorder.met.total() == observed[0]
    for number, name in zip(observed[1:], ("plan", "classify"), strict=True):
        each = [recorder.alone[name, agent.name] for agent in agents]
        assert sum(each) == number and chisquare(each).pvalue > ALPHA


def test_time_and_start_are_those_of_the_model() -> None:
    run = simulate_society(TableOperations(rates=FAST), encounters=50, seed=1)
    assert int((run["what"] == "encounter").sum()) == 50
    np.testing.assert_allclose(run["time"], np.arange(run.sizes["event"]) / (10 * (3 * 20 + 6 + 4)))
    start = run.isel(event=0)
    for name in BEHAVIOURS:
        of = starting_fractions(name)
        for share in ("accepted", "complying", "reached"):
            found = start[share].sel(behaviour=name, standard=["for", "against"]).values
            assert found == pytest.approx([of["entrepreneur", standard] for standard in ("for", "against")])
    assert float(start["informed"].sum()) == 0
    nobody = simulate_society(TableOperations(table(identify_habit=0)), ordinary(AGENTS), encounters=200, seed=1)
    assert float(nobody["reached"].max()) == 0 and int(nobody["conflicts"].max()) == 0


def test_runs_are_reproducible_and_saved(tmp_path: Path) -> None:
    one, other = (simulate_society(TableOperations(), encounters=50, seed=seed) for seed in (7, 8))
    xr.testing.assert_identical(one, simulate_society(TableOperations(), encounters=50, seed=7, progress=True))
    assert (one["accepted"].isel(event=slice(0, 50)) != other["accepted"].isel(event=slice(0, 50))).any()
    xr.testing.assert_identical(meanfield.load(meanfield.save(one, tmp_path / "run.nc")), one)
    part = simulate_society(TableOperations(), encounters=30, seed=7)
    xr.testing.assert_equal(one.isel(event=slice(0, part.sizes["event"]))["accepted"], part["accepted"])
    assert simulate_society(TableOperations(rates=FAST), encounters=2, seed=1).attrs["option_plans_per_day"] == 6
    own = simulate_society(TableOperations(rates=FAST).__call__, encounters=2, seed=1).attrs
    assert own["option_other_utility_ordinary"] == 0 and own["option_encounters_per_day"] == 160


# Norms of a member


def believer() -> Member:
    """Holds all three standards."""
    return member_at(dict.fromkeys(BEHAVIOURS, NormState("ordinary", "for").at("qualified", "for")), TableOperations())


def databases_over_time(operations: TableOperations, rates: NormRates, events: int) -> Iterator[tuple]:
    """Each change of a member of a society: (event, what it held before, and after)."""
    society, rng = society_of(operations, rates), np.random.default_rng(2)
    for number in range(events):
        before = list(society.members)
        event = society.play(number, rng)
        for old, new in zip(before, society.members, strict=True):
            if old.as_dict() != new.as_dict():
                yield event.what, old.as_dict(), new.as_dict()


def test_databases_keep_their_order() -> None:
    """Over a long run in which norms often change sides."""
    rates = NormRates(20, 10, 10, other_utility_entrepreneur=120, other_utility_ordinary=120)
    changes = {"identify_habit": 0.5, "generate_thought": 0.6, "unique": 0.9, "conflict_free": 0.9}
    kinds = Counter()
    for what, before, after in databases_over_time(TableOperations(table(**changes), rates=rates), rates, events=1500):
        old, new = ({norm["content"]: norm for norm in row["norms"]} for row in (before, after))
        held_before, held = ([n for n in of.values() if n["activated"] and n["valid"]] for of in (old, new))
        assert len(new) == len(after["norms"])
        assert set(old) <= set(new)  # nothing is forgotten
        upheld = {tuple(one) for norm in held for one in norm["about"]}
        assert len({behaviour for behaviour, _ in upheld}) == len(upheld)  # no contradiction
        superseded = [{n for n, norm in of.items() if norm["valid"] and not norm["activated"]} for of in (old, new)]
        assert superseded[1] <= {part for norm in held for part in norm.get("parts", ())}  # by a norm that holds
        assert set(after["plan"]["follows"]) <= {norm["content"] for norm in held}
        if what == "synthesis":
            assert sum(norm["utility"] for norm in held_before) + 120 > 350
            assert len(superseded[1]) > len(superseded[0])
        if what == "plan":
            assert set(before["plan"]["follows"]) < set(after["plan"]["follows"])
        kinds[what] += 1
        kinds["lost"] += any(norm["valid"] and not new[name]["valid"] for name, norm in old.items())
    assert min(kinds[one] for one in ("encounter", "plan", "synthesis", "lost")) > 20


def test_general_norms_stand_for_their_parts() -> None:
    merged = believer().generalises([FOR["smoking"], FOR["noise"]], "Respect others.", "injunctive", [1, 3])
    assert merged.norms[-1].utility == pytest.approx((95 + 3 * 85) / 4)
    superseded = {("smoking", "for"): "superseded", ("noise", "for"): "superseded"}
    assert merged.held == superseded | {("tipping", "for"): "qualified"}
    for weight in (1e-300, 1.0, 1e308):
        general = believer().generalises(list(FOR.values()), "Be.", "injunctive", [weight] * 3).norms[-1]
        assert general.utility == 260 / 3


@pytest.mark.parametrize(
    ("contents", "weights", "message"),
    [
        ([], [], "expected one or more different qualified norms"),
        ([FOR["noise"]] * 2, [1, 1], "expected one or more different qualified norms"),
        (["Sing."], [1], "contents = "),
        ([FOR["noise"]], [0.0], "expected 1 positive numbers"),
        ([FOR["noise"]], [1, 1], "expected 1 positive numbers"),
    ],
)
def test_norms_that_cannot_be_generalised_are_named(contents, weights, message) -> None:
    with pytest.raises(InputError, match=message):
        believer().generalises(contents, "Be.", "injunctive", weights)


def test_an_abstract_norm_that_loses_gives_its_other_parts_back() -> None:
    contents = list(FOR.values())
    merged = believer().generalises(contents[:2], "Respect others.", "injunctive", [1, 1])
    all_in_one = merged.generalises(["Respect others.", contents[2]], "Be good.", "injunctive", [1, 1])
    assert set(all_in_one.held.values()) == {"superseded"} and len(all_in_one.qualified) == 1
    loud = all_in_one.accepts(PersonalNorm.of(NOISE, "against"))
    back = {("smoking", "for"): "complying", ("tipping", "for"): "complying"}
    assert loud.held == back | {("noise", "against"): "qualified"}
    assert {norm.content for norm in loud.norms if norm.state == "informed"} >= {
        "Respect others.",
        "Be good.",
        contents[1],
    }
    assert not any(norm.state == "superseded" or norm.parts for norm in loud.norms)
    # back by itself: planned by, and the abstract norm is still needed for the other part
    again = merged.accepts(PersonalNorm.of(SMOKING, "for"))
    assert again.held["smoking", "for"] == "complying" and again.held["noise", "for"] == "superseded"
    both = again.accepts(PersonalNorm.of(NOISE, "for"))
    assert both.held["noise", "for"] == "complying"
    assert {norm.content: norm.state for norm in both.norms}["Respect others."] == "informed"


def test_only_the_last_information_counts_until_a_norm_is_held() -> None:
    member = Member(AGENTS[0]).told_of(PersonalNorm.of(SMOKING, "for")).told_of(PersonalNorm.of(SMOKING, "against"))
    assert [norm.about for norm in member.informed] == [(("smoking", "for"),), (("smoking", "against"),)]
    again = member.told_of(PersonalNorm.of(SMOKING, "for"))
    assert again.informed[-1].content == FOR["smoking"] and len(again.norms) == 2
    holds = again.accepts(PersonalNorm.of(SMOKING, "for"))
    assert holds.informed == () and holds.upheld("smoking") == "for" and holds.upheld("noise") == ""
    assert holds.told_of(PersonalNorm.of(SMOKING, "for")) is holds


QUEUE = replace(SMOKING, name="queueing", standards={"for": "Stand in line.", "against": "Push."})
LIKES = {"smoking": "for", "noise": "against", "tipping": "for", "queueing": "against"}


@pytest.mark.parametrize(
    ("content", "behaviours", "likes", "about"),
    [
        ("Anyone may smoke indoors.", [*BEHAVIOURS.values()], LIKES, {"smoking": "against"}),  # a standard itself
        ("Take your cigarettes outside.", [*BEHAVIOURS.values()], LIKES, {"smoking": "for"}),
        ("Smoke, and be loud!", [*BEHAVIOURS.values()], LIKES, {"smoking": "for", "noise": "against"}),
        ("Generous tips are usual.", [*BEHAVIOURS.values()], dict.fromkeys(BEHAVIOURS, ""), {}),
        ("Be kind; stipulate multiple clouds.", [*BEHAVIOURS.values()], LIKES, {}),
        ("No smoking.", [QUEUE], LIKES, {"queueing": "against"}),
        ("No queueing.", [replace(QUEUE, mentions="")], LIKES, {"queueing": "against"}),
        ("No smoking or dequeueing.", [replace(QUEUE, mentions="")], LIKES, {}),
    ],
)
def test_norms_in_other_words_are_filed(content, behaviours, likes, about) -> None:
    society = society_of(TableOperations(), behaviours=behaviours)
    filed = society.filed({"content": content, "utility": 50, "kind": "injunctive"}, likes.__getitem__)
    assert dict(filed.about) == about


@pytest.mark.parametrize(("other", "made"), [(0, "qualified"), (100, "superseded")])
def test_a_theme_of_one_norm_is_general_only_beside_norms_outside_the_database(other: float, made: str) -> None:
    society = society_of(TableOperations(table(abstract=1)), NormRates(other_utility_ordinary=other, threshold=100))
    society.rng, society.event = np.random.default_rng(), Event("synthesis")
    assert set(society.synthesis(believer()).held.values()) == {made}


# Answers that are of no use


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_cannot_be_parsed_is_no_and_counted(name: str) -> None:
    table_says = TableOperations(rates=replace(FAST, syntheses_per_day=0) if name == "plan" else FAST)

    def silent(operation: str, *asked: Any) -> Any:
        if operation == name:
            raise UnparsedError(f"{operation}: no answer in 3 tries could be read")
        return table_says(operation, *asked)

    silent.rates = table_says.rates
    run = simulate_society(silent, encounters=200, seed=1, on_unparsed="no")
    answers = [given for text in run["answers"].values for given in json.loads(text)]
    failed = sum(given[0] == name and len(given) == 2 for given in answers)
    assert 0 < failed == int(run["unparsed"].sel(operation=name)) == int(run["unparsed"].sum())
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
    with pytest.raises(UnparsedError, match=f"{name}: no answer"):
        simulate_society(silent, encounters=200, seed=1)


KNOWS_NOISE = (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"agents": KNOWS_NOISE}, "Al prefers nothing in 'smoking'"),
        ({"operations": TableOperations}, "operations = <class .*: expected a function of operation, agent"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"encounters": 0}, "encounters = 0: expected a whole number of at least 1"),
        ({"n_created": 2}, "create of .* answered 3 norms: expected 2 at most"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected one of raise, no"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})


def created(utility: Any, n: int = 1) -> list[dict]:
    return [{"content": f"Be kind to {k}.", "kind": "injunctive", "utility": utility} for k in range(n)]


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("create", created(101), "utility of 'Be kind to 0.' = 101: "),
        ("create", created(50), "norm 'Be kind to 0.': expected a standard of"),
        ("create", created(50, 6), "create of .* answered 6 norms: expected 5 at most"),
        ("detect_conflict", "no", "detect_conflict of .* answered 'no': expected bool"),
        ("think", False, "think of .* answered False: expected str or NoneType"),
        ("plan", {"text": "", "follows": ["Sing."]}, "plan of .* follows 'Sing.': expected qualified norms"),
        ("classify", [["fun", ["Sing."]]], r"contents = \['Sing.'\]: expected one or more different qualified norms"),
        ("abstract", ["All.", "injunctive", [0.0]], "weights = "),
    ],
)
def test_answers_that_cannot_be_are_named(unchecked_types, name: str, answer: Any, message: str) -> None:
    decide = TableOperations(rates=FAST)

    def operations(operation, *asked):
        return answer if operation == name else decide(operation, *asked)

    with pytest.raises(InputError, match=f"^{message}"):
        simulate_society(operations, encounters=300, seed=1, rates=FAST)


def test_standards_with_the_same_text_are_refused() -> None:
    with pytest.raises(InputError, match="expected different texts"):
        TableOperations(behaviours=["noise", replace(NOISE, name="loudness")])
