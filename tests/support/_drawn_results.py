"""A small result of every kind that `plot` draws, made by the function that makes it; of many kinds also odd ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import meanfield
import policy_extraction
import theory
import validation
from _endpoint_counts import table
from _labelled_calls import answers, conformist, infection, measured, stack, swept, variants
from _policies import loyal_policy, majority, random_policy
from policy_extraction import checks
from policy_extraction.flag_game import StandIn, play, probe_memory_conflict
from theory.flag_game import evidence, mechanism1, mechanism2, random_field
from validation.comparison import compare_ensembles

WORDS = ("his", "her")
NEVER = np.array([0.5, 1.0, 0.7, 0.6, 0.0])  # H = 1: each consensus is kept for good


def epidemic(R0: float) -> meanfield.ReactionModel:
    return meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [R0, 1.0])


class YesMan:
    """A model that says yes with the probability 0.8."""

    name, identity, provenance = "yes-man", "", {}
    check = generate = tokens = lambda self, *asked, **options: None

    def score(self, prompts: Any, words: Any) -> Any:
        n = len(prompts)
        yield policy_extraction.backends.Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))


@cache
def runs(n_words: int = 2, number: int = 6) -> xr.Dataset:
    record = ["word_share", "said", "success_rate"]
    options = {"n_agents": [6, 24], "runs": number, "max_rounds": 30, "record_rounds": 8, "record": record}
    return validation.simulate(random_policy(1, n_words, 1), seed=1, **options)


@cache
def on_network() -> xr.Dataset:
    return validation.simulate(
        random_policy(1, 2, 1),
        n_agents=6,
        runs=3,
        seed=1,
        max_rounds=4,
        topology=np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]),
        record_rounds=4,
        record=["node_word_share", "group_word_share"],
        node_groups=["one", "one", "one", "two", "two", "two"],
    )


@cache
def bias() -> xr.Dataset:
    return validation.collective_bias([conformist(), stack("two words")], n_agents=[6, 24], runs=8, seed=1)


@cache
def populations() -> Any:
    """Eight runs of six agents who say A in seven of ten cases."""
    rng = np.random.default_rng(1)
    log = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    log[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    log[["said", "heard"]] = np.where(rng.random((320, 2)) < 0.7, "A", "B")
    return meanfield.datasets.from_events(log, memory_length=1)


def played(words: str) -> pd.DataFrame:
    runs = pd.DataFrame({"success_last_3N": [0.97] * 9 + [0.6], "majority_word_last_3N": list(words)})
    runs = runs.assign(model="m", experiment="from_empty", options="M Q", memory_length=5, n_agents=24)
    runs = runs.assign(n_committed=0, initial_consensus="", committed_word="", interactions=500)
    return validation.populations.winners(runs.assign(majority_share_last_3N=0.9))


def counted() -> xr.Dataset:
    states, counts = ("", "A,A", "A,A", "B,A"), (40, 90, 10, 3)
    rows = [("m", "A_B", 1, state, word, n) for state, word, n in zip(states, "AABA", counts, strict=True)]
    columns = ["model", "options", "memory_length", "state", "choice", "count"]
    return validation.populations.empirical_policy(pd.DataFrame(rows, columns=columns))


@cache
def gossip(**options: Any) -> xr.Dataset:
    crops = np.array([[0.6, 0.3, 0.1]] * 2 + [[0.1, 0.7, 0.2]] * 2)
    options = {"truth": 0, "rival": 1, "trajectories": True, "patience": 2} | options
    return validation.flag_game.simulate_gossip(crops, runs=4, seed=2, uptake=0.6, **options)


def game() -> xr.Dataset:
    clear, doubtful = (theory.flag_game.png(np.full((1, 1, 3), shade, np.uint8)) for shade in (0, 255))
    agent = StandIn({clear: [1.0, 0.0], doubtful: [0.4, 0.6]}, ("France", "Peru"), uptake=0.5)
    return play([agent] * 4, [clear, clear, doubtful, doubtful], agent.countries, seed=1, truth="France")


def probed_flag() -> xr.Dataset:
    seen = theory.flag_game.crop_compatibility("Yemen")[::9]
    counts = np.tile([40, 0], (seen.sizes["crop"], 1))
    counts = xr.DataArray(counts, seen[:, :2].coords, ("crop", "country"), attrs=seen.attrs)
    return theory.flag_game.compare_with_probe(counts.assign_coords(country=["Yemen", "Austria"]), "Yemen")


def conflict() -> xr.Dataset:
    crop = theory.flag_game.png(np.zeros((1, 1, 3), np.uint8))
    parrot = StandIn({crop: [0.9, 0.1]}, ("France", "Peru"), uptake=1.0, grounded=False)
    options = {"target": "France", "lure": "Peru", "trials": 20, "seed": 1}
    return probe_memory_conflict(parrot, crop, parrot.countries, **options)


def conflict_fit() -> xr.Dataset:
    entries, law = np.arange(9), {"evidence": "strong", "relation": "incompatible", "leak": 0.05}
    counts = (1000 * mechanism2.memory_conflict_response(entries / 8, uptake=0.6, rewrite=0, **law)).round().astype(int)
    names = ["private_evidence", "social_evidence", "other_private_compatible", "other_incompatible"]
    asked = pd.DataFrame(counts, columns=[f"{name}_count" for name in names]).assign(
        model="a model",
        m=1,
        private_evidence_strength="strong_private_evidence",
        n_trials=counts.sum(1),
        social_evidence_relation="incompatible",
        social_memory_entries=entries,
        target_memory_entries=8 - entries,
    )
    return mechanism2.fit(asked)


@cache
def flag_runs() -> pd.DataFrame:
    ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    return pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})


@cache
def teams() -> xr.Dataset:
    models = {"GPT-4o": 0.02, "GPT-5.4": 0.22}
    return validation.flag_game.predict_composition(models, uptake=[0.5, 0.9], n_agents=2, runs=40, seed=1)


def measured_teams() -> xr.Dataset:
    number = {"gpt54_count": [0, 1, 2] * 2, "final_accuracy_mean": [0.55, 0.6, 0.2] * 2}
    seen = pd.DataFrame({"alpha": np.repeat([0.5, 0.9], 3), "n_trials": 10, "initial_accuracy_mean": 0.4} | number)
    return validation.flag_game.compare_composition(teams(), seen)


def comprehension() -> xr.Dataset:
    one = YesMan()
    one.generate = lambda prompts, **options: ["1;"] * len(prompts)
    return checks.comprehension(one, WORDS, memory_length=2, n=10)


@cache
def infected() -> meanfield.ReactionModel:
    return infection()


MIX = xr.DataArray([0.7, 0.2, 0.1], {"state": list("SIR")}, ("state",))
SPREAD = [validation.reactions.Transition(("I", "S"), ("I", "I"), 0.5, marked=True)]


def spectrum(policy: xr.Dataset) -> xr.Dataset:
    return meanfield.spectrum(policy, meanfield.fixed_points(policy)["composition"].isel(fixed_point=0))


def rest() -> xr.DataArray:
    """Where the infection ends."""
    return meanfield.fixed_points(infected(), initial=MIX, starts=1)["composition"].isel(fixed_point=0)


def minority(**options: Any) -> xr.Dataset:
    options = {"numbers": [1, 3, 6], "runs": 8, "n_agents": 12, "seed": 1} | options
    return validation.naming_game.committed_minority(conformist(), word="b", initial="a", **options)


def spread(**options: Any) -> xr.Dataset:
    return validation.reactions.simulate(SPREAD, {"S": 9, "I": 1}, seed=1, max_rounds=20, **{"runs": 3} | options)


# For each kind its results: the usual one first, then the smallest and odd ones
RESULTS: dict[str, list[Callable[[], Any]]] = {
    "basins": [
        lambda: meanfield.basins(conformist(), family="consensus", starts=9),
        lambda: meanfield.basins(random_policy(1, 3, 1), family="dirichlet", starts=4),
    ],
    "reaction_bifurcation": [lambda: meanfield.bifurcation(epidemic, interval=(0.5, 2), starts=2, spacing=0.2)],
    "bifurcation": [
        lambda: meanfield.bifurcation(conformist(), word="b"),
        lambda: meanfield.bifurcation(random_policy(1), word="b", spacing=0.2),
    ],
    "choice_scores": [lambda: validation.populations.choice_scores(populations())],
    "collective_bias": [bias],
    "committed_minority": [minority, lambda: minority(numbers=[2], runs=1)],
    "comparison": [
        lambda: validation.compare(meanfield.solve(random_policy(1)), runs()),
        lambda: validation.compare(meanfield.solve(random_policy(1, 3, 1)), runs(3)),
    ],
    "comprehension": [comprehension],
    "consensus_stability": [
        lambda: validation.naming_game.consensus_stability(
            conformist(), "b", n_agents=[6, 24], runs=6, rounds=4, seed=1
        ),
    ],
    "consensus_times": [
        lambda: validation.naming_game.consensus_times(runs()),
        lambda: validation.naming_game.consensus_times(runs(3, 1)),
    ],
    "copying_fit": [lambda: mechanism1.fit_copying(table())],
    "critical_mass": [
        lambda: meanfield.critical_mass(conformist(), word="b"),
        lambda: meanfield.critical_mass(random_policy(1), word="b"),
    ],
    "critical_size_from_simulation": [lambda: validation.naming_game.critical_size_from_simulation(bias())],
    "design": [
        lambda: meanfield.design(conformist(), of="kappa", value=0.0),
        lambda: meanfield.design(random_policy(1, 3, 1), of="word_share", fixed_point=0, value=0.5),
    ],
    "drift": [
        lambda: meanfield.drift(random_policy(1), np.full(5, 1 / 5)),
        lambda: meanfield.drift(random_policy(1, memory_length=3), np.full(85, 1 / 85)),
        lambda: meanfield.drift(infected(), MIX),
        lambda: meanfield.drift(stack("two words"), np.eye(5)[0]),
    ],
    "ensemble_comparison": [lambda: compare_ensembles(runs(), runs()), lambda: compare_ensembles(runs(3), runs(3, 1))],
    "escape_path": [
        lambda: meanfield.escape_path(conformist(), fixed_point=0),
    ],
    "exact_moments": [
        lambda: validation.naming_game.exact_population(random_policy(1), 3).moments(rounds=np.array([0, 1, 2])),
        lambda: validation.naming_game.exact_population(random_policy(1, 3, 1), 2).moments(rounds=[0]),
    ],
    "finite_size": [
        lambda: meanfield.finite_size(random_policy(1), n_agents=[10, 50], times=np.arange(9.0)),
        lambda: meanfield.finite_size(random_policy(1, 3, 1), n_agents=[10, 50], times=np.arange(9.0)),
        lambda: meanfield.finite_size(random_policy(1), times=np.arange(9.0)),
    ],
    "fixed_points": [
        lambda: meanfield.fixed_points(conformist()),
        lambda: meanfield.fixed_points(loyal_policy(1, 2)),
        lambda: meanfield.fixed_points(random_policy(1)),
    ],
    "flag_game": [game],
    "flag_game_accuracy": [lambda: validation.flag_game.accuracy(gossip())],
    "flag_game_fields": [
        lambda: theory.flag_game.crop_fields(theory.flag_game.crop_compatibility("France"), "France", "Peru")
    ],
    "flag_game_probe": [probed_flag],
    "flag_run_evidence": [
        lambda: evidence.against_evidence(flag_runs(), n_agents=[4, 8], evidence=[0.25, 0.5], models=["zealots"])
    ],
    "flag_run_scores": [lambda: evidence.score(evidence.cross_validate(flag_runs(), ["constant", "zealots"]))],
    "generation_test": [lambda: checks.generation_test(answers(), measured(), n=5, seed=1)],
    "gossip": [gossip, lambda: gossip(truth=None, rival=None, trajectories=False)],
    "group_size_law": [
        lambda: meanfield.group_size_law(majority(0.53)),
        lambda: meanfield.group_size_law(majority(0.53), n_agents=[10, 100, 1000]),
        lambda: meanfield.group_size_law(majority(0.53), n_agents=24),
        lambda: meanfield.group_size_law(random_policy(1)),
        lambda: meanfield.group_size_law(random_policy(1), n_agents=[10, 100], rounds=np.array([0, 1, 2, 4])),
    ],
    "lifetime": [
        lambda: meanfield.lifetime(conformist()),
        lambda: meanfield.lifetime(conformist(), n_agents=24),
        lambda: meanfield.lifetime(conformist(), n_agents=[5, 2000]),
        lambda: meanfield.lifetime(random_policy(1)),
        lambda: meanfield.lifetime(meanfield.make_policy(NEVER, ["a", "b"])),
    ],
    "live_population": [
        lambda: checks.live_population(answers(), WORDS, n_agents=4, memory_length=1, rounds=6, seed=1)
    ],
    "mechanism1_comparison": [lambda: validation.flag_game.compare(table(), runs=40, seed=1)],
    "mechanism1_fit": [
        lambda: mechanism1.fit(table(), free=["J", "sd_0"], starts=0, runs=100, bootstrap=0),
    ],
    "mechanism1_simulation": [
        lambda: validation.flag_game.simulate(n_agents=[4, 16], runs=6, seed=1, trajectories=True),
        lambda: validation.flag_game.simulate(n_agents=4, runs=1, seed=1),
    ],
    "mechanism2": [conflict_fit],
    "memory_conflict": [conflict],
    "minimal_naming_game_fixed_points": [lambda: theory.minimal_naming_game.fixed_points(0.5, committed=(0.05, 0))],
    "minimal_naming_game_simulation": [
        lambda: validation.minimal_naming_game.simulate(50, runs=4, seed=1, max_rounds=30, record_rounds=9)
    ],
    "misalignment": [lambda: validation.populations.misalignment([conformist(), stack("two words")], bias())],
    "neutrality": [lambda: validation.populations.neutrality(stack("two words"))],
    "policy": [
        lambda: random_policy(1),
        lambda: random_policy(1, 3, 1),
        counted,
        measured,
        lambda: policy_extraction.measure(answers(), words=WORDS, memory_length=1, budget=10, cache=False),
        lambda: stack("two words"),
    ],
    "policy_check": [lambda: policy_extraction.check_policy([measured(), stack("two words")])],
    "power": [lambda: validation.populations.power(0.1, n_agents=[24, 100])],
    "protocol_simulation": [
        lambda: spread(record_rounds=5, absorbing={"all": ["I"]}),
        lambda: spread(runs=1),
    ],
    "random_field_bifurcation": [lambda: random_field.bifurcation([-1.0, 1.0], beta=2.0, max_J=4.0)],
    "random_field_fixed_points": [lambda: random_field.fixed_points([-1.0, 1.0], J=3.0, beta=2.0)],
    "random_field_phase_diagram": [
        lambda: random_field.phase_diagram(
            mechanism1.APPENDIX_E.field_law, n_agents=[4, 64], J=[1.0, 2.0, 3.0], beta=1.0, samples=4
        )
    ],
    "rare_event": [
        lambda: validation.rare_event(conformist(), "b", n_agents=12, runs=20, replications=6, seed=1, max_rounds=40)
    ],
    "reaction_basins": [lambda: meanfield.basins(infected(), family="dirichlet", starts=4)],
    "reaction_finite_size": [
        lambda: meanfield.finite_size(infected(), initial=MIX, n_agents=[50, 100], times=np.arange(5.0)),
        lambda: meanfield.finite_size(infected(), initial=MIX, times=np.arange(5.0)),
    ],
    "reaction_fixed_points": [lambda: meanfield.fixed_points(infected(), initial=MIX, starts=1)],
    "reaction_sensitivity": [lambda: meanfield.sensitivity(infected(), of="eigenvalue", fixed_point=rest())],
    "reaction_solution": [lambda: meanfield.solve(infected(), initial=MIX, times=np.arange(5.0))],
    "real_populations": [lambda: validation.populations.cross_validate(populations(), draws=5, runs=10)],
    "real_runs": [populations],
    "record": [lambda: measured()],
    "robustness": [
        lambda: policy_extraction.robustness(
            answers(), words=WORDS, memory_length=1, templates=[policy_extraction.prompts.NAMING_GAME], quotation=False
        )
    ],
    "sensitivity": [
        lambda: meanfield.sensitivity(conformist(), of="kappa"),
        lambda: meanfield.sensitivity(random_policy(1), of="eigenvalue", fixed_point=0),
    ],
    "sharpness": [lambda: validation.populations.sharpness(populations())],
    "simulation": [runs, lambda: runs(3), lambda: runs(2, 1), on_network],
    "solution": [
        lambda: meanfield.solve(random_policy(1)),
        lambda: meanfield.solve(random_policy(1, 3, 1)),
        lambda: meanfield.solve(random_policy(1), times=[0.0]),
    ],
    "spectrum": [lambda: spectrum(random_policy(1, 3, 1)), lambda: spectrum(random_policy(1))],
    "stability_table": [lambda: meanfield.stability_table([stack("two words"), conformist()])],
    "sweep": [lambda: swept(stack("two words"))],
    "team_composition": [teams],
    "team_composition_comparison": [measured_teams],
    "transition_rates": [
        lambda: meanfield.transition_rates(conformist()),
        lambda: meanfield.transition_rates(conformist(), n_agents=24),
        lambda: meanfield.transition_rates(random_policy(1)),
    ],
    "variant_table": [lambda: policy_extraction.measuring.variant_table(variants("two words"))],
    "winners": [lambda: played("MMMMMMMMQM"), lambda: played("MMMMMMMMMM")],
}


@cache
def drawn(kind: str, number: int = 0) -> Any:
    """One of these results, made once."""
    return RESULTS[kind][number]()
