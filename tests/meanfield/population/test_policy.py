"""The policy schema: what it refuses, and that files keep everything."""

import hashlib

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
from _policies import random_policy, relabelled
from meanfield import InputError
from meanfield.toolbox import _files, name_of, policy_hash, single_policy, word_coords


def test_a_file_gives_back_the_same_policy(tmp_path, unchecked_types):
    attrs = {"text": "", "number": 1.5, "whole": np.int64(3), "list": [1, 2], "texts": ["a", "b"]}
    policy = meanfield.make_policy(random_policy(1, memory_length=3)["q"].values, ["a", "é"], attrs=attrs)
    again = meanfield.load_policy(meanfield.save(policy, tmp_path / "policy.nc"))
    assert again.drop_attrs().identical(policy.drop_attrs())
    for name, value in attrs.items():
        assert np.asarray(again.attrs[name]).tolist() == np.asarray(value).tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["policy.nc"], "no partial file stays behind"


def test_longer_words_of_another_file_are_not_cut(tmp_path):
    files = []
    for words in (["his", "her"], ["woman", "Mexican"]):
        policy = meanfield.make_policy(np.full(5, 0.5), words, model="m")
        path = meanfield.save(policy, tmp_path / f"{words[0]}.nc")
        files.append(xr.load_dataset(path).drop_vars("word"))  # with the file's encoding, as a user may have loaded it
    both = xr.concat(files, "pair", coords="different", compat="equals")
    again = meanfield.load_policy(meanfield.save(both, tmp_path / "both.nc"))
    assert again["word_label"].values.tolist() == [["his", "her"], ["woman", "Mexican"]]
    assert again["pair"].values.tolist() == ["his/her", "woman/Mexican"]


def test_equal_policies_have_equal_hashes_and_others_do_not():
    policy, other = random_policy(1), random_policy(1).copy(deep=True)
    other["q"][0] = [0.25, 0.75]
    assert policy_hash(policy) == policy_hash(random_policy(1)) != policy_hash(other)


UNKEPT_VALUES = [None, {}, 2**70, ("a", 1)]
UNKEPT = ["a\0", "\ud800", 1]  # what files don't keep as a text


def changed(**coords) -> xr.Dataset:
    return random_policy(1).assign_coords(coords)


def policy_of(pair, seed=0):
    return meanfield.make_policy(random_policy(seed)["q"].values, pair.split("/"))


def stack_of(*pairs):
    policies = [policy_of(pair, seed).drop_vars("word") for seed, pair in enumerate(pairs)]
    return xr.concat(policies, "pair", coords=["word_label"], compat="override")


def side_by_side(*pairs, words=()):
    """Policies of different words, as `xr.concat` lays them: each is NaN at the words of the others."""
    policies = [policy_of(pair, seed) for seed, pair in enumerate(pairs)]
    policies += (
        [random_policy(1, n_words=3).assign_coords(word_coords(words)).assign_coords(pair="more")] if words else []
    )
    states = min(one.sizes["state"] for one in policies)
    policies = [one.isel(state=slice(states)) for one in policies]
    return xr.concat(policies, "pair", join="outer", coords="different", compat="equals")


def test_a_stack_of_the_words_of_all_pairs_is_one_with_numbers():
    """Also where pairs share words, or list them in another order."""
    for pairs in (("a/b", "c/d"), ("a/b", "b/c"), ("a/b", "b/a", "d/a")):
        both = meanfield.validate_policy(side_by_side(*pairs))
        assert both.identical(meanfield.validate_policy(stack_of(*pairs)))
        for one, pair, seed in zip(meanfield.each_policy(both), pairs, range(3), strict=False):
            np.testing.assert_array_equal(one["q"], policy_of(pair, seed)["q"])
        assert meanfield.solve(side_by_side(*pairs)).identical(meanfield.solve(stack_of(*pairs)))


def test_what_belongs_to_each_pair_stays_with_it():
    both = side_by_side("a/b", "c/d").assign_coords(category=("pair", ["one", "two"]))
    assert meanfield.validate_policy(both)["category"].values.tolist() == ["one", "two"]
    with pytest.raises(InputError, match=r"model has dims \('pair',\): expected one name"):
        meanfield.validate_policy(both.assign_coords(model=("pair", ["m1", "m2"])))


