"""Values of all kinds as arguments of policies, memories, populations and reaction models."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meanfield
from _policies import random_policy
from meanfield import InputError

LONGEST_MESSAGE = 2000  # characters
ANYTHING = [0, 1, 2, 3, -1, 0.5, 1.5, 1e-300, 1e300, np.inf, -np.inf, np.nan, 2**40, 2**63, 10**400, True, None]
ANYTHING += ["2", 1j]
ANYTHING += [np.float32(0.5), np.int8(2), np.int64(5), np.array(2), np.array([2]), [], [1], {}, (1, 2), b"2", object()]
WORDS = ["a", "b", "his", "her", "", "é", "a b", "a/b", "\n", "\0", "x" * 5000, 1, None, ("a",), np.str_("c"), b"a"]
WORDS += [np.nan]
NOT_STATES = [[1, 2], [("a", 1), ("b", 2)], [()], None, [None], [["a"]], [np.nan], 3, "ab", ["a", "a"]]
NOT_RATES = [[[1], [1, 2]], [[["a"]]], [None], scipy.sparse.csr_array((2, 2)), scipy.sparse.coo_array((2, 3))]
CHANGED = ("states", "alpha", "beta", "first", "second", "spontaneous", "encounter_rate", "time_unit")
SHAPES = [(5, 2), (5, 2), (21, 2), (85, 2), (10, 3), (91, 3), (26, 5), (4, 2), (0, 2), (5, 0), (5, 1), (5,), (2, 5)]
SHAPES += [(1, 5, 2), ()]

anything, word, seeds = st.sampled_from(ANYTHING), st.sampled_from(WORDS), st.integers(0, 99)


def mostly(good, *others):
    """The good strategy three times in four; `one_of` would take equal ones for one."""
    return st.integers(0, 3).flatmap(lambda number: good if number else st.one_of(*others))


def array(*shape):
    """Probabilities that may be right, with one that is wrong, or of another type."""

    def made(seed, wrong, kind):
        values = np.random.default_rng(seed).random(shape)
        values = values / values.sum(-1, keepdims=True) if values.ndim and values.size else values
        if values.size and wrong is not None:
            values.flat[seed % values.size] = wrong
        with np.errstate(all="ignore"):
            return values.astype(kind)

    wrong = mostly(st.none(), st.sampled_from([0, 1, -1e-17, np.nan, np.inf, 1.1, 1e300]))
    kind = mostly(st.just("f8"), st.sampled_from(["f4", "i8", "c16", "bool", "O", "U5"]))
    return st.builds(made, seeds, wrong, kind)


def makes_space(sizes, memory, number):
    space = meanfield.MemorySpace(*sizes)
    assert space.n_states > 0 and 0 < space.n_full < space.n_states
    assert space.memory(space.state(memory)) == tuple(memory)
    space.memory(number)


def finds_space(states, words):
    space = meanfield.MemorySpace.from_sizes(states, words)
    assert (space.n_states, space.n_words) == (states, words)


def makes_population(policies, fractions, committed, further):
    made = meanfield.Population(policies, fractions=fractions, committed=committed)
    assert made.mixture.share.sum() + made.mixture.committed.sum() == pytest.approx(1)
    assert made.name and made.sha256
    made.with_committed(*further)


def makes_reaction_model(size, channels, seed, sparse, changes):
    rng, states = np.random.default_rng(seed), list("abc")[:size]
    alpha, beta = rng.random((2, channels, size)) / [[[1]], [[max(channels, 1)]]]
    matrices = [rng.dirichlet(np.ones(size), size) if size else np.zeros((0, 0)) for _ in range(channels)]
    matrices = [scipy.sparse.csr_array(one) for one in matrices] if sparse else matrices
    rates = rng.random((size, size)) * (1 - np.eye(size))
    arguments = {"states": states, "alpha": alpha, "beta": beta, "first": matrices, "second": None}
    model = meanfield.ReactionModel(**arguments | {"spontaneous": rates, "encounter_rate": 0.5} | changes)
    assert model.n_classes >= 1 and model.fastest > 0


policies = st.lists(st.builds(random_policy, seeds, st.just(2), st.just(1)), min_size=1, max_size=3)
any_policies = st.lists(st.builds(random_policy, seeds, st.sampled_from([2, 3]), st.sampled_from([1, 2])), max_size=3)
wrong = anything | st.sampled_from([*NOT_STATES, *NOT_RATES]) | array(3, 3) | array(2, 3) | array(2)
size = st.sampled_from([2, 3, 5, 10**6, 10**18, np.int8(100), np.int64(2)])
CASES = {
    meanfield.make_policy: {
        "q": mostly(st.sampled_from(SHAPES).flatmap(lambda shape: array(*shape)), anything),
        "words": mostly(
            st.just(["a", "b"]),
            st.sampled_from(["ab", None, 3, {"a": 1, "b": 2}, (), ["a", ["b"]]]),
            st.lists(word, max_size=5),
        ),
        "model": mostly(st.sampled_from([None, "m"]), st.sampled_from(["", 1, ("a",), "\0"])),
        "attrs": mostly(
            st.sampled_from([None, {"a": 1}]), st.sampled_from([{"a": None}, {1: 2}, [("a", 1)], "text", 3])
        ),
    },
    makes_space: {
        "sizes": st.tuples(mostly(size, anything), mostly(size, anything)),
        "memory": st.lists(st.tuples(*[st.integers(-1, 3)] * 2), max_size=5),
        "number": st.sampled_from([0, -1, 1, 5, 2**70, 10**500]),
    },
    finds_space: {
        "states": st.sampled_from([5, 21, 85, 1365, 10, 91]) | st.integers(0, 10**18) | st.integers(0, 10**4),
        "words": st.sampled_from([2, 3]) | st.integers(0, 10**4),
    },
    makes_population: {
        "policies": mostly(policies, any_policies, anything, policies.map(lambda some: some[:1] * 3)),
        "fractions": mostly(st.none(), st.sampled_from([[0.5, 0.5], [1], [0.2, 0.3, 0.5]]), anything),
        "committed": mostly(
            st.just({"a": 0.1}),
            st.dictionaries(word, st.sampled_from([0, 0.1, 0.4]) | anything, max_size=2),
            anything,
        ),
        "further": mostly(st.just(("b", 0.2)), st.tuples(word, anything)),
    },
    makes_reaction_model: {
        "size": st.integers(0, 3),
        "channels": st.integers(0, 2),
        "seed": seeds,
        "sparse": st.booleans(),
        "changes": st.dictionaries(st.sampled_from(CHANGED), wrong, max_size=2),
    },
}


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("number", [60, pytest.param(6000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", CASES)
def test_arguments(make, number):
    """The constructor works, or refuses them in one line."""

    @settings(max_examples=number, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries(CASES[make]))
    def tried(arguments):
        try:
            make(**arguments)
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < LONGEST_MESSAGE

    tried()
