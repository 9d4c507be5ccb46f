"""Populations that were really run: their words, policies estimated from their choices, and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from scipy.special import betaincinv

from meanfield._plot.intervals import error_bars, limits_of
from meanfield._plot.registry import draws
from meanfield._plot.runs import draw_band, draw_lines, tell_lines
from meanfield._plot.scales import MANY_TIMES, show_rounds, show_shares
from meanfield._plot.size_curves import words_drawn
from meanfield._plot.words import NEUTRAL, PALETTE, words_in
from meanfield.toolbox._errors import InputError

LEVEL = 0.95
PLAIN = "{x:,.0f}"
FEW_DECADES = 4
EMPIRICAL = {"observed": "validation.populations.empirical_policy"}
VERDICTS = {"agrees": PALETTE[0], "disagrees": PALETTE[5], "too few data": NEUTRAL}
QUANTITIES = {"majority word": "o", "flips": "s", "time": "o", "success rate": "s"}


@draws("live_population", view="word_share", reads="round: round; run interaction speaker: said; word: word")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word among those said in a round: runs, their mean, and their 5th to 95th percentiles."""
    rounds = part["round"].values
    said = part["said"].transpose("run", "interaction", "speaker").values
    if said.shape[1] % len(rounds):
        raise InputError(f"result has {said.shape[1]} interactions: expected as many in each of {len(rounds)} rounds")
    said = said.reshape(len(said), len(rounds), -1)
    words = words_drawn(part)
    show_rounds(axes, float(rounds[-1]))
    for number, word in enumerate(words):
        share = (said == number).mean(-1)
        draw_lines(axes, rounds, share, [colours[word]] * len(share))
        draw_band(axes, rounds, share, word, **{"color": colours[word], **style})
    tell_lines(axes, len(said))
    show_shares(axes, f"share of '{words[0]}' said" if len(words) == 1 else "share of words said")


@draws("live_population", view="success_rate", reads="round: round; run round: success_rate")
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of a round's interactions that succeed: runs, their mean, and their 5th to 95th percentiles."""
    rounds, rates = part["round"].values, part["success_rate"].transpose("run", "round").values
    show_rounds(axes, float(rounds[-1]))
    draw_lines(axes, rounds, rates, [PALETTE[0]] * len(rates))
    draw_band(axes, rounds, rates, "mean of the runs", **{"color": PALETTE[0], **style})
    tell_lines(axes, len(rates))
    show_shares(axes, "success rate")


@draws(
    "real_runs",
    view="word_share",
    by=("population",),
    reads="round: round; run round word: word_share; run: run; word: word",
)
def word_share_of_runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word said in N interactions of real runs, and their mean and band until the first run ends."""
    rounds, shares = _real(part, "word_share")
    of_word = {word: shares[..., k] for k, word in enumerate(words_in(part)) if np.nanmax(shares[..., k], initial=0)}
    words = list(of_word) if len(of_word) > 2 else list(of_word)[:1]
    for word in words:
        _runs(axes, rounds, of_word[word], word, **{"color": colours[word], **style})
    if not words:
        axes.plot([], [], " ", label="no run")
    show_shares(axes, f"share of '{words[0]}' said" if len(words) == 1 else "share of words said")


@draws("real_runs", view="success_rate", by=("population",), reads="round: round; run round: success_rate; run: run")
def success_rate_of_runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of N interactions of real runs that succeed, and the mean and band until the first run ends."""
    _runs(axes, *_real(part, "success_rate"), "mean of the runs", **{"color": PALETTE[0], **style})
    show_shares(axes, "success rate")


