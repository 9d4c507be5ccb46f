"""Population protocols against exact distributions: both methods, and the integer draws that batches are made of.

Error budget: every stochastic test accepts a true statement with probability 1 - 1e-5 or more for an arbitrary seed;
there are fewer than 100 comparisons, so that together they fail falsely for less than one seed in 1000. Each has a
control that the same criterion must reject.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numba
import numpy as np
import pytest
import xarray as xr
from scipy.stats import betabinom, binom, hypergeom, ks_2samp

import meanfield
import theory
from _ensembles import chi_square_p
from meanfield import InputError
from theory.streams import seed_streams
from validation import reactions
from validation._engine import batches as _batches
from validation.reactions import _epochs, _protocol
from validation.reactions._transitions import Transition

ALPHA = 1e-5
Z = 4.5  # two-sided 7e-6
BOTH = pytest.mark.parametrize("method", ["agents", "batches"])

NAMING = [row[:3] for row in theory.minimal_naming_game.interactions(  # A, B, AB, and none committed
    theory.minimal_naming_game.two_word_agents()[:3], lambda held: {word: 1 / len(held) for word in held})]  # fmt: skip
CONSENSUS = {"A": [0], "B": [1]}
VOTER = [(("A", "B"), ("A", "A")), (("B", "A"), ("B", "B"))]
UNANIMOUS = {"A": ["A"], "B": ["B"]}


def z_of(successes: int, trials: int, probability: float) -> float:
    return (successes - trials * probability) / math.sqrt(trials * probability * (1 - probability))


# --- integer draws ---


def drawn(draw, *arguments, number: int = 50_000) -> np.ndarray:
    stream = seed_streams(1, 2, np.arange(1))[0]
    return np.array([draw(stream, *arguments) for _ in range(number)])


def law_p(draws: np.ndarray, law) -> float:
    """p of draws under a law of scipy, in at most 50 classes of like probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 51)[1:-1]))
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    low, high = law.support()
    if draws.min() < low or draws.max() > high:
        return 0.0
    return chi_square_p(observed, np.diff(np.concatenate([[0], law.cdf(edges), [1]])))


@pytest.mark.parametrize(
    ("good", "bad", "sample"),
    [(3, 4, 5), (1, 99, 40), (600, 40, 500), (300, 340, 600), (10**4, 10**6, 2000), (5 * 10**9, 7 * 10**9, 60_000)],
)
def test_hypergeometric_draws(good: int, bad: int, sample: int) -> None:
    draws = drawn(_batches.draw_hypergeometric, good, bad, sample)
    assert law_p(draws, hypergeom(good + bad, good, sample)) > ALPHA
    assert law_p(draws, hypergeom(good + bad, good + 1 + good // 20, sample)) < ALPHA


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (40, 0.999), (300, 0.2), (300, 0.8), (10**6, 1e-6), (10**9, 0.5)])
def test_binomial_draws(n: int, p: float) -> None:
    draws = drawn(_batches.draw_binomial, n, p)
    assert law_p(draws, binom(n, p)) > ALPHA
    assert law_p(draws, binom(n, p * (0.94 if n < 10**9 else 1 - 2e-6))) < ALPHA


def test_draws_at_the_ends() -> None:
    for good, bad, sample, expected in [(5, 0, 3, 3), (0, 5, 3, 0), (5, 7, 0, 0), (5, 7, 12, 5), (1, 0, 1, 1)]:
        assert (drawn(_batches.draw_hypergeometric, good, bad, sample, number=10) == expected).all()
    for n, p, expected in [(9, 0.0, 0), (9, 1.0, 9), (0, 0.3, 0)]:
        assert (drawn(_batches.draw_binomial, n, p, number=10) == expected).all()


