"""The engine for GPUs: its random numbers, its law against exact chains and the other engine, its reproducibility.

Error budget: each of the fewer than 25 stochastic comparisons accepts a true statement with probability 1 - 1e-4, for
an arbitrary seed, so that all together fail falsely for less than one seed in 400. Controls must be rejected by the
same criterion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2_contingency, chisquare, ks_2samp

import meanfield
import validation
from _ensembles import ALPHA, chi_square_p, consensus_p, exact_consensus_round
from meanfield import Population
from meanfield._dynamics import population_rounds as _population_rounds
from meanfield._dynamics.population_rounds import choose_pairs, draw_interactions, philox, uniform_below
from validation._engine.thresholds import word_thresholds
from validation.naming_game import CONVENTIONS, Convention, ExactPopulation, _jax_engine, exact_population
from validation.naming_game._jax_engine import ensemble_key

NO_END = meanfield.make_policy(np.array([0.6, 0.9, 0.35, 0.55, 0.15]), ["A", "B"])  # H = 1: empty, AA, AB, BA, BB
STRONG_A = meanfield.make_policy(np.array([0.6, 1, 0.7, 0.45, 0]), ["A", "B"])
KEY = jnp.asarray(ensemble_key(3, 24))
DRAW = jax.jit(draw_interactions, static_argnums=(3, 4))


def play(policy, n, runs, seed=1, rounds=40, recorded=None, engine="jax", **options) -> xr.Dataset:
    options |= {"n_agents": n, "runs": runs, "seed": seed, "max_rounds": rounds, "record_rounds": recorded}
    return validation.simulate(policy, engine=engine, **options).isel(n_agents=0)


def share_p(ensemble: xr.Dataset, law: xr.DataArray, played: int) -> float:
    """p of the shares of the first word after `played` rounds, under the law of an exact chain."""
    match = np.isclose(ensemble["word_share"].values[:, played, :1], law["value"].values, atol=1e-8)
    return chi_square_p(match.sum(0), law.values[0]) if match.any(1).all() else 0.0


# --- random numbers ---


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_reference(counter, key, expected) -> None:
    """The known answers that come with Random123, the authors' library."""
    words = [jnp.array([c], jnp.uint32) for c in counter]
    assert tuple(int(w[0]) for w in philox(words, jnp.uint64(key[0] | key[1] << 32))) == expected


