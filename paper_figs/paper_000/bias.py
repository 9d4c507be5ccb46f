"""[000] Figs. 2, SI1, SI2 and SI7, and all tables but one: answers of agents alone, and collective bias."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.datasets import RealPopulations
from meanfield.toolbox import labelled, model_name
from paper_figs._item import item, not_drawn
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import FIRST_WORD, SECOND_WORD
from paper_figs.paper_000._real import LETTERS, TEN, models_of, real_populations, runs_of, winners_of
from validation.populations import individual_bias, microscopic_bias

STRONG, WEAK = "M", "Q"
MOSTLY = 0.9  # of the answers in a file
# [000] Fig. 2 and Tables SI4 and SI5, as printed
COUNTS = pd.DataFrame(
    {
        "llama3": (2435, 2565, "0.068", 40, 0),
        "llama31": (5079, 4921, "0.116", 40, 0),
        "claude": (5016, 4984, "0.757", 26, 14),
        "llama2": (5010, 4990, "0.849", 36, 4),
    },
    index=["answers M", "answers Q", "P", "runs to M", "runs to Q"],
).T
# [000] Tables 1 and SI1, as printed, by memory: own word and partner's word of each interaction, oldest first
P_STRONG = {  # and the share of resamples that are more biased
    "": (".508", ""),
    "Q,M": (".951", ".522"),
    "M,Q": (".005", ".551"),
    "Q,Q": (".003", ".644"),
    "M,M": (".990", ".608"),
    "Q,M|M,Q": (".549", ".495"),
    "M,Q|Q,M": (".848", ".513"),
    "Q,M|M,M": ("1.00", "1.00"),
    "M,Q|Q,Q": (".004", ".461"),
    "Q,Q|Q,M": (".936", ".490"),
    "M,M|M,Q": (".159", ".512"),
    "M,M|M,M": (".999", ".497"),
    "Q,Q|Q,Q": (".011", ".494"),
}
AGGREGATED = {1: ".508", 2: ".487", 3: ".563"}


def asked_alone(real: RealPopulations, model: str, words: str, memory_length: int = 0) -> pd.DataFrame:
    """Answers of single agents of a model, as a table of choice counts; NotAtHandError if there are none."""
    assert real.answers is not None
    one, known = real.answers[real.answers["model"] == model], {*words.split()}
    # Answers of two words could also be answers of ten, and some may be no word
    files = [
        file
        for file, some in one.groupby("file")
        if _share(some, known) >= MOSTLY and (_share(some, {STRONG, WEAK}) < MOSTLY or len(known) == 2)
    ]
    one = one[one["file"].isin(files) & one["choice"].isin(known)]
    if one.empty:
        raise NotAtHandError(f"no answers of single agents of {model} with {words} are at hand")
    return one.assign(options="_".join(sorted(words.split())), memory_length=max(memory_length, 1))


def _share(answers: pd.DataFrame, words: set[str]) -> float:
    return float(answers.loc[answers["choice"].isin(words), "count"].sum() / answers["count"].sum())


def biases(study: Study) -> xr.Dataset:
    """Winners with ten words by model; shares of the two words {Q, M} before and after talking, with their tests."""
    real = real_populations(study)
    models, words = models_of(real), sorted(TEN.split())
    wins_of_ten = _wins(runs_of(real, options=TEN, n_agents=24), models, words)
    strong, weak = _wins(runs_of(real, options="Q M", memory_length=5, n_agents=24), models, [STRONG, WEAK]).T
    individual, p_value, asked = zip(*(_alone(real, model) for model in models), strict=True)
    columns = {
        "wins_of_ten": (("model", "word"), wins_of_ten, "runs that agree on the word"),
        "individual": ("model", list(individual), "share of M, memory empty"),
        "p_value": ("model", list(p_value), "exact binomial test of ½"),
        "asked": ("model", list(asked), "number of answers"),
        "strong_wins": ("model", strong, "runs that agree on M"),
        "weak_wins": ("model", weak, "runs that agree on Q"),
    }
    return labelled(columns, coords={"model": models, "word": words})


def _wins(runs: pd.DataFrame, models: list[str], words: list[str]) -> np.ndarray:
    table = winners_of(runs).pivot_table("wins", "model", "word", "sum")
    return table.reindex(index=models, columns=words).fillna(0).to_numpy(int)


def _alone(real: RealPopulations, model: str) -> tuple[float, float, int]:
    """The share of the strong word among answers with an empty memory, the p-value and the number of answers."""
    try:
        counts = asked_alone(real, model, "Q M")
    except NotAtHandError:
        return np.nan, np.nan, 0
    empty = counts[counts["state"] == ""]
    test = individual_bias(empty).iloc[0]
    strong = empty.loc[empty["choice"] == STRONG, "count"].sum()
    return float(strong / empty["count"].sum()), test["p_value"], test["choices"]


@item("000 2, 001 2", biases)
def draw_biases(found: xr.Dataset) -> Figure:
    """Collective bias in convention selection.

    Winners with ten words; the share of M and Q among answers of single agents and among winners of 40 runs.

    The same runs and answers, of the models at hand. An asterisk says that the test does not reject ½ at 5 %.
    """
    figure, (ten, before, after) = plt.subplots(1, 3, figsize=(11, 3.4), width_ratios=(2, 1, 1))
    names = [model_name(model) for model in found["model"].values]
    _bars(ten, found["wins_of_ten"] / found["wins_of_ten"].sum("word"))
    ten.set(xlabel="word", ylabel="share of runs", title="(A) winner of ten words")
    ten.legend(fontsize=7)
    places = np.arange(len(names))
    wins = found["strong_wins"] / (found["strong_wins"] + found["weak_wins"])
    for axis, strong in ((before, found["individual"].values), (after, wins.values)):
        axis.bar(places - 0.2, strong, 0.4, color=FIRST_WORD, label=STRONG)
        axis.bar(places + 0.2, 1 - strong, 0.4, color=SECOND_WORD, label=WEAK)
        axis.set_xticks(places, names)
        axis.set_ylim(0, 1.08)
    for place, p in zip(places, found["p_value"].values, strict=True):
        text = "not at hand" if np.isnan(p) else f"P = {p:.3f}{'*' if p >= 0.05 else ''}"
        before.text(place, 0.56, text, ha="center", fontsize=7)
    before.set(title="(B) agents with empty memories", ylabel="share")
    after.set_title("runs of 24 agents")
    after.legend()
    return figure


def _bars(axis: Axes, share: xr.DataArray, error: np.ndarray | None = None) -> None:
    """Shares, by model and a second dim, as bars side by side."""
    n_models, n_places = share.shape
    width = 0.8 / n_models
    for k, row in enumerate(share):
        bars = {} if error is None else {"yerr": error[k], "error_kw": {"lw": 0.8}}
        places, label = np.arange(n_places) + (k - (n_models - 1) / 2) * width, model_name(row["model"].item())
        axis.bar(places, row, width, color=f"C{k}", label=label, **bars)
    axis.set_xticks(range(n_places), share[share.dims[1]].values)


def alphabet(study: Study) -> xr.Dataset:
    """First choices and winners of Llama 3 with all letters."""
    real = real_populations(study)
    runs = runs_of(real, model="llama3", options=LETTERS)
    if runs.empty:
        raise NotAtHandError("no run with all letters is at hand")
    words = LETTERS.split()
    counts = real.choice_counts
    counts = counts[(counts["model"] == "llama3") & (counts["options"] == "_".join(words))]
    first = counts[counts["state"] == ""].groupby("choice")["count"].sum()
    won = winners_of(runs).groupby("word")["wins"].sum()
    columns = {
        "individual": ("word", first.reindex(words, fill_value=0).values, "first choices"),
        "collective": ("word", won.reindex(words, fill_value=0).values, "runs that agree on the word"),
    }
    return labelled(columns, coords={"word": words})


@item("000 SI1, 001 S4", alphabet)
def draw_alphabet(found: xr.Dataset) -> Figure:
    """Bias with all letters.

    Llama 3 says A first, and all 20 runs agree on it.

    The 480 answers of single agents are the first choices of the 24 agents of the 20 runs.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    panels = (("A", "individual", "first choices"), ("B", "collective", "runs"))
    for axis, (letter, name, title) in zip(axes, panels, strict=True):
        number = int(found[name].sum())
        _bars(axis, (found[name] / number).expand_dims(model=["llama3"]))
        axis.set(title=f"({letter}) {number} {title}", xlabel="word")
    axes[0].set_ylabel("share")
    return figure


