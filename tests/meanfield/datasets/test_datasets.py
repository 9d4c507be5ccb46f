"""Loaders of the published measurements: where they look, what they refuse, what they give."""

import copyreg
import gzip
import hashlib
import io
import os
import pickle
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.datasets import _llm_group_size as source
from meanfield.datasets._unpickle import unpickle, unpickle_numbers
from meanfield.toolbox import column_numbers, read_csv, space_of

NAME = "q_dicts/Q_dict_phi_4_ID_191_-50_100_0.5tmp_BLANK_False.pkl"


def memories():
    space = source.SPACE
    return {"".join(f"{a}{b}" for a, b in space.memory(i)): i for i in range(space.n_states)}


def archive(path, table, name=NAME):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, pickle.dumps(table))
    return path


def test_bits_of_the_key_are_own_and_partner_word_oldest_first(tmp_path):
    table = {key: np.float64(i / 2000) for key, i in memories().items()}
    policies = meanfield.datasets.llm_group_size(archive(tmp_path / "q_dicts.zip", table))
    policy = policies.sel(model="phi_4", pair="his/her")
    space = space_of(policy)
    asked = space.state([(0, 1), (1, 1)])  # said his, heard her; then said her, heard her
    assert policy["q"].values[asked, 0] == table["0111"]
    assert meanfield.toolbox.words_of(policy) == ("his", "her")


def test_published_table(published):
    assert dict(published.sizes) == {"model": 2, "pair": 11, "state": 1365, "word": 2}
    gay = published.sel(model="llama31_70B", pair="gay/straight")
    assert gay["q"].values[0, 0] == pytest.approx(0.1376, abs=1e-4), "individual bias towards 'straight'"
    filtered = published.sel(model="llama31_70B")["q"].values
    assert not ((filtered > 1e-12) & (filtered < 0.0504)).any(), "the mark of the nucleus filter"


def test_models_and_pairs_are_taken_by_name_and_others_listed(published, data_folder):
    one = meanfield.datasets.llm_group_size(data_folder, model="gpt-4o", pair="woman/man")
    other, policies = meanfield.datasets.smollm2(pair="his/her"), meanfield.datasets.smollm2()
    assert one["word"].values.tolist() == ["woman", "man"] and other["word"].values.tolist() == ["his", "her"]
    xr.testing.assert_identical(one, meanfield.validate_policy(published.sel(model="gpt-4o", pair="woman/man")))
    xr.testing.assert_identical(other, meanfield.validate_policy(policies.sel(pair="his/her")))
    with pytest.raises(InputError, match=r"pair = 'her/his': expected one of his/her, gay/straight, .*wife/husband$"):
        meanfield.datasets.smollm2(pair="her/his")
    with pytest.raises(InputError, match=r"model = 'gpt4o': expected one of gpt-4o, llama31_70B"):
        meanfield.datasets.llm_group_size(data_folder, model="gpt4o")


def test_places_are_searched_in_order(tmp_path, monkeypatch):
    (tmp_path / "data" / "llm_group_size").mkdir(parents=True)
    archive(tmp_path / "data" / "llm_group_size" / "q_dicts.zip", dict.fromkeys(memories(), 0.5))
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path / "data"))
    assert meanfield.datasets.llm_group_size()["model"].values.tolist() == ["phi_4"]
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(source, "URL", "http://127.0.0.1:9/q_dicts.zip")
    with pytest.raises(InputError, match="not in MEANFIELD_DATA, and can't be fetched"):
        meanfield.datasets.llm_group_size()
    with pytest.raises(InputError, match=r"path = .*: expected q_dicts.zip"):
        meanfield.datasets.llm_group_size(tmp_path)


