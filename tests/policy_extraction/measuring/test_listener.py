"""The probabilities that a model agrees to names in use and to others, with scripted models."""

import numpy as np
import pytest

import meanfield
import theory
from meanfield import InputError
from policy_extraction import listener
from policy_extraction.backends import Scores


class Hearer:
    """Agrees to a name in use with the probability `pi`, to others with `phi`; `moods` shift the logit by name."""

    name, identity = "made up", "hearer/1"
    check = generate = tokens = lambda self, *asked, **options: None

    def __init__(self, pi, phi, moods=None, first_word=0.0):
        self.pi, self.phi, self.moods, self.first_word, self.calls = pi, phi, moods or {}, first_word, 0
        self.provenance = {}

    def score(self, prompts, words):
        self.calls += len(prompts)
        rows = []
        for prompt in prompts:
            used, told = prompt.user.split("Another member")
            heard = told.split(": ")[1].split(".")[0]
            chance = self.pi if f" {heard} " in used.replace(".", " ") else self.phi
            logit = np.log(chance / (1 - chance)) + self.moods.get(heard, 0.0)
            logit += self.first_word * (1 if prompt.user.endswith(f"{words[0]} or {words[1]}.") else -1)
            rows.append([1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))])
        if rows:
            yield Scores(np.arange(len(rows)), np.log(np.array(rows) / 2), np.zeros((len(rows), 2), bool))


def test_both_probabilities_are_measured_and_become_a_game():
    found = listener(Hearer(0.8, 0.3), ["foo", "bar", "baz", "qux"], cache=False)
    for name in ("accepts", "accepts_low", "accepts_high"):
        np.testing.assert_allclose(found[name], [0.8, 0.3], atol=1e-12)
    np.testing.assert_allclose(found["captured_mass"], 0.5, atol=1e-12)
    assert found.sizes["question"] == 64 and found["in_use"].sum() == 4 + 12 * 2
    points = theory.minimal_naming_game.fixed_points(0.5, accepts=tuple(found["accepts"].values.round(6).tolist()))
    assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]


def test_words_that_come_first_do_not_matter():
    """Each order shifts the logit, the mean over both does so to second order only."""
    found = listener(Hearer(0.5, 0.5, first_word=1.0), ["foo", "bar", "baz", "qux"], cache=False)
    np.testing.assert_allclose(found["accepts"], 0.5, atol=1e-12)


def test_intervals_hold_what_names_change():
    """Names drawn again and again: 95 % intervals hold the mean over all names, and those of half their width don't."""
    rng, held, narrow = np.random.default_rng(1), 0, 0
    logits = np.linspace(-6, 6, 2001)
    weights = np.exp(-(logits**2) / 2)
    true = (weights / (1 + np.exp(-logits))).sum() / weights.sum()
    for _ in range(100):
        names = [f"name{k}" for k in range(6)]
        moods = dict(zip(names, rng.normal(size=6), strict=True))
        found = listener(Hearer(0.5, 0.5, moods), names, cache=False).sel(known=False)
        low, high, middle = (found[one].item() for one in ("accepts_low", "accepts_high", "accepts"))
        held += low <= true <= high
        narrow += abs(true - middle) <= (high - low) / 4
    assert held >= 88  # of 100 at 0.95; 95 - 3.2 standard errors
    assert narrow < 80


def test_answers_are_kept(tmp_path):
    model = Hearer(0.8, 0.3)
    first = listener(model, ["foo", "bar", "baz", "qux"], cache=tmp_path)
    asked = model.calls
    again = listener(model, ["foo", "bar", "baz", "qux"], cache=tmp_path, temperature=2.0)
    assert asked == 128 and model.calls == asked
    assert again["accepts"][0] < first["accepts"][0]
    loaded = meanfield.load(meanfield.save(first, tmp_path / "listener.nc"))
    assert loaded.attrs["kind"] == "listener"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ["a", "b"]}, "names = ['a', 'b']: expected 4 to 12 different names"),
        ({"names": ["a", "a", "b", "c"]}, "names = ['a', 'a', 'b', 'c']: expected 4 to 12 different names"),
        ({"names": "abc"}, "names = 'abc': expected 4 to 12 different names"),
        ({"names": [["a"], ["b"], ["c"], ["d"]]}, "names = [['a'], ['b'], ['c'], ['d']]: expected 4 to 12"),
        ({"level": 1.0}, "level = 1.0: expected a number between 0 and 1"),
        ({"backend": "model"}, "backend = 'model': expected a Backend"),
        ({"temperature": -1}, "temperature = -1"),
    ],
)
def test_bad_input_is_named(wrong, message):
    with pytest.raises(InputError) as error:
        listener(**{"backend": Hearer(0.5, 0.5), "names": ["a", "b", "c", "d"], "cache": False, **wrong})
    assert str(error.value).startswith(message)
