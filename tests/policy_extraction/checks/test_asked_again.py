"""The same prompts twice: what a server's cache changes is found, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from _refusals import refused
from meanfield import InputError, ModelError
from policy_extraction.backends import TableBackend
from policy_extraction.backends._backend import Scores
from policy_extraction.checks import asked_again

HIS_HER = ("his", "her")


def law(memory, order):
    heard = sum(partner == "his" for _, partner in memory)
    return {"his": 0.1 + 0.2 * heard + 0.05 * (order[0] == "his"), "her": 0.2}


class Table(TableBackend):
    """A table whose answers to prompts asked alone are changed."""

    def __init__(self, shift=0.0, censored=False):
        super().__init__(law, HIS_HER, 2)
        self.shift, self.censored = shift, censored

    def score(self, prompts, words):
        for scores in super().score(prompts, words):
            change = self.shift * (len(prompts) == 1) * (np.array(words) == "his")
            unknown = self.censored & (np.array([words]) == "her")
            yield Scores(scores.numbers, scores.log_probability + change, unknown)


def test_each_prompt_is_asked_together_and_alone():
    found = asked_again(Table(), HIS_HER, 2, n=42)
    assert found["log_probability"].dims == ("asked", "prompt", "word")
    assert sorted(zip(found["state"].values, found["order_label"].values, strict=True)) == [
        (state, order) for state in range(21) for order in ("her, his", "his, her")
    ]
    assert found["largest_difference"] == 0 and found["prompts_per_second"] > 0
    his = np.exp(found["log_probability"].sel(word="his", asked="alone"))
    empty = found["state"] == 0
    np.testing.assert_allclose(np.sort(his[empty]), [0.1, 0.15])


def test_a_difference_is_found_where_it_is():
    found = asked_again(Table(shift=-0.25), HIS_HER, 2, n=10, seed=3)
    assert found["largest_difference"].item() == pytest.approx(0.25, abs=1e-12)
    assert (found["difference"].sel(word="her") == 0).all()
    assert not asked_again(Table(), HIS_HER, 2, n=10, seed=4)["state"].equals(found["state"])


def test_bounds_are_not_compared():
    found = asked_again(Table(shift=0.1, censored=True), ("her", "his"), 2, n=5)
    assert found["difference"].sel(word="her").isnull().all()
    assert found["largest_difference"].item() == pytest.approx(0.1)


def test_what_is_refused():
    for options in ({"n": 43}, {"n": 0}, {"seed": -1}, {"memory_length": 0}):
        with pytest.raises(InputError, match=f"{next(iter(options))} = "):
            asked_again(Table(), HIS_HER, **{"memory_length": 2, **options})
    with refused("no numbers", ModelError):
        asked_again(Table(shift=np.nan), HIS_HER, 2)


def test_a_prefix_cache_of_a_server():
    pytest.importorskip("openai", reason="APIs need the extra api")
    from _known_server import backend
    from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
    from _token_server import KnownTokenizer

    model = KnownModel.of(FIRST_WORDS)
    for cached in (0.0, -0.2):
        with serving(Behaviour(model, dialect="sglang", cached=cached)) as url:
            server = backend(url, exact=True, tokenizer=KnownTokenizer(model.vocabulary))
            found = asked_again(server, HIS_HER, 1, n=6)
        assert found["largest_difference"].item() == pytest.approx(-cached, abs=1e-12)
