"""The power of planned runs, before anybody pays for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import one_or_several, real_number, stamp, whole_number
from validation.populations._planned_bias import biases, chance_of, rival
from validation.populations._win_counts import MOST_RUNS, fewest_runs, least_wins, power_by_runs

BIAS = ("model", "pair", "word", "n_agents", "kappa", "chance", "undecided", "against", "excluded")
PLAN = ("runs", "at_most", "at_least", "power", "runs_needed")


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

    A run ends at the strong word with the chance Φ(κ√N) of `meanfield.group_size_law`. The runs are counted and the
    bias is called if the exact binomial test rejects that the chance is Φ(κ₀√N): without bias, κ₀ = 0, that is ½. The
    test has two sides, each of probability (1 - level)/2 at most, as the Clopper-Pearson interval. Powers are exact
    sums of binomial probabilities. They rise with the number of runs as a saw-tooth, since the least number of wins
    that counts is whole: one run more may lower the power.

    Parameters
    ----------
    bias
        κ, one number or several; or policies of two words with a group-size law, which gives κ; or the result of
        `validation.naming_game.simulated_bias` for a policy without a law, which gives chances and undecided runs.
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
    - `runs`; `at_most` and `at_least`, the wins of so many decided runs that call a chance below or above `excluded`,
      -1 and runs + 1 if no number of wins does;
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
    level, wanted = real_number("level", level, above=0, below=1), real_number("wanted", wanted, above=0, below=1)
    planned = _planned(runs)
    excluded_bias = rival(against)
    rows = []
    for one in biases(bias, n_agents, undecided):
        other = excluded_bias.kappa_for(one)
        excluded = chance_of(other, one.n_agents)
        by_runs = power_by_runs(one.chance, excluded, level, one.undecided)
        wins, losses = least_wins(excluded, level), least_wins(1 - excluded, level)
        known = one._asdict() | {"against": other, "excluded": excluded, "runs_needed": fewest_runs(by_runs, wanted)}
        for n in planned:
            rows.append(known | {"runs": n, "at_most": n - losses[n], "at_least": wins[n], "power": by_runs[n]})
    table = pd.DataFrame(rows).loc[:, [*BIAS, *PLAN]]
    table.attrs |= stamp(xr.Dataset(), "power", level=level, wanted=wanted).attrs
    return table


def power_lines(table: pd.DataFrame) -> list[str]:
    """A sentence for each bias and number of agents in a table of powers."""
    level, wanted = (float(table.attrs[f"option_{name}"]) for name in ("level", "wanted"))
    plans: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for row in table.to_dict("records"):
        plans.setdefault(tuple(row[name] for name in ("model", "pair", "kappa", "n_agents")), []).append(row)
    return [_sentence(rows, level, wanted) for rows in plans.values()]


def _sentence(rows: list[dict[Any, Any]], level: float, wanted: float) -> str:
    row = rows[0]
    words = "{" + ", ".join(row["pair"].split("/")) + "}" if row["pair"] else ""
    name = " ".join(filter(None, (row["model"], words)))
    winner = repr(row["word"]) if row["word"] else "the strong word"
    called = f"call a bias κ of {row['kappa']:.3g}" + (f" and not {row['against']:.3g}" if row["against"] else "")
    enough = np.isfinite(row["runs_needed"])
    needed = f"{row['runs_needed']:,.0f} runs are needed" if enough else f"{MOST_RUNS:,} runs do not suffice"
    runs, powers = _listed([f"{one['runs']:,}" for one in rows]), _listed([f"{one['power']:.2f}" for one in rows])
    return (
        f"{name + ': ' if name else ''}{runs} runs of {row['n_agents']:,} agents {called} ({winner} wins with "
        f"chance {row['chance']:.3f}) with probability {powers} at {100 * level:g} % confidence; "
        f"{needed} for {wanted:g}"
    )


def _listed(texts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _planned(runs: int | Sequence[int]) -> list[int]:
    several = one_or_several(runs)
    if not several:
        raise InputError("runs is empty: expected a number of runs, or several")
    return list(dict.fromkeys(whole_number("runs", n, 1, MOST_RUNS) for n in several))
