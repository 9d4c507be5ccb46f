"""The power of planned runs, before anybody pays for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from meanfield import InputError, each_policy, group_size_law
from meanfield.toolbox import (
    canonical_order,
    check_level,
    different,
    name_of,
    one_or_several,
    real_number,
    single_policy,
    stamp,
    whole_number,
    words_of,
)
from validation._engine.arguments import name_in, population_sizes

BIAS = ["model", "pair", "word", "n_agents", "kappa", "chance", "undecided", "against", "excluded"]
PLAN = ["runs", "at_most", "at_least", "power", "runs_needed"]
MOST_RUNS = 10_000
NUMBERS = np.arange(MOST_RUNS + 1)

Bias = dict[str, Any]  # the first columns of a row; '' is the strong word of a number κ


def power(
    bias: float | Sequence[float] | xr.Dataset | Iterable[xr.Dataset],
    *,
    n_agents: int | Sequence[int] | None = None,
    runs: int | Sequence[int] = (10, 20, 40, 80, 160),
    against: float | xr.Dataset = 0.0,
    undecided: float = 0.0,
    level: float = 0.95,
    wanted: float = 0.8,
) -> pd.DataFrame:
    """The probability that planned runs of a population call a bias, and the number of runs needed.

    A run ends at the strong word with the probability Φ(κ√N) of `meanfield.group_size_law`. The bias is called if the
    exact binomial test of the wins rejects that the probability is Φ(κ₀√N), which is ½ without bias, κ₀ = 0. Each of
    its two sides has a probability of (1 - level)/2 at most, as the Clopper-Pearson interval. Powers are exact, and
    rise with the number of runs as a saw-tooth, since numbers of wins are whole: one run more may lower the power.

    Parameters
    ----------
    bias
        κ, one number or several; or policies of two words with a group-size law, which gives κ; or the result of
        `validation.naming_game.simulated_bias` for a policy without a law, which gives probabilities and undecided
        runs.
    n_agents
        N ≥ 2, one population size or several different ones. A simulated bias has its own.
    runs
        Planned numbers of runs, 1 to 10,000, one or several different ones.
    against
        κ₀ of the bias to exclude, for the same word; or the policy that has it, of the same words. By default none.
    undecided
        Probability that a run agrees on no word. Such a run is paid for and not counted.
    level
        Confidence at which a bias is called.
    wanted
        Power for which the number of runs is needed.

    Returns
    -------
    DataFrame with a row for each bias, N and number of runs:

    - `model`, `pair` and `word`, the strong word, which are '' for a number κ; `n_agents`, `kappa`;
    - `chance` that a decided run ends at the word, Φ(κ√N), and `undecided`; `against`, κ₀, and `excluded` = Φ(κ₀√N);
    - `runs`; `at_most` and `at_least`, the wins of so many decided runs that call a probability below or above
      `excluded`, -1 and runs + 1 if no number of wins does;
    - `power`, the probability of a call to either side;
    - `runs_needed`, from which on every number of runs up to 10,000 has the wanted power, whatever the saw-tooth;
      infinite if 10,000 have less.

    Raises
    ------
    InputError
        If a policy has no group-size law, the words of `against` are others, a simulated
        bias has no decided run, or a number is out of range.

    See Also
    --------
    report : the table as sentences
    winners : the same of runs that were played
    validation.comparison.compare_ensembles : two populations, both played

    Examples
    --------
    The bias of {A, B} is κ = 0.1. Do 40 runs show it, with 24 or with 100 agents?

    >>> table = validation.populations.power(0.1, n_agents=[24, 100], runs=40)
    >>> table[["n_agents", "chance", "at_least", "power", "runs_needed"]].round(2)
       n_agents  chance  at_least  power  runs_needed
    0        24    0.69        27   0.64         61.0
    1       100    0.84        27   1.00         17.0
    """
    check_level(level)
    wanted = real_number("wanted", wanted, above=0, below=1)
    planned = different("runs", [whole_number("runs", n, 1, MOST_RUNS) for n in one_or_several(runs)], "number of runs")
    if isinstance(against, xr.Dataset):
        rival = _of_policy(single_policy(against, "against"))
    else:
        rival = {"kappa": real_number("against", against), "word": ""}
    rows = []
    for one in _biases(bias, n_agents, undecided):
        other = _kappa_for(one, rival)
        excluded = _chance(other, one["n_agents"])
        by_runs = power_by_runs(one["chance"], excluded, level, one["undecided"])
        wins, losses = least_wins(excluded, level), least_wins(1 - excluded, level)
        known = one | {"against": other, "excluded": excluded, "runs_needed": fewest_runs(by_runs, wanted)}
        for n in planned:
            rows.append(known | {"runs": n, "at_most": n - losses[n], "at_least": wins[n], "power": by_runs[n]})
    table = pd.DataFrame(rows).loc[:, [*BIAS, *PLAN]]
    table.attrs |= stamp(xr.Dataset(), "power", level=level, wanted=wanted).attrs
    return table


def _biases(bias: object, n_agents: int | Sequence[int] | None, undecided: float) -> list[Bias]:
    """One for each κ, policy or simulated bias, and each population size."""
    undecided = real_number("undecided", undecided, least=0, below=1)
    if isinstance(bias, xr.Dataset) and bias.attrs.get("kind") == "collective_bias":
        if n_agents is not None or undecided:
            raise InputError("bias was simulated: expected neither n_agents nor undecided, which it has itself")
        return _simulated(bias)
    sizes = population_sizes(n_agents)  # type: ignore[arg-type]
    given = one_or_several(bias)
    if not given:
        raise InputError("bias is empty: expected a number κ, or policies")
    if any(isinstance(one, xr.Dataset) for one in given):
        known = [_of_policy(policy) for policy in each_policy(given)]
    else:
        known = [dict.fromkeys(BIAS[:3], "") | {"kappa": real_number("bias", kappa)} for kappa in given]
    planned = [one | {"n_agents": n, "undecided": undecided} for one in known for n in sizes]
    return [one | {"chance": _chance(one["kappa"], one["n_agents"])} for one in planned]


def _chance(kappa: float, n_agents: int) -> float:
    """Φ(κ√N), the group-size law."""
    return float(ndtr(kappa * np.sqrt(n_agents)))


def _of_policy(policy: xr.Dataset) -> Bias:
    """κ and the strong word; InputError without a law."""
    law = group_size_law(policy, n_agents=2)
    if law["attractors"].item() != 2:
        advice = "expected one with a law, or validation.naming_game.simulated_bias of its runs"
        raise InputError(f"{name_of(policy)} has no group-size law of two attractors ({law.attrs['reason']}): {advice}")
    names = {"model": name_in(policy, "model"), "pair": "/".join(words_of(policy))}
    return names | {"kappa": law["kappa"].item(), "word": str(law["strong_word"].item())}


def _kappa_for(bias: Bias, rival: Bias) -> float:
    """κ of the rival for the word of the bias: of two words, what favours one disfavours the other."""
    if not rival["word"] or not bias["word"]:
        return rival["kappa"]
    words = rival["pair"].split("/")
    if sorted(words) != sorted(bias["pair"].split("/")):
        raise InputError(f"against has the words {', '.join(words)}: expected {bias['pair']}, as the bias has")
    return rival["kappa"] if rival["word"] == bias["word"] else -rival["kappa"]


def _simulated(bias: xr.Dataset) -> list[Bias]:
    bias = canonical_order(bias, "bias")
    bias = bias.expand_dims([dim for dim in ("pair", "n_agents") if dim not in bias.dims])
    found = []
    for pair, number in np.ndindex(bias.sizes["pair"], bias.sizes["n_agents"]):
        one = bias.isel(pair=pair, n_agents=number)
        n, undecided, words = int(one["n_agents"].item()), float(one["no_consensus"].item()), "/".join(words_of(one))
        if not undecided < 1:
            raise InputError(f"bias has no simulated run of {words} that agrees, N = {n}: expected some")
        chance = min(one["simulated"].item() / (1 - undecided), 1.0)
        told = {"model": name_in(one, "model"), "pair": words, "word": str(one["strong_word"].item()), "n_agents": n}
        kappa = float(ndtri(chance) / np.sqrt(n))
        found.append(told | {"kappa": kappa, "chance": chance, "undecided": undecided})
    return found


@lru_cache(maxsize=64)
def least_wins(excluded: float, level: float) -> np.ndarray:
    """The fewest wins among 0, 1, … MOST_RUNS runs that call a probability above `excluded`.

    As many wins or more have a probability of at most (1 - level)/2 if the probability is `excluded`. More wins than
    runs mean that so few runs can't call it.
    """
    return binom.isf((1 - level) / 2, NUMBERS, excluded).astype(int) + 1


def power_by_runs(chance: float, excluded: float, level: float, undecided: float) -> np.ndarray:
    """The probability that 0, 1, … MOST_RUNS runs exclude that `excluded` is the probability of a win.

    Each run is decided with probability 1 - `undecided`; only decided runs are tested: the mean of power(d) over
    Binomial(d; n, 1 - undecided), where each further run may add a decided one.
    """
    above = binom.sf(least_wins(excluded, level) - 1, NUMBERS, chance)
    after = power = above + binom.sf(least_wins(1 - excluded, level) - 1, NUMBERS, 1 - chance)
    if not undecided:
        return power
    mean = np.empty_like(power)
    for n in NUMBERS:
        mean[n] = after[0]
        after = undecided * after[:-1] + (1 - undecided) * after[1:]
    return mean


def fewest_runs(power: np.ndarray, wanted: float) -> float:
    """The number of runs from which on all have the wanted power; infinite if MOST_RUNS have less.

    No runs have the power 0.
    """
    short = np.flatnonzero(power < wanted)
    return float(short[-1] + 1) if short[-1] < MOST_RUNS else np.inf


def power_lines(table: pd.DataFrame) -> list[str]:
    """A sentence for each bias and number of agents in a table of powers."""
    level, wanted = (float(table.attrs[f"option_{name}"]) for name in ("level", "wanted"))
    lines = []
    for _, rows in table.groupby(["model", "pair", "kappa", "n_agents"], sort=False):
        row = rows.to_dict("records")[0]
        words = "{" + ", ".join(row["pair"].split("/")) + "}" if row["pair"] else ""
        name = " ".join(filter(None, (row["model"], words)))
        winner = repr(row["word"]) if row["word"] else "the strong word"
        called = f"call a bias κ of {row['kappa']:.3g}" + (f" and not {row['against']:.3g}" if row["against"] else "")
        enough = np.isfinite(row["runs_needed"])
        needed = f"{row['runs_needed']:,.0f} runs are needed" if enough else f"{MOST_RUNS:,} runs do not suffice"
        columns = ([f"{n:,}" for n in rows["runs"]], [f"{chance:.2f}" for chance in rows["power"]])
        runs, powers = (" and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) for texts in columns)
        lines.append(
            f"{name + ': ' if name else ''}{runs} runs of {row['n_agents']:,} agents {called} ({winner} wins with "
            f"chance {row['chance']:.3f}) with probability {powers} at {100 * level:g} % confidence; "
            f"{needed} for {wanted:g}"
        )
    return lines
