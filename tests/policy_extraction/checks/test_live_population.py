"""Populations whose every choice is written by the model, against the simulator that a policy drives.

The comparison is seeded; it has a 1 % chance to fail if its seed is changed, and controls that must fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp
from test_generation import policy_of

import meanfield
from _fake_backend import FakeBackend
from _prompt_files import SHORT
from _refusals import refused
from meanfield import MemorySpace
from meanfield.toolbox import UnparsedError
from paper_figs.paper_004.language_model import live_consensus
from policy_extraction.checks._live_population import live_population
from policy_extraction.prompts import Payoffs
from policy_extraction.prompts._template import Prompt
from validation import simulate

WORDS = ("his", "her")
H = 2


def imitator(prompt: Prompt) -> dict[str, float]:
    """Says what its memory holds most of, and in doubt the word presented first; half of its answers are none."""
    memory = prompt.system.partition("]")[2]
    lean = memory.count("his") - memory.count("her") + 0.5 * (1 if prompt.system.startswith("['his'") else -1)
    his = 1 / (1 + np.exp(-1.2 * lean))
    return {"his": 0.5 * his, "her": 0.5 * (1 - his), "history": 0.5}


def play(law=imitator, **options):
    defaults = {"n_agents": 6, "memory_length": H, "rounds": 4, "runs": 3, "seed": 5, "template": SHORT}
    return live_population(FakeBackend(law), WORDS, **{**defaults, **options})


@pytest.fixture(scope="module")
def population():
    return play()


def test_agents_remember_what_they_said_and_heard(population):
    space = MemorySpace(2, H)
    successors = space.successors()
    states = np.zeros((3, 6), dtype=int)
    np.testing.assert_array_equal(population["memory_state"].isel(boundary=0), states)
    for t in range(24):
        for run in range(3):
            (i, j), (a, b) = (population[name].values[run, t] for name in ("met", "said"))
            assert i != j
            states[run, [i, j]] = successors[states[run, i]] + 2 * a + b, successors[states[run, j]] + 2 * b + a
        if t % 6 == 5:
            np.testing.assert_array_equal(population["memory_state"].isel(boundary=(t + 1) // 6), states)
    agreed = population["said"].values[..., 0] == population["said"].values[..., 1]
    np.testing.assert_allclose(population["success_rate"], agreed.reshape(3, 4, 6).mean(-1))
    assert (population["valid"] >= 6).all() and (population["generated"] > population["valid"]).any()


def test_pairs_are_uniform_and_orders_are_random():
    seen: list[str] = []

    def record(prompt: Prompt) -> dict[str, float]:
        seen.append(prompt.system[:7])
        return {"his": 0.5, "her": 0.5}

    population = play(record, n_agents=4, rounds=25, runs=20)
    first, second = population["met"].values.reshape(-1, 2).T
    pairs = np.bincount(4 * first + second, minlength=16).reshape(4, 4)
    assert (np.diag(pairs) == 0).all()
    off = pairs[~np.eye(4, dtype=bool)]
    assert ((off - 2000 / 12) ** 2 / (2000 / 12)).sum() < 26.8  # the 99.5 % quantile of χ² with 11 degrees of freedom
    assert set(seen) == {"['his',", "['her',"}


@pytest.mark.slow
def test_generated_populations_follow_the_policy_driven_simulator():
    """Distribution of the word share after some rounds, over runs."""
    n_agents, runs, rounds = 6, 200, 4
    policy = policy_of(imitator, H, 0.8)
    simulated = simulate(policy, n_agents=n_agents, runs=4000, seed=3, max_rounds=rounds, trajectories=True)
    # Rounded, because sums over agents in another order are equal but for the last digit
    expected = simulated["word_share"].isel(n_agents=0, word=0).values.round(9)

    def share_of(law, temperature):
        options = {"n_agents": n_agents, "runs": runs, "rounds": rounds, "temperature": temperature}
        return policy["q"].values[play(law, **options)["memory_state"].values, 0].mean(-1).round(9)

    def contrary(prompt: Prompt) -> dict[str, float]:
        law = imitator(prompt)
        return {**law, "his": law["his"] * 1.5 / 2, "her": 0.5 - law["his"] * 1.5 / 2}

    generated, hot, biased = share_of(imitator, 0.8), share_of(imitator, 1.6), share_of(contrary, 0.8)
    for after in (1, 2, rounds):
        assert ks_2samp(generated[:, after], expected[:, after]).pvalue > 0.01 / 3
    assert ks_2samp(hot[:, rounds], expected[:, rounds]).pvalue < 1e-6
    assert ks_2samp(biased[:, rounds], expected[:, rounds]).pvalue < 1e-6


@pytest.mark.parametrize("answers", [0, 4, 59, 119])
def test_a_run_that_ends_after_so_many_answers_goes_on_to_the_same_end(population, tmp_path, answers):
    log = tmp_path / "log.jsonl"
    calls = 0

    def stopping(prompt: Prompt) -> dict[str, float]:
        nonlocal calls
        if calls == answers:
            raise KeyboardInterrupt
        calls += 1
        return imitator(prompt)

    with pytest.raises(KeyboardInterrupt):
        play(stopping, log=log)
    content = log.read_bytes()
    assert answers / 6 < content.count(b"\n") < 2 + answers / 4  # each line is three pairs, some with equal prompts
    log.write_bytes(content[: len(content) - answers % 7])  # cut off within a line, or not
    assert play(log=log).identical(population)
    again = play(lambda prompt: pytest.fail("something was generated"), log=log)
    assert again.identical(population)
    assert play(log=log, rounds=2)["said"].identical(population["said"][:, :12])
    assert play(log=log, rounds=6).identical(play(rounds=6))


def change(number: int, **values: object) -> Callable[[list[dict]], None]:
    return lambda lines: lines[number].update(values)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"seed": 6}, None, "it holds a population with seed = 5, expected 6"),
        ({"n_agents": 7}, None, "it holds .* n_agents = 6, expected 7"),
        ({"temperature": 0.7}, None, "it holds .* temperature = 0.5, expected 0.7"),
        ({"payoffs": Payoffs(1, 0)}, None, "it holds .* payoffs = "),
        (
            {},
            change(2, met=[[1, 2]] * 3),
            r"line 3 does not fit this population \(agents \[\[1, 2\], .* expected words",
        ),
        ({}, change(2, said=[[0, 2]] * 3), r"line 3 .* said \[\[0, 2\], .* expected words of "),
        ({}, change(2, said=[0, 1]), "line 3 .* expected words of "),
        ({}, lambda lines: lines[1].pop("said"), "line 2 .*'said'"),
        ({}, lambda lines: lines.pop(1), "line 2 .* expected words of "),
    ],
)
def test_a_log_of_something_else_is_refused(tmp_path, options, change, message):
    log = tmp_path / "log.jsonl"
    play(log=log, rounds=1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    if change:
        change(lines)
    log.write_text("".join(json.dumps({"interaction": 0} | line) + "\n" for line in lines))  # as it once was
    content = log.read_bytes()
    with refused(f"^log = {log}: {message}"):
        play(log=log, **options)
    assert log.read_bytes() == content


def test_a_model_that_says_no_word_is_one_clear_line(tmp_path):
    message = "max_tries = 20: in interaction 0 none of 120 answers of fake began"
    with refused(message, UnparsedError):
        play(lambda prompt: {"The": 1.0}, max_tries=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_agents": 1}, "n_agents = 1"),
        *(({name: 0}, f"{name} = 0") for name in ("rounds", "runs", "max_tries")),
        ({"seed": -1}, "seed = -1"),
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"template": replace(SHORT, answer_prefix="say ")}, "its answer prefix ends with a space"),
        ({"memory_length": 32}, "memory_length = 32: expected a whole number from 1 to 31"),
    ],
)
def test_wrong_input_is_one_clear_line(options, message):
    with refused(message):
        play(lambda prompt: pytest.fail("something was generated"), **options)


def test_consensus_of_generated_runs_is_by_the_convention_of_the_simulator():
    def stubborn(prompt: Prompt) -> dict[str, float]:
        return {"her": 1.0}

    population = play(stubborn, rounds=4)
    assert live_consensus(population).tolist() == [1, 1, 1]
    assert live_consensus(population.isel(interaction=slice(0, 18)), "001").tolist() == [1, 1, 1]
    said = population["said"].copy()
    said[0, 5, 0] = 0  # a failure in the first round only
    said[1, 12, 0] = 0  # and in the third
    changed = population.assign(said=said)
    assert live_consensus(changed).tolist() == [1, -1, 1]


def test_populations_survive_a_file(population, tmp_path):
    assert meanfield.load(meanfield.save(population, tmp_path / "a.nc")).identical(population)
