"""The policies of SmolLM2 that come with the package."""

from __future__ import annotations

import re
from importlib.util import find_spec

import numpy as np
import pytest
import xarray as xr

import meanfield
from _paths import ROOT
from policy_extraction import check_policy, policy_from_record, policy_warnings, rebuild_gallery
from policy_extraction.backends import TableBackend
from policy_extraction.rebuild_gallery import PAIRS, bundled, largest_difference, write


@pytest.fixture(scope="module")
def gallery() -> xr.Dataset:
    return meanfield.datasets.smollm2()


def test_it_holds_the_eleven_pairs_and_says_how_they_were_measured(gallery):
    assert gallery["pair"].values.tolist() == ["/".join(pair) for pair in PAIRS]
    assert dict(gallery.sizes) == {"pair": 11, "order": 2, "state": 1365, "word": 2}
    assert gallery["word_label"].values.tolist() == [list(pair) for pair in PAIRS]
    assert gallery.attrs["option_template"] == "naming-game-004/1"
    assert gallery.attrs["option_model_identity"].startswith("SmolLM2-135M-Instruct sha256:")
    assert {"version_torch", "version_transformers", "version_meanfield_llm"} <= set(gallery.attrs)


def test_its_policy_is_what_its_record_gives(gallery):
    again = policy_from_record(gallery.drop_vars("q"), temperature=0.5)
    np.testing.assert_allclose(gallery["q"], again["q"], rtol=0, atol=1e-12)
    colder = policy_from_record(gallery.drop_vars("q"), temperature=0.4)
    assert np.abs(colder["q"] - gallery["q"]).max() > 0.01
    np.testing.assert_allclose(gallery["captured_mass"], np.exp(gallery["log_probability"]).sum("word"))


def test_no_filter_acted_and_little_mass_is_captured(gallery):
    """So small a model would rather say other things than the words alone."""
    found = check_policy(gallery)
    assert (found["warning"].sel(check=["filter", "censored"]) == "").all()
    assert (found["warning"].sel(check="captured_mass") != "").all()
    assert len(policy_warnings(found)) == (found["warning"] != "").sum()


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_the_table_of_the_document(gallery):
    """Every number of it, to the digits shown."""
    table = meanfield.stability_table(gallery).to_dataframe().set_index(["pair", "row"])
    text = (ROOT / "docs" / "results" / "small_model.md").read_text().partition("## Sensitivity")[0]
    lines = re.findall(r"^\| (\w+/\w+) \|(.*)\|$", text, flags=re.MULTILINE)
    assert [pair for pair, _ in lines] == gallery["pair"].values.tolist()
    for pair, cells in lines:
        first, first_missing, second, second_missing, share_and_word, eigenvalue = (c.strip() for c in cells.split("|"))
        share, word = share_and_word.split()
        point = table.loc[[(pair, "fixed_point")]]
        candidates = table.loc[[(pair, "candidate")]].set_index("word").loc[pair.split("/")]
        assert point["word"].tolist() == [word] and point["stable"].all()
        shown = [first, second, first_missing, second_missing, share, eigenvalue]
        numbers = [*candidates["eigenvalue"], *candidates["residual"], *point["word_share"], *point["eigenvalue"]]
        for text, number in zip(shown, numbers, strict=True):
            assert f"{number:.{len(text.partition('.')[2])}f}" == text, f"{pair}: {text}"


def test_the_file_gives_back_what_was_written(gallery, tmp_path):
    written = bundled(gallery)
    write(written, tmp_path / "gallery.nc")
    back = meanfield.load(tmp_path / "gallery.nc")
    xr.testing.assert_equal(written, back)
    assert back["log_probability"].dtype == np.float32
    assert (tmp_path / "gallery.nc").stat().st_size < 10**6


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="language models need the extra llm")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path / "cache"))


@needs_torch
def test_each_rebuilding_measures(monkeypatch, capsys, tmp_path):
    """A model that has changed under the same name is found out, also after its predecessor was measured."""
    first, second = (
        TableBackend(lambda memory, order, p=p: {"his": p, "her": 0.2}, ("his", "her"), 1, identity="same")
        for p in (0.3, 0.1)
    )
    monkeypatch.setattr(rebuild_gallery, "MEMORY_LENGTH", 1)
    monkeypatch.setattr(rebuild_gallery, "PAIRS", [("his", "her")])
    monkeypatch.setattr(rebuild_gallery, "SMOLLM2", first)
    bundle = rebuild_gallery.measured([("his", "her")])
    monkeypatch.setattr(meanfield.datasets, "smollm2", lambda: bundle)
    assert rebuild_gallery.main(["--pair", "his/her"]) == 0
    monkeypatch.setattr(rebuild_gallery, "SMOLLM2", second)
    assert rebuild_gallery.main([]) == 1
    assert "largest difference of a probability: 4.9e-01" in capsys.readouterr().out


def test_differences_are_found_whatever_the_order_of_pairs(gallery):
    moved = gallery["log_probability"].values.copy()
    moved[3, 0, 17, 1] += 1e-3
    changed = bundled(gallery.assign(log_probability=gallery["log_probability"].copy(data=moved)))
    assert largest_difference(bundled(gallery), gallery.isel(pair=slice(None, None, -1))) < 1e-6
    assert largest_difference(changed, gallery.isel(pair=slice(None, None, -1))) > 1e-5


@needs_torch
def test_rebuilding_replaces_the_file_only_when_told(gallery, monkeypatch, tmp_path):
    def extracted(*_, cache, **__):
        cache.mkdir(parents=True)  # as an extraction leaves a record
        return gallery

    monkeypatch.setattr(rebuild_gallery, "extract", extracted)
    monkeypatch.setattr(rebuild_gallery, "FILE", tmp_path / "gallery.nc")
    rebuild_gallery.main([])
    assert not (tmp_path / "gallery.nc").exists()
    rebuild_gallery.main(["--write"])
    assert (tmp_path / "gallery.nc").is_file()
