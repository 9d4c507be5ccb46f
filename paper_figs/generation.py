"""Policies against words that a model generates: single choices as in [004] Fig. S3, populations as in Fig. S2.

python -m paper_figs.generation generation_test.nc generation.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order, expect
from paper_figs._script import arguments
from paper_figs._style import FIRST_WORD, SECOND_WORD, model_title, styled, write_figure
from validation.comparison import wilson_interval
from validation.naming_game import CONVENTIONS

LEVEL = 0.95


@styled
def draw(test: xr.Dataset, path: str | Path) -> Path:
    """Draw p-values, shares against policy with their intervals, and standardised deviations of a generation test.

    Parameters
    ----------
    test
        From `policy_extraction.checks.generation_test`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `test` is something else.
    """
    expect(test, "generation_test", "test")
    test = canonical_order(test, "test")
    figure, (values, shares, deviations) = plt.subplots(1, 3, figsize=(10.2, 3.3))
    for axis, view in ((values, "p_values"), (shares, "shares"), (deviations, "deviations")):
        meanfield.plot(test, ax=axis, view=view)
        axis.legend(loc="upper left" if axis is shares else "upper right")
    a, z = test.attrs, test["deviation"].isel(word=0)
    values.set_title(f"{test['alarms'].item()} of {test.sizes['state']} states with p < {a['option_alarm']:g}")
    shares.set_title("generated words and policy")
    deviations.set_title(f"mean {z.mean().item():.2f}, standard deviation {z.std().item():.2f}")
    words = "{" + ", ".join(map(str, test["word_label"].values)) + "}"
    n, temperature = a["option_n"], a["option_temperature"]
    figure.suptitle(f"{model_title(test)} {words}: {n} generated words a state, T = {temperature:g}")
    return write_figure(figure, path)


def live_consensus(population: xr.Dataset, convention: str = "004") -> np.ndarray:
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
def draw_populations(
    panels: Sequence[tuple[Sequence[xr.Dataset], xr.Dataset]], path: str | Path, *, convention: str = "004"
) -> Path:
    """Draw the fraction of runs that agree on a word against N, from generated choices and simulated from the policy.

    The word is the one on which most simulated runs of the largest groups agree.

    Parameters
    ----------
    panels
        For each policy the results of `policy_extraction.checks.live_population`, one per size, and the result of
        `validation.simulate`.
    path
        File of the figure.
    convention
        The convention by which runs converged, as in the simulation.

    Raises
    ------
    InputError
        If there is nothing to draw.
    """
    if not panels or any(not live for live, _ in panels):
        raise InputError("panels: expected live populations and a simulation for each panel")
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels) + 0.4, 3.2), sharey=True, squeeze=False)
    for axis, (live, simulation) in zip(axes[0], panels, strict=True):
        simulation = canonical_order(simulation, "simulation").transpose("n_agents", "run", ...)
        words = simulation["word_label"].values.astype(str).tolist()
        won = np.stack([(simulation["consensus_word"].values == word).mean(1) for word in words])
        sizes = simulation["n_agents"].values
        strong = int(won[:, sizes.argmax()].argmax())
        runs = simulation.sizes["run"]
        axis.plot(sizes, won[strong], "o-", ms=3, color=FIRST_WORD, label=f"simulated, {runs:,} runs")
        for number, one in enumerate(live):
            n_runs = one.sizes["run"]
            count = int((live_consensus(one, convention) == strong).sum())
            share = count / n_runs
            low, high = wilson_interval(np.array(count), n_runs, LEVEL)
            label = f"generated, {100 * LEVEL:g} % interval" if number == 0 else None
            style = {"fmt": "s", "ms": 4, "capsize": 3, "color": SECOND_WORD}
            axis.errorbar(
                one.attrs["option_n_agents"], share, yerr=[[share - low], [high - share]], label=label, **style
            )
        other = ", ".join(word for word in words if word != words[strong])
        axis.set_title(f"{model_title(live[0])}: {words[strong]} over {other}")
        axis.set_xscale("log")
        axis.set_xlabel("number of agents N")
        axis.set_ylim(-0.03, 1.06)
        axis.legend(loc="best")
    axes[0, 0].set_ylabel("fraction of runs that agree on the word")
    return write_figure(figure, path)


if __name__ == "__main__":
    with arguments("paper_figs.generation TEST.nc FIGURE") as (test, figure):
        draw(meanfield.load(test), figure)
