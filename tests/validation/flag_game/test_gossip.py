"""Gossip on private evidence against its equations by hand, exact distributions of small systems and limits.

Error budget: every stochastic test accepts a true statement with probability 1 - 1e-5 or more for an arbitrary seed;
there are fewer than 40 comparisons, so that together they fail falsely for less than one seed in 2,500. Each has a
control that the same criterion must reject.
"""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chisquare

from meanfield import InputError
from theory.flag_game import gossip
from validation.flag_game._gossip import simulate_gossip

ALPHA = 1e-5
Z = 4.5  # two-sided 7e-6
COUNTRIES = ["Peru", "Mali", "Chad", "Italy"]


def z_of(sample: np.ndarray, mean: float) -> float:
    return float((sample.mean() - mean) / (sample.std(ddof=1) / math.sqrt(len(sample))))


def random_crops(seed: int, n_agents: int, n_labels: int, zeros: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_labels), n_agents) * (rng.random((n_agents, n_labels)) >= zeros)
    p[np.arange(n_agents), rng.integers(0, n_labels, n_agents)] += 0.1
    return p / p.sum(1, keepdims=True)


def updated(x, message, p, C, uptake, rewrite):
    """[002] Eqs. 5, 6, 10, 11 as printed; `C` has the country heard last."""
    heard = (1 - rewrite) * message + rewrite * (C @ message) / (C @ message).sum()
    v = (1 - uptake) * x + uptake * heard
    return v * p / (v * p).sum()


