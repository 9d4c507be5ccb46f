"""Neutrality, misalignment, consensus times, critical sizes, committed minorities and the stability of a consensus.

Error budget: fractions of 20,000 runs are compared with exact ones to four standard errors, which one seed in 16,000
exceeds, in ten comparisons; types of misalignment and flips of published policies are at least four standard errors
away from being others. Everything else is deterministic.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom, geom

import meanfield
from _policies import majority, random_policy
from meanfield import InputError
from validation import collective_bias, simulate
from validation.comparison import wilson_interval
from validation.naming_game._committed_minority import committed_minority, consensus_stability
from validation.naming_game._outcomes import consensus_times, critical_size_from_simulation, simulated_bias
from validation.populations._misalignment import misalignment, neutrality

RUNS = 20_000


def constant(p, memory_length=1):
    """Says a with probability p whatever it remembers."""
    return meanfield.make_policy(np.full(meanfield.MemorySpace(2, memory_length).n_states, p), ["a", "b"])


def games(ends, model="majority"):
    """A result like `simulate`'s, made by hand from the wins of a and b and the runs without consensus at each size."""
    words = [["a"] * a + ["b"] * b + [None] * none for a, b, none in ends.values()]
    rounds = [[4.0] * (a + b) + [np.nan] * none for a, b, none in ends.values()]
    return xr.Dataset(
        {
            "consensus_word": (("n_agents", "run"), np.array(words, dtype=object)),
            "consensus_round": (("n_agents", "run"), np.array(rounds)),
        },
        coords={"n_agents": list(ends), "word_label": ("word", ["a", "b"]), "pair": "a/b", "model": model},
        attrs={"kind": "simulation", "option_seed": 1},
    )


def far_from(share, chance, runs=RUNS):
    """Whether a fraction of runs is more than four standard errors off its probability."""
    return abs(share - chance) > 4 * math.sqrt(chance * (1 - chance) / runs)


# --- neutrality ---


def by_hand(p):
    """Jensen-Shannon distance of (p, 1 - p) from (½, ½), written out."""
    m = (p + 0.5) / 2
    to_q = p * math.log(p / m) + (1 - p) * math.log((1 - p) / (1 - m))
    to_u = 0.5 * math.log(0.5 / m) + 0.5 * math.log(0.5 / (1 - m))
    return math.sqrt((to_q + to_u) / 2)


def test_distances_that_are_known():
    assert neutrality(majority(0.12))["distance"].item() == pytest.approx(by_hand(0.12), rel=1e-9)
    # From a certain word, of W: ½ log(2W/(W + 1)) + ½ log 2 (W - 1)/W + log(2/(W + 1))/(2W)
    sure = meanfield.make_policy(np.eye(3)[np.zeros(10, dtype=int)], ["a", "b", "c"])
    squared = math.log(6 / 4) / 2 + math.log(2) / 3 + math.log(2 / 4) / 6
    assert neutrality(sure)["distance"].item() == pytest.approx(math.sqrt(squared))
    # Near ½ the distance is |p - ½|/√2, and policies below 0.005 count as neutral
    assert neutrality(majority(0.507))["neutral"].item() and not neutrality(majority(0.5072))["neutral"].item()


def test_neutral_published_policies(published):
    found = neutrality(published)
    assert found.sizes["pair"] == 22
    gpt = found.isel(pair=(found["model"] == "gpt-4o").values)
    neutral = sorted(gpt["pair"].values[gpt["neutral"].values])
    assert neutral == ["African/White", "White/Black", "wife/husband", "woman/man"]
    # The other reading of the definition: without the root a preference that the paper calls overturned is none
    assert gpt["distance"].sel(pair="gay/straight").item() ** 2 < 0.005


# --- misalignment ---


@pytest.mark.parametrize(
    ("start", "wins", "expected"),
    [
        (0.6, (900, 100, 0), "amplified"),
        (0.5, (900, 100, 0), "induced"),
        (0.5, (510, 490, 0), "none"),
        (0.4, (900, 100, 0), "reversed"),
        # overturned by chance at most
        (0.6, (610, 390, 0), "none"),  # as strong as individual bias, as far as one can tell
        (0.9, (600, 400, 0), "none"),  # weakened
        (0.6, (90, 10, 900), "amplified"),  # of the runs with consensus
        (0.6, (8, 2, 990), "none"),
        (0.6, (0, 0, 1000), ""),
    ],
)
def test_types(start, wins, expected):
    # The size that decides which word is called strong does not decide the type
    for largest in ((1000, 0, 0), (0, 1000, 0)):
        bias = simulated_bias(games({24: wins, 100: largest}))
        assert misalignment(majority(start), bias)["type"].sel(n_agents=24).item() == expected


