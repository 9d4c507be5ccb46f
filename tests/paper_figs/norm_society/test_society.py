"""A society of agents with norm databases, run as a whole: its law, time and start are those of the reaction model.

Error budget: a true statement is accepted with probability 1 - 1e-5 or more for an arbitrary seed, in 20 comparisons;
each criterion has a control that it must reject.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2_contingency, chisquare

import meanfield
import theory
from _norm_societies import FAST, K, ordinary, table
from meanfield import ReactionModel
from paper_figs.norm_society import TableOperations, simulate_society
from theory.norms import AGENTS, BEHAVIOURS, NormRates, default_operations
from theory.norms._states import starting_fractions
from validation import reactions

ALPHA = 1e-5


def protocol_of(model: ReactionModel, rates: NormRates) -> np.ndarray:
    """The model, interaction by interaction, with the frequencies of events in the society."""
    alone = rates.plans_per_day + rates.syntheses_per_day
    S = model.spontaneous.toarray()
    moved = np.einsum("ik,jl->ijkl", (S + np.diag(alone - S.sum(1))) / alone, np.eye(K))
    return (rates.encounters_per_day * model.tensor() + alone * moved) / (rates.encounters_per_day + alone)


def homogeneous(first: np.ndarray, second: np.ndarray) -> float:
    """p that two samples of small whole numbers are from one law, rare values taken together."""
    counts = np.array([np.bincount(sample, minlength=11) for sample in (first, second)])
    order = np.argsort(-counts.sum(0))
    rare = counts.sum(0)[order] < 20
    merged = np.column_stack([counts[:, order[~rare]], counts[:, order[rare]].sum(1)])
    merged = merged[:, merged.sum(0) > 0]
    return chi2_contingency(merged).pvalue if merged.shape[1] > 1 else 1.0


@pytest.fixture(scope="module")
def tipping() -> dict[str, np.ndarray]:
    """Numbers of agents after 40 and 200 events, of 300 runs."""
    decide, counts = TableOperations(behaviours=["tipping"], rates=FAST), defaultdict(list)
    for seed in range(300):
        run = simulate_society(decide, AGENTS, ["tipping"], encounters=170, seed=seed)  # 200 events hold 133 ± 7
        for name in ("accepted", "complying", "reached", "informed"):
            counts[name].append((10 * run[name].values[[40, 200], 0]).round().astype(int))
    return {name: np.array(values) for name, values in counts.items()}


@pytest.mark.slow
def test_whole_runs_have_the_law_of_the_model(tipping: dict[str, np.ndarray]) -> None:
    """Numbers of agents after 40 and 200 events of ten agents; not of a model with another operation."""

    def by_protocol(operations: xr.Dataset) -> dict[str, np.ndarray]:
        protocol = protocol_of(theory.norms.reaction_model(operations, "tipping", FAST), FAST)
        start = (10 * theory.norms.initial_composition("tipping").values).round().astype(int)
        runs = reactions.simulate(protocol, start, runs=4000, seed=1, max_rounds=20, record_rounds=20)
        model = theory.norms.reaction_model(operations, "tipping", FAST)
        seen = theory.norms.observables(model, runs["count"].sel(round=[4, 20]).values / 10)
        return {name: (10 * seen[name].values).round().astype(int) for name in tipping}

    expected = by_protocol(default_operations())
    for name, counts in tipping.items():
        for place in np.ndindex(counts.shape[1:]):
            assert homogeneous(counts[:, *place], expected[name][:, *place]) > ALPHA, (name, place)
    other = by_protocol(table(identify_chat=[[0.6, 0.85], [0.2, 0.3]], identify_thought=0.2))
    for name in ("accepted", "complying", "reached"):
        assert homogeneous(tipping[name][:, 1, 0], other[name][:, 1, 0]) < ALPHA
    lazy = by_protocol(table(comply_in_plan=0.4))
    assert homogeneous(tipping["complying"][:, 1, 0], lazy["complying"][:, 1, 0]) < ALPHA


class Recorder(TableOperations):
    """The table, which notes who acts about what, who sees it, and who plans or sorts its norms."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.met: list[tuple[str, str, str]] = []
        self.alone: list[tuple[str, str]] = []

    def __call__(self, operation, agent, given, rng):
        if operation == "act":
            self.acts = agent.name, given["behaviour"].name
        if operation == "think":
            self.met.append((agent.name, *self.acts))
        if operation in ("plan", "classify"):
            self.alone.append((operation, agent.name))
        return [] if operation == "classify" else super().__call__(operation, agent, given, rng)


