"""Results don't depend on the number of cores and threads: simulations to the bit, theory to rounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores to choose from"
)
SCRIPT = """
import os, sys
os.sched_setaffinity(0, eval(sys.argv[1]))
import hashlib, json
import numpy as np
import meanfield, validation

def policy(seed, n_words, length):
    states = meanfield.MemorySpace(n_words, length).n_states
    return meanfield.make_policy(np.random.default_rng(seed).dirichlet(np.ones(n_words), states), list("abc")[:n_words])

def digest(games, *names):
    return hashlib.sha256(b"".join(np.ascontiguousarray(games[name]).tobytes() for name in names)).hexdigest()

small, two_words = policy(0, 3, 2), policy(1, 2, 2)
recorded = "word_share", "said", "success_rate"
options = {"n_agents": [5, 300], "runs": 7, "max_rounds": 20, "trajectories": True, "record": recorded}
bits = {
    seed: [
        digest(validation.simulate(small, seed=seed, **options), "consensus_round", *recorded),
        digest(
            validation.minimal_naming_game.simulate(10**5, runs=3, seed=seed, max_rounds=9, record_rounds=9),
            "single_share",
        ),
    ]
    for seed in (1, 2)
}
times = np.linspace(0, 10, 5)
points = meanfield.fixed_points(two_words)
theory = {
    "solve": meanfield.solve(small)["word_share"],
    "fixed_points": points["word_share"],
    "eigenvalues": points["eigenvalue"].real,
    "finite_size": meanfield.finite_size(two_words, times=times)["word_share_variance"],
}
theory = {name: values.values.tolist() for name, values in theory.items()}
print(json.dumps([bits, theory]))
"""


def computed(n_cores: int) -> tuple[dict, dict]:
    """Results of a new process on so many cores."""
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
    # Threads that spin while they wait would make two busy processes on two cores many times slower
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-c", SCRIPT, str(set(cores))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return tuple(json.loads(done.stdout))


@pytest.mark.slow
def test_one_core_and_two_come_to_the_same() -> None:
    (bits, theory), (bits_on_two, theory_on_two) = computed(1), computed(2)
    assert bits == bits_on_two
    assert len({one for digests in bits.values() for one in digests}) == 4, "another seed, other bits"
    for name, values in theory.items():
        other = np.array(theory_on_two[name], float)
        np.testing.assert_allclose(np.array(values, float), other, rtol=1e-8, atol=1e-11, err_msg=name)
