"""The simulated minimal naming game against exact chains, published times, and the theory of infinite populations.

Error budget: every stochastic test accepts a true statement with probability 1 - 1e-5 or more for an arbitrary seed;
there are fewer than 60 comparisons, so that together they fail falsely for less than one seed in 1,500. Each has a
control that the same criterion must reject.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

import meanfield
import theory
from _exact_chains import ExactChain
from meanfield import InputError
from validation import minimal_naming_game

ALPHA = 1e-5
Z = 4.5  # two-sided 7e-6
BOTH = pytest.mark.parametrize("method", ["agents", "batches"])


def z_of(sample: np.ndarray, mean: float) -> float:
    return (sample.mean() - mean) / (sample.std(ddof=1) / math.sqrt(len(sample)))


def exact_mean_time(n: int, committed: int = 0, p: float = 0.5, rule: str = "both") -> float:
    """Mean interactions per agent to consensus, by the master equation; `committed` hold A.

    From equal numbers of A and B, or from B alone where agents are committed. If agents could meet themselves, and then
    nothing happened, it would be N/(N - 1) times as long.
    """
    chain = ExactChain(theory.minimal_naming_game.reaction_model(2, rule, p=p), [n - committed, committed, 0])
    agreed = (chain.counts[:, 0] == n - committed) | (chain.counts[:, 1] == n)
    start = [0, n - committed, 0, committed, 0] if committed else [n / 2, n / 2, 0, 0, 0]
    return chain.first_passage(np.array(start) / n, agreed) / meanfield.TIME_PER_ROUND


def consensus_rounds(n: int, runs: int, method: str = "auto", **arguments) -> np.ndarray:
    simulation = minimal_naming_game.simulate(n, runs=runs, max_rounds=10_000, method=method, **arguments)
    assert simulation["consensus_round"].notnull().all()
    return simulation["consensus_round"].values


# --- times to consensus ---


PUBLISHED = {
    # N, committed to A, mean time in interactions per agent
    "even 100": (100, 0, 16.26100686),
    "even 400": (400, 0, 21.41073613),
    "committed 100": (100, 12, 37.3444),
    "committed 200": (200, 24, 38.2651),
}


@pytest.mark.parametrize("case", ["even 100", "committed 100"])
def test_published_times_are_interactions_per_agent(case: str) -> None:
    """The master equation says so: rounds of N interactions, not interactions that an agent takes part in."""
    n, committed, mean = PUBLISHED[case]
    assert exact_mean_time(n, committed) == pytest.approx(mean, rel=2e-6)
    assert exact_mean_time(n, committed) * n / (n - 1) != pytest.approx(mean, rel=2e-3)


TIMED = [("even 400", "agents"), ("committed 100", "agents"), ("even 100", "batches"), ("committed 100", "batches")]


@pytest.mark.parametrize(("case", "method"), TIMED)
def test_mean_consensus_time(case: str, method: str) -> None:
    n, committed, mean = PUBLISHED[case]
    runs = 4_000 if method == "agents" else 2_000
    start = {"committed": [committed, 0], "initial": [0, n - committed]} if committed else {"initial": "even"}
    rounds = consensus_rounds(n, runs, method, seed=n, **start)
    assert abs(z_of(rounds, mean)) < Z
    wrong = 0.95 if method == "agents" else 0.85  # 1 - 1/N, for agents who meet themselves, takes too many runs
    assert abs(z_of(rounds, mean * wrong)) > Z


@BOTH
@pytest.mark.parametrize(("p", "rule"), [(0.5, "listener"), (0.7, "both")])
def test_mean_consensus_time_of_small_populations(p: float, rule: str, method: str) -> None:
    """At N = 6 agents who could meet themselves would take a fifth longer."""
    rounds = consensus_rounds(6, 20_000, method, seed=2, p=p, rule=rule, initial="even")
    mean = exact_mean_time(6, 0, p, rule)
    assert abs(z_of(rounds, mean)) < Z and abs(z_of(rounds, mean * 6 / 5)) > Z
    assert abs(z_of(rounds, exact_mean_time(6, 0, p, "both" if rule == "listener" else "listener"))) > Z


# --- committed minorities ---


@pytest.mark.parametrize(("rule", "below", "above"), [("both", 0.08, 0.12), ("listener", 0.055, 0.12)])
def test_committed_minorities_flip_large_populations_above_the_critical_fraction(
    rule: str, below: float, above: float
) -> None:
    """Below it the population stays at the fixed point that theory says, above it all come to hold A."""
    n, options = 50_000, {"rule": rule, "runs": 4, "seed": 5, "max_rounds": 200, "record_rounds": 200}
    assert below < theory.minimal_naming_game.critical_fraction(0.5, rule) < above
    stays, flips = (
        minimal_naming_game.simulate(n, committed=[round(c * n), 0], initial=[0, n - round(c * n)], **options)
        for c in (below, above)
    )
    assert (flips["consensus_word"] == "A").all()
    assert all(word is None for word in stays["consensus_word"].values)
    fixed = theory.minimal_naming_game.fixed_points(0.5, (below, 0), rule)["composition"].values
    holding_b = stays["single_share"].sel(word="B").isel(round=slice(150, None)).mean("round").values
    nearest = fixed[np.abs(fixed[:, 1] - holding_b.mean()).argmin(), 1]
    np.testing.assert_allclose(holding_b, nearest, atol=0.01)


@BOTH
def test_committed_agents_of_both_words_never_agree(method: str) -> None:
    simulation = minimal_naming_game.simulate(
        60, committed=[6, 4], initial="even", runs=20, seed=1, max_rounds=50, record_rounds=50, method=method
    )
    assert simulation["consensus_round"].isnull().all()
    least = simulation["single_share"].min(["run", "round"])
    assert (least >= np.array([6, 4]) / 60 - 1e-12).all()


# --- more words, empty lexicons, observables by round ---


def test_shares_follow_the_rate_equation() -> None:
    """From empty lexicons: N agents differ from infinitely many by about ½/√N, grown several times by the instability
    of the symmetric state; twenty times as much is allowed."""
    n, n_words, rounds = 1_000_000, 3, 4
    simulation = minimal_naming_game.simulate(
        n, n_words=n_words, runs=2, seed=3, max_rounds=rounds, record_rounds=rounds
    )
    model = theory.minimal_naming_game.reaction_model(n_words, start_empty=True)
    start, times = np.eye(model.n_states)[0], meanfield.TIME_PER_ROUND * np.arange(rounds + 1.0)
    composition = meanfield.solve(model, initial=start, times=times)["composition"]
    expected = composition.sel(state=[*"ABC"]).values
    allowed = 10 / math.sqrt(n)
    shares = simulation["single_share"].transpose("run", "round", "word").values
    assert (np.abs(shares - expected) < allowed).all()
    assert (np.abs(shares[:, 1:] - expected[:-1]).max(axis=(1, 2)) > allowed).all()  # a round late


@BOTH
def test_success_rate_of_two_agents(method: str) -> None:
    """Holding A and B they fail first; then one holds both, whose word is known in half of the cases."""
    runs = 20_000
    arguments = {"runs": runs, "seed": 1, "max_rounds": 200, "record_rounds": 3, "method": method}
    even = minimal_naming_game.simulate(2, initial="even", **arguments)
    second = (even["success_rate"].sel(round=1) * 2).values
    assert set(second) == {0, 1}
    assert abs(z_of(second, 3 / 4)) < Z
    assert abs(z_of(second, 3 / 4 + 0.02)) > Z
    empty = minimal_naming_game.simulate(2, **arguments)  # the invented word is held by both from then on
    assert (empty["consensus_interaction"] == 1).all()
    np.testing.assert_array_equal(empty["success_rate"].isel(run=0), [np.nan, 0.5, 1, 1])


def test_both_methods_agree_for_four_words() -> None:
    agents, batches = (
        minimal_naming_game.simulate(500, n_words=4, runs=400, seed=1, max_rounds=500, method=method)
        for method in ("agents", "batches")
    )
    listener = minimal_naming_game.simulate(500, n_words=4, runs=400, seed=1, max_rounds=500, rule="listener")
    assert ks_2samp(agents["consensus_round"], batches["consensus_round"]).pvalue > ALPHA
    assert ks_2samp(agents["consensus_round"], listener["consensus_round"]).pvalue < ALPHA


@BOTH
def test_inventions_have_their_bias(method: str) -> None:
    """Two agents agree on the first invention."""
    options = {"runs": 20_000, "seed": 3, "max_rounds": 10, "method": method}
    game = minimal_naming_game.simulate(2, p=0.1, p_invented=0.7, **options)
    first = (game["consensus_word"] == "A").values.astype(float)
    assert abs(z_of(first, 0.7)) < Z and abs(z_of(first, 0.5)) > Z and abs(z_of(first, 0.1)) > Z


@BOTH
def test_two_agents_who_do_not_keep_their_inventions(method: str) -> None:
    """The first word is invented in vain; the second meeting agrees if its hearer or its inventor has that word."""
    options = {"n_words": 4, "runs": 20_000, "seed": 2, "max_rounds": 1000, "method": method}
    kept, lost = (minimal_naming_game.simulate(2, stores_invented=stores, **options) for stores in (True, False))
    assert (kept["consensus_interaction"] == 1).all() and (lost["consensus_interaction"] >= 2).all()
    z = z_of((lost["consensus_interaction"] == 2).values.astype(float), 0.5 + 0.5 / 4)
    assert abs(z) < Z
    assert abs(z_of((lost["consensus_interaction"] == 2).values.astype(float), 0.5)) > Z


@pytest.mark.slow
def test_a_hundred_million_agents_take_logarithmically_longer() -> None:
    """Near consensus the agents with B go as e^-t and those with both as t·e^-t, in rounds t: N·t·e^-t ≈ 1 at the end.

    From 60 % of A on, that is 5.0 rounds for a hundred times as many agents; the standard error of a difference is 0.4.
    """
    rounds = [
        consensus_rounds(n, 24, "batches", seed=1, initial=[6 * n // 10, 4 * n // 10]) for n in (10**4, 10**6, 10**8)
    ]
    np.testing.assert_allclose(np.diff([sample.mean() for sample in rounds]), 5.0, atol=1.6)


# --- conventions ---


@BOTH
def test_listeners_answer_with_their_probabilities(method: str) -> None:
    """Shares start at 0.7 and 0.3; the difference from the rate equation is noise, of 1/√N grown by 2 at most."""
    n, rounds, accepts = 200_000, 6, (0.8, 0.3)
    options = {"initial": [140_000, 60_000], "runs": 2, "seed": 5, "max_rounds": rounds, "record_rounds": rounds}
    simulation = minimal_naming_game.simulate(n, accepts=accepts, method=method, **options)
    shares = simulation["single_share"].transpose("run", "round", "word").values
    times = meanfield.TIME_PER_ROUND * np.arange(rounds + 1.0)

    def expected(answers: tuple[float, float]) -> np.ndarray:
        model = theory.minimal_naming_game.reaction_model(accepts=answers)
        start = np.array([0.7, 0.3, 0, 0, 0])
        composition = meanfield.solve(model, initial=start, times=times)["composition"]
        return composition.sel(state=["A", "B"]).values

    allowed = 5 / math.sqrt(n)
    assert (np.abs(shares - expected(accepts)) < allowed).all()
    assert np.abs(shares - expected((1, 0))).max() > 10 * allowed


def test_one_word_from_single_words_is_consensus() -> None:
    simulation = minimal_naming_game.simulate(10, n_words=1, initial="even", runs=2, seed=0, max_rounds=3)
    assert (simulation["consensus_interaction"] == 0).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_words": 65}, "n_words = 65: expected a whole number from 1 to 64"),
        ({"p": 0.6, "n_words": 3}, "p = 0.6: expected a probability, and 0.5 for n_words = 3"),
        ({"committed": [0.1, 0]}, "committed[0] = 0.1: expected a whole number of at least 0"),
        ({"committed": [1]}, "committed = [1]: expected 2 numbers of agents"),
        ({"committed": [6, 5]}, "committed = [6, 5]: expected at most n_agents = 10"),
        ({"committed": {2: 1}}, "committed = {2: 1}: expected words from 0 to 1"),
        ({"stores_invented": "no"}, "stores_invented = 'no': expected True or False"),
        ({"accepts": 0.5}, "accepts = 0.5: expected two probabilities"),
        ({"rule": "speaker"}, "rule = 'speaker': expected one of both, listener"),
        ({"initial": "full"}, "initial = 'full': expected 'empty' or 'even'"),
        ({"initial": "even", "committed": [1, 0]}, "initial = 'even': expected 9 agents to be a multiple of 2 words"),
        ({"initial": [8, 3]}, "initial = [8, 3]: expected at most the 10 agents who are not committed"),
        ({"method": "batches", "n_words": 10}, "method = 'batches': expected 'auto' or 'agents' for more than 6 words"),
        ({"n_agents": 2**32, "n_words": 10}, "n_agents = 4294967296: expected at most 4294967295 for n_words = 10"),
    ],
)
def test_bad_input_is_named(wrong: dict, message: str) -> None:
    arguments = {"n_agents": 10, "runs": 1, "seed": 0, "max_rounds": 5, **wrong}
    with pytest.raises(InputError) as error:
        minimal_naming_game.simulate(arguments.pop("n_agents"), **arguments)
    assert str(error.value).startswith(message)
