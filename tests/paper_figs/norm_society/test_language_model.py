"""Operations of a norm society answered by a language model: probed answers and written texts.

Answers are scripted, so that every probability and every decision is known; nothing here is left to chance but draws
that are compared with those of the same generator.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from _refusals import refused
from _scripted_norms import (
    BOB,
    CIGARETTE,
    INFORMATION,
    LIGHTS,
    NO,
    NO_SMOKING,
    NORM,
    QUIET,
    SAM,
    SMOKING,
    TIP,
    YES,
    Scripted,
    rng,
)
from meanfield import InputError, ModelError
from meanfield.toolbox import UnparsedError
from paper_figs.norm_society import NormOperations
from paper_figs.norm_society._language_model import MAX_TOKENS
from policy_extraction.norms import NORMS_003, probe_operations
from policy_extraction.norms._prompts import NormPrompts
from policy_extraction.prompts import Prompt
from theory.norms import AGENTS, BEHAVIOURS

BOTH = (NO_SMOKING, TIP)


def prompts_with(**changes: Any) -> NormPrompts:
    return NormPrompts({**NORMS_003.table, **changes})


def prefix_of(name: str) -> str:
    return NORMS_003.table["writing"][name]["answer_prefix"]


# Questions


def yes_first(prompt: Prompt) -> bool:
    return "Yes or No" in prompt.user


def test_p_yes_is_the_mean_over_both_orders_of_the_softmax_at_the_temperature():
    for temperature, expected in ((1.0, (3 / 4 + 1 / 5) / 2), (0.5, (9 / 10 + 1 / 17) / 2)):
        backend = Scripted(lambda prompt: (0.6, 0.2) if yes_first(prompt) else (0.02, 0.08))
        operations = NormOperations(backend, temperature=temperature)
        operations("detect_conflict", BOB, LIGHTS | {"norms": (NO_SMOKING,)}, rng())
        (exchange,) = operations.exchanges
        assert exchange["p_yes"] == pytest.approx(expected, abs=1e-12)
        assert exchange["captured_mass"] == pytest.approx((0.8 + 0.1) / 2, abs=1e-12)
        assert exchange["undecided"] == 0


def test_answers_are_drawn_with_p_yes():
    operations = NormOperations(Scripted(lambda prompt: (0.06, 0.24)))
    generator, same = rng(5), rng(5)
    drawn = [operations("is_consistent", BOB, INFORMATION, generator) for _ in range(200)]
    assert drawn == (same.random(200) < 0.2).tolist()
    assert 20 < sum(drawn) < 60
    assert [one["answer"] for one in operations.exchanges] == ["yes" if one else "no" for one in drawn]


def test_a_question_is_scored_once():
    backend = Scripted()
    operations = NormOperations(backend)
    for seed in range(5):
        operations("is_consistent", BOB, INFORMATION, rng(seed))
        operations("is_consistent", SAM, INFORMATION, rng(seed))
    assert len(backend.scored) == 2  # the question describes nobody, and is asked in both orders
    operations("is_consistent", BOB, INFORMATION | {"text": "Be quiet."}, rng())
    assert len(backend.scored) == 4
    assert len(operations.exchanges) == 11


ASKED = {
    "detect_conflict": (LIGHTS | {"norms": BOTH}, (NO_SMOKING.content, TIP.content, LIGHTS["observation"])),
    "decide_to_talk": (LIGHTS | {"norms": BOTH}, (LIGHTS["observation"], "You campaign for your norms")),
    "is_consistent": (INFORMATION, (INFORMATION["content"], INFORMATION["text"])),
    "is_unique": (INFORMATION | {"norms": BOTH}, (f"New norm: {INFORMATION['content']}", f"1. {NO_SMOKING.content}")),
    "is_type_right": (INFORMATION, (INFORMATION["content"], "Is this norm injunctive?")),
    "is_conflict_free": (INFORMATION | {"norms": BOTH}, (f"New norm: {INFORMATION['content']}", BOB.description)),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_question_holds_what_it_is_about_and_what_yes_means(name):
    """A duplicate is not unique, and a conflict not free of conflict; all else is true if the answer is yes."""
    given, parts = ASKED[name]
    if_yes = name not in ("is_unique", "is_conflict_free")
    assert NormOperations(Scripted(NO))(name, BOB, given, rng()) is not if_yes
    turned = {
        key: one | {"true_if": {"yes": "no", "no": "yes"}[one["true_if"]]}
        for key, one in NORMS_003.table["question"].items()
    }
    assert NormOperations(Scripted(YES), prompts_with(question=turned))(name, BOB, given, rng()) is not if_yes
    operations = NormOperations(Scripted(YES))
    assert operations(name, BOB, given, rng()) is if_yes
    (exchange,) = operations.exchanges
    assert (exchange["operation"], exchange["agent"], exchange["answer"]) == (name, "Bob Johnson", "yes")
    text = exchange["prompt"]["system"] + exchange["prompt"]["user"]
    assert all(part in text for part in parts)
    assert exchange["prompt"]["user"].replace("Yes or No", "No or Yes") == exchange["user_no_first"]
    json.dumps(exchange, allow_nan=False)


class Bounded(Scripted):
    """Says of 'No', or of both words, only that the probability is at most so much."""

    both = False

    def score(self, prompts, words):
        for scores in super().score(prompts, words):
            yield replace(scores, censored=np.array([[self.both, True]]))


def test_a_word_that_is_only_bounded_counts_at_its_bound_and_two_are_no_answer():
    backend = Bounded(lambda prompt: (0.9, 0.1))
    operations = NormOperations(backend)
    operations("detect_conflict", BOB, LIGHTS | {"norms": (NO_SMOKING,)}, rng())
    (exchange,) = operations.exchanges
    assert (exchange["p_yes"], exchange["undecided"]) == pytest.approx((0.9, 0.1))
    backend.both = True
    message = "backend = scripted: neither 'Yes' nor 'No' is among its most probable answers"
    with pytest.raises(UnparsedError, match=message):
        NormOperations(backend)("is_consistent", BOB, INFORMATION, rng())
    with pytest.raises(ModelError, match=message):
        probe_operations(backend, AGENTS[:2], BEHAVIOURS, cache=False)


# Texts that a model writes


def test_a_refused_text_is_asked_for_again_with_what_was_wrong():
    good = f"[{NORM}]"
    bad = good.replace("60", "600")
    prefix = prefix_of("create")
    texts = ["Here:", bad.removeprefix(prefix), good.removeprefix(prefix)]
    backend = Scripted(texts=texts)
    operations = NormOperations(backend, writing_temperature=0.25, retries=2)
    created = operations("create", BOB, {"n": 1}, rng(3))
    assert created == [{"content": "No smoking.", "kind": "injunctive", "utility": 60.0}]
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
    tried = f"none of {1 + retries} answers can be used; the last one was '1:I think"
    with pytest.raises(
        UnparsedError, match=rf"^classify of Sam Moore: {tried}.* is not 2, a colon and a theme$"
    ) as error:
        operations("classify", SAM, {"norms": BOTH}, rng())
    assert "x" * 100 in str(error.value) and "x" * 121 not in str(error.value) and "\n" not in str(error.value)
    assert len(backend.written) == len(operations.exchanges) == 1 + retries


def test_a_talk_is_what_both_say():
    backend = Scripted(texts=["Please don't\nsmoke.", "All right."])
    operations = NormOperations(backend)
    talk = operations("talk", BOB, LIGHTS | {"norms": (NO_SMOKING,), "partner": SAM}, rng())
    assert talk == "Bob Johnson: Please don't smoke.\nSam Moore: All right."
    (said, _), (replied, _) = backend.written
    assert BOB.description in said.system
    assert "Say to Sam Moore" in said.user
    assert LIGHTS["observation"] in said.user
    assert NO_SMOKING.content in said.user
    assert SAM.description in replied.system
    assert "Bob Johnson says to you:\nPlease don't smoke." in replied.user
    assert [one["agent"] for one in operations.exchanges] == ["Bob Johnson", "Sam Moore"]


def test_a_thought_is_written_only_where_there_is_one():
    backend = Scripted(YES, ["One should not smoke here."])
    operations = NormOperations(backend)
    assert operations("think", SAM, LIGHTS | {"norms": (TIP,)}, rng()) == "One should not smoke here."
    assert [one["operation"] for one in operations.exchanges] == ["has_thought", "think"]
    assert all(LIGHTS["observation"] in one["prompt"]["user"] for one in operations.exchanges)
    assert all(TIP.content in one["prompt"]["user"] for one in operations.exchanges)
    backend = Scripted(NO)
    assert NormOperations(backend)("think", SAM, LIGHTS | {"norms": ()}, rng()) is None
    assert not backend.written


@pytest.mark.parametrize("source", ["chat", "thought"])
def test_a_norm_is_written_only_where_one_is_identified(source):
    good = '{"content": "No smoking.", "kind": "descriptive", "utility": 60} That is it.'
    backend = Scripted(YES, [good.removeprefix(prefix_of("identify"))])
    operations = NormOperations(backend)
    given = LIGHTS | {"text": "Said so.", "source": source, "informed": (replace(QUIET, state="informed"),)}
    found = operations("identify", SAM, given, rng())
    assert found == {"content": "No smoking.", "kind": "descriptive", "utility": 60.0}
    assert [one["operation"] for one in operations.exchanges] == [f"identify_{source}", "identify"]
    for one in operations.exchanges:
        assert "Said so." in one["prompt"]["user"]
        assert QUIET.content in one["prompt"]["user"]
        assert "cigarette" not in one["prompt"]["user"]
    assert f"is a {source}.\nText: Said so." in operations.exchanges[1]["prompt"]["user"]
    backend = Scripted(NO)
    assert NormOperations(backend)("identify", SAM, given | {"text": "Hello."}, rng()) is None
    assert not backend.written


def test_a_plan_follows_the_norms_that_it_is_found_to_keep_to():
    backend = Scripted(lambda prompt: NO(prompt) if QUIET.content in prompt.user else YES(prompt), ["I go out."])
    operations = NormOperations(backend)
    plan = operations("plan", SAM, {"norms": (NO_SMOKING, QUIET, TIP)}, rng())
    assert plan == {"text": "I go out.", "follows": [NO_SMOKING.content, TIP.content]}
    assert [one["operation"] for one in operations.exchanges] == ["plan", *["plan_follows"] * 3]
    assert all("Plan: I go out." in one["prompt"]["user"] for one in operations.exchanges[1:])
    assert NormOperations(backend)("plan", SAM, {"norms": ()}, rng())["follows"] == []


@pytest.mark.parametrize("shows", ["for", "against"])
def test_an_action_shows_the_standard_that_it_is_found_to_keep_to(shows):
    """By whichever standard is asked for; a model that always says yes prefers none of the standards."""
    right = SMOKING.standards[shows]
    given = {"behaviour": SMOKING, "norms": (TIP,), "plan": "", "follows": {NO_SMOKING.content}}
    asked = Counter()
    for seed in range(20):
        backend = Scripted(lambda prompt: YES(prompt) if right in prompt.user else NO(prompt), [CIGARETTE])
        operations = NormOperations(backend)
        assert operations("act", SAM, given, rng(seed)) == {"text": CIGARETTE, "shows": shows, "normative": False}
        (_, question) = operations.exchanges
        asked.update(one for one in ("for", "against") if SMOKING.standards[one] in question["prompt"]["user"])
    assert sum(asked.values()) == 20
    assert min(asked.values()) >= 3  # of 20 fair draws, fewer than 3 of a kind in one seed of 2,400
    always = (NormOperations(Scripted(YES, ["x"]))("act", SAM, given | {"norms": ()}, rng(seed)) for seed in range(20))
    assert {one["shows"] for one in always} == {"for", "against"}


def test_an_action_is_normative_where_a_norm_that_is_planned_by_asks_for_it():
    follows = {NO_SMOKING.content, "Superseded."}
    given = {"behaviour": SMOKING, "norms": (NO_SMOKING, QUIET), "plan": "I stay in.", "follows": follows}
    for law, normative in ((YES, True), (NO, False)):
        operations = NormOperations(Scripted(law, [CIGARETTE]))
        assert operations("act", SAM, given, rng())["normative"] is normative
        written, shown, asked = operations.exchanges
        assert "Your plan: I stay in." in written["prompt"]["user"]
        assert all(SMOKING.shows[one] in written["prompt"]["user"] for one in ("for", "against"))
        assert (shown["operation"], asked["operation"]) == ("action_follows", "is_normative")
        assert f"1. {NO_SMOKING.content}\nWhat happens: {CIGARETTE}" in asked["prompt"]["user"]
        assert QUIET.content not in asked["prompt"]["user"]
        assert QUIET.content in written["prompt"]["user"]
    operations = NormOperations(Scripted(YES, [CIGARETTE]))
    assert operations("act", SAM, given | {"norms": (QUIET,)}, rng())["normative"] is False
    assert [one["operation"] for one in operations.exchanges] == ["act", "action_follows"]


def test_norms_are_sorted_and_summed_up():
    operations = NormOperations(Scripted(texts=[" Peace\n2: Money\n3: peace"]))
    themes = operations("classify", BOB, {"norms": (NO_SMOKING, TIP, QUIET)}, rng())
    assert themes == [["peace", [NO_SMOKING.content, QUIET.content]], ["money", [TIP.content]]]
    prefix = prefix_of("abstract")
    text = '{"content": "Be kind.", "kind": "injunctive", "weights": [1, 3]}'
    assert text.startswith(prefix)
    backend = Scripted(texts=[text.removeprefix(prefix)])
    given = {"theme": "Peace", "norms": (NO_SMOKING, QUIET)}
    assert NormOperations(backend)("abstract", BOB, given, rng()) == ["Be kind.", "injunctive", [1, 3]]
    ((prompt, _),) = backend.written
    assert f"2 norms about Peace:\n1. {NO_SMOKING.content}\n2. {QUIET.content}" in prompt.user


ROW = {"content": "Be quiet.", "kind": "injunctive", "utility": 80}


def test_norms_to_start_with_may_be_given():
    backend = Scripted(texts=["Nothing."])
    operations = NormOperations(backend, retries=0, created={"Bob Johnson": [ROW, ROW | {"content": "Tip."}]})
    assert operations("create", BOB, {"n": 5}, rng()) == [ROW, ROW | {"content": "Tip."}]
    assert not backend.written
    with pytest.raises(UnparsedError, match="create of Sam Moore"):
        operations("create", SAM, {"n": 1}, rng())


@pytest.mark.parametrize("norms", [[ROW | {"utility": 0}], [ROW, ROW], "No"])
def test_norms_to_start_with_are_checked(norms):
    with refused(r"created\['Bob Johnson'\] = "):
        NormOperations(Scripted(), created={"Bob Johnson": norms})


def test_the_identity_tells_models_and_options_apart():
    other, options = Scripted(), [{"temperature": 0.9}, {"writing_temperature": 0.9}, {"retries": 1}]
    other.identity = "scripted/2"
    options += [{}, {"prompts": prompts_with(no_norms="none")}, {"created": {"Bob Johnson": [ROW]}}]
    made = [NormOperations(other), *(NormOperations(Scripted(), **some) for some in options)]
    assert len({one.identity for one in made}) == len(made)
    assert made[4].identity == NormOperations(Scripted()).identity
    other.identity = ""
    assert NormOperations(other).identity == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpt"}, "backend = 'gpt': expected a Backend"),
        ({"prompts": "mine.toml"}, "prompts = 'mine.toml': expected NormPrompts"),
        ({"temperature": 0}, "temperature = 0: expected a positive number"),
        ({"writing_temperature": -1}, "writing_temperature = -1: expected a number of at least 0"),
        ({"retries": -1}, "retries = -1: expected a whole number of at least 0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError) as error:
        NormOperations(**{"backend": Scripted(), **options})
    assert message in str(error.value)
