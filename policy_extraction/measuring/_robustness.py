"""Which conclusions about a model survive other ways of asking it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, fixed_points
from meanfield.toolbox import labelled, shown, stamp, whole_number, words_of
from policy_extraction._toolbox.bars import hidden
from policy_extraction.backends._backend import Backend
from policy_extraction.backends._open import open_backend
from policy_extraction.backends.local._source import SMOLLM2
from policy_extraction.measuring._active.goals import Goal
from policy_extraction.measuring._active.measure import measure
from policy_extraction.measuring._extract import extract
from policy_extraction.measuring._record import policy_from_record
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.measuring._variants import unquoted
from policy_extraction.prompts._games import checked_game
from policy_extraction.prompts._template import NAMING_GAME, TEMPLATES, Payoffs, Template

SAME = 1e-6  # relative; solvers agree to less
MEAN = "mean"  # over the presentation orders
CONCLUSIONS = ("same_strong_word", "word_share", "eigenvalue", "kappa", "critical_mass", "critical_mass_second")
CELLS = {
    "strong_word": "strong word",
    "consensus": "whether there is a consensus",
    "same_strong_word": "1 if the reference has this strong word",
    "word_share": "share of the first word",
    "eigenvalue": "leading eigenvalue",
    "kappa": "κ, positive for the first word",
    "critical_mass": "critical mass of agents committed to the first word",
    "critical_mass_second": "critical mass of agents committed to the second word",
    "prompts": "prompts",
    "word_share_low": "lower end of the 95 % interval of word_share",
    "word_share_high": "upper end of the 95 % interval of word_share",
    "reached": "whether the measurement ended before its budget",
}
UNITS = {"eigenvalue": ("1/time, two units of time are a population round",)}


def robustness(
    model: str | os.PathLike[str] | tuple[Any, Any] | Backend = SMOLLM2,
    *,
    words: Sequence[str],
    memory_length: int = 5,
    templates: Sequence[Template] | None = None,
    quotation: bool = True,
    temperatures: Sequence[float] = (0.5, 1.0),
    budget: int | None = None,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    seed: int = 0,
    progress: bool | None = None,
    cache: bool | str | os.PathLike[str] = True,
) -> xr.Dataset:
    """The conclusions about a model for every combination of order, wording, quotation marks and temperature.

    All combinations are taken (a full factorial experiment), so that the variance of a conclusion is the sum of the
    parts that the factors and their interactions explain. The first level of each factor is the reference.

    Parameters
    ----------
    model
        As in `extract`.
    words
        The two words.
    memory_length
        H, in interactions.
    templates
        Wordings, whose names differ; None for the two published ones.
    quotation
        Whether words without quotation marks are the other level of a factor; needs templates with such marks.
    temperatures
        T of [004] Eq. 9. They take no further prompts, as they rescale log-probabilities.
    budget
        None to measure whole tables; the two presentation orders are then a factor, which takes no further prompts
        either. Else the largest number of prompts for each combination, which `measure` chooses for the word share to
        5 %; order is then no factor, because it takes the mean over both, and each temperature takes prompts of its
        own. κ and critical mass of such a policy are less certain.
    payoffs, progress, cache
        As in `extract`.
    seed
        As in `measure`.

    Returns
    -------
    Dataset over `combination`, with a coordinate for each factor, and

    - `strong_word`, the more frequent word at the attractor of large populations with empty memories, 'neither' or,
      if not known, '', and `same_strong_word`, 1 if the reference has the same, NaN if not known;
    - `consensus`, whether they come to a consensus;
    - `word_share` of the first word there, and its leading `eigenvalue`;
    - `kappa` of the group-size law, positive for the first word, NaN if the policy has none;
    - `critical_mass` and `critical_mass_second`, of agents committed to the first and the second word, NaN without a
      fold;
    - `prompts`, the answers that the combination rests on, and with a budget the 95 % interval `word_share_low` to
      `word_share_high` of `measure`, NaN with less than 106 unless all memories are asked, and `reached`, whether it
      ended before the budget was spent;
    - `explained` (conclusion, part), the part of the variance that each factor and the interactions explain;
    - `effect` (conclusion, level), the mean of a conclusion with a level of `factor` minus the overall mean. Both are
      NaN for a conclusion that some combination lacks;
    - `lowest` and `highest` (conclusion) over all combinations that have it.

    ``robustness(…)[["strong_word", "kappa"]].to_dataframe()`` is a table of the combinations, and
    ``robustness(…)["explained"].to_pandas()`` one of the factors.

    Raises
    ------
    InputError
        If there are not two words, names of templates or temperatures come twice, or `extract` or `measure` refuses
        an argument.

    See Also
    --------
    policy_extraction.measuring.prompt_variants : chosen variants, one by one
    meanfield.plot : draws the parts that factors explain

    Examples
    --------
    A model that leans to the word listed first, whatever it remembers.

    >>> from policy_extraction import robustness
    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.prompts import NAMING_GAME
    >>> def law(memory, order):
    ...     return {order[0]: 0.6, order[1]: 0.3}
    >>> table = TableBackend(law, ("his", "her"), memory_length=1)
    >>> found = robustness(table, words=("his", "her"), memory_length=1, templates=[NAMING_GAME], quotation=False)
    >>> cells = found[["strong_word", "word_share"]].to_dataframe()
    >>> print(cells[["order", "temperature", "strong_word", "word_share"]].round(2).to_string(index=False))
       order  temperature strong_word  word_share
    his, her          0.5         his        0.80
    his, her          1.0         his        0.67
    her, his          0.5         her        0.20
    her, his          1.0         her        0.33
    >>> found["explained"].sel(conclusion="word_share").round(2).to_series().to_dict()
    {'order': 0.92, 'wording': 0.0, 'quotation': 0.0, 'temperature': 0.0, 'interactions': 0.08}
    """
    words = checked_game(words, memory_length, NAMING_GAME, payoffs)
    if len(words) != 2:
        raise InputError(f"words: there are {len(words)}, expected 2; see prompt_variants")
    wordings = list(TEMPLATES.values()) if templates is None else templates
    _check_levels("templates", wordings, lambda template: isinstance(template, Template) and template.name)
    _check_levels("temperatures", temperatures, float)
    for temperature in temperatures:
        check_temperature(temperature)
    if budget is not None:
        whole_number("budget", budget, 1)
    marks = {"quoted": wordings, **({"unquoted": [unquoted(template) for template in wordings]} if quotation else {})}
    backend = open_backend(model)
    rows: dict[tuple[object, ...], dict[str, Any]] = {}  # by one level of each factor
    options = {"words": words, "memory_length": memory_length, "payoffs": payoffs, "cache": cache}
    n_orders = 1 if budget is not None else 2
    total = n_orders * len(wordings) * len(marks) * len(temperatures)
    with tqdm(total=total, desc=backend.name, unit="combination", disable=hidden(progress)) as bar:
        for quoting, (number, wording) in product(marks, enumerate(wordings)):
            asked = {"template": marks[quoting][number], "progress": progress, **options}
            if budget is None:
                record = extract(backend, **asked)
                labels = enumerate(record["order_label"].values)
                found = ((str(o), t, policy_from_record(record, t, order=i)) for i, o in labels for t in temperatures)
            else:
                asked |= {"goal": "word_share", "budget": budget, "seed": seed}
                found = ((MEAN, t, measure(backend, temperature=t, **asked)) for t in temperatures)
            for order, temperature, policy in found:
                rows[order, wording.name, quoting, float(temperature)] = _conclusions(policy)
                bar.update()
    levels = {
        "order": list(dict.fromkeys(order for order, *_ in rows)),
        "wording": [template.name for template in wordings],
        "quotation": list(marks),
        "temperature": list(map(float, temperatures)),
    }
    table = _table(rows, levels).assign_coords(pair="/".join(words), model=backend.name)
    return stamp(table, "robustness", model=backend.name, memory_length=memory_length, budget=budget or "whole tables")


def _check_levels(name: str, levels: Any, key: Callable[[Any], object]) -> None:
    """InputError unless the levels of a factor have different, true keys."""
    try:
        keys = {key(level) for level in levels}
        if levels and len(keys) == len(levels) and all(keys):
            return
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} = {shown(levels)}: expected a sequence of one or more, all different")


def _conclusions(policy: xr.Dataset) -> dict[str, Any]:
    """Conclusions of the theory from a policy."""
    first, second = words_of(policy)
    law = Goal("kappa").of(policy)
    share = eigenvalue = np.nan
    if law.name:
        point = fixed_points(policy).isel(fixed_point=law.at)
        share, eigenvalue = point["word_share"].sel(word=first).item(), point["eigenvalue"].item()
    strong = "" if np.isnan(share) else "neither" if abs(share - 0.5) <= SAME else first if share > 0.5 else second
    masses = [Goal("critical_mass", word).of(policy) for word in (first, second)]
    found = {
        "strong_word": strong,
        "consensus": law.strong in (first, second),
        "word_share": share,
        "eigenvalue": eigenvalue,
        "kappa": law.value if law.name == "kappa" else np.nan,
        "critical_mass": masses[0].value,
        "critical_mass_second": masses[1].value,
        "prompts": policy.attrs.get("prompts_used", policy.sizes["state"]),
    }
    if "reached" in policy.attrs:  # the share as `measure` knows it
        found |= {"word_share_low": policy.attrs["goal_low"], "word_share_high": policy.attrs["goal_high"]}
        found |= {"reached": bool(policy.attrs["reached"])}
    return found


def _table(rows: dict[tuple[object, ...], dict[str, Any]], levels: dict[str, list[Any]]) -> xr.Dataset:
    """The Dataset of `robustness`, from the conclusions of each combination of levels."""
    cells = list(product(*levels.values()))
    found = {name: np.array([rows[cell][name] for cell in cells]) for name in rows[cells[0]]}
    strong = found["strong_word"]
    found["same_strong_word"] = np.where(strong == "", np.nan, (strong == strong[0]).astype(float))
    columns = {
        name: ("combination", found[name], told, *UNITS.get(name, ())) for name, told in CELLS.items() if name in found
    }
    shape = [len(each) for each in levels.values()]
    parts = [effects(found[name].reshape(shape)) for name in CONCLUSIONS]
    known = [found[name][np.isfinite(found[name])] for name in CONCLUSIONS]
    columns |= {
        "explained": (("conclusion", "part"), [explained for _, explained in parts], "part of the variance"),
        "effect": (("conclusion", "level"), [np.concatenate(part) for part, _ in parts], "mean minus the overall mean"),
        "lowest": ("conclusion", [one.min(initial=np.inf) if one.size else np.nan for one in known], "lowest value"),
        "highest": ("conclusion", [one.max(initial=-np.inf) if one.size else np.nan for one in known], "highest value"),
    }
    coords = {
        name: ("combination", list(column)) for name, column in zip(levels, zip(*cells, strict=True), strict=True)
    }
    return labelled(
        columns,
        {
            "combination": np.arange(len(cells)),
            **coords,
            "conclusion": list(CONCLUSIONS),
            "part": [*levels, "interactions"],
            "level": [f"{name}: {value}" for name, values in levels.items() for value in values],
            "factor": ("level", [name for name, values in levels.items() for _ in values]),
        },
    )


def effects(grid: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Main effects of the factors on a number (n_1, …, n_k), and the parts of its variance that they explain, (k + 1,).

    The effect of a level is the mean over all combinations with it minus the mean over all. The last part belongs to
    the interactions. With every combination once, the effects of different factors are orthogonal: y = mean +
    Σ_f effect_f + rest, and the variance is Σ_f mean(effect_f²) + mean(rest²). All are NaN if the number is missing
    somewhere, and 0 if it does not change.
    """
    axes = range(grid.ndim)
    levels = [grid.mean(tuple(other for other in axes if other != axis)) - grid.mean() for axis in axes]
    spread = grid - grid.mean()
    if abs(spread).max() <= SAME * abs(grid).max():
        return [np.zeros(n) for n in grid.shape], np.zeros(grid.ndim + 1)
    explained = np.array([(level**2).mean() for level in levels]) / (spread**2).mean()
    return levels, np.append(explained, np.maximum(0.0, 1 - explained.sum()))