def _real(part: xr.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rounds, and the numbers of the runs of this panel in them."""
    values = part[name].transpose("run", "round", ...).values
    known = np.isfinite(values).reshape(*values.shape[:2], -1).any(-1)
    values, last = values[known.any(1)], int(known.any(0).nonzero()[0].max(initial=-1)) + 1
    return part["round"].values[:last], values[:, :last]


def _runs(axes: Axes, rounds: np.ndarray, runs: np.ndarray, label: str, **style: Any) -> None:
    show_rounds(axes, float(max(rounds, default=0)))
    draw_lines(axes, rounds, runs, [style["color"]] * len(runs))
    together = np.isfinite(runs).all(0)  # runs that end early agree: the mean of the others would be of other runs
    if not len(runs):
        axes.plot([], [], " ", label="no run")
    elif together.any():
        draw_band(axes, rounds[together], runs[:, together], label, **style)
    tell_lines(axes, len(runs))


@draws("policy", view="posterior", needs=EMPIRICAL, reads="state: observed; state word: q alpha; word: word")
def posterior(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Choice probabilities by the number of choices seen in a state, with posterior 95 % intervals."""
    seen = part["observed"].values
    for number, word in enumerate(words_drawn(part)):
        alpha = part["alpha"].isel(word=number).values
        others = part["alpha"].sum("word").values - alpha
        ends = (betaincinv(alpha, others, p) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        look = {"color": colours[word], "label": word, "markersize": 3, "linewidth": 0.8, **style}
        error_bars(axes, seen, part["q"].isel(word=number), *ends, **look)
    axes.set_xscale("symlog", linthresh=1)
    decades = np.arange(1 + np.log10(max(1, seen.max())))
    ticks = [0, *10 ** decades[:: 1 if len(decades) < FEW_DECADES else 2]]
    axes.set_xticks(ticks, [PLAIN.format(x=tick) for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(left=-0.5)
    axes.set_xlabel("choices seen in the state")
    show_shares(axes, f"q with {100 * LEVEL:g} % interval")


@draws("real_populations", view="shares", by=(), reads="index: quantity verdict observed predicted low high")
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Observed shares of majority words and of flips with Wilson intervals against predicted ones, by verdict."""
    _observed(axes, part, ("majority word", "flips"), **style)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=0)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("predicted share")
    show_shares(axes, f"observed, {100 * part.attrs.get('level', np.nan):g} % interval")


@draws("real_populations", view="times", by=(), reads="index: quantity verdict observed predicted low high")
def times(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Observed median numbers of interactions against predicted ones, by verdict."""
    _observed(axes, part, ("time",), **style)
    here = part.isel({part["quantity"].dims[0]: part["quantity"].values == "time"})
    if not (here["predicted"].notnull() & here["observed"].notnull()).any():
        axes.plot([], [], " ", label="no observed beside a predicted time")
        return
    ends = limits_of(np.log(here["predicted"].values), np.log(here["observed"].values))
    axes.plot(np.exp(ends), np.exp(ends), color="0.6", linewidth=0.8, zorder=0)
    if ends[1] - ends[0] > np.log(MANY_TIMES):
        axes.set_xscale("log")
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PLAIN)
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("predicted interactions (median)")
    axes.set_ylabel("observed interactions")


def _observed(axes: Axes, part: xr.Dataset, quantities: tuple[str, ...], **style: Any) -> None:
    """Observed against predicted numbers; tests without numbers are counted in the legend."""
    verdicts, kinds = part["verdict"].values.astype(str), part["quantity"].values.astype(str)
    values = [part[name].values.astype(float) for name in ("predicted", "observed", "low", "high")]
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    for quantity in quantities:
        for verdict, colour in VERDICTS.items():
            here = known & (verdicts == verdict) & (kinds == quantity)
            if here.any():
                label = f"{quantity}, {verdict}: {here.sum()}"
                look = {"marker": QUANTITIES[quantity], "linestyle": "none", "color": colour, "label": label}
                error_bars(axes, *(one[here] for one in values), **{**look, **style})
    unknown = (~known & np.isin(kinds, quantities)).sum()
    if unknown:
        axes.plot([], [], " ", label=f"without numbers: {unknown}")
