"""Labels count, not positions, at every public function that takes something labelled.

Each call in `CALLS` is made twice: with its inputs as they are, and with states, words and components permuted and dims
reversed. Both results have to be the same to the last bit, up to rounding for those in `ROUNDED`. Labels that are
foreign or there twice have to be refused. A public name is in `CALLS` or, with a reason, in `NOTHING_LABELLED`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
import policy_extraction
import validation
from conftest import random_composition, random_policy
from meanfield import InputError

NUMBERED = ("component", "state", "word")
ROOMS = {"meanfield": meanfield, "validation": validation, "policy_extraction": policy_extraction}
SPACES = {"two words": (2, 1), "three words": (3, 1), "two attractors": (2, 2)}


class Given:
    """The inputs of a call, each changed when it is asked for."""

    def __init__(self, space: str, change: Callable[[str, Any], Any] = lambda name, value: value) -> None:
        self.space, self.change = space, change

    def __getattr__(self, name: str) -> Any:
        return self.change(name, INPUTS[name](self.space))

    @property
    def population(self) -> meanfield.Population:
        # Committed agents say the word that is last: were words in their order by chance, it would not be seen.
        share = {meanfield.words_of(self.policy)[-1]: 0.05}
        return meanfield.Population([self.policy, self.other], fractions=[0.7, 0.3], committed=share)


def conformist() -> xr.Dataset:
    """H = 2: say what was said and heard more often; two attractors with a saddle between them."""
    space = meanfield.MemorySpace(2, 2)
    majority = np.array([np.sign(sum(2 - 2 * (a + b) for a, b in space.memory(i))) for i in range(space.n_states)])
    return meanfield.make_policy(np.where(majority == 0, 0.52, 0.5 + 0.495 * majority), ["a", "b"], model="conformist")


def policy(space: str, seed: int = 1) -> xr.Dataset:
    if space == "two attractors":
        return conformist() if seed == 1 else random_policy(seed, memory_length=2)
    return random_policy(seed, *SPACES[space]).assign_coords(model=f"random {seed}")


def stack(space: str) -> xr.Dataset:
    first, second = policy(space), policy(space, 2).assign_coords(model="random 1")
    words = [word.upper() for word in meanfield.words_of(second)]
    second = second.assign_coords(word_label=("word", words), pair="/".join(words))
    first = first.assign_coords(model="random 1")
    return xr.concat([first, second], "pair", coords=["word_label"], compat="override").expand_dims("model")


def composition(space: str, dims: tuple[str, ...] = ("state",)) -> xr.DataArray:
    n_states = policy(space).sizes["state"]
    sizes = {"component": 2, "start": 1, "state": n_states}
    number = int(np.prod([sizes[dim] for dim in dims[:-1]]))
    values = np.stack([random_composition(seed, n_states) for seed in range(number)])
    coords = {dim: np.arange(sizes[dim]) for dim in dims}
    return xr.DataArray(values.reshape([sizes[dim] for dim in dims]), dims=dims, coords=coords)


def empirical(space: str) -> xr.Dataset:
    one = policy(space)
    return one.assign(alpha=one["q"] * 7 + 0.3)


def simulation(space: str, seed: int = 1) -> xr.Dataset:
    options = {"n_agents": [6, 24], "runs": 3, "max_rounds": 40, "record_rounds": 4}
    return validation.simulate(policy(space), seed=seed, **options)


def measured() -> xr.Dataset:
    """A policy with its record, H = 1."""
    return policy_extraction.extract(answers(), words=("his", "her"), memory_length=1)


def answers() -> policy_extraction.TableBackend:
    def law(memory: tuple, order: tuple) -> dict[str, float]:
        return {"his": 0.2 + 0.1 * len(memory) + 0.05 * (order[0] == "his"), "her": 0.3}

    return policy_extraction.TableBackend(law, ("his", "her"), 1)


def variants(space: str) -> xr.Dataset:
    both = xr.concat([policy(space), policy(space, 2)], "variant", coords="minimal", compat="override")
    return both.assign_coords(variant=["plain", "newest first"])


def infection() -> meanfield.ReactionModel:
    """Three states in which one is left alone: susceptible, infected, recovered."""
    becomes = np.array([[0.0, 1, 0], [0, 1, 0], [0, 0, 1]])
    recover = np.array([[0.0, 0, 0], [0, 0, 0.3], [0.1, 0, 0]])
    return meanfield.ReactionModel(list("SIR"), [[1, 0, 0]], [[0, 1, 0]], [becomes], None, recover)


INPUTS: dict[str, Callable[[str], Any]] = {
    name: cache(make)
    for name, make in {
        "policy": policy,
        "other": lambda space: policy(space, 2),
        "stack": stack,
        "lone": lambda space: stack(space).isel(pair=[0]),
        "composition": composition,
        "compositions": lambda space: composition(space, ("component", "state")),
        "starts": lambda space: composition(space, ("start", "state")),
        "fractions": lambda space: xr.DataArray([0.7, 0.3], {"component": [0, 1]}, ("component",)),
        "empirical": empirical,
        "solution": lambda space: meanfield.solve(policy(space)),
        "simulation": simulation,
        "another": lambda space: simulation(space, 2),
        "comparison": lambda space: validation.compare(INPUTS["solution"](space), INPUTS["simulation"](space)),
        "bias": lambda space: validation.simulated_bias(INPUTS["simulation"](space)),
        "record": lambda space: measured(),
        "variants": variants,
        "report": lambda space: policy_extraction.check_policy(measured()),
        "mix": lambda space: xr.DataArray([0.7, 0.2, 0.1], {"state": list("SIR")}, ("state",)),
    }.items()
}

CALLS: dict[str, Callable[[Given], Any]] = {
    "meanfield.Population": lambda g: meanfield.Population([g.policy, g.other], fractions=g.fractions),
    "meanfield.ReactionModel": lambda g: [
        f(g.mix) for m in [infection()] for f in (m.drift, m.jacobian, m.generator, m.class_masses)
    ],
    "meanfield.as_population": lambda g: meanfield.as_population(g.policy),
    "meanfield.basins": lambda g: meanfield.basins(g.policy, family="dirichlet", starts=4),
    "meanfield.bifurcation": lambda g: meanfield.bifurcation(g.policy, word="b", spacing=0.2),
    "meanfield.canonical_order": lambda g: [
        meanfield.canonical_order(g.policy, "policy")["q"].transpose("state", "word"),
        meanfield.canonical_order(g.compositions, "composition").transpose("component", "state"),
    ],
    "meanfield.consensus": lambda g: meanfield.consensus(g.policy, "b"),
    "meanfield.convention": lambda g: meanfield.convention(
        g.solution["word_share"].sel(time=10).round(), meanfield.words_of(g.policy)
    ),
    "meanfield.critical_mass": lambda g: meanfield.critical_mass(g.policy, word="b"),
    "meanfield.dense_tensor": lambda g: meanfield.dense_tensor(g.policy),
    "meanfield.each_policy": lambda g: list(meanfield.each_policy([g.stack, g.policy])),
    "meanfield.empty_memories": lambda g: meanfield.empty_memories(g.policy),
    "meanfield.entropy": lambda g: meanfield.entropy(g.solution["word_share"]),
    "meanfield.finite_size": lambda g: meanfield.finite_size(g.policy, n_agents=24, times=np.arange(3.0)),
    "meanfield.fixed_points": lambda g: [meanfield.fixed_points(g.policy), meanfield.fixed_points(g.population)],
    "meanfield.group_size_law": lambda g: meanfield.group_size_law(g.policy),
    "meanfield.load_policy": lambda g: saved_and_loaded(g.stack),
    "meanfield.make_policy": lambda g: meanfield.make_policy(g.policy["q"], meanfield.words_of(g.policy)),
    "meanfield.name_of": lambda g: meanfield.name_of(g.policy),
    "meanfield.policy_hash": lambda g: [meanfield.policy_hash(g.policy), meanfield.policy_hash(g.stack)],
    "meanfield.reaction_fixed_points": lambda g: meanfield.reaction_fixed_points(infection(), initial=g.mix, starts=1),
    "meanfield.sensitivity": lambda g: meanfield.sensitivity(g.policy, of="word_share", fixed_point=0),
    "meanfield.single_policy": lambda g: meanfield.single_policy(g.policy),
    "meanfield.solve": lambda g: [meanfield.solve(g.policy, initial=g.starts), meanfield.solve(g.lone)],
    "meanfield.solve for stacks": lambda g: meanfield.solve(g.stack, initial=g.starts),
    "meanfield.solve for populations": lambda g: meanfield.solve(g.population, initial=g.compositions),
    "meanfield.solve_reactions": lambda g: meanfield.solve_reactions(infection(), g.mix, np.arange(3.0)),
    "meanfield.space_of": lambda g: meanfield.space_of(g.policy),
    "meanfield.spectrum": lambda g: [
        meanfield.spectrum(g.policy, g.composition),
        meanfield.spectrum(g.population, g.compositions),
    ],
    "meanfield.stability_table": lambda g: meanfield.stability_table(g.policy),
    "meanfield.stability_table for populations": lambda g: meanfield.stability_table([g.stack, g.population]),
    "meanfield.stamp": lambda g: meanfield.stamp(xr.Dataset(), "anything", g.policy),
    "meanfield.success_rate": lambda g: meanfield.success_rate(g.solution["word_share"]),
    "meanfield.validate_composition": lambda g: meanfield.validate_composition(g.compositions, g.population),
    "meanfield.validate_policy": lambda g: [meanfield.validate_policy(g.policy), meanfield.validate_policy(g.stack)],
    "meanfield.word_index": lambda g: meanfield.word_index(g.policy, "b"),
    "meanfield.words_of": lambda g: meanfield.words_of(g.policy),
    "validation.collective_bias": lambda g: validation.collective_bias(g.stack, n_agents=[6, 12], runs=4, seed=1),
    "validation.committed_minority": lambda g: validation.committed_minority(
        g.policy, n_agents=6, committed_word="b", initial="a", numbers=[1, 3], runs=4, seed=1
    ),
    "validation.compare": lambda g: validation.compare(g.solution, g.simulation),
    "validation.compare_ensembles": lambda g: validation.compare_ensembles(g.simulation, g.another),
    "validation.comparison_table": lambda g: validation.comparison_table(g.comparison),
    "validation.consensus_stability": lambda g: validation.consensus_stability(
        g.policy, "b", n_agents=6, runs=4, rounds=3, seed=1
    ),
    "validation.consensus_times": lambda g: validation.consensus_times(g.simulation),
    "validation.critical_size_from_simulation": lambda g: validation.critical_size_from_simulation(g.bias),
    "validation.exact_population": lambda g: [
        validation.exact_population(g.policy, 3).moments(rounds=[0, 1]),
        validation.exact_population(g.policy, 3, initial=g.composition).moments(rounds=[0, 1]),
    ],
    "validation.misalignment": lambda g: validation.misalignment(g.stack, g.bias),
    "validation.neutrality": lambda g: validation.neutrality(g.stack),
    "validation.sample_policies": lambda g: validation.sample_policies(g.empirical, 2, seed=1),
    "validation.simulate": lambda g: [
        validation.simulate(g.policy, n_agents=6, runs=3, seed=1, initial=g.composition, record_rounds=3),
        validation.simulate(g.population, n_agents=20, runs=3, seed=1, initial=g.compositions, record_rounds=3),
    ],
    "validation.simulated_bias": lambda g: validation.simulated_bias(g.simulation),
    "validation.sweep": lambda g: swept(g.stack),
    "policy_extraction.check_policy": lambda g: policy_extraction.check_policy([g.record, g.stack]),
    "policy_extraction.generation_test": lambda g: policy_extraction.generation_test(answers(), g.record, n=5, seed=1),
    "policy_extraction.policy_from_record": lambda g: policy_extraction.policy_from_record(g.record, order=1),
    "policy_extraction.policy_warnings": lambda g: policy_extraction.policy_warnings(g.report),
    "policy_extraction.variant_table": lambda g: policy_extraction.variant_table(g.variants),
}
TWO_WORDS_ONLY = {
    "meanfield.bifurcation",
    "meanfield.critical_mass",
    "meanfield.group_size_law",
    "meanfield.sensitivity",
    "validation.collective_bias",
    "validation.critical_size_from_simulation",
    "validation.misalignment",
    "validation.simulated_bias",
    *(name for name in CALLS if name.startswith("policy_extraction.")),
}
# Means over runs, and over states, are sums in the order in which memory holds them.
ROUNDED = {"validation.compare", "policy_extraction.check_policy", "policy_extraction.variant_table"}
# What JAX compiles for seconds; their inputs are refused at the same doors as those of the others.
COMPILED = {
    "meanfield.basins",
    "meanfield.finite_size",
    "meanfield.reaction_fixed_points",
    "meanfield.solve for populations",
    "meanfield.solve for stacks",
    "meanfield.solve_reactions",
    "meanfield.stability_table for populations",
}
# What needs a solution, or a search, of its own for three words
LONG_FOR_THREE_WORDS = {
    "meanfield.convention",
    "meanfield.entropy",
    "meanfield.fixed_points",
    "meanfield.solve",
    "meanfield.stability_table",
    "meanfield.success_rate",
    "validation.compare",
    "validation.comparison_table",
}
# They look at no more of a policy than this.
LOOKED_AT = {
    "meanfield.space_of": (),
    **dict.fromkeys(("meanfield.words_of", "meanfield.name_of", "meanfield.word_index"), ("word",)),
    **dict.fromkeys(("meanfield.convention", "meanfield.entropy", "meanfield.success_rate"), ("word",)),
}

NOTHING_LABELLED = {
    "exceptions and types": """InputError UnparsedError MemorySpace PopulationRuns SpeechRules Convention Transition
        ExactPopulation LazyPolicy TableOperations Backend Scores Sampling TableBackend Payoffs Prompt Template
        CostLimitError ServerError Limits OpenAIBackend TransformersBackend""",
    "files, which keep what they are given": "cache_folder check_writable load save whole_file open_sweep",
    "arrays by position": """compiled iterate value_and_gradient value_and_jacobian play_rounds select_runs drift
        linearised_drift all_roots wilson_interval""",
    "a model, whose states have names": "reaction_protocol",
    "rows of a table": """write_stability_csv write_stability_latex describe_stability stability_report
        empirical_policy individual_bias microscopic_bias validate_real_populations real_populations_report""",
    "nothing but options": """simulate_mechanism1 simulate_minimal_naming_game simulate_protocol predict_composition
        sample_crops simulate_society simulate_norms evaluation_form read_evaluation questionnaire_scores""",
    "neither states, words nor components": """endpoints flag_game_accuracy simulate_gossip compare_composition
        compare_mechanism1 average_norms compare_norms""",
    "a language model": """extract lazy_policy open_backend orders tempered load_template newest_first prompt_variants
        standard_variants unquoted comprehension live_population""",
}


def saved_and_loaded(policies: xr.Dataset) -> xr.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        return meanfield.load_policy(meanfield.save(policies, Path(folder) / "policies.nc"))


def swept(policies: xr.Dataset) -> xr.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        return validation.sweep(policies, folder, n_agents=[6], runs=2, max_rounds=20)


def shuffled(name: str, value: Any) -> Any:
    """The same labelled numbers: states, words and components in another order, dims in reverse."""
    if not isinstance(value, (xr.Dataset, xr.DataArray)):
        return value
    random = np.random.default_rng(len(name))
    for dim in (dim for dim in NUMBERED if value.sizes.get(dim, 1) > 1 and dim in value.coords):
        order = random.permutation(value.sizes[dim])
        # A rotation moves every label where the permutation is none.
        value = value.isel({dim: order if (np.diff(order) < 0).any() else np.roll(order, 1)})
    return value.transpose(*list(value.dims)[::-1])


def corrupted(value: Any) -> Iterator[tuple[str, Any]]:
    """`value` with a label twice and another missing, and with a foreign label; with the dim that has it."""
    for dim in NUMBERED:
        if isinstance(value, (xr.Dataset, xr.DataArray)) and dim in value.dims and dim in value.coords:
            labels = value[dim].values
            yield dim, value.isel({dim: [0, *range(value.sizes[dim] - 1)]})
            yield dim, value.assign_coords({dim: [*labels[:-1], "foreign" if labels.dtype.kind in "UO" else 99]})


def assert_same(one: Any, two: Any, rounded: bool) -> None:
    if isinstance(one, (list, tuple)) and not isinstance(one, str):
        assert len(one) == len(two)
        for each, other in zip(one, two, strict=True):
            assert_same(each, other, rounded)
    elif isinstance(one, meanfield.Population):
        assert one.sha256 == two.sha256
        assert_same(one.policies, two.policies, rounded)
    elif isinstance(one, (xr.Dataset, xr.DataArray)):
        check = xr.testing.assert_allclose if rounded else xr.testing.assert_identical
        check(one, two, **({"rtol": 1e-9, "atol": 1e-12} if rounded else {}))
    elif isinstance(one, Table):
        assert printed(one) == printed(two)
    else:
        np.testing.assert_array_equal(one, two)


def printed(table: Table) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def assert_aligns_by_label(call: Callable[[Given], Any], space: str, *, rounded: bool = False) -> None:
    assert_same(call(Given(space)), call(Given(space, shuffled)), rounded)


@pytest.mark.parametrize("room", ROOMS)
def test_no_public_name_is_forgotten(room):
    excepted = {name for names in NOTHING_LABELLED.values() for name in names.split()}
    public = {name for name, value in vars(ROOMS[room]).items() if not name.startswith("_") and callable(value)}
    listed = {name.removeprefix(f"{room}.").partition(" ")[0] for name in CALLS if name.startswith(f"{room}.")}
    assert public - excepted == listed


def test_no_exception_is_left_over():
    public = {name for room in ROOMS.values() for name in vars(room)}
    assert {name for names in NOTHING_LABELLED.values() for name in names.split()} <= public


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_permuted_inputs_give_the_same_labelled_result(name):
    assert_aligns_by_label(CALLS[name], "two words", rounded=name in ROUNDED)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - TWO_WORDS_ONLY - COMPILED - LONG_FOR_THREE_WORDS))
def test_so_do_three_words(name):
    assert_aligns_by_label(CALLS[name], "three words", rounded=name in ROUNDED)


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", CALLS)
def test_so_do_all_calls_in_every_space(name, space):
    if space == "three words" and name in TWO_WORDS_ONLY:
        pytest.skip("for two words")
    assert_aligns_by_label(CALLS[name], space, rounded=name in ROUNDED)


@pytest.mark.parametrize("name", CALLS)
def test_foreign_and_repeated_labels_are_refused(name):
    tried = 0
    for used in inputs_of(CALLS[name].__code__):
        for dim, wrong in corrupted(INPUTS[used]("two words")):
            if dim in LOOKED_AT.get(name, NUMBERED):
                tried += 1
                with pytest.raises(InputError):
                    CALLS[name](Given("two words", lambda asked, value, u=used, w=wrong: w if asked == u else value))
    assert tried or name in ("meanfield.space_of", "policy_extraction.policy_warnings")


def inputs_of(code: CodeType) -> set[str]:
    """The names of `INPUTS` that a call asks for, those of its inner functions included."""
    inner = (inputs_of(one) for one in code.co_consts if isinstance(one, CodeType))
    return {name for name in code.co_names if name in INPUTS}.union(*inner)


def by_position(g: Given) -> xr.Dataset:
    """A function as it must not be: it takes the numbers of a policy as they stand."""
    return meanfield.stamp(xr.Dataset(), "anything", meanfield.make_policy(g.policy["q"].values, ["a", "b"]))


def test_what_works_by_position_is_found():
    with pytest.raises((AssertionError, InputError)):
        assert_aligns_by_label(by_position, "two words")


def test_what_looks_at_words_only_by_position_is_found():
    def share(g: Given) -> np.ndarray:
        return g.solution["word_share"].transpose("time", "word").values[-1]

    with pytest.raises(AssertionError):
        assert_aligns_by_label(share, "two words")
