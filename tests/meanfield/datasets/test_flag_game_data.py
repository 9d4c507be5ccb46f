"""The published measurements of the Flag Game: their loader, and the probe of Yemen.

Error budget: Pearson's χ² of the probe is fixed by the data; the tests hold it at 1 % and 1e-9.
"""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kendalltau, spearmanr

import theory.flag_game as game
from _upstream import nothing_local, put_flag_game, served
from meanfield import InputError
from meanfield.datasets import _flag_game as source

ANSWERS = 50


@pytest.fixture(scope="module")
def table(data_folder):
    return source.flag_game("yemen_crop_probe", data_folder)


@pytest.fixture(scope="module")
def counts(table):
    return game.probe_counts(table, "Yemen", "Austria")


# --- the loader ---


def test_flags_are_those_of_the_published_pool(data_folder):
    """The package's, whatever lies in MEANFIELD_DATA, and those of a file where one is given."""
    pool = source.flag_game("flag_pool")
    assert len(pool) == 28 == len(game.FLAGS) and pool.equals(source.flag_game("flag_pool", data_folder))


def test_tables(data_folder):
    files = [file for file in (data_folder / "flag_game").glob("*.csv") if file.stem in source.TABLES]
    for file in files:
        header, *lines = file.read_text().splitlines()
        read = source.flag_game(file.stem, data_folder)
        assert len(read) == len(lines) and list(read.columns) == header.split(",")
    assert len(files) > 5


def test_upstream_is_where_the_data_say(data_folder):
    """Path, commit and SHA-256 of each table, as the README of the measured data lists them."""
    readme = data_folder / "README.md"
    if not readme.is_file():
        pytest.skip(f"there is no {readme}")
    lines = re.findall(r"\| (.+) \| `(\S+\.csv)` \| (.+) \| ([0-9a-f]{64}) \|", readme.read_text())
    commit, listed = "", set()
    for _, path, at, sha256 in lines:
        commit = commit if at == "the same" else at
        listed.add((path, commit, sha256))
    assert {(t.upstream, t.commit, t.sha256) for t in source.TABLES.values() if t.upstream} == listed


def test_places_are_searched_in_order(data_folder, tmp_path, monkeypatch):
    nothing_local(monkeypatch, tmp_path, "http://127.0.0.1:9")
    monkeypatch.setenv("MEANFIELD_DATA", str(data_folder))
    assert len(source.flag_game("yemen_crop_probe")) == 128
    assert len(source.flag_game("yemen_crop_probe", data_folder / "flag_game" / "yemen_crop_probe.csv")) == 128
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"protocols_n8\.csv: it is not in MEANFIELD_DATA, and can't be fetched"):
        source.flag_game("protocols_n8")
    with pytest.raises(InputError, match=r"path = .*: expected protocols_n8\.csv"):
        source.flag_game("protocols_n8", tmp_path)


def test_download_is_checked_and_cached(tmp_path, monkeypatch):
    """From the path that upstream has at its commit; also from a clone of it, by path or MEANFIELD_DATA."""
    name = "population_scaling_gpt4o"
    rows = pd.DataFrame({column: range(8) for column in (*source.TABLES[name].columns.split(), "more")})
    rows["condition"] = ["all_gpt_4o", "half"] * 4
    file = put_flag_game(tmp_path / "upstream", name, rows, monkeypatch)
    content = file.read_bytes()
    with served(tmp_path / "upstream") as url:
        nothing_local(monkeypatch, tmp_path, url)
        file.write_bytes(content + b"1,2,3\n")
        with pytest.raises(InputError, match="can't be fetched"):
            source.flag_game(name)
        file.write_bytes(content)
        first = source.flag_game(name)
    pd.testing.assert_frame_equal(first, rows[::2].reset_index(drop=True))
    assert source.flag_game(name).equals(first), "taken from the cache, the server being gone"
    clone = tmp_path / "upstream" / source.TABLES[name].commit
    assert source.flag_game(name, clone).equals(first)
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("MEANFIELD_DATA", str(clone))
    assert source.flag_game(name).equals(first)


