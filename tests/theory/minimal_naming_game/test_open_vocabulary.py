"""Many exchangeable words against two words, all lexicons of four words, and simulations of twenty.

Error budget: the simulation test has 10 comparisons at 4.5 standard errors, so that it fails falsely for less than one
seed in 10,000; its control is the same theory for other listeners.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield import InputError
from theory.minimal_naming_game import Agent, interactions, open_vocabulary
from validation import minimal_naming_game

POINTS = [(1, 0), (0.6, 0.4), (0.3, 0)]
RULES = pytest.mark.parametrize("rule", ["both", "listener"])


@pytest.mark.parametrize("accepts", POINTS)
def test_two_words_have_the_known_eigenvalue(accepts: tuple[float, float]) -> None:
    pi, phi = accepts
    game = open_vocabulary(2, accepts=accepts)
    both = game["lexicon_size"].sel(words_held=2).item()
    assert game["growth_rate"].item() == pytest.approx(both * (3 * pi - 2 * phi - 1) / 2, abs=1e-13)


def meetings_of_four_words(accepts: tuple[float, float], rule: str) -> tuple[list[Agent], np.ndarray]:
    """All 15 lexicons, then agents committed to the first word, and dx/dt = Σ_ij T[i, j] x_i x_j per round."""
    agents = [Agent(frozenset(c)) for n in range(1, 5) for c in combinations(range(4), n)]
    agents.append(Agent(frozenset({0}), committed=True))
    change = np.zeros((len(agents),) * 3)
    events = interactions(agents, lambda held: dict.fromkeys(held, 1 / len(held)), rule, accepts=accepts)
    for before, after, probability, _ in events:
        for state in before:
            change[(*before, state)] -= probability
        for state in after:
            change[(*before, state)] += probability
    return agents, change


@RULES
@pytest.mark.parametrize("accepts", [(0.8, 0.1), (0.4, 0.3)])
def test_all_lexicons_of_four_words(accepts: tuple[float, float], rule: str) -> None:
    """The fractions are at rest among all 15 lexicons, and the growth rate is an eigenvalue of three words apart."""
    agents, change = meetings_of_four_words(accepts, rule)
    change = change[:15, :15, :15]
    game = open_vocabulary(4, accepts=accepts, rule=rule)
    y = game["lexicon_size"].values
    same = np.array([4, 6, 4, 1])
    x = np.array([y[len(agent.lexicon) - 1] / same[len(agent.lexicon) - 1] for agent in agents[:-1]])
    assert np.abs(np.einsum("ijk,i,j", change, x, x)).max() < 1e-14
    jacobian = (np.einsum("ijk,i->kj", change, x) + np.einsum("ijk,j->ki", change, x)).T
    eigenvalues = np.linalg.eigvals(jacobian)
    assert np.sum(np.abs(eigenvalues - game["growth_rate"].item()) < 1e-8) == 3
    elsewhere = eigenvalues[np.abs(eigenvalues - game["growth_rate"].item()) > 1e-8]
    assert not game["growth_rate"] > 0 or elsewhere.real.max() < game["growth_rate"]


@RULES
def test_trajectory_of_all_lexicons(rule: str) -> None:
    """Four words, 5 % committed."""
    accepts, committed, lead = (0.8, 0.1), 0.05, 0.3
    agents, change = meetings_of_four_words(accepts, rule)
    start = np.zeros(len(agents))
    start[:4] = (1 - committed) * np.array([lead, *[(1 - lead) / 3] * 3])
    start[-1] = committed
    solved = solve_ivp(lambda _, x: np.einsum("ijk,i,j", change, x, x), (0, 10), start, "DOP853", rtol=1e-9, atol=1e-11)
    x = solved.y[:, -1]
    options = {"lead": lead, "committed": committed, "times": [0.0, 10.0]}
    game = open_vocabulary(4, accepts=accepts, rule=rule, **options).isel(time=1)
    held = np.array([len(agent.lexicon) for agent in agents])
    has = np.array([0 in agent.lexicon for agent in agents])
    assert game["said"].item() == pytest.approx((x * has / held).sum(), abs=1e-7)
    assert game["single_share"].item() == pytest.approx(x[0] + x[-1], abs=1e-7)
    assert game["mean_words_held"].item() == pytest.approx((x * held)[:-1].sum() / (1 - committed), abs=1e-6)


def test_twenty_words_against_simulation() -> None:
    words, n, accepts = 20, 20_000, (0.8, 0.1)
    first = 4010
    initial = [first, *[(n - first) // 19] * 18]
    initial.append(n - sum(initial))
    when = [5.0, 10.0, 15.0, 20.0, 25.0]
    options = {"n_words": words, "initial": initial, "accepts": accepts, "record_rounds": 25}
    runs = minimal_naming_game.simulate(n, runs=12, seed=1, max_rounds=25, **options)
    found = runs["single_share"].isel(word=0).sel(round=when)
    error = found.std("run", ddof=1) / np.sqrt(12)

    def z(listeners: tuple[float, float]) -> np.ndarray:
        game = open_vocabulary(words, accepts=listeners, lead=first / n, times=when)
        return np.abs((found.mean("run").values - game["single_share"].values) / error.values)

    assert (z(accepts) < 4.5).all()
    assert (z((0.85, 0.1)) > 4.5).any()


def test_many_words_move_the_critical_line() -> None:
    """Listeners (0.3, 0) have no conventions of two words and have them of three; (0.2, 0.1) of no number."""
    assert open_vocabulary(2, accepts=(0.3, 0))["growth_rate"] < 0 < open_vocabulary(3, accepts=(0.3, 0))["growth_rate"]
    assert open_vocabulary(2000, accepts=(0.2, 0.1))["growth_rate"] < 0


@pytest.mark.parametrize(
    ("n_words", "options", "message"),
    [
        (5, {"lead": 0.1, "committed": 0.1}, "lead and committed without times: expected times beside it"),
        (5, {"times": [2.0, 1.0]}, r"times = .*: expected increasing times from 0 on"),
        (10**6, {"accepts": (0.1, 0)}, r"n_words = 1000000 .* expected 3000 at most"),
        (5, {"accepts": (0, 0.1)}, r"accepts = .0, 0.1.: expected π > 0"),
    ],
)
def test_refusals(n_words: int, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_vocabulary(n_words, **options)
    assert open_vocabulary(5, times=[0.0])["said"].values == pytest.approx([0.2])
