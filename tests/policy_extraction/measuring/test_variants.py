"""One game asked in several ways: what is asked, and what the table says of the answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from _refusals import refused

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("transformers", reason="language models need the extra llm")

import meanfield
from _prompt_files import SHORT
from _tiny_models import tiny
from meanfield import InputError
from policy_extraction import extract
from policy_extraction.measuring._variants import (
    newest_first,
    prompt_variants,
    standard_variants,
    unquoted,
    variant_table,
)
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._template import TEMPLATES

WORDS = ("his", "her")
MEMORY = [("his", "her"), ("her", "her")]
VARIANTS = {
    "short": SHORT,
    "other points": (SHORT, Payoffs(10, -5)),
    "newest first": newest_first(SHORT),
    "unquoted": unquoted(SHORT),
}


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def policies(model):
    return prompt_variants(model, [WORDS, ("on", "off")], 2, VARIANTS)


def test_unquoted_words_are_bare_everywhere():
    prompt = unquoted(NAMING_GAME).prompt(("her", "his"), MEMORY, Payoffs())
    quoted = NAMING_GAME.prompt(("her", "his"), MEMORY, Payoffs())
    assert prompt.system == quoted.system.replace("'her'", "her").replace("'his'", "his")
    assert "following values: [her, his]." in prompt.system
    assert "{'round':1, 'Player 1': his, 'Player 2': her, 'payoff': -50}" in prompt.system
    assert prompt.answer_prefix == "{'value': "
    with pytest.raises(InputError, match="expected words in quotation marks"):
        unquoted(unquoted(NAMING_GAME))


def test_the_standard_variants_differ_from_each_other():
    texts = {}
    for name, variant in standard_variants().items():
        template, payoffs = variant if isinstance(variant, tuple) else (variant, Payoffs())
        texts[name] = template.prompt(WORDS, MEMORY, payoffs)
    assert len(set(texts.values())) == len(texts) == 7
    assert next(iter(texts)) == "naming-game-004/1" and "naming-game-000/1" in texts
    old = standard_variants(TEMPLATES["naming-game-000/1"])
    assert next(iter(old)) == "naming-game-000/1" and "naming-game-004/1" in old
    names = [v[0].name if isinstance(v, tuple) else v.name for v in old.values() if v is not NAMING_GAME]
    assert all(name.startswith("naming-game-000/1") for name in names)


def test_each_variant_is_what_extract_gives(model, policies):
    assert policies["q"].dims == ("variant", "pair", "state", "word")
    policies = policies.isel(pair=0)
    assert policies["variant"].values.tolist() == list(VARIANTS)
    for i, (name, variant) in enumerate(VARIANTS.items()):
        template, payoffs = variant if isinstance(variant, tuple) else (variant, Payoffs())
        alone = extract(model, words=WORDS, memory_length=2, template=template, payoffs=payoffs)
        np.testing.assert_array_equal(policies["q"][i], alone["q"])
        one = meanfield.validate_policy(policies.sel(variant=name))
        assert one["template"].item() == template.name
        assert (one["payoff_success"].item(), one["payoff_failure"].item()) == (payoffs.success, payoffs.failure)
        assert one["word_tokens"].values.tolist() == alone["word_tokens"].values.tolist()
    q = policies["q"].values
    assert all(abs(q[i] - q[j]).max() > 1e-5 for i in range(4) for j in range(i))


def test_the_table_says_what_each_policy_comes_to(policies, tmp_path):
    policies = policies.sel(variant=["short", "newest first"]).assign_coords(variant=["a", "b"])
    table = variant_table(policies)
    assert table["eigenvalue"].dims == ("variant", "pair", "word")
    place = {"variant": "b", "pair": "on/off"}
    policy, row = policies.sel(place), table.sel(place)
    candidates = meanfield.stability_table(policy).to_dataframe().query("row == 'candidate'").set_index("word")
    np.testing.assert_array_equal(row["eigenvalue"], candidates.loc[["on", "off"], "eigenvalue"])
    assert row["strong_word"].item() == candidates["strong"].iloc[0]
    assert row["attractors"].item() == meanfield.fixed_points(policy)["stable"].sum()
    law = meanfield.group_size_law(policy)
    np.testing.assert_array_equal(row["kappa"], law["kappa"].where(law["attractors"] == 2))
    assert row["reason"].item() == law.attrs["reason"]
    distance = abs(policy["q"] - policies["q"].sel(variant="a", pair="on/off")).values[:, 0].mean()
    np.testing.assert_allclose(row["policy_distance"], distance)
    change = row["eigenvalue"] - table["eigenvalue"].sel(variant="a", pair="on/off")
    np.testing.assert_array_equal(row["eigenvalue_change"], change)
    assert (abs(change) > 1e-9).all()
    assert (table["eigenvalue_change"].sel(variant="a") == 0).all()
    assert table["word_label"].sel(pair="on/off").values.tolist() == ["on", "off"]
    assert meanfield.load(meanfield.save(table, tmp_path / "a.nc")).identical(table)


def test_kappa_and_its_change_are_told_where_there_is_a_law():
    """Two strengths of imitation, of which the stronger one has two attractors and a group-size law."""
    space = meanfield.MemorySpace(2, 2)
    lean = np.array([sum(1 - a - b for a, b in space.memory(i)) for i in range(space.n_states)])
    made = [meanfield.make_policy(1 / (1 + np.exp(-slope * lean - 0.05)), WORDS) for slope in (4.0, 0.2, 4.0)]
    table = variant_table(xr.concat(made, dim="variant").assign_coords(variant=["strong", "weak", "again"]))
    assert table["attractors"].values.tolist() == [2, 1, 2]
    assert table["kappa"][0] > 0 and np.isnan(table["kappa"][1])
    np.testing.assert_array_equal(table["kappa_change"], [0, np.nan, 0])
    assert "two attractors" in table["reason"].values[0] and table["reason"].values[1]
    assert table["strong_word"].values.tolist() == ["his", "mostly his (0.52)", "his"]
    assert not table["strong_word_changes"].any(), "most agents say the same word"
    turned = made[1].assign(q=made[1]["q"].copy(data=made[1]["q"].values[:, ::-1]))
    table = variant_table(xr.concat([made[0], turned], dim="variant").assign_coords(variant=["strong", "turned"]))
    assert table["strong_word_changes"].values.tolist() == [False, True]


@pytest.mark.slow
def test_more_than_two_words_have_no_law(model):
    table = variant_table(prompt_variants(model, ("a", "b", "c"), 1, {"a": SHORT}, progress=False))
    assert np.isnan(table["kappa"]).all() and "more than two words" in table["reason"].values[0]
    assert dict(table["eigenvalue"].sizes) == {"variant": 1, "word": 3}


def test_payoffs_alone_are_asked_with_the_published_prompt(model):
    variants = {"a": replace(SHORT, name="mine/2", user="speak"), "b": Payoffs(1, 0)}
    policies = prompt_variants(model, WORDS, 1, variants)
    assert policies["template"].values.tolist() == ["mine/2", "naming-game-004/1"]
    assert policies["payoff_success"].values.tolist() == [100, 1]


@pytest.mark.parametrize(
    "variants", [{}, {"a": "naming-game-004/1"}, {"a": (SHORT,)}, {"a": (Payoffs(), SHORT)}, [SHORT]]
)
def test_what_is_no_variant_is_refused(model, variants):
    with refused("expected"):
        prompt_variants(model, WORDS, 1, variants)


def test_a_table_needs_variants(policies):
    with pytest.raises(InputError, match="prompt_variants, but 'variant' is missing"):
        variant_table(policies.isel(variant=0))
