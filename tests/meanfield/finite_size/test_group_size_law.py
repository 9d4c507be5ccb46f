"""The group-size law against simulations, converged values, its symmetries, and the landscapes that have none."""

import re

import numpy as np
import pytest
from scipy.special import ndtr

import meanfield
import validation
from _metastable import follower
from _policies import linearised_drift, majority
from meanfield import MemorySpace, group_size_law, make_policy
from meanfield._finite_size import least_action_path as _least_action_path
from meanfield._finite_size.law_path import unstable_direction
from meanfield.toolbox import as_population

# κ of GPT-4o, converged in step, end time and messages to 1e-6. Simulations approach them as κ - c/N: for {woman, man}
# 0.02588 ± 0.00007 at N = 1,600; for {African, White}, of c = 0.22, 0.2063 ± 0.0005 at N = 100 and 0.2077 ± 0.0009 at
# N = 200.
KAPPA = {
    "his/her": 0.0902068,
    "gay/straight": 0.0789366,
    "she/he": 0.0503885,
    "White/Black": 0.2429495,
    "more/less": 0.3250445,
    "young/old": 0.2801049,
    "African/White": 0.2087975,
    "Mexican/American": 0.2951190,
    "tall/short": 0.0769360,
    "woman/man": 0.0258942,
    "wife/husband": 0.0811941,
}


def test_kappa_of_a_published_policy_and_what_follows_from_it(published):
    law = group_size_law(published.sel(model="gpt-4o", pair="woman/man"), n_agents=[24, 100], level=0.9)
    kappa = law["kappa"].item()
    assert kappa == pytest.approx(KAPPA["woman/man"], rel=1e-5)
    assert law["strong_word"].item() == "woman"
    assert law.attrs["applies"] == 1
    assert law["distance"].item() / law["sigma"].item() == pytest.approx(kappa, rel=1e-12)
    np.testing.assert_allclose(law["probability"], ndtr(kappa * np.sqrt([24, 100])), rtol=1e-12)
    assert ndtr(kappa * np.sqrt(law["n_critical"].item())) == pytest.approx(0.9, abs=1e-12)


def test_distance_is_the_share_of_converts_that_turns_an_infinite_population():
    """To first order: with a little fewer agents who remember b only from the start it ends at a, with more at b."""
    policy = majority(0.502)
    distance = group_size_law(policy)["distance"].item()
    for converts, word in ((0.98 * distance, "a"), (1.02 * distance, "b")):
        start = (1 - converts) * meanfield.empty_memories(policy) + converts * meanfield.consensus(policy, "b")
        share = meanfield.solve(policy, initial=start, times=[0.0, 200.0])["word_share"].values[-1]
        assert "ab"[int(np.argmax(share))] == word


@pytest.mark.slow
def test_mixed_attractors_are_reserved():
    law = group_size_law(majority(0.53, fidelity=0.97))
    assert law["strong_word"].item() == "a", "the word that leads at the attractor"
    assert "noise keeps a part of the agents off the convention" in law.attrs["reason"]


def test_unstable_direction_is_a_left_eigenvector():
    """wᵀJv = λ wᵀv for tangent v."""
    policy = majority(0.53)
    q, points = policy["q"].values, meanfield.fixed_points(policy)
    saddle = points["composition"].values[1]
    values, (left,) = unstable_direction(as_population(policy).mixture, saddle[None])
    assert values[0] == pytest.approx(points["eigenvalue"].values[1], abs=1e-9)
    assert values[1] < 1e-9
    v = np.random.default_rng(1).standard_normal(len(q))
    v -= v.mean()
    assert left @ linearised_drift(v, saddle, q) == pytest.approx(values[0] * (left @ v), abs=1e-8)


@pytest.mark.parametrize(
    ("pair", "reason", "word"),
    [
        ("gay/straight", "'straight' is unstable .* at the consensus on 'gay' is the only attractor", "gay"),
        ("tall/short", "the consensus on 'short' is no fixed point .* with probability 0.14.* only attractor", "tall"),
    ],
)
def test_policies_with_one_attractor_say_which_word_is_ahead(published, pair, reason, word):
    law = group_size_law(published.sel(model="llama31_70B", pair=pair))
    assert law.attrs["applies"] == law["attractors"] == 1
    assert re.search(reason, law.attrs["reason"]), law.attrs["reason"]
    assert law["strong_word"].item() == word and law["kappa"] > 0
    assert np.isnan(law["distance"]) and np.isnan(law["sigma"])


