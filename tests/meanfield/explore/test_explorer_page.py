"""The page for a browser: one file that holds all it needs, and what is refused."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import majority_policy, random_policy
from meanfield import InputError, cli
from meanfield._explore.page import PLACE, plain_script

LIMIT = 2_000_000
HOSTILE = ["</script><img src=x onerror=alert(1)>", '"{{engine}}&\u2028']


@pytest.fixture(scope="module")
def page_file(gallery: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery without κ, which take ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meanfield._explore.explore.kappas", lambda *policy: [None] * 129)
        return meanfield.explore(gallery, tmp_path_factory.mktemp("explorer") / "explorer.html")


def written(policies, tmp_path: Path) -> str:
    return meanfield.explore(policies, tmp_path / "explorer.html").read_text(encoding="utf-8")


def entries(page: str) -> list[dict]:
    (found,) = re.findall(r'<script type="application/json" id="policies">(.*?)</script>', page, re.S)
    return json.loads(found)


def decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f8")


def test_the_gallery_is_one_small_file_with_all_digits(gallery, page_file):
    page = page_file.read_text(encoding="utf-8")
    assert page_file.stat().st_size < LIMIT
    found = entries(page)
    assert [one["words"] for one in found] == gallery["word_label"].values.tolist()
    for number, one in enumerate(found):
        np.testing.assert_array_equal(decoded(one["q"]).reshape(-1, 2), gallery["q"].values[number])
        assert (one["memory_length"], one["temperature"]) == (5, 0.5)
        log_p = gallery["log_probability"].isel(pair=number).transpose("order", "state", "word").values
        for order, log_odds in enumerate(one["log_odds"]):
            np.testing.assert_array_equal(decoded(log_odds), log_p[order, :, 0] - log_p[order, :, 1])


def test_it_asks_nothing_of_a_network_and_holds_the_licence_of_the_charts(page_file):
    page = page_file.read_text(encoding="utf-8")
    scripts_and_styles = re.findall(r"<(script|style)[^>]*>(.*?)</\1>", page, re.S)
    outside = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.S)
    assert re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"", outside) == []
    assert "https:" not in outside.replace("https://github.com/leeoniya/uPlot", "")
    for _, text in scripts_and_styles:
        assert not re.search(r"@import|url\((?!['\"]?data:)|\bfetch\(|XMLHttpRequest|WebSocket", text)
    assert "default-src 'none'" in outside and not PLACE.search(outside)
    licence = (files("meanfield._explore") / "page" / "uplot" / "LICENSE").read_text(encoding="utf-8")
    assert "MIT License" in licence and html.escape(licence) in page and re.search(r"uPlot \d+\.\d+\.\d+<", page)


def test_words_of_users_end_no_script_and_open_no_element(tmp_path):
    policy = meanfield.make_policy(np.full(5, 0.3), HOSTILE, model="<b>model</b>")
    page = written(policy, tmp_path)
    assert entries(page)[0]["words"] == HOSTILE, "a text that looks like a place stays as it is"
    assert "<img" not in page and "<b>model" not in page
    assert page.count("<script") == page.count("</script>") == 4
    assert html.escape(f"<b>model</b> {{{', '.join(HOSTILE)}}}") in page, "in the title"


def test_policies_of_every_model_and_pair_have_an_entry(tmp_path):
    first, second = random_policy(1), random_policy(2, memory_length=2).assign_coords(pair="a/b")
    found = entries(written([first, second], tmp_path))
    told = [(one["name"], one["memory_length"]) for one in found]
    assert told == [("random {a, b} (1)", 1), ("random {a, b} (2)", 2)]


def test_temperatures_are_those_of_a_record_that_gives_the_policy(gallery, tmp_path, monkeypatch):
    monkeypatch.setattr("meanfield._explore.explore.kappas", lambda *policy: [])  # which would take a minute
    one = gallery.sel(pair="his/her")
    filtered = one.assign(q=one["q"].where(one["q"] > 0.3, 0.0).where(one["q"] < 0.7, 1.0))
    censored = one.assign(censored=xr.full_like(one["log_probability"], True, dtype=bool))
    without = one.drop_vars("log_probability")
    found = entries(written([one, filtered, censored, without], tmp_path))
    assert [(entry["temperature"], len(entry["log_odds"])) for entry in found] == [(0.5, 2), (1, 0), (1, 0), (1, 0)]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (lambda: random_policy(1, 3), r"policies has random \{a, b, c\} with 3 words: expected 2"),
        (lambda: majority_policy(7, 0.9), r"policies has \{a, b\} with H = 7: expected at most 6"),
        (lambda: [], "policies is empty"),
        (lambda: xr.Dataset(), "policies"),
        (lambda: random_policy(1)["q"], "policies: expected the result of .*, but it is a DataArray"),
    ],
)
def test_what_the_page_cannot_show_is_refused(policies, message, tmp_path):
    with pytest.raises(InputError, match=message):
        meanfield.explore(policies(), tmp_path / "explorer.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        *((path, "path = .*: expected the name of a file") for path in (None, 3, b"page.html", "a\0b.html")),
        ("nowhere/explorer.html", "does not exist"),
    ],
)
def test_what_names_no_file_is_refused_before_anything_is_computed(path, message, monkeypatch):
    monkeypatch.setattr("meanfield._explore.explore.entries_of", lambda policies: pytest.fail("computed"))
    with pytest.raises(InputError, match=message):
        meanfield.explore(random_policy(1), path)


def test_the_command_writes_the_same_page(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    policy = random_policy(1)
    meanfield.save(policy, "policy.nc")

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["meanfield", "explore", "policy.nc", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code

    assert run("--out", "new/page.html") == 0
    assert capsys.readouterr().out.startswith("wrote new/page.html: 1 policy")
    assert Path("new/page.html").read_text(encoding="utf-8") == written(policy, tmp_path)
    assert run("--out", "page.pdf") == 2
    assert "expected a name that ends with .html" in capsys.readouterr().err


def test_modules_become_functions_in_the_order_of_their_imports(tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "a.js").write_text('import {\n  one,\n  two,\n} from "./b.js";\nexport const sum = one + two;\n')
    (folder / "b.js").write_text("export const one = 1;\nexport function two() {}\nexport class Three {}\n")
    script = plain_script(tmp_path, "engine")
    assert script.index('modules["engine/b.js"]') < script.index('modules["engine/a.js"]')
    assert "return { one, two, Three };" in script
    assert 'two,\n} = modules["engine/b.js"];' in script
    (folder / "a.js").write_text('export * from "./b.js";\n')
    with pytest.raises(ValueError, match="no import or export in the form"):
        plain_script(tmp_path, "engine")
