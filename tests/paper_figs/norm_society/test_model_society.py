"""The society of agents whose decisions and texts are a language model's, and all that it was asked.

A scripted model answers as a function of the prompt and the seed, so that equal runs ask and write the same.
"""

from __future__ import annotations

import json
import re
import warnings
from zlib import crc32

import numpy as np
import pytest
import xarray as xr

from _norm_societies import ordinary
from _scripted_norms import BOB, SAM, Scripted
from meanfield import InputError
from paper_figs.norm_society import NormOperations, simulate_society
from paper_figs.norm_society._language_model import MAX_TOKENS
from policy_extraction.norms._prompts import QUESTIONS
from policy_extraction.prompts import Prompt
from theory.norms import AGENTS, NormRates

RATES = NormRates(
    encounters_per_day=10,
    plans_per_day=20,
    syntheses_per_day=20,
    other_utility_entrepreneur=0,
    other_utility_ordinary=0,
)
SOCIETY = {"agents": AGENTS[-6:], "encounters": 50, "seed": 4, "rates": RATES}
CONTENTS = (
    "Take your cigarettes outside.",
    "Nobody smokes at the table.",
    "Talk quietly.",
    "Voices stay low.",
    "Guests leave tips.",
    "A tip is part of the price.",
    "Wash your hands.",
)
IF_NO = ("Does the list already hold", "Does the new norm say the opposite")


def law(prompt: Prompt) -> tuple[float, float]:
    """Another one for each prompt; what makes the operation true is the more probable."""
    yes = 0.5 + 0.4 * crc32(f"{prompt.system}{prompt.user}".encode()) / 2**32
    return (0.9 - yes, yes) if any(text in prompt.user for text in IF_NO) else (yes, 0.9 - yes)


def norm_of(rng: np.random.Generator, content: str) -> dict:
    kind = str(rng.choice(["injunctive", "descriptive"]))
    return {"content": content, "kind": kind, "utility": int(rng.integers(70, 101))}


def text_of(prompt: Prompt, rng: np.random.Generator) -> str:
    """The text that is asked for; one answer in eight about lists and norms is of no use."""
    if prompt.answer_prefix and rng.random() < 0.125:
        return "I'd rather not say."
    if "different social norms" in prompt.user:
        number = int(re.search(r"Write (\d+) different", prompt.user)[1])  # type: ignore[index]
        return json.dumps([norm_of(rng, str(one)) for one in rng.permutation(CONTENTS)[:number]])
    if prompt.system.startswith("You put social norms"):
        return json.dumps(norm_of(rng, str(rng.choice(CONTENTS))))
    if prompt.system.startswith("You sort norms"):
        number = len(re.findall(r"^\d+\. ", prompt.user.rpartition("Norms:")[2], re.MULTILINE))
        return "\n".join(f"{k + 1}: {'quiet' if k % 2 else 'care'}" for k in range(number))
    if prompt.system.startswith("You sum up norms"):
        number = int(re.findall(r"^(\d+) norms about", prompt.user, re.MULTILINE)[-1])
        weights = rng.integers(1, 5, number).tolist()
        return json.dumps({"content": f"Be kind {rng.integers(1000)}.", "kind": "injunctive", "weights": weights})
    return f"I mind the others {rng.integers(1000)}."


class Author(Scripted):
    """Writes what is asked for."""

    def __init__(self) -> None:
        super().__init__(law)

    def generate(self, prompts, *, max_tokens, temperature=1.0, seed=0):
        (prompt,) = prompts
        self.written.append((prompt, {"seed": seed}))
        text = text_of(prompt, np.random.default_rng(seed))
        return [text.removeprefix(prompt.answer_prefix)]


@pytest.fixture(scope="module")
def whole() -> tuple[xr.Dataset, NormOperations, Author]:
    """A run, its operations, and the model that was asked."""
    author = Author()
    operations = NormOperations(author)
    return simulate_society(operations, **SOCIETY), operations, author


def test_the_society_asks_all_that_a_model_can_be_asked(whole):
    run, operations, _ = whole
    asked = {one["operation"] for one in operations.exchanges}
    probes_only = {"comply_in_plan", "comply_in_action"}
    assert asked == (set(QUESTIONS) | set(MAX_TOKENS)) - probes_only
    assert any(one.get("problem") for one in operations.exchanges)  # a text that was refused is kept too
    assert int(run["unparsed"].sum()) == 0
    for name in ("conflicts", "thoughts", "chats"):
        assert int(run[name].isel(event=-1).sum()) > 0
    for name in ("accepted", "complying", "informed"):
        assert float(run[name].max("event").sum()) > float(run[name].isel(event=0).sum())
    assert any("parts" in norm for row in json.loads(run.attrs["databases"]).values() for norm in row["norms"])
    xr.testing.assert_identical(simulate_society(NormOperations(Author()), **SOCIETY), run)
    other = simulate_society(NormOperations(Author()), **SOCIETY | {"seed": 5})
    assert other.attrs["databases"] != run.attrs["databases"]


def test_every_prompt_is_kept(whole):
    _, operations, author = whole
    kept = operations.exchanges
    texts = [one["prompt"] for one in kept if "problem" in one]
    assert texts == [
        {"system": one.system, "user": one.user, "answer_prefix": one.answer_prefix} for one, _ in author.written
    ]
    questions = [one for one in kept if "p_yes" in one]
    assert len(texts) + len(questions) == len(kept)
    systems = [one["prompt"]["system"] for one in questions]
    users = [(one["prompt"]["user"], one["user_no_first"]) for one in questions]
    both = {(system, user) for system, pair in zip(systems, users, strict=True) for user in pair}
    assert both == {(one.system, one.user) for one in author.scored}


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