def test_what_a_type_rests_on(tmp_path):
    bias = simulated_bias(games({24: (300, 500, 200)}))
    found = misalignment([constant(0.5), majority(0.3)], bias)
    assert found["strong_word"].item() == "b"
    assert found["individual"].item() == pytest.approx(0.7)
    assert found["collective"].item() == 5 / 8
    np.testing.assert_array_equal(found["interval"].values.ravel(), wilson_interval(np.array(500), 800, 0.99))
    assert found["distance"].item() == pytest.approx(by_hand(0.3))
    xr.testing.assert_equal(found, meanfield.load(meanfield.save(found, tmp_path / "types.nc")))


@pytest.mark.parametrize("model", ["gpt-4o", "llama31_70B"])
def test_the_examples_of_the_paper(published, model):
    # [004] Fig. 1, at N = 24; none of the pairs of Llama has a group-size law
    expected = {"Mexican/American": "amplified", "African/White": "induced", "gay/straight": "reversed"}
    for pair, kind in expected.items():
        policy = published.sel(model=model, pair=pair)
        bias = simulated_bias(simulate(policy, n_agents=24, runs=1000, seed=1))
        assert misalignment(published, bias)["type"].item() == kind


def test_reversal_comes_with_size(published):
    # [004] Fig. 3: Llama prefers 'straight' alone, and 'gay' in groups of 6 or more
    policy = published.sel(model="llama31_70B", pair="gay/straight")
    bias = simulated_bias(simulate(policy, n_agents=[4, 24], runs=1000, seed=1))
    assert misalignment(policy, bias)["type"].values.tolist() == [["none", "reversed"]]


# --- the bias of simulations ---


@pytest.mark.slow
def test_bias_with_and_without_a_law():
    """A policy with a group-size law, beside one without, for which nothing is simulated."""
    policies = [majority(0.56), meanfield.make_policy(majority(0.9, fidelity=0.7)["q"].values, ["c", "d"])]
    sizes = [100, 200, 400, 800, 1600]
    bias = collective_bias(policies, n_agents=sizes, runs=2000, seed=1)
    other = simulated_bias(simulate(policies[0], n_agents=sizes, runs=2000, seed=1))
    for name in ("simulated", "interval", "no_consensus", "strong_word", "word_label", "model"):
        np.testing.assert_array_equal(bias[name][:1], other[name])
    types = misalignment(policies, bias)
    assert (types["type"][0] == "amplified").all() and (types["type"][1] == "").all()
    assert types["individual"][1].isnull() and types["collective"][1].isnull().all()
    found = critical_size_from_simulation(bias)
    law = meanfield.group_size_law(policies[0], n_agents=[100])
    assert found["n_predicted"][0].item() == pytest.approx(law["n_critical"].item())
    # Sizes double, and the bound asks for 0.995 of 2,000 runs rather than 0.99
    assert found["n_predicted"][0] < found["n_critical"][0] <= 4 * found["n_predicted"][0]
    assert found["n_below"][0] * 2 == found["n_critical"][0]
    assert found["n_critical"][1].isnull() and found["n_below"][1].isnull()
    assert found["reason"][1].item().startswith("nothing was simulated; ")


def test_the_strong_word_is_that_of_the_largest_groups_that_agree():
    assert simulated_bias(games({100: (3, 7, 0), 24: (9, 1, 0)}))["strong_word"].item() == "b"
    assert simulated_bias(games({24: (9, 1, 0), 100: (0, 0, 10)}))["strong_word"].item() == "a"
    none = simulated_bias(games({24: (0, 0, 10)}))
    assert none["strong_word"].item() == "" and none["simulated"].item() == 0


# --- consensus times ---


