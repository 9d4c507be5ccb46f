"""The policy schema: what it refuses, and that files keep everything."""

import hashlib

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
from conftest import random_policy
from meanfield import InputError
from meanfield.toolbox import _files, name_of, policy_hash, single_policy


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
    assert policy_hash(policy) == policy_hash(random_policy(1))
    assert policy_hash(policy) != policy_hash(changed)


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


Q = np.full((5, 2), 0.5)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (Q + 0.1j, "q has dtype complex128: expected real numbers"),
        (Q > 0.4, "q has dtype bool: expected real numbers"),
        (Q.astype(str), "q has dtype <U32: expected real numbers"),
        (Q.astype(object), "q has dtype object: expected real numbers"),
        (np.ma.array(Q, mask=np.eye(5, 2)), "q has 2 masked values: expected none"),
        ([np.ma.array(row, mask=[True, False]) for row in Q], "q has 5 masked values: expected none"),
        (pd.DataFrame(Q), "q is a pandas DataFrame: expected an array or an xarray.DataArray"),
        ([[0.5, 0.5], [0.5]], "q: expected an array of real numbers"),
        (xr.DataArray(Q, dims=("state", "column")), "q has a dim column: expected state, word"),
        (random_policy(1)["q"].assign_coords(word_label=("word", ["b", "a"])), r"\['b', 'a'\]: expected \['a', 'b'\]"),
        (np.float32([[0.1, 0.9]] * 5), r"q\[state=0\] sums to 0.9999999\d+ over the words: expected 1"),
    ],
)
def test_what_is_no_table_of_real_numbers_is_refused(q, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        meanfield.make_policy(q, ["a", "b"])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.longdouble])
def test_other_numbers_become_float64(dtype):
    first = np.array([0, 1, 0, 1, 1], dtype=dtype)
    policy = meanfield.make_policy(np.stack([first, 1 - first], axis=1), ["a", "b"])
    assert policy["q"].dtype == np.float64
    assert meanfield.make_policy(np.ma.array(Q), ["a", "b"]).identical(meanfield.make_policy(Q, ["a", "b"]))


def test_a_table_with_labels_counts_by_labels():
    policy = random_policy(1, n_words=3)
    moved = policy["q"].isel(word=[2, 0, 1], state=np.roll(range(10), 3)).transpose("word", "state")
    assert meanfield.make_policy(moved, ["a", "b", "c"], model="random").identical(policy)


UNKEPT = ["a\0", "a\0b", "\ud800", None, 1, b"b"]


@pytest.mark.parametrize("text", UNKEPT)
def test_texts_that_files_do_not_keep_are_refused(text, unchecked_types):
    for options in ({"words": ["a", text]}, {"words": ["a", "b"], "attrs": {text: 1}}):
        with pytest.raises(InputError, match="expected text without NUL and lone surrogates"):
            meanfield.make_policy(Q, **options)
    if text is not None:
        with pytest.raises(InputError, match=r"model has .*: expected text"):
            meanfield.make_policy(Q, ["a", "b"], model=text)
    labels = np.array(["a", text], dtype=object)
    with pytest.raises(InputError, match=r"policy.word_label has .*: expected text"):
        meanfield.validate_policy(random_policy(1).assign_coords(word_label=("word", labels)))


def test_empty_words_and_names_are_refused():
    with pytest.raises(InputError, match="words has '': expected words that are not empty"):
        meanfield.make_policy(Q, ["a", ""])
    with pytest.raises(InputError, match="attrs has '': expected names that are not empty"):
        meanfield.make_policy(Q, ["a", "b"], attrs={"": 1})


@pytest.mark.parametrize("value", [None, {}, True, 2**70, "a\0", ("a", 1), np.datetime64("2020-01-01"), 1j, b"x"])
def test_attrs_that_files_do_not_keep_are_refused(value, unchecked_types):
    with pytest.raises(InputError, match=r"attrs\['note'\] = .*: expected numbers, texts"):
        meanfield.make_policy(Q, ["a", "b"], attrs={"note": value})


def test_attrs_come_back_from_files(tmp_path, unchecked_types):
    attrs = {"text": "", "number": 1.5, "whole": np.int64(3), "list": [1, 2], "texts": ["a", "b"]}
    path = meanfield.save(meanfield.make_policy(Q, ["a", "é"], attrs=attrs), tmp_path / "policy.nc")
    found = meanfield.load_policy(path).attrs
    assert {name: np.asarray(found[name]).tolist() for name in attrs} == {
        name: np.asarray(value).tolist() for name, value in attrs.items()
    }


