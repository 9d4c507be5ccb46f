"""Names that no file can hold, sizes and files beyond reason: refused in one line before a model is asked."""

from __future__ import annotations

import pytest

from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

import _openai_server
from _known_server import GAME, backend
from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
from policy_extraction import extract, flag_game, load_template, norms


@pytest.mark.parametrize("name", ["a\0b", "x" * 10**5])
def test_a_name_in_a_reply_that_no_file_can_hold_ends_it_at_the_check(name, monkeypatch):
    original = _openai_server._reply
    monkeypatch.setattr(_openai_server, "_reply", lambda *arguments: original(*arguments) | {"model": name})
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url, refused("model in the reply is"):
        extract(backend(url), **GAME, cache=False)
    assert len(behaviour.requests) == 1


@pytest.mark.parametrize("load", [load_template, flag_game.load_prompts, norms.load_prompts])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("name = " + "[" * 5000, "no TOML file .*recursion"),
        ("name = " + "{a = " * 5000, "no TOML file .*recursion"),
        ("name = " + "9" * 5000, "no TOML file .*digits"),
        ("name = 0x" + "f" * 5000, "name = a int|lack"),
        ("a." * 50_000 + "a = 1", "a key has more than 100 names"),
        ('"a" . ' * 30_000 + "a = 1", "a key has more than 100 names"),
        ("#" * 300_000, "more than 200 kB"),
    ],
)
def test_files_of_prompts_that_would_take_all_memory_are_one_line(load, content, reason, tmp_path):
    path = tmp_path / "prompts.toml"
    path.write_text(content)
    with refused(f"^path = {path}: .*({reason})"):
        load(path)
