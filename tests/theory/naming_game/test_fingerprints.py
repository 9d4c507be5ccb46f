"""Fingerprints of agents against closed forms and chains of memories written out."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError, MemorySpace
from theory.naming_game import fingerprints, rule_policy

WORDS = ["A", "B"]


def random_policy(memory_length: int, seed: int) -> tuple[MemorySpace, np.ndarray]:
    space = MemorySpace(2, memory_length)
    return space, np.random.default_rng(seed).uniform(0.1, 0.9, space.n_states)


def test_an_imitator_is_a_spin() -> None:
    """H = 1, logit = 0.2 + 3 h: everything in closed form."""
    table = fingerprints(rule_policy("imitation", {"empty": 0, "bias": 0.2, "strength": 3}, WORDS, memory_length=1))
    a, b = np.tanh((0.2 + 3) / 2), np.tanh((0.2 - 3) / 2)
    mean, half = (a + b) / 2, (a - b) / 2
    expected = {
        "bias": mean,
        "gain": half,
        "own_gain": 0,
        "field": np.arctanh(mean),
        "coupling": half / (1 - mean**2),
        "majority_force": 1.5,
        "adoption_new": (1 + half) / 2,
        "adoption_known": (1 + half) / 2,
    }
    for name, value in expected.items():
        assert table[name].item() == pytest.approx(value, abs=1e-7), name


def test_majority_force_is_that_of_a_best_response() -> None:
    """logit = 2.4 m in the words heard, so β = 1.2 and h = bias/2 in longer memories too."""
    parameters = {"empty": 0, "bias": 0.3, "inverse_temperature": 2.4}
    table = fingerprints(rule_policy("best_response", parameters, WORDS, memory_length=2))
    assert table["majority_force"].item() == pytest.approx(1.2, abs=1e-6)
    assert table["own_gain"].item() == pytest.approx(0, abs=1e-14)


def test_random_policies_against_enumeration() -> None:
    space, q = random_policy(2, 1)
    table = fingerprints(meanfield.make_policy(q, WORDS))
    full = range(space.offset(2), space.n_states)

    def mean_said(own: float, heard: float) -> float:
        """m' where words are A with these probabilities."""
        total = 0.0
        for state in full:
            weight = 1.0
            for said, answer in space.memory(state):
                weight *= (own if said == 0 else 1 - own) * (heard if answer == 0 else 1 - heard)
            total += weight * (2 * q[state] - 1)
        return total

    step = 1e-5  # of a probability (1 + m)/2
    heard = (mean_said(0.5, 0.5 + step / 2) - mean_said(0.5, 0.5 - step / 2)) / step
    said = (mean_said(0.5 + step / 2, 0.5) - mean_said(0.5 - step / 2, 0.5)) / step
    assert table["bias"].item() == pytest.approx(mean_said(0.5, 0.5), abs=1e-14)
    assert table["gain"].item() == pytest.approx(heard / 2, abs=1e-9)
    assert table["own_gain"].item() == pytest.approx(said / 2, abs=1e-9)
    adopted = {True: [], False: []}
    for state in full:
        (first_own, first_heard), (own, latest) = space.memory(state)
        known = latest in (first_own, first_heard, own)
        adopted[known].append(q[state] if latest == 0 else 1 - q[state])
    assert table["adoption_known"].item() == pytest.approx(np.mean(adopted[True]), abs=1e-14)
    assert table["adoption_new"].item() == pytest.approx(np.mean(adopted[False]), abs=1e-14)


def test_coupling_is_the_response_of_the_chain_of_memories() -> None:
    """Against the stationary vector of all full memories by linear algebra, and differences in m."""
    space, q = random_policy(2, 1)
    table = fingerprints(meanfield.make_policy(q, WORDS))
    first, successors = space.offset(2), space.successors()

    def log_odds(m: float) -> float:
        chain = np.zeros((space.n_full, space.n_full))
        for state in range(first, space.n_states):
            for own in (0, 1):
                for heard in (0, 1):
                    chance = (q[state] if own == 0 else 1 - q[state]) * (1 + (m if heard == 0 else -m)) / 2
                    chain[state - first, successors[state] + 2 * own + heard - first] += chance
        system = np.vstack([chain.T - np.eye(space.n_full), np.ones(space.n_full)])
        stationary = np.linalg.lstsq(system, np.append(np.zeros(space.n_full), 1), rcond=None)[0]
        return np.arctanh(2 * stationary @ q[first:] - 1)

    assert table["field"].item() == pytest.approx(log_odds(0), abs=1e-12)
    step = 1e-4
    assert table["coupling"].item() == pytest.approx((log_odds(step) - log_odds(-step)) / (2 * step), abs=1e-7)


def test_two_conventions_without_a_field_take_a_coupling_above_one() -> None:
    """Symmetric majority rules of three interactions: the mixed state is stable below J = 1 and unstable above."""
    for strength, stable in ((1.5, True), (4.0, False)):
        parameters = {"empty": 0, "bias": 0, "strength": strength, "recency": 1}
        policy = rule_policy("majority", parameters, WORDS, memory_length=3)
        assert (fingerprints(policy)["coupling"].item() < 1) == stable
        points = meanfield.fixed_points(policy)
        middle = points.isel(fixed_point=np.abs(points["word_share"].sel(word="A").values - 0.5).argmin())
        assert (middle["stability"].item() == "stable") == stable


def test_stacks_and_what_is_missing() -> None:
    table = fingerprints(
        meanfield.datasets.smollm2().isel(pair=[0, 10]).isel(state=slice(0, 21)).assign_attrs(memory_length=2)
    )
    assert table.sizes == {"pair": 2}
    assert table["first_word"].values.tolist() == ["his", "wife"]
    habit = meanfield.make_policy(np.array([0.5, 1, 1, 0, 0]), WORDS)  # agents go on with what they said
    assert np.isnan(fingerprints(habit)[["coupling", "field"]].to_array()).all()
    consensus = meanfield.make_policy(
        np.array([0.5, 1, 0.5, 0.5, 0.5]), WORDS
    )  # only all of them together never leave A
    assert np.isfinite(fingerprints(consensus)["coupling"].item())
    three = meanfield.make_policy(np.full((10, 3), 1 / 3), ["A", "B", "C"])
    with pytest.raises(InputError, match="policies has a policy of 3 words: expected 2"):
        fingerprints(three)