@pytest.fixture
def timed():
    """Seven runs at N = 10, of which a wins four and b two; none converges at N = 20."""
    simulation = games({10: (4, 2, 1), 20: (0, 0, 7)})
    simulation["consensus_round"][0, :6] = [4, 5, 5, 10, 7, 6]
    return simulation


def test_the_law_of_known_times(timed):
    found = consensus_times(timed, quantiles=[0.25, 0.5, 0.8])
    a, b = found.isel(n_agents=0, word=0), found.isel(n_agents=0, word=1)
    assert found["consensus_time"].values.tolist() == list(range(10))
    assert a["density"].values.tolist() == [0, 0, 0, 0.25, 0.5, 0, 0, 0, 0, 0.25]
    assert (a["mode"].item(), a["mean"].item(), a["quantiles"].values.tolist()) == (4, 5, [3, 4, 9])
    assert (b["mode"].item(), b["mean"].item(), b["quantiles"].values.tolist()) == (5, 5.5, [5, 5, 6])
    assert found["wins"].values.tolist() == [[4, 2], [0, 0]]
    assert found["probability"].values.tolist() == [[4 / 7, 2 / 7], [0, 0]]
    assert found["interval"].sel(bound="high")[1, 0].item() == wilson_interval(np.array(0), 7, 0.99)[1]
    assert found["no_consensus"].values.tolist() == [1 / 7, 1]
    assert all(found[name][1].isnull().all() for name in ("density", "mode", "mean", "quantiles", "quantile_interval"))


@pytest.mark.slow
def test_intervals_hold_the_quantiles_as_often_as_they_say():
    """Four thousand samples of forty times, hardly any of them equal; the control is the quantile 0.1 above.

    Four standard errors are 0.019. Numbers of times are whole, so that an interval of 90 % holds a bit more.
    """
    samples, quantiles = 4000, np.array([0.1, 0.5, 0.8])
    simulation = games({size: (40, 0, 0) for size in range(2, 2 + samples)})
    simulation["consensus_round"][:] = np.random.default_rng(1).geometric(1e-3, (samples, 40)) + 1
    found = consensus_times(simulation, quantiles=quantiles, bin_width=1000, level=0.9)
    low, high = found["quantile_interval"].sel(word="a").transpose("bound", "n_agents", "quantile").values
    held, control = (
        ((low <= time) & (time <= high)).mean(0) for time in (geom.ppf(quantiles + d, 1e-3) for d in (0, 0.1))
    )
    assert (held > 0.9 - 0.019).all() and (held < 0.97).all()
    assert (control < 0.9 - 0.019).all()


def test_few_times_bound_a_quantile_from_one_side(timed):
    """All of four times are above the median with probability 1/16, three or all with 5/16; for two 1/4 and 3/4."""
    found = consensus_times(timed, quantiles=[0.5], level=0.4).sel(n_agents=10)["quantile_interval"].squeeze()
    assert found.values.tolist() == [[3, 9], [5, 6]]
    wide = consensus_times(timed, quantiles=[0.5], level=0.95).sel(n_agents=10)["quantile_interval"].squeeze()
    assert wide.values.tolist() == [[0, np.inf], [0, np.inf]]


def test_wider_bins(timed):
    found = consensus_times(timed, bin_width=3).isel(n_agents=0)
    assert found["consensus_time"].values.tolist() == [1, 4, 7, 10]
    np.testing.assert_allclose(found["density"][0], np.array([0, 3, 0, 1]) / 12)
    np.testing.assert_allclose(found["density"].sum("consensus_time") * 3, 1)
    assert found["mode"].values.tolist() == [4, 4]


def test_times_of_simulations(tmp_path):
    # Agents who always say a agree from the first round on; [004] looks after four rounds, 0 to 3, [001] after three
    for convention, first in (("004", 3), ("001", 2)):
        simulation = simulate(constant(1.0), n_agents=[5, 9], runs=20, seed=1, convention=convention)
        found = consensus_times(simulation)
        assert (found["mode"].sel(word="a") == first).all() and (
            found["density"].sel(consensus_time=first, word="a") == 1
        ).all()
    xr.testing.assert_equal(found, meanfield.load(meanfield.save(found, tmp_path / "times.nc")))
    one = consensus_times(simulation.sel(n_agents=9))
    xr.testing.assert_equal(one, found.sel(n_agents=[9]))


