"""[002] Figs. 2, 4 and 6 to 9 and Table 1: protocols, teams and single agents, measured and by Mechanism 2."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import meanfield
from meanfield.toolbox import labelled, model_name
from paper_figs._item import item, not_drawn
from paper_figs._study import Study, part, together
from paper_figs._style import legend_below, no_legend
from theory.flag_game.mechanism2 import fit as fit_mechanism2
from validation.flag_game import accuracy, compare_composition, predict_composition, sample_crops, simulate_gossip

MODELS = ("gpt-4o", "gpt-5.4")
OBSERVERS = {"4o agents": "GPT-4o", "5.4 agents": "GPT-5.4", "4 5.4 + 4 4o agents": "mixed"}
UPTAKES = [0.0, 0.25, 0.5, 0.75, 1.0]  # of the sweeps, [002] Figs. 1c and 9
TRIALS = 1000
PROTOCOLS = {"pairwise": ("pairwise", "#56b4e9"), "broadcast": ("broadcast", "#e69f00"), "org": ("manager", "#009e73")}
CONDITIONS = (("weak", "compatible"), ("weak", "incompatible"), ("strong", "incompatible"))  # evidence and relation
ENTRIES = 8  # in a memory
N_AGENTS = 16  # in pairs, [002] Appendix C
LOOKS = {"poster_alpha_sweep": ("o", "#0072b2"), "corrected_phase_sweep": ("s", "#d55e00")}
APART = 0.012  # of the points of two sweeps


def by_protocol(study: Study) -> xr.Dataset:
    """Accuracies of N = 8 agents by protocol and models, the best first."""
    table = study.flag_game("protocols_n8").sort_values("final_accuracy_mean", ascending=False, kind="stable")
    over = ("condition",)
    columns = {
        "initial": (over, table["initial_accuracy_mean"].to_numpy(), "initial mean accuracy"),
        "collective": (over, table["final_accuracy_mean"].to_numpy(), "collective mean accuracy"),
        "error": (over, table["final_accuracy_sem"].to_numpy(), "standard error of the collective mean accuracy"),
        "protocol": (over, table["protocol"].to_numpy(str), "protocol"),
        "trials": (over, table["n_trials"].to_numpy(), "number of trials"),
    }
    return labelled(columns, {"condition": [_team(row) for row in table.to_dict("records")]})


def _team(row: Mapping[Hashable, str]) -> str:
    """The models of a condition; of a manager's also the manager."""
    observers = OBSERVERS[row["observer_group"]]
    if row["protocol"] != "org":
        return observers
    manager = row["condition_name"].removeprefix("manager_").removeprefix("all_")
    return f"{'GPT-5.4' if manager.startswith('gpt_5_4') else 'GPT-4o'} manages {observers}"


def by_uptake(study: Study) -> xr.Dataset:
    """Accuracies of pairs in both measured sweeps."""
    names = {"final_mean": "collective mean accuracy", "initial_mean": "initial mean accuracy"}
    names |= {"final_mean_ci_low": "lower end of its 95 % interval", "final_mean_ci_high": "upper end"}
    rows = study.flag_game("pairwise_alpha").set_index(["source", "alpha"])[list(names)].to_xarray()
    return labelled({name: (rows[name].dims, rows[name].values, text) for name, text in names.items()}, rows.coords)


def mechanism2_fit(study: Study) -> xr.Dataset:
    """Mechanism 2 fitted to the memory-conflict probe, with the similarity of countries."""
    table, options = study.flag_game("memory_conflict_probe"), {"similarity": None, "progress": study.progress}
    return study.kept("mechanism2_fit", fit_mechanism2, table, **options)


def rewrites(study: Study) -> dict[str, float]:
    """γ of each model in messages with reasons, where a crop leaves several countries."""
    gamma = mechanism2_fit(study)["rewrite"].sel(evidence="weak", bandwidth=3)
    return {model: float(gamma.sel(model=model)) for model in MODELS}


def teams(study: Study) -> xr.Dataset:
    """Broadcasting teams of both models by composition and uptake: predicted from their rewrites, and measured."""
    measured = study.flag_game("broadcast_alpha_composition")
    options = {"uptake": UPTAKES, **study.effort(TRIALS)}
    return compare_composition(study.kept("teams", predict_composition, rewrites(study), **options), measured)


