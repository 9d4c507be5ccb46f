"""Agents that play the flag game: prompts, answers, protocols and logs.

Stochastic tests are seeded. Each comparison would fail at one seed in 1,000, and has a control that must fail.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest, chisquare, norm

import validation
from _prompt_files import PACKAGED, changed
from _refusals import refused
from meanfield import InputError, StorageError, load, save
from meanfield.toolbox import UnparsedError
from policy_extraction._toolbox.json_replies import ReplyError
from policy_extraction.flag_game import FLAG_GAME_002, StandIn, load_prompts, play, probe_memory_conflict
from policy_extraction.flag_game._asking import parse_reply
from policy_extraction.flag_game._prompts import SLOTS, TASKS
from theory.flag_game import png

AB = ("Austria", "Bahamas")
each_protocol = pytest.mark.parametrize("protocol", ["pairwise", "broadcast", "manager"])


def dot(shade: int) -> bytes:
    """A picture of one pixel."""
    return png(np.full((1, 1, 3), shade, dtype=np.uint8))


A, B, UNSURE = map(dot, range(3))
SEEN = {A: (1.0, 0.0), B: (0.0, 1.0), UNSURE: (0.6, 0.4)}
PARROT = StandIn(SEEN, AB, uptake=1.0, grounded=False, name="parrot")
OBSERVER = StandIn(SEEN, AB, uptake=0.0, name="observer")


class Recorder:
    """Hands questions on, and keeps what was asked and answered; answers as `spoil` says where that is not None."""

    def __init__(self, agent: Any = PARROT, spoil: Any = lambda number, user: None) -> None:
        self.agent, self.spoil, self.name, self.identity = agent, spoil, agent.name, agent.identity
        self.asked: list[dict[str, Any]] = []

    def complete(self, system: str, user: str, **options: Any) -> str:
        text = self.spoil(len(self.asked), user)
        text = self.agent.complete(system, user, **options) if text is None else text
        self.asked.append({"system": system, "user": user, "answer": text, **options})
        return text


def memory_in(user: str) -> list[str]:
    """The lines between the header of the memory and the line after it, in a pairwise prompt."""
    lines = user.split("Transcript memory (oldest -> newest):\n")[1].split("\nOutput JSON")[0].splitlines()
    return [] if lines == ["[]"] else lines


# Prompts


@pytest.mark.parametrize("kind", TASKS)
def test_the_bandwidth_sets_the_schema_and_nothing_else(kind):
    task = getattr(FLAG_GAME_002, kind)
    slots = {"memory": "[]", "reports": "[]", "model": "x"}
    texts = [task.text(AB, m, **slots) for m in (1, 2, 3)]
    assert len({text.rpartition("\n")[0] for text in texts}) == 1
    own = {"statement": ["model_identity"], "decision": ["influential_agent_ids"]}.get(kind, [])
    for m, more in ((1, []), (2, ["clue"]), (3, ["reason"])):
        assert sorted(task.keys(m)) == sorted(["country", *more, *own])


@pytest.mark.parametrize("task", ["message", "decision"])
def test_a_bound_of_the_susceptibility_ladder_belongs_to_the_range_below(task):
    line = getattr(FLAG_GAME_002, task).line
    lines = [line(alpha) for alpha in (0, 0.3, 0.5, 0.7, 1)]
    assert len(set(lines)) == 5 and line(None) == ""
    for k, bound in enumerate((0.2, 0.4, 0.6, 0.8)):
        assert [line(bound), line(math.nextafter(bound, 1))] == lines[k : k + 2]


@pytest.mark.parametrize("protocol", ["pairwise", "broadcast"])
def test_without_alpha_nothing_is_said_about_social_evidence(protocol):
    def asked(alpha):
        agent = Recorder()
        play([agent] * 3, [A, A, B], AB, protocol=protocol, alpha=alpha, rounds=1, seed=1)
        return [call["user"] for call in agent.asked]

    line = (FLAG_GAME_002.message if protocol == "pairwise" else FLAG_GAME_002.decision).line(0.9)
    plain, told = asked(None), asked(0.9)
    assert [text.replace(line, "") for text in told] == plain
    assert sum(line in text for text in told) == (len(told) if protocol == "pairwise" else 3)


# Prompts of one's own


def test_the_published_prompts_are_a_file_and_those_of_earlier_logs(tmp_path):
    assert load_prompts(PACKAGED / "flag_game_002.toml") == FLAG_GAME_002
    assert FLAG_GAME_002.sha256 == "b64cb0a84b2ef8694f2e78789b8283ab8958051169bc7d026951cba309e07395"
    wrong = changed(PACKAGED / "flag_game_002.toml", tmp_path, ("lists_countries = true", "lists_countries = 1"))
    with refused("message.lists_countries = 1, expected true or false"):
        load_prompts(wrong)


REWORDED = (
    ("Transcript memory (oldest -> newest):", "For $$5 you heard:"),
    ("Output JSON exactly:\n$schema", "Write $schema,\nonce more: $schema\nYou recall\n$memory"),
    ('"clue": "<short clue', '"hint": "<short clue'),
    ("Balance your own", "Mix your own"),
)


def reworded(text: str) -> str:
    for old, new in REWORDED:
        text = text.replace(old, new)
    return text


@each_protocol
def test_prompts_of_ones_own_are_played(protocol):
    """Other words around the same slots change nothing for who reads the slots only."""
    tasks = {}
    for kind in TASKS:
        task = getattr(FLAG_GAME_002, kind)
        lists = {name: tuple(map(reworded, getattr(task, name))) for name in ("schemas", "susceptibility")}
        tasks[kind] = replace(task, user=reworded(task.user), **lists)
    prompts = replace(FLAG_GAME_002, name="mine/1", retry="No:\n$problem!", **tasks)

    def game(prompts):
        agent = Recorder(
            StandIn(SEEN, AB, uptake=0.3, answers="sampled", prompts=prompts), lambda n, user: "{}" if n == 7 else None
        )
        head = StandIn({}, AB, uptake=1.0, prompts=prompts) if protocol == "manager" else None
        options = {"protocol": protocol, "manager": head, "alpha": None if head else 0.5, "m": 2, "seed": 5}
        played = play([agent] * 4, [A, B, UNSURE, UNSURE], AB, rounds=4, prompts=prompts, **options)
        return played, agent.asked

    (mine, asked), (theirs, _) = game(prompts), game(FLAG_GAME_002)
    assert mine.attrs.pop("option_prompts") == "mine/1"
    assert theirs.attrs.pop("option_prompts") == "flag-game-002/1"
    assert mine.identical(theirs)
    assert mine["retries"].item() == 1
    texts = [call["user"] for call in asked]
    assert all(text.count("once more: {") == 1 for text in texts)
    assert sum("\nNo:\nits keys are" in text for text in texts) == 1
    assert all('"clue"' not in text for text in texts)
    assert any("For $5 you heard:" in text for text in texts) is (protocol == "pairwise")
    assert any("\nMix your own" in text for text in texts) is (protocol != "manager")


@pytest.mark.parametrize(("kind", "slot"), [(kind, slot) for kind in TASKS for slot in sorted(SLOTS[kind])])
def test_a_missing_slot_is_named(kind, slot):
    task = getattr(FLAG_GAME_002, kind)
    without = task.user.replace(f"${{{slot}}}", "").replace(f"${slot}", "")
    assert without != task.user
    with refused(re.escape(f"prompts flag-game-002/1: {kind}.user lacks the slot ${slot}")):
        replace(FLAG_GAME_002, **{kind: replace(task, user=without)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": "$model " + FLAG_GAME_002.message.user}, "message.user has the slot $model; expected $allowed"),
        ({"user": "5$ " + FLAG_GAME_002.message.user}, "has a $ that starts no slot; a dollar sign is written $$"),
        ({"system": "$memory"}, "message.system has the slot $memory; expected none"),
        ({"susceptibility": ("",) * 4}, "susceptibility.message has 4 lines; expected 5"),
        ({"bounds": (0.4, 0.2, 0.6, 1.0)}, "susceptibility.bounds = [0.4, 0.2, 0.6, 1.0]; expected rising numbers"),
        ({"schemas": ("{}", "{}")}, "message.schemas has 2 texts; expected 3"),
        ({"schemas": ("{}", "{}", "{}")}, "message.schemas, m = 1: it has the keys none; expected country, each once"),
    ],
)
def test_wrong_prompts_are_one_clear_line(changes, message):
    with refused(re.escape(message)):
        replace(FLAG_GAME_002, message=replace(FLAG_GAME_002.message, **changes))


# Answers

EXPECTED = {"keys": ("country", "reason", "influential_agent_ids"), "countries": AB, "others": frozenset({0, 2, 3, 4})}
GOOD = {"country": "Austria", "reason": "red and white", "influential_agent_ids": [0, 3]}


def test_an_answer_may_have_its_keys_in_any_order():
    found = parse_reply(json.dumps(dict(reversed(GOOD.items())), indent=1) + "\n", **EXPECTED)
    assert list(found.items()) == list(GOOD.items())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"```json\n{json.dumps(GOOD)}\n```", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        (json.dumps({**GOOD, "confidence": 1}), "keys"),
        ('{"country": "Bahamas", ' + json.dumps(GOOD)[1:], "a key twice"),
        (json.dumps({**GOOD, "country": "austria"}), "not one of the allowed"),
        (json.dumps({**GOOD, "reason": " "}), "expected text"),
        (json.dumps({**GOOD, "influential_agent_ids": [0, 2, 3, 4]}), "at most 3"),
        (json.dumps({**GOOD, "influential_agent_ids": [1]}), "other agents"),
        (json.dumps({**GOOD, "influential_agent_ids": [0, 0]}), "different"),
        (json.dumps({**GOOD, "influential_agent_ids": [True]}), "numbers"),
    ],
)
def test_nothing_in_an_answer_is_repaired(text, problem):
    with pytest.raises(ReplyError, match=problem):
        parse_reply(text, **EXPECTED)


def test_an_agent_must_say_who_it_is_as_it_was_told():
    expected = {"keys": ("model_identity", "country"), "countries": AB, "model": "gpt-4o"}
    assert parse_reply('{"model_identity": "gpt-4o", "country": "Austria"}', **expected)
    with pytest.raises(ReplyError, match="model_identity"):
        parse_reply('{"model_identity": "GPT-4o", "country": "Austria"}', **expected)


def test_a_refused_answer_is_asked_for_again_with_the_allowed_list():
    bad = Recorder(spoil=lambda number, user: '{"country": "Prussia"}' if number in (0, 1) else None)
    result = play([bad, OBSERVER], [A, B], AB, protocol="broadcast", rounds=1, seed=3)
    first, second, third = (call["user"] for call in bad.asked[:3])
    listed = 'Allowed countries: ["Austria", "Bahamas"]'
    assert listed not in first
    assert listed in second.splitlines()
    assert second == third
    assert second.splitlines()[-1].startswith("Your previous answer was not accepted: its keys are")
    assert len({call["seed"] for call in bad.asked}) == len(bad.asked)
    assert result["retries"].item() == 2
    assert result["calls"].item() == 6


def test_an_agent_that_never_answers_ends_the_game_and_the_log_keeps_the_answers(tmp_path):
    mute = Recorder(spoil=lambda number, user: "I see red." if number < 4 else None)
    options = {"rounds": 1, "seed": 0, "log": tmp_path / "game.jsonl"}
    with refused(r"max_tries = 4: parrot, agent 0, .*\(probe, step 0\).*I see red", UnparsedError):
        play([mute, PARROT], [A, B], AB, max_tries=4, **options)
    lines = [json.loads(line) for line in (tmp_path / "game.jsonl").read_text().splitlines()[1:]]
    assert [(line["role"], line["attempt"], line["answer"]) for line in lines] == [
        ("probe", attempt, "I see red.") for attempt in range(4)
    ]
    result = play([mute, PARROT], [A, B], AB, max_tries=5, **options)
    assert result["retries"].item() == 4


# Protocols


@pytest.mark.parametrize(("uptake", "answer"), [(0.33, "Austria"), (0.34, "Bahamas")])
def test_the_stand_in_updates_as_the_equations_say(uptake, answer):
    """With p = (0.6, 0.4), a message for the second country turns the answer at α = 1/3."""
    agent = StandIn(SEEN, AB, uptake=uptake)
    memory = {"memory": '{"country": "Bahamas"}', "susceptibility": FLAG_GAME_002.message.line(0.1)}
    reply = agent.complete("", FLAG_GAME_002.message.text(AB, 1, **memory), image_png=UNSURE)
    assert json.loads(reply) == {"country": answer}


def test_a_message_is_remembered_by_its_listener_and_forgotten_after_eight_more():
    agents = [Recorder() for _ in range(3)]
    result = play(agents, [A, A, B], AB, rounds=12, patience=None, probe_every=1, m=2, seed=4)
    heard: list[list[str]] = [[], [], []]
    got: Counter[tuple[int, ...]] = Counter()
    numbers = [0, 0, 0]

    def next_call(agent):
        numbers[agent] += 1
        return agents[agent].asked[numbers[agent] - 1]

    for agent in range(3):
        assert memory_in(next_call(agent)["user"]) == []
    for step in range(1, 37):
        rng = np.random.default_rng([4, step])
        speaker, shift = int(rng.integers(3)), int(rng.integers(1, 3))
        spoken = next_call(speaker)
        assert memory_in(spoken["user"]) == heard[speaker][-8:]
        assert set(json.loads(spoken["answer"])) == {"country", "clue"}
        heard[(speaker + shift) % 3].append(spoken["answer"])
        got[(speaker + shift) % 3, speaker] += 1
        for agent in range(3):
            asked = next_call(agent)
            assert memory_in(asked["user"]) == heard[agent][-8:]
            assert json.loads(asked["answer"])["country"] == result["report"].values[0, step, agent]
    assert max(map(len, heard)) > 8
    assert {key: n for key, n in np.ndenumerate(result["messages"].values[0]) if n} == got
    assert all(call["temperature"] == 0.2 and call["max_tokens"] == 200 for call in agents[0].asked)
    assert {call["image_png"] for call in agents[2].asked} == {B}


def voter_law(n_true: int, n: int, steps: int, pairs: int) -> np.ndarray:
    """Distribution of how many of n repeat the truth after some steps; in each step one repeats another."""
    i = np.arange(n + 1)
    flow = i * (n - i) / pairs
    step = np.diag(1 - 2 * flow) + np.diag(flow[:-1], 1) + np.diag(flow[1:], -1)
    return np.linalg.matrix_power(step, steps)[n_true]


@pytest.mark.slow
def test_agents_that_repeat_what_they_hear_are_the_voter_model():
    games = xr.concat(
        [
            play([PARROT] * 4, [A, A, A, B], AB, rounds=2, patience=None, m=1, seed=seed, truth="Austria")
            for seed in range(400)
        ],
        "run",
    )
    counts = np.bincount((games["final_report"] == "Austria").sum("agent"), minlength=5)
    assert chisquare(counts, 400 * voter_law(3, 4, 8, pairs=12)).pvalue > 1e-3
    assert chisquare(counts, 400 * voter_law(3, 4, 8, pairs=24)).pvalue < 1e-3  # half as fast
    assert int(games["messages"].sum()) == 400 * 8
    accuracy = validation.flag_game.accuracy(games)
    assert accuracy["initial_accuracy"].item() == 0.75
    # The share of an opinion is a martingale
    assert abs(accuracy["social_uplift"]) < norm.isf(5e-4) * accuracy["social_uplift_se"]


@pytest.mark.parametrize(("protocol", "steps"), [("pairwise", 15), ("manager", 5)])
def test_a_game_ends_after_five_unanimous_probes(protocol, steps):
    head = StandIn({}, AB, uptake=1.0) if protocol == "manager" else None
    options = {"protocol": protocol, "manager": head, "seed": 2}
    result = play([PARROT] * 3, [A] * 3, AB, **options)
    assert (result["steps"].item(), result["stopped"].item()) == (steps, True)
    assert result.sizes["probe"] == 17
    assert (result["report"].values[0, :6] == "Austria").all()
    assert result["report"].isnull().values[0, 6:].all()
    on = play([PARROT] * 3, [A] * 3, AB, patience=None, **options)
    assert (on["steps"].item(), on["stopped"].item()) == (steps // 5 * 16, False)


def test_a_manager_that_disagrees_keeps_the_game_going():
    stubborn = Recorder(spoil=lambda number, user: '{"country": "Bahamas", "reason": "I know."}')
    result = play([OBSERVER] * 2, [A, A], AB, protocol="manager", manager=stubborn, rounds=7, seed=2, truth="Austria")
    assert (result["steps"].item(), result["stopped"].item()) == (7, False)
    assert result["manager_report"].item() == "Bahamas"
    assert validation.flag_game.accuracy(result)["collective_accuracy"].item() == 0
    assert validation.flag_game.accuracy(result)["initial_accuracy"].item() == 1


def test_a_manager_sees_no_crop_and_takes_the_plurality_that_all_then_remember():
    head, observers = Recorder(StandIn({}, AB, uptake=1.0)), [Recorder() for _ in range(3)]
    result = play(observers, [A, A, B], AB, protocol="manager", manager=head, rounds=2, seed=5)
    assert [call["image_png"] for call in head.asked] == [None, None]
    assert result["initial_report"].values.tolist() == [["Austria", "Austria", "Bahamas"]]
    assert result["manager_decision"].isnull().values.tolist() == [[True, False, False]]
    assert result["manager_decision"].values[0, 1:].tolist() == ["Austria", "Austria"]
    # The one who saw another flag repeats the manager's decision, which it has heard by now
    assert result["final_report"].values.tolist() == [["Austria", "Austria", "Austria"]]
    second = observers[2].asked[1]["user"]
    assert "Manager's country decisions (oldest -> newest):\nAustria\nOutput" in second
    assert "Your prior decisions (oldest -> newest):\nAustria\nObserver JSON:\n[{" in head.asked[1]["user"]


def test_in_a_broadcast_all_see_the_others_statements_and_name_who_influenced_them():
    team = [Recorder(PARROT), Recorder(PARROT), Recorder(OBSERVER), Recorder(PARROT)]
    result = play(team, [A, B, B, B], AB, protocol="broadcast", rounds=1, m=1, seed=6)
    statement, decision = team[0].asked
    assert 'exactly "parrot"' in statement["user"]
    shown = decision["user"].split("this round:\n")[1].splitlines()[:3]
    assert shown == ["1 | parrot | Bahamas", "2 | observer | Bahamas", "3 | parrot | Bahamas"]
    assert result["initial_report"].values.tolist() == [["Austria", "Bahamas", "Bahamas", "Bahamas"]]
    assert result["final_report"].values.tolist() == [["Bahamas"] * 4]
    assert result["influence"].values[0].tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    assert result["model"].values.tolist() == ["parrot", "parrot", "observer", "parrot"]


# The ideal observer


def test_sampled_answers_have_the_probabilities_of_the_belief():
    agent, user = StandIn(SEEN, AB, uptake=0.5, answers="sampled"), FLAG_GAME_002.message.text(AB, 1, memory="[]")
    said = [json.loads(agent.complete("", user, image_png=UNSURE, seed=seed))["country"] for seed in range(1000)]
    assert binomtest(said.count("Austria"), 1000, 0.6).pvalue > 1e-3
    assert binomtest(said.count("Austria"), 1000, 0.5).pvalue < 1e-3


# Logs


@each_protocol
def test_an_interrupted_game_goes_on_and_comes_to_the_same_end(tmp_path, protocol):
    agent = StandIn(SEEN, AB, uptake=0.3, answers="sampled")
    log = tmp_path / "game.jsonl"

    def game(agent, **more):
        head = StandIn({}, AB, uptake=1.0) if protocol == "manager" else None
        options = {"protocol": protocol, "manager": head, "rounds": 3, "seed": 7, "patience": None, **more}
        return play([agent] * 4, [A, B, UNSURE, UNSURE], AB, **options)

    class CutOffError(Exception):
        pass

    def cut_off(number, user):
        if number == 11:
            raise CutOffError
        return

    whole = Recorder(agent)
    expected = game(whole)
    with pytest.raises(CutOffError):
        game(Recorder(agent, cut_off), log=log)
    log.write_bytes(log.read_bytes()[:-5])  # the process died while it wrote
    rest = Recorder(agent)
    assert game(rest, log=log).identical(expected)
    assert len(rest.asked) == len(whole.asked) - 10
    again = Recorder(agent)
    assert game(again, log=log).identical(expected)
    assert not again.asked
    assert game(agent, concurrency=3).identical(expected)


def test_a_game_that_is_over_can_be_made_longer(tmp_path):
    options = {"seed": 3, "patience": None, "m": 1}
    first, rest, whole = Recorder(), Recorder(), Recorder()
    play([first] * 3, [A, B, B], AB, rounds=1, log=tmp_path / "game.jsonl", **options)
    longer = play([rest] * 3, [A, B, B], AB, rounds=4, log=tmp_path / "game.jsonl", **options)
    assert longer.identical(play([whole] * 3, [A, B, B], AB, rounds=4, **options))
    assert len(first.asked) + len(rest.asked) == len(whole.asked)


def test_logs_of_something_else_are_refused_and_half_a_first_line_is_begun_anew(tmp_path):
    log = tmp_path / "game.jsonl"
    game = partial(play, [PARROT] * 2, [A, B], AB, rounds=1, log=log)
    game(seed=1)
    content = log.read_text()
    with pytest.raises(InputError, match="it holds a flag game with seed = 1, expected 2"):
        game(seed=2)
    for text, message in (
        (content.replace("identification game", "guessing game"), "probe of agent 0 at step 0 was asked something"),
        ("{}\n[]\n", "damaged"),
        ("a letter without an end of line", "no log of a flag game"),
    ):
        log.write_text(text)
        with pytest.raises(InputError, match=message):
            game(seed=1)
        assert log.read_text() == text
    with pytest.raises(StorageError, match="can't be read and written"):
        game(seed=1, log=tmp_path)
    log.write_text(content[:20])
    game(seed=1)
    assert log.read_text() == content


def test_a_game_can_be_saved(tmp_path):
    game = play([PARROT] * 2, [A, A], AB, rounds=8, seed=1, truth="Austria")
    save(game, tmp_path / "game.nc")
    read = load(tmp_path / "game.nc")
    assert read["final_report"].values.tolist() == [["Austria", "Austria"]]
    assert read["report"].isnull().values[0, :, 0].tolist() == [False] * 6 + [True] * 3
    assert read.attrs["option_prompts"] == "flag-game-002/1"


# The memory-conflict probe


def test_a_conflicting_memory_names_the_lure_as_often_as_it_should():
    agent = Recorder()
    result = probe_memory_conflict(
        agent, A, AB, target="Austria", lure="Bahamas", m=3, trials=60, seed=1,
        reasons={"Austria": "red", "Bahamas": "blue"},
    )  # fmt: skip
    named = [user.count('{"country": "Bahamas", "reason": "blue"}') for user in (c["user"] for c in agent.asked)]
    assert named == list(range(9)) * 60
    assert all(len(memory_in(call["user"])) == 8 for call in agent.asked)
    lure = result["lure_count"].values
    assert (lure[0], lure[8]) == (0, 60)
    assert (result["target_count"] + result["lure_count"] + result["other_count"] == 60).all()
    # It repeats the last entry, which names the lure in k orders of eight
    for k in (2, 4, 6):
        assert binomtest(int(lure[k]), 60, k / 8).pvalue > 1e-3 / 3
    assert binomtest(int(lure[4]), 60, 0.9).pvalue < 1e-3


# Bad input

GAME: dict[str, Any] = {"agents": [PARROT] * 2, "crops": [A, B], "countries": AB, "seed": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 4}, "m = 4: expected a whole number from 1 to 3"),
        ({"alpha": math.nan}, "alpha = nan: expected a number from 0 to 1"),
        ({"alpha": 0.5, "protocol": "manager", "manager": PARROT}, "no such line in the manager protocol"),
        ({"agents": [PARROT], "crops": [A]}, "agents: there are 1, expected at least 2"),
        ({"agents": [PARROT, "gpt-4o"]}, "agent 1 = 'gpt-4o': expected a name and a method complete"),
        ({"crops": [A, B, B]}, "crops: there are 3, expected one for each of 2 agents"),
        ({"crops": [A, b"GIF89a"]}, "crop 1: expected the bytes of a PNG file"),
        ({"countries": ("Austria", "Austria")}, "countries holds Austria twice"),
        ({"countries": ("Austria",)}, "expected at least two"),
        ({"countries": ("Austria", "")}, "expected names"),
        ({"protocol": "manager"}, "manager = None: expected one agent more"),
        ({"manager": PARROT}, "manager = parrot: expected None in the pairwise protocol"),
        ({"protocol": "broadcast", "probe_every": 2}, "probe_every = 2"),
        *(({name: 0}, f"{name} = 0") for name in ("rounds", "patience", "memory_length", "max_tries")),
        ({"temperature": -0.1}, "temperature = -0.1"),
        ({"truth": "Prussia"}, "truth = 'Prussia': expected one of Austria, Bahamas"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {**GAME, **change}
    with refused(re.escape(message)):
        play(arguments.pop("agents"), arguments.pop("crops"), arguments.pop("countries"), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "Prussia"}, "target = 'Prussia'"),
        ({"lure": "Austria"}, "expected another country than the target"),
        ({"m": 3}, "reasons = None: expected one for Austria and one for Bahamas with m = 3"),
        ({"reasons": {"Austria": "x", "Bahamas": "y"}}, "expected None with m = 1"),
    ],
)
def test_bad_input_of_the_probe_is_named(change, message):
    arguments: dict[str, Any] = {"target": "Austria", "lure": "Bahamas", "seed": 1, **change}
    with pytest.raises(InputError) as error:
        probe_memory_conflict(PARROT, A, AB, **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StandIn({A: (0.5, 0.4)}, AB, uptake=1), "sum 0.9"),
        (lambda: StandIn(SEEN, AB, uptake=1, answers="loud"), "answers = 'loud'"),
        (lambda: PARROT.complete("", FLAG_GAME_002.message.text(AB, 1, memory="[]"), image_png=dot(9)), "this crop"),
        (lambda: PARROT.complete("", "Hello", image_png=A), "reads prompts of the flag game only"),
    ],
)
def test_bad_input_of_a_stand_in_is_named(call, message):
    with refused(re.escape(message)):
        call()
