"""Every number on the page is Python's: to 1e-9, and runs to the last bit."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

import meanfield
import validation
from _policies import majority, majority_policy, oscillating_pair, random_policy
from policy_extraction import policy_from_record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked_types")]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
TRAJECTORY_STEPS = (40, 200, 400)  # of 400, which the sentence tells


def never_leaving() -> xr.Dataset:
    """Agents who have said one word twice go on with it for good: several closed classes, and exact corners."""
    space = meanfield.MemorySpace(2, 2)
    own = [[a for a, _ in space.memory(i)] for i in range(space.n_states)]
    q = [1.0 if said == [0, 0] else 0.0 if said == [1, 1] else 0.6 for said in own]
    return meanfield.make_policy(np.array(q), ["a", "b"], model="firm")


POLICIES = {
    "one attractor, H = 1": lambda: random_policy(1),
    "random, H = 2": lambda: random_policy(3, 2, 2, concentration=0.2),
    "two attractors, H = 3": lambda: majority(0.52, 0.9),
    "exact consensus, H = 3": lambda: majority_policy(3, 1.0),
    "closed classes, H = 2": never_leaving,
    "two attractors, H = 4": lambda: majority(0.55, 0.97, 4),
    "an unstable focus, H = 3": oscillating_pair,
    "two attractors, H = 6": lambda: majority(0.51, 0.95, 6),
}


def population(policy: xr.Dataset, settings: dict[str, int]) -> meanfield.Population:
    words = meanfield.toolbox.words_of(policy)
    parts = [settings.get(f"committed{w}", 0) / 1000 for w in (0, 1)]
    return meanfield.Population(policy, committed=dict(zip(words, parts, strict=True)))


def composition(policy: xr.Dataset, start: int) -> np.ndarray:
    if start < 0:
        return meanfield.empty_memories(policy).values
    first, second = (meanfield.consensus(policy, word).values for word in meanfield.toolbox.words_of(policy))
    return start / 100 * first + (1 - start / 100) * second


def test_voters_rest_anywhere_and_rounding_is_not_hidden(opened, tmp_path):
    """Agents who repeat what they heard rest at every share; with tiny errors none can be told from the others."""
    first = np.array([0.5, 1.0, 0.0, 1.0, 0.0])
    exact = np.stack([first, 1 - first], axis=1)
    voters = meanfield.make_policy(exact, ["a", "b"], model="exact")
    unsure = meanfield.make_policy(np.maximum(exact, 1e-16), ["a", "b"], model="erring")
    with pytest.raises(meanfield.ConvergenceError, match="rounding hides at which share"):
        meanfield.fixed_points(unsure)
    shown = opened(meanfield.explore([voters, unsure], tmp_path / "explorer.html")).show(policy=0)
    assert "it can rest at every share between 0 % and 100 %" in shown.text("landscape-says")
    assert "nearby starts may end at different ones" in shown.text("basins")
    assert shown.text("memory-length") == "meeting"
    boundaries = shown.numbers("separatrix-")
    shown.page.select_option("#policy", "1")
    shown.settled()
    assert "rounding hides where" in shown.text("landscape-says")
    np.testing.assert_allclose(shown.numbers("separatrix-"), boundaries, **CLOSE)
    assert "rounding hides at which share" in shown.text("law-says")
    assert not shown.page.is_visible("#law")


@pytest.mark.parametrize("p", [5 / 6, 5 / 6 + 1e-9, 0.8333333])
def test_every_fixed_point_near_a_pitchfork(opened, tmp_path, p):
    policy = majority_policy(3, p)
    shown = opened(meanfield.explore(policy, tmp_path / "explorer.html")).show()
    expected = meanfield.fixed_points(policy)["word_share"].values[:, 0]
    np.testing.assert_allclose(sorted(shown.numbers("fixed-point-")), sorted(expected), atol=1e-7)


def assert_fixed_points(shown, expected: meanfield.Population) -> None:
    points = meanfield.fixed_points(expected)
    share, status = points["word_share"].values, points["stability"].values
    lasting = share[status == "stable"].max(1)  # of the word that most say
    told = [*lasting, *share[status == "unstable", 0], *share[status == "marginal", 0]]
    np.testing.assert_allclose(shown.numbers("fixed-point-"), told, **CLOSE)


def assert_trajectories(shown, expected: meanfield.Population, start: np.ndarray, rounds: int) -> None:
    times = np.linspace(0, 2 * rounds, 401)
    solution = meanfield.solve(expected, initial=start, times=times)["word_share"].values[:, 0]
    np.testing.assert_allclose(
        [shown.number(f"trajectory-{step}") for step in TRAJECTORY_STEPS], solution[list(TRAJECTORY_STEPS)], **CLOSE
    )


def assert_basins(shown, expected: meanfield.Population) -> None:
    boundaries = meanfield.basins(expected)["separatrix"].values
    np.testing.assert_allclose(shown.numbers("separatrix-"), boundaries, **CLOSE)


def assert_masses(shown, expected: meanfield.Population) -> None:
    for w, word in enumerate(expected.words):
        mass = meanfield.critical_mass(expected, word=word)
        if np.isnan(mass["critical_mass"].item()):
            assert not shown.numbers(f"mass-{w}"), mass.attrs["reason"]
            if abs(mass["old_word_share"].values[0] - 0.5) < 1e-6:
                continue  # which word most say at first is a matter of rounding
            told = re.findall(r"from (0\.\d+) on", mass.attrs["reason"])
            np.testing.assert_allclose(shown.numbers(f"turn-{w}"), [float(text) for text in told], atol=6e-4)
        else:
            np.testing.assert_allclose(shown.number(f"mass-{w}"), mass["critical_mass"].item(), **CLOSE)


def assert_law(shown, policy: xr.Dataset, n_agents: int) -> bool:
    """Whether there is a law of two attractors that are not alike, which is what the page tells."""
    law = meanfield.group_size_law(policy, n_agents=n_agents)
    kappa = law["kappa"].item() if law["attractors"] == 2 else np.nan
    if not (np.isfinite(kappa) and kappa > 0):
        assert not shown.numbers("kappa"), law.attrs["reason"]
        return False
    np.testing.assert_allclose(shown.number("kappa"), kappa, **CLOSE)
    np.testing.assert_allclose(shown.number("critical-size"), law["n_critical"].item(), rtol=3 * CLOSE["rtol"])
    np.testing.assert_allclose(shown.number("probability"), ndtr(kappa * np.sqrt(n_agents)), **CLOSE)
    return True


def assert_run(shown, expected: meanfield.Population, settings: dict[str, int], start: np.ndarray, rounds: int) -> None:
    seed, n_agents = settings.get("seed", 1), settings.get("agents", 100)
    runs = validation.simulate(
        expected, n_agents=n_agents, runs=1, seed=seed, initial=start, max_rounds=rounds, record_rounds=rounds
    )
    share = runs["word_share"].values[0, 0, :, 0]
    for played in range(rounds + 1):
        assert (shown.number("round"), shown.number("run-share")) == (played, pytest.approx(share[played], abs=1e-15))
        if played < rounds:
            shown.page.click("#step")
    ended = runs["consensus_round"].item()
    agreed = f"agreed on “{runs['consensus_word'].item()}” after {ended:.0f} rounds"
    assert (agreed in shown.text("agents-says")) == (not np.isnan(ended))


def assert_page(shown, policy: xr.Dataset, tempered: xr.Dataset, settings: dict[str, int], run_rounds: int = 6) -> bool:
    """All numbers of a view against Python's; whether κ is among them."""
    shown.show(rounds=50, **settings)
    expected = population(tempered, settings)
    start = composition(policy, settings.get("start", -1))
    assert_fixed_points(shown, expected)
    assert_trajectories(shown, expected, start, 50)
    assert_basins(shown, expected)
    assert_masses(shown, expected)
    assert_run(shown, expected, settings, start, run_rounds)
    state = settings.get("memory", 0)
    assert shown.number("memory-probability") == pytest.approx(tempered["q"].values[state, 0], rel=1e-14)
    return assert_law(shown, tempered, settings.get("agents", 100))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "settings", [{}, {"committed0": 20, "committed1": 65, "start": 37, "agents": 60, "seed": 7, "memory": 3}]
)
def test_policies_of_all_kinds(opened, tmp_path, name, settings):
    policy = POLICIES[name]()
    shown = opened(meanfield.explore(policy, tmp_path / "explorer.html"))
    assert_page(shown, policy, policy, settings, run_rounds=12)