def with_value(value):
    policy = random_policy(1).copy(deep=True)
    policy["q"][3, 1] = value
    return policy


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (with_value(1.5), r"state=3 \(memory b/a\), word=b\] = 1.5: expected a probability"),
        (with_value(-1e-3), "-0.001: expected a probability"),
        (with_value(0.0), r"q\[state=3 \(memory b/a\)\] sums to 0\.\d+ over the words: expected 1"),
        (random_policy(1).drop_vars("q"), "policy: expected the result of meanfield.make_policy, but 'q' is missing"),
        (random_policy(1).drop_vars(["word", "word_label"]), "has no words"),
        (random_policy(1).assign_coords(word=["a", "c"]), "word_label = a, b: expected a, c, as along word"),
        (random_policy(1).isel(state=slice(4)), "4 states with 2 words"),
        (random_policy(1, 2, 2).drop_attrs().isel(state=[0, *range(17, 21)]), "policy has state = 17: expected 0 to 4"),
        (random_policy(1).assign_attrs(memory_length=4), r"memory_length'\] = 4: expected"),
        (random_policy(1).assign_coords(word_label=("word", ["a", "a"])), "words a, a: expected words that differ"),
        (random_policy(1).astype("complex64"), "dtype complex64"),
        (random_policy(1).rename(state="memory"), "has dims"),
        ("policy.nc", "policy: expected .* but it is a str"),
        (changed(word=[1, 1]), "policy has 2 times word = 1: expected 0 to 1, each once"),
        (changed(state=np.arange(5) + 1), "policy has state = 5: expected 0 to 4"),
        (stack_of("a/b", "a/b"), "dim pair: expected a coordinate of distinct names"),
        (
            side_by_side("a/b", "c/d", words=["c", "d", "e"]),
            r"pairs of \[2, 3\] words: expected the same number for each",
        ),
        *(
            (changed(word_label=("word", np.array(["a", t], object))), "word_label has .*: expected text")
            for t in UNKEPT
        ),
    ],
)
def test_wrong_policy_is_refused_by_name(policy, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        meanfield.validate_policy(policy)


Q = np.full((5, 2), 0.5)
MEMORIES = ["empty", "a/a", "a/b", "b/a", "b/b"]
TABLE = pd.DataFrame({"memory": MEMORIES, "a": 0.25, "b": 0.75})
SAID = dict.fromkeys(MEMORIES, 0.25)


def texts(cell):
    """A table with this text in place of the probabilities of a."""
    return TABLE.astype({"a": str}).replace("0.25", cell)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": Q + 0.1j}, "q has dtype complex128: expected real numbers"),
        ({"q": Q > 0.4}, "q has dtype bool: expected real numbers"),
        ({"q": Q.astype(object)}, "q has dtype object: expected real numbers"),
        ({"q": np.ma.array(Q, mask=np.eye(5, 2))}, "q has 2 masked values: expected none"),
        ({"q": [[0.5, 0.5], [0.5]]}, "q: expected an array of real numbers"),
        ({"q": xr.DataArray(Q, dims=("state", "column"))}, "q has a dim column: expected state, word"),
        ({"q": relabelled(random_policy(1), [1, 0])["q"]}, "q has the words b, a: expected a, b, as words"),
        ({"q": np.full((5, 2), 0.49)}, r"q\[state=0 \(memory empty\)\] sums to 0.98 over the words: expected 1"),
        (
            {"q": np.float32([[0.1, 0.90001]] * 5)},
            r"q\[state=0 \(memory empty\)\] sums to 1.0000\d+ over the words: expected 1",
        ),
        (
            {"q": np.array([0.5, 0.5, 0.5, 1.5, 0.5])},
            r"q\[state=3 \(memory b/a\), word=a\] = 1.5: expected a probability",
        ),
        ({"memory_length": 2}, "memory_length = 2: expected 1 for 5 states"),
        (
            {"q": lambda memory: 1 / len(memory), "memory_length": 1},
            r"q\(empty\) raises ZeroDivisionError: division by zero; .* An agent without memories remembers \(\)",
        ),
        (
            {"q": lambda memory: [0.5, {}["x"]] if memory else 0.5, "memory_length": 1},
            r"q\(a/a\) raises KeyError: 'x'; expected probabilities for every memory\.$",
        ),
        ({"q": lambda memory: 0.5}, "memory_length = None: expected H, the number"),
        ({"q": lambda memory: 0.5, "memory_length": 14}, "memory_length = 14: would take 313 GiB of memory"),
        (
            {"q": lambda memory: [0.5, 0.6], "memory_length": 1},
            r"q\(empty\) = \[0.5, 0.6\] sums to 1.1 over the words: expected 1 \(5 of 5 memories are wrong\)",
        ),
        ({"q": SAID, "memory_length": 2}, "q lacks 16 memories, a/a a/a, a/a a/b, a/a b/a, …: expected all 21 of"),
        ({"q": SAID | {(("a", "a"),): 0.25}, "memory_length": 1}, "q has the memory a/a twice"),
        ({"q": TABLE[1:]}, "q lacks a memory, empty: expected all 5 of memory_length = 1"),
        ({"q": TABLE.replace("a/b", "a/a")}, "q has the memory a/a twice: expected it once"),
        ({"q": TABLE.replace("a/b", "a/c")}, "q has the memory 'a/c': expected up to 1 pairs .* of a, b"),
        (
            {"q": TABLE.drop(columns="a")},
            "q has the columns memory, b: expected memory, or own_1, partner_1, …, and a, b",
        ),
        ({"q": texts("much")}, "q has 'much' in row 1, column a: expected a probability; 4 more cells are no numbers"),
        ({"q": texts("0,25")}, r"q has '0,25' in row 1, column a: expected a probability with a point, 0.25 \(pandas"),
        ({"q": texts("25 %")}, "q has '25 %' in row 1, column a: expected a probability, as 0.5 for 50 %"),
        ({"q": lambda memory: {"a": 0.5, "c": 0.5}, "memory_length": 1}, r"q\(empty\) = .*: expected .* each of a, b"),
        ({"q": "absent.csv"}, "q = absent.csv: there is no such file"),
        *(({"words": ["a", text]}, "words .*: expected text without NUL and lone surrogates") for text in UNKEPT),
        *(({"model": text}, r"model has .*: expected text") for text in UNKEPT if text is not None),
        *(({"attrs": {text: 1}}, "attrs .*: expected text without NUL and lone surrogates") for text in UNKEPT),
        *(({"attrs": {"note": value}}, r"attrs\['note'\] = .*: expected numbers, texts") for value in UNKEPT_VALUES),
        ({"words": ["a", ""]}, "words has '': expected words that are not empty"),
        ({"words": "ab"}, "^words = 'ab': expected a sequence"),
        ({"attrs": {"": 1}}, "attrs has '': expected names that are not empty"),
    ],
)
def test_what_is_no_policy_is_refused(arguments, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        meanfield.make_policy(**({"q": Q, "words": ["a", "b"]} | arguments))


def says(memory):
    """P(a): a depends on all words of a memory and on their order."""
    return 0.5 + sum(
        (-1) ** (own == "b") / 3**k + (partner == "b") / 5**k for k, (own, partner) in enumerate(memory, 2)
    )


def test_a_function_or_mapping_may_name_the_words():
    expected = meanfield.make_policy(says, ["a", "b"], memory_length=1)
    named = {memory: {"b": 1 - p, "a": p} for memory, p in zip(MEMORIES, expected["q"].values[:, 0], strict=True)}
    for source in (named, lambda memory: {"b": 1 - says(memory), "a": says(memory)}):
        assert meanfield.make_policy(source, ["a", "b"], memory_length=1).equals(expected)


@pytest.mark.parametrize("sign", [";", "\t"])
def test_a_table_with_other_separators_says_how_to_read_it(sign, tmp_path):
    path = tmp_path / "table.csv"
    TABLE.to_csv(path, index=False, sep=sign, decimal=",")
    with pytest.raises(InputError, match=r"q = .*table.csv: .*expected commas; pandas.read_csv\(path, sep="):
        meanfield.make_policy(path, ["a", "b"])
    read = pd.read_csv(path, sep=sign, decimal=",")
    assert meanfield.make_policy(read, ["a", "b"]).equals(meanfield.make_policy(TABLE, ["a", "b"]))


def test_functions_mappings_and_tables_give_the_policy_of_their_array(tmp_path):
    length, space = 2, meanfield.MemorySpace(2, 2)
    memories = [tuple(("ab"[own], "ab"[partner]) for own, partner in space.memory(i)) for i in range(space.n_states)]
    first = np.array([says(memory) for memory in memories])
    expected = meanfield.make_policy(first, ["a", "b"])
    np.testing.assert_array_equal(expected["q"], np.stack([first, 1 - first], 1))
    assert (expected["pair"].item(), meanfield.toolbox.words_of(expected)) == ("a/b", ("a", "b"))
    texts = [" ".join("/".join(pair) for pair in memory) for memory in memories]
    table = pd.DataFrame({"a": first, "b": 1 - first, "memory": texts, "note": 1}).sample(frac=1, random_state=1)
    columns = {
        f"{name}_{k + 1}": [m[k][w] if k < len(m) else None for m in memories]
        for k in range(length)
        for w, name in enumerate(("own", "partner"))
    }
    pairs = pd.DataFrame(columns).assign(a=first)[::-1]
    for number, one in enumerate((table, pairs)):
        one.to_csv(tmp_path / f"{number}.csv", index=False)
    sources = [
        dict(zip(memories, first, strict=True)),
        dict(zip([text or "empty" for text in texts], first, strict=True)),
        *(table, pairs, tmp_path / "0.csv", str(tmp_path / "1.csv")),
    ]
    for source in sources:
        assert meanfield.make_policy(source, ["a", "b"]).identical(expected)
    assert meanfield.make_policy(says, ["a", "b"], memory_length=length).identical(expected)


def test_functions_of_three_words_return_all_probabilities():
    policy = meanfield.make_policy(
        lambda memory: np.eye(3)["abc".index(memory[-1][1]) if memory else 0], list("abc"), memory_length=2
    )
    full = policy["q"][meanfield.MemorySpace(3, 2).state([(0, 1), (1, 2)])]
    assert full.sel(word="c") == 1 and full.sum() == 1


def test_rows_of_float32_are_divided_by_their_sums():
    rows = np.random.default_rng(1).dirichlet(np.ones(3), size=10).astype(np.float32)
    expected = rows / rows.sum(1, dtype=np.float64, keepdims=True)
    for source in (rows, xr.DataArray(rows, dims=("state", "word"))):
        np.testing.assert_array_equal(meanfield.make_policy(source, list("abc"))["q"], expected)
    for source in (lambda memory: np.float32([0.1, 0.9]), TABLE.assign(a=0.1, b=0.9).astype({"a": "f4", "b": "f4"})):
        q = meanfield.make_policy(source, ["a", "b"], memory_length=1)["q"]
        np.testing.assert_allclose(q.sum("word"), 1, rtol=1e-15)
    column = np.float32([0.1, 0.2, 0.3, 0.4, 1e-7])
    np.testing.assert_array_equal(meanfield.make_policy(column, ["a", "b"])["q"].sel(word="a"), np.float64(column))


@pytest.mark.parametrize(("dtype", "error"), [(">f4", 1e-7), (np.longdouble, 0)])
def test_numbers_of_other_tools_become_float64(dtype, error):
    policy = random_policy(1)
    q = meanfield.validate_policy(policy.assign(q=policy["q"].astype(dtype)))["q"]
    assert q.dtype == np.float64 and q.dtype.isnative
    np.testing.assert_allclose(q.sum("word"), 1, rtol=1e-15)
    np.testing.assert_allclose(q, policy["q"], atol=error)
    assert meanfield.make_policy(np.eye(2, dtype=np.int8)[[0, 1, 0, 1, 1]], ["a", "b"])["q"].dtype == np.float64
    assert meanfield.make_policy(np.ma.array(Q), ["a", "b"]).identical(meanfield.make_policy(Q, ["a", "b"]))


def test_a_table_with_labels_counts_by_labels():
    policy = random_policy(1, n_words=3)
    moved = policy["q"].isel(word=[2, 0, 1], state=np.roll(range(10), 3)).transpose("word", "state")
    assert meanfield.make_policy(moved, ["a", "b", "c"], model="random").identical(policy)


def test_permuted_labels_are_put_back_and_relabelled_policies_are_others():
    policy = random_policy(1, memory_length=2)
    moved = policy.isel(word=[1, 0]).sortby(policy["q"][:, 0]).transpose("word", "state")
    assert meanfield.validate_policy(moved).identical(policy)
    assert not meanfield.validate_policy(moved.assign_coords(word=[0, 1])).identical(policy)
    without = policy.drop_vars(["state", "word"])
    assert meanfield.validate_policy(without).identical(policy), "position counts where there is no coordinate"


def test_a_stack_is_taken_apart_and_its_absent_policies_passed_over():
    q = np.stack([random_policy(seed)["q"].values for seed in range(4)]).reshape(2, 2, 5, 2)
    q[1, 0] = np.nan
    stack = (
        random_policy(0)
        .drop_vars(["q", "model", "pair", "word", "word_label"])
        .assign(q=(("model", "pair", "state", "word"), q))
        .assign_coords(model=["m", "n"], pair=["a/b", "c/d"], word_label=(("pair", "word"), [["a", "b"], ["c", "d"]]))
    )
    names = [name_of(one) for one in meanfield.each_policy(stack)]
    assert names == ["m {a, b}", "m {c, d}", "n {c, d}"]
    with pytest.raises(InputError, match="2 models and 2 pairs"):
        single_policy(stack)


def test_a_stack_without_any_policy_is_refused():
    empty = stack_of("a/b")
    empty["q"][:] = np.nan
    for function, message in ((single_policy, "expected a probability"), (meanfield.solve, "holds no policy")):
        with pytest.raises(InputError, match=message):
            function(empty)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.nc", b"no NetCDF", "expected a NetCDF file, and it can't be read"),
        ("empty.nc", b"", "expected a NetCDF file, and it can't be read"),
        ("absent.nc", None, "there is no such file"),
        (".", None, "= .*: it is a folder, expected the name of a file$"),
        ("table.csv", b"state,q", "make_policy takes tables of probabilities"),
    ],
)
def test_files_that_hold_no_policy_are_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        meanfield.load_policy(tmp_path / name)