def covered(law, scale: float) -> bool:
    """Whether the rectangle of the ratio of uniforms holds all points below sqrt(pmf / max pmf)."""
    half = scale * (_batches.HAT_SLOPE * math.sqrt(law.var() + 0.5) + _batches.HAT_SHIFT) / 2
    k = np.arange(law.support()[1] + 1)
    pmf = law.pmf(k)
    reach = np.maximum(np.abs(k - law.mean() - 0.5), np.abs(k + 1 - law.mean() - 0.5))
    return bool((reach * np.sqrt(pmf / pmf.max()) <= half).all())


def test_rejection_covers_the_whole_law() -> None:
    """The constants of the hat come from a fit in the literature; where it fell short draws would be biased."""
    laws = [binom(n, p) for n, p in itertools.product([61, 1000, 30_000], [0.5, 0.05, 0.002])]
    for total, few, sample in itertools.product([130, 5000, 2 * 10**5], [0.5, 0.02], [0.5, 0.01]):
        laws.append(hypergeom(total, round(few * total), round(sample * total)))
    rejected = [law for law in laws if law.mean() > _batches.INVERSION_MEAN]
    assert len(rejected) > 10
    for law in rejected:
        assert covered(law, 1.0) and not covered(law, 0.9)


@pytest.mark.parametrize(("a", "d"), [(0, 5), (5, -5), (300, 17), (10**6, -400), (10**12, 3000)])
def test_log_factorial_ratio(a: int, d: int) -> None:
    terms = range(a + 1, a + d + 1) if d > 0 else range(a + d + 1, a + 1)
    expected = math.copysign(math.fsum(map(math.log, terms)), d)
    assert _batches.log_factorial_ratio(a, d) == pytest.approx(expected, rel=1e-14, abs=1e-11)


@numba.njit
def many_lengths(stream, table, met, n, draws):
    return np.array([_epochs.draw_length(stream, table, met, n) for _ in range(draws)])