@item("002 2", by_protocol)
def draw_protocols(found: xr.Dataset) -> Figure:
    """Protocols and teams of eight agents.

    (a) A diagram of a trial and of the three protocols. (b) Collective mean accuracy of N = 8 agents in 60 trials for
    each protocol and team of GPT-5.4 and GPT-4o, by descending accuracy.

    (a) is not drawn: it holds no numbers. (b) is the published table, with 63 trials of each condition where the paper
    has 60; mixed teams are four of each model. GPT-4o does better than GPT-5.4 in pairs by far less than a standard
    error, and worse in broadcasts. There is no prediction: these prompts set no uptake α, and the theory gives a
    manager no model.
    """
    figure, axis = plt.subplots(figsize=(7, 4))
    protocols(axis, found)
    axis.set_title("(b) N = 8")
    return figure


def protocols(axis: Axes, found: xr.Dataset) -> None:
    """Collective mean accuracies as rows, the best on top."""
    rows = range(found.sizes["condition"])
    colours = [PROTOCOLS[str(name)][1] for name in found["protocol"].values]
    error = {"elinewidth": 1, "capsize": 2}
    axis.barh(rows, found["collective"], 0.75, xerr=found["error"], color=colours, error_kw=error)
    (initial,) = axis.plot(found["initial"], rows, "o", color="black", fillstyle="none", label="initial")
    axis.set_yticks(rows, found["condition"].values)
    axis.invert_yaxis()
    axis.set(xlim=(0, 1), xlabel="collective mean accuracy ± SE")
    patches = [Patch(color=colour, label=label) for label, colour in PROTOCOLS.values()]
    axis.legend(handles=[*patches, initial], loc="lower right")


@item("002 4", teams)
def draw_teams(found: xr.Dataset) -> Figure:
    """Teams of two models.

    (a) Collective mean accuracy of broadcasting teams of N = 8, m = 3, by the number of GPT-5.4 agents; mixed teams are
    the best. (b) Kinds of answers of single GPT-4o and GPT-5.4 agents to a crop, in 100 runs. (c) Examples.

    (b) and (c) are not drawn: answers of single agents to crops are not published. The paper does not name the uptake
    of (a); here are all five of the published table, with 10 trials of each composition and 35 at α = 1, where Appendix
    C has 30. The best team is mixed at every α, but mixed teams together gain less than one standard error over pure
    ones. The prediction has α from the prompt, γ from the probe of Fig. 8 (m = 3, weak evidence), ideal observers and
    1,000 trials. It falls evenly with the number of GPT-5.4 agents, so γ alone gives mixed teams no gain; the paper
    says that it predicts one. At α = 1 the prediction is too high, see Fig. 1c.
    """
    uptakes = found["uptake"].values
    figure, axes = plt.subplots(1, len(uptakes), figsize=(2.0 * len(uptakes) + 0.6, 3.2), sharey=True)
    meanfield.plot(found, ax=axes)
    for axis, uptake, trials in zip(axes, uptakes, found["trials"].values[:, 0], strict=True):
        axis.set_title(f"α = {uptake:g}; {trials} trials")
        no_legend(axis)
        axis.label_outer()
    legend_below(figure, axes[0], 4)
    rewrites = zip(found.attrs["models"], found.attrs["rewrite"], strict=True)
    given = ", ".join(f"γ = {gamma:.2f} for {model_name(name)}" for name, gamma in rewrites)
    figure.suptitle(f"(a) broadcast, N = 8, m = 3; predicted with {given}", fontsize=9)
    return figure


@item("002 6", mechanism2_fit)
def draw_probe(found: xr.Dataset) -> Figure:
    """Memory against private evidence.

    (a) A diagram of the probe. (b) Answers of GPT-4o, GPT-5.4 and Claude Haiku 4.5 as memory goes from entries for the
    target to entries for another country, under weak and under strong private evidence.

    (a) is not drawn: it holds no numbers. The paper names neither bandwidth nor relation of (b); here are m = 1 and
    incompatible entries, because Appendix A calls all others an extension. Points and lines are those of Fig. 8.
    """
    return _answers(found, [1], CONDITIONS[1:])


@item("002 8", mechanism2_fit)
def draw_whole_probe(found: xr.Dataset) -> Figure:
    """Memory against private evidence, all conditions.

    The same answers of four models for labels only (m = 1) and with reasons (m = 3), in three conditions.

    Points are the published counts of GPT-4o and GPT-5.4, 12 trials each (36 in three conditions), with 95 % intervals;
    counts of Claude Haiku 4.5 and Sonnet 4.6 are not published. Lines are Mechanism 2 (Eqs. 10 and 11), which the paper
    does not fit: α, the leak ε, the similarity σ and, under weak evidence, the number of compatible countries are
    common to both models in a condition, γ is each model's own. The paper says that both largely hold firm under strong
    evidence; with eight social entries of eight they answer the target in half of the trials or less.
    """
    return _answers(found, [1, 3], CONDITIONS)