def ten_words(study: Study) -> xr.Dataset:
    """Answers of single agents with empty memories and ten words, by model, and their χ² tests."""
    real, words = real_populations(study), sorted(TEN.split())
    counts, p_values = {}, []
    for model in models_of(real):
        try:
            said = asked_alone(real, model, TEN)
        except NotAtHandError:
            continue
        counts[model] = said.groupby("choice")["count"].sum().reindex(words, fill_value=0)
        p_values.append(individual_bias(said).iloc[0]["p_value"])
    if not counts:
        raise NotAtHandError("no answers of single agents with ten words are at hand")
    columns = {
        "count": (("model", "word"), np.stack(list(counts.values())), "answers"),
        "p_value": ("model", p_values, "χ² test of equal probabilities"),
    }
    return labelled(columns, coords={"model": list(counts), "word": words})


@item("000 SI2, 001 S5", ten_words)
def draw_ten_words(found: xr.Dataset) -> Figure:
    """Individual bias with ten words.

    Shares of answers of agents with empty memories, with χ² tests: P < .001, .001, .100 and .410.

    The models at hand.
    """
    figure, axes = plt.subplots(1, found.sizes["model"], figsize=(4.2 * found.sizes["model"], 3), squeeze=False)
    for k, axis in enumerate(axes[0]):
        one = found.isel(model=[k])
        number, p = int(one["count"].sum()), one["p_value"].item()
        _bars(axis, one["count"] / number)
        axis.axhline(0.1, color="0.4", ls="--", lw=1)
        tested = f"P {f'= {p:.3f}' if p > 1e-3 else '< 0.001'}"
        axis.set(title=f"{model_name(one['model'].item())}: {number:,} answers, {tested}", xlabel="word")
    axes[0, 0].set_ylabel("share")
    return figure


