"""Damaged and hostile files: the loaders refuse them in one line, in time, without much memory."""

import gzip
import io
import pickle
import zipfile
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
import theory
import validation
from _fuzz import few_and_many, fuzz, given, mutated
from _policies import random_policy
from meanfield import InputError
from meanfield.datasets import _flag_game
from meanfield.datasets._llm_group_size import SPACE
from meanfield.toolbox import read_csv

TABLE = "q_dicts/Q_dict_phi_4_ID_{}_-50_100_0.5tmp_BLANK_False.pkl"
DIMS = ("state", "word", "state word", "word state", "pair", "run state")
VALUES = (np.nan, np.inf, -1.0, 0.5, np.float32(0.5), True, "text", np.datetime64("2020-01-01", "ns"))
ATTRS = (1, 5.0, "text", [1, 2], np.nan, ["a", "b"], "", -1)
ENCODED = ("missing", "_FillValue", "units", "coordinates", "scale_factor")
UNMADE = (AttributeError, IndexError, KeyError, NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError)


@cache
def pickled() -> bytes:
    """A policy in the published form, a dict of numpy.float64."""
    keys = ["".join(f"{a}{b}" for a, b in SPACE.memory(i)) for i in range(SPACE.n_states)]
    values = np.random.default_rng(0).random(SPACE.n_states)
    return pickle.dumps(dict(zip(keys, values, strict=True)))


@cache
def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("q_dicts/", b"")
        for pair in (191, 102):
            written.writestr(TABLE.format(pair), pickled())
    return file.getvalue()


@cache
def netcdf(name: str) -> bytes:
    """The bytes that `save` writes to `name`; the current folder is left as it was."""
    random = np.random.default_rng(0)
    policy = meanfield.make_policy(random.random(21), ["his", "her"], model="m", attrs={"note": "é", "number": 1.5})
    path = meanfield.save(policy.assign(unmeasured=("state", ["", "why"] + [""] * 19, {"missing": ""})), name)
    content = path.read_bytes()
    path.unlink()
    return content


@cache
def table(name: str) -> bytes:
    random = np.random.default_rng(0)
    if name == "choice_counts":
        cells = [(s, c) for s in ("", "A,A", "A,B", "B,A", "B,B") for c in "AB"]
        rows = pd.DataFrame(cells, columns=["state", "choice"])
        rows = rows.assign(model="m", options="A_B", memory_length=1, count=random.integers(1, 50, len(rows)))
    elif name == "runs":
        rows = pd.DataFrame(
            [
                ("m", "from_empty", "A B", 1, 10, 0, "", "", 100, 1.0, "A", 0.9),
                ("m", "from_consensus", "A B", 1, 10, 0, "A", "", 200, 0.9, "A", 0.95),
                ("m", "committed", "A B", 1, 10, 2, "A", "B", 200, 1.0, "B", 1.0),
            ],
            columns=meanfield.datasets._ai_norms.COLUMNS["runs.csv"],
        )
    else:
        rows = pd.DataFrame(random.integers(1, 9, (5, 4)), columns=["country", "orientation", "stripes", "triangle"])
    return rows.to_csv(index=False).encode()


def reads_archives(random):
    meanfield.datasets.llm_group_size(given("q_dicts.zip", mutated(random, archive())))


