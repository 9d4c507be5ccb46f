"""Labels count, not positions, at every public function that takes something labelled.

Each call in `CALLS` is made twice: with its inputs as they are, and with states, words and components permuted and dims
reversed. Both results have to be the same to the last bit, up to rounding for those in `ROUNDED`. Labels that are
foreign or there twice have to be refused. A public name with labelled arguments is in `CALLS` or in `UNLABELLED`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
from _labelled_calls import CALLS, COLLECTIONS, COMPILED, INPUTS, LOOKED_AT, ROUNDED, SPACES, TWO_WORDS_ONLY, Given
from _public_names import PUBLIC, things
from meanfield import InputError
from meanfield.toolbox import stamp

NUMBERED = ("component", "state", "word")
LABELLED = re.compile(r"\b(Dataset|DataArray|Population|Policies|Labelled|Member)\b")
UNLABELLED = {
    *("meanfield.save", "meanfield.toolbox.in_order", "meanfield.toolbox.labels_of"),  # take what they are given
    *("meanfield.describe_stability", "meanfield.stability_report", "meanfield.write_stability"),  # rows of a table
    # Neither states, words nor components
    *(f"validation.flag_game.{name}" for name in ("accuracy", "compare_composition", "endpoints", "simulate_gossip")),
    "policy_extraction.norms.operation_probabilities",
}


def labelled_names() -> Iterator[str]:
    """Public functions that take something labelled; what two packages give out is named by the outer one."""
    seen = set()
    for package in [*PUBLIC, "meanfield.toolbox"]:
        if package.startswith(("theory", "meanfield.core")):  # arrays and tables
            continue
        for name, thing in things(package):
            if inspect.isfunction(thing) and thing not in seen:
                seen.add(thing)
                if any(LABELLED.search(str(one.annotation)) for one in inspect.signature(thing).parameters.values()):
                    yield f"{package}.{name}"


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


def test_no_public_name_is_forgotten():
    found = set(labelled_names())
    assert found - {name.partition(" ")[0] for name in CALLS} == UNLABELLED and len(found) > 40


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_permuted_inputs_give_the_same_labelled_result(name):
    assert_same_for(name, "two words", shuffled)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COMPILED))
def test_inputs_that_older_versions_saved_give_the_same_result(name):
    assert_same_for(name, "two words", numbered)


def calls(*, slow: set[str]) -> list[Any]:
    return [pytest.param(one, marks=pytest.mark.slow) if one in slow else one for one in CALLS]


@pytest.mark.parametrize("name", calls(slow=COMPILED))
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


@pytest.mark.parametrize("name", calls(slow={"policy_extraction.sample_policies"}))  # its input takes long
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