def test_events_and_pairs_come_as_often_as_they_should() -> None:
    """All are entrepreneurs who never talk, so that all think, and whose utilities are always above the threshold."""
    rates = NormRates(encounters_per_day=5, plans_per_day=7, syntheses_per_day=4, threshold=1)
    recorder = Recorder(operations=table(decide_to_talk=0), rates=rates)
    agents = [agent for agent in AGENTS if agent.type == "entrepreneur"]
    run = simulate_society(recorder, agents, encounters=3000, seed=3)
    observed = np.array([(run["what"] == name).sum() for name in ("encounter", "plan", "synthesis")])
    assert chisquare(observed, np.array([15, 7, 4]) / 26 * observed.sum()).pvalue > ALPHA
    assert chisquare(observed, np.array([5, 7, 4]) / 16 * observed.sum()).pvalue < ALPHA
    met, alone = Counter(recorder.met), Counter(recorder.alone)
    assert len(met) == 3 * 2 * 3 and chisquare(list(met.values())).pvalue > ALPHA
    for number, name in zip(observed[1:], ("plan", "classify"), strict=True):
        each = [alone[name, agent.name] for agent in agents]
        assert sum(each) == number and chisquare(each).pvalue > ALPHA
    assert sum(met.values()) == observed[0]


def test_time_and_start_are_those_of_the_model() -> None:
    run = simulate_society(TableOperations(rates=FAST), encounters=50, seed=1)
    assert int((run["what"] == "encounter").sum()) == 50
    np.testing.assert_allclose(run["time"], np.arange(run.sizes["event"]) / (10 * (3 * 20 + 6 + 4)))
    run = simulate_society(TableOperations(), encounters=1, seed=1).isel(event=0)
    for name in BEHAVIOURS:
        of = starting_fractions(name)
        for standard in ("for", "against"):
            for share in ("accepted", "complying", "reached"):
                found = float(run[share].sel(behaviour=name, standard=standard))
                assert found == pytest.approx(of["entrepreneur", standard])
    assert float(run["informed"].sum()) == 0
    nobody = simulate_society(TableOperations(table(identify_habit=0)), ordinary(AGENTS), encounters=200, seed=1)
    assert float(nobody["reached"].max()) == 0 and int(nobody["conflicts"].max()) == 0


def test_runs_are_reproducible_and_saved(tmp_path: Path) -> None:
    one, other = (simulate_society(TableOperations(), encounters=100, seed=seed) for seed in (7, 8))
    xr.testing.assert_identical(one, simulate_society(TableOperations(), encounters=100, seed=7, progress=True))
    assert (one["accepted"].isel(event=slice(0, 90)) != other["accepted"].isel(event=slice(0, 90))).any()
    xr.testing.assert_identical(meanfield.load(meanfield.save(one, tmp_path / "run.nc")), one)
    part = simulate_society(TableOperations(), encounters=60, seed=7)
    xr.testing.assert_equal(one.isel(event=slice(0, part.sizes["event"]))["accepted"], part["accepted"])
    assert simulate_society(TableOperations(rates=FAST), encounters=2, seed=1).attrs["option_plans_per_day"] == 6
    own = simulate_society(TableOperations(rates=FAST).__call__, encounters=2, seed=1).attrs
    assert own["option_other_utility_ordinary"] == 0 and own["option_encounters_per_day"] == 160