def reads_archives_of_anything(random):
    """Members that hold other values, names that occur twice, other methods, sizes that are not true."""
    values = [[], "text", {"": "text"}, {"": [1]}, {"": None}, {"": True}, {(): 1}, {"": 2**70}, {"": {}}, {"": np.nan}]
    values += [{"0": 1.0}, {"": np.float32(1)}, {"": np.zeros(2)}, {"": "1"}, None, 1.0, {"é": 1.0}, {"a": 2, "b": 2}]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for _ in range(random.integers(1, 4)):
            name = TABLE.format(random.choice([191, 102, 5, 10**9]))
            if random.random() >= 0.8:
                name = random.choice(["other.pkl", "../" + name, "/" + name, "é/" + name])
            content = pickle.dumps(values[random.integers(len(values))], protocol=int(random.integers(6)))
            content = pickled() if random.random() < 0.3 else content
            method = int(random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
            written.writestr(name, content, method)
    data = bytearray(file.getvalue())
    at = data.rfind(b"PK\x01\x02")
    if random.random() < 0.5 and at >= 0:  # a field of the last entry in the directory: flags, method, sizes
        field, size = ((8, 2), (10, 2), (20, 4), (24, 4), (42, 4))[random.integers(5)]
        data[at + field : at + field + size] = random.bytes(size)
    meanfield.datasets.llm_group_size(given("q_dicts.zip", bytes(data)))


def loads_saved(random):
    meanfield.load_policy(given("policy.nc", mutated(random, netcdf("saved.nc"))))


def loads_changed_policies(random):
    """A policy with variables, coordinates, dims or attributes of another kind, as it is, and saved and loaded."""
    changed = random_policy(0, int(random.integers(2, 4)), int(random.integers(1, 3)))
    for _ in range(random.integers(1, 4)):
        try:
            changed = one_change(random, changed)
            content = meanfield.save(changed, "made.nc").read_bytes()
        except UNMADE:  # not all can be made, and xarray can't write all of them
            Path("made.nc").unlink(missing_ok=True)
            return
    Path("made.nc").unlink()
    try:
        meanfield.validate_policy(changed)
    except InputError:
        meanfield.load_policy(given("policy.nc", content))
        raise
    for one in meanfield.each_policy(meanfield.load_policy(given("policy.nc", content))):
        meanfield.Population(one)


def one_change(random, good):
    dims = [(), *(tuple(names.split()) for names in DIMS)][random.integers(len(DIMS) + 1)]
    shape = [good.sizes.get(dim, 1) for dim in dims]
    name = str(random.choice(["q", "word_label", "state", "word", "pair", "model", "memory_length"]))
    values = [np.full(shape, one) for one in VALUES] + [random.random(shape), random.integers(-5, 5, shape)]
    value, attribute = values[random.integers(len(values))], ATTRS[random.integers(len(ATTRS))]
    changes = [
        lambda: good.assign({name: (dims, value)}),
        lambda: good.assign_coords({name: (dims, value)}),
        lambda: good.drop_vars(name),
        lambda: good.rename({str(random.choice(["q", "state", "word", "pair"])): "other"}),
        lambda: good.isel(state=slice(int(random.integers(0, 22)))),
        lambda: good.isel({str(random.choice(["state", "word"])): 0}),
        lambda: good.expand_dims(str(random.choice(["pair", "model", "run"]))),
        lambda: good.assign_attrs({str(random.choice(["memory_length", "kind", "missing"])): attribute}),
        lambda: good.assign(q=good["q"].assign_attrs({str(random.choice(ENCODED)): attribute})),
        lambda: xr.concat([good, good], str(random.choice(["pair", "model", "run"])), coords="minimal"),
    ]
    return changes[random.integers(len(changes))]()


def declares_too_much(random):
    """HDF5 files of a few kB whose arrays are large."""
    with h5py.File(file := io.BytesIO(), "w") as written:
        shape = (int(10 ** random.uniform(6, 14)), 2)
        compression = random.choice([None, "gzip"])
        written.create_dataset("q", shape=shape, dtype="f8", chunks=(1000, 2), compression=compression)
    content = file.getvalue()
    if random.random() < 0.5:
        given("raw", content)
        path = Path("raw")
        content += meanfield.toolbox._files.CHECKSUM % meanfield.toolbox._files._digest(path, len(content))
    meanfield.load(given("policy.nc", content))


def reads_real_populations(random):
    """The tables, with some bytes or some cells changed, through all that is made of them."""
    change = mutated if random.random() < 0.5 else recelled
    chosen = random.random()
    counts, runs = (table(name) for name in ("choice_counts", "runs"))
    content = gzip.compress(change(random, counts) if chosen < 0.4 else counts, mtime=0)
    if 0.4 <= chosen <= 0.5:
        content = mutated(random, content)
    folder = given("real/choice_counts.csv.gz", content).parent
    given("real/runs.csv", change(random, runs) if chosen > 0.3 else runs)
    validation.populations.validate(folder, draws=1, runs=1)


def recelled(random, data):
    """With one to three cells of a table replaced, by numbers that are too large or no numbers."""
    cells = ["", "nan", "inf", "-1", "0", "1e300", "1e18", str(2**63), "9" * 400, "3.5", "A", "B", "x" * 5000, "A_B"]
    cells += ["A,A|B,B", "1000000", "100000000", "from_empty", "committed", "é", "\u2028", "=1+1", "[bold]"]
    cells += ["A B C D E F G H", " ", "1_0"]
    rows = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    for _ in range(random.integers(1, 4)):
        rows.iat[random.integers(len(rows)), random.integers(rows.shape[1])] = cells[random.integers(len(cells))]
    return rows.to_csv(index=False).encode()


def reads_tables(random):
    """CSV files, gzipped or not, through each of their readers."""
    data = mutated(random, table(str(random.choice(["runs", "flags", "choice_counts"]))))
    if random.random() < 0.2:
        pieces = [b",", b"\n", b"a\n", b'"', b"a,b\n1,2\n", b"\r", b"\x00,", b"1e999,\n"]
        data = pieces[random.integers(len(pieces))] * int(random.integers(1, 10**5))
    data = gzip.compress(data, mtime=0) if random.random() < 0.3 else data
    path = given("table.csv", data)
    reader = random.integers(4)
    if reader == 0:
        meanfield.datasets.flag_game(str(random.choice(list(_flag_game.TABLES))), path)
    elif reader == 1:
        theory.fit_mechanism1(path)
    elif reader == 2:
        theory.flag_game.mechanism2.fit(path)
    else:
        read_csv(path)


CASES = [
    (reads_archives, 60, 3000),
    (reads_archives_of_anything, 60, 3000),
    (loads_saved, 30, 3000),
    (loads_changed_policies, 20, 2000),
    (declares_too_much, 2, 40),
    (reads_real_populations, 15, 1000),
    (reads_tables, 60, 3000),
]


@pytest.mark.slow
@few_and_many(CASES)
def test_inputs(case, number, seed):
    assert fuzz(case, number, seed=seed, deadline=60) == []