@pytest.mark.parametrize("n", [1, 2, 3, 24, 10**6 + 3, 2**31 + 11, 2**32 - 1])
def test_numbers_below_n_are_equally_likely(n) -> None:
    """With ⌊2^64 / n⌋ accepted values for each number: its interval of values has that many, or one more, refused."""
    numbers = np.unique(np.minimum([0, 1, 2, n // 3, n // 2, n - 2, n - 1], n - 1).clip(0))
    for k in map(int, numbers):
        begin, end = -(-k * 2**64 // n), -(-(k + 1) * 2**64 // n)
        refused = end - begin - 2**64 // n
        assert refused in (0, 1)
        edge = np.array([begin, begin + 1, end - 1, (begin + end) // 2], dtype=np.uint64)
        number, accepted = uniform_below(jnp.asarray(edge), n)
        assert number.tolist() == [k] * 4
        assert accepted.tolist() == [not refused, True, True, True]


def test_refused_pairs_are_drawn_again_and_others_kept() -> None:
    attempts = np.array([[[0, 2**63]], [[2**63, 2**63]], [[2**62, 2**62]]], dtype=np.uint64)
    bits = jnp.asarray(attempts)
    pairs = [choose_pairs(lambda k: (bits[k], bits[k]), (1, 2), n).tolist() for n in (2, 3)]
    assert pairs[0] == [[[0, 1], [1, 0]]]  # for N = 2 nothing is ever refused
    assert pairs[1] == [[[1, 2], [1, 2]]]  # for N = 3 the first attempt at the first pair, 0, is


def test_pairs_are_uniform_and_never_the_same_agent() -> None:
    agents, _ = DRAW(KEY, jnp.arange(400, dtype=jnp.uint32), jnp.uint64(2**40), 200, 7)
    first, second = np.asarray(agents).reshape(-1, 2).T
    counts = np.bincount(first * 7 + second, minlength=49).reshape(7, 7)
    different = counts[~np.eye(7, dtype=bool)]
    assert np.trace(counts) == 0
    assert chisquare(different).pvalue > ALPHA
    skewed = np.where(np.arange(42) < 6, 1.15, 1.0)
    assert chisquare(different, skewed / skewed.sum() * different.sum()).pvalue < ALPHA


@pytest.mark.slow
def test_random_numbers_belong_to_run_and_interaction() -> None:
    runs = jnp.arange(6, dtype=jnp.uint32)
    agents, bits = DRAW(KEY, runs, jnp.uint64(2**32 - 3), 8, 24)
    assert len(np.unique(bits)) == bits.size
    part = DRAW(KEY, runs[2:5], jnp.uint64(2**32 - 1), 4, 24)
    np.testing.assert_array_equal(part[0], agents[2:6, 2:5])
    np.testing.assert_array_equal(part[1], bits[2:6, 2:5])
    keys = {int(ensemble_key(seed, n)) for seed in (0, 1, 2**63 - 1) for n in (2, 3, 2**32 - 1)}
    assert len(keys) == 9


# --- exact laws ---

SYSTEMS = {
    "three": (NO_END, 3, {}, 20),
    "mixed": (Population([NO_END, STRONG_A], fractions=[0.5, 0.5]), 4, {"initial": "B", "committed": {"A": 1}}, 4),
}


@pytest.fixture(scope="module")
def played() -> dict[str, xr.Dataset]:
    """Every round is recorded: rounds without a record would be compiled apart."""
    return {
        name: play(policy, n, 30_000, rounds=rounds, recorded=rounds, **options)
        for name, (policy, n, options, rounds) in SYSTEMS.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_word_share_has_the_exact_law(played, system) -> None:
    policy, n, options, _ = SYSTEMS[system]
    exact = exact_population(policy, n, **options)
    for rounds in (1, 4):
        law = exact.law_of(exact.word_share[:, 0], rounds=rounds)
        assert share_p(played[system], law, rounds) > ALPHA
        longer = exact.law_of(exact.word_share[:, 0], interactions=n * rounds + 1)
        assert rounds > 1 or share_p(played[system], longer, rounds) < ALPHA


def test_consensus_round_has_the_exact_law(played) -> None:
    exact = exact_population(NO_END, 3)
    assert consensus_p(played["three"], exact_consensus_round(exact, 20, CONVENTIONS["004"])) > ALPHA
    assert consensus_p(played["three"], exact_consensus_round(exact, 20, Convention(0.98, first_test=3))) < ALPHA


def test_control_shifted_thresholds(played) -> None:
    """Configurations of the policy with their law under one that says the first word by 0.02 more often."""
    true, first = exact_population(NO_END, 3), NO_END["q"].values[:, 0] + 0.02
    shifted = exact_population(meanfield.make_policy(first, ["A", "B"]), 3)
    assert (true.counts == shifted.counts).all()
    mixed = ExactPopulation(true.population, 3, true.counts, true.word_share, shifted.transition, shifted.success)
    assert share_p(played["three"], mixed.law_of(true.word_share[:, 0], rounds=1), 1) < ALPHA


# --- the two engines ---


def three_words() -> xr.Dataset:
    """Agents say a word with its share of what they have said and heard, or err; H = 2, so that memories fill up."""
    space = meanfield.MemorySpace(3, 2)
    known = [np.ravel(space.memory(state)).astype(int) for state in range(space.n_states)]
    said = [np.bincount(words, minlength=3) / len(words) for words in known[1:]]
    return meanfield.make_policy(0.001 + 0.997 * np.array([[0.5, 0.3, 0.2], *said]), ["a", "b", "c"])


def engines_p(a: xr.Dataset, b: xr.Dataset) -> float:
    """The smaller p of equal consensus rounds, none counting as latest, and of equal winners."""
    rounds = [e["consensus_round"].fillna(10**6) for e in (a, b)]
    winners = np.array([[(e["consensus_word"] == word).sum() for word in "abc"] for e in (a, b)])
    winners = np.column_stack([winners, 4000 - winners.sum(1)])
    return min(ks_2samp(*rounds).pvalue, chi2_contingency(winners[:, winners.sum(0) > 0]).pvalue)


def test_engines_agree() -> None:
    options = {"seed": 5, "rounds": 60, "committed": {"c": 2}, "convention": "001"}
    ours, theirs = (play(three_words(), 10, 4000, engine=engine, **options) for engine in ("jax", "numba"))
    assert ours.sizes == theirs.sizes and ours.attrs["option_engine"] == "jax"
    assert ours["consensus_round"].notnull().mean() > 0.2
    assert engines_p(ours, theirs) > ALPHA
    assert engines_p(ours, play(three_words(), 12, 4000, engine="numba", **options)) < ALPHA


# --- the rest of the contract ---


@pytest.mark.slow
def test_ended_runs_are_taken_out(monkeypatch) -> None:
    """Progress is told in full, and the results of ended runs stay, although they may play on."""
    monkeypatch.setattr(_jax_engine, "FEWEST", 60)
    whole, told = play(STRONG_A, 6, 200, rounds=300, recorded=300), []
    monkeypatch.setattr(_jax_engine, "INTERACTIONS_A_CALL", 6 * 200 * 5)
    bar = SimpleNamespace(update=told.append)
    monkeypatch.setattr("validation.naming_game._simulate.tqdm", lambda **_: nullcontext(bar))
    ensemble = play(STRONG_A, 6, 200, rounds=300)
    assert sum(told) == 200 * 300 * 6 and min(told) >= 0
    assert (ensemble["consensus_round"] >= 4).all() and set(ensemble["consensus_word"].values) == {"A", "B"}
    for name in ("consensus_word", "consensus_round"):
        xr.testing.assert_equal(whole[name], ensemble[name])
    winners = np.array(["A", "B"])[whole["word_share"].values[:, -1].argmax(-1)]
    np.testing.assert_array_equal(winners, whole["consensus_word"])


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """Functions compiled while the kernel is tampered with are not kept."""
    _population_rounds.play_rounds.clear_cache()
    yield
    _population_rounds.play_rounds.clear_cache()


@pytest.mark.slow
def test_shorter_ensembles_are_the_beginning_of_longer_ones(compiled_anew, monkeypatch) -> None:
    options = {"rounds": 6, "recorded": 6, "convention": Convention(0.5, first_test=4)}
    whole = play(NO_END, 6, 200, **options)
    np.testing.assert_allclose(whole["word_share"].sum("word"), 1, rtol=1e-12)
    other = play(NO_END, 6, 200, seed=2, **options)
    assert (other["word_share"] != whole["word_share"]).sel(round=6).any("word").mean() > 0.5
    # Parts of rounds with a rest, few rounds a call, several portions: none of it may be seen in the result.
    _population_rounds.play_rounds.clear_cache()
    monkeypatch.setattr(_population_rounds, "PREPARED", 4 * 50)
    monkeypatch.setattr(_jax_engine, "STATE_BYTES", 6 * 2 * 50)
    monkeypatch.setattr(_jax_engine, "INTERACTIONS_A_CALL", 6 * 50 * 3)
    beginning = play(NO_END, 6, 100, **options)
    assert 0 < beginning["consensus_round"].notnull().mean() < 1
    xr.testing.assert_equal(beginning, whole.isel(run=slice(100)))


def test_control_agents_that_meet_themselves(compiled_anew, monkeypatch) -> None:
    def careless(attempt, shape, n_agents):
        numbers = [uniform_below(bits, n_agents)[0] for bits in attempt(jnp.asarray(0))]
        return jnp.stack(numbers, axis=-1).astype(jnp.int32)

    monkeypatch.setattr(_population_rounds, "choose_pairs", careless)
    exact = exact_population(NO_END, 3)
    ensemble = play(NO_END, 3, 30_000, rounds=1, recorded=1)
    assert share_p(ensemble, exact.law_of(exact.word_share[:, 0], rounds=1), 1) < ALPHA


def test_floors_are_kept() -> None:
    """A threshold of 1 in 2^63, and the published floor 2.2e-16, are neither never nor always."""
    tiny = np.finfo(float).eps
    q = np.array([tiny, 1 - tiny, 1.0, 0.0, 1e-300])
    thresholds = word_thresholds(np.column_stack([q, 1 - q]))
    draws = {0: [2**11 - 1, 2**11], 1: [2**63 - 2**11 - 1, 2**63 - 2**11], 2: [0, 2**63 - 1], 3: [0], 4: [0, 1]}
    states = np.array([state for state, values in draws.items() for _ in values])
    said = said_by_kernel(thresholds, states, [u for values in draws.values() for u in values])
    assert said == [0, 1, 0, 1, 0, 0, 1, 0, 1]


def said_by_kernel(thresholds: np.ndarray, states: np.ndarray, draws: list[int]) -> list[int]:
    """What the first agent says in each of these states and draws; the other one says the second word."""
    n, never = len(draws), len(thresholds)
    rules = _population_rounds.SpeechRules(
        jnp.zeros((never + 1, 2)), jnp.asarray([*thresholds, [0]]), jnp.arange(never + 1) * 4
    )
    agents = jnp.asarray(np.column_stack([states, np.full(n, never)]))
    bits = jnp.asarray([[[2 * u + 1, 2**64 - 1] for u in draws]], dtype=jnp.uint64)
    who = jnp.tile(jnp.array([0, 1]), (1, n, 1))
    agreed, uttered = jnp.zeros((n, 2), jnp.int64), jnp.zeros((n, 0), jnp.int64)
    after, *_ = _population_rounds._interactions(agents, agreed, uttered, rules, who, bits)
    return ((after[:, 0] - 4 * states) // 2).tolist()