@contextmanager
def upstream(handler, monkeypatch, tmp_path):
    """A real HTTP server on loopback stands for the upstream."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("MEANFIELD_DATA", raising=False)
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(source, "URL", f"http://127.0.0.1:{server.server_port}/q_dicts.zip")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def test_download_is_checked_and_cached(tmp_path, monkeypatch):
    (tmp_path / "upstream").mkdir()
    content = archive(tmp_path / "upstream" / "q_dicts.zip", dict.fromkeys(memories(), 0.5)).read_bytes()
    with upstream(partial(SimpleHTTPRequestHandler, directory=tmp_path / "upstream"), monkeypatch, tmp_path):
        with pytest.raises(InputError, match="can't be fetched"):
            meanfield.datasets.llm_group_size()
        monkeypatch.setattr(source, "SHA256", hashlib.sha256(content).hexdigest())
        first = meanfield.datasets.llm_group_size()
    assert meanfield.datasets.llm_group_size().identical(first), "taken from the cache, the server being gone"


class Endless(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(bytes(2**16))
        except OSError:
            pass


def test_an_endless_download_ends(tmp_path, monkeypatch):
    with (
        upstream(Endless, monkeypatch, tmp_path),
        pytest.raises(InputError, match=r"can't be fetched .*more than 4194304 bytes"),
    ):
        meanfield.datasets.llm_group_size()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


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
        unpickle_numbers(data, "code.pkl")
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
        (pickle.dumps(Call(os.system, "true")), r"asks for (posix|nt)\.system"),
        (pickle.dumps(Call(getattr, "", "join")), r"asks for builtins\.getattr"),
        (b"c__builtin__\neval\n.", r"asks for __builtin__\.eval"),
        (b"(S'true'\nios\nsystem\n.", r"asks for os\.system"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", r"asks for numpy\.dtype\.__init__"),
        (b"\x80\x04\x82\x01.", "unregistered extension code"),
        (b"\x80\x04P1\n.", "persistent id"),
        (b"\x80\x04K\x01Q.", "persistent id"),
        (DTYPE % b"f8" + STATE + b".", "it changes the state of a numpy.dtype"),
        (DTYPE % b"O8" + b".", "numbers of the type 'O8': expected f8 or i8"),
        (b"\x80\x04N\x86.", "stack"),
        (b"\x80\x04N", "Ran out of input"),
        (pickle.dumps({"a": 1})[:-5], "truncated|exhausted|Ran out"),
    ],
)
def test_pickles_of_anything_else_are_refused(data, message):
    with pytest.raises(InputError, match=rf"data.pkl: expected a pickle of plain data, .*({message})"):
        unpickle(data, "data.pkl")


def test_registered_extension_codes_are_names_too():
    copyreg.add_extension("os", "system", 240)
    try:
        with pytest.raises(InputError, match=r"asks for os\.system"):
            unpickle(b"\x80\x04\x82\xf0.", "data.pkl")
    finally:
        copyreg.remove_extension("os", "system", 240)


@pytest.mark.parametrize("value", [[], {"": "0.5"}, {0: 0.5}, {"": 2**2000}])
def test_tables_hold_numbers_by_memory(value):
    with pytest.raises(InputError, match="expected a dict from memories to probabilities"):
        unpickle_numbers(pickle.dumps(value), "table.pkl")


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        for name, content in members:
            written.writestr(name, content)
    return bytearray(file.getvalue())


def with_field(data, at, value, size=4):
    """A field of the first entry of the directory replaced."""
    start = data.index(b"PK\x01\x02") + at
    data[start : start + size] = value.to_bytes(size, "little")
    return data


def hostile_archives():
    whole = pickle.dumps(dict.fromkeys(memories(), 0.5))
    yield zipped((NAME, bytes(2**21))), "has 2097152 bytes, method 8: expected at most 1048576"
    yield with_field(zipped((NAME, bytes(2**21))), 24, 1000), "expected a zip archive, and it can't be read .*CRC"
    yield zipped((NAME, b"."), method=zipfile.ZIP_LZMA), "method 14"
    yield zipped((NAME, whole), (NAME, whole)), "twice"
    yield zipped((NAME, whole), ("a/" + NAME, whole)), "twice"
    yield with_field(zipped((NAME, b".")), 8, 1, 2), "encrypted"
    yield zipped((NAME, bytes(1000)))[:-30], "not a zip file"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives_are_refused(tmp_path):
    for content, message in hostile_archives():
        (tmp_path / "q_dicts.zip").write_bytes(content)
        with pytest.raises(InputError, match=message):
            meanfield.datasets.llm_group_size(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.pop("01"), "1 of 1365 memories have no probability"),
        (lambda table: table.update({"0": 0.1}), "memory '0', expected an even number of bits"),
        (lambda table: table.update({"01": 1.5}), "1.5: expected a probability"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, change, message):
    table = dict.fromkeys(memories(), 0.5)
    change(table)
    with pytest.raises(InputError, match=message):
        meanfield.datasets.llm_group_size(archive(tmp_path / "q_dicts.zip", table))


def test_archives_of_something_else_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no file named like"):
        meanfield.datasets.llm_group_size(archive(tmp_path / "q_dicts.zip", {}, name="other.pkl"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "q_dicts.zip").write_text("no archive")
    with pytest.raises(InputError, match="expected a zip archive"):
        meanfield.datasets.llm_group_size(tmp_path / "text")


def test_real_populations(data_folder, tmp_path):
    real = meanfield.datasets.ai_norms(data_folder)
    assert real.choice_counts["count"].min() > 0
    assert set(real.runs["experiment"]) == {"from_empty", "from_consensus", "committed"}
    empty = real.choice_counts.query("model == 'llama31' and state == ''")
    assert (empty["state"] == "").all() and len(empty) > 0, "the empty memory is no missing value"
    (tmp_path / "runs.csv").write_text("model,experiment\n")
    (tmp_path / "choice_counts.csv.gz").write_bytes((data_folder / "ai_norms" / "choice_counts.csv.gz").read_bytes())
    with pytest.raises(InputError, match="lacks the column options"):
        meanfield.datasets.ai_norms(tmp_path)


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
