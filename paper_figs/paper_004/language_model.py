"""[004] Figs. S1 to S3 and Table S2: a language model that runs here, asked about its prompt and among its own kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
import validation
from meanfield import MemorySpace
from meanfield.toolbox import in_braces, labelled, model_name, wilson_interval
from paper_figs._item import item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, SECOND_WORD, model_title, no_legend
from paper_figs.paper_004._smollm2 import TRIES, Stock, model, policy_of
from policy_extraction.checks import KINDS, comprehension, generation_test, live_population
from validation.naming_game import CONVENTIONS

# Fig. S1: answers are kept after each portion
WORDS = ("his", "her")
PORTIONS, MEMORIES = 3, 4

# Fig. S2: words of one token that are frequent answers
PAIRS = ("woman/man", "more/less", "young/old")
SIZES, ROUNDS = (4, 8, 12), 20
GENERATED, SIMULATED = 50, 10_000
CONVENTION = "004"
LEVEL = 0.95

# Fig. S3
PAIR, MEMORY_LENGTH, DRAWS = "more/less", 3, 1000


def answers(study: Study) -> xr.Dataset:
    """The model's answers about random memories, a question of each kind for each memory."""
    portions = [_portion(study, number) for number in range(study.runs(PORTIONS))]
    found = xr.concat(
        portions, "agent", coords=["memory"], compat="override", data_vars="minimal", combine_attrs="override"
    )
    correct = found["correct"]
    error = correct.std("agent", ddof=1) / np.sqrt(correct.sizes["agent"])
    return found.assign(accuracy=correct.mean("agent"), standard_error=error)


def _portion(study: Study, number: int) -> xr.Dataset:
    options = {"words": WORDS, "memory_length": 3, "n": MEMORIES, "seed": PORTIONS * study.seed + number, "per_kind": 1}
    return study.kept(f"comprehension_{number}", lambda **options: comprehension(model(), **options), **options)


@item("004 S1", answers)
def draw_answers(found: xr.Dataset) -> Figure:
    """Questions about the prompt.

    The share of correct answers by kind of question, nearly always above 0.8, for four models and 100 random memories
    each.

    SmolLM2-135M, which runs here, instead of the paper's four models. 12 memories of up to 3 interactions (the paper:
    100 of up to 5), and for each one random question of each kind (the paper: all), since an answer takes one to two
    seconds. This small model answers few of them.
    """
    figure, axis = plt.subplots(figsize=(5.8, 3.2))
    meanfield.plot(found, ax=axis)
    axis.set_title(f"{model_title(found)}, {found.sizes['agent']} random memories")
    if legend := axis.get_legend():
        names = [text.get_text() for text in legend.get_texts()]
        figure.legend(legend.legend_handles, names, loc="outside upper center", ncols=4)
        no_legend(axis)
    return figure


def questions(study: Study) -> xr.Dataset:
    """The templates of the questions, by kind."""
    texts = [re.sub(r"\$(\w+)", r"{\1}", kind.text) for kind in KINDS]
    groups = [kind.category for kind in KINDS]
    columns = {"question": ("kind", texts, "the question"), "group": ("kind", groups, "group")}
    return labelled(columns, coords={"kind": [kind.name for kind in KINDS]})


@item("004 Table S2", questions)
def question_table(found: xr.Dataset) -> pd.DataFrame:
    """Questions about the prompt.

    The templates of the questions, in three groups: rules, time and state.

    As policy_extraction.checks.comprehension asks them: players have names.
    """
    return found.to_dataframe().reset_index().set_index(["group", "kind"])


def populations(study: Study) -> xr.Dataset:
    """Numbers of generated and of simulated runs that agree on either word, by pair and size."""
    options = {"sizes": SIZES, "rounds": ROUNDS, "memory_length": 2}
    options |= {"generated": study.runs(GENERATED), "simulated": study.runs(SIMULATED)}
    found: list[xr.Dataset] = []
    for pair in PAIRS:
        agreed = partial(_agreed, study, pair.split("/"))
        found.append(study.kept(f"generated_{pair.replace('/', '_')}", agreed, policy_of(pair), **options))
    return xr.concat(found, "pair", coords=["word_label", "model"], compat="override")


def _agreed(
    study: Study,
    words: list[str],
    policy: xr.Dataset,
    *,
    sizes: Sequence[int],
    rounds: int,
    memory_length: int,
    **runs: int,
) -> xr.Dataset:
    """Numbers of runs that agree on each word within the rounds, generated and simulated."""
    short = meanfield.make_policy(policy["q"].values[: MemorySpace(2, memory_length).n_states], words)
    options = {"runs": runs["simulated"], "seed": study.seed, "max_rounds": rounds, "convention": CONVENTION}
    simulated = validation.simulate(short, n_agents=sizes, **options)["consensus_word"].transpose("n_agents", "run")
    stock = Stock(model(), study.seed, "S2")
    options = {"memory_length": memory_length, "rounds": rounds, "max_tries": TRIES, "progress": study.progress}
    options |= {"runs": runs["generated"], "seed": study.seed}
    each = [live_consensus(live_population(stock, words, n_agents=n, **options)) for n in sizes]
    agreed = {
        "generated": [[(one == k).sum() for k in range(2)] for one in each],
        "simulated": [[(one == word).sum() for word in words] for one in simulated.values],
    }
    columns = {}
    for name, found in agreed.items():
        columns[name] = (("n_agents", "word"), np.array(found), f"{name} runs that agree on the word")
        columns[f"{name}_runs"] = ((), runs[name], f"{name} runs")
    coords = {"n_agents": list(sizes), "word_label": ("word", words), "pair": "/".join(words), "model": stock.name}
    return labelled(columns, coords=coords)


