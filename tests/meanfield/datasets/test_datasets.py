"""Loaders of the published measurements: where they look, what they refuse, what they give."""

import copyreg
import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
import xarray as xr

import meanfield
from _upstream import nothing_local, served
from meanfield import InputError
from meanfield.datasets import _fetch, llm_group_size, smollm2
from meanfield.datasets import _llm_group_size as source
from meanfield.datasets._archive import unpickle
from meanfield.toolbox import column_numbers, read_csv, words_of

NAME = "q_dicts/Q_dict_phi_4_ID_191_-50_100_0.5tmp_BLANK_False.pkl"
STATES = {"".join(f"{a}{b}" for a, b in source.SPACE.memory(i)): i for i in range(source.SPACE.n_states)}
EVEN = dict.fromkeys(STATES, 0.5)


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        for name, content in members:
            written.writestr(name, content)
    return bytearray(file.getvalue())


def archive(folder, table, name=NAME):
    path = folder / "q_dicts.zip"
    path.write_bytes(zipped((name, pickle.dumps(table))))
    return path


def test_bits_of_the_key_are_own_and_partner_word_oldest_first(tmp_path):
    table = {key: np.float64(i / 2000) for key, i in STATES.items()}
    policy = llm_group_size(archive(tmp_path, table)).sel(model="phi_4", pair="his/her")
    asked = source.SPACE.state([(0, 1), (1, 1)])  # said his, heard her; then said her, heard her
    assert policy["q"].values[asked, 0] == table["0111"] and words_of(policy) == ("his", "her")


def test_published_table(published):
    assert dict(published.sizes) == {"model": 2, "pair": 11, "state": 1365, "word": 2}
    gay = published.sel(model="llama31_70B", pair="gay/straight")
    assert gay["q"].values[0, 0] == pytest.approx(0.1376, abs=1e-4), "individual bias towards 'straight'"
    filtered = published.sel(model="llama31_70B")["q"].values
    assert not ((filtered > 1e-12) & (filtered < 0.0504)).any(), "the mark of the nucleus filter"


@pytest.mark.usefixtures("unchecked_types")
def test_models_and_pairs_are_taken_by_name_and_others_listed(published, data_folder, tmp_path):
    one, other = llm_group_size(data_folder, model="gpt-4o", pair="woman/man"), smollm2(pair="his/her")
    assert one["word"].values.tolist() == ["woman", "man"]
    xr.testing.assert_identical(one, meanfield.validate_policy(published.sel(model="gpt-4o", pair="woman/man")))
    xr.testing.assert_identical(other, meanfield.validate_policy(smollm2().sel(pair="his/her")))
    with pytest.raises(InputError, match=r"pair = 'her/his': expected one of his/her, gay/straight, .*wife/husband$"):
        smollm2(pair="her/his")
    with pytest.raises(InputError, match=r"model = 'phi': expected one of phi_4$"):
        llm_group_size(archive(tmp_path, EVEN), model="phi")


def test_a_download_that_is_too_long_ends_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "upstream").mkdir()
    (tmp_path / "upstream" / "q_dicts.zip").write_bytes(bytes(10**6))
    monkeypatch.setattr(_fetch, "LARGEST_DOWNLOAD", 10**5)
    with served(tmp_path / "upstream") as url:
        nothing_local(monkeypatch, tmp_path, url)
        with pytest.raises(InputError, match=r"can't be fetched .*more than 100000 bytes"):
            llm_group_size()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_pickles_that_are_code_are_not_run(tmp_path):
    folder = tmp_path / "made"
    data = pickle.dumps({"": Call(os.mkdir, str(folder))})
    with pytest.raises(InputError, match=r"asks for (posix|nt)\.mkdir: expected numpy scalars only"):
        unpickle(data, "code.pkl")
    assert not folder.exists()
    pickle.loads(data)
    assert folder.exists(), "the control"


def test_plain_data_comes_out_as_pickle_gives_it():
    data = {"runs": [{"own": ["A", 1], "won": True, "none": None}, [-1, 0.5, 2**40, 70000, -(2**62)]], 7: {}}
    data |= {"é" * 300: [[]], "many": list(range(3000)), (1, 2): b"bytes"}
    numbers = [np.float64(0.1), np.int64(-3)]
    for protocol in (3, 4, 5):
        assert unpickle(pickle.dumps(data, protocol), "data.pkl") == data
        assert unpickle(pickle.dumps(numbers, protocol), "data.pkl") == [0.1, -3]
    older = pickle.dumps(numbers, 3).replace(b"numpy._core", b"numpy.core")
    assert unpickle(older, "data.pkl") == [0.1, -3]


