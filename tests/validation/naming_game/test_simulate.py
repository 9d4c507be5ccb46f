"""The simulator against exact distributions, against the papers, and against itself.

Error budget: every stochastic test here accepts a true statement with probability 1 - 1e-4 or more, for an arbitrary
seed; there are fewer than 50, so that all together fail falsely for less than one seed in 200. Each has a control that
must be rejected by the same criterion.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from _ensembles import GENERIC_Q, last_interaction_policy, two_words
from _policies import random_policy
from meanfield import InputError, Population
from meanfield.toolbox import policy_hash
from theory.streams import GOLDEN, next_bits, seed_streams, splitmix
from validation import simulate
from validation._engine.thresholds import word_thresholds
from validation.naming_game import CONVENTIONS, Convention
from validation.naming_game._roster import apportion


@pytest.fixture(scope="module")
def generic() -> xr.Dataset:
    return last_interaction_policy(two_words(GENERIC_Q))


# --- random numbers and thresholds ---


def test_splitmix_reference() -> None:
    seed = np.uint64(1234567)  # Rosetta Code, "Pseudo-random numbers/Splitmix64"
    keys = np.array([seed], dtype=np.uint64) + np.arange(5, dtype=np.uint64) * GOLDEN
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert splitmix(keys).tolist() == expected


def test_xoshiro_reference() -> None:
    state = tuple(np.uint64(k) for k in (1, 2, 3, 4))  # the vector of the Rust crate rand_xoshiro
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205, 9973669472204895162]
    drawn = []
    for _ in expected:
        bits, *state = map(np.uint64, next_bits(*state))  # called from Python, numba returns int
        drawn.append(int(bits))
    assert drawn == expected


def test_streams_differ() -> None:
    runs = np.arange(1000)
    streams = [seed_streams(seed, n, runs) for seed in (0, 1, 2**63 - 1) for n in (2, 3, 24)]
    assert len(np.unique(np.concatenate(streams))) == 9 * 1000 * 4
    assert np.array_equal(seed_streams(7, 24, runs[500:]), seed_streams(7, 24, runs)[500:])


def test_thresholds_keep_tiny_probabilities() -> None:
    tiny = np.finfo(float).eps
    q = np.array([[0.0, 1.0], [1.0, 0.0], [tiny, 1 - tiny], [1 - tiny, tiny], [0.3, 0.7], [1e-300, 1.0]])
    expected = [0, 2**63, 2**11, 2**63 - 2**11, int(0.3 * 2**63), 1]
    assert word_thresholds(q)[:, 0].tolist() == expected
    three = word_thresholds(np.array([[0.5, 0.5, tiny], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.25, 0.5, 0.25]])).tolist()
    assert three[0] == [2**62 - 2**11, 2**63 - 2**11], "eps takes its 2^11 from the likeliest word"
    assert three[1:] == [[0, 0], [2**63, 2**63], [2**61, 2**61 + 2**62]]


# --- conventions and reproducibility ---


def test_convergence_is_first_tested_after_four_rounds() -> None:
    always = last_interaction_policy(two_words(np.ones(5)))
    simulation = simulate(always, n_agents=[2, 50], runs=3, seed=0)
    assert (simulation["consensus_round"] == 4).all()
    assert (simulation["consensus_word"] == "A").all()
    too_short = simulate(always, n_agents=2, runs=3, seed=0, max_rounds=3)
    assert too_short["consensus_round"].isnull().all()
    assert all(word is None for word in too_short["consensus_word"].values.ravel())


@pytest.mark.parametrize(
    ("convention", "needed"),
    [("004", {2: 6, 17: 50, 24: 71, 50: 147, 100: 294}), ("001", {20: 57, 24: 69, 100: 285}), ("001 strict", {24: 72})],
)
def test_percentages_are_exact(convention: str, needed: dict[int, int]) -> None:
    assert {n: CONVENTIONS[convention].successes_needed(n) for n in needed} == needed


def test_shape_and_trajectories(generic: xr.Dataset) -> None:
    simulation = simulate(generic, n_agents=5, runs=4, seed=1, max_rounds=20, trajectories=True)
    assert simulation["consensus_word"].dims == ("n_agents", "run")
    assert simulation["word_share"].dims == ("n_agents", "run", "round", "word")
    assert simulation["round"].values.tolist() == list(range(21))
    np.testing.assert_allclose(simulation["word_share"].sum("word"), 1, rtol=1e-12)
    np.testing.assert_array_equal(simulation["word_share"].sel(round=0, word="A"), 0.6)
    assert simulation.attrs["kind"] == "simulation" and simulation.attrs["option_seed"] == 1
    assert simulation.attrs["policy_sha256"] == policy_hash(generic)


def test_ensembles_are_reproducible(generic: xr.Dataset) -> None:
    options = {"max_rounds": 25, "record_rounds": 10}
    whole = simulate(generic, n_agents=[2, 3, 24], runs=300, seed=3, **options)
    again = simulate(generic, n_agents=[2, 3, 24], runs=300, seed=3, **options, progress=True)
    xr.testing.assert_identical(whole, again)
    beginning = simulate(generic, n_agents=[24, 2], runs=100, seed=3, **options)
    xr.testing.assert_equal(whole.isel(run=slice(100)).sel(n_agents=[24, 2]), beginning)
    other = simulate(generic, n_agents=[2, 3, 24], runs=300, seed=4, **options)
    assert (other["word_share"].isel(round=-1) != whole["word_share"].isel(round=-1)).mean() > 0.3


def test_threads_and_portions_do_not_matter(generic: xr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"n_agents": [3, 24], "runs": 50, "seed": 8, "max_rounds": 25, "record_rounds": 10}
    expected = simulate(generic, **arguments)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        xr.testing.assert_identical(expected, simulate(generic, **arguments))
    finally:
        numba.set_num_threads(threads)
    monkeypatch.setattr("validation._engine.ensemble.STATE_BYTES", 24 * 2 * 7)
    monkeypatch.setattr("validation._engine.ensemble.INTERACTIONS_A_CALL", 24 * 7 * 3)
    xr.testing.assert_identical(expected, simulate(generic, **arguments))


@pytest.mark.parametrize(("n_words", "memory_length"), [(2, 4), (3, 2)])
def test_memory_that_is_not_heeded_changes_nothing(n_words: int, memory_length: int) -> None:
    """Same draws, same words: exact for every memory length."""
    q = np.random.default_rng(1).dirichlet(np.ones(n_words), 1 + n_words**2)
    arguments = {"n_agents": [3, 24], "runs": 20, "seed": 8, "max_rounds": 12, "record_rounds": 12}
    short = simulate(last_interaction_policy(q, n_words), **arguments)
    long = simulate(last_interaction_policy(q, n_words, memory_length), **arguments)
    xr.testing.assert_equal(short, long)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_agents": 1}, "n_agents = 1: expected a whole number from 2"),
        ({"committed": ["A"]}, "committed = ['A']: expected a mapping of words"),
        ({"committed": {"A": 16, "B": 16}}, "committed = {'A': 16, 'B': 16}: expected at most n_agents = 24"),
        ({"committed": {"C": 1}}, "committed has the word 'C': expected some of A, B"),
        ({"committed": {"A": -1}}, "committed['A'] = -1"),
        ({"committed": {"A": 0.5}}, "committed['A'] = 0.5: expected a whole number"),
        ({"committed_are_extra": True}, "committed_are_extra = True: expected numbers"),
        ({"initial": "C"}, "initial = 'C': expected one of A, B"),
        ({"initial": np.ones(5)}, "initial sums to 5"),
        ({"record": "said", "record_rounds": 3}, "record = 'said': expected a sequence of some of word_share, said"),
        ({"record": ["says"], "record_rounds": 3}, "record = ['says']: expected a sequence of some of"),
        ({"record": [], "record_rounds": 3}, "record = []: expected a sequence"),
        ({"record": ["said"]}, "record = ['said'] without rounds: expected record_rounds or trajectories=True"),
        ({"convention": None}, "convention = None: expected one of 004"),
        ({"max_rounds": 2**70}, "max_rounds = 1180591620717411303424: expected a whole number from 1"),
        ({"trajectories": True, "record_rounds": 2}, "record_rounds = 2: expected None beside trajectories=True"),
        ({"n_agents": [24, 1]}, "n_agents = 1"),
        ({"n_agents": [24, 24]}, "n_agents = "),
        ({"n_agents": 24.5}, "n_agents = 24.5"),
        ({"runs": 0}, "runs = 0: expected a whole number of at least 1"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": 2**63}, "seed = "),
        ({"max_rounds": 0}, "max_rounds = 0"),
        ({"record_rounds": 1001}, "record_rounds = 1001: expected a whole number from 0 to 1000"),
        ({"policy": xr.concat([random_policy(1)] * 2, "model")}, "policy has a dim model: expected a coordinate"),
        (
            {"policy": Population(random_policy(1), committed={"a": 0.1}), "committed": {"a": 1}},
            "committed = {'a': 1} beside",
        ),
        ({"policy": {"q": 1}}, "policy: expected the result of meanfield.make_policy, but it is a dict"),
        ({"policy": xr.Dataset()}, "policy: expected the result of meanfield.make_policy, but 'q' is missing"),
    ],
)
def test_bad_input_is_named(generic: xr.Dataset, wrong: dict[str, object], message: str, unchecked_types: None) -> None:
    arguments = {"policy": generic, "n_agents": 24, "runs": 1, "seed": 0, **wrong}
    with pytest.raises(InputError) as error:
        simulate(arguments.pop("policy"), **arguments)
    assert str(error.value).startswith(message)


# --- the papers ---


def probability_of(policy: xr.Dataset, word: str, n_agents: int, runs: int) -> float:
    simulation = simulate(policy, n_agents=n_agents, runs=runs, seed=4)
    return float((simulation["consensus_word"] == word).mean())


@pytest.mark.parametrize(("n_agents", "expected", "tolerance"), [(4, 0.378, 0.05), (6, 0.505, 0.05), (24, 0.970, 0.02)])
def test_llama_gay_straight(published: xr.Dataset, n_agents: int, expected: float, tolerance: float) -> None:
    """[004] Fig. 3; the standard error of 10,000 runs is at most 0.005."""
    policy = published.sel(model="llama31_70B", pair="gay/straight")
    assert probability_of(policy, "gay", n_agents, 10_000) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(("n_agents", "published_bias"), [(4, 0.626), (10, 0.720), (100, 0.981), (1000, 1.00)])
def test_biases_of_fig_4(published: xr.Dataset, n_agents: int, published_bias: float) -> None:
    """[004] Fig. 4, GPT-4o {African, White}.

    The caption gives the biases but not the sizes: 4, 10, 100 and 1,000 are those of Fig. 3 that fit. Nor does it give
    the number of runs; with the 1,000 of the other figures 3.5 standard errors of the difference are allowed. The
    control is twice the size, which the three biases below 1 exclude.
    """
    policy, runs = published.sel(model="gpt-4o", pair="African/White"), 20_000 if n_agents <= 100 else 1000

    def z(n: int) -> float:
        bias = probability_of(policy, "African", n, runs)
        return (bias - published_bias) / np.sqrt(max(bias * (1 - bias), 1e-4) * (1 / 1000 + 1 / runs))

    assert abs(z(n_agents)) < 3.5
    assert n_agents > 100 or z(2 * n_agents) > 3.5


@pytest.mark.parametrize("pair", ["young/old", "more/less"])
def test_llama_pairs_stop_converging_in_large_groups(published: xr.Dataset, pair: str) -> None:
    """The rate equation has a mixed attractor, which small groups leave and large ones do not ([004] Fig. 3)."""
    policy = published.sel(model="llama31_70B", pair=pair)
    runs = simulate(policy, n_agents=[10, 1000], runs=40, seed=2)
    converged = runs["consensus_word"].notnull().mean("run").values
    assert converged[0] > 0.9
    assert converged[1] < 0.1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_ten_million_agents_play_a_hundred_rounds_in_a_gibibyte() -> None:
    """Peak memory of the process, packages included; what getrusage says would include this process, its parent."""
    script = (
        "import numpy, meanfield, validation\n"
        "policy = meanfield.make_policy(numpy.full(1365, 0.5), ['A', 'B'])\n"
        "runs = validation.simulate(policy, n_agents=10**7, runs=1, seed=1, max_rounds=100)\n"
        "assert runs['consensus_round'].isnull().all(), 'all rounds are played'\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1]) < 2**20  # KiB


def test_remainders_that_differ_by_rounding_are_equal():
    """Fractions that theory gives have last bits that depend on the processor."""
    exact = np.array([0.25, 0.5, 0.25])
    for noise in (np.zeros(3), np.array([-1, 1, 0]) * 1e-15, np.array([0, -1, 1]) * 1e-15):
        assert apportion(exact + noise, 3).tolist() == [1, 1, 1]
        assert apportion(exact + noise, 2).tolist() == [1, 1, 0]
    assert apportion(np.array([0.2499, 0.5, 0.2501]), 2).tolist() == [0, 1, 1]


def test_the_cost_of_a_long_round_is_told_before_it_is_played(monkeypatch):
    monkeypatch.setattr("validation.naming_game._simulate.LONG_ROUND", 60)
    policy = meanfield.make_policy(GENERIC_Q, ["a", "b"])
    with pytest.warns(
        UserWarning, match=r"n_agents = \[10, 20\], runs = 2: 6e\+01 interactions a round, up to 3 rounds"
    ):
        simulate(policy, n_agents=[10, 20], runs=2, seed=1, max_rounds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(policy, n_agents=[10, 19], runs=2, seed=1, max_rounds=3)
        simulate(policy, n_agents=[10, 20], runs=2, seed=1, max_rounds=3, progress=True)


# --- populations ---

POLICIES = [random_policy(seed) for seed in (0, 1)]


def q_of(policy: xr.Dataset) -> np.ndarray:
    return policy["q"].values


def test_fractions_become_the_closest_whole_numbers() -> None:
    population = Population(POLICIES, fractions=[0.25, 0.75], committed={"b": 0.1})
    with pytest.warns(UserWarning, match=r"N = 10: 2 random 0 for 2\.25, .*; N = 25: .*, 2 committed to b for 2\.5$"):
        runs = simulate(population, n_agents=[10, 25, 1000], runs=1, seed=0, max_rounds=1)
    assert runs["agents"].values.tolist() == [[2, 7, 1], [6, 17, 2], [225, 675, 100]]
    assert runs["agent_kind"].values.tolist() == ["random 0", "random 1", "committed to b"]
    assert runs.attrs["option_committed"] == "b:1,2,100"
    options = {"runs": 2, "seed": 0, "max_rounds": 1, "record_rounds": 0, "initial": "b", "committed": {"a": 3}}
    joined = simulate(POLICIES[0], n_agents=10, committed_are_extra=True, **options)
    assert (joined["agents"].values.tolist(), joined["n_agents"].values.tolist()) == ([[10, 3]], [10])
    assert joined["word_share"].values[0, 0, 0, 0] == pytest.approx((10 * q_of(POLICIES[0])[4, 0] + 3) / 13)


@pytest.mark.parametrize(
    "play",
    [
        lambda population, n: simulate(population, n_agents=n, runs=1, seed=0, max_rounds=1),
        lambda population, n: validation.rare_event(population, "a", n_agents=n, runs=2, seed=0, max_rounds=5),
        lambda population, n: validation.naming_game.exact_population(population, n, max_configurations=10**6),
    ],
    ids=["simulate", "rare_event", "exact_population"],
)
def test_shares_that_whole_numbers_of_agents_change_are_told(play, unchecked_types: None) -> None:
    """10 % of 4 agents are none, and of 14 one, 7 %; a mixture of 60:40 is 4 and 3 of 7 agents."""
    bound, mixed = (
        Population(POLICIES[0], committed={"b": 0.1}),
        Population([random_policy(0, 2, 1), random_policy(1, 2, 1)], fractions=[0.6, 0.4]),
    )
    with pytest.raises(InputError, match=r"n_agents = \[4\]: too few .* 0 committed to b for 0\.4.*at least 10$"):
        play(bound, 4)
    with pytest.warns(UserWarning, match=r"N = 14: .*1 committed to b for 1\.4"):
        play(bound, 14)
    with pytest.warns(UserWarning, match=r"N = 7: 4 random 0 for 4\.2, 3 random 1 for 2\.8"):
        play(mixed, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        play(mixed, 5)
        simulate(bound, n_agents=[20, 10_001], runs=1, seed=0, max_rounds=1)


def test_large_populations_follow_the_rate_equation() -> None:
    """20 runs of 20,000 agents: within 4 standard errors of their mean at each round; a time half as fast is not."""
    population = Population(POLICIES, fractions=[0.4, 0.6], committed={"b": 0.2})
    start = np.random.default_rng(2).dirichlet(np.ones(5), size=2)
    runs = simulate(population, n_agents=20_000, runs=20, seed=1, initial=start, record_rounds=8, max_rounds=8)
    shares = runs["word_share"].isel(n_agents=0, word=0)
    rounds = np.arange(9.0)
    theory = meanfield.solve(population, initial=start, times=2 * rounds)["word_share"].values[:, 0]
    spread = shares.std("run").max().item() / np.sqrt(20) + 1e-4
    assert np.abs(shares.mean("run") - theory).max() < 4 * spread
    slower = meanfield.solve(population, initial=start, times=rounds)["word_share"].values[:, 0]
    assert np.abs(shares.mean("run") - slower).max() > 4 * spread, "one unit of time is half a round"


def test_starts_from_consensus_and_from_a_composition() -> None:
    policy = POLICIES[0]
    shares = simulate(policy, n_agents=8, runs=1, seed=0, initial="a", record_rounds=0, max_rounds=1)["word_share"]
    assert shares.values[0, 0, 0, 0] == pytest.approx(q_of(policy)[1, 0])
    half = 0.5 * meanfield.consensus(policy, "a") + 0.5 * meanfield.consensus(policy, "b")
    shares = simulate(policy, n_agents=8, runs=1, seed=0, initial=half, record_rounds=0, max_rounds=1)["word_share"]
    assert shares.values[0, 0, 0, 0] == pytest.approx((q_of(policy)[1, 0] + q_of(policy)[4, 0]) / 2)


def test_a_convention_has_numbers_in_range() -> None:
    for wrong in ({"success_rate": 0.0}, {"success_rate": 0.9, "first_test": 2}):
        with pytest.raises(InputError, match=r"(success_rate|first_test) = "):
            Convention(**wrong)