@pytest.mark.parametrize("pair", range(11))
def test_the_gallery_as_measured(opened, gallery, gallery_page, pair):
    policy = gallery.isel(pair=pair).set_index(word="word_label")
    assert_page(opened(gallery_page), policy, policy, {"policy": pair, "agents": 1000, "seed": 2**53 - 1}, run_rounds=4)


@pytest.mark.parametrize("step", [-24, 11])
def test_the_gallery_at_other_temperatures(opened, gallery, gallery_page, step):
    shown = opened(gallery_page)
    for pair in (0, 4):
        policy = gallery.isel(pair=pair).set_index(word="word_label")
        tempered = policy_from_record(policy, temperature=0.5 * 2 ** (step / 32))
        assert_page(shown, policy, tempered, {"policy": pair, "temperature": step, "committed1": 30, "memory": 700})


def test_without_log_probabilities_the_given_ones_are_sharpened(opened, tmp_path):
    policy = majority(0.52, 0.9)
    q = policy["q"].values ** (1 / 2 ** (16 / 32))
    tempered = meanfield.make_policy(q / q.sum(1, keepdims=True), ["a", "b"])
    shown = opened(meanfield.explore(policy, tmp_path / "explorer.html"))
    assert_page(shown, policy, tempered, {"temperature": 16, "memory": 40})
    assert shown.text("temperature-shown") == "× 1.41"


