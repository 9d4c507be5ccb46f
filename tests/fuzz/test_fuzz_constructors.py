"""Values of all kinds as arguments of policies, memories, populations and reaction models."""

import numpy as np
import pytest
import scipy.sparse
import xarray as xr

import meanfield
from _fuzz import few_and_many, fuzz

NUMBERS = [0, 1, 2, 3, -1, 0.5, 1.5, 1e-300, 1e300, np.inf, -np.inf, np.nan, 2**40, 2**63, 10**400, True, None, "2", 1j]
NUMBERS += [np.float32(0.5), np.int8(2), np.int64(5), np.array(2), np.array([2]), [], [1], {}, (1, 2), b"2", object()]
WORDS = ["a", "b", "his", "her", "", "é", "a b", "a/b", "\n", "\0", "x" * 5000, 1, None, ("a",), np.str_("c"), b"a"]
WORDS += [np.nan]


def one_of(random, values):
    return values[random.integers(len(values))]


def array(random, shape):
    """Probabilities that may be right, with one or some wrong, or of another type."""
    values = random.random(shape)
    if values.ndim and values.size:
        values = values / values.sum(-1, keepdims=True)
        if random.random() < 0.5:
            values.flat[random.integers(values.size)] = one_of(random, [0, 1, -1e-17, np.nan, np.inf, 1.1, 1e300])
    kind = one_of(random, ["f8"] * 6 + ["f4", "i8", "c16", "bool", "O", "U5"])
    with np.errstate(all="ignore"):
        return values.astype(kind)


def some_words(random, number):
    if random.random() < 0.6:
        return [chr(ord("a") + k) for k in range(number)]
    if random.random() < 0.2:
        return one_of(random, ["ab", None, 3, np.array(["a", "b"]), {"a": 1, "b": 2}, (), ["a", ["b"]], iter("ab")])
    return [one_of(random, WORDS) for _ in range(number)]


def policy(random, **options):
    """A good one, of two or three words."""
    words = int(random.integers(2, 4))
    states = meanfield.MemorySpace(words, int(random.integers(1, 3))).n_states
    return meanfield.make_policy(random.dirichlet(np.ones(words), states), list("abc")[:words], **options)


def makes_policies(random):
    words = int(random.choice([0, 1, 2, 2, 2, 3, 5]))
    states = int(random.choice([0, 1, 4, 5, 5, 21, 85, 10, 91, 26]))
    shape = one_of(random, [(states, words), (states, words), (states,), (words, states), (1, states, words), ()])
    q = array(random, shape) if random.random() < 0.9 else one_of(random, NUMBERS)
    options = {}
    if random.random() < 0.3:
        options["model"] = one_of(random, ["m", "", None, 1, ("a",), "\0"])
    if random.random() < 0.3:
        options["attrs"] = one_of(random, [{}, {"a": 1}, {"a": None}, {1: 2}, {"kind": "other"}, [("a", 1)], "text", 3])
    meanfield.make_policy(q, some_words(random, words), **options)


def changes_policies(random):
    """A good policy, with variables, coordinates, dims or attributes of another kind."""
    changed = policy(random, model="m")
    for _ in range(random.integers(1, 3)):
        try:
            changed = change(random, changed)
        except Exception:  # not all can be made
            continue
        if not isinstance(changed, xr.Dataset):
            break
    meanfield.validate_policy(changed)
    for one in meanfield.each_policy(changed):
        meanfield.Population(one)


DIMS = ("state", "word", "state word", "word state", "pair", "run state")


def change(random, good):
    dims = one_of(random, [(), *(tuple(names.split()) for names in DIMS)])
    shape = [good.sizes.get(dim, 1) for dim in dims]
    name = one_of(random, ["q", "word_label", "state", "word", "pair", "model", "memory_length"])
    attribute = one_of(random, [one_of(random, NUMBERS), "text", [1, 2], np.zeros(3)])
    changes = [
        lambda: good.assign({name: (dims, array(random, shape))}),
        lambda: good.assign_coords({name: (dims, np.full(shape, one_of(random, WORDS[:11])))}),
        lambda: good.drop_vars(name),
        lambda: good.rename({one_of(random, ["q", "state", "word", "pair"]): "other"}),
        lambda: good.isel(state=slice(int(random.integers(0, 22)))),
        lambda: good.isel({one_of(random, ["state", "word"]): 0}),
        lambda: good.expand_dims(one_of(random, ["pair", "model", "run"])),
        lambda: good.assign_attrs(memory_length=attribute, kind=attribute),
        lambda: xr.concat([good, good], one_of(random, ["pair", "model", "run"]), coords="minimal"),
        lambda: good["q"],
        lambda: good.to_dataframe(),
    ]
    return one_of(random, changes)()