def maps_of(p: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    return np.stack([np.diag(row) @ similarity for row in p])


SIMILARITY = np.array([[1, 0.3, 0.1, 0], [0.2, 1, 0.5, 0.1], [0.1, 0.4, 1, 0.2], [0, 0.3, 0.2, 1.0]])
TEAM = {"uptake": [0.3, 0.7, 0.5], "rewrite": [0.0, 0.6, 1.0]}


# --- one step against the equations ---


@pytest.mark.slow
def test_broadcast_of_whole_beliefs_is_the_equation() -> None:
    """With m = ∞ nothing is random: five rounds against the printed equations."""
    p = random_crops(1, 3, 4)
    C = maps_of(p, SIMILARITY)
    x = p.copy()
    for _ in range(5):
        heard = [(x.sum(0) - x[j]) / 2 for j in range(3)]
        x = np.stack([updated(x[j], heard[j], p[j], C[j], TEAM["uptake"][j], TEAM["rewrite"][j]) for j in range(3)])
    options = {"runs": 2, "seed": 0, "bandwidth": math.inf, "protocol": "broadcast", "kappa": 5 / 3, "patience": None}
    found = simulate_gossip(p, rewrite_map=SIMILARITY, beliefs=True, **TEAM, **options)
    np.testing.assert_allclose(found["final_belief"], [x, x], rtol=1e-12)
    explicit = simulate_gossip(p, rewrite_map=C, beliefs=True, **TEAM, **options)
    np.testing.assert_allclose(explicit["final_belief"], [x, x], rtol=1e-12)
    literal = simulate_gossip(p, uptake=TEAM["uptake"], beliefs=True, **options)
    assert np.abs(literal["final_belief"] - x).max() > 0.05


def test_a_manager_pools_decides_and_is_heard() -> None:
    p = random_crops(2, 3, 4)
    C = maps_of(p, SIMILARITY)
    x, manager = p.copy(), np.full(4, 1 / 4)
    for _ in range(6):
        manager = 0.4 * manager + 0.6 * x.mean(0)
        decision = np.eye(4)[manager.argmax()]
        x = np.stack([updated(x[j], decision, p[j], C[j], TEAM["uptake"][j], TEAM["rewrite"][j]) for j in range(3)])
    options = {"runs": 2, "seed": 0, "bandwidth": math.inf, "kappa": 2, "patience": None, "beliefs": True}
    for rewrite_map in (SIMILARITY, C):
        found = simulate_gossip(p, rewrite_map=rewrite_map, protocol="manager", manager_uptake=0.6, **TEAM, **options)
        np.testing.assert_allclose(found["final_belief"], [x, x], rtol=1e-12)
        assert found["manager_report"].values.tolist() == [str(manager.argmax())] * 2


def test_one_interaction_has_the_exact_law() -> None:
    """N = 3, K = 3, m = 2: all 18 outcomes, by listener and labels heard, with their probabilities."""
    p = random_crops(3, 3, 3)
    similarity = SIMILARITY[:3, :3]
    C = maps_of(p, similarity)
    outcomes: dict[tuple, float] = {}
    for i, j in itertools.permutations(range(3), 2):
        for labels in itertools.combinations_with_replacement(range(3), 2):
            message = np.eye(3)[list(labels)].mean(0)
            x = p.copy()
            x[j] = updated(p[j], message, p[j], C[j], TEAM["uptake"][j], TEAM["rewrite"][j])
            orders = 1 if labels[0] == labels[1] else 2
            outcome = tuple(x.round(9).ravel())
            outcomes[outcome] = outcomes.get(outcome, 0) + orders * p[i][list(labels)].prod() / 6
    found = simulate_gossip(
        p, runs=20_000, seed=4, bandwidth=2, rewrite_map=similarity, kappa=1 / 3, beliefs=True, **TEAM
    )
    beliefs = [tuple(row) for row in found["final_belief"].values.round(9).reshape(20_000, -1)]
    assert set(beliefs) <= set(outcomes)
    counts = np.array([beliefs.count(outcome) for outcome in outcomes])
    expected = 20_000 * np.array(list(outcomes.values()))
    assert chisquare(counts, expected).pvalue > ALPHA
    assert chisquare(counts, np.full(18, 20_000 / 18)).pvalue < ALPHA  # control


@pytest.mark.parametrize("protocol", ["pairwise", "manager"])
def test_lean_over_time_is_of_the_beliefs(protocol: str) -> None:
    """m and q of Eq. 8 at each probe, by hand from the beliefs of the same runs, ended there."""
    p, truth = random_crops(4, 5, 4), np.arange(6) % 3
    options = {"runs": 6, "seed": 7, "uptake": 0.5, "bandwidth": 2, "protocol": protocol, "patience": None}
    options |= {"truth": truth.tolist()}
    every = 5 if protocol == "pairwise" else 1
    found = simulate_gossip(p, rival=3, trajectories=True, kappa=3 * every / 5, probe_every=every, **options)
    assert found["m_path"].shape == found["q_path"].shape == (6, 4) and set(found["rival"].values) == {"3"}
    for probe in range(4):
        ended = simulate_gossip(p, beliefs=True, kappa=probe * every / 5, **options)["final_belief"].values
        s = ended[np.arange(6), :, truth] - ended[:, :, 3]
        np.testing.assert_allclose(found["m_path"][:, probe], s.mean(1), atol=1e-14)
        np.testing.assert_allclose(found["q_path"][:, probe], (s**2).mean(1), atol=1e-14)
        np.testing.assert_array_less(s.mean(1) ** 2 - 1e-12, found["q_path"][:, probe])


def test_lean_of_a_run_ends_with_it() -> None:
    found = simulate_gossip(voters(3, 3), runs=2, seed=0, uptake=0.5, truth=0, rival=1, trajectories=True, patience=2)
    assert found["m_path"].notnull().sum("probe").values.tolist() == [3, 3], "two probes after the start"
    assert (found["m_path"].fillna(1) == 1).all() and (found["q_path"].fillna(1) == 1).all()


# --- exact limits ---


@pytest.mark.parametrize("protocol", ["pairwise", "broadcast", "manager"])
def test_without_rewriting_uptake_is_literal(protocol: str) -> None:
    """γ = 0 with any C, and any γ with C = I, to the last bit; with another C it is not."""
    p, identity = random_crops(6, 6, 4), np.tile(np.eye(4), (6, 1, 1))
    options = {"uptake": 0.37, "bandwidth": 3, "protocol": protocol, "runs": 50, "seed": 5, "beliefs": True}
    literal = simulate_gossip(p, **options).drop_attrs()
    for rewrite, rewrite_map in ((0.0, SIMILARITY), (0.61, identity)):
        same = simulate_gossip(p, rewrite=rewrite, rewrite_map=rewrite_map, **options)
        xr.testing.assert_identical(literal, same.drop_attrs())
    rewritten = simulate_gossip(p, rewrite=0.61, rewrite_map=SIMILARITY, **options)
    assert np.abs(literal["final_belief"] - rewritten["final_belief"]).max() > 0.01


def test_a_flat_anchor_is_plain_gossip() -> None:
    beliefs = random_crops(7, 6, 28)
    flat = np.full((6, 28), 1 / 28)
    options = {"uptake": 0.4, "bandwidth": 3, "runs": 50, "seed": 8, "patience": None}
    anchored = simulate_gossip(flat, initial=beliefs, beliefs=True, **options)
    plain = simulate_gossip(beliefs, grounded=False, beliefs=True, **options)
    xr.testing.assert_identical(anchored.drop_attrs(), plain.drop_attrs())
    grounded = simulate_gossip(beliefs, beliefs=True, **options)
    assert np.abs(grounded["final_belief"] - plain["final_belief"]).max() > 0.1


def test_without_uptake_only_the_crop_acts() -> None:
    """α = 0: a listener's belief goes p → p², so after n listens it is p^(n + 1)."""
    p = random_crops(9, 4, 3)
    found = simulate_gossip(p, runs=1, seed=0, uptake=0.0, protocol="broadcast", kappa=1, beliefs=True, patience=None)
    power = p**5 / (p**5).sum(1, keepdims=True)
    np.testing.assert_allclose(found["final_belief"][0], power, rtol=1e-12)


# --- where denominators vanish ---


def test_a_listener_who_hears_nothing_compatible_keeps_its_crop() -> None:
    p = np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    options = {"runs": 200, "seed": 0, "kappa": 20, "patience": None, "beliefs": True}
    all_in = simulate_gossip(p, uptake=1.0, **options)["final_belief"].values
    nearly = simulate_gossip(p, uptake=1 - 1e-12, **options)["final_belief"].values
    assert np.isfinite(all_in).all()
    np.testing.assert_allclose(all_in, nearly, atol=1e-9)
    np.testing.assert_array_equal(all_in[:, 1], np.tile([0, 0, 1.0], (200, 1)))
    assert all_in[:, 0, 2].max() == 0 and all_in[:, 0, 1].mean() > 0.9  # p² and so on: sharper, and never outside


def test_a_message_that_the_map_sends_to_nothing_is_taken_literally() -> None:
    p = np.full((2, 3), 1 / 3)
    start = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    C = np.zeros((2, 3, 3))
    C[:, 2, 1] = 1.0  # a report of the second supports the third; one of the first supports nothing
    options = {"runs": 50, "seed": 0, "uptake": 0.5, "rewrite": 1.0, "initial": start, "kappa": 0.5, "beliefs": True}
    found = simulate_gossip(p, rewrite_map=C, **options)["final_belief"].values
    slightly = simulate_gossip(p, rewrite_map=C + 1e-12 * np.eye(3), **options)["final_belief"].values
    np.testing.assert_allclose(found, slightly, atol=1e-9)
    ends = {tuple(row) for row in found.reshape(50, -1)}
    assert ends == {(1.0, 0.0, 0.0, 0.5, 0.5, 0.0), (0.5, 0.0, 0.5, 0.0, 1.0, 0.0)}


@pytest.mark.parametrize("protocol", ["pairwise", "broadcast", "manager"])
def test_beliefs_stay_probabilities_on_the_support_of_the_crop(protocol: str) -> None:
    for seed in range(5):
        p = random_crops(seed, 5, 6, zeros=0.7)
        similarity = np.random.default_rng(seed).random((6, 6)) < 0.3
        team = {"uptake": [0, 0.2, 0.9, 1, 1], "rewrite": [1, 0.5, 0, 1, 0], "bandwidth": [1, 2, math.inf, 1, 3]}
        found = simulate_gossip(
            p, runs=20, seed=seed, rewrite_map=similarity, protocol=protocol, kappa=50, beliefs=True, **team
        )["final_belief"].values
        np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-12)
        assert found.min() >= 0 and found[:, p == 0].max(initial=0) == 0


