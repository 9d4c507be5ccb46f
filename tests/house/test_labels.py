"""Labels count, not positions, at every public function that takes something labelled.

Each call in `CALLS` is made twice: with its inputs as they are, and with states, words and components permuted and dims
reversed. Both results have to be the same to the last bit, up to rounding for those in `ROUNDED`. Labels that are
foreign or there twice have to be refused. A public name is in `CALLS` or, with a reason, in `NOTHING_LABELLED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
from _labelled_calls import (
    CALLS,
    COLLECTIONS,
    COMPILED,
    INPUTS,
    LONG_FOR_THREE_WORDS,
    LOOKED_AT,
    ROUNDED,
    SPACES,
    TWO_WORDS_ONLY,
    Given,
)
from meanfield import InputError
from meanfield.toolbox import stamp

NUMBERED = ("component", "state", "word")
ROOMS = (
    "meanfield",
    "meanfield.toolbox",
    "validation",
    *(f"validation.{room}" for room in ["comparison", "flag_game", "minimal_naming_game", "naming_game"]),
    *(f"validation.{room}" for room in ("populations", "reactions")),
    "policy_extraction",
    *(
        f"policy_extraction.{room}"
        for room in ["prompts", "backends", "backends.api", "backends.local", "measuring", "checks"]
    ),
)

NOTHING_LABELLED = {
    "exceptions and types": """
        meanfield: MeanfieldError InputError ModelError StorageError ConvergenceError MemorySpace
        validation.naming_game: Convention ExactPopulation LazyPolicy
        validation.reactions: Transition
        policy_extraction.backends: Backend Scores TableBackend
        policy_extraction.measuring: Sampling
        policy_extraction.prompts: Payoffs Prompt Template
        policy_extraction.backends.api: CostLimitError ServerError OpenAIBackend
        policy_extraction: Limits
        policy_extraction.backends.local: TransformersBackend
    """,
    "files, which keep what they are given": """
        meanfield: cache_folder load save
        meanfield.toolbox: check_working_folder existing_file path_of whole_file
        validation.naming_game: open_sweep
    """,
    "arrays by position": """
        meanfield.toolbox: all_roots copy_to exact_interval in_threads increasing_times past_slots summed
        meanfield.toolbox: wilson_interval
    """,
    "what the rooms share": """
        meanfield.toolbox: PrintedTable number_hint
        meanfield.toolbox: check_memory read_csv column_numbers ResumableLog check_level is_number real_number shown
            in_order shortened whole_number real_numbers one_of one_or_several instance labelled stability
            stability_columns expect column_whole_numbers labels_of label_of renamed word_coords word_number
            UnparsedError in_braces model_name check_columns different names_of
    """,
    "rows of a table": """
        meanfield: write_stability describe_stability stability_report
        validation.populations: empirical_policy individual_bias microscopic_bias winners validate report
        validation.populations: cross_validate choice_scores one_policy sharpness mixture back_off_policy success_curves
    """,
    "nothing but options": """
        validation.flag_game: simulate predict_composition sample_crops
        validation.minimal_naming_game: simulate
        validation.reactions: simulate
    """,
    "neither states, words nor components": """
        validation.flag_game: endpoints accuracy simulate_gossip compare_composition compare
    """,
    "a language model": """
        policy_extraction: cost extract lazy_policy listener measure open_backend predicted_policy load_template
        policy_extraction: robustness
        policy_extraction.prompts: orders
        policy_extraction.measuring: tempered newest_first prompt_variants standard_variants unquoted
        policy_extraction.checks: asked_again comprehension live_population
    """,
}


def public_names() -> set[str]:
    """Dotted names of everything callable; what a package and its room both give out is named by the package."""
    names: dict[Any, str] = {}
    for room in ROOMS:
        door = import_module(room)
        for name in (name for name in getattr(door, "__all__", vars(door)) if not name.startswith("_")):
            value = getattr(door, name)
            if callable(value):
                names.setdefault(value, f"{room}.{name}")
    return set(names.values())


def excepted() -> set[str]:
    found, room = set(), ""
    for word in " ".join(NOTHING_LABELLED.values()).split():
        if word.endswith(":"):
            room = word[:-1]
        else:
            found.add(f"{room}.{word}")
    return found


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


def assert_aligns_by_label(call: Callable[[Given], Any], space: str) -> None:
    assert_same(call(Given(space)), call(Given(space, shuffled)), rounded=False)


@cache
def result_of(name: str, space: str) -> Any:
    return CALLS[name](Given(space))


def assert_same_for(name: str, space: str, change: Callable[[str, Any], Any]) -> None:
    assert_same(result_of(name, space), CALLS[name](Given(space, change)), rounded=name in ROUNDED)


def numbered(name: str, value: Any) -> Any:
    """The value as files of older versions have it: numbers along `word`, and the words in `word_label` only."""
    if not isinstance(value, (xr.Dataset, xr.DataArray)) or "word_number" not in value.coords:
        return value
    return value.assign_coords(word=value["word_number"].values).drop_vars("word_number")


def arrays_of(result: Any) -> Iterator[xr.DataArray]:
    if isinstance(result, (list, tuple)) and not isinstance(result, str):
        for each in result:
            yield from arrays_of(each)
    elif isinstance(result, (xr.Dataset, xr.DataArray)):
        yield from result.data_vars.values() if isinstance(result, xr.Dataset) else [result]


def test_no_public_name_is_forgotten_or_left_over():
    assert public_names() - {name.partition(" ")[0] for name in CALLS} == excepted()


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_permuted_inputs_give_the_same_labelled_result(name):
    assert_same_for(name, "two words", shuffled)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - TWO_WORDS_ONLY - COMPILED - LONG_FOR_THREE_WORDS))
def test_so_do_three_words(name):
    assert_same_for(name, "three words", shuffled)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_inputs_that_older_versions_saved_give_the_same_result(name):
    assert_same_for(name, "two words", numbered)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one in COMPILED else one for one in CALLS]
)
def test_results_for_one_policy_are_selected_by_word(name):
    for array in arrays_of(result_of(name, "two words")):
        if "word" in array.dims and (name not in COLLECTIONS or array["word_label"].ndim == 1):
            words = array["word"].values.tolist()
            assert [word.lower() for word in words] in (["a", "b"], ["his", "her"])
            for number, word in enumerate(words):
                xr.testing.assert_identical(array.sel(word=word), array.isel(word=number))


def test_a_policy_from_a_stack_is_selected_by_word():
    stack = Given("two words").stack
    one = stack.isel(model=0).sel(pair="A/B").set_index(word="word_label")
    assert one["q"].sel(word="B").identical(one["q"].isel(word=1))
    assert meanfield.validate_policy(one.isel(word=[1, 0])).identical(list(meanfield.each_policy(stack))[1])


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", CALLS)
def test_so_do_all_calls_in_every_space(name, space):
    if space == "three words" and name in TWO_WORDS_ONLY:
        pytest.skip("for two words")
    assert_same_for(name, space, shuffled)


@pytest.mark.parametrize("name", CALLS)
def test_foreign_and_repeated_labels_are_refused(name):
    tried = 0
    for used in inputs_of(CALLS[name].__code__):
        for dim, wrong in corrupted(INPUTS[used]("two words")):
            if dim in LOOKED_AT.get(name, NUMBERED):
                tried += 1
                with pytest.raises(InputError):
                    CALLS[name](Given("two words", lambda asked, value, u=used, w=wrong: w if asked == u else value))
    assert tried or name in ("meanfield.toolbox.space_of", "policy_extraction.policy_warnings")


def inputs_of(code: CodeType) -> set[str]:
    """The names of `INPUTS` that a call asks for, those of its inner functions included."""
    inner = (inputs_of(one) for one in code.co_consts if isinstance(one, CodeType))
    return {name for name in code.co_names if name in INPUTS}.union(*inner)


def by_position(g: Given) -> xr.Dataset:
    """A function as it must not be: it takes the numbers of a policy as they stand."""
    return stamp(xr.Dataset(), "anything", meanfield.make_policy(g.policy["q"].values, ["a", "b"]))


def test_what_works_by_position_is_found():
    with pytest.raises((AssertionError, InputError)):
        assert_aligns_by_label(by_position, "two words")


def test_what_looks_at_words_only_by_position_is_found():
    def share(g: Given) -> np.ndarray:
        return g.solution["word_share"].transpose("time", "word").values[-1]

    with pytest.raises(AssertionError):
        assert_aligns_by_label(share, "two words")