def test_other_tables_are_refused(tmp_path):
    file = tmp_path / "population_scaling_gpt4o.csv"
    columns = source.TABLES[file.stem].columns.split()
    pd.DataFrame({column: ["half"] for column in columns}).to_csv(file)
    with pytest.raises(InputError, match=r"gpt4o\.csv: has no row with condition = all_gpt_4o"):
        source.flag_game(file.stem, file)
    pd.DataFrame(columns=columns[2:]).to_csv(file)
    with pytest.raises(InputError, match=rf"gpt4o\.csv lacks the column condition, N; expected {', '.join(columns)}$"):
        source.flag_game(file.stem, tmp_path)
    with pytest.raises(InputError, match="table = 'flags': expected one of flag_pool, population_scaling_gpt4o"):
        source.flag_game("flags")


# --- the probe ---


def dispersion(probe):
    """Pearson's χ² of answers against the mean of their picture, and its degrees of freedom."""
    square, freedom = 0.0, 0
    for _, one in probe["measured"].groupby("picture"):
        mean = one.mean().item()
        if 0 < mean < 1:
            square += (ANSWERS * (one - mean) ** 2 / (mean * (1 - mean))).sum().item()
            freedom += one.size - 1
    return square, freedom


def test_equal_pictures_get_equal_answers(counts):
    """The answers tell how the flag was drawn: pixel by pixel (p = 0.45), and not by whole cells, the control."""
    square, freedom = dispersion(game.compare_with_probe(counts, "Yemen"))
    assert (square, freedom) == (pytest.approx(60.67, abs=0.01), 60)
    assert chi2.sf(square, freedom) > 0.01
    assert chi2.sf(*dispersion(game.compare_with_probe(counts, "Yemen", scale=1))) < 1e-9


@pytest.mark.slow
def test_gpt_4o_and_the_ideal_observer(counts):
    """Rank correlations over the 128 crops, with a shuffled control, and the rows of the flag where the two part."""
    probe = game.compare_with_probe(counts, "Yemen")
    assert probe.sizes["crop"] == 128
    assert probe.attrs["spearman"] == pytest.approx(0.880, abs=5e-4)
    assert probe.attrs["kendall"] == pytest.approx(0.765, abs=5e-4)
    shuffled = counts.copy(data=np.random.default_rng(5).permutation(counts.values))
    assert abs(game.compare_with_probe(shuffled, "Yemen").attrs["spearman"]) < 0.35  # four standard errors, 4/√127
    by_country = game.compare_with_probe(counts, "Yemen", counting="countries")
    assert by_country.attrs["spearman"] == pytest.approx(0.925, abs=5e-4)

    rows = probe.to_dataframe().drop_duplicates(["left", "top"]).groupby("top")
    departing = rows["departs"].agg(["all", "any"])
    assert not departing.loc[[8, 9], "any"].any(), "white and black, both in plenty: certain, and answered so"
    assert departing.loc[[0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12], "all"].all()
    assert (probe["difference"] <= 0).all(), "always towards Austria"
    measured = rows["measured"].mean()
    assert measured[measured.index <= 6].max() < 0.02, "red and white: Austria, where the crop does not tell"
    assert 0.45 < measured[[11, 12]].mean() < 0.6, "black alone, which only Yemen's flag has: a coin"