# --- the moments of plain gossip ---


@pytest.mark.parametrize("bandwidth", [1, 2, math.inf])
def test_the_moment_equations_are_exact(bandwidth: float) -> None:
    """The expectation over all outcomes of one interaction of arbitrary beliefs, by enumeration."""
    N, K, alpha = 4, 3, 0.35
    x = np.random.default_rng(1).dirichlet(np.ones(K), N)
    after = np.zeros(2)
    for i, j in itertools.permutations(range(N), 2):
        said = [()] if bandwidth == math.inf else itertools.product(range(K), repeat=int(bandwidth))
        for labels in said:
            message = np.eye(K)[list(labels)].mean(0) if labels else x[i]
            y = x.copy()
            y[j] += alpha * (message - y[j])
            chance = math.prod(x[i][list(labels)]) / (N * (N - 1))
            after += chance * np.array([1 - (y.mean(0) ** 2).sum(), (1 - (y**2).sum(1)).mean()])
    group, agent = 1 - (x.mean(0) ** 2).sum(), (1 - (x**2).sum(1)).mean()
    options = {"n_agents": N, "uptake": alpha, "bandwidth": bandwidth, "group": group, "agent": agent}
    found = gossip.heterozygosity([0, 1], **options)
    np.testing.assert_allclose(found["group"], [group, after[0]], rtol=1e-13)
    np.testing.assert_allclose(found["agent"], [agent, after[1]], rtol=1e-13)


