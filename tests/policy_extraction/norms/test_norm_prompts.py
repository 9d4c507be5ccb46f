"""Files of prompts for the operations of a norm society: what is in the packaged one, and what is wrong in others."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from string import Template

import pytest

from _prompt_files import PACKAGED, changed
from _refusals import refused
from _scripted_norms import BOB, NO_SMOKING, TIP
from paper_figs.norm_society._language_model import MAX_TOKENS
from policy_extraction import norms
from policy_extraction.norms import NORMS_003
from policy_extraction.norms._prompts import PERSON

PACKAGED_FILE = PACKAGED / "norms_003.toml"


@pytest.fixture
def own(tmp_path):
    return partial(changed, PACKAGED_FILE, tmp_path)


def test_the_packaged_file_is_one_like_any_other():
    assert norms.load_prompts(PACKAGED_FILE) == NORMS_003
    assert NORMS_003.name == "norms-003/1"
    assert set(NORMS_003.table["writing"]) == set(MAX_TOKENS)
    assert not any("$" in part for part in (NORMS_003.table["answer_prefix"], NORMS_003.table["no_norms"]))


def test_prompts_of_ones_own_are_asked(own):
    changes = ("You see this: $observation", "For $$5 you see $observation"), ('"$number. $c', '"$number [$kind] $c')
    prompts = norms.load_prompts(own(*changes))
    (asked, other) = prompts.question("detect_conflict", BOB, norms=prompts.listed([NO_SMOKING, TIP]), observation="X.")
    assert "For $5 you see X." in asked.user
    assert "1 [injunctive] No smoking indoors.\n2 [descriptive] People leave a tip after a meal.\n" in asked.user
    assert asked.system == f"You are Bob Johnson. {BOB.description}" == other.system
    assert asked.user.replace("Yes or No", "No or Yes") == other.user != asked.user
    assert prompts.sha256 != NORMS_003.sha256 == norms.load_prompts(PACKAGED_FILE).sha256


def test_a_missing_slot_is_named(tmp_path):
    packaged = PACKAGED_FILE.read_text(encoding="utf-8")
    rows = [(part, *row) for part in ("question", "writing") for row in tomllib.loads(packaged)[part].items()]
    named = 0
    for part, name, row in rows:
        for slot in set(Template(row["user"]).get_identifiers()) - PERSON:
            before, head, after = packaged.partition(f"[{part}.{name}]")
            own, bracket, rest = after.partition("\n[")
            path = tmp_path / "own.toml"
            path.write_text(before + head + re.sub(rf"\${slot}\b", "", own) + bracket + rest, encoding="utf-8")
            with refused(re.escape(f"prompts norms-003/1: {part}.{name} lacks the slot ${slot}") + "$"):
                norms.load_prompts(path)
            named += 1
    assert named > 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("$problem", "it"), "prompts mine/1: retry lacks the slot $problem"),
        (("$first or $second", "$first"), "prompts mine/1: options lacks the slot $second"),
        (('"$number. $content"', '"$number"'), "prompts mine/1: norm lacks the slot $content"),
        (("Thought: $text", "$norms $text"), "has the slot $norms; expected $description, $informed, $name, $options"),
        (("New norm: $content", "For 5$ $content"), "is_unique has a $ that starts no slot; a dollar sign is"),
        (('true_if = "no"', 'true_if = "No"'), "question.is_unique.true_if = 'No'; expected yes or no"),
        (('no = "No"', 'no = "Yes"'), "yes and no are 'Yes' and 'Yes'; expected two different words"),
        (("mine/1", " "), "prompts: name = ' ': expected text"),
        (("[question.is_unique]", "[question.is_new]"), "the file lacks question.is_unique"),
        (("[role]", "[role]\nmayor = ''"), "role.mayor is no key of the file; expected role.entrepreneur, role.ord"),
    ],
)
def test_wrong_prompts_are_one_clear_line(own, change, message):
    path = own(change)
    with refused(re.escape(message)):
        norms.load_prompts(path)