def origin(study: Study) -> xr.Dataset:
    """Answers of Llama 3.1 alone in its first interactions, with tests."""
    table = microscopic_bias(asked_alone(real_populations(study), "llama31", "Q M", 2), STRONG)
    table["memory"] = table["memory"].astype(str)
    return xr.Dataset.from_dataframe(table.reset_index(drop=True))


SI1 = """Bias of the memories of Table 1.

Exact tests of ½, and the share of resamples that are more biased than the answers.

The same table as Table 1. The bootstrap is computed exactly, the paper drew 10,000 resamples."""


@item("000 Table SI1", origin, SI1)
@item("000 Table 1, 001 Table 1", origin)
def origin_table(found: xr.Dataset) -> pd.DataFrame:
    """The origin of collective bias.

    Choices of Llama 3.1 with no, one and two interactions in memory; 5 of 8 memories favour M at the third.

    The same answers. A row 'all' has the mean over the memories listed, as printed, and the mean over all by their
    weights, the probabilities of memories. [001] prints 0.0951 for .951.
    """
    table = found.to_dataframe()
    whole, printed = table["memory"] == "all", table["memory"].map(P_STRONG)
    asked = table[~whole & (table["choices"] > 0)]
    listed = asked.groupby("interaction")["share"].mean()
    shown = pd.DataFrame(
        {
            "interaction": table["interaction"],
            "memory": table["memory"],
            "P(M) printed": printed.str[0].where(~whole, table["interaction"].map(AGGREGATED)),
            "P(M)": table["share"].where(~whole, table["interaction"].map(listed)).round(3),
            "P(M) by weight": table["share"].where(whole).round(3),
            "answers": table["choices"],
            "weight": table["weight"].round(4),
            "P exact": table["p_exact"].map("{:.2g}".format),
            "P bootstrap printed": printed.str[1],
            "P bootstrap": table["p_bootstrap"].round(3),
        }
    )
    return shown[(table["choices"] > 0) | whole].set_index(["interaction", "memory"])