def test_heterozygosity_falls_at_known_rates_at_first_and_at_last() -> None:
    """α²(1 - 1/K)/(mN²) from beliefs 1/K in all labels; 2α²/(N²(2m(1 - α) + α)) late in large groups."""
    for alpha, m in ((1.0, 1), (0.5, 1), (0.2, 3)):
        found = gossip.heterozygosity([0, 1], n_agents=5, uptake=alpha, bandwidth=m, group=1 - 1 / 4)["group"].values
        assert found[0] - found[1] == pytest.approx(alpha**2 * (1 - 1 / 4) / (m * 5**2), rel=1e-12)
        late = [10**9, 2 * 10**9]
        found = gossip.heterozygosity(late, n_agents=10_000, uptake=alpha, bandwidth=m, group=0.5)["group"].values
        rate = -np.log(found[1] / found[0]) / 10**9
        assert rate == pytest.approx(2 * alpha**2 / (1e8 * (2 * m * (1 - alpha) + alpha)), rel=2e-3)


# --- the voter model, α = m = 1 ---


def voters(n_first: int, n_agents: int) -> np.ndarray:
    return np.array([[1.0, 0.0]] * n_first + [[0.0, 1.0]] * (n_agents - n_first))


def test_voters_fixate_with_their_initial_share_in_the_exact_time() -> None:
    N, n = 8, 3
    found = simulate_gossip(
        voters(n, N), runs=4000, seed=1, uptake=1.0, grounded=False, kappa=10_000, probe_every=1, patience=1
    )
    assert found["stopped"].all()
    won = (found["final_report"] == "0").all("agent").values
    assert abs(z_of(won, n / N)) < Z and abs(z_of(won, n / N + 0.05)) > Z
    # Birth and death of k holders at k(N - k)/(N(N - 1)) each; the generator times T is -1.
    k = np.arange(1, N)
    flow = k * (N - k) / (N * (N - 1))
    generator = np.diag(-2 * flow) + np.diag(flow[:-1], 1) + np.diag(flow[1:], -1)
    time = np.linalg.solve(-generator, np.ones(N - 1))
    assert abs(z_of(found["steps"].values, time[n - 1])) < Z
    assert abs(z_of(found["steps"].values, time[n - 1] * 0.9)) > Z


# --- fixation under a bias ---

LEADING = 0.02  # what terms of higher order may add at these sizes


@pytest.mark.slow
@pytest.mark.parametrize("biased", ["anchor", "listener"])
def test_a_bias_decides_as_diffusion_says(biased: str) -> None:
    N, alpha, m, S = 10, 0.5, 2, 2.0
    labels = m if biased == "anchor" else m - 1
    h = S * alpha ** (2 if biased == "anchor" else 1) / (2 * labels * N * (1 - alpha))
    tilted = np.array([math.exp(h), 1.0])
    flat = np.full((N, 2), 0.5)
    # Beliefs at the end decide, not a consensus of answers, which comes long before a label is lost.
    options = {
        "beliefs": True,
        "runs": 4000,
        "seed": 6,
        "uptake": alpha,
        "bandwidth": m,
        "kappa": 300,
        "patience": None,
    }
    if biased == "anchor":
        p = np.tile(tilted / tilted.sum(), (N, 1))
        found = simulate_gossip(p, initial="flat", **options)
    else:
        C = np.tile(np.diag(tilted), (N, 1, 1))
        found = simulate_gossip(flat, rewrite=1.0, rewrite_map=C, grounded=False, **options)
    belief = found["final_belief"].sel(country="0").mean("agent").values
    assert ((belief > 0.05) & (belief < 0.95)).mean() < LEADING / 2  # undecided
    won = belief > 0.5
    law = gossip.fixation(h, n_agents=N, uptake=alpha, bandwidth=m, biased=biased)
    assert law == pytest.approx(1 / (1 + math.exp(-S / 2)))
    error = Z * won.std() / math.sqrt(len(won)) + LEADING
    assert abs(won.mean() - law) < error
    assert abs(won.mean() - 1 / (1 + math.exp(-S))) > error  # control: without the factor 1 - α
    assert abs(won.mean() - 0.5) > error