DTYPE = b"cnumpy\ndtype\nX\x02\0\0\0%s\x89\x88\x87R"
# The state sets the size of an item: numpy would read bytes beyond the ones it has as pointers.
STATE = b"(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ftb"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps(Call(getattr, "", "join")), r"asks for builtins\.getattr"),
        (b"(S'true'\nios\nsystem\n.", r"asks for os\.system"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", r"asks for numpy\.dtype\.__init__"),
        (b"\x80\x04\x82\x01.", "unregistered extension code"),
        (b"\x80\x04\x82\xf0.", r"asks for os\.system"),  # a registered one
        (b"\x80\x04P1\n.", "persistent id"),
        (DTYPE % b"f8" + STATE + b".", "it changes the state of a numpy.dtype"),
        (DTYPE % b"O8" + b".", "numbers of the type 'O8': expected f8 or i8"),
        (b"\x80\x04N\x86.", "stack"),
        (pickle.dumps({"a": 1})[:-5], "truncated|exhausted|Ran out"),
    ],
)
def test_pickles_of_anything_else_are_refused(data, message):
    copyreg.add_extension("os", "system", 240)
    try:
        with pytest.raises(InputError, match=rf"data.pkl: expected a pickle of plain data, .*({message})"):
            unpickle(data, "data.pkl")
    finally:
        copyreg.remove_extension("os", "system", 240)


def with_field(data, at, value, size=4):
    """A field of the first entry of the directory replaced."""
    start = data.index(b"PK\x01\x02") + at
    data[start : start + size] = value.to_bytes(size, "little")
    return data


def hostile_archives():
    whole = pickle.dumps(EVEN)
    yield zipped((NAME, bytes(2**21))), "has 2097152 bytes, method 8: expected at most 1048576"
    yield with_field(zipped((NAME, bytes(2**21))), 24, 1000), "expected a zip archive, and it can't be read .*CRC"
    yield zipped((NAME, b"."), method=zipfile.ZIP_LZMA), "method 14"
    yield zipped((NAME, whole), (NAME, whole)), "twice"
    yield zipped((NAME, whole), ("a/" + NAME, whole)), "twice"
    yield with_field(zipped((NAME, b".")), 8, 1, 2), "encrypted"
    yield zipped((NAME, bytes(1000)))[:-30], "not a zip file"
    yield zipped(("other.pkl", whole)), "holds no file named like"
    yield b"no archive", "expected a zip archive"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives_are_refused(tmp_path):
    for content, message in hostile_archives():
        (tmp_path / "q_dicts.zip").write_bytes(content)
        with pytest.raises(InputError, match=message):
            llm_group_size(tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({key: 0.5 for key in EVEN if key != "01"}, "1 of 1365 memories have no probability"),
        (EVEN | {"0": 0.1}, "memory '0', expected an even number of bits"),
        (EVEN | {"01": 1.5}, "1.5: expected a probability"),
        ([], "expected a dict from memories to probabilities"),
        ({"": "0.5"}, "expected a dict from memories to probabilities"),
        ({0: 0.5}, "expected a dict from memories to probabilities"),
        ({"": 2**2000}, "expected a dict from memories to probabilities"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, table, message):
    with pytest.raises(InputError, match=message):
        llm_group_size(archive(tmp_path, table))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a,b\n" + b"1,2\n" * 2**22, mtime=0), "more than 16777216 bytes"),
        (gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-20], "end-of-stream"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:14] + b"\xff" * 20, "can't be read"),
        (b"a,b\n1,2\n3\n", "line 3: expected the header's 2 fields"),
        (b"," * 2000, "2001 columns"),
        (b"", "No columns"),
    ],
)
def test_damaged_tables_of_text_are_refused(tmp_path, content, message):
    (tmp_path / "runs.csv").write_bytes(content)
    with pytest.raises(InputError, match=rf"counts = .*runs.csv: expected a CSV file.*{message}"):
        read_csv(tmp_path / "runs.csv", "counts")


def test_numbers_of_hundreds_of_digits_are_no_hindrance():
    cells = ["1", "x", "", "9" * 400, None, "1e3"]
    np.testing.assert_array_equal(column_numbers(cells), [1, np.nan, np.nan, np.inf, np.nan, 1000])
