"""[000] Figs. 2, SI1 and SI2, Tables 1, SI1, SI4 and SI5: individual and collective bias."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.datasets import RealPopulations
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, styled
from paper_figs.paper_000._real import LETTERS, TEN, as_in_001, models_of, real_populations, runs_of, winners_of
from validation.populations import individual_bias, microscopic_bias

STRONG, WEAK = "M", "Q"
MOSTLY = 0.9  # of the answers in a file
INDIVIDUAL = {"llama3": (2435, 2565), "llama31": (5079, 4921), "claude": (5016, 4984), "llama2": (5010, 4990)}
COLLECTIVE = {"llama3": (40, 0), "llama31": (40, 0), "claude": (26, 14), "llama2": (36, 4)}
P_TWO = {"llama3": "0.068", "llama31": "0.116", "claude": "0.757", "llama2": "0.849"}
# [000] Table 1, as printed, by memory: own word and partner's word of each interaction, oldest first
P_STRONG = {
    "": ".508",
    "Q,M": ".951",
    "M,Q": ".005",
    "Q,Q": ".003",
    "M,M": ".990",
    "Q,M|M,Q": ".549",
    "M,Q|Q,M": ".848",
    "Q,M|M,M": "1.00",
    "M,Q|Q,Q": ".004",
    "Q,Q|Q,M": ".936",
    "M,M|M,Q": ".159",
    "M,M|M,M": ".999",
    "Q,Q|Q,Q": ".011",
}
AGGREGATED = {1: ".508", 2: ".487", 3: ".563"}
P_BOOTSTRAP = {
    "Q,M": ".522",
    "M,Q": ".551",
    "Q,Q": ".644",
    "M,M": ".608",
    "Q,M|M,Q": ".495",
    "M,Q|Q,M": ".513",
    "Q,M|M,M": "1.00",
    "M,Q|Q,Q": ".461",
    "Q,Q|Q,M": ".490",
    "M,M|M,Q": ".512",
    "M,M|M,M": ".497",
    "Q,Q|Q,Q": ".494",
}


def asked_alone(real: RealPopulations, model: str, words: str, memory_length: int = 0) -> pd.DataFrame:
    """Answers of single agents of a model, as a table of choice counts; NotAtHandError if there are none."""
    assert real.answers is not None
    one, known = real.answers[real.answers["model"] == model], {*words.split()}
    # Answers of two words could also be answers of ten, and some may be no word
    share = {
        str(file): [_share(some, words) for words in (known, {STRONG, WEAK})] for file, some in one.groupby("file")
    }
    files = [file for file, (these, two) in share.items() if these >= MOSTLY and (two < MOSTLY or len(known) == 2)]
    one = one[one["file"].isin(files) & one["choice"].isin(known)]
    if one.empty:
        raise NotAtHandError(f"no answers of single agents of {model} with {words} are at hand")
    return one.assign(options="_".join(sorted(words.split())), memory_length=max(memory_length, 1))


def _share(answers: pd.DataFrame, words: set[str]) -> float:
    return float(answers.loc[answers["choice"].isin(words), "count"].sum() / answers["count"].sum())


def biases(study: Study) -> xr.Dataset:
    """Winners with ten words by model; shares of the two words {Q, M} before and after talking, with their tests."""
    real = real_populations(study)
    models = models_of(real)
    ten = winners_of(runs_of(real, options=TEN, n_agents=24))
    words = sorted(TEN.split())
    share = np.array([[_wins(ten, model, word) for word in words] for model in models])
    two = winners_of(runs_of(real, options="Q M", memory_length=5, n_agents=24))
    alone = [_alone(real, model) for model in models]
    columns = {
        "wins_of_ten": (("model", "word"), share, "runs that agree on the word"),
        "individual": ("model", [one[0] for one in alone], "share of M, memory empty"),
        "p_value": ("model", [one[1] for one in alone], "exact binomial test of ½"),
        "asked": ("model", [one[2] for one in alone], "number of answers"),
        "strong_wins": ("model", [_wins(two, model, STRONG) for model in models], "runs that agree on M"),
        "weak_wins": ("model", [_wins(two, model, WEAK) for model in models], "runs that agree on Q"),
    }
    return labelled(columns, coords={"model": models, "word": words})


def _wins(table: pd.DataFrame, model: str, word: str) -> int:
    return int(table.loc[(table["model"] == model) & (table["word"] == word), "wins"].sum())


def _alone(real: RealPopulations, model: str) -> tuple[float, float, int]:
    try:
        counts = asked_alone(real, model, "Q M")
    except NotAtHandError:
        return np.nan, np.nan, 0
    empty = counts[counts["state"] == ""]
    test = individual_bias(empty).iloc[0]
    return (
        float(empty.loc[empty["choice"] == STRONG, "count"].sum() / empty["count"].sum()),
        test["p_value"],
        test["choices"],
    )


@styled
def draw_biases(found: xr.Dataset) -> Figure:
    """A: winners of ten; B: before and after talking."""
    figure, (ten, before, after) = plt.subplots(1, 3, figsize=(11, 3.4), width_ratios=(2, 1, 1))
    names = [LABELS.get(str(model), str(model)) for model in found["model"].values]
    _bars(ten, found["wins_of_ten"].values / found["wins_of_ten"].values.sum(1, keepdims=True), found["word"], names)
    ten.set_ylabel("share of runs")
    ten.set_title("(A) winner of ten words")
    ten.legend(fontsize=7)
    places = np.arange(len(names))
    alone = found["individual"].values
    wins = found["strong_wins"] / (found["strong_wins"] + found["weak_wins"])
    for axis, strong in ((before, alone), (after, wins.values)):
        axis.bar(places - 0.2, strong, 0.4, color=FIRST_WORD, label=STRONG)
        axis.bar(places + 0.2, 1 - strong, 0.4, color=SECOND_WORD, label=WEAK)
        axis.set_xticks(places, names)
        axis.set_ylim(0, 1.08)
    for place, p in zip(places, found["p_value"].values, strict=True):
        text = "not at hand" if np.isnan(p) else f"P = {p:.3f}{'*' if p >= 0.05 else ''}"
        before.text(place, 0.56, text, ha="center", fontsize=7)
    before.set_title("(B) agents with empty memories")
    after.set_title("runs of 24 agents")
    before.set_ylabel("share")
    after.legend()
    return figure


def _bars(axis: Axes, share: np.ndarray, words: xr.DataArray, names: list[str]) -> None:
    """Shares (model, word) as bars side by side."""
    width = 0.8 / len(names)
    for place, (name, row) in enumerate(zip(names, share, strict=True)):
        shift = (place - (len(names) - 1) / 2) * width
        axis.bar(np.arange(len(row)) + shift, row, width, color=f"C{place}", label=name)
    axis.set_xticks(range(words.size), words.values)
    axis.set_xlabel("word")


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


@styled
def draw_alphabet(found: xr.Dataset) -> Figure:
    """A: first choices; B: winners."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for axis, name, title in zip(axes, ("individual", "collective"), ("first choices", "runs"), strict=True):
        number = int(found[name].sum())
        _bars(axis, found[name].values[None] / number, found["word"], [LABELS["llama3"]])
        axis.set_title(f"({'AB'[axis is axes[1]]}) {number} {title}")
    axes[0].set_ylabel("share")
    return figure