def test_a_bias_of_the_speakers_decides_as_diffusion_says() -> None:
    """A simulation of its own: labels drawn from the tilted belief, which the flag game does not have."""
    N, alpha, h, runs, rng = 10, 0.3, 0.06, 3000, np.random.default_rng(7)
    x = np.full((runs, N), 0.5)
    every = np.arange(runs)
    for _ in range(6000):
        i = rng.integers(0, N, runs)
        j = (i + rng.integers(1, N, runs)) % N
        said = x[every, i]
        says_first = rng.random(runs) * (said * math.exp(h) + 1 - said) < said * math.exp(h)
        x[every, j] += alpha * (says_first - x[every, j])
    won = x.mean(1) > 0.5
    law = gossip.fixation(h, n_agents=N, uptake=alpha, bandwidth=1)
    error = Z * won.std() / math.sqrt(runs) + LEADING
    assert (np.minimum(x, 1 - x).max(1) > 0.2).mean() < LEADING / 2  # undecided
    assert abs(won.mean() - law) < error
    assert abs(won.mean() - 1 / (1 + math.exp(-N * h / alpha))) > error  # control: the leading order in α as well
    tiny = gossip.fixation(1e-4, n_agents=100, uptake=1e-3, bandwidth=2)
    assert tiny == pytest.approx(1 / (1 + math.exp(-2 * 100 * 1e-4 / 1e-3)), rel=1e-3)


def test_fixation_is_consistent() -> None:
    options = {"n_agents": 30, "uptake": 0.4, "bandwidth": 2}
    for h in (-2.0, -0.01, 1e-16, 0.003, 5.0):
        there, back = gossip.fixation(h, initial=0.3, **options), gossip.fixation(-h, initial=0.7, **options)
        assert there + back == pytest.approx(1) and 0 <= there <= 1
    assert gossip.fixation(0.0, initial=0.3, **options) == 0.3
    assert gossip.fixation(0.1, n_agents=30, uptake=1.0, bandwidth=1) == 0.5


# --- how runs are played and looked at ---


def test_a_run_depends_on_its_seed_and_number_only() -> None:
    p = random_crops(1, 5, 4)
    options = {"seed": 9, "uptake": 0.4, "beliefs": True, "kappa": 8, "patience": None}
    many = simulate_gossip(p, runs=60, **options)
    few = simulate_gossip(p, runs=7, **options)
    xr.testing.assert_identical(few.drop_attrs(), many.isel(run=slice(7)).drop_attrs())
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        single = simulate_gossip(p, runs=60, **options)
    finally:
        numba.set_num_threads(threads)
    xr.testing.assert_identical(single, many)
    probed = simulate_gossip(p, runs=60, probe_every=3, report="sampled", **options)  # answers have their own numbers
    np.testing.assert_array_equal(probed["final_belief"], many["final_belief"])
    other = simulate_gossip(p, runs=60, **{**options, "seed": 10})
    assert (other["final_belief"] != many["final_belief"]).any(["agent", "country"]).all()


def test_crops_of_each_run() -> None:
    p = np.stack([random_crops(seed, 5, 4) for seed in range(6)])
    similarity = SIMILARITY
    options = {"seed": 2, "uptake": 0.4, "rewrite": 0.5, "rewrite_map": similarity, "beliefs": True, "kappa": 3}
    together = simulate_gossip(p, runs=6, truth=[0, 1, 2, 3, 0, 1], **options)
    for run in range(6):
        alone = simulate_gossip(p[run], runs=6, **options)
        np.testing.assert_array_equal(together["final_belief"][run], alone["final_belief"][run])
    assert together["truth"].values.tolist() == ["0", "1", "2", "3", "0", "1"]


