"""Populations that were really run: their words, who wins, how sharply agents choose, and predictions of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from meanfield._plot.curves import draw_band, draw_lines, note, tell_lines, words_drawn
from meanfield._plot.intervals import error_bars, forest, limits_of, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import MANY_TIMES, show_rounds, show_shares, size_colours, size_label
from meanfield._plot.words import NEUTRAL, PALETTE, in_braces, model_name, words_in
from meanfield.toolbox._errors import InputError

VERDICTS = {"agrees": PALETTE[0], "disagrees": PALETTE[5], "too few data": NEUTRAL}
QUANTITIES = {"majority word": "o", "flips": "s", "time": "o", "success rate": "s"}
MOST_NAMED = 3  # words in a label
WIDTH = 0.8  # of the bars of a word, or of the laws of a policy in its row
TICKS = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10])
LINES = ("-", "--", ":", "-.")
MANY_POINTS = 12
GROUP = ["model", "pair", "memory_length", "experiment", "n_agents", "initial_consensus", "committed_word"]


@draws("live_population", "word_share", "round: round; run interaction speaker: said; word: word")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word among those said in a round: runs, their mean, and their 5th to 95th percentiles."""
    rounds, said = part["round"].values, part["said"].values
    if said.shape[1] % len(rounds):
        raise InputError(f"result has {said.shape[1]} interactions: expected as many in each of {len(rounds)} rounds")
    said = said.reshape(len(said), len(rounds), -1)
    words = words_drawn(part)
    shares = [(said == number).mean(-1) for number, _ in enumerate(words)]
    _runs(axes, rounds, dict(zip(words, shares, strict=True)), colours, **style)
    show_shares(axes, _said(words))


@draws("live_population", "success_rate", "run round!: success_rate")
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of a round's interactions that succeed: runs, their mean, and their 5th to 95th percentiles."""
    _runs(axes, part["round"].values, {"mean of the runs": part["success_rate"].values}, {}, **style)
    show_shares(axes, "success rate")


@draws("real_runs", "word_share", "run! round! word!: word_share", by=("population",))
def word_share_of_runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word said in N interactions of real runs, and their mean and band until the first run ends."""
    rounds, shares = _real(part["word_share"])
    of_word = {word: shares[..., k] for k, word in enumerate(words_in(part)) if np.nanmax(shares[..., k], initial=0)}
    words = tuple(of_word) if len(of_word) > 2 else tuple(of_word)[:1]
    _runs(axes, rounds, {word: of_word[word] for word in words}, colours, **style)
    show_shares(axes, _said(words))


@draws("real_runs", "success_rate", "run! round!: success_rate", by=("population",))
def success_rate_of_runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of N interactions of real runs that succeed, and the mean and band until the first run ends."""
    rounds, rates = _real(part["success_rate"])
    _runs(axes, rounds, {"mean of the runs": rates} if len(rates) else {}, {}, **style)
    show_shares(axes, "success rate")


def _said(words: tuple[str, ...]) -> str:
    return f"share of '{words[0]}' said" if len(words) == 1 else "share of words said"


def _real(array: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds, and the numbers (run, round, …) of the runs of this panel in them."""
    known = np.isfinite(array.values).reshape(*array.shape[:2], -1).any(-1)
    last = int(known.any(0).nonzero()[0].max(initial=-1)) + 1
    return array["round"].values[:last], array.values[known.any(1), :last]


def _runs(axes: Axes, rounds: np.ndarray, named: dict[str, np.ndarray], colours: dict[str, str], **style: Any) -> None:
    """Lines of runs (run, round), and their mean and band until the first of them ends."""
    show_rounds(axes, float(max(rounds, default=0)))
    for label, runs in named.items():
        colour = style.get("color", colours.get(label, PALETTE[0]))
        draw_lines(axes, rounds, runs, colour)
        together = np.isfinite(runs).all(0)  # runs that end early agree: the mean of the others would be of other runs
        if together.any():
            draw_band(axes, rounds[together], runs[:, together], label, **{"color": colour, **style})
        elif not np.isfinite(runs).any():
            note(axes, label)
    if not named:
        note(axes, "no run")
    tell_lines(axes, max(map(len, named.values()), default=0))


@draws("real_populations", "shares", "index: quantity verdict observed predicted low high", by=())
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Observed shares of majority words and of flips with Wilson intervals against predicted ones, by verdict."""
    _observed(axes, part, ("majority word", "flips"), **style)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=0)
    axes.set(xlim=(-0.03, 1.03), xlabel="predicted share")
    show_shares(axes, f"observed, {100 * part.attrs.get('level', np.nan):g} % interval")