def test_what_can_not_be_saved_leaves_no_file(tmp_path):
    for policy, name, message in (
        (random_policy(1), "policy.csv", r"policy.csv: expected a name that ends with .nc"),
        (random_policy(1), "absent/policy.nc", "does not exist"),
        (random_policy(1).assign_attrs(note={"a": 1}), "policy.nc", "expected values that NetCDF can hold"),
    ):
        with pytest.raises(InputError, match=message):
            meanfield.save(policy, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def saved(tmp_path):
    return meanfield.save(random_policy(1, memory_length=2), tmp_path / "policy.nc")


def test_any_flipped_bit_is_told(saved):
    content = saved.read_bytes()
    end = len(content) - _files.CHECKSUM_LENGTH
    for at in [*range(0, end, end // 50), len(content) - 60, len(content) - 2]:
        saved.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(InputError, match=r"policy.nc: .*its bytes differ from the saved ones"):
            meanfield.load(saved)


def test_files_of_other_programs_are_read(saved):
    policy = meanfield.load(saved)
    policy.to_netcdf(saved.with_name("other.nc"), engine="h5netcdf")
    assert meanfield.load(saved.with_name("other.nc")).identical(policy)
    with h5py.File(saved, "r+") as file:  # the library cuts the checksum off
        file.attrs["note"] = "changed"
    assert meanfield.load(saved).attrs["note"] == "changed"
    content = saved.read_bytes()
    for damaged in (content[:100], content[: len(content) // 2], bytes(8) + content[8:]):
        saved.write_bytes(damaged)
        with pytest.raises(InputError, match=r"path = .*policy.nc: expected a NetCDF file, and it can't be read"):
            meanfield.load(saved)


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


def test_a_message_is_one_line_of_bounded_length():
    error = InputError("words = 'a\nb': " + "x" * 10_000 + ", expected others")
    assert "\n" not in str(error) and len(str(error)) < 2000 and str(error).endswith("expected others")
    assert str(InputError("short,  as it is")) == "short,  as it is"
