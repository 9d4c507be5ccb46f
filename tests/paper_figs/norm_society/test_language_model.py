"""Operations of a norm society answered by a language model: probed answers and written texts.

Answers are scripted, so that every probability and every decision is known; nothing here is left to chance but draws
that are compared with those of the same generator.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import xarray as xr

from _norm_societies import ordinary
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
from paper_figs.norm_society import NormOperations, simulate_society
from paper_figs.norm_society._language_model import (
    MAX_TOKENS,
    parse_abstract,
    parse_norm,
    parse_norms,
    parse_text,
    parse_themes,
)
from policy_extraction._toolbox.json_replies import ReplyError
from policy_extraction.norms import NORMS_003, probe_operations
from policy_extraction.norms._prompts import QUESTIONS, NormPrompts
from theory.norms import AGENTS, BEHAVIOURS, NormRates

BOTH = (NO_SMOKING, TIP)


HEARD = LIGHTS | {"text": "Said so.", "informed": (replace(QUIET, state="informed"),)}
NORM_READ = {"content": "No smoking.", "kind": "injunctive", "utility": 60.0}


def prompts_with(**changes: Any) -> NormPrompts:
    return NormPrompts({**NORMS_003.table, **changes})


def prefix_of(name: str) -> str:
    return NORMS_003.table["writing"][name]["answer_prefix"]


# Questions


def test_p_yes_is_the_mean_over_both_orders_of_the_softmax_at_the_temperature():
    for temperature, expected in ((1.0, (3 / 4 + 1 / 5) / 2), (0.5, (9 / 10 + 1 / 17) / 2)):
        backend = Scripted(lambda prompt: (0.6, 0.2) if "Yes or No" in prompt.user else (0.02, 0.08))
        operations = NormOperations(backend, temperature=temperature)
        operations("detect_conflict", BOB, LIGHTS | {"norms": (NO_SMOKING,)}, rng())
        (exchange,) = operations.exchanges
        found = exchange["p_yes"], exchange["captured_mass"], exchange["undecided"]
        assert found == pytest.approx((expected, (0.8 + 0.1) / 2, 0), abs=1e-12)


def test_a_question_is_scored_once_and_its_answers_are_drawn():
    backend = Scripted(lambda prompt: (0.06, 0.24))
    operations, generator = NormOperations(backend), rng(5)
    drawn = [operations("is_consistent", who, INFORMATION, generator) for who in [BOB, SAM] * 100]
    assert drawn == (rng(5).random(200) < 0.2).tolist() and 20 < sum(drawn) < 60
    assert [one["answer"] for one in operations.exchanges] == ["yes" if one else "no" for one in drawn]
    assert len(backend.scored) == 2  # the question describes nobody, and is asked in both orders
    operations("is_consistent", BOB, INFORMATION | {"text": "Be quiet."}, rng())
    assert len(backend.scored) == 4


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
    good, prefix = f"[{NORM}]", prefix_of("create")
    texts = ["Here:", good.replace("60", "600").removeprefix(prefix), good.removeprefix(prefix)]
    backend = Scripted(texts=texts)
    operations = NormOperations(backend, writing_temperature=0.25, retries=2)
    created = operations("create", BOB, {"n": 1}, rng(3))
    assert created == [NORM_READ]
    (first, options), (second, _), (third, _) = backend.written
    assert options == {"max_tokens": MAX_TOKENS["create"][1], "temperature": 0.25, "seed": options["seed"]}
    assert len({one["seed"] for _, one in backend.written}) == 3
    assert second.user.startswith(first.user) and "can't be used" not in first.user
    assert "can't be used: it does not begin with JSON in full." in second.user
    assert "can't be used: utility is 600, expected a number from 1 to 100." in third.user
    assert "in full" not in third.user
    assert [one["answer"] for one in operations.exchanges] == [prefix + text for text in texts]
    assert [one["problem"] == "" for one in operations.exchanges] == [False, False, True]
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
    assert BOB.description in said.system and SAM.description in replied.system
    assert all(part in said.user for part in ("Say to Sam Moore", LIGHTS["observation"], NO_SMOKING.content))
    assert "Bob Johnson says to you:\nPlease don't smoke." in replied.user
    assert [one["agent"] for one in operations.exchanges] == ["Bob Johnson", "Sam Moore"]


@pytest.mark.parametrize(
    ("name", "given", "text", "found", "question"),
    [
        ("think", LIGHTS | {"norms": (TIP,)}, "Don't.", "Don't.", "has_thought"),
        ("identify", HEARD | {"source": "chat"}, NORM, NORM_READ, "identify_chat"),
        ("identify", HEARD | {"source": "thought"}, f"{NORM} That is it.", NORM_READ, "identify_thought"),
    ],
)
def test_a_text_is_written_only_after_a_yes(name, given, text, found, question):
    """A norm is found in what was said and known, not in what was seen."""
    backend = Scripted(YES, [text.removeprefix(prefix_of(name))])
    operations = NormOperations(backend)
    assert operations(name, SAM, given, rng()) == found
    assert [one["operation"] for one in operations.exchanges] == [question, name]
    for one in operations.exchanges:
        user = one["prompt"]["user"]
        if name == "think":
            assert LIGHTS["observation"] in user and TIP.content in user
        else:
            assert "Said so." in user and QUIET.content in user and "cigarette" not in user
    backend = Scripted(NO)
    assert NormOperations(backend)(name, SAM, given, rng()) is None
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
    for answers, normative in ((YES, True), (NO, False)):
        operations = NormOperations(Scripted(answers, [CIGARETTE]))
        assert operations("act", SAM, given, rng())["normative"] is normative
        written, shown, asked = operations.exchanges
        assert (shown["operation"], asked["operation"]) == ("action_follows", "is_normative")
        told = ("Your plan: I stay in.", *SMOKING.shows.values(), QUIET.content)
        assert all(one in written["prompt"]["user"] for one in told)
        assert f"1. {NO_SMOKING.content}\nWhat happens: {CIGARETTE}" in asked["prompt"]["user"]
        assert QUIET.content not in asked["prompt"]["user"]
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


# Replies that are read


def test_replies_are_read():
    other = NORM.replace("smoking", "noise")
    assert parse_norm(NORM) == NORM_READ == parse_norm(f"\n{NORM}\nThis is the norm.")
    assert [parse_norm(NORM.replace("60", number))["utility"] for number in ("1", "100.0")] == [1, 100]
    assert [norm["content"] for norm in parse_norms(f"[{NORM}, {other}]", 2)] == ["No smoking.", "No noise."]
    assert parse_abstract(ABSTRACT, 2) == {"content": "Be kind.", "kind": "descriptive", "weights": [1.0, 2.5]}
    themes = parse_themes("1: Peace: and quiet\n\n 2 :money \n3:  peace:  and Quiet", 3)
    assert themes == [("peace: and quiet", [0, 2]), ("money", [1])]
    assert parse_themes("1: a\n2: b\n\nThese are themes: 3.", 2) == [("a", [0]), ("b", [1])]
    assert parse_text(" I smoke\n outside. ") == "I smoke outside."


ABSTRACT = '{"content": "Be kind.", "kind": "descriptive", "weights": [1, 2.5]}'
IN_FULL = "it does not begin with JSON in full"
NO_TEXT = "it is empty, or holds something that is no character"
NO_NORM = [  # what is exchanged in a norm
    *(("60", n, f"utility is {n}, expected") for n in ("0.99", "100.5", "true", '"60"', "NaN", "Infinity")),
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
    ("}", "", IN_FULL),
    *((NORM, text, IN_FULL) for text in ("No smoking.", f"It is {NORM}", "[" * 100_000)),
]
NO_LIST = [
    (f"[{NORM}, {NORM}]", 3, "it is not a JSON list of 3 norms"),
    (f"[{NORM}, {NORM}]", 1, "it is not a JSON list of 1 norms"),
    (NORM, 1, "it is not a JSON list"),
    (f"[{NORM}, {NORM.replace('60', '70')}]", 2, 'it has the content "No smoking." twice'),
    (f"[{NORM}, {NORM.replace('60', '0')}]", 2, "utility is 0"),
]
NO_WEIGHTS = ("[1]", "[1, 2, 3]", "[1, 0]", "[1, -2]", "[1, true]", '[1, "2"]', "3", "[1, Infinity]")
NO_THEMES = [
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
]
REFUSED = [
    *((parse_norm, NORM.replace(old, new), 1, problem) for old, new, problem in NO_NORM),
    *((parse_norms, *row) for row in NO_LIST),
    *((parse_abstract, ABSTRACT.replace("[1, 2.5]", w), 2, "a list of 2 positive numbers") for w in NO_WEIGHTS),
    (parse_abstract, ABSTRACT.replace("descriptive", "abstract"), 2, "kind is"),
    *((parse_themes, text, 3, problem) for text, problem in NO_THEMES),
    *((parse_text, text, 0, NO_TEXT) for text in (" \n ", "half a \udc9d")),
]


@pytest.mark.parametrize(("parse", "text", "n", "problem"), REFUSED, ids=range(len(REFUSED)))
def test_replies_that_are_not_as_asked_for_are_refused(parse, text, n, problem):
    with pytest.raises(ReplyError) as error:
        parse(text, n)
    assert problem in str(error.value)


# A society whose decisions and texts are a model's

RATES = NormRates(10, 20, 20, other_utility_entrepreneur=0, other_utility_ordinary=0)
SOCIETY = {"agents": AGENTS[-6:], "encounters": 50, "seed": 4, "rates": RATES}
CONTENTS = (
    *("Take your cigarettes outside.", "Nobody smokes at the table.", "Talk quietly.", "Voices stay low."),
    *("Guests leave tips.", "A tip is part of the price.", "Wash your hands."),
)
IF_NO = ("Does the list already hold", "Does the new norm say the opposite")


class Author(Scripted):
    """Answers and writes as a function of the prompt and the seed; one norm or list in eight is of no use."""

    def __init__(self) -> None:
        super().__init__(self.probabilities)

    def probabilities(self, prompt):
        """The answer that makes the operation true is the more probable one."""
        yes = 0.5 + 0.4 * crc32(f"{prompt.system}{prompt.user}".encode()) / 2**32
        return (0.9 - yes, yes) if any(text in prompt.user for text in IF_NO) else (yes, 0.9 - yes)

    def generate(self, prompts, *, max_tokens, temperature=1.0, seed=0):
        (prompt,) = prompts
        self.written.append((prompt, {"seed": seed}))
        return [self.text(prompt, rng(seed)).removeprefix(prompt.answer_prefix)]

    def text(self, prompt, random):
        def norm(content):
            return {"content": str(content), "kind": "injunctive", "utility": int(random.integers(70, 101))}

        begins, asked = prompt.system.startswith, prompt.user
        if prompt.answer_prefix and random.random() < 0.125:
            return "I'd rather not say."
        if number := re.search(r"Write (\d+) different social norms", asked):
            return json.dumps([norm(one) for one in random.permutation(CONTENTS)[: int(number[1])]])
        if begins("You put social norms"):
            return json.dumps(norm(random.choice(CONTENTS)))
        if begins("You sort norms"):
            numbers = re.findall(r"^(\d+)\. ", asked.rpartition("Norms:")[2], re.MULTILINE)
            return "\n".join(f"{k}: {'care' if int(k) % 2 else 'quiet'}" for k in numbers)
        if begins("You sum up norms"):
            number = int(re.findall(r"^(\d+) norms about", asked, re.MULTILINE)[-1])
            told = norm(f"Be kind {random.integers(1000)}.") | {"weights": random.integers(1, 5, number).tolist()}
            return json.dumps({key: value for key, value in told.items() if key != "utility"})
        return f"I mind the others {random.integers(1000)}."


def test_the_society_asks_all_that_a_model_can_be_asked():
    author = Author()
    operations = NormOperations(author)
    run = simulate_society(operations, **SOCIETY)
    kept = operations.exchanges
    assert {one["operation"] for one in kept} == (set(QUESTIONS) | set(MAX_TOKENS)) - {
        "comply_in_plan",
        "comply_in_action",
    }
    assert [one["prompt"]["user"] for one in kept if "problem" in one] == [one.user for one, _ in author.written]
    asked = {user for one in kept if "p_yes" in one for user in (one["prompt"]["user"], one["user_no_first"])}
    assert asked == {one.user for one in author.scored}
    assert any(one.get("problem") for one in kept)  # a text that was refused is kept too
    assert int(run["unparsed"].sum()) == 0
    assert all(int(run[name].isel(event=-1).sum()) > 0 for name in ("conflicts", "thoughts", "chats"))
    for name in ("accepted", "complying", "informed"):
        assert float(run[name].max("event").sum()) > float(run[name].isel(event=0).sum())
    assert any("parts" in norm for row in json.loads(run.attrs["databases"]).values() for norm in row["norms"])
    xr.testing.assert_identical(simulate_society(NormOperations(Author()), **SOCIETY), run)


def test_norms_for_nobody_are_named():
    """A name with a slip in it, and an agent who is no entrepreneur. Too many norms are refused."""
    norms = [{"content": f"Rule {k}.", "kind": "injunctive", "utility": 80} for k in range(2)]

    def start(*names: str, agents=(BOB, SAM), n_created: int = 2) -> xr.Dataset:
        operations = NormOperations(Author(), created=dict.fromkeys(names, norms))
        return simulate_society(operations, agents, ["smoking"], encounters=1, seed=1, n_created=n_created)

    with pytest.warns(UserWarning, match="norms for Bob Jonson, Sam Moore: expected them for .* society, Bob Johnson$"):
        start("Bob Johnson", "Bob Jonson", "Sam Moore")
    with pytest.warns(UserWarning, match="norms for Bob Johnson: expected them for .* society, which has none$"):
        start("Bob Johnson", agents=ordinary((BOB, SAM)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start("Bob Johnson")
    with pytest.raises(InputError, match="create of Bob Johnson answered 2 norms: expected 1 at most"):
        start("Bob Johnson", n_created=1)