@pytest.mark.parametrize("length", [2, 5])
def test_times_of_a_game_played_by_hand(length):
    """One agent of two always says b; the other says a until it remembers b alone, in all of H interactions.

    So the first H interactions fail, two a round, and all others succeed. Consensus takes three rounds without failure:
    with H = 5 round 2 is the last with one, and t = 5. For H ≤ 2 it would be t = 3 or less, the shortest there is.
    """
    space = meanfield.MemorySpace(2, length)
    full = [space.memory(state) for state in range(space.offset(length), space.n_states)]
    says_a = [1.0] * space.offset(length) + [float(any(partner == 0 for _, partner in memory)) for memory in full]
    policy = meanfield.make_policy(np.array(says_a), ["a", "b"])
    games = simulate(policy, n_agents=2, runs=5, seed=1, committed={"b": 1})
    last_failing = (length - 1) // 2
    expected = max(3, last_failing + 3)
    assert (games["consensus_round"] == expected + 1).all()
    found = consensus_times(games).sel(n_agents=2, word="b")
    assert found["density"].sel(consensus_time=expected) == 1 and found["mean"] == found["mode"] == expected
    assert found["quantiles"].values.tolist() == [expected] * 5


# --- critical sizes ---

ALL, MOST = (1000, 0, 0), (990, 10, 0)


@pytest.mark.parametrize(
    ("ends", "expected", "reason"),
    [
        ({10: MOST, 20: ALL, 40: ALL}, (20, 10), ""),
        ({40: ALL, 10: MOST, 20: ALL}, (20, 10), ""),
        ({10: ALL, 20: MOST, 40: ALL}, (40, 20), ""),
        ({10: ALL, 20: ALL}, (10, np.nan), "already at the smallest size"),
        ({10: MOST, 20: MOST}, (np.nan, 20), "not reached at the largest size simulated, N = 20"),
        ({10: ALL, 20: (900, 0, 100)}, (np.nan, 20), "reached at N = 10 and lost again at N = 20"),
        (
            {10: (100, 0, 0)},
            (np.nan, 10),
            "100 runs are too few: were all to end at the word, the bound would be 0.9378",
        ),
    ],
)
def test_critical_sizes(ends, expected, reason):
    found = critical_size_from_simulation(simulated_bias(games(ends)))
    np.testing.assert_array_equal([found["n_critical"].item(), found["n_below"].item()], expected)
    assert found["reason"].item().startswith(reason) and bool(found["reason"].item()) == bool(reason)


def test_the_critical_size_of_a_law_is_beside_it():
    """Φ(κ√N) = 0.99 at N = (2.3263/κ)²."""
    bias = simulated_bias(games({10: ALL})).assign(kappa=("pair", [0.1]))
    assert critical_size_from_simulation(bias)["n_predicted"].item() == pytest.approx(541.189, abs=1e-3)


# --- committed minorities ---


def first_run(length, tosses, p):
    """Probabilities that the first run of `length` successes ends with each toss: a walk over the current length."""
    law, ended = np.eye(length)[0], []
    for _ in range(tosses):
        ended.append(law[-1] * p)
        law = np.concatenate([[law.sum() * (1 - p)], law[:-1] * p])
    return np.array(ended)


@pytest.mark.slow
def test_flips_of_two_agents_have_the_exact_law():
    # One of two agents always says a, the other does with probability 0.6 whatever it remembers: interactions are
    # tosses, and 95 % of the last 3N = 6 are all six.
    found = committed_minority(constant(0.6), n_agents=2, word="a", numbers=[1], runs=RUNS, seed=1)
    exact = first_run(6, 60, 0.6)
    share = found["flipped"].item()
    assert not far_from(share, exact.sum())
    tosses = np.arange(1, 61)
    mean = exact @ tosses / exact.sum()
    error = math.sqrt((exact @ (tosses - mean) ** 2 / exact.sum()) / (RUNS * share))
    assert abs(2 * found["flip_round"].item() - mean) < 4 * error
    # Controls: runs of five, a round less, another probability
    assert far_from(share, first_run(5, 60, 0.6).sum())
    assert far_from(share, first_run(6, 58, 0.6).sum())
    assert far_from(share, first_run(6, 60, 0.61).sum())
    np.testing.assert_array_equal(found["interval"][0], wilson_interval(np.array(share * RUNS), RUNS, 0.99))


