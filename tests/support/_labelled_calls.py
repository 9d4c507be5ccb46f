"""Calls of every public function that takes something labelled, and their inputs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import meanfield
import policy_extraction
import validation
from _policies import random_composition, random_policy
from meanfield.toolbox import (
    as_population,
    canonical_order,
    name_of,
    policy_hash,
    signed_kappa,
    single_policy,
    space_of,
    stamp,
    validate_composition,
    weak_side,
    word_index,
)
from validation.comparison import compare_ensembles

SPACES = {"two words": (2, 1), "three words": (3, 1), "two attractors": (2, 2)}


class Given:
    """The inputs of a call, each changed when it is asked for."""

    def __init__(self, space: str, change: Callable[[str, Any], Any] = lambda name, value: value) -> None:
        self.space, self.change = space, change

    def __getattr__(self, name: str) -> Any:
        return self.change(name, INPUTS[name](self.space))

    @property
    def population(self) -> meanfield.Population:
        # Committed agents say the word that is last: were words in their order by chance, it would not be seen.
        share = {meanfield.toolbox.words_of(self.policy)[-1]: 0.05}
        return meanfield.Population([self.policy, self.other], fractions=[0.7, 0.3], committed=share)


def conformist() -> xr.Dataset:
    """H = 2: say what was said and heard more often; two attractors with a saddle between them."""
    space = meanfield.MemorySpace(2, 2)
    majority = np.array([np.sign(sum(2 - 2 * (a + b) for a, b in space.memory(i))) for i in range(space.n_states)])
    return meanfield.make_policy(np.where(majority == 0, 0.52, 0.5 + 0.495 * majority), ["a", "b"], model="conformist")


def policy(space: str, seed: int = 1) -> xr.Dataset:
    if space == "two attractors":
        return conformist() if seed == 1 else random_policy(seed, memory_length=2)
    return random_policy(seed, *SPACES[space]).assign_coords(model=f"random {seed}")


def stack(space: str) -> xr.Dataset:
    first = policy(space)
    second = policy(space, 2).assign_coords(model=first["model"].item())
    words = [word.upper() for word in meanfield.toolbox.words_of(second)]
    second = second.assign_coords(word_label=("word", words), pair="/".join(words))
    both = [one.drop_vars("word") for one in (first, second)]
    return xr.concat(both, "pair", coords=["word_label"], compat="override").expand_dims("model")


def composition(space: str, dims: tuple[str, ...] = ("state",)) -> xr.DataArray:
    n_states = policy(space).sizes["state"]
    sizes = {"component": 2, "start": 1, "state": n_states}
    number = int(np.prod([sizes[dim] for dim in dims[:-1]]))
    values = np.stack([random_composition(seed, n_states) for seed in range(number)])
    coords = {dim: np.arange(sizes[dim]) for dim in dims}
    return xr.DataArray(values.reshape([sizes[dim] for dim in dims]), dims=dims, coords=coords)


def empirical(space: str) -> xr.Dataset:
    one = policy(space)
    return one.assign(alpha=one["q"] * 7 + 0.3)


def simulation(space: str, seed: int = 1) -> xr.Dataset:
    options = {"n_agents": [6, 24], "runs": 3, "max_rounds": 40, "record_rounds": 4}
    return validation.simulate(policy(space), seed=seed, **options)


def measured() -> xr.Dataset:
    """A policy with its record, H = 1."""
    return policy_extraction.extract(answers(), words=("his", "her"), memory_length=1)


def answers() -> policy_extraction.backends.TableBackend:
    def law(memory: tuple, order: tuple) -> dict[str, float]:
        return {"his": 0.2 + 0.1 * len(memory) + 0.05 * (order[0] == "his"), "her": 0.3}

    return policy_extraction.backends.TableBackend(law, ("his", "her"), 1)


def variants(space: str) -> xr.Dataset:
    both = xr.concat([policy(space), policy(space, 2)], "variant", coords="minimal", compat="override")
    return both.assign_coords(variant=["plain", "newest first"])


def infection() -> meanfield.ReactionModel:
    """Three states in which one is left alone: susceptible, infected, recovered."""
    becomes = np.array([[0.0, 1, 0], [0, 1, 0], [0, 0, 1]])
    recover = np.array([[0.0, 0, 0], [0, 0, 0.3], [0.1, 0, 0]])
    return meanfield.ReactionModel(list("SIR"), [[1, 0, 0]], [[0, 1, 0]], [becomes], None, recover)


def drawn(*results: xr.Dataset) -> list[tuple[str, np.ndarray]]:
    """The labels and the points of the lines that `plot` draws of each result."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    axes = [axes for result in results for axes in np.atleast_1d(np.asarray(meanfield.plot(result), dtype=object))]
    plt.close("all")
    return [(str(line.get_label()), np.asarray(line.get_xydata())) for one in axes for line in one.get_lines()]