def live_consensus(population: xr.Dataset, convention: str = CONVENTION) -> np.ndarray:
    """The number of the word on which each run of a live population agreed, -1 without convergence; shape (run,)."""
    rule, n_agents = CONVENTIONS[convention], population.attrs["option_n_agents"]
    said = population["said"].transpose("run", "interaction", "speaker").values
    n_words = population["word_label"].size
    agreed = (said[..., :1] == np.arange(n_words)) & (said[..., :1] == said[..., 1:])
    by_round = agreed.reshape(len(said), -1, n_agents, n_words).sum(2)
    latest = np.lib.stride_tricks.sliding_window_view(by_round, 3, axis=1).sum(-1)[:, rule.first_test - 3 :]
    converged = latest.sum(-1) >= rule.successes_needed(n_agents)
    first = converged.argmax(1)
    return np.where(converged.any(1), latest[np.arange(len(said)), first].argmax(-1), -1)


@item("004 S2", populations)
def draw_populations(found: xr.Dataset) -> Figure:
    """Simulated and generated populations.

    The fraction of runs that agree on one word against the number of agents, 20 to 50 runs whose every choice is
    generated beside 1,000 simulated from the policy, for three cases of Phi-4 and Llama 3.1.

    SmolLM2-135M, which runs here, with memories of up to 2 interactions; 50 generated and 10,000 simulated runs of 20
    rounds. Only {woman, man} has a stable consensus; with the other pairs large populations seldom agree. {husband,
    wife} and {straight, gay} have words of several tokens, for which the model takes too long.
    """
    pairs = found["pair"].values
    figure, axes = plt.subplots(1, len(pairs), figsize=(2.9 * len(pairs) + 0.4, 3.1), sharey=True, squeeze=False)
    for letter, axis, pair in zip("abc", axes[0], pairs, strict=False):
        _population(axis, found.sel(pair=pair), letter)
    axes[0, 0].set_ylabel(f"fraction of runs that agree in {ROUNDS} rounds")
    axes[0, -1].legend(loc="best")
    figure.suptitle(model_name(found["model"].values.flat[0]), size="medium")
    return figure


def _population(axis: Axes, one: xr.Dataset, letter: str) -> None:
    """On the word on which most simulated runs agree."""
    strong = int(one["simulated"].sum("n_agents").argmax("word"))
    words, one = one["word_label"].values, one.isel(word=strong)
    sizes, runs, trials = one["n_agents"].values, int(one["simulated_runs"]), int(one["generated_runs"])
    axis.plot(sizes, one["simulated"] / runs, "o-", ms=3, color=FIRST_WORD, label=f"simulated, {runs:,} runs")
    share = one["generated"].values / trials
    low, high = wilson_interval(one["generated"].values, trials, LEVEL)
    bars = np.clip([share - low, high - share], 0, None)
    label = f"generated, {trials} runs,\n{100 * LEVEL:g} % interval"
    axis.errorbar(sizes, share, yerr=bars, fmt="s", ms=4, capsize=3, color=SECOND_WORD, label=label)
    title = f"({letter}) {words[strong]} over {words[1 - strong]}"
    axis.set(title=title, xlabel="number of agents N", ylim=(-0.03, 1.06))


def words_written(study: Study) -> xr.Dataset:
    """Exact tests of generated words, one for each memory state."""
    longest = 2 if study.quick else MEMORY_LENGTH  # the time goes into prompts, not into words

    def make(policy: xr.Dataset, **options: int) -> xr.Dataset:
        return generation_test(Stock(model(), study.seed, "S3"), policy, **options)

    options = {"memory_length": longest, "n": study.runs(DRAWS), "seed": study.seed, "max_tries": TRIES}
    return study.kept("generation_test", make, policy_of(PAIR), **options)


@item("004 S3", words_written)
def draw_words_written(test: xr.Dataset) -> Figure:
    """Policies against generated words.

    p-values, shares and standardised deviations of 1,000 words that Phi-4 wrote in each memory of three interactions,
    against its policy for {his, her}: 4 of 64 states have p < 0.05.

    SmolLM2-135M, which runs here, instead of Phi-4, and {more, less} instead of {his, her}, since half of its answers
    are one of these words; 1,000 words in each memory of up to 3 interactions, 85 states.
    """
    figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.3))
    a, z = test.attrs, test["deviation"].isel(word=0)
    titles = {
        "p_values": f"(a) {test['alarms'].item()} of {test.sizes['state']} states with p < {a['option_alarm']:g}",
        "shares": "(b) generated words and policy",
        "deviations": f"(c) mean {z.mean().item():.2f}, standard deviation {z.std().item():.2f}",
    }
    for axis, (view, title) in zip(axes, titles.items(), strict=True):
        meanfield.plot(test, ax=axis, view=view)
        axis.legend(loc="upper left" if view == "shares" else "upper right")
        axis.set_title(title)
    words = in_braces(map(str, test["word_label"].values))
    n, temperature = a["option_n"], a["option_temperature"]
    figure.suptitle(f"{model_title(test)} {words}: {n} generated words a state, T = {temperature:g}")
    return figure
