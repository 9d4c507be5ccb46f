"""[004] Fig. S2: collective bias of populations that a model writes, beside simulations of its policy."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
import validation
from meanfield import MemorySpace
from meanfield.toolbox import labelled, wilson_interval
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, styled
from paper_figs.paper_004._smollm2 import TRIES, Stock, model, policy_of
from policy_extraction.checks import live_population
from validation.naming_game import CONVENTIONS

PAIRS = ("woman/man", "more/less", "young/old")  # words of one token that are frequent answers
SIZES, ROUNDS, MEMORY_LENGTH = (4, 8, 12), 20, 2
GENERATED, SIMULATED = 50, 10_000
CONVENTION = "004"
LEVEL = 0.95


def numbers(study: Study) -> xr.Dataset:
    """Numbers of generated and of simulated runs that agree on either word, by pair and size."""
    return xr.concat([_pair(study, pair) for pair in PAIRS], "pair", coords=["word_label", "model"], compat="override")


def _pair(study: Study, pair: str) -> xr.Dataset:
    policy = policy_of(pair)
    runs = {"generated": study.runs(GENERATED), "simulated": study.runs(SIMULATED)}
    settings = {"sizes": SIZES, "rounds": ROUNDS, "memory_length": MEMORY_LENGTH, **runs}
    make = partial(_agreed, study, policy, pair.split("/"), runs)
    return study.kept(f"generated_{pair.replace('/', '_')}", make, policy, **settings)


def _agreed(study: Study, policy: xr.Dataset, words: list[str], runs: dict[str, int]) -> xr.Dataset:
    """Numbers of runs that agree on each word within the rounds, generated and simulated."""
    short = meanfield.make_policy(policy["q"].values[: MemorySpace(2, MEMORY_LENGTH).n_states], words)
    simulated = validation.simulate(
        short, n_agents=SIZES, runs=runs["simulated"], seed=study.seed, max_rounds=ROUNDS, convention=CONVENTION
    )["consensus_word"].transpose("n_agents", "run")
    stock = Stock(model(), study.folder, study.seed, "S2")
    options = {
        "memory_length": MEMORY_LENGTH,
        "rounds": ROUNDS,
        "runs": runs["generated"],
        "seed": study.seed,
        "max_tries": TRIES,
    }
    each = [live_population(stock, words, n_agents=n, progress=study.progress, **options) for n in SIZES]
    numbers = {
        "generated": [[(live_consensus(one) == k).sum() for k in range(2)] for one in each],
        "simulated": [[(one == word).sum() for word in words] for one in simulated.values],
    }
    columns = {
        name: (("n_agents", "word"), np.array(found), f"{name} runs that agree on the word")
        for name, found in numbers.items()
    } | {f"{name}_runs": ((), number, f"{name} runs") for name, number in runs.items()}
    coords = {"n_agents": list(SIZES), "word_label": ("word", words), "pair": "/".join(words), "model": stock.name}
    return labelled(columns, coords=coords)


def live_consensus(population: xr.Dataset, convention: str = CONVENTION) -> np.ndarray:
    """The number of the word on which each run of a live population agreed, -1 without convergence; shape (run,).

    Parameters
    ----------
    population
        From `policy_extraction.checks.live_population`.
    convention
        One of `validation.naming_game.CONVENTIONS`.
    """
    rule, n_agents = CONVENTIONS[convention], population.attrs["option_n_agents"]
    said = population["said"].transpose("run", "interaction", "speaker").values
    n_words = population["word_label"].size
    agreed = (said[..., :1] == np.arange(n_words)) & (said[..., :1] == said[..., 1:])
    by_round = agreed.reshape(len(said), -1, n_agents, n_words).sum(2)
    latest = np.lib.stride_tricks.sliding_window_view(by_round, 3, axis=1).sum(-1)[:, rule.first_test - 3 :]
    converged = latest.sum(-1) >= rule.successes_needed(n_agents)
    first = converged.argmax(1)
    return np.where(converged.any(1), latest[np.arange(len(said)), first].argmax(-1), -1)


@styled
def draw(found: xr.Dataset) -> Figure:
    """A panel for each pair: the fraction of runs that agree on the word on which most simulated ones do."""
    pairs = found["pair"].values
    figure, axes = plt.subplots(1, len(pairs), figsize=(2.9 * len(pairs) + 0.4, 3.1), sharey=True, squeeze=False)
    for letter, axis, pair in zip("abc", axes[0], pairs, strict=False):
        _panel(axis, found.sel(pair=pair), letter)
    axes[0, 0].set_ylabel(f"fraction of runs that agree in {ROUNDS} rounds")
    axes[0, -1].legend(loc="best")
    figure.suptitle(LABELS.get(name := str(found["model"].values.flat[0]), name), size="medium")
    return figure


def _panel(axis: Axes, one: xr.Dataset, letter: str) -> None:
    words = [str(word) for word in one["word_label"].values]
    strong = int(one["simulated"].sum("n_agents").argmax("word"))
    shown = one.isel(word=strong)
    sizes, runs, trials = one["n_agents"].values, int(one["simulated_runs"]), int(one["generated_runs"])
    axis.plot(sizes, shown["simulated"] / runs, "o-", ms=3, color=FIRST_WORD, label=f"simulated, {runs:,} runs")
    share = shown["generated"].values / trials
    low, high = wilson_interval(shown["generated"].values, trials, LEVEL)
    bars = np.clip([share - low, high - share], 0, None)
    label = f"generated, {trials} runs,\n{100 * LEVEL:g} % interval"
    axis.errorbar(sizes, share, yerr=bars, fmt="s", ms=4, capsize=3, color=SECOND_WORD, label=label)
    axis.set_title(f"({letter}) {words[strong]} over {words[1 - strong]}")
    axis.set_xlabel("number of agents N")
    axis.set_ylim(-0.03, 1.06)


ITEMS = [
    Item(
        "004",
        "S2",
        "Simulated and generated populations",
        "The fraction of runs that agree on one word against the number of agents, 20 to 50 runs whose every choice is "
        "generated beside 1,000 simulated from the policy, for three cases of Phi-4 and Llama 3.1.",
        numbers,
        draw,
        f"SmolLM2-135M, which runs here, with memories of up to {MEMORY_LENGTH} interactions; {GENERATED} generated "
        f"and {SIMULATED:,} simulated runs of {ROUNDS} rounds. Only {{woman, man}} has a stable consensus; with the "
        "other pairs large populations seldom agree. {husband, wife} and {straight, gay} have words of several tokens, "
        "for which the model takes too long.",
    )
]
