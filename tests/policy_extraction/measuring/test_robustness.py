"""Effects of the ways of asking, planted into tables of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import meanfield
from _refusals import refused
from policy_extraction import extract, policy_from_record, robustness
from policy_extraction.backends import Scores, TableBackend
from policy_extraction.measuring import unquoted
from policy_extraction.measuring._robustness import effects
from policy_extraction.prompts import NAMING_GAME
from policy_extraction.prompts._template import TEMPLATES, Prompt

WORDS = ("his", "her")
FIRST, SECOND = TEMPLATES.values()


class Planted:
    """A model whose lean to the first word is a sum of effects of the prompt."""

    name, identity = "planted", ""

    def __init__(self, memory_length: int = 1, lean: float = 0.3, follow: float = 0.5, **plants: float) -> None:
        self.provenance: dict[str, str | int | float] = {}
        self.asked = 0
        self.tables = []
        for wording, template in enumerate((FIRST, SECOND)):
            for bare in (False, True):

                def law(memory: Any, order: Any, wording: int = wording, bare: bool = bare) -> dict[str, float]:
                    heard = sum(1 if partner == WORDS[0] else -1 for _, partner in memory)
                    z = lean + follow * heard + plants.get("order", 0) * (order[0] == WORDS[0])
                    z += plants.get("wording", 0) * wording + plants.get("quotation", 0) * bare
                    z += plants.get("both", 0) * (2 * wording - 1) * (2 * bare - 1)
                    his = 0.9 / (1 + np.exp(-z))
                    return {"his": his, "her": 0.9 - his}

                asked = unquoted(template) if bare else template
                self.tables.append(TableBackend(law, WORDS, memory_length, template=asked))

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        pass

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        (table,) = (table for table in self.tables if prompts[0] in table._states)
        self.asked += len(prompts)
        return table.score(prompts, words)

    def generate(self, prompts: Sequence[Prompt], **options: Any) -> list[str]:
        raise NotImplementedError

    def tokens(self, words: Sequence[str]) -> list[str]:
        return [""] * len(words)


def asked(model: Planted, **options: Any) -> Any:
    return robustness(
        model, **{"words": WORDS, "memory_length": 1, "temperatures": (1.0,), "quotation": False} | options
    )


@cache
def with_an_effect_of_the_wording() -> Any:
    return asked(Planted(wording=0.4))


def test_parts_of_a_grid_are_those_of_its_sum_of_effects():
    """y = a_i + b_j + c_ij with effects that sum to 0: variances add, as the parts are orthogonal."""
    random = np.random.default_rng(1)
    a, b, c = random.normal(size=(3, 1)), random.normal(size=(1, 4)), random.normal(size=(3, 4))
    a, b = a - a.mean(), b - b.mean()
    c = c - c.mean(0) - c.mean(1, keepdims=True) + c.mean()
    levels, explained = effects(7.0 + a + b + c)
    np.testing.assert_allclose(levels[0], a[:, 0], atol=1e-12)
    np.testing.assert_allclose(levels[1], b[0], atol=1e-12)
    parts = np.array([(part**2).mean() for part in (a, b, c)])
    np.testing.assert_allclose(explained, parts / parts.sum(), rtol=1e-10)
    assert not effects(np.full((2, 3), 0.1))[1].any()
    assert np.isnan(effects(np.array([[1.0, np.nan], [0.0, 2.0]]))[1]).all()


@pytest.mark.parametrize("factor", ["order", "wording", "quotation"])
def test_a_planted_effect_is_found_and_no_other(factor):
    found = with_an_effect_of_the_wording()
    if factor != "wording":
        found = asked(Planted(**{factor: 0.4}), templates=[FIRST], quotation=factor == "quotation")
    explained = found["explained"].sel(conclusion="word_share")
    assert explained.sel(part=factor) > 1 - 1e-9
    assert found.sizes["combination"] == (2 if factor == "order" else 4)
    effect = found["effect"].sel(conclusion="word_share")
    levels = effect[effect["factor"].values == factor].values * (1 if factor == "order" else -1)
    assert levels[0] > 0.01 and levels[0] == pytest.approx(-levels[1])
    assert abs(effect[effect["factor"].values != factor]).max() < 1e-9


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_planted():
    found = asked(Planted(), quotation=True, temperatures=(1.0,))
    assert not found["explained"].sel(conclusion=["same_strong_word", "word_share", "eigenvalue"]).any()
    assert found["explained"].sel(conclusion="kappa").isnull().all()  # with one attractor there is no κ
    assert (found["strong_word"] == "his").all() and (found["same_strong_word"] == 1).all()
    assert (found["lowest"] == found["highest"]).sel(conclusion="word_share")


@pytest.mark.slow
def test_an_effect_of_two_factors_together_is_an_interaction():
    found = asked(Planted(both=0.3), quotation=True)["explained"].sel(conclusion="word_share")
    assert found.sel(part="interactions") > 0.98
    assert found.sum() == pytest.approx(1)


@pytest.mark.slow
def test_conclusions_are_those_of_the_policy_that_was_asked_for():
    model = Planted(memory_length=3, follow=2.0, wording=-0.3, lean=0.1)
    found = asked(model, memory_length=3, temperatures=(0.8,))
    one = found.isel(combination=1)
    record = extract(model, words=WORDS, memory_length=3, template=SECOND)
    policy = policy_from_record(record, 0.8, order=0)
    law = meanfield.group_size_law(policy)
    assert (one["wording"], one["order"]) == (SECOND.name, "his, her")
    assert one["strong_word"] == law["strong_word"].item() == "her"
    assert one["kappa"].item() == pytest.approx(-law["kappa"].item())
    mass = meanfield.critical_mass(policy, word="his")["critical_mass"].item()
    assert one["critical_mass"].item() == pytest.approx(mass) and one["prompts"] == 85
    assert found["strong_word"].values.tolist() == ["his", "her", "his", "her"] and found["consensus"].all()
    assert found["same_strong_word"].values.tolist() == [1, 0, 1, 0]
    assert (found["explained"].sel(part="wording", conclusion=["same_strong_word", "kappa"]) > 0.99).all()


@pytest.mark.slow
def test_temperature_and_order_take_no_prompts():
    model = Planted()
    found = asked(model, temperatures=(0.5, 1.0, 2.0))
    assert model.asked == 2 * 10 and found.sizes["combination"] == 12
    assert found["explained"].sel(conclusion="word_share", part="temperature") > 0.5
    # At temperature T the logits are divided by it.
    policy = policy_from_record(extract(Planted(), words=WORDS, memory_length=1), 2.0, order=0)
    share = meanfield.fixed_points(policy)["word_share"].sel(word="his").item()
    assert found["word_share"].values[2] == pytest.approx(share)


@pytest.mark.slow
def test_a_budget_measures_each_combination_with_a_part_of_its_prompts():
    model = Planted(memory_length=3, follow=0.3, wording=0.5)
    found = asked(model, memory_length=3, budget=110, seed=1)
    assert (found["order"] == "mean").all() and found.sizes["combination"] == 2
    assert (found["prompts"] <= 110).all() and model.asked <= 2 * 110
    whole = asked(Planted(memory_length=3, follow=0.3, wording=0.5), memory_length=3)
    true = whole["word_share"].values.reshape(2, 2).mean(0)
    assert ((found["word_share_low"] <= true) & (true <= found["word_share_high"])).all()
    np.testing.assert_allclose(found["word_share"], true, rtol=0.01)
    assert found["explained"].sel(conclusion="word_share", part="wording") > 0.99
    assert true[1] / true[0] > 1.1  # the control: the other wording would fail


def test_results_are_saved_and_drawn(tmp_path):
    found = with_an_effect_of_the_wording()
    meanfield.save(found, tmp_path / "found.nc")
    assert meanfield.load(tmp_path / "found.nc")["explained"].equals(found["explained"])
    assert found[["strong_word", "word_share"]].to_dataframe().shape[0] == 4
    axes = meanfield.plot(found)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0] == "same strong word\n1" and names[3] == "kappa\nthere is none"
    assert {bars.get_label() for bars in axes.containers} == {"wording"}
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    np.testing.assert_allclose(widths["wording"], found["explained"].sel(part="wording"))


def test_arguments():
    model = Planted()
    with refused("words: there are 3, expected 2"):
        asked(model, words=("a", "b", "c"))
    for templates in ([NAMING_GAME, NAMING_GAME], [], ["naming-game-004/1"], NAMING_GAME):
        with refused("templates = .*: expected a sequence of one or more, all different"):
            asked(model, templates=templates)
    for temperatures in ((), (1.0, 1), 0.5, (1.0, 0), (None,)):
        with refused("temperatures = .*: expected a sequence of one or more, all different"):
            asked(model, temperatures=temperatures)
    with refused("temperature = -1"):
        asked(model, temperatures=(1.0, -1))
    with refused("budget = 0"):
        asked(model, budget=0)
    with refused("expected words in quotation marks"):
        asked(model, templates=[unquoted(NAMING_GAME)], quotation=True)