INPUTS: dict[str, Callable[[str], Any]] = {
    name: cache(make)
    for name, make in {
        "policy": policy,
        "other": lambda space: policy(space, 2),
        "stack": stack,
        "lone": lambda space: stack(space).isel(pair=[0]),
        "composition": composition,
        "compositions": lambda space: composition(space, ("component", "state")),
        "starts": lambda space: composition(space, ("start", "state")),
        "fractions": lambda space: xr.DataArray([0.7, 0.3], {"component": [0, 1]}, ("component",)),
        "empirical": empirical,
        "solution": lambda space: meanfield.solve(policy(space)),
        "simulation": simulation,
        "another": lambda space: simulation(space, 2),
        "comparison": lambda space: validation.compare(INPUTS["solution"](space), INPUTS["simulation"](space)),
        "bias": lambda space: validation.naming_game.simulated_bias(INPUTS["simulation"](space)),
        "record": lambda space: measured(),
        "partly": lambda space: policy_extraction.measure(
            answers(), words=("his", "her"), memory_length=1, budget=10, cache=False
        ),
        "variants": variants,
        "report": lambda space: policy_extraction.check_policy(measured()),
        "conformist": lambda space: conformist(),
        "mix": lambda space: xr.DataArray([0.7, 0.2, 0.1], {"state": list("SIR")}, ("state",)),
    }.items()
}