def ten_words(study: Study) -> xr.Dataset:
    """Answers of single agents with empty memories and ten words, by model, and their χ² tests."""
    real = real_populations(study)
    words = sorted(TEN.split())
    models, counts = [], []
    for model in models_of(real):
        try:
            said = asked_alone(real, model, TEN).groupby("choice")["count"].sum()
            counts.append(said.reindex(words, fill_value=0))
            models.append(model)
        except NotAtHandError:
            continue
    if not models:
        raise NotAtHandError("no answers of single agents with ten words are at hand")
    tests = [individual_bias(asked_alone(real, model, TEN)).iloc[0]["p_value"] for model in models]
    columns = {
        "count": (("model", "word"), np.stack(counts), "answers"),
        "p_value": ("model", tests, "χ² test of equal probabilities"),
    }
    return labelled(columns, coords={"model": models, "word": words})


@styled
def draw_ten_words(found: xr.Dataset) -> Figure:
    """A panel for each model."""
    figure, axes = plt.subplots(1, found.sizes["model"], figsize=(4.2 * found.sizes["model"], 3), squeeze=False)
    for axis, model in zip(axes[0], found["model"].values, strict=True):
        one = found.sel(model=model)
        number = int(one["count"].sum())
        _bars(axis, one["count"].values[None] / number, found["word"], [""])
        axis.axhline(0.1, color="0.4", ls="--", lw=1)
        p = float(one["p_value"])
        axis.set_title(
            f"{LABELS.get(str(model), model)}: {number:,} answers, P {f'= {p:.3f}' if p > 1e-3 else '< 0.001'}"
        )
    axes[0, 0].set_ylabel("share")
    return figure


def origin(study: Study) -> xr.Dataset:
    """Answers of Llama 3.1 alone in its first interactions, with tests."""
    table = microscopic_bias(asked_alone(real_populations(study), "llama31", "Q M", 2), STRONG)
    table["memory"] = table["memory"].astype(str)
    return xr.Dataset.from_dataframe(table.reset_index(drop=True))


