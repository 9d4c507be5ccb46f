"""[004] Fig. S3: words that a model writes, tested against its policy."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import model_title, styled
from paper_figs.paper_004._smollm2 import TRIES, Stock, model, policy_of
from policy_extraction.checks import generation_test

PAIR, MEMORY_LENGTH, DRAWS = "more/less", 3, 1000


def numbers(study: Study) -> xr.Dataset:
    """Exact tests of generated words, one for each memory state."""
    policy, draws = policy_of(PAIR), study.runs(DRAWS)
    longest = 2 if study.quick else MEMORY_LENGTH  # the time goes into prompts, not into words

    def make() -> xr.Dataset:
        stock = Stock(model(), study.folder, study.seed, "S3")
        return generation_test(stock, policy, memory_length=longest, n=draws, seed=study.seed, max_tries=TRIES)

    return study.kept("generation_test", make, policy, memory_length=longest, draws=draws)


@styled
def draw(test: xr.Dataset) -> Figure:
    """p-values, shares against policy with their intervals, and standardised deviations."""
    figure, (values, shares, deviations) = plt.subplots(1, 3, figsize=(10.2, 3.3))
    for axis, view in ((values, "p_values"), (shares, "shares"), (deviations, "deviations")):
        meanfield.plot(test, ax=axis, view=view)
        axis.legend(loc="upper left" if axis is shares else "upper right")
    a, z = test.attrs, test["deviation"].isel(word=0)
    values.set_title(f"(a) {test['alarms'].item()} of {test.sizes['state']} states with p < {a['option_alarm']:g}")
    shares.set_title("(b) generated words and policy")
    deviations.set_title(f"(c) mean {z.mean().item():.2f}, standard deviation {z.std().item():.2f}")
    words = "{" + ", ".join(map(str, test["word_label"].values)) + "}"
    n, temperature = a["option_n"], a["option_temperature"]
    figure.suptitle(f"{model_title(test)} {words}: {n} generated words a state, T = {temperature:g}")
    return figure


ITEMS = [
    Item(
        "004",
        "S3",
        "Policies against generated words",
        "p-values, shares and standardised deviations of 1,000 words that Phi-4 wrote in each memory of three "
        "interactions, against its policy for {his, her}: 4 of 64 states have p < 0.05.",
        numbers,
        draw,
        "SmolLM2-135M, which runs here, instead of Phi-4, and {more, less} instead of {his, her}, since half of its "
        f"answers are one of these words; {DRAWS:,} words in each memory of up to {MEMORY_LENGTH} interactions, 85 "
        "states.",
    )
]