CALLS: dict[str, Callable[[Given], Any]] = {
    "meanfield.Population": lambda g: meanfield.Population([g.policy, g.other], fractions=g.fractions),
    "meanfield.ReactionModel": lambda g: [
        f(g.mix) for m in [infection()] for f in (m.drift, m.jacobian, m.generator, m.class_masses)
    ],
    "meanfield.toolbox.as_population": lambda g: as_population(g.policy),
    "meanfield.basins": lambda g: meanfield.basins(g.policy, family="dirichlet", starts=4),
    "meanfield.bifurcation": lambda g: meanfield.bifurcation(g.policy, word="b", spacing=0.2),
    "meanfield.toolbox.canonical_order": lambda g: [
        canonical_order(g.policy, "policy")["q"].transpose("state", "word"),
        canonical_order(g.compositions, "composition").transpose("component", "state"),
    ],
    "meanfield.consensus": lambda g: meanfield.consensus(g.policy, "b"),
    "meanfield.convention": lambda g: meanfield.convention(
        g.solution["word_share"].sel(time=10).round(), meanfield.toolbox.words_of(g.policy)
    ),
    "meanfield.critical_mass": lambda g: meanfield.critical_mass(g.policy, word="b"),
    "meanfield.drift": lambda g: [
        meanfield.drift(g.policy, g.composition),
        meanfield.drift(g.population, g.compositions),
    ],
    "meanfield.each_policy": lambda g: list(meanfield.each_policy([g.stack, g.policy])),
    "meanfield.empty_memories": lambda g: meanfield.empty_memories(g.policy),
    "meanfield.entropy": lambda g: meanfield.entropy(g.solution["word_share"]),
    "meanfield.escape_path": lambda g: meanfield.escape_path(g.conformist, fixed_point=0),
    "meanfield.explore": lambda g: page_entries(g.stack, g.policy),
    "meanfield.finite_size": lambda g: meanfield.finite_size(g.policy, n_agents=24, times=np.arange(3.0)),
    "meanfield.fixed_points": lambda g: [meanfield.fixed_points(g.policy), meanfield.fixed_points(g.population)],
    "meanfield.group_size_law": lambda g: meanfield.group_size_law(g.policy),
    "meanfield.transition_rates": lambda g: [
        meanfield.transition_rates(g.policy),
        meanfield.transition_rates(g.population),
    ],
    "meanfield.lifetime": lambda g: [
        meanfield.lifetime(g.policy),
        meanfield.lifetime(g.population),
    ],
    "meanfield.load_policy": lambda g: saved_and_loaded(g.stack),
    "meanfield.make_policy": lambda g: meanfield.make_policy(g.policy["q"], meanfield.toolbox.words_of(g.policy)),
    "meanfield.toolbox.name_of": lambda g: name_of(g.policy),
    "meanfield.toolbox.policy_hash": lambda g: [
        policy_hash(g.policy),
        policy_hash(g.stack),
    ],
    "meanfield.fixed_points for models": lambda g: meanfield.fixed_points(infection(), initial=g.mix, starts=1),
    "meanfield.plot": lambda g: drawn(g.solution, g.simulation),
    "meanfield.reaction_model": lambda g: [
        model.drift(np.full(model.n_states, 1 / model.n_states))
        for model in (meanfield.reaction_model(g.policy), meanfield.reaction_model(g.population))
    ],
    "meanfield.design": lambda g: meanfield.design(g.conformist, of="kappa", value=0.0),
    "meanfield.sensitivity": lambda g: meanfield.sensitivity(g.policy, of="word_share", fixed_point=0),
    "meanfield.toolbox.signed_kappa": lambda g: signed_kappa(g.conformist),
    "meanfield.toolbox.single_policy": lambda g: single_policy(g.policy),
    "meanfield.solve": lambda g: [meanfield.solve(g.policy, initial=g.starts), meanfield.solve(g.lone)],
    "meanfield.solve for stacks": lambda g: meanfield.solve(g.stack, initial=g.starts),
    "meanfield.solve for populations": lambda g: meanfield.solve(g.population, initial=g.compositions),
    "meanfield.solve for models": lambda g: meanfield.solve(infection(), initial=g.mix, times=np.arange(3.0)),
    "meanfield.toolbox.space_of": lambda g: space_of(g.policy),
    "meanfield.spectrum": lambda g: [
        meanfield.spectrum(g.policy, g.composition),
        meanfield.spectrum(g.population, g.compositions),
        meanfield.spectrum(infection(), g.mix),
    ],
    "meanfield.stability_table": lambda g: meanfield.stability_table(g.policy),
    "meanfield.stability_table for populations": lambda g: meanfield.stability_table([g.stack, g.population]),
    "meanfield.toolbox.stamp": lambda g: stamp(xr.Dataset(), "anything", g.policy),
    "meanfield.success_rate": lambda g: meanfield.success_rate(g.solution["word_share"]),
    "meanfield.toolbox.validate_composition": lambda g: validate_composition(g.compositions, g.population),
    "meanfield.validate_policy": lambda g: [meanfield.validate_policy(g.policy), meanfield.validate_policy(g.stack)],
    "meanfield.toolbox.weak_side": lambda g: list(weak_side(g.policy) or ()),
    "meanfield.toolbox.word_index": lambda g: word_index(g.policy, "b"),
    "meanfield.toolbox.words_of": lambda g: meanfield.toolbox.words_of(g.policy),
    "validation.collective_bias": lambda g: validation.collective_bias(g.stack, n_agents=[6, 12], runs=4, seed=1),
    "validation.naming_game.committed_minority": lambda g: validation.naming_game.committed_minority(
        g.policy, n_agents=6, word="b", initial="a", numbers=[1, 3], runs=4, seed=1
    ),
    "validation.compare": lambda g: validation.compare(g.solution, g.simulation),
    "validation.comparison.compare_ensembles": lambda g: compare_ensembles(g.simulation, g.another),
    "validation.comparison.comparison_table": lambda g: validation.comparison.comparison_table(g.comparison),
    "validation.naming_game.consensus_stability": lambda g: validation.naming_game.consensus_stability(
        g.policy, "b", n_agents=6, runs=4, rounds=3, seed=1
    ),
    "validation.naming_game.consensus_times": lambda g: validation.naming_game.consensus_times(g.simulation),
    "validation.naming_game.critical_size_from_simulation": lambda g: (
        validation.naming_game.critical_size_from_simulation(g.bias)
    ),
    "validation.naming_game.exact_population": lambda g: [
        validation.naming_game.exact_population(g.policy, 3).moments(rounds=[0, 1]),
        validation.naming_game.exact_population(g.policy, 3, initial=g.composition).moments(rounds=[0, 1]),
    ],
    "validation.populations.misalignment": lambda g: validation.populations.misalignment(g.stack, g.bias),
    "validation.populations.neutrality": lambda g: validation.populations.neutrality(g.stack),
    "validation.populations.power": lambda g: validation.populations.power(g.bias.sel(n_agents=[6]), runs=[5, 20]),
    "validation.populations.power for policies": lambda g: validation.populations.power(
        g.conformist, n_agents=24, against=g.conformist
    ),
    "validation.populations.sample_policies": lambda g: validation.populations.sample_policies(g.empirical, 2, seed=1),
    "validation.rare_event": lambda g: [
        validation.rare_event(g.policy, "b", n_agents=6, runs=4, replications=2, seed=1, max_rounds=40),
        validation.rare_event(
            *(g.policy, "b"),
            **{"n_agents": 6, "runs": 4, "replications": 2, "seed": 1, "max_rounds": 40},
            **{"initial": g.composition, "coordinate": g.composition},
        ),
        validation.rare_event(g.population, "b", n_agents=20, runs=4, replications=2, seed=1, max_rounds=20),
    ],
    "validation.simulate": lambda g: [
        validation.simulate(g.policy, n_agents=6, runs=3, seed=1, initial=g.composition, record_rounds=3),
        validation.simulate(g.population, n_agents=20, runs=3, seed=1, initial=g.compositions, record_rounds=3),
    ],
    "validation.naming_game.simulated_bias": lambda g: validation.naming_game.simulated_bias(g.simulation),
    "validation.sweep": lambda g: swept(g.stack),
    "policy_extraction.check_policy": lambda g: policy_extraction.check_policy([g.record, g.stack]),
    "policy_extraction.checks.generation_test": lambda g: policy_extraction.checks.generation_test(
        answers(), g.record, n=5, seed=1
    ),
    "policy_extraction.policy_from_record": lambda g: policy_extraction.policy_from_record(g.record, order=1),
    "policy_extraction.policy_warnings": lambda g: policy_extraction.policy_warnings(g.report),
    "policy_extraction.measuring.flip_table": lambda g: policy_extraction.measuring.flip_table(g.variants),
    "policy_extraction.sample_policies": lambda g: policy_extraction.sample_policies(g.partly, 2, seed=1),
    "policy_extraction.measuring.variant_table": lambda g: policy_extraction.measuring.variant_table(g.variants),
}
TWO_WORDS_ONLY = {
    "meanfield.bifurcation",
    "meanfield.critical_mass",
    "meanfield.escape_path",
    "meanfield.explore",
    "meanfield.group_size_law",
    "meanfield.design",
    "meanfield.sensitivity",
    "meanfield.toolbox.signed_kappa",
    "validation.collective_bias",
    "validation.naming_game.critical_size_from_simulation",
    "validation.populations.misalignment",
    "validation.naming_game.simulated_bias",
    "validation.populations.power",
    *(name for name in CALLS if name.startswith("policy_extraction.")),
}
# Over several pairs, each with words of its own
COLLECTIONS = {
    "meanfield.load_policy",
    "meanfield.solve",
    "meanfield.solve for stacks",
    "meanfield.validate_policy",
    "validation.populations.neutrality",
}
# Means over runs, and over states, are sums in the order in which memory holds them.
ROUNDED = {"validation.compare", "policy_extraction.check_policy", "policy_extraction.measuring.variant_table"}
# What JAX compiles for seconds, or takes as long; their inputs are refused at the same doors as those of the others.
COMPILED = {
    "meanfield.basins",
    "meanfield.design",
    "meanfield.escape_path",
    "meanfield.explore",
    "meanfield.finite_size",
    "meanfield.fixed_points for models",
    "meanfield.lifetime",
    "meanfield.sensitivity",
    "meanfield.solve for populations",
    "meanfield.solve for stacks",
    "meanfield.solve for models",
    "meanfield.stability_table for populations",
    "meanfield.toolbox.signed_kappa",
    "meanfield.transition_rates",
    "policy_extraction.sample_policies",
    "validation.naming_game.committed_minority",
    "validation.populations.power for policies",
    "validation.rare_event",
}
# They look at no more of a policy than this.
LOOKED_AT = {
    "meanfield.toolbox.space_of": (),
    **dict.fromkeys(
        ("meanfield.toolbox.words_of", "meanfield.toolbox.name_of", "meanfield.toolbox.word_index"), ("word",)
    ),
    **dict.fromkeys(("meanfield.convention", "meanfield.entropy", "meanfield.success_rate"), ("word",)),
}


def saved_and_loaded(policies: xr.Dataset) -> xr.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        return meanfield.load_policy(meanfield.save(policies, Path(folder) / "policies.nc"))


def page_entries(*policies: xr.Dataset) -> list[str]:
    """Entries of these policies on a page for a browser."""
    with tempfile.TemporaryDirectory() as folder:
        page = meanfield.explore(policies, Path(folder) / "explorer.html").read_text(encoding="utf-8")
    return re.findall(r'"(?:name|words|q|log_odds|hash)":[^:]*', page)


def swept(policies: xr.Dataset) -> xr.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        return validation.sweep(policies, folder, n_agents=[6], runs=2, max_rounds=20)