SI5 = """Raw collective bias.

Runs that agree on M and on Q.

The models at hand. Llama 2's second count is printed as 4,090 in [000], a misprint of 4,990. The paper says that Llama
3 remembers three interactions here; these runs remember five, and with three M wins 20 of 20."""


@item("000 Table SI5, 001 Table S2", biases, SI5)
@item("000 Table SI4, 001 Table S1", biases)
def counts_table(found: xr.Dataset) -> pd.DataFrame:
    """Raw individual bias.

    Counts of M and Q among answers of agents with empty memories.

    The models at hand. Llama 2's second count is printed as 4,090 in [000], a misprint of 4,990.
    """
    asked = found["asked"].values
    strong = np.rint(np.nan_to_num(found["individual"].values) * asked).astype(int)
    computed = {
        "answers M": strong,
        "answers Q": asked - strong,
        "P": found["p_value"].round(3).values,
        "runs to M": found["strong_wins"].values,
        "runs to Q": found["weak_wins"].values,
    }
    models = found["model"].values
    printed = COUNTS.reindex(models).fillna("")
    rows = {}
    for name, values in computed.items():
        rows |= {f"{name} printed": printed[name].values, name: values}
    return pd.DataFrame(rows, index=pd.Index(map(model_name, models), name="model"))


def comprehension(study: Study) -> xr.Dataset:
    """The accuracy of each model in each question."""
    table = real_populations(study).comprehension
    if table is None or table.empty:
        raise NotAtHandError("no answers to questions about the prompt are at hand")
    table = table.assign(question=table["question"].str.replace("#_", "no_"))
    weight = table["number"].clip(lower=1)  # 0 where the file does not say it
    columns = {"right": table["accuracy"] * weight, "weight": weight, "number": table["number"]}
    summed = pd.DataFrame(columns).groupby([table["model"], table["question"]]).sum().to_xarray()
    return summed.assign(accuracy=summed["right"] / summed["weight"])[["accuracy", "number"]]


@item("000 SI7", comprehension)
def draw_comprehension(found: xr.Dataset) -> Figure:
    """Questions about the prompt.

    Accuracy of four models in nine questions; nearly always above 0.8, except Llama 2's count of its actions.

    The models at hand; the file of Llama 3 has means and no numbers of answers.
    """
    figure, axis = plt.subplots(figsize=(7, 3.4))
    asked, share = found["number"].values.astype(float), found["accuracy"].values
    _bars(axis, found["accuracy"], np.where(asked > 0, np.sqrt(share * (1 - share) / np.maximum(asked, 1)), np.nan))
    axis.axhline(0.8, color="0.5", ls=":", lw=1)
    axis.set_xticks(range(share.shape[1]), [str(name).replace("no_", "# ") for name in found["question"].values])
    axis.set(ylabel="accuracy", ylim=(0, 1.05))
    figure.legend(loc="outside lower center", ncols=len(share))
    return figure


not_drawn(
    "000 Table 2", "Names and versions of models", "The versions of the four models.", "it holds no numbers to compute"
)
not_drawn(
    "000 Table SI2",
    "Questions about the prompt",
    "Templates of the questions.",
    "it holds no numbers; policy_extraction.checks.comprehension asks these questions",
)
not_drawn(
    "000 Table SI3",
    "Parameters of the models",
    "Temperature 0.5, top-k 10, six tokens.",
    "it lists settings; policy_extraction takes them as arguments",
)