def test_agreement_on_the_old_word_is_no_flip_and_ends_nothing():
    always_b = constant(0.0)
    found = committed_minority(always_b, n_agents=10, word="a", numbers=[10, 0, 5], runs=20, seed=1)
    assert found["n_committed"].values.tolist() == [0, 5, 10]
    assert found["flipped"].values.tolist() == [0, 0, 1], "only where all are committed"
    assert found["flip_round"].isnull().values.tolist() == [True, True, False] and found["flip_round"][2] == 3
    assert found["smallest"].item() == 10 and found["mean_field"].isnull()
    assert found.attrs["old_word"] == "b" and found.attrs["mean_field_reason"]


def test_smallest_number_depends_on_the_share_asked_for(tmp_path):
    options = {"n_agents": 2, "word": "a", "numbers": [1, 2], "runs": 200, "seed": 1}
    half = committed_minority(constant(0.6), **options, share=0.3)
    assert half["smallest"].item() == 1 and 0.3 < half["flipped"][0] < 1
    assert committed_minority(constant(0.6), **options, share=1)["smallest"].item() == 2
    assert committed_minority(constant(0.6), **(options | {"numbers": [1]}), share=1)["smallest"].isnull()
    xr.testing.assert_equal(half, meanfield.load(meanfield.save(half, tmp_path / "minority.nc")))


def test_three_words():
    policy = random_policy(1, n_words=3)
    options = {"n_agents": 4, "word": "c", "numbers": [4], "runs": 2, "seed": 1}
    found = committed_minority(policy, initial="a", **options)
    assert found["flipped"].item() == 1 and found["mean_field"].isnull()
    assert found.attrs["mean_field_reason"] == "critical masses are found for two words"
    with pytest.raises(InputError, match="initial = None: expected a word other than the committed one, a, b"):
        committed_minority(policy, **options)


def test_minorities_of_a_published_policy(published):
    policy = published.sel(model="gpt-4o", pair="woman/man")
    options = {"n_agents": 200, "word": "woman", "runs": 40, "seed": 1}
    found = committed_minority(policy, numbers=[12, 24, 28, 36], **options)
    critical = meanfield.critical_mass(policy, word="woman", old="man")["critical_mass"].item()
    assert found["mean_field"].item() == 200 * critical == pytest.approx(22.17, abs=0.01)
    assert found["flipped"][0] == 0 and found["flipped"][-1] == 1
    # Near the critical mass the passage takes longer than the 30 rounds of the papers, and N = 200 has noise
    assert found["smallest"].item() == 28
    assert committed_minority(policy, numbers=[24], rounds=150, **options)["smallest"].item() == 24


# --- stability of a consensus ---


def test_stability_of_two_agents_has_the_exact_law():
    # Both say b with probability 0.9 whatever they remember, so that of the last six interactions all must succeed;
    # where three were on each word, the one likelier to be said next counts.
    found = consensus_stability(constant(0.1), "b", n_agents=2, runs=RUNS, rounds=10, seed=2)
    succeeds = 0.9**2 + 0.1**2
    held = succeeds**6 * binom.sf(2, 6, 0.9**2 / succeeds)
    assert not far_from(found["held"].item(), held)
    assert not far_from(found["held"].item() + found["moved"].item(), succeeds**6)
    np.testing.assert_allclose(found["word_share"], 0.9)
    assert dict(found["word_share"].sizes) == {"n_agents": 1, "round": 11}
    assert far_from(found["held"].item(), held / succeeds), "control: five of them"


def test_a_consensus_on_what_nobody_says(tmp_path):
    found = consensus_stability(constant(1.0), "b", n_agents=[4, 10], runs=10, seed=1)
    assert (found["held"] == 0).all() and (found["moved"] == 1).all() and (found["word_share"] == 0).all()
    stays = consensus_stability(majority(0.5), "b", n_agents=[24], runs=10, seed=1)
    assert stays["held"].item() == 1 and stays["moved"].item() == 0
    xr.testing.assert_equal(found, meanfield.load(meanfield.save(found, tmp_path / "stability.nc")))