def origin_table(found: xr.Dataset) -> pd.DataFrame:
    """A row for each memory, printed and computed side by side."""
    table = found.to_dataframe()
    whole = table["memory"] == "all"
    asked = table[~whole & (table["choices"] > 0)]
    listed = asked.groupby("interaction")["share"].mean()
    shown = pd.DataFrame(
        {
            "interaction": table["interaction"],
            "memory": table["memory"],
            "P(M) printed": table["memory"].map(P_STRONG).where(~whole, table["interaction"].map(AGGREGATED)),
            "P(M)": table["share"].where(~whole, table["interaction"].map(listed)).round(3),
            "P(M) by weight": table["share"].where(whole).round(3),
            "answers": table["choices"],
            "weight": table["weight"].round(4),
            "P exact": table["p_exact"].map("{:.2g}".format),
            "P bootstrap printed": table["memory"].map(P_BOOTSTRAP),
            "P bootstrap": table["p_bootstrap"].round(3),
        }
    )
    return shown[(table["choices"] > 0) | whole].set_index(["interaction", "memory"])


def counts_table(found: xr.Dataset) -> pd.DataFrame:
    """Counts before and after talking, printed and computed."""
    asked = found["asked"].values
    strong = np.rint(np.nan_to_num(found["individual"].values) * asked).astype(int)
    models = [str(model) for model in found["model"].values]
    rows = {
        "answers M printed": [INDIVIDUAL.get(model, ("",))[0] for model in models],
        "answers M": strong,
        "answers Q printed": [INDIVIDUAL.get(model, ("", ""))[1] for model in models],
        "answers Q": asked - strong,
        "P printed": [P_TWO.get(model, "") for model in models],
        "P": found["p_value"].round(3).values,
        "runs to M printed": [COLLECTIVE.get(model, ("",))[0] for model in models],
        "runs to M": found["strong_wins"].values,
        "runs to Q printed": [COLLECTIVE.get(model, ("", ""))[1] for model in models],
        "runs to Q": found["weak_wins"].values,
    }
    return pd.DataFrame(rows, index=pd.Index([LABELS.get(model, model) for model in models], name="model"))


COUNTS = "The models at hand. Llama 2's second count is printed as 4,090 in [000], a misprint of 4,990."
ITEMS = [
    Item(
        "000",
        "2",
        "Collective bias in convention selection",
        "Winners with ten words; the share of M and Q among answers of single agents and among winners of 40 runs.",
        biases,
        draw_biases,
        "The same runs and answers, of the models at hand. An asterisk says that the test does not reject ½ at 5 %.",
    ),
    Item(
        "000",
        "SI1",
        "Bias with all letters",
        "Llama 3 says A first, and all 20 runs agree on it.",
        alphabet,
        draw_alphabet,
        "The 480 answers of single agents are the first choices of the 24 agents of the 20 runs.",
    ),
    Item(
        "000",
        "SI2",
        "Individual bias with ten words",
        "Shares of answers of agents with empty memories, with χ² tests: P < .001, .001, .100 and .410.",
        ten_words,
        draw_ten_words,
        "The models at hand.",
    ),
    Item(
        "000",
        "Table 1",
        "The origin of collective bias",
        "Choices of Llama 3.1 with no, one and two interactions in memory; 5 of 8 memories favour M at the third.",
        origin,
        origin_table,
        "The same answers. A row 'all' has the mean over the memories listed, as printed, and the mean over all by "
        "their weights, the probabilities of memories. The listed memories of the third interaction carry 98.3 % of "
        "them, not 99.2 % as in [000]. The exact test of 549 of 1,000 gives .002, not .001. [001] prints 0.0951 for "
        ".951.",
    ),
    Item(
        "000",
        "Table SI1",
        "Bias of the memories of Table 1",
        "Exact tests of ½, and the share of resamples that are more biased than the answers.",
        origin,
        origin_table,
        "The same table as Table 1. The bootstrap is computed exactly, the paper drew 10,000 resamples.",
    ),
    Item(
        "000",
        "Table SI4",
        "Raw individual bias",
        "Counts of M and Q among answers of agents with empty memories.",
        biases,
        counts_table,
        COUNTS,
    ),
    Item(
        "000",
        "Table SI5",
        "Raw collective bias",
        "Runs that agree on M and on Q.",
        biases,
        counts_table,
        f"{COUNTS} The paper says that Llama 3 remembers three interactions here; these runs remember five, and with "
        "three M wins 20 of 20.",
    ),
]
ITEMS += as_in_001(
    ITEMS, {"2": "2", "Table 1": "Table 1", "SI1": "S4", "SI2": "S5", "Table SI4": "Table S1", "Table SI5": "Table S2"}
)
