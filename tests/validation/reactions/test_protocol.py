"""Population protocols against exact distributions: both methods, and the integer draws that batches are made of.

Error budget: every stochastic test accepts a true statement with probability 1 - 1e-5 or more for an arbitrary seed;
there are fewer than 200 comparisons, so that together they fail falsely for less than one seed in 500. Each has a
control that the same criterion must reject.
"""

from __future__ import annotations

import itertools
import math
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
from validation.reactions._kernel import safe_length
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


@numba.njit
def many_hypergeometric(stream, good, bad, sample, draws):
    return np.array([_batches.draw_hypergeometric(stream, good, bad, sample) for _ in range(draws)])


@numba.njit
def many_binomial(stream, n, p, draws):
    return np.array([_batches.draw_binomial(stream, n, p) for _ in range(draws)])


@numba.njit
def many_lengths(stream, table, met, n, draws):
    return np.array([_epochs.draw_length(stream, table, met, n) for _ in range(draws)])


def fresh_stream(seed: int) -> np.ndarray:
    return seed_streams(seed, 2, np.arange(1))[0]


def law_p(drawn: np.ndarray, law) -> float:
    """p of draws under a law of scipy, in at most 50 classes of like probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 51)[1:-1]))
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    low, high = law.support()
    if drawn.min() < low or drawn.max() > high:
        return 0.0
    return chi_square_p(observed, np.diff(np.concatenate([[0], law.cdf(edges), [1]])))


@pytest.mark.parametrize(
    ("good", "bad", "sample"),
    [(3, 4, 5), (1, 99, 40), (50, 50, 50), (40, 600, 300), (600, 40, 300), (600, 40, 500), (300, 340, 600),
     (10**4, 10**6, 2000), (4 * 10**5, 6 * 10**5, 627), (6 * 10**5, 4 * 10**5, 627), (5 * 10**9, 7 * 10**9, 60_000)],
)  # fmt: skip
def test_hypergeometric_draws(good: int, bad: int, sample: int) -> None:
    drawn = many_hypergeometric(fresh_stream(1), good, bad, sample, 100_000)
    assert law_p(drawn, hypergeom(good + bad, good, sample)) > ALPHA
    assert law_p(drawn, hypergeom(good + bad, good + 1 + good // 20, sample)) < ALPHA


def test_hypergeometric_draws_at_the_ends() -> None:
    ends = {(5, 0, 3): 3, (0, 5, 3): 0, (5, 7, 0): 0, (5, 7, 12): 5, (1, 0, 1): 1}
    for (good, bad, sample), expected in ends.items():
        assert (many_hypergeometric(fresh_stream(1), good, bad, sample, 10) == expected).all()


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.5), (7, 0.3), (40, 0.999), (300, 0.2), (300, 0.8), (10**6, 1e-6), (10**9, 0.5)]
)
def test_binomial_draws(n: int, p: float) -> None:
    drawn = many_binomial(fresh_stream(2), n, p, 100_000)
    other = p * 0.95 if n < 10**9 else p * (1 - 2e-6)
    assert law_p(drawn, binom(n, p)) > ALPHA
    assert law_p(drawn, binom(n, other)) < ALPHA


def test_binomial_draws_at_the_ends() -> None:
    for n, p, expected in [(9, 0.0, 0), (9, 1.0, 9), (0, 0.3, 0)]:
        assert (many_binomial(fresh_stream(1), n, p, 10) == expected).all()


def covered(pmf: np.ndarray, mean: float, variance: float, scale: float = 1.0) -> bool:
    """Whether the rectangle of the ratio of uniforms holds all points below sqrt(pmf / max pmf)."""
    half = scale * (_batches.HAT_SLOPE * math.sqrt(variance + 0.5) + _batches.HAT_SHIFT) / 2
    k = np.arange(len(pmf))
    reach = np.maximum(np.abs(k - mean - 0.5), np.abs(k + 1 - mean - 0.5))
    return bool((reach * np.sqrt(pmf / pmf.max()) <= half).all())


def test_rejection_covers_the_whole_law() -> None:
    """The constants of the hat come from a fit in the literature; where it fell short draws would be biased."""
    for n, p in itertools.product([61, 100, 1000, 30_000], [0.5, 0.3, 0.05, 0.002]):
        if n * p > _batches.INVERSION_MEAN:
            pmf = binom.pmf(np.arange(n + 1), n, p)
            assert covered(pmf, n * p, n * p * (1 - p))
            assert not covered(pmf, n * p, n * p * (1 - p), scale=0.9)
    for total, few, drawn in itertools.product([130, 400, 5000, 10**6], [0.5, 0.3, 0.02], [0.5, 0.25, 0.01]):
        few, drawn = round(few * total), round(drawn * total)
        if few * drawn > _batches.INVERSION_MEAN * total:
            law = hypergeom(total, few, drawn)
            pmf = law.pmf(np.arange(min(few, drawn) + 1))
            assert covered(pmf, law.mean(), law.var())
            assert not covered(pmf, law.mean(), law.var(), scale=0.9)


@pytest.mark.parametrize(
    ("a", "d"), [(0, 5), (5, -5), (20, 300), (300, -290), (300, 17), (10**6, -400), (10**12, 3000)]
)
def test_log_factorial_ratio(a: int, d: int) -> None:
    terms = range(a + 1, a + d + 1) if d > 0 else range(a + d + 1, a + 1)
    expected = math.copysign(math.fsum(map(math.log, terms)), d)
    assert _batches.log_factorial_ratio(a, d) == pytest.approx(expected, rel=1e-14, abs=1e-11)


@pytest.mark.parametrize(("n", "met"), [(2, 0), (3, 0), (3, 1), (6, 0), (6, 3), (30, 0), (30, 7), (30, 30), (1001, 60)])
def test_agents_are_met_again_as_in_the_birthday_problem(n: int, met: int) -> None:
    table = _epochs.log_survival(n, 2 * n)[met::2]
    lengths = range(len(table))
    exact = [math.prod((n - met - k) / (n - k % 2) for k in range(2 * length)) for length in lengths]
    np.testing.assert_allclose(np.exp(table - table[0]), exact, rtol=1e-12)
    drawn = many_lengths(fresh_stream(3), _epochs.log_survival(n, 2 * n), met, n, 100_000)
    observed = np.bincount(drawn, minlength=len(exact))
    assert chi_square_p(observed, -np.diff([*exact, 0])) > ALPHA
    if n > 3 and met < n:  # with two or three agents the second interaction always meets one again
        later = met + max(1, met // 10)
        others = [math.prod((n - later - k) / (n - k % 2) for k in range(2 * length)) for length in lengths]
        assert chi_square_p(observed, -np.diff([*others, 0])) < ALPHA


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


def naming_array() -> np.ndarray:
    P = np.zeros((3, 3, 3, 3))
    for before, after, probability in NAMING:
        P[(*before, *after)] += probability
    return P


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


def one_interaction(P: np.ndarray, n: int, pair_law=ordered_pairs) -> np.ndarray:
    """Transition matrix of the counts."""
    places = {counts: k for k, counts in enumerate(compositions(n))}
    matrix = np.zeros((len(places), len(places)))
    for counts, k in places.items():
        for i, j in itertools.product(range(3), repeat=2):
            pairs = pair_law(counts, i, j)
            for i_, j_ in itertools.product(range(3), repeat=2) if pairs else ():
                after = np.array(counts)
                np.add.at(after, [i, j, i_, j_], [-1, -1, 1, 1])
                matrix[k, places[tuple(after.tolist())]] += pairs * P[i, j, i_, j_]
    return matrix + np.diag(1 - matrix.sum(axis=1))


def absorption_law(matrix: np.ndarray, start: int, target: np.ndarray, last: int) -> np.ndarray:
    """P(all agents are in the target for the first time after 0, 1, …, last interactions, later)."""
    x = np.eye(len(matrix))[start]
    law = []
    for _ in range(last + 1):
        law.append(x[target].sum())
        x = np.where(target, 0, x) @ matrix
    return np.array([*law, max(0.0, 1 - sum(law))])


def time_counts(simulation: xr.Dataset, last: int) -> np.ndarray:
    time = simulation["absorbed_interaction"].fillna(last + 1).values.astype(int)
    return np.bincount(time, minlength=last + 2)


def place_counts(counts: np.ndarray, n: int) -> np.ndarray:
    return np.array([(counts == place).all(axis=1).sum() for place in compositions(n)])


SYSTEMS = {
    # transitions, start, states of the group whose first passage is looked at
    "generic": (generic_transitions(), (2, 1, 3), [0, 1]),
    "naming": (naming_array(), (3, 3, 0), [0]),
}


@BOTH
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("n_rounds", [1, 2])
def test_counts_have_the_exact_law(system: str, n_rounds: int, method: str) -> None:
    P, start, _ = SYSTEMS[system]
    simulation = reactions.simulate(
        P, start, runs=40_000, seed=1, max_rounds=n_rounds, record_rounds=n_rounds, method=method
    )
    assert (simulation["count"].sel(round=n_rounds) == simulation["final_count"]).all()
    observed = place_counts(simulation["final_count"].values, 6)
    place = compositions(6).index(start)

    def p_of(matrix: np.ndarray, interactions: int = 6 * n_rounds) -> float:
        return chi_square_p(observed, np.linalg.matrix_power(matrix, interactions)[place])

    assert p_of(one_interaction(P, 6)) > ALPHA
    assert p_of(one_interaction(P, 6, with_itself)) < ALPHA
    assert p_of(one_interaction(P, 6, drawn_by_state)) < ALPHA
    assert p_of(one_interaction(P, 6), 6 * n_rounds + 1) < ALPHA


@BOTH
@pytest.mark.parametrize("start", [(1, 1, 0), (1, 1, 1), (3, 2, 2)])
def test_counts_of_few_and_of_odd_numbers_have_the_exact_law(start: tuple[int, int, int], method: str) -> None:
    P, n = generic_transitions(), sum(start)
    simulation = reactions.simulate(P, start, runs=40_000, seed=10, max_rounds=2, method=method)
    observed = place_counts(simulation["final_count"].values, n)
    place = compositions(n).index(start)
    for pair_law, holds in ((ordered_pairs, True), (with_itself, False)):
        law = np.linalg.matrix_power(one_interaction(P, n, pair_law), 2 * n)[place]
        assert (chi_square_p(observed, law) > ALPHA) == holds


@BOTH
@pytest.mark.parametrize("system", SYSTEMS)
def test_absorption_has_the_exact_law(system: str, method: str) -> None:
    P, start, group = SYSTEMS[system]
    last = 20 * 6
    simulation = reactions.simulate(
        P, start, runs=20_000, seed=2, max_rounds=20, absorbing={"group": group}, method=method
    )
    observed = time_counts(simulation, last)
    places = np.array(compositions(6))
    target = places[:, group].sum(axis=1) == 6
    place = compositions(6).index(start)

    def p_of(matrix: np.ndarray) -> float:
        return chi_square_p(observed, absorption_law(matrix, place, target, last))

    assert 0.1 < simulation["absorbed_group"].isin(["group"]).mean() < 1
    assert p_of(one_interaction(P, 6)) > ALPHA
    assert p_of(one_interaction(P, 6, with_itself)) < ALPHA
    absorbed = simulation["absorbed_interaction"].notnull().values
    assert (simulation["final_count"].values[absorbed][:, group].sum(axis=1) == 6).all()


@BOTH
def test_the_place_of_absorption_has_the_exact_law(method: str) -> None:
    """Where the group is reached matters inside a batch: its later interactions must not count."""
    P, start, group = SYSTEMS["generic"]
    simulation = reactions.simulate(
        P, start, runs=20_000, seed=3, max_rounds=2000, absorbing={"group": group}, method=method
    )
    matrix = one_interaction(P, 6)
    places = np.array(compositions(6))
    target = places[:, group].sum(axis=1) == 6
    transient = np.linalg.solve(np.eye((~target).sum()) - matrix[~target][:, ~target], matrix[~target][:, target])
    law = np.zeros(len(places))
    law[target] = transient[list(np.flatnonzero(~target)).index(compositions(6).index(start))]
    assert simulation["absorbed_interaction"].notnull().all()
    observed = place_counts(simulation["final_count"].values, 6)
    one_later = np.where(target, law, 0) @ matrix
    assert chi_square_p(observed, law) > ALPHA
    assert chi_square_p(observed[target], one_later[target] / one_later[target].sum()) < ALPHA


# --- epochs of several collisions, at sizes of which the law is known ---


def in_epochs_of(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protocol, "_epoch_length", lambda n_agents, n_states: length)


def final_counts(start: tuple[int, ...]) -> np.ndarray:
    """Counts of places after two rounds in batches."""
    simulation = reactions.simulate(generic_transitions(), start, runs=100_000, seed=14, max_rounds=2, method="batches")
    return place_counts(simulation["final_count"].values, sum(start))


SLOW = pytest.mark.slow


@pytest.mark.parametrize("length", [1, 2, pytest.param(5, marks=SLOW), 12])
@pytest.mark.parametrize("start", [(1, 1, 1), pytest.param((2, 1, 4), marks=SLOW), (3, 2, 7)])
def test_epochs_have_the_exact_law(start: tuple[int, ...], length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 12 interactions of 3, 7 or 12 agents, most of which meet an agent again; rounds cut some epochs short."""
    n, place = sum(start), compositions(sum(start)).index(start)
    in_epochs_of(length, monkeypatch)
    laws = [one_interaction(generic_transitions(), n, pair_law) for pair_law in (ordered_pairs, with_itself)]
    right, wrong = (np.linalg.matrix_power(matrix, 2 * n)[place] for matrix in laws)
    observed = final_counts(start)
    assert chi_square_p(observed, right) > ALPHA
    assert chi_square_p(observed, wrong) < ALPHA


