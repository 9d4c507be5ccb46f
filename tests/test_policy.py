"""The policy schema: what it refuses, and that files keep everything."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from conftest import random_policy
from meanfield import InputError


def test_a_column_of_first_word_probabilities_is_enough_for_two_words():
    policy = meanfield.make_policy(np.linspace(0, 1, 5), ["his", "her"], model="m")
    np.testing.assert_array_equal(policy["q"].sum("word"), 1)
    assert policy["pair"].item() == "his/her"
    assert meanfield.words_of(policy) == ("his", "her")


def test_file_gives_back_the_same_policy(tmp_path):
    policy = random_policy(1, memory_length=3)
    path = meanfield.save(policy, tmp_path / "policy.nc")
    assert meanfield.load_policy(path).identical(policy)
    assert [file.name for file in tmp_path.iterdir()] == ["policy.nc"], "no partial file stays behind"


def test_longer_words_of_another_file_are_not_cut(tmp_path):
    files = []
    for words in (["his", "her"], ["woman", "Mexican"]):
        policy = meanfield.make_policy(np.full(5, 0.5), words, model="m")
        path = meanfield.save(policy, tmp_path / f"{words[0]}.nc")
        files.append(xr.load_dataset(path))  # with the encoding of the file, as a user may have loaded it
    both = xr.concat(files, "pair", coords="different", compat="equals")
    again = meanfield.load_policy(meanfield.save(both, tmp_path / "both.nc"))
    assert again["word_label"].values.tolist() == [["his", "her"], ["woman", "Mexican"]]
    assert again["pair"].values.tolist() == ["his/her", "woman/Mexican"]


def test_equal_policies_have_equal_hashes_and_others_do_not():
    policy = random_policy(1)
    changed = policy.copy(deep=True)
    changed["q"][0] = [0.25, 0.75]
    assert meanfield.policy_hash(policy) == meanfield.policy_hash(random_policy(1))
    assert meanfield.policy_hash(policy) != meanfield.policy_hash(changed)


def changed(**variables) -> xr.Dataset:
    return random_policy(1).assign(variables)


def with_value(value: float) -> xr.Dataset:
    policy = random_policy(1).copy(deep=True)
    policy["q"][3, 1] = value
    return policy


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (with_value(1.5), r"state=3, word=1\] = 1.5: expected a probability"),
        (with_value(-1e-3), "-0.001: expected a probability"),
        (with_value(np.nan), "nan: expected a probability"),
        (with_value(0.0), r"q\[state=3\] sums to 0\.\d+ over the words: expected 1"),
        (random_policy(1).drop_vars("q"), "expected q among them"),
        (random_policy(1).drop_vars("word_label"), "no coordinate word_label"),
        (random_policy(1).isel(state=slice(4)), "4 states with 2 words"),
        (random_policy(1).assign_attrs(memory_length=4), "memory_length = 4"),
        (random_policy(1).assign_coords(word_label=("word", ["a", "a"])), "words a, a: expected words that differ"),
        (random_policy(1).astype("float32"), "dtype float32"),
        (random_policy(1).rename(state="memory"), "has dims"),
        ("policy.nc", "is a str"),
    ],
)
def test_wrong_policy_is_refused_by_name(policy, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        meanfield.validate_policy(policy)


def test_rows_are_not_renormalised():
    with pytest.raises(InputError, match="sums to"):
        meanfield.make_policy(np.full((5, 2), 0.49), ["a", "b"])


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(InputError, match="expected a NetCDF file"):
        meanfield.load_policy(tmp_path / "text.nc")
    with pytest.raises(InputError, match="there is no such file"):
        meanfield.load_policy(tmp_path / "absent.nc")
    with pytest.raises(InputError, match="does not exist"):
        meanfield.save(random_policy(1), tmp_path / "absent" / "policy.nc")


def test_a_stack_is_taken_apart_and_its_absent_policies_passed_over():
    q = np.stack([random_policy(seed)["q"].values for seed in range(4)]).reshape(2, 2, 5, 2)
    q[1, 0] = np.nan
    stack = (
        random_policy(0)
        .drop_vars(["q", "model", "pair", "word_label"])
        .assign(q=(("model", "pair", "state", "word"), q))
        .assign_coords(model=["m", "n"], pair=["a/b", "c/d"], word_label=(("pair", "word"), [["a", "b"], ["c", "d"]]))
    )
    names = [meanfield.name_of(one) for one in meanfield.each_policy(stack)]
    assert names == ["m {a, b}", "m {c, d}", "n {c, d}"]
    with pytest.raises(InputError, match="2 models and 2 pairs"):
        meanfield.single_policy(stack)


def stack_of(*pairs):
    q = np.stack([random_policy(seed)["q"].values for seed in range(len(pairs))])
    coords = {"pair": list(pairs), "word_label": (("pair", "word"), [pair.split("/") for pair in pairs])}
    return xr.Dataset({"q": (("pair", "state", "word"), q)}, coords=coords)


def test_stacks_need_names_that_differ():
    meanfield.validate_policy(stack_of("a/b", "c/d"))
    with pytest.raises(InputError, match="dim pair without a coordinate of names that differ"):
        meanfield.validate_policy(stack_of("a/b", "a/b"))
    with pytest.raises(InputError, match="dim pair without a coordinate"):
        meanfield.validate_policy(stack_of("a/b", "c/d").drop_vars("pair"))


def test_a_stack_without_any_policy_is_refused():
    empty = stack_of("a/b")
    empty["q"][:] = np.nan
    with pytest.raises(InputError, match="expected a probability"):
        meanfield.single_policy(empty)
    with pytest.raises(InputError, match="holds no policy"):
        meanfield.solve(empty)
    with pytest.raises(InputError, match="policies is empty"):
        meanfield.stability_table(empty)


def test_memory_length_need_not_be_among_the_attrs():
    policy = random_policy(1)
    del policy.attrs["memory_length"]
    assert meanfield.solve(policy).attrs["memory_length"] == 1