@pytest.mark.parametrize(("n", "met"), [(2, 0), (3, 1), (6, 0), (30, 7), (30, 30), (1001, 60)])
def test_agents_are_met_again_as_in_the_birthday_problem(n: int, met: int) -> None:
    table = _epochs.log_survival(n, 2 * n)

    def survival(met: int) -> np.ndarray:
        lengths = range(len(table[met::2]))
        return np.array([math.prod((n - met - k) / (n - k % 2) for k in range(2 * length)) for length in lengths])

    np.testing.assert_allclose(np.exp(table[met::2] - table[met]), survival(met), rtol=1e-12)
    draws = many_lengths(seed_streams(3, 2, np.arange(1))[0], table, met, n, 100_000)
    observed = np.bincount(draws, minlength=len(survival(met)))
    assert chi_square_p(observed, -np.diff([*survival(met), 0])) > ALPHA
    if n > 3 and met < n:  # with two or three agents the second interaction always meets one again
        other = survival(met + max(1, met // 10))
        assert chi_square_p(observed[: len(other)], -np.diff([*other, 0])) < ALPHA


def test_large_tables_of_lengths_are_as_exact_as_the_draws() -> None:
    """A sum over a million entries, beside the series of the product of 1 - k/N for k < M = 2L, over (1 - 1/N)^L."""
    n, length = 10**12, 10**6
    m = 2 * length
    powers = [m * (m - 1) / 2, m * (m - 1) * (2 * m - 1) / 6, (m * (m - 1) / 2) ** 2]  # sums of k, k², k³
    series = -sum(power / (p * n**p) for p, power in enumerate(powers, 1)) - length * math.log1p(-1 / n)
    assert _epochs.log_survival(n, length)[m] == pytest.approx(series, abs=2e-11)


# --- exact distributions of a small system ---


def generic_transitions() -> np.ndarray:
    """P[i, j, i', j'] of three states without any symmetry; some pairs are silent, some have a single outcome."""
    rng = np.random.default_rng(12)
    P = rng.dirichlet(np.full(9, 0.3), size=(3, 3)).reshape(3, 3, 3, 3) / 4
    for i, j in itertools.product(range(3), repeat=2):  # slow, so that two rounds do not forget the start
        P[i, j, i, j] += 3 / 4
    P[1, 2], P[0, 0] = 0, 0
    P[1, 2, 1, 2] = P[0, 0, 1, 0] = 1
    return P


GENERIC = generic_transitions()


def compositions(n: int) -> list[tuple[int, int, int]]:
    return [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]


def ordered_pairs(c: tuple[int, ...], i: int, j: int) -> float:
    """P(initiator in i, responder in j) for a uniformly random ordered pair of distinct agents."""
    n = sum(c)
    return c[i] * (c[j] - (i == j)) / (n * (n - 1))


def with_itself(c: tuple[int, ...], i: int, j: int) -> float:
    """An agent may be drawn twice, and then nothing happens."""
    return ordered_pairs(c, i, j) * (1 - 1 / sum(c))


def drawn_by_state(c: tuple[int, ...], i: int, j: int) -> float:
    """The responder's state is taken uniformly from those that are there, not the responder from the agents."""
    there = [k for k in range(len(c)) if c[k] > (k == i)]
    return c[i] / sum(c) * (j in there) / len(there)


@cache
def one_interaction(n: int, pair_law=ordered_pairs) -> np.ndarray:
    """Transition matrix of the counts."""
    places = {counts: k for k, counts in enumerate(compositions(n))}
    matrix = np.zeros((len(places), len(places)))
    for counts, k in places.items():
        for i, j in itertools.product(range(3), repeat=2):
            pairs = pair_law(counts, i, j)
            for i_, j_ in itertools.product(range(3), repeat=2) if pairs else ():
                after = np.array(counts)
                np.add.at(after, [i, j, i_, j_], [-1, -1, 1, 1])
                matrix[k, places[tuple(after.tolist())]] += pairs * GENERIC[i, j, i_, j_]
    return matrix + np.diag(1 - matrix.sum(axis=1))


def place_counts(counts: np.ndarray, n: int) -> np.ndarray:
    return np.array([(counts == place).all(axis=1).sum() for place in compositions(n)])


def after_two_rounds(start: tuple[int, ...], method: str = "batches") -> np.ndarray:
    """Counts of places."""
    runs = reactions.simulate(GENERIC, start, runs=40_000, seed=14, max_rounds=2, method=method)
    return place_counts(runs["final_count"].values, sum(start))


def exactly(start: tuple[int, ...], pair_law=ordered_pairs, more: int = 0) -> np.ndarray:
    """Their probabilities after two rounds, and some `more` interactions."""
    n = sum(start)
    after = np.linalg.matrix_power(one_interaction(n, pair_law), 2 * n + more)
    return after[compositions(n).index(start)]


@BOTH
@pytest.mark.parametrize("start", [(1, 1, 0), (1, 1, 1), (2, 1, 3)])
def test_counts_have_the_exact_law(start: tuple[int, int, int], method: str) -> None:
    observed = after_two_rounds(start, method)
    assert chi_square_p(observed, exactly(start)) > ALPHA
    assert chi_square_p(observed, exactly(start, with_itself)) < ALPHA
    if sum(start) == 6:
        assert chi_square_p(observed, exactly(start, drawn_by_state)) < ALPHA
        assert chi_square_p(observed, exactly(start, more=1)) < ALPHA


def in_epochs_of(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protocol, "_epoch_length", lambda n_agents, n_states: length)


@pytest.mark.parametrize("length", [1, 5, 12])
def test_epochs_have_the_exact_law(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 12 interactions of 12 agents, most of which meet an agent again; rounds cut some epochs short."""
    in_epochs_of(length, monkeypatch)
    observed = after_two_rounds((3, 2, 7))
    assert chi_square_p(observed, exactly((3, 2, 7))) > ALPHA
    assert chi_square_p(observed, exactly((3, 2, 7), with_itself)) < ALPHA


def test_epochs_of_too_few_collisions_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents met again a fifth as often as they should be: the criterion must see it."""
    in_epochs_of(12, monkeypatch)
    monkeypatch.setattr(_protocol, "log_survival", lambda *numbers: 0.2 * _epochs.log_survival(*numbers))
    assert chi_square_p(after_two_rounds((3, 2, 7)), exactly((3, 2, 7))) < ALPHA


@pytest.mark.parametrize(
    ("method", "length", "start"),
    [("agents", None, (2, 1, 3)), ("batches", None, (2, 1, 3)), ("batches", 2, (1, 2, 7)), ("batches", 12, (1, 2, 7))],
)
def test_absorption_has_the_exact_law(method, length, start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time, and its place: the later interactions of a batch must not count.

    Epochs of 2 are played while 5 agents are outside the group, batches from then on; 12 interactions are never safe.
    """
    if length:
        in_epochs_of(length, monkeypatch)
    n, group = sum(start), [0, 1]
    last, place = 20 * n, compositions(n).index(start)
    options = {"seed": 3, "max_rounds": 20, "absorbing": {"group": group}, "method": method}
    runs = reactions.simulate(GENERIC, start, runs=24_000 if n == 6 else 12_000, **options)
    times = np.bincount(runs["absorbed_interaction"].fillna(last + 1).values.astype(int), minlength=last + 2)
    ends, target = place_counts(runs["final_count"].values, n), np.array(compositions(n))[:, group].sum(axis=1) == n

    def laws(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of the time, `last` + 1 if later, and of the counts where a run ends."""
        x, ended, law = np.eye(len(matrix))[place], np.zeros(len(matrix)), []
        for step in range(last + 1):
            x = x @ matrix if step else x
            law.append(x[target].sum())
            ended += np.where(target, x, 0)
            x = np.where(target, 0, x)
        return np.array([*law, x.sum()]), ended + x

    matrix = one_interaction(n)
    time_law, end_law = laws(matrix)
    assert chi_square_p(times, time_law) > ALPHA
    assert chi_square_p(times, laws(one_interaction(n, with_itself))[0]) < ALPHA
    assert chi_square_p(ends, end_law) > ALPHA
    if n == 6:  # of more agents too few are absorbed to tell the places apart
        later = (np.where(target, end_law, 0) @ matrix)[target]
        assert chi_square_p(ends[target], later / later.sum()) < ALPHA


@BOTH
def test_marked_interactions_are_counted(method: str) -> None:
    """All of them, or, of a protocol at rest, the share of the marked pairs among the ordered pairs."""
    rows = [Transition((i, j), (k, m), GENERIC[i, j, k, m], True) for i, j, k, m in np.argwhere(GENERIC > 0).tolist()]
    for start in ([5, 7, 9], [4000, 3000, 2000]):
        runs = reactions.simulate(rows, start, runs=20, seed=1, max_rounds=3, record_rounds=3, method=method)
        assert (runs["marked_share"].isel(round=slice(1, None)) == 1).all()
        assert (runs["count"] >= 0).all() and (runs["count"].sum("state") == sum(start)).all()
    rows = [Transition((0, 1), (1, 0), 0.5, marked=True), Transition((1, 1), (1, 1), marked=True)]
    for n, runs, rounds in [(50, 200, 50)] + [(10**6, 10, 2)] * (method == "batches"):
        options = {"runs": runs, "seed": 1, "max_rounds": rounds, "record_rounds": rounds, "method": method}
        found = reactions.simulate(rows, [3 * n // 5, 2 * n // 5], **options)["marked_share"]
        marked = int((found.isel(round=slice(1, None)) * n).round().sum())
        expected = (0.6 * 0.4 * 0.5 * n + 0.4 * (0.4 * n - 1)) / (n - 1)
        assert found.isel(round=0).isnull().all()
        right, wrong = (abs(z_of(marked, runs * rounds * n, one)) for one in (expected, 1.02 * expected))
        assert right < Z < wrong


# --- closed forms ---


@BOTH
def test_voter_with_zealots_is_betabinomial(method: str) -> None:
    """k of n free agents hold A: up with (z_A + k)(n - k), down with (z_B + n - k)k, over N(N - 1) for distinct pairs.

    Detailed balance gives BetaBinomial(n, z_A, z_B); N(N - 1) cancels.
    """
    n, z_a, z_b = 20, 2, 3
    zealous = [(("ZA", "B"), ("ZA", "A")), (("ZB", "A"), ("ZB", "B"))]
    counts = {"A": 0, "B": n, "ZA": z_a, "ZB": z_b}
    found = reactions.simulate(VOTER + zealous, counts, runs=3000, seed=5, max_rounds=45, method=method)
    observed = np.bincount(found["final_count"].sel(state="A"), minlength=n + 1)
    assert (found["final_count"].sel(state=["ZA", "ZB"]) == [z_a, z_b]).all()
    assert chi_square_p(observed, betabinom.pmf(np.arange(n + 1), n, z_a, z_b)) > ALPHA
    assert chi_square_p(observed, betabinom.pmf(np.arange(n + 1), n, z_a + 0.5, z_b)) < ALPHA
    assert chi_square_p(observed, binom.pmf(np.arange(n + 1), n, z_a / (z_a + z_b))) < ALPHA


@BOTH
@pytest.mark.parametrize(("fitness", "counts", "away"), [(1.0, (15, 35), 0.04), (1.1, (1, 99), 0.025)])
def test_moran_fixation(fitness: float, counts: tuple[int, int], away: float, method: str) -> None:
    """A initiator always turns a B responder, B turns A with probability 1/r: of the changes the share r/(1 + r) is up.

    That is the jump chain of the Moran process, which k mutants of N take over with probability
    (1 - r^-k)/(1 - r^-N); k/N without selection.
    """
    r, (mutants, others), runs = fitness, counts, 4000
    exact = mutants / (mutants + others) if r == 1 else (1 - r**-mutants) / (1 - r ** -(mutants + others))
    options = {"runs": runs, "seed": 6, "max_rounds": 100_000, "absorbing": UNANIMOUS, "method": method}
    found = reactions.simulate([VOTER[0], (*VOTER[1], 1 / r)], {"A": mutants, "B": others}, **options)
    wins = int((found["absorbed_group"] == "A").sum())
    assert found["absorbed_interaction"].notnull().all()
    assert abs(z_of(wins, runs, exact)) < Z < abs(z_of(wins, runs, exact - away))


# --- one method against the other ---


def test_both_methods_agree() -> None:
    """In populations of several epochs a round, up to absorption, and with many states."""

    def naming(method: str, seed: int, rows: list = NAMING) -> xr.Dataset:
        options = {"runs": 800, "max_rounds": 300, "record_rounds": 5, "absorbing": CONSENSUS, "method": method}
        return reactions.simulate(rows, (300, 200, 0), seed=seed, **options)

    agents, batches = naming("agents", 7), naming("batches", 8)
    other = naming("agents", 7, [(before, (before[0], after[1]), p) for before, after, p in NAMING])
    for observable in (lambda s: s["absorbed_interaction"].fillna(np.inf), lambda s: s["count"].sel(round=5, state=2)):
        assert ks_2samp(observable(agents), observable(batches)).pvalue > ALPHA
        assert ks_2samp(observable(other), observable(batches)).pvalue < ALPHA


def test_both_methods_agree_for_many_states() -> None:
    rng = np.random.default_rng(13)
    n_states = 30
    pairs = list(itertools.product(range(n_states), repeat=2))
    rows = [(pair, tuple(rng.integers(n_states, size=2).tolist()), p) for pair in pairs for p in (0.2, 0.3, 0.5)]
    start = rng.integers(10, 60, n_states)
    agents, batches, earlier = (
        reactions.simulate(rows, start, runs=1500, seed=9, max_rounds=rounds, method=method)["final_count"]
        for method, rounds in (("agents", 2), ("batches", 2), ("batches", 1))
    )
    same, other = ([ks_2samp(agents[:, k], one[:, k]).pvalue for k in range(n_states)] for one in (batches, earlier))
    assert min(same) > ALPHA > min(other)


def test_large_populations_follow_the_rate_equation() -> None:
    """At N = 10^9 a round differs from the mean field by about 1/√N; a tenth of a percent would be seen."""
    n = 10**9
    simulation = reactions.simulate(NAMING, [3 * n // 5, 2 * n // 5, 0], runs=2, seed=1, max_rounds=1, method="auto")
    drift, x, steps = theory.minimal_naming_game.reaction_model().drift, np.array([0.6, 0.4, 0, 0, 0]), 1000
    for _ in range(steps):  # by midpoints, in the engine's time: two units are a round
        x = x + 2 * drift(x + drift(x) / steps) / steps
    np.testing.assert_allclose(simulation["final_count"] / n, np.tile(x[:3], (2, 1)), atol=5e-5)


# --- conventions and reproducibility ---


@BOTH
def test_runs_are_reproducible(method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the seed, for any number of runs and threads, and recording changes nothing."""
    arguments = {"seed": 3, "max_rounds": 12, "record_rounds": 10, "absorbing": CONSENSUS, "method": method}

    def simulate(**changes) -> xr.Dataset:
        return reactions.simulate(NAMING, [20, 15, 5], **({"runs": 200} | arguments | changes))

    whole, plain = simulate(), simulate(record_rounds=None)
    xr.testing.assert_identical(whole, simulate(progress=True))
    xr.testing.assert_equal(whole.isel(run=slice(70)), simulate(runs=70))
    xr.testing.assert_equal(plain, whole[list(plain.data_vars)])
    assert (simulate(seed=4)["final_count"] != whole["final_count"]).any()
    assert 0 < whole["absorbed_round"].notnull().mean() < 1
    assert (whole["count"].sum("state") == 40).all()
    np.testing.assert_array_equal(whole["count"].sel(round=0, run=0), [20, 15, 5])
    assert ((whole["count"].max("state") == 40) == (whole["absorbed_round"] <= whole["round"])).all()
    loaded = meanfield.load(meanfield.save(whole, tmp_path / "protocol.nc"))
    xr.testing.assert_equal(whole, loaded)
    assert loaded.attrs["kind"] == "protocol_simulation" and loaded.attrs["option_seed"] == 3
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        monkeypatch.setattr("validation._engine.ensemble.STATE_BYTES", 2000)
        monkeypatch.setattr("validation._engine.ensemble.INTERACTIONS_A_CALL", 3000)
        xr.testing.assert_identical(whole, simulate())
    finally:
        numba.set_num_threads(threads)


def test_auto_takes_a_method_by_size() -> None:
    for n in (1000, 1_000_000):
        counts = [n // 2, n // 2, 0]
        auto, agents, batches = (
            reactions.simulate(NAMING, counts, runs=2, seed=0, max_rounds=1, method=method)["final_count"]
            for method in ("auto", "agents", "batches")
        )
        assert bool((auto == (agents if n == 1000 else batches)).all())
        assert not bool((agents == batches).all())


@BOTH
def test_absorbed_at_the_start(method: str) -> None:
    options = {"runs": 3, "seed": 0, "max_rounds": 5, "absorbing": UNANIMOUS, "method": method}
    found = reactions.simulate(VOTER, {"A": 5, "B": 0}, **options)
    assert (found["absorbed_interaction"] == 0).all() and (found["absorbed_group"] == "A").all()


def test_forms_of_transitions_are_the_same() -> None:
    arguments = {"runs": 50, "seed": 1, "max_rounds": 3}
    states = ("A", "B", "AB")
    named = [([states[i] for i in before], [states[i] for i in after], p) for before, after, p in NAMING]
    by_name = reactions.simulate(named, dict.fromkeys(states, 7), **arguments)
    by_number = reactions.simulate([Transition(*row) for row in NAMING], [7, 7, 7], **arguments)
    assert by_name["state"].values.tolist() == list(states)
    np.testing.assert_array_equal(by_name["final_count"], by_number["final_count"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"counts": 5}, "counts = 5: expected {state: number of agents} or a list of numbers"),
        ({"counts": {"A": 1, "B": 0}}, "counts sum to 1: expected 2 to"),
        ({"counts": {"A": 5, "B": -1}}, "counts['B'] = -1: expected a whole number of at least 0"),
        ({"counts": {"A": 5}}, "counts has 1 states: expected 2 to 256"),
        ({"counts": {0: 5, 1: 5}}, "counts = "),
        ({"transitions": [(("A", "C"), ("A", "A"))]}, "transitions has (('A', 'C'), ('A', 'A')): expected ((i, j), "),
        ({"transitions": [(("A", "B"), ("A", "A"), 1.2)]}, "transitions has"),
        ({"transitions": [(("A", "B"), ("A", "A"), float("nan"))]}, "transitions has"),
        ({"transitions": [5]}, "transitions has 5"),
        ({"transitions": 5}, "transitions = 5"),
        ({"transitions": [(("A", "B"), ("A", "A"), 0.7)] * 2}, "transitions of ('A', 'B') have the sum 1.4"),
        ({"transitions": np.zeros((2, 2, 2))}, "transitions has shape (2, 2, 2): expected (2, 2, 2, 2)"),
        ({"transitions": np.zeros((2, 2, 2, 2))}, "transitions: P[i, j] misses the sum of 1 by 1"),
        ({"absorbing": {"A": "A"}}, "absorbing['A'] = 'A': expected a list"),
        ({"absorbing": {"A": ["C"]}}, "absorbing['A'] = ['C']: expected a list"),
        ({"absorbing": {}}, "absorbing = {}"),
        ({"method": "fast"}, "method = 'fast': expected one of 'auto', 'agents', 'batches'"),
        ({"runs": 0}, "runs = 0: expected a whole number of at least 1"),
        ({"seed": -1}, "seed = -1"),
        ({"max_rounds": 0}, "max_rounds = 0"),
        ({"record_rounds": 11}, "record_rounds = 11: expected a whole number from 0 to 10"),
        ({"counts": {"A": 2**33, "B": 0}, "method": "agents"}, "counts sum to 8589934592: expected at most 4294967295"),
    ],
)
def test_bad_input_is_named(wrong: dict, message: str) -> None:
    arguments = {"transitions": VOTER, "counts": {"A": 5, "B": 5}, "runs": 1, "seed": 0, "max_rounds": 10, **wrong}
    with pytest.raises(InputError) as error:
        reactions.simulate(arguments.pop("transitions"), arguments.pop("counts"), **arguments)
    assert str(error.value).startswith(message)


# --- reaction models ---


def time_to_extinction(infection: float) -> float:
    """Mean time to extinction among 20 agents from 10 infected ones, from the birth and death chain."""
    n = np.arange(1, 21)
    infected, healed = infection * n * (20 - n) / 19, 0.5 * n
    rates = np.diag(-infected - healed) + np.diag(infected[:-1], 1) + np.diag(healed[1:], -1)
    return np.linalg.solve(rates, -np.ones(20))[9]


@pytest.mark.parametrize(
    ("rules", "infects", "right", "wrong"),
    [
        ({"S + I": "2 I", "I": "S"}, 1.0, 1.0, 1.05),
        ({"S": "I", "I": "S"}, lambda x: x["I"], 0.95, 1.0),  # agents who count all 20 meet 19/20 as many ill ones
    ],
    ids=["pairs", "functions"],
)
def test_extinction_takes_as_long_as_in_the_exact_chain(rules, infects, right: float, wrong: float) -> None:
    model = meanfield.ReactionModel.from_rules(rules, [infects, 0.5])
    options = {"runs": 2000, "seed": 3, "max_rounds": 10**6, "absorbing": {"healthy": ["S"]}}
    time = reactions.simulate(model, {"I": 10, "S": 10}, **options)["absorbed_time"]
    error = time.std().item() / math.sqrt(len(time))
    assert abs(time.mean().item() - time_to_extinction(right)) < Z * error
    assert abs(time.mean().item() - time_to_extinction(wrong)) > Z * error


def test_models_have_their_own_time_and_all_their_states() -> None:
    model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "R"}, [1.0, 0.5], time_unit="day")
    runs = reactions.simulate(model, {"S": 9, "I": 1}, runs=2, seed=1, max_rounds=3, record_rounds=3)
    assert runs["state"].values.tolist() == ["S", "I", "R"]
    np.testing.assert_allclose(runs["time"], np.arange(4) / 1.5)  # an encounter and half a recovery a day
    assert runs["time"].attrs["units"] == "day"
    options = {"runs": 2, "seed": 1, "max_rounds": 3, "absorbing": {"over": ["S", "R"]}}
    listed, named = (reactions.simulate(model, counts, **options) for counts in ([9, 1, 0], {"I": 1, "S": 9}))
    xr.testing.assert_identical(listed, named)


def test_rates_that_are_functions_have_the_law_of_the_exact_chain() -> None:
    """Agents who see all others, and some who meet one; and who give up by themselves."""
    alone, n_agents = 0.2, 20

    def up(x):
        return (1 + jnp.tanh(1.5 * (x["up"] - x["down"]))) / 2

    rules = [("down", "up"), ("up", "down"), ("down + up", "2 up"), ("up", "down")]
    model = meanfield.ReactionModel.from_rules(rules, [up, lambda x: 1 - up(x), 0.5, alone])
    runs = reactions.simulate(model, {"up": 8, "down": 12}, runs=15_000, seed=5, max_rounds=3)
    counts = np.bincount(runs["final_count"].sel(state="up"), minlength=21)
    for beta, fits in ((1.5, True), (1.3, False)):
        n = np.arange(n_agents + 1)
        share = (1 + np.tanh(beta * (2 * n / n_agents - 1))) / 2
        total = 0.5 + alone + max(share[:-1].max(), (1 - share[1:]).max())  # interactions per agent and time
        rise = (n_agents - n) * (share + 0.5 * n / (n_agents - 1)) / n_agents / total
        fall = n * (1 - share + alone) / n_agents / total
        step = np.diag(rise[:-1], -1) + np.diag(fall[1:], 1) + np.diag(1 - rise - fall)
        law = np.linalg.matrix_power(step, 3 * n_agents)[:, 8]
        assert (chi_square_p(counts, law) > ALPHA) == fits


@pytest.mark.parametrize(
    ("rates", "counts", "options", "message"),
    [
        ([1.0, 0.5], {"X": 9, "I": 1}, {}, r"counts has \['X'\]: expected states of the model, \['S', 'I', 'R'\]"),
        ([1.0, 0.5], [9, 1], {}, r"counts = \[9, 1\]: expected 3 numbers of agents"),
        ([lambda x: x["I"], 0.5], [9, 1, 0], {"method": "batches"}, "'batches': expected 'agents' for rates that are"),
        ([lambda x: x["I"], 0.5], [10**6, 1, 0], {}, r"counts has 1000001 agents in 3 states: .* take fewer of either"),
    ],
)
def test_limits_of_models_are_named(rates, counts, options: dict, message: str) -> None:
    model = meanfield.ReactionModel.from_rules({"S": "I", "I": "R"}, rates)
    with pytest.raises(InputError, match=message):
        reactions.simulate(model, counts, runs=2, seed=1, max_rounds=3, **options)
