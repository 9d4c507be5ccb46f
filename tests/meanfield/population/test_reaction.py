"""The factorised reaction tensor against the paper's definitions, and the symmetries of the rate equation."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield
from _policies import drift, random_composition, random_policy
from meanfield import core
from meanfield.toolbox import space_of

seeds = st.integers(0, 2**31)
sizes = st.sampled_from([(2, 1), (2, 2), (3, 1), (2, 3), (4, 1)])
# The dense tensor stays small for these.
small = st.sampled_from([(2, 1), (2, 2), (3, 1)])


def tensor_by_definition(policy):
    """P_k(i, j) from the memories themselves, as [004] Eqs. 7, 8 and 16 define it."""
    space, q = space_of(policy), policy["q"].values
    tensor = np.zeros((space.n_states,) * 3)
    words = range(space.n_words)
    for i, j, own, partner in itertools.product(range(space.n_states), range(space.n_states), words, words):
        memory = [*space.memory(i), (own, partner)][-space.memory_length :]
        tensor[space.state(memory), i, j] += q[i, own] * q[j, partner]
    return tensor


def reaction_tensor(policy):
    return np.asarray(core.reaction_tensor(core.WordGame(policy["q"].values)))


@given(seeds, small)
@settings(max_examples=15, deadline=None)
def test_reaction_tensor_is_that_of_the_definition_and_conserves_agents(seed, size):
    policy = random_policy(seed, *size)
    tensor = reaction_tensor(policy)
    np.testing.assert_allclose(tensor, tensor_by_definition(policy), atol=1e-15)
    np.testing.assert_allclose(tensor.sum(0), 1, atol=1e-14)


@given(seeds, sizes, st.floats(0.1, 10))
@settings(max_examples=30, deadline=None)
def test_drift_conserves_agents_also_off_the_simplex_and_never_leads_out_of_it(seed, size, total):
    policy = random_policy(seed, *size)
    x = total * random_composition(seed, policy.sizes["state"])
    assert abs(drift(x, policy["q"].values).sum()) < 1e-13 * total
    x[::2] = 0
    assert (drift(x / x.sum(), policy["q"].values)[x == 0] >= 0).all()


def test_first_interactions_of_paper_000():
    """[000] Table 1 for {Q, M}: the equal-weight aggregates that it prints, and those weighted by probability."""
    space = meanfield.MemorySpace(2, 2)
    Q, M = 0, 1
    p_of_M = {
        (): 0.508,
        ((Q, M),): 0.951,
        ((M, Q),): 0.005,
        ((Q, Q),): 0.003,
        ((M, M),): 0.990,
        ((Q, M), (M, Q)): 0.549,
        ((M, Q), (Q, M)): 0.848,
        ((Q, M), (M, M)): 1.000,
        ((M, Q), (Q, Q)): 0.004,
        ((Q, Q), (Q, M)): 0.936,
        ((M, M), (M, Q)): 0.159,
        ((M, M), (M, M)): 0.999,
        ((Q, Q), (Q, Q)): 0.011,
    }
    second = np.full(space.n_states, 0.5)
    listed = {length: [] for length in (1, 2)}
    for memory, p in p_of_M.items():
        second[space.state(memory)] = p
        if memory:
            listed[len(memory)].append(space.state(memory))
    assert round(second[listed[1]].mean(), 3) == 0.487
    assert round(second[listed[2]].mean(), 3) == 0.563

    q = np.stack([1 - second, second], axis=1)
    x = np.eye(space.n_states)[0]
    weighted, mass = [], []
    for length in (1, 2):  # every agent meets a partner who has interacted as often as itself
        x = drift(x, q) + x
        held = x[listed[length]]
        weighted.append(held @ second[listed[length]] / held.sum())
        mass.append(held.sum())
    assert [round(float(w), 3) for w in weighted] == [0.495, 0.558]
    assert [round(float(m), 3) for m in mass] == [1.0, 0.983]


def test_a_model_shows_its_states_and_moves():
    model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [1.0, 0.5])
    assert repr(model) == "ReactionModel(2 states: S, I; 2 moves: S → I, I → S)"
    ring = {f"s{k}": f"s{(k + 1) % 9}" for k in range(9)}
    assert repr(meanfield.ReactionModel.from_rules(ring, 1.0)).count(", …") == 2