def test_comparison_by_hand(counts):
    some = counts.isel(crop=[0, 1, 5, 18, 99])  # tops 9, 10, 2, 5, 10
    probe = game.compare_with_probe(some, "Yemen", level=0.9)
    np.testing.assert_allclose(probe["measured"], [1, 0.78, 0, 0.02, 0.88])
    np.testing.assert_allclose(probe["ideal"], [1, 1, 0.5, 0.5, 1])
    np.testing.assert_allclose(probe["difference"], [0, -0.22, -0.5, -0.48, -0.12])
    assert probe["departs"].values.tolist() == [False, True, True, True, True]
    # of 50 right answers out of 50: low^50 = tail, 1 % a crop on each side of 5 crops
    np.testing.assert_allclose(probe["interval"][0], [0.01 ** (1 / 50), 1])
    np.testing.assert_allclose(probe["interval"][2], [0, 1 - 0.01 ** (1 / 50)])
    assert probe.attrs["spearman"] == pytest.approx(spearmanr(probe["ideal"], probe["measured"]).statistic)
    assert probe.attrs["kendall"] == pytest.approx(kendalltau(probe["ideal"], probe["measured"]).statistic)
    assert np.isnan(game.compare_with_probe(counts.isel(crop=[0, 1]), "Yemen").attrs["spearman"]), "ideal is 1 in both"


def test_an_observer_is_found_to_agree_with_itself():
    """Answers drawn from the ideal observer: no departure but in 1 % of repetitions; here one of probability 99 %."""
    pool = tuple(game.flag_of(country) for country in ("Yemen", "Austria", "Peru"))
    p = game.crop_compatibility("Yemen", flags=pool, noise=0.5)
    drawn = p.copy(data=np.random.default_rng(1).multinomial(ANSWERS, p.values))
    probe = game.compare_with_probe(drawn, "Yemen", noise=0.5)
    np.testing.assert_allclose(probe["ideal"], p.sel(country="Yemen"), atol=1e-11)
    assert not probe["departs"].any() and probe.attrs["spearman"] > 0.9
    other = drawn.assign_coords(country=["Austria", "Yemen", "Peru"])
    assert game.compare_with_probe(other, "Yemen", noise=0.5)["departs"].mean() > 0.3


def changed(table, **values):
    """The table with other values in its second row."""
    table = table.copy()
    for column, value in values.items():
        table[column] = table[column].astype(object)
        table.loc[1, column] = value
    return table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="B_valid"), "table lacks the column B_valid"),
        (lambda t: t.iloc[:0], "table has no row"),
        (lambda t: changed(t, truth_count=45), r"row 1: truth_count \+ rival_count = 56: expected B_valid = 50"),
        (lambda t: changed(t, truth_count=-1), "truth_count and rival_count: found -1, expected whole numbers"),
        (lambda t: changed(t, B_valid=None), "B_valid: found None"),
        (lambda t: changed(t, left=4, top=9), "the crop at left = 4, top = 9 twice"),
        (lambda t: changed(t, width=7), "crops of 2 sizes"),
    ],
)
def test_damaged_probes_are_refused(table, change, message):
    with pytest.raises(InputError, match=message):
        game.probe_counts(change(table), "Yemen", "Austria")


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"truth": "Peru"}, lambda c: c, "truth = 'Peru': expected one of Yemen, Austria"),
        ({}, lambda c: c.assign_coords(country=["Yemen", "Atlantis"]), "country = 'Atlantis': expected one of Armenia"),
        ({"level": 1.0}, lambda c: c, r"level = 1\.0: expected a number between 0 and 1"),
        ({}, lambda c: 0 * c, "no answer to crop 0"),
        ({}, lambda c: c.assign_coords(left=c["left"] + 7), "expected one that lies on the canvas"),
        ({}, lambda c: c.drop_vars("top"), "counts: expected coordinates left and top"),
    ],
)
def test_wrong_comparisons_are_refused(counts, options, change, message):
    with pytest.raises(InputError, match=message):
        game.compare_with_probe(change(counts), **{"truth": "Yemen"} | options)


def test_a_rival_is_another_country(table):
    with pytest.raises(InputError, match="rival = 'Yemen': expected another country"):
        game.probe_counts(table, "Yemen", "Yemen")