@pytest.mark.parametrize("protocol", ["pairwise", "manager"])
def test_a_run_stops_after_five_unanimous_probes(protocol: str) -> None:
    p = np.tile([0.97, 0.01, 0.01, 0.01], (4, 1))
    options = {"runs": 3, "seed": 0, "uptake": 0.1, "protocol": protocol, "trajectories": True}
    found = simulate_gossip(p, **options)
    every = 4 if protocol == "pairwise" else 1
    assert found["stopped"].all() and (found["steps"] == 5 * every).all()  # the isolated answers do not count
    asked = found["report"].notnull().all("agent")
    assert asked.sum("probe").values.tolist() == [6] * 3 and found.sizes["probe"] == 64 // every + 1
    assert found["step"].values[:3].tolist() == [0, every, 2 * every]
    never = simulate_gossip(p, **options, patience=None)
    assert not never["stopped"].any() and (never["steps"] == 64).all()  # κN with κ = 16
    assert (simulate_gossip(p, **options, patience=2)["steps"] == 2 * every).all()


def test_only_unanimous_probes_in_a_row_count() -> None:
    p = random_crops(6, 3, 2)
    found = simulate_gossip(
        p, runs=200, seed=2, uptake=0.8, grounded=False, report="sampled", probe_every=1, trajectories=True
    )
    same = (found["report"] == found["report"].isel(agent=0)).all("agent").values
    broken = 0
    for run in range(200):
        probes = same[run, 1 : int(found["steps"][run]) + 1]
        in_a_row = np.convolve(probes, np.ones(5, int), mode="valid") == 5
        assert found["stopped"][run] == in_a_row.any() and in_a_row[:-1].sum() == 0
        broken += probes.sum() > 5
    assert broken > 50  # runs that were unanimous, and then not


def test_ties_are_broken_evenly_and_samples_follow_the_belief() -> None:
    p = np.tile([0.4, 0.2, 0.4, 0.0], (5, 1))
    options = {"runs": 2000, "seed": 3, "uptake": 0.5, "kappa": 0}
    for report, expected in (("likeliest", [0.5, 0, 0.5, 0]), ("sampled", [0.4, 0.2, 0.4, 0])):
        answers = simulate_gossip(p, report=report, **options)["initial_report"].values.astype(int).ravel()
        counts = np.bincount(answers, minlength=4)
        expected_counts = 10_000 * np.array(expected)
        possible = expected_counts > 0
        assert counts[~possible].sum() == 0
        assert chisquare(counts[possible], expected_counts[possible]).pvalue > ALPHA
        skewed = counts[possible] + np.array([300, *[0] * (possible.sum() - 2), -300])
        assert chisquare(skewed, expected_counts[possible]).pvalue < ALPHA


# --- names of countries ---


def labelled(values: np.ndarray, *dims: str) -> xr.DataArray:
    """With the names of countries along every dim but agent and run."""
    return xr.DataArray(values, dims=dims, coords={dim: COUNTRIES for dim in dims if dim in ("country", "reported")})


def test_countries_are_told_by_their_names() -> None:
    """Beliefs and maps with their countries, and their dims, in another order give the same runs to the last bit."""
    p, start = random_crops(1, 3, 4), random_crops(2, 3, 4)
    C = maps_of(p, SIMILARITY)
    crops, initial = labelled(p, "agent", "country"), labelled(start, "agent", "country")
    rewrite_map = labelled(C, "agent", "country", "reported")
    options = {"runs": 20, "seed": 3, "bandwidth": 2, "kappa": 3, "beliefs": True, **TEAM}
    positional = simulate_gossip(crops, initial=start, rewrite_map=C, **options)
    assert (positional["initial_report"].values == np.array(COUNTRIES)[start.argmax(1)]).all()
    other, another = ["Chad", "Peru", "Italy", "Mali"], ["Italy", "Chad", "Peru", "Mali"]
    moved = rewrite_map.sel(country=other, reported=another).transpose("reported", ..., "country")
    turned = initial.sel(country=another).T
    xr.testing.assert_identical(simulate_gossip(crops, initial=turned, rewrite_map=moved, **options), positional)
    for change in ({"initial": turned.values.T}, {"rewrite_map": moved.transpose(*rewrite_map.dims).values}):
        taken = simulate_gossip(crops, **{"initial": start, "rewrite_map": C, **change}, **options)
        assert np.abs(taken["final_belief"] - positional["final_belief"]).max() > 0.05  # control


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {"initial": c.assign_coords(country=["Peru", "Mali", "Chad", "Oman"])}, "initial: country = .*Oman"),
        (lambda c: {"compatibility": c.assign_coords(country=["Peru"] * 4)}, "compatibility: country = "),
        (lambda c: {"rewrite_map": xr.DataArray(SIMILARITY)}, r"rewrite_map has the dims \('dim_0', 'dim_1'\)"),
        (
            lambda c: {"rewrite_map": labelled(SIMILARITY, "country", "reported").drop_vars("reported")},
            "along both country and reported",
        ),
        (
            lambda c: {"rewrite_map": labelled(SIMILARITY, "country", "reported").assign_coords(reported=list("abcd"))},
            "rewrite_map: reported = .*expected the countries of compatibility, Peru, Mali",
        ),
    ],
)
def test_other_countries_are_refused(change, message: str) -> None:
    crops = labelled(np.full((4, 4), 0.25), "agent", "country")
    with pytest.raises(InputError, match=message):
        simulate_gossip(**{"compatibility": crops, "runs": 5, "seed": 0, "uptake": 0.5, **change(crops)})


