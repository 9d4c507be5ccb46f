"""Rules of mass action, over random ones, against sums over rules."""

import re

import numpy as np
import pytest

from meanfield import InputError, ReactionModel

NAMES = ("A", "B", "free energy", "D_4")


def random_rules(seed):
    """Rules as texts, as tuples of agents, and rates over twelve orders of magnitude."""
    rng = np.random.default_rng(seed)
    rules, agents = [], []
    for _ in range(rng.integers(1, 9)):
        sides = rng.choice(NAMES, size=(2, rng.integers(1, 3)))
        agents.append(sides)
        rules.append(tuple(f"2 {side[0]}" if len({*side}) < len(side) else " + ".join(side) for side in sides))
    return rules, agents, 10 ** rng.uniform(-6, 6, len(rules))


@pytest.mark.parametrize("seed", range(4))
def test_drift_is_that_of_mass_action(seed):
    rules, agents, rates = random_rules(seed)
    model = ReactionModel.from_rules(rules, rates, states=NAMES)
    x = np.random.default_rng(seed).dirichlet(np.ones(len(NAMES)))
    expected = np.zeros(len(NAMES))
    for (before, after), rate in zip(agents, rates, strict=True):
        happens = rate * np.prod([x[NAMES.index(name)] for name in before])
        for name in before:
            expected[NAMES.index(name)] -= happens
        for name in after:
            expected[NAMES.index(name)] += happens
    np.testing.assert_allclose(model.drift(x), expected, atol=1e-14 * rates.max())


def test_agents_stay_what_they_are_where_they_can():
    """Hosts and vectors infect each other: the order of names in a rule makes no host a vector."""
    rules = [("SH + IV", "IV + IH"), ("IH", "SH"), ("SV + IH", "IH + IV"), ("IV", "SV")]
    model = ReactionModel.from_rules(rules, [1.0, 0.2, 1.0, 0.3])
    assert model.names == ("SH", "IV", "IH", "SV")
    assert model.classes.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("rules", "rates", "complaints"),
    [
        ({"S": "2 I"}, 1.0, ["'S → 2 I', 1 and 2 agents: expected one or two, as many on both sides"]),
        ({"S + I": "2 I", "I": "S"}, [1.0], ["rates = [1.0]: expected 2 numbers"]),
        ({"S": "I", "I": "2 S"}, [-1.0, np.nan], ["1 and 2 agents", "'S → I' = -1.0", "'I → 2 S' = nan"]),
        ({"S": "I", "I": "S"}, {"S": 1.0, "I": 2.0}, ["expected numbers in the order of the rules"]),
        ({"S": "I"}, "fast", ["rates of 'S → I' = 'fast'"]),
        ({"S": "I", "I": "S"}, [10**400, True], ["'S → I' = ", "'I → S' = True"]),
        (["SI", "IS"], 1.0, ["rules = ['SI', 'IS']: expected"]),
        ({"S+": "I + S", "2A": "2B", "B + 0 C": "B + C", "1 2": "A"}, 1.0, [*("S+ →", "2A → 2B", "0 C →", "1 2 →")]),
    ],
)
def test_all_complaints_at_once(rules, rates, complaints, unchecked_types):
    with pytest.raises(InputError) as told:
        ReactionModel.from_rules(rules, rates)
    for complaint in complaints:
        assert re.search(re.escape(complaint), str(told.value))


def test_states_that_no_order_has_and_rules_that_change_nothing():
    with pytest.raises(InputError, match="states lacks 'I', which a rule has"):
        ReactionModel.from_rules({"S": "I"}, 1.0, states=["S"])
    model = ReactionModel.from_rules({"S + I": "2 I", "I": "S", "S + R": "R + S"}, [1.0, 0.5, 1e6])
    assert (len(model.alpha), model.encounter_rate) == (1, 1.0)