def _answers(found: xr.Dataset, bandwidths: Sequence[int], conditions: Sequence[tuple[str, str]]) -> Figure:
    rows = [(model, m) for model in MODELS for m in bandwidths]
    size = (3 * len(conditions) + 0.4, 1.9 * len(rows) + 0.9)
    figure, axes = plt.subplots(len(rows), len(conditions), figsize=size, sharex=True, sharey=True)
    for across, (model, m) in zip(axes, rows, strict=True):
        for axis, (evidence, relation) in zip(across, conditions, strict=True):
            one = found.sel(model=model, bandwidth=m, evidence=evidence, relation=relation)
            meanfield.plot(one, ax=axis, view="answers")
            no_legend(axis)
            axis.set_title(f"{model_name(model)}, m = {m}: {evidence} evidence,\n{relation} social entries")
            axis.set_xticks(range(0, ENTRIES + 1, 2), [f"{ENTRIES - k}:{k}" for k in range(0, ENTRIES + 1, 2)])
            axis.set_xlabel("target : social entries in memory")
            axis.label_outer()
    legend_below(figure, axes[0, 0], 4)
    return figure


def pairs(study: Study) -> xr.Dataset:
    """Both measured sweeps, and the accuracy of gossip at the same uptakes."""
    options = {"runs": study.runs(TRIALS), "rewrite": rewrites(study)["gpt-4o"], "seed": study.seed}
    predicted = study.kept("pairwise_uptake", _gossip, UPTAKES, **options)
    return together(measured=by_uptake(study), predicted=predicted)


def _gossip(uptakes: list[float], runs: int, rewrite: float, seed: int) -> xr.Dataset:
    """Accuracies by uptake of pairs who see crops as an ideal observer does."""
    p, truth = sample_crops(runs, N_AGENTS, seed=seed)
    alike = np.ones((p.sizes["country"],) * 2)
    rules = {"bandwidth": 3, "rewrite": rewrite, "rewrite_map": alike, "truth": truth, "report": "sampled"}
    found = [accuracy(simulate_gossip(p, runs=runs, seed=seed + 1, uptake=alpha, **rules)) for alpha in uptakes]
    return xr.concat(found, xr.DataArray(uptakes, dims="uptake", name="uptake"), combine_attrs="drop_conflicts")


@item("002 9", pairs)
def draw_pairs(found: xr.Dataset) -> Figure:
    """Uptake in pairs.

    Collective mean accuracy of GPT-4o pairs against the uptake α of the prompt, with an optimum at 0.75.

    The published table has two sweeps, 28 trials at each α; bars are its 95 % intervals, open points are initial
    accuracies. Both are highest at 0.75, but the second one does not resolve the optimum. Gossip of 16 ideal observers
    with GPT-4o's γ, m = 3 and 1,000 trials, rises with α to 0.97 and has no optimum.
    """
    figure, axis = plt.subplots(figsize=(5, 3.4))
    measured, predicted = part(found, "measured"), part(found, "predicted")
    for k, (name, (marker, colour)) in enumerate(LOOKS.items()):
        one = measured.sel(source=name)
        ends = np.abs(np.stack([one["final_mean_ci_low"], one["final_mean_ci_high"]]) - one["final_mean"].values)
        label = name.replace("_", " ")
        places = one["alpha"] + APART * (2 * k - 1)
        axis.errorbar(places, one["final_mean"], ends, fmt=f"{marker}-", color=colour, capsize=2, lw=1, label=label)
        axis.plot(places, one["initial_mean"], marker, color=colour, fillstyle="none", ms=4)
    axis.plot(predicted["uptake"], predicted["collective_accuracy"], "--", color="black", label="gossip, predicted")
    axis.set(xlabel="uptake α", ylabel="collective mean accuracy", ylim=(0, 1.03))
    axis.legend(loc="lower right")
    return figure


not_drawn(
    "002 7",
    "The social funnel",
    "Population phenomena above interactions, psychology of single agents and mechanisms inside a model.",
    "it is a diagram and holds no numbers",
)
not_drawn(
    "002 Table 1",
    "Control variables",
    "The five controls: N, α, m, composition of the team, and protocol.",
    "it holds no numbers; arguments of validation.flag_game.simulate_gossip are these controls",
)