@pytest.mark.parametrize("hazard", [0.2, 0.0])
def test_epochs_of_too_few_collisions_fail(hazard: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents met again a fifth as often as they should be, or not before all were met: the criterion must see it."""
    start, n = (3, 2, 7), 12
    law = np.linalg.matrix_power(one_interaction(generic_transitions(), n), 2 * n)[compositions(n).index(start)]
    in_epochs_of(12, monkeypatch)
    monkeypatch.setattr(_protocol, "log_survival", lambda *numbers: hazard * _epochs.log_survival(*numbers))
    assert chi_square_p(final_counts(start), law) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, pytest.param(3, marks=SLOW), 12])
def test_absorption_between_epochs_has_the_exact_law(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of 2 and of 3 while 5 and 7 agents are outside the group, batches from then on; 12 are never safe."""
    start, group, last = (1, 2, 7), [0, 1], 20 * 10
    in_epochs_of(length, monkeypatch)
    simulation = reactions.simulate(
        generic_transitions(), start, runs=40_000, seed=15, max_rounds=20, absorbing={"g": group}, method="batches"
    )
    observed = time_counts(simulation, last)
    target = np.array(compositions(10))[:, group].sum(axis=1) == 10
    place = compositions(10).index(start)
    right, wrong = (
        absorption_law(one_interaction(generic_transitions(), 10, pair_law), place, target, last)
        for pair_law in (ordered_pairs, with_itself)
    )
    assert chi_square_p(observed, right) > ALPHA
    assert chi_square_p(observed, wrong) < ALPHA
    absorbed = simulation["absorbed_interaction"].notnull().values
    assert absorbed.mean() > 0.1
    assert (simulation["final_count"].values[absorbed][:, group].sum(axis=1) == 10).all()


def test_no_safe_interactions_fill_a_group() -> None:
    """Each moves at most two agents into it."""
    outside = np.array([[0, 1, 1], [1, 0, 0]])
    for counts, expected in [((50, 20, 9), 14), ((9, 3, 2), 2), ((9, 2, 0), 0), ((4, 90, 0), 1), ((0, 1, 0), -1)]:
        others = outside @ counts
        assert safe_length(outside, np.array(counts), 20) == expected
        assert expected == min((others.min() - 1) // 2, 20)
    assert safe_length(outside, np.array([900, 900, 900]), 20) == 20


@BOTH
def test_every_interaction_is_counted_once(method: str) -> None:
    P = generic_transitions()
    rows = [Transition((i, j), (k, m), P[i, j, k, m], True) for i, j, k, m in np.argwhere(P > 0).tolist()]
    for start in ([5, 7, 9], [4000, 3000, 2000]):
        simulation = reactions.simulate(rows, start, runs=20, seed=1, max_rounds=3, record_rounds=3, method=method)
        assert (simulation["marked_share"].isel(round=slice(1, None)) == 1).all()
        assert (simulation["count"] >= 0).all() and (simulation["count"].sum("state") == sum(start)).all()


def test_marked_interactions_of_large_populations_follow_their_rate() -> None:
    """The protocol is at rest, and most interactions of a batch are drawn together."""
    n = 10**6
    rows = [Transition((0, 1), (1, 0), 0.5, marked=True), Transition((1, 1), (1, 1), marked=True)]
    simulation = reactions.simulate(rows, [3 * n // 5, 2 * n // 5], runs=10, seed=1, max_rounds=2, record_rounds=2)
    marked = int((simulation["marked_share"].isel(round=slice(1, None)) * n).round().sum())
    assert abs(z_of(marked, 20 * n, 0.6 * 0.4 * 0.5 + 0.4 * (0.4 * n - 1) / (n - 1))) < Z
    assert abs(z_of(marked, 20 * n, 0.6 * 0.4 * 0.5 + 0.4**2 * 0.995)) > Z


# --- voter model and Moran process ---


@BOTH
def test_neutral_voter_fixation_is_the_initial_share(method: str) -> None:
    runs = 20_000 if method == "agents" else 5_000
    simulation = reactions.simulate(
        VOTER, {"A": 15, "B": 35}, runs=runs, seed=4, max_rounds=10_000, absorbing=UNANIMOUS, method=method
    )
    wins = int((simulation["absorbed_group"] == "A").sum())
    assert simulation["absorbed_interaction"].notnull().all()
    assert abs(z_of(wins, runs, 0.3)) < Z
    assert abs(z_of(wins, runs, 0.34)) > Z


@BOTH
def test_voter_with_zealots_is_betabinomial(method: str) -> None:
    """k of n free agents hold A: up with (z_A + k)(n - k), down with (z_B + n - k)k, over N(N - 1) for distinct pairs.

    Detailed balance gives BetaBinomial(n, z_A, z_B); N(N - 1) cancels.
    """
    n, z_a, z_b = 20, 2, 3
    zealous = [(("ZA", "B"), ("ZA", "A")), (("ZB", "A"), ("ZB", "B"))]
    counts = {"A": 0, "B": n, "ZA": z_a, "ZB": z_b}
    runs = 20_000 if method == "agents" else 6_000
    simulation = reactions.simulate(VOTER + zealous, counts, runs=runs, seed=5, max_rounds=60, method=method)
    observed = np.bincount(simulation["final_count"].sel(state="A"), minlength=n + 1)
    support = np.arange(n + 1)
    assert (simulation["final_count"].sel(state=["ZA", "ZB"]) == [z_a, z_b]).all()
    assert chi_square_p(observed, betabinom.pmf(support, n, z_a, z_b)) > ALPHA
    assert chi_square_p(observed, betabinom.pmf(support, n, z_a + 0.5, z_b)) < ALPHA
    assert chi_square_p(observed, binom.pmf(support, n, z_a / (z_a + z_b))) < ALPHA


@BOTH
def test_moran_fixation(method: str) -> None:
    """A initiator always turns a B responder, B turns A with probability 1/r: of the changes the share r/(1 + r) is up.

    That is the jump chain of the Moran process, hence its fixation probability (1 - 1/r)/(1 - r^-N) from one mutant.
    """
    r, n, exact = 1.1, 100, 0.0909156883
    runs = 40_000 if method == "agents" else 5_000
    moran = [VOTER[0], (*VOTER[1], 1 / r)]
    simulation = reactions.simulate(
        moran, {"A": 1, "B": n - 1}, runs=runs, seed=6, max_rounds=100_000, absorbing=UNANIMOUS, method=method
    )
    wins = int((simulation["absorbed_group"] == "A").sum())
    assert exact == pytest.approx((1 - 1 / r) / (1 - r**-n), abs=1e-10)
    assert abs(z_of(wins, runs, exact)) < Z
    assert abs(z_of(wins, runs, exact - 0.025)) > Z


# --- one method against the other ---


def naming_runs(method: str, seed: int, rows: list = NAMING) -> xr.Dataset:
    options = {"runs": 1500, "max_rounds": 300, "record_rounds": 5, "absorbing": CONSENSUS}
    return reactions.simulate(rows, (300, 200, 0), seed=seed, method=method, **options)


def test_both_methods_agree() -> None:
    agents, batches = naming_runs("agents", 7), naming_runs("batches", 8)
    listener = [(before, (before[0], after[1]), p) for before, after, p in NAMING]
    other = naming_runs("agents", 7, rows=listener)
    for observable in (
        lambda s: s["absorbed_interaction"].fillna(np.inf),
        lambda s: s["count"].sel(round=5, state=0),
        lambda s: s["count"].sel(round=5, state=2),
    ):
        assert ks_2samp(observable(agents), observable(batches)).pvalue > ALPHA
        assert ks_2samp(observable(other), observable(batches)).pvalue < ALPHA


def test_both_methods_agree_for_many_states() -> None:
    rng = np.random.default_rng(13)
    n_states = 30
    pairs = list(itertools.product(range(n_states), repeat=2))
    rows = [(pair, tuple(rng.integers(n_states, size=2).tolist()), p) for pair in pairs for p in (0.2, 0.3, 0.5)]
    start = rng.integers(10, 60, n_states)
    final = [
        reactions.simulate(rows, start, runs=1500, seed=9, max_rounds=2, method=method)["final_count"]
        for method in ("agents", "batches")
    ]
    later = reactions.simulate(rows, start, runs=1500, seed=9, max_rounds=1, method="batches")["final_count"]
    for state in range(n_states):
        assert ks_2samp(*(counts.sel(state=state) for counts in final)).pvalue > ALPHA
    assert min(ks_2samp(final[0].sel(state=s), later.sel(state=s)).pvalue for s in range(n_states)) < ALPHA


def test_large_populations_follow_the_rate_equation() -> None:
    """At N = 10^9 a round differs from the mean field by about 1/√N; a tenth of a percent would be seen."""
    n = 10**9
    simulation = reactions.simulate(NAMING, [3 * n // 5, 2 * n // 5, 0], runs=2, seed=1, max_rounds=1, method="auto")
    drift, x, steps = theory.minimal_naming_game.reaction_model().drift, np.array([0.6, 0.4, 0, 0, 0]), 4000
    for _ in range(steps):  # by midpoints, in the engine's time: two units are a round
        x = x + 2 * drift(x + drift(x) / steps) / steps
    np.testing.assert_allclose(simulation["final_count"] / n, np.tile(x[:3], (2, 1)), atol=5e-5)


# --- conventions and reproducibility ---


@BOTH
def test_runs_are_reproducible(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"seed": 3, "max_rounds": 60, "record_rounds": 10, "absorbing": CONSENSUS, "method": method}
    whole = reactions.simulate(NAMING, [20, 15, 5], runs=200, **arguments)
    xr.testing.assert_identical(whole, reactions.simulate(NAMING, [20, 15, 5], runs=200, **arguments, progress=True))
    part = reactions.simulate(NAMING, [20, 15, 5], runs=70, **arguments)
    xr.testing.assert_equal(whole.isel(run=slice(70)), part)
    other = reactions.simulate(NAMING, [20, 15, 5], runs=200, **(arguments | {"seed": 4}))
    assert (other["final_count"] != whole["final_count"]).any()
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        monkeypatch.setattr("validation._engine.ensemble.STATE_BYTES", 2000)
        monkeypatch.setattr("validation._engine.ensemble.INTERACTIONS_A_CALL", 3000)
        xr.testing.assert_identical(whole, reactions.simulate(NAMING, [20, 15, 5], runs=200, **arguments))
    finally:
        numba.set_num_threads(threads)


@BOTH
def test_recording_does_not_change_the_runs(method: str) -> None:
    arguments = {"runs": 300, "seed": 3, "max_rounds": 12, "absorbing": CONSENSUS, "method": method}
    plain = reactions.simulate(NAMING, [20, 15, 5], **arguments)
    recorded = reactions.simulate(NAMING, [20, 15, 5], **arguments, record_rounds=12)
    assert 0 < plain["absorbed_round"].notnull().mean() < 1
    for name in plain.data_vars:
        xr.testing.assert_equal(plain[name], recorded[name])
    assert (recorded["count"].sum("state") == 40).all()
    np.testing.assert_array_equal(recorded["count"].sel(round=0, run=0), [20, 15, 5])
    absorbed = recorded["absorbed_round"] <= recorded["round"]
    assert ((recorded["count"].max("state") == 40) == absorbed).all()


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
    simulation = reactions.simulate(
        VOTER, {"A": 5, "B": 0}, runs=3, seed=0, max_rounds=5, absorbing=UNANIMOUS, method=method
    )
    assert (simulation["absorbed_interaction"] == 0).all()
    assert (simulation["absorbed_group"] == "A").all()


@BOTH
def test_marked_interactions_are_counted(method: str) -> None:
    """A silent protocol keeps its counts, so that marked pairs come with their share of the ordered pairs."""
    rows = [Transition((0, 1), (0, 1), 0.5, marked=True), Transition((1, 1), (1, 1), marked=True)]
    simulation = reactions.simulate(rows, [30, 20], runs=200, seed=1, max_rounds=50, record_rounds=50, method=method)
    marked = int((simulation["marked_share"].isel(round=slice(1, None)) * 50).round().sum())
    expected = (30 * 20 * 0.5 + 20 * 19) / (50 * 49)
    assert simulation["marked_share"].isel(round=0).isnull().all()
    assert abs(z_of(marked, 200 * 50 * 50, expected)) < Z
    assert abs(z_of(marked, 200 * 50 * 50, expected * 50 / 49)) > Z


def test_forms_of_transitions_are_the_same() -> None:
    arguments = {"runs": 50, "seed": 1, "max_rounds": 3}
    states = ("A", "B", "AB")
    named = [([states[i] for i in before], [states[i] for i in after], p) for before, after, p in NAMING]
    by_name = reactions.simulate(named, dict.fromkeys(states, 7), **arguments)
    by_number = reactions.simulate([Transition(*row) for row in NAMING], [7, 7, 7], **arguments)
    by_array = reactions.simulate(naming_array(), np.array([7, 7, 7]), **arguments)
    assert by_name["state"].values.tolist() == list(states)
    np.testing.assert_array_equal(by_name["final_count"], by_number["final_count"])
    # rows in another order take other bits
    np.testing.assert_array_equal(by_array["final_count"].sum("state"), 21)


def test_saved_and_loaded(tmp_path: Path) -> None:
    simulation = reactions.simulate(
        VOTER, {"A": 5, "B": 5}, runs=50, seed=1, max_rounds=5, record_rounds=2, absorbing=UNANIMOUS
    )
    assert 0 < simulation["absorbed_round"].isnull().mean() < 1
    loaded = meanfield.load(meanfield.save(simulation, tmp_path / "protocol.nc"))
    xr.testing.assert_equal(simulation, loaded)
    assert loaded.attrs["kind"] == "protocol_simulation" and loaded.attrs["option_seed"] == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"counts": 5}, "counts = 5: expected {state: number of agents} or a list of numbers"),
        ({"counts": {"A": 1, "B": 0}}, "counts sum to 1: expected 2 to"),
        ({"counts": {"A": 5, "B": -1}}, "counts['B'] = -1: expected a whole number of at least 0"),
        ({"counts": {"A": 5, "B": 1.5}}, "counts['B'] = 1.5"),
        ({"counts": {"A": 5}}, "counts has 1 states: expected 2 to 256"),
        ({"counts": {0: 5, 1: 5}}, "counts = "),
        ({"transitions": [(("A", "C"), ("A", "A"))]}, "transitions has (('A', 'C'), ('A', 'A')): expected ((i, j), "),
        ({"transitions": [(("A", "B"), ("A", "A"), 1.2)]}, "transitions has"),
        ({"transitions": [(("A", "B"), ("A", "A"), float("nan"))]}, "transitions has"),
        ({"transitions": [("A", "B")]}, "transitions has"),
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
        ({"counts": {"A": 2**40, "B": 0}, "method": "agents"}, "counts sum to 1099511627776: expected"),
        ({"counts": {"A": 2**33, "B": 0}, "method": "agents"}, "counts sum to 8589934592: expected at most 4294967295"),
    ],
)
def test_bad_input_is_named(wrong: dict, message: str) -> None:
    arguments = {"transitions": VOTER, "counts": {"A": 5, "B": 5}, "runs": 1, "seed": 0, "max_rounds": 10, **wrong}
    with pytest.raises(InputError) as error:
        reactions.simulate(arguments.pop("transitions"), arguments.pop("counts"), **arguments)
    assert str(error.value).startswith(message)


def test_the_criterion_itself() -> None:
    """A true law is rejected at the rate stated."""
    law = np.array([0.2, 0.3, 0.5])
    draws = np.random.default_rng(9).multinomial(1000, law, 2000)
    rejected = sum(chi_square_p(observed, law) < 0.05 for observed in draws)
    assert abs(z_of(rejected, 2000, 0.05)) < Z


# --- reaction models ---

EPIDEMIC = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [1.0, 0.5])


def time_to_extinction(n_agents: int, start: int, infection: float = 1.0) -> float:
    """Mean time to extinction of the epidemic among so many agents, from its birth and death chain."""
    n = np.arange(1, n_agents + 1)
    infected, healed = infection * n * (n_agents - n) / (n_agents - 1), 0.5 * n
    rates = np.diag(-infected - healed) + np.diag(infected[:-1], 1) + np.diag(healed[1:], -1)
    return np.linalg.solve(rates, -np.ones(n_agents))[start - 1]


def test_extinction_takes_as_long_as_in_the_exact_chain():
    options = {"runs": 4000, "seed": 3, "max_rounds": 10**6, "absorbing": {"healthy": ["S"]}}
    time = reactions.simulate(EPIDEMIC, {"I": 10, "S": 10}, **options)["absorbed_time"]
    error = time.std().item() / math.sqrt(len(time))
    assert abs(time.mean().item() - time_to_extinction(20, 10)) < Z * error
    assert abs(time.mean().item() - time_to_extinction(20, 10, 1.05)) > Z * error


def test_models_and_their_protocols_have_one_law():
    """The array merges channels, so that runs differ: the counts after a while are compared."""
    options = {"runs": 2000, "seed": 1, "max_rounds": 6}
    model, array = (
        reactions.simulate(rules, [40, 60], **options)["final_count"].values[:, 1]
        for rules in (EPIDEMIC, EPIDEMIC.protocol()[0])
    )
    assert ks_2samp(model, array).pvalue > ALPHA
    slower = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [0.8, 0.5])
    other = reactions.simulate(slower, [40, 60], **options)["final_count"].values[:, 1]
    assert ks_2samp(other, array).pvalue < ALPHA