def test_permuted_labels_are_put_back_and_relabelled_policies_are_others():
    policy = random_policy(1, memory_length=2)
    moved = policy.isel(word=[1, 0]).sortby(policy["q"][:, 0]).transpose("word", "state")
    assert meanfield.validate_policy(moved).identical(policy)
    assert not meanfield.validate_policy(moved.assign_coords(word=[0, 1])).identical(policy)
    without = policy.drop_vars(["state", "word"])
    assert meanfield.validate_policy(without).identical(policy), "position counts where there is no coordinate"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"word": [1, 1]}, "policy has 2 times word = 1: expected 0 to 1, each once"),
        ({"word": [1, 2]}, "policy has word = 2: expected 0 to 1, each once"),
        ({"word": ["a", "b"]}, "policy has word = 'a': expected 0 to 1"),
        ({"word": [False, True]}, "policy has word = False: expected 0 to 1"),
        ({"state": np.arange(5) + 1}, "policy has state = 5: expected 0 to 4"),
        ({"state": [0, 1, 2, 3, np.nan]}, "policy has state = nan: expected 0 to 4"),
    ],
)
def test_foreign_labels_are_refused_by_name(change, message):
    with pytest.raises(InputError, match=message):
        meanfield.validate_policy(random_policy(1).assign_coords(change))


def test_a_part_of_the_states_is_no_policy():
    policy = random_policy(1, memory_length=2).drop_attrs()
    with pytest.raises(InputError, match="policy has state = 17: expected 0 to 4"):
        meanfield.fixed_points(policy.isel(state=[0, 17, 18, 19, 20]))


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
    names = [name_of(one) for one in meanfield.each_policy(stack)]
    assert names == ["m {a, b}", "m {c, d}", "n {c, d}"]
    with pytest.raises(InputError, match="2 models and 2 pairs"):
        single_policy(stack)


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
        single_policy(empty)
    with pytest.raises(InputError, match="holds no policy"):
        meanfield.solve(empty)
    with pytest.raises(InputError, match="policies is empty"):
        meanfield.stability_table(empty)


def test_memory_length_need_not_be_among_the_attrs():
    policy = random_policy(1)
    del policy.attrs["memory_length"]
    assert meanfield.solve(policy).attrs["memory_length"] == 1


@pytest.fixture
def saved(tmp_path):
    return meanfield.save(random_policy(1, memory_length=2), tmp_path / "policy.nc")


def test_any_flipped_bit_is_told(saved):
    content = saved.read_bytes()
    end = len(content) - _files.CHECKSUM_LENGTH
    for at in [*range(0, end, end // 50), len(content) - 60, len(content) - 2]:
        saved.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(InputError, match=r"policy.nc: .*its bytes are not those that were saved"):
            meanfield.load(saved)


def test_files_of_other_programs_are_read(saved):
    policy = meanfield.load(saved)
    policy.to_netcdf(saved.with_name("other.nc"), engine="h5netcdf")
    assert meanfield.load(saved.with_name("other.nc")).identical(policy)
    with h5py.File(saved, "r+") as file:  # the library cuts the checksum off
        file.attrs["note"] = "changed"
    assert meanfield.load(saved).attrs["note"] == "changed"


def test_what_a_file_declares_is_bounded_before_it_is_read(tmp_path):
    with h5py.File(tmp_path / "large.nc", "w") as file:
        file.create_dataset("q", shape=(10**11, 2), dtype="f8", chunks=(1000, 2))
    content = (tmp_path / "large.nc").read_bytes()
    assert len(content) < 10_000
    digest = hashlib.sha256(content).hexdigest().encode()
    for name, end in (("foreign.nc", b""), ("signed.nc", _files.CHECKSUM % digest)):
        (tmp_path / name).write_bytes(content + end)
        with pytest.raises(InputError, match="declares 1600000000000 bytes"):
            meanfield.load(tmp_path / name)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("while True: pass", "takes more than 1 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ends a process with -11"),
    ],
)
def test_a_library_that_hangs_or_dies_does_so_in_another_process(saved, tmp_path, monkeypatch, script, message):
    (tmp_path / "trial.py").write_text(script)
    monkeypatch.setattr(_files._netcdf_trial, "__file__", str(tmp_path / "trial.py"))
    monkeypatch.setattr(_files, "PATIENCE", 1.0 if "while" in script else 60.0)
    saved.write_bytes(saved.read_bytes()[: -_files.CHECKSUM_LENGTH])
    with pytest.raises(InputError, match=message):
        meanfield.load(saved)


def test_what_netcdf_cannot_hold_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="expected what NetCDF holds"):
        meanfield.save(random_policy(1).assign_attrs(note={"a": 1}), tmp_path / "policy.nc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": ["a", "a\0"]}, "^words "),
        ({"words": ["a", 1]}, "^words "),
        ({"words": "ab"}, "^words "),
        ({"words": []}, "^words "),
        ({"q": np.full(5, 0.5 + 1j)}, "^q .*complex128"),
        ({"q": np.full(5, "0.5")}, "^q"),
        ({"q": [[0.5], [0.5, 0.5]]}, "^q"),
        ({"model": ("m",)}, "^model"),
        ({"attrs": {1: 2}}, "^attrs"),
    ],
)
def test_what_is_no_policy_is_refused_before_it_is_changed(arguments, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        meanfield.make_policy(**({"q": np.full(5, 0.5), "words": ["a", "b"]} | arguments))


def test_a_message_is_one_line_of_bounded_length():
    error = InputError("words = 'a\nb': " + "x" * 10_000 + ", expected others")
    assert "\n" not in str(error) and len(str(error)) < 2000 and str(error).endswith("expected others")
    assert str(InputError("short,  as it is")) == "short,  as it is"
