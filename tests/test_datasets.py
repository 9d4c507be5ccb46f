"""Loaders of the published measurements: where they look, what they refuse, what they give."""

import os
import pickle
import zipfile

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.datasets import _llm_group_size as source
from meanfield.datasets._unpickle import unpickle_numbers

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
    space = meanfield.space_of(policy)
    asked = space.state([(0, 1), (1, 1)])  # said his, heard her; then said her, heard her
    assert policy["q"].values[asked, 0] == table["0111"]
    assert meanfield.words_of(policy) == ("his", "her")


def test_published_table(published):
    assert dict(published.sizes) == {"model": 2, "pair": 11, "state": 1365, "word": 2}
    gay = published.sel(model="llama31_70B", pair="gay/straight")
    assert gay["q"].values[0, 0] == pytest.approx(0.1376, abs=1e-4), "individual bias towards 'straight'"
    filtered = published.sel(model="llama31_70B")["q"].values
    assert not ((filtered > 1e-12) & (filtered < 0.0504)).any(), "the mark of the nucleus filter"


def test_places_are_searched_in_order(data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MEANFIELD_DATA", str(data_folder))
    assert meanfield.datasets.llm_group_size().sizes["pair"] == 11
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(source, "URL", "http://127.0.0.1:9/q_dicts.zip")
    with pytest.raises(InputError, match="not in MEANFIELD_DATA, and can't be fetched"):
        meanfield.datasets.llm_group_size()
    with pytest.raises(InputError, match=r"path = .*: expected q_dicts.zip"):
        meanfield.datasets.llm_group_size(tmp_path)


def test_download_is_checked_and_cached(data_folder, tmp_path, monkeypatch):
    """A real HTTP server on loopback stands for the upstream."""
    import hashlib
    import threading
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    content = (data_folder / "llm_group_size" / "q_dicts.zip").read_bytes()
    (tmp_path / "upstream").mkdir()
    (tmp_path / "upstream" / "q_dicts.zip").write_bytes(content)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "upstream")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.delenv("MEANFIELD_DATA", raising=False)
        monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(source, "URL", f"http://127.0.0.1:{server.server_port}/q_dicts.zip")
        with pytest.raises(InputError, match="can't be fetched"):  # the copy here is a part of what was published
            meanfield.datasets.llm_group_size()
        monkeypatch.setattr(source, "SHA256", hashlib.sha256(content).hexdigest())
        first = meanfield.datasets.llm_group_size()
    finally:
        server.shutdown()
        server.server_close()
    assert meanfield.datasets.llm_group_size().identical(first), "taken from the cache, the server being gone"


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


def test_pickles_that_are_code_are_not_run():
    with pytest.raises(InputError, match=r"asks for (posix|nt)\.system: expected numpy scalars only"):
        unpickle_numbers(pickle.dumps({"": Evil()}), "evil.pkl")
    with pytest.raises(InputError, match=r"asks for builtins\.eval"):
        unpickle_numbers(b"cbuiltins\neval\n.", "eval.pkl")
    assert unpickle_numbers(pickle.dumps({"01": np.float64(0.5)}), "good.pkl") == {"01": 0.5}


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
