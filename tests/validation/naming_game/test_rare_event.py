"""Splitting against exact chains, direct simulation and the group-size law.

Error budget: a mean of estimates counts as right within four of its standard errors, which a true statement misses for
one seed in 10,000. Controls must miss it. Exact probabilities are those of absorption: with `AT_LAST` runs are looked
at when all but a share of 1e-9 agree for good.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr
from scipy.stats import binom

import meanfield
import validation
from _policies import majority
from meanfield import InputError, group_size_law
from meanfield._finite_size.law_path import law_path
from meanfield.toolbox import space_of, weak_side
from validation import rare_event, simulate
from validation.naming_game import Convention, exact_population
from validation.naming_game._ensemble import Rules
from validation.naming_game._rare_event import _way_to_the_saddle
from validation.naming_game._splitting import PASSED, Draws, Game, choose_levels, replicate

ROUNDS = 30
AT_LAST = {"convention": Convention(1.0, first_test=ROUNDS), "max_rounds": ROUNDS}
ERRING = {"initial": "a", "convention": Convention(0.8, first_test=20), "max_rounds": 22}
BIASED = meanfield.make_policy(np.array([0.9, 1, 0.8, 0.8, 0]), ["A", "B"])


def biased_to_a(start: float, mixed: float) -> xr.Dataset:
    """H = 1, three words: A is said with probability `mixed` where two words are remembered."""
    memories = [(a, b) for a in range(3) for b in range(3)]
    rest = (1 - mixed) / 2
    said = [np.eye(3)[a] if a == b else np.array([mixed, rest, rest]) for a, b in memories]
    return meanfield.make_policy(np.array([[start, *[(1 - start) / 2] * 2], *said]), ["A", "B", "C"])


def exact_chance(policy: xr.Dataset, word: str, n_agents: int) -> float:
    ends = exact_population(policy, n_agents).absorption()
    return ends["probability"].values[ends["word"].values == word].sum()


def deviation(rare: xr.Dataset, chance: float) -> float:
    """Deviation of the mean from the exact probability, in standard errors."""
    return abs(float((rare["probability"] - chance) / (rare["relative_error"] * rare["probability"])))


# --- exact chains ---


@pytest.mark.parametrize(
    ("policy", "word", "n"),
    [(BIASED, "B", 6), (BIASED, "A", 4), (biased_to_a(0.8, 0.9), "C", 4)],
)
def test_the_mean_is_exact(policy, word, n) -> None:
    """Few runs in many replications, whose mean would show a bias."""
    rare = rare_event(policy, word, n_agents=n, runs=20, replications=120, seed=1, **AT_LAST)
    assert deviation(rare, exact_chance(policy, word, n)) < 4


@pytest.mark.slow
def test_levels_that_a_quarter_are_said_to_pass_give_another_mean() -> None:
    """Control: where runs are equally far, fewer come above a level."""
    runs, n, q, space = 20, 4, BIASED["q"].values, space_of(BIASED)
    test = np.array([ROUNDS, 3 * n])
    game = Game(Rules.of(q[None], space), np.zeros(n, dtype=int), test, ROUNDS, 1, q[:, 1][None].copy())
    estimates = []
    for seed in range(160):
        levels = choose_levels(game, runs, seed, lambda: None).levels
        found = replicate(game, levels, runs, Draws(seed, n, 1), lambda: None)
        estimates.append(PASSED ** len(levels) * found.passed[-1])
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - exact_chance(BIASED, "B", n)) > 4 * error


@pytest.mark.slow
def test_intervals_cover() -> None:
    """90 % of 200 intervals hold the truth, and fewer of intervals half as long: p < 1e-4."""
    chance, covered, halves = exact_chance(BIASED, "B", 4), 0, 0
    for seed in range(200):
        rare = rare_event(BIASED, "B", n_agents=4, runs=50, replications=10, seed=seed, level=0.9, **AT_LAST)
        low, high = rare["interval"].values
        covered += low < chance < high
        middle = rare["probability"].item()
        halves += (low * middle) ** 0.5 < chance < (high * middle) ** 0.5
    assert binom.cdf(covered, 200, 0.9) > 1e-4 and binom.sf(covered - 1, 200, 0.9) > 1e-4
    assert binom.cdf(halves, 200, 0.9) < 1e-4


# --- the coordinate ---


def test_the_coordinate_changes_the_error_only() -> None:
    """A bad one looks at memories of two different words, which say little about the end."""
    policy = majority(0.7)
    space = space_of(policy)
    bad = np.array([sum(own != partner for own, partner in space.memory(i)) for i in range(space.n_states)], float)
    share = policy["q"].sel(word="b")
    options = {"n_agents": 60, "runs": 100, "replications": 20, "seed": 1}
    found = [rare_event(policy, "b", coordinate=one, **options) for one in (None, share, bad)]
    assert [one.attrs["option_coordinate"] for one in found] == ["way to the saddle", "given", "given"]
    for one in found[1:]:
        joint = np.hypot(*[(each["relative_error"] * each["probability"]).item() for each in (found[0], one)])
        assert abs(found[0]["probability"] - one["probability"]) < 4 * joint
    work = [(one["relative_error"] ** 2 * one["rounds"]).item() for one in found]
    assert work[0] < work[1] < work[2]


@pytest.mark.parametrize("start", [0.53, 0.999])
def test_the_way_to_the_saddle_is_kappa_long(start) -> None:
    """Along the path of least action -ξ falls to 0, and ξ² is twice the action that is left."""
    policy = majority(start)
    side, path = weak_side(policy), law_path(policy).path
    assert side is not None and side.word == "b"
    assert side.times[0] == 0 and (np.diff(side.times) > 0).all()
    assert group_size_law(policy)["kappa"].item() == path.kappa
    assert side.weights[0, 0] == pytest.approx(-path.kappa, rel=1e-3)
    way = (side.weights * path.x[: len(side.times), 0]).sum(1)
    np.testing.assert_allclose(way**2, -2 * (path.p * path.x).sum((1, 2))[: len(way)], rtol=1e-6)
    assert (np.diff(way) > -1e-9).all() and way[-1] > -0.02


def test_last_bits_of_the_way_decide_nothing(monkeypatch) -> None:
    """Processors differ by 1e-12 in the path; the control, without the rounding, sees that."""
    policy = majority(0.55)
    side = weak_side(policy)
    noise = 1 + 1e-12 * np.random.default_rng(1).standard_normal(side.weights.shape)
    exact = _way_to_the_saddle(policy, "b", 60)
    other = side._replace(weights=side.weights * noise)
    monkeypatch.setattr("validation.naming_game._rare_event.weak_side", lambda _: other)
    np.testing.assert_array_equal(_way_to_the_saddle(policy, "b", 60), exact)
    assert np.array_equal(exact.sum(1), exact[:, ::-1].sum(1))
    monkeypatch.setattr("validation.naming_game._rare_event.BITS", 52)
    assert (_way_to_the_saddle(policy, "b", 60) != exact).any()


# --- direct simulation and the law ---


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (majority(0.75), {"n_agents": 40}),
        (biased_to_a(0.6, 0.6), {"n_agents": 5}),
        (majority(0.5, fidelity=0.93), {"n_agents": 12, **ERRING}),
        (majority(0.5, fidelity=0.95), {"n_agents": 24, **ERRING, "committed": {"b": 1}}),
    ],
)
def test_simulation_sees_the_same(policy, options) -> None:
    """From empty memories, and by mistake within a time, for which runs at a level have different times left."""
    word = meanfield.toolbox.words_of(policy)[1]
    runs = 50_000
    direct = (simulate(policy, runs=runs, seed=2, **options)["consensus_word"] == word).mean().item()
    rare = rare_event(policy, word, runs=100, replications=20, seed=1, **options)
    error = np.hypot(rare["relative_error"] * rare["probability"], np.sqrt(direct / runs))
    assert 1e-4 < direct < 0.1
    assert abs(rare["probability"] - direct) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(("start", "n"), [(0.6, 400), (0.6, 800), (0.7, 400)])
def test_the_tail_of_the_law(start, n) -> None:
    """Φ(-κ√N) has the right exponent: down to 7e-11 these probabilities differ from it by a few per cent."""
    policy = majority(start)
    rare = rare_event(policy, "b", n_agents=n, runs=300, replications=20, seed=1)
    assert rare["relative_error"] < 0.2 and not rare.attrs["reason"]
    ratio = rare["probability"].item() / ndtr(-group_size_law(policy)["kappa"].item() * n**0.5)
    assert 0.7 < ratio < 1.5


# --- edges ---


def test_threads_and_further_replications_change_nothing() -> None:
    options = {"n_agents": 100, "runs": 50, "seed": 3}
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        alone = rare_event(majority(0.55), "b", replications=3, **options)
    finally:
        numba.set_num_threads(before)
    together = rare_event(majority(0.55), "b", replications=5, **options)
    np.testing.assert_array_equal(alone["passed"], together["passed"][:3])
    assert len(np.unique(together["estimate"])) > 1


def test_what_never_happens_is_told(tmp_path) -> None:
    always = meanfield.make_policy(np.array([1.0, 1, 1, 1, 0.5]), ["A", "B"])
    rare = rare_event(always, "B", n_agents=5, runs=50, replications=4, seed=1)
    assert rare["probability"] == 0 and np.isnan(rare["relative_error"])
    np.testing.assert_allclose(rare["interval"], validation.comparison.wilson_interval(0, 200, 0.99))
    assert (rare.attrs["reason"], rare.attrs["option_coordinate"]) == ("no run ended at 'B'", "word share")
    xr.testing.assert_identical(rare, meanfield.load(meanfield.save(rare, tmp_path / "rare.nc")))
    sure = rare_event(always, "A", n_agents=5, runs=50, replications=4, seed=1)
    assert sure["probability"] == 1 and sure["interval"].values[0] > 0.9 and sure.attrs["reason"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"word": "C"}, "word = 'C': expected one of A, B"),
        ({"n_agents": 1}, "n_agents = 1: expected a whole number from 2"),
        ({"n_agents": [2, 3]}, r"n_agents = \[2, 3\]"),
        ({"runs": 1}, "runs = 1: expected a whole number of at least 2"),
        ({"replications": 1}, "replications = 1: expected"),
        ({"seed": -1}, "seed = -1"),
        ({"level": 1}, "level = 1"),
        ({"max_rounds": 0}, "max_rounds = 0"),
        ({"convention": "005"}, "convention = '005'"),
        ({"committed": {"A": 9}}, "committed = {'A': 9}: expected at most n_agents = 4"),
        ({"coordinate": np.ones(4)}, "coordinate: expected 5 finite numbers"),
        ({"coordinate": np.array([0, 1, 2, 3, np.nan])}, "coordinate: expected 5 finite numbers"),
        ({"coordinate": xr.DataArray(np.ones(5), dims="memory")}, "coordinate has the dims memory: expected state"),
        ({"n_agents": 10**6, "runs": 10**6}, "runs = 1000000, n_agents = 1000000, replications = 20: would take"),
    ],
)
def test_wrong_input_is_named(arguments, message) -> None:
    good = {"policy": BIASED, "word": "B", "n_agents": 4, "runs": 10, "seed": 1}
    with pytest.raises(InputError, match=message):
        rare_event(**(good | arguments))
