"""Extinctions: epidemics against the closed form and exact chains, and a word that nobody invents again.

The exact times are those of quasi-stationary distributions; what theory leaves out falls with 1/N.
"""

import re

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

import meanfield
from _exact_chains import ExactChain
from meanfield import InputError, escape_path, lifetime
from meanfield._large_deviations.extinction import AbsorbingEnd, absorbing_end
from meanfield._population.population_model import reaction_model
from meanfield.toolbox import as_population

pytestmark = pytest.mark.usefixtures("unchecked_types")

SIZES = [20, 40, 80]


def epidemic(infection, *, falls_ill=None, forgets=None):
    """Infected agents recover at the rate 1. Before, they may be exposed for a while, and immune after it."""
    rules, rates = {"S + I": "E + I" if falls_ill else "2 I", "I": "R" if forgets else "S"}, [infection, 1.0]
    if falls_ill:
        rules["E"] = "I"
        rates.append(falls_ill)
    if forgets:
        rules["R"] = "S"
        rates.append(forgets)
    states = ["S", *["E"] * bool(falls_ill), "I", *["R"] * bool(forgets)]
    return meanfield.ReactionModel.from_rules(rules, rates, states=states)


def time_of_chain(model, n_agents, over):
    """The inverse of the rate at which the quasi-stationary distribution is left; `over` tells which counts end it."""
    chain = ExactChain(model, [n_agents])
    free = np.flatnonzero(~over(chain.counts))
    solver = splu(csc_array(-chain.generator[free][:, free]).T.tocsc())
    law = np.ones(len(free))
    for _ in range(60):
        law = solver.solve(law / law.sum())
    return law.sum()


def time_of_epidemic(model, n_agents):
    sick = [i for i, state in enumerate(model.states) if state in ("E", "I")]
    return time_of_chain(model, n_agents, lambda counts: counts[:, sick].sum(1) == 0)


def closed_form(infection, n_agents):
    """For infections at infection·n(N - n)/(N - 1)."""
    barrier = np.log(infection) + 1 / infection - 1
    spread = np.sqrt(2 * np.pi / n_agents) * infection / (infection - 1) ** 2
    return spread * np.exp(1 - 1 / infection + n_agents * barrier)


@pytest.mark.parametrize("infection", [1.5, pytest.param(8.0, marks=pytest.mark.slow)])
def test_epidemics_end_at_the_time_of_the_closed_form(infection):
    found = lifetime(epidemic(infection), n_agents=[50]).isel(fixed_point=0)
    barrier = np.log(infection) + 1 / infection - 1
    assert abs(found["barrier"].item() - barrier) < 2 * found["barrier_error"].item() < 1e-5
    parts = found["prefactor"] * 50.0 ** found["power"] * np.exp(50 * found["barrier"])
    ratio = parts.item() / closed_form(infection, 50)
    assert abs(ratio - 1) < 2 * found["prefactor_error"].item() < 0.03
    assert found["power"] == -0.5
    assert abs(ratio * np.exp(1 / infection - 1) - 1) > 0.2, "the control: agents who may meet themselves"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"falls_ill": 1.0}, id="exposed"),
        pytest.param({"forgets": 3.0}, id="immune", marks=pytest.mark.slow),
    ],
)
def test_lifetimes_approach_those_of_exact_chains(options):
    model = epidemic(2.0, **options)
    found = lifetime(model, n_agents=SIZES).isel(fixed_point=0)
    off = np.abs(found["lifetime"].values / [time_of_epidemic(model, n) for n in SIZES] - 1)
    assert off[-1] < 0.05
    assert off[-1] < 0.7 * off[-2]


def test_where_rates_are_functions_the_closed_form_is_that_of_agents_who_may_meet_themselves():
    infection = 2.0
    model = meanfield.ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: infection * x["I"], 1.0])
    sizes = np.array([50, 100, 200])
    found = lifetime(model, n_agents=sizes).isel(fixed_point=0)
    barrier = np.log(infection) + 1 / infection - 1
    assert found["barrier"].item() == pytest.approx(barrier, rel=1e-8)
    prefactor = np.sqrt(2 * np.pi) * infection / (infection - 1) ** 2
    assert found["prefactor"].item() == pytest.approx(prefactor, rel=2 * found["prefactor_error"].item())
    assert found["prefactor_error"] < 0.01
    off = prefactor * np.exp(sizes * barrier) / np.sqrt(sizes) / found["lifetime"] - 1  # against the exact chain
    assert (np.abs(off[1:]) < 0.6 * np.abs(off[:-1].values)).all()