@draws("real_populations", "times", "index: quantity verdict observed predicted low high", by=())
def times(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Observed median numbers of interactions against predicted ones, by verdict."""
    drawn = _observed(axes, part, ("time",), **style)
    if not len(drawn):
        note(axes, "no observed beside a predicted time")
        return
    ends = limits_of(np.log(drawn["predicted"]), np.log(drawn["observed"]))
    axes.plot(np.exp(ends), np.exp(ends), color="0.6", linewidth=0.8, zorder=0)
    if ends[1] - ends[0] > np.log(MANY_TIMES):
        axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="predicted interactions (median)", ylabel="observed interactions")


def _observed(axes: Axes, part: xr.Dataset, quantities: tuple[str, ...], **style: Any) -> pd.DataFrame:
    """Observed against predicted numbers; tests without numbers are counted in the legend."""
    table = part.to_dataframe().astype({name: float for name in ("predicted", "observed", "low", "high")})
    table = table[table["quantity"].isin(quantities)]
    known = table.dropna(subset=["predicted", "observed"])
    for quantity in quantities:
        for verdict, colour in VERDICTS.items():
            here = known[(known["verdict"] == verdict) & (known["quantity"] == quantity)]
            if len(here):
                label = f"{quantity}, {verdict}: {len(here)}"
                look = {"marker": QUANTITIES[quantity], "linestyle": "none", "color": colour, "label": label}
                columns = (here[name].to_numpy() for name in ("predicted", "observed", "low", "high"))
                error_bars(axes, *columns, **{**look, **style})
    if unknown := len(table) - len(known):
        note(axes, f"without numbers: {unknown}")
    return known


@draws("choice_scores", "log_likelihood", "index: model pair memory_length law log_likelihood low high", by=())
def log_likelihood(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean log-probability of held-out choices under each law, with intervals, a row for each policy."""
    table = part.to_dataframe()
    columns = zip(table["model"], table["pair"], table["memory_length"], strict=True)
    names = [f"{model_name(model)} {_few(pair.split('/'))}, H = {length}" for model, pair, length in columns]
    table["row"], rows = pd.factorize(pd.Series(names))
    limits = limits_of(table["low"], table["high"])
    shifts = np.linspace(-WIDTH / 2, WIDTH / 2, table["law"].nunique() + 2)[1:-1]
    for number, (law, one) in enumerate(table.groupby("law", sort=False)):
        look = {"color": PALETTE[number % len(PALETTE)], "label": str(law), "markersize": 4, **style}
        values = (one[name].to_numpy(dtype=float) for name in ("log_likelihood", "low", "high"))
        forest(axes, one["row"] + shifts[number], *values, limits=limits, **look)
    name_rows(axes, list(rows), xlim=limits, xlabel="mean ln(probability) of a held-out choice")


def _few(words: list[str]) -> str:
    return in_braces(words) if len(words) <= MOST_NAMED else f"W = {len(words)}"


@draws("power", "runs", "index: model pair kappa n_agents runs power", by=())
def runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that planned runs call a bias against their number, a line for each N and bias."""
    table = part.to_dataframe()
    named = zip(table["model"], table["pair"], table["kappa"], strict=True)
    table["bias"] = [
        f"{model_name(model)} {in_braces(pair.split('/'))}".strip() if pair else f"κ = {kappa:.3g}"
        for model, pair, kappa in named
    ]
    biases, sizes = table["bias"].unique().tolist(), sorted(table["n_agents"].unique().tolist())
    shades = dict(zip(sizes, size_colours(len(sizes)), strict=True))
    for _, rows in table.groupby(["bias", "n_agents"], sort=False):
        rows = rows.sort_values("runs")
        bias, size = rows["bias"].iloc[0], rows["n_agents"].iloc[0]
        look = {"color": shades[size], "linestyle": LINES[biases.index(bias) % len(LINES)]}
        look |= {"marker": "." if len(rows) < MANY_POINTS else "", "label": f"{bias}, {size_label(size)}"}
        axes.plot(rows["runs"], rows["power"], **{**look, **style})
    axes.axhline(float(part.attrs["option_wanted"]), color="0.6", linewidth=0.8, zorder=0)
    axes.set_xlabel("number of runs")
    show_shares(axes, f"probability of a call at {100 * float(part.attrs['option_level']):g} %")


@draws("winners", "share", "index*: model options memory_length n_agents runs word share low high", by=())
def share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of runs that agree on each word, with Wilson intervals; conditions side by side."""
    table = part.to_dataframe()
    if not len(table):
        note(axes, "no run agrees on a word")
        return
    words, several = sorted(table["word"].unique()), len(set(table["options"])) > 1
    conditions = table.groupby(["model", "options", "memory_length", "n_agents", "runs"], sort=False)
    width = WIDTH / len(conditions)
    for place, (_, one) in enumerate(conditions):
        first = one.to_dict("records")[0]
        told = f"{_few(first['options'].split('_'))}, " if several else ""
        label = f"{model_name(first['model'])}, {told}H = {first['memory_length']}, N = {first['n_agents']}: "
        label += f"{first['runs']} runs"
        x = one["word"].map(words.index).to_numpy() + (place - (len(conditions) - 1) / 2) * width
        axes.bar(x, one["share"], **{"width": width, "color": PALETTE[place % len(PALETTE)], "label": label, **style})
        error_bars(axes, x, *(one[name] for name in ("share", "low", "high")), fmt="none", ecolor="0.2", elinewidth=0.8)
    axes.set_xticks(range(len(words)), words)
    show_shares(axes, "share of runs that agree on the word", xlabel="word")


@draws("sharpness", "forest", f"index: of {' '.join(GROUP)} sharpness low high", by=())
def sharpness(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The sharpness of each run, listed below its experiment, with intervals, against the mean of all choices."""
    place, ticks = 0, {}
    for number, (_, table) in enumerate(part.to_dataframe().groupby(GROUP, sort=False, dropna=False)):
        colour = PALETTE[number % len(PALETTE)]
        for of, marker, size, width in (("experiment", "D", 5, 2.0), ("run", "o", 2.5, 0.7)):
            one = table[table["of"] == of]
            y = place + np.arange(len(one))
            look = {"linestyle": "none", "color": colour, "marker": marker, "markersize": size, **style}
            axes.plot(one["sharpness"], y, **look)
            axes.hlines(y, one["low"], one["high"], color=colour, linewidth=width)
            if of == "experiment":
                ticks[place] = _condition(**table[GROUP].to_dict("records")[0])
            place += len(y)
        place += 1
    axes.axvline(1, color=NEUTRAL, linewidth=0.8, zorder=0)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set(ylim=(place - 0.5, -1), xscale="log")
    low, high = axes.get_xlim()
    shown = TICKS[(low <= TICKS) & (high >= TICKS)]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"sharpness β with {100 * part.attrs.get('level', np.nan):g} % interval")


def _condition(
    pair: str, memory_length: int, experiment: str, n_agents: int, initial_consensus: str, committed_word: str, **_: Any
) -> str:
    start = f", from {initial_consensus}" if initial_consensus else ""
    minority = f", some say {committed_word}" if committed_word else ""
    how = "from empty" if experiment == "from_empty" else ""
    told = f"{how}{start}{minority}".removeprefix(", ")
    return f"{in_braces(pair.split('/'))}, H = {memory_length}, N = {n_agents}, {told}"
