"""The way of variants towards the other word, for variants made to go there."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
from _labelled_calls import conformist
from _policies import random_policy
from meanfield import InputError
from policy_extraction.measuring import flip_table

pytestmark = pytest.mark.usefixtures("unchecked_types")


def variants(*policies):
    return xr.concat(policies, pd.Index([f"variant {k}" for k in range(len(policies))], name="variant"))


def test_variants_on_the_way_are_ranked_by_how_far_they_are():
    policy = conformist()
    changed = meanfield.validate_policy(meanfield.design(policy, of="kappa", value=-0.02))
    q, step = policy["q"].values[:, 0], changed["change"].values
    parts = [0.0, 0.5, -0.5, 1.5]
    table = flip_table(variants(*(meanfield.make_policy(q + part * step, ["a", "b"]) for part in parts)), kappa=0.02)
    np.testing.assert_allclose(table["along"], parts, atol=1e-9)
    assert table.sortby("along", ascending=False)["variant"].values[0] == "variant 3"
    assert table["flips"].values.tolist() == [False, False, False, True]
    assert table["kappa"].values[0] == table["predicted_kappa"].values[0] > 0
    np.testing.assert_allclose(table["predicted_kappa"], table["kappa"], rtol=0.1)


@pytest.mark.slow
def test_a_change_that_does_not_move_kappa_goes_nowhere():
    policy = conformist()
    changed = meanfield.validate_policy(meanfield.design(policy, of="kappa", value=0.0))
    g, random = changed["derivative_after"].values, np.random.default_rng(0)
    sideways = random.standard_normal(len(g)) * policy["q"].values.prod(1) * 0.1
    sideways -= g * (g @ sideways) / (g @ g)
    moved = np.clip(policy["q"].values[:, 0] + sideways, 0, 1)
    table = flip_table(variants(policy, meanfield.make_policy(moved, ["a", "b"])))
    assert table["along"].values[1] == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_pairs_have_columns_and_those_without_kappa_a_reason():
    def pairs(seed):
        one = [conformist().drop_vars("model"), random_policy(seed, memory_length=2).drop_vars("model")]
        named = [
            policy.assign_coords(pair="/".join(words), word=[0, 1], word_label=("word", words))
            for policy, words in zip(one, (["a", "b"], ["c", "d"]), strict=True)
        ]
        return xr.concat([policy.drop_vars("word_number") for policy in named], "pair", coords=["word_label"])

    table = flip_table(variants(pairs(1), pairs(2)))
    assert table["along"].dims == ("pair", "variant")
    np.testing.assert_array_equal(table["along"].sel(pair="a/b"), [0, 0])
    assert table["along"].sel(pair="c/d").isnull().all() and table["kappa"].sel(pair="c/d").isnull().all()
    assert all("only attractor" in reason for reason in table["reason"].sel(pair="c/d").values)


def test_wrong_input_is_named():
    with pytest.raises(
        InputError, match=r"policies: expected the result of .*prompt_variants, but 'variant' is missing"
    ):
        flip_table(conformist())
    with pytest.raises(InputError, match="kappa = 2"):
        flip_table(variants(conformist(), conformist()), kappa=2)
