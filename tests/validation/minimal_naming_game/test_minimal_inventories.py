"""The minimal naming game agent by agent against exact chains.

Error budget: every stochastic test accepts a true statement with probability 1 - 1e-5 or more for an arbitrary seed;
there are fewer than 40 comparisons, so that together they fail falsely for less than one seed in 2,500. Each has a
control that the same criterion must reject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path

import numba
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chisquare, ks_2samp

import meanfield
import theory
from _exact_chains import ExactChain
from theory.streams import seed_streams
from validation import minimal_naming_game
from validation.minimal_naming_game._inventories_kernel import draw_word, n_held, number_of, play_round

ALPHA = 1e-5
Z = 4.5  # two-sided 7e-6

# --- inventories as bits ---


def test_words_are_counted_and_numbered() -> None:
    masks = np.random.default_rng(1).integers(0, 2**64, 2000, np.uint64)
    for mask in [*masks, *(masks & masks[::-1]), np.uint64(0), np.uint64(2**64 - 1)]:
        assert n_held(mask) == int(mask).bit_count()
    assert [number_of(np.uint64(1) << np.uint64(k)) for k in range(64)] == [*range(64)]


@numba.njit
def draw_many(mask, stream, n):
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    words = np.empty(n, np.int64)
    for k in range(n):
        word, s0, s1, s2, s3 = draw_word(mask, s0, s1, s2, s3)
        words[k] = number_of(word)
    return words


@pytest.mark.parametrize("held", [[3, 17, 63], [*range(64)]])
def test_words_are_drawn_evenly(held: list[int]) -> None:
    mask = np.uint64(sum(1 << word for word in held))
    drawn = Counter(draw_many(mask, seed_streams(1, len(held), np.arange(1))[0], 20_000).tolist())
    assert set(drawn) == set(held)
    counts = np.array([drawn[word] for word in held])
    assert chisquare(counts).pvalue > ALPHA
    uneven = np.ones(len(held))
    uneven[0] = 1.15 if len(held) < 20 else 1.6
    assert chisquare(counts, uneven / uneven.sum() * counts.sum()).pvalue < ALPHA


@numba.njit
def draw_once(mask, stream):
    return draw_word(mask, stream[0], stream[1], stream[2], stream[3])


def test_draws_that_would_favour_a_word_are_repeated() -> None:
    """2^32 = 3·k + 1: of three words one would come up more often, unless one of all draws, 0, is rejected."""
    zero = np.array([0, 123, 456, 0], np.uint64)  # the 64 random bits of this stream are all 0
    _, *second = draw_once(np.uint64(0b1111), zero)  # four words need no rejection
    later = np.array(second, np.uint64)
    assert draw_once(np.uint64(0b1111), zero)[0] == 1
    assert draw_once(np.uint64(0b111), zero) == draw_once(np.uint64(0b111), later) != (1, *second)


# --- the exact distribution of a few agents ---


def exact_law(n: int, n_words: int, committed: int, rule: str) -> np.ndarray:
    """Probability that consensus comes with each interaction, from empty inventories; `committed` say the last word."""
    model = theory.minimal_naming_game.reaction_model(n_words, rule, start_empty=True)
    chain = ExactChain(model, [n - committed, *[0] * (n_words - 1), committed])
    step = np.eye(len(chain.counts)) + chain.generator.toarray() * meanfield.TIME_PER_ROUND / n
    agreed = (chain.counts[:, 1 : 1 + n_words] + chain.counts[:, -n_words:] == n).any(1)
    x, by_then = (chain.counts[:, 0] == n - committed).astype(float), []
    for _ in range(400):
        by_then.append(x[agreed].sum())
        x = x @ step
    return np.diff(by_then, prepend=0.0)


def fits(interactions: np.ndarray, law: np.ndarray) -> bool:
    """χ² of consensus times, those with fewer than 10 expected in one class."""
    expected = law * len(interactions)
    observed = np.bincount(interactions.astype(int), minlength=len(law))[: len(law)]
    many = expected >= 10
    both = (np.append(values[many], len(interactions) - values[many].sum()) for values in (observed, expected))
    return chisquare(*both).pvalue > ALPHA


@pytest.mark.parametrize(("n", "n_words", "committed", "rule"), [(3, 2, 0, "both"), (4, 3, 1, "listener")])
def test_consensus_times_of_a_few_agents(n: int, n_words: int, committed: int, rule: str) -> None:
    options = {"runs": 40_000, "seed": 4, "max_rounds": 10_000, "method": "agents"}
    minority = {n_words - 1: committed}
    found = minimal_naming_game.simulate(n, n_words=n_words, committed=minority, rule=rule, **options)
    times = found["consensus_interaction"].values
    assert fits(times, exact_law(n, n_words, committed, rule))
    assert not fits(times, exact_law(n, n_words - 1, committed, rule))
    assert not fits(times, exact_law(n, n_words, committed, "both" if rule == "listener" else "listener"))
    if committed:
        assert (found["consensus_word"] == "C").all()


@cache
def renamings(n: int) -> list[list[int]]:
    """Holders of a word, as bits, after each exchange of agents."""
    orders = permutations(range(n))
    return [[sum(1 << order[a] for a in range(n) if word >> a & 1) for word in range(2**n)] for order in orders]


@cache
def same_up_to_names(holders: tuple[int, ...], n: int) -> tuple[int, ...]:
    """The one state that stands for all that differ in the order of words and of agents."""
    return min(tuple(sorted(renamed[word] for word in holders)) for renamed in renamings(n))


def meetings(
    state: tuple[int, ...], n: int, n_words: int, rule: str, stores: bool
) -> Iterator[tuple[float, list[int]]]:
    """Every meeting with its probability, and the holders of each word after it, as bits; 0 is a word nobody holds."""
    for speaker, hearer in permutations(range(n), 2):
        spoken = [word for word in state if word >> speaker & 1]
        said = spoken or [*state, 0]
        shares = [1 / len(spoken)] * len(spoken) if spoken else [1 / n_words] * len(state) + [1 - len(state) / n_words]
        for word, share in zip(said, shares, strict=True):
            if share == 0:
                continue
            others = list(state)
            if word:
                others.remove(word)
            success = bool(word >> hearer & 1)
            learn = 1 << hearer | ((bool(spoken) or stores or (success and rule == "both")) << speaker)
            forget = (learn if rule == "both" else 1 << hearer) if success else 0
            yield share / (n * (n - 1)), [word | learn, *(one & ~forget for one in others)]


def law_of_holders(n: int, n_words: int, rule: str, stores: bool) -> np.ndarray:
    """As `exact_law`, of any number of words, which are told apart only by who holds them."""
    places, rows, order = {(): 0}, [], [()]
    for state in order:
        row = Counter()
        for chance, holders in meetings(state, n, n_words, rule, stores):
            after = same_up_to_names(tuple(word for word in holders if word), n)
            if after not in places:
                places[after] = len(places)
                order.append(after)
            row[places[after]] += chance
        rows.append(row)
    step, x, agreed = np.zeros((len(rows),) * 2), np.eye(len(rows))[0], []
    for k, row in enumerate(rows):
        step[k, list(row)] = list(row.values())
    np.testing.assert_allclose(step.sum(1), 1)
    for _ in range(400):
        agreed.append(x[places[2**n - 1,]])
        x = x @ step
    return np.diff(agreed, prepend=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_words", "rule", "stores"),
    [(3, "both", False), (3, "listener", False), (10, "both", True), (64, "listener", True)],
)
def test_consensus_times_of_any_number_of_words(n_words: int, rule: str, stores: bool) -> None:
    """Four agents. The controls invent from fewer words, follow the other rule, or keep what they should forget."""
    options = {"runs": 40_000, "seed": 4, "max_rounds": 10_000, "method": "agents", "stores_invented": stores}
    found = minimal_naming_game.simulate(4, n_words=n_words, rule=rule, **options)
    times = found["consensus_interaction"].values
    assert fits(times, law_of_holders(4, n_words, rule, stores))
    assert not fits(times, law_of_holders(4, min(n_words // 2, 8), rule, stores))
    assert not fits(times, law_of_holders(4, n_words, "both" if rule == "listener" else "listener", stores))
    assert n_words > 3 or not fits(times, law_of_holders(4, n_words, rule, not stores))


# --- many words ---


def test_words_win_equally_often() -> None:
    arguments = {"n_words": 26, "runs": 10_000, "seed": 1, "max_rounds": 1000}

    def wins(**more) -> np.ndarray:
        simulation = minimal_naming_game.simulate(24, **arguments, **more)
        counts = Counter(simulation["consensus_word"].values.tolist())
        assert set(counts) == set(simulation["word_label"].values.tolist())
        return np.array([*counts.values()])

    assert chisquare(wins()).pvalue > ALPHA
    assert chisquare(wins(initial=[1, *[0] * 25])).pvalue < ALPHA


def test_every_word_can_be_committed_to() -> None:
    """Time to consensus does not depend on the name of the word, only on how many are committed."""
    arguments = {"n_words": 64, "runs": 2000, "seed": 1, "max_rounds": 1000}

    def rounds(word: int, number: int) -> np.ndarray:
        simulation = minimal_naming_game.simulate(30, committed={word: number}, **arguments)
        assert (simulation["consensus_word"] == simulation["word_label"].values[word]).all()
        return simulation["consensus_round"].values

    first, last, more = rounds(0, 3), rounds(63, 3), rounds(63, 5)
    assert (first != last).any()
    assert ks_2samp(first, last).pvalue > ALPHA
    assert ks_2samp(last, more).pvalue < ALPHA


def test_half_of_the_agents_invent_a_word() -> None:
    """An agent invents where its first interaction is as a speaker, so that of N agents N/2 do; the number of different
    words peaks near that where names hardly collide: Baronchelli et al. 2006, J. Stat. Mech. P06014."""
    n, runs, rounds = 20, 1000, 8
    different = np.zeros((runs, rounds))
    for run, stream in enumerate(seed_streams(1, n, np.arange(runs))):
        agents, counts, absorbed = np.zeros(n, np.uint64), np.zeros(65, np.int64), np.array([-1, -1])
        for k in range(rounds):
            game = n, np.uint64(2**64 - 1), np.uint64(0), np.uint64(0), False, True, np.uint64(2**63), np.uint64(0)
            play_round(agents, counts, stream, absorbed, counts[:64].copy(), game, 0, True)
            different[run, k] = int(np.bitwise_or.reduce(agents)).bit_count()
    peak = different.mean(0).max()
    assert 0.4 * n < peak < 0.5 * n
    assert different.mean(0)[-1] < peak / 2


def test_success_at_consensus() -> None:
    simulation = minimal_naming_game.simulate(24, n_words=10, runs=200, seed=1, max_rounds=300, record_rounds=300)
    success, consensus = simulation["success_rate"], simulation["consensus_round"]
    later = success["round"] >= consensus + 1
    assert later.any("round").all()
    assert (success.where(later, 1) == 1).all() and success.isel(round=0).isnull().all()
    before = success["round"] < consensus
    assert (simulation["single_share"].max("word").where(before, 0) < 1).all(), "consensus was noticed too late"
    assert (simulation["single_share"].max("word").where(later, 1) == 1).all()
    assert (simulation["final_single_share"].max("word") == 1).all()


# --- conventions ---


def test_runs_do_not_depend_on_threads_portions_or_later_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(runs: int, **more) -> xr.Dataset:
        return minimal_naming_game.simulate(15, n_words=10, runs=runs, seed=5, max_rounds=14, **more)

    whole = play(60)
    assert 0 < whole["consensus_round"].isnull().sum() < 60
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    one_thread = play(60)
    numba.set_num_threads(threads)
    xr.testing.assert_equal(whole, one_thread)
    xr.testing.assert_equal(whole.isel(run=slice(20)), play(20))
    recorded = play(60, record_rounds=14)
    xr.testing.assert_equal(whole["consensus_interaction"], recorded["consensus_interaction"])
    monkeypatch.setattr("validation._engine.ensemble.STATE_BYTES", 7 * 30)
    monkeypatch.setattr("validation._engine.ensemble.INTERACTIONS_A_CALL", 300)
    xr.testing.assert_equal(whole, play(60))
    xr.testing.assert_equal(recorded, play(60, record_rounds=14, progress=True))
    assert not whole.equals(minimal_naming_game.simulate(15, n_words=10, runs=60, seed=6, max_rounds=14))


@pytest.mark.parametrize("n_words", [7, 9, 17, 33, 64])
def test_any_number_of_words(n_words: int, tmp_path: Path) -> None:
    """Every width of inventory, filled from the first to the last word."""
    even = minimal_naming_game.simulate(
        2 * n_words, n_words=n_words, initial="even", runs=20, seed=1, max_rounds=3000, record_rounds=1
    )
    assert (even["single_share"].sel(round=0) * n_words == 1).all()
    assert even["consensus_round"].notnull().all()
    assert len(set(even["word_label"].values)) == n_words
    xr.testing.assert_equal(even, meanfield.load(meanfield.save(even, tmp_path / "game.nc")))
    agreed = minimal_naming_game.simulate(
        5, n_words=n_words, initial=[*[0] * (n_words - 1), 5], runs=1, seed=0, max_rounds=1
    )
    assert agreed["consensus_interaction"] == 0
    assert agreed["consensus_word"] == agreed["word_label"].values[-1]


def test_labels_after_z() -> None:
    labels = minimal_naming_game.simulate(2, n_words=64, runs=1, seed=0, max_rounds=1)["word_label"].values
    assert [*labels[[0, 25, 26, 51, 52, 63]]] == ["A", "Z", "AA", "AZ", "BA", "BL"]