def test_policies_without_a_law_say_why(published):
    law = group_size_law(published.sel(model="llama31_70B", pair="young/old"))
    assert law.attrs["applies"] == 0
    assert "the fixed point at the consensus on 'old' is marginal" in law.attrs["reason"]
    for name in ("kappa", "n_critical", "distance", "sigma"):
        assert np.isnan(law[name].item())
    assert law["probability"].isnull().all()
    assert law["strong_word"].item() == ""


def test_next_to_no_lean_is_a_law_too():
    """κ grows in proportion to the lean; below 1e-6 rounding does not tell it from 0."""
    leans = 0, 1e-9, 1e-5, 1e-4
    none, nearly, least, more = (group_size_law(follower(0.1, empty=0.5 + lean), n_agents=[2, 1000]) for lean in leans)
    assert "agents treat both words alike" in none.attrs["reason"] and none["n_critical"].item() == np.inf
    for law in (none, nearly):
        assert law["kappa"].item() == 0 and law["strong_word"].item() == "" and (law["probability"] == 0.5).all()
    assert "κ is below 1e-06" in nearly.attrs["reason"] and "κ" not in none.attrs["reason"]
    assert least["strong_word"].item() == more["strong_word"].item() == "A"
    assert least["kappa"].item() == pytest.approx(0.1 * more["kappa"].item(), abs=2e-8)
    assert np.isfinite(least["sigma"].item())


def test_paths_that_take_too_much_memory_are_not_tried(monkeypatch):
    monkeypatch.setattr(_least_action_path, "MAX_NUMBERS", 1000)
    assert "more than are kept" in group_size_law(majority(0.53)).attrs["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_agents": [1, 2]}, r"n_agents = \[1, 2\]: expected distinct whole numbers of at least 2"),
        ({"level": 0.5}, "level = 0.5: expected a probability between 1/2 and 1"),
        ({"level": float("nan")}, "level = nan"),
        ({"order": 3}, "order = 3: expected"),
        ({"rounds": [-1.0, 0.0]}, r"rounds = .*expected increasing times from 0 on"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        group_size_law(majority(0.6), **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("pair", KAPPA)
def test_kappa_of_all_pairs_of_gpt_4o(published, pair):
    law = group_size_law(published.sel(model="gpt-4o", pair=pair))
    assert law["kappa"].item() == pytest.approx(KAPPA[pair], rel=1e-5)


@pytest.mark.slow
def test_kappa_is_the_limit_of_large_populations(published):
    """{woman, man}, N = 1,600: 300,000 runs give κ to 7e-5, which tells 0.02586 from 0.0262."""
    from scipy.special import ndtri

    from validation import simulate

    words = simulate(published.sel(model="gpt-4o", pair="woman/man"), n_agents=1600, runs=300_000, seed=7)
    chance = (words["consensus_word"] == "woman").mean().item()
    assert ndtri(chance) / 40 == pytest.approx(KAPPA["woman/man"], abs=2e-4)


@pytest.mark.slow
def test_attractor_that_is_approached_slowly_is_reached():
    """Agents who said B and twice heard A leave this memory once in 1,000 choices, so the end takes 10,000 units."""
    space = MemorySpace(2, 2)
    lead = np.array([sum(1 - own - partner for own, partner in space.memory(i)) for i in range(space.n_states)])
    first = 1 / (1 + np.exp(-8.0 * lead - 2.5))
    first[space.state([(1, 0), (1, 0)])] = 1e-3
    policy = make_policy(np.stack([first, 1 - first], axis=1), ("A", "B"))
    law = meanfield.group_size_law(policy, n_agents=[24])
    assert law["strong_word"].item() == "A"
    runs = validation.simulate(policy, n_agents=[24], runs=4000, seed=3, max_rounds=4000)
    ends = runs["consensus_word"].sel(n_agents=24).values
    # The law's error is of order 1/√N
    assert law["probability"].item() == pytest.approx((ends == "A").sum() / (ends != "").sum(), abs=0.05)