@pytest.mark.parametrize("policy", [majority(0.52, 0.9), majority(0.99, 0.99)])
def test_some_of_these_policies_have_a_law(opened, tmp_path, policy):
    """A control: without it no κ might ever have been compared. Noise is weak, and strong."""
    assert assert_page(opened(meanfield.explore(policy, tmp_path / "explorer.html")), policy, policy, {})


def test_published_policies(opened, published, tmp_path):
    """With floors of 2e-16, and roots that cluster at 0 and 1."""
    some = [
        published.sel(model="gpt-4o", pair="African/White"),
        published.sel(model="gpt-4o", pair="woman/man"),
        published.sel(model="llama31_70B", pair="woman/man"),
    ]
    shown = opened(meanfield.explore(some, tmp_path / "explorer.html"))
    for number, policy in enumerate(some):
        one = policy.set_index(word="word_label")
        assert_page(shown, one, one, {"policy": number, "agents": 50})


def test_whole_trajectories_and_runs_are_the_same(opened, gallery, gallery_page):
    shown = opened(gallery_page).show()
    policy = gallery.isel(pair=0).set_index(word="word_label")
    times = np.linspace(0, 400, 401)
    code = """([times, from]) => {
      const entries = JSON.parse(document.getElementById("policies").textContent);
      const policy = modules["engine/policy.js"].decodedPolicy(entries[0]);
      const population = modules["engine/policy.js"].makePopulation(policy.space, policy.q, [0.03, 0.1]);
      const start = modules["engine/solution.js"].startComposition(policy.space, from);
      const run = modules["engine/simulation.js"].newRun({ population, nAgents: 777, start: from, seed: 5 });
      modules["engine/simulation.js"].play(run, 777 * 60);
      const { shares } = modules["engine/solution.js"].solution(population, start, times);
      return { shares, history: run.history, states: Array.from(run.states), consensus: run.consensus };
    }"""
    expected = population(policy, {"committed0": 30, "committed1": 100})
    for start in (-1, 61):
        found = shown.page.evaluate(code, [times.tolist(), None if start < 0 else start / 100])
        initial = composition(policy, start)
        solution = meanfield.solve(expected, initial=initial, times=times)["word_share"].values[:, 0]
        np.testing.assert_allclose(found["shares"], solution, **CLOSE)
        runs = validation.simulate(
            expected, n_agents=777, runs=1, seed=5, initial=initial, max_rounds=60, record_rounds=60
        )
        np.testing.assert_allclose(found["history"], runs["word_share"].values[0, 0, :, 0], rtol=0, atol=1e-15)


def test_another_seed_is_another_run(opened, gallery_page):
    """A control of the test of runs."""
    shown, shares = opened(gallery_page), set()
    for seed in range(3):
        shown.show(seed=seed, agents=1000)
        shown.page.click("#step")
        shares.add(shown.number("run-share"))
    assert len(shares) == 3