@pytest.mark.slow
def test_rates_that_are_functions_end_as_their_exact_chains():
    rates = [lambda x: 2 * x["I"] + 2 * x["I"] ** 2, 1.0, 3.0]
    model = meanfield.ReactionModel.from_rules({"S": "I", "I": "R", "R": "S"}, rates)
    found = lifetime(model, n_agents=SIZES).isel(fixed_point=0)
    assert found["reason"] == "" and found["power"] == -0.5 and found["prefactor_error"] < 0.02
    off = np.abs(found["lifetime"].values / [time_of_epidemic(model, n) for n in SIZES] - 1)
    assert off[-1] < 0.1 and off[-1] < 0.6 * off[-2]


@pytest.mark.slow
def test_a_word_dies_out():
    """Nobody says B who remembers only A. Of two agents who remember both words one or both say B: it spreads."""
    policy = meanfield.make_policy([0.5, 1.0, 0.1, 0.1, 0.3], ["A", "B"])
    sizes = [8, 16]
    found = lifetime(policy, n_agents=sizes).isel(fixed_point=0)
    off = np.abs(found["lifetime"].values / [time_of_words(policy, n) for n in sizes] - 1)
    assert off[1] < 0.1 and off[1] < 0.7 * off[0]
    path = escape_path(policy, fixed_point=found["fixed_point"].item())["word_share"].sel(word="A").values
    assert path[0] < 0.5 and path[-1] > 0.99


def time_of_words(policy, n_agents):
    """In rounds, without the empty memory, to which nobody comes back."""
    population = reaction_model(as_population(policy))
    kept = slice(1, None)
    model = meanfield.ReactionModel(
        population.states[kept],
        population.alpha[:, kept],
        population.beta[:, kept],
        [move[kept, kept] for move in population.first],
        [move[kept, kept] for move in population.second],
        encounter_rate=population.encounter_rate,
    )
    return time_of_chain(model, n_agents, lambda counts: counts[:, 0] == n_agents) / meanfield.TIME_PER_ROUND


@pytest.mark.parametrize(
    ("model", "reason", "has_path"),
    [
        (
            epidemic(3.0, forgets=0.3),
            r"others do not relax faster \(rate 0.3\) than the last agents die out \(2\)",
            False,
        ),
        (epidemic(3.0, forgets=2.5), "others relax little faster .* the prefactor does not hold", True),
    ],
    ids=["slow immunity", "little faster"],
)
def test_ends_that_have_no_prefactor(model, reason, has_path):
    end = absorbing_end(model.game, np.eye(1, model.n_states)[0], np.ones(model.n_states, bool), model.classes)
    assert isinstance(end, AbsorbingEnd) == has_path
    assert re.search(reason, end.slow if isinstance(end, AbsorbingEnd) else end)


@pytest.mark.slow
def test_immunity_that_is_lost_a_little_faster_has_a_barrier_only():
    found = lifetime(epidemic(3.0, forgets=2.5), n_agents=[10]).isel(fixed_point=0)
    assert found["barrier"].notnull() and found["lifetime"].isnull().all()
    assert "the prefactor does not hold" in found["reason"].item()


@pytest.mark.slow
def test_two_epidemics_that_are_alike_are_refused():
    """Independent ones: of each the other relaxes at the rate at which its last agents die out."""
    meet, alone = np.zeros((2, 4, 4)), np.zeros((4, 4))  # SS, SI, IS, II
    meet[0] = [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]  # the second is caught
    meet[1] = [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]
    alone[[1, 2, 3, 3], [0, 0, 1, 2]] = 1.0
    caught = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0]]) / 2
    states = ["SS", "SI", "IS", "II"]
    model = meanfield.ReactionModel(states, caught, [[0, 1, 0, 1], [0, 0, 1, 1]], list(meet), None, alone, 4.0)
    found = lifetime(model, n_agents=[10])
    assert found["lifetime"].isnull().all() and "do not relax faster" in found["reason"].item()


def test_agents_who_never_die_out_are_named():
    """The infected only recover when they meet each other: the last one never does."""
    model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "2 I": "S + I"}, 1.0)
    found = lifetime(model, n_agents=[10])
    number = found["fixed_point"].values[0]
    assert "never die out one by one" in found["reason"].item()
    with pytest.raises(InputError, match="never die out"):
        escape_path(model, fixed_point=number)