def test_models_have_their_own_time_and_all_their_states():
    model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "R"}, [1.0, 0.5], time_unit="day")
    runs = reactions.simulate(model, {"S": 9, "I": 1}, runs=2, seed=1, max_rounds=3, record_rounds=3)
    assert runs["state"].values.tolist() == ["S", "I", "R"]
    np.testing.assert_allclose(runs["time"], np.arange(4) / 1.5)  # an encounter and half a recovery a day
    assert runs["time"].attrs["units"] == "day"
    options = {"runs": 2, "seed": 1, "max_rounds": 3, "absorbing": {"over": ["S", "R"]}}
    listed, named = (reactions.simulate(model, counts, **options) for counts in ([9, 1, 0], {"I": 1, "S": 9}))
    xr.testing.assert_identical(listed, named)
    with pytest.raises(InputError, match=r"counts has \['X'\]: expected states of the model, \['S', 'I', 'R'\]"):
        reactions.simulate(model, {"X": 9, "I": 1}, runs=2, seed=1, max_rounds=3)
    with pytest.raises(InputError, match=r"counts = \[9, 1\]: expected 3 numbers of agents"):
        reactions.simulate(model, [9, 1], runs=2, seed=1, max_rounds=3)


def drawn_to(beta: float, alone: float) -> meanfield.ReactionModel:
    """Agents who see all others, and some who meet one; and who give up by themselves."""

    def up(x):
        return (1 + jnp.tanh(beta * (x["up"] - x["down"]))) / 2

    rules = [("down", "up"), ("up", "down"), ("down + up", "2 up"), ("up", "down")]
    return meanfield.ReactionModel.from_rules(rules, [up, lambda x: 1 - up(x), 0.5, alone])


