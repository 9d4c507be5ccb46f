"""Prompts as data: the published ones, and those of one's own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from _prompt_files import SHORT
from _refusals import refused
from meanfield import InputError
from policy_extraction.prompts import NAMING_GAME, Payoffs, _template
from policy_extraction.prompts._template import TEMPLATES, load_template

MEMORY = [("his", "her"), ("her", "her"), ("his", "his")]
PACKAGED = Path(_template.__file__).parent / "templates" / "naming_game_004.toml"


@pytest.fixture
def own(tmp_path):
    """Writes a template file, with some of its lines changed."""

    def write(**changes: str | None) -> Path:
        lines = {
            "name": '"mine/1"',
            "system": '"Pick of $options. ${history}Score $score, worth $success or $failure."',
            "user": '"Round $round: what do you say?"',
            "answer_prefix": '"I say "',
            "option": '"$word"',
            "line": '"$round. I: $own, they: $partner ($payoff)"',
        } | changes
        path = tmp_path / "mine.toml"
        path.write_text("\n".join(f"{name} = {value}" for name, value in lines.items() if value is not None))
        return path

    return write


# --- the published prompts -----------------------------------------------------------------------------------------


def test_the_published_prompts_are_found_by_name():
    assert set(TEMPLATES) == {"naming-game-004/1", "naming-game-000/1"}
    assert TEMPLATES["naming-game-004/1"] is NAMING_GAME
    with pytest.raises(TypeError):
        TEMPLATES["another"] = SHORT  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "digest"),
    [("naming-game-004/1", "44b1d60f084016b2"), ("naming-game-000/1", "39052dfde0b447d1")],
)
def test_a_published_prompt_never_changes(name, digest):
    """These are, but for quotation marks around words, the texts of [004] and [000]; other texts need other names."""
    prompt = TEMPLATES[name].prompt(("F", "J"), [("F", "J")], Payoffs())
    text = "\0".join([prompt.system, prompt.user, prompt.answer_prefix])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_the_newest_round_first_keeps_the_numbers_of_rounds():
    oldest = NAMING_GAME.prompt(("her", "his"), MEMORY, Payoffs()).system.splitlines()
    newest = replace(NAMING_GAME, newest_first=True).prompt(("her", "his"), MEMORY, Payoffs()).system.splitlines()
    places = [i for i, line in enumerate(oldest) if line.startswith("{'round'")]
    assert [newest[i] for i in places] == [oldest[i] for i in reversed(places)]
    assert [line for i, line in enumerate(newest) if i not in places] == [
        line for i, line in enumerate(oldest) if i not in places
    ]


# --- one's own -----------------------------------------------------------------------------------------------------


def test_a_packaged_file_is_a_template_like_any_other():
    assert load_template(PACKAGED) == NAMING_GAME
    assert load_template(str(PACKAGED)) == NAMING_GAME


def test_a_file_of_ones_own_makes_prompts(own):
    prompt = load_template(own(newest_first="true")).prompt(("a", "b"), [("a", "b"), ("b", "b")], Payoffs(1, -1))
    assert prompt.system == "Pick of a, b. 2. I: b, they: b (1)\n1. I: a, they: b (-1)\n\nScore 0, worth 1 or -1."
    assert prompt.user == "Round 3: what do you say?"
    assert prompt.answer_prefix == "I say "


def test_a_dollar_sign_is_written_twice_where_slots_are(own):
    template = load_template(own(user='"For $$100?"', answer_prefix='"$"'))
    prompt = template.prompt(("a", "b"), [], Payoffs())
    assert (prompt.user, prompt.answer_prefix) == ("For $100?", "$")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"system": '"Pick of $options."'}, r"mine/1: system and user lacks the slot \$history"),
        ({"system": '"$history"'}, r"lacks the slot \$options"),
        ({"line": '"$round: $own"'}, r"line lacks the slot \$partner"),
        ({"option": '"word"'}, r"option lacks the slot \$word"),
        ({"user": '"$memory"'}, r"user has the slot \$memory; expected \$failure, \$history"),
        ({"line": '"$own $partner $score"'}, r"line has the slot \$score"),
        ({"system": '"$options $history $History"'}, r"the slot \$History"),
        ({"user": '"costs 5$"'}, r"user has a \$ that starts no slot"),
        ({"name": '" "'}, "template: name = ' ': expected text"),
        ({"line": None}, "the file lacks line"),
        ({"line": None, "option": None}, "the file lacks option, line"),
        ({"newest_first": '"yes"'}, "newest_first = 'yes', expected true or false"),
        ({"user": "3"}, "user = 3, expected text"),
        ({"version": '"2"'}, "version is no key of the file"),
        ({"user": "no quotation marks"}, "this is no TOML file"),
    ],
)
def test_a_wrong_template_is_one_clear_line(own, changes, message):
    with refused(message):
        load_template(own(**changes))


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path):
    with refused("can't be read"):
        load_template(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with refused("it is no UTF-8 text"):
        load_template(tmp_path / "binary.toml")


def test_a_template_made_in_python_is_checked_alike():
    with pytest.raises(InputError, match=r"lacks the slot \$history"):
        replace(SHORT, system="$options")