def test_agreement_on_the_way_does_not_count():
    # Who has heard an a says a for good, others say b, but for one time in a thousand: consensus on b is soon left
    space = meanfield.MemorySpace(2, 3)
    heard_a = np.array([any(word == 0 for _, word in space.memory(i)) for i in range(space.n_states)])
    leaves = meanfield.make_policy(np.where(heard_a, 1.0, 0.001), ["a", "b"])
    options = {"n_agents": 24, "runs": 300, "seed": 1}
    early, late = (consensus_stability(leaves, "b", rounds=rounds, **options) for rounds in (3, 300))
    assert early["held"] > 0.5 and late["held"] == 0 and late["moved"] == 1
    stopped = simulate(leaves, initial="b", convention="001", **options)
    assert (stopped["consensus_word"] == "b").mean() == early["held"], "control: what a run that stops would tell"


def test_the_former_name_of_the_committed_word_warns():
    options = {"n_agents": 4, "numbers": [1], "runs": 2, "seed": 1}
    found = committed_minority(constant(0.6), word="a", **options)
    with pytest.warns(DeprecationWarning, match="committed_word of committed_minority goes .* use word"):
        former = committed_minority(constant(0.6), committed_word="a", **options)
    assert former.identical(found)
    with pytest.raises(meanfield.InputError, match="committed_word and word are both given"):
        committed_minority(constant(0.6), word="a", committed_word="a", **options)


# --- what is refused ---

TIMED = games({24: (5, 5, 0)})
FEW = {"n_agents": 10, "runs": 1, "seed": 1}
THREE_WORDS = random_policy(1, n_words=3)


def flips(**options):
    return committed_minority(constant(0.5), **{**FEW, "word": "a", "numbers": [1], **options})


def held(word="a", **options):
    return consensus_stability(constant(0.5), word, **{**FEW, **options})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: neutrality([]), "policies is empty"),
        (lambda: neutrality([constant(0.5), THREE_WORDS]), r"random \{a, b, c\}: expected the same number of words"),
        (lambda: misalignment(majority(0.6), TIMED), r"expected the result of validation\.collective_bias"),
        (
            lambda: misalignment(majority(0.6), simulated_bias(games({24: (5, 5, 0)}, model="phi_4"))),
            r"policies lacks phi_4 \{a, b\}, for which bias was found",
        ),
        (lambda: simulated_bias(constant(0.5)), "expected .* validation.simulate, but 'consensus_round' is missing"),
        (lambda: simulated_bias(TIMED.assign_attrs(option_initial="b")), "started from b: expected empty memories"),
        (lambda: simulated_bias(TIMED, level=0), "level = 0: expected"),
        (lambda: simulated_bias(simulate(THREE_WORDS, n_agents=4, runs=1, seed=1)), "3 words: expected 2"),
        (lambda: consensus_times(TIMED, bin_width=0), "bin_width = 0: expected"),
        (lambda: consensus_times(TIMED, quantiles=[0.5, 0.2]), "quantiles = .*: expected rising numbers"),
        (lambda: consensus_times(TIMED, level=1), "level = 1: expected"),
        (lambda: consensus_times(TIMED.isel(run=0)), "has the dims n_agents, word: expected n_agents and run"),
        (lambda: critical_size_from_simulation(TIMED), r"expected the result of validation\.collective_bias"),
        (
            lambda: critical_size_from_simulation(simulated_bias(TIMED), level=1),
            "level = 1: expected a number between 0",
        ),
        (lambda: flips(word="c"), "word = 'c': expected one of a, b"),
        (lambda: flips(initial="a"), "initial = 'a': expected a word other than the committed one, b"),
        (lambda: flips(numbers=[11]), "numbers = 11: expected a whole number from 0 to 10"),
        (lambda: flips(numbers=[2, 2]), r"numbers = \[2, 2\]: expected one number"),
        (lambda: flips(rounds=2), "rounds = 2: expected a whole number from 3"),
        (lambda: flips(level=1), "level = 1: expected a number between 0 and 1"),
        (lambda: held("c"), "word = 'c': expected one of a, b"),
        (lambda: held(rounds=2), "rounds = 2"),
        (lambda: held(level=0), "level = 0: expected a number between 0 and 1"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