def makes_spaces(random):
    sizes = [2, 3, 5, 0, 1, -1, 10**6, 10**18, 10**400, np.int8(100), np.int64(2), 2.0, True, None, "2", np.nan, [2]]
    space = meanfield.MemorySpace(one_of(random, sizes), one_of(random, sizes))
    assert space.n_states > 0 and 0 < space.n_full < space.n_states
    memory = [tuple(random.integers(-1, 4, 2).tolist()) for _ in range(random.integers(0, 6))]
    state = space.state(memory)
    assert space.memory(state) == tuple(memory)
    space.memory(int(one_of(random, [0, -1, 1, 5, 2**70, 10**500])))


def finds_spaces(random):
    states, words = (int(10 ** random.uniform(-1, top)) for top in (18, 4))
    space = meanfield.MemorySpace.from_sizes(states, words)
    assert (space.n_states, space.n_words) == (states, words)


def makes_populations(random):
    policies = [policy(random) for _ in range(random.integers(0, 4))]
    if random.random() < 0.4 and policies:
        policies = policies[:1] * int(random.integers(1, 4))
    given = policies[0] if policies and random.random() < 0.2 else policies
    if random.random() < 0.1:
        given = one_of(random, [*NUMBERS, "text", [1], [None], {"a": 1}])
    fractions = one_of(
        random, [None, random.dirichlet(np.ones(max(len(policies), 1))), [0.5, 0.5], [1], one_of(random, NUMBERS)]
    )
    words = [one_of(random, WORDS) for _ in range(random.integers(0, 3))]
    shares = [one_of(random, [0, 0.1, 0.4, *NUMBERS]) for _ in words]
    committed = dict(zip(words, shares, strict=True)) if random.random() < 0.8 else one_of(random, NUMBERS)
    made = meanfield.Population(given, fractions=fractions, committed=committed)
    assert made.mixture.share.sum() + made.mixture.committed.sum() == pytest.approx(1)
    assert made.name and made.sha256
    made.with_committed(one_of(random, WORDS), one_of(random, NUMBERS))


def makes_reaction_models(random):
    size, channels = int(random.integers(0, 4)), int(random.integers(0, 3))
    states = list("abcd")[:size]
    if random.random() < 0.2:
        others = [[1, 2], [("a", 1), ("b", 2)], [()], None, [None], [["a"]], [np.nan], 3]
        states = one_of(random, ["ab", [*states, "a"], *others])
    arguments = {"alpha": random.random((channels, size)), "beta": random.random((channels, size)) / max(channels, 1)}
    for name in ("first", "second"):
        made = [random.dirichlet(np.ones(size), size) if size else np.zeros((0, 0)) for _ in range(channels)]
        made = [scipy.sparse.csr_array(matrix) if random.random() < 0.3 else matrix for matrix in made]
        arguments[name] = one_of(random, [None, made, made, [None] * channels])
    rates = random.random((size, size))
    np.fill_diagonal(rates, 0)
    arguments["spontaneous"] = one_of(random, [None, rates])
    arguments["encounter_rate"] = one_of(random, [1.0, 0.5])
    for name in list(arguments):
        if random.random() < 0.15:
            wrong = [*NUMBERS, *(array(random, shape) for shape in ((size, size), (channels, size), (2,)))]
            wrong += [[[1], [1, 2]], [[["a"]]], [None]]
            wrong += [scipy.sparse.csr_array((size or 1, size or 1)), scipy.sparse.coo_array((2, 3))]
            arguments[name] = one_of(random, wrong)
    if random.random() < 0.1:
        arguments["time_unit"] = one_of(random, NUMBERS)
    model = meanfield.ReactionModel(states, **arguments)
    assert model.n_classes >= 1 and model.fastest > 0


CASES = [
    (makes_policies, 60, 6000),
    (changes_policies, 40, 4000),
    (makes_spaces, 60, 6000),
    (finds_spaces, 60, 6000),
    (makes_populations, 40, 4000),
    (makes_reaction_models, 40, 4000),
]


@few_and_many(CASES)
def test_arguments(case, number, seed):
    assert fuzz(case, number, seed=seed) == []
