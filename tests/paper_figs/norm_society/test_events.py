"""Single events of a norm society: each has the law of the reaction model, and random numbers of its own.

The law of an event is enumerated, not sampled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from _norm_societies import K, member_at, random_table, society_of, table
from paper_figs.norm_society import TableOperations
from paper_figs.norm_society._member import Member
from paper_figs.norm_society._society import Event, Society
from theory import norms
from theory.norms import AGENTS, BEHAVIOURS, EVENTS, NormRates
from theory.norms._states import LABELS, NORM_STATES, NormState


def state_of(member: Member, behaviour: str) -> NormState:
    start = NormState(member.agent.type, member.agent.prefers[behaviour])
    held = {standard: level for (about, standard), level in member.held.items() if about == behaviour}
    assert len(held) <= 1
    for standard, level in held.items():
        return start.at(level, standard)
    told = [standard for norm in member.informed for about, standard in norm.about if about == behaviour]
    return start.at("informed", told[-1]) if told else start


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

    def __lt__(self, chance: float) -> bool:
        if chance in (0, 1):
            return bool(chance)
        if self.place == len(self.chosen):
            self.chosen.append(True)
        outcome = self.chosen[self.place]
        self.place += 1
        self.weight *= chance if outcome else 1 - chance
        return outcome


def encounters(society: Society, pair: list[Member], behaviour: str) -> Iterator[tuple[float, list[str]]]:
    """Every outcome of an encounter of these two, with its probability and what was seen; `members` are those after."""

    def meet() -> list[str]:
        society.members = list(pair)
        society.encounter(0, 1, BEHAVIOURS[behaviour])
        return society.event.seen

    return Branches().all(society, meet)


def states_of(society: Society, behaviour: str) -> tuple[int, ...]:
    return tuple(LABELS.index(state_of(member, behaviour).label) for member in society.members)


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "every"), [("smoking", 1), ("tipping", 5)])
def test_an_encounter_has_the_law_of_the_model(behaviour: str, every: int) -> None:
    """All outcomes of all pairs of states, or a fifth, and how often there are conflicts, thoughts and chats."""
    operations = TableOperations(random_table(1), [behaviour])
    society = society_of(operations, operations.behaviours, agents=AGENTS[:2])
    model = norms.reaction_model(random_table(1), behaviour)
    P = model.tensor()
    rates = [np.einsum("mi,mj->ij", model.alpha[list(of)], model.beta[list(of)]) for of in EVENTS.values()]
    expected = dict(zip(("conflict", "thought", "chat"), rates, strict=True))
    for i, j in list(np.ndindex(K, K))[::every]:
        members = [member_at({behaviour: NORM_STATES[k]}, operations) for k in (i, j)]
        law, often = np.zeros((K, K)), dict.fromkeys(expected, 0.0)
        for weight, seen in encounters(society, members, behaviour):
            law[states_of(society, behaviour)] += weight
            for name in seen:
                often[name] += weight
        assert np.abs(law - P[i, j]).max() < 1e-12
        assert all(abs(often[name] - expected[name][i, j]) < 1e-12 for name in expected)


def spontaneous(behaviour: str, rates: NormRates) -> np.ndarray:
    """Rates of moves alone in the society."""
    operations = TableOperations(random_table(2), [behaviour], rates)
    society, S = society_of(operations, operations.behaviours, rates), np.zeros((K, K))
    for k, state in enumerate(NORM_STATES):
        member = member_at({behaviour: state}, operations)
        for happens, per_day in ((society.plan, rates.plans_per_day), (society.synthesis, rates.syntheses_per_day)):
            for weight, after in Branches().all(society, lambda f=happens, m=member: f(m)):  # type: ignore[misc]
                S[k, LABELS.index(state_of(after, behaviour).label)] += per_day * weight
    np.fill_diagonal(S, 0)
    return S


@pytest.mark.parametrize("behaviour", ["smoking", "tipping"])
def test_plans_and_syntheses_have_the_rates_of_the_model(behaviour: str) -> None:
    for rates in (NormRates(plans_per_day=3, syntheses_per_day=2), NormRates(threshold=420)):
        expected = norms.reaction_model(random_table(2), behaviour, rates).spontaneous.toarray()
        np.testing.assert_allclose(spontaneous(behaviour, rates), expected, atol=1e-12)
    assert (
        norms.reaction_model(random_table(2), "tipping").spontaneous.sum()
        < norms.reaction_model(random_table(2), "smoking").spontaneous.sum()
    )


def test_several_behaviours_are_independent_but_for_the_threshold() -> None:
    """In an encounter nothing changes in another behaviour, and what happens does not depend on it."""
    operations = TableOperations(random_table(3))
    society, P = society_of(operations, agents=AGENTS[:2]), norms.reaction_model(random_table(3), "noise").tensor()
    rng = np.random.default_rng(0)
    for _ in range(60):
        i, j = rng.integers(K, size=2)
        kinds = [NORM_STATES[i].type, NORM_STATES[j].type]
        others = [{b: NORM_STATES[rng.integers(K)]._replace(type=kind) for b in BEHAVIOURS} for kind in kinds]
        pair = [{**other, "noise": NORM_STATES[k]} for other, k in zip(others, (i, j), strict=True)]
        members = [member_at(states, operations) for states in pair]
        law = np.zeros((K, K))
        for weight, _ in encounters(society, members, "noise"):
            law[states_of(society, "noise")] += weight
            for behaviour in ("smoking", "tipping"):
                expected = tuple(LABELS.index(states[behaviour].label) for states in pair)
                assert states_of(society, behaviour) == expected
        np.testing.assert_allclose(law, P[i, j], atol=1e-12)


def test_utilities_of_all_behaviours_count_for_synthesis() -> None:
    """100 outside and 95 + 85 are too few; 80 more are enough, and then each norm is generalised independently."""
    rates = NormRates(other_utility_ordinary=100)
    operations = TableOperations(table(abstract=0.6), rates=rates)
    society = society_of(operations, rates=rates)
    held = NormState("ordinary", "for").at("complying", "for")
    few = member_at({"smoking": held, "noise": held, "tipping": NormState("ordinary", "for")}, operations)
    assert all(after == few for _, after in Branches().all(society, lambda: society.synthesis(few)))
    enough = member_at({"smoking": held, "noise": held, "tipping": held}, operations)
    law: dict = defaultdict(float)
    for weight, after in Branches().all(society, lambda: society.synthesis(enough)):
        law[tuple(state_of(after, b).level for b in BEHAVIOURS)] += weight
    assert len(law) == 8
    for levels, weight in law.items():
        assert weight == pytest.approx(np.prod([0.6 if level == "superseded" else 0.4 for level in levels]))