def counts_after(n_agents: int, start: int, interactions: int, beta: float, alone: float) -> np.ndarray:
    """The law of the number that are up, an interaction after the other: 0.5 + alone + s of them per agent and time."""
    n = np.arange(n_agents + 1)
    up = (1 + np.tanh(beta * (2 * n / n_agents - 1))) / 2
    most = max(up[:-1].max(), (1 - up[1:]).max())
    rise = (n_agents - n) * (up + 0.5 * n / (n_agents - 1)) / n_agents / (0.5 + alone + most)
    fall = n * (1 - up + alone) / n_agents / (0.5 + alone + most)
    step = np.diag(rise[:-1], -1) + np.diag(fall[1:], 1) + np.diag(1 - rise - fall)
    return np.linalg.matrix_power(step, interactions)[:, start]


def test_rates_that_are_functions_have_the_law_of_the_exact_chain():
    options = {"runs": 20_000, "seed": 5, "max_rounds": 3}
    runs = reactions.simulate(drawn_to(1.5, 0.2), {"up": 8, "down": 12}, **options)
    counts = np.bincount(runs["final_count"].sel(state="up"), minlength=21)
    for beta, fits in ((1.5, True), (1.3, False)):
        law = counts_after(20, 8, 60, beta, 0.2)
        assert (chi_square_p(counts, law) > ALPHA) == fits


def test_rates_that_are_functions_end_in_absorption_and_say_their_limits():
    model = meanfield.ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: x["I"], 0.5])
    options = {"runs": 4000, "seed": 3, "max_rounds": 10**6, "absorbing": {"healthy": ["S"]}}
    runs = reactions.simulate(model, {"I": 10, "S": 10}, **options)
    time = runs["absorbed_time"]
    error = time.std().item() / math.sqrt(len(time))
    # Agents who count all 20 meet 19/20 as many ill ones
    assert abs(time.mean().item() - time_to_extinction(20, 10, 0.95)) < Z * error
    assert abs(time.mean().item() - time_to_extinction(20, 10)) > Z * error
    with pytest.raises(InputError, match="method = 'batches': expected 'agents' for rates that are functions"):
        reactions.simulate(model, [9, 1], runs=2, seed=1, max_rounds=3, method="batches")
    many = meanfield.ReactionModel.from_rules({"A": "B", "B": "C", "C": "D"}, lambda x: 1 - x["A"])
    with pytest.raises(InputError, match=r"counts has 10000 agents in 4 states: would take .* take fewer of either"):
        reactions.simulate(many, [10_000, 0, 0, 0], runs=2, seed=1, max_rounds=3)