# --- input ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"compatibility": np.array([[1.5, -0.5], [1, 0]])}, "compatibility: .*the smallest entry is -0.5"),
        ({"compatibility": np.array([[1 - 1e-150, 1e-150], [1, 0]])}, "0 or at least 1e-100"),
        ({"compatibility": np.ones((1, 1))}, r"compatibility has shape \(1, 1\)"),
        ({"compatibility": xr.DataArray(np.eye(3), dims=("crop", "country"))}, "compatibility has the dims"),
        ({"compatibility": np.full((2, 3, 4), 0.25)}, "compatibility is for 2 runs: expected one for all or 5"),
        ({"uptake": 1.2}, "uptake = 1.2: expected from 0 to 1"),
        ({"uptake": [0.5, 0.5]}, r"uptake has shape \(2,\)"),
        ({"bandwidth": 1.5}, "bandwidth = 1.5"),
        ({"rewrite": 0.5}, "a rewrite needs a rewrite_map"),
        ({"rewrite_map": np.ones((3, 4))}, r"rewrite_map has shape \(3, 4\)"),
        ({"rewrite_map": -np.ones((4, 4))}, "rewrite_map: expected finite"),
        ({"truth": "Atlantis"}, "truth = 'Atlantis'"),
        ({"truth": [0, 1]}, "truth has 2 entries"),
        ({"rival": 1, "truth": 0}, "rival = 1: expected truth and trajectories=True"),
        ({"rival": [0, 1, 1, 1, 1], "truth": 0, "trajectories": True}, "expected another country than truth"),
        ({"kappa": -1}, "kappa = -1"),
        ({"initial": "sharp"}, "initial = 'sharp'"),
        ({"initial": np.full((3, 5), 0.2)}, r"initial has shape \(1, 3, 5\)"),
        ({"compatibility": np.eye(4)[:3], "initial": np.eye(4)[1:]}, "agent 0 believes in no country"),
    ],
)
def test_bad_input_is_named(change: dict, message: str) -> None:
    arguments = {"compatibility": np.full((3, 4), 0.25), "runs": 5, "seed": 0, "uptake": 0.5, **change}
    with pytest.raises(InputError, match=message):
        simulate_gossip(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interactions": [-1]}, r"interactions = \[-1\]"),
        ({"bandwidth": 1.5}, "bandwidth = 1.5"),
        ({"agent": 0.9}, "group = 0.5, agent = 0.9: expected 0 ≤ agent ≤ group"),
    ],
)
def test_bad_input_of_the_moments_is_named(change: dict, message: str) -> None:
    arguments = {"interactions": [1], "n_agents": 5, "uptake": 0.5, "bandwidth": 1, "group": 0.5, **change}
    with pytest.raises(InputError, match=message):
        gossip.heterozygosity(**arguments)
    with pytest.raises(InputError, match=r"uptake = 0, bandwidth = 1: expected a positive and a finite"):
        gossip.fixation(0.1, n_agents=5, uptake=0, bandwidth=1)


def test_pairs_cannot_differ_by_more_than_altogether() -> None:
    """N agents with a label each: group = 1 - 1/N, agent = 0, and any two differ. More than that can't be."""
    for n in (2, 49):
        options = {"n_agents": n, "uptake": 0.5, "bandwidth": 1, "agent": 0.0}
        found = gossip.heterozygosity([0], group=1 - 1 / n, **options)
        assert found["group"] == 1 - 1 / n
        with pytest.raises(InputError, match=r"group = .*expected a mean over pairs"):
            gossip.heterozygosity([0], group=1 - 0.99 / n, **options)
